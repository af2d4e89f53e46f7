"""Enumerators and structs of clebsch.h and model.h, as ctypes has them.

Names are those of the headers without `CLB_` and `clb_`.  ci/python_header.py compares members,
offsets and sizes with what a C compiler says of the headers."""
import ctypes as c

VERSION = "0.3.0"

F32, F64, F16, BF16 = range(4)
FORWARD, BACKWARD, DOUBLE_BACKWARD, TRIPLE_BACKWARD = range(4)
POINTER, CL_MEM = range(2)
COMPONENT, NORM, INTEGRAL = range(3)
MUL_IR, IR_MUL, MERGED, BY_CHANNEL = range(4)
UVW, UVU, UVV, UUW, UUU, UVUV, UVU_HALF, UVW_HALF = range(8)
IRREP_COMPONENT, IRREP_NORM, IRREP_NONE = range(3)
PATH_ELEMENT, PATH_PATH, PATH_NONE = range(3)
OPERAND_X, OPERAND_Y, OPERAND_W, OPERAND_Z = 1, 2, 4, 8
MAX_INSTRUCTIONS, IRREPS_BYTES = 512, 8192
RMS_PLAIN, RMS_NEQUIX, RMS_DEGREE, RMS_DEGREE_NORM, RMS_BALANCED = range(5)
SORTED, AS_FOUND = range(2)
I32, I64 = range(2)
SAME_ROW, DENSE = -1, 0
SGD, ADAM, ADAMW, SCHEDULE_FREE_ADAMW, MUON, SOAP = range(6)
MUON_OPTAX, MUON_NEQUIX, MUON_NEQUIP, MUON_TORCH, MUON_TORCH_RMS = range(5)
CLIP_NONE, CLIP_TORCH, CLIP_OPTAX = range(3)
EMA_NONE, EMA_WARM_UP, EMA_WARM_UP_FROM_0, EMA_CONSTANT = range(4)


def _struct(name, *fields):
    return type(name, (c.Structure,), {"_fields_": list(fields)})


def _each(kind, names):
    return [(name, kind) for name in names.split()]


native = _struct("native", *_each(c.c_void_p, "driver context device queue"))
device_info = _struct(
    "device_info", *_each(c.c_char_p, "name backend vendor description driver"),
    ("runs", c.c_int), ("memory_bytes", c.c_uint64), ("f64", c.c_int),
    ("sub_group_sizes", c.c_int * 8))
rows = _struct("rows", ("buffer", c.c_void_p), *_each(c.c_int64, "offset stride"),
               ("index", c.c_void_p))
spherical_harmonics_desc = _struct(
    "spherical_harmonics_desc", ("degrees", c.POINTER(c.c_int)),
    *_each(c.c_int, "n_degrees normalization normalize storage arithmetic accumulate"),
    ("passes", c.c_uint))
instruction = _struct("instruction", *_each(c.c_int, "in1 in2 out mode has_weight"),
                      ("path_weight", c.c_double))
tensor_product_desc = _struct(
    "tensor_product_desc", *_each(c.c_char_p, "irreps_x irreps_y irreps_z"),
    ("instructions", c.POINTER(instruction)),
    *_each(c.c_int, "n_instructions irrep_normalization path_normalization"),
    *_each(c.c_int, "layout_x layout_y layout_z shared_weights"),
    *_each(c.c_uint, "indexed gradients incoming"),
    *_each(c.c_int, "storage arithmetic accumulate"), ("passes", c.c_uint))
tensor_product_sizes = _struct("tensor_product_sizes", *_each(c.c_int64, "x y z w"))
instructions = _struct(
    "instructions", *_each(c.c_char * IRREPS_BYTES, "irreps_x irreps_y irreps_z"),
    ("instructions", instruction * MAX_INSTRUCTIONS), ("n_instructions", c.c_int))
