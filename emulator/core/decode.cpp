// Decodes one function: places its registers and variables, decodes its operations in order, then resolves branches.
#include "emulator/core/decode.h"

#include "emulator/core/engine.h"
#include "emulator/core/fuel.h"
#include "emulator/core/function_end.h"
#include "emulator/core/resize.h"
#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/flow/liveness.h"
#include "support/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace ptxrewrite::emulator {
namespace {

// Limit for one thread's variables, and for the parameters of its calls (CUDA programming guide, Technical
// Specifications per Compute Capability).
constexpr uint64_t largest_local_memory = uint64_t(512) << 10;
// Registers and call parameters of a function's activation; a LaneRef has 32 bits.
constexpr uint64_t largest_frame = uint64_t(1) << 30;

// Counts the region and takes its instructions off the fuel.
const MicroOp* enter_region(Warp& warp, const MicroOp& op) {
  Block& block = *warp.block;
  RegionCounter& counter = block.counters->regions[op.extra];
  ++counter.executions;
  counter.lanes += static_cast<unsigned>(std::popcount(warp.active));
  block.clock += op.auxiliary;
  block.fuel -= static_cast<int64_t>(op.auxiliary);
  if (block.fuel < 0) [[unlikely]]
    return run_out_of_fuel(warp, op);
  return &op + 1;
}

// enter_region() at a place where diverged lanes may reconverge.
const MicroOp* enter_meeting_region(Warp& warp, const MicroOp& op) {
  if (warp.meeting != no_meeting) {
    const Meeting& meeting = warp.meetings[warp.meeting];
    if (meeting.at == &op && meeting.activation == warp.activation) return warp.arrive(&op);
  }
  return enter_region(warp, op);
}

// A function without a final `ret` returns at its end, as ptxas has it.
const MicroOp* end_of_function(Warp& warp, const MicroOp& op) {
  warp.mask = warp.active;
  return return_from_call(warp, op);
}

// Returns the parameters and results of a device function whose address is taken: these are in local memory, and the
// address is one of local memory (PTX ISA 5.1.6.2).
std::vector<ir::VariableId> addressed_parameters(const ir::Function& function) {
  std::vector<ir::VariableId> addressed;
  if (function.is_entry) return addressed;
  std::vector<bool> is_parameter(function.variables.size(), false);
  for (PoolSpan span : {function.signature.parameters, function.signature.results})
    for (ir::VariableId id : function.variable_lists.view(span))
      is_parameter[id.index()] = !function.variables[id].register_parameter;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real) continue;
      const std::span<const ir::Operand> operands = function.operands_of(id);
      for (size_t i = 0; i < operands.size(); ++i) {
        // A name within an address, or an argument that a call passes on: this takes no address.
        if (operands[i].is(ir::OperandKind::address) || operands[i].is(ir::OperandKind::list))
          i = ir::next_sibling(operands, i) - 1;
        else if (operands[i].is(ir::OperandKind::symbol) &&
                 operands[i].as_symbol().kind() == ir::SymbolRef::Kind::local_variable &&
                 is_parameter[operands[i].as_symbol().variable().index()]) {
          addressed.push_back(operands[i].as_symbol().variable());
          is_parameter[addressed.back().index()] = false;
        }
      }
    }
  return addressed;
}

} // namespace

bool is_end_of_function(const MicroOp& op) {
  return op.handler == &end_of_function;
}

bool is_region_entry(const MicroOp& op) {
  return op.handler == &enter_region || op.handler == &enter_meeting_region;
}

bool is_meeting_place(const MicroOp& op) {
  return op.handler == &enter_meeting_region;
}

unsigned lane_bits(ir::ScalarType type) {
  const unsigned bits = ir::bit_width(type);
  if (bits <= 1) return 1;
  if (bits <= 8) return 8;
  return std::bit_ceil(bits);
}

uint64_t variable_alignment(const ir::Variable& variable) {
  const uint64_t natural = uint64_t(ir::byte_width(variable.type)) * std::max<unsigned>(variable.vector_width, 1);
  return std::max<uint64_t>({variable.alignment, std::bit_ceil(std::max<uint64_t>(natural, 1)), 1});
}

uint64_t variable_bytes(const ir::Variable& variable, std::span<const uint64_t> dimensions) {
  uint64_t bytes = uint64_t(ir::byte_width(variable.type)) * std::max<unsigned>(variable.vector_width, 1);
  if (variable.is_array)
    for (uint64_t dimension : dimensions)
      bytes = saturating_multiply(bytes, dimension);
  return variable.unsized ? 0 : bytes;
}

