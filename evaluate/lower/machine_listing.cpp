#include "evaluate/lower/machine_listing.h"

#include "evaluate/common/listing.h"
#include "ir/core/print.h"
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/latency.h"
#include "ir/machine/prepare/value_flow.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/select/lowering.h"
#include "ir/machine/select/lowering_trace.h"
#include "ir/ssa/ssa.h"
#include "transforms/registers/machine_spill.h"

#include <algorithm>

namespace ptxrewrite::evaluate {

namespace {

using ir::InstructionId;
using ir::LoweringRemark;
using Kind = LoweringRemark::Kind;

std::string with_sign(int number) {
  return (number > 0 ? "+" : "") + std::to_string(number);
}

class Lister {
public:
  Lister(const ir::Function& function, const ir::Machine& machine, uint32_t compute_capability,
         const transforms::MachineSpill& spill)
      : function_(function), spill_(spill), machine_(machine), capability_(compute_capability),
        lowering_(ir::lower(function, compute_capability, &trace_)), lowered_(*trace_.lowered), values_(lowered_),
        remarks_(lowered_.instructions.size()), fused_(lowered_.instructions.size()) {
    transforms::add_spill(lowering_, spill);
    for (const LoweringRemark& remark : trace_.remarks) {
      remarks_[remark.id.index()].push_back(&remark);
      if (remark.kind == Kind::absorbed)
        for (InstructionId other : remark.others)
          fused_[other.index()].push_back(remark.step);
    }
  }

  MachineListing run() {
    listing_.function = std::string(function_.module().text(function_.name));
    listing_.is_entry = function_.is_entry;
    for (ir::BlockId block : function_.layout) {
      add_label(block);
      for (InstructionId id : function_.instructions_in(block))
        if (function_.instructions[id].kind == ir::InstructionKind::real) add(id);
    }
    // Instructions of preparing steps, which have no line in the text.
    for (InstructionId id : lowered_.instructions.ids())
      if (id.index() >= function_.instructions.size() && total(id) > 0) add(id);
    listing_.prologue = lowering_.prologue();
    listing_.prologue_uniform = lowering_.prologue_uniform();
    listing_.subroutines = lowering_.subroutine_instructions();
    listing_.copies = lowering_.unrolled_instructions();
    listing_.instructions = lowering_.static_instructions();
    listing_.uniform = lowering_.static_uniform_instructions();
    return std::move(listing_);
  }

private:
  uint32_t total(InstructionId id) const { return lowering_.cost(id).weight + lowering_.cost(id).uniform; }

  uint32_t line_of(InstructionId id) const {
    if (id.index() >= function_.instructions.size()) return 0;
    const SourceRange range = function_.instructions[id].range;
    return range.empty() ? 0 : function_.module().source.locate(range.begin).line;
  }

  void add_label(ir::BlockId block) {
    const uint32_t copies = lowering_.copies_of(block);
    if (!function_.blocks[block].label && copies == 1) return;
    MachineListingLine line;
    line.is_label = true;
    if (function_.blocks[block].label) line.ptx = function_.block_name(block) + ":";
    if (copies > 1) line.remarks.push_back(std::to_string(copies) + " copies in an unrolled loop");
    listing_.lines.push_back(std::move(line));
  }

  void add(InstructionId id) {
    MachineListingLine line;
    line.instruction = id;
    line.line = line_of(id);
    line.ptx = text_of(id);
    const ir::InstructionCost& cost = lowering_.cost(id);
    line.instructions = total(id);
    line.uniform = cost.uniform;
    if (line.instructions > 0) {
      line.machine = names_of(id);
      line.pipe = ir::spelling(cost.weight == 0 ? ir::Pipe::uniform : cost.pipe);
      const ir::Figure latency = ir::latency(machine_, lowered_.form_of(id));
      if (latency.known) line.latency = latency.value;
    }
    line.remarks = texts_of(remarks_[id.index()]);
    if (const auto beside = spill_.places.find(id); beside != spill_.places.end())
      line.remarks.push_back(text_of(beside->second));
    if (line.instructions == 0 && line.remarks.empty()) line.remarks.emplace_back("another name for a register");
    listing_.lines.push_back(std::move(line));
  }

  // The instruction's source text, if it has one.
  std::string text_of(InstructionId id) const {
    if (id.index() >= function_.instructions.size()) return ir::print_instruction(lowered_, id);
    const SourceRange range = function_.instructions[id].range;
    if (range.empty()) return ir::print_instruction(function_, id);
    const std::string_view text = function_.module().source.text();
    return normalise_blanks(text.substr(range.begin, range.end - range.begin));
  }

  bool reads_special_register(InstructionId id) const {
    const auto operands = lowered_.operands_of(id);
    return lowered_.is_opcode(id, ir::Opcode::mov) && std::ranges::any_of(operands, [](const ir::Operand& operand) {
             return operand.is(ir::OperandKind::special_register);
           });
  }

  bool last_is_literal(InstructionId id) const {
    const auto operands = lowered_.operands_of(id);
    return !operands.empty() && operands.back().is_constant();
  }

  // Mnemonics of the form, alone or with the instructions fused into it, without preceding moves of constants.
  std::vector<std::string> own_names(InstructionId id) const {
    const ir::InstructionCost& cost = lowering_.cost(id);
    if (reads_special_register(id)) return {cost.weight == 0 ? "S2UR" : "S2R"};
    return ir::machine_names(lowered_.form_of(id), capability_, last_is_literal(id), fused_[id.index()]);
  }

