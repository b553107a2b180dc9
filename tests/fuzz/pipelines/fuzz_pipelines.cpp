// Random warp-specialised pipelines: the emulator against what the description says, then rewritten by each pass in
// each form and by longer chains, in check mode, with copies that take place at once and late.
//
//   fuzz_pipelines [--count N] [--first SEED] [--only SEED [--show]] [--longer N] [--passes CHAIN] [--kind KIND]
//   [--fault NAME] [--keep FOLDER]
//
// KIND: plain (sums of words), matrix (products of tiles); without it every third pipeline is a plain one. NAME:
// of a fault to plant in matrix pipelines (matrix/matrix_pipeline.h), whose consequences are reported. --keep writes
// every pipeline to a folder as a launch file with its expected results, and runs none.
//
// A pass may leave such kernels alone. What the emulator refuses of a rewritten text (forms of the papers' hardware
// that their machines do not take) is counted by reason, and is no failure. Exit code 1 when something went wrong.
#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/pipelines/matrix/matrix_pipeline.h"
#include "tests/fuzz/pipelines/pipeline.h"
#include "tests/fuzz/pipelines/write_case.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>

namespace {

using namespace ptxrewrite::fuzz;
using namespace ptxrewrite::fuzz::pipelines;

struct Options {
  uint64_t first = 1, count = 100;
  size_t longer = 1;
  bool show = false;
  std::string kind, fault, folder;
  std::optional<std::string> passes;
};

class Driver {
public:
  explicit Driver(const Options& options) : options_(options) {}

  void run_seed(uint64_t seed) {
    const bool is_matrix = options_.kind.empty() ? seed % 3 != 0 : options_.kind == "matrix";
    const Case pipeline = is_matrix ? matrix_case(seed) : case_of(generate(seed));
    const std::string& text = pipeline.text;
    if (options_.show) std::fputs(text.c_str(), stdout);
    ++kernels_;
    if (!options_.folder.empty()) {
      const auto status = write_case(pipeline, "pipeline" + std::to_string(seed), options_.folder);
      if (!status) report(seed, "written", status.error().message);
      return;
    }
    for (const bool late : {false, true})
      if (std::string wrong = wrong_in(pipeline, run(pipeline, text, {late, true})); !wrong.empty())
        return report(seed, late ? "original, late copies" : "original", wrong);
    const std::vector<Chain> chains =
        options_.passes ? std::vector<Chain>{{*options_.passes, {}, {}}} : chains_for(seed, options_.longer);
    const std::string identity = rewrite(text, {}).text;
    for (const Chain& chain : chains) {
      const Rewriting rewriting = rewrite(text, chain);
      if (!rewriting.failed.empty()) {
        report(seed, chain.name(), rewriting.failed);
        continue;
      }
      ++rewritings_;
      if (rewriting.text == identity && !chain.passes.empty()) continue;
      ++changed_;
      const Run after = run(pipeline, rewriting.text, {seed % 2 == 0, true});
      if (!after.refused.empty())
        ++refused_[after.refused.substr(0, 70)];
      else if (std::string wrong = wrong_in(pipeline, after); !wrong.empty())
        report(seed, chain.name(), wrong);
    }
  }

  int finish() const {
    std::printf("%llu pipelines, %llu rewritings, of which %llu changed the text\n", number(kernels_),
                number(rewritings_), number(changed_));
    for (const auto& [reason, times] : refused_)
      std::printf("refused %llu times: %s\n", number(times), reason.c_str());
    std::printf("%llu failures\n", number(failures_));
    return failures_ == 0 ? 0 : 1;
  }

private:
  Case matrix_case(uint64_t seed) const {
    MatrixPipeline pipeline = generate_matrix(seed);
    for (auto fault = MatrixFault::none; name_of(fault) != "";
         fault = static_cast<MatrixFault>(static_cast<int>(fault) + 1))
      if (name_of(fault) == options_.fault) pipeline.fault = fault;
    return case_of(pipeline);
  }

  static unsigned long long number(uint64_t value) { return value; }

  void report(uint64_t seed, const std::string& chain, const std::string& what) {
    ++failures_;
    std::printf("seed %llu, %s: %s\n", number(seed), chain.c_str(), what.c_str());
  }

  const Options& options_;
  uint64_t kernels_ = 0, rewritings_ = 0, changed_ = 0, failures_ = 0;
  std::map<std::string, uint64_t> refused_;
};

bool parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--show") {
      options.show = true;
      continue;
    }
    if (++i == argc) return false;
    if (word == "--count") {
      options.count = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--first") {
      options.first = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--only") {
      options.first = std::strtoull(argv[i], nullptr, 10);
      options.count = 1;
    } else if (word == "--longer") {
      options.longer = std::strtoull(argv[i], nullptr, 10);
    } else if (word == "--kind") {
      options.kind = argv[i];
    } else if (word == "--keep") {
      options.folder = argv[i];
    } else if (word == "--fault") {
      options.fault = argv[i];
    } else if (word == "--passes") {
      options.passes = argv[i];
    } else {
      return false;
    }
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fprintf(stderr, "fuzz_pipelines: wrong option; the head of fuzz_pipelines.cpp lists them\n");
    return 2;
  }
  Driver driver(options);
  for (uint64_t i = 0; i < options.count; ++i)
    driver.run_seed(options.first + i);
  return driver.finish();
}
