// Branches, calls, and exits of threads.
#include "emulator/core/function_end.h"

#include "emulator/core/block.h"
#include "emulator/core/check.h"
#include "emulator/core/decode.h"
#include "emulator/core/lanes.h"
#include "emulator/core/machine.h"
#include "emulator/core/observer.h"
#include "emulator/special/call_values.h"
#include "emulator/special/known_handlers.h"
#include "emulator/special/system_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace ptxrewrite::emulator {
namespace {

// A loop that waits for another thread reads memory in a way that a compiler must not hoist. After this many
// iterations the warp lets other warps run.
constexpr uint32_t spin_patience = 16;

const MicroOp* code_at(const Warp& warp, uint32_t index) {
  return index == UINT32_MAX ? nullptr : warp.activation->function->code.data() + index;
}

const MicroOp* branch(Warp& warp, const MicroOp& op) {
  const auto* target = std::bit_cast<const MicroOp*>(op.immediate);
  if (warp.mask == warp.active) [[likely]]
    return target;
  return warp.diverge(target, &op + 1, code_at(warp, op.auxiliary));
}

const MicroOp* branch_back_spinning(Warp& warp, const MicroOp& op) {
  const MicroOp* next = branch(warp, op);
  if (++warp.patience < spin_patience) return next;
  const Observer* observer = warp.block->launch->request->observer;
  const BlockMachine* machine = warp.block->machine.get();
  if ((machine && machine->keeps_order()) || (observer && observer->keeps_order())) return next;
  return warp.yield(next);
}

// The instruction will be executed, and its guard counted, again for `lanes`: takes them off the counter.
void count_again(Warp& warp, const MicroOp& op, uint32_t lanes) {
  if (op.counts_guard)
    warp.block->counters->guards[op.instruction].lanes -= static_cast<unsigned>(std::popcount(lanes));
}

// brx.idx: lanes with the same index branch together, the group of the lowest lane first.
const MicroOp* branch_indexed(Warp& warp, const MicroOp& op) {
  const std::vector<uint32_t>& table = warp.activation->function->branch_tables[op.extra];
  const uint32_t* indices = warp.lanes<uint32_t>(op.source[0]);
  const auto lane = static_cast<unsigned>(std::countr_zero(warp.mask));
  const uint32_t index = indices[lane];
  if (index >= table.size())
    return warp.block->fail(warp, op, lane, fmt::format("brx.idx with index {} of {} targets", index, table.size()));
  uint32_t same = 0;
  for (unsigned other = lane; other < warp_size; ++other)
    same |= static_cast<uint32_t>(indices[other] == index) << other;
  same &= warp.mask;
  const MicroOp* target = warp.activation->function->code.data() + table[index];
  if (same == warp.active) return target;
  const uint32_t rest = warp.mask & ~same;
  warp.mask = same;
  // The other lanes return to this instruction, or continue after it if their guard is false.
  const MicroOp* others = rest ? &op : &op + 1;
  count_again(warp, op, rest);
  return warp.diverge(target, others, code_at(warp, op.auxiliary));
}

const MicroOp* exit_thread(Warp& warp, const MicroOp& op) {
  return warp.exit_lanes(warp.mask, &op + 1);
}

struct CallSide {
  const std::vector<CallValue>& values;
  const Activation& activation;
};

struct LaneBytes {
  std::byte* first = nullptr; // of lane 0
  uint64_t stride = 0;
};

LaneBytes lane_bytes(const Warp& warp, const CallValue& value, const Activation& activation) {
  std::byte* first = bytes_of(warp, value, activation, 0);
  return {first, static_cast<uint64_t>(bytes_of(warp, value, activation, 1) - first)};
}

// Copies `size` bytes of each lane of `mask`; size is a constant if it is known at compile time.
template <class Size>
[[gnu::always_inline]] inline void copy_lanes(const LaneBytes& from, const LaneBytes& to, uint32_t mask, Size size) {
  for (uint32_t lanes = mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    std::memcpy(to.first + lane * to.stride, from.first + lane * from.stride, size);
  }
}

// Copies arguments or results for the lanes of `mask`: from lane arrays or .param bytes to those of another
// activation. Sizes may differ if an argument is missing or longer than declared; the smaller size is used.
void copy_call_values(Warp& warp, const CallSide& from, const CallSide& to, uint32_t mask) {
  auto bytes = [](const CallValue& value) { return value.lanes ? value.bits / 8u : value.slot.size; };
  for (size_t i = 0; i < std::min(from.values.size(), to.values.size()); ++i) {
    const CallValue &source = from.values[i], &target = to.values[i];
    if (source.bits == 1 && target.bits == 1) {
      uint32_t given = 0, kept = 0;
      std::byte* place = lanes_of(warp, target, to.activation);
      std::memcpy(&given, lanes_of(warp, source, from.activation), sizeof given);
      std::memcpy(&kept, place, sizeof kept);
      kept = (kept & ~mask) | (given & mask);
      std::memcpy(place, &kept, sizeof kept);
      continue;
    }
    const uint32_t size = std::min<uint32_t>(bytes(source), bytes(target));
    if (size == 0) continue;
    const LaneBytes given = lane_bytes(warp, source, from.activation), taken = lane_bytes(warp, target, to.activation);
    // Bytes of a slot beyond its size are unused.
    const bool are_alike = given.stride == taken.stride && bytes(source) == bytes(target);
    if (mask == full_mask && are_alike && !source.slot.in_local && !target.slot.in_local)
      std::memcpy(taken.first, given.first, given.stride * warp_size);
    else if (size == 4)
      copy_lanes(given, taken, mask, std::integral_constant<size_t, 4>());
    else if (size == 8)
      copy_lanes(given, taken, mask, std::integral_constant<size_t, 8>());
    else
      copy_lanes(given, taken, mask, size_t(size));
    if (target.slot.in_local && warp.block->checker)
      warp.block->checker->local_written(warp, mask, to.activation.local_offset + target.slot.offset, size);
  }
}

const CallSite& site_of(const Warp& warp, const MicroOp& op) {
  return warp.activation->function->calls[op.extra];
}

const MicroOp* enter_function(Warp& warp, const MicroOp& op, const CallSite& site, const DecodedFunction& callee,
                              uint32_t lanes) {
  Activation* caller = warp.activation;
  Activation* activation = warp.block->new_activation(warp, callee);
  if (!activation)
    return warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(lanes)), warp.block->call_failure(callee));
  copy_call_values(warp, {site.arguments, *caller}, {callee.parameters, *activation}, lanes);
  // Lanes that do not call have arrived already at the place after the call.
  const uint32_t here =
      warp.new_meeting({&op + 1, caller, activation, warp.active, warp.active & ~lanes, warp.meeting, true});
  warp.resume({callee.code.data(), activation, lanes, here, SplitState::runnable, 0});
  return callee.code.data();
}

