#!/usr/bin/env python3
"""compare.py - launches that our emulator of AMD's instructions ran, run again by tinygrad's.

usage: compare.py TINYGRAD FOLDER [--launches N] [--seconds S]

TINYGRAD  a checkout of github.com/tinygrad/tinygrad (MIT; test/mockgpu/amd is its emulator, which
          shares no line with ours); commit a9069c177a9d, or one that has the same texts in emu.py
FOLDER    launches, written where AMD_EMULATOR_DUMP named the folder:
            mkdir launches
            AMD_EMULATOR_DUMP=launches AMD_EMULATOR_TARGET=gfx942 \\
              LD_PRELOAD=build/tests/amd/libamd_hip.so \\
              build/tools/clebsch check --device hip:0 --op tensor_product --rows 5 --part 1/8
          Then waves run in order and reciprocals are exact, as in tinygrad's, so all memory must
          agree bit for bit, sums by atomics too.
--launches N  at most so many launches of a kernel of a code object (default 1)
--seconds S   at most so long for one (default 120)

A line a launch: same; differs (in how many words, and where first); or not run there, and why.
The exit status is 1 where one differs.
Needs python 3.11 or newer, and clang for tinygrad's own CPU backend. Not part of the tests.
"""
import collections, ctypes, glob, mmap, os, re, signal, struct, sys, time, types

EM_MACHINE = {0x3F: 'gfx90a', 0x4C: 'gfx942', 0x41: 'gfx1100'}
MAP_NORESERVE = 0x4000  # Linux
LDS_BYTES = (1 << 32) + (1 << 17)  # whatever 32 bits address

# What is wrong in tinygrad's and would hide everything else: its text, ours.
MENDS = [
  # DS reads obey EXEC, and so do DS writes and atomics
  ("'vgpr_a': ctx.rvgpr_dyn(addr_reg, lane), 'offset': offset,",
   "'_active': _lane_active(exec_mask, lane), "
   "'vgpr_a': ctx.rvgpr_dyn(addr_reg, lane), 'offset': offset,"),
  ('idx = mem.index(addr >> addr_shift)\n',
   'idx = mem.index((addr >> addr_shift).valid(active))\n'),
  # an atomic of CDNA 3 gives the old value where sc0 says so
  ("is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc')",
   "is_atomic, glc = 'ATOMIC' in op_name, _iattr(inst, 'glc') or "
   "(_iattr(inst, 'sc0') if 'cdna' in type(inst).__module__ else 0)"),
  # on CDNA a register from 128 up is a register, not the upper half of another
  ("write_hi_half = bits['d'] == 16 and (",
   "write_hi_half = bits['d'] == 16 and ctx.wave_size == 32 and ("),
  ("vsrc1_hi = bits['s0'] == 16 and (",
   "vsrc1_hi = bits['s0'] == 16 and ctx.wave_size == 32 and ("),
  ("  if bits['s0'] == 16:  # src0 >= 384",
   "  if bits['s0'] == 16 and ctx.wave_size == 32:  # src0 >= 384"),
  ("    if bits['s0'] == 16:\n      vsrc1_hi = vsrc1_off",
   "    if bits['s0'] == 16 and ctx.wave_size == 32:\n      vsrc1_hi = vsrc1_off"),
  # stores of any alignment: bytes (buffer 6 is memory again, buffer 7 local memory)
  ('  lds = UOp.param(3, dtypes.uint32, (16384,))\n',
   '  lds = UOp.param(3, dtypes.uint32, (16384,))\n'
   '  bytes = UOp.param(6, dtypes.uint8, (1 << 46,))\n'
   '  lds_bytes = UOp.param(7, dtypes.uint8, (65536,))\n'),
  ('return _mem_store(mem, val[0], val[1], active, 64, data_bits)',
   'return _mem_store_bytes(ctx.bytes, val[0], val[1], active, data_bits)'),
  ('        if data_bits < 32 and is_lds: return [wmem(',
   '        if is_lds and ("WRITE" in op_name or "STORE" in op_name):\n'
   '          def store(a, v, on, bits=32):\n'
   '            at = a.cast(dtypes.uint64)\n'
   '            return UOp.group(*_mem_store_bytes(ctx.lds_bytes, at, v, on, bits))\n'
   '          if data_bits < 32: return [store(val[0], val[1], active, data_bits)]\n'
   '          return _write_val(data_bits, val[1], store, val[0], active, is_mem=True)\n'
   '        if data_bits < 32 and is_lds: return [wmem('),
  # ds_bpermute_b32 takes the lane modulo the wave; the parser drops "%"
  ('  pcode = pcode_dict[op]\n',
   "  pcode = pcode_dict[op].replace('/ 4U % 64U', '/ 4U & 63U')\n"
   "  pcode = pcode.replace('/ 4 % 32', '/ 4 & 31')\n"),
]


