// The data of a kernel report: all counts and estimates that the individual commands show, for one launch file on one
// machine, by kernel and by line of PTX.
#pragma once

#include "emulator/core/counters.h"
#include "evaluate/diff/diff_render.h"
#include "evaluate/report/cuda_source.h"
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
  uint32_t line = 0; // of the PTX, 1-based; 0 if the machine's assembler adds it
  CudaPosition cuda;
  std::string text;
  emulator::InstructionCounters counters; // summed over all launches
  std::optional<double> redundant;        // share of the executions; empty if its values were not examined
  uint32_t machine_instructions = 0;      // per warp and execution
  std::string machine;                    // their mnemonics
  uint32_t live = 0;                      // live 32-bit registers at this line
  std::vector<std::string> remarks;
};

// The number of threads on an edge is known if the branch's own counters determine it.
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
  uint64_t issued = 0; // machine instructions, summed over all executions
  std::vector<FlowEdge> edges;
};

// A technique of the papers, from the values of the run (`study`).
struct TechniqueLeft {
  std::string_view name, what, source;
  double left = 1; // fraction of the machine instructions that remain: by warps, or by threads if the technique applies
                   // to those
  bool by_threads = false;
};

struct KernelFacts {
  std::string kernel;
  std::vector<SourceRow> rows;
  std::vector<CudaFileLines> cuda; // empty without line information
  std::vector<FlowBlock> blocks;
  std::vector<TechniqueLeft> techniques;
  uint32_t most_live = 0;           // registers at the point of highest pressure
  std::vector<std::string> remarks; // of passes, without a source line
  Difference difference;            // before and after the passes
  bool has_difference = false;
};

struct ReportSettings {
  const ir::Machine& machine;
  std::vector<std::string> passes; // one version for each; remarks and the difference belong to the first
  bool run_ptxas = true;
  std::vector<std::string> source_folders = {}; // where CUDA files are looked for, too
};

struct FileFacts {
  ScoredFile scored;
  std::vector<KernelFacts> kernels; // of the plan, in the order of their first launches
};

struct ReportRun {
  FileFacts facts;
  std::optional<emulator::Failure> failure; // of a kernel: there is no report then
};

// Runs the plan on the emulator several times. Fails like run_plan, or if a pass fails.
Result<ReportRun> collect_facts(const LaunchInput& input, const ReportSettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
