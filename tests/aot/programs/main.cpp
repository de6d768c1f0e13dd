#include <cstdio>

#include "mm.h"
#include "ninetoothed.hpp"

int main() {
  void *const memory = reinterpret_cast<void *>(0x1000);
  const nt::Tensor input(memory, nt::float16, {64, 32}), other(memory, nt::float16, {32, 48}, {48, 1});
  nt::Tensor output(memory, nt::float16, {64, 48});
  nt::launch(mm_launch, nullptr, input, other, output);
  try {
    nt::launch(mm_launch, nullptr, input, nt::Tensor(memory, nt::float32, {32, 48}), output);
  } catch (const nt::Error &error) {
    std::printf("%d %s\n", error.code(), error.what());
  }
  return 0;
}
