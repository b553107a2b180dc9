// The transfer function: the effect of each instruction on linear forms.
#include "ir/analysis/linear/linear_state.h"
#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::ir {

// --- operands ---

void LinearTransfer::collect(InstructionId id) {
  definitions_.clear();
  sources_.clear();
  source_index_.clear();
  old_values_.clear();
  unvisited_ = false;
  auto operands = state_.function.operands_of(id);
  for (const Operand& operand : operands)
    if (operand.is(OperandKind::value) && operand.is_definition()) definitions_.push_back(operand.as_value());
  for (size_t i = 0; i < operands.size(); i = next_sibling(operands, i)) {
    const Operand& operand = operands[i];
    if (operand.has(OperandFlag::old_value)) {
      old_values_.push_back(operand.as_value());
      continue;
    }
    bool defines = operand.is_definition() || operand.is(OperandKind::sink);
    for (size_t inner = i + 1; inner < next_sibling(operands, i); ++inner)
      defines |= operands[inner].is_definition();
    if (defines) continue;
    sources_.push_back(operand);
    source_index_.push_back(i);
  }
}

LinearFormId LinearTransfer::special(const Operand& operand, unsigned width) {
  auto special_register = SpecialRegister(operand.id);
  const SpecialRegisterInfo& facts = info(special_register);
  if (facts.is_volatile) return state_.any(width);
  unsigned component = 0;
  if (facts.vector_width > 1) {
    if (operand.selector == no_selector) return state_.any(width);
    component = operand.selector & 3u;
    if (component == 3) return state_.uniform(state_.pool.literal(width, 0));
  }
  unsigned own = bit_width(facts.type);
  bool is_tid = special_register == SpecialRegister::tid;
  if (is_tid || special_register == SpecialRegister::ctaid)
    return state_.convert(state_.index_form((is_tid ? form_index::tid_x : form_index::ctaid_x) + component, own), width,
                          false);
  switch (facts.uniformity) {
  case Uniformity::launch:
    return state_.convert(state_.uniform(state_.pool.special(special_register, component, own)), width, false);
  case Uniformity::block:
  case Uniformity::cluster:
    return state_.block_uniform(width, false);
  default:
    return state_.any(width);
  }
}

LinearFormId LinearTransfer::operand(InstructionId id, const Operand& source, unsigned width) {
  switch (source.kind) {
  case OperandKind::value: {
    LinearFormId form = state_.form_in(source.as_value(), state_.function.instructions[id].block);
    if (!form) {
      unvisited_ = true;
      return state_.any(width);
    }
    unsigned own = state_.at(form).width;
    if (own < width || source.selector != no_selector) return state_.any(width);
    form = state_.truncate(form, width);
    if (!source.has(OperandFlag::negated)) return form;
    if (width > 1) return state_.negate(form);
    auto predicate = state_.scalar(form);
    return predicate ? state_.uniform(state_.pool.logical_not(*predicate)) : state_.any(width);
  }
  case OperandKind::integer:
    return state_.uniform(state_.pool.literal(width, static_cast<uint64_t>(source.immediate)));
  case OperandKind::float32:
    return width == 32 ? state_.uniform(state_.pool.literal(32, static_cast<uint64_t>(source.immediate)))
                       : state_.any(width);
  case OperandKind::float64:
    return width == 64 ? state_.uniform(state_.pool.literal(64, static_cast<uint64_t>(source.immediate)))
                       : state_.any(width);
  case OperandKind::special_register:
    return special(source, width);
  case OperandKind::symbol: {
    SymbolRef ref = source.as_symbol();
    // Addresses in a device function's stack frame differ between calls.
    if (!state_.function.is_entry && ref.kind() == SymbolRef::Kind::local_variable) return state_.any(width);
    ExpressionPool& pool = state_.pool;
    return state_.uniform(
        pool.add(pool.symbol(ref, width), pool.literal(width, static_cast<uint64_t>(source.immediate))));
  }
  default:
    return state_.any(width);
  }
}

