// PTX inside what compilers write: cubins, fat binaries, object files, libraries and programs.
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

// One text a module, in the order of the file: of each fat binary its newest PTX. Error: there is none.
Result<std::vector<EmbeddedPtx>> ptx_inside(std::string_view bytes);

// Reads the PTX module of the file at `path` with this number (from 1); 0 stands for the only module. On an error it
// prints diagnostics to the console and returns nullptr.
std::unique_ptr<ir::Module> extract_input(const std::string& path, uint32_t number, const Console& console);

} // namespace ptxrewrite::cli
