/* What generated kernels use; their callers need ninetoothed_runtime.h alone. */

#ifndef NINETOOTHED_KERNEL_H
#define NINETOOTHED_KERNEL_H

#include <float.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "ninetoothed_driver.h"
#include "ninetoothed_runtime.h"

/* No size or stride is larger; so sums of a few of them do not overflow. */
#define NT_MOST_SIZE ((int64_t)1 << 60)
#define NT_MOST_PROGRAMS 2147483647
#define NT_MOST_RANK 16
/* No guard asks for more of an address. */
#define NT_MOST_ALIGNMENT 256
#define NT_ANY (-1)

/* --- What a kernel is. --- */

#define NT_MOST_BOX 5

/* How a variant wants a tensor descriptor: the driver's numbers of the element type and of the swizzle,
   the bytes of an element, the sizes of the box, its contiguous dimension last. */
typedef struct {
  int dtype, itemsize, swizzle, rank;
  uint32_t extents[NT_MOST_BOX];
} nt_tensor_map;

/* A variant, compiled for a target. */
typedef struct {
  const unsigned char *data;
  unsigned threads, shared_memory;
  const nt_tensor_map *maps; /* of its descriptors, in order */
  int is_persistent; /* whether there need be no more programs than the device holds at a time */
  int is_dependent;  /* whether its programs wait for the kernel before */
} nt_image;

typedef enum { NT_CUBIN, NT_PTX, NT_HSACO } nt_format;

/* All variants, compiled for a target. */
typedef struct {
  nt_format format;
  int capability; /* CUDA's, ten times the major number plus the minor one */
  int is_specific; /* whether only devices of just this capability run it */
  int plan; /* how a call's sizes choose a configuration */
  int count;
  const nt_image *images;
} nt_target;

/* What was declared of a size. */
typedef struct {
  int64_t least, most;
  int is_power_of_two;
} nt_size;

/* What was declared of a parameter. */
typedef struct {
  const char *name;
  int rank;
  int dtype; /* NT_ANY where the kernel does not touch it */
  const nt_size *sizes;
} nt_parameter;

typedef struct nt_loaded nt_loaded;

/* How a call is launched. */
typedef struct {
  const nt_driver *driver;
  nt_loaded *loaded;
  nt_handle context, function;
  int plan, edition; /* of the device's target; what the plan chose */
  const nt_image *image;
  const char *name;
  int64_t programs;  /* none where there is nothing to launch */
  int64_t workspace; /* the bytes that they share */
  int variant;
} nt_decision;

typedef struct {
  const char *name, *function;
  int parameter_count, target_count;
  const nt_parameter *parameters;
  const nt_target *targets;
  _Atomic(nt_loaded *) loaded; /* by context */
} nt_kernel;

/* A descriptor and the address that it was made of: the driver's CUtensorMap, which is aligned so. */
typedef struct {
  _Alignas(64) unsigned char map[128];
  const void *address;
} nt_descriptor;

/* --- A call. --- */

/* A tensor as both interfaces have it. */
typedef struct {
  const void *data;
  const int64_t *shape, *strides;
  int rank; /* NT_ANY where the caller does not say */
  int dtype; /* likewise */
  int device_type, device_id; /* likewise */
  uint64_t head[2]; /* device, rank and element type as DLPack has them; all ones where the caller does not say */
  int64_t own_strides[NT_MOST_RANK]; /* where the caller gives none */
} nt_tensor;

/* Each gives 0 or the result that the call ends with. */
int nt_from_ninetoothed(const nt_kernel *kernel, int place, const NineToothedTensor *given, nt_tensor *tensor);
int nt_from_dlpack(const nt_kernel *kernel, int place, const DLTensor *given, nt_tensor *tensor);
int nt_check(const nt_kernel *kernel, const nt_tensor *const *tensors);
/* The 8 bytes of a number: a double or an int64_t. */
int nt_number(const nt_kernel *kernel, const char *name, const NineToothedTensor *given, void *value);

