// Observes a running kernel instruction by instruction: for studies of redundancy, widths, affine values. A launch
// without an observer runs a loop without any overhead for it.
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

// The memory accesses of the lanes in warp.mask. `addresses` has 32 elements; each lane accesses `bytes` bytes.
struct ObservedAccess {
  Space space = Space::global; // generic: lanes access several windows
  const uint64_t* addresses = nullptr;
  uint64_t bytes = 0;
  AccessKind kind = AccessKind::load;
};

// Called from the host thread that runs the block; a launch with an observer uses one host thread, with blocks in order
// (except that spinning blocks take turns).
class Observer {
public:
  virtual ~Observer() = default;
  // Whether block `number` of the grid runs at all. Called once per block. An observer that samples returns false for
  // blocks that it estimates from others; those do not write memory.
  virtual bool runs(uint64_t number) { return (void)number, true; }
  // Whether to observe a block that is about to run. Other blocks run as without an observer.
  virtual bool wants(const Block& block) { return (void)block, true; }
  // Whether lanes diverge and reconverge strictly at branches, even in loops that seem to wait for others. Such loops
  // then never let others run first.
  virtual bool keeps_order() const { return false; }
  // Lanes of warp.mask are about to execute the instruction `op.instruction` (image-wide; KernelImage::function_of).
  // For `.sync` instructions whose lanes arrive separately: called once per arrival.
  virtual void before(Block& block, Warp& warp, const MicroOp& op) { (void)block, (void)warp, (void)op; }
  // Whether after() is to be called. Asked in each turn of a warp.
  virtual bool wants_after() const { return true; }
  // Lanes of `mask` have executed it and continue: not called after taken branches, calls, ends and barriers.
  virtual void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) {
    (void)block, (void)warp, (void)op, (void)mask;
  }
  // Lanes of warp.active have reached an instruction whose guard is false in all of them, and continue after it.
  virtual void passed(Block& block, Warp& warp, const MicroOp& op) { (void)block, (void)warp, (void)op; }
  virtual void block_ended(Block& block) { (void)block; }
  // A machine has executed instruction `number` of its own stream (DecodedFunction::stream_of), once for the blocks
  // that it runs side by side; `first` is the first of them.
  virtual void stream_executed(const Block& first, uint32_t number) { (void)first, (void)number; }
  // All observations so far are void: the machine is too small for the kernel, and another one restarts it.
  virtual void restarted() {}
  // Whether accessed() is to be called. Asked for each observed block.
  virtual bool wants_accesses() const { return false; }
  // Called after `before` of the instruction, once per space that it accesses; several times for matrix loads and
  // stores. Parameters are not reported.
  virtual void accessed(Block& block, Warp& warp, const MicroOp& op, const ObservedAccess& access) {
    (void)block, (void)warp, (void)op, (void)access;
  }
  // A tcgen05.mma is issued; only its execution tells how many multiplications it has. Called after `before`.
  virtual void multiplied(Block& block, Warp& warp, const MicroOp& op, uint64_t multiplications) {
    (void)block, (void)warp, (void)op, (void)multiplications;
  }
  // This many instructions of the warp ran unobserved because of leave_out(); the remaining ones, for another turn of
  // the warp, have to be requested again.
  virtual void left_out(Block& block, Warp& warp, uint64_t instructions) {
    (void)block, (void)warp, (void)instructions;
  }
  uint64_t take_left_out() { return std::exchange(leave_out_, 0); }
  bool leaves_out() const { return leave_out_ != 0; }

protected:
  // For observers that sample, in before() or passed(): after this instruction the warp executes this many instructions
  // unobserved, or until its turn ends.
  void leave_out(uint64_t instructions) { leave_out_ = instructions; }

private:
  uint64_t leave_out_ = 0;
};

// A source or result of an instruction in the 32 lanes; lanes that do not execute it keep their old values.
struct ObservedValue {
  const std::byte* lanes = nullptr;
  unsigned bits = 0; // 1: a predicate, 8 .. 128

  uint64_t low(unsigned lane) const;  // zero-extended
  uint64_t high(unsigned lane) const; // for 128 bits, else 0
  bool same_in(uint32_t mask) const;
};

// The execution of an instruction by a warp. Values are the operands of the operation: registers, immediates, special
// registers and the base of an address (not its constant offset), in the order of the operands, widened or narrowed to
// the types of the operation.
struct ObservedInstruction {
  const Block* block = nullptr;
  const Warp* warp = nullptr;
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint32_t number = 0; // of the instruction, unique in the kernel
  uint32_t mask = 0;   // lanes that execute it: at least one
  std::span<const ObservedValue> sources;
  std::span<const ObservedValue> results;
  bool complete = true; // false: it reads more of its thread's state than `sources`: call, ld.param in a function
};

class ValueObserver : public Observer {
public:
  // Called before the instruction, with its sources.
  virtual void executing(const ObservedInstruction& at) { (void)at; }
  // Called after the instruction. Sources that are also results may have been overwritten.
  virtual void executed(const ObservedInstruction& at) { (void)at; }

  void before(Block& block, Warp& warp, const MicroOp& op) final;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) final;

private:
  ObservedInstruction observe(const Block& block, const Warp& warp, const MicroOp& op, uint32_t mask);

  std::vector<ObservedValue> sources_, results_;
};

} // namespace ptxrewrite::emulator
