// Launch files: TOML that describes launches and their data (docs/launch_files.md).
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
  std::vector<std::string> sizes; // in file order
  std::string default_size;       // "": the values without those of a size
  std::string folder;             // files named in the launch file are relative to this
};

// Reads and checks the file's structure: TOML, known keys. Returns nullopt on errors.
std::optional<LaunchFile> read_launch_file(const SourceFile& source, Diagnostics& diagnostics);

struct PlanOptions {
  std::string size;   // "": the file's default; "paper,medium": the first of these that the file has
  std::string target; // "sm_80": selects one of several PTX files; "": the first
};

// Evaluates all expressions for one size. Returns nullopt on errors.
std::optional<LaunchPlan> make_plan(const LaunchFile& file, const PlanOptions& options, Diagnostics& diagnostics);

} // namespace ptxrewrite::launch
