// Evaluates a kernel in reverse post-order and gives each register its term. Loops are evaluated several times: at
// first every register carried by a loop is unknown; those that turn out to grow by the same amount in each trip get a
// closed form.
#include "evaluate/prove/symbolic.h"

#include "ir/core/module.h"

#include <algorithm>

namespace ptxrewrite::prove {

namespace {

using ir::BlockId;
using ir::EdgeId;
using ir::Form;
using ir::InstructionId;
using ir::InstructionKind;
using ir::Modifier;
using ir::Opcode;
using ir::Operand;
using ir::OperandFlag;
using ir::OperandKind;
using ir::ValueId;

constexpr unsigned most_rounds = 8; // nested inductions: one more round per level

// Addresses in these spaces have 32 significant bits, regardless of the register's width.
bool is_small_space(ir::StateSpace space) {
  return ir::is_shared(space) || space == ir::StateSpace::constant || space == ir::StateSpace::local;
}

bool is_scalar(const ir::Value& value) {
  const unsigned width = ir::bit_width(value.type);
  return value.vector_width == 1 && width >= 1 && width <= 64;
}

// ISA manual, special registers: blocks have at most 1024 threads in a dimension, grids 2^31 - 1 blocks.
bool is_small(const std::string& special) {
  return special.starts_with("%tid.") || special.starts_with("%ntid.") || special.starts_with("%ctaid.") ||
         special.starts_with("%nctaid.");
}

bool integers(ir::ScalarType type) {
  return ir::is_integer(type) || ir::is_bit_type(type);
}

} // namespace

std::string trip_name(BlockId header) {
  return "trip" + std::to_string(header.index());
}

TermId trip_number(Terms& terms, BlockId header) {
  return terms.leaf(trip_name(header), 64);
}

std::string path_name(BlockId block, ValueId value) {
  return "path" + std::to_string(block.index()) + "." + std::to_string(value.index());
}

SymbolicKernel::SymbolicKernel(const ir::Function& function, Terms& terms, Bounds& bounds, ExactForms& exact,
                               std::function<std::optional<TermId>(unsigned)> parameter)
    : function_(function), terms_(terms), bounds_(bounds), exact_(exact), parameter_(std::move(parameter)),
      flow_(function), dominators_(function, flow_), loops_(function, flow_, dominators_) {
  unsigned number = 0;
  for (ir::VariableId id : function.variable_lists.view(function.signature.parameters))
    parameter_number_[id.index()] = number++;
  for (unsigned round = 0; round < most_rounds; ++round) {
    evaluate();
    find_trip_limits();
    if (!find_inductions() && !guess_inductions()) break;
  }
}

void SymbolicKernel::evaluate() {
  values_.assign(function_.values.size(), TermId());
  observations_.clear();
  unknowns_.clear();
  for (uint32_t i = 0; i < function_.values.size(); ++i)
    if (const ir::Value& value = function_.values[ValueId(i)]; value.is_undefined && is_scalar(value))
      values_[i] = terms_.leaf("undefined" + std::to_string(i), ir::bit_width(value.type));
  for (BlockId block : flow_.reverse_postorder())
    evaluate_block(block);
}

void SymbolicKernel::evaluate_block(BlockId block) {
  auto parameters = function_.parameters(block);
  for (uint32_t i = 0; i < parameters.size(); ++i) {
    const ir::Value& value = function_.values[parameters[i]];
    if (!is_scalar(value)) continue;
    TermId& term = values_[parameters[i].index()];
    if (auto found = inductions_.find({block.index(), i}); found != inductions_.end()) {
      term = found->second;
      continue;
    }
    if (auto known = joined(block, i)) {
      term = *known;
      continue;
    }
    term = terms_.leaf(path_name(block, parameters[i]), ir::bit_width(value.type));
    unknowns_.push_back({block, i});
  }
  for (InstructionId id : function_.instructions_in(block))
    evaluate_instruction(id);
}

std::string SymbolicKernel::provenance(InstructionId id) const {
  const ir::ProvenanceId from = function_.instructions[id].provenance;
  return from ? "i" + std::to_string(from.index()) : "inew" + std::to_string(id.index());
}

// A load of fewer bits than its register's is extended by its type.
TermId SymbolicKernel::unknown(InstructionId id, size_t number, unsigned width) {
  const Form& form = function_.form_of(id);
  const std::string name = provenance(id) + "." + std::to_string(number);
  const unsigned loaded = ir::bit_width(form.type());
  const bool is_narrow = !form.opaque && form.opcode == Opcode::ld && ir::is_integer(form.type()) && loaded < width;
  return is_narrow ? terms_.resize(terms_.leaf(name, loaded), width, ir::is_signed(form.type()))
                   : terms_.leaf(name, width);
}

// mov.b32 {a, b}, word: each register takes its part of the word.
std::optional<TermId> SymbolicKernel::part_of_word(InstructionId id, const Form& form, size_t number, unsigned width) {
  const unsigned whole = ir::bit_width(form.type());
  const bool splits = form.opcode == Opcode::mov && sources_.size() == 1 && sources_[0].is(OperandKind::value) &&
                      whole <= 64 && width < whole && (number + 1) * width <= whole;
  const bool has_sinks = std::ranges::any_of(function_.operands_of(id),
                                             [](const Operand& operand) { return operand.is(OperandKind::sink); });
  if (!splits || has_sinks) return std::nullopt;
  const TermId word = operand(id, sources_[0], whole);
  if (number == 0) return terms_.truncate(word, width);
  return terms_.field(word, static_cast<unsigned>(number) * width, width);
}

// mov.b32 word, {a, b}.
std::optional<TermId> SymbolicKernel::joined_word(InstructionId id, unsigned width) {
  const auto operands = function_.operands_of(id);
  const size_t group = source_index_[0], parts = operands[group].group_size();
  if (parts == 0 || width % parts != 0 || width > 64) return std::nullopt;
  const unsigned own = width / static_cast<unsigned>(parts);
  TermId word = terms_.literal(width, 0);
  for (size_t i = 0; i < parts; ++i) {
    const TermId part = terms_.zero_extend(operand(id, operands[group + 1 + i], own), width);
    word = terms_.add(word, terms_.scale(part, UInt128(1) << (own * i)));
  }
  return word;
}

// %lanemask_lt and the like: 2^laneid, and the bits below or above.
std::optional<TermId> SymbolicKernel::lane_mask(const std::string& name) {
  constexpr std::string_view start = "%lanemask_";
  if (!name.starts_with(start)) return std::nullopt;
  const std::string_view kind = std::string_view(name).substr(start.size());
  const TermId bit = terms_.operation("shl", 32, {terms_.literal(32, 1), terms_.leaf("%laneid", 32)});
  const TermId one = terms_.literal(32, 1);
  if (kind == "eq") return bit;
  if (kind == "lt") return terms_.subtract(bit, one);
  if (kind == "le") return terms_.subtract(terms_.scale(bit, 2), one);
  if (kind == "ge") return terms_.scale(bit, ~UInt128(0));
  if (kind == "gt") return terms_.scale(bit, ~UInt128(1));
  return std::nullopt;
}

// prmt with a literal selector as a sum of fields: bytes that are beside each other in the source are one.
std::optional<TermId> SymbolicKernel::permuted(InstructionId id) {
  if (sources_.size() != 3 || !sources_[2].is(OperandKind::integer)) return std::nullopt;
  const auto selector = static_cast<uint32_t>(sources_[2].immediate);
  const TermId words[]{operand(id, sources_[0], 32), operand(id, sources_[1], 32)};
  const auto digit = [&](unsigned i) { return selector >> (4 * i) & 15; };
  TermId sum = terms_.literal(32, 0);
  for (unsigned i = 0, length = 1; i < 4; i += length) {
    if (digit(i) > 7) return std::nullopt; // copies of a sign
    for (length = 1; i + length < 4; ++length)
      if (digit(i + length) != digit(i) + length || digit(i + length) % 4 == 0) break;
    const TermId part = terms_.field(words[digit(i) / 4], 8 * (digit(i) % 4), 8 * length);
    sum = terms_.add(sum, terms_.scale(terms_.zero_extend(part, 32), UInt128(1) << (8 * i)));
  }
  return sum;
}

// dp4a: the sum of four products of bytes.
std::optional<TermId> SymbolicKernel::dot_of_bytes(InstructionId id, const Form& form) {
  if (sources_.size() != 3 || form.types.size() != 2) return std::nullopt;
  TermId sum = operand(id, sources_[2], 32);
  for (unsigned i = 0; i < 4; ++i) {
    TermId product = terms_.literal(32, 1);
    for (unsigned factor = 0; factor < 2; ++factor) {
      const TermId byte = terms_.field(operand(id, sources_[factor], 32), 8 * i, 8);
      product = terms_.multiply(product, terms_.resize(byte, 32, ir::is_signed(form.type(factor))));
    }
    sum = terms_.add(sum, product);
  }
  return sum;
}

TermId SymbolicKernel::operand(InstructionId id, const Operand& source, unsigned width) {
  auto opaque = [&] {
    return terms_.leaf(provenance(id) + ".operand" + std::to_string(static_cast<unsigned>(source.kind)) + "." +
                           std::to_string(source.id) + "." + std::to_string(source.selector),
                       width);
  };
  switch (source.kind) {
  case OperandKind::value: {
    TermId term = values_[source.as_value().index()];
    const bool is_general = function_.values[source.as_value()].register_class == ir::RegisterClass::general;
    // A register of the hardware form that holds 32 bits: a thread part is sign-extended when it is read; for other
    // classes the bits above are unknown.
    if (term && !is_general && terms_.width(term) == 32 && width == 64) {
      if (function_.values[source.as_value()].register_class == ir::RegisterClass::thread_index)
        return terms_.sign_extend(term, 64);
      const TermId above = terms_.leaf("above" + std::to_string(source.id), 32);
      return terms_.add(terms_.zero_extend(term, 64), terms_.scale(terms_.zero_extend(above, 64), UInt128(1) << 32));
    }
    if (!term || source.selector != ir::no_selector || terms_.width(term) < width)
      return terms_.leaf("register" + std::to_string(source.id) + "." + std::to_string(source.selector), width);
    term = terms_.truncate(term, width);
    if (!source.has(OperandFlag::negated)) return term;
    return width == 1 ? terms_.add(term, terms_.literal(1, 1)) : terms_.scale(term, ~UInt128(0));
  }
  case OperandKind::integer:
  case OperandKind::float32:
  case OperandKind::float64:
    return terms_.literal(width, static_cast<UInt128>(source.immediate));
  case OperandKind::special_register: {
    const ir::SpecialRegisterInfo& facts = ir::info(static_cast<ir::SpecialRegister>(source.id));
    if (facts.is_volatile) return opaque();
    std::string name(facts.name);
    if (facts.vector_width > 1) {
      if (source.selector == ir::no_selector) return opaque();
      name += '.';
      name += "xyzw"[source.selector & 3u];
    }
    if (const std::optional<TermId> mask = lane_mask(name)) return terms_.resize(*mask, width, false);
    const TermId leaf = terms_.leaf(name, ir::bit_width(facts.type), is_small(name));
    if (name.starts_with("%tid.")) terms_.bound(leaf, name.back() == 'z' ? 63 : 1023); // in any possible block
    return terms_.resize(leaf, width, false);
  }
  case OperandKind::symbol:
    return terms_.add(terms_.leaf("&" + std::to_string(source.id), width),
                      terms_.literal(width, static_cast<UInt128>(source.immediate)));
  default:
    return opaque();
  }
}

TermId SymbolicKernel::address(InstructionId id, size_t group, ir::StateSpace space) {
  auto operands = function_.operands_of(id);
  const unsigned width = is_small_space(space) ? 32 : 64;
  TermId sum = terms_.literal(width, static_cast<UInt128>(operands[group].immediate));
  for (size_t i = group + 1; i < ir::next_sibling(operands, group); ++i) {
    unsigned own = width;
    if (operands[i].is(OperandKind::value))
      if (TermId term = values_[operands[i].as_value().index()]) own = terms_.width(term);
    if (operands[i].is(OperandKind::value) &&
        function_.values[operands[i].as_value()].register_class != ir::RegisterClass::general)
      own = 64;
    sum = terms_.add(sum, terms_.resize(operand(id, operands[i], own), width, false));
  }
  return sum;
}

TermId SymbolicKernel::parameter_bytes(unsigned index, int64_t byte, unsigned width) const {
  if (parameter_)
    if (auto known = parameter_(index); known && byte == 0 && terms_.width(*known) >= width)
      return terms_.truncate(*known, width);
  std::string name = "P" + std::to_string(index);
  if (byte != 0) name += "@" + std::to_string(byte);
  return terms_.leaf(name, width);
}

std::optional<TermId> SymbolicKernel::kernel_parameter(InstructionId id, const Form& form, size_t group,
                                                       unsigned element, unsigned width) {
  auto operands = function_.operands_of(id);
  if (!function_.is_entry || form.space == ir::StateSpace::param_func || !operands[group].is(OperandKind::address) ||
      operands[group].group_size() != 1 || !operands[group + 1].is(OperandKind::symbol))
    return std::nullopt;
  const ir::SymbolRef symbol = operands[group + 1].as_symbol();
  if (symbol.kind() != ir::SymbolRef::Kind::local_variable) return std::nullopt;
  auto number = parameter_number_.find(symbol.variable().index());
  if (number == parameter_number_.end()) return std::nullopt;
  const int64_t byte =
      operands[group].immediate + operands[group + 1].immediate + int64_t(element) * ir::byte_width(form.type());
  const unsigned own = ir::bit_width(form.type());
  if (byte < 0 || own > width) return std::nullopt;
  return terms_.resize(parameter_bytes(number->second, byte, own), width, ir::is_signed(form.type()));
}

std::optional<TermId> SymbolicKernel::integer_operation(InstructionId id, const Form& form, unsigned width) {
  auto source = [&](size_t i) { return operand(id, sources_[i], width); };
  auto named = [&](const char* name, std::vector<TermId> operands) {
    return terms_.operation(name, width, std::move(operands));
  };
  const bool is_signed_type = ir::is_signed(form.type());
  if (form.has(Modifier::sat) || form.has(Modifier::relu) || form.carry_out) return std::nullopt;
  switch (form.opcode) {
  case Opcode::add:
    return terms_.add(source(0), source(1));
  case Opcode::sub:
    return terms_.subtract(source(0), source(1));
  case Opcode::neg:
    return terms_.scale(source(0), ~UInt128(0));
  case Opcode::not_: // -x - 1
    return terms_.subtract(terms_.literal(width, ~UInt128(0)), source(0));
  case Opcode::mul:
  case Opcode::mad: {
    if (form.has(Modifier::hi)) return std::nullopt;
    TermId a = source(0), b = source(1);
    unsigned result = width;
    if (form.has(Modifier::wide)) {
      result = 2 * width;
      a = terms_.resize(a, result, is_signed_type);
      b = terms_.resize(b, result, is_signed_type);
    }
    const TermId product = terms_.multiply(a, b);
    return form.opcode == Opcode::mul ? product : terms_.add(product, operand(id, sources_[2], result));
  }
  case Opcode::shl: {
    const TermId amount = operand(id, sources_[1], 32);
    if (auto value = terms_.literal_value(amount))
      return *value >= width ? terms_.literal(width, 0) : terms_.scale(source(0), UInt128(1) << unsigned(*value));
    // x << n is x * (1 << n), also for clamped amounts. The amount has 32 bits, which 16 cannot hold.
    const unsigned own = std::max(width, 32u);
    const TermId power = terms_.operation("shl", own, {terms_.literal(own, 1), terms_.resize(amount, own, false)});
    return terms_.multiply(source(0), terms_.truncate(power, width));
  }
  case Opcode::shr: {
    const TermId amount = operand(id, sources_[1], 32);
    const auto value = terms_.literal_value(amount);
    if (!value && width < 32) return std::nullopt;
    const TermId clamped =
        value ? terms_.literal(width, std::min<UInt128>(*value, width)) : terms_.resize(amount, width, false);
    if (value && !is_signed_type)
      return terms_.shift_right(source(0), static_cast<unsigned>(*terms_.literal_value(clamped)));
    return named(is_signed_type ? "ashr" : "lshr", {source(0), clamped});
  }
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_: {
    const char* name = form.opcode == Opcode::and_ ? "and" : form.opcode == Opcode::or_ ? "or" : "xor";
    return terms_.bitwise(name, source(0), source(1));
  }
  case Opcode::min:
  case Opcode::max: {
    if (sources_.size() != 2) return std::nullopt;
    const bool minimum = form.opcode == Opcode::min;
    return named(is_signed_type ? (minimum ? "smin" : "smax") : (minimum ? "umin" : "umax"), {source(0), source(1)});
  }
  default:
    return std::nullopt;
  }
}

std::optional<TermId> SymbolicKernel::comparison(InstructionId id, const Form& form) {
  if (!integers(form.type()) || sources_.size() != 2) return std::nullopt; // a third source is a predicate
  const unsigned width = ir::bit_width(form.type());
  if (width < 16 || width > 64) return std::nullopt;
  const TermId a = operand(id, sources_[0], width), b = operand(id, sources_[1], width);
  const bool is_signed_type = ir::is_signed(form.type());
  if (form.has(Modifier::eq)) return terms_.is_zero(terms_.subtract(a, b));
  if (form.has(Modifier::ne)) return terms_.negation(terms_.is_zero(terms_.subtract(a, b)));
  if (form.has(Modifier::lt)) return terms_.less(a, b, is_signed_type);
  if (form.has(Modifier::gt)) return terms_.less(b, a, is_signed_type);
  if (form.has(Modifier::le)) return terms_.negation(terms_.less(b, a, is_signed_type));
  if (form.has(Modifier::ge)) return terms_.negation(terms_.less(a, b, is_signed_type));
  if (form.has(Modifier::lo)) return terms_.less(a, b, false);
  if (form.has(Modifier::hi)) return terms_.less(b, a, false);
  if (form.has(Modifier::ls)) return terms_.negation(terms_.less(b, a, false));
  if (form.has(Modifier::hs)) return terms_.negation(terms_.less(a, b, false));
  return std::nullopt;
}

std::optional<TermId> SymbolicKernel::modelled(InstructionId id, const Form& form) {
  const unsigned width = ir::bit_width(form.type());
  switch (form.opcode) {
  case Opcode::mov:
    if (sources_.size() != 1 || width == 0 || width > 64) return std::nullopt;
    if (sources_[0].is(OperandKind::vector)) return joined_word(id, width);
    return sources_[0].is_group() ? std::nullopt : std::optional(operand(id, sources_[0], width));
  case Opcode::r2d2_mov: {
    TermId sum = terms_.literal(width, 0);
    for (const Operand& source : sources_)
      sum = terms_.add(sum, operand(id, source, width));
    return sum;
  }
  case Opcode::cvta:
    if (sources_.size() != 1 || width > 64) return std::nullopt;
    if (form.space == ir::StateSpace::global) return operand(id, sources_[0], width); // the window starts at 0
    {
      const TermId window = terms_.leaf("window." + std::string(ir::spelling(form.space)), width);
      const TermId value = operand(id, sources_[0], width);
      return form.has(Modifier::to) ? terms_.subtract(value, window) : terms_.add(value, window);
    }
  case Opcode::cvt:
    if (sources_.size() != 1 || !integers(form.type()) || !integers(form.type(1)) || form.has(Modifier::sat))
      return std::nullopt;
    return terms_.resize(operand(id, sources_[0], ir::bit_width(form.type(1))), width, ir::is_signed(form.type(1)));
  case Opcode::selp:
    if (sources_.size() != 3 || width > 64) return std::nullopt;
    return terms_.select(operand(id, sources_[2], 1), operand(id, sources_[0], width), operand(id, sources_[1], width));
  case Opcode::setp:
    return comparison(id, form);
  case Opcode::prmt:
    return form.mnemonic == "prmt.b32" ? permuted(id) : std::nullopt;
  case Opcode::dp4a:
    return dot_of_bytes(id, form);
  case Opcode::and_:
  case Opcode::or_:
  case Opcode::xor_:
  case Opcode::not_: {
    if (form.type() != ir::ScalarType::pred) break;
    const TermId a = operand(id, sources_[0], 1), b = sources_.size() == 2 ? operand(id, sources_[1], 1) : TermId();
    if (form.opcode == Opcode::not_) return terms_.negation(a);
    if (form.opcode == Opcode::xor_) return terms_.add(a, b);
    const TermId both = terms_.multiply(a, b);
    return form.opcode == Opcode::and_ ? both : terms_.add(terms_.add(a, b), both);
  }
  default:
    break;
  }
  if (!integers(form.type()) || width < 16 || width > 64) return std::nullopt;
  return integer_operation(id, form, width);
}

void SymbolicKernel::define(InstructionId id, size_t number, ValueId definition, TermId term) {
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.guard && term) {
    std::vector<Operand> old;
    for (const Operand& operand : function_.operands_of(id))
      if (operand.has(OperandFlag::old_value)) old.push_back(operand);
    const unsigned width = terms_.width(term);
    TermId kept = number < old.size() ? values_[old[number].as_value().index()] : TermId();
    if (!kept || terms_.width(kept) != width)
      kept = terms_.leaf("undefined" + std::to_string(definition.index()), width);
    TermId guard = operand(id, Operand::value(instruction.guard), 1);
    if (instruction.guard_negated) guard = terms_.add(guard, terms_.literal(1, 1));
    term = terms_.select(guard, term, kept);
  }
  values_[definition.index()] = term;
}

