// Random kernels whose buffers overlap, whose bases are misaligned and whose numbers are large in some launches, with
// the families of launch-time rewrites: each alone and forced, all together, and -O.
//
//   fuzz_launchtime [--count N] [--first SEED] [--only SEED] [--idiom NAME] [--families A,B] [--jobs N]
//                   [--write FOLDER] [--show]
//
// For every kernel and pipeline: memory is equal in every launch; no byte is accessed that the original does not
// access; bytes read as constant are not stored; no predicate holds if brute force finds a necessary fact violated.
// Counted: how often a predicate holds if all sufficient facts hold, without launches that execute nothing of the site.
//
// Tables: kernels by idiom and pipeline; exit code 1 on errors. --write keeps the kernel, the rewritten kernel, and a
// reduced text with the same error.
#include "cli/pipeline_options.h"
#include "evaluate/reduce/reducer.h"
#include "support/file_io.h"
#include "tests/fuzz/kernels/differential.h"
#include "tests/fuzz/launchtime/check.h"
#include "tests/fuzz/launchtime/generator.h"
#include "tests/fuzz/launchtime/print.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <thread>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::fuzz::launchtime;

// All possible families; those that are not registered are left out.
constexpr const char* all_families[] = {"memory", "narrow", "divisor", "warp", "packed", "small", "composite", "r2d2"};
constexpr uint64_t reduction_limit = 300;

struct Options {
  uint64_t first = 1, count = 100;
  unsigned jobs = 1;
  std::string idiom, folder;
  std::vector<std::string> families;
  bool show = false;
};

struct Pipeline {
  std::string name, passes;
  std::vector<std::string> families;
};

std::string forced(const transforms::PassDescription& pass) {
  std::string options;
  for (const transforms::PassOptionDescription& option : pass.options) {
    if (option.name == "force") options += options.empty() ? "force" : ",force";
    if (option.name == "cost") options += options.empty() ? "cost=model" : ",cost=model";
  }
  return std::string(pass.name) + (options.empty() ? "" : "(" + options + ")");
}

std::vector<Pipeline> pipelines_for(const Options& options) {
  std::vector<Pipeline> pipelines;
  Pipeline together{"together", "", {}};
  for (const char* family : all_families) {
    const transforms::PassDescription* pass = transforms::find_pass(family);
    if (pass == nullptr) continue;
    if (!options.families.empty() && std::ranges::find(options.families, family) == options.families.end()) continue;
    pipelines.push_back({family, forced(*pass), {family}});
    together.passes += (together.passes.empty() ? "" : ",") + forced(*pass);
    together.families.emplace_back(family);
  }
  if (pipelines.size() < 2) return pipelines;
  pipelines.push_back(together);
  cli::PipelineOptions best;
  best.optimise = true;
  best.no_ptxas = true;
  if (const std::optional<transforms::Pipeline> parsed = cli::make_pipeline(best, cli::Session{}))
    pipelines.push_back({"-O", transforms::to_string(*parsed), together.families});
  return pipelines;
}

// Results of the kernels of one idiom in one pipeline. Launches: those of kernels that got a variant.
struct Row {
  uint64_t kernels = 0, changed = 0, variants = 0;
  uint64_t sufficient = 0, chosen = 0; // launches in which all facts hold; of those, launches of the variant
  uint64_t others = 0, chosen_of_others = 0;
  uint64_t idle = 0; // launches that execute nothing of the site
  void operator+=(const Row& other) {
    kernels += other.kernels, changed += other.changed, variants += other.variants;
    sufficient += other.sufficient, chosen += other.chosen;
    others += other.others, chosen_of_others += other.chosen_of_others;
    idle += other.idle;
  }
};

class Driver {
public:
  Driver(const Options& options, std::vector<Pipeline> pipelines)
      : options_(options), pipelines_(std::move(pipelines)) {}

  void run(uint64_t seed) {
    const Kernel kernel = generate(seed, options_.idiom);
    const Subject subject(kernel);
    if (options_.show) std::fputs(subject.text().c_str(), stdout);
    count_launches(kernel, subject);
    for (const std::string& defect : subject.defects())
      report(kernel, "original", "defect", defect);
    if (!subject.defects().empty()) return;
    const fuzz::Rewriting identity = fuzz::rewrite(subject.text(), {});
    for (const Pipeline& pipeline : pipelines_)
      run(kernel, subject, pipeline, identity.text);
  }

