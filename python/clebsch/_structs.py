"""Enumerators and structs of clebsch.h and model.h, as ctypes has them.  Written by ci/bindings.py.

Names are those of the headers without `CLB_` and `clb_`."""
import ctypes as c

VERSION = "0.3.0"

OK = 0
ERROR_ARGUMENT = 1
ERROR_MEMORY = 2
ERROR_DEVICE = 3
ERROR_DRIVER = 4
ERROR_COMPILE = 5
ERROR_UNSUPPORTED = 6
ERROR_INTERNAL = 7
F32 = 0
F64 = 1
F16 = 2
BF16 = 3
FORWARD = 0
BACKWARD = 1
DOUBLE_BACKWARD = 2
TRIPLE_BACKWARD = 3
POINTER = 0
CL_MEM = 1
SAME_ROW = -1
DENSE = 0
WIDE_ACCESSES = 1
REGISTER_SUMS = 2
SPLIT_ROWS = 4
COMPONENT = 0
NORM = 1
INTEGRAL = 2
MUL_IR = 0
IR_MUL = 1
MERGED = 2
BY_CHANNEL = 3
UVW = 0
UVU = 1
UVV = 2
UUW = 3
UUU = 4
UVUV = 5
UVU_HALF = 6
UVW_HALF = 7
IRREP_COMPONENT = 0
IRREP_NORM = 1
IRREP_NONE = 2
PATH_ELEMENT = 0
PATH_PATH = 1
PATH_NONE = 2
OPERAND_X = 1
OPERAND_Y = 2
OPERAND_W = 4
OPERAND_Z = 8
MAX_INSTRUCTIONS = 512
IRREPS_BYTES = 8192
SORTED = 0
AS_FOUND = 1
I32 = 0
I64 = 1
BY_RECEIVER = 0
BY_SENDER = 1
SGD = 0
ADAM = 1
ADAMW = 2
SCHEDULE_FREE_ADAMW = 3
MUON = 4
SOAP = 5
MUON_OPTAX = 0
MUON_NEQUIX = 1
MUON_NEQUIP = 2
MUON_TORCH = 3
MUON_TORCH_RMS = 4
CLIP_NONE = 0
CLIP_TORCH = 1
CLIP_OPTAX = 2
EMA_NONE = 0
EMA_WARM_UP = 1
EMA_WARM_UP_FROM_0 = 2
EMA_CONSTANT = 3
NORMS = 256
RMS_PLAIN = 0
RMS_NEQUIX = 1
RMS_DEGREE = 2
RMS_DEGREE_NORM = 3
RMS_BALANCED = 4
RMS_TERMS = 5
NO_KNOTS = -1
AUTO_SKIN = -1
LOSS_MSE = 0
LOSS_MAE = 1
LOSS_HUBER = 2


class device_info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("backend", c.c_char_p), ("vendor", c.c_char_p),
                ("description", c.c_char_p), ("driver", c.c_char_p), ("runs", c.c_int),
                ("memory_bytes", c.c_uint64), ("f64", c.c_int), ("sub_group_sizes", c.c_int * 8),
                ("held_bytes", c.c_uint64), ("most_bytes", c.c_uint64)]


class native(c.Structure):
    _fields_ = [("driver", c.c_void_p), ("context", c.c_void_p), ("device", c.c_void_p),
                ("queue", c.c_void_p)]


class profile_entry(c.Structure):
    _fields_ = [("kernel", c.c_char_p), ("launches", c.c_int64), ("seconds", c.c_double)]


class ipc_handle(c.Structure):
    _fields_ = [("bytes", c.c_ubyte * 128)]


class rows(c.Structure):
    _fields_ = [("buffer", c.c_void_p), ("offset", c.c_int64), ("stride", c.c_int64),
                ("index", c.c_void_p)]


class counts(c.Structure):
    _fields_ = [("loads", c.c_double), ("stores", c.c_double), ("bytes_loaded", c.c_double),
                ("bytes_stored", c.c_double), ("flops", c.c_double)]


class report(c.Structure):
    _fields_ = [("registers", c.c_int), ("spill_bytes", c.c_int), ("loads", c.c_int),
                ("stores", c.c_int), ("fmas", c.c_int), ("subgroups", c.c_int),
                ("local_bytes", c.c_int), ("instructions", c.c_int), ("accesses", c.c_int)]


class tuning(c.Structure):
    _fields_ = [("schedule", c.c_char_p), ("estimate", c.c_char_p), ("measured", c.c_int),
                ("seconds", c.c_double), ("estimate_seconds", c.c_double)]


