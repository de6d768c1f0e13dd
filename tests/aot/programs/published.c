/* Written against the published interface alone: structures, one function, 0 for success. */

#include <stdio.h>

#include "addmm.h"

int main(void) {
  uint64_t input_shape[2] = {100, 200}, left_shape[2] = {100, 300}, right_shape[2] = {300, 200};
  int64_t input_strides[2] = {200, 1}, left_strides[2] = {300, 1}, right_strides[2] = {200, 1};
  double beta = 0.5, alpha = -1.5;
  NineToothedTensor input = {(void *)0x1000, input_shape, input_strides};
  NineToothedTensor mat1 = {(void *)0x2000, left_shape, left_strides};
  NineToothedTensor mat2 = {(void *)0x3000, right_shape, right_strides};
  NineToothedTensor output = {(void *)0x4000, input_shape, input_strides};
  NineToothedTensor beta_tensor = {&beta, NULL, NULL}, alpha_tensor = {&alpha, NULL, NULL};
  NineToothedStream stream = NULL;
  NineToothedResult result = launch_addmm(stream, input, mat1, mat2, beta_tensor, alpha_tensor, output);
  printf("%d\n", result);
  return result;
}
