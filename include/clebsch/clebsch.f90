! clebsch.f90 - the C API of clebsch.h and model.h for Fortran; compile it with your program.
! Written by ci/bindings.py from these headers, whose names, arguments, units and errors it has.
! Arrays are in C order: row r of x[n][3] is x(:, r) of a Fortran array x(3, n).  Numbers of terms,
! nodes, groups and the like count from 0.  A pointer in a type is c_loc of a target; texts there
! end with c_null_char.  NAME_c is the function of C where NAME takes or gives texts of Fortran, or
! tells the library the sizes of types (docs/abi.md).
module clebsch
  use, intrinsic :: iso_c_binding
  implicit none

  integer(c_int), parameter :: CLB_OK = 0, CLB_ERROR_ARGUMENT = 1, CLB_ERROR_MEMORY = 2, &
       CLB_ERROR_DEVICE = 3, CLB_ERROR_DRIVER = 4, CLB_ERROR_COMPILE = 5, &
       CLB_ERROR_UNSUPPORTED = 6, CLB_ERROR_INTERNAL = 7
  integer(c_int), parameter :: CLB_F32 = 0, CLB_F64 = 1, CLB_F16 = 2, CLB_BF16 = 3
  integer(c_int), parameter :: CLB_FORWARD = 0, CLB_BACKWARD = 1, CLB_DOUBLE_BACKWARD = 2, &
       CLB_TRIPLE_BACKWARD = 3
  integer(c_int), parameter :: CLB_POINTER = 0, CLB_CL_MEM = 1
  integer(c_int64_t), parameter :: CLB_SAME_ROW = -1, CLB_DENSE = 0
  integer(c_int), parameter :: CLB_WIDE_ACCESSES = 1, CLB_REGISTER_SUMS = 2, CLB_SPLIT_ROWS = 4
  integer(c_int), parameter :: CLB_COMPONENT = 0, CLB_NORM = 1, CLB_INTEGRAL = 2
  integer(c_int), parameter :: CLB_MUL_IR = 0, CLB_IR_MUL = 1, CLB_MERGED = 2, CLB_BY_CHANNEL = 3
  integer(c_int), parameter :: CLB_UVW = 0, CLB_UVU = 1, CLB_UVV = 2, CLB_UUW = 3, CLB_UUU = 4, &
       CLB_UVUV = 5, CLB_UVU_HALF = 6, CLB_UVW_HALF = 7
  integer(c_int), parameter :: CLB_IRREP_COMPONENT = 0, CLB_IRREP_NORM = 1, CLB_IRREP_NONE = 2
  integer(c_int), parameter :: CLB_PATH_ELEMENT = 0, CLB_PATH_PATH = 1, CLB_PATH_NONE = 2
  integer(c_int), parameter :: CLB_OPERAND_X = 1, CLB_OPERAND_Y = 2, CLB_OPERAND_W = 4, &
       CLB_OPERAND_Z = 8
  integer(c_int), parameter :: CLB_MAX_INSTRUCTIONS = 512, CLB_IRREPS_BYTES = 8192
  integer(c_int), parameter :: CLB_SORTED = 0, CLB_AS_FOUND = 1
  integer(c_int), parameter :: CLB_I32 = 0, CLB_I64 = 1
  integer(c_int), parameter :: CLB_BY_RECEIVER = 0, CLB_BY_SENDER = 1
  integer(c_int), parameter :: CLB_SGD = 0, CLB_ADAM = 1, CLB_ADAMW = 2, &
       CLB_SCHEDULE_FREE_ADAMW = 3, CLB_MUON = 4, CLB_SOAP = 5
  integer(c_int), parameter :: CLB_MUON_OPTAX = 0, CLB_MUON_NEQUIX = 1, CLB_MUON_NEQUIP = 2, &
       CLB_MUON_TORCH = 3, CLB_MUON_TORCH_RMS = 4
  integer(c_int), parameter :: CLB_CLIP_NONE = 0, CLB_CLIP_TORCH = 1, CLB_CLIP_OPTAX = 2
  integer(c_int), parameter :: CLB_EMA_NONE = 0, CLB_EMA_WARM_UP = 1, CLB_EMA_WARM_UP_FROM_0 = 2, &
       CLB_EMA_CONSTANT = 3
  integer(c_int), parameter :: CLB_NORMS = 256
  integer(c_int), parameter :: CLB_RMS_PLAIN = 0, CLB_RMS_NEQUIX = 1, CLB_RMS_DEGREE = 2, &
       CLB_RMS_DEGREE_NORM = 3, CLB_RMS_BALANCED = 4, CLB_RMS_TERMS = 5
  integer(c_int), parameter :: CLB_NO_KNOTS = -1, CLB_AUTO_SKIN = -1
  integer(c_int), parameter :: CLB_LOSS_MSE = 0, CLB_LOSS_MAE = 1, CLB_LOSS_HUBER = 2
  ! To be added up for `passes`.
  integer(c_int), parameter :: CLB_PASS_FORWARD = 1, CLB_PASS_BACKWARD = 2, &
       CLB_PASS_DOUBLE_BACKWARD = 4, CLB_PASS_TRIPLE_BACKWARD = 8, CLB_MEASURE = 1073741824

  type, bind(c) :: clb_device_info
    type(c_ptr) :: name = c_null_ptr, backend = c_null_ptr, vendor = c_null_ptr, &
         description = c_null_ptr, driver = c_null_ptr
    integer(c_int) :: runs = 0
    integer(c_int64_t) :: memory_bytes = 0
    integer(c_int) :: f64 = 0, sub_group_sizes(8) = 0
    integer(c_int64_t) :: held_bytes = 0, most_bytes = 0
  end type

  type, bind(c) :: clb_native
    type(c_ptr) :: driver = c_null_ptr, context = c_null_ptr, device = c_null_ptr, &
         queue = c_null_ptr
  end type

  type, bind(c) :: clb_profile_entry
    type(c_ptr) :: kernel = c_null_ptr
    integer(c_int64_t) :: launches = 0
    real(c_double) :: seconds = 0
  end type

  type, bind(c) :: clb_ipc_handle
    integer(c_signed_char) :: bytes(128) = 0
  end type

  type, bind(c) :: clb_rows
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0, stride = CLB_DENSE
    type(c_ptr) :: index = c_null_ptr
  end type

  type, bind(c) :: clb_counts
    real(c_double) :: loads = 0, stores = 0, bytes_loaded = 0, bytes_stored = 0, flops = 0
  end type

  type, bind(c) :: clb_report
    integer(c_int) :: registers = 0, spill_bytes = 0, loads = 0, stores = 0, fmas = 0, &
         subgroups = 0, local_bytes = 0, instructions = 0, accesses = 0
  end type

  type, bind(c) :: clb_tuning
    type(c_ptr) :: schedule = c_null_ptr, estimate = c_null_ptr
    integer(c_int) :: measured = 0
    real(c_double) :: seconds = 0, estimate_seconds = 0
  end type

  type, bind(c) :: clb_spherical_harmonics_desc
    type(c_ptr) :: degrees = c_null_ptr
    integer(c_int) :: n_degrees = 0, normalization = CLB_COMPONENT, normalize = 0, &
         storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_instruction
    integer(c_int) :: in1 = 0, in2 = 0, out = 0, mode = CLB_UVU, has_weight = 1
    real(c_double) :: path_weight = 1
  end type

  type, bind(c) :: clb_tensor_product_desc
    type(c_ptr) :: irreps_x = c_null_ptr, irreps_y = c_null_ptr, irreps_z = c_null_ptr, &
         instructions = c_null_ptr
    integer(c_int) :: n_instructions = 0, irrep_normalization = CLB_IRREP_COMPONENT, &
         path_normalization = CLB_PATH_ELEMENT, layout_x = CLB_MUL_IR, layout_y = CLB_MUL_IR, &
         layout_z = CLB_MUL_IR, shared_weights = 0, indexed = 0, gradients = 0, incoming = 0, &
         storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_triple_operands
    type(clb_rows) :: x, y, w, g, a, b, c, p, q, r, s, e_x, e_y, e_w, e_g, e_a, e_b, e_c
  end type

  type, bind(c) :: clb_tensor_product_sizes
    integer(c_int64_t) :: x = 0, y = 0, z = 0, w = 0
  end type

  type, bind(c) :: clb_weight_slice
    integer(c_int64_t) :: first = 0, count = 0, shape(3) = 0
  end type

  type, bind(c) :: clb_instructions
    character(kind=c_char) :: irreps_x(8192), irreps_y(8192), irreps_z(8192)
    type(clb_instruction) :: instructions(512)
    integer(c_int) :: n_instructions = 0
  end type

  type, bind(c) :: clb_symmetric_contraction_desc
    integer(c_int) :: ell = 0, correlation = 1
    type(c_ptr) :: degrees = c_null_ptr
    integer(c_int) :: n_degrees = 0, channels = 0, n_species = 1, layout_x = CLB_MUL_IR, &
         layout_z = CLB_MUL_IR, gradients = 0, incoming = 0, storage = CLB_F32, &
         arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_symmetric_paths
    integer(c_int) :: first = 0, count = 0, all = 0
  end type

  type, bind(c) :: clb_index_list
    type(c_ptr) :: host = c_null_ptr, buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0
  end type

  type, bind(c) :: clb_sorted_edges
    integer(c_int64_t) :: n_rows = 0, n_edges = 0
    type(c_ptr) :: row_start = c_null_ptr, edge = c_null_ptr, other = c_null_ptr
  end type

  type, bind(c) :: clb_convolution_desc
    type(clb_tensor_product_desc) :: product
    real(c_double) :: scale = 0
    integer(c_int) :: atomics = 0, knots = 0
    real(c_double) :: first_knot = 0, last_knot = 0, break_at = 0
    integer(c_int) :: vectors = 0, normalization = CLB_COMPONENT
  end type

  type, bind(c) :: clb_optimizer_group
    integer(c_int) :: rule = CLB_ADAM
    real(c_double) :: lr = 0, weight_decay = 0, beta1 = 0, beta2 = 0, epsilon = 0, momentum = 0, &
         dampening = 0
    integer(c_int) :: nesterov = 0, amsgrad = 0
    integer(c_int64_t) :: warm_up_steps = 0
    integer(c_int) :: muon = CLB_MUON_OPTAX
    integer(c_int64_t) :: refresh_steps = 0, longest_side = 0
  end type

  type, bind(c) :: clb_place
    type(c_ptr) :: buffer = c_null_ptr
    integer(c_int64_t) :: offset = 0
  end type

  type, bind(c) :: clb_optimizer_tensor
    integer(c_int64_t) :: rows = 0, columns = 0
    integer(c_int) :: group = 0
    type(clb_place) :: parameters, gradients, copy, average
  end type

  type, bind(c) :: clb_optimizer_desc
    type(c_ptr) :: tensors = c_null_ptr
    integer(c_int64_t) :: n_tensors = 0
    type(c_ptr) :: groups = c_null_ptr
    integer(c_int) :: n_groups = 0, parameters = CLB_F32, gradients = CLB_F32, copy = CLB_F32, &
         clip = CLB_CLIP_NONE
    real(c_double) :: max_norm = 0
    integer(c_int) :: check_finite = 0, ema = CLB_EMA_NONE
    real(c_double) :: ema_decay = 0
  end type

  type, bind(c) :: clb_progress
    integer(c_int64_t) :: steps = 0, skipped = 0
    real(c_double) :: norm = 0
  end type

  type, bind(c) :: clb_rms_norm_desc
    type(c_ptr) :: irreps = c_null_ptr
    integer(c_int) :: layout = CLB_MUL_IR, variant = CLB_RMS_PLAIN
    real(c_double) :: epsilon = 0, weight_offset = 0
    integer(c_int) :: centre = 0, bias = 0, gradients = 0, incoming = 0, storage = CLB_F32, &
         arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
    type(c_ptr) :: factors = c_null_ptr
    integer(c_int) :: n_factors = 0
  end type

  type, bind(c) :: clb_rms_norm_sizes
    integer(c_int64_t) :: x = 0, w = 0
  end type

  type, bind(c) :: clb_gate_desc
    type(c_ptr) :: irreps_scalars = c_null_ptr, irreps_gates = c_null_ptr, &
         irreps_gated = c_null_ptr, act_scalars = c_null_ptr, act_gates = c_null_ptr, &
         irreps_x = c_null_ptr
    integer(c_int) :: layout = CLB_MUL_IR, normalize = 0, storage = CLB_F32, arithmetic = CLB_F32, &
         accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_gate_sizes
    integer(c_int64_t) :: x = 0, y = 0
    character(kind=c_char) :: irreps_x(8192), irreps_y(8192)
  end type

  type, bind(c) :: clb_linear_instruction
    integer(c_int) :: in = 0, out = 0
  end type

  type, bind(c) :: clb_linear_desc
    type(c_ptr) :: irreps_in = c_null_ptr, irreps_out = c_null_ptr, instructions = c_null_ptr
    integer(c_int) :: n_instructions = 0, bias = 0
    type(c_ptr) :: biases = c_null_ptr
    integer(c_int) :: n_biases = 0, path_normalization = CLB_PATH_ELEMENT, layout_in = CLB_MUL_IR, &
         layout_out = CLB_MUL_IR, weights_per_row = 0, n_species = 1, gradients = 0, incoming = 0, &
         storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_linear_sizes
    integer(c_int64_t) :: x = 0, z = 0, w = 0
  end type

  type, bind(c) :: clb_norm_activation_desc
    type(c_ptr) :: irreps = c_null_ptr, act = c_null_ptr
    integer(c_int) :: layout = CLB_MUL_IR, normalize = 0
    real(c_double) :: epsilon = 0
    integer(c_int) :: bias = 0, storage = CLB_F32, arithmetic = CLB_F32, accumulate = 0, &
         passes = CLB_PASS_FORWARD
  end type

  type, bind(c) :: clb_model_options
    integer(c_int) :: dtype = CLB_F32, knots = 0
    real(c_double) :: skin = 0
    integer(c_int64_t) :: workspace_bytes = 0
    integer(c_int) :: atomics = 0
    integer(c_int64_t) :: block_atoms = 0
    integer(c_int) :: trains = 0
    type(c_ptr) :: d3 = c_null_ptr
    real(c_double) :: d3_cutoff = 0, d3_count_cutoff = 0
  end type

  type, bind(c) :: clb_model_info
    type(c_ptr) :: architecture = c_null_ptr
    real(c_double) :: r_max = 0
    integer(c_int) :: n_layers = 0, l_max = 0, n_species = 1
    type(c_ptr) :: symbols = c_null_ptr, atomic_numbers = c_null_ptr
    integer(c_int64_t) :: parameters = 0, weights = 0, bytes_per_edge = 0, bytes_per_atom = 0
    integer(c_int) :: exchanges = 0
    integer(c_int64_t) :: exchange_columns = 0
    real(c_double) :: table_error = 0, table_slope_error = 0
    integer(c_int) :: knots = 0
    real(c_double) :: table_force_error = 0
    integer(c_int64_t) :: block_bytes_per_edge = 0, block_bytes_per_atom = 0
    integer(c_int) :: charges(2) = 0, spins(2) = 0, parity = 0
  end type

  type, bind(c) :: clb_model_atoms
    integer(c_int64_t) :: n = 0
    type(c_ptr) :: species = c_null_ptr, positions = c_null_ptr, cell = c_null_ptr
    integer(c_int) :: periodic(3) = 0, charge = 0, spin = 0
  end type

  type, bind(c) :: clb_model_results
    type(c_ptr) :: energy = c_null_ptr, e_atom = c_null_ptr, forces = c_null_ptr, &
         stress = c_null_ptr, v_atom = c_null_ptr
  end type

  type, bind(c) :: clb_model_neighbours
    integer(c_int64_t) :: n_edges = 0, rebuilds = 0
  end type

  type, bind(c) :: clb_model_peer
    type(c_ptr) :: rows = c_null_ptr
    integer(c_int64_t) :: n_send = 0, n_receive = 0, send_at = 0, receive_at = 0
  end type

  type, bind(c) :: clb_model_exchange
    integer(c_int64_t) :: n_send = 0, n_receive = 0
    type(c_ptr) :: send = c_null_ptr, receive = c_null_ptr
    type(c_funptr) :: move = c_null_funptr
    type(c_ptr) :: user = c_null_ptr
    integer(c_int) :: device_rows = 0
    integer(c_int64_t) :: n_peers = 0
    type(c_ptr) :: peers = c_null_ptr, out = c_null_ptr
    type(c_funptr) :: gather = c_null_funptr
    integer(c_int64_t) :: n_all = 0, first = 0
  end type

  type, bind(c) :: clb_model_edges
    integer(c_int64_t) :: n_local = 0, n_total = 0, n_edges = 0
    integer(c_int) :: same_graph = 0
    type(c_ptr) :: species = c_null_ptr
    type(clb_index_list) :: senders, receivers
    type(c_ptr) :: vectors = c_null_ptr, vectors_buffer = c_null_ptr, positions = c_null_ptr, &
         positions_buffer = c_null_ptr, images = c_null_ptr, counted = c_null_ptr, &
         exchange = c_null_ptr
    integer(c_int) :: search = 0
    type(c_ptr) :: cell = c_null_ptr
    integer(c_int) :: periodic(3) = 0, charge = 0, spin = 0
  end type

  type, bind(c) :: clb_model_edge_results
    type(c_ptr) :: energy = c_null_ptr, e_atom = c_null_ptr, d_vectors = c_null_ptr, &
         d_vectors_buffer = c_null_ptr, forces = c_null_ptr, forces_buffer = c_null_ptr, &
         v_atom = c_null_ptr, virial = c_null_ptr, seconds = c_null_ptr
  end type

  type, bind(c) :: clb_dynamics_move
    real(c_double) :: kick = 0, grow = 0, reach = 0, keep = 0, width = 0
    integer(c_int64_t) :: seed = 0, step = 0
    real(c_double) :: grow_again = 0, reach_again = 0
  end type

  type, bind(c) :: clb_dynamics_view
    real(c_double) :: energy = 0, stress(9) = 0, kinetic = 0, heat = 0, speed = 0, force = 0
    integer(c_int64_t) :: fastest = 0, strongest = 0
  end type

  type, bind(c) :: clb_labels
    type(c_ptr) :: energy = c_null_ptr, forces = c_null_ptr, stress = c_null_ptr, &
         weight = c_null_ptr
  end type

  type, bind(c) :: clb_loss
    integer(c_int) :: function = CLB_LOSS_MSE
    real(c_double) :: delta = 0, energy = 0, forces = 0, stress = 0
    integer(c_int) :: force_norm = 0
    real(c_double) :: stress_unit = 0
  end type

  type, bind(c) :: clb_gradient_results
    type(c_ptr) :: loss = c_null_ptr, terms = c_null_ptr, gradient = c_null_ptr, &
         energies = c_null_ptr, forces = c_null_ptr, stresses = c_null_ptr, errors = c_null_ptr, &
         gradient_buffer = c_null_ptr
    integer(c_int) :: later = 0
  end type

  type, bind(c) :: clb_tensor_info
    type(c_ptr) :: name = c_null_ptr
    integer(c_int) :: rank = 0
    integer(c_int64_t) :: shape(8) = 0, first = 0, count = 0
  end type


  abstract interface
    function clb_model_move(user, backward, columns, type, from, to) bind(c) result(status)
      import
      type(c_ptr), value :: user, from, to
      integer(c_int), value :: backward, type
      integer(c_int64_t), value :: columns
      integer(c_int) :: status
    end function
  end interface

  interface
    function clb_version_c() bind(c, name='clb_version') result(text)
      import
      type(c_ptr) :: text
    end function
    function clb_version_number() bind(c) result(status)
      import
      integer(c_int) :: status
    end function
    function clb_status_text_c(status) bind(c, name='clb_status_text') result(text)
      import
      integer(c_int), value :: status
      type(c_ptr) :: text
    end function
    function clb_devices(each, user) bind(c) result(status)
      import
      type(c_funptr), value :: each
      type(c_ptr), value :: user
      integer(c_int) :: status
    end function
    function clb_context_create_c(device, ctx) bind(c, name='clb_context_create') result(status)
      import
      character(kind=c_char), intent(in) :: device(*)
      type(c_ptr), intent(out) :: ctx
      integer(c_int) :: status
    end function
    function clb_context_adopt_c(device, native, ctx) bind(c, name='clb_context_adopt') &
         result(status)
      import
      character(kind=c_char), intent(in) :: device(*)
      type(clb_native), intent(in), target :: native
      type(c_ptr), intent(out) :: ctx
      integer(c_int) :: status
    end function
    subroutine clb_context_destroy(ctx) bind(c)
      import
      type(c_ptr), intent(inout) :: ctx
    end subroutine
    function clb_error_c(ctx) bind(c, name='clb_error') result(text)
      import
      type(c_ptr), value :: ctx
      type(c_ptr) :: text
    end function
    function clb_context_note_c(ctx) bind(c, name='clb_context_note') result(text)
      import
      type(c_ptr), value :: ctx
      type(c_ptr) :: text
    end function
    function clb_context_device_c(ctx, info, device_info_size) bind(c, &
         name='clb_context_device_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_device_info), intent(out) :: info
      integer(c_size_t), value :: device_info_size
      integer(c_int) :: status
    end function
    function clb_wait(ctx) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_measure_peaks(ctx, copy_bytes_per_second, f32_per_second, f64_per_second) bind(c) &
         result(status)
      import
      type(c_ptr), value :: ctx
      real(c_double), intent(out) :: copy_bytes_per_second, f32_per_second, f64_per_second
      integer(c_int) :: status
    end function
    function clb_measure_copy(ctx, bytes, seconds) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int64_t), value :: bytes
      real(c_double), intent(out) :: seconds
      integer(c_int) :: status
    end function
    function clb_profile_begin(ctx) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_profile_end(ctx, each, user) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      type(c_funptr), value :: each
      type(c_ptr), value :: user
      integer(c_int) :: status
    end function
    function clb_record_begin(ctx) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_record_end(ctx, recording) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      type(c_ptr), intent(out) :: recording
      integer(c_int) :: status
    end function
    function clb_replay(recording) bind(c) result(status)
      import
      type(c_ptr), value :: recording
      integer(c_int) :: status
    end function
    function clb_recording_replace(recording, old_buffer, new_buffer) bind(c) result(status)
      import
      type(c_ptr), value :: recording, old_buffer, new_buffer
      integer(c_int) :: status
    end function
    subroutine clb_recording_destroy(recording) bind(c)
      import
      type(c_ptr), intent(inout) :: recording
    end subroutine
    function clb_buffer_create(ctx, bytes, buffer) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int64_t), value :: bytes
      type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    function clb_buffer_wrap(ctx, kind, memory, bytes, buffer) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int), value :: kind
      type(c_ptr), value :: memory
      integer(c_int64_t), value :: bytes
      type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    subroutine clb_buffer_destroy(buffer) bind(c)
      import
      type(c_ptr), intent(inout) :: buffer
    end subroutine
    function clb_buffer_native(buffer, kind, memory) bind(c) result(status)
      import
      type(c_ptr), value :: buffer
      integer(c_int), intent(out) :: kind
      type(c_ptr), intent(out) :: memory
      integer(c_int) :: status
    end function
    function clb_buffer_create_ipc(ctx, bytes, handle, buffer) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int64_t), value :: bytes
      type(clb_ipc_handle), intent(out) :: handle
      type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    function clb_buffer_open_ipc(ctx, handle, buffer) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_ipc_handle), intent(in) :: handle
      type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    function clb_buffer_open_peer(ctx, of, buffer) bind(c) result(status)
      import
      type(c_ptr), value :: ctx, of
      type(c_ptr), intent(out) :: buffer
      integer(c_int) :: status
    end function
    function clb_buffer_write(buffer, offset, from, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: buffer
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: from
      integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    function clb_buffer_read(buffer, offset, to, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: buffer
      integer(c_int64_t), value :: offset
      type(c_ptr), value :: to
      integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    subroutine clb_op_destroy(op) bind(c)
      import
      type(c_ptr), intent(inout) :: op
    end subroutine
    function clb_op_counts_c(op, pass, counts, counts_size) bind(c, name='clb_op_counts_sized') &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      type(clb_counts), intent(out) :: counts
      integer(c_size_t), value :: counts_size
      integer(c_int) :: status
    end function
    function clb_op_report_c(op, pass, report, report_size) bind(c, name='clb_op_report_sized') &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      type(clb_report), intent(out) :: report
      integer(c_size_t), value :: report_size
      integer(c_int) :: status
    end function
    function clb_op_source(op, pass, source, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      type(c_ptr), intent(out) :: source
      integer(c_size_t), intent(out) :: bytes
      integer(c_int) :: status
    end function
    function clb_op_tuning_c(op, pass, tuning, tuning_size) bind(c, name='clb_op_tuning_sized') &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      type(clb_tuning), intent(out) :: tuning
      integer(c_size_t), value :: tuning_size
      integer(c_int) :: status
    end function
    function clb_wisdom_export_c(ctx, path) bind(c, name='clb_wisdom_export') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    function clb_wisdom_import_c(ctx, path) bind(c, name='clb_wisdom_import') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: path(*)
      integer(c_int) :: status
    end function
    function clb_wisdom_forget(ctx) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int) :: status
    end function
    function clb_context_disable(ctx, optimisations) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int), value :: optimisations
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_create_c(ctx, desc, op, spherical_harmonics_desc_size) &
         bind(c, name='clb_spherical_harmonics_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_spherical_harmonics_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: spherical_harmonics_desc_size
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_forward(op, n, x, y) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_backward(op, n, x, g_y, g_x) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, g_y, g_x
      integer(c_int) :: status
    end function
    function clb_spherical_harmonics_double_backward(op, n, x, g_y, h, d_x, d_g_y) bind(c) &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, g_y, h, d_x, d_g_y
      integer(c_int) :: status
    end function
    function clb_tensor_product_create_c(ctx, desc, op, tensor_product_desc_size) bind(c, &
         name='clb_tensor_product_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_tensor_product_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: tensor_product_desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_forward(op, n, x, y, w, z) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y, w, z
      integer(c_int) :: status
    end function
    function clb_tensor_product_backward(op, n, x, y, w, g, g_x, g_y, g_w) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y, w, g, g_x, g_y, g_w
      integer(c_int) :: status
    end function
    function clb_tensor_product_double_backward(op, n, x, y, w, g, a, b, c, d_x, d_y, d_w, d_g) &
         bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y, w, g, a, b, c, d_x, d_y, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_tensor_product_triple_backward(op, n, operands) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_triple_operands), intent(in) :: operands
      integer(c_int) :: status
    end function
    function clb_tensor_product_measure_c(ctx, desc, sizes, tensor_product_desc_size) bind(c, &
         name='clb_tensor_product_measure_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_tensor_product_desc), intent(in), target :: desc
      type(clb_tensor_product_sizes), intent(out) :: sizes
      integer(c_size_t), value :: tensor_product_desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_weights_c(ctx, desc, i, slice, tensor_product_desc_size) bind(c, &
         name='clb_tensor_product_weights_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_tensor_product_desc), intent(in), target :: desc
      integer(c_int), value :: i
      type(clb_weight_slice), intent(out) :: slice
      integer(c_size_t), value :: tensor_product_desc_size
      integer(c_int) :: status
    end function
    function clb_tensor_product_mask_c(ctx, desc, mask, size, tensor_product_desc_size) bind(c, &
         name='clb_tensor_product_mask_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_tensor_product_desc), intent(in), target :: desc
      integer(c_signed_char), intent(inout) :: mask(*)
      integer(c_int64_t), value :: size
      integer(c_size_t), value :: tensor_product_desc_size
      integer(c_int) :: status
    end function
    function clb_channel_wise_c(ctx, irreps_x, irreps_y, filter, order, found) bind(c, &
         name='clb_channel_wise') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      integer(c_int), value :: order
      type(clb_instructions), intent(out) :: found
      integer(c_int) :: status
    end function
    function clb_fully_connected_c(ctx, irreps_x, irreps_y, irreps_z, found) bind(c, &
         name='clb_fully_connected') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), irreps_z(*)
      type(clb_instructions), intent(out) :: found
      integer(c_int) :: status
    end function
    function clb_full_c(ctx, irreps_x, irreps_y, filter, found) bind(c, name='clb_full') &
         result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      type(clb_instructions), intent(out) :: found
      integer(c_int) :: status
    end function
    function clb_elementwise_c(ctx, irreps_x, irreps_y, filter, found) bind(c, &
         name='clb_elementwise') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: irreps_x(*), irreps_y(*), filter(*)
      type(clb_instructions), intent(out) :: found
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_create_c(ctx, desc, op, symmetric_contraction_desc_size) &
         bind(c, name='clb_symmetric_contraction_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_symmetric_contraction_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: symmetric_contraction_desc_size
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_forward(op, n, x, w, z) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, z
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) &
         bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_paths_c(ctx, desc, degree, nu, paths, &
         symmetric_contraction_desc_size) bind(c, name='clb_symmetric_contraction_paths_sized') &
         result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_symmetric_contraction_desc), intent(in), target :: desc
      integer(c_int), value :: degree, nu
      type(clb_symmetric_paths), intent(out) :: paths
      integer(c_size_t), value :: symmetric_contraction_desc_size
      integer(c_int) :: status
    end function
    function clb_symmetric_contraction_basis_c(ctx, desc, path, u, size, &
         symmetric_contraction_desc_size) bind(c, name='clb_symmetric_contraction_basis_sized') &
         result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_symmetric_contraction_desc), intent(in), target :: desc
      integer(c_int), value :: path
      real(c_double), intent(inout) :: u(*)
      integer(c_int64_t), value :: size
      integer(c_size_t), value :: symmetric_contraction_desc_size
      integer(c_int) :: status
    end function
    function clb_graph_create(ctx, nodes, edges, graph) bind(c) result(status)
      import
      type(c_ptr), value :: ctx
      integer(c_int64_t), value :: nodes, edges
      type(c_ptr), intent(out) :: graph
      integer(c_int) :: status
    end function
    subroutine clb_graph_destroy(graph) bind(c)
      import
      type(c_ptr), intent(inout) :: graph
    end subroutine
    function clb_graph_update(graph, n_senders, n_receivers, n_edges, type, senders, receivers) &
         bind(c) result(status)
      import
      type(c_ptr), value :: graph
      integer(c_int64_t), value :: n_senders, n_receivers, n_edges
      integer(c_int), value :: type
      type(clb_index_list), value :: senders, receivers
      integer(c_int) :: status
    end function
    function clb_graph_sorted(graph, order, sorted) bind(c) result(status)
      import
      type(c_ptr), value :: graph
      integer(c_int), value :: order
      type(clb_sorted_edges), intent(out) :: sorted
      integer(c_int) :: status
    end function
    function clb_graph_lists(graph, senders, receivers) bind(c) result(status)
      import
      type(c_ptr), value :: graph
      type(c_ptr), intent(out) :: senders, receivers
      integer(c_int) :: status
    end function
    function clb_convolution_create_c(ctx, desc, op, convolution_desc_size, &
         tensor_product_desc_size) bind(c, name='clb_convolution_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_convolution_desc), intent(in) :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: convolution_desc_size, tensor_product_desc_size
      integer(c_int) :: status
    end function
    function clb_convolution_knots(op, r) bind(c) result(status)
      import
      type(c_ptr), value :: op
      real(c_double), intent(inout) :: r(*)
      integer(c_int) :: status
    end function
    function clb_convolution_set_table(op, values) bind(c) result(status)
      import
      type(c_ptr), value :: op
      real(c_double), intent(in) :: values(*)
      integer(c_int) :: status
    end function
    function clb_convolution_workspace(op, pass, graph, min_bytes, max_bytes) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      type(c_ptr), value :: graph
      integer(c_int64_t), intent(out) :: min_bytes, max_bytes
      integer(c_int) :: status
    end function
    function clb_convolution_flops(op, pass, n_receivers, n_edges, flops) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int), value :: pass
      integer(c_int64_t), value :: n_receivers, n_edges
      real(c_double), intent(out) :: flops
      integer(c_int) :: status
    end function
    function clb_convolution_forward(op, graph, x, y, w, z, workspace) bind(c) result(status)
      import
      type(c_ptr), value :: op, graph
      type(clb_rows), value :: x, y, w, z
      type(c_ptr), value :: workspace
      integer(c_int) :: status
    end function
    function clb_convolution_backward(op, graph, x, y, w, g, g_x, g_y, g_w, workspace) bind(c) &
         result(status)
      import
      type(c_ptr), value :: op, graph
      type(clb_rows), value :: x, y, w, g, g_x, g_y, g_w
      type(c_ptr), value :: workspace
      integer(c_int) :: status
    end function
    function clb_convolution_double_backward(op, graph, x, y, w, g, a, b, c, d_x, d_y, d_w, d_g, &
         workspace) bind(c) result(status)
      import
      type(c_ptr), value :: op, graph
      type(clb_rows), value :: x, y, w, g, a, b, c, d_x, d_y, d_w, d_g
      type(c_ptr), value :: workspace
      integer(c_int) :: status
    end function
    function clb_optimizer_create_c(ctx, desc, optimizer, optimizer_desc_size, &
         optimizer_tensor_size, optimizer_group_size) bind(c, name='clb_optimizer_create_sized') &
         result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_optimizer_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: optimizer
      integer(c_size_t), value :: optimizer_desc_size, optimizer_tensor_size, optimizer_group_size
      integer(c_int) :: status
    end function
    subroutine clb_optimizer_destroy(optimizer) bind(c)
      import
      type(c_ptr), intent(inout) :: optimizer
    end subroutine
    function clb_optimizer_step(optimizer) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer
      integer(c_int) :: status
    end function
    function clb_optimizer_set_group_c(optimizer, group, numbers, optimizer_group_size) bind(c, &
         name='clb_optimizer_set_group_sized') result(status)
      import
      type(c_ptr), value :: optimizer
      integer(c_int), value :: group
      type(clb_optimizer_group), intent(in) :: numbers
      integer(c_size_t), value :: optimizer_group_size
      integer(c_int) :: status
    end function
    function clb_optimizer_average(optimizer) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer
      integer(c_int) :: status
    end function
    function clb_optimizer_progress_c(optimizer, progress, progress_size) bind(c, &
         name='clb_optimizer_progress_sized') result(status)
      import
      type(c_ptr), value :: optimizer
      type(clb_progress), intent(out) :: progress
      integer(c_size_t), value :: progress_size
      integer(c_int) :: status
    end function
    function clb_optimizer_norms(optimizer, n, norms) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer
      integer(c_int64_t), value :: n
      real(c_double), intent(out) :: norms
      integer(c_int) :: status
    end function
    function clb_optimizer_state_bytes(optimizer, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer
      integer(c_int64_t), intent(out) :: bytes
      integer(c_int) :: status
    end function
    function clb_optimizer_state_read(optimizer, to, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer, to
      integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    function clb_optimizer_state_write(optimizer, from, bytes) bind(c) result(status)
      import
      type(c_ptr), value :: optimizer, from
      integer(c_int64_t), value :: bytes
      integer(c_int) :: status
    end function
    function clb_rms_norm_create_c(ctx, desc, op, rms_norm_desc_size) bind(c, &
         name='clb_rms_norm_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_rms_norm_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: rms_norm_desc_size
      integer(c_int) :: status
    end function
    function clb_rms_norm_measure_c(ctx, desc, sizes, rms_norm_desc_size) bind(c, &
         name='clb_rms_norm_measure_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_rms_norm_desc), intent(in), target :: desc
      type(clb_rms_norm_sizes), intent(out) :: sizes
      integer(c_size_t), value :: rms_norm_desc_size
      integer(c_int) :: status
    end function
    function clb_rms_norm_forward(op, n, x, w, y) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, y
      integer(c_int) :: status
    end function
    function clb_rms_norm_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_rms_norm_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) bind(c) &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_gate_create_c(ctx, desc, op, gate_desc_size) bind(c, &
         name='clb_gate_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_gate_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: gate_desc_size
      integer(c_int) :: status
    end function
    function clb_gate_measure_c(ctx, desc, sizes, gate_desc_size) bind(c, &
         name='clb_gate_measure_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_gate_desc), intent(in), target :: desc
      type(clb_gate_sizes), intent(out) :: sizes
      integer(c_size_t), value :: gate_desc_size
      integer(c_int) :: status
    end function
    function clb_gate_forward(op, n, x, y) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, y
      integer(c_int) :: status
    end function
    function clb_gate_backward(op, n, x, g, g_x) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, g, g_x
      integer(c_int) :: status
    end function
    function clb_gate_double_backward(op, n, x, g, a, d_x, d_g) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, g, a, d_x, d_g
      integer(c_int) :: status
    end function
    function clb_linear_create_c(ctx, desc, op, linear_desc_size) bind(c, &
         name='clb_linear_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_linear_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: linear_desc_size
      integer(c_int) :: status
    end function
    function clb_linear_measure_c(ctx, desc, sizes, linear_desc_size) bind(c, &
         name='clb_linear_measure_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_linear_desc), intent(in), target :: desc
      type(clb_linear_sizes), intent(out) :: sizes
      integer(c_size_t), value :: linear_desc_size
      integer(c_int) :: status
    end function
    function clb_linear_forward(op, n, x, w, z) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, z
      integer(c_int) :: status
    end function
    function clb_linear_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_linear_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_norm_activation_create_c(ctx, desc, op, norm_activation_desc_size) bind(c, &
         name='clb_norm_activation_create_sized') result(status)
      import
      type(c_ptr), value :: ctx
      type(clb_norm_activation_desc), intent(in), target :: desc
      type(c_ptr), intent(out) :: op
      integer(c_size_t), value :: norm_activation_desc_size
      integer(c_int) :: status
    end function
    function clb_norm_activation_forward(op, n, x, w, y) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, y
      integer(c_int) :: status
    end function
    function clb_norm_activation_backward(op, n, x, w, g, g_x, g_w) bind(c) result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, g_x, g_w
      integer(c_int) :: status
    end function
    function clb_norm_activation_double_backward(op, n, x, w, g, a, c, d_x, d_w, d_g) bind(c) &
         result(status)
      import
      type(c_ptr), value :: op
      integer(c_int64_t), value :: n
      type(clb_rows), value :: x, w, g, a, c, d_x, d_w, d_g
      integer(c_int) :: status
    end function
    function clb_model_open_c(ctx, path, options, model, model_options_size) bind(c, &
         name='clb_model_open_sized') result(status)
      import
      type(c_ptr), value :: ctx
      character(kind=c_char), intent(in) :: path(*)
      type(clb_model_options), intent(in), target :: options
      type(c_ptr), intent(out) :: model
      integer(c_size_t), value :: model_options_size
      integer(c_int) :: status
    end function
    subroutine clb_model_destroy(model) bind(c)
      import
      type(c_ptr), intent(inout) :: model
    end subroutine
    function clb_model_describe_c(model, info, model_info_size) bind(c, &
         name='clb_model_describe_sized') result(status)
      import
      type(c_ptr), value :: model
      type(clb_model_info), intent(out) :: info
      integer(c_size_t), value :: model_info_size
      integer(c_int) :: status
    end function
    function clb_model_species(model, atomic_number) bind(c) result(status)
      import
      type(c_ptr), value :: model
      integer(c_int), value :: atomic_number
      integer(c_int) :: status
    end function
    function clb_model_compute_c(model, atoms, results, model_atoms_size, model_results_size) &
         bind(c, name='clb_model_compute_sized') result(status)
      import
      type(c_ptr), value :: model
      type(clb_model_atoms), intent(in), target :: atoms
      type(clb_model_results), intent(in), target :: results
      integer(c_size_t), value :: model_atoms_size, model_results_size
      integer(c_int) :: status
    end function
    function clb_model_compute_many_c(model, n, atoms, results, model_atoms_size, &
         model_results_size) bind(c, name='clb_model_compute_many_sized') result(status)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: n
      type(clb_model_atoms), intent(in), target :: atoms
      type(clb_model_results), intent(in), target :: results
      integer(c_size_t), value :: model_atoms_size, model_results_size
      integer(c_int) :: status
    end function
    function clb_model_last_neighbours_c(model, neighbours, model_neighbours_size) bind(c, &
         name='clb_model_last_neighbours_sized') result(status)
      import
      type(c_ptr), value :: model
      type(clb_model_neighbours), intent(out) :: neighbours
      integer(c_size_t), value :: model_neighbours_size
      integer(c_int) :: status
    end function
    function clb_model_compute_edges_c(model, edges, results, model_edges_size, &
         model_exchange_size, model_edge_results_size) bind(c, &
         name='clb_model_compute_edges_sized') result(status)
      import
      type(c_ptr), value :: model
      type(clb_model_edges), intent(in), target :: edges
      type(clb_model_edge_results), intent(in), target :: results
      integer(c_size_t), value :: model_edges_size, model_exchange_size, model_edge_results_size
      integer(c_int) :: status
    end function
    function clb_dynamics_create_c(model, atoms, masses, velocities, listed, dynamics, &
         model_atoms_size) bind(c, name='clb_dynamics_create_sized') result(status)
      import
      type(c_ptr), value :: model
      type(clb_model_atoms), intent(in), target :: atoms
      real(c_double), intent(in) :: masses(*), velocities(*), listed(*)
      type(c_ptr), intent(out) :: dynamics
      integer(c_size_t), value :: model_atoms_size
      integer(c_int) :: status
    end function
    subroutine clb_dynamics_destroy(dynamics) bind(c)
      import
      type(c_ptr), intent(inout) :: dynamics
    end subroutine
    function clb_dynamics_run_c(dynamics, move, dynamics_move_size) bind(c, &
         name='clb_dynamics_run_sized') result(status)
      import
      type(c_ptr), value :: dynamics
      type(clb_dynamics_move), intent(in) :: move
      integer(c_size_t), value :: dynamics_move_size
      integer(c_int) :: status
    end function
    function clb_dynamics_compute(dynamics, cell, stress) bind(c) result(status)
      import
      type(c_ptr), value :: dynamics
      real(c_double), intent(in) :: cell(*)
      integer(c_int), value :: stress
      integer(c_int) :: status
    end function
    function clb_dynamics_see_c(dynamics, view, dynamics_view_size) bind(c, &
         name='clb_dynamics_see_sized') result(status)
      import
      type(c_ptr), value :: dynamics
      type(clb_dynamics_view), intent(out) :: view
      integer(c_size_t), value :: dynamics_view_size
      integer(c_int) :: status
    end function
    function clb_dynamics_read(dynamics, positions, velocities, forces, listed) bind(c) &
         result(status)
      import
      type(c_ptr), value :: dynamics
      real(c_double), intent(out) :: positions, velocities, forces, listed
      integer(c_int) :: status
    end function
    function clb_model_gradient_c(model, n, atoms, labels, loss, results, model_atoms_size, &
         labels_size, loss_size, gradient_results_size) bind(c, name='clb_model_gradient_sized') &
         result(status)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: n
      type(clb_model_atoms), intent(in), target :: atoms
      type(clb_labels), intent(in), target :: labels
      type(clb_loss), intent(in) :: loss
      type(clb_gradient_results), intent(in), target :: results
      integer(c_size_t), value :: model_atoms_size, labels_size, loss_size, gradient_results_size
      integer(c_int) :: status
    end function
    function clb_model_losses(model, n, losses, terms, errors) bind(c) result(status)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: n
      real(c_double), intent(out) :: losses, terms, errors
      integer(c_int) :: status
    end function
    function clb_model_tensor_c(model, index, info, tensor_info_size) bind(c, &
         name='clb_model_tensor_sized') result(status)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      type(clb_tensor_info), intent(out) :: info
      integer(c_size_t), value :: tensor_info_size
      integer(c_int) :: status
    end function
    function clb_model_parameters(model, parameters) bind(c) result(status)
      import
      type(c_ptr), value :: model
      real(c_double), intent(out) :: parameters
      integer(c_int) :: status
    end function
    function clb_model_set_parameters(model, parameters) bind(c) result(status)
      import
      type(c_ptr), value :: model
      real(c_double), intent(in) :: parameters(*)
      integer(c_int) :: status
    end function
    function clb_model_take_parameters(model, parameters) bind(c) result(status)
      import
      type(c_ptr), value :: model, parameters
      integer(c_int) :: status
    end function
    function clb_model_add_gradient(model, gradient, to) bind(c) result(status)
      import
      type(c_ptr), value :: model, gradient, to
      integer(c_int) :: status
    end function
    function clb_model_freeze(model, index) bind(c) result(status)
      import
      type(c_ptr), value :: model
      integer(c_int64_t), value :: index
      integer(c_int) :: status
    end function
  end interface

contains

  function clb_version() result(text)
    character(:), allocatable :: text
    text = text_of(clb_version_c())
  end function

  function clb_status_text(status) result(text)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: text
    text = text_of(clb_status_text_c(status))
  end function

  function clb_context_create(device, ctx) result(status)
    character(*), intent(in) :: device
    type(c_ptr), intent(out) :: ctx
    integer(c_int) :: status
    status = clb_context_create_c(trim(device)//c_null_char, ctx)
  end function

  function clb_context_adopt(device, native, ctx) result(status)
    character(*), intent(in) :: device
    type(clb_native), intent(in), target :: native
    type(c_ptr), intent(out) :: ctx
    integer(c_int) :: status
    status = clb_context_adopt_c(trim(device)//c_null_char, native, ctx)
  end function

  function clb_error(ctx) result(text)
    type(c_ptr), intent(in) :: ctx
    character(:), allocatable :: text
    text = text_of(clb_error_c(ctx))
  end function

  function clb_context_note(ctx) result(text)
    type(c_ptr), intent(in) :: ctx
    character(:), allocatable :: text
    text = text_of(clb_context_note_c(ctx))
  end function

  function clb_context_device(ctx, info) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_device_info), intent(out) :: info
    integer(c_int) :: status
    status = clb_context_device_c(ctx, info, c_sizeof(info))
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

  function clb_spherical_harmonics_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_spherical_harmonics_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_spherical_harmonics_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_tensor_product_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_tensor_product_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_tensor_product_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in), target :: desc
    type(clb_tensor_product_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_tensor_product_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_tensor_product_weights(ctx, desc, i, slice) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in), target :: desc
    integer(c_int), intent(in) :: i
    type(clb_weight_slice), intent(out) :: slice
    integer(c_int) :: status
    status = clb_tensor_product_weights_c(ctx, desc, i, slice, c_sizeof(desc))
  end function

  function clb_tensor_product_mask(ctx, desc, mask, size) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_tensor_product_desc), intent(in), target :: desc
    integer(c_signed_char), intent(inout) :: mask(*)
    integer(c_int64_t), intent(in) :: size
    integer(c_int) :: status
    status = clb_tensor_product_mask_c(ctx, desc, mask, size, c_sizeof(desc))
  end function

  function clb_channel_wise(ctx, irreps_x, irreps_y, filter, order, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    integer(c_int), intent(in) :: order
    type(clb_instructions), intent(out) :: found
    integer(c_int) :: status
    status = clb_channel_wise_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, &
         trim(filter)//c_null_char, order, found)
  end function

  function clb_fully_connected(ctx, irreps_x, irreps_y, irreps_z, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, irreps_z
    type(clb_instructions), intent(out) :: found
    integer(c_int) :: status
    status = clb_fully_connected_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, &
         trim(irreps_z)//c_null_char, found)
  end function

  function clb_full(ctx, irreps_x, irreps_y, filter, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    type(clb_instructions), intent(out) :: found
    integer(c_int) :: status
    status = clb_full_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, &
         trim(filter)//c_null_char, found)
  end function

  function clb_elementwise(ctx, irreps_x, irreps_y, filter, found) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: irreps_x, irreps_y, filter
    type(clb_instructions), intent(out) :: found
    integer(c_int) :: status
    status = clb_elementwise_c(ctx, trim(irreps_x)//c_null_char, trim(irreps_y)//c_null_char, &
         trim(filter)//c_null_char, found)
  end function

  function clb_symmetric_contraction_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_symmetric_contraction_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_symmetric_contraction_paths(ctx, desc, degree, nu, paths) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in), target :: desc
    integer(c_int), intent(in) :: degree, nu
    type(clb_symmetric_paths), intent(out) :: paths
    integer(c_int) :: status
    status = clb_symmetric_contraction_paths_c(ctx, desc, degree, nu, paths, c_sizeof(desc))
  end function

  function clb_symmetric_contraction_basis(ctx, desc, path, u, size) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_symmetric_contraction_desc), intent(in), target :: desc
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
    type(clb_tensor_product_desc) :: tensor_product_desc
    integer(c_int) :: status
    status = clb_convolution_create_c(ctx, desc, op, c_sizeof(desc), c_sizeof(tensor_product_desc))
  end function

  function clb_optimizer_create(ctx, desc, optimizer) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_optimizer_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: optimizer
    type(clb_optimizer_tensor) :: optimizer_tensor
    type(clb_optimizer_group) :: optimizer_group
    integer(c_int) :: status
    status = clb_optimizer_create_c(ctx, desc, optimizer, c_sizeof(desc), &
         c_sizeof(optimizer_tensor), c_sizeof(optimizer_group))
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

  function clb_rms_norm_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_rms_norm_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_rms_norm_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_rms_norm_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_rms_norm_desc), intent(in), target :: desc
    type(clb_rms_norm_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_rms_norm_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_gate_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_gate_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_gate_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_gate_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_gate_desc), intent(in), target :: desc
    type(clb_gate_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_gate_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_linear_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_linear_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_linear_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_linear_measure(ctx, desc, sizes) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_linear_desc), intent(in), target :: desc
    type(clb_linear_sizes), intent(out) :: sizes
    integer(c_int) :: status
    status = clb_linear_measure_c(ctx, desc, sizes, c_sizeof(desc))
  end function

  function clb_norm_activation_create(ctx, desc, op) result(status)
    type(c_ptr), intent(in) :: ctx
    type(clb_norm_activation_desc), intent(in), target :: desc
    type(c_ptr), intent(out) :: op
    integer(c_int) :: status
    status = clb_norm_activation_create_c(ctx, desc, op, c_sizeof(desc))
  end function

  function clb_model_open(ctx, path, options, model) result(status)
    type(c_ptr), intent(in) :: ctx
    character(*), intent(in) :: path
    type(clb_model_options), intent(in), target :: options
    type(c_ptr), intent(out) :: model
    integer(c_int) :: status
    status = clb_model_open_c(ctx, trim(path)//c_null_char, options, model, c_sizeof(options))
  end function

  function clb_model_describe(model, info) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_info), intent(out) :: info
    integer(c_int) :: status
    status = clb_model_describe_c(model, info, c_sizeof(info))
  end function

  function clb_model_compute(model, atoms, results) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_atoms), intent(in), target :: atoms
    type(clb_model_results), intent(in), target :: results
    integer(c_int) :: status
    status = clb_model_compute_c(model, atoms, results, c_sizeof(atoms), c_sizeof(results))
  end function

  function clb_model_compute_many(model, n, atoms, results) result(status)
    type(c_ptr), intent(in) :: model
    integer(c_int64_t), intent(in) :: n
    type(clb_model_atoms), intent(in), target :: atoms
    type(clb_model_results), intent(in), target :: results
    integer(c_int) :: status
    status = clb_model_compute_many_c(model, n, atoms, results, c_sizeof(atoms), c_sizeof(results))
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
    type(clb_model_exchange) :: model_exchange
    integer(c_int) :: status
    status = clb_model_compute_edges_c(model, edges, results, c_sizeof(edges), &
         c_sizeof(model_exchange), c_sizeof(results))
  end function

  function clb_dynamics_create(model, atoms, masses, velocities, listed, dynamics) result(status)
    type(c_ptr), intent(in) :: model
    type(clb_model_atoms), intent(in), target :: atoms
    real(c_double), intent(in) :: masses(*), velocities(*), listed(*)
    type(c_ptr), intent(out) :: dynamics
    integer(c_int) :: status
    status = clb_dynamics_create_c(model, atoms, masses, velocities, listed, dynamics, &
         c_sizeof(atoms))
  end function

  function clb_dynamics_run(dynamics, move) result(status)
    type(c_ptr), intent(in) :: dynamics
    type(clb_dynamics_move), intent(in) :: move
    integer(c_int) :: status
    status = clb_dynamics_run_c(dynamics, move, c_sizeof(move))
  end function

  function clb_dynamics_see(dynamics, view) result(status)
    type(c_ptr), intent(in) :: dynamics
    type(clb_dynamics_view), intent(out) :: view
    integer(c_int) :: status
    status = clb_dynamics_see_c(dynamics, view, c_sizeof(view))
  end function

  function clb_model_gradient(model, n, atoms, labels, loss, results) result(status)
    type(c_ptr), intent(in) :: model
    integer(c_int64_t), intent(in) :: n
    type(clb_model_atoms), intent(in), target :: atoms
    type(clb_labels), intent(in), target :: labels
    type(clb_loss), intent(in) :: loss
    type(clb_gradient_results), intent(in), target :: results
    integer(c_int) :: status
    status = clb_model_gradient_c(model, n, atoms, labels, loss, results, c_sizeof(atoms), &
         c_sizeof(labels), c_sizeof(loss), c_sizeof(results))
  end function

  function clb_model_tensor(model, index, info) result(status)
    type(c_ptr), intent(in) :: model
    integer(c_int64_t), intent(in) :: index
    type(clb_tensor_info), intent(out) :: info
    integer(c_int) :: status
    status = clb_model_tensor_c(model, index, info, c_sizeof(info))
  end function

  ! A text of C; '' where there is none.
  function text_of(string) result(text)
    type(c_ptr), intent(in) :: string
    character(:), allocatable :: text
    character(kind=c_char), pointer :: s(:)
    integer :: n
    text = ''
    if (.not. c_associated(string)) return
    call c_f_pointer(string, s, [huge(1)])
    n = 0
    do while (s(n + 1) /= c_null_char)
      n = n + 1
    end do
    text = repeat(' ', n)
    text = transfer(s(1:n), text)
  end function
end module
