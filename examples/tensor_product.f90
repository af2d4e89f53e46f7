! tensor_product.f90 - one row of a channel-wise product:
!    gfortran $(pkg-config --variable=fortran clebsch) tensor_product.f90 $(pkg-config --libs clebsch) && ./a.out [device]
program tensor_product
  use clebsch
  implicit none
  ! Channels side by side (CLB_IR_MUL): x holds 2 scalars and 2 vectors, y 1 scalar and 1 vector, z 4 scalars and 4 vectors.
  real(c_float), target :: x(8, 1), y(4, 1), w(8, 1), z(16, 1)
  real(c_float) :: expected(16)
  type(clb_instructions), target :: found
  type(clb_tensor_product_desc) :: desc
  type(clb_tensor_product_sizes) :: sizes
  type(clb_rows) :: rows_x, rows_y, rows_w, rows_z
  type(c_ptr) :: ctx, op
  character(64) :: device = ''

  x(:, 1) = [2.0, -1.0, 0.3, 0.7, -0.5, 0.1, 0.8, -0.2]
  y(:, 1) = [1.5, 0.6, -0.9, 0.4]
  w(:, 1) = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
  z = 0
  call get_command_argument(1, device)
  call check(clb_context_create(device, ctx))
  call check(clb_channel_wise(ctx, '2x0e+2x1o', '0e+1o', '0e+1o', CLB_SORTED, found))
  desc%irreps_x = c_loc(found%irreps_x)
  desc%irreps_y = c_loc(found%irreps_y)
  desc%irreps_z = c_loc(found%irreps_z)
  desc%instructions = c_loc(found%instructions)
  desc%n_instructions = found%n_instructions
  desc%layout_x = CLB_IR_MUL
  desc%layout_y = CLB_IR_MUL
  desc%layout_z = CLB_IR_MUL
  call check(clb_tensor_product_measure(ctx, desc, sizes))
  if (sizes%x /= size(x, 1) .or. sizes%y /= size(y, 1) .or. sizes%w /= size(w, 1) .or. sizes%z /= size(z, 1)) error stop 2
  call check(clb_tensor_product_create(ctx, desc, op))
  call send(size(x), x, rows_x)
  call send(size(y), y, rows_y)
  call send(size(w), w, rows_w)
  call send(size(z), z, rows_z)
  call check(clb_tensor_product_forward(op, 1_c_int64_t, rows_x, rows_y, rows_w, rows_z))
  call check(clb_buffer_read(rows_z%buffer, 0_c_int64_t, c_loc(z), c_sizeof(z)))
  print '(16(f0.4,:,1x))', z

  ! Paths in the order of the output: 0e 0e -> 0e, 1o 1o -> 0e, 0e 1o -> 1o, 1o 0e -> 1o; weights 2 by 2.
  expected(1:2) = w(1:2, 1)*x(1:2, 1)*y(1, 1)
  expected(3:4) = w(3:4, 1)*matmul(reshape(x(3:8, 1), [2, 3]), y(2:4, 1))/sqrt(3.0)
  expected(5:10) = reshape(spread(w(5:6, 1)*x(1:2, 1), 2, 3)*spread(y(2:4, 1), 1, 2), [6])
  expected(11:16) = reshape(spread(w(7:8, 1), 2, 3)*reshape(x(3:8, 1), [2, 3])*y(1, 1), [6])
  if (maxval(abs(z(:, 1) - expected)) > 1e-4) error stop 3

  call clb_buffer_destroy(rows_z%buffer)
  call clb_buffer_destroy(rows_w%buffer)
  call clb_buffer_destroy(rows_y%buffer)
  call clb_buffer_destroy(rows_x%buffer)
  call clb_op_destroy(op)
  call clb_context_destroy(ctx)

contains

  subroutine send(n, from, rows)
    integer, intent(in) :: n
    real(c_float), intent(in), target :: from(n)
    type(clb_rows), intent(inout) :: rows
    call check(clb_buffer_create(ctx, c_sizeof(from), rows%buffer))
    call check(clb_buffer_write(rows%buffer, 0_c_int64_t, c_loc(from), c_sizeof(from)))
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    print *, clb_error(ctx)
    error stop 1
  end subroutine
end program