/* The kernel in the current context, loaded by the first call there. */
int nt_find(nt_kernel *kernel, const nt_tensor *const *tensors, nt_decision *decided);
/* That a variant is launched, of those of the device's target from the first of its edition on. */
int nt_decide(nt_decision *decided, int first, int variant, int64_t programs, int64_t workspace);
/* Sizes and strides in elements; what was made of the same address for the same decision is kept. */
int nt_describe(const nt_decision *decided, int place, const void *address, const int64_t *shape, const int64_t *strides, nt_descriptor *made);
int nt_run(const nt_decision *decided, void *stream, void **arguments);
int nt_prepare(nt_kernel *kernel, int device);

/* Keeps a message for nt_error_message; gives `result`. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int nt_refuse(int result, const char *format, ...);

/* The workspace of a launch: the caller's, this thread's in nt_set_workspace, or else the stream's own. Its
   first bytes, so many as `zeros`, are 0, and are left so. */
typedef struct {
  void *address;
  int is_own; /* whether this launch has it to itself, and gives it back */
} nt_workspace;

int nt_borrow(const nt_decision *decided, void *stream, int64_t zeros, nt_workspace *borrowed);
/* After the launch, whose result is given. */
int nt_give_back(const nt_decision *decided, void *stream, const nt_workspace *borrowed, int result);

/* --- Numbers. --- */

/* What a guard asks is mostly of constants: in place, little of it is left. */
#define NT_INLINE static inline __attribute__((always_inline))

/* Whether a divisor is known to the compiler, and a power of two: then nothing is divided. */
#define NT_IS_POWER(b) (__builtin_constant_p(b) && (b) > 0 && ((b) & ((b) - 1)) == 0)

/* Integers as Python has them: division rounds down, and by 0 gives 0. What overflows is as large as
   can be, so that a grid of it is refused. */
