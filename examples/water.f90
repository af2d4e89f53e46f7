! water.f90 - energy, forces and stress of a box of water, twice: the model finds the neighbours, and by a list of our own:
! gfortran $(pkg-config --variable=fortran clebsch) water.f90 $(pkg-config --libs clebsch) && ./a.out MODEL [DEVICE]
program water
  use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
  use clebsch
  implicit none
  real(c_double), parameter :: spacing = 3.1_c_double ! Angstrom: close to water's density
  type(c_ptr) :: ctx = c_null_ptr, model = c_null_ptr
  type(clb_model_options) :: options
  type(clb_model_info) :: info
  integer(c_int64_t) :: n, n_edges
  integer(c_int32_t), allocatable, target :: species(:), senders(:), receivers(:)
  real(c_double), allocatable, target :: positions(:, :), forces(:, :), vectors(:, :), d_vectors(:, :), edge_forces(:, :)
  real(c_double), target :: cell(3, 3), stress(3, 3), energy, edge_energy
  integer :: side
  character(4096) :: path
  character(64) :: device

  call get_command_argument(1, path)
  call get_command_argument(2, device)
  if (path == '--help') then
    call help(output_unit)
    stop
  end if
  if (path == '' .or. command_argument_count() > 2) then
    call help(error_unit)
    error stop 1
  end if

  call check(clb_context_create(device, ctx))
  call check(clb_model_open(ctx, path, options, model))
  call check(clb_model_describe(model, info))
  side = 2
  do while (side*spacing < 2*info%r_max)
    side = side + 1
  end do
  call place(clb_model_species(model, 8_c_int), clb_model_species(model, 1_c_int))
  call find_edges(info%r_max)
  call by_atoms()
  call by_edges()
  if (maxval(abs(edge_forces - forces)) > 1e-5_c_double*max(1.0_c_double, maxval(abs(forces)))) error stop 'the two ways differ'

  call clb_model_destroy(model)
  call clb_context_destroy(ctx)

