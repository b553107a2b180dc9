// The registers that are occupied at the points of a block, for an order of its instructions.
//
// If there are registers to spare, more are occupied than those of live values. The registers of a store are read some
// time after its issue: ptxas writes to others meanwhile. A constant has a register from its first to its last reader
// that has no constant operand, such as the address or the data of an access; where operands do not name constant
// banks, from the first reader to the last, or in all of the loop that loads it. Pairs are aligned: the word of an
// address that the result of its load does not replace, and the one beside a single word that is stored, stay free
// meanwhile. The result of a copy, or of an instruction that is fused into its readers, occupies no register: the live
// ranges of its operands extend to those readers.
#pragma once

#include "ir/flow/cfg.h"
#include "ir/flow/loops.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/select/lowering.h"

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace ptxrewrite::ir {

// Words that a function's code needs beside those that are live where it is called, by its name.
using CalledWords = std::map<Symbol, uint32_t>;

// Instructions in the order of issue, of one block or of several that no branch parts: the predicated ones among them.
struct StraightCode {
  struct Start {
    size_t position = 0; // of the block's first instruction
    BlockId block;
  };
  std::vector<InstructionId> order;
  std::vector<Start> starts; // of all blocks but the first
};

class BlockPressure {
public:
  BlockPressure(const Function& function, const ControlFlow& flow, const Lowering& lowering,
                uint32_t compute_capability, const CalledWords& called);

  // The highest sums of widths of live values.
  RegisterNeed of_values(const std::vector<ValueId>& live_out, std::span<const InstructionId> order);
  // The highest number of registers including those that stores have yet to read, and constants. SSA form. `live_out`:
  // of the last block.
  uint32_t with_pending(const std::vector<ValueId>& live_out, const StraightCode& code);

private:
  // A constant in a register: equal numbers share it.
  enum ConstantKind : int64_t { parameter, address, literal, uniform };
  struct Constant {
    std::array<int64_t, 2> key{}; // kind and number
    uint32_t words = 0;
    bool loaded = false; // by an instruction of its own, for any reader
    auto operator<=>(const Constant& other) const { return key <=> other.key; }
  };
  struct Span {
    size_t first = 0, last = 0; // points in the order
  };
  // Points of the order: an instruction reads its operands before it writes its results.
  static size_t before(size_t position) { return 2 * position; }
  static size_t after(size_t position) { return 2 * position + 1; }

  bool is_real(InstructionId id) const { return function_.instructions[id].kind == InstructionKind::real; }
  void start(const std::vector<ValueId>& live_out);
  void add(ValueId value);
  void remove(ValueId value);
  void change(ValueId value, bool added);
  void step(InstructionId id);
  uint32_t words_of_called(InstructionId id) const;
  uint32_t words_of_outside_call() const;
  std::vector<bool> waits_for_loads(std::span<const InstructionId> order) const;
  std::vector<size_t> last_within(uint32_t distance, std::span<const InstructionId> order) const;
  std::optional<Constant> constant_of(ValueId value) const;
  void find_loop_constants();
  std::vector<Constant> constants_read(InstructionId id) const;
  std::vector<uint32_t> words_of_constants(std::span<const InstructionId> order, const std::vector<size_t>& late) const;
  bool is_transparent(InstructionId id) const;
  template <class Visit> void for_each_source(ValueId value, Visit&& visit, int depth = 0) const;
  void add_sources(ValueId value);
  template <class Visit> void for_each_argument(BlockId block, Visit&& visit) const;
  void enter(BlockId block);
  void find_last_readers(const std::vector<ValueId>& live_out, const StraightCode& code);
  uint32_t words_beside_load(InstructionId id, size_t position) const;
  uint32_t words_beside_fetch(InstructionId id, size_t position) const;
  uint32_t words_beside_store(InstructionId id, size_t position) const;
  std::vector<uint32_t> words_beside(std::span<const InstructionId> order, const std::vector<size_t>& late) const;

  const Function& function_;
  const ControlFlow& flow_;
  const Lowering& lowering_;
  uint32_t capability_;
  const CalledWords& called_;
  const bool loads_parameters_;
  const bool reads_through_;              // Heuristic::read_through: transparent instructions are looked through
  bool spare_ = false;                    // registers are free
  std::vector<InstructionId> definition_; // by ValueId
  std::vector<bool> live_;                // by ValueId
  std::vector<ValueId> parameter_;        // by ValueId: that it is passed to, in whose register it is; itself for most
  std::vector<uint32_t> sharing_;         // by ValueId: live values in its register
  std::vector<uint32_t> readers_;         // by ValueId: their number in the order
  std::vector<size_t> last_reader_;       // by ValueId: for those that the order reads
  std::vector<ValueId> touched_;          // may be live
  std::vector<LoopId> loop_of_;           // by BlockId: the innermost one; empty: there are no loops
  std::vector<std::set<Constant>> loop_constants_; // by LoopId: those that its instructions read
  std::vector<uint32_t> loop_words_;               // by LoopId: of these
  RegisterNeed now_, highest_;
  uint32_t before_ = 0, after_ = 0; // registers at the points of the last step
};

} // namespace ptxrewrite::ir
