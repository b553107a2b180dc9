// Writes x86-64 machine code for a plan, without LLVM: quick code on hosts with AVX2.
//
// All values stay in the frame, where the interpreter has them, and a micro-operation reads and writes them there: so
// the code leaves to the interpreter anywhere, and calls handlers, without moving a register. Operations of DirectRows
// are written out, all others are calls of their handlers. Control flow, counters and fuel are those of Emitter.
#pragma once

#include "emulator/generated/context.h"
#include "emulator/generated/direct_rows.h"
#include "emulator/generated/plan.h"
#include "emulator/generated/x86/assembler.h"

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator::generated {

// On the stack: the lanes of a guarded operation; the active lanes and their number; not 0: an access of the piece was
// not as guessed. With the registers that are kept and the return address these are whole 16 bytes.
inline constexpr x86::Place stack_guarded{x86::rsp, 0}, stack_active{x86::rsp, 8}, stack_count{x86::rsp, 16},
    stack_surprise{x86::rsp, 24};
inline constexpr int32_t stack_bytes = 40;

// Does this processor have the instructions of such code?
bool has_direct_code();

class DirectEmitter {
public:
  DirectEmitter(Plan& plan, bool full_warp);

  std::vector<uint8_t> emit();

private:
  using Label = x86::Assembler::Label;
  // Where the lanes that execute a micro-operation are to be found.
  enum class Lanes : uint8_t { all, active, guarded };

  // --- direct_emitter.cpp ---
  void begin();
  void end();
  void emit_cold();
  void emit_piece(const Piece& piece, std::optional<uint32_t> next_piece);
  void emit_region(uint32_t index, bool begins_loop);
  void emit_branch(uint32_t index, std::optional<uint32_t> next_piece);
  // The piece that a branch skips, for the lanes that do not skip it.
  void emit_for_some(uint32_t branch, const Piece& piece);
  void emit_op(uint32_t index);
  void emit_elsewhere(uint32_t index);
  // `guess`: the call is made because it did not hold.
  void call_handler(uint32_t index, Lanes lanes, std::optional<size_t> guess = std::nullopt);
  // rax: the active lanes for which the guard is true.
  void load_guard(const MicroOp& op);
  x86::Place guard_counter(const MicroOp& op, size_t field);
  void jump_to(uint32_t first);
  Label label_of(uint32_t first);
  Label exit_at(uint32_t index);
  x86::Place place_of_op(uint32_t index) const;

  // --- direct_operations.cpp ---
  // False: it is not written out.
  bool emit_inline(uint32_t index, const OpInfo& info, Lanes lanes);
  bool emit_row(uint32_t index, const DirectRow& row, const LaneWidths& widths, Lanes lanes);
  void load_chunk(const MicroOp& op, const DirectRow& row, const LaneWidths& widths, unsigned chunk);
  void emit_checked_row(uint32_t index, const DirectRow& row, const LaneWidths& widths);
  bool emit_predicates(const MicroOp& op, const LaneWidths& widths, Lanes lanes);
  void emit_sum(const MicroOp& op, bool has_second, Lanes lanes);
  bool emit_part(const MicroOp& op, const PartHandler& part, Lanes lanes);
  bool emit_fixed_load(const MicroOp& op, const MemoryHandler& memory, Lanes lanes);
  // Does the destination share bytes with a source in another way than being the same register?
  bool overlaps(const MicroOp& op, const LaneWidths& widths) const;
  // Source `i` of the operation; its base is loaded by load_bases().
  x86::Place source_place(const MicroOp& op, unsigned i) const;
  void load_bases(const MicroOp& op, unsigned sources);
  x86::Place destination_place(LaneRef lanes) const;
  // target: ones in the parts of the lanes of a chunk whose bit is set, of the mask at `from`, which begin_mask() has
  // copied to `copies`.
  void begin_mask(x86::Vector copies, x86::Place from, unsigned bits);
  void spread_mask(x86::Vector target, x86::Vector copies, x86::Place from, unsigned bits, unsigned chunk);
  // y0 to the executing lanes of a chunk.
  void begin_lanes(Lanes lanes, unsigned bits);
  void store_chunk(x86::Place destination, unsigned bits, unsigned chunk, Lanes lanes);
  // The bits of y0's parts, added to those in rdx.
  void collect_signs(unsigned bits, unsigned chunk);
  // rdx to the executing lanes.
  void store_predicate(x86::Place destination, Lanes lanes);
  x86::Place lanes_place(Lanes lanes) const;

  // --- direct_pairs.cpp ---
  struct PairPart {
    const MicroOp* op = nullptr;
    const DirectRow* row = nullptr;
    const LaneWidths* widths = nullptr;
  };
  std::optional<PairPart> part_of_pair(uint32_t index) const;
  bool is_pair(const PairPart& first, const PairPart& second) const;
  void load_pair_source(const PairPart& part, unsigned i, x86::Register base, unsigned chunk);
  // Emits this operation and the next one for all lanes; returns false if they cannot be executed together.
  bool emit_pair(uint32_t index);

  // --- direct_accesses.cpp ---
  struct Access {
    uint32_t index = 0;
    MemoryHandler memory;
    size_t guess = 0; // of the plan
    LanePlaces places = LanePlaces::any;
    Label slow = 0;
    Lanes lanes = Lanes::all;
  };
  // Addresses that have been found to lie so, in this piece or in front of it, unless there was a surprise: `size`
  // bytes apart, if they are a line.
  struct KnownPlaces {
    LanePlaces places = LanePlaces::any;
    uint64_t size = 0;
    unsigned address_bytes = 8;
    bool operator==(const KnownPlaces&) const = default;
  };
  bool emit_access(uint32_t index, const OpInfo& info, Lanes lanes);
  void test_places(const Access& access, x86::Place addresses);
  void find_host(const Access& access, x86::Place address, x86::Register host, uint64_t bytes);
  x86::Place lanes_of(const Access& access);
  void transfer(const Access& access, const x86::Register (&hosts)[2]);
  void transfer_some(const Access& access, x86::Register host);
  // What the piece knows about addresses after a micro-operation.
  void note_results(uint32_t index, const OpInfo& info, Lanes lanes);

  x86::Assembler code_;
  Plan& plan_;
  FunctionCode& function_;
  bool full_;                     // all lanes are active; not in a piece that some lanes execute
  bool for_some_of_full_ = false; // in such a piece of a full warp
  bool uppers_used_ = true;       // vector registers may have upper halves that are not zero
  std::map<uint32_t, Label> labels_, exits_;
  std::map<uint32_t, uint32_t> leaders_; // number of ways to a piece from other pieces, or into the code
  const Piece* last_piece_ = nullptr;    // in the order of the code
  struct Cold {                          // an operation that is left to its handler
    Label from, back;
    uint32_t index;
    Lanes lanes;
    std::optional<size_t> guess; // that did not hold
  };
  std::map<uint32_t, KnownPlaces> places_; // by the register's offset
  bool forgets_surprise_ = false;          // has been done for places_
  std::vector<Cold> cold_;
  std::map<uint32_t, Label> for_some_; // by branch: its piece for some lanes of a full warp
  Label leave_ = 0;                    // rax: where to
};

} // namespace ptxrewrite::emulator::generated
