// Limit studies and comparators of the papers over the launches of one file: `ptxrewrite study`. All observe the same
// run; all count machine instructions with the same table.
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
  uniform, // Fig. 2: kinds of redundancy in the block
  affine,
  unstructured,
  reuse, // UV
  dac_ideal,
  dac_ideal_3d,  // with tuples of several dimensions
  within_warps,  // WP: r2d2-isca23 §2.2
  within_blocks, // TB
  linear,        // LN
  scalar,        // composite-hpca13 §4
  sliced,        // §5, all partners found
  sliced_by_chance,
  composite,     // §3: only on machines of its generation
  darsie,        // on a machine of its own
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
// By name, whatever its case.
std::optional<Technique> find_technique(std::string_view name);

// Machine instructions.
struct StudyRow {
  emulator::WorkCount left;      // executed under the technique; scalar: on the SIMT pipeline; sliced: pairs are one
  emulator::WorkCount redundant; // of the baseline: what it finds, whether or not it has to be executed once
  bool present = true;           // false: not asked for, or not for this machine
  bool counts_warps = true;      // false: the technique is about thread instructions only
  StudyRow& operator+=(const StudyRow& other);
};

// DARSIE's marks, promoted for the launch, beside the redundancy in the block that values show. By kind: of the sources
// as measured; as marked. Executions by warps; machine instructions.
struct MarkAgreement {
  std::array<uint64_t, emulator::redundancy_kinds> measured{}, measured_marked{};
  std::array<uint64_t, emulator::redundancy_kinds> marked{}, marked_measured{};
  MarkAgreement& operator+=(const MarkAgreement& other);
};

// Of one static instruction, executions by warps.
struct InstructionRedundancy {
  uint64_t executions = 0;
  uint64_t in_block = 0; // of instances in which all warps of the block take the same vectors
  InstructionRedundancy& operator+=(const InstructionRedundancy& other) {
    executions += other.executions;
    in_block += other.in_block;
    return *this;
  }
};

struct StudyResult {
  emulator::WorkCount baseline;
  // By function and instruction, of launches that were observed.
  std::map<const ir::Function*, std::map<ir::InstructionId, InstructionRedundancy>> by_instruction;
  std::array<StudyRow, technique_count> rows;
  emulator::WorkCount multi_dimensional; // of the baseline: launches with blocks of more than one dimension
  emulator::DatapathCounts datapath;     // of the blocks that were looked at
  uint64_t blocks = 0, blocks_looked_at = 0;
  uint64_t executions = 0, looked_at = 0; // of PTX instructions by warps: all, and those whose values were looked at
  MarkAgreement marks;
  emulator::SkipCounters darsie;
  emulator::CompositeCounts composites;
  uint64_t forgotten_instances = 0;
  double seconds = 0;         // of the processor, in launches under the studies and in summing up
  double machine_seconds = 0; // in launches on machines of their own
  double plain_seconds = 0;   // in the same launches without; 0: not measured

  const StudyRow& row(Technique technique) const { return rows[static_cast<size_t>(technique)]; }
  bool is_multi_dimensional() const { return multi_dimensional.warps * 2 > baseline.warps; }
  StudyResult& operator+=(const StudyResult& other);
};

struct StudyRun {
  StudyResult result;
  std::optional<emulator::Failure> failure; // of the run under the studies: it is not over
};

struct StudySettings {
  const ir::Machine& machine;
  // Values of one block of so many are looked at, in launches that have enough blocks; what instructions all blocks
  // execute is counted. 1: all values. None: of as many blocks and trips of loops as emulator::adaptive_sample says.
  std::optional<uint64_t> sample = 1;
  bool measure_cost = false;   // run everything once more without studies
  std::vector<Technique> only; // those that run on machines of their own run only if among these; empty: all
  bool paper_marks = false;    // DARSIE's machine goes by the marks of the paper's own rules
  std::string kernel = {};     // only its launches are counted; empty: all
  bool wants(Technique technique) const;
};

// Errors: as run_plan; a fault of a kernel is none.
Result<StudyRun> study(const LaunchInput& input, const StudySettings& settings, cuda::ErrorPlace& place);

} // namespace ptxrewrite::evaluate
