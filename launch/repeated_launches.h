// Launches that a program repeats, for which a kernel of their own is worth making: `exec --specialise`.
#pragma once

#include "ir/core/module.h"
#include "launch/launch_plan.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::launch {

// Describes launches of a kernel as `opt --specialise` takes them: `block=16x16x1,grid=64x64x1,param.2=1024`. Integer
// parameters are part of it, addresses and floats are not: launches that differ in these alone have the same key.
class LaunchKeys {
public:
  LaunchKeys(const ir::Module& module, const ir::Function& kernel);

  // `parameters`: the block of parameters, as laid out by launch::signature_of.
  std::string of(const Dim3& grid, const Dim3& block, std::span<const std::byte> parameters) const;

private:
  struct Number {
    size_t index = 0; // of the parameter
    uint64_t offset = 0, bytes = 0;
  };
  std::vector<Number> numbers_;
};

// Which launches of a kernel are repeated.
class RepeatedLaunches {
public:
  static constexpr size_t most_kernels = 4;  // for launches of one kernel: code must not grow without end
  static constexpr size_t most_counted = 64; // different launches of one kernel

  // Counts a launch. True if it is the `times`-th one with this key, and a kernel may be made for it.
  bool is_due(const std::string& key, uint64_t times);

private:
  std::map<std::string, uint64_t> counts_;
  size_t due_ = 0;
};

} // namespace ptxrewrite::launch
