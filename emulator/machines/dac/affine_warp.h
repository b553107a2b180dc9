// DAC's affine warp: executes the affine stream once per batch of blocks, on tuples instead of threads (dac-isca17 §4.4
// to §4.7).
#pragma once

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/affine_program.h"
#include "emulator/machines/dac/affine_stack.h"

#include <span>
#include <string>

namespace ptxrewrite::emulator {

// A predicate that a warp of the other stream gives to the affine warp (§4.5), for the lanes that executed dac.give.
struct GivenPredicate {
  uint32_t site = 0;
  uint32_t lanes = 0;
  uint32_t bits = 0;
};

class AffineWarp {
public:
  enum class Turn : uint8_t {
    worked,
    stalled,
    ended,
    gave_up, // the machine is too small for the kernel; see reason()
    wrong,   // the stream has an operation on tuples that is impossible, or the streams do not fit together: see
             // reason(); if it is "", the block that provides the parameters has failed
  };

  // `first_block` provides parameters and addresses of shared variables. All arguments must outlive the warp.
  AffineWarp(const AffineProgram& program, const AffineBatch& batch, Block& first_block,
             std::span<const std::byte> block_specials, TupleQueue& queue,
             std::vector<BoundedQueue<GivenPredicate>>& given, AffineCounters& counters);
  ~AffineWarp();
  AffineWarp(const AffineWarp&) = delete;
  AffineWarp& operator=(const AffineWarp&) = delete;

  // Executes at most one instruction.
  Turn step();

  const std::string& reason() const { return reason_; }
  // The current instruction of the stream; invalid at the end.
  ir::InstructionId place() const;
  // The number of enqueues of a site so far.
  uint64_t enqueued(uint32_t site) const { return enqueued_[site]; }

private:
  // The threads for which each source is a given tuple; a predicate is a scalar of one bit.
  struct Combination {
    ThreadSet threads;
    std::vector<AffineTuple> tuples; // by source
  };

  Turn execute(const AffineInstruction& instruction, const ThreadSet& threads);
  Turn branch(const AffineInstruction& instruction, const ThreadSet& taken);
  Turn enqueue(const AffineInstruction& instruction, const ThreadSet& threads);
  Turn push(QueuedTuple tuple);
  Turn stall_on_full();
  Turn wrong(std::string reason);
  Turn give_up(std::string reason);

  // affine_alu.cpp
  bool calculate(const AffineInstruction& instruction, const ThreadSet& threads);
  bool combine(const AffineInstruction& instruction, const ThreadSet& threads, std::vector<Combination>& list);
  bool refine(const AffineSource& source, std::vector<Combination>& list);
  bool compute(const AffineInstruction& instruction, std::vector<Combination>& list);
  void compute_scalars(const AffineInstruction& instruction, std::span<const Combination* const> scalars);
  void compare(const AffineInstruction& instruction, const ThreadSet& threads, std::span<const Combination> list);
  void logic(const AffineInstruction& instruction, const ThreadSet& threads);
  void choose(const AffineInstruction& instruction, std::span<const Combination> list);
  void count_case(const AffineComparison& comparison, uint32_t warp, uint32_t lanes, std::span<const Combination> list,
                  bool first_of_block);
  ThreadSet holding(const AffineComparison& comparison, const ThreadSet& threads, const AffineTuple& a,
                    const AffineTuple& b) const;
  ThreadSet predicate_source(const AffineInstruction& instruction, const AffineSource& source,
                             const ThreadSet& threads);
  // Whether a micro-operation has faulted; Block::failure of the block that provides the parameters has the details.
  bool has_failed() const { return scratch_.state == WarpState::failed; }
  uint64_t other_value(const AffineInstruction& instruction, const AffineSource& source);
  void run_operations(uint32_t first, uint32_t past, uint32_t lanes);

  // Returns whether the predicate is available in all threads; `bits` are the threads in which it is true.
  bool take(uint32_t site, const ThreadSet& threads, ThreadSet& bits, Turn& otherwise);
  AffineValue& value(ir::ValueId id);
  ThreadSet& predicate(ir::ValueId id);
  void write(ir::ValueId id, const ThreadSet& threads, const AffineTuple& tuple);
  void write_predicate(ir::ValueId id, const ThreadSet& threads, const ThreadSet& bits);
  void count_lanes(const AffineInstruction& instruction, size_t tuples);

  const AffineProgram* program_;
  const AffineBatch* batch_;
  TupleQueue* queue_;
  std::vector<BoundedQueue<GivenPredicate>>* given_;
  AffineCounters* counters_;
  AffineStack stack_;
  std::vector<std::optional<AffineValue>> values_; // by ValueId
  std::vector<std::optional<ThreadSet>> predicates_;
  std::vector<uint64_t> enqueued_; // by site
  unsigned lanes_of_tuple_ = 1;    // the base, and one offset per dimension of the launch
  Turn trouble_ = Turn::wrong;
  std::string reason_;

  // For micro-operations on scalars: a warp with one combination of tuples per lane.
  Warp scratch_;
  std::byte* frame_ = nullptr;
};

} // namespace ptxrewrite::emulator
