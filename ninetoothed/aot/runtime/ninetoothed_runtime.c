/* How kernels that NineToothed compiled ahead of time are loaded and launched.

   The driver's library is loaded once, under a lock; so is each kernel in each context. A launch of what
   is loaded takes no lock and no memory. Nothing here ends the process. */

#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE
#endif

#include "ninetoothed_kernel.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- Messages. --- */

static _Thread_local char message[512];

int nt_refuse(int result, const char *format, ...) {
  va_list values;
  va_start(values, format);
  vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return result;
}

const char *nt_error_message(void) { return message; }

int nt_abi_version(void) { return NT_ABI_VERSION; }

/* --- The driver. --- */

/* Of cuda.h. */
enum { DEVICE_MULTIPROCESSORS = 16, DEVICE_CAPABILITY_MAJOR = 75, DEVICE_CAPABILITY_MINOR = 76, POINTER_DEVICE_ORDINAL = 9 };
enum { TENSOR_MAP_NO_INTERLEAVE = 0, TENSOR_MAP_PROMOTE_128_BYTES = 2, TENSOR_MAP_FILL_ZERO = 0 };
enum { LAUNCH_PROGRAMMATIC_SERIALIZATION = 6 };
enum { FUNCTION_MOST_SHARED_MEMORY = 8, STATIC_SHARED_MEMORY_LIMIT = 48 * 1024 };

pthread_mutex_t nt_lock = PTHREAD_MUTEX_INITIALIZER;
static nt_driver the_driver;
static _Atomic(const nt_driver *) driver;

typedef struct {
  const char *name;
  size_t place;
  int is_optional; /* of later drivers alone */
} nt_symbol;

#define SYMBOL(name, member) {name, offsetof(nt_driver, member), 0}
#define OPTIONAL(name, member) {name, offsetof(nt_driver, member), 1}

static const nt_symbol cuda_symbols[] = {
    SYMBOL("cuInit", init), SYMBOL("cuDeviceGetCount", device_count), SYMBOL("cuGetErrorString", error_string),
    SYMBOL("cuCtxGetCurrent", context_current), SYMBOL("cuCtxSetCurrent", context_set),
    SYMBOL("cuCtxGetDevice", context_device), SYMBOL("cuDevicePrimaryCtxRetain", primary_retain),
    SYMBOL("cuDeviceGetAttribute", device_attribute), SYMBOL("cuPointerGetAttribute", pointer_attribute),
    SYMBOL("cuModuleLoadData", module_load), SYMBOL("cuModuleGetFunction", module_function),
    SYMBOL("cuFuncSetAttribute", function_attribute), SYMBOL("cuLaunchKernel", launch),
    SYMBOL("cuOccupancyMaxActiveBlocksPerMultiprocessor", resident),
    OPTIONAL("cuTensorMapEncodeTiled", describe), OPTIONAL("cuLaunchKernelEx", launch_extended),
    OPTIONAL("cuStreamIsCapturing", capturing), OPTIONAL("cuStreamGetId", stream_number),
    OPTIONAL("cuMemAllocAsync", allocate), OPTIONAL("cuMemFreeAsync", give_back),
    OPTIONAL("cuMemsetD8Async", fill), {NULL, 0, 0},
};

static const nt_symbol hip_symbols[] = {
    SYMBOL("hipInit", init), SYMBOL("hipGetDeviceCount", device_count), SYMBOL("hipDrvGetErrorString", error_string),
    SYMBOL("hipGetDevice", context_device), SYMBOL("hipSetDevice", set_device),
    SYMBOL("hipModuleLoadData", module_load), SYMBOL("hipModuleGetFunction", module_function),
    SYMBOL("hipModuleLaunchKernel", launch),
    OPTIONAL("hipStreamIsCapturing", capturing), OPTIONAL("hipStreamGetId", stream_number),
    OPTIONAL("hipMallocAsync", allocate), OPTIONAL("hipFreeAsync", give_back),
    OPTIONAL("hipMemsetD8Async", fill), {NULL, 0, 0},
};

