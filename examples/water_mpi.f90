! water_mpi.f90 - energy and forces of a box of water on several processes, by the neighbour list and ghost atoms of our own:
! mpif90 $(pkg-config --variable=fortran clebsch) water_mpi.f90 $(pkg-config --libs clebsch) && mpiexec -n 2 ./a.out MODEL [DEVICE]

! What replaces the force routine of a program.
module clebsch_forces
  use clebsch
  use mpi_f08
  implicit none
  private
  public :: forces_open, forces_compute, forces_move, forces_close, clb_model_species
  type(c_ptr), public, protected :: model = c_null_ptr
  type(c_ptr) :: ctx = c_null_ptr
  integer, allocatable, public :: n_send(:), n_receive(:) ! rows to and from each process

contains

  ! Each process opens the model, on a device of its own: on machines with several GPUs 'cuda:0', 'cuda:1', ...
  subroutine forces_open(device, path, r_max)
    character(*), intent(in) :: device, path
    real(c_double), intent(out) :: r_max
    type(clb_model_info) :: info
    call check(clb_context_create(device, ctx))
    call check(clb_model_open(ctx, path, clb_model_options(), model))
    call check(clb_model_describe(model, info))
    r_max = info%r_max
  end subroutine

  ! Ghosts follow the local atoms in species(:) and x(:, :), those of process 0 first, then those of process 1, ... All indices
  ! count from 0; send(:) are the local atoms that are ghosts elsewhere, in the order of processes and of their ghosts.  energy
  ! is that of the local atoms, f(:, :) are their forces, those that their ghosts felt elsewhere included.
  subroutine forces_compute(n_local, species, x, senders, receivers, send, energy, f)
    integer, intent(in) :: n_local
    integer(c_int32_t), intent(in), target :: species(:), senders(:), receivers(:), send(:)
    real(c_double), intent(in), target :: x(:, :)
    real(c_double), intent(out), target :: energy, f(:, :) ! (3, local atoms and ghosts)
    type(clb_model_exchange), target :: exchange
    type(clb_model_edges) :: edges
    type(clb_model_edge_results) :: results
    integer(c_int32_t), target :: receive(size(species) - n_local)
    real(c_double), target :: from_ghosts(3, size(receive)), returned(3, size(send))
    integer :: i
    receive = [(int(n_local + i - 1, c_int32_t), i=1, size(receive))]
    exchange = clb_model_exchange(n_send=size(send), n_receive=size(receive), send=c_loc(send), receive=c_loc(receive), &
                                  move=c_funloc(forces_move))
    edges = clb_model_edges(n_local=n_local, n_total=size(species), n_edges=size(senders), species=c_loc(species), &
                            positions=c_loc(x), exchange=c_loc(exchange))
    edges%senders%host = c_loc(senders)
    edges%receivers%host = c_loc(receivers)
    results = clb_model_edge_results(energy=c_loc(energy), forces=c_loc(f))
    call check(clb_model_compute_edges(model, edges, results))
    from_ghosts = f(:, n_local + 1:)
    call check(forces_move(c_null_ptr, 1_c_int, 3_c_int64_t, CLB_F64, c_loc(from_ghosts), c_loc(returned)))
    do i = 1, size(send)
      f(:, send(i) + 1) = f(:, send(i) + 1) + returned(:, i)
    end do
  end subroutine

  ! Rows of local atoms to their ghosts; backward, rows of ghosts to their owners.
  function forces_move(user, backward, columns, type, from, to) bind(c) result(status)
    type(c_ptr), value :: user, from, to
    integer(c_int), value :: backward, type
    integer(c_int64_t), value :: columns
    integer(c_int) :: status
    integer, dimension(size(n_send)) :: out, in
    type(MPI_Datatype) :: row
    character(kind=c_char), pointer :: bytes_out(:), bytes_in(:)
    if (c_associated(user)) error stop 'forces_move has no user data'
    out = merge(n_receive, n_send, backward == 1)
    in = merge(n_send, n_receive, backward == 1)
    call c_f_pointer(from, bytes_out, [1])
    call c_f_pointer(to, bytes_in, [1])
    call MPI_Type_contiguous(int(columns), merge(MPI_DOUBLE_PRECISION, MPI_REAL, type == CLB_F64), row)
    call MPI_Type_commit(row)
    call MPI_Alltoallv(bytes_out, out, starts(out), row, bytes_in, in, starts(in), row, MPI_COMM_WORLD)
    call MPI_Type_free(row)
    status = CLB_OK
  end function

  pure function starts(counts)
    integer, intent(in) :: counts(:)
    integer :: starts(size(counts)), i
    starts = [(sum(counts(:i - 1)), i=1, size(counts))]
  end function

  subroutine forces_close()
    call clb_model_destroy(model)
    call clb_context_destroy(ctx)
  end subroutine

  ! A process that fails ends the others, which would wait for its rows.
  subroutine check(status)
    use, intrinsic :: iso_fortran_env, only: error_unit
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    write (error_unit, '(2a)') 'water_mpi: ', clb_error(ctx)
    flush (error_unit)
    call MPI_Abort(MPI_COMM_WORLD, 1)
  end subroutine
end module

