// The texts of machines/*.toml, embedded in the program by the build.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace ptxrewrite::ir {

struct MachineFileText {
  std::string_view file;
  std::string_view name;           // of the machine
  uint32_t compute_capability = 0; // 80: "8.0"
  std::string_view text;
};
std::span<const MachineFileText> machine_files();

} // namespace ptxrewrite::ir
