// What studies and scores find out about the launches of one program, by kernel and together; as text, JSON and HTML.
#pragma once

#include "evaluate/score/score.h"
#include "evaluate/study/study.h"

#include <nlohmann/json_fwd.hpp>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::evaluate {

// One version of a kernel, over all launches that were scored.
struct VersionSums {
  std::string version; // "baseline", or its passes
  uint64_t launches = 0, rewritten_launches = 0;
  double clocks = 0, seconds = 0, instructions = 0;
  void add(const ScoredKernel& kernel);
};

struct KernelStudy {
  std::string kernel;
  uint64_t launches = 0;                                   // of the program
  uint64_t studied = 0;                                    // of them
  uint64_t warp_instructions = 0, thread_instructions = 0; // of PTX, in all launches
  std::optional<StudyResult> study;                        // of machine instructions
  std::vector<VersionSums> scores;                         // the first is the baseline
  std::map<std::string, uint64_t> reasons;                 // why launches were left out
};

struct ProgramStudy {
  const ir::Machine* machine = nullptr;       // whose machine instructions are counted
  const ir::Machine* score_machine = nullptr; // that is timed; nullptr: none
  std::vector<KernelStudy> kernels;

  // All of them together.
  KernelStudy total() const;
  // Of the program's time, by the scored clocks, or else by its instructions.
  double time_share(const KernelStudy& kernel, const KernelStudy& total) const;
};

// What a technique leaves of the instructions that it is about; nothing where it is not there.
std::optional<double> left_of(const StudyResult& result, Technique technique);

std::string program_study_text(const ProgramStudy& study);
nlohmann::ordered_json program_study_json(const ProgramStudy& study);
// A page that needs nothing else.
std::string program_study_html(const ProgramStudy& study);

} // namespace ptxrewrite::evaluate
