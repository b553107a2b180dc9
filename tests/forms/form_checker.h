// Observes a kernel on the emulator and compares every value that the linear-form analysis describes with
// its form: forms are evaluated for the thread, the launch and the iterations of the thread's loops; values that
// are uniform in a launch or block without having a form are compared between its threads.
//
//   FormChecker checker(*module);
//   checker.new_launch();                        // before each launch
//   ... launch with .observer = &checker ...
//   checker.mismatches(), checker.counts()
//
// A value whose obligations do not hold in this launch is not compared. In launches with many blocks only some are
// observed. Divergent-linear values are left to tests/unit/ir/linear_random_test.cpp.
#pragma once

#include "emulator/core/observer.h"
#include "ir/analysis/linear/linear.h"
#include "ir/core/module.h"

#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::tests {

struct FormCounts {
  uint64_t values = 0;       // compared with a form, thread by thread
  uint64_t with_threads = 0; // of them, forms with thread or block indices
  uint64_t with_loops = 0;   // of them, forms with loop offsets
  uint64_t obliged = 0;      // of them, under obligations that hold in this launch
  uint64_t unfulfilled = 0;  // not compared: an obligation does not hold in this launch
  uint64_t uniform = 0;      // compared between threads
  uint64_t lost = 0;         // transitions between blocks that could not be followed
  void add(const FormCounts& other);
};

class FormChecker final : public emulator::ValueObserver {
public:
  explicit FormChecker(const ir::Module& module);
  ~FormChecker() override;

  void new_launch();
  // From the next launch on, compares with coefficients of %tid.x that are off by one, which must be detected.
  void spoil() { is_spoilt_ = true; }
  const std::vector<std::string>& mismatches() const { return mismatches_; }
  const FormCounts& counts() const { return counts_; }

  void executing(const emulator::ObservedInstruction& at) override;
  void executed(const emulator::ObservedInstruction& at) override;
  void passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override;
  void block_ended(emulator::Block& block) override;

private:
  struct Analysis; // of a kernel
  struct LaunchForms;
  struct Thread;

  LaunchForms* forms_of(const emulator::Block& block);
  void visit(LaunchForms& launch, const emulator::Block& block, const emulator::Warp& warp, ir::InstructionId id,
             uint32_t lanes);
  void compare(LaunchForms& launch, const emulator::ObservedInstruction& at, const emulator::ObservedValue& value,
               ir::ValueId id, ir::BlockId block);
  void report(LaunchForms& launch, const emulator::ObservedInstruction& at, unsigned lane, ir::ValueId id,
              const ir::LinearForm& form, uint64_t is, uint64_t expected, const char* where);

  const ir::Module& module_;
  bool is_spoilt_ = false;
  std::map<std::string, std::unique_ptr<Analysis>> analyses_; // by kernel; nullptr: no SSA form
  std::unique_ptr<LaunchForms> launch_;
  std::vector<std::string> mismatches_;
  FormCounts counts_;
};

} // namespace ptxrewrite::tests
