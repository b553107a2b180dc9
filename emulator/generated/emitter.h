// Writes one function of LLVM IR for a plan: for a full warp, or for any subset of its lanes.
//
// All lanes that are active at the entry stay active until the function returns, so values are computed for all of
// them; results of inactive lanes are undefined. Only results of active lanes are written back to the
// frame. Between pieces of code, values are in stack slots, which LLVM promotes to registers. Quick code keeps vectors
// in the frame instead, and stores there what a piece has changed at its end: so an exit stores little, and the size of
// the code does not depend on how many registers are live.
//
// The function returns to the interpreter wherever lanes may diverge, reconverge or wait, and before an unknown
// instruction. An access that the code does not cover is left to its micro-operation's handler, which reports faults.
#pragma once

#include "emulator/core/engine.h"
#include "emulator/generated/context.h"
#include "emulator/generated/plan.h"

#include <optional>
#include <string>

namespace ptxrewrite::emulator::generated {

// number + vector in each lane; one of the two may be missing.
struct LaneValue {
  Value number = nullptr;
  Value vector = nullptr;
  unsigned bits = 32;
  bool open_nan = false;
  bool is_uniform() const { return vector == nullptr; }
};

// The lanes that execute a micro-operation.
struct Execution {
  bool guarded = false;
  LaneValue guard;       // of one bit
  Value lanes = nullptr; // vector of conditions: active and guard; nullptr: all 32
  Value mask = nullptr;  // the same as 32 bits
};

class Emitter {
public:
  Emitter(Ir& ir, Plan& plan, bool full_warp, CodeTier tier);

  // Returns false if the plan is not valid; then no code can be made.
  bool emit(const std::string& name);

private:
  struct Storage {
    Value number = nullptr, vector = nullptr; // stack slots
  };
  struct Range {
    Value place = nullptr;                                 // a MemoryRange, from which the following are loaded
    Value begin = nullptr, size = nullptr, host = nullptr; // 64-bit numbers
  };

  // --- emitter.cpp: the function, its pieces and its ends ---
  void begin_function(const std::string& name);
  void load_entry_values();
  void load_entry_value(uint32_t offset, const Slot& slot, Label other_warp);
  void emit_piece(const Piece& piece);
  void emit_region(uint32_t index, bool begins_loop);
  void emit_op(uint32_t index);
  void emit_branch(uint32_t index);
  // The piece that a branch skips, for the lanes that do not skip it.
  bool can_emit_for_some(const Piece& piece);
  void emit_for_some(const Piece& piece, const Execution& skipping);
  Label piece_label(uint32_t first);
  void jump_to(uint32_t first);
  // Returns to the interpreter at a micro-operation, with all values that are needed there in the frame.
  void leave_at(uint32_t index);
  void count_guard(const MicroOp& op, const Execution& execution);
  void count(Value place, Value by);
  Value field(size_t offset, Type type, unsigned alignment = 8);
  Value place_of_op(uint32_t index);

  // --- lane_values.cpp: locations of values ---
  LaneValue read(LaneRef lanes, unsigned bits);
  LaneValue read_register(uint32_t offset, unsigned bits);
  LaneValue load_frame(uint32_t offset, unsigned bits);
  void store_frame(uint32_t offset, const LaneValue& value, Value lanes);
  void write(LaneRef lanes, LaneValue value, const Execution& execution);
  LaneValue selected(const LaneValue& guard, LaneValue value, LaneValue old);
  void keep_between();
  void keep_in_frame();
  Value frame_place(uint32_t offset);
  Value vector_of(const LaneValue& value);
  Value canonical_vector_of(const LaneValue& value);
  LaneValue canonical(LaneValue value);
  Execution execution_of(const MicroOp& op);
  Value first_lane(const Execution& execution);

  // --- lane_operations.cpp ---
  void emit_row(uint32_t index, const OpInfo& info, const Execution& execution);
  LaneValue linear(const Recipe& recipe, const LaneValue& a, const LaneValue& b);
  void emit_part(const MicroOp& op, const OpInfo& info, const Execution& execution);
  void emit_call(uint32_t index, const OpInfo& info, const Execution& execution);
  // `guess`: the call is made because it did not hold.
  void call_handler(uint32_t index, const OpUses& uses, const Execution& execution,
                    std::optional<size_t> guess = std::nullopt);

