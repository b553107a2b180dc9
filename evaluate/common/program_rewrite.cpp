#include "evaluate/common/program_rewrite.h"

#include "evaluate/common/rewrite.h"
#include "ir/core/print.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <nlohmann/json.hpp>

namespace ptxrewrite::evaluate {
namespace {

// Passes must not run the assembler: a process started inside the user's program could interfere with its signal
// handlers.
transforms::RunOptions run_options(std::vector<std::string> excluded) {
  transforms::RunOptions options;
  options.excluded = std::move(excluded);
  options.verify_each = true;
  return options;
}

std::map<std::string, std::string> texts_of(const ir::Module& module) {
  std::map<std::string, std::string> texts;
  for (const auto& function : module.functions)
    if (function->is_entry && function->has_body) ir::print(*function, texts[std::string(module.text(function->name))]);
  return texts;
}

// Returns the kernels with different texts in the two modules. Passes leave the text of other kernels as it was read.
std::set<std::string> changed_kernels(const ir::Module& before, const ir::Module& after) {
  std::set<std::string> changed;
  const std::map<std::string, std::string> old_texts = texts_of(before);
  for (const auto& [name, text] : texts_of(after))
    if (const auto old = old_texts.find(name); old != old_texts.end() && old->second != text) changed.insert(name);
  return changed;
}

} // namespace

Result<RewrittenModule> rewrite_for_program(const ir::Module& original, const std::string& passes,
                                            const RefusedKernels& refused_kernels) {
  const auto run = [&](const std::string& pipeline, std::vector<std::string> excluded) {
    return rewrite(original, pipeline, transforms::OutputForm::legal, run_options(std::move(excluded)));
  };
  Result<Rewritten> made = run(passes, {});
  if (!made) return made.error();
  if (!made->module) return RewrittenModule();
  RewrittenModule result{std::move(made->module), std::move(made->text), {}};
  result.changed = changed_kernels(original, *result.module);
  if (!refused_kernels) return result;
  const std::vector<std::string> refused = refused_kernels(*result.module, result.changed);
  if (refused.empty()) return result;
  made = run(passes, refused);
  if (!made) return made.error();
  result.module = std::move(made->module);
  result.text = std::move(made->text);
  for (const std::string& name : refused)
    result.changed.erase(name);
  return result;
}

std::string beginning(const std::string& text) {
  constexpr size_t limit = 100;
  return text.size() <= limit ? text : text.substr(0, limit) + "...";
}

std::string launch_counts_text(const std::string& passes, const std::vector<LaunchCounts>& all) {
  TextTable table{{{"kernel"}, {"rewritten", true}, {"original", true}, {"why the original ran"}}, {}};
  for (const LaunchCounts& counts : all) {
    std::vector<std::string> row{counts.kernel, std::to_string(counts.rewritten), std::to_string(counts.original)};
    for (const auto& [reason, launches] : counts.reasons) {
      row.push_back(beginning(reason));
      table.rows.push_back(std::move(row));
      row = {"", "", ""};
    }
    if (counts.reasons.empty()) table.rows.push_back(std::move(row));
  }
  return "passes: " + passes + "\n" + table.text();
}

std::string launch_counts_json(const std::string& passes, const std::vector<LaunchCounts>& all) {
  nlohmann::ordered_json kernels = nlohmann::ordered_json::array();
  for (const LaunchCounts& counts : all) {
    nlohmann::ordered_json reasons = nlohmann::ordered_json::array();
    for (const auto& [reason, launches] : counts.reasons)
      reasons.push_back({{"reason", reason}, {"launches", launches}});
    kernels.push_back({{"kernel", counts.kernel},
                       {"rewritten_launches", counts.rewritten},
                       {"original_launches", counts.original},
                       {"reasons", std::move(reasons)}});
  }
  return json_text(nlohmann::ordered_json{{"passes", passes}, {"kernels", std::move(kernels)}});
}

} // namespace ptxrewrite::evaluate
