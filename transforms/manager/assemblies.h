// Machine figures of kernels that passes are still rewriting, from as few runs of ptxas as possible.
//
// A pass makes a sequence of choices, each one based on the answers so far. If each candidate were assembled when the
// pass asks for it, a kernel would cost one run of ptxas for each candidate and architecture. Instead, a question
// without an answer is recorded, and the pass continues with the estimate of the machine model. After the last pass,
// one text with all candidates answers all questions, and the passes run again from the first estimate on, this time
// with the results of ptxas. An estimate that was right costs no further run. When the runs are used up, a candidate
// that was not assembled counts as rejected.
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

// The budget for each kernel.
struct Effort {
  uint32_t assemblies = 6; // runs of ptxas, over all architectures
  double seconds = 0;      // no further run is started after ptxas has taken this long; 0: no limit
};

// By architecture, in the order of the request.
using FiguresByArchitecture = std::vector<std::pair<std::string, ir::MachineFigures>>;

// The text of the kernel's module without the other kernels. The kernel may be in SSA form.
std::string text_of_kernel_alone(const ir::Function& kernel);

// Assembles `kernel`, which is in SSA form, at once, as the only kernel in the text of its module. Fails if ptxas
// rejects it for one of the architectures, crashes or does not terminate in time.
Result<FiguresByArchitecture> assemble_alone(const ir::Function& kernel, const std::vector<std::string>& architectures);

class Assemblies {
public:
  explicit Assemblies(Effort effort) : effort_(effort) {}

  // From now on, questions are about versions of this function of `module`.
  void begin(ir::Module& module, ir::FunctionId function);

  // The figures of a version of the function, or why there are none.
  struct Answer {
    enum class State : uint8_t {
      known,
      asked,   // not known before answer()
      refused, // ptxas rejects it, crashes on it or does not terminate in time
      left_out // the budget did not allow a run for it
    } state = State::asked;
    FiguresByArchitecture figures; // known
    std::string why;               // refused, left_out
  };
  // `version` is in SSA form; its name does not matter.
  Answer figures(const ir::Function& version, const std::vector<std::string>& architectures);

  // Are there questions without an answer?
  bool has_questions() const { return !questions_.empty(); }
  // Answers them as far as the budget allows.
  void answer();

  // Has ptxas refused a version since begin()?
  bool has_refused() const;
  // Spent since begin(): the number of runs, including those whose results came from a store, and the number of kernels
  // in these runs.
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
  // Assembles all of them in one text, the first one under the function's own name. All are for the same architectures.
  void answer_together(std::span<Question> group);
  // Assembles each of them in a text of its own.
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