LinearFormId LinearTransfer::address(InstructionId id, size_t group) {
  const Function& function = state_.function;
  auto operands = function.operands_of(id);
  const Operand& head = operands[group];
  unsigned address_width = function.module().address_size == 32 ? 32 : 64;
  if (!head.is(OperandKind::address))
    return head.is(OperandKind::symbol) ? operand(id, head, address_width) : state_.any(address_width);
  if (head.group_size() == 0)
    return state_.uniform(state_.pool.literal(address_width, static_cast<uint64_t>(head.immediate)));
  const Operand& base = operands[group + 1];
  unsigned width = base.is(OperandKind::value) ? bit_width(function.values[base.as_value()].type) : address_width;
  if (head.group_size() != 1 || width < 16 || width > 64) return state_.any(address_width);
  LinearFormId form = operand(id, base, width);
  if (head.immediate == 0 && state_.at(form).has_coefficients()) return form;
  // A 32-bit base is extended before the offset is added: an offset that may wrap cannot be part of a 32-bit form, but
  // accesses to 32-bit windows use the sum modulo 2^32.
  return state_.add(form, state_.uniform(state_.pool.literal(width, static_cast<uint64_t>(head.immediate))));
}

// --- operations ---

LinearFormId LinearTransfer::scalar_binary(ExpressionKind kind, LinearFormId a, LinearFormId b) {
  auto left = state_.scalar(a), right = state_.scalar(b);
  if (!left || !right) return state_.any(state_.at(a).width);
  return state_.uniform(state_.pool.binary(kind, *left, *right));
}

LinearFormId LinearTransfer::multiply_add(InstructionId id, const Form& form, unsigned width) {
  bool wide = form.has(Modifier::wide);
  if (!wide && (form.has(Modifier::hi) || form.has(Modifier::sat))) {
    if (form.opcode != Opcode::mul || sources_.size() != 2) return state_.any(width);
    return scalar_binary(is_signed(form.type()) ? ExpressionKind::multiply_high_signed
                                                : ExpressionKind::multiply_high_unsigned,
                         operand(id, sources_[0], width), operand(id, sources_[1], width));
  }
  unsigned wanted = form.opcode == Opcode::mad ? 3 : 2;
  if (sources_.size() != wanted) return state_.any(wide ? 2 * width : width);
  LinearFormId a = operand(id, sources_[0], width), b = operand(id, sources_[1], width);
  if (wide) {
    // The product of two non-scalar forms has no form: return before demanding anything.
    if (!state_.scalar(a) && !state_.scalar(b)) return state_.any(2 * width);
    a = state_.widen(a, 2 * width, is_signed(form.type()));
    b = state_.widen(b, 2 * width, is_signed(form.type()));
    width *= 2;
  }
  LinearFormId product = state_.multiply(a, b);
  return wanted == 2 ? product : state_.add(product, operand(id, sources_[2], width));
}

LinearFormId LinearTransfer::integer_operation(InstructionId id, const Form& form, unsigned width) {
  auto source = [&](size_t i) { return operand(id, sources_[i], width); };
  bool is_signed_type = is_signed(form.type());
  size_t count = sources_.size();
  auto binary = [&](ExpressionKind kind) { return scalar_binary(kind, source(0), source(1)); };
  auto shifted = [&](ExpressionKind kind) { return scalar_binary(kind, source(0), operand(id, sources_[1], 32)); };
  auto chosen = [&](LinearFormId first, LinearFormId second) {
    FormCondition condition;
    condition.kind = FormCondition::Kind::compare;
    condition.instruction = id;
    return state_.choose(condition, second, first);
  };
  if (form.has(Modifier::sat) || form.has(Modifier::relu)) return state_.any(width);
  switch (form.operation) {
  case Operation::add:
    return count == 2 ? state_.add(source(0), source(1)) : state_.any(width);
  case Operation::subtract:
    return count == 2 ? state_.subtract(source(0), source(1)) : state_.any(width);
  case Operation::negate:
    return state_.negate(source(0));
  case Operation::complement:
    return state_.bitwise(ExpressionKind::xor_, source(0), state_.uniform(state_.pool.literal(width, ~uint64_t(0))));
  case Operation::shift_left:
    return state_.shift_left(source(0), operand(id, sources_[1], 32));
  case Operation::shift_right:
    return shifted(is_signed_type ? ExpressionKind::shift_right_signed : ExpressionKind::shift_right_unsigned);
  case Operation::bit_and:
    return state_.bitwise(ExpressionKind::and_, source(0), source(1));
  case Operation::bit_or:
    return state_.bitwise(ExpressionKind::or_, source(0), source(1));
  case Operation::bit_xor:
    return state_.bitwise(ExpressionKind::xor_, source(0), source(1));
  case Operation::divide:
    return binary(is_signed_type ? ExpressionKind::divide_signed : ExpressionKind::divide_unsigned);
  case Operation::remainder:
    return state_.remainder(source(0), source(1), is_signed_type);
  case Operation::absolute: {
    LinearFormId value = source(0), negative = state_.negate(value);
    if (state_.scalar(value)) return scalar_binary(ExpressionKind::maximum_signed, value, negative);
    return chosen(value, negative);
  }
  case Operation::minimum:
  case Operation::maximum: {
    if (count != 2) return state_.any(width);
    bool minimum = form.operation == Operation::minimum;
    LinearFormId a = source(0), b = source(1);
    if (state_.scalar(a) && state_.scalar(b))
      return scalar_binary(is_signed_type
                               ? (minimum ? ExpressionKind::minimum_signed : ExpressionKind::maximum_signed)
                               : (minimum ? ExpressionKind::minimum_unsigned : ExpressionKind::maximum_unsigned),
                           a, b);
    return chosen(a, b);
  }
  case Operation::none:
  case Operation::copy:
  case Operation::convert:
  case Operation::convert_address:
  case Operation::multiply:
  case Operation::multiply_add:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::logic_of_three:
  case Operation::compare:
  case Operation::select:
    break;
  }
  return state_.any(width);
}

