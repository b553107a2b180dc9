// Extracts PTX from compiler output: cubins, fat binaries, object files, libraries and programs.
#pragma once

#include "evaluate/common/module_input.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::cli {

struct EmbeddedPtx {
  uint32_t architecture = 0; // 90 for sm_90
  std::string text;
};

// Returns one text per module, in file order: the newest PTX of each fat binary. Fails if there is none.
Result<std::vector<EmbeddedPtx>> ptx_inside(std::string_view bytes);

// Reads the PTX module with this number (from 1) from the file at `path`; 0 stands for the only module. On an error,
// prints diagnostics to the console and returns nullptr.
std::unique_ptr<ir::Module> extract_input(const std::string& path, uint32_t number, const Console& console);

} // namespace ptxrewrite::cli