class NotRun(Exception):
  pass


# ---- a launch's file and its code object ----

class Launch:
  def __init__(self, path):
    with open(path, 'rb') as f: data = f.read()
    head, body = data.split(b'\n\n', 1)
    self.blocks, self.layout, at = [], [], 0
    for line in head.decode().split('\n'):
      key, *values = line.split()
      if key == 'code': self.code = os.path.join(os.path.dirname(path), values[0])
      elif key == 'kernel': self.kernel = values[0]
      elif key == 'block': self.blocks.append((int(values[0]), int(values[1])))
      elif key == 'argument': self.layout.append((int(values[0]), int(values[1])))
      else: setattr(self, key, int(values[0]))
    def take(n):
      nonlocal at
      at += n
      return body[at - n:at]
    self.arguments = [take(size) for _, size in self.layout]
    self.before = [take(size) for _, size in self.blocks]
    self.after = [take(size) for _, size in self.blocks]
    if at != len(body): sys.exit(f'{path}: {len(body)} bytes behind the head, not {at}')


class Memory:
  """Pages of this process that begin at the same place within a page as the original did."""
  def __init__(self, size, skew=0):
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    self.map = mmap.mmap(-1, (size + skew + 3 * 4096) & ~4095, flags)
    self.base = ctypes.addressof(ctypes.c_char.from_buffer(self.map)) + skew

  def write(self, data, at=0): ctypes.memmove(self.base + at, data, len(data))
  def read(self, size): return ctypes.string_at(self.base, size)


