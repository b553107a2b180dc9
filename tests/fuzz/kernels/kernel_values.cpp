// Variables and operands of random kernels.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

Statement& Builder::emit(Statement statement) {
  out_->push_back(std::move(statement));
  return out_->back();
}

double Builder::weight(const std::string& name) const {
  const auto found = knobs_.weights.find(name);
  return found == knobs_.weights.end() ? 1.0 : found->second;
}

uint32_t Builder::hidden_variable(Kind kind, Level level) {
  const auto index = static_cast<uint32_t>(kernel_.variables.size());
  kernel_.variables.push_back({kind, level, function_, !scopes_.empty(), true});
  if (!scopes_.empty()) scopes_.back()->declarations.push_back(index);
  return index;
}

uint32_t Builder::new_variable(Kind kind, Level level, bool constant) {
  const uint32_t index = hidden_variable(kind, level);
  kernel_.variables[index].constant = constant;
  visible_.push_back(index);
  return index;
}

// Late variables are more likely, so that values form chains of dependences.
bool Builder::find_variable(Kind kind, Level least, Level limit, uint32_t& found) {
  std::vector<uint32_t> fitting;
  for (uint32_t variable : visible_)
    if (kernel_.variables[variable].kind == kind && level_of(variable) >= least && level_of(variable) <= limit)
      fitting.push_back(variable);
  if (fitting.empty()) return false;
  const size_t from = random_.one_in(2) && fitting.size() > 6 ? fitting.size() - 6 : 0;
  found = fitting[from + random_.below(fitting.size() - from)];
  return true;
}

uint32_t Builder::make_variable(Kind kind) {
  switch (kind) {
  case Kind::predicate:
    return compute("setp.lt.s32", "p", "rr",
                   {reg(pick_variable(Kind::b32, Level::block)), number32(random_.between(-9, 99))});
  case Kind::b16:
    return compute("mov.b16", "h", "h", {random_immediate(kind, true)});
  case Kind::b32:
    return compute("mov.u32", "r", "r", {random_immediate(kind, true)});
  case Kind::b64:
    return compute("mov.b64", "d", "d", {random_immediate(kind, true)});
  case Kind::f16:
    return compute("mov.b16", "e", "h", {random_immediate(Kind::b16, true)});
  case Kind::f16x2:
    return compute("mov.b32", "w", "R", {reg(pick_variable(Kind::b32, Level::block))});
  case Kind::f32:
    return compute("mov.f32", "f", "f", {random_immediate(kind, true)});
  default:
    return compute("mov.f64", "g", "g", {random_immediate(Kind::f64, true)});
  }
}

uint32_t Builder::pick_variable(Kind kind, Level limit) {
  uint32_t found = 0;
  return find_variable(kind, Level::block, limit, found) ? found : make_variable(kind);
}

uint32_t Builder::pick_predicate(Level limit) {
  if (random_.one_in(3)) { // a new one, so that conditions differ
    const char* name = random_.one_in(2) ? "setp.lt.s32" : "setp.gt.u32";
    return compute(name, "p", "rr", {reg(pick_variable(Kind::b32, limit)), pick_operand('r', limit)});
  }
  return pick_variable(Kind::predicate, limit);
}

Level Builder::pick_level() {
  if (random_.chance(knobs_.uniform)) return Level::block;
  return random_.one_in(5) ? Level::warp : Level::thread;
}

uint32_t Builder::pick_condition() {
  const Level level = pick_level();
  uint32_t found = 0;
  if (random_.one_in(2) && find_variable(Kind::predicate, level, level, found)) return found;
  if (!find_variable(Kind::b32, level, level, found)) return pick_predicate(level);
  const char* name = random_.one_in(2) ? "setp.lt.s32" : "setp.ge.u32";
  return compute(name, "p", "rr", {reg(found), pick_operand('r', level)});
}

uint32_t Builder::pick_for_control() {
  const Level level = pick_level();
  if (!kernel_.may_wrap) return pick_dividend(level);
  uint32_t found = 0;
  return find_variable(Kind::b32, level, level, found) ? found : pick_variable(Kind::b32, Level::thread);
}

Operand Builder::random_immediate(Kind kind, bool may_be_nan) {
  static constexpr uint64_t floats[] = {0x00000000, 0x80000000, 0x3f800000, 0xbf800000, 0x3f000000, 0x40490fdb,
                                        0x00400000, 0x00800000, 0x7f7fffff, 0x4b000001, 0x7f800000, 0x7fc00000};
  static constexpr uint64_t doubles[] = {0x0000000000000000, 0x8000000000000000, 0x3ff0000000000000, 0xbfe0000000000000,
                                         0x4008000000000001, 0x0008000000000000, 0x7fefffffffffffff, 0x41dfffffffc00000,
                                         0x7ff0000000000000, 0x7ff8000000000000};
  if (kind == Kind::f32) return Operand::immediate(kind, floats[random_.below(std::size(floats) - !may_be_nan)]);
  if (kind == Kind::f64) return Operand::immediate(kind, doubles[random_.below(std::size(doubles) - !may_be_nan)]);
  const unsigned width = width_of(kind);
  const uint64_t mask = width == 64 ? ~uint64_t(0) : (uint64_t(1) << width) - 1;
  uint64_t value = 0;
  switch (random_.below(5)) {
  case 0:
    value = random_.next();
    break;
  case 1:
    value = uint64_t(1) << random_.below(width);
    break;
  case 2:
    value = (uint64_t(1) << (width - 1)) - random_.below(3);
    break;
  default:
    value = static_cast<uint64_t>(random_.between(-8, 40));
    break;
  }
  return Operand::immediate(kind, value & mask);
}