  int finish() {
    std::printf("%llu kernels, %llu launches, of them comparable %llu\n", number(kernels_), number(launches_),
                number(comparable_));
    for (const auto& [kind, count] : kinds_)
      std::printf("  %-24s %6llu launches\n", kind.c_str(), number(count));
    std::printf(
        "%-10s %-24s %8s %8s %8s   launches of variants: all facts hold, variant runs, share; others, runs; idle\n",
        "pipeline", "idiom", "kernels", "changed", "variants");
    for (const auto& [key, row] : rows_)
      std::printf("%-10s %-24s %8llu %8llu %8llu %10llu %10llu %6.1f %% %10llu %10llu %10llu\n", key.first.c_str(),
                  key.second.c_str(), number(row.kernels), number(row.changed), number(row.variants),
                  number(row.sufficient), number(row.chosen),
                  row.sufficient ? 100.0 * double(row.chosen) / double(row.sufficient) : 0.0, number(row.others),
                  number(row.chosen_of_others), number(row.idle));
    for (const auto& [what, times] : failures_)
      std::printf("WRONG %s: %llu times\n", what.c_str(), number(times));
    std::printf("%zu kinds of failures\n", failures_.size());
    return failures_.empty() ? 0 : 1;
  }

private:
  static unsigned long long number(uint64_t value) { return value; }

  void count_launches(const Kernel& kernel, const Subject& subject) {
    const std::lock_guard lock(mutex_);
    ++kernels_;
    for (size_t i = 0; subject.defects().empty() && i < kernel.launches.size(); ++i) {
      ++launches_;
      comparable_ += subject.is_comparable(i);
      ++kinds_[kernel.launches[i].kind];
    }
  }

  void run(const Kernel& kernel, const Subject& subject, const Pipeline& pipeline, const std::string& identity) {
    const fuzz::Rewriting rewriting = fuzz::rewrite(subject.text(), {.passes = pipeline.passes});
    if (!rewriting.failed.empty()) return report(kernel, pipeline.name, "pass fails", rewriting.failed);
    const bool is_changed = rewriting.text != identity;
    if (options_.show && is_changed) std::printf("// %s\n%s", pipeline.name.c_str(), rewriting.text.c_str());
    Verdict verdict;
    if (is_changed) verdict = subject.check(rewriting.text, pipeline.families);
    count(kernel, subject, pipeline, is_changed, verdict);
    for (const Finding& finding : verdict.findings) {
      const Launch& launch = kernel.launches[finding.launch];
      report(kernel, pipeline.name, name_of(finding.wrong),
             "launch " + std::to_string(finding.launch) + " (" + launch.kind + ", grid " + std::to_string(launch.grid) +
                 " block " + std::to_string(launch.block) + ", arguments" + listed(launch.arguments) +
                 "): " + finding.what);
      if (!options_.folder.empty()) keep(kernel, subject, pipeline, rewriting.text, finding);
      break;
    }
  }

  static std::string listed(const std::vector<uint64_t>& arguments) {
    std::string text;
    for (const uint64_t argument : arguments)
      text += " " + std::to_string(argument);
    return text;
  }

  void count(const Kernel& kernel, const Subject& subject, const Pipeline& pipeline, bool is_changed,
             const Verdict& verdict) {
    const bool is_alone = pipeline.families.size() == 1;
    // A family alone is only tested on its own sites.
    if (kernel.sites.size() != 1 || (is_alone && kernel.sites[0].family != pipeline.families[0])) return;
    const std::lock_guard lock(mutex_);
    Row row;
    row.kernels = 1;
    row.changed = is_changed;
    row.variants = verdict.has_variant;
    for (size_t i = 0; verdict.has_variant && i < verdict.chosen.size(); ++i) {
      const Trace& trace = subject.outcome(i).trace;
      if (kernel.sites[0].is_idle(trace)) {
        ++row.idle;
        continue;
      }
      const bool holds = kernel.sites[0].sufficient(trace);
      (holds ? row.sufficient : row.others) += 1;
      (holds ? row.chosen : row.chosen_of_others) += verdict.chosen[i];
      if (options_.show)
        std::printf("// launch %zu (%s): facts %s, %s\n", i, kernel.launches[i].kind.c_str(),
                    holds ? "hold" : "do not hold",
                    verdict.chosen[i] ? "variant" : ("original: " + verdict.reasons[i]).c_str());
    }
    rows_[{pipeline.name, kernel.sites[0].idiom}] += row;
  }

