// JSON documents as text.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace ptxrewrite {

// Indented, without a final newline. Bytes that are not UTF-8 (possible in PTX comments and strings) become U+FFFD.
std::string json_text(const nlohmann::ordered_json& document);

} // namespace ptxrewrite
