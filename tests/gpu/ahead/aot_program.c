/* Runs kernels that were compiled ahead of time on a CUDA device: no Python is in this process.

   check_aot.py writes `calls.h`, which lists the kernels, and a file with cases: what each is called with and
   what must be in the output's memory then. Every case is run by itself, from a graph, on two streams at
   once and in eight threads; those that reach past 2^31 elements by themselves alone. Prints a line a check;
   ends with 1 if one failed. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calls.h"

enum { MOST_TENSORS = 8, MOST_RANK = 4, MOST_SCALARS = 4, THREADS = 8 };

typedef struct {
  int32_t code, bits, rank, is_output;
  int64_t shape[MOST_RANK], strides[MOST_RANK];
  uint64_t offset, bytes;
  uint64_t row, apart; /* bytes of a row, and from one to the next, where they lie far apart; else 0 */
  unsigned char *content;
} tensor;

typedef struct {
  char name[64];
  int32_t kernel, tensor_count, scalar_count;
  double scalars[MOST_SCALARS], tolerance;
  tensor tensors[MOST_TENSORS];
  double *expected;           /* of each element of the output's memory */
  unsigned char *is_written;  /* whether it is to be written at all */
} a_case;

/* --- CUDA's driver, as far as it is used. --- */

typedef void *handle;
typedef struct {
  int id, padding, number, rest[15];
} attribute;
typedef struct {
  unsigned grid[3], block[3], shared;
  handle stream;
  const attribute *attributes;
  unsigned count;
} early_launch;
#define DRIVER(X)                                                                                        \
  X(cuInit, (unsigned)) X(cuDeviceGetName, (char *, int, int)) X(cuDevicePrimaryCtxRetain, (handle *, int))  \
  X(cuCtxSetCurrent, (handle)) X(cuMemAlloc_v2, (uint64_t *, size_t)) X(cuMemFree_v2, (uint64_t))             \
  X(cuMemcpyHtoD_v2, (uint64_t, const void *, size_t)) X(cuMemcpyDtoH_v2, (void *, uint64_t, size_t))         \
  X(cuMemsetD16_v2, (uint64_t, unsigned short, size_t)) X(cuStreamCreate, (handle *, unsigned))               \
  X(cuStreamSynchronize, (handle)) X(cuStreamBeginCapture_v2, (handle, int)) X(cuStreamEndCapture, (handle, handle *)) \
  X(cuGraphInstantiateWithFlags, (handle *, handle, unsigned long long)) X(cuGraphLaunch, (handle, handle))   \
  X(cuGraphGetNodes, (handle, handle *, size_t *)) X(cuModuleLoad, (handle *, const char *))                  \
  X(cuModuleGetFunction, (handle *, handle, const char *)) X(cuCtxGetCurrent, (handle *))                      \
  X(cuLaunchKernelEx, (const early_launch *, handle, void **, void **))                                       \
  X(cuLaunchKernel, (handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **))

#define DECLARE(name, arguments) static int(*name) arguments;
DRIVER(DECLARE)

static void need(int result, const char *what) {
  if (!result) return;
  printf("%s: %d, %s; %s\n", what, result, nt_error_string(result), nt_error_message());
  exit(2);
}

static void load_driver(void) {
  handle library = dlopen("libcuda.so.1", RTLD_NOW);
  if (!library) exit((puts("needs libcuda.so.1"), 2));
#define LOAD(name, arguments) *(void **)&name = dlsym(library, #name);
  DRIVER(LOAD)
}

/* --- Cases. --- */

static void get(void *into, size_t bytes, FILE *file) {
  if (bytes && fread(into, 1, bytes, file) != bytes) exit((puts("the cases end too soon"), 2));
}

static void *get_new(size_t bytes, FILE *file) {
  void *made = malloc(bytes + 1);
  get(made, bytes, file);
  return made;
}