class spherical_harmonics_desc(c.Structure):
    _fields_ = [("degrees", c.POINTER(c.c_int)), ("n_degrees", c.c_int), ("normalization", c.c_int),
                ("normalize", c.c_int), ("storage", c.c_int), ("arithmetic", c.c_int),
                ("accumulate", c.c_int), ("passes", c.c_uint)]


class instruction(c.Structure):
    _fields_ = [("in1", c.c_int), ("in2", c.c_int), ("out", c.c_int), ("mode", c.c_int),
                ("has_weight", c.c_int), ("path_weight", c.c_double)]


class tensor_product_desc(c.Structure):
    _fields_ = [("irreps_x", c.c_char_p), ("irreps_y", c.c_char_p), ("irreps_z", c.c_char_p),
                ("instructions", c.POINTER(instruction)), ("n_instructions", c.c_int),
                ("irrep_normalization", c.c_int), ("path_normalization", c.c_int),
                ("layout_x", c.c_int), ("layout_y", c.c_int), ("layout_z", c.c_int),
                ("shared_weights", c.c_int), ("indexed", c.c_uint), ("gradients", c.c_uint),
                ("incoming", c.c_uint), ("storage", c.c_int), ("arithmetic", c.c_int),
                ("accumulate", c.c_int), ("passes", c.c_uint)]


class triple_operands(c.Structure):
    _fields_ = [("x", rows), ("y", rows), ("w", rows), ("g", rows), ("a", rows), ("b", rows),
                ("c", rows), ("p", rows), ("q", rows), ("r", rows), ("s", rows), ("e_x", rows),
                ("e_y", rows), ("e_w", rows), ("e_g", rows), ("e_a", rows), ("e_b", rows),
                ("e_c", rows)]


class tensor_product_sizes(c.Structure):
    _fields_ = [("x", c.c_int64), ("y", c.c_int64), ("z", c.c_int64), ("w", c.c_int64)]


class weight_slice(c.Structure):
    _fields_ = [("first", c.c_int64), ("count", c.c_int64), ("shape", c.c_int64 * 3)]


class instructions(c.Structure):
    _fields_ = [("irreps_x", c.c_char * 8192), ("irreps_y", c.c_char * 8192),
                ("irreps_z", c.c_char * 8192), ("instructions", instruction * 512),
                ("n_instructions", c.c_int)]


class symmetric_contraction_desc(c.Structure):
    _fields_ = [("ell", c.c_int), ("correlation", c.c_int), ("degrees", c.POINTER(c.c_int)),
                ("n_degrees", c.c_int), ("channels", c.c_int), ("n_species", c.c_int),
                ("layout_x", c.c_int), ("layout_z", c.c_int), ("gradients", c.c_uint),
                ("incoming", c.c_uint), ("storage", c.c_int), ("arithmetic", c.c_int),
                ("accumulate", c.c_int), ("passes", c.c_uint)]


class symmetric_paths(c.Structure):
    _fields_ = [("first", c.c_int), ("count", c.c_int), ("all", c.c_int)]


class index_list(c.Structure):
    _fields_ = [("host", c.c_void_p), ("buffer", c.c_void_p), ("offset", c.c_int64)]


class sorted_edges(c.Structure):
    _fields_ = [("n_rows", c.c_int64), ("n_edges", c.c_int64), ("row_start", c.c_void_p),
                ("edge", c.c_void_p), ("other", c.c_void_p)]


class convolution_desc(c.Structure):
    _fields_ = [("product", tensor_product_desc), ("scale", c.c_double), ("atomics", c.c_int),
                ("knots", c.c_int), ("first_knot", c.c_double), ("last_knot", c.c_double),
                ("break_at", c.c_double), ("vectors", c.c_int), ("normalization", c.c_int)]


class optimizer_group(c.Structure):
    _fields_ = [("rule", c.c_int), ("lr", c.c_double), ("weight_decay", c.c_double),
                ("beta1", c.c_double), ("beta2", c.c_double), ("epsilon", c.c_double),
                ("momentum", c.c_double), ("dampening", c.c_double), ("nesterov", c.c_int),
                ("amsgrad", c.c_int), ("warm_up_steps", c.c_int64), ("muon", c.c_int),
                ("refresh_steps", c.c_int64), ("longest_side", c.c_int64)]


class place(c.Structure):
    _fields_ = [("buffer", c.c_void_p), ("offset", c.c_int64)]


