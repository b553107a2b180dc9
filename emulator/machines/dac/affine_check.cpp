#include "emulator/machines/dac/affine_check.h"

#include "ir/flow/cfg.h"
#include "ir/forms/dac.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15;
  return hash ^ (hash >> 31);
}

uint64_t hash_of(uint32_t lanes, const std::array<uint64_t, warp_size>& values) {
  uint64_t hash = mixed(0x2545f4914f6cdd1d, lanes);
  for (; lanes; lanes &= lanes - 1)
    hash = mixed(hash, values[static_cast<unsigned>(std::countr_zero(lanes))]);
  return hash;
}

constexpr std::string_view name_of(CheckedKind kind) {
  return kind == CheckedKind::address ? "address" : kind == CheckedKind::predicate ? "predicate" : "datum";
}

constexpr uint64_t key_of(uint32_t site, CheckedKind kind) {
  return uint64_t(site) << 8 | static_cast<uint64_t>(kind);
}

// The instructions of a function in the order of the text, without mov and bra, which are added and removed when a
// kernel leaves SSA form, and without unreachable code, which SSA form does not have.
std::vector<ir::InstructionId> numbered_instructions(const ir::Function& function) {
  const ir::ControlFlow flow(function);
  std::vector<ir::InstructionId> list;
  for (ir::BlockId block : function.layout) {
    if (!flow.reachable(block)) continue;
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real && !function.is_opcode(id, ir::Opcode::mov) &&
          !function.is_opcode(id, ir::Opcode::bra))
        list.push_back(id);
  }
  return list;
}

bool has_address(const ir::Function& function, ir::InstructionId id) {
  const ir::Effects& effects = function.form_of(id).effects;
  for (const ir::Operand& operand : function.operands_of(id))
    if (operand.is(ir::OperandKind::address)) return effects.reads_memory || effects.writes_memory || effects.atomic;
  return false;
}

bool writes_predicate(const ir::Function& function, ir::InstructionId id) {
  bool found = false;
  ir::for_each_definition(function, id,
                          [&](ir::ValueId value) { found |= function.values[value].type == ir::ScalarType::pred; });
  return found;
}

// Addresses of a memory instruction: base plus constant offset, wrapping at the width of the base.
std::array<uint64_t, warp_size> addresses_of(const Warp& warp, const MicroOp& op, const InstructionLanes& operands) {
  std::array<uint64_t, warp_size> addresses{};
  const auto offset = static_cast<uint64_t>(op.immediate);
  unsigned bits = 64;
  for (const OperandLanes& source : operands.sources)
    if (op.source[0].valid() && source.lanes == op.source[0]) bits = source.bits;
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    if (!op.source[0].valid())
      addresses[lane] = offset;
    else if (bits == 32)
      addresses[lane] = static_cast<uint32_t>(warp.lanes<uint32_t>(op.source[0])[lane] + offset);
    else
      addresses[lane] = warp.lanes<uint64_t>(op.source[0])[lane] + offset;
  }
  return addresses;
}

} // namespace

Result<std::unique_ptr<AffineCheck>> AffineCheck::make(const KernelImage& original, const KernelImage& body,
                                                       const AffineProgram& program, const Dimensions& block,
                                                       bool data) {
  auto check = std::make_unique<AffineCheck>();
  check->original_ = &original;
  check->shape_ = block;
  check->warps_ = static_cast<uint32_t>((block.count() + warp_size - 1) / warp_size);
  check->data_ = data && !original.order_sensitive;
  const DecodedFunction& entry = *original.functions.front();
  const std::vector<ir::InstructionId> order = numbered_instructions(*entry.source);
  for (const AffineInstruction& instruction : program.instructions()) {
    if (instruction.action != AffineAction::enqueue) continue;
    const bool is_predicate = instruction.tuple == TupleKind::predicate;
    const bool fits =
        instruction.site < order.size() && (is_predicate ? writes_predicate(*entry.source, order[instruction.site])
                                                         : has_address(*entry.source, order[instruction.site]));
    if (!fits)
      return Error{fmt::format("queue number {} cannot be checked: instruction {} of the original kernel is no {}",
                               instruction.site, instruction.site, is_predicate ? "comparison" : "access of memory"),
                   program.source().instructions[instruction.id].range};
    const ir::InstructionId id = order[instruction.site];
    check->instruction_of_[instruction.site] = id;
    if (check->data_ && instruction.tuple == TupleKind::data) check->data_sites_.insert(instruction.site);
    check->site_of_original_[entry.first_instruction + id.index()] = instruction.site;
  }
  const DecodedFunction& kernel = *body.functions.front();
  for (const ir::Crossing& crossing : ir::crossings(*kernel.source))
    if (crossing.kind == ir::CrossingKind::data && !crossing.sends)
      check->site_of_load_[kernel.first_instruction + crossing.instruction.index()] = crossing.number;
  return check;
}

void AffineCheck::before(Block&, Warp& warp, const MicroOp& op) {
  const auto found = site_of_original_.find(op.instruction);
  if (found == site_of_original_.end()) return;
  const DecodedFunction& entry = *original_->functions.front();
  const ir::InstructionId id = instruction_of_.at(found->second);
  if (has_address(*entry.source, id))
    record(warp, found->second, CheckedKind::address, warp.mask, addresses_of(warp, op, entry.lanes_of[id.index()]));
}

