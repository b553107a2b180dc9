// Check mode of DAC's machine: compares the entries that leave the queues with the values of the original kernel.
//
// A queue's number is the ordinal of the original instruction in the text of the original kernel, without mov and bra.
// The original kernel runs first, on the same memory; a hash of the lanes' addresses, predicates or data of each of its
// executions is stored by block, warp and instruction.
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
  // `original`: the image of the kernel that `program` was derived from; `body`: that of the kernel with its streams;
  // `data`: whether loaded data are compared, too. Returns an error if a number has no such instruction.
  static Result<std::unique_ptr<AffineCheck>> make(const KernelImage& original, const KernelImage& body,
                                                   const AffineProgram& program, const Dimensions& block, bool data);

  // --- the original kernel runs, its lanes in the same order as on the machine ---
  bool keeps_order() const override { return true; }
  void before(Block& block, Warp& warp, const MicroOp& op) override;
  void after(Block& block, Warp& warp, const MicroOp& op, uint32_t mask) override;

  // --- the machine runs: checks the warp's next execution of that number; "" if it agrees with the original ---
  std::string check_addresses(const Warp& warp, uint32_t site, uint32_t lanes,
                              std::span<const uint64_t, warp_size> addresses);
  std::string check_predicate(const Warp& warp, uint32_t site, uint32_t lanes, uint32_t bits);
  // Call it after a load of the body that took its address from a queue.
  std::string check_datum(const Warp& warp, const MicroOp& op, uint32_t mask);
  bool checks_datum(const MicroOp& op) const { return data_ && site_of_load_.contains(op.instruction); }
  // At the end of a block: checks that it has taken all that the original executed; "" if so.
  std::string check_block(const Block& block);
  uint64_t checked() const { return checked_; }

  // After a difference the original may run again, to find the lane for the complete message.
  void look_again();
  bool differs() const { return difference_.has_value(); }
  // Sets the message and the thread of the failure.
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
    std::optional<std::pair<uint32_t, Lanes>> original; // the lanes that executed it, and their values
  };

  uint64_t number_of(const Warp& warp) const { return warp.block->linear * warps_ + warp.index; }
  void record(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes, const Lanes& values);
  std::string compare(const Warp& warp, uint32_t site, CheckedKind kind, uint32_t lanes, const Lanes& values);
  // The values of a load's result registers, mixed into one number per lane.
  Lanes results_of(const Warp& warp, const MicroOp& op) const;
  std::string place_of(uint32_t site) const;

  const KernelImage* original_ = nullptr;
  Dimensions shape_;                                               // of a block
  uint32_t warps_ = 0;                                             // of a block
  bool data_ = false;                                              // whether data are compared, too
  std::unordered_map<uint32_t, uint32_t> site_of_original_;        // by image-wide instruction
  std::unordered_map<uint32_t, uint32_t> site_of_load_;            // of the body, by image-wide instruction
  std::unordered_set<uint32_t> data_sites_;                        // sites whose data are compared
  std::unordered_map<uint32_t, ir::InstructionId> instruction_of_; // the original's, by site
  std::unordered_map<uint64_t, std::vector<Event>> events_;        // by warp of the grid, in the order of the original
  std::unordered_map<uint64_t, std::unordered_map<uint64_t, size_t>> next_; // by warp, then site and kind
  std::unordered_map<uint64_t, size_t> recorded_;                           // by warp, when the original runs again
  bool looks_again_ = false;
  std::optional<Difference> difference_;
  uint64_t checked_ = 0;
};

} // namespace ptxrewrite::emulator
