// The side file `X.launch.json` beside a rewritten module X.ptx: which kernel a launcher runs in place of which other,
// under which condition, and with which further parameters. Input is checked against its schema,
// docs/side_file.schema.json.
#pragma once

#include "ir/isa/types.h"
#include "launch/predicate.h"
#include "support/diagnostic.h"

#include <optional>
#include <string>
#include <vector>

namespace ptxrewrite::launch {

struct ComputedParameter {
  ir::ScalarType type = ir::ScalarType::none;
  LaunchExpression value;
};

enum class GridMode : uint8_t { same, persistent };
// producer: the block's threads in one row, and one additional warp.
enum class BlockMode : uint8_t { same, producer };

struct SideVariant {
  std::string entry;
  std::optional<LaunchExpression> when; // nullopt: always
  std::vector<ComputedParameter> parameters;
  GridMode grid = GridMode::same;
  BlockMode block = BlockMode::same;
};

struct SideKernel {
  std::string name;
  std::string original;
  std::vector<SideVariant> variants;
};

struct SideFile {
  SourceFile source;
  std::vector<SideKernel> kernels;
};

// Returns nullopt on errors, which are in the diagnostics.
std::optional<SideFile> read_side_file(const SourceFile& source, Diagnostics& diagnostics);

// A text that reads back as the same kernels.
std::string write_side_file(const SideFile& file);

// The path of a module's side file: "dir/a.launch.json" for "dir/a.ptx".
std::string side_file_path(const std::string& ptx_path);

} // namespace ptxrewrite::launch