  // --- memory_accesses.cpp ---
  // An access while it is emitted: several paths, which join again in `done`.
  struct Access {
    uint32_t index = 0;
    const MicroOp* op = nullptr;
    MemoryHandler memory;
    const Execution* execution = nullptr;
    Range range;
    LaneValue address;
    bool loads_numbers = false;  // all lanes get the same value
    uint64_t size = 0;           // bytes of a lane
    std::optional<size_t> guess; // of the plan
    Label slow = nullptr, done = nullptr;
    std::vector<LaneValue> old;             // of the destinations, if there is a guard
    std::vector<LaneValue> stored;          // values to store, NaNs canonical
    std::vector<Label> from;                // paths to `done`
    std::vector<std::vector<Value>> loaded; // on each of these paths
    unsigned bits() const { return memory.bytes * 8; }
  };
  bool find_range(const MicroOp& op, const MemoryHandler& memory, Range& range);
  void emit_load(uint32_t index, const OpInfo& info, const Execution& execution);
  void emit_store(uint32_t index, const OpInfo& info, const Execution& execution);
  LaneValue address_of(const MicroOp& op, const MemoryHandler& memory);
  Value wide(const Access& access, Value address);
  Value is_inside(const Access& access, Value address, uint64_t bytes);
  Value is_aligned(const Access& access, Value address);
  Value host_of(const Access& access, Value address);
  void load_range(Range& range);
  bool is_always_inside(const Access& access, const OpInfo& info) const;
  void emit_known_load(const Access& access, const OpUses& uses);
  std::vector<Value> checked_hosts(Access& access, const std::vector<Value>& places, uint64_t bytes, Value good);
  void arrive(Access& access, std::vector<Value> loaded);
  void skip_without_lanes(Access& access);
  void emit_slow(Access& access, const OpUses& uses);
  void emit_number_load(Access& access);
  void emit_number_store(Access& access);
  LanePlaces places_of(const Access& access) const;
  void emit_full_warp(Access& access, bool is_store);
  void load_lines(Access& access, const std::vector<Value>& hosts);
  void store_lines(Access& access, const std::vector<Value>& hosts);
  void load_places(Access& access, const std::vector<Value>& hosts);
  void store_places(Access& access, const std::vector<Value>& hosts);
  void emit_masked_line(Access& access, bool is_store);
  void emit_chosen_lanes(Access& access, bool is_store);

  // --- shared_steps.cpp: functions that quick code calls for accesses, branches and long operations ---
  Value step_function(const std::string& name, Type result, const std::vector<Type>& parameters,
                      const std::function<void(Value)>& body);
  Value call_step(Value function, std::vector<Value> arguments);
  Value host_if_inside(Access& access, Value address, uint64_t bytes);
  void write_host_step(Value function);
  void write_call_step(Value function, bool has_guess);
  Value handler_step(bool has_guess);
  void call_handler_by_step(uint32_t index, const Execution& execution, std::optional<size_t> guess);
  bool has_access_step(const Access& access) const;
  // Loads the destinations of `uses`, or stores access.stored.
  void access_by_step(Access& access, const OpUses& uses, bool is_store);
  void write_access_step(Value function, const Access& of_caller, bool is_store);
  void sources_to_frame(const OpUses& uses);
  void branch_by_step(uint32_t index, const Execution& execution, uint32_t target);
  void write_branch_step(Value function);
  Label failed_label();
  // What the row gives for vectors: by a call of a function, if it takes many instructions.
  Results build_row(const MicroOp& op, const Recipe& recipe, const Operands& operands);
  Value row_step(const Recipe& recipe, const Operands& operands);

  Ir& ir_;
  Plan& plan_;
  FunctionCode& code_;
  const bool full_, quick_;
  bool holds_ = true;
  const Execution* some_ = nullptr;     // the lanes that execute the piece, if not all
  std::map<uint32_t, Storage> storage_; // slots between pieces
  std::map<uint32_t, LaneValue> held_;  // in this piece
  std::set<uint32_t> changed_;          // those that this piece writes; quick code: and that are not in the frame yet
  std::map<uint32_t, Label> labels_;    // of pieces
  std::map<std::string, Value> steps_;
  Label failed_ = nullptr; // of quick code, from all calls
  Label entry_ = nullptr;
  Label stack_ = nullptr; // the first block, with the stack slots
  Value context_ = nullptr, registers_ = nullptr, fuel_ = nullptr, active_ = nullptr, active_lanes_ = nullptr,
        active_count_ = nullptr, ops_ = nullptr, regions_ = nullptr, guards_ = nullptr;
};

} // namespace ptxrewrite::emulator::generated
