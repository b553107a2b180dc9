// Asynchronous matrix products of a block's warp groups (PTX ISA 9.7.15): wgmma.mma_async that have been issued but not
// waited for.
//
// A warp group is four warps, the first of which has a number divisible by four. A product is one operation of
// all four: it takes place when the last of them has issued it, or with LaunchRequest::late_copies when the first of
// them waits for it. Until then its operands in shared memory and in registers must not change, and its results are
// not in the registers: a kernel that waits correctly gets the same results in both modes. A warp that waits for a
// product that another warp of its group has not issued yet is parked.
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

// One warp's part of a product.
struct ProductPart {
  const MicroOp* op = nullptr;       // nullptr: the warp has not issued the product yet
  const void* description = nullptr; // further data from the decoder
  const LaneRef* list = nullptr;     // its registers
  std::byte* registers = nullptr;    // of the activation that issued it; frames live longer than the launch's blocks
  uint32_t lanes = 0;                // lanes that have issued it
  uint32_t group = 0;                // number of groups that the warp had closed before
  uint64_t descriptors[2] = {};      // of A and B in shared memory; that of A only if A is there
  bool adds = false;                 // adds to D; false: D is the product alone
};
using GroupProduct = std::array<ProductPart, warps_of_group>;

// Contents of an activation's registers at the last wgmma.fence, with the products' results since then. For --check.
struct FencedRegisters {
  const std::byte* place = nullptr; // the registers; nullptr: there was no fence
  std::vector<std::byte> bytes;
};

class ProductQueues final : public WarpGroups {
public:
  // Computes the product of the group whose first warp is `first_warp`.
  using CarryOut = void (*)(Block& block, unsigned first_warp, const GroupProduct& product);
  static constexpr size_t most_pending = 1 << 12; // of a group

  ProductQueues(Block& block, CarryOut carry_out);
  void start_block() override;

  // Number of the product that the warp issues next, from 1 on: the same for all warps of the group.
  uint32_t next_number(const Warp& warp) const;
  // Returns why the product is invalid, or nullptr.
  const char* issue(const Warp& warp, ProductPart part);
  void close_group(const Warp& warp);
  // Completes all products of the warp's closed groups except the newest `but` groups. Returns the number of the last
  // product, or nullopt if a warp of the group has not issued one of them yet.
  std::optional<uint32_t> wait(const Warp& warp, uint64_t but);
  FencedRegisters& fenced(const Warp& warp);
  // A warp has ended: products that it has issued and other warps have not will never take place.
  void forget(const Warp& warp) override;

private:
  struct Group {
    std::vector<GroupProduct> products; // in the order of issue; those before index `done` have taken place
    size_t done = 0;
    uint32_t dropped = 0;                          // products removed from the front
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
