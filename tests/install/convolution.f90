! convolution.f90 - the graph convolution from Fortran: all its calls, arguments by name, on three edges: ./convolution [device]
program convolution
  use clebsch
  implicit none
  ! Channels side by side, as in examples/tensor_product.f90: its product T, here of edges 0 -> 1, 2 -> 1, 1 -> 0.
  integer, parameter :: edges = 3, senders = 3, receivers = 2, knots = 4
  integer(c_int32_t), target :: from(edges) = [0, 2, 1], to(edges) = [1, 1, 0], many(9000) = 0
  real(c_double), parameter :: scale = 0.5_c_double, first_knot = 1, last_knot = 2.5_c_double
  real(c_double), target :: x(8, senders), y(4, edges), w(8, edges), g(16, receivers), z(16, receivers), &
       r(1, edges), table(8, knots), v(3, edges)
  real(c_double) :: at(knots)
  type(clb_instructions), target :: found
  type(clb_convolution_desc) :: desc
  type(clb_index_list) :: list_from, list_to, list_many
  integer(c_int64_t) :: min_bytes, max_bytes
  type(clb_rows) :: rows_x, rows_y, rows_w, rows_g, rows_z, a, b, c, g_x, g_y, g_w, d_x, d_y, d_w, d_g, rows_r, &
       rows_v, none
  type(c_ptr) :: ctx, op, graph, large, workspace
  character(64) :: device = ''
  integer :: e

  call numbers(size(x), x, 1)
  call numbers(size(y), y, 2)
  call numbers(size(w), w, 3)
  call numbers(size(g), g, 4)
  call get_command_argument(1, device)
  call check(clb_context_create(device, ctx))
  call check(clb_channel_wise(ctx, '2x0e+2x1o', '0e+1o', '0e+1o', CLB_SORTED, found))
  desc%product%irreps_x = c_loc(found%irreps_x)
  desc%product%irreps_y = c_loc(found%irreps_y)
  desc%product%irreps_z = c_loc(found%irreps_z)
  desc%product%instructions = c_loc(found%instructions)
  desc%product%n_instructions = found%n_instructions
  desc%product%layout_x = CLB_IR_MUL
  desc%product%layout_y = CLB_IR_MUL
  desc%product%layout_z = CLB_IR_MUL
  desc%product%storage = CLB_F64
  desc%product%arithmetic = CLB_F64
  desc%product%passes = CLB_PASS_FORWARD + CLB_PASS_BACKWARD + CLB_PASS_DOUBLE_BACKWARD
  desc%scale = scale
  call check(clb_convolution_create(ctx=ctx, desc=desc, op=op))
  list_from%host = c_loc(from)
  list_to%host = c_loc(to)
  call check(clb_graph_create(ctx=ctx, nodes=3_c_int64_t, edges=3_c_int64_t, graph=graph))
  call check(clb_graph_update(graph=graph, n_senders=int(senders, c_int64_t), n_receivers=int(receivers, c_int64_t), &
       n_edges=int(edges, c_int64_t), type=CLB_I32, senders=list_from, receivers=list_to))
  rows_x = sent(size(x), x)
  rows_y = sent(size(y), y)
  rows_w = sent(size(w), w)
  rows_g = sent(size(g), g)
  rows_z = sent(size(z), 0*g)

  call make_workspace(CLB_FORWARD)
  call check(clb_convolution_forward(op=op, graph=graph, x=rows_x, y=rows_y, w=rows_w, z=rows_z, workspace=workspace))
  call clb_buffer_destroy(workspace)
  z = convolved(x, y, w)
  call compare('z', size(z), rows_z, z)

  ! The result is linear in each operand: sums of operand times gradient are all sum g z.
  g_x = sent(size(x), 0*x)
  g_y = sent(size(y), 0*y)
  g_w = sent(size(w), 0*w)
  call make_workspace(CLB_BACKWARD)
  call check(clb_convolution_backward(op=op, graph=graph, x=rows_x, y=rows_y, w=rows_w, g=rows_g, g_x=g_x, g_y=g_y, g_w=g_w, &
       workspace=workspace))
  call clb_buffer_destroy(workspace)
  if (abs(sum(x*got(g_x, 8, senders)) - sum(g*z)) > 1e-12) error stop 'g_x'
  if (abs(sum(y*got(g_y, 4, edges)) - sum(g*z)) > 1e-12) error stop 'g_y'
  if (abs(sum(w*got(g_w, 8, edges)) - sum(g*z)) > 1e-12) error stop 'g_w'

  ! With a = 2 x, b = 3 y, c = 5 w.
  a = sent(size(x), 2*x)
  b = sent(size(y), 3*y)
  c = sent(size(w), 5*w)
  d_x = sent(size(x), 0*x)
  d_y = sent(size(y), 0*y)
  d_w = sent(size(w), 0*w)
  d_g = sent(size(g), 0*g)
  call make_workspace(CLB_DOUBLE_BACKWARD)
  call check(clb_convolution_double_backward(op=op, graph=graph, x=rows_x, y=rows_y, w=rows_w, g=rows_g, a=a, b=b, c=c, &
       d_x=d_x, d_y=d_y, d_w=d_w, d_g=d_g, workspace=workspace))
  call clb_buffer_destroy(workspace)
  call compare('d_x', size(x), d_x, 8*got(g_x, 8, senders))
  call compare('d_y', size(y), d_y, 7*got(g_y, 4, edges))
  call compare('d_w', size(w), d_w, 5*got(g_w, 8, edges))
  call compare('d_g', size(g), d_g, 10*z)

  ! More edges than a small workspace takes at a time.
  list_many%host = c_loc(many)
  call check(clb_graph_create(ctx, 1_c_int64_t, size(many, kind=c_int64_t), large))
  call check(clb_graph_update(large, 1_c_int64_t, 1_c_int64_t, size(many, kind=c_int64_t), CLB_I32, list_many, list_many))
  call check(clb_convolution_workspace(op=op, pass=CLB_BACKWARD, graph=large, min_bytes=min_bytes, max_bytes=max_bytes))
  if (min_bytes <= 0 .or. min_bytes >= max_bytes) error stop 'workspace of many edges'
  call clb_graph_destroy(large)
  call clb_op_destroy(op)

  ! Weights by splines, of constants.
  r(1, :) = [1.2_c_double, 1.75_c_double, 2.3_c_double]
  table = spread(w(:, 2), 2, knots)
  w = spread(w(:, 2), 2, edges)
  desc%product%passes = CLB_PASS_FORWARD
  desc%knots = knots
  desc%first_knot = first_knot
  desc%last_knot = last_knot
  call check(clb_convolution_create(ctx, desc, op))
  rows_r = sent(size(r), r)
  call check(clb_convolution_knots(op=op, r=at))
  if (abs(at(1) - first_knot) + abs(at(knots) - last_knot) > 0 .or. any(at(2:) <= at(:knots - 1))) error stop 'knots'
  call check(clb_convolution_set_table(op=op, values=table))
  call make_workspace(CLB_FORWARD)
  call check(clb_convolution_forward(op, graph, rows_x, rows_y, rows_r, rows_z, workspace))
  call compare('z by splines', size(z), rows_z, convolved(x, y, w))
  call clb_buffer_destroy(workspace)
  call clb_op_destroy(op)

  ! y, and these lengths, by vectors.
  do e = 1, edges
    v(:, e) = r(1, e)*y(2:4, e)/norm2(y(2:4, e))
    y(1, e) = 1
    y(2:4, e) = sqrt(3.0_c_double)*v(:, e)/r(1, e)
  end do
  desc%vectors = 1
  desc%normalization = CLB_COMPONENT
  call check(clb_convolution_create(ctx, desc, op))
  rows_v = sent(size(v), v)
  call check(clb_convolution_set_table(op=op, values=table))
  call make_workspace(CLB_FORWARD)
  call check(clb_convolution_forward(op, graph, rows_x, rows_v, none, rows_z, workspace))
  call compare('z by vectors', size(z), rows_z, convolved(x, y, w))
  call clb_buffer_destroy(workspace)
  call clb_op_destroy(op)

  call destroy([rows_x, rows_y, rows_w, rows_g, rows_z, a, b, c, g_x, g_y, g_w, d_x, d_y, d_w, d_g, rows_r, rows_v])
  call clb_graph_destroy(graph)
  call clb_context_destroy(ctx)
  print '(a)', 'holds'

