// Check mode of DAC's machine: what leaves the queues against what the original kernel had there.
//
// A queue's number is the ordinal of the original instruction among the original kernel's, mov and bra left out, in the
// order of the text. The original runs first, on the same memory; of each of its executions a hash of the lanes'
// addresses, predicates or data is kept, by block, warp and instruction.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/machines/dac/affine_program.h"

#include <optional>
#include <unordered_map>
#include <unordered_set>

namespace ptxrewrite::emulator {

enum class CheckedKind : uint8_t { address, predicate, datum };

class AffineCheck : public Observer {
public:
  // `original`: the image of the kernel that `program` was made of; `body` that of the kernel with its streams; `data`:
  // are data compared, too? Error: a number that stands for no such instruction.
  static Result<std::unique_ptr<AffineCheck>> make(const KernelImage& original, const KernelImage& body,
                                                   const AffineProgram& program, const Dimensions& block, bool data);

  // --- the original runs, its lanes in the order in which the machine has them ---
  bool keeps_order() const override { return true; }
  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) override;

  // --- the machine runs: the next execution of that number by that warp; "" if it is as in the original ---
  std::string check_addresses(const Warp& warp, uint32_t site, uint32_t lanes,
                              std::span<const uint64_t, warp_size> addresses);
  std::string check_predicate(const Warp& warp, uint32_t site, uint32_t lanes, uint32_t bits);
  // Behind a load of the body that took its address from a queue.
  std::string check_datum(const Warp& warp, const MicroOp& op, uint32_t mask);
  bool checks_datum(const MicroOp& op) const { return data_ && site_of_load_.contains(op.instruction); }
  // The block has ended: has it taken all that the original executed? "" if it has.
  std::string check_block(const Block& block);
  uint64_t checked() const { return checked_; }

  // After a difference the original may run once more, to find the lane: then the whole message.
  void look_again();
  bool differs() const { return difference_.has_value(); }
  // Puts message and thread right.
  void explain(Failure& failure) const;

private:
  using Lanes = std::array<uint64_t, warp_size>;
  struct Event {
    uint64_t hash = 0;
    uint32_t site = 0;
    CheckedKind kind = CheckedKind::address;
  };
  struct Difference {
    uint64_t warp = 0; // in the grid
    size_t event = 0;
    CheckedKind kind = CheckedKind::address;
    uint32_t site = 0;
    uint32_t lanes = 0;
    Lanes here{};
    std::optional<std::pair<uint32_t, Lanes>> original; // lanes that executed it, and what they had
  };

  uint64_t number_of(const Warp& warp) const { return warp.block->linear * warps_ + warp.index; }
  void record(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes, const Lanes& values);
  std::string compare(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes, const Lanes& values);
  // What the result registers of a load hold, mixed into one number a lane.
  Lanes results_of(const Warp& warp, const MicroOp& op) const;
  std::string place_of(uint32_t site) const;

  const KernelImage* original_ = nullptr;
  Dimensions shape_;                                               // of a block
  uint32_t warps_ = 0;                                             // likewise
  bool data_ = false;                                              // data are compared, too
  std::unordered_map<uint32_t, uint32_t> site_of_original_;        // by image-wide instruction
  std::unordered_map<uint32_t, uint32_t> site_of_load_;            // of the body, likewise
  std::unordered_set<uint32_t> data_sites_;                        // of those, whose data are compared, too
  std::unordered_map<uint32_t, ir::InstructionId> instruction_of_; // the original's, by site
  std::unordered_map<uint64_t, std::vector<Event>> events_;        // by warp of the grid, in the order of the original
  std::unordered_map<uint64_t, std::unordered_map<uint64_t, size_t>> next_; // by warp, then site and kind
  std::unordered_map<uint64_t, size_t> recorded_;                           // by warp, while looking again
  bool looks_again_ = false;
  std::optional<Difference> difference_;
  uint64_t checked_ = 0;
};

} // namespace ptxrewrite::emulator
