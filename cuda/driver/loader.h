// A rewritten module on a GPU, for programs that launch kernels of their own: takes the original's name and arguments,
// and launches the best code for them: a variant whose launch predicate holds, with the parameters that the host
// computes for it and, if it is persistent, as many blocks as the GPU holds; otherwise the original.
//
//   auto gpu = driver::Gpu::open();
//   auto loader = driver::Loader::load(**gpu, *module, &*side_file);
//   auto launched = loader->launch("saxpy", {grid}, {block}, {&a, &x, &y, &n});
//   auto status = (*gpu)->finish();
#pragma once

#include "cuda/driver/gpu.h"
#include "ir/core/module.h"
#include "launch/variants.h"

#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::driver {

// The kernel that was launched.
struct Launched {
  std::string entry;
  launch::Dim3 grid;
  bool is_original = true;
  std::vector<std::string> reasons; // why preceding variants were not launched: "k__r2d2: not fulfilled: ntid.x == 16"
};

class Loader {
public:
  // Compiles the module, which has the originals and their variants; the side file, or annotations if it is nullptr,
  // tells which variant belongs to which original. GPU and module must outlive the loader. Fails with the errors of the
  // driver's compiler, or if the side file names a kernel that the module does not have.
  static Result<Loader> load(Gpu& gpu, const ir::Module& module, const launch::SideFile* side_file);

  // Starts a kernel asynchronously; Gpu::finish waits. `arguments`: pointers to the values of the original's
  // parameters, as for cuLaunchKernel. Fails for an unknown kernel, a wrong number of arguments, or with the driver's
  // error.
  Result<Launched> launch(std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
                          std::initializer_list<const void*> arguments, uint32_t dynamic_shared = 0);
  // The same, with the bytes of the original's .param space.
  Result<Launched> launch_packed(std::string_view kernel, const launch::Dim3& grid, const launch::Dim3& block,
                                 std::span<const std::byte> parameters, uint32_t dynamic_shared = 0);

  // For direct access to variables, attributes and kernels.
  GpuModule& module() { return *on_gpu_; }

private:
  Loader(Gpu& gpu, const ir::Module& module, launch::Variants variants, std::unique_ptr<GpuModule> on_gpu)
      : gpu_(&gpu), module_(&module), variants_(std::move(variants)), on_gpu_(std::move(on_gpu)) {}

  Gpu* gpu_;
  const ir::Module* module_;
  launch::Variants variants_;
  std::unique_ptr<GpuModule> on_gpu_;
};

} // namespace ptxrewrite::driver
