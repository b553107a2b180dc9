// Which PTX versions and targets have an instruction or a target, by ptxas.
#pragma once

#include "ir/isa/isa.h"

#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

struct PtxVersion {
  unsigned major = 0;
  unsigned minor = 0;
  auto operator<=>(const PtxVersion&) const = default;
};

// The number at the head of "8.0" or "8.0, sm_90"; nothing where there is none.
std::optional<PtxVersion> parse_version(std::string_view text);

// What keeps the form out of a file of this version for this target ("sm_90", "compute_80", "sm_100a"), for people:
// "needs PTX 7.8, sm_90+". Empty if nothing does, or if the table does not know: opaque forms, those of hardware
// forms, no target. Where forms differ by their operands alone, the least any of them needs counts.
std::string why_not_available(const Form& form, PtxVersion version, std::string_view target);

// The first version that has the target; nothing for targets that we do not know.
std::optional<PtxVersion> first_version_of_target(std::string_view target);

} // namespace ptxrewrite::ir
