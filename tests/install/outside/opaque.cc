// Needs no CUDA header at all: nccl.h alone is enough for who brings its own notion of a stream.
#include <nccl.h>

#include <cstring>

int main() { return std::strcmp(ncclGetErrorString(ncclSuccess), "no error"); }
