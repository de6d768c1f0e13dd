/* An AMD driver with no device behind it, as fake_cuda.c is for NVIDIA's; fewer things are asked
   of it. Built with the headers that Triton brings, so that its structures are the right ones. */

#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime.h>
#include <hip/hip_runtime_api.h>
#undef hipGetDeviceProperties

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct {
  unsigned grid[3], block[3], shared, count;
  uint64_t stream, function, context;
} fake_launch;

unsigned fake_sizes[16];
uint8_t fake_values[16][8];
int fake_live = 0;

static __thread int current = 0;

int fakeProperties(hipDeviceProp_t *found, int device) {
  memset(found, 0, sizeof *found);
  strcpy(found->gcnArchName, "gfx942:sramecc+:xnack-");
  found->sharedMemPerBlock = 65536;
  found->regsPerBlock = 65536;
  found->multiProcessorCount = 304;
  found->clockRate = 2100000;
  found->memoryClockRate = 1300000;
  found->memoryBusWidth = 8192;
  found->warpSize = 64;
  found->maxThreadsPerMultiProcessor = 2048;
  return device > 1 ? hipErrorInvalidDevice : 0;
}

int fakeLoad(hipModule_t *module, const void *image, unsigned count, hipJitOption *options,
             void **values) {
  *module = (hipModule_t)(uintptr_t)77;
  return 0;
}
int fakeFunction(hipFunction_t *function, hipModule_t module, const char *name) {
  *function = (hipFunction_t)(uintptr_t)4711;
  return 0;
}
int fakeAttribute(int *value, hipFunction_attribute attribute, hipFunction_t function) {
  *value = attribute == HIP_FUNC_ATTRIBUTE_NUM_REGS              ? 40
           : attribute == HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024
                                                                   : 8;
  return 0;
}
int fakePointer(void *value, int attribute, void *pointer) {
  *(void **)value = pointer;
  return 0;
}
int fakeLaunch(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
               unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
               hipStream_t stream, void **values, void **extra) {
  unsigned grid[] = {grid_x, grid_y, grid_z}, block[] = {block_x, block_y, block_z};
  memcpy(fake_launch.grid, grid, sizeof grid);
  memcpy(fake_launch.block, block, sizeof block);
  fake_launch.shared = shared;
  fake_launch.stream = (uint64_t)stream;
  fake_launch.function = (uint64_t)function;
  fake_launch.context = current;
  fake_launch.count++;
  for (int i = 0; i < 16 && fake_sizes[i]; i++)
    memcpy(fake_values[i], values[i], fake_sizes[i]);
  return 0;
}
/* Some releases of Triton insist on its being there; it is used for clusters only. */
int fakeLaunchEx(const void *config, hipFunction_t function, void **values, void **extra) {
  return hipErrorNotSupported;
}
int fakeUnload(hipModule_t module) { return 0; }
int fakeLastError(void) { return 0; }
static const char *fakeErrorString(int code) { return "the fake driver's error"; }

static const struct {
  const char *name;
  void *function;
} functions[] = {
    {"hipGetErrorString", fakeErrorString},
    {"hipGetDeviceProperties", fakeProperties},
    {"hipModuleLoadDataEx", fakeLoad},
    {"hipModuleGetFunction", fakeFunction},
    {"hipModuleUnload", fakeUnload},
    {"hipFuncGetAttribute", fakeAttribute},
    {"hipModuleLaunchKernel", fakeLaunch},
    {"hipModuleLaunchCooperativeKernel", fakeLaunch},
    {"hipDrvLaunchKernelEx", fakeLaunchEx},
    {"hipPointerGetAttribute", fakePointer},
    {"hipGetLastError", fakeLastError},
};

hipError_t hipGetProcAddress(const char *name, void **function, int version, uint64_t flags,
                             hipDriverProcAddressQueryResult *status) {
  for (unsigned i = 0; i < sizeof functions / sizeof *functions; i++)
    // The name of the properties' function ends in the release of its structure.
    if (!strncmp(name, functions[i].name, strlen(functions[i].name))) {
      *function = functions[i].function;
      return 0;
    }
  *function = NULL;
  return hipErrorInvalidValue;
}

hipError_t hipInit(unsigned flags) { return 0; }
hipError_t hipDriverGetVersion(int *version) { *version = 60300000; return 0; }
hipError_t hipDeviceGetName(char *name, int size, hipDevice_t device) {
  strncpy(name, "Fake MI300X", size);
  return 0;
}
hipError_t hipGetDevice(int *device) { *device = current; return 0; }
hipError_t hipSetDevice(int device) { current = device; return 0; }
const char *hipGetErrorString(hipError_t code) { return fakeErrorString(code); }
hipError_t hipMalloc(void **pointer, size_t size) {
  fake_live++;
  *pointer = malloc(size);
  return 0;
}
hipError_t hipFree(void *pointer) { fake_live--; free(pointer); return 0; }
hipError_t hipMemsetD8Async(hipDeviceptr_t pointer, unsigned char value, size_t size,
                            hipStream_t stream) {
  return 0;
}
hipError_t hipEventCreateWithFlags(hipEvent_t *event, unsigned flags) {
  fake_live++;
  *event = (hipEvent_t)malloc(1);
  return 0;
}
hipError_t hipEventDestroy(hipEvent_t event) { fake_live--; free(event); return 0; }
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) { return 0; }
hipError_t hipEventSynchronize(hipEvent_t event) { return 0; }
hipError_t hipEventElapsedTime(float *milliseconds, hipEvent_t start, hipEvent_t stop) {
  *milliseconds = 0.5f;
  return 0;
}
hipError_t hipStreamSynchronize(hipStream_t stream) { return 0; }
hipError_t hipStreamIsCapturing(hipStream_t stream, hipStreamCaptureStatus *status) {
  *status = 0;
  return 0;
}
