! fit.f90 - fits a cubic to the exponential with AdamW, the host giving the gradients:
! gfortran $(pkg-config --variable=fortran clebsch) fit.f90 $(pkg-config --libs clebsch) && ./a.out [device]
program fit
  use clebsch
  implicit none
  integer, parameter :: terms = 4, points = 41, steps = 600
  real(c_float), target :: c(terms) = [0.5, -0.5, 0.5, -0.5], g(terms)
  type(clb_optimizer_tensor), target :: tensor(1)
  type(clb_optimizer_group), target :: group(1)
  type(clb_optimizer_desc) :: desc
  type(c_ptr) :: ctx, optimizer
  character(64) :: device = ''
  integer :: step, k

  call get_command_argument(1, device)
  print '(a, f0.6)', 'loss ', loss()
  call check(clb_context_create(device, ctx))
  tensor(1)%rows = terms
  tensor(1)%columns = 1
  call check(clb_buffer_create(ctx, c_sizeof(c), tensor(1)%parameters%buffer))
  call check(clb_buffer_create(ctx, c_sizeof(g), tensor(1)%gradients%buffer))
  call check(clb_buffer_write(tensor(1)%parameters%buffer, 0_c_int64_t, c_loc(c), c_sizeof(c)))
  group(1) = clb_optimizer_group(rule=CLB_ADAMW, lr=0.1_c_double, weight_decay=1e-4_c_double)
  desc%tensors = c_loc(tensor)
  desc%n_tensors = 1
  desc%groups = c_loc(group)
  desc%n_groups = 1
  call check(clb_optimizer_create(ctx, desc, optimizer))
  do step = 0, steps - 1
    group(1)%lr = 0.1_c_double * (1 - step / real(steps, c_double)) ! a schedule: the rate falls to 0
    call check(clb_optimizer_set_group(optimizer, 0, group(1)))
    call check(clb_buffer_read(tensor(1)%parameters%buffer, 0_c_int64_t, c_loc(c), c_sizeof(c)))
    g = real(gradients(), c_float)
    call check(clb_buffer_write(tensor(1)%gradients%buffer, 0_c_int64_t, c_loc(g), c_sizeof(g)))
    call check(clb_optimizer_step(optimizer))
  end do
  call check(clb_buffer_read(tensor(1)%parameters%buffer, 0_c_int64_t, c_loc(c), c_sizeof(c)))
  print '(a, f0.6)', 'loss ', loss()
  print '("c", i0, " ", f0.3)', (k - 1, c(k), k = 1, terms)
  call clb_optimizer_destroy(optimizer)
  call clb_buffer_destroy(tensor(1)%gradients%buffer)
  call clb_buffer_destroy(tensor(1)%parameters%buffer)
  call clb_context_destroy(ctx)

contains

  ! c1 + c2 x + c3 x^2 + c4 x^3 - exp(x) at one of the points in -1 ... 1.
  function apart(i, x) result(d)
    integer, intent(in) :: i
    real(c_double), intent(out) :: x
    real(c_double) :: d
    x = -1 + 2 * (i - 1) / real(points - 1, c_double)
    d = sum(c * [1._c_double, x, x**2, x**3]) - exp(x)
  end function

  function loss() result(mean)
    real(c_double) :: mean, x
    integer :: i
    mean = sum([(apart(i, x)**2, i = 1, points)]) / points
  end function

  function gradients() result(of)
    real(c_double) :: of(terms), x, d
    integer :: i
    of = 0
    do i = 1, points
      d = apart(i, x)
      of = of + 2 * d * [1._c_double, x, x**2, x**3] / points
    end do
  end function

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    print *, clb_error(ctx)
    error stop 1
  end subroutine
end program
