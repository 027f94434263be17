/*
 * Pools of memory: each device has one, and no other can be made. Memory from it is that of
 * cudaMallocAsync, and what is freed goes back at once: nothing is held in reserve. A part of
 * cuda_runtime_api.h, which includes it.
 */
#ifndef CATENARY_CUDA_COMPAT_CUDA_POOLS_COMPAT_H_
#define CATENARY_CUDA_COMPAT_CUDA_POOLS_COMPAT_H_

/* A handle stands for the device, counted from 1. */
static inline cudaError_t catenaryDeviceOfPool(int* device, cudaMemPool_t pool) {
  catDeviceProperties known;
  const size_t number = (size_t)pool;
  if (number == 0 || number > 0x7fffffff) return catenaryFail(cudaErrorInvalidValue);
  *device = (int)(number - 1);
  return catGetDeviceProperties(&known, *device) == catSuccess
             ? cudaSuccess
             : catenaryFail(cudaErrorInvalidValue);
}

CATENARY_CUDART_CALL cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  catDeviceProperties known;
  const cudaError_t error = catenaryToCuda(catGetDeviceProperties(&known, device));
  if (error != cudaSuccess) return error;
  if (pool == NULL) return catenaryFail(cudaErrorInvalidValue);
  *pool = (cudaMemPool_t)((size_t)device + 1);
  return cudaSuccess;
}
CATENARY_CUDART_CALL cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return cudaDeviceGetDefaultMemPool(pool, device);
}
/* It can only become what it is. */
CATENARY_CUDART_CALL cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  cudaMemPool_t own;
  const cudaError_t error = cudaDeviceGetDefaultMemPool(&own, device);
  if (error != cudaSuccess) return error;
  return pool == own ? cudaSuccess : catenaryFail(cudaErrorInvalidValue);
}
CATENARY_CUDART_CALL cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes) {
  int device;
  (void)bytes;
  return catenaryDeviceOfPool(&device, pool);
}

/* They allow a pool to hold memory back or to use it again, and do not oblige it to. How much is
 * in use is not counted by device. */
static inline cudaError_t catenaryPlaceInPool(int* device, int* place, cudaMemPool_t pool,
                                              enum cudaMemPoolAttr attr) {
  if (attr >= cudaMemPoolAttrReservedMemCurrent && attr <= cudaMemPoolAttrUsedMemHigh) {
    return catenaryFail(cudaErrorNotSupported);
  }
  if (attr < cudaMemPoolReuseFollowEventDependencies || attr > cudaMemPoolAttrReleaseThreshold) {
    return catenaryFail(cudaErrorInvalidValue);
  }
  *place = catenaryNotePool + (int)attr - (int)cudaMemPoolReuseFollowEventDependencies;
  return catenaryDeviceOfPool(device, pool);
}
/* The threshold is a number of 64 bits, the others are ints. */
CATENARY_CUDART_CALL cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool,
                                                         enum cudaMemPoolAttr attr, void* value) {
  int device = 0, place = 0;
  const cudaError_t error = catenaryPlaceInPool(&device, &place, pool, attr);
  if (error != cudaSuccess) return error;
  if (value == NULL) return catenaryFail(cudaErrorInvalidValue);
  return catenaryToCuda(catDeviceSetNote(device, place,
                                         attr == cudaMemPoolAttrReleaseThreshold
                                             ? *(const unsigned long long*)value
                                             : *(const int*)value != 0));
}
CATENARY_CUDART_CALL cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool,
                                                         enum cudaMemPoolAttr attr, void* value) {
  int device = 0, place = 0;
  unsigned long long note;
  cudaError_t error = catenaryPlaceInPool(&device, &place, pool, attr);
  if (error != cudaSuccess) return error;
  if (value == NULL) return catenaryFail(cudaErrorInvalidValue);
  error = catenaryToCuda(catDeviceGetNote(&note, device, place));
  if (error != cudaSuccess) return error;
  if (attr == cudaMemPoolAttrReleaseThreshold) {
    *(unsigned long long*)value = note;
  } else {
    *(int*)value = (int)note;
  }
  return cudaSuccess;
}

CATENARY_CUDART_CALL cudaError_t cudaMallocFromPoolAsync(void** memory, size_t bytes,
                                                         cudaMemPool_t pool, cudaStream_t stream) {
  int device, current;
  cudaError_t error = catenaryDeviceOfPool(&device, pool);
  (void)stream;
  if (error == cudaSuccess) error = cudaGetDevice(&current);
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error != cudaSuccess) return error;
  error = cudaMalloc(memory, bytes);
  (void)cudaSetDevice(current);
  return error;
}

#endif /* CATENARY_CUDA_COMPAT_CUDA_POOLS_COMPAT_H_ */
