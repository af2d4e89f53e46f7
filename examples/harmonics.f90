! harmonics.f90 - Y of one point:  gfortran $(pkg-config --variable=fortran clebsch) harmonics.f90 $(pkg-config --libs clebsch) && ./a.out
program harmonics
  use clebsch
  implicit none
  integer(c_int), target :: degrees(3) = [0, 1, 2]
  real(c_float), target :: x(3, 1) = reshape([0.3, -0.5, 0.8], [3, 1]), y(9, 1)
  type(clb_spherical_harmonics_desc) :: desc
  type(clb_rows) :: in, out
  type(c_ptr) :: ctx, op
  character(64) :: device = ''

  call get_command_argument(1, device)
  desc%degrees = c_loc(degrees)
  desc%n_degrees = 3
  call check(clb_context_create(device, ctx))
  call check(clb_spherical_harmonics_create(ctx, desc, op))
  call check(clb_buffer_create(ctx, c_sizeof(x), in%buffer))
  call check(clb_buffer_create(ctx, c_sizeof(y), out%buffer))
  call check(clb_buffer_write(in%buffer, 0_c_int64_t, c_loc(x), c_sizeof(x)))
  call check(clb_spherical_harmonics_forward(op, 1_c_int64_t, in, out))
  call check(clb_buffer_read(out%buffer, 0_c_int64_t, c_loc(y), c_sizeof(y)))
  print '(9(f0.5,:,1x))', y
  call clb_buffer_destroy(out%buffer)
  call clb_buffer_destroy(in%buffer)
  call clb_op_destroy(op)
  call clb_context_destroy(ctx)

contains

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    print *, clb_error(ctx)
    error stop 1
  end subroutine
end program