class Code:
  """A code object in memory: its segments, and where each kernel's descriptor is."""
  def __init__(self, path):
    with open(path, 'rb') as f: image = f.read()
    segments, sections, flags = struct.unpack_from('<QQI', image, 32)
    self.target = EM_MACHINE.get(flags & 0xFF, '?')
    _, n_segments, section_size, n_sections = struct.unpack_from('<HHHH', image, 54)
    all_segments = struct.iter_unpack('<IIQQQQQQ', image[segments:segments + 56 * n_segments])
    loads = [s for s in all_segments if s[0] == 1]
    self.memory = Memory(max(s[3] + s[6] for s in loads))
    for _, _, offset, address, _, size, _, _ in loads:
      self.memory.write(image[offset:offset + size], address)
    self.symbols = {}
    end = sections + section_size * n_sections
    section = list(struct.iter_unpack('<IIQQQQIIQQ', image[sections:end]))
    for _, kind, _, _, offset, size, link, *_ in section:
      if kind == 4 and size: raise NotRun('the code object has relocations')
      if kind not in (2, 11): continue
      for i in range(size // 24):
        name, _, _, _, value, _ = struct.unpack_from('<IBBHQQ', image, offset + 24 * i)
        start = section[link][4] + name
        self.symbols[image[start:image.index(b'\0', start)].decode()] = value


# ---- tinygrad's emulator ----

def load_tinygrad(folder):
  os.environ.setdefault('DEV', 'CPU')
  sys.path.insert(0, folder)
  import test.mockgpu.amd  # noqa: F401
  with open(os.path.join(folder, 'test/mockgpu/amd/emu.py')) as f: text = f.read()
  for old, new in MENDS:
    if old not in text: sys.exit(f'compare.py: another tinygrad: emu.py has no "{old.strip()}"')
    text = text.replace(old, new)
  emu = types.ModuleType('test.mockgpu.amd.emu')
  sys.modules[emu.__name__] = emu
  exec(compile(text, 'emu.py', 'exec'), emu.__dict__)
  return emu


class Emulator:
  def __init__(self, folder):
    self.emu = load_tinygrad(folder)
    self.programs = {}  # compiled instructions by address

  def compiled(self, pc, arch):
    if pc not in self.programs:
      word = ctypes.c_uint32.from_address(pc).value
      if self.is_cache_instruction(word, arch): self.programs[pc] = None
      else:
        (program, runtime), instruction = self.emu._decode_at(pc, arch)
        barrier = getattr(instruction, 'op', None) in self.emu._BARRIER_OPS
        self.programs[pc] = runtime.fxn, program.arg.globals, barrier
    return self.programs[pc]

  @staticmethod
  def is_cache_instruction(word, arch):
    """buffer_gl0_inv, buffer_gl1_inv, buffer_wbl2, buffer_inv, which its decoder does not know."""
    if arch == 'rdna3': return word & 0xFFFFFF00 in (0xE0AC0000, 0xE0B00000)
    return word & 0xFFFC0000 in (0xE0A00000, 0xE0A40000, 0xE0F80000, 0xE0FC0000)

  def run(self, launch, code, arguments):
    descriptor = code.memory.base + code.symbols[launch.kernel + '.kd']
    d = ctypes.string_at(descriptor, 64)
    lds_bytes, private, _ = struct.unpack_from('<III', d, 0)
    entry, = struct.unpack_from('<q', d, 16)
    _, _, rsrc2 = struct.unpack_from('<III', d, 44)
    properties, preload = struct.unpack_from('<HH', d, 56)
    arch = 'rdna3' if code.target.startswith('gfx11') else 'cdna'
    user = []
    for bit, words in ((1, 4), (2, 2), (4, 2), (8, 2), (16, 2), (32, 2), (64, 1)):
      if properties & bit:
        user += [arguments & 0xFFFFFFFF, arguments >> 32] if bit == 8 else [0] * words
    if preload & 0x7F: raise NotRun('arguments in registers')
    if properties & 1 and private: raise NotRun('scratch memory through a buffer')
    user += [0] * ((rsrc2 >> 1 & 31) - len(user))
    wave = self.emu._wave_size(arch)
    n_waves = (launch.threads + wave - 1) // wave
    lds = Memory(LDS_BYTES)
    scratch = [Memory(private * wave + 4096) for _ in range(n_waves)]
    for group in range(launch.groups):
      lds.write(b'\xee' * (lds_bytes + launch.local))
      waves = []
      for w in range(n_waves):
        st = self.emu._init_wave(descriptor + entry, w * wave, launch.threads, launch.threads, 1, 1,
                                 arguments, rsrc2, private, arch, group, 0, 0, user, wave)
        s, v, a = (b._buf.va_addr for b in (st.sgpr_buf, st.vgpr_buf, st.accvgpr_buf))
        addresses = s, v, 0, lds.base, scratch[w].base, a, 0, lds.base
        waves.append((st, [ctypes.c_uint64(a) for a in addresses]))
      self.run_group(waves, arch)

  def run_group(self, waves, arch):
    """Waves in order, each until it waits; all that wait go on together."""
    running = waves
    while running:
      waiting = []
      for st, buffers in running:
        s = st._sgpr_mv
        while True:
          pc = s[256] | s[257] << 32
          if pc == self.emu.ENDPGM_PC: break
          program = self.programs[pc] if pc in self.programs else self.compiled(pc, arch)
          if program is None: s[256], s[257] = (pc + 8) & 0xFFFFFFFF, (pc + 8) >> 32
          else:
            program[0](*[buffers[i] for i in program[1]])
            if program[2]:
              waiting.append((st, buffers))
              break
      running = waiting


# ---- comparison ----

def replay(emulator, launch, codes):
  """Words that differ, and the first of them."""
  if launch.code not in codes: codes[launch.code] = Code(launch.code)
  code = codes[launch.code]
  memory = []
  for (address, size), data in zip(launch.blocks, launch.before):
    memory.append(Memory(size, address & 4095))
    memory[-1].write(data)
  end = max((offset + size for offset, size in launch.layout), default=0)
  arguments = Memory(end + 256)
  for (offset, size), data in zip(launch.layout, launch.arguments):
    value = int.from_bytes(data, 'little')
    for (address, block), m in zip(launch.blocks, memory):
      if size == 8 and address <= value < address + block:
        data = struct.pack('<Q', m.base + value - address)
    arguments.write(data, offset)
  emulator.run(launch, code, arguments.base)
  differing, first = 0, ''
  for b, ((_, size), want, m) in enumerate(zip(launch.blocks, launch.after, memory)):
    got = m.read(size)
    for at in range(0, size, 4) if got != want else ():
      ours, theirs = (memory[at:at + 4][::-1].hex() for memory in (want, got))
      if ours != theirs:
        differing += 1
        first = first or f'block {b} of {size} bytes, byte {at}: {ours} here, {theirs} there'
  return differing, first


def work(folder, paths, out, seconds):
  """In a child: a line a launch."""
  def late(*_): raise NotRun(f'not done in {seconds} s')
  signal.signal(signal.SIGALRM, late)
  emulator, codes = Emulator(folder), {}
  for path in paths:
    started = time.time()
    signal.alarm(seconds)
    try:
      launch = Launch(path)
      differing, first = replay(emulator, launch, codes)
      text = f'differs in {differing} words, first {first}' if differing else 'same'
    except NotRun as e: text = f'not run: {e}'
    except Exception as e:
      text = f'not run: {type(e).__name__}: {e}'.replace('\n', ' ').replace('\t', ' ')[:300]
    signal.alarm(0)
    os.write(out, f'{text}\t{time.time() - started:.1f}\n'.encode())
  os._exit(0)


def results(folder, paths, seconds):
  """What became of each launch, in order; behind one that kills its child another child goes on."""
  at = 0
  while at < len(paths):
    into, out = os.pipe()
    child = os.fork()
    if child == 0:
      os.close(into)
      work(folder, paths[at:], out, seconds)
    os.close(out)
    with os.fdopen(into) as lines:
      for line in lines:
        yield paths[at], *line.rstrip('\n').split('\t')
        at += 1
    _, status = os.waitpid(child, 0)
    if at < len(paths):
      yield paths[at], f'not run: it ended its process ({status})', '0'
      at += 1


def choose(folder, most):
  chosen, seen = [], collections.Counter()
  for path in sorted(glob.glob(os.path.join(folder, '*.launch'))):
    launch = Launch(path)
    seen[launch.code, launch.kernel] += 1
    if seen[launch.code, launch.kernel] <= most: chosen.append(path)
  return chosen


def main(arguments):
  options = {'--launches': 1, '--seconds': 120}
  while len(arguments) > 3 and arguments[-2] in options:
    options[arguments[-2]] = int(arguments[-1])
    arguments = arguments[:-2]
  if len(arguments) != 3: sys.exit(__doc__)
  counts = collections.Counter()
  paths = choose(arguments[2], options['--launches'])
  if not paths: sys.exit(f'compare.py: {arguments[2]} holds no launches')
  for path, text, seconds in results(arguments[1], paths, options['--seconds']):
    kernel = Launch(path).kernel
    print(f'{os.path.basename(path)} {kernel}: {text} ({seconds} s)', flush=True)
    counts[re.split('[ :]', text)[0]] += 1
  print(f'{len(paths)} launches: {counts["same"]} the same, {counts["differs"]} differ, '
        f'{counts["not"]} not run there')
  return 1 if counts['differs'] else 0


if __name__ == '__main__': sys.exit(main(sys.argv))
