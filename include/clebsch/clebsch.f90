! clebsch.f90 - the C API of clebsch.h and model.h for Fortran; compile it with your program.  Names, arguments, units and errors
! are those of the headers.  Arrays are in C order: row r of x[n][3] is x(:, r) of a Fortran array x(3, n).
module clebsch
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int), parameter :: CLB_OK = 0, CLB_ERROR_ARGUMENT = 1, CLB_ERROR_MEMORY = 2, CLB_ERROR_DEVICE = 3, &
       CLB_ERROR_DRIVER = 4, CLB_ERROR_COMPILE = 5, CLB_ERROR_UNSUPPORTED = 6, CLB_ERROR_INTERNAL = 7
  integer(c_int), parameter :: CLB_F32 = 0, CLB_F64 = 1, CLB_F16 = 2, CLB_BF16 = 3
  integer(c_int), parameter :: CLB_FORWARD = 0, CLB_BACKWARD = 1, CLB_DOUBLE_BACKWARD = 2, CLB_TRIPLE_BACKWARD = 3
  integer(c_int), parameter :: CLB_PASS_FORWARD = 1, CLB_PASS_BACKWARD = 2, CLB_PASS_DOUBLE_BACKWARD = 4, &
       CLB_PASS_TRIPLE_BACKWARD = 8, CLB_MEASURE = 1073741824 ! add them up for `passes`
  integer(c_int), parameter :: CLB_WIDE_ACCESSES = 1, CLB_REGISTER_SUMS = 2, CLB_SPLIT_ROWS = 4 ! for clb_context_disable
  integer(c_int), parameter :: CLB_POINTER = 0, CLB_CL_MEM = 1
  integer(c_int), parameter :: CLB_COMPONENT = 0, CLB_NORM = 1, CLB_INTEGRAL = 2
  integer(c_int), parameter :: CLB_MUL_IR = 0, CLB_IR_MUL = 1, CLB_MERGED = 2, CLB_BY_CHANNEL = 3
  integer(c_int), parameter :: CLB_UVW = 0, CLB_UVU = 1, CLB_UVV = 2, CLB_UUW = 3, CLB_UUU = 4, CLB_UVUV = 5, CLB_UVU_HALF = 6, &
       CLB_UVW_HALF = 7
  integer(c_int), parameter :: CLB_IRREP_COMPONENT = 0, CLB_IRREP_NORM = 1, CLB_IRREP_NONE = 2
  integer(c_int), parameter :: CLB_PATH_ELEMENT = 0, CLB_PATH_PATH = 1, CLB_PATH_NONE = 2
  integer(c_int), parameter :: CLB_OPERAND_X = 1, CLB_OPERAND_Y = 2, CLB_OPERAND_W = 4, CLB_OPERAND_Z = 8
  integer(c_int), parameter :: CLB_RMS_PLAIN = 0, CLB_RMS_NEQUIX = 1, CLB_RMS_DEGREE = 2, CLB_RMS_DEGREE_NORM = 3, &
       CLB_RMS_BALANCED = 4
  integer(c_int), parameter :: CLB_SORTED = 0, CLB_AS_FOUND = 1
  integer(c_int), parameter :: CLB_MAX_INSTRUCTIONS = 512, CLB_IRREPS_BYTES = 8192
  integer(c_int), parameter :: CLB_I32 = 0, CLB_I64 = 1
  integer(c_int), parameter :: CLB_BY_RECEIVER = 0, CLB_BY_SENDER = 1
  integer(c_int), parameter :: CLB_SGD = 0, CLB_ADAM = 1, CLB_ADAMW = 2, CLB_SCHEDULE_FREE_ADAMW = 3, CLB_MUON = 4, CLB_SOAP = 5
  integer(c_int), parameter :: CLB_MUON_OPTAX = 0, CLB_MUON_NEQUIX = 1, CLB_MUON_NEQUIP = 2, CLB_MUON_TORCH = 3, &
       CLB_MUON_TORCH_RMS = 4
  integer(c_int), parameter :: CLB_CLIP_NONE = 0, CLB_CLIP_TORCH = 1, CLB_CLIP_OPTAX = 2
  integer(c_int), parameter :: CLB_EMA_NONE = 0, CLB_EMA_WARM_UP = 1, CLB_EMA_WARM_UP_FROM_0 = 2, CLB_EMA_CONSTANT = 3
  integer(c_int), parameter :: CLB_NO_KNOTS = -1
  integer(c_int64_t), parameter :: CLB_SAME_ROW = -1_c_int64_t, CLB_DENSE = 0_c_int64_t

  type, bind(c) :: clb_native
    type(c_ptr) :: driver = c_null_ptr, context = c_null_ptr, device = c_null_ptr, queue = c_null_ptr
  end type

  type, bind(c) :: clb_rows
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0_c_int64_t, stride = CLB_DENSE
    type(c_ptr) :: index = c_null_ptr
  end type

  type, bind(c) :: clb_counts
    real(c_double) :: loads, stores, bytes_loaded, bytes_stored, flops
  end type

  type, bind(c) :: clb_report
    integer(c_int) :: registers, spill_bytes, loads, stores, fmas, subgroups, local_bytes, instructions, accesses
  end type

  type, bind(c) :: clb_tuning
    type(c_ptr) :: schedule, estimate
    integer(c_int) :: measured
    real(c_double) :: seconds, estimate_seconds
  end type

  type, bind(c) :: clb_spherical_harmonics_desc
    type(c_ptr) :: degrees = c_null_ptr ! c_loc of a c_int array
    integer(c_int) :: n_degrees = 0, normalization = CLB_COMPONENT, normalize = 0, storage = CLB_F32, arithmetic = CLB_F32, &
         accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  ! Terms are counted from 0, as in C.
  type, bind(c) :: clb_instruction
    integer(c_int) :: in1 = 0, in2 = 0, out = 0, mode = CLB_UVU, has_weight = 1
    real(c_double) :: path_weight = 1
  end type

  type, bind(c) :: clb_tensor_product_desc
    type(c_ptr) :: irreps_x = c_null_ptr, irreps_y = c_null_ptr, irreps_z = c_null_ptr ! c_loc of texts that end with c_null_char
    type(c_ptr) :: instructions = c_null_ptr ! c_loc of a clb_instruction array
    integer(c_int) :: n_instructions = 0, irrep_normalization = CLB_IRREP_COMPONENT, path_normalization = CLB_PATH_ELEMENT, &
         layout_x = CLB_MUL_IR, layout_y = CLB_MUL_IR, layout_z = CLB_MUL_IR, shared_weights = 0, indexed = 0, gradients = 0, &
         incoming = 0, storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_triple_operands
    type(clb_rows) :: x, y, w, g, a, b, c, p, q, r, s
    type(clb_rows) :: e_x, e_y, e_w, e_g, e_a, e_b, e_c
  end type

  type, bind(c) :: clb_tensor_product_sizes
    integer(c_int64_t) :: x, y, z, w
  end type

  type, bind(c) :: clb_symmetric_contraction_desc
    integer(c_int) :: ell = 0, correlation = 1
    type(c_ptr) :: degrees = c_null_ptr ! c_loc of a c_int array
    integer(c_int) :: n_degrees = 0, channels = 0, n_species = 1, layout_x = CLB_MUL_IR, layout_z = CLB_MUL_IR, gradients = 0, &
         incoming = 0, storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  ! Paths are counted from 0.
  type, bind(c) :: clb_symmetric_paths
    integer(c_int) :: first, count, all
  end type

  type, bind(c) :: clb_rms_norm_desc
    type(c_ptr) :: irreps = c_null_ptr ! c_loc of a text that ends with c_null_char
    integer(c_int) :: layout = CLB_MUL_IR, variant = CLB_RMS_PLAIN
    real(c_double) :: epsilon = 0, weight_offset = 0
    integer(c_int) :: centre = 0, bias = 0, gradients = 0, incoming = 0, storage = CLB_F32, arithmetic = CLB_F32, &
         accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_rms_norm_sizes
    integer(c_int64_t) :: x, w
  end type

  type, bind(c) :: clb_weight_slice
    integer(c_int64_t) :: first, count, shape(3) ! first is counted from 0
  end type

  ! What the constructors find.  The texts end with c_null_char: with `target`, ready for c_loc.
  type, bind(c) :: clb_instructions
    character(kind=c_char) :: irreps_x(CLB_IRREPS_BYTES), irreps_y(CLB_IRREPS_BYTES), irreps_z(CLB_IRREPS_BYTES)
    type(clb_instruction) :: instructions(CLB_MAX_INSTRUCTIONS)
    integer(c_int) :: n_instructions = 0
  end type

  ! Nodes are counted from 0, as in C.
  type, bind(c) :: clb_index_list
    type(c_ptr) :: host = c_null_ptr ! c_loc of a c_int32_t or c_int64_t array
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0_c_int64_t
  end type

  type, bind(c) :: clb_sorted_edges
    integer(c_int64_t) :: n_rows, n_edges
    type(c_ptr) :: row_start, edge, other
  end type

  type, bind(c) :: clb_convolution_desc
    type(clb_tensor_product_desc) :: product
    real(c_double) :: scale = 0 ! 0: 1
    integer(c_int) :: atomics = 0, knots = 0
    real(c_double) :: first_knot = 0, last_knot = 0, break_at = 0
    integer(c_int) :: vectors = 0, normalization = CLB_COMPONENT
  end type

  type, bind(c) :: clb_optimizer_group
    integer(c_int) :: rule = CLB_ADAM
    real(c_double) :: lr = 0, weight_decay = 0, beta1 = 0, beta2 = 0, epsilon = 0, momentum = 0, dampening = 0
    integer(c_int) :: nesterov = 0, amsgrad = 0
    integer(c_int64_t) :: warm_up_steps = 0_c_int64_t
    integer(c_int) :: muon = CLB_MUON_OPTAX
    integer(c_int64_t) :: refresh_steps = 0_c_int64_t, longest_side = 0_c_int64_t
  end type

  type, bind(c) :: clb_place
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0_c_int64_t ! counted from 0
  end type

  ! Groups are counted from 0.
  type, bind(c) :: clb_optimizer_tensor
    integer(c_int64_t) :: rows = 0_c_int64_t, columns = 0_c_int64_t
    integer(c_int) :: group = 0
    type(clb_place) :: parameters, gradients, copy, average
  end type

  type, bind(c) :: clb_optimizer_desc
    type(c_ptr) :: tensors = c_null_ptr ! c_loc of a clb_optimizer_tensor array
    integer(c_int64_t) :: n_tensors = 0_c_int64_t
    type(c_ptr) :: groups = c_null_ptr ! c_loc of a clb_optimizer_group array
    integer(c_int) :: n_groups = 0, parameters = CLB_F32, gradients = CLB_F32, copy = CLB_F32, clip = CLB_CLIP_NONE
    real(c_double) :: max_norm = 0
    integer(c_int) :: check_finite = 0, ema = CLB_EMA_NONE
    real(c_double) :: ema_decay = 0
  end type

  type, bind(c) :: clb_progress
    integer(c_int64_t) :: steps, skipped
    real(c_double) :: norm
  end type

  ! ---- model.h ----

  type, bind(c) :: clb_model_options
    integer(c_int) :: dtype = CLB_F32, knots = 0
    real(c_double) :: skin = 0
    integer(c_int64_t) :: workspace_bytes = 0_c_int64_t
    integer(c_int) :: atomics = 0
  end type

  type, bind(c) :: clb_model_info
    type(c_ptr) :: architecture ! a text that ends with c_null_char
    real(c_double) :: r_max
    integer(c_int) :: n_layers, l_max, n_species
    type(c_ptr) :: symbols ! n_species texts
    type(c_ptr) :: atomic_numbers ! n_species c_int numbers
    integer(c_int64_t) :: parameters, weights, bytes_per_edge, bytes_per_atom
    integer(c_int) :: exchanges
    integer(c_int64_t) :: exchange_columns
    real(c_double) :: table_error, table_slope_error
    integer(c_int) :: knots
    real(c_double) :: table_force_error
  end type

  ! Pointers are c_loc of arrays: species c_int32_t, periodic directions 1 or 0, all others c_double.
  type, bind(c) :: clb_model_atoms
    integer(c_int64_t) :: n = 0_c_int64_t
    type(c_ptr) :: species = c_null_ptr, positions = c_null_ptr, cell = c_null_ptr
    integer(c_int) :: periodic(3) = 0
  end type

  type, bind(c) :: clb_model_results
    type(c_ptr) :: energy = c_null_ptr, e_atom = c_null_ptr, forces = c_null_ptr, stress = c_null_ptr
  end type

  type, bind(c) :: clb_model_neighbours
    integer(c_int64_t) :: n_edges, rebuilds
  end type

  ! move: c_funloc of a clb_model_move.  send and receive: c_loc of c_int32_t arrays.
  type, bind(c) :: clb_model_exchange
    integer(c_int64_t) :: n_send = 0_c_int64_t, n_receive = 0_c_int64_t
    type(c_ptr) :: send = c_null_ptr, receive = c_null_ptr
    type(c_funptr) :: move = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    integer(c_int) :: device_rows = 0
  end type

  type, bind(c) :: clb_model_edges
    integer(c_int64_t) :: n_local = 0_c_int64_t, n_total = 0_c_int64_t, n_edges = 0_c_int64_t
    integer(c_int) :: same_graph = 0
    type(c_ptr) :: species = c_null_ptr
    type(clb_index_list) :: senders, receivers
    type(c_ptr) :: vectors = c_null_ptr, vectors_buffer = c_null_ptr, positions = c_null_ptr, positions_buffer = c_null_ptr
    type(c_ptr) :: images = c_null_ptr ! of c_int32_t
    type(c_ptr) :: counted = c_null_ptr ! of c_signed_char
    type(c_ptr) :: exchange = c_null_ptr ! c_loc of a clb_model_exchange
  end type

  type, bind(c) :: clb_model_edge_results
    type(c_ptr) :: energy = c_null_ptr, e_atom = c_null_ptr, d_vectors = c_null_ptr, d_vectors_buffer = c_null_ptr, &
         forces = c_null_ptr, forces_buffer = c_null_ptr, v_atom = c_null_ptr, virial = c_null_ptr
  end type

  abstract interface
    function clb_model_move(user, backward, columns, type, from, to) bind(c) result(status)
      import; type(c_ptr), value :: user, from, to; integer(c_int), value :: backward, type
      integer(c_int64_t), value :: columns
      integer(c_int) :: status
    end function
  end interface

  interface
    function clb_context_create_c(device, ctx) bind(c, name='clb_context_create') result(status)
      import; character(kind=c_char), intent(in) :: device(*); type(c_ptr), intent(out) :: ctx
      integer(c_int) :: status
    end function
    function clb_context_adopt_c(device, native, ctx) bind(c, name='clb_context_adopt') result(status)
      import; character(kind=c_char), intent(in) :: device(*); type(clb_native), intent(in) :: native
      type(c_ptr), intent(out) :: ctx
      integer(c_int) :: status
    end function
    subroutine clb_context_destroy(ctx) bind(c)
      import; type(c_ptr), intent(inout) :: ctx
    end subroutine
    function clb_error_c(ctx) bind(c, name='clb_error') result(text)
      import; type(c_ptr), value :: ctx; type(c_ptr) :: text
    end function
    function clb_context_note_c(ctx) bind(c, name='clb_context_note') result(text)
      import; type(c_ptr), value :: ctx; type(c_ptr) :: text
    end function
    function clb_wait(ctx) bind(c) result(status)
      import; type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_measure_copy(ctx, bytes, seconds) bind(c) result(status)
      import; type(c_ptr), value :: ctx; integer(c_int64_t), value :: bytes; real(c_double), intent(out) :: seconds
      integer(c_int) :: status
    end function
    function clb_measure_peaks(ctx, copy_bytes_per_second, f32_per_second, f64_per_second) bind(c) result(status)
      import; type(c_ptr), value :: ctx; real(c_double), intent(out) :: copy_bytes_per_second, f32_per_second, f64_per_second
      integer(c_int) :: status
    end function
    function clb_profile_begin(ctx) bind(c) result(status)
      import; type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_profile_end(ctx, each, user) bind(c) result(status) ! each: c_funloc of a subroutine of a clb_profile_entry and of user
      import; type(c_ptr), value :: ctx; type(c_funptr), value :: each; type(c_ptr), value :: user
      integer(c_int) :: status
    end function
    function clb_record_begin(ctx) bind(c) result(status)
      import; type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_record_end(ctx, recording) bind(c) result(status)
      import; type(c_ptr), value :: ctx; type(c_ptr), intent(out) :: recording
      integer(c_int) :: status
    end function
    function clb_replay(recording) bind(c) result(status)
      import; type(c_ptr), value :: recording
      integer(c_int) :: status
    end function
    function clb_recording_replace(recording, old_buffer, new_buffer) bind(c) result(status)
      import; type(c_ptr), value :: recording, old_buffer, new_buffer
      integer(c_int) :: status
    end function
    subroutine clb_recording_destroy(recording) bind(c)
      import; type(c_ptr), intent(inout) :: recording
    end subroutine
    function clb_buffer_create(ctx, bytes, buffer) bind(c) result(status)
      import; type(c_ptr), value :: ctx; integer(c_int64_t), value :: bytes; type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    function clb_buffer_native(buffer, kind, memory) bind(c) result(status)
      import; type(c_ptr), value :: buffer; integer(c_int), intent(out) :: kind
      type(c_ptr), intent(out) :: memory
      integer(c_int) :: status
    end function
    function clb_buffer_wrap(ctx, kind, memory, bytes, buffer) bind(c) result(status)
      import; type(c_ptr), value :: ctx; integer(c_int), value :: kind; type(c_ptr), value :: memory
      integer(c_int64_t), value :: bytes; type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    subroutine clb_buffer_destroy(buffer) bind(c)
      import; type(c_ptr), intent(inout) :: buffer
    end subroutine
    function clb_buffer_write(buffer, offset, from, bytes) bind(c) result(status)
      import; type(c_ptr), value :: buffer; integer(c_int64_t), value :: offset, bytes; type(c_ptr), value :: from
      integer(c_int) :: status
    end function
    function clb_buffer_read(buffer, offset, to, bytes) bind(c) result(status)
      import; type(c_ptr), value :: buffer; integer(c_int64_t), value :: offset, bytes; type(c_ptr), value :: to
      integer(c_int) :: status
    end function
    subroutine clb_op_destroy(op) bind(c)
      import; type(c_ptr), intent(inout) :: op
    end subroutine
    function clb_op_counts_c(op, pass, counts, counts_size) bind(c, name='clb_op_counts_sized') result(status)
      import; type(c_ptr), value :: op; integer(c_int), value :: pass; type(clb_counts), intent(out) :: counts
      integer(c_size_t), value :: counts_size
      integer(c_int) :: status
    end function
    function clb_op_report_c(op, pass, report, report_size) bind(c, name='clb_op_report_sized') result(status)
      import; type(c_ptr), value :: op; integer(c_int), value :: pass; type(clb_report), intent(out) :: report
      integer(c_size_t), value :: report_size
      integer(c_int) :: status
    end function
    function clb_op_tuning_c(op, pass, tuning, tuning_size) bind(c, name='clb_op_tuning_sized') result(status)
      import; type(c_ptr), value :: op; integer(c_int), value :: pass; type(clb_tuning), intent(out) :: tuning
      integer(c_size_t), value :: tuning_size
      integer(c_int) :: status
    end function
    function clb_wisdom_export_c(ctx, path) bind(c, name='clb_wisdom_export') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    function clb_wisdom_import_c(ctx, path) bind(c, name='clb_wisdom_import') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    function clb_wisdom_forget(ctx) bind(c) result(status)
      import; type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_context_disable(ctx, optimisations) bind(c) result(status)
      import; type(c_ptr), value :: ctx; integer(c_int), value :: optimisations
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_create_c(ctx, desc, op, desc_size) &
         bind(c, name='clb_spherical_harmonics_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_spherical_harmonics_desc), intent(in) :: desc; type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_forward(op, n, x, y) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, y
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_backward(op, n, x, g_y, g_x) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, g_y, g_x
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_double_backward(op, n, x, g_y, h, d_x, d_g_y) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, g_y, h, d_x, d_g_y
      integer(c_int) :: status
    end function
    function clb_tensor_product_create_c(ctx, desc, op, desc_size) bind(c, name='clb_tensor_product_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_tensor_product_desc), intent(in) :: desc; type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_forward(op, n, x, y, w, z) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, y, w, z
      integer(c_int) :: status
    end function
    function clb_tensor_product_backward(op, n, x, y, w, g, g_x, g_y, g_w) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, y, w, g, g_x, g_y, g_w
      integer(c_int) :: status
    end function
    function clb_tensor_product_double_backward(op, n, x, y, w, g, a, b, c, d_x, d_y, d_w, d_g) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y, w, g, a, b, c, d_x, d_y, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_tensor_product_measure_c(ctx, desc, sizes, desc_size) &
         bind(c, name='clb_tensor_product_measure_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_tensor_product_desc), intent(in) :: desc
      type(clb_tensor_product_sizes), intent(out) :: sizes
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_triple_backward(op, n, operands) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_triple_operands), intent(in) :: operands
      integer(c_int) :: status
    end function
    function clb_tensor_product_weights_c(ctx, desc, i, slice, desc_size) &
         bind(c, name='clb_tensor_product_weights_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_tensor_product_desc), intent(in) :: desc; integer(c_int), value :: i
      type(clb_weight_slice), intent(out) :: slice
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_mask_c(ctx, desc, mask, size, desc_size) &
         bind(c, name='clb_tensor_product_mask_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_tensor_product_desc), intent(in) :: desc
      integer(c_signed_char), intent(inout) :: mask(*); integer(c_int64_t), value :: size
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_rms_norm_create_c(ctx, desc, op, desc_size) bind(c, name='clb_rms_norm_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_rms_norm_desc), intent(in) :: desc; type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_rms_norm_measure_c(ctx, desc, sizes, desc_size) bind(c, name='clb_rms_norm_measure_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_rms_norm_desc), intent(in) :: desc
      type(clb_rms_norm_sizes), intent(out) :: sizes; integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_rms_norm_forward(op, n, x, w, y) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, y
      integer(c_int) :: status
    end function
    function clb_rms_norm_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_rms_norm_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_create_c(ctx, desc, op, desc_size) &
         bind(c, name='clb_symmetric_contraction_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_symmetric_contraction_desc), intent(in) :: desc; type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_forward(op, n, x, w, z) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, z
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int64_t), value :: n; type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_paths_c(ctx, desc, degree, nu, paths, desc_size) &
         bind(c, name='clb_symmetric_contraction_paths_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_symmetric_contraction_desc), intent(in) :: desc
      integer(c_int), value :: degree, nu; type(clb_symmetric_paths), intent(out) :: paths
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_basis_c(ctx, desc, path, u, size, desc_size) &
         bind(c, name='clb_symmetric_contraction_basis_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_symmetric_contraction_desc), intent(in) :: desc; integer(c_int), value :: path
      real(c_double), intent(inout) :: u(*); integer(c_int64_t), value :: size
      integer(c_size_t), value :: desc_size
      integer(c_int) :: status
    end function
    function clb_channel_wise_c(ctx, irreps_x, irreps_y, filter, order, found) bind(c, name='clb_channel_wise') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      integer(c_int), value :: order; type(clb_instructions), intent(inout) :: found
      integer(c_int) :: status
    end function
    function clb_fully_connected_c(ctx, irreps_x, irreps_y, irreps_z, found) bind(c, name='clb_fully_connected') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), irreps_z(*)
      type(clb_instructions), intent(inout) :: found
      integer(c_int) :: status
    end function
    function clb_full_c(ctx, irreps_x, irreps_y, filter, found) bind(c, name='clb_full') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      type(clb_instructions), intent(inout) :: found
      integer(c_int) :: status
    end function
    function clb_elementwise_c(ctx, irreps_x, irreps_y, filter, found) bind(c, name='clb_elementwise') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      type(clb_instructions), intent(inout) :: found
      integer(c_int) :: status
    end function
    function clb_graph_create(ctx, nodes, edges, graph) bind(c) result(status)
      import; type(c_ptr), value :: ctx; integer(c_int64_t), value :: nodes, edges; type(c_ptr), intent(out) :: graph
      integer(c_int) :: status
    end function
    subroutine clb_graph_destroy(graph) bind(c)
      import; type(c_ptr), intent(inout) :: graph
    end subroutine
    function clb_graph_update(graph, n_senders, n_receivers, n_edges, type, senders, receivers) bind(c) result(status)
      import; type(c_ptr), value :: graph; integer(c_int64_t), value :: n_senders, n_receivers, n_edges
      integer(c_int), value :: type; type(clb_index_list), value :: senders, receivers
      integer(c_int) :: status
    end function
    function clb_graph_sorted(graph, order, sorted) bind(c) result(status)
      import; type(c_ptr), value :: graph; integer(c_int), value :: order; type(clb_sorted_edges), intent(out) :: sorted
      integer(c_int) :: status
    end function
    function clb_graph_lists(graph, senders, receivers) bind(c) result(status)
      import; type(c_ptr), value :: graph; type(c_ptr), intent(out) :: senders, receivers
      integer(c_int) :: status
    end function
    function clb_convolution_create_c(ctx, desc, op, desc_size, product_size) &
         bind(c, name='clb_convolution_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_convolution_desc), intent(in) :: desc; type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: desc_size, product_size
      integer(c_int) :: status
    end function
    function clb_convolution_knots(op, r) bind(c) result(status)
      import; type(c_ptr), value :: op; real(c_double), intent(out) :: r(*)
      integer(c_int) :: status
    end function
    function clb_convolution_set_table(op, values) bind(c) result(status)
      import; type(c_ptr), value :: op; real(c_double), intent(in) :: values(*) ! [W, knots]
      integer(c_int) :: status
    end function
    function clb_convolution_workspace(op, pass, graph, min_bytes, max_bytes) bind(c) result(status)
      import; type(c_ptr), value :: op, graph; integer(c_int), value :: pass
      integer(c_int64_t), intent(out) :: min_bytes, max_bytes
      integer(c_int) :: status
    end function
    function clb_convolution_flops(op, pass, n_receivers, n_edges, flops) bind(c) result(status)
      import; type(c_ptr), value :: op; integer(c_int), value :: pass
      integer(c_int64_t), value :: n_receivers, n_edges; real(c_double), intent(out) :: flops
      integer(c_int) :: status
    end function
    function clb_convolution_forward(op, graph, x, y, w, z, workspace) bind(c) result(status)
      import; type(c_ptr), value :: op, graph, workspace; type(clb_rows), value :: x, y, w, z
      integer(c_int) :: status
    end function
    function clb_convolution_backward(op, graph, x, y, w, g, g_x, g_y, g_w, workspace) bind(c) result(status)
      import; type(c_ptr), value :: op, graph, workspace; type(clb_rows), value :: x, y, w, g, g_x, g_y, g_w
      integer(c_int) :: status
    end function
    function clb_convolution_double_backward(op, graph, x, y, w, g, a, b, c, d_x, d_y, d_w, d_g, workspace) bind(c) result(status)
      import; type(c_ptr), value :: op, graph, workspace
      type(clb_rows), value :: x, y, w, g, a, b, c, d_x, d_y, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_optimizer_create_c(ctx, desc, optimizer, desc_size, tensor_size, group_size) &
         bind(c, name='clb_optimizer_create_sized') result(status)
      import; type(c_ptr), value :: ctx; type(clb_optimizer_desc), intent(in) :: desc; type(c_ptr), intent(out) :: optimizer
      integer(c_size_t), value :: desc_size, tensor_size, group_size
      integer(c_int) :: status
    end function
    subroutine clb_optimizer_destroy(optimizer) bind(c)
      import; type(c_ptr), intent(inout) :: optimizer
    end subroutine
    function clb_optimizer_step(optimizer) bind(c) result(status)
      import; type(c_ptr), value :: optimizer
      integer(c_int) :: status
    end function
    function clb_optimizer_set_group_c(optimizer, group, numbers, numbers_size) &
         bind(c, name='clb_optimizer_set_group_sized') result(status)
      import; type(c_ptr), value :: optimizer; integer(c_int), value :: group; type(clb_optimizer_group), intent(in) :: numbers
      integer(c_size_t), value :: numbers_size
      integer(c_int) :: status
    end function
    function clb_optimizer_average(optimizer) bind(c) result(status)
      import; type(c_ptr), value :: optimizer
      integer(c_int) :: status
    end function
    function clb_optimizer_progress_c(optimizer, progress, progress_size) &
         bind(c, name='clb_optimizer_progress_sized') result(status)
      import; type(c_ptr), value :: optimizer; type(clb_progress), intent(out) :: progress
      integer(c_size_t), value :: progress_size
      integer(c_int) :: status
    end function
    function clb_optimizer_state_bytes(optimizer, bytes) bind(c) result(status)
      import; type(c_ptr), value :: optimizer; integer(c_int64_t), intent(out) :: bytes
      integer(c_int) :: status
    end function
    function clb_optimizer_state_read(optimizer, to, bytes) bind(c) result(status)
      import; type(c_ptr), value :: optimizer, to; integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    function clb_optimizer_state_write(optimizer, from, bytes) bind(c) result(status)
      import; type(c_ptr), value :: optimizer, from; integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    function clb_model_open_c(ctx, path, options, model, options_size) bind(c, name='clb_model_open_sized') result(status)
      import; type(c_ptr), value :: ctx; character(kind=c_char), intent(in) :: path(*)
      type(clb_model_options), intent(in) :: options; type(c_ptr), intent(out) :: model
      integer(c_size_t), value :: options_size
      integer(c_int) :: status
    end function
    subroutine clb_model_destroy(model) bind(c)
      import; type(c_ptr), intent(inout) :: model
    end subroutine
    function clb_model_describe_c(model, info, info_size) bind(c, name='clb_model_describe_sized') result(status)
      import; type(c_ptr), value :: model; type(clb_model_info), intent(out) :: info
      integer(c_size_t), value :: info_size
      integer(c_int) :: status
    end function
    function clb_model_species(model, atomic_number) bind(c) result(species)
      import; type(c_ptr), value :: model; integer(c_int), value :: atomic_number
      integer(c_int) :: species
    end function
    ! _c: with the sizes of types, which may have more components in a later version (docs/abi.md).
    ! target: what a c_ptr inside points to is written, though the argument itself is not; compilers must not think otherwise.
    function clb_model_compute_c(model, atoms, results, atoms_size, results_size) &
         bind(c, name='clb_model_compute_sized') result(status)
      import; type(c_ptr), value :: model; type(clb_model_atoms), intent(in) :: atoms
      type(clb_model_results), intent(in), target :: results
      integer(c_size_t), value :: atoms_size, results_size
      integer(c_int) :: status
    end function
    function clb_model_last_neighbours_c(model, neighbours, neighbours_size) &
         bind(c, name='clb_model_last_neighbours_sized') result(status)
      import; type(c_ptr), value :: model; type(clb_model_neighbours), intent(out) :: neighbours
      integer(c_size_t), value :: neighbours_size
      integer(c_int) :: status
    end function
    function clb_model_compute_edges_c(model, edges, results, edges_size, exchange_size, results_size) &
         bind(c, name='clb_model_compute_edges_sized') result(status)
      import; type(c_ptr), value :: model; type(clb_model_edges), intent(in), target :: edges
      type(clb_model_edge_results), intent(in), target :: results
      integer(c_size_t), value :: edges_size, exchange_size, results_size
      integer(c_int) :: status
    end function
  end interface

contains

  function clb_wisdom_export(ctx, path) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: path
    integer(c_int) :: status
    status = clb_wisdom_export_c(ctx, trim(path)//c_null_char)
  end function

  function clb_wisdom_import(ctx, path) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: path
    integer(c_int) :: status
    status = clb_wisdom_import_c(ctx, trim(path)//c_null_char)
  end function

  function clb_channel_wise(ctx, irreps_x, irreps_y, filter, order, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    integer(c_int), intent(in) :: order
    type(clb_instructions), intent(inout) :: found
    integer(c_int) :: status
    status = clb_channel_wise_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, trim(filter)//c_null_char, &
         order, found)
  end function

  function clb_fully_connected(ctx, irreps_x, irreps_y, irreps_z, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, irreps_z
    type(clb_instructions), intent(inout) :: found
    integer(c_int) :: status
    status = clb_fully_connected_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, &
         trim(irreps_z)//c_null_char, found)
  end function

  ! filter '': all irreps, as in clb_elementwise.
  function clb_full(ctx, irreps_x, irreps_y, filter, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    type(clb_instructions), intent(inout) :: found
    integer(c_int) :: status
    status = clb_full_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, trim(filter)//c_null_char, found)
  end function

  function clb_elementwise(ctx, irreps_x, irreps_y, filter, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    type(clb_instructions), intent(inout) :: found
    integer(c_int) :: status
    status = clb_elementwise_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, trim(filter)//c_null_char, found)
  end function

  function clb_context_create(device, ctx) result(status)
    character(*), intent(in) :: device
    type(c_ptr), intent(out) :: ctx
    integer(c_int) :: status
    status = clb_context_create_c(trim(device)//c_null_char, ctx)
  end function

  function clb_context_adopt(device, native, ctx) result(status)
    character(*), intent(in) :: device
    type(clb_native), intent(in) :: native
    type(c_ptr), intent(out) :: ctx
    integer(c_int) :: status
    status = clb_context_adopt_c(trim(device)//c_null_char, native, ctx)
  end function

  function clb_model_open(ctx, path, options, model) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: path
    type(clb_model_options), intent(in) :: options
    type(c_ptr), intent(out) :: model
    integer(c_int) :: status
    status = clb_model_open_c(ctx, trim(path)//c_null_char, options, model, c_sizeof(options))
  end function

  function clb_op_counts(op, pass, counts) result(status)
    type(c_ptr), intent(in) :: op
    integer(c_int), intent(in) :: pass
    type(clb_counts), intent(out) :: counts
    integer(c_int) :: status
    status = clb_op_counts_c(op, pass, counts, c_sizeof(counts))
  end function

  function clb_op_report(op, pass, report) result(status)
    type(c_ptr), intent(in) :: op
    integer(c_int), intent(in) :: pass
    type(clb_report), intent(out) :: report
    integer(c_int) :: status
    status = clb_op_report_c(op, pass, report, c_sizeof(report))
  end function

  function clb_op_tuning(op, pass, tuning) result(status)
    type(c_ptr), intent(in) :: op
    integer(c_int), intent(in) :: pass
    type(clb_tuning), intent(out) :: tuning
    integer(c_int) :: status
    status = clb_op_tuning_c(op, pass, tuning, c_sizeof(tuning))
  end function

  function clb_spherical_harmonics_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_spherical_harmonics_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_spherical_harmonics_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_tensor_product_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_tensor_product_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_tensor_product_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in) :: desc
    type(clb_tensor_product_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_tensor_product_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_tensor_product_weights(ctx, desc, i, slice) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in) :: desc
    integer(c_int), intent(in) :: i
    type(clb_weight_slice), intent(out) :: slice
    integer(c_int) :: status
    status = clb_tensor_product_weights_c(ctx, desc, i, slice, c_sizeof(desc))
  end function

  function clb_tensor_product_mask(ctx, desc, mask, size) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in) :: desc
    integer(c_signed_char), intent(inout) :: mask(*)
    integer(c_int64_t), intent(in) :: size
    integer(c_int) :: status
    status = clb_tensor_product_mask_c(ctx, desc, mask, size, c_sizeof(desc))
  end function

  function clb_rms_norm_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_rms_norm_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_rms_norm_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_rms_norm_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_rms_norm_desc), intent(in) :: desc
    type(clb_rms_norm_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_rms_norm_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_symmetric_contraction_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_symmetric_contraction_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_symmetric_contraction_paths(ctx, desc, degree, nu, paths) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in) :: desc
    integer(c_int), intent(in) :: degree, nu
    type(clb_symmetric_paths), intent(out) :: paths
    integer(c_int) :: status
    status = clb_symmetric_contraction_paths_c(ctx, desc, degree, nu, paths, c_sizeof(desc))
  end function

  function clb_symmetric_contraction_basis(ctx, desc, path, u, size) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in) :: desc
    integer(c_int), intent(in) :: path
    real(c_double), intent(inout) :: u(*)
    integer(c_int64_t), intent(in) :: size
    integer(c_int) :: status
    status = clb_symmetric_contraction_basis_c(ctx, desc, path, u, size, c_sizeof(desc))
  end function

  function clb_convolution_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_convolution_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_convolution_create_c(ctx, desc, op, c_sizeof(desc), c_sizeof(desc%product))
  end function

  function clb_optimizer_create(ctx, desc, optimizer) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_optimizer_desc), intent(in) :: desc
    type(c_ptr), intent(out) :: optimizer
    integer(c_int) :: status
    type(clb_optimizer_tensor) :: tensor
    type(clb_optimizer_group) :: group
    status = clb_optimizer_create_c(ctx, desc, optimizer, c_sizeof(desc), c_sizeof(tensor), c_sizeof(group))
  end function

  function clb_optimizer_set_group(optimizer, group, numbers) result(status)
    type(c_ptr), intent(in) :: optimizer
    integer(c_int), intent(in) :: group
    type(clb_optimizer_group), intent(in) :: numbers
    integer(c_int) :: status
    status = clb_optimizer_set_group_c(optimizer, group, numbers, c_sizeof(numbers))
  end function

  function clb_optimizer_progress(optimizer, progress) result(status)
    type(c_ptr), intent(in) :: optimizer
    type(clb_progress), intent(out) :: progress
    integer(c_int) :: status
    status = clb_optimizer_progress_c(optimizer, progress, c_sizeof(progress))
  end function

  function clb_model_describe(model, info) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_info), intent(out) :: info
    integer(c_int) :: status
    status = clb_model_describe_c(model, info, c_sizeof(info))
  end function

  function clb_model_compute(model, atoms, results) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_atoms), intent(in) :: atoms
    type(clb_model_results), intent(in), target :: results
    integer(c_int) :: status
    status = clb_model_compute_c(model, atoms, results, c_sizeof(atoms), c_sizeof(results))
  end function

  function clb_model_last_neighbours(model, neighbours) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_neighbours), intent(out) :: neighbours
    integer(c_int) :: status
    status = clb_model_last_neighbours_c(model, neighbours, c_sizeof(neighbours))
  end function

  function clb_model_compute_edges(model, edges, results) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_edges), intent(in), target :: edges
    type(clb_model_edge_results), intent(in), target :: results
    type(clb_model_exchange) :: exchange
    integer(c_int) :: status
    status = clb_model_compute_edges_c(model, edges, results, c_sizeof(edges), c_sizeof(exchange), c_sizeof(results))
  end function

  ! The sentence of the last failure on this context.
  function clb_error(ctx) result(text)
    type(c_ptr), intent(in) :: ctx
    character(:), allocatable :: text
    text = text_of(clb_error_c(ctx))
  end function

  ! What no call failed for; empty: nothing.
  function clb_context_note(ctx) result(text)
    type(c_ptr), intent(in) :: ctx
    character(:), allocatable :: text
    type(c_ptr) :: note
    note = clb_context_note_c(ctx)
    text = ''
    if (c_associated(note)) text = text_of(note)
  end function

  function text_of(string) result(text)
    type(c_ptr), intent(in) :: string
    character(:), allocatable :: text
    character(kind=c_char), pointer :: s(:)
    integer :: n
    call c_f_pointer(string, s, [huge(1)])
    n = 0
    do while (s(n + 1) /= c_null_char)
      n = n + 1
    end do
    allocate (character(n) :: text)
    text = transfer(s(1:n), text)
  end function
end module
