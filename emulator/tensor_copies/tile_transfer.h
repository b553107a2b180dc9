// Moves the bytes of a tensor copy, once they are located, between global memory and a box in shared memory.
#pragma once

#include "emulator/core/copies.h"
#include "emulator/tensor_copies/reduction.h"
#include "emulator/tensor_copies/swizzle.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ptxrewrite::emulator {

// A TileRun whose bytes in global memory have been located.
struct FoundRun {
  std::byte* global = nullptr; // nullptr: beyond the tensor
  uint32_t offset = 0;
  uint32_t bytes = 0;
};

enum class TransferKind : uint8_t { load, store, reduce };

struct TileTransfer {
  TransferKind kind = TransferKind::load;
  ir::TensorElement element = ir::TensorElement::u8;
  ir::TensorFill fill = ir::TensorFill::zeros;
  Swizzle swizzle;
  uint32_t start = 0;          // of the box in shared memory, a multiple of 128
  std::byte* shared = nullptr; // its first byte
  ReduceElements reduce = nullptr;
  bool concurrent = false; // other host threads run blocks at the same time
  DataReport report = DataReport::none;
};

// Does the data of a load, before it is moved, make a report to the mbarrier?
bool reports(const TileTransfer& transfer, std::span<const FoundRun> runs);

void carry_out(const TileTransfer& transfer, std::span<const FoundRun> runs);

// A transfer that takes place when a thread waits for it.
class LateTransfer final : public LateWork {
public:
  LateTransfer(const TileTransfer& transfer, std::vector<FoundRun> runs)
      : transfer_(transfer), runs_(std::move(runs)) {}
  void carry_out() override {
    reports_ = emulator::reports(transfer_, runs_);
    emulator::carry_out(transfer_, runs_);
  }
  bool reports() const override { return reports_; }

private:
  bool reports_ = false;
  TileTransfer transfer_;
  std::vector<FoundRun> runs_;
};

} // namespace ptxrewrite::emulator
