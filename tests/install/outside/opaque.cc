// Needs no CUDA header at all: nccl.h alone is enough for who brings its own notion of a stream.
#include <nccl.h>

#include <cstring>

int main() {
#ifdef CUDART_VERSION
#error "CUDA's headers came along unasked"
#endif
  return std::strcmp(ncclGetErrorString(ncclSuccess), "no error");
}
