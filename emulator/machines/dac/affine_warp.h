// DAC's affine warp: executes the affine stream once for a batch of blocks, on tuples in the place of threads
// (dac-isca17 §4.4 to §4.7).
#pragma once

#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/dac/affine_program.h"
#include "emulator/machines/dac/affine_stack.h"

#include <span>
#include <string>

namespace ptxrewrite::emulator {

// A predicate that a warp of the other stream gives (§4.5), for the lanes that executed dac.give.
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
    gave_up, // the machine is too small for the kernel: `reason`
    wrong,   // the stream asks for what tuples cannot do, or the streams do not fit together: `reason`; "": the
             // block that lends its parameters has failed
  };

  // `first_block` lends its parameters and shared variables' addresses. Everything must outlive the warp.
  AffineWarp(const AffineProgram& program, const AffineBatch& batch, Block& first_block,
             std::span<const std::byte> block_specials, TupleQueue& queue,
             std::vector<BoundedQueue<GivenPredicate>>& given, AffineCounters& counters);
  ~AffineWarp();
  AffineWarp(const AffineWarp&) = delete;
  AffineWarp& operator=(const AffineWarp&) = delete;

  // Executes one instruction, or none.
  Turn step();

  const std::string& reason() const { return reason_; }
  // Where it is: an instruction of the stream; invalid at the end.
  ir::InstructionId place() const;
  // Enqueues of a number so far.
  uint64_t enqueued(uint32_t site) const { return enqueued_[site]; }

private:
  // Threads for which each source is one tuple; a predicate is a scalar of one bit.
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
  // Did a micro-operation fault? Then Block::failure of the block that lends its parameters says how.
  bool has_failed() const { return scratch_.state == WarpState::failed; }
  uint64_t other_value(const AffineInstruction& instruction, const AffineSource& source);
  void run_operations(uint32_t first, uint32_t past, uint32_t lanes);

  // Is the predicate there in all threads? Then `bits` are those where it is true.
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
  unsigned lanes_of_tuple_ = 1;    // base and as many offsets as the launch has dimensions
  Turn trouble_ = Turn::wrong;
  std::string reason_;

  // For micro-operations on scalars: a warp whose lanes are the tuples' combinations.
  Warp scratch_;
  std::byte* frame_ = nullptr;
};

} // namespace ptxrewrite::emulator
