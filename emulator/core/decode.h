// Turns instructions into micro-operations. Families of special instructions (memory, control flow, warp functions ...)
// get a Decoder, read the operands of the current instruction and emit its micro-operations.
#pragma once

#include "emulator/core/machine.h"
#include "emulator/core/operation.h"
#include "emulator/core/program.h"

#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator {

constexpr LaneType lanes_of_bits(unsigned bits) {
  return {bits == 1 ? LaneKind::predicate : LaneKind::unsigned_integer, static_cast<uint8_t>(bits)};
}

// The widths of lane arrays: 1 (predicate mask), 8, 16, 32, 64, 128.
unsigned lane_bits(ir::ScalarType type);
constexpr uint32_t lane_array_size(unsigned bits) {
  return bits == 1 ? 64 : (warp_size * bits / 8 + 63) / 64 * 64;
}

class Decoder {
public:
  Decoder(KernelImage& image, DecodedFunction& output, const ModulePlaces& places);

  // Decodes the whole function.
  Status run();

  // --- the current instruction ---
  const ir::Function& function() const { return function_; }
  const ir::Module& module() const { return function_.module(); }
  const ir::Form& form() const { return *form_; }
  ir::InstructionId instruction() const { return instruction_; }
  std::span<const ir::Operand> operands() const { return operands_; }
  // Position in operands() of the i-th operand at the top level; operands().size() if there are fewer.
  size_t top_level(unsigned index) const;
  unsigned top_level_count() const;
  KernelImage& image() { return image_; }
  DecodedFunction& output() { return output_; }

  // --- locations of operands ---
  // The lane array of a register, or of the element of a vector register that the operand selects, and its width in
  // bits (1: predicate).
  LaneRef register_lanes(const ir::Operand& operand) const;
  unsigned register_bits(ir::ValueId value) const;
  // A source as a lane array of `type`: registers, immediates, special registers, addresses of symbols. A register of
  // another width is truncated, or extended by the signedness of `type`. A negated predicate is inverted.
  LaneRef source(const ir::Operand& operand, LaneType type);
  // The instruction reads values of its thread that are no lane arrays.
  void takes_more_than_sources() { output_.lanes_of[instruction_.index()].complete = false; }
  // The lane array for a result of `type`. A register of another width is written after the instruction, truncated or
  // extended by the signedness of `type`. `_` gives lanes that are never read.
  LaneRef destination(const ir::Operand& operand, LaneType type);
  LaneRef constant(uint64_t value, unsigned bits) { return image_.constants.get(value, bits); }
  LaneRef temporary(unsigned bits);
  LaneRef carry() const { return carry_; }
  // A lane array that no other instruction of the function writes.
  LaneRef own_lanes(unsigned bits) { return {LaneBase::registers, allocate(lane_array_size(bits))}; }
  // The decoder of the machine's form for this function; nullptr: none.
  FormDecoder* form_decoder(const MachineModel& machine) const;
  // The storage of .param variables of this function in its activation.
  const ParameterSlot* slot(ir::SymbolRef symbol) const;
  // Address in its own space of a .global, .const or .shared variable or of the entry's parameter: known at decode
  // time.
  std::optional<uint64_t> fixed_address(ir::SymbolRef symbol) const;
  std::string symbol_name(ir::SymbolRef symbol) const;

  // The address [base + offset] of an address group; the address of a symbol is added to the offset if it is known. The
  // base has 64-bit lanes, or, if `narrow_allowed` and written so, 32-bit lanes to be zero-extended.
  struct Address {
    LaneRef base;
    bool narrow = false; // 32-bit lanes
    int64_t offset = 0;
    ir::SymbolRef symbol; // if the base is a symbol
    bool is_symbol = false;
    bool constant = false; // the same known offset for all lanes: base is invalid, `offset` is the address
  };
  Address address(size_t position, bool narrow_allowed = false);

