// Limit studies and comparators of the papers over the launches of one file: `ptxrewrite study`. All observe the same
// run, and count machine instructions with the same table.
#pragma once

#include "emulator/machines/composite/composite_registers.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/observe/datapath_study.h"
#include "emulator/observe/value_study.h"
#include "evaluate/launches/launch_input.h"
#include "ir/machine/figures/machine.h"

#include <array>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

enum class Technique : uint8_t {
  warp, // darsie-asplos20 Fig. 1
  block,
  grid,
  uniform, // Fig. 2: kinds of redundancy within a block
  affine,
  unstructured,
  reuse, // UV
  dac_ideal,
  dac_ideal_3d,  // with tuples of several dimensions
  within_warps,  // WP: r2d2-isca23 §2.2
  within_blocks, // TB
  linear,        // LN
  scalar,        // composite-hpca13 §4
  sliced,        // §5, with every possible partner
  sliced_by_chance,
  composite,     // §3: only on machines of its generation
  darsie,        // on a separate machine
  darsie_scalar, // DARSIE+Scalar
  count
};
inline constexpr size_t technique_count = static_cast<size_t>(Technique::count);

struct TechniqueInfo {
  std::string_view name; // "DAC-IDEAL"
  std::string_view what;
  std::string_view source;
};
const TechniqueInfo& info_of(Technique technique);
// Finds a technique by name, ignoring case.
std::optional<Technique> find_technique(std::string_view name);

// Counts of machine instructions.
struct StudyRow {
  emulator::WorkCount left;      // executed under the technique; scalar: on the SIMT pipeline; sliced: a pair counts as
                                 // one
  emulator::WorkCount redundant; // of the baseline: all that the technique finds, including instructions that must be
                                 // executed once
  bool present = true;           // false if it was not requested, or does not apply to this machine
  bool counts_warps = true;      // false: the technique applies to thread instructions only
  StudyRow& operator+=(const StudyRow& other);
};

// DARSIE's marks, promoted for the launch, compared with the block-level redundancy of actual values. By kind: of the
// sources as measured; as marked. Warp executions in machine instructions.
struct MarkAgreement {
  std::array<uint64_t, emulator::redundancy_kinds> measured{}, measured_marked{};
  std::array<uint64_t, emulator::redundancy_kinds> marked{}, marked_measured{};
  MarkAgreement& operator+=(const MarkAgreement& other);
};

// For one static instruction, warp executions.
struct InstructionRedundancy {
  uint64_t executions = 0;
  uint64_t in_block = 0; // in instances for which all warps of the block have the same vectors
  InstructionRedundancy& operator+=(const InstructionRedundancy& other) {
    executions += other.executions;
    in_block += other.in_block;
    return *this;
  }
};

struct StudyResult {
  emulator::WorkCount baseline;
  // By function and instruction, for observed launches.
  std::map<const ir::Function*, std::map<ir::InstructionId, InstructionRedundancy>> by_instruction;
  std::array<StudyRow, technique_count> rows;
  emulator::WorkCount multi_dimensional; // part of the baseline: launches with multi-dimensional blocks
  emulator::DatapathCounts datapath;     // of the sampled blocks
  uint64_t blocks = 0, blocks_looked_at = 0;
  uint64_t executions = 0, looked_at = 0; // warp executions of PTX instructions: all, and those whose values were
                                          // examined
  uint64_t thread_executions = 0;         // of PTX instructions
  MarkAgreement marks;
  emulator::SkipCounters darsie;
  emulator::CompositeCounts composites;
  uint64_t forgotten_instances = 0;
  double seconds = 0;         // processor time, in launches under the studies and in evaluation
  double machine_seconds = 0; // in launches on separate machines
  double plain_seconds = 0;   // in the same launches without studies; 0 if not measured

  const StudyRow& row(Technique technique) const { return rows[static_cast<size_t>(technique)]; }
  bool is_multi_dimensional() const { return multi_dimensional.warps * 2 > baseline.warps; }
  StudyResult& operator+=(const StudyResult& other);
};

struct StudyRun {
  StudyResult result;
  std::optional<emulator::Failure> failure; // of the run under the studies, which did not finish
};

struct StudySettings {
  const ir::Machine& machine;
  // In launches with enough blocks, the values of one block in `sample` are examined; instruction counts include all
  // blocks. 1: all values. Empty: the number of blocks and loop trips is chosen by emulator::adaptive_sample.
  std::optional<uint64_t> sample = 1;
  bool measure_cost = false;   // run everything a second time without studies
  std::vector<Technique> only; // techniques on separate machines run only if listed here; empty: all
  bool paper_marks = false;    // DARSIE's machine uses marks by the paper's own rules
  std::string kernel = {};     // count only launches of this kernel; empty: all
  bool wants(Technique technique) const;
};

// Fails like run_plan; a fault of a kernel is not an error.
Result<StudyRun> study(const LaunchInput& input, const StudySettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
