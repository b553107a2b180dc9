// vprintf, malloc, free and __assertfail, executed lane by lane. Printed text appears in the order of the blocks.
#include "emulator/special/system_calls.h"

#include "emulator/core/check.h"
#include "emulator/special/call_values.h"
#include "emulator/special/printf.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

const CallSite& site_of(const Warp& warp, const MicroOp& op) {
  return warp.activation->function->calls[op.extra];
}

// Returns the low 64 bits of an argument.
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

template <class Body> const MicroOp* for_each_lane(Warp& warp, const MicroOp& op, Body&& body) {
  for (uint32_t lanes = warp.mask; lanes && warp.state != WarpState::failed; lanes &= lanes - 1)
    body(static_cast<unsigned>(std::countr_zero(lanes)));
  return warp.state == WarpState::failed ? nullptr : &op + 1;
}

const MicroOp* call_vprintf(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  return for_each_lane(warp, op, [&](unsigned lane) {
    PrintfResult result = print_formatted(warp, lane, argument(warp, site, 0, lane), argument(warp, site, 1, lane));
    if (!result.wrong.empty()) warp.block->fail(warp, op, lane, std::move(result.wrong));
    set_result(warp, site, lane, static_cast<uint64_t>(int64_t{result.returned}));
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
    // Cached ranges may be invalid now.
    warp.block->last_global = {};
    for (AccessSite& access : warp.block->sites)
      access.range = {};
    if (!warp.block->launch->memory->release_on_device(address))
      warp.block->fail(warp, op, lane, fmt::format("free of {:#x}, which malloc did not return", address));
  });
}

// __assertfail(message, file, line, function, character size)
const MicroOp* call_assertfail(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  const auto text = [&](size_t index) {
    std::string string, wrong;
    return read_string(warp, lane, argument(warp, site, index, lane), SIZE_MAX, string, wrong) ? string : "?";
  };
  return warp.block->fail(warp, op, lane,
                          fmt::format("{}:{}: {}: assertion `{}' failed", text(1),
                                      static_cast<uint32_t>(argument(warp, site, 2, lane)), text(3), text(0)),
                          FaultKind::assertion);
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
