// ptxas' figures for each rule's pattern and replacement alone, which composite_rules.def claims.
//
// Each rule becomes two kernels. No rule may claim more than its saving for sm_80 and for sm_90; --table prints all
// figures.
#include "ir/machine/figures/figures.h"
#include "support/ptxas.h"
#include "tests/rules/rule_kernels.h"

#include <cstdio>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace ptxrewrite::tests {
namespace {

using namespace transforms::legal::composite;

int measure_all(bool print_table) {
  int failures = 0;
  for (const char* architecture : {"sm_80", "sm_90", "sm_100"}) {
    const unsigned target = static_cast<unsigned>(std::stoi(architecture + 3));
    std::string text = module_header(architecture);
    std::vector<std::pair<std::string, const Rule*>> kernels;
    for (const Rule& rule : rules()) {
      // sm_100 for the rules that need it, and for those of bytes, whose code differs there.
      const bool differs = rule.family == Family::bytes || rule.family == Family::dot;
      if (rule.target > target || (target == 100 && rule.target <= 90 && !differs)) continue;
      const std::string name = "rule" + std::to_string(kernels.size());
      const std::optional<std::string> before = kernel_of(rule, name + "_before", false);
      if (!before) {
        std::printf("%s: no literals found for '%s'\n", rule.name.c_str(), rule.condition_text.c_str());
        ++failures;
        continue;
      }
      text += *before + *kernel_of(rule, name + "_after", true);
      kernels.emplace_back(name, &rule);
    }
    Result<ir::FiguresByFunction> figures = ir::machine_figures(text, architecture);
    if (!figures) {
      std::printf("%s: %s\n", architecture, figures.error().message.c_str());
      return 1;
    }
    for (const auto& [name, rule] : kernels) {
      const int saved = static_cast<int>(figures->at(name + "_before").instructions) -
                        static_cast<int>(figures->at(name + "_after").instructions);
      if (print_table)
        std::printf("%s %-24s claims %u, saves %d: %s\n", architecture, rule->name.c_str(), rule->saves, saved,
                    rule->pattern.text.c_str());
      if (static_cast<int>(rule->saves) > saved) {
        std::printf("%s: %s claims %u, saves %d: %s\n", architecture, rule->name.c_str(), rule->saves, saved,
                    rule->pattern_text.c_str());
        ++failures;
      }
    }
    std::printf("%s: %zu rules measured\n", architecture, kernels.size());
  }
  return failures == 0 ? 0 : 1;
}

} // namespace
} // namespace ptxrewrite::tests

int main(int count, char** arguments) {
  if (!ptxrewrite::find_ptxas()) {
    std::puts("no ptxas: skipped");
    return 77;
  }
  return ptxrewrite::tests::measure_all(count > 1 && std::strcmp(arguments[1], "--table") == 0);
}
