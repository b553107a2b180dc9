// `ptxrewrite passes`: lists the transforms with their options.
#include "cli/cmd_passes.h"
#include "cli/command.h"

#include "evaluate/common/module_input.h"
#include "support/text/json_text.h"
#include "transforms/manager/pipeline.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <memory>

namespace ptxrewrite::cli {

namespace {

const char* kind_word(transforms::PassOptionKind kind) {
  switch (kind) {
  case transforms::PassOptionKind::text:
    return "text";
  case transforms::PassOptionKind::flag:
    return "flag";
  case transforms::PassOptionKind::number:
    return "number";
  }
  return "text";
}

void print_text() {
  size_t width = 0;
  for (const transforms::PassDescription& pass : transforms::all_passes())
    width = std::max(width, pass.name.size());
  for (const transforms::PassDescription& pass : transforms::all_passes()) {
    std::printf("%-*.*s  %.*s\n", static_cast<int>(width), static_cast<int>(pass.name.size()), pass.name.data(),
                static_cast<int>(pass.doc.size()), pass.doc.data());
    for (const transforms::PassOptionDescription& option : pass.options) {
      std::string spelled(option.name);
      if (option.kind == transforms::PassOptionKind::number) spelled += "=N";
      if (option.kind == transforms::PassOptionKind::text) spelled += "=TEXT";
      std::printf("%-*s    %-18s  %.*s\n", static_cast<int>(width), "", spelled.c_str(),
                  static_cast<int>(option.doc.size()), option.doc.data());
    }
  }
}

void print_json() {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const transforms::PassDescription& pass : transforms::all_passes()) {
    nlohmann::ordered_json options = nlohmann::ordered_json::array();
    for (const transforms::PassOptionDescription& option : pass.options)
      options.push_back({{"name", option.name}, {"kind", kind_word(option.kind)}, {"doc", option.doc}});
    document.push_back({{"name", pass.name}, {"doc", pass.doc}, {"options", std::move(options)}});
  }
  std::puts(json_text(document).c_str());
}

} // namespace

int list_passes(bool json) {
  if (json)
    print_json();
  else
    print_text();
  return exit_ok;
}

bool load_pass_libraries(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (Status status = transforms::load_pass_library(path); !status) {
      show(status.error());
      return false;
    }
  }
  return true;
}

namespace {

struct PassesOptions {
  bool json = false;
  std::vector<std::string> libraries;
};

Action set_up_passes(Options& command, const Session&) {
  auto options = std::make_shared<PassesOptions>();
  command.add_flag("--json", options->json, "print JSON");
  command.add_option("--load-pass", options->libraries, "load passes from a shared library").type_name("LIB.so");
  return [options] {
    return load_pass_libraries(options->libraries) ? list_passes(options->json) : int{exit_diagnostics};
  };
}

const RegisterCommand passes_registration({.name = "passes",
                                           .about = "list the passes and their options",
                                           .example = "ptxrewrite passes --json",
                                           .place = 140,
                                           .set_up = set_up_passes});

} // namespace

} // namespace ptxrewrite::cli
