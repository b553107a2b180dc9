// Looks at a running kernel instruction by instruction: for studies of redundancy, widths, affine values. A launch
// without an observer runs a loop that knows nothing of it.
//
//   class Widths : public ValueObserver {
//     void executed(const ObservedInstruction& at) override {
//       for (const ObservedValue& result : at.results) ... result.low(lane) for the lanes of at.mask ...
//     }
//   };
#pragma once

#include "emulator/core/block.h"
#include "emulator/core/watch.h"

#include <span>
#include <utility>
#include <vector>

namespace ptxrewrite::emulator {

// Where the lanes of warp.mask access memory. `addresses` has 32 places; `bytes` are accessed from each.
struct ObservedAccess {
  Space space = Space::global; // generic: lanes are in several windows
  const uint64_t* addresses = nullptr;
  uint64_t bytes = 0;
  AccessKind kind = AccessKind::load;
};

// Called from the host thread that runs the block; a launch with an observer uses one host thread, blocks in order (but
// blocks that spin take turns).
class Observer {
public:
  virtual ~Observer() = default;
  // Does block `number` of the grid run at all? Called once for each block. An observer that samples returns false for
  // the blocks that it estimates from the others; those write no memory.
  virtual bool runs(uint64_t number) { return (void)number, true; }
  // Of a block that is about to run: is it worth a look? The others run as without an observer.
  virtual bool wants(const Block& block) { return (void)block, true; }
  // Shall lanes part and meet as branches say even in loops that look as if they waited for others? Those never let
  // others go first then.
  virtual bool keeps_order() const { return false; }
  // Lanes of warp.mask are about to execute the instruction `op.instruction` (image-wide; KernelImage::function_of).
  // `.sync` instructions whose lanes come one after the other: once for each time some of them come.
  virtual void before(Block& block, Warp& warp, const MicroOp& op) { (void)block, (void)warp, (void)op; }
  // Does it want to know of what is over, too? Asked for each turn of a warp.
  virtual bool wants_after() const { return true; }
  // Lanes of `mask` have, and go on behind it: not called behind branches that are taken, calls, ends and barriers.
  virtual void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) {
    (void)block, (void)warp, (void)op, (void)mask;
  }
  // Lanes of warp.active have come to an instruction whose guard is false in all of them, and go on behind it.
  virtual void passed(Block& block, Warp& warp, const MicroOp& op) { (void)block, (void)warp, (void)op; }
  virtual void block_ended(Block& block) { (void)block; }
  // A machine has executed instruction `number` of its own stream (DecodedFunction::stream_of), once for the blocks
  // that it runs side by side; `first` is the first of them.
  virtual void stream_executed(const Block& first, uint32_t number) { (void)first, (void)number; }
  // What was seen counts for nothing: the machine is too small for the kernel, and another runs from its start.
  virtual void restarted() {}
  // Does it want to know where memory is accessed? Asked for each block that it wants.
  virtual bool wants_accesses() const { return false; }
  // After `before` of the instruction, once for each space that it accesses; several times where a matrix is moved.
  // Parameters are no accesses.
  virtual void accessed(Block& block, Warp& warp, const MicroOp& op, const ObservedAccess& access) {
    (void)block, (void)warp, (void)op, (void)access;
  }
  // So many instructions of the warp ran unseen because leave_out() asked for it; those that another turn of the warp
  // would run are to be asked for again.
  virtual void left_out(Block& block, Warp& warp, uint64_t instructions) {
    (void)block, (void)warp, (void)instructions;
  }
  uint64_t take_left_out() { return std::exchange(leave_out_, 0); }
  bool leaves_out() const { return leave_out_ != 0; }

protected:
  // For observers that sample, in before() or passed(): behind this instruction the warp goes on for so many others as
  // without an observer, or until its turn ends.
  void leave_out(uint64_t instructions) { leave_out_ = instructions; }

private:
  uint64_t leave_out_ = 0;
};

// What a source or result of an instruction is in the 32 lanes; those that do not execute it hold what they held.
struct ObservedValue {
  const std::byte* lanes = nullptr;
  unsigned bits = 0; // 1: a predicate, 8 .. 128

  uint64_t low(unsigned lane) const;  // zero-extended
  uint64_t high(unsigned lane) const; // of 128 bits, else 0
  bool same_in(uint32_t mask) const;
};

// A warp that executes an instruction. The values are those that the operation works on: registers, immediates, special
// registers and the base of an address (not its constant offset), in the order of the operands, widened or narrowed as
// the operation asks.
struct ObservedInstruction {
  const Block* block = nullptr;
  const Warp* warp = nullptr;
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint32_t number = 0; // of the instruction, unique in the kernel
  uint32_t mask = 0;   // lanes that execute it: never none
  std::span<const ObservedValue> sources;
  std::span<const ObservedValue> results;
  bool complete = true; // false: it takes more from its thread than `sources`: call, ld.param in a function
};

class ValueObserver : public Observer {
public:
  // The sources are as the instruction will find them.
  virtual void executing(const ObservedInstruction& at) { (void)at; }
  // The results are there. Sources may have been overwritten, if they are results, too.
  virtual void executed(const ObservedInstruction& at) { (void)at; }

  void before(Block& block, Warp& warp, const MicroOp& op) final;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) final;

private:
  ObservedInstruction observe(const Block& block, const Warp& warp, const MicroOp& op, uint32_t mask);

  std::vector<ObservedValue> sources_, results_;
};

} // namespace ptxrewrite::emulator
