// Runs a package of AOTInductor that calls a library's operator, where no Python is: package PACKAGE LIBRARY.

#include <ATen/ops/zeros.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <cstdio>

int main(int count, char **arguments) {
  if (count != 3 || !dlopen(arguments[2], RTLD_NOW | RTLD_GLOBAL)) return 2;
  torch::inductor::AOTIModelPackageLoader loader(arguments[1]);
  const auto half = at::TensorOptions().dtype(at::kHalf);
  const auto found = loader.run({at::zeros({64, 48}, half), at::zeros({64, 32}, half), at::zeros({32, 48}, half)});
  const bool has_python = dlsym(RTLD_DEFAULT, "Py_Initialize") != nullptr;
  std::printf("%zu output, %s Python\n", found.size(), has_python ? "with" : "without");
  return 0;
}