static int open_driver(const char *library, const nt_symbol *symbols, nt_driver *into) {
  nt_handle opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!opened) return NT_ERROR_NO_DRIVER;
  for (; symbols->name; symbols++) {
    nt_handle found = dlsym(opened, symbols->name);
    if (!found && symbols->is_optional) continue;
    if (!found) return nt_refuse(NT_ERROR_SYMBOL, "%s has no %s", library, symbols->name);
    memcpy((char *)into + symbols->place, &found, sizeof found);
  }
  const int result = into->init(0);
  int count = 0;
  if (result || into->device_count(&count) || count == 0)
    return nt_refuse(NT_ERROR_NO_DEVICE, "%s finds no device (its code is %d)", library, result);
  return 0;
}

/* With the lock held. */
static int load_driver(void) {
  nt_driver found;
  memset(&found, 0, sizeof found);
  int result = open_driver("libcuda.so.1", cuda_symbols, &found);
  if (result) {
    memset(&found, 0, sizeof found);
    found.is_hip = 1;
    const int other = open_driver("libamdhip64.so", hip_symbols, &found);
    if (other == NT_ERROR_NO_DRIVER && result == NT_ERROR_NO_DRIVER)
      return nt_refuse(result, "neither libcuda.so.1 nor libamdhip64.so can be loaded: install the device's driver");
    if (other != 0) return other == NT_ERROR_NO_DRIVER ? result : other;
  }
  the_driver = found;
  atomic_store_explicit(&driver, &the_driver, memory_order_release);
  return 0;
}

static int get_driver(const nt_driver **found) {
  *found = atomic_load_explicit(&driver, memory_order_acquire);
  if (*found) return 0;
  pthread_mutex_lock(&nt_lock);
  const int result = atomic_load_explicit(&driver, memory_order_relaxed) ? 0 : load_driver();
  pthread_mutex_unlock(&nt_lock);
  *found = atomic_load_explicit(&driver, memory_order_acquire);
  return result;
}

static const char *driver_string(const nt_driver *known, int result) {
  const char *text = NULL;
  if (known && !known->error_string(result, &text) && text) return text;
  return "an error of the driver";
}

int nt_driver_failed(const nt_driver *known, int result, const char *kernel, const char *what) {
  return nt_refuse(result, "kernel `%s`: %s: %s (the driver's code is %d)", kernel, what, driver_string(known, result), result);
}

static const char *const texts[] = {
    [0] = "success",
    [-NT_ERROR_NO_DRIVER] = "neither libcuda.so.1 nor libamdhip64.so can be loaded",
    [-NT_ERROR_NO_DEVICE] = "the driver has no device",
    [-NT_ERROR_NO_IMAGE] = "nothing was compiled for this device",
    [-NT_ERROR_NULL] = "a pointer is null",
    [-NT_ERROR_RANK] = "a tensor has another number of dimensions than declared",
    [-NT_ERROR_DTYPE] = "a tensor has another element type than declared",
    [-NT_ERROR_SIZE] = "a size is not as declared, or not as another tensor's",
    [-NT_ERROR_DEVICE] = "a tensor is not on the current device",
    [-NT_ERROR_CONSTANT] = "a constant is another than the one that was compiled in",
    [-NT_ERROR_ARRANGEMENT] = "the sizes do not fit the arrangement",
    [-NT_ERROR_GRID] = "there would be more programs than a device takes",
    [-NT_ERROR_CONFIG] = "no variant was built for these configuration arguments",
    [-NT_ERROR_ALIGNMENT] = "an address is no multiple of the element's size",
    [-NT_ERROR_MEMORY] = "the host's memory is exhausted",
    [-NT_ERROR_SYMBOL] = "the driver's library lacks a function",
    [-NT_ERROR_NUMBER] = "a number does not fit its declared type, or is no scale where that is needed",
    [-NT_ERROR_WORKSPACE] = "the workspace that was given is too small",
};

const char *nt_error_string(int result) {
  if (result > 0) return driver_string(atomic_load_explicit(&driver, memory_order_acquire), result);
  const size_t place = (size_t)-(int64_t)result;
  return place < sizeof texts / sizeof *texts ? texts[place] : "no result of this library";
}

