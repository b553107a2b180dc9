// Capabilities of the terminal.
#pragma once

#include "support/text/console.h"

#include <cstdio>
#include <string>
#include <string_view>

namespace ptxrewrite {

// True if colours are used on this stream. `automatic`: on a terminal, unless NO_COLOR is set to a non-empty value.
bool use_colour(const Console& console, std::FILE* stream);

// Columns of the terminal on standard output, otherwise $COLUMNS, otherwise 160.
unsigned terminal_width();

// Escape sequences, or empty strings if colours are off.
class Palette {
public:
  explicit Palette(bool on) : on_(on) {}
  std::string_view red() const { return pick("\033[31m"); }
  std::string_view green() const { return pick("\033[32m"); }
  std::string_view yellow() const { return pick("\033[33m"); }
  std::string_view cyan() const { return pick("\033[36m"); }
  std::string_view bold() const { return pick("\033[1m"); }
  std::string_view dim() const { return pick("\033[2m"); }
  std::string_view reset() const { return pick("\033[0m"); }

private:
  std::string_view pick(std::string_view sequence) const { return on_ ? sequence : std::string_view(); }
  bool on_;
};

} // namespace ptxrewrite
