/*
 * Simulated devices: memory, streams and events on host memory. Plain C; C11 or C++11 and later.
 *
 * A device has streams, on which work runs in order, and memory that other processes on this
 * machine can be let into. All memory is host memory: any pointer may be read and written by the
 * processor, and copies between any two kinds are the same. The calls behave as CUDA's calls of the
 * same name, and the codes have CUDA's values. include/cuda_compat gives them CUDA's names.
 *
 * Threads: any thread may call anything. Each thread has its own current device, 0 at first.
 * Streams are independent of each other, but for the default stream (NULL): its work waits for all
 * earlier work of the device's other streams, and theirs for its, unless they were made
 * catStreamNonBlocking.
 *
 * Calls that take a stream return at once. A call that waits (Synchronize, Memcpy, Memset, Free,
 * DeviceReset) makes the pending work advance itself. After fork(), a child of a process that has
 * used the library gets errors from all calls; exec, or fork before the first call.
 */
#ifndef CATENARY_DEVICE_H_
#define CATENARY_DEVICE_H_

#include <stddef.h>

#if defined(__GNUC__)
#define CATENARY_API __attribute__((visibility("default")))
#else
#define CATENARY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum catError {
  catSuccess = 0,
  catErrorInvalidValue = 1,
  catErrorMemoryAllocation = 2,
  catErrorInitializationError = 3,
  catErrorNoDevice = 100,
  catErrorInvalidDevice = 101,
  catErrorOperatingSystem = 304,
  catErrorInvalidResourceHandle = 400,
  catErrorNotReady = 600,
  catErrorNotPermitted = 800,
  catErrorNotSupported = 801,
  catErrorUnknown = 999
} catError_t;

/* The same opaque types as cudaStream_t and cudaEvent_t. */
typedef struct CUstream_st* catStream_t;
typedef struct CUevent_st* catEvent_t;

typedef void (*catHostFn_t)(void* userData);

#define catStreamDefault 0x00u     /* ordered with the default stream */
#define catStreamNonBlocking 0x01u /* independent of the default stream */

#define catEventDefault 0x00u
#define catEventBlockingSync 0x01u /* accepted; every wait first spins, then sleeps */
#define catEventDisableTiming 0x02u

typedef struct catDeviceProperties {
  char name[256];
  size_t totalGlobalMem; /* bytes of memory this process may use */
  int pciDomainID;       /* made up, and different for each device of a machine */
  int pciBusID;
  int pciDeviceID;
  int multiProcessorCount; /* cores this process may use */
} catDeviceProperties;

typedef enum catMemoryType {
  catMemoryTypeUnregistered = 0, /* not from this library */
  catMemoryTypeHost = 1,         /* catMallocHost */
  catMemoryTypeDevice = 2        /* catMalloc, ncclMemAlloc */
} catMemoryType;

typedef struct catPointerAttributes {
  catMemoryType type;
  int device;
} catPointerAttributes;

/* ---- Errors, of the calling thread. ---- */

/* The last error of this thread, and forgets it. catErrorNotReady is an answer and never kept. */
CATENARY_API catError_t catGetLastError(void);
/* The same, without forgetting. */
CATENARY_API catError_t catPeekAtLastError(void);
/* Makes `error` the last one of this thread and returns it; for layers on top of this one. */
CATENARY_API catError_t catSetLastError(catError_t error);
/* What the code means, and what it is called. */
CATENARY_API const char* catGetErrorString(catError_t error);
CATENARY_API const char* catGetErrorName(catError_t error);
/* The whole story of the last call of this thread that failed; "" before the first. */
CATENARY_API const char* catGetLastErrorMessage(void);

/* ---- Devices. ---- */

/* CATENARY_DEVICES, or else the number of usable cores. */
CATENARY_API catError_t catGetDeviceCount(int* count);
/* Makes a device the current one of this thread. Unless CATENARY_DEVICES is set, any ordinal below
 * 1024 is good, so that there may be more ranks than cores. */
CATENARY_API catError_t catSetDevice(int device);
CATENARY_API catError_t catGetDevice(int* device);
CATENARY_API catError_t catGetDeviceProperties(catDeviceProperties* properties, int device);
/* Waits for all work of the current device. */
CATENARY_API catError_t catDeviceSynchronize(void);
/* The same, and then destroys its streams, frees its memory and forgets its notes: no other thread
 * may be using them. */
CATENARY_API catError_t catDeviceReset(void);
/* Notes of a device, by their place below CATENARY_DEVICE_NOTES, 0 at first; and one of the calling
 * thread. For layers on top of this one, which alone know what they mean. */
