#include "cli/module_input.h"

#include "cli/terminal.h"
#include "grammar/reader.h"
#include "support/file_io.h"
#include "transforms/pipeline.h"

#include <spdlog/spdlog.h>

namespace ptxrewrite::cli {

std::unique_ptr<ir::Module> read_input(const std::string& path, const Session& session) {
  Result<std::string> text = read_file(path);
  if (!text) {
    show(text.error(), session);
    return nullptr;
  }
  spdlog::debug("{}: {} bytes", path, text->size());
  SourceFile source(path == "-" ? "<stdin>" : path, *std::move(text));
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    show(diagnostic, source, session);
  if (module) spdlog::debug("{}: {} functions", path, module->functions.size());
  return module;
}

void show(const Diagnostic& diagnostic, const SourceFile& source, const Session& session) {
  if (session.collected) {
    CollectedDiagnostic collected{source.name(), diagnostic, std::nullopt};
    if (!diagnostic.range.empty() && diagnostic.range.begin <= source.text().size())
      collected.place = source.locate(diagnostic.range.begin);
    session.collected->push_back(std::move(collected));
    return;
  }
  std::string text = render(diagnostic, source, use_colour(session, stderr));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void show(const Error& error, const SourceFile& source, const Session& session) {
  show(error.to_diagnostic(), source, session);
}

void show(const Error& error) {
  std::fprintf(stderr, "ptxrewrite: error: %s\n", error.message.c_str());
}

void show(const Error& error, const Session& session) {
  if (session.collected)
    session.collected->push_back({"", error.to_diagnostic(), std::nullopt});
  else
    show(error);
}

bool check_selection(const ir::Module& module, const std::string& glob, const Session& session) {
  std::string names;
  for (const auto& function : module.functions) {
    if (!function->has_body) continue;
    std::string_view name = module.text(function->name);
    if (transforms::matches_glob(glob, name)) return true;
    names += names.empty() ? "" : ", ";
    names += name;
  }
  // Without a glob of the user's own there is nothing to find wrong: a module may hold no function at all.
  if (glob == "*") return true;
  std::string message = "no kernel or function matches '" + glob + "'";
  message += names.empty() ? "; there is none in this file" : "; there are: " + names;
  show(Error{std::move(message), {}}, module.source, session);
  return false;
}

} // namespace ptxrewrite::cli