LinearFormId LinearTransfer::predicate_operation(InstructionId id, const Form& form) {
  ExpressionPool& pool = state_.pool;
  if (form.opcode == Opcode::setp) {
    unsigned width = bit_width(form.type());
    auto relation = relation_of(form);
    bool integers = (is_integer(form.type()) || is_bit_type(form.type())) && width >= 16 && width <= 64;
    if (sources_.size() != 2 || !relation || !integers) return state_.any(1);
    auto a = state_.scalar(operand(id, sources_[0], width)), b = state_.scalar(operand(id, sources_[1], width));
    if (!a || !b) return state_.any(1);
    if (relation->reversed) std::swap(a, b);
    return state_.uniform(pool.compare(relation->comparison, *a, *b));
  }
  std::vector<ExpressionId> values;
  for (const Operand& source : sources_) {
    auto value = state_.scalar(operand(id, source, 1));
    if (!value) return state_.any(1);
    values.push_back(*value);
  }
  auto is_count = [&](size_t count) { return values.size() == count; };
  if (form.opcode == Opcode::mov && is_count(1)) return state_.uniform(values[0]);
  if (form.opcode == Opcode::not_ && is_count(1)) return state_.uniform(pool.logical_not(values[0]));
  if (!is_count(2)) return state_.any(1);
  ExpressionId both = pool.multiply(values[0], values[1]);
  if (form.opcode == Opcode::and_) return state_.uniform(both);
  if (form.opcode == Opcode::xor_) return state_.uniform(pool.add(values[0], values[1]));
  if (form.opcode == Opcode::or_) return state_.uniform(pool.add(pool.add(values[0], values[1]), both));
  return state_.any(1);
}

LinearFormId LinearTransfer::conversion(InstructionId id, const Form& form, unsigned width) {
  ScalarType from = form.type(1);
  bool integers = (is_integer(form.type()) || is_bit_type(form.type())) && (is_integer(from) || is_bit_type(from));
  unsigned source_width = bit_width(from);
  if (!integers || form.has(Modifier::sat) || sources_.size() != 1 || source_width < 8 || source_width > 64)
    return state_.any(width);
  return state_.convert(operand(id, sources_[0], source_width), width, is_signed(from));
}

LinearFormId LinearTransfer::address_conversion(InstructionId id, const Form& form, unsigned width) {
  if (sources_.size() != 1) return state_.any(width);
  LinearFormId value = operand(id, sources_[0], width);
  // The global window starts at 0 of the generic address space; the driver places the other windows.
  if (form.space == StateSpace::global) return value;
  LinearFormId window = state_.uniform(state_.pool.window(form.space, width));
  return form.has(Modifier::to) ? state_.subtract(value, window) : state_.add(value, window);
}

