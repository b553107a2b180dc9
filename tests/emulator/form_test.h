// Executes statements on the emulator in many threads, with and without a guard, and compares every result with a
// reference.
#pragma once

#include "tests/emulator/reference.h"
#include "tests/emulator/runner.h"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::test {

class FormTest {
public:
  // `reference_for` returns an empty function for statements that it does not cover.
  FormTest(std::vector<ThreadRegisters> threads, Reference (*reference_for)(const Statement&))
      : threads_(std::move(threads)), reference_for_(reference_for) {}

  // Changes a form's statements before they are tested: the plain ones (true), then those with variations.
  using Extend = std::function<void(std::vector<std::string>& statements, bool plain)>;

  // Tests all forms of the opcode. Returns false if the reference covers none.
  bool test_opcode(std::string_view opcode, const Extend& extend = {});
  // Adds one statement; `guarded` has its reading and its spelling. Returns false if the reference does not cover it.
  bool add(GuardedStatement guarded);
  // Runs the added statements and compares the results.
  void flush();
  void go(Way way) { way_ = way; }
  size_t failures() const { return failures_; }
  size_t statements() const { return statements_; }

private:
  void complain_singly();
  void compare(const GuardedStatement& guarded, const Reference& reference,
               const std::vector<Observation>& observations);
  void complain(const std::string& message);

  std::vector<ThreadRegisters> threads_;
  Reference (*reference_for_)(const Statement&);
  Way way_ = Way::as_written;
  std::vector<GuardedStatement> batch_;
  std::vector<Reference> references_;
  size_t statements_ = 0;
  size_t failures_ = 0;
};

} // namespace ptxrewrite::test
