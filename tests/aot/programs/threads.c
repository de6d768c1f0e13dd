/* Eight threads whose first call is the first of all, and then many more; each looks at what it launched. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "mm.h"

enum { THREADS = 8, CALLS = 2000 };

typedef struct {
  uint64_t launches, grid, block, shared, stream, image, context;
} recording;

recording *last_recording(void);
extern int modules_loaded, launches;

static pthread_barrier_t begin;

static DLTensor tensor(int64_t *shape, uintptr_t address) {
  DLTensor made = {.data = (void *)address, .ndim = 2, .shape = shape};
  made.device.device_type = 2;
  made.dtype.code = 2;
  made.dtype.bits = 16;
  made.dtype.lanes = 1;
  return made;
}

static void *work(void *argument) {
  const int number = *(int *)argument;
  pthread_barrier_wait(&begin);
  for (int i = 0; i < CALLS; i++) {
    int64_t rows = 64 * (1 + (number + i) % 5);
    int64_t a[] = {rows, 32}, b[] = {32, 48}, c[] = {rows, 48};
    const uintptr_t address = 0x1000 + 2 * (uintptr_t)(i % 3);
    DLTensor x = tensor(a, address), y = tensor(b, address), z = tensor(c, address);
    const int result = mm_launch((void *)(uintptr_t)(100 + number), &x, &y, &z);
    if (result || last_recording()->stream != (uint64_t)(100 + number)) {
      printf("thread %d: %d, %s\n", number, result, nt_error_message());
      exit(1);
    }
    /* A refusal's message is its thread's own. */
    z.ndim = 3;
    if (mm_launch(NULL, &x, &y, &z) != NT_ERROR_RANK) exit(2);
  }
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  int numbers[THREADS];
  pthread_barrier_init(&begin, NULL, THREADS);
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    pthread_create(&threads[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  printf("%d launches, %d modules\n", launches, modules_loaded);
  return 0;
}