// Comparing a value with itself detects NaN.
uint32_t Builder::make_number(uint32_t variable) {
  switch (kernel_.variables[variable].kind) {
  case Kind::f32: {
    const uint32_t is_nan = compute("setp.nan.f32", "p", "ff", {reg(variable), reg(variable)});
    return compute("selp.f32", "f", "ff!", {Operand::immediate(Kind::f32, 0x3f800000), reg(variable), reg(is_nan)});
  }
  case Kind::f64: {
    const uint32_t is_nan = compute("setp.nan.f64", "p", "gg", {reg(variable), reg(variable)});
    return compute("selp.f64", "g", "gg!",
                   {Operand::immediate(Kind::f64, 0x3ff0000000000000), reg(variable), reg(is_nan)});
  }
  default: {
    const uint32_t is_nan = compute("setp.nan.f16", "p", "ee", {reg(variable), reg(variable)});
    return compute("selp.b16 $0, 0x3C00, $1, $2", "e", "e!", {reg(variable), reg(is_nan)});
  }
  }
}

Operand Builder::pick_operand(char letter, Level limit) {
  const Kind kind = kind_of_letter(letter);
  switch (letter) {
  case 'n':
    return number32(static_cast<int64_t>(random_.below(256)));
  case 'c':
    if (random_.one_in(2)) return number32(random_.one_in(4) ? random_.between(0, 70) : random_.between(0, 15));
    return reg(pick_variable(kind, limit));
  case 'k':
    if (random_.one_in(2)) return number32(random_.between(0, 70));
    return reg(compute("and.b32", "r", "rr", {reg(pick_variable(kind, limit)), number32(0xff)}));
  case 'u': { // positive as a signed number too
    if (random_.one_in(2)) return number16(random_.between(1, 300));
    const uint32_t low = compute("and.b16", "h", "hh", {reg(pick_variable(kind, limit)), number16(0x7fff)});
    return reg(compute("or.b16", "h", "hh", {reg(low), number16(1)}));
  }
  case 'v': {
    if (random_.one_in(2)) return number32(random_.between(1, 3000));
    const uint32_t low = compute("and.b32", "r", "rr", {reg(pick_variable(kind, limit)), number32(0x7fffffff)});
    return reg(compute("or.b32", "r", "rr", {reg(low), number32(1)}));
  }
  case 'x': {
    if (random_.one_in(2)) return number64(random_.between(1, 30000));
    const uint32_t low =
        compute("shr.u64", "d", "dc", {reg(pick_variable(kind, limit)), number32(random_.between(1, 50))});
    return reg(compute("or.b64", "d", "dd", {reg(low), number64(1)}));
  }
  case 'j':
  case 'y':
  case 'Y':
    return reg(make_number(pick_variable(kind, limit)));
  case '!': {
    Operand operand = reg(pick_variable(kind, limit));
    operand.negated = random_.one_in(3);
    return operand;
  }
  default:
    break;
  }
  const bool may_be_immediate = letter == 'h' || letter == 'r' || letter == 'd' || letter == 'f' || letter == 'g';
  if (may_be_immediate && random_.chance(knobs_.immediate)) return random_immediate(kind, true);
  return reg(pick_variable(kind, limit));
}

bool Builder::pick_target(Kind kind, Level least, uint32_t& target) {
  std::vector<uint32_t> fitting;
  for (uint32_t variable : visible_) {
    const Variable& row = kernel_.variables[variable];
    if (row.kind == kind && !row.constant && row.level >= least) fitting.push_back(variable);
  }
  if (fitting.empty()) return false;
  target = random_.pick(fitting);
  return true;
}

Guard Builder::pick_guard(Level limit) {
  return {true, random_.one_in(2), pick_predicate(limit)};
}

Level Builder::level_of(const Operand& operand) const {
  return operand.is_variable ? level_of(operand.variable) : Level::block;
}
Level Builder::level_of(const std::vector<Operand>& operands) const {
  Level level = Level::block;
  for (const Operand& operand : operands)
    level = highest(level, level_of(operand));
  return level;
}

uint32_t Builder::compute(std::string_view text, std::string_view results, std::string_view letters,
                          const std::vector<Operand>& sources) {
  Statement statement;
  statement.kind = StatementKind::operation;
  statement.operation = operation_named(text, results, letters);
  statement.sources = sources;
  const uint32_t result = new_variable(kind_of_letter(results[0]), level_of(sources), true);
  statement.results = {result};
  emit(std::move(statement));
  return result;
}

// Read again, or reused.
uint32_t Builder::special(SpecialRegister which) {
  const auto index = static_cast<size_t>(which);
  if (special_.size() <= index) special_.resize(32);
  uint32_t& cached = special_[index];
  // A register read in a branch or a scope is not visible after it.
  const bool alive = cached != 0 && std::find(visible_.begin(), visible_.end(), cached - 1) != visible_.end();
  if (alive && !random_.one_in(4)) return cached - 1;
  Statement statement;
  statement.kind = StatementKind::special_register;
  statement.text = "mov.u32";
  statement.special = which;
  const bool per_thread = which <= SpecialRegister::tid_z || which >= SpecialRegister::laneid;
  const uint32_t result = new_variable(Kind::b32, per_thread ? Level::thread : Level::block, true);
  statement.results = {result};
  emit(std::move(statement));
  cached = result + 1;
  return result;
}

} // namespace ptxrewrite::fuzz
