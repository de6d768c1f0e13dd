/* What a call of a kernel gives: tensors of both interfaces, and what was declared of them. */

#include "ninetoothed_kernel.h"

static const struct {
  uint8_t code, bits, bytes;
  const char *name;
} dtypes[] = {
    {6, 8, 1, "bool"},   {0, 8, 1, "int8"},    {0, 16, 2, "int16"},  {0, 32, 4, "int32"},       {0, 64, 8, "int64"},
    {1, 8, 1, "uint8"},  {1, 16, 2, "uint16"}, {1, 32, 4, "uint32"}, {1, 64, 8, "uint64"},      {10, 8, 1, "float8_e4m3"},
    {12, 8, 1, "float8_e5m2"}, {2, 16, 2, "float16"}, {4, 16, 2, "bfloat16"}, {2, 32, 4, "float32"}, {2, 64, 8, "float64"},
};

/* Contiguous strides, where the caller gives none. */
static void fill_strides(int rank, nt_tensor *tensor) {
  if (tensor->strides) return;
  int64_t step = 1;
  for (int dim = rank - 1; dim >= 0; dim--) {
    tensor->own_strides[dim] = step;
    step = nt_mul(step, tensor->shape[dim]);
  }
  tensor->strides = tensor->own_strides;
}

int nt_from_ninetoothed(const nt_kernel *kernel, int place, const NineToothedTensor *given, nt_tensor *tensor) {
  const nt_parameter *declared = &kernel->parameters[place];
  if (declared->rank && !given->shape) return nt_refuse(NT_ERROR_NULL, "kernel `%s`: `%s` has no shape", kernel->name, declared->name);
  tensor->data = given->data;
  /* Whoever has sizes without a sign has none that is negative: the same bytes say the same. */
  tensor->shape = (const int64_t *)given->shape;
  tensor->strides = given->strides;
  tensor->rank = tensor->dtype = tensor->device_type = tensor->device_id = NT_ANY;
  tensor->head[0] = tensor->head[1] = ~(uint64_t)0;
  fill_strides(declared->rank, tensor);
  return 0;
}

int nt_from_dlpack(const nt_kernel *kernel, int place, const DLTensor *given, nt_tensor *tensor) {
  const nt_parameter *declared = &kernel->parameters[place];
  const char *name = kernel->name;
  if (!given) return nt_refuse(NT_ERROR_NULL, "kernel `%s`: `%s` is null", name, declared->name);
  if (given->ndim != declared->rank)
    return nt_refuse(NT_ERROR_RANK, "kernel `%s`: `%s` has %d dimensions; it was declared with %d", name, declared->name, (int)given->ndim, declared->rank);
  if (given->ndim && !given->shape) return nt_refuse(NT_ERROR_NULL, "kernel `%s`: `%s` has no shape", name, declared->name);
  tensor->data = nt_first(given);
  nt_head(given, tensor->head);
  tensor->shape = given->shape;
  tensor->strides = given->strides;
  tensor->rank = given->ndim;
  tensor->dtype = NT_ANY;
  if (declared->dtype != NT_ANY) {
    const int wanted = declared->dtype;
    if (given->dtype.code != dtypes[wanted].code || given->dtype.bits != dtypes[wanted].bits || given->dtype.lanes != 1)
      return nt_refuse(NT_ERROR_DTYPE, "kernel `%s`: `%s` has elements of DLPack's type (%d, %d, %d); it was declared with %s, (%d, %d, 1)", name, declared->name, given->dtype.code, given->dtype.bits, given->dtype.lanes, dtypes[wanted].name, dtypes[wanted].code, dtypes[wanted].bits);
    tensor->dtype = wanted;
  }
  tensor->device_type = (int)given->device.device_type;
  tensor->device_id = (int)given->device.device_id;
  if (tensor->device_type != 2 && tensor->device_type != 10 && tensor->device_type != 13)
    return nt_refuse(NT_ERROR_DEVICE, "kernel `%s`: `%s` is on a device of DLPack's type %d; kernels run on 2, CUDA, and 10, ROCm", name, declared->name, tensor->device_type);
  fill_strides(declared->rank, tensor);
  return 0;
}

static int check_one(const nt_kernel *kernel, const nt_parameter *declared, const nt_tensor *tensor) {
  const char *name = kernel->name;
  int is_empty = 0;
  for (int dim = 0; dim < declared->rank; dim++) {
    const int64_t size = tensor->shape[dim], stride = tensor->strides[dim];
    const nt_size *wanted = &declared->sizes[dim];
    if (size < 0 || size > NT_MOST_SIZE)
      return nt_refuse(NT_ERROR_SIZE, "kernel `%s`: `%s` has size %lld in dimension %d", name, declared->name, (long long)size, dim);
    if (size < wanted->least || size > wanted->most)
      return nt_refuse(NT_ERROR_SIZE, "kernel `%s`: `%s` has size %lld in dimension %d; it was declared with %lld to %lld there", name, declared->name, (long long)size, dim, (long long)wanted->least, (long long)wanted->most);
    if (wanted->is_power_of_two && (size & (size - 1)))
      return nt_refuse(NT_ERROR_SIZE, "kernel `%s`: `%s` has size %lld in dimension %d; it was declared as a power of two there", name, declared->name, (long long)size, dim);
    is_empty |= size == 0;
    if (size > 1 && (stride > NT_MOST_SIZE || stride < -NT_MOST_SIZE))
      return nt_refuse(NT_ERROR_SIZE, "kernel `%s`: `%s` has stride %lld in dimension %d", name, declared->name, (long long)stride, dim);
  }
  if (declared->dtype == NT_ANY) return 0;
  if (!tensor->data && !is_empty) return nt_refuse(NT_ERROR_NULL, "kernel `%s`: `%s` has elements and no address", name, declared->name);
  /* Of elements that are as wide as a power of two. */
  if ((uintptr_t)tensor->data & (dtypes[declared->dtype].bytes - 1u))
    return nt_refuse(NT_ERROR_ALIGNMENT, "kernel `%s`: `%s` is at %p, which is no multiple of the size of %s", name, declared->name, tensor->data, dtypes[declared->dtype].name);
  return 0;
}

int nt_check(const nt_kernel *kernel, const nt_tensor *const *tensors) {
  for (int i = 0; i < kernel->parameter_count; i++) {
    const int result = check_one(kernel, &kernel->parameters[i], tensors[i]);
    if (result) return result;
    if (tensors[i]->device_id != tensors[0]->device_id || tensors[i]->device_type != tensors[0]->device_type)
      return nt_refuse(NT_ERROR_DEVICE, "kernel `%s`: `%s` and `%s` are on different devices", kernel->name, kernel->parameters[0].name, kernel->parameters[i].name);
  }
  return 0;
}

int nt_number(const nt_kernel *kernel, const char *name, const NineToothedTensor *given, void *value) {
  if (!given->data) return nt_refuse(NT_ERROR_NULL, "kernel `%s`: the number `%s` has no address", kernel->name, name);
  memcpy(value, given->data, sizeof(double));
  return 0;
}
