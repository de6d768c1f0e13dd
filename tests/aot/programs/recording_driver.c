/* A driver with no device behind it, CUDA's or (with -DHIP) HIP's: it keeps what a launch gave it.

   Its functions have the names that the runtime looks for. A binary is a label in angle brackets, and how many
   bytes each argument has. A test finds the last launch of this thread in `recorded`, and all of them, a line
   each, in the file that NT_RECORDING names. */

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HIP
#define NAME(cuda, hip) hip
#else
#define NAME(cuda, hip) cuda
#endif

#define MOST_ARGUMENTS 64

typedef struct {
  uint64_t launches, grid, block, shared, stream, image, context, early;
  uint8_t arguments[MOST_ARGUMENTS][128];
} recording;

_Thread_local recording recorded;
_Thread_local void *recorded_context;

atomic_int modules_loaded, launches, contexts_retained;
atomic_int fake_major = 9, fake_minor = 0, fake_devices = 2, fake_failure = 0, fake_multiprocessors = 100;
atomic_int descriptors_made, allocations, fills, given_back, fake_capturing;
/* The image that alone can be loaded, by its first bytes; any where it is empty. */
char fake_image[64] = "";

recording *last_recording(void) { return &recorded; }
void set_context(void *context) { recorded_context = context; }

int NAME(cuInit, hipInit)(unsigned flags) { (void)flags; return 0; }
int NAME(cuDeviceGetCount, hipGetDeviceCount)(int *count) { *count = fake_devices; return 0; }
int NAME(cuGetErrorString, hipDrvGetErrorString)(int code, const char **text) {
  *text = "the recording driver's error";
  return code == 0;
}
int NAME(cuCtxGetCurrent, unused_0)(void **context) { *context = recorded_context; return 0; }
int NAME(cuCtxSetCurrent, unused_1)(void *context) { recorded_context = context; return 0; }
int NAME(cuCtxGetDevice, hipGetDevice)(int *device) {
  *device = recorded_context ? (int)((uintptr_t)recorded_context & 0xff) : 0;
  return 0;
}
int NAME(unused_2, hipSetDevice)(int device) {
  recorded_context = (void *)(uintptr_t)(0x1000 + device);
  return 0;
}
int NAME(cuDevicePrimaryCtxRetain, unused_3)(void **context, int device) {
  contexts_retained++;
  *context = (void *)(uintptr_t)(0x1000 + device);
  return 0;
}
int NAME(cuDeviceGetAttribute, unused_4)(int *value, int attribute, int device) {
  (void)device;
  *value = attribute == 75 ? fake_major : attribute == 76 ? fake_minor : fake_multiprocessors;
  return 0;
}
int NAME(cuPointerGetAttribute, unused_5)(void *value, int attribute, uint64_t pointer) {
  (void)attribute;
  /* Memory at addresses past this one is the second device's. */
  *(int *)value = pointer >> 40 == 0xbb;
  return 0;
}
int NAME(cuModuleLoadData, hipModuleLoadData)(void **module, const void *image) {
  if (fake_failure) return fake_failure;
  if (fake_image[0] && memcmp(image, fake_image, strlen(fake_image))) return 209;
  modules_loaded++;
  *module = (void *)(uintptr_t)image;
  return 0;
}
int NAME(cuModuleGetFunction, hipModuleGetFunction)(void **function, void *module, const char *name) {
  (void)name;
  *function = module;
  return 0;
}
int NAME(cuFuncSetAttribute, unused_6)(void *function, int attribute, int value) {
  (void)function; (void)attribute; (void)value;
  return 0;
}
int NAME(cuOccupancyMaxActiveBlocksPerMultiprocessor, unused_7)(int *count, void *function, int threads, size_t shared) {
  (void)function; (void)threads; (void)shared;
  *count = 2;
  return 0;
}
/* A descriptor of this driver says what it was made of: numbers in the order in which they were given. */
int NAME(cuTensorMapEncodeTiled, unused_8)(
    void *map, int dtype, uint32_t rank, void *address, const uint64_t *sizes, const uint64_t *strides,
    const uint32_t *box, const uint32_t *steps, int interleave, int swizzle, int promotion, int fill) {
  (void)promotion;
  uint8_t *at = map;
  memset(map, 0, 128);
  if (((uintptr_t)map & 63) || interleave || fill) return 1;
  for (uint32_t i = 0; i < rank; i++) if (steps[i] != 1) return 1;
  descriptors_made++;
  *at++ = (uint8_t)dtype, *at++ = (uint8_t)swizzle, *at++ = (uint8_t)rank;
  memcpy(at, &address, 8), at += 8;
  memcpy(at, sizes, 8 * rank), at += 8 * rank;
  memcpy(at, strides, 8 * (rank - 1)), at += 8 * (rank - 1);
  memcpy(at, box, 4 * rank);
  return 0;
}
/* Keeps each argument's bytes, and writes them down where a file is asked for. */
static void record_arguments(const char *image, void **arguments) {
  static _Thread_local FILE *file;
  const char *const path = getenv("NT_RECORDING");
  if (path && !file) file = fopen(path, "w");
  const char *end = image[0] == '<' ? strchr(image, '>') + 1 : NULL;
  if (file && end) {
    fprintf(file, "%.*s %llu %llu %llu %llu", (int)(end - image), image, (unsigned long long)recorded.grid,
            (unsigned long long)recorded.block, (unsigned long long)recorded.shared, (unsigned long long)recorded.stream);
  }
  for (int i = 0; end && *end && i < MOST_ARGUMENTS; i++) {
    char *after;
    const unsigned long size = strtoul(end, &after, 10);
    end = after;
    memset(recorded.arguments[i], 0, sizeof recorded.arguments[i]);
    memcpy(recorded.arguments[i], arguments[i], size);
    if (file) fputc(' ', file);
    for (unsigned long k = 0; file && k < size; k++) fprintf(file, "%02x", recorded.arguments[i][k]);
  }
  if (file) fputc('\n', file), fflush(file);
}

