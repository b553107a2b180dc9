// The sizes are rows of heuristics.def.
#include "ir/machine/select/size_in_loop.h"

#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/heuristics.h"

namespace ptxrewrite::ir {

namespace {

bool reads_known_constant(const LoweringContext& context, InstructionId id) {
  const Operand* address = context.source(id, 0);
  return context.form(id)->space == StateSpace::constant && address && address->is(OperandKind::address) &&
         (address[1].is(OperandKind::symbol) || context.is_literal(&address[1]));
}

// Instructions that count more than one before expansion; operand signs.
uint32_t size_of_form(const Form& form, const InstructionCost& cost, bool literal, uint32_t capability) {
  const auto size = [&](Heuristic which) { return heuristic(capability, which); };
  const bool is_long = bit_width(form.type()) == 64, is_short = bit_width(form.type()) == 16;
  switch (form.opcode) {
  case Opcode::mad:
    return form.has(Modifier::wide) ? size(Heuristic::size_of_mad_wide) : 1;
  case Opcode::div:
  case Opcode::rem: {
    if (is_float(form.type()) || is_long) break;
    const bool sign = is_signed(form.type());
    const uint32_t quotient = literal ? size(sign ? Heuristic::size_of_sdiv_literal : Heuristic::size_of_udiv_literal)
                                      : size(sign ? Heuristic::size_of_sdiv : Heuristic::size_of_udiv);
    const uint32_t saved = size(sign && literal ? Heuristic::size_of_srem_literal : Heuristic::size_of_rem);
    return form.opcode == Opcode::div ? quotient : quotient - saved;
  }
  case Opcode::shl:
    return is_short ? 3 : is_long && !literal ? 2 : 1;
  case Opcode::shr:
    return is_short || (is_long && !literal) ? 2 : 1;
  case Opcode::mul:
    return is_short && !form.has(Modifier::wide) && !is_float(form.type()) ? 3 : 1;
  case Opcode::bfe:
  case Opcode::bfi:
    return literal ? 1 : 2;
  case Opcode::clz:
    return is_long ? size(Heuristic::size_of_clz64) : 2;
  case Opcode::popc:
    return is_long ? size(Heuristic::size_of_popc64) : 1;
  case Opcode::rcp:
    return cost.weight; // scales denormal numbers once
  default:
    break;
  }
  // Logarithms and roots that scale denormal numbers.
  return cost.pipe == Pipe::special && cost.weight >= size(Heuristic::size_scaled) ? cost.weight + cost.weight / 2 : 1;
}

// True for an address that is in a register: a value that is computed, or was found in the window of shared memory.
bool is_address_register(const LoweringContext& context, const Operand& base) {
  if (!base.is(OperandKind::value)) return false;
  if (context.source_of(base.as_value()) == ValueSource::computed) return true;
  const InstructionId id = context.definition(&base);
  const Operand* source = id ? context.source(id, 0) : nullptr;
  return source && context.function.is_opcode(id, Opcode::mov) && names_shared_window(context, *source);
}

// An access, plus the addition if its address is not a register; plus that of an offset in a variable whose address is
// an offset itself, in local memory or in the window of shared memory, which is found each time.
uint32_t size_of_access(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const uint32_t with_offset = heuristic(context.capability, Heuristic::size_of_access);
  if (is_param(form.space)) return 0;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    if (!operand->is(OperandKind::address) || operand->group_size() == 0) continue;
    const Operand& base = operand[1];
    const bool has_offset = operand->immediate != 0;
    if (is_address_register(context, base)) return has_offset ? with_offset : 1;
    if (reads_known_constant(context, id)) return 1;
    if (names_shared_window(context, base))
      return heuristic(context.capability, Heuristic::size_of_window) + (has_offset ? with_offset : 1);
    return with_offset + (has_offset && names_local_variable(context, base) ? 1 : 0);
  }
  return with_offset;
}

// Loads that are narrower than their register are followed by a conversion.
uint32_t size_of_load(const LoweringContext& context, InstructionId id) {
  const ValueId value = context.result(id);
  const bool widens = value && bit_width(context.form(id)->type()) < bit_width(context.function.values[value].type);
  return size_of_access(context, id) + (widens ? 1 : 0);
}

// Signs become operand modifiers of the readers: of floating-point instructions, of integer sums alone.
bool is_sign(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.opcode != Opcode::neg && form.opcode != Opcode::abs) return false;
  const ValueId value = context.result(id);
  return value && !context.values.merges(value) && (is_float(form.type()) || context.absorbed[id.index()]);
}

