// What a kernel would still execute if linear values cost only their parts: the limit study LN of r2d2 §2.2.
//
//   LinearityStudy study(entry, request);
//   request.observer = &study;
//   program->launch(request);
//   study.rows(): by static instruction, the threads that executed it, and the thread instructions that LN needs
//
// Which values are linear is decided before the launch, by the analysis that R2D2 itself uses (the paper finds them by
// coefficient vectors, too): values that look linear by chance are not. In this launch, because forms whose obligations
// it does not fulfil are not linear in it.
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

// Thread instructions, but for `executions`.
struct LinearityRow {
  const ir::Function* function = nullptr; // null: never executed
  ir::InstructionId instruction;
  uint64_t executions = 0; // by warps with at least one lane whose guard was true
  uint64_t lanes = 0;
  // Results are the same for all threads of the launch or the block: work for a scalar pipeline.
  bool uniform = false;
  // LN executes it in parts where that is less; else as it is.
  bool linear = false;
  uint64_t coefficient = 0; // once per launch, and once per trip for what changes from trip to trip
  uint64_t thread = 0;      // once by each thread of one block
  uint64_t block = 0;       // once per block
  uint64_t needed = 0;      // of LN in all: the parts' sum, but no more than `lanes`
};

// What there is to know of a kernel before its launches: its linear forms. Dear, so have one for all of them.
class LinearAnalysis {
public:
  explicit LinearAnalysis(const ir::Function& entry); // copies it
  LinearAnalysis(LinearAnalysis&&) noexcept;
  ~LinearAnalysis();
  const ir::LinearForms* forms() const { return forms_.get(); } // null: it has no SSA form
  const ir::Function& function() const { return *function_; }   // keeps the numbers of its instructions

private:
  std::unique_ptr<ir::Function> function_;
  std::unique_ptr<ir::LinearForms> forms_;
};

// What LN executes of each instruction of a kernel, without a look at the launch but its shape and its parameters.
//
// An instruction is linear when it has results and the class of each is constant, launch-uniform, block-uniform or
// linear, loop offsets included. An instruction without results (stores, branches, barriers) never is. Instructions of
// device functions are not.
class LinearParts {
public:
  // A function that has no SSA form has no linear values.
  LinearParts(const LinearAnalysis& analysis, const LaunchRequest& request);

  size_t size() const { return parts_.size(); }
  // Does it matter how often one warp executes instruction `number`?
  bool changes_per_trip(uint32_t number) const { return number < parts_.size() && parts_[number].per_trip; }
  // Fills in what LN makes of `row.executions` and `row.lanes`; `trips`: the most executions by one warp.
  void finish(LinearityRow& row, uint32_t number, uint64_t trips) const;

private:
  // What LN executes of an instruction whose value does not change from trip to trip, and whether it does.
  struct Parts {
    bool linear = false, uniform = false;
    bool per_trip = false; // the coefficient part comes in every trip
    bool block_per_trip = false;
    uint64_t coefficient = 0, thread = 0, block = 0;
  };
  void find_parts(const LinearAnalysis& analysis, const LaunchRequest& request);

  std::vector<Parts> parts_; // by the instruction's number: the entry's come first
};

// The same with the executions of a launch that it looks on at.
class LinearityStudy final : public Observer {
public:
  LinearityStudy(const ir::Function& entry, const LaunchRequest& request);

  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void block_ended(Block& block) override;

  // By the instruction's number in the kernel. When the launch is over.
  std::vector<LinearityRow> rows() const;
  LinearityRow total() const; // sums; `linear` and `uniform` mean nothing in it

private:
  LinearParts parts_;
  uint32_t warps_ = 0;                                 // of a block
  std::vector<LinearityRow> rows_;                     // by the instruction's number, parts not yet filled in
  std::vector<uint32_t> trips_;                        // likewise: the most executions by one warp
  std::map<uint64_t, std::vector<uint32_t>> executed_; // of blocks that run: by warp and number
};

} // namespace ptxrewrite::emulator