contains

  pure function message(x, y, w) result(z)
    real(c_double), intent(in) :: x(8), y(4), w(8)
    real(c_double) :: z(16)
    z(1:2) = w(1:2)*x(1:2)*y(1)
    z(3:4) = w(3:4)*matmul(reshape(x(3:8), [2, 3]), y(2:4))/sqrt(3.0_c_double)
    z(5:10) = reshape(spread(w(5:6)*x(1:2), 2, 3)*spread(y(2:4), 1, 2), [6])
    z(11:16) = reshape(spread(w(7:8), 2, 3)*reshape(x(3:8), [2, 3])*y(1), [6])
  end function

  pure function convolved(x, y, w) result(z)
    real(c_double), intent(in) :: x(8, senders), y(4, edges), w(8, edges)
    real(c_double) :: z(16, receivers)
    integer :: e
    z = 0
    do e = 1, edges
      z(:, to(e) + 1) = z(:, to(e) + 1) + scale*message(x(:, from(e) + 1), y(:, e), w(:, e))
    end do
  end function

  pure subroutine numbers(n, values, salt)
    integer, intent(in) :: n, salt
    real(c_double), intent(out) :: values(n)
    integer :: i
    values = [(sin(real(i*i + 7*salt, c_double)), i=1, n)]
  end subroutine

  function sent(n, values) result(rows)
    integer, intent(in) :: n
    real(c_double), intent(in), target :: values(n)
    type(clb_rows) :: rows
    call check(clb_buffer_create(ctx, c_sizeof(values), rows%buffer))
    call check(clb_buffer_write(rows%buffer, 0_c_int64_t, c_loc(values), c_sizeof(values)))
  end function

  function got(rows, columns, n) result(values)
    type(clb_rows), intent(in) :: rows
    integer, intent(in) :: columns, n
    real(c_double), target :: values(columns, n)
    call check(clb_buffer_read(rows%buffer, 0_c_int64_t, c_loc(values), c_sizeof(values)))
  end function

  subroutine compare(name, n, rows, expected)
    character(*), intent(in) :: name
    integer, intent(in) :: n
    type(clb_rows), intent(in) :: rows
    real(c_double), intent(in) :: expected(n)
    if (maxval(abs(reshape(got(rows, n, 1), [n]) - expected)) <= 1e-12) return
    print *, name, ' is', got(rows, n, 1), ', not', expected
    error stop 1
  end subroutine

  ! As large as can be used.
  subroutine make_workspace(pass)
    integer(c_int), intent(in) :: pass
    call check(clb_convolution_workspace(op, pass, graph, min_bytes, max_bytes))
    workspace = c_null_ptr
    if (max_bytes > 0) call check(clb_buffer_create(ctx, max_bytes, workspace))
  end subroutine

  subroutine destroy(rows)
    type(clb_rows), intent(in) :: rows(:)
    type(c_ptr) :: buffer
    integer :: i
    do i = 1, size(rows)
      buffer = rows(i)%buffer
      call clb_buffer_destroy(buffer)
    end do
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    print *, clb_error(ctx)
    error stop 1
  end subroutine
end program