contains

  ! A lattice of molecules O H H, each moved a little and turned in one of three ways.
  subroutine place(oxygen, hydrogen)
    integer(c_int), intent(in) :: oxygen, hydrogen
    real(c_double), parameter :: oh(3, 2) = reshape([0.757_c_double, 0.587_c_double, 0.0_c_double, &
                                                     -0.757_c_double, 0.587_c_double, 0.0_c_double], [3, 2])
    integer(c_int64_t) :: random, k, first
    integer :: d, h, corner(3)
    if (oxygen < 0 .or. hydrogen < 0) error stop 'the model does not know H and O'
    n = 3*int(side, c_int64_t)**3
    allocate (species(n), positions(3, n), forces(3, n))
    random = 1
    do k = 0, n/3 - 1
      corner = int([mod(k, int(side, c_int64_t)), mod(k/side, int(side, c_int64_t)), k/side/side])
      first = 3*k + 1
      do d = 1, 3
        random = mod(random*1664525_c_int64_t + 1013904223_c_int64_t, 4294967296_c_int64_t)
        positions(d, first) = corner(d)*spacing + 0.2_c_double*(real(random, c_double)/4294967296.0_c_double)
      end do
      do h = 1, 2
        positions(:, first + h) = positions(:, first) + cshift(oh(:, h), -int(mod(k, 3_c_int64_t)))
      end do
      species(first) = oxygen
      species(first + 1:first + 2) = hydrogen
    end do
    cell = 0
    do d = 1, 3
      cell(d, d) = side*spacing
    end do
  end subroutine

  ! All pairs, each with the nearest image: right where the box is at least twice as wide as the cutoff.  The model counts from 0.
  subroutine find_edges(cutoff)
    real(c_double), intent(in) :: cutoff
    integer(c_int64_t) :: i, j
    real(c_double) :: r(3), box
    allocate (senders(n*(n - 1)), receivers(n*(n - 1)), vectors(3, n*(n - 1)))
    box = side*spacing
    n_edges = 0
    do i = 1, n
      do j = 1, n
        if (i == j) cycle
        r = positions(:, j) - positions(:, i)
        where (r > box/2) r = r - box
        where (r < -box/2) r = r + box
        if (r(1)*r(1) + r(2)*r(2) + r(3)*r(3) >= cutoff*cutoff) cycle
        n_edges = n_edges + 1
        receivers(n_edges) = int(i - 1, c_int32_t)
        senders(n_edges) = int(j - 1, c_int32_t)
        vectors(:, n_edges) = r
      end do
    end do
    allocate (d_vectors(3, n_edges), edge_forces(3, n))
  end subroutine

  subroutine by_atoms()
    type(clb_model_atoms) :: atoms
    type(clb_model_results) :: results
    atoms%n = n
    atoms%species = c_loc(species)
    atoms%positions = c_loc(positions)
    atoms%cell = c_loc(cell)
    atoms%periodic = 1
    results%energy = c_loc(energy)
    results%forces = c_loc(forces)
    results%stress = c_loc(stress)
    call check(clb_model_compute(model, atoms, results))
    call print_row('atoms: energy (eV)', n, [energy])
    call print_rows('atoms: force (eV/Angstrom)', forces)
    call print_rows('atoms: stress (eV/Angstrom^3)', stress)
  end subroutine

  ! A vector points from receiver to sender, and a force is -dE/dposition.
  subroutine by_edges()
    type(clb_model_edges) :: edges
    type(clb_model_edge_results) :: results
    integer(c_int64_t) :: e, i, j
    edges%n_local = n
    edges%n_total = n
    edges%n_edges = n_edges
    edges%species = c_loc(species)
    edges%senders%host = c_loc(senders)
    edges%receivers%host = c_loc(receivers)
    edges%vectors = c_loc(vectors)
    results%energy = c_loc(edge_energy)
    results%d_vectors = c_loc(d_vectors)
    call check(clb_model_compute_edges(model, edges, results))
    edge_forces = 0
    do e = 1, n_edges
      j = senders(e) + 1
      i = receivers(e) + 1
      edge_forces(:, j) = edge_forces(:, j) - d_vectors(:, e)
      edge_forces(:, i) = edge_forces(:, i) + d_vectors(:, e)
    end do
    call print_row('edges: energy (eV)', n_edges, [edge_energy])
    call print_rows('edges: force (eV/Angstrom)', edge_forces)
  end subroutine

  subroutine print_rows(what, x)
    character(*), intent(in) :: what
    real(c_double), intent(in) :: x(:, :)
    integer(c_int64_t) :: i
    do i = 1, size(x, 2)
      call print_row(what, i - 1, x(:, i))
    end do
  end subroutine

  ! In decimal, and all bits.
  subroutine print_row(what, i, x)
    character(*), intent(in) :: what
    integer(c_int64_t), intent(in) :: i
    real(c_double), intent(in) :: x(:)
    character(32) :: number
    integer :: k
    write (*, '(a, 1x, i0)', advance='no') what, i
    do k = 1, size(x)
      write (number, '(f32.8)') x(k)
      write (*, '(1x, a)', advance='no') trim(adjustl(number))
    end do
    write (*, '(*(1x, z16.16))') transfer(x, [0_c_int64_t])
  end subroutine

  subroutine check(status)
    integer(c_int), intent(in) :: status
    if (status == CLB_OK) return
    write (error_unit, '(2a)') 'water: ', clb_error(ctx)
    error stop 1
  end subroutine

  subroutine help(unit)
    integer, intent(in) :: unit
    write (unit, '(a)') 'Usage: water MODEL [DEVICE]', &
      'MODEL knows H and O and was made by `clebsch convert`; Debian''s package cp2k-data brings one to convert:', &
      '  clebsch convert /usr/share/cp2k/NequIP/water.pth water.safetensors', &
      'DEVICE is cuda, hip:1, level_zero, opencl:0:0, cpu, ...; without it, the best one here.'
  end subroutine
end program
