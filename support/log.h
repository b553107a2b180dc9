// Messages for debugging the program itself (--log-level), as opposed to results and diagnostics of the input. The only
// header through which spdlog is used.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxrewrite {

enum class LogLevel : uint8_t { debug, info };

// Writes the message to standard error if the level is enabled.
void log(LogLevel level, std::string_view message);

// `level`: trace, debug, info, warn, error, off. To be called before the first message; later calls change only the
// level.
void start_logging(const std::string& level);

} // namespace ptxrewrite
