#include "support/text/terminal.h"

#include <cstdlib>
#include <sys/ioctl.h>
#include <unistd.h>

namespace ptxrewrite {

bool use_colour(const Console& console, std::FILE* stream) {
  if (console.colour != ColourMode::automatic) return console.colour == ColourMode::always;
  const char* forbidden = std::getenv("NO_COLOR");
  if (forbidden && *forbidden) return false;
  const char* terminal = std::getenv("TERM");
  if (terminal && std::string_view(terminal) == "dumb") return false;
  return isatty(fileno(stream)) != 0;
}

unsigned terminal_width() {
  constexpr unsigned fallback = 160;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  if (const char* columns = std::getenv("COLUMNS")) {
    long width = std::strtol(columns, nullptr, 10);
    if (width > 0 && width < 10000) return static_cast<unsigned>(width);
  }
  return fallback;
}

} // namespace ptxrewrite
