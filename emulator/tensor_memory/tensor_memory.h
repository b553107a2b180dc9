// Tensor memory of one block (PTX ISA 9.7.16.1): 128 lanes of 512 columns of 32 bits, allocated by columns, and the
// asynchronous operations on it (tcgen05.mma, cp, shift) in the order of their issue.
//
// An address has the lane in its high 16 bits and the column in its low 16 bits. Each block has an SM of its own, so an
// allocation waits only for deallocations by warps of its own block. Operations are performed at issue, or, with
// LaunchRequest::late_copies, when a thread tests the mbarrier of the next commit after them; a warp's stores at
// issue, or, late, when the warp waits for them.
#pragma once

#include "emulator/core/block.h"
#include "emulator/core/copies.h"
#include "emulator/tensor_memory/product.h"

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::emulator {

inline constexpr uint32_t tensor_lanes = 128;
inline constexpr uint32_t tensor_columns = 512;
inline constexpr uint32_t lanes_of_quarter = 32; // of a warp: quarter warp % 4
inline constexpr uint32_t least_tensor_columns = 32;

struct TensorAddress {
  uint32_t lane = 0, column = 0;
};
constexpr TensorAddress tensor_address(uint32_t address) {
  return {address >> 16, address & 0xffff};
}

// The record of --check for 16 lanes of a column: the last write, the last read by a product, and the last by a warp.
struct TensorAccess {
  uint32_t clock = 0;  // of the warp, or the number of the operation; 0: none
  uint32_t serial = 0; // of the warp's loads, or stores
  uint32_t instruction = 0;
  uint16_t rank = 0;
  uint8_t warp = 0;
  bool by_operation = false; // otherwise by a warp's load or store
};
inline constexpr uint32_t lanes_of_record = 16;
struct TensorRecord {
  TensorAccess write, read, operation_read;
};

// An asynchronous operation, or a commit.
struct TensorOperation {
  uint32_t thread = 0;
  std::byte* barrier = nullptr; // not nullptr: a commit that arrives there
  enum class Kind : uint8_t { product, copy, shift } kind = Kind::product;
  ProductIssue product; // one of these, if it is no commit
  CopyIssue copy;
  ShiftIssue shift;
};

// A pending store of one register of a warp (tcgen05.st without a wait yet).
struct LateStore {
  uint32_t warp = 0;
  uint32_t lanes = 0;
  std::array<uint32_t, warp_size> values{}, places{}; // place: column * 128 + lane
};

class TensorMemory final : public TensorUnit {
public:
  static constexpr size_t most_pending = 1 << 16;

  // Returns the tensor memory of `block`, created at first use, or nullptr if the launch's memory limit is reached: the
  // executing block has then failed.
  static TensorMemory* of(Block& block, Warp& warp, const MicroOp& op);
  explicit TensorMemory(Block& block);

  void start_block() override;
  void warp_ended(const Warp& warp) override;
  std::string complete(std::byte* barrier) override;
  void block_ended(Warp& last) override;

  // --- allocations ---
  struct Allocation {
    uint32_t begin = 0, columns = 0; // columns 0: none
    uint32_t warp = 0;
    const MicroOp* op = nullptr;
    bool exclusive = false; // the only one
  };
  // Whether the allocations that there are exclude another one.
  bool excludes(bool exclusive) const;
  // Returns the first of `columns` adjacent columns that are free here and in `other` (may be nullptr), or
  // tensor_columns if there are none.
  uint32_t find_free(uint32_t columns, const TensorMemory* other) const;
  void allocate(const Allocation& allocation);
  const Allocation* allocation_at(uint32_t column) const;
  void deallocate(uint32_t begin);
  bool is_allocated(uint32_t column, uint32_t columns) const;

  // Returns a column of 128 lanes.
  uint32_t* column(uint32_t number) { return cells_.data() + size_t(number) * tensor_lanes; }
  uint32_t& cell(uint32_t lane, uint32_t number) { return column(number)[lane]; }

  // --- operations ---
  Block& block() { return block_; }
  bool is_late() const { return block_.launch->request->late_copies; }
  void issue(TensorOperation operation);
  // Fails the block and returns false if there is no room for another operation.
  bool has_room(Warp& warp, const MicroOp& op, unsigned lane) const;
  void add_store(const LateStore& store) { stores_.push_back(store); }
  void wait_for_stores(uint32_t warp);

  // --- --check ---
  // Number of the next operation of the warp's group, from 1 on.
  uint32_t next_operation(uint32_t warp) { return ++operation_numbers_[warp / 4]; }
  uint32_t last_operation(uint32_t warp) const { return operation_numbers_[warp / 4]; }
  // Serial number of the warp's loads or stores since its last wait for them; has_waited_for() compares with it.
  uint32_t serial(uint32_t warp, bool loads) const { return serials_[warp % 32][loads] + 1; }
  void note_wait(uint32_t warp, bool loads) { ++serials_[warp % 32][loads]; }
  bool has_waited_for(const TensorAccess& access, bool loads) const;
  TensorRecord& record(uint32_t lane, uint32_t column) {
    return records_[size_t(column) * (tensor_lanes / lanes_of_record) + lane / lanes_of_record];
  }

  // Columns that the other block of a pair has allocated for both blocks: the results of this block's next allocations.
  std::deque<Allocation> granted;
  bool has_relinquished = false;
  unsigned group = 0; // the kernel's .cta_group; 0: no tcgen05 instruction has run yet

private:
  void carry_out(const TensorOperation& operation);

  Block& block_;
  MemoryShare share_;
  std::vector<uint32_t> cells_; // in the order of columns
  std::array<Allocation, tensor_columns / least_tensor_columns> allocations_{};
  std::array<bool, tensor_columns> is_allocated_{};
  std::vector<TensorOperation> operations_;
  std::vector<LateStore> stores_;
  std::array<uint32_t, 8> operation_numbers_{};
  std::array<std::array<uint32_t, 2>, 32> serials_{}; // number of waits of each warp, for stores and for loads
  std::vector<TensorRecord> records_;                 // empty: no checks
};

// Returns the block's tensor memory for an instruction with .cta_group::`group`, or nullptr if the block has failed.
TensorMemory* own_tensor_memory(Warp& warp, const MicroOp& op, unsigned group);

// Finds also that of the other block of a pair (.cta_group::2): two blocks of a cluster whose ranks differ in bit 0.
// Returns false if there is none; the block has failed then.
struct TensorPair {
  TensorMemory* even = nullptr; // or that of a single block
  TensorMemory* odd = nullptr;  // nullptr for a single block
};
bool find_tensor_pair(Warp& warp, const MicroOp& op, unsigned group, TensorPair& pair);

// Are these columns and lanes allocated? If not, the executing block has failed. `memory` may belong to another block.
bool is_in_allocation(Warp& warp, const MicroOp& op, unsigned lane, const TensorMemory& memory, const char* what,
                      TensorAddress address, uint32_t lanes, uint32_t columns);

} // namespace ptxrewrite::emulator
