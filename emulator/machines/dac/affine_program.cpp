#include "emulator/machines/dac/affine_program.h"

#include "emulator/core/decode.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/forms/dac.h"

#include <fmt/format.h>

#include <algorithm>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t highest_site = 0xffff;

bool is_predicate(ir::ScalarType type) {
  return type == ir::ScalarType::pred;
}

// The action of the affine warp for an instruction; nullopt: it does not execute such instructions.
std::optional<AffineAction> action_of(const ir::Form& form) {
  using ir::Opcode;
  switch (form.opcode) {
  case Opcode::bra:
    return AffineAction::branch;
  case Opcode::ret:
  case Opcode::exit:
    return AffineAction::exit;
  case Opcode::bar:
  case Opcode::barrier:
    return form.has(ir::Modifier::warp) ? AffineAction::nothing : AffineAction::barrier;
  case Opcode::dac_enq:
    return AffineAction::enqueue;
  case Opcode::dac_take:
    return AffineAction::take;
  case Opcode::dac_condition:
    return AffineAction::condition;
  case Opcode::setp:
    return ir::is_float(form.type()) ? AffineAction::compute : AffineAction::compare;
  case Opcode::selp:
    return AffineAction::select;
  case Opcode::min:
  case Opcode::max:
  case Opcode::abs:
    return ir::is_float(form.type()) || form.types.size() != 1 ? AffineAction::compute : AffineAction::extremum;
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_:
  case Opcode::not_:
  case Opcode::mov:
    return is_predicate(form.type()) ? AffineAction::logic : AffineAction::compute;
  case Opcode::ld:
    return ir::is_param(form.space) || form.space == ir::StateSpace::constant ? std::optional(AffineAction::compute)
                                                                              : std::nullopt;
  default:
    break;
  }
  // cvta and the like access no memory; a scalar warp cannot execute instructions with effects or on other lanes.
  const ir::Effects& effects = form.effects;
  const bool can = !form.opaque && !effects.reads_memory && !effects.writes_memory && !effects.convergent &&
                   !effects.transfers_control() && !effects.reads_carry && !effects.writes_carry &&
                   !effects.volatile_result;
  return can ? std::optional(AffineAction::compute) : std::nullopt;
}

// Whether the register has the same value in all threads of a launch.
bool is_launch_constant(ir::SpecialRegister which) {
  using ir::SpecialRegister;
  return which == SpecialRegister::ntid || which == SpecialRegister::nctaid || which == SpecialRegister::nwarpid ||
         which == SpecialRegister::dynamic_smem_size || which == SpecialRegister::total_smem_size;
}

std::optional<unsigned> component_of(ir::Selector selector) {
  if (selector == ir::no_selector) return std::nullopt;
  return selector & 3u;
}

// Whether the value has 1, 16, 32 or 64 bits, and is no vector.
bool fits(const ir::Function& stream, ir::ValueId value) {
  const unsigned bits = lane_bits(stream.values[value].type);
  return stream.values[value].vector_width == 1 && bits != 8 && bits != 128;
}

unsigned bytes_of(const ir::Form& form) {
  return std::max(ir::byte_width(form.type()) * std::max<unsigned>(form.vector_width, 1), 1u);
}

} // namespace

std::string original_kernel(const ir::Function& kernel) {
  constexpr std::string_view words = "@ dac original ";
  for (ir::BlockId block : kernel.layout)
    for (ir::InstructionId id : kernel.instructions_in(block)) {
      if (kernel.instructions[id].kind != ir::InstructionKind::annotation) continue;
      const std::span<const ir::Operand> operands = kernel.operands_of(id);
      if (operands.empty() || !operands[0].is(ir::OperandKind::text)) continue;
      std::string_view text = kernel.module().text(Symbol(operands[0].id));
      if (!text.starts_with(words)) continue;
      text.remove_prefix(words.size());
      const size_t first = text.find_first_not_of(' '), last = text.find_last_not_of(" \r");
      if (first != text.npos) return std::string(text.substr(first, last - first + 1));
    }
  return {};
}

Result<std::shared_ptr<const AffineProgram>> AffineProgram::make(const ir::Function& kernel,
                                                                 const DecodedFunction& function) {
  auto program = std::make_shared<AffineProgram>();
  program->function_ = &function;
  program->original_ = original_kernel(kernel);
  const ir::Function& stream = *function.source;
  std::vector<uint32_t> starts(stream.blocks.size(), never_meets);
  for (ir::BlockId block : stream.layout) {
    starts[block.index()] = static_cast<uint32_t>(program->instructions_.size());
    for (ir::InstructionId id : stream.instructions_in(block))
      if (stream.instructions[id].kind == ir::InstructionKind::real)
        if (Status status = program->add(kernel, block, id); !status) return status.error();
  }
  program->find_micro_operations();
  program->resolve_branches(starts);
  return std::shared_ptr<const AffineProgram>(std::move(program));
}

Status AffineProgram::add(const ir::Function& kernel, ir::BlockId block, ir::InstructionId id) {
  const ir::Instruction& row = source().instructions[id];
  AffineInstruction instruction;
  instruction.id = id;
  instruction.form = &source().form_of(id);
  const std::optional<AffineAction> action = action_of(*instruction.form);
  if (!action)
    return Error{fmt::format("'{}' is not executed by DAC's affine warp", instruction.form->mnemonic), row.range};
  instruction.action = *action;
  instruction.guard_negated = row.guard_negated;
  if (row.guard) {
    const ir::Value& guard = source().values[row.guard];
    if (guard.register_class == ir::RegisterClass::taken_predicate)
      instruction.taken_guard = guard.number;
    else
      instruction.guard = row.guard;
  }
  if (Status status = read_operands(instruction); !status) return status;
  if (Status status = describe(kernel, instruction); !status) return status;
  for (uint32_t site : {instruction.site, instruction.taken_guard.value_or(0)}) {
    if (site > highest_site) return Error{fmt::format("queue number {} of {}", site, highest_site), row.range};
    sites_ = std::max(sites_, site + 1);
  }
  instructions_.push_back(std::move(instruction));
  block_of_.push_back(block);
  return {};
}

