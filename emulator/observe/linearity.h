// The work that remains in a kernel if linear values cost only their parts: the limit study LN of r2d2 §2.2.
//
//   LinearityStudy study(entry, request);
//   request.observer = &study;
//   program->launch(request);
//   study.rows(): by static instruction, the threads that executed it, and the thread instructions that LN needs
//
// Linear values are determined before the launch, by R2D2's own analysis (the paper uses coefficient vectors, too):
// values that are linear by chance do not count. The result holds for one launch, because forms whose obligations the
// launch does not fulfil are not linear in it.
#pragma once

#include "emulator/core/observer.h"

#include <array>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace ptxrewrite::ir {
class LinearForms;
}

namespace ptxrewrite::emulator {

// Numbers of thread instructions, except `executions`.
struct LinearityRow {
  const ir::Function* function = nullptr; // null: never executed
  ir::InstructionId instruction;
  uint64_t executions = 0; // by warps with at least one lane whose guard was true
  uint64_t lanes = 0;
  // Results are the same for all threads of the launch or the block: work for a scalar pipeline.
  bool uniform = false;
  // LN executes the parts if they are fewer than `lanes`; otherwise the instruction runs unchanged.
  bool linear = false;
  uint64_t coefficient = 0; // once per launch; once per trip if the value changes from trip to trip
  uint64_t thread = 0;      // once by each thread of one block
  uint64_t block = 0;       // once per block
  uint64_t needed = 0;      // all that LN executes: the sum of the parts, at most `lanes`
};

// The linear forms of a kernel, computed before its launches. Expensive: share one between all launches.
class LinearAnalysis {
public:
  explicit LinearAnalysis(const ir::Function& entry); // copies the function
  LinearAnalysis(LinearAnalysis&&) noexcept;
  ~LinearAnalysis();
  const ir::LinearForms* forms() const { return forms_.get(); } // nullptr if the function has no SSA form
  const ir::Function& function() const { return *function_; }   // keeps the instruction numbers of the entry

private:
  std::unique_ptr<ir::Function> function_;
  std::unique_ptr<ir::LinearForms> forms_;
};

// Thread instructions that LN executes of each instruction, from the shape and the parameters of a launch.
//
// An instruction is linear if it has results and the class of each result is constant, launch-uniform, block-uniform or
// linear, including loop offsets. Instructions without results (stores, branches, barriers) and those of device
// functions are never linear.
class LinearParts {
public:
  // A function without an SSA form has no linear values.
  LinearParts(const LinearAnalysis& analysis, const LaunchRequest& request);

  size_t size() const { return parts_.size(); }
  // Whether the parts of instruction `number` depend on the number of executions by one warp.
  bool changes_per_trip(uint32_t number) const { return number < parts_.size() && parts_[number].per_trip; }
  // Completes a row from its `executions` and `lanes`; `trips`: the largest number of executions by one warp.
  void finish(LinearityRow& row, uint32_t number, uint64_t trips) const;

private:
  // The parts of an instruction for a single trip, and whether they are repeated in every trip.
  struct Parts {
    bool linear = false, uniform = false;
    bool per_trip = false; // the coefficient part is needed in every trip
    bool block_per_trip = false;
    uint64_t coefficient = 0, thread = 0, block = 0;
  };
  void find_parts(const LinearAnalysis& analysis, const LaunchRequest& request);

  std::vector<Parts> parts_; // by the instruction's number: those of the entry come first
};

// LinearParts combined with the observed executions of a launch.
class LinearityStudy final : public Observer {
public:
  LinearityStudy(const ir::Function& entry, const LaunchRequest& request);

  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel. Call it after the launch.
  std::vector<LinearityRow> rows() const;
  LinearityRow total() const; // sums; `linear` and `uniform` are meaningless

private:
  LinearParts parts_;
  uint32_t warps_ = 0;                                 // of a block
  std::vector<LinearityRow> rows_;                     // by the instruction's number, parts not yet filled in
  std::vector<uint32_t> trips_;                        // by number: the largest number of executions by one warp
  std::map<uint64_t, std::vector<uint32_t>> executed_; // of running blocks: by warp and number
};

} // namespace ptxrewrite::emulator