const MicroOp* call_function(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  return enter_function(warp, op, site, *site.callee, warp.mask);
}

// Lanes with the same target call together; the other lanes return to this instruction.
const MicroOp* call_indirect(Warp& warp, const MicroOp& op) {
  const CallSite& site = site_of(warp, op);
  const uint64_t* targets = warp.lanes<uint64_t>(site.target);
  const auto first = static_cast<unsigned>(std::countr_zero(warp.mask));
  const DecodedFunction* callee = nullptr;
  for (const auto& candidate : warp.block->image->functions)
    if (candidate->address == targets[first]) callee = candidate.get();
  if (!callee)
    return warp.block->fail(warp, op, first, fmt::format("call of {:#x}, which is no function", targets[first]));
  if (callee->parameters.size() != site.arguments.size())
    return warp.block->fail(warp, op, first,
                            fmt::format("call of '{}' with {} arguments; it has {}",
                                        warp.block->image->module->text(callee->source->name), site.arguments.size(),
                                        callee->parameters.size()));
  uint32_t same = 0;
  for (unsigned lane = first; lane < warp_size; ++lane)
    same |= static_cast<uint32_t>(targets[lane] == targets[first]) << lane;
  same &= warp.mask;
  if (same != warp.active) {
    const bool waiting_here = warp.meeting != no_meeting && warp.meetings[warp.meeting].at == &op + 1 &&
                              warp.meetings[warp.meeting].activation == warp.activation &&
                              !warp.meetings[warp.meeting].callee;
    if (!waiting_here)
      warp.meeting = warp.new_meeting({&op + 1, warp.activation, nullptr, warp.active, 0, warp.meeting, true});
    warp.meetings[warp.meeting].arrived |= warp.active & ~warp.mask;
    const uint32_t others = warp.mask & ~same;
    count_again(warp, op, others);
    if (others) warp.splits.push_back({&op, warp.activation, others, warp.meeting, SplitState::runnable, 0});
    warp.active = same;
  }
  return enter_function(warp, op, site, *callee, same);
}

} // namespace