// Reads the operands; members of groups are read one by one.
Status AffineProgram::read_operands(AffineInstruction& instruction) {
  const ir::Function& stream = source();
  const SourceRange range = stream.instructions[instruction.id].range;
  const std::vector<OperandLanes>& lanes = function_->lanes_of[instruction.id.index()].sources;
  for (const ir::Operand& operand : stream.operands_of(instruction.id)) {
    if (operand.is_group() || operand.is(ir::OperandKind::block)) continue;
    if (operand.is(ir::OperandKind::value) && !fits(stream, operand.as_value()))
      return Error{fmt::format("the affine warp has no registers like '{}'", stream.value_name(operand.as_value())),
                   range};
    if (operand.is(ir::OperandKind::sink)) continue;
    if (operand.is_definition()) {
      if (instruction.results.empty()) instruction.result_bits = lane_bits(stream.values[operand.as_value()].type);
      instruction.results.push_back(operand.as_value());
      continue;
    }
    AffineSource from;
    if (instruction.sources.size() < lanes.size()) {
      from.lanes = lanes[instruction.sources.size()].lanes;
      from.bits = lanes[instruction.sources.size()].bits;
    }
    from.negated = operand.has(ir::OperandFlag::negated);
    if (operand.is(ir::OperandKind::value)) {
      from.kind = AffineSource::Kind::value;
      from.value = operand.as_value();
      from.bits = lane_bits(stream.values[from.value].type);
    } else if (operand.is(ir::OperandKind::special_register)) {
      const auto which = static_cast<ir::SpecialRegister>(operand.id);
      const std::optional<unsigned> component = component_of(operand.selector);
      const bool is_thread = which == ir::SpecialRegister::tid, is_block = which == ir::SpecialRegister::ctaid;
      if ((is_thread || is_block) && component && *component < 3) {
        from.kind = AffineSource::Kind::index;
        from.component = *component + (is_block ? thread_components : 0);
      } else if (!is_launch_constant(which) && !((is_thread || is_block) && component)) {
        return Error{"a special register that the affine warp does not know", range};
      }
    }
    instruction.sources.push_back(from);
  }
  return {};
}

Status AffineProgram::describe(const ir::Function& kernel, AffineInstruction& instruction) {
  const std::span<const ir::Operand> operands = source().operands_of(instruction.id);
  const ir::Form& form = *instruction.form;
  if (instruction.action == AffineAction::take || instruction.action == AffineAction::enqueue)
    for (const ir::Operand& operand : operands)
      if (operand.is(ir::OperandKind::integer)) {
        instruction.site = static_cast<uint32_t>(operand.immediate);
        break;
      }
  if (instruction.action != AffineAction::enqueue) return {};
  // The queue number is not a source, and only the base of an address may be a register.
  std::erase_if(instruction.sources, [](const AffineSource& from) { return from.kind != AffineSource::Kind::value; });
  if (form.has(ir::Modifier::data)) {
    instruction.tuple = TupleKind::data;
    instruction.reads_memory = true;
    instruction.bytes = bytes_of(form);
    return {};
  }
  instruction.tuple = form.has(ir::Modifier::addr) ? TupleKind::address : TupleKind::predicate;
  instruction.bytes = 4;
  for (const ir::Crossing& crossing : ir::crossings(kernel))
    if (crossing.kind == ir::CrossingKind::address && crossing.number == instruction.site)
      instruction.bytes = bytes_of(kernel.form_of(crossing.instruction));
  return {};
}

void AffineProgram::find_micro_operations() {
  std::vector<uint32_t> place(source().instructions.size(), UINT32_MAX);
  for (uint32_t i = 0; i < instructions_.size(); ++i)
    place[instructions_[i].id.index()] = i;
  for (uint32_t at = 0; at < function_->code.size(); ++at) {
    const MicroOp& op = function_->code[at];
    if (is_region_entry(op) || op.instruction < function_->first_instruction) continue;
    const uint32_t id = op.instruction - function_->first_instruction;
    if (id >= place.size() || place[id] == UINT32_MAX) continue;
    AffineInstruction& instruction = instructions_[place[id]];
    if (instruction.past_op == 0) instruction.first_op = at;
    if (op.is_instruction) instruction.own_op = at;
    instruction.past_op = at + 1;
  }
}

void AffineProgram::resolve_branches(const std::vector<uint32_t>& block_starts) {
  const ir::ControlFlow flow(source());
  const ir::PostDominatorTree post_dominators(source(), flow);
  for (size_t i = 0; i < instructions_.size(); ++i) {
    AffineInstruction& instruction = instructions_[i];
    if (instruction.action != AffineAction::branch) continue;
    for (const ir::Operand& operand : source().operands_of(instruction.id))
      if (operand.is(ir::OperandKind::block)) instruction.target = block_starts[operand.as_block().index()];
    const ir::BlockId meet = post_dominators.immediate_post_dominator(block_of_[i]);
    if (meet.valid()) instruction.meet = block_starts[meet.index()];
  }
}

} // namespace ptxrewrite::emulator