class optimizer_tensor(c.Structure):
    _fields_ = [("rows", c.c_int64), ("columns", c.c_int64), ("group", c.c_int),
                ("parameters", place), ("gradients", place), ("copy", place), ("average", place)]


class optimizer_desc(c.Structure):
    _fields_ = [("tensors", c.POINTER(optimizer_tensor)), ("n_tensors", c.c_int64),
                ("groups", c.POINTER(optimizer_group)), ("n_groups", c.c_int),
                ("parameters", c.c_int), ("gradients", c.c_int), ("copy", c.c_int),
                ("clip", c.c_int), ("max_norm", c.c_double), ("check_finite", c.c_int),
                ("ema", c.c_int), ("ema_decay", c.c_double)]


class progress(c.Structure):
    _fields_ = [("steps", c.c_int64), ("skipped", c.c_int64), ("norm", c.c_double)]


class rms_norm_desc(c.Structure):
    _fields_ = [("irreps", c.c_char_p), ("layout", c.c_int), ("variant", c.c_int),
                ("epsilon", c.c_double), ("weight_offset", c.c_double), ("centre", c.c_int),
                ("bias", c.c_int), ("gradients", c.c_uint), ("incoming", c.c_uint),
                ("storage", c.c_int), ("arithmetic", c.c_int), ("accumulate", c.c_int),
                ("passes", c.c_uint), ("factors", c.c_void_p), ("n_factors", c.c_int)]


class rms_norm_sizes(c.Structure):
    _fields_ = [("x", c.c_int64), ("w", c.c_int64)]


class gate_desc(c.Structure):
    _fields_ = [("irreps_scalars", c.c_char_p), ("irreps_gates", c.c_char_p),
                ("irreps_gated", c.c_char_p), ("act_scalars", c.c_char_p),
                ("act_gates", c.c_char_p), ("irreps_x", c.c_char_p), ("layout", c.c_int),
                ("normalize", c.c_int), ("storage", c.c_int), ("arithmetic", c.c_int),
                ("accumulate", c.c_int), ("passes", c.c_uint)]


class gate_sizes(c.Structure):
    _fields_ = [("x", c.c_int64), ("y", c.c_int64), ("irreps_x", c.c_char * 8192),
                ("irreps_y", c.c_char * 8192)]


class linear_instruction(c.Structure):
    _fields_ = [("in", c.c_int), ("out", c.c_int)]


class linear_desc(c.Structure):
    _fields_ = [("irreps_in", c.c_char_p), ("irreps_out", c.c_char_p),
                ("instructions", c.POINTER(linear_instruction)), ("n_instructions", c.c_int),
                ("bias", c.c_int), ("biases", c.POINTER(c.c_int)), ("n_biases", c.c_int),
                ("path_normalization", c.c_int), ("layout_in", c.c_int), ("layout_out", c.c_int),
                ("weights_per_row", c.c_int), ("n_species", c.c_int), ("gradients", c.c_uint),
                ("incoming", c.c_uint), ("storage", c.c_int), ("arithmetic", c.c_int),
                ("accumulate", c.c_int), ("passes", c.c_uint)]


class linear_sizes(c.Structure):
    _fields_ = [("x", c.c_int64), ("z", c.c_int64), ("w", c.c_int64)]


class norm_activation_desc(c.Structure):
    _fields_ = [("irreps", c.c_char_p), ("act", c.c_char_p), ("layout", c.c_int),
                ("normalize", c.c_int), ("epsilon", c.c_double), ("bias", c.c_int),
                ("storage", c.c_int), ("arithmetic", c.c_int), ("accumulate", c.c_int),
                ("passes", c.c_uint)]


class model_options(c.Structure):
    _fields_ = [("dtype", c.c_int), ("knots", c.c_int), ("skin", c.c_double),
                ("workspace_bytes", c.c_uint64), ("atomics", c.c_int), ("block_atoms", c.c_int64),
                ("trains", c.c_int), ("d3", c.c_char_p), ("d3_cutoff", c.c_double),
                ("d3_count_cutoff", c.c_double)]


class model_info(c.Structure):
    _fields_ = [("architecture", c.c_char_p), ("r_max", c.c_double), ("n_layers", c.c_int),
                ("l_max", c.c_int), ("n_species", c.c_int), ("symbols", c.POINTER(c.c_char_p)),
                ("atomic_numbers", c.POINTER(c.c_int)), ("parameters", c.c_int64),
                ("weights", c.c_int64), ("bytes_per_edge", c.c_uint64),
                ("bytes_per_atom", c.c_uint64), ("exchanges", c.c_int),
                ("exchange_columns", c.c_int64), ("table_error", c.c_double),
                ("table_slope_error", c.c_double), ("knots", c.c_int),
                ("table_force_error", c.c_double), ("block_bytes_per_edge", c.c_uint64),
                ("block_bytes_per_atom", c.c_uint64), ("charges", c.c_int * 2),
                ("spins", c.c_int * 2), ("parity", c.c_int)]