int NAME(cuLaunchKernel, hipModuleLaunchKernel)(
    void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
    unsigned shared, void *stream, void **arguments, void **extra) {
  (void)y; (void)z; (void)by; (void)bz; (void)extra;
  launches++;
  recorded.launches++;
  recorded.grid = x;
  recorded.block = bx;
  recorded.shared = shared;
  recorded.stream = (uint64_t)(uintptr_t)stream;
  recorded.image = (uint64_t)(uintptr_t)function;
  recorded.context = (uint64_t)(uintptr_t)recorded_context;
  recorded.early = 0;
  record_arguments(function, arguments);
  return 0;
}

#ifndef HIP
typedef struct {
  int id, padding;
  union {
    char bytes[64];
    int number;
  } value;
} attribute;
typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  const attribute *attributes;
  unsigned count;
} launch_config;

int cuLaunchKernelEx(const launch_config *how, void *function, void **arguments, void **extra) {
  if (how->count != 1 || how->attributes->id != 6) return 1;
  const int result = cuLaunchKernel(function, how->grid[0], 1, 1, how->block[0], 1, 1, how->shared, how->stream, arguments, extra);
  recorded.early = (uint64_t)how->attributes->value.number;
  return result;
}
#endif

/* Streams' memory: addresses one after the other, each 2^32 bytes from the next. */
int NAME(cuStreamIsCapturing, hipStreamIsCapturing)(void *stream, int *status) {
  (void)stream;
  *status = fake_capturing;
  return 0;
}
int NAME(cuStreamGetId, hipStreamGetId)(void *stream, uint64_t *number) {
  *number = (uint64_t)(uintptr_t)stream;
  return 0;
}
int NAME(cuMemAllocAsync, hipMallocAsync)(uint64_t *address, size_t bytes, void *stream) {
  (void)bytes; (void)stream;
  *address = (uint64_t)++allocations << 32;
  return 0;
}
int NAME(cuMemFreeAsync, hipFreeAsync)(uint64_t address, void *stream) {
  (void)address; (void)stream;
  given_back++;
  return 0;
}
int NAME(cuMemsetD8Async, hipMemsetD8Async)(uint64_t address, unsigned char value, size_t bytes, void *stream) {
  (void)address; (void)value; (void)bytes; (void)stream;
  fills++;
  return 0;
}
