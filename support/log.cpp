#include "support/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

namespace ptxrewrite {

void log(LogLevel level, std::string_view message) {
  spdlog::log(level == LogLevel::debug ? spdlog::level::debug : spdlog::level::info, "{}", message);
}

void start_logging(const std::string& level) {
  if (!spdlog::get("ptxrewrite")) {
    auto logger = spdlog::stderr_color_mt("ptxrewrite");
    logger->set_pattern("ptxrewrite: %l: %v");
    spdlog::set_default_logger(std::move(logger));
  }
  spdlog::set_level(spdlog::level::from_str(level));
}

} // namespace ptxrewrite