// Copies are free; words that are put into a pair or taken out of it count one each.
uint32_t size_of_move(const LoweringContext& context, InstructionId id) {
  bool has_group = false;
  uint32_t read = 0, written = 0;
  for (const Operand& operand : context.function.operands_of(id)) {
    has_group |= operand.is_group();
    if (!operand.is(OperandKind::value) || !operand.is_definition()) continue;
    ++written;
    read += !context.values.readers(operand.as_value()).empty();
  }
  return !has_group ? 0 : written > 1 ? read : 1;
}

// Of constants that are read in the loop itself: parameters, special registers (but the block's size, where it is in a
// constant bank) and addresses of variables. They become operands only after loops have been measured.
uint32_t size_of_constant(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  if (form.kind == InstructionClass::load) return is_param(form.space) && context.function.is_entry ? 1 : 0;
  const Operand* source = context.source(id, 0);
  if (form.opcode != Opcode::mov || !source) return 0;
  if (names_shared_window(context, *source)) return heuristic(context.capability, Heuristic::size_of_window);
  if (!source->is(OperandKind::special_register)) return names_local_variable(context, *source) ? 1 : 0;
  const ValueId value = context.result(id);
  const bool in_constant_bank = value && context.source_of(value) == ValueSource::constant_bank;
  return in_constant_bank && !has(context.capability, MachineFact::loaded_parameters) ? 0 : 1;
}

} // namespace

uint32_t size_in_loop(const LoweringContext& context, InstructionId id) {
  const Form& form = *context.form(id);
  const InstructionCost& cost = context.costs[id.index()];
  ValueId result = context.result(id);
  if (const uint32_t size = size_of_constant(context, id)) return size;
  // Constant variables become operands only after loops have been measured.
  const bool is_constant_variable = form.kind == InstructionClass::load && form.space == StateSpace::constant;
  if (result && context.source_of(result) != ValueSource::computed && !is_constant_variable) return 0;
  switch (form.kind) {
  case InstructionClass::data_movement:
    return size_of_move(context, id);
  case InstructionClass::address_conversion:
    return 0;
  case InstructionClass::barrier:
    return heuristic(context.capability, Heuristic::size_of_barrier);
  case InstructionClass::atomic:
    return is_shared(form.space) || cost.weight > heuristic(context.capability, Heuristic::size_of_access)
               ? heuristic(context.capability, Heuristic::size_of_election)
               : heuristic(context.capability, Heuristic::size_of_access);
  case InstructionClass::load:
    return size_of_load(context, id);
  case InstructionClass::store:
    return size_of_access(context, id);
  default:
    break;
  }
  // Products absorbed by integer sums.
  if (form.opcode == Opcode::mul && form.has(Modifier::lo) && context.absorbed[id.index()]) return 0;
  if (is_sign(context, id)) return 0;
  if (form.opcode == Opcode::cvt && cost.weight == 0 && !context.absorbed[id.index()])
    return bit_width(form.type(1)) == 16 || bit_width(form.type(1)) == 64 ? 1 : 0;
  if (cost.pipe == Pipe::memory) return size_of_access(context, id);
  const Operand* last = nullptr;
  uint32_t registers = 0;
  for (size_t i = 0; const Operand* operand = context.source(id, i); ++i) {
    registers += !context.is_literal(operand);
    last = operand;
  }
  // There is no 16-bit compare: each register is converted first.
  if (form.opcode == Opcode::setp && bit_width(form.type()) == 16 && !is_float(form.type())) return 1 + registers;
  return size_of_form(form, cost, context.is_literal(last), context.capability);
}

} // namespace ptxrewrite::ir