bool is_plain_branch(const MicroOp& op) {
  return op.handler == &branch;
}

const MicroOp* return_from_call(Warp& warp, const MicroOp& op) {
  const uint32_t leaving = warp.mask;
  uint32_t place = 0;
  while (place < warp.meetings.size() &&
         !(warp.meetings[place].in_use && warp.meetings[place].callee == warp.activation))
    ++place;
  if (place == warp.meetings.size()) return warp.exit_lanes(leaving, &op + 1); // ret in an entry ends the thread
  Activation* callee = warp.activation;
  const CallSite& site = warp.meetings[place].activation->function->calls[(warp.meetings[place].at - 1)->extra];
  copy_call_values(warp, {callee->function->results, *callee}, {site.results, *warp.meetings[place].activation},
                   leaving);
  warp.active &= ~leaving;
  warp.remove_from_meetings(leaving, callee);
  Meeting& meeting = warp.meetings[place];
  meeting.arrived |= leaving;
  if (meeting.arrived == meeting.expected) {
    meeting.in_use = false;
    const Split caller{meeting.at, meeting.activation, meeting.expected, meeting.parent, SplitState::runnable, 0};
    warp.block->end_activation(warp, callee);
    warp.resume(caller);
    return caller.next;
  }
  return warp.active ? &op + 1 : warp.next_split();
}

