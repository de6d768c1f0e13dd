// What calls.c does, in C++: a tensor owns its sizes, and what goes wrong is an exception.

#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "add.h"
#include "addmm.h"
#include "bmm.h"
#include "conv2d.h"
#include "mm.h"
#include "ninetoothed.hpp"
#include "rms_norm.h"
#include "rope.h"
#include "sdpa.h"
#include "silu.h"
#include "softmax.h"

using Tensors = std::vector<nt::Tensor>;
using Numbers = std::vector<double>;

static void *const stream = reinterpret_cast<void *>(4711);

static const std::map<std::string, void (*)(const Tensors &, const Numbers &)> kernels{
    {"add", [](const Tensors &t, const Numbers &) { nt::launch(add_launch, stream, t[0], t[1], t[2]); }},
    {"addmm",
     [](const Tensors &t, const Numbers &n) { nt::launch(addmm_launch, stream, t[0], t[1], t[2], n[0], n[1], t[3]); }},
    {"bmm", [](const Tensors &t, const Numbers &) { nt::launch(bmm_launch, stream, t[0], t[1], t[2]); }},
    {"conv2d", [](const Tensors &t, const Numbers &) { nt::launch(conv2d_launch, stream, t[0], t[1], t[2]); }},
    {"mm", [](const Tensors &t, const Numbers &) { nt::launch(mm_launch, stream, t[0], t[1], t[2]); }},
    {"rms_norm", [](const Tensors &t, const Numbers &n) { nt::launch(rms_norm_launch, stream, t[0], n[0], t[1]); }},
    {"rope", [](const Tensors &t, const Numbers &) { nt::launch(rope_launch, stream, t[0], t[1], t[2], t[3]); }},
    {"sdpa", [](const Tensors &t, const Numbers &n) { nt::launch(sdpa_launch, stream, t[0], t[1], t[2], n[0], t[3]); }},
    {"silu", [](const Tensors &t, const Numbers &) { nt::launch(silu_launch, stream, t[0], t[1]); }},
    {"softmax", [](const Tensors &t, const Numbers &) { nt::launch(softmax_launch, stream, t[0], t[1]); }},
};

static nt::Tensor read(std::istream &line) {
  std::int64_t address = 0, offset = 0, code = 0, bits = 0, rank = 0;
  line >> address >> offset >> code >> bits >> rank;
  std::vector<std::int64_t> shape(static_cast<std::size_t>(rank)), strides(shape);
  for (auto &size : shape) line >> size;
  for (auto &stride : strides) line >> stride;
  const DLDataType dtype{static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits), 1};
  return nt::Tensor(reinterpret_cast<void *>(address + offset), dtype, shape, strides);
}

int main(int count, char **arguments) {
  std::ifstream file(count > 1 ? arguments[1] : "");
  if (!file) return 2;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string kernel, number;
    std::size_t num_tensors = 0, num_numbers = 0;
    Tensors tensors;
    Numbers numbers;
    for (line >> kernel >> num_tensors; tensors.size() < num_tensors;) tensors.push_back(read(line));
    for (line >> num_numbers; numbers.size() < num_numbers && line >> number;) numbers.push_back(std::stod(number));
    try {
      kernels.at(kernel)(tensors, numbers);
      std::puts("0 ");
    } catch (const nt::Error &error) {
      std::printf("%d %s\n", error.code(), error.what());
    }
  }
  return 0;
}