class model_atoms(c.Structure):
    _fields_ = [("n", c.c_int64), ("species", c.c_void_p), ("positions", c.c_void_p),
                ("cell", c.c_void_p), ("periodic", c.c_int * 3), ("charge", c.c_int),
                ("spin", c.c_int)]


class model_results(c.Structure):
    _fields_ = [("energy", c.c_void_p), ("e_atom", c.c_void_p), ("forces", c.c_void_p),
                ("stress", c.c_void_p), ("v_atom", c.c_void_p)]


class model_neighbours(c.Structure):
    _fields_ = [("n_edges", c.c_int64), ("rebuilds", c.c_int64)]


class model_peer(c.Structure):
    _fields_ = [("rows", c.c_void_p), ("n_send", c.c_int64), ("n_receive", c.c_int64),
                ("send_at", c.c_int64), ("receive_at", c.c_int64)]


class model_exchange(c.Structure):
    _fields_ = [("n_send", c.c_int64), ("n_receive", c.c_int64), ("send", c.c_void_p),
                ("receive", c.c_void_p), ("move", c.c_void_p), ("user", c.c_void_p),
                ("device_rows", c.c_int), ("n_peers", c.c_int64), ("peers", c.POINTER(model_peer)),
                ("out", c.c_void_p), ("gather", c.c_void_p), ("n_all", c.c_int64),
                ("first", c.c_int64)]


class model_edges(c.Structure):
    _fields_ = [("n_local", c.c_int64), ("n_total", c.c_int64), ("n_edges", c.c_int64),
                ("same_graph", c.c_int), ("species", c.c_void_p), ("senders", index_list),
                ("receivers", index_list), ("vectors", c.c_void_p), ("vectors_buffer", c.c_void_p),
                ("positions", c.c_void_p), ("positions_buffer", c.c_void_p), ("images", c.c_void_p),
                ("counted", c.c_void_p), ("exchange", c.POINTER(model_exchange)),
                ("search", c.c_int), ("cell", c.c_void_p), ("periodic", c.c_int * 3),
                ("charge", c.c_int), ("spin", c.c_int)]


class model_edge_results(c.Structure):
    _fields_ = [("energy", c.c_void_p), ("e_atom", c.c_void_p), ("d_vectors", c.c_void_p),
                ("d_vectors_buffer", c.c_void_p), ("forces", c.c_void_p),
                ("forces_buffer", c.c_void_p), ("v_atom", c.c_void_p), ("virial", c.c_void_p),
                ("seconds", c.c_void_p)]


class dynamics_move(c.Structure):
    _fields_ = [("kick", c.c_double), ("grow", c.c_double), ("reach", c.c_double),
                ("keep", c.c_double), ("width", c.c_double), ("seed", c.c_uint64),
                ("step", c.c_int64), ("grow_again", c.c_double), ("reach_again", c.c_double)]


class dynamics_view(c.Structure):
    _fields_ = [("energy", c.c_double), ("stress", c.c_double * 9), ("kinetic", c.c_double),
                ("heat", c.c_double), ("speed", c.c_double), ("force", c.c_double),
                ("fastest", c.c_int64), ("strongest", c.c_int64)]


class labels(c.Structure):
    _fields_ = [("energy", c.c_void_p), ("forces", c.c_void_p), ("stress", c.c_void_p),
                ("weight", c.c_void_p)]


class loss(c.Structure):
    _fields_ = [("function", c.c_int), ("delta", c.c_double), ("energy", c.c_double),
                ("forces", c.c_double), ("stress", c.c_double), ("force_norm", c.c_int),
                ("stress_unit", c.c_double)]


class gradient_results(c.Structure):
    _fields_ = [("loss", c.c_void_p), ("terms", c.c_void_p), ("gradient", c.c_void_p),
                ("energies", c.c_void_p), ("forces", c.c_void_p), ("stresses", c.c_void_p),
                ("errors", c.c_void_p), ("gradient_buffer", c.c_void_p), ("later", c.c_int)]


class tensor_info(c.Structure):
    _fields_ = [("name", c.c_char_p), ("rank", c.c_int), ("shape", c.c_int64 * 8),
                ("first", c.c_int64), ("count", c.c_int64)]
