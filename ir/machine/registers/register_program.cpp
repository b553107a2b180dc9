// Converts an allocated function to machine registers, see register_program.h.
#include "ir/machine/registers/register_program.h"

#include "ir/flow/dominators.h"
#include "ir/machine/prepare/uniform.h"
#include "ir/machine/registers/dependences.h"

#include <algorithm>
#include <cassert>

namespace ptxrewrite::ir {

bool RegisterProgram::dominates(uint32_t upper, uint32_t lower) const {
  while (lower != upper && lower != RegisterBlock::none)
    lower = blocks[lower].dominator;
  return lower == upper;
}

RegisterProgram register_blocks(const Function& function) {
  ControlFlow flow(function);
  DominatorTree dominators(function, flow);
  PostDominatorTree post_dominators(function, flow);
  std::vector<uint32_t> place(function.blocks.size(), RegisterBlock::none);
  RegisterProgram program;
  for (BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    place[block.index()] = static_cast<uint32_t>(program.blocks.size());
    program.blocks.emplace_back().id = block;
  }
  auto place_of = [&](BlockId block) { return block ? place[block.index()] : RegisterBlock::none; };
  for (RegisterBlock& block : program.blocks) {
    for (EdgeId edge : function.successors(block.id)) {
      uint32_t to = place_of(function.edges[edge].to);
      if (std::ranges::find(block.successors, to) == block.successors.end()) block.successors.push_back(to);
    }
    block.diverges = block.successors.size() > 1;
    block.dominator = place_of(dominators.immediate_dominator(block.id));
    block.post_dominator = place_of(post_dominators.immediate_post_dominator(block.id));
  }
  return program;
}

namespace {

void add(RegisterSet& set, const MachineValues& values, const Allocation& allocation, ValueId value) {
  uint16_t first = allocation.first_register(value);
  if (first == Allocation::no_register || values.is_predicate(value)) return;
  for (unsigned unit = 0; unit < values.units(value); ++unit)
    set.set(first + unit);
}

} // namespace

RegisterProgram register_program(const Function& function, const MachineValues& values, const Allocation& allocation) {
  assert(allocation.moves.empty());
  RegisterProgram program = register_blocks(function);
  program.registers = allocation.registers;
  ControlFlow flow(function);
  DominatorTree dominators(function, flow);
  PostDominatorTree post_dominators(function, flow);
  UniformValues uniform(function, flow, dominators, post_dominators);
  std::vector<RegisterSet> temporaries(function.instructions.size());
  for (const VectorTemporary& temporary : allocation.temporaries)
    for (unsigned i = 0; i < temporary.count; ++i)
      temporaries[temporary.instruction.index()].set(temporary.first + i);
  for (RegisterBlock& block : program.blocks) {
    block.diverges &= !uniform.branch_is_uniform(block.id);
    for (InstructionId id : function.instructions_in(block.id)) {
      const Instruction& instruction = function.instructions[id];
      if (instruction.kind != InstructionKind::real) continue;
      if (!values.is_issued(id) && values.writes(id).empty()) continue;
      RegisterInstruction row;
      row.id = id;
      row.weight = values.lowering().cost(id).weight;
      row.guarded = function.keeps_old_values(id);
      row.long_latency = is_long_latency(function.form_of(id));
      row.waits = function.is_opcode(id, Opcode::bar) || function.is_opcode(id, Opcode::barrier);
      row.temporaries = temporaries[id.index()];
      for (ValueId value : values.reads(id))
        add(row.reads, values, allocation, value);
      for (ValueId value : values.writes(id))
        add(row.writes, values, allocation, value);
      block.instructions.push_back(row);
    }
  }
  return program;
}

} // namespace ptxrewrite::ir