static a_case *read_cases(const char *path, int *count) {
  FILE *file = fopen(path, "rb");
  if (!file) exit((puts("no cases"), 2));
  get(count, 4, file);
  a_case *cases = calloc((size_t)*count, sizeof *cases);
  for (a_case *each = cases; each < cases + *count; each++) {
    get(each->name, 64, file);
    get(&each->kernel, 4, file);
    get(&each->tensor_count, 4, file);
    get(&each->scalar_count, 4, file);
    get(each->scalars, sizeof each->scalars, file);
    get(&each->tolerance, 8, file);
    for (int i = 0; i < each->tensor_count; i++) {
      tensor *of = &each->tensors[i];
      get(&of->code, 16, file);
      get(of->shape, sizeof of->shape, file);
      get(of->strides, sizeof of->strides, file);
      get(&of->offset, 32, file);
      of->content = get_new(of->bytes, file);
      if (!of->is_output) continue;
      const size_t elements = of->bytes / (size_t)(of->bits / 8);
      each->expected = get_new(8 * elements, file);
      each->is_written = get_new(elements, file);
    }
  }
  fclose(file);
  return cases;
}

static double half(uint16_t bits) {
  const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == 31) return mantissa ? NAN : sign * INFINITY;
  return sign * (exponent ? ldexp(1024 + mantissa, exponent - 25) : ldexp(mantissa, -24));
}

static double element(const tensor *of, const unsigned char *content, size_t place) {
  if (of->bits == 16) return half(((const uint16_t *)(const void *)content)[place]);
  return ((const float *)(const void *)content)[place];
}

/* --- A case on the device. --- */

typedef struct {
  uint64_t memory[MOST_TENSORS];
  DLTensor views[MOST_TENSORS];
} placed;

static int is_far(const a_case *of) {
  for (int i = 0; i < of->tensor_count; i++)
    if (of->tensors[i].row) return 1;
  return 0;
}

static uint64_t rows_of(const tensor *of) { return of->row ? of->bytes / of->row : 1; }

static uint64_t row_of(const tensor *of) { return of->row ? of->row : of->bytes; }

static void place(a_case *of, placed *on) {
  for (int i = 0; i < of->tensor_count; i++) {
    tensor *each = &of->tensors[i];
    const uint64_t rows = rows_of(each), row = row_of(each);
    need(cuMemAlloc_v2(&on->memory[i], (rows - 1) * each->apart + row + 64), "memory");
    for (uint64_t k = 0; k < rows; k++)
      need(cuMemcpyHtoD_v2(on->memory[i] + k * each->apart, each->content + k * row, row), "copying there");
    DLTensor *view = &on->views[i];
    memset(view, 0, sizeof *view);
    view->data = (void *)(uintptr_t)on->memory[i];
    view->byte_offset = each->offset;
    view->device.device_type = 2;
    view->ndim = each->rank;
    view->dtype.code = (uint8_t)each->code;
    view->dtype.bits = (uint8_t)each->bits;
    view->dtype.lanes = 1;
    view->shape = each->shape;
    view->strides = each->strides;
  }
  /* What is copied from pageable memory may still be on its way, on a stream for which no other waits. */
  need(cuStreamSynchronize(NULL), "copying there");
}

static int start(a_case *of, placed *on, handle stream) {
  const DLTensor *views[MOST_TENSORS];
  for (int i = 0; i < of->tensor_count; i++) views[i] = &on->views[i];
  return kernels[of->kernel].launch(stream, views, of->scalars);
}

/* Whether the output is as it must be, and the memory around its elements as it was; frees it all. */
static int is_right(a_case *of, placed *on, char *why) {
  int is_good = 1;
  for (int i = 0; i < of->tensor_count; i++) {
    tensor *each = &of->tensors[i];
    if (each->is_output) {
      unsigned char *now = malloc(each->bytes + 1);
      const uint64_t rows = rows_of(each), row = row_of(each);
      for (uint64_t k = 0; k < rows; k++)
        need(cuMemcpyDtoH_v2(now + k * row, on->memory[i] + k * each->apart, row), "copying back");
      const size_t width = (size_t)(each->bits / 8);
      double scale = 0;
      for (size_t k = 0; k < each->bytes / width; k++)
        if (of->is_written[k]) scale = fmax(scale, fabs(of->expected[k]));
      for (size_t k = 0; k < each->bytes / width && is_good; k++) {
        if (of->is_written[k]) {
          const double found = element(each, now, k);
          is_good = fabs(found - of->expected[k]) <= of->tolerance * scale;
          if (!is_good) sprintf(why, "element %zu is %g, not %g", k, found, of->expected[k]);
        } else if (memcmp(now + k * width, each->content + k * width, width)) {
          is_good = 0;
          sprintf(why, "element %zu was written, and is not the view's", k);
        }
      }
      free(now);
    }
    need(cuMemFree_v2(on->memory[i]), "freeing");
  }
  return is_good;
}

