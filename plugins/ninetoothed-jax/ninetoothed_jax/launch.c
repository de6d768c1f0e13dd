/* XLA's handler of our custom calls on CUDA devices, in C: no Python, no interpreter's lock.

   What is launched for a call is found out in Python, at the call's first execution, and then told
   here once (`ninetoothed_add`): each `Launch` is one launch of one kernel, for one custom call, on
   one device, with buffers whose addresses have certain bits (an alignment, or where a parameter was
   made of an address the whole of it). Whatever fits none goes to the handler in Python, which is
   right for every call: the first execution, other alignments, numbers that only the device knows,
   memory that is borrowed for each launch, and what XLA asks besides.

   Lifetime: computations that XLA has compiled refer to a call as long as they live, and may run at
   any time. So a Launch is copied here, never changes after that and is never freed; Python says
   nothing for more than so many of a call. Kernels are never unloaded.

   Threads: XLA runs handlers on several threads while others add. The lists only grow at their
   heads, with one atomic exchange once the new head is complete, so a reader takes no lock: it sees
   a list with the newest or without. What is set by `ninetoothed_start` is set before XLA knows the
   handler. */

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "cuda.h"

/* XLA's structures, as in xla/ffi/api/c_api.h and ffi.py: a stable binary interface that grows at its
   ends only. The header itself is no stable one: names in it change from release to release. */

enum { EXECUTE = 3, INTERNAL_ERROR = 13 };

typedef struct Error Error;

typedef struct { size_t size; int type; void *next; } Extension;
typedef struct { size_t size; Extension *extension; int major, minor; } Version;

typedef struct { size_t size; Extension *extension; int dtype; void *data; } Buffer;
typedef struct { size_t size; Extension *extension; int64_t count; void *types; Buffer **buffers; } Buffers;
typedef struct { int dtype; int64_t *value; } Scalar;
typedef struct {
  size_t size; Extension *extension; int64_t count; void *types, *names; Scalar **values;
} Attributes;

/* What a function of XLA's is asked, and where it puts its answer. */
typedef struct {
  size_t size; Extension *extension; void *context; union { void *stream; int32_t ordinal; };
} Question;
typedef struct { size_t size; Extension *extension; const char *message; int code; } NewError;

typedef struct {
  size_t size; Extension *extension; Version version; void *internal;
  Error *(*create_error)(NewError *);
  void *error_message, *destroy_error, *register_handler;
  Error *(*stream)(Question *);
  void *register_type, *context_get, *state_set, *state_get, *allocate, *free, *schedule,
      *num_threads, *create_future, *set_available, *set_error, *run_id;
  Error *(*device_ordinal)(Question *);
} Api;

typedef struct {
  size_t size; Extension *extension; const Api *api; void *context; int stage;
  Buffers arguments, results; Attributes attributes;
} Frame;

typedef Error *Handler(Frame *);

enum { MOST_BUFFERS = 32, MOST_PARAMETERS = 96, MOST_BYTES = 1024, LISTS = 4096 };

/* `native._Launch` has the same fields. */
typedef struct Launch {
  /* The parameters that are the same in every launch; tensor descriptors must be aligned so. */
  _Alignas(64) unsigned char bytes[MOST_BYTES];
  struct Launch *next;
  int64_t identity;
  CUfunction function;
  /* It serves where address & mask == bits, for each buffer. */
  uint64_t masks[MOST_BUFFERS], bits[MOST_BUFFERS];
  uint32_t grid, threads, shared_memory, is_dependent;
  int32_t device, buffer_count, parameter_count;
  /* The buffer whose address a parameter is, or -1: then it starts at this one of the bytes. */
  int16_t buffers[MOST_PARAMETERS];
  uint16_t offsets[MOST_PARAMETERS];
  char name[128];
} Launch;

typedef CUresult LaunchKernel(const CUlaunchConfig *, CUfunction, void **, void **);
typedef CUresult GetErrorString(CUresult, const char **);

static _Atomic(Launch *) lists[LISTS];
static Handler *in_python;
static LaunchKernel *launch_kernel;
static GetErrorString *get_error_string;
static int32_t only_device;

/* Sets what everything else uses. `device` is the index of the only device; -1 has XLA asked. */
void ninetoothed_start(void *handler, void *launch, void *error_string, int32_t device) {
  in_python = (Handler *)handler;
  launch_kernel = (LaunchKernel *)launch;
  get_error_string = (GetErrorString *)error_string;
  only_device = device;
}