LaneRef ConstantPool::get(uint64_t value, unsigned bits, uint64_t high) {
  if (bits < 64 && bits > 1) value &= (uint64_t(1) << bits) - 1;
  auto [place, added] = known_.try_emplace({bits, value, high});
  if (!added) return place->second;
  if (storage_.size() * sizeof(Line) >= largest_frame) {
    is_full_ = true;
    return place->second = LaneRef(LaneBase::constants, 0);
  }
  const uint32_t offset = static_cast<uint32_t>(storage_.size() * sizeof(Line));
  storage_.resize(storage_.size() + lane_array_size(bits) / sizeof(Line));
  std::byte* lanes = data() + offset;
  if (bits == 1) {
    const uint32_t mask = value ? full_mask : 0;
    std::memcpy(lanes, &mask, sizeof mask);
  } else if (bits == 128) {
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      std::memcpy(lanes + lane * 16, &value, 8);
      std::memcpy(lanes + lane * 16 + 8, &high, 8);
    }
  } else {
    for (unsigned lane = 0; lane < warp_size; ++lane)
      std::memcpy(lanes + lane * (bits / 8), &value, bits / 8);
  }
  return place->second = LaneRef(LaneBase::constants, offset);
}

const DecodedFunction& KernelImage::function_of(uint32_t instruction) const {
  for (size_t i = functions.size(); i-- > 0;)
    if (functions[i]->first_instruction <= instruction) return *functions[i];
  return *functions.front();
}

std::optional<uint64_t> KernelImage::shared_offset(const ir::Function& function, ir::SymbolRef symbol) const {
  const bool of_function = symbol.kind() == ir::SymbolRef::Kind::local_variable;
  auto found = shared_offsets.find({of_function ? &function : nullptr, symbol.variable().index()});
  if (found == shared_offsets.end()) return std::nullopt;
  return found->second;
}

Decoder::Decoder(KernelImage& image, DecodedFunction& output, const ModulePlaces& places)
    : image_(image), output_(output), places_(places), function_(*output.source), registers_(function_.values.size()),
      read_(function_.values.size(), false), is_meeting_block_(function_.blocks.size(), false),
      meeting_of_(function_.blocks.size()), block_start_(function_.blocks.size(), UINT32_MAX) {
  for (const MachineModel* machine : machines())
    if (std::unique_ptr<FormDecoder> form = machine->form_decoder()) forms_.emplace_back(machine, std::move(form));
}

FormDecoder* Decoder::form_decoder(const MachineModel& machine) const {
  for (const auto& [model, form] : forms_)
    if (model == &machine) return form.get();
  return nullptr;
}

uint32_t Decoder::allocate(uint32_t bytes) {
  const uint64_t rounded = align_up(bytes, 64);
  if (rounded > largest_frame - frame_) {
    if (!error_)
      error_ = Error{fmt::format("'{}' needs more than {} bytes of registers for a warp", module().text(function_.name),
                                 largest_frame),
                     function_.header_range};
    return 0;
  }
  const uint32_t offset = frame_;
  frame_ += static_cast<uint32_t>(rounded);
  return offset;
}

unsigned Decoder::register_bits(ir::ValueId value) const {
  return lane_bits(function_.values[value].type);
}

void Decoder::place_registers() {
  auto place = [&](ir::ValueId value) {
    if (registers_[value.index()].valid()) return;
    const ir::Value& info = function_.values[value];
    const uint32_t bytes = lane_array_size(lane_bits(info.type)) * info.vector_width;
    registers_[value.index()] = LaneRef(LaneBase::registers, allocate(bytes));
  };
  for (ir::BlockId block : function_.layout)
    for (ir::InstructionId id : function_.instructions_in(block)) {
      ir::for_each_use(function_, id, [&](ir::ValueId value) { read_[value.index()] = true; });
      ir::for_each_use(function_, id, place);
      ir::for_each_definition(function_, id, place);
    }
  for (const ir::Variable& variable : function_.variables)
    if (variable.register_parameter) place(variable.register_parameter);
  carry_ = LaneRef(LaneBase::registers, allocate(lane_array_size(1)));
}

// Registers that may be read before a write would otherwise hold bytes that differ from run to run.
void Decoder::zero_undefined_registers() {
  ir::ControlFlow flow(function_);
  ir::Liveness liveness(function_, flow);
  for (ir::ValueId value : liveness.live_in(function_.entry())) {
    const ir::Value& info = function_.values[value];
    output_.zeroed.push_back(
        {registers_[value.index()].offset(), lane_array_size(lane_bits(info.type)) * info.vector_width});
  }
  output_.zeroed.push_back({carry_.offset(), 64});
}

