// Every rule of the families that rest on the launch: found in its pattern, proved by `prove` where family_rules.cpp
// says so, and measured by ptxas on three targets against its claim; --table prints the rules with the tests that
// prove, run and refuse them.
//
//   measure_families [--table] SOURCE_ROOT
//
// The test cases that a rule names must be in the sources. Without ptxas only that and the pattern are checked.
#include "evaluate/prove/prover.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "launch/variants.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "tests/rules/family_rules.h"
#include "transforms/manager/pipeline.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>

namespace ptxrewrite::tests {
namespace {

constexpr std::array targets{"sm_80", "sm_90", "sm_100"};

struct Rewritten {
  std::string text;
  std::string kernel; // the variant, or k itself if the rule needs no launch condition
};

std::string passes_of(const FamilyRule& rule) {
  return rule.family + "(force)" + rule.also;
}

Result<Rewritten> rewrite(const FamilyRule& rule, const std::string& target) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module =
      grammar::read_module(SourceFile(rule.name, family_kernel(rule, target)), diagnostics);
  if (!module) return Error{"not read: " + (diagnostics.list().empty() ? "" : diagnostics.list()[0].message), {}};
  const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes_of(rule));
  if (!pipeline) return pipeline.error();
  transforms::RunOptions options;
  options.verify_each = true;
  options.run_ptxas = false;
  const Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) return report.error();
  const Result<launch::Variants> variants = launch::Variants::of(*module, nullptr);
  if (!variants) return variants.error();
  const auto stand_ins = variants->of_kernel("k");
  return Rewritten{ir::print(*module), stand_ins.empty() ? "k" : stand_ins.front().entry};
}

std::string entry_text(const std::string& text, const std::string& kernel) {
  const size_t begin = text.find(".entry " + kernel + "(");
  return begin == std::string::npos ? "" : text.substr(begin, text.find("\n}\n", begin) - begin);
}

// The text of all tests, in which the test cases that the rules name must be.
std::string test_sources(const std::filesystem::path& root) {
  std::string all;
  for (const char* folder : {"tests/unit/transforms", "tests/rules", "tests/fuzz"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(root / folder))
      if (const auto name = entry.path().filename().string();
          entry.is_regular_file() && !name.starts_with("family_rules") && !name.ends_with(".ptx"))
        if (const Result<std::string> text = read_file(entry.path().string())) all += *text;
  return all;
}

class Measurement {
public:
  Measurement(std::string sources, bool prints) : sources_(std::move(sources)), prints_(prints) {}

  void check(const FamilyRule& rule) {
    for (const std::string& test : {rule.proof, rule.edges, rule.refused})
      if (test != by_prover && sources_.find(test) == std::string::npos) fail(rule, "no test '" + test + "'");
    if (rule.proof == by_prover) prove(rule);
    std::string measured;
    for (size_t i = 0; i < targets.size(); ++i) {
      const std::optional<int> saved = measure(rule, i);
      if (saved && *saved < rule.saves[i])
        fail(rule, std::string(targets[i]) + ": claims " + std::to_string(rule.saves[i]) + ", saves " +
                       std::to_string(*saved));
      char text[16];
      std::snprintf(text, sizeof text, saved ? "%5d" : "    -", saved.value_or(0));
      measured += text;
    }
    if (prints_)
      std::printf("%-8s %-22s %s  proved: %s; edges: %s; refused: %s\n", rule.family.c_str(), rule.name.c_str(),
                  measured.c_str(), rule.proof.c_str(), rule.edges.c_str(), rule.refused.c_str());
    ++rules_;
  }

  int finish() const {
    std::printf("%zu rules, %zu failures\n", rules_, failures_);
    return failures_ == 0 ? 0 : 1;
  }

private:
  void fail(const FamilyRule& rule, const std::string& message) {
    std::printf("%s, %s: %s\n", rule.family.c_str(), rule.name.c_str(), message.c_str());
    ++failures_;
  }

  void prove(const FamilyRule& rule) {
    if (!prove::Solver::available()) return;
    prove::ProofSettings settings;
    settings.run.run_ptxas = false;
    const auto proofs = prove::prove_module(SourceFile(rule.name, family_kernel(rule, rule.target)),
                                            *transforms::parse_pipeline(passes_of(rule)), settings);
    if (!proofs || proofs->size() != 1 || !proofs->front().changed || !proofs->front().holds())
      fail(rule, proofs && !proofs->empty() && !proofs->front().problems.empty() ? proofs->front().problems[0].text
                                                                                 : "not proved");
  }

  // Saved instructions; nullopt if the target lacks the replacement, or there is no ptxas.
  std::optional<int> measure(const FamilyRule& rule, size_t at) {
    const auto number = [](const std::string& target) { return std::stoi(target.substr(3)); };
    if (number(rule.target) > number(targets[at])) return std::nullopt;
    const bool is_its_own = number(rule.target) == number(targets[at]);
    const std::string target = is_its_own ? rule.target : targets[at];
    const Result<Rewritten> rewritten = rewrite(rule, target);
    if (!rewritten) {
      fail(rule, rewritten.error().message);
      return std::nullopt;
    }
    const std::string before = entry_text(family_kernel(rule, target), "k"),
                      after = entry_text(rewritten->text, rewritten->kernel);
    if (!rule.marker.empty() &&
        (before.find(rule.marker) != std::string::npos || after.find(rule.marker) == std::string::npos))
      fail(rule, target + ": '" + rule.marker + "' is not new\n" + after);
    if (!find_ptxas()) return std::nullopt;
    const Result<ir::FiguresByFunction> old = ir::machine_figures(family_kernel(rule, target), target),
                                        now = ir::machine_figures(rewritten->text, target);
    if (!old || !now) {
      fail(rule, (old ? now : old).error().message);
      return std::nullopt;
    }
    return static_cast<int>(old->at("k").instructions) - static_cast<int>(now->at(rewritten->kernel).instructions);
  }

  std::string sources_;
  bool prints_;
  size_t rules_ = 0, failures_ = 0;
};

} // namespace
} // namespace ptxrewrite::tests

int main(int count, char** arguments) {
  using namespace ptxrewrite::tests;
  const bool prints = count == 3 && std::strcmp(arguments[1], "--table") == 0;
  if (count != 2 + prints) {
    std::puts("usage: measure_families [--table] SOURCE_ROOT");
    return 2;
  }
  Measurement measurement(test_sources(arguments[count - 1]), prints);
  for (const FamilyRule& rule : family_rules())
    measurement.check(rule);
  return measurement.finish();
}