  // Number of constants that are moved to registers for this instruction.
  uint32_t moves_in_front(InstructionId id) const {
    int moves = 0;
    for (const LoweringRemark* remark : remarks_[id.index()])
      if (remark->step == "operand slots") moves += std::max(0, remark->instructions);
    if (const auto known = trace_.constant_moves.find(id); known != trace_.constant_moves.end())
      moves = std::max<int>(moves, known->second);
    return static_cast<uint32_t>(moves);
  }

  std::vector<std::string> names_of(InstructionId id) const {
    const ir::InstructionCost& cost = lowering_.cost(id);
    std::vector<std::string> names;
    uint32_t own = cost.weight;
    names.assign(std::min<uint32_t>(moves_in_front(id), cost.weight), "MOV");
    own -= static_cast<uint32_t>(names.size());
    std::vector<std::string> known = own_names(id);
    if (cost.weight == 0) { // all of it is done by the uniform datapath
      const bool is_read = reads_special_register(id) || lowered_.is_opcode(id, ir::Opcode::ld);
      for (std::string& name : known)
        if (!is_read) name.insert(0, "U");
      if (lowered_.is_opcode(id, ir::Opcode::ld)) known.assign(1, "ULDC");
      own = cost.uniform;
    }
    if (known.size() > own) known.resize(own);
    names.insert(names.end(), known.begin(), known.end());
    return names;
  }

  std::string lines_of(const std::vector<InstructionId>& others) const {
    std::vector<uint32_t> lines;
    for (InstructionId other : others)
      lines.push_back(line_of(other));
    std::ranges::sort(lines);
    lines.erase(std::ranges::unique(lines).begin(), lines.end());
    constexpr size_t most = 4;
    std::string text = lines.size() == 1 ? "line " : "lines ";
    for (size_t i = 0; i < std::min(lines.size(), most); ++i)
      text += (i ? ", " : "") + std::to_string(lines[i]);
    if (lines.size() > most) text += " and " + std::to_string(lines.size() - most) + " more";
    return text;
  }

  // Instructions that read this instruction's results.
  std::vector<InstructionId> readers_of(InstructionId id) const {
    std::vector<InstructionId> readers;
    for (const ir::Operand& operand : lowered_.operands_of(id))
      if (operand.is(ir::OperandKind::value) && operand.is_definition())
        for (InstructionId reader : values_.readers(operand.as_value()))
          readers.push_back(reader);
    return readers;
  }

  static std::string text_of(const transforms::SpillPlace& place) {
    std::string text = "local memory";
    if (place.stores) text += " " + with_sign(place.stores) + " STL";
    if (place.loads) text += " " + with_sign(place.loads) + " LDL";
    if (place.recomputed) text += " " + with_sign(place.recomputed) + " computed again";
    return text;
  }

  std::string text_of(const LoweringRemark& remark) const {
    if (remark.step == "constant operand" && remark.instructions < 0 && remark.uniform == 0)
      if (const auto readers = readers_of(remark.id); !readers.empty())
        return "folded into " + lines_of(readers) + " (constant operand)";
    const std::string step = "(" + std::string(remark.step) + ")";
    switch (remark.kind) {
    case Kind::removed:
      return "gone " + step;
    case Kind::rewritten:
      return "as " + std::string(lowered_.form_of(remark.id).mnemonic) + " " + step;
    case Kind::dead:
      return "dead " + step;
    case Kind::absorbed:
      return remark.others.empty() ? "fused " + step : "fused into " + lines_of(remark.others) + " " + step;
    case Kind::changed:
      break;
    }
    std::string text(remark.step);
    if (remark.instructions) text += " " + with_sign(remark.instructions);
    if (remark.uniform) text += " " + with_sign(remark.uniform) + " uniform";
    return text;
  }

  std::vector<std::string> texts_of(const std::vector<const LoweringRemark*>& remarks) const {
    std::vector<std::string> texts;
    for (const LoweringRemark* remark : remarks)
      texts.push_back(text_of(*remark));
    return texts;
  }

  const ir::Function& function_;
  const transforms::MachineSpill& spill_;
  const ir::Machine& machine_;
  uint32_t capability_;
  ir::LoweringTrace trace_;
  ir::Lowering lowering_;
  const ir::Function& lowered_;
  ir::ValueFlow values_;
  std::vector<std::vector<const LoweringRemark*>> remarks_; // by InstructionId
  std::vector<std::vector<std::string_view>> fused_;        // by InstructionId: rules by which other instructions were
                                                            // fused into it
  MachineListing listing_;
};

} // namespace

MachineListing machine_listing(const ir::Function& function, const ir::Machine& machine, uint32_t compute_capability) {
  ir::Function copy(function);
  const bool is_ssa = copy.is_ssa || ir::construct_ssa(copy).ok();
  transforms::MachineSpill spill;
  if (is_ssa) spill = transforms::machine_spill(copy, compute_capability);
  MachineListing listing = Lister(copy, machine, compute_capability, spill).run();
  if (!is_ssa || spill.places.empty()) {
    const ir::RegisterNeed need = ir::register_need(function, compute_capability);
    spill.registers = need.registers;
    spill.predicates = need.predicates;
    spill.beyond = need.beyond;
  }
  listing.registers = spill.registers;
  listing.predicates = spill.predicates;
  listing.spill_stores = spill.stores;
  listing.spill_loads = spill.loads;
  listing.registers_wanting = spill.beyond;
  return listing;
}

} // namespace ptxrewrite::evaluate
