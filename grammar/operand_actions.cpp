// Operands in pre-order, and the constant expressions in them.
#include "grammar/actions.h"

#include "ir/forms/dac.h"

namespace ptxrewrite::grammar {

using namespace ir;

namespace {
// The parser recurses for every group.
constexpr size_t group_limit = 64;
} // namespace

// ---------------------------------------------------------------- names

void ReaderActions::name(const Lexeme& name) {
  before_operand();
  push_name(name.range, OperandFlag::none, false);
}

void ReaderActions::sign(const Lexeme& sign) {
  before_operand();
  sign_ = sign;
}

void ReaderActions::signed_name(const Lexeme& name) {
  const bool minus = text(sign_) == "-";
  push_name(name.range, OperandFlag::negated, minus);
  notes_.back().range.begin = sign_.range.begin;
  if (!operands_.back().is(OperandKind::value)) fail(notes_.back().range, "only registers can be negated");
}

void ReaderActions::push_name(SourceRange range, OperandFlag flags, bool minus) {
  std::string_view base = text(range);
  std::string_view selector_word;
  // Names have no dots: a dot begins a component selector.
  if (const size_t dot = base.find('.'); dot != std::string_view::npos) {
    selector_word = base.substr(dot + 1);
    base = base.substr(0, dot);
  }
  const bool branches = form_ && !form_->opaque && form_->effects.branch;
  Names::Found found = names_.lookup(base);
  Note note;
  note.range = range;
  note.minus = minus;
  Operand operand;
  if (found.value) {
    operand = Operand::value(found.value);
    operand.flags = flags;
    note.type = found.binding->type;
    note.vector_width = found.binding->vector_width;
    note.hardware = found.binding->register_class != RegisterClass::general;
    if (!selector_word.empty()) operand.selector = parse_selector(range, selector_word, note, false);
    push(operand, note);
    return;
  }
  if (found.binding && !branches && selector_word.empty()) {
    switch (found.binding->kind) {
    case NameKind::local_variable:
      operand = Operand::symbol(SymbolRef::local_variable(VariableId(found.binding->index)));
      push(operand, note);
      return;
    case NameKind::module_variable:
      operand = Operand::symbol(SymbolRef::module_variable(VariableId(found.binding->index)));
      push(operand, note);
      return;
    case NameKind::function:
      operand = Operand::symbol(SymbolRef::function(FunctionId(found.binding->index)));
      push(operand, note);
      return;
    default:
      break;
    }
  }
  if (std::optional<SpecialRegister> special = base[0] == '%' ? parse_special_register(base) : std::nullopt) {
    const SpecialRegisterInfo& about = info(*special);
    if (!seen_special_[static_cast<size_t>(*special)]) {
      seen_special_.set(static_cast<size_t>(*special));
      warn_of_version(range, about.version);
      warn_of_target(range, about.targets);
    }
    check_own_memory(range, *special);
    note.type = about.type;
    note.vector_width = about.vector_width;
    operand = Operand::special(static_cast<uint32_t>(*special));
    if (!selector_word.empty()) operand.selector = parse_selector(range, selector_word, note, true);
    push(operand, note);
    return;
  }
  push_unfound(range, base, !selector_word.empty());
}

void ReaderActions::check_own_memory(SourceRange range, SpecialRegister special) {
  if (special != SpecialRegister::perctamemoryoffset && special != SpecialRegister::perctamemorysize) return;
  for (const FunctionDirective& directive : function_->directives)
    if (module_.text(directive.name) == ".minperctamemory") return;
  error(range, quote(range) + " needs .minperctamemory in the header of its entry");
}

// A name that is not declared so far: a label, an undeclared callee, or an error.
void ReaderActions::push_unfound(SourceRange range, std::string_view base, bool has_selector) {
  const bool unknown = !form_ || form_->opaque; // an unknown instruction is assumed to have every effect
  const bool branches = !unknown && form_->effects.branch;
  const bool calls = !unknown && form_->effects.call;
  if (has_selector && unknown) {
    Operand operand;
    operand.kind = OperandKind::text;
    operand.id = module_.intern(text(range)).index();
    push(operand, {range});
    return;
  }
  if (has_selector || !(branches || calls || unknown)) {
    const bool is_address = !open_groups_.empty() && operands_[open_groups_.back()].is(OperandKind::address);
    const Binding* label = names_.find_plain(base);
    if (label && !has_selector) fail(range, quote(range) + " is a label, which cannot be an operand here");
    fail(range, (base[0] == '%' && !is_address ? "unknown register " : "unknown symbol ") + quote(range));
  }
  const Symbol symbol = intern(base);
  const bool callee = calls && open_groups_.empty() && operands_.size() == callee_index();
  if (callee) {
    push(Operand::symbol(SymbolRef::undeclared(symbol)), {range});
    return;
  }
  if (calls && !open_groups_.empty()) fail(range, "unknown symbol " + quote(range));
  Operand operand;
  operand.kind = OperandKind::block;
  operand.id = BlockId::invalid_index;
  Names::Wants wants = Names::Wants::anything;
  if (branches) wants = form_->opcode == Opcode::bra ? Names::Wants::block : Names::Wants::label_table;
  if (calls) wants = Names::Wants::call_table;
  pending_.push_back({static_cast<uint32_t>(operands_.size()), symbol, range, wants});
  push(operand, {range});
}

// A selector that is separated from its register by a blank.
void ReaderActions::selector(const Lexeme& word) {
  Operand& operand = operands_[last_operand_];
  Note& note = notes_[last_operand_];
  if ((!operand.is(OperandKind::value) && !operand.is(OperandKind::special_register)) ||
      operand.selector != no_selector)
    fail(word.range, "unexpected " + quote(word.range));
  operand.selector = parse_selector(word.range, text(word).substr(1), note, operand.is(OperandKind::special_register));
  note.range.end = word.range.end;
}

Selector ReaderActions::parse_selector(SourceRange range, std::string_view word, const Note& note, bool special) {
  if (word.size() == 1) {
    constexpr std::string_view positions = "xyzwrgba";
    const size_t place = positions.find(word[0]);
    if (place != std::string_view::npos) {
      const unsigned component = static_cast<unsigned>(place % 4);
      if (note.vector_width == 1) fail(range, quote(range) + " is not a vector");
      if (component >= note.vector_width)
        fail(range, quote(range) + ": the vector has " + std::to_string(note.vector_width) + " components");
      return static_cast<Selector>(component_selector(component) | (place >= 4 ? 1u << 11 : 0u));
    }
  } else if (!special && (word[0] == 'b' || word[0] == 'h') && word.size() <= 5) {
    const unsigned limit = word[0] == 'b' ? 7 : 3;
    unsigned digits = 0;
    bool valid = true;
    for (char c : word.substr(1)) {
      valid &= c >= '0' && static_cast<unsigned>(c - '0') <= limit;
      digits = digits << 3 | (static_cast<unsigned>(c - '0') & 7);
    }
    if (valid)
      return static_cast<Selector>((word[0] == 'b' ? 2u : 3u) << 14 | static_cast<unsigned>(word.size() - 2) << 12 |
                                   digits);
  }
  fail(range, "unknown selector in " + quote(range));
}

void ReaderActions::sink(const Lexeme& underscore) {
  before_operand();
  Operand operand;
  operand.kind = OperandKind::sink;
  push(operand, {underscore.range});
}

void ReaderActions::symbol_offset() {
  Constant offset = finish_constant();
  Operand& operand = operands_.back();
  const bool is_register = operand.is(OperandKind::value) && operand.selector == no_selector;
  if (!operand.is(OperandKind::symbol) && !is_register)
    fail(notes_.back().range, "only registers and the addresses of variables can have an offset added");
  if (offset.is_float) fail(constant_range_, "an offset must be an integer");
  if (is_register) { // as in ptxas, by an instruction that computes the sum
    const ScalarType type = notes_.back().type;
    if ((!is_integer(type) && !is_bit_type(type)) || bit_width(type) < 16 || bit_width(type) > 64 ||
        notes_.back().vector_width > 1)
      fail(notes_.back().range, "an offset can be added to integer registers only");
    operand.immediate = static_cast<int64_t>(offset.integer);
    notes_.back().range.end = constant_range_.end;
    has_sums_ = true;
    return;
  }
  if (operand.as_symbol().kind() == SymbolRef::Kind::function)
    fail(constant_range_, "a function's address cannot have an offset");
  operand.immediate = static_cast<int64_t>(offset.integer);
  notes_.back().range.end = constant_range_.end;
}

// ---------------------------------------------------------------- literals

void ReaderActions::integer(const Lexeme& literal) {
  before_operand();
  const IntegerLiteral parsed = integer_value(literal);
  Operand operand = Operand::integer(static_cast<int64_t>(parsed.value));
  if (parsed.hexadecimal) operand.flags = operand.flags | OperandFlag::hexadecimal;
  if (parsed.has_suffix) operand.flags = operand.flags | OperandFlag::unsigned_literal;
  Note note;
  note.range = literal.range;
  note.is_unsigned = parsed.is_unsigned;
  push(operand, note);
}

double ReaderActions::decimal_value(const Lexeme& literal) {
  std::optional<double> value = parse_decimal(text(literal));
  if (!value) fail(literal.range, quote(literal.range) + " does not fit into a double");
  return *value;
}

// Parses an integer literal, which may be too long.
IntegerLiteral ReaderActions::integer_value(const Lexeme& literal) {
  IntegerLiteral parsed = parse_integer(text(literal));
  if (parsed.overflows) fail(literal.range, quote(literal.range) + " does not fit into 64 bits");
  if (parsed.is_cut)
    diagnostics_.warning(literal.range, quote(literal.range) + " does not fit into 64 bits; as in ptxas, it is " +
                                            std::to_string(parsed.value));
  return parsed;
}

void ReaderActions::decimal(const Lexeme& literal) {
  before_operand();
  push(Operand::float64_bits(std::bit_cast<uint64_t>(decimal_value(literal))), {literal.range});
}

void ReaderActions::float_bits(const Lexeme& literal) {
  before_operand();
  const uint64_t bits = parse_float_bits(text(literal));
  const bool is_double = (text(literal)[1] | 0x20) == 'd';
  push(is_double ? Operand::float64_bits(bits) : Operand::float32_bits(static_cast<uint32_t>(bits)), {literal.range});
}

// ---------------------------------------------------------------- groups

void ReaderActions::open_group(OperandKind kind, SourceRange range) {
  before_operand();
  if (open_groups_.size() >= group_limit) fail(range, "too many nested groups");
  open_groups_.push_back(static_cast<uint32_t>(operands_.size()));
  push(Operand::group(kind, 0), {range});
}

void ReaderActions::close_group(SourceRange end) {
  const uint32_t head = open_groups_.back();
  open_groups_.pop_back();
  operands_[head].id = static_cast<uint32_t>(operands_.size()) - head - 1;
  notes_[head].range.end = end.end;
  last_operand_ = head;
}

// Makes the latest operand the first one of a new group. Indices of unresolved names are adjusted.
void ReaderActions::insert_group_before_last(OperandKind kind) {
  const uint32_t place = last_operand_;
  operands_.insert(operands_.begin() + place, Operand::group(kind, 0));
  notes_.insert(notes_.begin() + place, Note{notes_[place].range});
  for (LocalPending& pending : pending_)
    if (pending.operand >= place) ++pending.operand;
}

void ReaderActions::begin_pair() {
  insert_group_before_last(OperandKind::pair);
  const uint32_t head = last_operand_;
  // The operands so far and the next one.
  operands_[head].id = static_cast<uint32_t>(operands_.size()) - head;
  pair_ = head;
}

void ReaderActions::end_pair(const Lexeme& second) {
  notes_[pair_].range.end = second.range.end;
  if (operands_[pair_ + 1].is(OperandKind::sink) && operands_.back().is(OperandKind::sink))
    fail(notes_[pair_].range, "one of the two must be a register");
  last_operand_ = pair_;
}

void ReaderActions::begin_vector(const Lexeme& brace) {
  open_group(OperandKind::vector, brace.range);
}
void ReaderActions::end_vector(const Lexeme& brace) {
  close_group(brace.range);
  // Initialisers may be empty.
  if (form_ && operands_[last_operand_].id == 0) fail(notes_[last_operand_].range, "a vector without elements");
}

void ReaderActions::begin_list(const Lexeme& parenthesis) {
  open_group(OperandKind::list, parenthesis.range);
}

void ReaderActions::end_list(const Lexeme& parenthesis) {
  const uint32_t head = open_groups_.back();
  close_group(parenthesis.range);
  // A call's list is kept; elsewhere parentheses belong to constant expressions.
  const bool call = form_ && (form_->opaque || form_->effects.call) && open_groups_.empty();
  if (call) return;
  if (!form_ && !function_) fail(notes_[head].range, "unexpected parentheses");
  if (operands_[head].id != 1 || !operands_[head + 1].is_constant()) {
    if (!form_) return; // the instruction has been rejected already
    fail(notes_[head].range, "only constants can stand in parentheses here");
  }
  notes_[head + 1].range = notes_[head].range;
  operands_.erase(operands_.begin() + head);
  notes_.erase(notes_.begin() + head);
}

// `(.s64)`: the parenthesis belongs to a cast.
void ReaderActions::begin_cast(const Lexeme& type) {
  const SourceRange parenthesis = notes_[open_groups_.back()].range;
  operands_.resize(open_groups_.back());
  notes_.resize(open_groups_.back());
  open_groups_.pop_back();
  begin_constant();
  constant_range_ = parenthesis;
  constant_range_open_ = false;
  constant_cast(type);
}

// ---------------------------------------------------------------- addresses

void ReaderActions::begin_address(const Lexeme& bracket) {
  open_group(OperandKind::address, bracket.range);
}

// A register, a symbol, or `dac.deq.data`, which is followed by its number.
void ReaderActions::address_name(const Lexeme& name) {
  before_operand();
  address_queue_ = text(name).starts_with("dac.") ? parse_queue(text(name)) : std::nullopt;
  if (!address_queue_) {
    push_name(name.range, OperandFlag::none, false);
    return;
  }
  Note note;
  note.range = name.range;
  note.hardware = true;
  note.type = ScalarType::b64;
  push(Operand::integer(0), note); // a placeholder until the number is read
}

void ReaderActions::queue_address(const Lexeme& number) {
  const SourceRange range{notes_.back().range.begin, number.range.end};
  if (!address_queue_ ||
      (*address_queue_ != RegisterClass::queued_data && *address_queue_ != RegisterClass::queued_address))
    fail(notes_.back().range, quote(notes_.back().range) + " cannot be an address with a number");
  operands_.back() = Operand::value(queue_value(range, *address_queue_, number));
  notes_.back().range = range;
  address_queue_.reset();
}

// The bracket of var[...].
void ReaderActions::begin_index(const Lexeme& bracket) {
  if (!operands_[last_operand_].is(OperandKind::symbol))
    fail(bracket.range, quote(notes_[last_operand_].range) + " is not a variable and cannot have an index");
  if (open_groups_.size() >= group_limit) fail(bracket.range, "too many nested groups");
  insert_group_before_last(OperandKind::address);
  operands_[last_operand_].flags = OperandFlag::bracketed_index;
  open_groups_.push_back(last_operand_);
}

void ReaderActions::end_address(const Lexeme& bracket) {
  const uint32_t head = open_groups_.back();
  if (address_queue_) {
    address_queue_.reset();
    fail(notes_[head + 1].range, quote(notes_[head + 1].range) + " lacks its number in parentheses");
  }
  close_group(bracket.range);
  const Operand base = operands_[head + 1];
  // `mov.u64 %rd1, table[8]` takes an address and does not read memory.
  if (operands_[head].has(OperandFlag::bracketed_index) && operands_[head].id == 1 && form_ &&
      form_->opcode == Opcode::mov) {
    const int64_t offset = operands_[head].immediate;
    operands_.erase(operands_.begin() + head);
    notes_.erase(notes_.begin() + head);
    operands_[head].immediate = offset;
    notes_[head].range.end = bracket.range.end;
    return;
  }
  const bool known = !form_ || form_->opaque;
  if (!known && !base.is(OperandKind::value) && !base.is(OperandKind::symbol) && !base.is(OperandKind::integer))
    fail(notes_[head + 1].range, quote(notes_[head + 1].range) + " cannot be an address");
}

void ReaderActions::address_suffix(const Lexeme& word) {
  if (text(word) != ".unified" && !(form_ && form_->opaque))
    fail(word.range, "unexpected " + quote(word.range) + " behind an address");
  operands_[last_operand_].flags = operands_[last_operand_].flags | OperandFlag::unified;
  notes_[last_operand_].range.end = word.range.end;
}

void ReaderActions::address_offset(const Lexeme& literal) {
  const IntegerLiteral parsed = integer_value(literal);
  Operand& address = operands_[open_groups_.back()];
  address.immediate = static_cast<int64_t>(parsed.value);
  address.flags = address.flags | OperandFlag::spelled_offset;
  offset_ = literal;
}

void ReaderActions::begin_offset_tail() {
  begin_constant();
  constant_integer(offset_);
}

void ReaderActions::address_constant() {
  Constant offset = finish_constant();
  if (offset.is_float) fail(constant_range_, "an offset must be an integer");
  operands_[open_groups_.back()].immediate = static_cast<int64_t>(offset.integer);
}

// `[%lr0+%cr7]`, `[%lr0+%rd5]` and `[%rd5+%cr7]` of the hardware forms.
void ReaderActions::second_base(const Lexeme& name) {
  push_name(name.range, OperandFlag::none, false);
  const Note& base = notes_[open_groups_.back() + 1];
  const Note& note = notes_.back();
  const bool number = operands_.back().is(OperandKind::value) && note.vector_width == 1 && !ir::is_float(note.type) &&
                      (ir::bit_width(note.type) == 32 || ir::bit_width(note.type) == 64);
  if (!number || !(base.hardware || note.hardware)) fail(name.range, "a register cannot be added to an address");
}

// `[1024]`
void ReaderActions::immediate_base() {
  Constant base = finish_constant();
  push_constant(base, constant_range_);
  if (base.is_float) fail(constant_range_, "an address must be an integer");
}

// ---------------------------------------------------------------- constant expressions

void ReaderActions::begin_constant() {
  before_operand();
  constants_.begin();
  constant_range_open_ = true;
}

void ReaderActions::begin_constant_tail() {
  const Operand operand = operands_.back();
  const Note note = notes_.back();
  constants_.begin();
  constant_range_open_ = true;
  Constant first = Constant::of(operand.immediate);
  first.is_unsigned = note.is_unsigned;
  if (operand.is(OperandKind::float64)) first = Constant::of_real(std::bit_cast<double>(operand.immediate));
  if (!operand.is_constant()) fail(note.range, "only constants can be computed with");
  add_term(first, note.range);
  operands_.pop_back();
  notes_.pop_back();
}

void ReaderActions::add_term(const Constant& constant, SourceRange range) {
  if (constant_range_open_) constant_range_ = range;
  constant_range_open_ = false;
  constant_range_.end = range.end;
  constants_.term(constant);
}

void ReaderActions::constant_integer(const Lexeme& literal) {
  const IntegerLiteral parsed = integer_value(literal);
  add_term({false, parsed.is_unsigned, parsed.value, 0}, literal.range);
}

void ReaderActions::constant_decimal(const Lexeme& literal) {
  add_term(Constant::of_real(decimal_value(literal)), literal.range);
}

void ReaderActions::constant_warp_size(const Lexeme& word) {
  add_term(Constant::of(32), word.range);
}

void ReaderActions::constant_prefix(const Lexeme& op) {
  if (constant_range_open_) constant_range_ = op.range;
  constant_range_open_ = false;
  const char c = text(op)[0];
  const ConstantOperator prefix = c == '-'   ? ConstantOperator::minus
                                  : c == '+' ? ConstantOperator::plus
                                  : c == '!' ? ConstantOperator::logical_not
                                             : ConstantOperator::bit_not;
  if (!constants_.prefix(prefix)) fail(op.range, "the constant expression is nested too deeply");
}

void ReaderActions::signed_constant() {
  begin_constant();
  constant_prefix(sign_);
}

void ReaderActions::constant_operator(const Lexeme& op) {
  if (!constants_.binary(text(op))) fail(op.range, "the constant expression is nested too deeply");
}

void ReaderActions::constant_open(const Lexeme& parenthesis) {
  if (constant_range_open_) constant_range_ = parenthesis.range;
  constant_range_open_ = false;
  if (!constants_.open()) fail(parenthesis.range, "the constant expression is nested too deeply");
}

// `(.s64)` or `(.u64)`; inside parenthesisedConstant the parenthesis has been opened before.
void ReaderActions::constant_cast(const Lexeme& type) {
  constants_.drop_open();
  const std::string_view word = text(type);
  if (word != ".s64" && word != ".u64") fail(type.range, "a constant can be cast to .s64 or .u64 only");
  if (!constants_.prefix(word == ".s64" ? ConstantOperator::cast_signed : ConstantOperator::cast_unsigned))
    fail(type.range, "the constant expression is nested too deeply");
}

Constant ReaderActions::finish_constant() {
  Constant result = constants_.end();
  if (std::optional<std::string> wrong = constants_.take_error()) fail(constant_range_, *wrong);
  return result;
}

void ReaderActions::push_constant(const Constant& constant, SourceRange range) {
  Note note;
  note.range = range;
  note.is_unsigned = constant.is_unsigned;
  if (constant.is_float)
    push(Operand::float64_bits(std::bit_cast<uint64_t>(constant.real)), note);
  else
    push(Operand::integer(static_cast<int64_t>(constant.integer)), note);
}

void ReaderActions::constant_operand() {
  Constant result = finish_constant();
  push_constant(result, constant_range_);
}

} // namespace ptxrewrite::grammar
