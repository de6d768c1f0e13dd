/* A CUDA driver with no device behind it, for the tests of how a kernel is loaded and launched.

   It keeps what it is given, so that a test can look at what a real driver would have got:
   fake_map holds the last tensor descriptor, fake_launch the last launch, fake_values the kernel's parameters, as many bytes of each
   as fake_sizes says. Memory is the host's. The two devices are called Fake 0 and Fake 1. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef int status;

typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
  void *attributes;
  unsigned attribute_count;
} launch_config;

struct {
  unsigned grid[3], block[3], shared, count;
  uint64_t stream, function, context;
} fake_launch;

unsigned fake_sizes[16];
uint8_t fake_values[16][8];
int fake_threads = 1024;
int fake_shared = 232448;
int fake_capturing = 0;
int fake_failure = 0;
int fake_launch_failure = 0;
int fake_retained = 0;
struct {
  unsigned count, replaced, rank, boxes[5];
  uint64_t address, sizes[5], strides[4];
} fake_map;
int fake_live = 0;

static __thread uintptr_t current = 0;

status cuInit(unsigned flags) { return 0; }
status cuDriverGetVersion(int *version) { *version = 13000; return 0; }
status cuDeviceGetCount(int *count) { *count = 2; return 0; }
status cuDeviceGet(int *device, int index) {
  *device = index;
  return index < 0 || index > 1 ? 101 : 0;
}
status cuDeviceGetName(char *name, int size, int device) {
  strncpy(name, device ? "Fake 1" : "Fake 0", size);
  return 0;
}
status cuDeviceGetAttribute(int *value, int attribute, int device) {
  switch (attribute) {
  case 1: *value = 1024; break;
  case 10: *value = 32; break;
  case 12: *value = 65536; break;
  case 13: *value = 1980000; break;
  case 16: *value = 132; break;
  case 36: *value = 3201000; break;
  case 37: *value = 6144; break;
  case 38: *value = 62914560; break;
  case 39: *value = 2048; break;
  case 75: *value = 9; break;
  case 76: *value = 0; break;
  case 81: *value = 233472; break;
  case 82: *value = 65536; break;
  case 97: *value = fake_shared; break;
  default: return 1;
  }
  return 0;
}
status cuGetErrorString(int code, const char **text) {
  *text = "the fake driver's error";
  return 0;
}

status cuCtxGetCurrent(void **context) { *context = (void *)current; return 0; }
status cuCtxSetCurrent(void *context) { current = (uintptr_t)context; return 0; }
status cuCtxGetDevice(int *device) {
  *device = current ? (int)current - 1000 : 0;
  return current ? 0 : 201;
}
status cuCtxGetLimit(size_t *value, int limit) { *value = 0; return 0; }
status cuCtxSetLimit(int limit, size_t value) { return 0; }
status cuDevicePrimaryCtxRetain(void **context, int device) {
  fake_retained++;
  *context = (void *)(uintptr_t)(1000 + device);
  return 0;
}

status cuModuleLoadData(void **module, const void *image) {
  *module = (void *)(uintptr_t)77;
  return fake_failure;
}
status cuModuleUnload(void *module) { return 0; }
status cuModuleGetFunction(void **function, void *module, const char *name) {
  *function = (void *)(uintptr_t)4711;
  return 0;
}
status cuFuncGetAttribute(int *value, int attribute, void *function) {
  switch (attribute) {
  case 0: *value = fake_threads; break;
  case 3: *value = 8; break;
  case 4: *value = 40; break;
  default: *value = 0;
  }
  return 0;
}
status cuFuncSetAttribute(void *function, int attribute, int value) { return 0; }
status cuFuncSetCacheConfig(void *function, int config) { return 0; }
status cuPointerGetAttribute(void *value, int attribute, uint64_t pointer) {
  *(uint64_t *)value = pointer;
  return 0;
}

status cuLaunchKernelEx(const launch_config *config, void *function, void **values, void **extra) {
  if (!current)
    return 201; /* CUDA_ERROR_INVALID_CONTEXT */
  if (fake_launch_failure)
    return fake_launch_failure;
  memcpy(fake_launch.grid, config->grid, sizeof fake_launch.grid);
  memcpy(fake_launch.block, config->block, sizeof fake_launch.block);
  fake_launch.shared = config->shared;
  fake_launch.stream = (uint64_t)config->stream;
  fake_launch.function = (uint64_t)function;
  fake_launch.context = current;
  fake_launch.count++;
  for (int i = 0; i < 16 && fake_sizes[i]; i++)
    memcpy(fake_values[i], values[i], fake_sizes[i]);
  return 0;
}

status cuTensorMapEncodeTiled(
  uint64_t *map, int type, unsigned rank, void *address, const uint64_t *sizes,
  const uint64_t *strides, const unsigned *boxes, const unsigned *steps, int interleave,
  int swizzle, int promotion, int fill
) {
  fake_map.count++;
  fake_map.rank = rank;
  fake_map.address = (uint64_t)address;
  memcpy(fake_map.sizes, sizes, rank * 8);
  memcpy(fake_map.strides, strides, (rank - 1) * 8);
  memcpy(fake_map.boxes, boxes, rank * 4);
  *map = (uint64_t)address;
  return fake_failure;
}

status cuTensorMapReplaceAddress(uint64_t *map, void *address) {
  fake_map.replaced++;
  *map = (uint64_t)address;
  return fake_failure;
}

status cuMemAlloc_v2(uint64_t *pointer, size_t size) {
  fake_live++;
  *pointer = (uint64_t)malloc(size);
  return 0;
}
status cuMemFree_v2(uint64_t pointer) { fake_live--; free((void *)pointer); return 0; }
status cuMemAllocAsync(uint64_t *pointer, size_t size, void *stream) {
  return cuMemAlloc_v2(pointer, size);
}
status cuMemFreeAsync(uint64_t pointer, void *stream) { return cuMemFree_v2(pointer); }
status cuMemsetD8Async(uint64_t pointer, unsigned char value, size_t size, void *stream) {
  return 0;
}
status cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t size) {
  memcpy((void *)to, from, size);
  return 0;
}
status cuMemcpyDtoH_v2(void *to, uint64_t from, size_t size) {
  memcpy(to, (void *)from, size);
  return 0;
}

status cuEventCreate(void **event, unsigned flags) {
  fake_live++;
  *event = calloc(1, sizeof(double));
  return 0;
}
status cuEventDestroy_v2(void *event) { fake_live--; free(event); return 0; }
status cuEventRecord(void *event, void *stream) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *(double *)event = now.tv_sec * 1e3 + now.tv_nsec * 1e-6;
  return 0;
}
status cuEventSynchronize(void *event) { return 0; }
status cuEventElapsedTime(float *milliseconds, void *start, void *stop) {
  *milliseconds = *(double *)stop - *(double *)start;
  return 0;
}
status cuStreamSynchronize(void *stream) { return 0; }
status cuStreamIsCapturing(void *stream, int *state) {
  *state = fake_capturing == 1;
  return fake_capturing == 2 ? 906 : 0;
}