void SymbolicKernel::evaluate_instruction(InstructionId id) {
  const ir::Instruction& instruction = function_.instructions[id];
  auto operands = function_.operands_of(id);
  if (instruction.kind == InstructionKind::linear_row) {
    TermId sum = terms_.literal(64, 0);
    for (size_t i = 1; i < operands.size(); ++i)
      sum = terms_.add(sum, operand(id, operands[i], 64));
    values_[operands[0].id] = sum;
    return;
  }
  if (instruction.kind != InstructionKind::real) return;
  const Form& form = function_.form_of(id);
  std::vector<ValueId> definitions;
  sources_.clear();
  source_index_.clear();
  for (const Operand& operand : operands)
    if (operand.is(OperandKind::value) && operand.is_definition()) definitions.push_back(operand.as_value());
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    bool defines = operands[i].is_definition() || operands[i].is(OperandKind::sink);
    for (size_t inner = i + 1; inner < ir::next_sibling(operands, i); ++inner)
      defines |= operands[inner].is_definition();
    if (defines || operands[i].has(OperandFlag::old_value)) continue;
    sources_.push_back(operands[i]);
    source_index_.push_back(i);
  }
  const bool is_load = !form.opaque && form.opcode == Opcode::ld && ir::is_param(form.space) && !sources_.empty();
  bool all_known = true;
  for (size_t n = 0; n < definitions.size(); ++n) {
    const ir::Value& value = function_.values[definitions[n]];
    if (!is_scalar(value)) {
      all_known = false;
      continue;
    }
    // A register of the hardware form has the width of its value.
    const bool is_general = value.register_class == ir::RegisterClass::general;
    const unsigned operation_width = ir::bit_width(form.type());
    const unsigned width =
        is_general || operation_width == 0 ? ir::bit_width(value.type) : std::min(64u, operation_width);
    std::optional<TermId> term;
    if (is_load)
      term = kernel_parameter(id, form, source_index_[0], static_cast<unsigned>(n), width);
    else if (!form.opaque && form.effects.pure() && definitions.size() == 1)
      term = modelled(id, form);
    else if (!form.opaque && form.effects.pure())
      term = part_of_word(id, form, n, width);
    if (term && terms_.width(*term) < width && is_general)
      term = terms_.resize(*term, width, ir::is_signed(form.type()));
    if (!term && !form.opaque && form.effects.pure()) {
      std::vector<TermId> taken;
      for (size_t i : source_index_)
        for (size_t inner = i; inner < ir::next_sibling(operands, i); ++inner) {
          if (operands[inner].is_group()) continue;
          const bool has_one_type = form.opcode == Opcode::mul || form.opcode == Opcode::mad || // high halves
                                    form.opcode == Opcode::div || form.opcode == Opcode::rem;
          unsigned own = has_one_type ? operation_width : 64; // width of a literal
          if (operands[inner].is(OperandKind::value))
            if (TermId known = values_[operands[inner].as_value().index()]) {
              own = terms_.width(known);
              const ir::Value& read = function_.values[operands[inner].as_value()];
              if (read.register_class != ir::RegisterClass::general && operation_width != 0)
                own = std::min(own, operation_width);
            }
          taken.push_back(operand(id, operands[inner], own));
        }
      term = terms_.operation(std::string(form.mnemonic) + "." + std::to_string(n), width, std::move(taken));
    }
    if (!term) {
      term = unknown(id, n, width);
      all_known = false;
    }
    define(id, n, definitions[n], *term);
  }
  // Values derived from more than 64 bits are identified by their register: they must be computed in the same way.
  const bool is_whole =
      std::ranges::all_of(definitions, [&](ValueId value) { return is_scalar(function_.values[value]); });
  if (is_load ? !all_known : form.opaque || !form.effects.pure() || !is_whole) observe(id, form);
}