/* --- Kernels in contexts. --- */

struct nt_loaded {
  nt_kernel *kernel;
  nt_handle context;
  int ordinal;
  const nt_target *target;
  nt_loaded *next;
  struct {
    _Atomic(nt_handle) function; /* null until it is wanted */
    int64_t most_programs; /* that are launched */
  } variants[];
};

/* The current context; where there is none, the primary one of the tensors' device becomes current. */
static int current(const nt_driver *known, const char *name, const nt_tensor *const *tensors, int count, nt_handle *context) {
  int result, ordinal = 0;
  if (known->is_hip) {
    if ((result = known->context_device(&ordinal))) return nt_driver_failed(known, result, name, "no current device");
    *context = (nt_handle)(intptr_t)(ordinal + 1);
    return 0;
  }
  if ((result = known->context_current(context))) return nt_driver_failed(known, result, name, "no current context");
  if (*context) return 0;
  for (int i = 0; i < count; i++) {
    int of_tensor = tensors[i]->device_id;
    const uint64_t address = (uint64_t)(uintptr_t)tensors[i]->data;
    if (of_tensor == NT_ANY && (!address || known->pointer_attribute(&of_tensor, POINTER_DEVICE_ORDINAL, address))) continue;
    ordinal = of_tensor;
    break;
  }
  if ((result = known->primary_retain(context, ordinal))) return nt_driver_failed(known, result, name, "its device has no context");
  if ((result = known->context_set(*context))) return nt_driver_failed(known, result, name, "its device's context cannot be made current");
  return 0;
}

/* The target for a device of CUDA: just its capability, else the highest that its devices run, else text. */
static const nt_target *target_for(const nt_kernel *kernel, int capability) {
  const nt_target *best = NULL;
  for (int i = 0; i < kernel->target_count; i++) {
    const nt_target *each = &kernel->targets[i];
    if (each->format == NT_HSACO || each->capability > capability) continue;
    if (each->format == NT_CUBIN && (each->is_specific ? each->capability != capability : each->capability / 10 != capability / 10)) continue;
    if (!best || (best->format == NT_PTX && each->format == NT_CUBIN) || (best->format == each->format && best->capability < each->capability)) best = each;
  }
  return best;
}

/* With the lock held. */
static int load_variant(const nt_driver *known, nt_loaded *loaded, int variant) {
  const nt_image *image = &loaded->target->images[variant];
  const char *name = loaded->kernel->name;
  nt_handle module, function;
  int result = known->module_load(&module, image->data);
  if (result) return nt_driver_failed(known, result, name, "it cannot be loaded");
  if ((result = known->module_function(&function, module, loaded->kernel->function))) return nt_driver_failed(known, result, name, "its binary lacks it");
  if (!known->is_hip && image->shared_memory > STATIC_SHARED_MEMORY_LIMIT) {
    result = known->function_attribute(function, FUNCTION_MOST_SHARED_MEMORY, (int)image->shared_memory);
    if (result) return nt_driver_failed(known, result, name, "its shared memory is more than the device has");
  }
  int64_t most_programs = NT_MOST_PROGRAMS;
  if (image->is_persistent) {
    int count = 0, each = 0;
    result = known->device_attribute(&count, DEVICE_MULTIPROCESSORS, loaded->ordinal);
    if (!result) result = known->resident(&each, function, (int)image->threads, image->shared_memory);
    if (result) return nt_driver_failed(known, result, name, "the device does not tell how many programs it holds");
    most_programs = nt_max((int64_t)count * each, 1);
  }
  loaded->variants[variant].most_programs = most_programs;
  atomic_store_explicit(&loaded->variants[variant].function, function, memory_order_release);
  return 0;
}

static nt_loaded *look_up(nt_kernel *kernel, nt_handle context) {
  nt_loaded *loaded = atomic_load_explicit(&kernel->loaded, memory_order_acquire);
  while (loaded && loaded->context != context) loaded = loaded->next;
  return loaded;
}