NT_INLINE int64_t nt_add(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_add_overflow(a, b, &r) ? (b < 0 ? INT64_MIN : INT64_MAX) : r;
}
NT_INLINE int64_t nt_sub(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_sub_overflow(a, b, &r) ? (b < 0 ? INT64_MAX : INT64_MIN) : r;
}
NT_INLINE int64_t nt_mul(int64_t a, int64_t b) {
  int64_t r;
  return __builtin_mul_overflow(a, b, &r) ? ((a < 0) == (b < 0) ? INT64_MAX : INT64_MIN) : r;
}
NT_INLINE int64_t nt_neg(int64_t a) { return nt_sub(0, a); }
NT_INLINE int64_t nt_div(int64_t a, int64_t b) {
  if (NT_IS_POWER(b)) return a >> __builtin_ctzll((unsigned long long)b);
  if (b == 0) return 0;
  if (b == -1) return nt_neg(a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
NT_INLINE int64_t nt_mod(int64_t a, int64_t b) {
  if (NT_IS_POWER(b)) return a & (b - 1);
  if (b == 0 || b == -1) return 0;
  const int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
NT_INLINE int64_t nt_min(int64_t a, int64_t b) { return a < b ? a : b; }
NT_INLINE int64_t nt_max(int64_t a, int64_t b) { return a > b ? a : b; }
/* The least power of two that is no less. */
NT_INLINE int64_t nt_padded(int64_t a) {
  if (a <= 1) return 1;
  return a > ((int64_t)1 << 62) ? INT64_MAX : (int64_t)1 << (64 - __builtin_clzll((unsigned long long)a - 1));
}

/* Between which numbers a value lies. Where one overflowed nothing is known, and nothing follows. */
typedef struct {
  int64_t low, high;
  int is_unknown;
} nt_range;

NT_INLINE nt_range nt_unknown(void) { return (nt_range){0, 0, 1}; }
NT_INLINE nt_range nt_exact(int64_t a) { return (nt_range){a, a, 0}; }
NT_INLINE nt_range nt_between(int64_t low, int64_t high) { return (nt_range){low, high, low > high}; }
NT_INLINE nt_range nt_range_add(nt_range a, nt_range b) {
  nt_range r = {0, 0, a.is_unknown | b.is_unknown};
  r.is_unknown |= __builtin_add_overflow(a.low, b.low, &r.low);
  r.is_unknown |= __builtin_add_overflow(a.high, b.high, &r.high);
  return r;
}
NT_INLINE nt_range nt_range_sub(nt_range a, nt_range b) {
  nt_range r = {0, 0, a.is_unknown | b.is_unknown};
  r.is_unknown |= __builtin_sub_overflow(a.low, b.high, &r.low);
  r.is_unknown |= __builtin_sub_overflow(a.high, b.low, &r.high);
  return r;
}
NT_INLINE nt_range nt_range_neg(nt_range a) { return nt_range_sub(nt_exact(0), a); }
NT_INLINE nt_range nt_range_mul(nt_range a, nt_range b) {
  int64_t w, x, y, z;
  if (a.is_unknown || b.is_unknown || __builtin_mul_overflow(a.low, b.low, &w) || __builtin_mul_overflow(a.low, b.high, &x) ||
      __builtin_mul_overflow(a.high, b.low, &y) || __builtin_mul_overflow(a.high, b.high, &z))
    return nt_unknown();
  return (nt_range){nt_min(nt_min(w, x), nt_min(y, z)), nt_max(nt_max(w, x), nt_max(y, z)), 0};
}
/* By one number: two products instead of four. */
NT_INLINE nt_range nt_range_times(nt_range a, int64_t b) {
  int64_t x, y;
  if (__builtin_mul_overflow(a.low, b, &x) || __builtin_mul_overflow(a.high, b, &y) || a.is_unknown) return nt_unknown();
  return b < 0 ? (nt_range){y, x, 0} : (nt_range){x, y, 0};
}
NT_INLINE nt_range nt_range_div(nt_range a, nt_range b) {
  if (b.low < 1 || a.is_unknown || b.is_unknown) return nt_unknown();
  const int64_t w = nt_div(a.low, b.low), x = nt_div(a.low, b.high);
  const int64_t y = nt_div(a.high, b.low), z = nt_div(a.high, b.high);
  return (nt_range){nt_min(nt_min(w, x), nt_min(y, z)), nt_max(nt_max(w, x), nt_max(y, z)), 0};
}
NT_INLINE nt_range nt_range_mod(nt_range a, nt_range b) {
  if (b.low < 1 || a.is_unknown || b.is_unknown) return nt_unknown();
  if (b.low == b.high && nt_div(a.low, b.low) == nt_div(a.high, b.low))
    return (nt_range){nt_mod(a.low, b.low), nt_mod(a.high, b.low), 0};
  return (nt_range){0, a.low >= 0 ? nt_min(a.high, b.high - 1) : b.high - 1, 0};
}
NT_INLINE nt_range nt_range_min(nt_range a, nt_range b) {
  return (nt_range){nt_min(a.low, b.low), nt_min(a.high, b.high), a.is_unknown | b.is_unknown};
}
NT_INLINE nt_range nt_range_max(nt_range a, nt_range b) {
  return (nt_range){nt_max(a.low, b.low), nt_max(a.high, b.high), a.is_unknown | b.is_unknown};
}
NT_INLINE nt_range nt_range_padded(nt_range a) {
  return (nt_range){nt_padded(a.low), nt_padded(a.high), a.is_unknown || a.high > (int64_t)1 << 62};
}
NT_INLINE int nt_is_within(nt_range a, int64_t low, int64_t high) {
  return !a.is_unknown && a.low >= low && a.high <= high;
}
/* Whether 32 bits hold a number and its negative. */
NT_INLINE int nt_is_narrow(int64_t a) { return a >= -INT32_MAX && a <= INT32_MAX; }
NT_INLINE int nt_is_aligned(const void *address, uintptr_t bytes) { return ((uintptr_t)address & (bytes - 1)) == 0; }

/* --- The call before: what is like that need not be asked again. --- */

/* What is kept of a tensor: its head, what is asked of its address, sizes, strides. */
#define NT_SEEN(rank) (3 + 2 * (rank))

NT_INLINE const void *nt_first(const DLTensor *tensor) {
  return tensor->data ? (const char *)tensor->data + tensor->byte_offset : NULL;
}

NT_INLINE void nt_head(const DLTensor *tensor, uint64_t head[2]) {
  memcpy(head, (const char *)tensor + offsetof(DLTensor, device), 2 * sizeof *head);
}

/* Of an address and of strides whether they are null, and how an address is aligned. */
NT_INLINE uint64_t nt_places(const void *address, const int64_t *strides) {
  return ((uintptr_t)address & (NT_MOST_ALIGNMENT - 1)) | (uint64_t)!address << 32 | (uint64_t)!strides << 33;
}

NT_INLINE int nt_is_seen(const void *address, const int64_t *shape, const int64_t *strides, const uint64_t *seen, int rank) {
  if (nt_places(address, strides) != seen[2] || (rank && !shape)) return 0;
  uint64_t differing = 0;
  for (int dim = 0; dim < rank; dim++) differing |= (uint64_t)shape[dim] ^ seen[3 + dim];
  if (strides)
    for (int dim = 0; dim < rank; dim++) differing |= (uint64_t)strides[dim] ^ seen[3 + rank + dim];
  return !differing;
}

NT_INLINE int nt_is_seen_dlpack(const DLTensor *tensor, const uint64_t *seen, int rank) {
  uint64_t head[2];
  if (!tensor) return 0;
  nt_head(tensor, head);
  return head[0] == seen[0] && head[1] == seen[1] && nt_is_seen(nt_first(tensor), tensor->shape, tensor->strides, seen, rank);
}

NT_INLINE int nt_is_seen_ninetoothed(const NineToothedTensor *tensor, const uint64_t *seen, int rank) {
  return !~seen[0] && nt_is_seen(tensor->data, (const int64_t *)tensor->shape, tensor->strides, seen, rank);
}

static inline void nt_see(const nt_tensor *tensor, uint64_t *seen, int rank) {
  memcpy(seen, tensor->head, sizeof tensor->head);
  seen[2] = nt_places(tensor->data, tensor->strides == tensor->own_strides ? NULL : tensor->strides);
  for (int dim = 0; dim < rank; dim++) {
    seen[3 + dim] = (uint64_t)tensor->shape[dim];
    seen[3 + rank + dim] = (uint64_t)tensor->strides[dim];
  }
}

/* Whether what was decided is of the current context. */
NT_INLINE int nt_is_current(const nt_decision *decided) {
  nt_handle context = NULL;
  if (!decided->context) return 0;
  if (!decided->driver->is_hip) return !decided->driver->context_current(&context) && context == decided->context;
  int ordinal = 0;
  return !decided->driver->context_device(&ordinal) && (nt_handle)(intptr_t)(ordinal + 1) == decided->context;
}

/* --- Narrow floats. --- */

/* Rounded to the nearest, to the even one of two; infinite beyond 65504. */
static inline uint16_t nt_half(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint16_t sign = (uint16_t)(bits >> 48 & 0x8000);
  const int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  uint64_t mantissa = bits & 0xfffffffffffffull;
  if (exponent == 1024) return (uint16_t)(sign | 0x7c00 | (mantissa ? 0x200 : 0));
  if (exponent > 15) return (uint16_t)(sign | 0x7c00);
  if (exponent < -25) return sign;
  mantissa |= 1ull << 52;
  /* A normal number keeps 10 bits behind the first; below the least exponent there are fewer. */
  const int dropped = 42 + (exponent < -14 ? -14 - exponent : 0);
  uint64_t kept = mantissa >> dropped;
  const uint64_t rest = mantissa & ((1ull << dropped) - 1), half = 1ull << (dropped - 1);
  kept += rest > half || (rest == half && (kept & 1));
  /* The first bit adds one to the exponent; so does what rounding carries. */
  return (uint16_t)(sign + kept + (exponent < -14 ? 0 : (uint64_t)(exponent + 14) << 10));
}

static inline uint16_t nt_bfloat16(double value) {
  const float narrow = (float)value;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  return (uint16_t)(bits >> 16);
}

/* --- Binaries in the object file. --- */

/* The bytes of a file beside this one: its name begins with this one's, so that no path is needed. */
#define NT_EMBED(symbol, suffix)                                                        \
  extern const unsigned char symbol[] __attribute__((visibility("hidden")));            \
  __asm__(".pushsection .rodata\n.balign 16\n.globl " #symbol "\n.hidden " #symbol "\n" \
          #symbol ":\n.incbin \"" __FILE__ suffix "\"\n.byte 0\n.popsection\n")

#endif