LinearFormId LinearTransfer::known_operation(InstructionId id, const Form& form, unsigned width) {
  if (sources_.empty()) return state_.any(width);
  switch (form.operation) {
  case Operation::copy:
    return sources_.size() == 1 ? operand(id, sources_[0], width) : state_.any(width);
  case Operation::convert:
    return conversion(id, form, width);
  case Operation::convert_address:
    return address_conversion(id, form, width);
  case Operation::multiply:
  case Operation::multiply_add:
    if (!is_integer(form.type())) return state_.any(width);
    return multiply_add(id, form, width);
  case Operation::select: {
    if (sources_.size() != 3) return state_.any(width);
    LinearFormId a = operand(id, sources_[0], width), b = operand(id, sources_[1], width);
    LinearFormId predicate = operand(id, sources_[2], 1);
    if (a == b && state_.at(a).has_coefficients()) return a;
    if (auto condition = state_.scalar(predicate)) {
      if (auto value = state_.pool.literal_value(*condition)) return *value ? a : b;
      return state_.select(*condition, a, b);
    }
    if (!sources_[2].is(OperandKind::value) || state_.level(predicate) == Level::block) return state_.any(width);
    FormCondition condition;
    condition.value = sources_[2].as_value();
    return sources_[2].has(OperandFlag::negated) ? state_.choose(condition, b, a) : state_.choose(condition, a, b);
  }
  case Operation::none:
  case Operation::add:
  case Operation::subtract:
  case Operation::negate:
  case Operation::absolute:
  case Operation::multiply_24:
  case Operation::multiply_add_24:
  case Operation::divide:
  case Operation::remainder:
  case Operation::minimum:
  case Operation::maximum:
  case Operation::bit_and:
  case Operation::bit_or:
  case Operation::bit_xor:
  case Operation::complement:
  case Operation::logic_of_three:
  case Operation::shift_left:
  case Operation::shift_right:
  case Operation::compare:
    break;
  }
  if (!is_integer(form.type()) && !is_bit_type(form.type())) return state_.any(width);
  return integer_operation(id, form, width);
}

// --- instructions without a form ---

bool LinearTransfer::operand_levels(InstructionId id, Level& level, bool& varies) {
  level = Level::launch;
  varies = false;
  for (const Operand& source : state_.function.operands_of(id)) {
    if (source.is_definition() || source.has(OperandFlag::old_value)) continue;
    LinearFormId form;
    if (source.is(OperandKind::value)) {
      form = state_.form_in(source.as_value(), state_.function.instructions[id].block);
      if (!form) return false;
    } else if (source.is(OperandKind::special_register)) {
      form = special(source, 32);
    } else if (source.is(OperandKind::text)) {
      form = state_.any(32);
    } else if (source.is(OperandKind::symbol)) {
      form = operand(id, source, 64);
    } else {
      continue;
    }
    level = std::max(level, state_.level(form));
    varies |= state_.varies(form);
  }
  return true;
}

LinearFormId LinearTransfer::opaque(InstructionId id, ValueId definition) {
  unsigned width = bit_width(state_.function.values[definition].type);
  const Form& form = state_.function.form_of(id);
  const Effects& effects = form.effects;
  bool computes = !(effects.reads_memory || effects.writes_memory || effects.atomic || effects.barrier ||
                    effects.convergent || effects.branch || effects.call || effects.terminates ||
                    effects.volatile_result || effects.reads_carry || effects.side_effect || form.opaque);
  if (!computes || width == 0 || width > 64 || state_.function.values[definition].vector_width != 1)
    return state_.any(width);
  Level level;
  bool varies;
  if (!operand_levels(id, level, varies)) {
    unvisited_ = true;
    return state_.any(width);
  }
  if (level == Level::launch) return state_.uniform(state_.pool.value(definition, width, varies));
  return level == Level::block ? state_.block_uniform(width, varies) : state_.any(width);
}

// --- loads ---

// The .param space also contains arguments and results of calls; only the kernel's own parameters are constant.
bool LinearTransfer::reads_kernel_parameter(LinearFormId place) const {
  const LinearForm& form = state_.at(place);
  if (!state_.function.is_entry || !form.has_coefficients()) return false;
  bool found = false;
  state_.pool.for_each_atom(form.coefficients[form_index::constant], [&](ExpressionId id) {
    const Expression& atom = state_.pool[id];
    SymbolRef ref = SymbolRef::from_bits(atom.payload);
    found |= atom.kind == ExpressionKind::symbol && ref.kind() == SymbolRef::Kind::local_variable &&
             state_.parameter_number[ref.variable().index()] != UINT32_MAX;
  });
  return found;
}

