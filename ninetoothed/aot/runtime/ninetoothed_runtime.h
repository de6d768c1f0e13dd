/* What callers of kernels that NineToothed compiled ahead of time use: tensors, results, messages.

   Nothing here needs CUDA's or HIP's headers: the driver's library is loaded at run time. */

#ifndef NINETOOTHED_RUNTIME_H
#define NINETOOTHED_RUNTIME_H

#include <stdint.h>

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface: the first number changes where callers must. */
#define NT_ABI_VERSION 1

/* Results: 0 is success, a positive number the driver's own error, a negative one of these. */
enum {
  NT_ERROR_NO_DRIVER = -1,   /* neither libcuda.so.1 nor libamdhip64.so can be loaded */
  NT_ERROR_NO_DEVICE = -2,   /* the driver has no device */
  NT_ERROR_NO_IMAGE = -3,    /* nothing was compiled for this device */
  NT_ERROR_NULL = -4,        /* a pointer is null */
  NT_ERROR_RANK = -5,        /* a tensor has another number of dimensions than declared */
  NT_ERROR_DTYPE = -6,       /* a tensor has another element type than declared */
  NT_ERROR_SIZE = -7,        /* a size is not as declared, or not as another tensor's */
  NT_ERROR_DEVICE = -8,      /* a tensor is not on the current device */
  NT_ERROR_CONSTANT = -9,    /* a constant is another than the one that was compiled in */
  NT_ERROR_ARRANGEMENT = -10, /* the sizes do not fit the arrangement */
  NT_ERROR_GRID = -11,       /* there would be more programs than a device takes */
  NT_ERROR_CONFIG = -12,     /* no variant was built for these configuration arguments */
  NT_ERROR_ALIGNMENT = -13,  /* an address is no multiple of the element's size */
  NT_ERROR_MEMORY = -14,     /* the host's memory is exhausted */
  NT_ERROR_SYMBOL = -15,     /* the driver's library lacks a function */
  NT_ERROR_NUMBER = -16,     /* a number does not fit its declared type, or is no scale where that is needed */
  NT_ERROR_WORKSPACE = -17   /* the workspace that was given is too small */
};

/* Element types, as configuration arguments have them. */
typedef enum {
  NINETOOTHED_BOOL,
  NINETOOTHED_INT8,
  NINETOOTHED_INT16,
  NINETOOTHED_INT32,
  NINETOOTHED_INT64,
  NINETOOTHED_UINT8,
  NINETOOTHED_UINT16,
  NINETOOTHED_UINT32,
  NINETOOTHED_UINT64,
  NINETOOTHED_FLOAT8_E4M3,
  NINETOOTHED_FLOAT8_E5M2,
  NINETOOTHED_FLOAT16,
  NINETOOTHED_BFLOAT16,
  NINETOOTHED_FLOAT32,
  NINETOOTHED_FLOAT64
} NineToothedDataType;

/* The first interface: tensors by value. Strides are in elements; null where the tensor is contiguous.
   A number is passed by `data`: a double's address for floats, an int64_t's for integers. */
typedef struct {
  void *data;
  uint64_t *shape;
  int64_t *strides;
} NineToothedTensor;

typedef void *NineToothedStream;
typedef int NineToothedResult;

/* The second interface: DLPack's tensors. Where its header is not there, the same by hand. */
#ifndef DLPACK_VERSION
#ifndef DLPACK_MAJOR_VERSION
typedef struct {
  int32_t device_type; /* 2: CUDA, 10: ROCm, 13: CUDA managed */
  int32_t device_id;
} DLDevice;

typedef struct {
  uint8_t code; /* 0: int, 1: uint, 2: float, 4: bfloat, 6: bool, 10: float8_e4m3fn, 12: float8_e5m2 */
  uint8_t bits;
  uint16_t lanes;
} DLDataType;

typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; null where the tensor is contiguous */
  uint64_t byte_offset;
} DLTensor;
#endif
#endif

/* The version of the interface that the library was compiled with. */
int nt_abi_version(void);

/* What a result means, in a few words; valid as long as the process lives. */
const char *nt_error_string(int result);

/* Memory of the current device that this thread's launches share what they need in, until another is given;
   null: launches have memory of their own, in the stream's order. It must be zeros when it is first
   given, and be used in one stream at a time. `<kernel>_workspace_size` says how many bytes a call needs. */
void nt_set_workspace(void *address, int64_t bytes);

/* What was wrong with this thread's last call that failed: which argument, what it is, what it must be. */
const char *nt_error_message(void);

#ifdef __cplusplus
}
#endif

#endif
