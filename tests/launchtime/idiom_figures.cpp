// Idioms: machine instructions of common source code, of a hand-optimised version, and of the passes' result, for
// sm_80, sm_90 and sm_100; and the share of the hand-optimised gain that the passes reach.
//
//   idiom_figures [--model] [--arch sm_80 ...] PTX_FILE ...
//
// Kernels are called NAME__plain and NAME__hand; files are named by families (README.md). Columns:
// the family's own pass, which is missing if none is registered, and -O. --model: the machine model chooses, not
// ptxas. 77 without ptxas.
#include "cli/options.h"
#include "cli/pipeline_options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "launch/variants.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

namespace {

using namespace ptxrewrite;

struct Family {
  const char* file; // prefix of the file's name
  std::string passes;
  std::string launch = {}; // -O is told that this launch repeats, as the hand-written version is
};
const Family families[] = {{"memory", "memory"},
                           {"narrow", "narrow"},
                           {"divisor", "divisor"},
                           {"bytes", "memory,composite"},
                           {"warp", "warp"},
                           {"packed", "memory,packed"},
                           {"small", "narrow,composite,warp"},
                           {"launch", "darsie(specialise=\"block=128,param.3=8\")", "block=128,param.3=8"}};

struct Options {
  std::vector<std::string> files, architectures{"sm_80", "sm_90", "sm_100"};
  bool by_model = false;
};

struct Row {
  std::string idiom;
  uint32_t plain = 0, hand = 0;
  std::optional<uint32_t> family, best;
};

unsigned number_of(const std::string& architecture) {
  return static_cast<unsigned>(std::strtoul(architecture.c_str() + 3, nullptr, 10));
}

// Instructions of the rewritten kernels of the text, by the name of the original; an error if a pass is missing.
Result<std::map<std::string, uint32_t>> rewritten(const Options& options, const std::string& text,
                                                  const transforms::Pipeline& pipeline,
                                                  const std::string& architecture) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("idioms", text), diagnostics);
  if (!module) return Error{"the text cannot be read", {}};
  transforms::RunOptions run;
  run.functions = "*__plain";
  run.run_ptxas = !options.by_model;
  const Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, pipeline, run);
  if (!report) return report.error();
  const Result<ir::FiguresByFunction> figures = ir::machine_figures(ir::print(*module), architecture);
  if (!figures) return figures.error();
  const Result<launch::Variants> variants = launch::Variants::of(*module, nullptr);
  if (!variants) return variants.error();
  std::map<std::string, uint32_t> instructions;
  for (const auto& [name, row] : *figures) {
    if (!name.ends_with("__plain")) continue;
    const auto stand_ins = variants->of_kernel(name);
    const auto entry = figures->find(stand_ins.empty() ? name : stand_ins.front().entry);
    instructions[name] = entry == figures->end() ? row.instructions : entry->second.instructions;
  }
  return instructions;
}

const Family* family_of(const std::string& file) {
  const std::string name = std::filesystem::path(file).filename().string();
  const auto found =
      std::ranges::find_if(families, [&](const Family& family) { return name.starts_with(family.file); });
  return found == std::end(families) ? nullptr : found;
}

