// What full code of a plan is known by, in memory and on disk, before anything is written of it.
#pragma once

#include "emulator/generated/plan.h"

#include <string>
#include <string_view>

namespace ptxrewrite::emulator::generated {

// 32 hexadecimal digits.
std::string hash_of(std::string_view bytes);
inline constexpr size_t hash_digits = 32;

// Equal for plans whose code is equal, in this and in other processes of the same build of this program. Empty: the
// build has no identity, so that nothing is known by such keys.
std::string key_of(const Plan& plan, bool full_warp);

} // namespace ptxrewrite::emulator::generated
