// Composite instructions (composite-hpca13 §3): executes both halves one after the other, by the operations of the PTX
// instructions that they combine, then writes the intermediate result to the slot. A composite instruction may read the
// slot itself, so the slot is written last.
#include "emulator/machines/composite/composite_registers.h"

#include "emulator/core/decode.h"
#include "emulator/core/machine.h"
#include "emulator/core/resize.h"
#include "ir/forms/composite.h"

#include <array>
#include <map>

namespace ptxrewrite::emulator {

const MachineModel& composite_machine();

namespace {

// The slot, for an intermediate result of this width. A read of %crf, which is in the same block, returns the last
// result written.
class SlotDecoder final : public FormDecoder {
public:
  LaneRef write(Decoder& decoder, unsigned bits) {
    bits_ = bits;
    LaneRef& slot = slots_[bits];
    if (!slot) slot = decoder.own_lanes(bits);
    return slot;
  }

  LaneRef special_register(Decoder& decoder, ir::SpecialRegister which, unsigned& bits) override {
    if (which != ir::SpecialRegister::crf) return {};
    bits = bits_;
    return write(decoder, bits_);
  }

private:
  std::map<unsigned, LaneRef> slots_; // by width
  unsigned bits_ = 32;                // width of the result in the slot at the current instruction
};

// The operation of a half: it has one result, and one or two sources.
const Operation* find_operation(const ir::Form& form, unsigned sources) {
  std::array<ir::Operand, 3> shape{};
  return OperationTable::get().find(form, std::span(shape).first(1 + sources));
}

LaneType widened(const ir::CompositePart& part, LaneType type) {
  if (part.widens) type.kind = part.widens_signed ? LaneKind::signed_integer : LaneKind::unsigned_integer;
  return type;
}

// The intermediate result as a source of the second half: extended if the second half has wider sources.
LaneRef as_source(Decoder& decoder, LaneRef lanes, unsigned bits, LaneType type) {
  if (bits == type.bits) return lanes;
  LaneRef resized = decoder.temporary(type.bits);
  MicroOp& op = decoder.emit_further(resize_handler(bits, type.bits, type.kind == LaneKind::signed_integer), true);
  op.source[0] = lanes;
  op.destination[0] = resized;
  return resized;
}

void decode_composite(Decoder& decoder, ir::InstructionId) {
  const std::optional<ir::CompositeParts> parts = ir::composite_parts(decoder.form());
  const Operation* first = parts ? find_operation(ir::form(parts->first.form), 2) : nullptr;
  const Operation* second =
      parts ? find_operation(ir::form(parts->second.form), parts->second_has_operand ? 2 : 1) : nullptr;
  if (!first || !second || !first->handler || !second->handler)
    return decoder.unsupported("a composite instruction of halves that are not emulated");
  const std::span<const ir::Operand> operands = decoder.operands();
  auto operand = [&](unsigned index) { return operands[decoder.top_level(index)]; };
  const LaneRef a = decoder.source(operand(1), widened(parts->first, first->source_types[0]));
  const LaneRef b = decoder.source(operand(2), first->source_types[1]);
  const unsigned place = parts->reversed ? 0 : 1; // the position of c among the sources of the second half
  LaneRef c;
  if (parts->second_has_operand) c = decoder.source(operand(3), second->source_types[place]);
  const LaneRef target = decoder.destination(operand(0), second->destination_types[0]);
  const LaneRef intermediate = decoder.temporary(first->destination_types[0].bits);

  MicroOp& early = decoder.emit_further(first->handler, true);
  early.source[0] = a;
  early.source[1] = b;
  early.destination[0] = intermediate;
  early.flags = modifier_flags(ir::form(parts->first.form));
  const LaneRef taken = as_source(decoder, intermediate, first->destination_types[0].bits,
                                  widened(parts->second, second->source_types[1 - place]));

  MicroOp& op = decoder.emit(second->handler);
  op.source[1 - place] = taken;
  op.source[place] = c;
  op.destination[0] = target;
  op.flags = modifier_flags(ir::form(parts->second.form));

  const unsigned bits = first->destination_types[0].bits;
  MicroOp& keep = decoder.emit_further(copy_handler(bits), true);
  keep.source[0] = intermediate;
  auto* slot = static_cast<SlotDecoder*>(decoder.form_decoder(composite_machine()));
  keep.destination[0] = slot->write(decoder, bits);
}

class CompositeModel final : public MachineModel {
public:
  std::string_view name() const override { return "composite"; }
  std::string_view title() const override { return "the composite register file's machine"; }
  void add_operations(OperationTable& table) const override {
    for (std::string_view pattern :
         {"crf.add*", "crf.sub*", "crf.and*", "crf.or*", "crf.xor*", "crf.mul*", "crf.mul24*", "crf.shl*", "crf.shr*"})
      table.special(pattern, &decode_composite);
  }
  std::unique_ptr<FormDecoder> form_decoder() const override { return std::make_unique<SlotDecoder>(); }
};

} // namespace

const MachineModel& composite_machine() {
  static const CompositeModel model;
  return model;
}

CompositeCounts& CompositeCounts::operator+=(const CompositeCounts& other) {
  composites += other.composites;
  lanes += other.lanes;
  slot_writes += other.slot_writes;
  slot_reads += other.slot_reads;
  main_writes_avoided += other.main_writes_avoided;
  main_reads_avoided += other.main_reads_avoided;
  return *this;
}

CompositeCounts composite_counts(const Counters& counters) {
  CompositeCounts counts;
  for (const FunctionCounters& function : counters.functions)
    for (uint32_t i = 0; i < function.instructions.size(); ++i) {
      const ir::InstructionId id(i);
      if (function.source->instructions[id].kind != ir::InstructionKind::real) continue;
      const InstructionCounters& at = function.instructions[i];
      const uint64_t executions = at.executions - at.guarded_off;
      if (ir::is_composite(function.source->form_of(id))) {
        counts.composites += executions;
        counts.lanes += at.lanes;
        counts.slot_writes += executions;
        counts.slot_reads += executions;
        counts.main_writes_avoided += executions;
        counts.main_reads_avoided += executions;
      }
      for (const ir::Operand& operand : function.source->operands_of(id)) {
        if (!ir::reads_composite_slot(operand)) continue;
        counts.slot_reads += executions;
        counts.main_reads_avoided += executions;
      }
    }
  return counts;
}

} // namespace ptxrewrite::emulator
