// setmaxnreg: warps hand registers back to their block's share of the register file, or wait for some (PTX
// ISA 9.7.19.5).
//
// The share is the registers of the block at launch. The kernel's directives, .maxnreg or the number of threads and
// blocks of an SM, are its upper bound: ptxas may give threads fewer. Without them the bound is unknown, and the
// instruction has no effect (ptxas ignores it too). Registers of warps that have ended are free.
#include "emulator/core/block.h"
#include "emulator/core/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <numeric>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t registers_of_multiprocessor = 65536, granule = 8, most_of_thread = 256;
constexpr uint64_t most_threads = 1024; // of a block
constexpr uint32_t exact = 0x80000000;  // in Block::warp_registers: set by the instruction, no upper bound

// The most registers of a thread at launch; 0: unknown.
uint32_t registers_at_launch(const ir::Function& kernel) {
  uint64_t threads = 0, blocks = 1;
  for (const ir::FunctionDirective& directive : kernel.directives) {
    const std::string_view name = kernel.module().text(directive.name);
    if (directive.count == 0) continue;
    if (name == ".maxnreg") return std::min((directive.numbers[0] + granule - 1) / granule * granule, most_of_thread);
    if (name == ".minnctapersm") blocks = std::max(directive.numbers[0], 1u);
    if (name == ".maxntid" || name == ".reqntid")
      threads = std::accumulate(directive.numbers.begin(), directive.numbers.begin() + directive.count, uint64_t(1),
                                [](uint64_t product, uint32_t number) { return product * number; });
  }
  if (threads == 0 || threads > most_threads) return 0;
  const uint64_t whole_warps = (threads + warp_size - 1) / warp_size * warp_size;
  const auto each = static_cast<uint32_t>(registers_of_multiprocessor / (whole_warps * blocks));
  return std::min(each / granule * granule, most_of_thread);
}

// Registers, counted by threads of one lane, that the block's other warps hold.
uint64_t taken_by_others(const Block& block, const Warp& warp) {
  uint64_t taken = 0;
  for (const Warp& other : block.warps) {
    const bool has_ended = block.has_started(other) && other.state == WarpState::finished;
    if (&other != &warp && !has_ended) taken += block.warp_registers[other.index] & ~exact;
  }
  return taken;
}

// op.immediate: registers of a thread from now on; op.flags: nonzero for .inc.
const MicroOp* set_registers(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  const uint64_t at_launch = registers_at_launch(*block.image->functions.front()->source);
  if (block.warp_registers.empty()) block.warp_registers.assign(block.warps.size(), static_cast<uint32_t>(at_launch));
  const auto wanted = static_cast<uint32_t>(op.immediate);
  uint32_t& state = block.warp_registers[warp.index];
  const uint32_t own = state & ~exact;
  if (own == 0) return &op + 1;
  const auto first = static_cast<unsigned>(std::countr_zero(warp.active));
  if (op.flags ? (state & exact) && wanted < own : wanted > own)
    return block.fail(
        warp, op, first,
        fmt::format("setmaxnreg.{} to {} registers by a warp that has {}", op.flags ? "inc" : "dec", wanted, own));
  if (taken_by_others(block, warp) + wanted > at_launch * block.warps.size()) return warp.yield(&op);
  state = wanted | exact;
  return &op + 1;
}

void decode_set_registers(Decoder& decoder, ir::InstructionId) {
  const int64_t wanted = decoder.operands()[0].immediate;
  MicroOp& op = decoder.emit(&set_registers);
  op.immediate = wanted;
  op.flags = decoder.form().has(ir::Modifier::inc) ? 1 : 0;
}

} // namespace

void add_register_pool_operations(OperationTable& table) {
  table.special("setmaxnreg*", &decode_set_registers);
}

} // namespace ptxrewrite::emulator
