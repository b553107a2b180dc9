// Selects the entry of a module that runs when a kernel is launched, for both the emulator and the driver.
//
// The variants are described in the module's side file, or by annotations of the rewritten kernel:
//   //@ r2d2 original k           this kernel runs in place of k
//   //@ r2d2 requires <e>         if all these launch predicates hold
//   //@ r2d2 parameter u64 <e>    with this parameter after the original's; one line per parameter, in order
//   //@ r2d2 grid persistent      with as many blocks as the device can hold at once
//   //@ dac block producer        with the block's threads in one row, and one additional warp
// (r2d2 or another pass's name). The side file has precedence: annotations about a kernel that it describes are
// ignored. A predicate that cannot be parsed or evaluated counts as false.
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

// The selected entry and its launch parameters.
struct VariantChoice {
  const ir::Function* entry = nullptr;
  std::vector<std::byte> parameter_block;
  GridMode grid = GridMode::same;
  Dim3 block; // block dimensions to launch with
  bool is_original = true;
  std::vector<std::string> reasons; // why earlier variants were rejected: "k__r2d2: not fulfilled: ntid.x == 16"
};

// A variant that cannot be expressed in a side file.
struct LeftOut {
  std::string kernel;
  std::string entry;
  std::string reason;
};

// Called for a variant whose requirements hold: returns a reason to run the original instead, or "" if there is
// none.
using VariantObjection = std::function<std::string(const ir::Function& original, const ir::Function& variant)>;

class Variants {
public:
  // `side_file`: nullptr if there is none. Returns an error if it names an entry that the module does not have.
  static Result<Variants> of(const ir::Module& module, const SideFile* side_file);

  // The kernel's variants in the order in which they are tried.
  std::span<const Variant> of_kernel(std::string_view kernel) const;
  // The largest number of variants that a kernel has.
  size_t most_of_a_kernel() const;
  // The same without the first `count` variants of each kernel: to test those that launches seldom select.
  Variants without_first(size_t count) const;
  // As a side file, for modules with annotations only. Leaves out variants that a side file cannot express.
  SideFile as_side_file(std::vector<LeftOut>& left_out) const;
  // `parameter_block` is the original's. Returns an error if there is no such kernel.
  Result<VariantChoice> choose(std::string_view kernel, std::span<const std::byte> parameter_block, const Dim3& grid,
                               const Dim3& block, const VariantObjection& objection = {}) const;

private:
  struct Kernel {
    std::string name;
    std::string original;
    std::vector<Variant> variants;
  };
  const Kernel* find(std::string_view name) const;
  Status add_side_file(const SideFile& file);
  void add_annotations(const SideFile* side_file);
  bool try_variant(const Variant& variant, const LaunchFacts& facts, const ir::Function& original,
                   const VariantObjection& objection, VariantChoice& choice) const;

  const ir::Module* module_ = nullptr;
  std::vector<Kernel> kernels_;
};

} // namespace ptxrewrite::launch
