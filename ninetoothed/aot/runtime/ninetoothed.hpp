// Kernels that NineToothed compiled ahead of time, from C++: tensors that own their sizes, errors as exceptions.

#ifndef NINETOOTHED_HPP
#define NINETOOTHED_HPP

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ninetoothed_runtime.h"

namespace nt {

// What a call ended with: a negative NT_ERROR_… or the driver's own number.
class Error : public std::runtime_error {
 public:
  explicit Error(int code)
      : std::runtime_error(std::string(nt_error_string(code)) + ": " + nt_error_message()), code_(code) {}
  int code() const noexcept { return code_; }

 private:
  int code_;
};

inline void check(int result) {
  if (result != 0) throw Error(result);
}

// Element types as DLPack has them.
constexpr DLDataType float16{2, 16, 1}, bfloat16{4, 16, 1}, float32{2, 32, 1}, float64{2, 64, 1};
constexpr DLDataType int8{0, 8, 1}, int16{0, 16, 1}, int32{0, 32, 1}, int64{0, 64, 1};

// A view of a device's memory, which it does not own. Without strides it is contiguous.
class Tensor {
 public:
  Tensor(void *data, DLDataType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides = {},
         int device = 0)
      : shape_(std::move(shape)), strides_(std::move(strides)), view_() {
    view_.data = data;
    view_.device.device_type = static_cast<decltype(view_.device.device_type)>(2);
    view_.device.device_id = device;
    view_.ndim = static_cast<std::int32_t>(shape_.size());
    view_.dtype = dtype;
  }

  // Valid as long as the tensor is, and does not move.
  const DLTensor *view() const {
    view_.shape = const_cast<std::int64_t *>(shape_.data());
    view_.strides = strides_.empty() ? nullptr : const_cast<std::int64_t *>(strides_.data());
    return &view_;
  }

 private:
  std::vector<std::int64_t> shape_, strides_;
  mutable DLTensor view_;
};

namespace detail {
inline const DLTensor *passed(const Tensor &tensor) { return tensor.view(); }
template <class Number>
Number passed(Number number) {
  return number;
}
}  // namespace detail

// nt::launch(mm_launch, stream, input, other, output); throws nt::Error.
template <class Function, class... Arguments>
void launch(Function *function, NineToothedStream stream, const Arguments &...arguments) {
  check(function(stream, detail::passed(arguments)...));
}

}  // namespace nt

#endif
