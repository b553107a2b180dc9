// vprintf, malloc, free and __assertfail, lane after lane. What is printed appears in block order.
#include "emulator/special/system_calls.h"

#include "emulator/check.h"
#include "emulator/special/address.h"
#include "emulator/special/call_values.h"

#include <fmt/format.h>

#include <bit>
#include <cstdio>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

const CallSite& site_of(const Warp& warp, const MicroOp& op) {
  return warp.activation->function->calls[op.extra];
}

uint64_t argument(const Warp& warp, const CallSite& site, size_t index, unsigned lane) {
  uint64_t value = 0;
  if (index >= site.arguments.size()) return 0;
  const CallValue& from = site.arguments[index];
  const uint32_t bytes = from.lanes ? from.bits / 8u : from.slot.size;
  if (bytes) std::memcpy(&value, bytes_of(warp, from, *warp.activation, lane), std::min<uint32_t>(bytes, 8));
  return value;
}

void set_result(const Warp& warp, const CallSite& site, unsigned lane, uint64_t value) {
  if (site.results.empty()) return;
  const CallValue& to = site.results[0];
  const uint32_t bytes = to.lanes ? to.bits / 8u : to.slot.size;
  if (bytes) std::memcpy(bytes_of(warp, to, *warp.activation, lane), &value, std::min<uint32_t>(bytes, 8));
}

// A zero-terminated string in the kernel's memory; long ones are cut.
std::string read_string(Warp& warp, unsigned lane, uint64_t address) {
  std::string text;
  while (text.size() < 4096) {
    const std::byte* at = resolve(*warp.block, warp, lane, Space::generic, address + text.size(), 1);
    if (!at || *at == std::byte(0)) break;
    text += static_cast<char>(*at);
  }
  return text;
}

// Reads the arguments of printf from the buffer the kernel made: each aligned to its size (CUDA programming guide,
// Formatted Output).
class PrintfArguments {
public:
  PrintfArguments(Warp& warp, unsigned lane, uint64_t address) : warp_(warp), lane_(lane), address_(address) {}
  template <class T> T next() {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (const std::byte* at = resolve(*warp_.block, warp_, lane_, Space::generic, address_ + offset_, sizeof(T)))
      std::memcpy(&value, at, sizeof value);
    offset_ += sizeof(T);
    return value;
  }

private:
  Warp& warp_;
  unsigned lane_;
  uint64_t address_;
  uint64_t offset_ = 0;
};

template <class T> void append_formatted(std::string& out, const std::string& format, T value) {
  char buffer[512];
  const int length = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
  if (length > 0) out.append(buffer, std::min<size_t>(static_cast<size_t>(length), sizeof buffer - 1));
}

// One conversion specification, `%` to its letter, with its value.
void print_conversion(std::string& out, std::string specification, PrintfArguments& arguments, Warp& warp,
                      unsigned lane) {
  const char letter = specification.back();
  const bool is_long = specification.find('l') != std::string::npos || specification.find('j') != std::string::npos ||
                       specification.find('z') != std::string::npos;
  // The host's own length modifiers: every integer is passed as long long.
  std::string format;
  for (char c : specification.substr(0, specification.size() - 1)) {
    if (c == '*')
      format += std::to_string(arguments.next<int32_t>());
    else if (c != 'l' && c != 'h' && c != 'j' && c != 'z')
      format += c;
  }
  switch (letter) {
  case 'd':
  case 'i':
    append_formatted(out, format + "lld",
                     static_cast<long long>(is_long ? arguments.next<int64_t>() : arguments.next<int32_t>()));
    break;
  case 'u':
  case 'x':
  case 'X':
  case 'o':
    append_formatted(
        out, format + "ll" + letter,
        static_cast<unsigned long long>(is_long ? arguments.next<uint64_t>() : arguments.next<uint32_t>()));
    break;
  case 'c':
    append_formatted(out, format + "c", arguments.next<int32_t>());
    break;
  case 'f':
  case 'F':
  case 'e':
  case 'E':
  case 'g':
  case 'G':
  case 'a':
  case 'A':
    append_formatted(out, format + letter, arguments.next<double>());
    break;
  case 'p':
    out += fmt::format("{:#x}", arguments.next<uint64_t>());
    break;
  case 's':
    append_formatted(out, format + "s", read_string(warp, lane, arguments.next<uint64_t>()).c_str());
    break;
  default:
    out += specification;
  }
}

template <class Body> const MicroOp* for_each_lane(Warp& warp, const MicroOp& op, Body&& body) {
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1)
    body(static_cast<unsigned>(std::countr_zero(lanes)));
  return warp.state == WarpState::failed ? nullptr : &op + 1;
}

const MicroOp* call_vprintf(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const std::string format = read_string(warp, lane, argument(warp, site, 0, lane));
    PrintfArguments arguments(warp, lane, argument(warp, site, 1, lane));
    std::string& out = warp.block->printed;
    int conversions = 0;
    for (size_t i = 0; i < format.size(); ++i) {
      if (format[i] != '%') {
        out += format[i];
        continue;
      }
      if (i + 1 < format.size() && format[i + 1] == '%') {
        out += format[++i];
        continue;
      }
      const size_t end = format.find_first_of("diuxXocfFeEgGaAps", i + 1);
      if (end == std::string::npos) break;
      print_conversion(out, format.substr(i, end - i + 1), arguments, warp, lane);
      ++conversions;
      i = end;
    }
    set_result(warp, site, lane, static_cast<uint64_t>(conversions));
  });
}

const MicroOp* call_malloc(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t bytes = argument(warp, site, 0, lane);
    const uint64_t address = warp.block->launch->memory->allocate_on_device(bytes);
    if (address && warp.block->checker) warp.block->checker->allocated(address, bytes);
    set_result(warp, site, lane, address);
  });
}

const MicroOp* call_free(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  return for_each_lane(warp, op, [&](unsigned lane) {
    const uint64_t address = argument(warp, site, 0, lane);
    // Ranges that were remembered may be gone now.
    warp.block->last_global = {};
    std::fill(warp.block->ranges.begin(), warp.block->ranges.end(), MemoryRange{});
    if (!warp.block->launch->memory->release_on_device(address))
      warp.block->fail(warp, op, lane, fmt::format("free of {:#x}, which malloc did not return", address));
  });
}

// __assertfail(message, file, line, function, character size)
const MicroOp* call_assertfail(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  return warp.block->fail(warp, op, lane,
                          fmt::format("{}:{}: {}: assertion `{}' failed",
                                      read_string(warp, lane, argument(warp, site, 1, lane)),
                                      static_cast<uint32_t>(argument(warp, site, 2, lane)),
                                      read_string(warp, lane, argument(warp, site, 3, lane)),
                                      read_string(warp, lane, argument(warp, site, 0, lane))));
}

} // namespace

Handler system_call(std::string_view name) {
  if (name == "vprintf") return &call_vprintf;
  if (name == "malloc") return &call_malloc;
  if (name == "free") return &call_free;
  if (name == "__assertfail") return &call_assertfail;
  return nullptr;
}

} // namespace ptxrewrite::emulator