static int failures;

static void tell(const char *name, const char *how, int is_good, const char *why) {
  printf("%-7s %s, %s%s%s\n", is_good ? "right" : "WRONG", name, how, is_good ? "" : ": ", is_good ? "" : why);
  failures += !is_good;
}

static void alone(a_case *of, handle stream) {
  placed on;
  char why[200] = "";
  place(of, &on);
  need(start(of, &on, stream), of->name);
  need(cuStreamSynchronize(stream), "synchronizing");
  tell(of->name, "alone", is_right(of, &on, why), why);
}

static void captured(a_case *of, handle stream) {
  placed on;
  char why[200] = "";
  handle graph, executable;
  place(of, &on);
  need(kernels[of->kernel].prepare(0), "preparing");
  need(cuStreamBeginCapture_v2(stream, 0), "capturing");
  need(start(of, &on, stream), of->name);
  need(cuStreamEndCapture(stream, &graph), "ending the capture");
  need(cuGraphInstantiateWithFlags(&executable, graph, 0), "instantiating");
  need(cuGraphLaunch(executable, stream), "launching the graph");
  need(cuStreamSynchronize(stream), "synchronizing");
  tell(of->name, "from a graph", is_right(of, &on, why), why);
}

static void on_two_streams(a_case *of, handle first, handle second) {
  placed one, other;
  char why[200] = "";
  place(of, &one);
  place(of, &other);
  need(start(of, &one, first), of->name);
  need(start(of, &other, second), of->name);
  need(cuStreamSynchronize(first), "synchronizing");
  need(cuStreamSynchronize(second), "synchronizing");
  const int is_good = is_right(of, &one, why) & is_right(of, &other, why);
  tell(of->name, "on two streams", is_good, why);
}

static a_case *all_cases;
static int case_count;
static handle context;

static void *in_a_thread(void *wrong) {
  handle stream;
  need(cuCtxSetCurrent(context), "context");
  need(cuStreamCreate(&stream, 1), "stream");
  for (int i = 0; i < case_count; i++) {
    placed on;
    if (is_far(&all_cases[i])) continue;
    place(&all_cases[i], &on);
    need(start(&all_cases[i], &on, stream), all_cases[i].name);
    need(cuStreamSynchronize(stream), "synchronizing");
    char why[200];
    *(int *)wrong += !is_right(&all_cases[i], &on, why);
  }
  return NULL;
}

static void in_threads(void) {
  pthread_t threads[THREADS];
  int wrong[THREADS] = {0}, all = 0;
  for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, in_a_thread, &wrong[i]);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL), all += wrong[i];
  char why[64];
  sprintf(why, "%d are wrong", all);
  tell("every case", "in eight threads", all == 0, why);
}

/* More elements than 32 bits count: 1 + 2 at the first and at the last of them. */
static void past_32_bits(int add, handle stream) {
  enum { CHUNK = 1 << 20 };
  int64_t count = ((int64_t)1 << 31) + 12345;
  uint64_t memory[3];
  DLTensor views[3];
  const DLTensor *given[3];
  for (int i = 0; i < 3; i++) {
    need(cuMemAlloc_v2(&memory[i], (size_t)count * 2), "memory for 2^31 elements");
    need(cuMemsetD16_v2(memory[i], (unsigned short[]){0x3c00, 0x4000, 0x7e00}[i], (size_t)count), "filling");
    views[i] = (DLTensor){.data = (void *)(uintptr_t)memory[i], .device = {2, 0}, .ndim = 1, .dtype = {2, 16, 1}, .shape = &count};
    given[i] = &views[i];
  }
  /* What is filled is filled on another stream, for which this one does not wait. */
  need(cuStreamSynchronize(NULL), "filling");
  need(kernels[add].launch(stream, given, NULL), "add past 2^31");
  need(cuStreamSynchronize(stream), "synchronizing");
  uint16_t *now = malloc(CHUNK * 2);
  int is_good = 1;
  for (int end = 0; end < 2; end++) {
    const uint64_t from = memory[2] + (end ? (uint64_t)(count - CHUNK) * 2 : 0);
    need(cuMemcpyDtoH_v2(now, from, CHUNK * 2), "copying back");
    for (int k = 0; k < CHUNK; k++) is_good &= now[k] == 0x4200;
  }
  for (int i = 0; i < 3; i++) need(cuMemFree_v2(memory[i]), "freeing");
  tell("add of 2^31 + 12345", "alone", is_good, "an element is not 3");
}

