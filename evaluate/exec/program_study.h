// Results of studies and scores for the launches of one program, by kernel and in total; as text, JSON and HTML.
#pragma once

#include "evaluate/score/score.h"
#include "evaluate/study/study.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One version of a kernel, summed over all scored launches.
struct VersionSums {
  std::string version; // "baseline", or the passes
  uint64_t launches = 0, rewritten_launches = 0;
  double clocks = 0, seconds = 0, instructions = 0;
  void add(const ScoredKernel& kernel);
};

struct KernelStudy {
  std::string kernel;
  uint64_t launches = 0;                                   // in the program
  uint64_t studied = 0;                                    // number of them
  uint64_t warp_instructions = 0, thread_instructions = 0; // PTX instructions, in all launches
  std::optional<StudyResult> study;                        // in machine instructions
  std::vector<VersionSums> scores;                         // the first one is the baseline
  std::map<std::string, uint64_t> reasons;                 // why launches were left out
};

struct ProgramStudy {
  const ir::Machine* machine = nullptr;       // the machine whose instructions are counted
  const ir::Machine* score_machine = nullptr; // the machine that is timed; nullptr if none
  std::vector<KernelStudy> kernels;

  // The sum over all kernels.
  KernelStudy total() const;
  // The kernel's share of the program's time, by scored clocks, otherwise by instructions.
  double time_share(const KernelStudy& kernel, const KernelStudy& total) const;
};

// The fraction that remains of the instructions to which a technique applies; nothing if the technique was not studied.
std::optional<double> left_of(const StudyResult& result, Technique technique);

std::string program_study_text(const ProgramStudy& study);
nlohmann::ordered_json program_study_json(const ProgramStudy& study);
// A self-contained page.
std::string program_study_html(const ProgramStudy& study);

} // namespace ptxrewrite::evaluate
