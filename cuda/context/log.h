// Messages to standard error, filtered by `exec --log-level`.
#pragma once

#include "cuda/context/settings.h"
#include "support/diagnostic.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

namespace ptxrewrite::cuda {

bool is_logged(LogLevel level);
void set_log_level(LogLevel level);
// "ptxrewrite: warning: text"
void log_text(LogLevel level, std::string_view text);
template <class... Values> void log(LogLevel level, fmt::format_string<Values...> format, Values&&... values) {
  if (is_logged(level)) log_text(level, fmt::format(format, std::forward<Values>(values)...));
}
// Prints a diagnostic with its source line, regardless of the level.
void show(const Diagnostic& diagnostic, const SourceFile& source);
// Logs each text only once per process.
void log_once(LogLevel level, const std::string& text);

} // namespace ptxrewrite::cuda
