/* Launches the ten kernels as a file has it, a call a line: KERNEL, how many tensors, each tensor, how many numbers,
   each number. A tensor is its address, the offset in bytes, DLPack's code and bits, its rank, sizes and strides.
   Prints a line for each call: the result, and of one that is not 0 the message.

   calls FILE [published]: by which of the two interfaces. */

#include <stdio.h>
#include <string.h>

#include "add.h"
#include "addmm.h"
#include "bmm.h"
#include "conv2d.h"
#include "mm.h"
#include "rms_norm.h"
#include "rope.h"
#include "sdpa.h"
#include "silu.h"
#include "softmax.h"

enum { MOST = 8 };

static void *const stream = (void *)4711;

static int call(const char *kernel, const DLTensor *t, const double *n) {
#define IS(name) (strcmp(kernel, #name) == 0)
  if (IS(add)) return add_launch(stream, t, t + 1, t + 2);
  if (IS(addmm)) return addmm_launch(stream, t, t + 1, t + 2, n[0], n[1], t + 3);
  if (IS(bmm)) return bmm_launch(stream, t, t + 1, t + 2);
  if (IS(conv2d)) return conv2d_launch(stream, t, t + 1, t + 2);
  if (IS(mm)) return mm_launch(stream, t, t + 1, t + 2);
  if (IS(rms_norm)) return rms_norm_launch(stream, t, n[0], t + 1);
  if (IS(rope)) return rope_launch(stream, t, t + 1, t + 2, t + 3);
  if (IS(sdpa)) return sdpa_launch(stream, t, t + 1, t + 2, n[0], t + 3);
  if (IS(silu)) return silu_launch(stream, t, t + 1);
  if (IS(softmax)) return softmax_launch(stream, t, t + 1);
  return 1;
}

static int call_published(const char *kernel, const DLTensor *given, double *numbers) {
  NineToothedTensor t[MOST], n[MOST];
  int64_t is_causal = 1;
  const NineToothedTensor causal = {&is_causal, NULL, NULL};
  for (int i = 0; i < MOST; i++) {
    t[i].data = (char *)given[i].data + given[i].byte_offset;
    t[i].shape = (uint64_t *)given[i].shape;
    t[i].strides = given[i].strides;
    n[i].data = &numbers[i];
    n[i].shape = NULL;
    n[i].strides = NULL;
  }
  if (IS(add)) return launch_add(stream, t[0], t[1], t[2]);
  if (IS(addmm)) return launch_addmm(stream, t[0], t[1], t[2], n[0], n[1], t[3]);
  if (IS(bmm)) return launch_bmm(stream, t[0], t[1], t[2]);
  if (IS(conv2d)) return launch_conv2d(stream, t[0], t[1], t[2]);
  if (IS(mm)) return launch_mm(stream, t[0], t[1], t[2]);
  if (IS(rms_norm)) return launch_rms_norm(stream, t[0], n[0], t[1]);
  if (IS(rope)) return launch_rope(stream, t[0], t[1], t[2], t[3]);
  if (IS(sdpa)) return launch_sdpa(stream, t[0], t[1], t[2], n[0], causal, t[3]);
  if (IS(silu)) return launch_silu(stream, t[0], t[1]);
  if (IS(softmax)) return launch_softmax(stream, t[0], t[1]);
  return 1;
}

static int64_t next(FILE *file) {
  long long number = 0;
  if (fscanf(file, "%lld", &number) != 1) fputs("no number\n", stderr);
  return number;
}

int main(int count, char **arguments) {
  FILE *const file = fopen(count > 1 ? arguments[1] : "", "r");
  char kernel[16];
  if (!file) return 2;
  while (fscanf(file, "%15s", kernel) == 1) {
    DLTensor tensors[MOST] = {{.data = NULL}};
    int64_t shapes[MOST][MOST], strides[MOST][MOST];
    double numbers[MOST];
    const int64_t num_tensors = next(file);
    for (int64_t i = 0; i < num_tensors; i++) {
      DLTensor *const tensor = &tensors[i];
      tensor->data = (void *)(intptr_t)next(file);
      tensor->byte_offset = (uint64_t)next(file);
      tensor->device.device_type = 2;
      tensor->dtype.code = (uint8_t)next(file);
      tensor->dtype.bits = (uint8_t)next(file);
      tensor->dtype.lanes = 1;
      tensor->ndim = (int32_t)next(file);
      for (int d = 0; d < tensor->ndim; d++) shapes[i][d] = next(file);
      for (int d = 0; d < tensor->ndim; d++) strides[i][d] = next(file);
      tensor->shape = shapes[i];
      tensor->strides = strides[i];
    }
    const int64_t num_numbers = next(file);
    for (int64_t i = 0; i < num_numbers; i++) {
      if (fscanf(file, "%lf", &numbers[i]) != 1) return 3;
    }
    const int result = count > 2 ? call_published(kernel, tensors, numbers) : call(kernel, tensors, numbers);
    printf("%d %s\n", result, result ? nt_error_message() : "");
  }
  fclose(file);
  return 0;
}