  void report(const Kernel& kernel, const std::string& pipeline, const std::string& kind, const std::string& what) {
    const std::lock_guard lock(mutex_);
    std::string idioms;
    for (const PatternSite& site : kernel.sites)
      idioms += (idioms.empty() ? "" : " + ") + site.idiom;
    if (++failures_[pipeline + ": " + kind] <= 5)
      std::fprintf(stderr, "seed %llu (%s), %s: %s: %s\n", number(kernel.seed), idioms.c_str(), pipeline.c_str(),
                   kind.c_str(), what.c_str());
  }

  // The kernel, the rewritten kernel, the error, and a smaller text with the same error.
  void keep(const Kernel& kernel, const Subject& subject, const Pipeline& pipeline, const std::string& rewritten,
            const Finding& finding) {
    const std::string name = options_.folder + "/" + kernel.name + "_" + pipeline.name;
    {
      const std::lock_guard lock(mutex_);
      std::filesystem::create_directories(options_.folder);
      if (++kept_[pipeline.name + name_of(finding.wrong)] > 3) return;
    }
    const Launch& launch = kernel.launches[finding.launch];
    std::string text = pipeline.passes + "\n" + name_of(finding.wrong) + ": " + finding.what + "\nlaunch " +
                       std::to_string(finding.launch) + " (" + launch.kind + "): grid " + std::to_string(launch.grid) +
                       " block " + std::to_string(launch.block) + ", arguments (pointers as offsets into one buffer)" +
                       listed(launch.arguments) + "\n";
    bool written = write_file(name + ".txt", text).ok() && write_file(name + ".ptx", subject.text()).ok() &&
                   write_file(name + ".rewritten.ptx", rewritten).ok();
    evaluate::ReducerOptions options;
    options.test_limit = reduction_limit;
    options.is_interesting = [&](const std::string& candidate) {
      const Subject smaller(kernel, candidate);
      if (!smaller.runs()) return false;
      const fuzz::Rewriting rewriting = fuzz::rewrite(candidate, {.passes = pipeline.passes});
      if (!rewriting.failed.empty()) return false;
      const Verdict verdict = smaller.check(rewriting.text, {});
      return std::ranges::any_of(verdict.findings, [&](const Finding& one) { return one.wrong == finding.wrong; });
    };
    if (finding.wrong != Wrong::predicate)
      if (const Result<evaluate::Reduction> reduction = evaluate::reduce(subject.text(), kernel.name + ".ptx", options))
        written &= write_file(name + ".reduced.ptx", reduction->text).ok();
    if (!written) std::fprintf(stderr, "fuzz_launchtime: %s cannot be written\n", name.c_str());
  }

  const Options& options_;
  std::vector<Pipeline> pipelines_;
  std::mutex mutex_;
  uint64_t kernels_ = 0, launches_ = 0, comparable_ = 0;
  std::map<std::string, uint64_t> kinds_, failures_, kept_;
  std::map<std::pair<std::string, std::string>, Row> rows_; // by pipeline and idiom
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> words;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    words.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return words;
}

bool parse_options(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--show") {
      options.show = true;
      continue;
    }
    if (i + 1 >= argc) return false;
    const std::string value = argv[++i];
    const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
    if (word == "--count")
      options.count = number;
    else if (word == "--first")
      options.first = number;
    else if (word == "--only")
      options.first = number, options.count = 1;
    else if (word == "--jobs")
      options.jobs = std::max(1u, static_cast<unsigned>(number));
    else if (word == "--idiom")
      options.idiom = value;
    else if (word == "--families")
      options.families = split(value);
    else if (word == "--write")
      options.folder = value;
    else
      return false;
  }
  return true;
}

} // namespace

int main(int argc, char** argv) {
  Options options;
  if (!parse_options(argc, argv, options)) {
    std::fprintf(stderr, "fuzz_launchtime: wrong option; the head of fuzz_launchtime.cpp lists them\n");
    return 2;
  }
  Driver driver(options, pipelines_for(options));
  std::atomic<uint64_t> next = 0;
  const auto work = [&] {
    for (uint64_t i = next++; i < options.count; i = next++)
      driver.run(options.first + i);
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.jobs; ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads)
    thread.join();
  return driver.finish();
}
