// Small kernels that contain one rule's pattern, or its replacement.
#pragma once

#include "transforms/composite/composite_rules.h"

#include <optional>
#include <string>

namespace ptxrewrite::tests {

// Thread t of `.entry NAME(.param .u64 buffer)` loads the rule's variables from buffer + 256 t, one every eight bytes,
// computes the term and stores it at buffer + 256 t. Registers fulfil the rule's facts, literals its conditions.
// Returns nullopt if no such literals were found.
std::optional<std::string> kernel_of(const transforms::legal::composite::Rule& rule, const std::string& name,
                                     bool replaced);

// Version, target and address size.
std::string module_header(const std::string& architecture);

} // namespace ptxrewrite::tests
