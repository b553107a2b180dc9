// Launch files: TOML that says what to launch on which data (docs/launch_files.md).
//
//   Diagnostics diagnostics;
//   auto file = read_launch_file(SourceFile(path, text), diagnostics);
//   auto plan = file ? make_plan(*file, {.size = "small"}, diagnostics) : std::nullopt;
#pragma once

#include "launch/launch_plan.h"
#include "support/diagnostic.h"
#include "support/text/document.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::launch {

struct LaunchFile {
  SourceFile source;
  Node root;
  std::vector<std::string> sizes; // in the order of the file
  std::string default_size;       // "": the values as they stand
  std::string folder;             // files named in it are relative to this
};

// Reads the file's structure: TOML, known keys. Nothing when there are errors.
std::optional<LaunchFile> read_launch_file(const SourceFile& source, Diagnostics& diagnostics);

struct PlanOptions {
  std::string size;   // "": the file's default; "paper,medium": the first of them that the file has
  std::string target; // "sm_80": which of several PTX files; "": the first
};

// Evaluates everything for one size. Nothing when there are errors.
std::optional<LaunchPlan> make_plan(const LaunchFile& file, const PlanOptions& options, Diagnostics& diagnostics);

} // namespace ptxrewrite::launch