program water_mpi
  use clebsch, only: c_double, c_int, c_int32_t, c_int64_t
  use clebsch_forces
  use mpi_f08
  implicit none
  real(c_double), parameter :: spacing = 3.1_c_double ! Angstrom: close to water's density
  integer :: rank, ranks, side, n, n_local, i
  integer, allocatable :: owner(:), local(:), atom_of(:) ! of all atoms; of an atom's owner; of local atoms and ghosts
  integer(c_int32_t), allocatable :: kinds(:), senders(:), receivers(:), send(:)
  real(c_double), allocatable :: all_x(:, :), x(:, :), f(:, :), all_f(:, :)
  real(c_double) :: r_max, energy
  character(4096) :: path
  character(64) :: device

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  call get_command_argument(1, path)
  call get_command_argument(2, device)
  call forces_open(device, path, r_max)
  side = max(2, ceiling(2*r_max/spacing))
  call place()
  call divide()
  call find_edges()
  allocate (f(3, size(atom_of)))
  call forces_compute(n_local, kinds(atom_of), x, senders, receivers, send, energy, f)

  allocate (all_f(3, n), source=0.0_c_double)
  all_f(:, atom_of(:n_local)) = f(:, :n_local)
  call MPI_Allreduce(MPI_IN_PLACE, all_f, size(all_f), MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  call MPI_Allreduce(MPI_IN_PLACE, energy, 1, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD)
  if (rank == 0) then
    print '(a, f20.8)', 'energy', energy
    print '(a, i6, 3f16.8)', ('force', i - 1, all_f(:, i), i=1, n)
  end if
  call forces_close()
  call MPI_Finalize()

contains

  ! A lattice of molecules O H H, each moved a little and turned in one of three ways; the same on all processes.
  subroutine place()
    real(c_double), parameter :: oh(3, 2) = reshape([0.757_c_double, 0.587_c_double, 0.0_c_double, &
                                                     -0.757_c_double, 0.587_c_double, 0.0_c_double], [3, 2])
    integer(c_int64_t) :: random
    integer :: k, d, h, corner(3)
    n = 3*side**3
    allocate (kinds(n), all_x(3, n), owner(n), local(n))
    random = 1
    do k = 0, n/3 - 1
      corner = [mod(k, side), mod(k/side, side), k/side/side]
      do d = 1, 3
        random = mod(random*1664525_c_int64_t + 1013904223_c_int64_t, 4294967296_c_int64_t)
        all_x(d, 3*k + 1) = corner(d)*spacing + 0.2_c_double*(real(random, c_double)/4294967296.0_c_double)
      end do
      do h = 1, 2
        all_x(:, 3*k + 1 + h) = all_x(:, 3*k + 1) + cshift(oh(:, h), -mod(k, 3))
      end do
      kinds(3*k + 1:3*k + 3) = [clb_model_species(model, 8_c_int), clb_model_species(model, 1_c_int), &
                                clb_model_species(model, 1_c_int)]
      owner(3*k + 1:3*k + 3) = k*ranks/(n/3)
    end do
  end subroutine

  ! Local atoms first, then ghosts: all atoms of all processes, and their images, within r_max of a local atom.
  subroutine divide()
    integer :: p, j, a, b, c
    integer, allocatable :: wanted(:)
    real(c_double) :: image(3)
    do p = 0, ranks - 1
      n_local = 0
      do j = 1, n
        if (owner(j) /= p) cycle
        n_local = n_local + 1
        local(j) = n_local - 1
      end do
    end do
    atom_of = pack([(j, j=1, n)], owner == rank)
    n_local = size(atom_of)
    x = all_x(:, atom_of)
    allocate (n_send(ranks), n_receive(ranks), source=0)
    do p = 0, ranks - 1
      do j = 1, n
        if (owner(j) /= p) cycle
        do a = -1, 1
          do b = -1, 1
            do c = -1, 1
              if (p == rank .and. all([a, b, c] == 0)) cycle
              image = all_x(:, j) + side*spacing*[a, b, c]
              if (.not. any(norm2(x(:, :n_local) - spread(image, 2, n_local), 1) < r_max)) cycle
              atom_of = [atom_of, j]
              x = reshape([x, image], [3, size(atom_of)])
              n_receive(p + 1) = n_receive(p + 1) + 1
            end do
          end do
        end do
      end do
    end do
    ! Each process asks the owners of its ghosts for them.
    call MPI_Alltoall(n_receive, 1, MPI_INTEGER, n_send, 1, MPI_INTEGER, MPI_COMM_WORLD)
    wanted = local(atom_of(n_local + 1:))
    allocate (send(sum(n_send)))
    call MPI_Alltoallv(wanted, n_receive, [(sum(n_receive(:p - 1)), p=1, ranks)], MPI_INTEGER, &
                       send, n_send, [(sum(n_send(:p - 1)), p=1, ranks)], MPI_INTEGER, MPI_COMM_WORLD)
  end subroutine

  subroutine find_edges()
    integer :: j, k
    allocate (senders(0), receivers(0))
    do k = 1, n_local
      do j = 1, size(atom_of)
        if (j == k .or. norm2(x(:, j) - x(:, k)) >= r_max) cycle
        senders = [senders, int(j - 1, c_int32_t)]
        receivers = [receivers, int(k - 1, c_int32_t)]
      end do
    end do
  end subroutine
end program
