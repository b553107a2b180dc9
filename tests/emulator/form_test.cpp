#include "tests/emulator/form_test.h"

#include "tests/emulator/forms.h"

#include <algorithm>
#include <cstdio>

namespace ptxrewrite::test {
namespace {

// Returns the instruction's sources in the format of the reference.
std::vector<Raw> sources_of(const Statement& statement, const ThreadRegisters& thread) {
  std::vector<Raw> result;
  auto add = [&](const StatementOperand& operand) {
    Raw value = operand.is_register() ? thread.of(operand.letter, operand.number) : operand.value;
    if (operand.negated) value = value == 0;
    result.push_back(value);
  };
  for (size_t i = 1; i < statement.operands.size(); ++i) {
    if (statement.operands[i].kind != StatementOperand::Kind::group) add(statement.operands[i]);
    for (const StatementOperand& element : statement.operands[i].elements)
      add(element);
  }
  return result;
}

// Returns the expected registers after the statement. `result` is the reference's answer.
std::vector<Raw> expected_registers(const GuardedStatement& guarded, const ThreadRegisters& thread,
                                    const ReferenceResult& result) {
  const StatementOperand& target = guarded.statement.operands.front();
  std::vector<const StatementOperand*> parts{&target};
  if (target.kind == StatementOperand::Kind::group) {
    parts.clear();
    for (const StatementOperand& element : target.elements)
      parts.push_back(&element);
  }
  std::vector<Raw> registers;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i]->is_register()) continue;
    const Raw old = thread.of(parts[i]->letter, parts[i]->number);
    registers.push_back(guarded.executes(thread) ? low_bits(result.written[i], parts[i]->bits()) : old);
  }
  return registers;
}

bool agrees(const std::vector<Raw>& observed, const std::vector<Raw>& expected, uint64_t units) {
  if (observed == expected) return true;
  if (units == 0 || observed.size() != 1 || expected.size() != 1) return false;
  const Raw distance = observed[0] > expected[0] ? observed[0] - expected[0] : expected[0] - observed[0];
  return distance <= units;
}

std::string hexadecimal(Raw value) {
  char text[40];
  std::snprintf(text, sizeof text, "0x%llx%016llx", static_cast<unsigned long long>(value >> 64),
                static_cast<unsigned long long>(value));
  std::string_view digits(text + 2);
  while (digits.size() > 1 && digits.front() == '0')
    digits.remove_prefix(1);
  return "0x" + std::string(digits);
}

// Statements of different groups are not combined in a kernel: a GPU that runs the kernels
// (PTXREWRITE_KEEP_KERNELS) should not reject all because of one, and its exact results are compared bit by bit.
int kernel_group(const std::string& mnemonic) {
  constexpr unsigned at_hand = 90;
  const bool approximate = mnemonic.find(".approx") != mnemonic.npos || mnemonic.find(".full") != mnemonic.npos;
  return runs_on(mnemonic, at_hand) ? approximate : 2;
}

} // namespace

bool FormTest::test_opcode(std::string_view opcode, const Extend& extend) {
  size_t forms = 0;
  const size_t statements_before = statements_;
  std::vector<std::string> mnemonics = mnemonics_of(opcode);
  std::ranges::stable_sort(mnemonics, {}, &kernel_group);
  for (auto at = mnemonics.begin(); at != mnemonics.end(); ++at) {
    if (at != mnemonics.begin() && kernel_group(*at) != kernel_group(at[-1])) flush();
    const std::string& mnemonic = *at;
    std::vector<std::string> statements = plain_statements(mnemonic);
    std::vector<std::string> varied = varied_statements(mnemonic);
    if (extend) {
      extend(statements, true);
      extend(varied, false);
    }
    statements.insert(statements.end(), varied.begin(), varied.end());
    size_t stated = 0;
    for (const std::string& text : statements)
      if (!text.empty()) stated += add({Statement(text), static_cast<Guard>((statements_ + 1) % 3)});
    forms += stated > 0;
  }
  flush();
  if (forms > 0)
    std::printf("%-12s %6zu forms %8zu statements\n", std::string(opcode).c_str(), forms,
                statements_ - statements_before);
  return forms > 0;
}

bool FormTest::add(GuardedStatement guarded) {
  Reference reference = reference_for_(guarded.statement);
  if (!reference) return false;
  ++statements_;
  batch_.push_back(std::move(guarded));
  references_.push_back(std::move(reference));
  if (batch_.size() == 100) flush();
  return true;
}

void FormTest::flush() {
  if (batch_.empty()) return;
  auto observed = run_statements(batch_, threads_, way_);
  if (!observed) {
    complain_singly();
  } else {
    for (size_t i = 0; i < batch_.size(); ++i)
      compare(batch_[i], references_[i], (*observed)[i]);
  }
  batch_.clear();
  references_.clear();
}

// Reports the statements of the batch that the emulator cannot run at all.
void FormTest::complain_singly() {
  for (const GuardedStatement& guarded : batch_)
    if (auto alone = run_statements({&guarded, 1}, threads_, way_); !alone)
      complain((guarded.spelled.empty() ? guarded.statement.text : guarded.spelled) + " " + alone.error().message);
}

void FormTest::compare(const GuardedStatement& guarded, const Reference& reference,
                       const std::vector<Observation>& observations) {
  const bool writes_carry = guarded.statement.has("cc");
  for (size_t i = 0; i < threads_.size(); ++i) {
    const bool carry_before = threads_[i].of('p', carry_predicate) != 0;
    const std::vector<Raw> sources = sources_of(guarded.statement, threads_[i]);
    const ReferenceResult result = reference({sources, carry_before});
    const std::vector<Raw> expected = expected_registers(guarded, threads_[i], result);
    const bool carry = writes_carry && guarded.executes(threads_[i]) ? result.carry : carry_before;
    if (agrees(observations[i].registers, expected, result.units) && carry == observations[i].carry) continue;
    std::string message = guarded.statement.text + " with";
    if (!guarded.spelled.empty()) message = guarded.spelled + " (" + guarded.statement.text + ") with";
    for (Raw source : sources)
      message += " " + hexadecimal(source);
    message += " gives";
    for (Raw value : observations[i].registers)
      message += " " + hexadecimal(value);
    message += observations[i].carry ? " carry, not" : ", not";
    for (Raw value : expected)
      message += " " + hexadecimal(value);
    return complain(message + (carry ? " carry" : ""));
  }
}

void FormTest::complain(const std::string& message) {
  if (++failures_ <= 20) std::printf("wrong: %s\n", message.c_str());
}

} // namespace ptxrewrite::test