bool LinearTransfer::function_writes_memory() {
  if (writes_memory_) return *writes_memory_;
  const Function& function = state_.function;
  const auto may_write = [&](InstructionId id) {
    if (function.instructions[id].kind != InstructionKind::real) return false;
    const Form& form = function.form_of(id);
    return form.effects.writes_memory || form.effects.atomic || form.effects.call || form.effects.barrier ||
           form.opaque;
  };
  writes_memory_ = false;
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      *writes_memory_ |= may_write(id);
  return *writes_memory_;
}

LinearFormId LinearTransfer::loaded(InstructionId id, const Form& form, size_t group, unsigned element,
                                    ValueId definition) {
  const Function& function = state_.function;
  ExpressionPool& pool = state_.pool;
  unsigned width = bit_width(form.type());
  unsigned register_width = bit_width(function.values[definition].type);
  if (form.effects.volatile_result || form.effects.atomic || width < 8 || width > 64 || register_width > 64 ||
      register_width < width)
    return state_.any(register_width);
  bool parameter_space = is_param(form.space) && form.space != StateSpace::param_func;
  bool read_only = form.space == StateSpace::constant || (parameter_space && function.is_entry) ||
                   (form.opcode == Opcode::ld && form.has(Modifier::nc)) || form.opcode == Opcode::ldu;
  // Memory that other threads may write: nothing is known, whatever the address.
  if (!read_only && (form.space != StateSpace::global || function_writes_memory())) return state_.any(register_width);
  LinearFormId place = address(id, group);
  if (unvisited_) return state_.any(register_width);
  if (parameter_space && !reads_kernel_parameter(place)) return state_.any(register_width);
  Level level = state_.level(place);
  bool varies = state_.varies(place);
  auto extended = [&](ExpressionId value) {
    return state_.uniform(pool.extend(value, register_width, is_signed(form.type())));
  };
  int64_t offset = int64_t(element) * byte_width(form.type());
  if (auto expression = state_.scalar(place);
      expression && read_only && (parameter_space || form.space == StateSpace::constant)) {
    ExpressionId base = pool.add(*expression, pool.literal(pool.width(*expression), static_cast<uint64_t>(offset)));
    // Symbol + literal: bytes of a parameter.
    auto terms = pool.terms(base);
    ExpressionId symbol = pool[base].kind == ExpressionKind::symbol ? base : ExpressionId();
    int64_t byte = 0;
    if (pool[base].kind == ExpressionKind::sum && terms.size() == 1 && terms[0].coefficient == 1 &&
        pool.factors(terms[0].monomial).size() == 1) {
      symbol = pool.factors(terms[0].monomial)[0];
      byte = signed_value(static_cast<uint64_t>(pool[base].offset), pool.width(base));
    }
    if (symbol && parameter_space && pool[symbol].kind == ExpressionKind::symbol) {
      SymbolRef ref = SymbolRef::from_bits(pool[symbol].payload);
      if (ref.kind() == SymbolRef::Kind::local_variable && byte >= 0) {
        unsigned number = state_.parameter_number[ref.variable().index()];
        if (number != UINT32_MAX) return extended(pool.parameter(width, number, static_cast<unsigned>(byte)));
      }
    }
    return extended(pool.load(form.space, base, 0, width));
  }
  if (read_only && level == Level::launch) return state_.uniform(pool.value(definition, register_width, varies));
  if (read_only && level == Level::block) return state_.block_uniform(register_width, varies);
  if (form.space == StateSpace::global && level <= Level::block && !function_writes_memory())
    return state_.block_uniform(register_width, varies);
  return state_.any(register_width);
}

void LinearTransfer::load(InstructionId id, const Form& form, std::vector<std::pair<ValueId, LinearFormId>>& results) {
  auto operands = state_.function.operands_of(id);
  size_t group = source_index_.empty() ? operands.size() : source_index_[0];
  unsigned element = 0;
  for (size_t i = 0; i < group && i < operands.size(); ++i) {
    if (operands[i].is_group()) continue;
    if (operands[i].is(OperandKind::value) && operands[i].is_definition()) {
      ValueId definition = operands[i].as_value();
      LinearFormId value = group < operands.size() ? loaded(id, form, group, element, definition)
                                                   : state_.any(bit_width(state_.function.values[definition].type));
      results.push_back({definition, value});
    }
    ++element;
  }
}

