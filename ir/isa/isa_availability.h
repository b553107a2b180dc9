// PTX versions and targets that support an instruction or a target, according to ptxas.
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

// The version number at the start of "8.0" or "8.0, sm_90"; nullopt if there is none.
std::optional<PtxVersion> parse_version(std::string_view text);

// The reason why the form is not available in a file of this version for this target ("sm_90", "compute_80",
// "sm_100a"), for people: "needs PTX 7.8, sm_90+". Empty if it is available or the table has no data: opaque forms,
// forms of hardware forms, no target. For forms that differ only in operands, the lowest requirement applies.
std::string why_not_available(const Form& form, PtxVersion version, std::string_view target);

// Whether the operand lists of the form have requirements of their own, and the reason for one operand list.
bool availability_depends_on_operands(const Form& form);
std::string why_not_available(const Form& form, std::span<const OperandSummary> operands, PtxVersion version,
                              std::string_view target);

// Whether the target's number is that of `first` ("sm_90") or higher: "compute_90", "sm_100a".
bool is_target_at_least(std::string_view target, std::string_view first);

// The first version that supports the target; nullopt for unknown targets.
std::optional<PtxVersion> first_version_of_target(std::string_view target);

} // namespace ptxrewrite::ir
