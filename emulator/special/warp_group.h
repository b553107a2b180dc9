// Asynchronous matrix products of a block's warp groups (PTX ISA 9.7.15): wgmma.mma_async that have been issued and not
// been waited for.
//
// A warp group is four warps, the first of which has a number that is a multiple of four. A product is one operation of
// all four: it takes place when the last of them has issued it, or with LaunchRequest::late_copies when the first of
// them waits for it. Until then its operands in shared memory and in registers may not change, and what it leaves in
// registers is not there: a kernel that waits as it must gives the same either way. A warp that waits for a product
// that another warp of its group has not issued yet is parked.
#pragma once

#include "emulator/core/copies.h"
#include "emulator/core/micro_op.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ptxrewrite::emulator {

struct Block;
struct Warp;

inline constexpr unsigned warps_of_group = 4;

// What one warp has issued.
struct ProductPart {
  const MicroOp* op = nullptr;       // null: it has not come to the product yet
  const void* description = nullptr; // what the decoder has to say of it
  const LaneRef* list = nullptr;     // its registers
  std::byte* registers = nullptr;    // of the activation that issued it; frames outlive the launch's blocks
  uint32_t lanes = 0;                // that have issued it
  uint32_t group = 0;                // groups that the warp had closed before
  uint64_t descriptors[2] = {};      // of A and B in shared memory; of A only where it is there
  bool adds = false;                 // to D; false: D is the product alone
};
using GroupProduct = std::array<ProductPart, warps_of_group>;

// What an activation's registers held at the last wgmma.fence, and what products have left there since. For --check.
struct FencedRegisters {
  const std::byte* place = nullptr; // of the registers; null: there was no fence
  std::vector<std::byte> bytes;
};

class ProductQueues final : public WarpGroups {
public:
  // Computes the product of the group whose first warp is `first_warp`.
  using CarryOut = void (*)(Block& block, unsigned first_warp, const GroupProduct& product);
  static constexpr size_t most_pending = 1 << 12; // of a group

  ProductQueues(Block& block, CarryOut carry_out);
  void start_block() override;

  // Of the product that the warp issues next, from 1 on: the same for all warps of the group.
  uint32_t next_number(const Warp& warp) const;
  // What is wrong with it; null: nothing.
  const char* issue(const Warp& warp, ProductPart part);
  void close_group(const Warp& warp);
  // All products of the warp's closed groups but the newest `but` are done on return, which is the number of the last
  // one. Nothing: a warp of the group has not issued one of them yet.
  std::optional<uint32_t> wait(const Warp& warp, uint64_t but);
  FencedRegisters& fenced(const Warp& warp);
  // A warp has ended: what it has issued and the others have not will never take place.
  void forget(const Warp& warp) override;

private:
  struct Group {
    std::vector<GroupProduct> products; // in the order of their issue; those before `done` have taken place
    size_t done = 0;
    uint32_t dropped = 0;                          // in front of them
    std::array<size_t, warps_of_group> next{};     // the product that the warp issues next
    std::array<size_t, warps_of_group> waited{};   // products that the warp has waited for
    std::array<uint32_t, warps_of_group> closed{}; // groups
  };
  bool is_complete(const GroupProduct& product) const;
  void carry_out_before(Group& group, unsigned first_warp, size_t end);
  void wake(unsigned first_warp);

  Block& block_;
  CarryOut carry_out_;
  std::vector<Group> groups_;
  std::vector<FencedRegisters> fenced_; // by warp
};

} // namespace ptxrewrite::emulator