/* --- Times. --- */

static double now(void) {
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  return (double)at.tv_sec * 1e9 + (double)at.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

enum { OURS, BARE, BARE_EARLY, CONTEXT, WAYS };

/* The cost of a launch of ours over the driver's own, both of the same binary, in the median: of one that
   may begin early as ours does, and of a plain one. */
static void launch_cost(int add, const char *binary, unsigned threads, handle stream) {
  enum { ROUNDS = 400, EACH = 100 };
  handle module, function;
  int64_t count = 1024;
  uint64_t memory;
  DLTensor view;
  const DLTensor *given[3] = {&view, &view, &view};
  static double times[WAYS][ROUNDS];
  need(cuMemAlloc_v2(&memory, 4096), "memory");
  view = (DLTensor){.data = (void *)(uintptr_t)memory, .device = {2, 0}, .ndim = 1, .dtype = {2, 16, 1}, .shape = &count};
  need(cuModuleLoad(&module, binary), "the binary");
  need(cuModuleGetFunction(&function, module, "add"), "the function");
  void *address = (void *)(uintptr_t)memory, *scratch = NULL;
  void *arguments[] = {&address, &address, &address, &scratch, &scratch, &scratch, &scratch};
  const attribute early = {.id = 6, .number = 1};
  const early_launch how = {{1, 1, 1}, {threads, 1, 1}, 0, stream, &early, 1};
  for (int round = 0; round < ROUNDS; round++)
    for (int way = 0; way < WAYS; way++) {
      const double begin = now();
      for (int i = 0; i < EACH; i++) {
        if (way == OURS) kernels[add].launch(stream, given, NULL);
        if (way == BARE) cuLaunchKernel(function, 1, 1, 1, threads, 1, 1, 0, stream, arguments, NULL);
        if (way == BARE_EARLY) cuLaunchKernelEx(&how, function, arguments, NULL);
        if (way == CONTEXT) cuCtxGetCurrent(&module);
      }
      times[way][round] = (now() - begin) / EACH;
      need(cuStreamSynchronize(stream), "synchronizing");
    }
  double median[WAYS];
  for (int way = 0; way < WAYS; way++) {
    qsort(times[way], ROUNDS, sizeof *times[way], ascending);
    median[way] = times[way][ROUNDS / 2];
  }
  printf("launch  %.0f ns, bare cuLaunchKernelEx %.0f ns: %.0f ns more; bare cuLaunchKernel %.0f ns; asking for the context %.0f ns (medians of %d rounds of %d)\n",
         median[OURS], median[BARE_EARLY], median[OURS] - median[BARE_EARLY], median[BARE], median[CONTEXT], ROUNDS, EACH);
}

int main(int count, char **values) {
  if (count != 5) return puts("usage: program CASES ADD_FULL_BINARY THREADS ADD"), 2;
  handle streams[2];
  char name[100];
  const int add = atoi(values[4]);
  load_driver();
  need(cuInit(0), "cuInit");
  need(cuDeviceGetName(name, sizeof name, 0), "name");
  need(cuDevicePrimaryCtxRetain(&context, 0), "context");
  need(cuCtxSetCurrent(context), "context");
  for (int i = 0; i < 2; i++) need(cuStreamCreate(&streams[i], 1), "stream");
  printf("device  %s\n", name);
  for (int i = 0; i < kernel_count; i++) {
    const double begin = now();
    need(kernels[i].prepare(0), kernels[i].name);
    printf("cold    %s: %.2f ms for all its binaries\n", kernels[i].name, (now() - begin) / 1e6);
  }
  all_cases = read_cases(values[1], &case_count);
  for (int i = 0; i < case_count; i++) {
    alone(&all_cases[i], streams[0]);
    if (is_far(&all_cases[i])) continue;
    captured(&all_cases[i], streams[0]);
    on_two_streams(&all_cases[i], streams[0], streams[1]);
  }
  in_threads();
  past_32_bits(add, streams[0]);
  launch_cost(add, values[2], (unsigned)atoi(values[3]), streams[0]);
  printf("%s\n", failures ? "FAILED" : "all right");
  return failures != 0;
}