void AffineCheck::after(Block&, Warp& warp, const MicroOp& op, uint32_t mask) {
  const auto found = site_of_original_.find(op.instruction);
  if (found == site_of_original_.end()) return;
  const DecodedFunction& entry = *original_->functions.front();
  const ir::InstructionId id = instruction_of_.at(found->second);
  if (!has_address(*entry.source, id)) {
    Lanes bits{};
    const uint32_t predicate = warp.predicate(entry.lanes_of[id.index()].results.front().lanes);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      bits[lane] = predicate >> lane & 1;
    record(warp, found->second, CheckedKind::predicate, mask, bits);
  } else if (data_sites_.contains(found->second)) {
    record(warp, found->second, CheckedKind::datum, mask, results_of(warp, op));
  }
}

AffineCheck::Lanes AffineCheck::results_of(const Warp& warp, const MicroOp& op) const {
  const DecodedFunction& function = *warp.activation->function;
  Lanes values{};
  for (const OperandLanes& result : function.lanes_of[op.instruction - function.first_instruction].results)
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const unsigned bytes = result.bits / 8;
      for (unsigned at = 0; at < bytes; at += 8) {
        uint64_t part = 0;
        std::memcpy(&part, warp.lanes<std::byte>(result.lanes) + lane * bytes + at, std::min(bytes - at, 8u));
        values[lane] = values[lane] == 0 ? part : mixed(values[lane], part);
      }
    }
  return values;
}

void AffineCheck::record(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes, const Lanes& values) {
  const uint64_t number = number_of(warp);
  if (!looks_again_) {
    events_[number].push_back({hash_of(lanes, values), site, kind});
    return;
  }
  const size_t event = recorded_[number]++;
  if (difference_ && number == difference_->warp && event == difference_->event)
    difference_->original = {lanes, values};
}

std::string AffineCheck::compare(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes,
                                 const Lanes& values) {
  ++checked_;
  const uint64_t number = number_of(warp);
  const std::vector<Event>& events = events_[number];
  size_t& next = next_[number][key_of(site, kind)];
  while (next < events.size() && (events[next].site != site || events[next].kind != kind))
    ++next;
  if (next == events.size())
    return fmt::format("the original kernel does not execute {} so often in this warp", place_of(site));
  if (events[next++].hash == hash_of(lanes, values)) return {};
  difference_ = Difference{number, next - 1, kind, site, lanes, values, {}};
  return fmt::format("not the {} that the original kernel has at {}", name_of(kind), place_of(site));
}

std::string AffineCheck::check_addresses(const Warp& warp, uint32_t site, uint32_t lanes,
                                         std::span<const uint64_t, warp_size> addresses) {
  Lanes values;
  std::copy(addresses.begin(), addresses.end(), values.begin());
  return compare(warp, site, CheckedKind::address, lanes, values);
}

std::string AffineCheck::check_predicate(const Warp& warp, uint32_t site, uint32_t lanes, uint32_t bits) {
  Lanes values{};
  for (unsigned lane = 0; lane < warp_size; ++lane)
    values[lane] = bits >> lane & 1;
  return compare(warp, site, CheckedKind::predicate, lanes, values);
}

std::string AffineCheck::check_datum(const Warp& warp, const MicroOp& op, uint32_t mask) {
  return compare(warp, site_of_load_.at(op.instruction), CheckedKind::datum, mask, results_of(warp, op));
}

std::string AffineCheck::check_block(const Block& block) {
  for (uint32_t warp = 0; warp < warps_; ++warp) {
    const uint64_t number = block.linear * warps_ + warp;
    const std::vector<Event>& events = events_[number];
    for (size_t i = 0; i < events.size(); ++i) {
      const auto next = next_[number].find(key_of(events[i].site, events[i].kind));
      if (next == next_[number].end() || next->second <= i)
        return fmt::format("warp {} of block {} takes the {} of {} less often than the original kernel executes it",
                           warp, block.linear, name_of(events[i].kind), place_of(events[i].site));
    }
    events_.erase(number);
    next_.erase(number);
  }
  return {};
}

std::string AffineCheck::place_of(uint32_t site) const {
  const ir::Function& function = *original_->functions.front()->source;
  const ir::InstructionId id = instruction_of_.at(site);
  const SourceRange range = function.instructions[id].range;
  const std::string_view mnemonic = function.form_of(id).mnemonic;
  if (range.empty()) return fmt::format("instruction {} ('{}')", site, mnemonic);
  return fmt::format("line {} ('{}', queue number {})", original_->module->source.locate(range.begin).line, mnemonic,
                     site);
}

void AffineCheck::look_again() {
  looks_again_ = true;
  recorded_.clear();
}

void AffineCheck::explain(Failure& failure) const {
  if (!difference_ || !difference_->original) return;
  const auto& [lanes, values] = *difference_->original;
  unsigned lane = static_cast<unsigned>(std::countr_zero(difference_->lanes));
  const uint32_t unequal = lanes ^ difference_->lanes;
  for (unsigned i = 0; i < warp_size; ++i) {
    const bool same = !(unequal >> i & 1) && (!(lanes >> i & 1) || values[i] == difference_->here[i]);
    if (same) continue;
    lane = i;
    break;
  }
  if (unequal >> lane & 1)
    failure.message += fmt::format(": only one of both kernels executes it in lane {}", lane);
  else
    failure.message +=
        fmt::format(": {:#x} in the place of {:#x} in lane {}", difference_->here[lane], values[lane], lane);
  const uint32_t thread = static_cast<uint32_t>(difference_->warp % warps_) * warp_size + lane;
  failure.thread = {thread % shape_.x, thread / shape_.x % shape_.y, thread / shape_.x / shape_.y};
}

} // namespace ptxrewrite::emulator