void Decoder::place_variables() {
  uint64_t local = 0;
  for (ir::VariableId id : function_.variables.ids()) {
    const ir::Variable& variable = function_.variables[id];
    const uint64_t bytes = variable_bytes(variable, function_.dimensions.view(variable.dimensions));
    const uint64_t alignment = variable_alignment(variable);
    if (variable.space == ir::StateSpace::local) {
      local = align_up(local, alignment);
      output_.local_offsets[id.index()] = local;
      local = saturating_add(local, bytes);
      refuse_beyond_limit(variable, "local memory", local);
    }
  }
  for (ir::VariableId id : addressed_parameters(function_)) {
    const ir::Variable& variable = function_.variables[id];
    const uint64_t bytes = variable_bytes(variable, function_.dimensions.view(variable.dimensions));
    local = align_up(local, std::max<uint64_t>(variable_alignment(variable), 16));
    refuse_beyond_limit(variable, "local memory", saturating_add(local, bytes));
    if (error_) return;
    ParameterSlot& slot = output_.slots[id.index()];
    slot.in_local = true;
    slot.size = static_cast<uint32_t>(bytes);
    slot.offset = static_cast<uint32_t>(local);
    output_.local_offsets[id.index()] = local;
    local += slot.size;
  }
  output_.local_bytes = align_up(local, 16);
  if (local) image_.uses_local = true;
}

// `total`: the bytes of the function's variables so far, including this one.
void Decoder::refuse_beyond_limit(const ir::Variable& variable, std::string_view what, uint64_t total) {
  if (total <= largest_local_memory || error_) return;
  error_ =
      Error{fmt::format("'{}' with '{}' needs {} bytes of {} for each thread; a thread can have {}",
                        module().text(function_.name), module().text(variable.name), total, what, largest_local_memory),
            variable.range};
}

void Decoder::place_parameter_slots() {
  uint64_t total = 0; // bytes of one lane
  for (ir::VariableId id : function_.variables.ids()) {
    const ir::Variable& variable = function_.variables[id];
    if (!ir::is_param(variable.space) || variable.register_parameter) continue;
    bool of_entry = false;
    for (ir::VariableId parameter : function_.variable_lists.view(function_.signature.parameters))
      of_entry |= function_.is_entry && parameter == id;
    if (of_entry || output_.slots.contains(id.index())) continue;
    const uint64_t bytes = variable_bytes(variable, function_.dimensions.view(variable.dimensions));
    // They count as local memory, where the hardware keeps them.
    total = saturating_add(total, align_up(bytes, 16));
    refuse_beyond_limit(variable, "call parameters", total);
    if (error_) return;
    ParameterSlot slot;
    slot.size = static_cast<uint32_t>(bytes);
    slot.stride = static_cast<uint32_t>(align_up(bytes, 16));
    slot.offset = allocate(slot.stride * warp_size);
    output_.slots[id.index()] = slot;
  }
  auto describe = [&](PoolSpan span, std::vector<CallValue>& values) {
    for (ir::VariableId id : function_.variable_lists.view(span)) {
      CallValue value;
      if (ir::ValueId reg = function_.variables[id].register_parameter) {
        ir::Operand element = ir::Operand::value(reg);
        value.bits = static_cast<uint8_t>(register_bits(reg));
        for (unsigned k = 0; k < function_.values[reg].vector_width; ++k) {
          element.selector = ir::component_selector(k);
          value.lanes = register_lanes(element);
          values.push_back(value);
        }
        continue;
      }
      if (auto found = output_.slots.find(id.index()); found != output_.slots.end()) value.slot = found->second;
      values.push_back(value);
    }
  };
  describe(function_.signature.parameters, output_.parameters);
  describe(function_.signature.results, output_.results);
}

void Decoder::find_meeting_blocks() {
  ir::ControlFlow flow(function_);
  ir::PostDominatorTree post_dominators(function_, flow);
  for (ir::BlockId block : function_.layout) {
    if (!flow.reachable(block)) continue;
    if (function_.successors(block).size() < 2) continue;
    meeting_of_[block.index()] = post_dominators.immediate_post_dominator(block);
    if (ir::BlockId meeting = meeting_of_[block.index()]) is_meeting_block_[meeting.index()] = true;
  }
}

