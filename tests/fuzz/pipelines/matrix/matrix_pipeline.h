// Random warp-specialised matrix products: a producer fills a ring of stages with tiles of A and B by tensor copies, a
// warp group, warps or the tensor cores of Blackwell multiply them, and mbarriers hand the stages over. The operands
// are whole numbers, so that D does not depend on the order of summation, and is computed from the description alone.
#pragma once

#include "tests/fuzz/pipelines/run_case.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz::pipelines {

enum class Multiplier : uint8_t {
  warp_group,           // wgmma.mma_async, both operands in shared memory
  warp_group_registers, // the same with A in registers
  warp,                 // mma.sync
  tensor_memory,        // tcgen05.mma
};
enum class Sums : uint8_t { f32, f16, s32 };

// A type of A and B.
struct MatrixElement {
  std::string_view name;
  uint32_t bytes;
  std::array<uint32_t, 4> codes; // of whole numbers; half sums take the first three
  std::array<int32_t, 4> values;
  std::string_view kind; // of tcgen05.mma
  uint32_t format;       // in its instruction descriptor
};
const std::array<MatrixElement, 7>& matrix_elements();

// How a tile gets into its stage.
enum class TileFill : uint8_t {
  copies, // a tensor copy of the block's own
  turns,  // the blocks of a cluster take turns, for both
  halves, // each block of a cluster copies one half, for both
  stores, // ld.global and st.shared by a warp
};
enum class ResultPath : uint8_t { stores, tensor_copy, tensor_reduction };

enum class MatrixFault : uint8_t {
  none,
  early_consumer,       // waits for the phase before
  early_producer,       // fills stages that have not been released
  short_count,          // 16 bytes too few are expected
  long_count,           // 16 bytes too many
  missing_proxy_fence,  // between stores and the asynchronous reads of them
  missing_fence,        // wgmma.fence
  missing_tensor_fence, // between a relaxed wait for sums and the loads of them
  early_release,        // of a stage that a product may still read
  early_sums,           // D is read before the products have been waited for
  leak,                 // tensor memory is not deallocated
  outside,              // the descriptor of B points behind shared memory
};
std::string_view name_of(MatrixFault fault);

// A tile of A or B in a stage: lines of 16, 32, 64 or 128 bytes, which are the swizzle's span (16: no swizzle).
// K-major: a line is a part of one row or column; else it is a part of one k.
struct TileLayout {
  bool k_major = true;
  uint32_t rows = 64;    // of A; columns of B
  uint32_t k_bytes = 32; // k times the bytes of an element
  uint32_t swizzle_bits = 0;
  uint32_t element_bytes = 2;

  uint32_t line() const { return 16u << swizzle_bits; }
  uint32_t k() const { return k_bytes / element_bytes; }
  uint32_t line_elements() const { return line() / element_bytes; }
  uint32_t lines_deep() const { return k_major ? rows : k(); } // that follow each other at the distance of a line
  uint32_t lines_wide() const { return (k_major ? k() : rows) / line_elements(); }
  uint32_t bytes() const { return rows * k_bytes; }
  uint32_t room() const { return (bytes() + 1023) / 1024 * 1024; }
};

struct MatrixPipeline {
  uint64_t seed = 0;
  Multiplier multiplier = Multiplier::warp_group;
  MatrixFault fault = MatrixFault::none;
  size_t element = 0; // of matrix_elements()
  Sums sums = Sums::f32;
  TileLayout a, b;
  uint32_t stages = 2, tiles = 4, works = 1; // tiles of k for one result, results of each block
  uint32_t clusters = 1, cluster_blocks = 1;
  uint32_t groups = 1;       // warp groups, or warps, that multiply
  uint32_t accumulators = 1; // in tensor memory
  TileFill a_fill = TileFill::copies, b_fill = TileFill::copies;
  ResultPath result = ResultPath::stores;
  bool registers_move = false;     // setmaxnreg
  bool counts_by_division = false; // stage and phase are quotients of the number of the tile
  bool tests = false;              // test_wait and nanosleep, not try_wait
  bool elects = false;             // elect.sync, not a comparison of lanes
  bool expects_apart = false;      // expect_tx and arrive are two instructions
  bool keeps_one_open = false;     // wgmma.wait_group 1, stages are released one tile later
  bool signs = false;              // A is negated (wgmma of 16 bits)

  const MatrixElement& type() const { return matrix_elements()[element]; }
  bool is_warp_group() const {
    return multiplier == Multiplier::warp_group || multiplier == Multiplier::warp_group_registers;
  }
  bool has_tensor_memory() const { return multiplier == Multiplier::tensor_memory; }
  uint32_t blocks() const { return clusters * cluster_blocks; }
  uint32_t n() const { return b.rows; }
  // Rows of D that the block computes at a time; `a` is the part of one warp group.
  uint32_t block_rows() const { return is_warp_group() ? groups * 64 : a.rows; }
  uint32_t a_copies() const { return is_warp_group() ? groups : 1; }
  uint32_t a_room() const { return a_copies() * a.room(); }
  uint32_t stage_bytes() const { return a_room() + b.room(); }
  uint32_t sum_bytes() const { return sums == Sums::f16 ? 2 : 4; }
  uint32_t row_bytes() const { return n() * sum_bytes(); } // of D
  uint32_t result_bytes() const { return result == ResultPath::stores ? 0 : block_rows() * row_bytes(); }
  uint32_t ring_bytes() const { return stages * stage_bytes() + result_bytes(); }
  bool ring_is_dynamic() const { return ring_bytes() > 40960; }
  uint32_t multiplying_warps() const { return is_warp_group() ? 4 * groups : has_tensor_memory() ? 4 : groups; }
  uint32_t first_multiplying_warp() const { return is_warp_group() ? 4 : has_tensor_memory() ? 0 : 1; }
  uint32_t producing_warp() const { return has_tensor_memory() ? 4 : 0; }
  uint32_t threads() const {
    return is_warp_group() ? 128 * (1 + groups) : has_tensor_memory() ? 192 : 32 * (1 + groups);
  }
  // Sums and their places are handed over by .relaxed operations between tcgen05.fence.
  bool relaxes() const { return has_tensor_memory() && seed % 2 == 1; }
  uint32_t results() const { return works * blocks(); } // tiles of D
  // Columns of B belong to a cluster if its blocks share the copies.
  bool shares_b() const { return b_fill == TileFill::turns || b_fill == TileFill::halves; }
};

MatrixPipeline generate_matrix(uint64_t seed);
// Parameters: maps of A, B and D, addresses of A and D (.u64), tiles, works (.u32).
std::string print(const MatrixPipeline& pipeline);
Case case_of(const MatrixPipeline& pipeline);

} // namespace ptxrewrite::fuzz::pipelines
