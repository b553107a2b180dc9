// Parses RegLess's annotations, see regless_mark.h.
#include "ir/machine/registers/regless_mark.h"

#include "ir/core/module.h"

#include <algorithm>
#include <charconv>

namespace ptxrewrite::ir {

namespace {

constexpr std::string_view prefix = "@ regless ";

// Splits an annotation into words.
class Words {
public:
  explicit Words(std::string_view text) : rest_(text) {}
  std::string_view next() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r"), rest_.size()));
    size_t end = std::min(rest_.find_first_of(" \t\r"), rest_.size());
    std::string_view word = rest_.substr(0, end);
    rest_.remove_prefix(end);
    return word;
  }

private:
  std::string_view rest_;
};

template <class Number> bool read_number(std::string_view text, Number& number) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}
bool read_register(std::string_view text, uint16_t& number) {
  return text.starts_with('R') && read_number(text.substr(1), number) && number < RegisterSet().size();
}

bool read_allocation(std::string_view word, RegLessMark& mark) {
  size_t equals = word.find('=');
  if (equals == word.npos || equals == 0) return false;
  std::vector<uint16_t> numbers;
  if (word.substr(equals + 1) == "none") {
    mark.registers.push_back({std::string(word.substr(0, equals)), {}});
    return true;
  }
  for (std::string_view rest = word.substr(equals + 1);;) {
    size_t colon = rest.find(':');
    uint16_t number = 0;
    if (!read_register(rest.substr(0, colon), number)) return false;
    numbers.push_back(number);
    if (colon == rest.npos) break;
    rest.remove_prefix(colon + 1);
  }
  mark.registers.push_back({std::string(word.substr(0, equals)), std::move(numbers)});
  return true;
}

bool read_banks(std::string_view text, RegLessMark& mark) {
  for (size_t bank = 0; bank < staging_banks; ++bank) {
    size_t comma = text.find(',');
    if (!read_number(text.substr(0, comma), mark.banks[bank])) return false;
    if ((comma == text.npos) != (bank + 1 == staging_banks)) return false;
    if (comma != text.npos) text.remove_prefix(comma + 1);
  }
  return true;
}

bool read_region_head(Words& words, RegLessMark& mark) {
  mark.kind = RegLessMark::Kind::region;
  return read_number(words.next(), mark.number) && words.next() == "live" && read_number(words.next(), mark.live) &&
         words.next() == "banks" && read_banks(words.next(), mark);
}

// Parses lists of registers after their keywords.
bool read_lists(Words& words, std::string_view word, RegLessMark& mark) {
  bool region = mark.kind == RegLessMark::Kind::region;
  RegisterSet* set = nullptr;
  for (; !word.empty() && word != "+"; word = words.next()) {
    RegisterSet* named = region ? (word == "preload"      ? &mark.preload
                                   : word == "invalidate" ? &mark.invalidate
                                                          : nullptr)
                                : (word == "erase"   ? &mark.erase
                                   : word == "evict" ? &mark.evict
                                                     : nullptr);
    if (named) {
      set = named;
      continue;
    }
    bool last = word.ends_with('!') && set == &mark.preload;
    uint16_t number = 0;
    if (!set || !read_register(word.substr(0, word.size() - (last ? 1 : 0)), number)) return false;
    set->set(number);
    if (last) mark.last_reads.set(number);
  }
  return true;
}

} // namespace

Result<std::optional<RegLessMark>> parse_regless_mark(std::string_view text) {
  if (!text.starts_with(prefix)) return std::optional<RegLessMark>();
  Words words(text.substr(prefix.size()));
  RegLessMark mark;
  std::string_view word = words.next();
  bool good = true;
  if (word == "machine") {
    mark.kind = RegLessMark::Kind::machine;
    good = read_number(words.next(), mark.compute_capability);
  } else if (word == "alloc") {
    mark.kind = RegLessMark::Kind::alloc;
    for (word = words.next(); good && !word.empty() && word != "+"; word = words.next())
      good = read_allocation(word, mark);
  } else if (word == "region") {
    good = read_region_head(words, mark) && read_lists(words, words.next(), mark);
  } else {
    good = (word == "erase" || word == "evict") && read_lists(words, word, mark);
  }
  if (!good) return Error{"this is no annotation of RegLess: " + std::string(text), {}};
  return std::optional(mark);
}

bool carries_regless_mark(const Function& function, InstructionId id) {
  if (function.instructions[id].kind != InstructionKind::annotation) return false;
  std::span<const Operand> operands = function.operands_of(id);
  return !operands.empty() && operands[0].is(OperandKind::text) &&
         function.module().text(Symbol(operands[0].id)).starts_with(prefix);
}

Result<RegLessMark> regless_mark_of(const Function& function, InstructionId id) {
  auto mark = parse_regless_mark(function.module().text(Symbol(function.operands_of(id)[0].id)));
  if (!mark) return Error{mark.error().message, function.instructions[id].range};
  return std::move(**mark);
}

bool has_regless_marks(const Function& function) {
  for (BlockId block : function.layout)
    for (InstructionId id : function.instructions_in(block))
      if (carries_regless_mark(function, id)) return true;
  return false;
}

bool has_regless_marks(const Module& module, std::string_view kernel) {
  return std::ranges::any_of(module.functions, [&](const auto& function) {
    return function->has_body && module.text(function->name) == kernel && has_regless_marks(*function);
  });
}

} // namespace ptxrewrite::ir
