// Two facts about GT200 (FX5800) that composite-hpca13 leaves out, as counts: what the paper's figures would be with
// them.
//
// Products: the multiplier has 24 bits; a product of 32 bits is four instructions, by 16 bits each (CUDA Programming
// Guide 2.3, 5.1.1.1: mul24 takes four clocks of a warp, a product of 32 bits 16). The paper's SMUL multiplies 32 bits
// at once (§3.1). Shared operands: an ALU instruction may read one operand from shared memory (§3.3 speaks of them), so
// that a load with no other reader is no instruction.
#pragma once

#include "ir/core/function.h"

#include <map>
#include <vector>

namespace ptxrewrite::tests {

struct Gt200Facts {
  bool split_products = false;     // four instructions, unless both factors are known to have 24 bits
  bool split_in_composites = true; // valid with the former: false: a composite's multiplication is still one
  bool shared_operands = false;
};

class Gt200 {
public:
  explicit Gt200(Gt200Facts facts) : facts_(facts) {}
  // The number of instructions if the paper's table counts `weight`.
  uint64_t operator()(const ir::Function& function, ir::InstructionId id, uint64_t weight);

private:
  struct Change {
    bool is_split_product = false, is_shared_operand = false;
  };
  std::vector<Change> changes_in(const ir::Function& function) const;

  Gt200Facts facts_;
  std::map<const ir::Function*, std::vector<Change>> known_;
};

} // namespace ptxrewrite::tests