static nt_loaded *new_loaded(nt_kernel *kernel, nt_handle context, int ordinal, const nt_target *target) {
  nt_loaded *made = calloc(1, sizeof *made + (size_t)target->count * sizeof made->variants[0]);
  if (!made) return NULL;
  made->kernel = kernel;
  made->context = context;
  made->ordinal = ordinal;
  made->target = target;
  for (int i = 0; i < target->count; i++) atomic_init(&made->variants[i].function, NULL);
  return made;
}

/* With the lock held: what this context runs of the kernel. */
static int choose_target(const nt_driver *known, nt_kernel *kernel, nt_handle context, nt_loaded **found) {
  int ordinal = 0, major = 0, minor = 0;
  int result = known->context_device(&ordinal);
  if (result) return nt_driver_failed(known, result, kernel->name, "the context has no device");
  const nt_target *target = NULL;
  nt_loaded *made = NULL;
  if (known->is_hip) { /* Which binary a device runs, its driver knows best. */
    result = NT_ERROR_NO_IMAGE;
    for (int i = 0; i < kernel->target_count && result; i++) {
      if (kernel->targets[i].format != NT_HSACO) continue;
      free(made);
      target = &kernel->targets[i];
      if (!(made = new_loaded(kernel, context, ordinal, target))) break;
      result = load_variant(known, made, target->count - 1);
    }
    if (result) {
      free(made);
      return nt_refuse(NT_ERROR_NO_IMAGE, "kernel `%s` was not compiled for device %d (the driver's code is %d)", kernel->name, ordinal, result);
    }
  } else {
    result = known->device_attribute(&major, DEVICE_CAPABILITY_MAJOR, ordinal);
    if (!result) result = known->device_attribute(&minor, DEVICE_CAPABILITY_MINOR, ordinal);
    if (result) return nt_driver_failed(known, result, kernel->name, "the device does not tell its capability");
    target = target_for(kernel, 10 * major + minor);
    if (!target) return nt_refuse(NT_ERROR_NO_IMAGE, "kernel `%s` was not compiled for device %d, of compute capability %d.%d", kernel->name, ordinal, major, minor);
    made = new_loaded(kernel, context, ordinal, target);
  }
  if (!made) return nt_refuse(NT_ERROR_MEMORY, "kernel `%s`: the host's memory is exhausted", kernel->name);
  made->next = atomic_load_explicit(&kernel->loaded, memory_order_relaxed);
  atomic_store_explicit(&kernel->loaded, *found = made, memory_order_release);
  return 0;
}

static int find_in(const nt_driver *known, nt_kernel *kernel, nt_handle context, nt_loaded **found) {
  *found = look_up(kernel, context);
  if (*found) return 0;
  pthread_mutex_lock(&nt_lock);
  *found = look_up(kernel, context);
  const int result = *found ? 0 : choose_target(known, kernel, context, found);
  pthread_mutex_unlock(&nt_lock);
  return result;
}

int nt_find(nt_kernel *kernel, const nt_tensor *const *tensors, nt_decision *decided) {
  const nt_driver *known;
  nt_loaded *found = NULL;
  nt_handle context = NULL;
  int result = get_driver(&known);
  if (!result) result = current(known, kernel->name, tensors, kernel->parameter_count, &context);
  if (!result) result = find_in(known, kernel, context, &found);
  if (result) return result;
  const int device_id = tensors[0]->device_id;
  if (device_id != NT_ANY && device_id != found->ordinal)
    return nt_refuse(NT_ERROR_DEVICE, "kernel `%s`: `%s` is on device %d, and device %d is the current one: make its device current", kernel->name, kernel->parameters[0].name, device_id, found->ordinal);
  *decided = (nt_decision){.driver = known, .loaded = found, .context = context, .plan = found->target->plan, .name = kernel->name};
  return 0;
}

static int function_of(nt_loaded *loaded, int variant, const nt_driver *known, nt_handle *function) {
  *function = atomic_load_explicit(&loaded->variants[variant].function, memory_order_acquire);
  if (*function) return 0;
  pthread_mutex_lock(&nt_lock);
  *function = atomic_load_explicit(&loaded->variants[variant].function, memory_order_relaxed);
  const int result = *function ? 0 : load_variant(known, loaded, variant);
  *function = atomic_load_explicit(&loaded->variants[variant].function, memory_order_relaxed);
  pthread_mutex_unlock(&nt_lock);
  return result;
}

