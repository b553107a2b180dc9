// A basic block as a graph of the instructions that FX5800 executes (composite-hpca13 §2, §3): one node for each
// machine instruction that could be half of a composite instruction, and one for each other instruction. An instruction
// that this machine lacks is several nodes (ir/machine/prepare/simple_steps.h).
#pragma once

#include "ir/core/function.h"
#include "ir/flow/def_use.h"
#include "ir/machine/select/lowering.h"
#include "transforms/composite/composite_choice.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::transforms::composite {

inline constexpr uint32_t machine_capability = 13; // FX5800, the paper's machine

// A source of a node: an operand, or the result of a step of the same instruction.
struct Source {
  ir::Operand operand;
  int32_t step = -1; // node
};

struct Node {
  ir::InstructionId instruction;
  // Its operation as a half in a composite's mnemonic: "xor.b32", "shl.wide.s32". Empty if it cannot be a half.
  std::string half;
  std::vector<Source> sources; // of halves and steps
  std::string mnemonic;        // for steps: the PTX instruction to write if the step stays alone
  ir::ValueId result;          // invalid for all steps but the last one, and if there is no result
  int32_t expansion = -1;      // the last step's node, for the steps of one instruction
};

struct Fusion {
  std::string mnemonic;  // "crf.xor.b32.shr.u32"
  unsigned position = 0; // index of the source of the second half that is the intermediate result
};

struct BlockGraph {
  std::vector<Node> nodes;
  Problem problem;
  std::vector<Fusion> fusions; // by pair
};

// Analyses of a function that the graphs of all its blocks need.
struct FunctionFacts {
  explicit FunctionFacts(const ir::Function& function);

  const ir::Function& function;
  ir::Lowering lowering;
  ir::DefUse def_use;
  std::vector<bool> low_halves; // by ValueId, ir/machine/prepare/first_generation.h
};

BlockGraph build_graph(const FunctionFacts& facts, ir::BlockId block);

} // namespace ptxrewrite::transforms::composite
