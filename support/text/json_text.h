// JSON documents as text.
#pragma once

#include <nlohmann/json.hpp>

#include <string>

namespace ptxrewrite {

// Indented, without a line end. Bytes that are no UTF-8 (PTX comments and strings may hold any) become U+FFFD.
inline std::string json_text(const nlohmann::ordered_json& document) {
  return document.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

} // namespace ptxrewrite
