#include "tests/fuzz/hostile/hostile_steps.h"

#include "cli/command.h"
#include "grammar/reader.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "tests/fuzz/random.h"

#include <algorithm>
#include <fstream>
#include <sstream>

namespace ptxrewrite::fuzz {

namespace {

// Warp instructions of a block: terminating hostile kernels need some hundreds.
#define FUEL " --fuel 20000"

constexpr std::array steps = {
    HostileStep{"opt KERNEL --no-ptxas --verify-each -o OUT"},
    HostileStep{"analyze KERNEL", 2},
    HostileStep{"analyze KERNEL --json", 3},
    HostileStep{"analyze KERNEL --cfg", 4},
    HostileStep{"lower KERNEL --no-ptxas", 4},
    HostileStep{"lower KERNEL --no-ptxas --gpu gtx480 --json", 6},
    HostileStep{"mark KERNEL --block 32", 3},
    HostileStep{"mark KERNEL --json", 4},
    HostileStep{"mark KERNEL --carrier pragma -o OUT", 4},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -O --explain --stats -o OUT", 4},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p r2d2(force,candidates=1+2+3+5) -o OUT", 4},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p r2d2(force) --persistent -o OUT", 8},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p r2d2 --form hardware -o OUT", 3},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p r2d2 --form annotated -o OUT", 16},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p composite(force) -o OUT", 6},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p composite --form hardware -o OUT", 4},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p dac(force,form=ring,distance=2) -o OUT", 6},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p dac(force,form=prefetch) -o OUT", 8},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p dac --form hardware -o OUT", 3},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p darsie(force) --specialise block=32,grid=2 -o OUT", 5},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p darsie --form annotated -o OUT", 6},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p regless --form annotated -o OUT", 5},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p spill(limit=14,predicates=2) -o OUT", 5},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p schedule(force) -o OUT", 5},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p dce -o OUT", 6},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p "
                "r2d2(force),composite(force),dac(force),schedule(force),spill(limit=16) -o OUT",
                6},
    HostileStep{"opt KERNEL --no-ptxas --verify-each -p dce,r2d2,dac --form hardware -o OUT", 8},
    HostileStep{"diff KERNEL --no-ptxas -p r2d2 --form hardware --html OUT", 12},
    HostileStep{"diff KERNEL --no-ptxas -p composite(force) --json", 16},
    HostileStep{"run LAUNCH" FUEL, 1, false, true},
    HostileStep{"run LAUNCH --check --json --counters --host-threads 1" FUEL, 2},
    HostileStep{"run LAUNCH --late-copies --all" FUEL, 8},
    HostileStep{"run LAUNCH --matrix-sums hopper --all" FUEL, 4},
    HostileStep{"run LAUNCH --darsie --check" FUEL, 6},
    HostileStep{"run LAUNCH --regless" FUEL, 6},
    HostileStep{"study LAUNCH", 6, true},
    HostileStep{"study LAUNCH --sample 1 --paper darsie --json", 12, true},
    HostileStep{"score LAUNCH -p r2d2(force) --gpu titanv", 8, true},
    HostileStep{"score LAUNCH --form hardware -p dac --gpu fx5800 --darsie --regless --json --exact", 16, true},
    HostileStep{"score LAUNCH --terms --estimators --sensitivity --gpu h200 --html OUT", 32, true},
    HostileStep{"verify LAUNCH --no-ptxas -p all --given-shapes", 8, true},
    HostileStep{"verify LAUNCH --no-ptxas -p r2d2(force),composite(force),dac(force),schedule(force) --explain --json",
                12, true},
    HostileStep{"verify LAUNCH --no-ptxas -p dac --form hardware", 16, true},
};

bool has_word(const HostileStep& step, std::string_view word) {
  return std::string_view(step.words).find(word) != std::string_view::npos;
}

// The first line, without numbers and paths.
std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// The output of `verify` about the passes that failed.
std::string verdict_lines(const CommandOutcome& outcome) {
  std::string found = first_line(outcome.errors);
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line) && found.size() < 400;)
    if (line.find("DIFFERS") != line.npos || line.find("FAILS") != line.npos) found += "; " + line;
  return found;
}

std::string shell_word(const std::string& word) {
  return word.find_first_of(" ()+") == word.npos ? word : "'" + word + "'";
}

} // namespace

std::span<const HostileStep> hostile_steps() {
  return steps;
}

bool takes_step(const StepChoice& choice, uint64_t seed, size_t step) {
  if (choice.all) return true;
  if (choice.few == 0) {
    Random random(seed * 0x9fb21c651e98df25ull + step);
    return random.one_in(steps[step].one_in);
  }
  if (steps[step].decides) return true;
  // The others in a cycle: each seed takes the next few of them.
  const auto decides = [](const HostileStep& one) { return one.decides; };
  const uint64_t before = static_cast<uint64_t>(std::count_if(steps.begin(), steps.begin() + step, decides));
  const uint64_t others = steps.size() - static_cast<uint64_t>(std::ranges::count_if(steps, decides));
  return (step - before + others - seed % others * choice.few % others) % others < choice.few;
}

