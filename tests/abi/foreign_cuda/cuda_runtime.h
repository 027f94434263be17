/* Somebody else's CUDA header, as far as nccl.h can tell: it declares the stream, and first. */
#ifndef FOREIGN_CUDA_RUNTIME_H_
#define FOREIGN_CUDA_RUNTIME_H_

typedef struct CUstream_st* cudaStream_t;
#define CUDART_VERSION 12040

#endif
