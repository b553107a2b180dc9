// Random kernels whose warps have roles: one fills a ring of stages in shared memory by asynchronous copies, the others
// consume it, and mbarriers hand the stages over. What they compute is known from the description alone.
#pragma once

#include "tests/fuzz/pipelines/run_case.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::fuzz::pipelines {

// How the producer fills a stage.
enum class Fill : uint8_t {
  bulk,   // cp.async.bulk by one thread, bytes are counted
  copies, // cp.async by a warp, whose arrival waits for them
  stores, // ld.global and st.shared
};

// A fault that is planted on purpose.
enum class Fault : uint8_t {
  none,
  early_consumer, // waits for the phase before: reads stages that are being filled
  early_producer, // fills stages that have not been released
  short_count,    // 16 bytes too few are expected
  long_count,     // 16 bytes too many
  missing_fence,  // no proxy fence between stores and the bulk copy that reads them
};
std::string_view name_of(Fault fault);

// What a consumer reads of a stage, and makes of it.
struct Read {
  uint32_t stride = 1, offset = 0; // word (thread * stride + offset) % words
  uint32_t factor = 1, mix = 0;    // sum = (sum * factor + word) ^ (mix + tile)
  uint32_t lanes = 32;             // the first lanes of each warp alone
};

struct Pipeline {
  uint64_t seed = 0;
  Fill fill = Fill::bulk;
  Fault fault = Fault::none;
  uint32_t stages = 2, words = 32, tiles = 4, consumers = 1, blocks = 1;
  std::vector<Read> reads;
  bool all_release = false;        // each thread arrives at `empty`, not one of each warp
  bool counts_by_division = false; // stage and phase are tile % stages and tile / stages
  bool tests = false;              // test_wait and nanosleep, not try_wait
  bool stores_tiles = false;       // sums are stored after each tile, too
  bool bulk_result = false;        // results leave by a bulk copy from shared memory

  uint32_t threads() const { return 32 * (1 + consumers); }
  uint32_t consumer_threads() const { return 32 * consumers; }
  uint32_t input_words() const { return blocks * tiles * words; }
  uint32_t output_words() const { return blocks * consumer_threads() * (stores_tiles ? 1 + tiles : 1); }
};

Pipeline generate(uint64_t seed);
// A kernel "pipeline" with parameters in, out (.u64), tiles (.u32).
std::string print(const Pipeline& pipeline);
// The expected results are those of the pipeline without its fault.
Case case_of(const Pipeline& pipeline);

} // namespace ptxrewrite::fuzz::pipelines
