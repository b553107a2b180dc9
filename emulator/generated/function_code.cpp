#include "emulator/generated/function_code.h"

#include "emulator/core/address.h"
#include "emulator/core/decode.h"
#include "emulator/core/engine.h"

#include <algorithm>

namespace ptxrewrite::emulator::generated {
namespace {

// Recipes of operations that are special ones in OperationTable.
Recipe of_predicates(Build build, uint8_t sources) {
  return {build, 0, {sources, 1, {1, 1}, {1}}};
}
const Recipe* predicate_recipe(ir::Opcode opcode) {
  static const Recipe both =
      of_predicates([](Ir& ir, const Operands& x) -> Results { return ir.bit_and(x.a, x.b); }, 2);
  static const Recipe either =
      of_predicates([](Ir& ir, const Operands& x) -> Results { return ir.bit_or(x.a, x.b); }, 2);
  static const Recipe differing =
      of_predicates([](Ir& ir, const Operands& x) -> Results { return ir.xor_conditions(x.a, x.b); }, 2);
  static const Recipe inverted = of_predicates([](Ir& ir, const Operands& x) -> Results { return ir.bit_not(x.a); }, 1);
  switch (opcode) {
  case ir::Opcode::and_:
    return &both;
  case ir::Opcode::or_:
    return &either;
  case ir::Opcode::xor_:
    return &differing;
  case ir::Opcode::not_:
    return &inverted;
  default: // not a logic operation on predicates
    return nullptr;
  }
}

// The disjunction of the minterms in the table: bit 4a + 2b + c of it.
Results lop3(Ir& ir, const Operands& x) {
  Value result = ir.constant(32, 0);
  for (unsigned entry = 0; entry < 8; ++entry) {
    if (!((x.flags >> entry) & 1)) continue;
    const Value a = entry & 4 ? x.a : ir.bit_not(x.a);
    const Value b = entry & 2 ? x.b : ir.bit_not(x.b);
    const Value c = entry & 1 ? x.c : ir.bit_not(x.c);
    result = ir.bit_or(result, ir.bit_and(a, ir.bit_and(b, c)));
  }
  return result;
}
const Recipe lop3_recipe = {&lop3, takes_extra, {3, 1, {32, 32, 32}, {32}}};

enum class CallKind : uint8_t { none, lanes, collective };

// Instructions whose handlers do not change control flow: no lane diverges, waits or exits in them.
CallKind call_kind(ir::Opcode opcode) {
  switch (opcode) {
  case ir::Opcode::atom:
  case ir::Opcode::red:
  case ir::Opcode::ld:
  case ir::Opcode::ldu:
  case ir::Opcode::st:
  case ir::Opcode::isspacep:
  case ir::Opcode::lop3:
  case ir::Opcode::tex:
  case ir::Opcode::tld4:
  case ir::Opcode::suld:
  case ir::Opcode::sust:
    return CallKind::lanes;
  case ir::Opcode::shfl:
  case ir::Opcode::vote:
  case ir::Opcode::match:
  case ir::Opcode::redux:
  case ir::Opcode::mma:
  case ir::Opcode::ldmatrix:
    return CallKind::collective;
  default: // all other instructions are left to the interpreter
    return CallKind::none;
  }
}

} // namespace

FunctionCode::FunctionCode(const KernelImage& kernel, const DecodedFunction& decoded, Handler hook)
    : image(kernel), function(decoded), hook_(hook), flow_(*decoded.source), liveness_(*decoded.source, flow_) {
  for (const MicroOp& op : function.code) {
    is_region_entry_.push_back(emulator::is_region_entry(op));
    is_meeting_.push_back(is_meeting_place(op));
  }
  for (ir::ValueId value : function.source->values.ids()) {
    const LaneRef lanes = function.registers[value.index()];
    if (!lanes) continue;
    const ir::Value& info = function.source->values[value];
    for (unsigned i = 0; i < info.vector_width; ++i)
      register_offsets_.insert(lanes.offset() + i * lane_array_size(lane_bits(info.type)));
  }
}

OpInfo FunctionCode::info(uint32_t index) const {
  const MicroOp& op = this->op(index);
  OpInfo info;
  if (const Recipe* recipe = RowTable::get().find(op.handler)) {
    info.kind = OpKind::row;
    info.recipe = recipe;
    return info;
  }
  if (is_lane_sum(op)) {
    info.kind = OpKind::lane_sum;
    return info;
  }
  if (const auto part = part_handler(op.handler)) {
    info.kind = part->inserts ? OpKind::insertion : OpKind::extraction;
    info.part = *part;
    return info;
  }
  if (is_plain_branch(op)) {
    info.kind = OpKind::branch;
    return info;
  }
  if (!op.is_instruction) return info;
  const ir::Form& form = function.source->form_of(ir::InstructionId(op.instruction - function.first_instruction));
  if (const auto memory = memory_handler(op.handler)) {
    info.memory = *memory;
    const bool known = memory->bytes <= 8;
    info.kind = known && memory->kind == MemoryHandler::load         ? OpKind::load
                : known && memory->kind == MemoryHandler::store      ? OpKind::store
                : known && memory->kind == MemoryHandler::fixed_load ? OpKind::fixed_load
                                                                     : OpKind::call;
    return info;
  }
  if (form.opcode == ir::Opcode::cvta && op.source[0].valid()) {
    info.kind = OpKind::shift;
    return info;
  }
  const bool of_predicates = form.types.size() == 1 && form.types[0] == ir::ScalarType::pred;
  if (const Recipe* recipe = of_predicates ? predicate_recipe(form.opcode) : nullptr) {
    info.kind = OpKind::row;
    info.recipe = recipe;
    return info;
  }
  if (form.opcode == ir::Opcode::lop3 && !op.destination[1].valid()) {
    info.kind = OpKind::row;
    info.recipe = &lop3_recipe;
    return info;
  }
  switch (call_kind(form.opcode)) {
  case CallKind::none:
    break;
  case CallKind::lanes:
    info.kind = OpKind::call;
    break;
  case CallKind::collective:
    info.kind = OpKind::collective;
    break;
  }
  return info;
}

OpUses FunctionCode::uses(uint32_t index, const OpInfo& info) const {
  const MicroOp& op = this->op(index);
  OpUses uses;
  const auto elements = [&](LaneRef single, std::vector<LaneUse>& list) {
    for (unsigned i = 0; i < op.count; ++i)
      list.push_back({element(op, i, single), info.memory.bytes * 8});
  };
  switch (info.kind) {
  case OpKind::row:
    for (unsigned i = 0; i < info.recipe->widths.source_count; ++i)
      uses.sources.push_back({op.source[i], info.recipe->widths.source_bits[i]});
    for (unsigned i = 0; i < info.recipe->widths.destination_count; ++i)
      uses.destinations.push_back({op.destination[i], info.recipe->widths.destination_bits[i]});
    break;
  case OpKind::lane_sum:
    uses.sources.push_back({op.source[1], 64});
    [[fallthrough]];
  case OpKind::shift:
    uses.sources.push_back({op.source[0], 64});
    uses.destinations.push_back({op.destination[0], 64});
    break;
  case OpKind::insertion:
    uses.sources.push_back({op.source[0], info.part.part});
    uses.destinations.push_back({op.destination[0], info.part.whole});
    break;
  case OpKind::extraction:
    uses.sources.push_back({op.source[0], info.part.whole});
    uses.destinations.push_back({op.destination[0], info.part.part});
    break;
  case OpKind::load:
    uses.sources.push_back({op.source[0], info.memory.narrow_base ? 32u : 64u});
    [[fallthrough]];
  case OpKind::fixed_load:
    elements(op.destination[0], uses.destinations);
    break;
  case OpKind::store:
    uses.sources.push_back({op.source[0], info.memory.narrow_base ? 32u : 64u});
    elements(op.source[1], uses.sources);
    break;
  case OpKind::call:
  case OpKind::collective: {
    const InstructionLanes& lanes = function.lanes_of[op.instruction - function.first_instruction];
    for (const OperandLanes& source : lanes.sources)
      uses.sources.push_back({source.lanes, source.bits});
    for (const OperandLanes& result : lanes.results)
      uses.destinations.push_back({result.lanes, result.bits});
    break;
  }
  case OpKind::branch:
  case OpKind::stop:
    break;
  }
  return uses;
}

const std::vector<uint32_t>& FunctionCode::live_at(uint32_t index) {
  // A region entry at the start of a block without instructions belongs to no instruction.
  if (is_region(index))
    for (ir::BlockId block : function.source->layout)
      if (function.block_starts[block.index()] == index) {
        const auto first = function.source->instructions_in(block);
        if (first.begin() != first.end()) return live_before(*first.begin());
        std::vector<uint32_t>& known = live_[UINT32_MAX - block.index()];
        if (!known.empty()) return known;
        for (ir::ValueId value : liveness_.live_in(block))
          add_register(value, known);
        add_results(known);
        return known;
      }
  return live_before(ir::InstructionId(op(index).instruction - function.first_instruction));
}

void FunctionCode::add_register(ir::ValueId value, std::vector<uint32_t>& offsets) const {
  const LaneRef lanes = function.registers[value.index()];
  const ir::Value& info = function.source->values[value];
  for (unsigned part = 0; lanes && part < info.vector_width; ++part)
    offsets.push_back(lanes.offset() + part * lane_array_size(lane_bits(info.type)));
}

// Registers that are results of the function: its return reads them, which is in no operand.
void FunctionCode::add_results(std::vector<uint32_t>& offsets) const {
  for (const CallValue& result : function.results)
    if (result.lanes) offsets.push_back(result.lanes.offset());
}

const std::vector<uint32_t>& FunctionCode::live_before(ir::InstructionId id) {
  if (const auto known = live_.find(id.index()); known != live_.end()) return known->second;
  const ir::Function& source = *function.source;
  const ir::BlockId block = source.instructions[id].block;
  std::vector<ir::InstructionId> instructions;
  for (ir::InstructionId instruction : source.instructions_in(block))
    instructions.push_back(instruction);
  std::set<uint32_t> live;
  for (ir::ValueId value : liveness_.live_out(block))
    live.insert(value.index());
  for (size_t i = instructions.size(); i-- > 0;) {
    const ir::Instruction& instruction = source.instructions[instructions[i]];
    if (!source.keeps_old_values(instructions[i]))
      ir::for_each_definition(source, instructions[i], [&](ir::ValueId value) {
        if (source.values[value].vector_width == 1) live.erase(value.index());
      });
    else if (!instruction.guard) // wgmma.mma_async reads its destinations
      ir::for_each_definition(source, instructions[i], [&](ir::ValueId value) { live.insert(value.index()); });
    ir::for_each_use(source, instructions[i], [&](ir::ValueId value) { live.insert(value.index()); });
    std::vector<uint32_t>& offsets = live_[instructions[i].index()];
    for (uint32_t value : live)
      add_register(ir::ValueId(value), offsets);
    add_results(offsets);
  }
  return live_.at(id.index());
}

std::string_view FunctionCode::instruction_text(uint32_t index) const {
  const ir::Function& source = *function.source;
  return source.form_of(ir::InstructionId(op(index).instruction - function.first_instruction)).mnemonic;
}

bool loads_own_memory(const MicroOp& op) {
  const auto space = static_cast<Space>(op.flags & 0xff);
  return space == Space::local || space == Space::generic;
}

} // namespace ptxrewrite::emulator::generated
