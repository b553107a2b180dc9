#include "emulator/machines/r2d2/register_budget.h"

#include "ir/machine/figures/occupancy.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace ptxrewrite::emulator {
namespace {

using ir::RegisterClass;
using ir::SectionKind;

// Facts about the registers of a kernel in hardware form.
struct RegisterFacts {
  std::map<ir::ValueId, unsigned> bits; // of registers written by sections
  std::set<ir::ValueId> kept;           // live as long as the kernel runs
};

// The hardware classes are declared with 64 bits; the written result determines the bits that a register needs.
unsigned result_bits(const ir::Form& form) {
  const unsigned bits = ir::bit_width(form.type());
  return form.has(ir::Modifier::wide) ? 2 * bits : bits;
}

RegisterFacts register_facts(const ir::Function& kernel) {
  RegisterFacts facts;
  bool in_section = false, in_block_parts = false;
  for (ir::BlockId block : kernel.layout)
    for (ir::InstructionId id : kernel.instructions_in(block)) {
      const ir::InstructionKind kind = kernel.instructions[id].kind;
      const std::span<const ir::Operand> operands = kernel.operands_of(id);
      if (kind == ir::InstructionKind::section_begin) {
        in_section = true;
        in_block_parts = static_cast<SectionKind>(operands[0].immediate) == SectionKind::r2d2_block;
      }
      if (kind == ir::InstructionKind::section_end) in_section = in_block_parts = false;
      if (kind != ir::InstructionKind::real && kind != ir::InstructionKind::linear_row) continue;
      for (const ir::Operand& operand : operands) {
        if (!operand.is(ir::OperandKind::value)) continue;
        const ir::ValueId value = operand.as_value();
        if (operand.is_definition()) {
          if (kind == ir::InstructionKind::real) facts.bits[value] = result_bits(kernel.form_of(id));
          continue;
        }
        // A block part is executed for every block, with its coefficients.
        const bool is_coefficient = kernel.values[value].register_class == RegisterClass::coefficient;
        if (!in_section || (in_block_parts && is_coefficient)) facts.kept.insert(value);
      }
    }
  return facts;
}

} // namespace

LinearRegisterUse linear_register_use(const ir::Function& kernel) {
  const RegisterFacts facts = register_facts(kernel);
  LinearRegisterUse use;
  for (ir::ValueId value : facts.kept) {
    const auto found = facts.bits.find(value);
    const uint32_t units = found == facts.bits.end() ? 2 : std::max(1u, found->second / 32);
    switch (kernel.values[value].register_class) {
    case RegisterClass::thread_index:
      ++use.threads;
      use.thread_units += units;
      break;
    case RegisterClass::block_index:
      ++use.blocks;
      use.block_units += units;
      break;
    case RegisterClass::coefficient:
      ++use.coefficients;
      use.coefficient_units += units;
      break;
    default:
      break;
    }
  }
  return use;
}

RegisterBudget register_budget(const ir::Machine& machine, const BudgetFacts& facts) {
  RegisterBudget budget;
  const ir::Occupancy original =
      ir::occupancy(machine, {facts.threads_per_block, facts.original_registers, facts.shared_bytes});
  const uint64_t blocks_of_launch = (facts.blocks + machine.sms - 1) / machine.sms;
  budget.resident_blocks = static_cast<uint32_t>(std::min<uint64_t>(original.blocks, blocks_of_launch));
  const uint64_t blocks = budget.resident_blocks;
  const uint64_t warps = (facts.threads_per_block + 31) / 32;
  const uint64_t lanes = blocks * warps * 32;
  const uint64_t used = lanes * facts.body_registers;
  budget.available = used < machine.occupancy.registers ? machine.occupancy.registers - used : 0;
  if (facts.body_registers < facts.original_registers)
    budget.freed = lanes * (facts.original_registers - facts.body_registers);
  const LinearRegisterUse& linear = facts.linear;
  budget.needed =
      linear.thread_units * uint64_t(facts.threads_per_block) + linear.block_units * blocks + linear.coefficient_units;
  budget.needed_in_paper =
      linear.threads * uint64_t(facts.threads_per_block) + 2 * linear.blocks * blocks + linear.coefficients;
  return budget;
}

std::string describe(const RegisterBudget& budget, const ir::Machine& machine) {
  return fmt::format("{} of {} registers left by {} block{} per SM of {}; as the paper counts: {}", budget.needed,
                     budget.available, budget.resident_blocks, budget.resident_blocks == 1 ? "" : "s", machine.name,
                     budget.needed_in_paper);
}

} // namespace ptxrewrite::emulator
