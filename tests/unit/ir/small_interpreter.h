// Runs the functions of random_functions.h, in SSA form or not, one instruction after the other. Undefined values are
// tracked and are not compared.
#pragma once

#include "ir/core/module.h"

#include <optional>
#include <stdexcept>
#include <vector>

namespace ptxrewrite::tests {

using Known = std::optional<uint64_t>;

// The stored values of a run, in order; nullopt if a value is not determined.
struct Trace {
  std::vector<Known> stores;
  bool undetermined = false; // ended at a branch on an undetermined value
};

class SmallInterpreter {
public:
  SmallInterpreter(const ir::Function& function, unsigned thread) : f_(function), thread_(thread) {}

  Trace run() {
    state_.assign(f_.values.size(), {});
    ir::BlockId block = f_.entry();
    unsigned steps = 0;
    while (block && trace_.stores.size() < 150 && ++steps < 5000)
      block = run_block(block);
    if (trace_.stores.size() > 150) trace_.stores.resize(150);
    return trace_;
  }

private:
  const Known& read(ir::ValueId value) const { return state_[value.index()]; }
  Known read(const ir::Operand& operand) const {
    if (operand.is(ir::OperandKind::value)) return read(operand.as_value());
    if (operand.is(ir::OperandKind::integer)) return static_cast<uint64_t>(operand.immediate);
    if (operand.is(ir::OperandKind::special_register)) return thread_;
    if (operand.is(ir::OperandKind::symbol)) return 0; // the address of the stores
    throw std::runtime_error("operand of an unexpected kind");
  }

  ir::BlockId run_block(ir::BlockId block) {
    for (ir::InstructionId id : f_.instructions_in(block)) {
      const ir::Instruction& instruction = f_.instructions[id];
      if (instruction.kind != ir::InstructionKind::real) continue;
      bool executes = true;
      const ir::Effects& effects = f_.form_of(id).effects;
      if (instruction.guard) {
        Known guard = read(instruction.guard);
        if (!guard && (effects.branch || effects.terminates)) return stop();
        if (!guard) {
          for_each_definition(f_, id, [&](ir::ValueId value) { state_[value.index()] = {}; });
          continue;
        }
        executes = (*guard != 0) != instruction.guard_negated;
      }
      if (!executes) {
        keep_old_values(id);
        continue;
      }
      if (effects.terminates) return {};
      if (effects.branch) {
        size_t edge = 0;
        if (f_.is_opcode(id, ir::Opcode::brx)) {
          Known index = read(f_.operands_of(id)[0]);
          if (!index) return stop();
          edge = *index;
        }
        return follow(f_.successors(block)[edge]);
      }
      execute(id);
    }
    if (!f_.blocks[block].falls_through) return {};
    return follow(f_.successors(block).back());
  }

  ir::BlockId stop() {
    trace_.undetermined = true;
    return {};
  }

  ir::BlockId follow(ir::EdgeId edge) {
    std::vector<Known> values;
    for (ir::ValueId argument : f_.arguments(edge))
      values.push_back(read(argument));
    ir::BlockId to = f_.edges[edge].to;
    std::span<const ir::ValueId> parameters = f_.parameters(to);
    for (size_t i = 0; i < parameters.size(); ++i)
      state_[parameters[i].index()] = values[i];
    return to;
  }

  void keep_old_values(ir::InstructionId id) {
    if (!f_.is_ssa) return;
    std::vector<ir::ValueId> written;
    for_each_definition(f_, id, [&](ir::ValueId value) { written.push_back(value); });
    size_t next = 0;
    for (const ir::Operand& operand : f_.operands_of(id))
      if (operand.has(ir::OperandFlag::old_value)) state_[written[next++].index()] = read(operand.as_value());
  }

  void execute(ir::InstructionId id) {
    std::vector<ir::ValueId> written;
    std::vector<Known> sources;
    for (const ir::Operand& operand : f_.operands_of(id)) {
      if (operand.is_group() || operand.has(ir::OperandFlag::old_value)) continue;
      if (operand.is_definition())
        written.push_back(operand.as_value());
      else
        sources.push_back(read(operand));
    }
    auto binary = [&](auto&& compute) {
      state_[written[0].index()] =
          sources[0] && sources[1] ? Known(static_cast<uint32_t>(compute(*sources[0], *sources[1]))) : Known();
    };
    switch (f_.form_of(id).opcode) {
    case ir::Opcode::add:
      binary([](uint64_t a, uint64_t b) { return a + b; });
      break;
    case ir::Opcode::xor_:
      binary([](uint64_t a, uint64_t b) { return a ^ b; });
      break;
    case ir::Opcode::and_:
      binary([](uint64_t a, uint64_t b) { return a & b; });
      break;
    case ir::Opcode::setp:
      binary([](uint64_t a, uint64_t b) { return a < b ? 1 : 0; });
      if (written.size() > 1) {
        Known first = state_[written[0].index()];
        state_[written[1].index()] = first ? Known(*first ^ 1) : Known();
      }
      break;
    case ir::Opcode::selp:
      state_[written[0].index()] = !sources[2] ? Known() : *sources[2] ? sources[0] : sources[1];
      break;
    case ir::Opcode::mov:
      move(written, sources);
      break;
    case ir::Opcode::st:
      trace_.stores.push_back(sources[1]);
      break;
    default:
      throw std::runtime_error("instruction of an unexpected kind");
    }
  }

  // Packing and unpacking keep the halves separate, since only one may be undetermined.
  void move(const std::vector<ir::ValueId>& written, const std::vector<Known>& sources) {
    if (sources.size() == 2) {
      halves_[0] = sources[0];
      halves_[1] = sources[1];
      state_[written[0].index()] = 0;
    } else if (written.size() == 2) {
      state_[written[0].index()] = halves_[0];
      state_[written[1].index()] = halves_[1];
    } else {
      state_[written[0].index()] = sources[0];
    }
  }

  const ir::Function& f_;
  unsigned thread_;
  std::vector<Known> state_;
  Known halves_[2]; // of %rd0, which is unpacked directly after it is packed
  Trace trace_;
};

} // namespace ptxrewrite::tests