  // --- emitting ---
  // The instruction's main operation: executed under its guard and counted. One per instruction.
  MicroOp& emit(Handler handler);
  // A further operation of the instruction: under the guard (`guarded`) or for all active lanes.
  MicroOp& emit_further(Handler handler, bool guarded);
  // 64-bit lanes first + second + offset, written to `target` or a temporary; under the guard or for all active lanes.
  struct Sum {
    LaneRef first, second;
    int64_t offset = 0;
    bool guarded = false;
    LaneRef target = {};
  };
  LaneRef emit_sum(const Sum& sum);
  uint32_t add_list(std::span<const LaneRef> list);
  // Lanes may have left after this instruction: a new counting region starts, which may be a reconvergence point.
  void end_region(bool meeting_point) {
    region_ended_ = true;
    region_is_meeting_ = meeting_point;
  }
  // Writes the code address of a block's first micro-operation, known after the whole function is decoded, into
  // `immediate` as a pointer.
  void branch_to(MicroOp& op, ir::BlockId target);
  // Writes the code index of the reconvergence point for the end of the current block (UINT32_MAX: none) into
  // op.auxiliary, when the whole function is decoded.
  void meet_behind_block(MicroOp& op);
  void order_sensitive() { image_.order_sensitive = true; }
  // Whether an instruction of the function reads the register.
  bool is_read(ir::ValueId value) const { return read_[value.index()]; }

  // The instruction is not emulated: the kernel is refused.
  void unsupported(std::string message);

private:
  LaneRef find_source(const ir::Operand& operand, LaneType type);
  LaneRef find_destination(const ir::Operand& operand, LaneType type);
  void place_registers();
  void place_variables();
  void place_parameter_slots();
  void refuse_beyond_limit(const ir::Variable& variable, std::string_view what, uint64_t total);
  void zero_undefined_registers();
  void find_meeting_blocks();
  void decode_block(ir::BlockId block);
  void decode_instruction(ir::InstructionId id);
  void take_operands(ir::InstructionId id);
  void begin_section(ir::InstructionId id);
  void decode_lane_operation(const Operation& operation);
  void begin_region(bool meeting_point);
  void flush_pending_writes();
  void resolve_branches();
  LaneRef resize(LaneRef from, unsigned from_bits, unsigned to_bits, bool is_signed, bool guarded, LaneRef to);
  bool is_hardware_register(const ir::Operand& operand) const;
  LaneRef immediate(const ir::Operand& operand, LaneType type);
  LaneRef special(const ir::Operand& operand, unsigned& bits);
  LaneRef cluster_special(ir::SpecialRegister which, ir::Selector selector);
  LaneRef symbol_address(const ir::Operand& operand, unsigned bits);
  uint32_t allocate(uint32_t bytes);

  struct PendingWrite {
    LaneRef from, to;
    unsigned from_bits, to_bits;
    bool is_signed;
  };
  struct PendingBranch {
    uint32_t op;
    ir::BlockId target;
  };
  struct PendingMeeting {
    uint32_t op;
    ir::BlockId block;
  };

  KernelImage& image_;
  DecodedFunction& output_;
  const ModulePlaces& places_;
  const ir::Function& function_;
  const ir::Form* form_ = nullptr;
  ir::InstructionId instruction_;
  std::span<const ir::Operand> operands_;
  std::vector<ir::Operand> expanded_operands_; // used instead of operands_ if there are whole vector registers
  ir::BlockId block_;
  std::vector<LaneRef> registers_; // by ValueId
  std::vector<bool> read_;
  std::vector<bool> is_meeting_block_;  // by BlockId
  std::vector<ir::BlockId> meeting_of_; // by BlockId: immediate post-dominator
  std::vector<uint32_t> block_start_;   // by BlockId: code index
  std::vector<PendingWrite> pending_writes_;
  std::vector<PendingBranch> pending_branches_;
  std::vector<PendingMeeting> pending_meetings_;
  std::map<unsigned, std::vector<LaneRef>> temporaries_; // free for the next instruction, by width
  std::map<unsigned, unsigned> temporaries_used_;
  LaneRef carry_;
  std::vector<std::pair<const MachineModel*, std::unique_ptr<FormDecoder>>> forms_; // of machines with a form decoder
  uint32_t frame_ = 0;
  uint8_t section_ = 0; // of a hardware form, see DecodedFunction::section_of; 0: the body
  uint32_t region_ = UINT32_MAX;
  bool region_ended_ = false;
  bool region_is_meeting_ = false;
  std::optional<Error> error_;
};

// Lets the first of several accesses with common base registers execute them together (special/memory.cpp).
void join_accesses(DecodedFunction& function);

// Whether the micro-operation starts a counting region. It belongs to no instruction.
bool is_region_entry(const MicroOp& op);

} // namespace ptxrewrite::emulator