size_t ninetoothed_size(void) { return sizeof(Launch); }

/* Adds a copy, ahead of what was added before; 0 where there is no memory for it. */
int ninetoothed_add(const Launch *given) {
  Launch *added = aligned_alloc(_Alignof(Launch), sizeof(Launch));
  if (added == NULL)
    return 0;
  *added = *given;
  _Atomic(Launch *) *list = &lists[(uint64_t)given->identity % LISTS];
  added->next = atomic_load_explicit(list, memory_order_acquire);
  while (!atomic_compare_exchange_weak_explicit(
      list, &added->next, added, memory_order_release, memory_order_acquire))
    ;
  return 1;
}

static uint64_t address_of(const Frame *frame, int64_t place) {
  int64_t count = frame->arguments.count;
  const Buffer *buffer = place < count ? frame->arguments.buffers[place]
                                       : frame->results.buffers[place - count];
  return (uint64_t)buffer->data;
}

static const Launch *find(int64_t identity, int32_t device, const uint64_t *addresses,
                          int64_t count) {
  const Launch *each =
      atomic_load_explicit(&lists[(uint64_t)identity % LISTS], memory_order_acquire);
  for (; each != NULL; each = each->next) {
    if (each->identity != identity || each->device != device || each->buffer_count != count)
      continue;
    int64_t place = 0;
    while (place < count && (addresses[place] & each->masks[place]) == each->bits[place])
      place++;
    if (place == count)
      return each;
  }
  return NULL;
}

static Error *refused(const Frame *frame, const Launch *launch,
                              CUresult status) {
  const char *text = NULL;
  char message[512];
  get_error_string(status, &text);
  snprintf(message, sizeof message,
           "DeviceError: kernel `%s`: the cuda driver failed to launch it: error %d, %s.",
           launch->name, (int)status, text == NULL ? "which it does not know" : text);
  NewError error = {sizeof error, NULL, message, INTERNAL_ERROR};
  return frame->api->create_error(&error);
}

static Error *run(const Frame *frame, const Launch *launch,
                          uint64_t *addresses) {
  Question asked = {sizeof asked, NULL, frame->context, {NULL}};
  Error *error = frame->api->stream(&asked);
  if (error != NULL)
    return error;
  void *parameters[MOST_PARAMETERS];
  for (int32_t place = 0; place < launch->parameter_count; place++) {
    int16_t buffer = launch->buffers[place];
    /* The driver copies what these point to and writes nothing. */
    parameters[place] = buffer < 0 ? (void *)(launch->bytes + launch->offsets[place])
                                   : (void *)&addresses[buffer];
  }
  CUlaunchAttribute dependent = {.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
  dependent.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config = {
      .gridDimX = launch->grid, .gridDimY = 1, .gridDimZ = 1,
      .blockDimX = launch->threads, .blockDimY = 1, .blockDimZ = 1,
      .sharedMemBytes = launch->shared_memory, .hStream = (CUstream)asked.stream,
      .attrs = &dependent, .numAttrs = launch->is_dependent ? 1 : 0};
  CUresult status = launch_kernel(&config, launch->function, parameters, NULL);
  return status == CUDA_SUCCESS ? NULL : refused(frame, launch, status);
}

/* The handler. Its one attribute is the call's identity. */
Error *ninetoothed_handle(Frame *frame) {
  int64_t count = frame->arguments.count + frame->results.count;
  /* An extension is a question, and only one of the stages executes anything. */
  if (frame->extension != NULL || frame->stage != EXECUTE || count > MOST_BUFFERS)
    return in_python(frame);
  int64_t identity = *frame->attributes.values[0]->value;
  int32_t device = only_device;
  if (device < 0) {
    Question asked = {sizeof asked, NULL, frame->context, {NULL}};
    Error *error = frame->api->device_ordinal(&asked);
    if (error != NULL)
      return error;
    device = asked.ordinal;
  }
  uint64_t addresses[MOST_BUFFERS];
  for (int64_t place = 0; place < count; place++)
    addresses[place] = address_of(frame, place);
  const Launch *launch = find(identity, device, addresses, count);
  return launch == NULL ? in_python(frame) : run(frame, launch, addresses);
}
