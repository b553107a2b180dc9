// What ptxas makes of kernels in the making, in few runs of it.
//
// Passes choose one after the other, each by the answers that it got: asked one by one, a kernel would cost a run of
// ptxas for each candidate and architecture. Here a question that has no answer yet is kept, and the pass goes on by
// the machine model's guess. Behind the last pass all questions are answered together, by one text that holds all
// candidates, and the passes run again from the first guess on, now by what ptxas said. A guess that was right costs
// nothing more. When the runs are spent, a candidate that was not assembled counts as one that does not win.
#pragma once

#include "ir/core/module.h"
#include "ir/machine/figures/figures.h"
#include "support/result.h"

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::transforms {

// How much may be spent on each kernel.
struct Effort {
  uint32_t assemblies = 6; // runs of ptxas, over all architectures
  double seconds = 0;      // once ptxas has taken as long, no further run begins; 0: no limit
};

// By architecture, in the order in which they were asked for.
using FiguresByArchitecture = std::vector<std::pair<std::string, ir::MachineFigures>>;

// `kernel` in SSA form, alone in its module's text, assembled at once. Errors: ptxas refuses it for one of the
// architectures, crashes or does not end in time.
Result<FiguresByArchitecture> assemble_alone(const ir::Function& kernel, const std::vector<std::string>& architectures);

class Assemblies {
public:
  explicit Assemblies(Effort effort) : effort_(effort) {}

  // Questions are about versions of this function from now on; it is in its module.
  void begin(ir::Module& module, ir::FunctionId function);

  // What is known of a version of the function.
  struct Answer {
    enum class State : uint8_t {
      known,
      asked,   // not known before answer()
      refused, // ptxas does not take it, crashes on it or does not end in time
      left_out // no run was left for it
    } state = State::asked;
    FiguresByArchitecture figures; // known
    std::string why;               // refused, left_out
  };
  // `version` in SSA form, whatever its name is by now.
  Answer figures(const ir::Function& version, const std::vector<std::string>& architectures);

  // Are there questions without an answer?
  bool has_questions() const { return !questions_.empty(); }
  // Answers them as long as runs are left.
  void answer();

  // Was a version refused since begin()?
  bool has_refused() const;
  // Spent since begin(): runs, whether a store has kept their results or not; and kernels in them.
  uint32_t runs() const { return runs_; }
  uint32_t assembled_kernels() const { return assembled_kernels_; }

private:
  struct Question {
    std::string key;
    std::vector<std::string> architectures;
    std::unique_ptr<ir::Function> kernel; // out of SSA form
  };

  bool can_run(size_t times) const;
  Answer left_out() const;
  // One text with all of them, the first under the function's own name. They are for the same architectures.
  void answer_together(std::span<Question> group);
  // A text for each.
  void answer_alone(std::span<Question> group);
  // Counts as one run for each architecture.
  std::vector<Result<ir::FiguresByFunction>> run(const std::string& text, const std::vector<std::string>& architectures,
                                                 size_t kernels);

  Effort effort_;
  ir::Module* module_ = nullptr;
  ir::FunctionId function_;
  Symbol name_;
  std::map<std::string, Answer> answers_; // by Question::key
  std::vector<Question> questions_;
  uint32_t runs_ = 0;
  uint32_t assembled_kernels_ = 0;
  double seconds_ = 0;
};

} // namespace ptxrewrite::transforms