Result<std::vector<Row>> measure(const Options& options, const std::string& file, const std::string& general) {
  Result<std::string> text = read_file(file);
  if (!text) return text.error();
  const std::string own = target_architecture(*text);
  if (number_of(own) > number_of(general)) return std::vector<Row>{};
  // sm_100a has instructions that sm_100 lacks.
  const std::string architecture = number_of(own) == number_of(general) ? own : general;
  text->replace(text->find(own, text->find(".target")), own.size(), architecture);
  const Result<ir::FiguresByFunction> figures = ir::machine_figures(*text, architecture);
  if (!figures) return figures.error();
  std::map<std::string, uint32_t> by_family, by_best;
  if (const Family* family = family_of(file))
    if (const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(family->passes)) {
      const auto made = rewritten(options, *text, *pipeline, architecture);
      if (!made) return made.error();
      by_family = *made;
    }
  cli::PipelineOptions best;
  best.optimise = true;
  if (const Family* family = family_of(file)) best.specialise = family->launch;
  if (const std::optional<transforms::Pipeline> pipeline = cli::make_pipeline(best, cli::Session{})) {
    const auto made = rewritten(options, *text, *pipeline, architecture);
    if (!made) return made.error();
    by_best = *made;
  }
  std::vector<Row> rows;
  for (const auto& [name, row] : *figures) {
    if (!name.ends_with("__plain")) continue;
    const std::string stem = name.substr(0, name.size() - 7);
    const auto hand = figures->find(stem + "__hand");
    if (hand == figures->end()) return Error{file + ": no " + stem + "__hand", {}};
    Row made{stem, row.instructions, hand->second.instructions, {}, {}};
    if (by_family.contains(name)) made.family = by_family[name];
    if (by_best.contains(name)) made.best = by_best[name];
    rows.push_back(made);
  }
  return rows;
}

// The share of the hand-optimised gain, in percent; nullopt if there is no gain.
std::optional<double> share(const Row& row, std::optional<uint32_t> ours) {
  if (!ours || row.hand >= row.plain) return std::nullopt;
  return 100.0 * (double(row.plain) - double(*ours)) / (double(row.plain) - double(row.hand));
}

std::string shown(const Row& row, std::optional<uint32_t> ours) {
  char text[32];
  const std::optional<double> reached = share(row, ours);
  if (!ours) return "      -        ";
  if (reached)
    std::snprintf(text, sizeof text, "%5u (%4.0f %%) ", *ours, *reached);
  else
    std::snprintf(text, sizeof text, "%5u (    -) ", *ours);
  return text;
}

} // namespace

int main(int count, char** arguments) {
  Options options;
  std::vector<std::string> architectures;
  cli::Application application("idioms: what passes reach of what is written by hand");
  application.add_option("PTX_FILE", options.files, "idioms").required();
  application.add_option("--arch", architectures, "default sm_80 sm_90 sm_100").one_each();
  application.add_flag("--model", options.by_model, "the machine model chooses");
  if (std::optional<int> code = application.parse(count, arguments)) return *code;
  if (!find_ptxas()) {
    std::puts("no ptxas: skipped");
    return 77;
  }
  if (!architectures.empty()) options.architectures = architectures;
  for (const std::string& architecture : options.architectures) {
    std::printf("%s\n%-12s %-22s %6s %6s   %-14s %-14s\n", architecture.c_str(), "file", "idiom", "plain", "hand",
                "family", "-O");
    double family_sum = 0, best_sum = 0;
    size_t family_count = 0, best_count = 0, reached = 0;
    for (const std::string& file : options.files) {
      const Result<std::vector<Row>> rows = measure(options, file, architecture);
      if (!rows) {
        std::fprintf(stderr, "idiom_figures: %s: %s\n", file.c_str(), rows.error().message.c_str());
        return 1;
      }
      for (const Row& row : *rows) {
        std::printf("%-12s %-22s %6u %6u   %s %s\n", std::filesystem::path(file).stem().string().c_str(),
                    row.idiom.c_str(), row.plain, row.hand, shown(row, row.family).c_str(),
                    shown(row, row.best).c_str());
        if (const auto one = share(row, row.family)) family_sum += std::min(*one, 100.0), ++family_count;
        if (const auto one = share(row, row.best))
          best_sum += std::min(*one, 100.0), ++best_count, reached += *one >= 90;
      }
    }
    std::printf("%s: of the hand-written gain, on average (more than all of it counts as all): by the family's pass "
                "%.0f %% (%zu idioms), by -O %.0f %% "
                "(%zu idioms, 90 %% and more in %zu)\n\n",
                architecture.c_str(), family_count ? family_sum / double(family_count) : 0.0, family_count,
                best_count ? best_sum / double(best_count) : 0.0, best_count, reached);
  }
  return 0;
}
