// The side file `X.launch.json` beside a rewritten module X.ptx: which kernel a launcher runs in the place of which,
// under which condition, with which further parameters. docs/side_file.schema.json is its schema, and what is read is
// checked against it.
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
// producer: the block in one row, and one warp more.
enum class BlockMode : uint8_t { same, producer };

struct SideVariant {
  std::string entry;
  std::optional<LaunchExpression> when; // nothing: always
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

// Nothing when there are errors.
std::optional<SideFile> read_side_file(const SourceFile& source, Diagnostics& diagnostics);

// The text that reads back as the same kernels.
std::string write_side_file(const SideFile& file);

// The path of the side file of a module: "dir/a.ptx" has "dir/a.launch.json".
std::string side_file_path(const std::string& ptx_path);

} // namespace ptxrewrite::launch
