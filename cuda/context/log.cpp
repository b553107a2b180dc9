#include "cuda/context/log.h"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <set>

namespace ptxrewrite::cuda {
namespace {

std::atomic<LogLevel> current{LogLevel::warn};

// Constructed on first use, because programs call from their constructors.
std::mutex& mutex() {
  static auto* made = new std::mutex;
  return *made;
}

void write(std::string_view text) {
  std::lock_guard lock(mutex());
  std::fwrite(text.data(), 1, text.size(), stderr);
}

} // namespace

bool is_logged(LogLevel level) {
  return level <= current.load(std::memory_order_relaxed);
}

void set_log_level(LogLevel level) {
  current = level;
}

void log_text(LogLevel level, std::string_view text) {
  if (!is_logged(level)) return;
  static constexpr const char* words[] = {"error", "warning", "info", "debug"};
  write(fmt::format("ptxrewrite: {}: {}\n", words[static_cast<size_t>(level)], text));
}

void log_once(LogLevel level, const std::string& text) {
  static auto* known = new std::set<std::string>;
  {
    std::lock_guard lock(mutex());
    if (!known->insert(text).second) return;
  }
  log_text(level, text);
}

void show(const Diagnostic& diagnostic, const SourceFile& source) {
  write(render(diagnostic, source, false));
}

} // namespace ptxrewrite::cuda
