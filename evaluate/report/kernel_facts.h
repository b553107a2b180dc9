// What a report of a kernel is made of: every count and estimate that the commands show one by one, of one launch file
// on one machine, by kernel and by line of PTX.
#pragma once

#include "emulator/core/counters.h"
#include "evaluate/diff/diff_render.h"
#include "evaluate/score/score.h"
#include "evaluate/study/study.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

// A line of a kernel's text: an instruction, or a label.
struct SourceRow {
  bool is_label = false;
  uint32_t line = 0;      // of the PTX, 1-based; 0: made by the machine's assembler
  uint32_t cuda_line = 0; // of what .loc names last; 0: it names nothing
  std::string text;
  emulator::InstructionCounters counters; // of all launches
  std::optional<double> redundant;        // share of the executions; none: its values were not looked at
  uint32_t machine_instructions = 0;      // by warp and execution
  std::string machine;                    // their names
  uint32_t live = 0;                      // registers of 32 bits that are live at it
  std::vector<std::string> remarks;
};

// An edge's threads are known where the branch's own counters tell them.
struct FlowEdge {
  size_t to = 0; // index of the block
  bool falls_through = false;
  std::optional<uint64_t> threads;
};

struct FlowBlock {
  std::string name;
  uint32_t first_line = 0, last_line = 0;
  uint32_t instructions = 0;
  uint64_t warps = 0;  // executions by warps
  uint64_t issued = 0; // machine instructions of all executions
  std::vector<FlowEdge> edges;
};

// A technique of the papers, by the values of the run (`study`).
struct TechniqueLeft {
  std::string_view name, what, source;
  double left = 1; // of the machine instructions: by warps, or by threads where it is about those
  bool by_threads = false;
};

struct KernelFacts {
  std::string kernel;
  std::vector<SourceRow> rows;
  std::vector<FlowBlock> blocks;
  std::vector<TechniqueLeft> techniques;
  uint32_t most_live = 0;           // registers at the worst place
  std::vector<std::string> remarks; // of passes, about no line
  Difference difference;            // before and after the passes
  bool has_difference = false;
};

struct ReportSettings {
  const ir::Machine& machine;
  std::vector<std::string> passes; // a version each; remarks and the difference are of the first
  bool run_ptxas = true;
};

struct FileFacts {
  ScoredFile scored;
  std::vector<KernelFacts> kernels; // of the plan, in the order of their first launches
};

struct ReportRun {
  FileFacts facts;
  std::optional<emulator::Failure> failure; // of a kernel: there is nothing to report
};

// Runs the plan on the emulator some times over. Errors: as run_plan; passes that fail.
Result<ReportRun> collect_facts(const LaunchInput& input, const ReportSettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
