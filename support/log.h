// Messages for whoever looks for a fault of the program itself (--log-level): not results, not diagnostics of input.
// The one place that knows spdlog.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace ptxrewrite {

enum class LogLevel : uint8_t { debug, info };

// To standard error, where the level asks for it.
void log(LogLevel level, std::string_view message);

// `level`: trace, debug, info, warn, error, off. Once per process, before the first message; a later call changes the
// level alone.
void start_logging(const std::string& level);

} // namespace ptxrewrite
