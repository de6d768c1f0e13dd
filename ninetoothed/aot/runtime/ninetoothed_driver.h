/* The driver's functions, as far as the runtime uses them, and what it has of a kernel in a context. */

#ifndef NINETOOTHED_DRIVER_H
#define NINETOOTHED_DRIVER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

typedef void *nt_handle;

/* CUlaunchAttribute of cuda.h. */
typedef struct {
  int id, padding;
  union {
    char bytes[64];
    int number;
  } value;
} nt_launch_attribute;

/* CUlaunchConfig of cuda.h. */
typedef struct {
  unsigned grid[3], block[3], shared_memory;
  nt_handle stream;
  const nt_launch_attribute *attributes;
  unsigned attribute_count;
} nt_launch;

/* CUDA's and HIP's functions differ in their names alone, as far as they are used here. */
typedef struct {
  int is_hip;
  int (*init)(unsigned), (*device_count)(int *);
  int (*error_string)(int, const char **);
  int (*context_current)(nt_handle *), (*context_set)(nt_handle), (*context_device)(int *);
  int (*primary_retain)(nt_handle *, int), (*set_device)(int);
  int (*device_attribute)(int *, int, int);
  int (*pointer_attribute)(void *, int, uint64_t);
  int (*module_load)(nt_handle *, const void *);
  int (*module_function)(nt_handle *, nt_handle, const char *);
  int (*function_attribute)(nt_handle, int, int);
  int (*launch)(nt_handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, nt_handle, void **, void **);
  int (*launch_extended)(const nt_launch *, nt_handle, void **, void **);
  int (*resident)(int *, nt_handle, int, size_t);
  int (*describe)(void *, int, uint32_t, const void *, const uint64_t *, const uint64_t *, const uint32_t *, const uint32_t *, int, int, int, int);
  int (*capturing)(nt_handle, int *), (*stream_number)(nt_handle, uint64_t *);
  int (*allocate)(uint64_t *, size_t, nt_handle), (*give_back)(uint64_t, nt_handle), (*fill)(uint64_t, unsigned char, size_t, nt_handle);
} nt_driver;

/* Keeps a message on a call of the driver's that failed; gives its result. */
int nt_driver_failed(const nt_driver *known, int result, const char *kernel, const char *what);

/* What is loaded or kept is so under this lock. */
extern pthread_mutex_t nt_lock;

#endif
