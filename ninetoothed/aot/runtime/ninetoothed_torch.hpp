// Tensors and streams of PyTorch for kernels that NineToothed compiled ahead of time, by PyTorch's stable
// interface: what is compiled with one release of it runs with later ones.

#ifndef NINETOOTHED_TORCH_HPP
#define NINETOOTHED_TORCH_HPP

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/tensor.h>

#include "ninetoothed.hpp"

// PyTorch calls AMD's devices CUDA too.
#ifndef NT_TORCH_DISPATCH_KEY
#define NT_TORCH_DISPATCH_KEY CUDA
#endif

extern "C" AOTITorchError aoti_torch_get_current_cuda_stream(int32_t device_index, void **ret_stream);

namespace nt {

inline DLDataType dtype(torch::headeronly::ScalarType type) {
  using T = torch::headeronly::ScalarType;
  switch (type) {
    case T::Bool: return {6, 8, 1};
    case T::Byte: return {1, 8, 1};
    case T::UInt16: return {1, 16, 1};
    case T::UInt32: return {1, 32, 1};
    case T::UInt64: return {1, 64, 1};
    case T::Char: return int8;
    case T::Short: return int16;
    case T::Int: return int32;
    case T::Long: return int64;
    case T::Half: return float16;
    case T::BFloat16: return bfloat16;
    case T::Float: return float32;
    case T::Double: return float64;
    case T::Float8_e4m3fn: return {10, 8, 1};
    case T::Float8_e5m2: return {12, 8, 1};
    default: throw std::runtime_error("kernels take no tensors of this element type");
  }
}

inline Tensor from_torch(const torch::stable::Tensor &given) {
  const auto sizes = given.sizes(), strides = given.strides();
  return Tensor(given.data_ptr(), dtype(given.scalar_type()), {sizes.begin(), sizes.end()}, {strides.begin(), strides.end()},
                given.get_device_index());
}

inline NineToothedStream current_stream(const torch::stable::Tensor &given) {
  void *stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(given.get_device_index(), &stream));
  return stream;
}

}  // namespace nt

#endif
