#!/bin/sh
# builtins.sh CLANG - each file of src/codegen/builtins compiles alone, also what no kernel of a
# test uses, and defines only what simt_builtins.c names.
# shellcheck disable=SC2086
set -eu
clang=$1
cd "$(dirname "$0")/../../src/codegen/builtins"
compile() { "$clang" -fsyntax-only -w "$@"; }
cl="-x cl -cl-std=CL1.2 -Xclang -finclude-default-header"
compile -DL=2 '-DEACH(x)=x, x' '-DLANES=0, 1' vector.c
compile -DL=4 '-DEACH(x)=x, x, x, x' '-DLANES=0, 1, 2, 3' vector.c
compile $cl -target spir64 opencl.cl
compile $cl -target spir64 subgroups.cl
compile $cl -target nvptx64 -Dasm=__asm__ -include opencl.cl ptx.cl
compile -x hip --offload-device-only -nogpulib -nogpuinc --offload-arch=gfx90a hip.hip
compile -x cuda --offload-device-only -nocudalib -nocudainc --offload-arch=sm_80 \
  '-D__device__=__attribute__((device))' '-D__forceinline__=__attribute__((always_inline))' \
  cuda.cuh

python3 embed.py /dev/stdout opencl.cl subgroups.cl ptx.cl cuda.cuh hip.hip |
  sed -n 's/^  {\("[^"]*"\), .*/\1/p' | sort -u | while read -r name; do
  grep -q "$name" ../simt_builtins.c || { echo "builtins.sh: no kernel can use $name"; exit 1; }
done