Status Decoder::run() {
  if (!function_.has_body || function_.layout.empty())
    return Error{fmt::format("'{}' has no body", module().text(function_.name)), function_.range};
  output_.first_instruction = image_.instruction_count;
  output_.region_of.assign(function_.instructions.size(), UINT32_MAX);
  output_.lanes_of.resize(function_.instructions.size());
  output_.section_of.assign(function_.instructions.size(), 0);
  image_.instruction_count += static_cast<uint32_t>(function_.instructions.size());
  place_registers();
  place_variables();
  place_parameter_slots();
  if (error_) return *error_;
  zero_undefined_registers();
  find_meeting_blocks();
  for (ir::BlockId block : function_.layout) {
    decode_block(block);
    if (error_) return *error_;
  }
  MicroOp end;
  end.handler = &end_of_function;
  output_.code.push_back(end);
  resolve_branches();
  join_accesses(output_);
  output_.frame_bytes = frame_;
  output_.registers = registers_;
  output_.block_starts = block_start_;
  return {};
}

void Decoder::begin_region(bool meeting_point) {
  MicroOp op;
  op.handler = meeting_point ? &enter_meeting_region : &enter_region;
  op.extra = region_ = image_.region_count++;
  op.auxiliary = 0; // counted up by decode_instruction
  op.instruction = output_.first_instruction + (instruction_.valid() ? instruction_.index() : 0);
  output_.code.push_back(op);
  region_ended_ = false;
}

void Decoder::decode_block(ir::BlockId block) {
  block_ = block;
  block_start_[block.index()] = static_cast<uint32_t>(output_.code.size());
  instruction_ = function_.blocks[block].first;
  begin_region(is_meeting_block_[block.index()]);
  uint32_t region_op = block_start_[block.index()];
  for (ir::InstructionId id : function_.instructions_in(block)) {
    const ir::Instruction& instruction = function_.instructions[id];
    instruction_ = id;
    switch (instruction.kind) {
    case ir::InstructionKind::real:
      if (section_) {
        output_.section_of[id.index()] = section_;
        decode_instruction(id);
        break;
      }
      if (region_ended_) {
        region_op = static_cast<uint32_t>(output_.code.size());
        begin_region(region_is_meeting_);
      }
      ++output_.code[region_op].auxiliary;
      output_.region_of[id.index()] = region_;
      decode_instruction(id);
      break;
    case ir::InstructionKind::section_begin:
      begin_section(id);
      break;
    case ir::InstructionKind::section_end:
      section_ = 0;
      break;
    default: // declarations, locations, annotations: only a machine may execute something here
      for (const auto& [machine, form] : forms_)
        form->line(*this);
    }
    if (error_) return;
  }
}

void Decoder::begin_section(ir::InstructionId id) {
  const auto kind = static_cast<ir::SectionKind>(function_.operands_of(id)[0].immediate);
  section_ = static_cast<uint8_t>(1 + static_cast<unsigned>(kind));
}

// A vector register used as a whole is the same as the braced list of its elements; both are decoded as the list.
void Decoder::take_operands(ir::InstructionId id) {
  operands_ = function_.operands_of(id);
  auto is_whole = [&](const ir::Operand& operand) {
    return operand.is(ir::OperandKind::value) && operand.selector == ir::no_selector &&
           function_.values[operand.as_value()].vector_width > 1;
  };
  if (std::none_of(operands_.begin(), operands_.end(), is_whole)) return;
  expanded_operands_.clear();
  std::vector<std::pair<size_t, size_t>> open; // groups: their start in expanded_operands_, and their end in operands_
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (operands_[i].is_group()) open.emplace_back(expanded_operands_.size(), ir::next_sibling(operands_, i));
    if (is_whole(operands_[i])) {
      const unsigned width = function_.values[operands_[i].as_value()].vector_width;
      ir::Operand element = operands_[i];
      expanded_operands_.push_back(ir::Operand::group(ir::OperandKind::vector, width));
      for (unsigned k = 0; k < width; ++k) {
        element.selector = ir::component_selector(k);
        expanded_operands_.push_back(element);
      }
    } else {
      expanded_operands_.push_back(operands_[i]);
    }
    for (; !open.empty() && open.back().second <= i + 1; open.pop_back())
      expanded_operands_[open.back().first].id =
          static_cast<uint32_t>(expanded_operands_.size() - open.back().first - 1);
  }
  operands_ = expanded_operands_;
}

void Decoder::decode_instruction(ir::InstructionId id) {
  form_ = &function_.form_of(id);
  take_operands(id);
  for (auto& [bits, used] : temporaries_used_)
    used = 0;
  const Operation* operation = OperationTable::get().find(*form_, operands_);
  if (!operation) {
    unsupported(form_->opaque ? fmt::format("'{}' is not known and cannot be emulated", form_->mnemonic)
                              : fmt::format("'{}' is not emulated", form_->mnemonic));
    return;
  }
  for (const auto& [machine, form] : forms_)
    form->before_instruction(*this);
  if (operation->special)
    operation->special(*this, id);
  else
    decode_lane_operation(*operation);
  flush_pending_writes();
}

