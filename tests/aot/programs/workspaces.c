/* Eight threads whose launches share memory of the device's, four on one stream and each other on its own. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "convolution.h"

enum { THREADS = 8, CALLS = 500, SHARED = 4 };

extern int allocations, given_back;

static pthread_barrier_t begin;

static DLTensor tensor(int64_t *shape) {
  DLTensor made = {.data = (void *)0x1000, .ndim = 4, .shape = shape};
  made.device.device_type = 2;
  made.dtype.code = 2;
  made.dtype.bits = 16;
  made.dtype.lanes = 1;
  return made;
}

static void *work(void *argument) {
  const int number = *(int *)argument;
  int64_t a[] = {1, 512, 6, 6}, b[] = {32, 512, 3, 3}, c[] = {1, 32, 4, 4};
  DLTensor x = tensor(a), y = tensor(b), z = tensor(c);
  void *const stream = (void *)(uintptr_t)(100 + (number < SHARED ? 0 : number));
  pthread_barrier_wait(&begin);
  for (int i = 0; i < CALLS; i++) {
    const int result = convolution_launch(stream, &x, &y, &z);
    if (result) {
      printf("thread %d: %d, %s\n", number, result, nt_error_message());
      exit(1);
    }
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
  printf("%d made, %d given back\n", allocations, given_back);
  return 0;
}
