// Which entry of a module runs when a kernel is launched: one answer for the emulator and the driver.
//
// A module says it in its side file, or by annotations of the rewritten kernel:
//   //@ r2d2 original k           this kernel runs in the place of k
//   //@ r2d2 requires <e>         when all these launch predicates hold
//   //@ r2d2 parameter u64 <e>    with this further parameter behind the original's; one line for each, in order
//   //@ r2d2 grid persistent      with as many blocks as the device runs at once
//   //@ dac block producer        with the block's threads in one row, and one warp more
// (r2d2 or any other pass's name). The side file comes first; where it describes a kernel, annotations about that
// kernel are not looked at. A predicate that cannot be read or evaluated is not fulfilled.
#pragma once

#include "ir/core/module.h"
#include "launch/predicate.h"
#include "launch/side_file.h"

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::launch {

struct Variant {
  std::string entry;
  std::vector<LaunchExpression> requirements; // all must hold
  std::vector<std::string> unreadable;        // requirements and parameters that do not parse: the variant never runs
  std::vector<ComputedParameter> parameters;
  GridMode grid = GridMode::same;
  BlockMode block = BlockMode::same;
};

// What runs.
struct VariantChoice {
  const ir::Function* entry = nullptr;
  std::vector<std::byte> parameter_block;
  GridMode grid = GridMode::same;
  Dim3 block; // to launch with
  bool is_original = true;
  std::vector<std::string> reasons; // why variants before it did not run: "k__r2d2: not fulfilled: ntid.x == 16"
};

// A variant that has no place in a side file.
struct LeftOut {
  std::string kernel;
  std::string entry;
  std::string reason;
};

// Asked about a variant whose requirements hold: why the original shall run all the same; "" if nothing speaks against
// the variant.
using VariantObjection = std::function<std::string(const ir::Function& original, const ir::Function& variant)>;

class Variants {
public:
  // Without a side file, pass nullptr. Errors: the side file names an entry that the module does not have.
  static Result<Variants> of(const ir::Module& module, const SideFile* side_file);

  // The kernel's variants in the order in which they are tried.
  std::span<const Variant> of_kernel(std::string_view kernel) const;
  // The same as a side file: for modules whose annotations say it all. A variant that it cannot describe is left out.
  SideFile as_side_file(std::vector<LeftOut>& left_out) const;
  // `parameter_block` as the original takes it. Errors: no such kernel.
  Result<VariantChoice> choose(std::string_view kernel, std::span<const std::byte> parameter_block, const Dim3& grid,
                               const Dim3& block, const VariantObjection& objection = {}) const;

private:
  struct Kernel {
    std::string name;
    std::string original;
    std::vector<Variant> variants;
  };
  const Kernel* find(std::string_view name) const;
  Kernel& kernel_named(const std::string& name);
  Status add_side_file(const SideFile& file);
  void add_annotations(const SideFile* side_file);
  bool try_variant(const Variant& variant, const LaunchFacts& facts, const ir::Function& original,
                   const VariantObjection& objection, VariantChoice& choice) const;

  const ir::Module* module_ = nullptr;
  std::vector<Kernel> kernels_;
};

} // namespace ptxrewrite::launch