// Sources are decoded first because they may need micro-operations of their own.
void Decoder::decode_lane_operation(const Operation& operation) {
  std::array<LaneRef, 2> destinations;
  std::array<LaneRef, 4> sources;
  unsigned destination_count = 0, source_count = 0;
  uint64_t selectors = 0;
  // If both results of p|p are the same register, it keeps the first result.
  const bool same_twice =
      operands_.size() > 2 && operands_[0].is(ir::OperandKind::pair) && operands_[1] == operands_[2];
  for (size_t i = 0, index = 0; i < operands_.size(); i = ir::next_sibling(operands_, i), ++index) {
    const ir::Operand& operand = operands_[i];
    if (index < 4) selectors |= uint64_t(operand.selector) << (16 * index);
    const bool writes = index == 0;
    const size_t first = operand.is(ir::OperandKind::pair) ? i + 1 : i;
    const size_t past = ir::next_sibling(operands_, i);
    for (size_t j = first; j < past; j = ir::next_sibling(operands_, j)) {
      if (writes && destination_count < operation.destinations) {
        const LaneType type = operation.destination_types[destination_count];
        const bool dropped = same_twice && destination_count == 1;
        destinations[destination_count++] = dropped ? temporary(type.bits) : destination(operands_[j], type);
      } else if (!writes && source_count < operation.sources) {
        sources[source_count] = source(operands_[j], operation.source_types[source_count]);
        ++source_count;
      }
    }
  }
  if (source_count < operation.sources && form_->effects.reads_carry) sources[source_count++] = carry_;
  if (destination_count < operation.destinations)
    destinations[destination_count] =
        form_->effects.writes_carry ? carry_ : temporary(operation.destination_types[destination_count].bits);
  if (error_) return;
  MicroOp& op = emit(operation.handler);
  op.destination[0] = destinations[0];
  op.destination[1] = destinations[1];
  std::copy(sources.begin(), sources.end(), op.source);
  op.flags = modifier_flags(*form_);
  op.immediate = std::bit_cast<int64_t>(selectors);
}

MicroOp& Decoder::emit(Handler handler) {
  MicroOp& op = emit_further(handler, true);
  op.is_instruction = true;
  op.counts_guard = op.guard.valid();
  return op;
}

MicroOp& Decoder::emit_further(Handler handler, bool guarded) {
  MicroOp op;
  op.handler = handler;
  op.instruction = output_.first_instruction + instruction_.index();
  const ir::Instruction& instruction = function_.instructions[instruction_];
  if (guarded && instruction.guard) {
    op.guard = registers_[instruction.guard.index()];
    op.guard_negated = instruction.guard_negated;
  }
  output_.code.push_back(op);
  return output_.code.back();
}

uint32_t Decoder::add_list(std::span<const LaneRef> list) {
  const auto first = static_cast<uint32_t>(output_.lists.size());
  output_.lists.insert(output_.lists.end(), list.begin(), list.end());
  return first;
}

void Decoder::flush_pending_writes() {
  for (const PendingWrite& write : pending_writes_)
    resize(write.from, write.from_bits, write.to_bits, write.is_signed, true, write.to);
  pending_writes_.clear();
}

void Decoder::branch_to(MicroOp& op, ir::BlockId target) {
  pending_branches_.push_back({static_cast<uint32_t>(&op - output_.code.data()), target});
}

void Decoder::meet_behind_block(MicroOp& op) {
  pending_meetings_.push_back({static_cast<uint32_t>(&op - output_.code.data()), block_});
}

void Decoder::resolve_branches() {
  for (const PendingBranch& branch : pending_branches_)
    output_.code[branch.op].immediate =
        std::bit_cast<int64_t>(output_.code.data() + block_start_[branch.target.index()]);
  for (const PendingMeeting& pending : pending_meetings_) {
    ir::BlockId meeting = meeting_of_[pending.block.index()];
    output_.code[pending.op].auxiliary = meeting ? block_start_[meeting.index()] : UINT32_MAX;
  }
  // The tables hold block indices up to this point.
  for (std::vector<uint32_t>& table : output_.branch_tables)
    for (uint32_t& entry : table)
      entry = block_start_[entry];
}

void Decoder::unsupported(std::string message) {
  if (!error_) error_ = Error{std::move(message), function_.instructions[instruction_].range};
}

} // namespace ptxrewrite::emulator
