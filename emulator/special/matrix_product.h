// The statically known part of mma.sync and wmma.mma.
#pragma once

#include "emulator/special/matrix.h"
#include "emulator/tiles/aligned_sums.h"
#include "emulator/tiles/wide_product.h"

#include <algorithm>
#include <array>
#include <span>

namespace ptxrewrite::emulator {

// Finds the lanes of all operands of a product at once.
class ListedLanes {
public:
  static constexpr unsigned most = 36; // wmma of f16 has 32 registers

  ListedLanes() = default;
  explicit ListedLanes(std::span<const LaneRef> list); // nothing can be found in longer lists

  explicit operator bool() const { return count_ != 0; }
  void find(const Warp& warp, uint32_t* (&lanes)[most]) const {
    const auto find_first = [&](auto count) {
      std::byte* registers = warp.base[static_cast<unsigned>(LaneBase::registers)];
      for (unsigned i = 0; i < count; ++i)
        lanes[i] = reinterpret_cast<uint32_t*>(registers + offsets_[i]);
    };
    if (!are_registers_)
      std::ranges::transform(list_, lanes, [&](LaneRef place) { return warp.lanes<uint32_t>(place); });
    else if (count_ == 8)
      find_first(std::integral_constant<unsigned, 8>());
    else if (count_ == 20)
      find_first(std::integral_constant<unsigned, 20>());
    else
      find_first(std::integral_constant<unsigned, most>());
  }

private:
  std::array<LaneRef, most> list_{};
  std::array<uint64_t, most> offsets_{};
  bool are_registers_ = false; // all of them, at offsets_: a few vector instructions without branches find them
  unsigned count_ = 0;         // 8, 20 or `most`
};

// Registers are listed in the order D, A, B, C, the metadata of a sparse A, and then for A and for B of a block-scaled
// product: the scales, the number of the first byte, and the lanes that hold them.
struct MatrixProduct {
  MatrixShape shape; // k in words for one-bit elements
  ir::ScalarType a_type = ir::ScalarType::none, b_type = ir::ScalarType::none;
  Fragment d, a, b, c;
  bool saturates = false;
  bool and_popc = false;
  int rounding = 0;                             // rounding mode of <cfenv>; f64
  bool a_in_columns = false, b_in_rows = false; // m8n8k4 of f16
  bool in_containers = false;                   // elements of 4 and 6 bits, each stored in a byte
  bool sparse = false;
  unsigned selector = 0;    // selects lanes with metadata
  unsigned scale_count = 0; // per row of A and column of B; 0: none
  ir::ScalarType scale_type = ir::ScalarType::none;
  WideMethod wide; // for whole warps
  ListedLanes lanes;
  std::optional<AlignedSums> hopper_sums;

  unsigned stored() const { return sparse ? shape.k / 2u : shape.k; } // elements in a row of A
  unsigned first_of_b() const { return d.registers + a.registers; }
  unsigned first_of_c() const { return first_of_b() + b.registers; }
  unsigned metadata() const { return first_of_c() + c.registers; }
  unsigned first_of_scales() const { return metadata() + (sparse ? 1 : 0); }
};

// If each row of A and each column of B is held by four lanes, 16 bytes per register (all but f64, wmma, and m8n8k4 of
// f16): returns the handler of the product.
Handler group_product_handler(const MatrixProduct& product);

// The order of summation that a launch selects for a product; nullptr: sequential. `hopper`: as Hopper sums this
// product, if that is known.
const AlignedSums* selected_sums(const LaunchRequest& request, const std::optional<AlignedSums>& hopper);
const AlignedSums* aligned_sums(const Collective& all);

// The method for whole warps, if there is one. `opaque_layout`: wmma.
WideMethod method_of(const MatrixProduct& product, bool opaque_layout);
// Carries the product out by its method for whole warps. False, and nothing is done, if it has none, lanes come from
// several places, or the method is not for these operands. Called before lanes are collected, which a whole warp needs
// not.
bool multiply_whole_warp(Warp& warp, const MicroOp& op);

} // namespace ptxrewrite::emulator
