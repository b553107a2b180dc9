#include "emulator/special/printf.h"

#include "emulator/core/address.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <optional>

namespace ptxrewrite::emulator {
namespace {

// Limit of one conversion; wider fields are cut to this width.
constexpr int most_characters = 4096;
// A double printed with %f has up to 309 digits before the point.
constexpr size_t conversion_buffer = most_characters + 400;

// Reads consecutive arguments, each aligned to its size.
class PrintfArguments {
public:
  PrintfArguments(Warp& warp, unsigned lane, uint64_t address) : warp_(warp), lane_(lane), address_(address) {}

  template <class T> T next() {
    offset_ = align_up(offset_, sizeof(T));
    T value{};
    if (const std::byte* at = resolve(*warp_.block, warp_, lane_, Space::generic, address_ + offset_, sizeof(T)))
      std::memcpy(&value, at, sizeof value);
    else if (wrong.empty())
      wrong = fmt::format("printf: argument {} at {:#x} is not in the kernel's memory", taken, address_ + offset_);
    offset_ += sizeof(T);
    ++taken;
    return value;
  }

  int32_t taken = 0;
  std::string wrong;

private:
  Warp& warp_;
  unsigned lane_;
  uint64_t address_;
  uint64_t offset_ = 0;
};

// %[flags][width][.precision][size]letter
struct Conversion {
  std::string flags;
  std::optional<int> width, precision;
  unsigned shorts = 0, longs = 0; // h, hh; l, ll
  char letter = 0;
  size_t length = 0; // of its text after the %
};

// Returns a number in the text or from an argument, clamped to the printing limit.
std::optional<int> number_at(std::string_view text, size_t& at, PrintfArguments& arguments) {
  if (at < text.size() && text[at] == '*') {
    ++at;
    return std::clamp(arguments.next<int32_t>(), -most_characters, most_characters);
  }
  std::optional<int> value;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    value = std::min(value.value_or(0) * 10 + (text[at] - '0'), most_characters);
  return value;
}

// `text` begins after the %. Returns nullopt if it is no conversion.
std::optional<Conversion> conversion_at(std::string_view text, PrintfArguments& arguments) {
  Conversion conversion;
  size_t at = std::min(text.find_first_not_of("-+ #0"), text.size());
  conversion.flags = text.substr(0, at);
  conversion.width = number_at(text, at, arguments);
  if (at < text.size() && text[at] == '.') {
    ++at;
    conversion.precision = number_at(text, at, arguments).value_or(0);
    if (*conversion.precision < 0) conversion.precision.reset(); // treated as missing
  }
  for (; at < text.size() && std::strchr("hljz", text[at]); ++at)
    ++(text[at] == 'h' ? conversion.shorts : conversion.longs);
  if (at == text.size() || !std::strchr("diuxXocfFeEgGaAps", text[at])) return std::nullopt;
  conversion.letter = text[at];
  conversion.length = at + 1;
  return conversion;
}

template <class T> std::string formatted(const Conversion& conversion, const char* host_letter, T value) {
  std::string format = "%" + conversion.flags;
  if (conversion.width) format += std::to_string(*conversion.width);
  if (conversion.precision) format += "." + std::to_string(*conversion.precision);
  format += host_letter;
  char buffer[conversion_buffer];
  const int length = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
  return length < 0 ? std::string() : std::string(buffer, std::min<size_t>(size_t(length), sizeof buffer - 1));
}

std::string formatted_integer(const Conversion& conversion, PrintfArguments& arguments) {
  const char host_letter[] = {'l', 'l', conversion.letter, 0};
  const bool is_signed = conversion.letter == 'd' || conversion.letter == 'i';
  if (conversion.longs) {
    const auto value = arguments.next<uint64_t>();
    return is_signed ? formatted(conversion, host_letter, static_cast<long long>(value))
                     : formatted(conversion, host_letter, static_cast<unsigned long long>(value));
  }
  const auto value = arguments.next<uint32_t>();
  const unsigned unused = conversion.shorts == 0 ? 0 : conversion.shorts == 1 ? 16 : 24;
  return is_signed ? formatted(conversion, host_letter,
                               static_cast<long long>(static_cast<int32_t>(value << unused) >> unused))
                   : formatted(conversion, host_letter, static_cast<unsigned long long>(value << unused >> unused));
}

// %s. Reads no bytes beyond the precision.
std::string formatted_text(const Conversion& conversion, Warp& warp, unsigned lane, PrintfArguments& arguments) {
  const auto address = arguments.next<uint64_t>();
  std::string text = "(null)";
  const size_t most = conversion.precision ? static_cast<size_t>(*conversion.precision) : SIZE_MAX;
  if (address && !read_string(warp, lane, address, most, text, arguments.wrong)) return {};
  text.resize(std::min(text.size(), most));
  const int width = conversion.width.value_or(0);
  const bool left = width < 0 || conversion.flags.find('-') != std::string::npos;
  const auto wanted = static_cast<size_t>(std::abs(width));
  if (text.size() < wanted) text.insert(left ? text.size() : 0, wanted - text.size(), ' ');
  return text;
}

std::string converted(const Conversion& conversion, Warp& warp, unsigned lane, PrintfArguments& arguments) {
  switch (conversion.letter) {
  case 'c':
    return formatted(conversion, "c", arguments.next<int32_t>());
  case 's':
    return formatted_text(conversion, warp, lane, arguments);
  case 'p':
    return fmt::format("{:#x}", arguments.next<uint64_t>());
  case 'd':
  case 'i':
  case 'u':
  case 'x':
  case 'X':
  case 'o':
    return formatted_integer(conversion, arguments);
  default: {
    const char host_letter[] = {conversion.letter, 0};
    return formatted(conversion, host_letter, arguments.next<double>());
  }
  }
}

} // namespace

bool read_string(Warp& warp, unsigned lane, uint64_t address, size_t most, std::string& text, std::string& wrong) {
  text.clear();
  while (text.size() < most) {
    const std::byte* at = resolve(*warp.block, warp, lane, Space::generic, address + text.size(), 1);
    if (!at) {
      if (wrong.empty())
        wrong = fmt::format("the string at {:#x} is not in the kernel's memory, or has no end there", address);
      return false;
    }
    if (*at == std::byte(0)) return true;
    if (text.size() == longest_string) {
      if (wrong.empty()) wrong = fmt::format("the string at {:#x} has more than {} bytes", address, longest_string);
      return false;
    }
    text += static_cast<char>(*at);
  }
  return true;
}

PrintfResult print_formatted(Warp& warp, unsigned lane, uint64_t format_address, uint64_t argument_address) {
  if (format_address == 0) return {-1, {}};
  std::string format;
  PrintfResult result;
  if (!read_string(warp, lane, format_address, SIZE_MAX, format, result.wrong)) return result;
  PrintfArguments arguments(warp, lane, argument_address);
  std::string out;
  for (size_t i = 0; i < format.size() && arguments.wrong.empty(); ++i) {
    if (format[i] != '%') {
      out += format[i];
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == '%') {
      out += format[++i];
      continue;
    }
    const std::optional<Conversion> conversion = conversion_at(std::string_view(format).substr(i + 1), arguments);
    if (!conversion) {
      out += format[i];
      continue;
    }
    out += converted(*conversion, warp, lane, arguments);
    i += conversion->length;
  }
  warp.block->printed.append(out);
  warp.block->take_fuel(format.size() + out.size());
  result.returned = arguments.taken;
  result.wrong = std::move(arguments.wrong);
  return result;
}

} // namespace ptxrewrite::emulator