#define CATENARY_DEVICE_NOTES 16
CATENARY_API catError_t catDeviceSetNote(int device, int place, unsigned long long value);
CATENARY_API catError_t catDeviceGetNote(unsigned long long* value, int device, int place);
/* Puts `*value` in the place of the thread's note, and the note into `*value`. */
CATENARY_API catError_t catThreadExchangeNote(unsigned long long* value);

/* ---- Streams. ---- */

CATENARY_API catError_t catStreamCreate(catStream_t* stream);
CATENARY_API catError_t catStreamCreateWithFlags(catStream_t* stream, unsigned int flags);
/* Returns at once; what was enqueued is still done. */
CATENARY_API catError_t catStreamDestroy(catStream_t stream);
CATENARY_API catError_t catStreamSynchronize(catStream_t stream);
/* catSuccess if all is done, catErrorNotReady if not. */
CATENARY_API catError_t catStreamQuery(catStream_t stream);
/* What is enqueued from here on waits for the event; on any device. `flags` is 0. */
CATENARY_API catError_t catStreamWaitEvent(catStream_t stream, catEvent_t event,
                                           unsigned int flags);
CATENARY_API catError_t catStreamGetFlags(catStream_t stream, unsigned int* flags);
CATENARY_API catError_t catStreamGetDevice(catStream_t stream, int* device);
/* A number that no other stream of this process has or had. */
CATENARY_API catError_t catStreamGetId(catStream_t stream, unsigned long long* id);
/* Calls fn(userData) on a thread of the library when the work before it is done. It must not wait
 * for work of its own stream. */
CATENARY_API catError_t catLaunchHostFunc(catStream_t stream, catHostFn_t fn, void* userData);

/* ---- Events. ---- */

CATENARY_API catError_t catEventCreate(catEvent_t* event);
CATENARY_API catError_t catEventCreateWithFlags(catEvent_t* event, unsigned int flags);
CATENARY_API catError_t catEventDestroy(catEvent_t event);
/* The event now stands for the work enqueued so far. It may be recorded again at any time. */
CATENARY_API catError_t catEventRecord(catEvent_t event, catStream_t stream);
CATENARY_API catError_t catEventQuery(catEvent_t event);
CATENARY_API catError_t catEventSynchronize(catEvent_t event);
CATENARY_API catError_t catEventElapsedTime(float* ms, catEvent_t start, catEvent_t end);

/* ---- Memory. ---- */

/* Memory that peers on this machine can map; aligned to at least 256 bytes. NULL for 0 bytes. */
CATENARY_API catError_t catMalloc(void** memory, size_t bytes);
/* Waits for the work of the memory's device, then frees. NULL is fine. */
CATENARY_API catError_t catFree(void* memory);
CATENARY_API catError_t catMallocHost(void** memory, size_t bytes);
CATENARY_API catError_t catFreeHost(void* memory);
/* Work of the default stream, and waits for it. */
CATENARY_API catError_t catMemcpy(void* to, const void* from, size_t bytes);
CATENARY_API catError_t catMemset(void* to, int value, size_t bytes);
/* In the order of a stream. The memory must stay valid until that is done. */
CATENARY_API catError_t catMemcpyAsync(void* to, const void* from, size_t bytes,
                                       catStream_t stream);
CATENARY_API catError_t catMemsetAsync(void* to, int value, size_t bytes, catStream_t stream);
/* The same of `height` rows of `width` bytes, which lie a pitch of at least `width` apart. */
CATENARY_API catError_t catMemcpy2D(void* to, size_t to_pitch, const void* from, size_t from_pitch,
                                    size_t width, size_t height);
CATENARY_API catError_t catMemset2D(void* to, size_t pitch, int value, size_t width, size_t height);
CATENARY_API catError_t catMemcpy2DAsync(void* to, size_t to_pitch, const void* from,
                                         size_t from_pitch, size_t width, size_t height,
                                         catStream_t stream);
CATENARY_API catError_t catMemset2DAsync(void* to, size_t pitch, int value, size_t width,
                                         size_t height, catStream_t stream);
CATENARY_API catError_t catMemGetInfo(size_t* free_bytes, size_t* total_bytes);
CATENARY_API catError_t catPointerGetAttributes(catPointerAttributes* attributes,
                                                const void* pointer);

#ifdef __cplusplus
}
#endif

#endif /* CATENARY_DEVICE_H_ */