namespace {

const MicroOp* trap(Warp& warp, const MicroOp& op) {
  return warp.block->fail(warp, op, static_cast<unsigned>(std::countr_zero(warp.mask)), "the kernel executed a trap",
                          FaultKind::trap);
}

const MicroOp* nothing(Warp&, const MicroOp& op) {
  return &op + 1;
}

const MicroOp* fence(Warp& warp, const MicroOp& op) {
  if (warp.block->checker) warp.block->checker->fence(warp);
  return &op + 1;
}

const MicroOp* fence_of_proxies(Warp& warp, const MicroOp& op) {
  if (warp.block->checker) warp.block->checker->proxy_fence(warp);
  return fence(warp, op);
}

// --- decoding ---

// May a thread iterate in the loop that this block closes until another thread writes to memory?
bool may_spin(const ir::Function& function, ir::BlockId from, ir::BlockId target) {
  // Everything in the text between the target and the branch: loops are contiguous in compiled code, and a mistake only
  // costs a few turns of the scheduler.
  bool inside = false;
  for (ir::BlockId block : function.layout) {
    inside |= block == target;
    if (inside)
      for (ir::InstructionId id : function.instructions_in(block)) {
        if (function.instructions[id].kind != ir::InstructionKind::real) continue;
        const ir::Effects& effects = function.form_of(id).effects;
        const ir::Opcode opcode = function.form_of(id).opcode;
        if (effects.atomic || (effects.reads_memory && effects.volatile_result) || effects.call ||
            opcode == ir::Opcode::nanosleep || opcode == ir::Opcode::mbarrier)
          return true;
      }
    if (block == from) break;
  }
  return false;
}

bool is_backward(const ir::Function& function, ir::BlockId from, ir::BlockId target) {
  for (ir::BlockId block : function.layout) {
    if (block == target) return true;
    if (block == from) return false;
  }
  return false;
}

void decode_bra(Decoder& decoder, ir::InstructionId id) {
  const ir::BlockId target = decoder.operands()[decoder.top_level(0)].as_block();
  const ir::BlockId from = decoder.function().instructions[id].block;
  const bool spins = is_backward(decoder.function(), from, target) && may_spin(decoder.function(), from, target);
  MicroOp& op = decoder.emit(spins ? &branch_back_spinning : &branch);
  decoder.branch_to(op, target);
  decoder.meet_behind_block(op);
}

void decode_brx(Decoder& decoder, ir::InstructionId) {
  const LaneRef index = decoder.source(decoder.operands()[0], lanes_of_bits(32));
  const ir::Operand& table = decoder.operands()[decoder.top_level(1)];
  if (!table.is(ir::OperandKind::label_table)) return decoder.unsupported("brx.idx without a table of targets");
  std::vector<uint32_t> blocks;
  const ir::Function& function = decoder.function();
  for (const ir::Operand& target : function.operands.view(function.label_tables[ir::LabelTableId(table.id)].operands))
    blocks.push_back(target.as_block().index());
  decoder.output().branch_tables.push_back(std::move(blocks));
  MicroOp& op = decoder.emit(&branch_indexed);
  op.source[0] = index;
  op.extra = static_cast<uint32_t>(decoder.output().branch_tables.size() - 1);
  decoder.meet_behind_block(op);
}

void decode_exit(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&exit_thread);
  decoder.end_region(false);
}

void decode_ret(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&return_from_call);
  decoder.end_region(false);
}

void decode_trap(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&trap);
}

void decode_fence(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const bool orders_shared =
      form.has(ir::Modifier::proxy) && form.has(ir::Modifier::async) && form.space != ir::StateSpace::global;
  decoder.emit(orders_shared ? &fence_of_proxies : &fence);
}

void decode_nothing(Decoder& decoder, ir::InstructionId) {
  decoder.emit(&nothing);
}

// A parameter or result as declared by the called function, or by the prototype of an indirect call.
struct Formal {
  ir::ScalarType type = ir::ScalarType::b64;
  unsigned width = 1; // elements of a vector
};
struct Formals {
  std::vector<Formal> parameters, results;
};

Formals formals_of(Decoder& decoder) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const ir::Function* owner = nullptr;
  ir::Prototype signature;
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i)) {
    if (operands[i].is(ir::OperandKind::prototype)) {
      owner = &decoder.function();
      signature = owner->prototypes[ir::PrototypeId(operands[i].id)];
    } else if (operands[i].is(ir::OperandKind::symbol) &&
               operands[i].as_symbol().kind() == ir::SymbolRef::Kind::function) {
      owner = &decoder.module().function(operands[i].as_symbol().function());
      signature = owner->signature;
    }
  }
  auto list = [&](PoolSpan variables) {
    std::vector<Formal> formals;
    if (owner)
      for (ir::VariableId id : owner->variable_lists.view(variables))
        formals.push_back({owner->variables[id].type, std::max<unsigned>(owner->variables[id].vector_width, 1)});
    return formals;
  };
  return {list(signature.parameters), list(signature.results)};
}

// One argument or result.
CallValue call_value(Decoder& decoder, const ir::Operand& operand, ir::ScalarType type) {
  CallValue value;
  switch (operand.kind) {
  case ir::OperandKind::symbol:
    if (const ParameterSlot* slot = decoder.slot(operand.as_symbol()))
      value.slot = *slot;
    else
      decoder.unsupported("an argument that is no .param variable of this function");
    break;
  case ir::OperandKind::value:
    value.lanes = decoder.register_lanes(operand);
    value.bits = static_cast<uint8_t>(decoder.register_bits(operand.as_value()));
    break;
  default: // a constant has the type of the parameter
    value.bits = static_cast<uint8_t>(lane_bits(type));
    value.lanes =
        decoder.source(operand, {ir::is_float(type) ? LaneKind::floating : LaneKind::unsigned_integer, value.bits});
    break;
  }
  return value;
}