// --- guards ---

LinearFormId LinearTransfer::merged(InstructionId id, LinearFormId fresh, LinearFormId old, ValueId definition) {
  const Instruction& instruction = state_.function.instructions[id];
  LinearFormId predicate = state_.form_in(instruction.guard, instruction.block);
  if (!predicate) {
    unvisited_ = true;
    return fresh;
  }
  unsigned width = state_.at(fresh).width;
  bool identified = state_.at(fresh).has_coefficients() || state_.at(fresh).kind == ValueClass::mod_linear ||
                    state_.at(fresh).kind == ValueClass::divergent_linear;
  if (fresh == old && identified) return fresh;
  if (auto condition = state_.scalar(predicate)) {
    ExpressionId holds = instruction.guard_negated ? state_.pool.logical_not(*condition) : *condition;
    LinearFormId selected = state_.select(holds, fresh, old);
    if (state_.at(selected).kind != ValueClass::any) return selected;
  }
  Level level = std::max({state_.level(predicate), state_.level(fresh), state_.level(old)});
  bool varies = state_.varies(predicate) || state_.varies(fresh) || state_.varies(old);
  if (level == Level::launch) return state_.uniform(state_.pool.value(definition, width, varies));
  if (level == Level::block) return state_.block_uniform(width, varies);
  FormCondition condition;
  condition.value = instruction.guard;
  return instruction.guard_negated ? state_.choose(condition, old, fresh) : state_.choose(condition, fresh, old);
}

// --- one instruction ---

bool LinearTransfer::compute(InstructionId id, std::vector<std::pair<ValueId, LinearFormId>>& results) {
  results.clear();
  const Function& function = state_.function;
  const Instruction& instruction = function.instructions[id];
  collect(id);
  if (definitions_.empty()) return true;
  if (instruction.kind != InstructionKind::real) {
    for (ValueId definition : definitions_)
      results.push_back({definition, state_.any(bit_width(function.values[definition].type))});
    return true;
  }
  const Form& form = function.form_of(id);
  if ((form.opcode == Opcode::ld || form.opcode == Opcode::ldu) && !form.opaque) {
    load(id, form, results);
  } else {
    for (size_t i = 0; i < definitions_.size(); ++i) {
      ValueId definition = definitions_[i];
      unsigned width = bit_width(function.values[definition].type);
      LinearFormId value = state_.any(width);
      if (!form.opaque && function.values[definition].vector_width == 1) {
        if (width == 1) {
          value = i < 2 ? predicate_operation(id, form) : value;
          if (i == 1)
            if (auto predicate = state_.scalar(value)) value = state_.uniform(state_.pool.logical_not(*predicate));
        } else if (definitions_.size() == 1 && form.type() != ScalarType::none) {
          unsigned operation_width = bit_width(form.type());
          bool computable =
              operation_width >= 16 && operation_width <= 64 && type_kind(form.type()) != TypeKind::packed;
          if (form.opcode == Opcode::cvt) computable = operation_width >= 8 && operation_width <= 64;
          if (computable) {
            value = known_operation(id, form, operation_width);
            if (state_.at(value).width < width) value = state_.widen(value, width, is_signed(form.type()));
            if (state_.at(value).width != width) value = state_.any(width);
          }
        }
      }
      if (state_.at(value).kind == ValueClass::any && !unvisited_) {
        if (state_.demands) state_.demands->clear();
        value = opaque(id, definition);
      }
      results.push_back({definition, value});
    }
  }
  if (instruction.guard) {
    for (size_t i = 0; i < results.size(); ++i) {
      LinearFormId old = i < old_values_.size() ? state_.form_in(old_values_[i], instruction.block)
                                                : state_.any(state_.at(results[i].second).width);
      if (!old)
        unvisited_ = true;
      else if (state_.at(old).width != state_.at(results[i].second).width)
        results[i].second = state_.any(state_.at(results[i].second).width);
      else
        results[i].second = merged(id, results[i].second, old, results[i].first);
    }
  }
  return !unvisited_;
}

} // namespace ptxrewrite::ir
