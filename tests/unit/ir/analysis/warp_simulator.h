// Runs a program of machine registers with the lanes of a small warp, like a machine with a stack of masks: at a
// divergent branch one side runs after the other, in any order, until all lanes reconverge at the immediate
// post-dominator. Branch directions are random, so that every path is possible.
#pragma once

#include "ir/machine/registers/register_program.h"
#include "tests/unit/ir/random_functions.h"

#include <algorithm>
#include <map>
#include <vector>

namespace ptxrewrite::tests {

class WarpSimulator {
public:
  static constexpr unsigned lanes = 3;
  using Mask = unsigned; // one bit per lane
  static constexpr Mask all = (1u << lanes) - 1;

  WarpSimulator(const ir::RegisterProgram& program, Random& random) : program_(program), random_(random) {}
  virtual ~WarpSimulator() = default;

  // Returns false if the warp was stopped after this many blocks.
  bool run(unsigned most_blocks) {
    stack_ = {{0, ir::RegisterBlock::none, all}};
    alive_ = all;
    while (!stack_.empty()) {
      Entry& top = stack_.back();
      top.mask &= alive_;
      if (top.mask == 0 || top.block == top.meeting) {
        stack_.pop_back();
        continue;
      }
      if (most_blocks-- == 0) return false;
      run_block(top.block, top.mask);
      leave(top.block, top.mask);
    }
    return true;
  }
  Mask alive() const { return alive_; }

protected:
  // `active`: lanes at the instruction; `writing`: those of them whose guard is true.
  virtual void execute(uint32_t block, uint32_t index, Mask active, Mask writing) = 0;

private:
  struct Entry {
    uint32_t block, meeting;
    Mask mask;
  };

  void run_block(uint32_t block, Mask mask) {
    for (uint32_t i = 0; i < program_.blocks[block].instructions.size(); ++i) {
      Mask writing = mask;
      if (program_.blocks[block].instructions[i].guarded) writing &= below(random_, all + 1);
      execute(block, i, mask, writing);
    }
  }

  void leave(uint32_t block, Mask mask) {
    const ir::RegisterBlock& row = program_.blocks[block];
    if (row.successors.empty()) {
      alive_ &= ~mask;
      return;
    }
    std::map<uint32_t, Mask> ways;
    uint32_t together = row.successors[below(random_, static_cast<unsigned>(row.successors.size()))];
    bool parts = row.diverges && below(random_, 3) != 0;
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (mask >> lane & 1)
        ways[parts ? row.successors[below(random_, static_cast<unsigned>(row.successors.size()))] : together] |=
            1u << lane;
    if (ways.size() == 1) {
      stack_.back().block = ways.begin()->first;
      return;
    }
    stack_.back().block = row.post_dominator;
    if (row.post_dominator == ir::RegisterBlock::none) stack_.pop_back();
    std::vector<std::pair<uint32_t, Mask>> order(ways.begin(), ways.end());
    std::shuffle(order.begin(), order.end(), random_);
    for (auto [way, some] : order)
      stack_.push_back({way, row.post_dominator, some});
  }

  const ir::RegisterProgram& program_;
  Random& random_;
  std::vector<Entry> stack_;
  Mask alive_ = all;
};

// `blocks` blocks with random edges, and instructions on few registers.
inline ir::RegisterProgram random_register_program(Random& random, ir::Function& function, unsigned blocks,
                                                   unsigned registers) {
  make_random_graph(function, random, blocks);
  ir::RegisterProgram program = ir::register_blocks(function);
  program.registers = registers;
  for (ir::RegisterBlock& block : program.blocks)
    for (unsigned k = below(random, 6); k-- > 0;) {
      ir::RegisterInstruction instruction;
      for (unsigned reads = below(random, 3); reads-- > 0;)
        instruction.reads.set(below(random, registers));
      if (below(random, 4) != 0) instruction.writes.set(below(random, registers));
      instruction.guarded = below(random, 4) == 0;
      instruction.long_latency = below(random, 6) == 0;
      block.instructions.push_back(instruction);
    }
  return program;
}

} // namespace ptxrewrite::tests
