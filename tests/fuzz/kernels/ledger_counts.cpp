#include "tests/fuzz/kernels/ledger_counts.h"

#include <cstdio>

namespace ptxrewrite::fuzz {

namespace {

// "mul.wide.s32", or "st", at the start of the range, after a guard if there is one.
std::string mnemonic_at(const std::string& text, SourceRange range) {
  // The kernel's head, or an empty range.
  if (range.end <= range.begin || range.end > text.size() || text[range.begin] == '.') return "(whole kernel)";
  std::string_view words = std::string_view(text).substr(range.begin, range.end - range.begin);
  if (words[0] == '@') words.remove_prefix(std::min(words.size(), words.find(' ') + 1));
  const std::string_view mnemonic = words.substr(0, words.find_first_of(" \t;"));
  const std::string_view opcode = mnemonic.substr(0, mnemonic.find('.'));
  // The qualifiers of an access are independent of its address.
  const bool is_access = opcode == "ld" || opcode == "st" || opcode == "atom" || opcode == "red";
  return std::string(is_access ? opcode : mnemonic);
}

std::string line(const std::string& name, const std::vector<uint64_t>& numbers) {
  char cell[128];
  std::snprintf(cell, sizeof cell, "%-62s", name.c_str());
  std::string text = cell;
  for (uint64_t number : numbers) {
    std::snprintf(cell, sizeof cell, " %9llu", static_cast<unsigned long long>(number));
    text += cell;
  }
  return text + "\n";
}

std::vector<uint64_t> numbers_of(const LedgerRow& row) {
  std::vector<uint64_t> numbers(row.discharged.begin(), row.discharged.end());
  numbers.insert(numbers.end(), {row.held, row.failed});
  return numbers;
}

constexpr const char* ledger_heading = "    proved  at launch in kernel   assumed  was true was false";

} // namespace

void LedgerRow::add(const LedgerRow& other) {
  for (size_t i = 0; i < discharged.size(); ++i)
    discharged[i] += other.discharged[i];
  held += other.held;
  failed += other.failed;
}

void ChainRow::add(const ChainRow& other) {
  LedgerRow::add(other);
  kernels += other.kernels;
  changed += other.changed;
  rewritten_ran += other.rewritten_ran;
  original_ran += other.original_ran;
  guard_passed += other.guard_passed;
  guard_failed += other.guard_failed;
}

void LedgerCounts::add(const std::string& chain, const std::string& text,
                       const std::vector<transforms::Obligation>& ledger,
                       const std::vector<launch::LaunchFacts>& launches) {
  for (const transforms::Obligation& obligation : ledger) {
    LedgerRow one;
    one.discharged[static_cast<size_t>(obligation.discharge)] = 1;
    if (obligation.discharge == transforms::Discharge::launch_checked) {
      const Result<launch::LaunchExpression> check = launch::LaunchExpression::parse(obligation.reason);
      for (const launch::LaunchFacts& facts : launches)
        ++(check && check->holds(facts) ? one.held : one.failed);
    }
    chains_[chain].LedgerRow::add(one);
    instructions_[mnemonic_at(text, obligation.range)].add(one);
  }
}

void LedgerCounts::add(const LedgerCounts& other) {
  for (const auto& [name, row] : other.chains_)
    chains_[name].add(row);
  for (const auto& [name, row] : other.instructions_)
    instructions_[name].add(row);
}

LedgerRow LedgerCounts::sum() const {
  LedgerRow sum;
  for (const auto& [name, row] : chains_)
    sum.add(row);
  return sum;
}

std::string LedgerCounts::table() const {
  std::string text =
      std::string("obligations, by rewriting                                     ") + ledger_heading + "\n";
  for (const auto& [name, row] : chains_)
    text += line(name, numbers_of(row));
  text += line("all", numbers_of(sum()));
  text += std::string("obligations, by the instruction that raised it                ") + ledger_heading + "\n";
  for (const auto& [name, row] : instructions_)
    text += line(name, numbers_of(row));
  text += "launches, by rewriting                                            kernels   changed rewritten  original "
          "guard yes  guard no\n";
  for (const auto& [name, row] : chains_)
    text +=
        line(name, {row.kernels, row.changed, row.rewritten_ran, row.original_ran, row.guard_passed, row.guard_failed});
  return text;
}

} // namespace ptxrewrite::fuzz