std::vector<std::string> HostileKernelTest::words_of(const HostileStep& step, const HostileKernel& kernel) const {
  std::vector<std::string> words;
  std::istringstream all{std::string(step.words)};
  for (std::string word; all >> word;) {
    if (word == "KERNEL") word = folder_ + "/k.ptx";
    if (word == "OUT") word = folder_ + "/out.ptx";
    if (word == "LAUNCH") {
      words.push_back(folder_ + (kernel.launch.empty() ? "/k.toml" : "/k.ptx"));
      words.insert(words.end(), kernel.launch.begin(), kernel.launch.end());
      continue;
    }
    words.push_back(std::move(word));
  }
  return words;
}

CommandOutcome HostileKernelTest::command(const std::vector<std::string>& words) {
  std::string line = "ptxrewrite";
  for (const std::string& word : words)
    line += ' ' + shell_word(word);
  announce(line);
  CommandOutcome outcome = runner_.run(words);
  if (!outcome.exception.empty())
    fail(line, "exception: " + outcome.exception);
  else if (outcome.errors.find("internal error") != outcome.errors.npos)
    fail(line, outcome.errors.substr(outcome.errors.find("internal error"), 300));
  return outcome;
}

// Estimates the machine code for all generations, as read and in SSA form.
void HostileKernelTest::weigh(const HostileKernel& kernel) {
  announce("lowering");
  constexpr std::array capabilities = {13u, 20u, 35u, 52u, 70u, 75u, 80u, 90u, 100u, 120u};
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("k.ptx", kernel.text), diagnostics);
  if (!module) return;
  Random random(kernel.seed);
  for (const auto& function : module->functions) {
    if (!function->has_body) continue;
    ir::lower(*function, random.pick(capabilities));
    ir::lower_as_written(*function, random.pick(capabilities));
    if (!ir::construct_ssa(*function).ok()) continue;
    ir::lower(*function, random.pick(capabilities));
    ir::register_need(*function, random.pick(capabilities));
  }
}

bool HostileKernelTest::make_launch(const HostileKernel& kernel) {
  if (!kernel.launch.empty()) return true;
  return command({"launch-template", folder_ + "/k.ptx", "-o", folder_ + "/k.toml"}).code == cli::exit_ok;
}

void HostileKernelTest::take(size_t index, const HostileKernel& kernel) {
  const HostileStep& step = steps[index];
  const std::vector<std::string> words = words_of(step, kernel);
  const CommandOutcome outcome = command(words);
  count(index, outcome.code);
  // Impossible launch shapes are reported as wrong usage.
  const bool may_misuse = has_word(step, "LAUNCH") && !kernel.launch.empty();
  if (outcome.code > cli::exit_differs || (outcome.code == cli::exit_usage && !may_misuse))
    fail(step.words, "exit code " + std::to_string(outcome.code) + ": " + first_line(outcome.errors));
  std::string line = "ptxrewrite";
  for (const std::string& word : words)
    line += ' ' + shell_word(word);
  const bool is_rewriting = words.front() == "opt";
  // A text that was read can be rewritten, possibly without a change.
  if ((is_rewriting || words.front() == "analyze" || words.front() == "mark" || words.front() == "diff") &&
      outcome.code != cli::exit_ok)
    fail(line, "exit code " + std::to_string(outcome.code) + ": " + first_line(outcome.errors));
  if ((is_rewriting || has_word(step, "--carrier")) && outcome.code == cli::exit_ok) {
    const CommandOutcome again = command({"opt", folder_ + "/out.ptx", "--no-ssa", "-o", folder_ + "/again.ptx"});
    if (again.code != cli::exit_ok) fail(line, "what it printed does not read back: " + first_line(again.errors));
  }
  if (step.decides) {
    // Only terminating kernels continue: steps without their own limit must not run forever.
    ends_ = outcome.code == cli::exit_ok ||
            (outcome.code == cli::exit_fault && outcome.errors.find("fuel") == outcome.errors.npos);
    launches_ = outcome.code == cli::exit_ok || outcome.code == cli::exit_fault;
  }
  if (!kernel.is_defined) return;
  // RegLess refuses kernels with vector registers or calls through pointers.
  const bool is_refused =
      has_word(step, "--regless") && outcome.errors.find("cannot run with --regless") != outcome.errors.npos;
  if (words.front() == "run" && outcome.code != cli::exit_ok && !is_refused)
    fail(line, "a defined kernel does not run: " + first_line(outcome.errors));
  if (words.front() == "verify" && outcome.code != cli::exit_ok)
    fail(line, "exit code " + std::to_string(outcome.code) + " of a defined kernel: " + verdict_lines(outcome));
}

void HostileKernelTest::test(const HostileKernel& kernel, const StepChoice& choice) {
  announce("reading");
  const uint64_t modules_before = text.modules;
  if (const std::string wrong = check_text(kernel.text, text); !wrong.empty()) fail("reading", wrong);
  if (text.modules == modules_before) {
    if (kernel.is_defined) fail("reading", "a defined kernel is refused");
    return;
  }
  std::ofstream(folder_ + "/k.ptx", std::ios::binary) << kernel.text;
  weigh(kernel);
  launches_ = make_launch(kernel);
  ends_ = false;
  for (size_t i = 0; i < steps.size(); ++i) {
    if (!takes_step(choice, kernel.seed, i)) continue;
    if (has_word(steps[i], "LAUNCH") && !launches_) continue;
    if (steps[i].runs && !ends_) continue;
    take(i, kernel);
  }
}

} // namespace ptxrewrite::fuzz
