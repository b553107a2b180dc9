#include "evaluate/common/module_input.h"

#include "grammar/reader.h"
#include "support/file_io.h"
#include "support/log.h"
#include "support/text/near_names.h"
#include "support/text/terminal.h"
#include "transforms/manager/pipeline.h"

namespace ptxrewrite::evaluate {

namespace {

constexpr size_t most_shown = 20;

} // namespace

std::unique_ptr<ir::Module> read_input(const std::string& path, const Console& console) {
  Result<std::string> text = read_file(path);
  if (!text) {
    show(text.error(), console);
    return nullptr;
  }
  log(LogLevel::debug, path + ": " + std::to_string(text->size()) + " bytes");
  SourceFile source(path == "-" ? "<stdin>" : path, *std::move(text));
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    show(diagnostic, source, console);
  if (module) log(LogLevel::debug, path + ": " + std::to_string(module->functions.size()) + " functions");
  return module;
}

std::unique_ptr<ir::Module> read_module_text(const SourceFile& source, const Console& console) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  show_all(diagnostics, source, console);
  return module;
}

void show(const Diagnostic& diagnostic, const SourceFile& source, const Console& console) {
  if (console.collected) {
    CollectedDiagnostic collected{source.name(), diagnostic, std::nullopt};
    if (!diagnostic.range.empty() && diagnostic.range.begin <= source.text().size())
      collected.place = source.locate(diagnostic.range.begin);
    console.collected->push_back(std::move(collected));
    return;
  }
  std::string text = render(diagnostic, source, use_colour(console, stderr));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void show(const Error& error, const SourceFile& source, const Console& console) {
  show(error.to_diagnostic(), source, console);
}

void show_all(const Diagnostics& diagnostics, const SourceFile& source, const Console& console) {
  for (size_t i = 0; i < diagnostics.list().size() && i < most_shown; ++i)
    show(diagnostics.list()[i], source, console);
  if (diagnostics.list().size() > most_shown && !console.collected)
    std::fprintf(stderr, "%s: %zu more are not shown\n", source.name().c_str(), diagnostics.list().size() - most_shown);
}

void show(const Error& error) {
  std::fprintf(stderr, "ptxrewrite: error: %s\n", error.message.c_str());
}

void show(const Error& error, const Console& console) {
  if (console.collected)
    console.collected->push_back({"", error.to_diagnostic(), std::nullopt});
  else
    show(error);
}

bool check_selection(const ir::Module& module, const std::string& glob, const Console& console) {
  std::vector<std::string> names;
  for (const auto& function : module.functions) {
    if (!function->has_body) continue;
    std::string_view name = module.text(function->name);
    if (transforms::matches_glob(glob, name)) return true;
    names.emplace_back(name);
  }
  // The default glob is always valid, even if the module has no functions.
  if (glob == "*") return true;
  std::string message = "no kernel or function matches '" + glob + "'";
  message += names.empty() ? "; there is none in this file" : near_names(glob, names);
  show(Error{std::move(message), {}}, module.source, console);
  return false;
}

} // namespace ptxrewrite::evaluate