void SymbolicKernel::observe(InstructionId id, const Form& form) {
  auto operands = function_.operands_of(id);
  Observation seen{id, {}};
  const ir::Instruction& instruction = function_.instructions[id];
  if (instruction.guard) {
    const TermId guard = operand(id, Operand::value(instruction.guard), 1);
    seen.terms.push_back(instruction.guard_negated ? terms_.add(guard, terms_.literal(1, 1)) : guard);
  }
  for (size_t i : source_index_) {
    if (operands[i].is(OperandKind::address)) {
      seen.terms.push_back(address(id, i, form.space));
      continue;
    }
    for (size_t inner = i; inner < ir::next_sibling(operands, i); ++inner) {
      const Operand& one = operands[inner];
      if (one.is_group() || one.is(OperandKind::block) || one.is(OperandKind::label_table)) continue;
      unsigned own = 64;
      if (one.is(OperandKind::value)) {
        const TermId known = values_[one.as_value().index()];
        own = known ? terms_.width(known) : ir::bit_width(function_.values[one.as_value()].type);
        own = std::clamp(own, 1u, 128u);
      }
      // A store takes the low bits.
      const unsigned stored = form.opaque || form.opcode != Opcode::st ? 0 : ir::bit_width(form.type());
      if (stored > 0 && stored < own) own = stored;
      seen.terms.push_back(operand(id, one, own));
    }
  }
  observations_.push_back(std::move(seen));
}

} // namespace ptxrewrite::prove
