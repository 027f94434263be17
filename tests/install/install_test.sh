#!/usr/bin/env bash
# Installs into an empty prefix, moves it, and builds the outside project against what lies there, by
# find_package and by pkg-config.
# usage: install_test.sh <build directory> <cmake> <library directory> <with tools: yes or no> <with MPI: 1 or 0>
set -euo pipefail
build=$1 cmake=$2 libdir=$3 with_tools=$4 with_mpi=$5
outside=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/outside
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

"$cmake" --install "$build" --prefix "$scratch/first" >"$scratch/install.log"
mv "$scratch/first" "$scratch/prefix"
prefix=$scratch/prefix

for file in include/nccl.h include/catenary/device.h include/catenary/collectives.h include/cuda_compat/cuda_runtime.h \
  include/cuda_compat/cuda_fp16.h include/cuda_compat/nvtx3/nvToolsExt.h \
  "$libdir/libnccl.so" "$libdir/libnccl.so.2"; do
  [[ -e $prefix/$file ]] || { echo "not installed: $file"; exit 1; }
done
[[ $(readlink "$prefix/$libdir/libnccl.so") == libnccl.so.2* ]]
if unexpected=$(find "$prefix" -name '*.a' -o -path '*gtest*' | grep .); then
  echo "installed, but nobody's business: $unexpected"
  exit 1
fi

run() {
  "$1/program"
  "$1/opaque"
  # Found where it was installed, and not by luck in the build directory.
  local used
  used=$(ldd "$1/program" | awk '$1 == "libnccl.so.2" { print $3 }')
  [[ $(realpath "$used") == "$(realpath "$prefix/$libdir/libnccl.so.2")" ]]
}

echo "== find_package"
"$cmake" -S "$outside" -B "$scratch/cmake" -DCMAKE_PREFIX_PATH="$prefix" >"$scratch/configure.log"
"$cmake" --build "$scratch/cmake"
run "$scratch/cmake"

echo "== pkg-config"
mkdir "$scratch/make"
PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig make -C "$outside" OUT="$scratch/make"
run "$scratch/make"

echo "== a build that wants an installation of CUDA"
cuda=$prefix/$libdir/catenary/cuda
mkdir "$scratch/cuda"
version=$(PKG_CONFIG_PATH=$prefix/$libdir/pkgconfig pkg-config --variable=nccl_version catenary)
flags=(-I"$cuda/include" -I"$prefix/include" -L"$cuda/lib64" -L"$prefix/$libdir"
  "-Wl,-rpath,$cuda/lib64" "-Wl,-rpath,$prefix/$libdir" -lnccl -lcudart -lcuda)
cc "$outside/program.c" -o "$scratch/cuda/program" -DFOUND_NCCL_VERSION="\"$version\"" "${flags[@]}"
g++ "$outside/opaque.cc" -o "$scratch/cuda/opaque" "${flags[@]}"
run "$scratch/cuda"
# As configure scripts look for a library: is there such a symbol, and does it work?
printf 'int cudaFree(void*), cuInit(unsigned);\nint main(void) { return cudaFree(0) + cuInit(0); }\n' \
  >"$scratch/look.c"
cc "$scratch/look.c" -o "$scratch/look" -L"$cuda/lib64" -Wl,-rpath,"$cuda/lib64" \
  -Wl,-rpath-link,"$prefix/$libdir" -lcudart -lcuda
"$scratch/look"
# Whatever the headers have is in the libraries.
for library in cudart cuda; do
  mark=CATENARY_${library^^}_CALL
  diff <(cat "$cuda"/include/cuda*.h | tr '\n' ' ' | grep -oE "$mark [a-zA-Z0-9_* ]*\(" |
    grep -oE 'cu[a-zA-Z0-9]+\($' | tr -d '(' | sort -u) \
    <(nm -D --defined-only "$cuda/lib64/lib$library.so" | awk '$2 == "T" { print $3 }' | sort -u)
done

# And the driver's are found by their names.
cat >"$scratch/names.c" <<'TEXT'
#include <cuda.h>
int main(void) {
  char name[100];
  void* call;
  while (scanf("%99s", name) == 1)
    if (cuGetProcAddress(name, &call, 12000, 0, NULL) != CUDA_SUCCESS) return puts(name) != 0;
  return 0;
}
TEXT
cc "$scratch/names.c" -o "$scratch/names" "${flags[@]}"
nm -D --defined-only "$cuda/lib64/libcuda.so" | awk '$2 == "T" { print $3 }' | "$scratch/names"

if [[ $with_tools == yes ]]; then
  echo "== an installed tool"
  tool=$prefix/bin/all_reduce_perf
  [[ $(realpath "$(ldd "$tool" | awk '$1 == "libnccl.so.2" { print $3 }')") == \
    "$(realpath "$prefix/$libdir/libnccl.so.2")" ]]
  "$tool" --procs 2 -b 8 -e 8 -n 2 >"$scratch/table"
  grep -q 'Out of bounds values : 0 OK' "$scratch/table"
  if [[ $with_mpi == 1 ]]; then
    # Without mpirun it is one process of one; what counts is that it finds the module.
    OMPI_COMM_WORLD_SIZE=1 OMPI_COMM_WORLD_RANK=0 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
      "$tool" -b 8 -e 8 -n 2 >"$scratch/table"
    grep -q 'Out of bounds values : 0 OK' "$scratch/table"
  fi
fi
