// JSON documents as text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite {

// Indented, without a line end. Bytes that are no UTF-8 (PTX comments and strings may hold any) become U+FFFD.
std::string json_text(const nlohmann::ordered_json& document);

} // namespace ptxrewrite