symmetric_contraction_desc = _struct(
    "symmetric_contraction_desc", *_each(c.c_int, "ell correlation"),
    ("degrees", c.POINTER(c.c_int)),
    *_each(c.c_int, "n_degrees channels n_species layout_x layout_z"),
    *_each(c.c_uint, "gradients incoming"), *_each(c.c_int, "storage arithmetic accumulate"),
    ("passes", c.c_uint))
symmetric_paths = _struct("symmetric_paths", *_each(c.c_int, "first count all"))
rms_norm_desc = _struct(
    "rms_norm_desc", ("irreps", c.c_char_p), *_each(c.c_int, "layout variant"),
    *_each(c.c_double, "epsilon weight_offset"), *_each(c.c_int, "centre bias"),
    *_each(c.c_uint, "gradients incoming"), *_each(c.c_int, "storage arithmetic accumulate"),
    ("passes", c.c_uint))
rms_norm_sizes = _struct("rms_norm_sizes", *_each(c.c_int64, "x w"))
index_list = _struct("index_list", *_each(c.c_void_p, "host buffer"), ("offset", c.c_int64))
convolution_desc = _struct(
    "convolution_desc", ("product", tensor_product_desc), ("scale", c.c_double),
    *_each(c.c_int, "atomics knots"), *_each(c.c_double, "first_knot last_knot break_at"),
    *_each(c.c_int, "vectors normalization"))

optimizer_group = _struct(
    "optimizer_group", ("rule", c.c_int),
    *_each(c.c_double, "lr weight_decay beta1 beta2 epsilon momentum dampening"),
    *_each(c.c_int, "nesterov amsgrad"), ("warm_up_steps", c.c_int64), ("muon", c.c_int),
    *_each(c.c_int64, "refresh_steps longest_side"))
place = _struct("place", ("buffer", c.c_void_p), ("offset", c.c_int64))
optimizer_tensor = _struct(
    "optimizer_tensor", *_each(c.c_int64, "rows columns"), ("group", c.c_int),
    *_each(place, "parameters gradients copy average"))
optimizer_desc = _struct(
    "optimizer_desc", ("tensors", c.POINTER(optimizer_tensor)), ("n_tensors", c.c_int64),
    ("groups", c.POINTER(optimizer_group)),
    *_each(c.c_int, "n_groups parameters gradients copy clip"), ("max_norm", c.c_double),
    *_each(c.c_int, "check_finite ema"), ("ema_decay", c.c_double))
progress = _struct("progress", *_each(c.c_int64, "steps skipped"), ("norm", c.c_double))

model_options = _struct("model_options", *_each(c.c_int, "dtype knots"), ("skin", c.c_double),
                        ("workspace_bytes", c.c_uint64), ("atomics", c.c_int))
model_info = _struct(
    "model_info", ("architecture", c.c_char_p), ("r_max", c.c_double),
    *_each(c.c_int, "n_layers l_max n_species"), ("symbols", c.POINTER(c.c_char_p)),
    ("atomic_numbers", c.POINTER(c.c_int)), *_each(c.c_int64, "parameters weights"),
    *_each(c.c_uint64, "bytes_per_edge bytes_per_atom"), ("exchanges", c.c_int),
    ("exchange_columns", c.c_int64), *_each(c.c_double, "table_error table_slope_error"),
    ("knots", c.c_int), ("table_force_error", c.c_double))
model_atoms = _struct("model_atoms", ("n", c.c_int64),
                      *_each(c.c_void_p, "species positions cell"), ("periodic", c.c_int * 3))
model_results = _struct("model_results", *_each(c.c_void_p, "energy e_atom forces stress"))
model_neighbours = _struct("model_neighbours", *_each(c.c_int64, "n_edges rebuilds"))

STRUCTS = [kind for kind in list(globals().values())
           if isinstance(kind, type) and issubclass(kind, c.Structure) and kind is not c.Structure]
ENUMERATORS = {name: value for name, value in list(globals().items())
               if name.isupper() and isinstance(value, int)}
