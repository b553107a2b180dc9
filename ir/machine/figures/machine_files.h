// The texts of machines/*.toml, embedded in the program by the build.
#pragma once

#include <span>
#include <string_view>

namespace ptxrewrite::ir {

struct MachineFileText {
  std::string_view name, text;
};
std::span<const MachineFileText> machine_files();

} // namespace ptxrewrite::ir