int nt_describe(const nt_decision *decided, int place, const void *address, const int64_t *shape, const int64_t *strides, nt_descriptor *made) {
  if (made->address == address) return 0;
  const nt_tensor_map *map = &decided->image->maps[place];
  const nt_driver *known = decided->driver;
  const char *name = decided->name;
  uint64_t sizes[NT_MOST_BOX], steps[NT_MOST_BOX];
  uint32_t extents[NT_MOST_BOX], each[NT_MOST_BOX];
  if (!known->describe) return nt_refuse(NT_ERROR_SYMBOL, "kernel `%s`: the driver has no cuTensorMapEncodeTiled: a newer one is needed", name);
  for (int i = 0; i < map->rank; i++) { /* The driver begins with the contiguous dimension. */
    const int from = map->rank - 1 - i;
    sizes[i] = (uint64_t)shape[from];
    extents[i] = map->extents[from];
    each[i] = 1;
    if (from) steps[i] = (uint64_t)strides[from - 1] * (uint64_t)map->itemsize;
  }
  const int result = known->describe(made->map, map->dtype, (uint32_t)map->rank, address, sizes, steps, extents, each, TENSOR_MAP_NO_INTERLEAVE, map->swizzle, TENSOR_MAP_PROMOTE_128_BYTES, TENSOR_MAP_FILL_ZERO);
  if (result) return nt_driver_failed(known, result, name, "a tensor descriptor cannot be made");
  made->address = address;
  return 0;
}

int nt_decide(nt_decision *decided, int first, int variant, int64_t programs, int64_t workspace) {
  const int image = first + variant;
  nt_loaded *loaded = decided->loaded;
  if (programs > NT_MOST_PROGRAMS)
    return nt_refuse(NT_ERROR_GRID, "kernel `%s` would have %lld programs; a device takes %d", decided->name, (long long)programs, NT_MOST_PROGRAMS);
  const int result = function_of(loaded, image, decided->driver, &decided->function);
  if (result) return result;
  decided->variant = variant;
  decided->image = &loaded->target->images[image];
  decided->programs = nt_min(programs, loaded->variants[image].most_programs);
  decided->workspace = workspace;
  return 0;
}

int nt_run(const nt_decision *decided, void *stream, void **arguments) {
  const nt_driver *known = decided->driver;
  const nt_image *image = decided->image;
  const unsigned programs = (unsigned)decided->programs;
  int result;
  if (image->is_dependent && known->launch_extended) {
    const nt_launch_attribute early = {.id = LAUNCH_PROGRAMMATIC_SERIALIZATION, .value.number = 1};
    const nt_launch how = {{programs, 1, 1}, {image->threads, 1, 1}, image->shared_memory, stream, &early, 1};
    result = known->launch_extended(&how, decided->function, arguments, NULL);
  } else {
    result = known->launch(decided->function, programs, 1, 1, image->threads, 1, 1, image->shared_memory, stream, arguments, NULL);
  }
  return result ? nt_driver_failed(known, result, decided->name, "it cannot be launched") : 0;
}

int nt_prepare(nt_kernel *kernel, int device) {
  const nt_driver *known;
  nt_handle before = NULL, context = NULL;
  int previous = 0;
  nt_loaded *loaded = NULL;
  int result = get_driver(&known);
  if (result) return result;
  if (known->is_hip) {
    result = known->context_device(&previous);
    if (!result) result = known->set_device(device);
    context = (nt_handle)(intptr_t)(device + 1);
  } else {
    result = known->context_current(&before);
    if (!result) result = known->primary_retain(&context, device);
    if (!result) result = known->context_set(context);
  }
  if (result) return nt_driver_failed(known, result, kernel->name, "its device cannot be made current");
  result = find_in(known, kernel, context, &loaded);
  for (int i = 0; !result && i < loaded->target->count; i++) {
    nt_handle function;
    result = function_of(loaded, i, known, &function);
  }
  if (known->is_hip) known->set_device(previous);
  else known->context_set(before);
  return result;
}