std::vector<CallValue> call_values(Decoder& decoder, size_t list, const std::vector<Formal>& formals) {
  std::vector<CallValue> values;
  const std::span<const ir::Operand> operands = decoder.operands();
  const size_t past = ir::next_sibling(operands, list);
  for (size_t i = list + 1, index = 0; i < past; i = ir::next_sibling(operands, i), ++index) {
    const Formal formal = index < formals.size() ? formals[index] : Formal();
    // `_` for a vector skips each of its elements.
    if (operands[i].is(ir::OperandKind::sink)) values.resize(values.size() + formal.width);
    const size_t first = operands[i].is(ir::OperandKind::vector) ? i + 1 : i;
    for (size_t j = first; j < ir::next_sibling(operands, i); j = ir::next_sibling(operands, j))
      if (!operands[i].is(ir::OperandKind::sink)) values.push_back(call_value(decoder, operands[j], formal.type));
  }
  return values;
}

void decode_call(Decoder& decoder, ir::InstructionId) {
  const std::span<const ir::Operand> operands = decoder.operands();
  CallSite site;
  const Formals formals = formals_of(decoder);
  decoder.takes_more_than_sources();
  size_t position = 0;
  if (operands[position].is(ir::OperandKind::list)) {
    site.results = call_values(decoder, position, formals.results);
    position = ir::next_sibling(operands, position);
  }
  const ir::Operand& target = operands[position];
  position = ir::next_sibling(operands, position);
  if (position < operands.size() && operands[position].is(ir::OperandKind::list))
    site.arguments = call_values(decoder, position, formals.parameters);
  auto emit_call = [&](Handler handler) {
    decoder.output().calls.push_back(std::move(site));
    decoder.emit(handler).extra = static_cast<uint32_t>(decoder.output().calls.size() - 1);
  };
  decoder.image().has_calls = true;
  if (target.is(ir::OperandKind::symbol)) {
    const std::string name = decoder.symbol_name(target.as_symbol());
    if (Handler system = system_call(name)) {
      if (name == "malloc" || name == "free") decoder.order_sensitive();
      decoder.image().uses_heap |= name == "malloc";
      return emit_call(system);
    }
    ir::FunctionId callee;
    if (target.as_symbol().kind() == ir::SymbolRef::Kind::function)
      callee = definition_of(decoder.module(), target.as_symbol().function());
    if (!callee || !decoder.module().function(callee).has_body)
      return decoder.unsupported(fmt::format("'{}' is declared, but has no body here", name));
    site.callee_id = callee;
    emit_call(&call_function);
    return decoder.end_region(false);
  }
  site.target = decoder.source(target, lanes_of_bits(64));
  emit_call(&call_indirect);
  decoder.end_region(true);
}

} // namespace

void add_control_operations(OperationTable& table) {
  table.special("bra*", &decode_bra);
  table.special("brx*", &decode_brx);
  table.special("call*", &decode_call);
  table.special("ret*", &decode_ret);
  table.special("exit*", &decode_exit);
  table.special("trap*", &decode_trap);
  table.special("brkpt*", &decode_trap);
  table.special("nanosleep*", &decode_nothing);
  table.special("pmevent*", &decode_nothing);
  table.special("prefetch*", &decode_nothing);
  table.special("prefetchu*", &decode_nothing);
  table.special("applypriority*", &decode_nothing);
  table.special("discard*", &decode_nothing);
  table.special("fence*", &decode_fence);
  table.special("membar*", &decode_fence);
  table.special("griddepcontrol*", &decode_nothing);
}

} // namespace ptxrewrite::emulator
