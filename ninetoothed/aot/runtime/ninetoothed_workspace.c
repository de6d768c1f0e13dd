/* Memory of the device that the programs of a launch share: the caller's, or a stream's own.

   A stream's launches run one after the other, so they share a workspace. It is made when a stream first
   needs it and kept as long as the process. A launch that goes into a graph, or into a stream that is not
   the same in every thread, has one to itself, in the stream's order; so has one of a stream that comes
   when many have theirs. */

#include "ninetoothed_kernel.h"

#include <stdlib.h>

/* The handles of the default stream and of each thread's own: CUDA's and HIP's. */
#define NT_DEFAULT_STREAM ((void *)0)
#define NT_STREAM_OF_THREAD ((void *)2)

enum { MOST_KEPT = 256 };

typedef struct kept {
  nt_handle context;
  uint64_t stream; /* what no other stream of the process has or had */
  int64_t bytes;
  uint64_t address;
  struct kept *next;
} kept;

static _Atomic(kept *) the_kept;
static int kept_count;

static _Thread_local struct {
  void *address;
  int64_t bytes;
} given;

void nt_set_workspace(void *address, int64_t bytes) {
  given.address = address;
  given.bytes = address ? bytes : 0;
}

static int make(const nt_decision *decided, void *stream, int64_t bytes, int64_t zeros, uint64_t *address) {
  const nt_driver *known = decided->driver;
  if (!known->allocate || !known->give_back || !known->fill)
    return nt_refuse(NT_ERROR_SYMBOL, "kernel `%s`: the driver has no memory in a stream's order: give a workspace of %lld bytes to nt_set_workspace", decided->name, (long long)bytes);
  int result = known->allocate(address, (size_t)bytes, stream);
  if (!result && (result = known->fill(*address, 0, (size_t)zeros, stream))) known->give_back(*address, stream);
  return result ? nt_driver_failed(known, result, decided->name, "there is no memory for its workspace") : 0;
}

static kept *look_up(nt_handle context, uint64_t stream, int64_t bytes) {
  kept *each = atomic_load_explicit(&the_kept, memory_order_acquire);
  while (each && (each->context != context || each->stream != stream || each->bytes < bytes)) each = each->next;
  return each;
}

/* With the lock held. What was kept before stays: it may be in use, and is no larger. */
static int keep(const nt_decision *decided, void *stream, uint64_t number, int64_t zeros, kept **found) {
  int64_t bytes = nt_padded(decided->workspace);
  uint64_t address;
  if (kept_count == MOST_KEPT) return 0;
  const int result = make(decided, stream, bytes, zeros, &address);
  kept *made = result ? NULL : malloc(sizeof *made);
  if (result || !made) return result ? result : nt_refuse(NT_ERROR_MEMORY, "kernel `%s`: the host's memory is exhausted", decided->name);
  *made = (kept){decided->context, number, bytes, address, atomic_load_explicit(&the_kept, memory_order_relaxed)};
  atomic_store_explicit(&the_kept, *found = made, memory_order_release);
  kept_count++;
  return 0;
}

/* What the stream's workspace is kept under; 0 where its launches have one each. */
static int number_of(const nt_driver *known, void *stream, uint64_t *number) {
  int capturing = 0;
  *number = UINT64_MAX;
  if (stream == NT_DEFAULT_STREAM) return 1;
  if (stream == NT_STREAM_OF_THREAD || !known->stream_number || !known->capturing) return 0;
  return !known->capturing(stream, &capturing) && !capturing && !known->stream_number(stream, number);
}

int nt_borrow(const nt_decision *decided, void *stream, int64_t zeros, nt_workspace *borrowed) {
  uint64_t number, address;
  int result = 0;
  borrowed->is_own = 0;
  borrowed->address = given.address;
  if (given.address && given.bytes >= decided->workspace) return 0;
  if (given.address)
    return nt_refuse(NT_ERROR_WORKSPACE, "kernel `%s` needs a workspace of %lld bytes; the one that was given has %lld", decided->name, (long long)decided->workspace, (long long)given.bytes);
  if (number_of(decided->driver, stream, &number)) {
    kept *found = look_up(decided->context, number, decided->workspace);
    if (!found) {
      pthread_mutex_lock(&nt_lock);
      found = look_up(decided->context, number, decided->workspace);
      if (!found) result = keep(decided, stream, number, zeros, &found);
      pthread_mutex_unlock(&nt_lock);
    }
    if (found) borrowed->address = (void *)(uintptr_t)found->address;
    if (found || result) return result;
  }
  if ((result = make(decided, stream, decided->workspace, zeros, &address))) return result;
  borrowed->address = (void *)(uintptr_t)address;
  borrowed->is_own = 1;
  return 0;
}

int nt_give_back(const nt_decision *decided, void *stream, const nt_workspace *borrowed, int result) {
  if (!borrowed->is_own) return result;
  const int other = decided->driver->give_back((uint64_t)(uintptr_t)borrowed->address, stream);
  if (result || !other) return result;
  return nt_driver_failed(decided->driver, other, decided->name, "its workspace cannot be given back");
}
