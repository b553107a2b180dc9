// MTA (dac-isca17 section 5.1.1) on streams of loads whose strides are known.
#include "emulator/machines/dac/stride_prefetcher.h"

#include <doctest/doctest.h>

#include <array>
#include <random>

namespace ptxrewrite::tests::stride_prefetcher_test {

using namespace ptxrewrite::emulator;

namespace {
void load(StridePrefetcher& machine, uint32_t instruction, uint64_t warp, uint64_t address) {
  const std::array<uint64_t, 1> lines = {address / line_bytes * line_bytes};
  machine.load(instruction, warp, address, lines);
}
} // namespace

TEST_CASE("MTA: a loop over rows is covered from its third trip on, warp after warp or not") {
  StridePrefetcher one;
  for (uint64_t trip = 0; trip < 100; ++trip)
    load(one, 7, 3, 0x10000 + trip * 4096);
  CHECK(one.counts().accesses == 100);
  CHECK(one.counts().misses == 100);
  CHECK(one.counts().covered == 97); // two strides are needed for training, from three trips

  StridePrefetcher warps;
  for (uint64_t warp = 0; warp < 48; ++warp)
    load(warps, 7, warp, 0x10000 + warp * 128);
  CHECK(warps.counts().covered == 45);
}

TEST_CASE("MTA: what has no stride is not covered, and what is fetched in vain stops the fetching") {
  StridePrefetcher machine;
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i)
    load(machine, 7, random() % 48, random() % (uint64_t(1) << 32));
  CHECK(machine.counts().coverage() < 0.01);

  // Two steps of one stride, then another address: each prediction is wrong.
  StridePrefetcher misled;
  uint64_t address = 0;
  for (int i = 0; i < 20000; ++i) {
    address += i % 3 == 2 ? (random() % 4096) * 65536 : 1024;
    load(misled, 7, 3, address);
  }
  CHECK(misled.counts().prefetched < 20000);
  CHECK(misled.counts().covered < 1000);
}

TEST_CASE("MTA: lines that are in L1 are no misses, and fall out of it in the order of their use") {
  LineCache cache(2, 2);
  CHECK_FALSE(cache.touch(0));
  CHECK_FALSE(cache.touch(256)); // the same set
  CHECK_FALSE(cache.touch(128)); // the other one
  CHECK(cache.touch(0));
  CHECK_FALSE(cache.touch(512)); // evicts 256
  CHECK(cache.contains(0));
  CHECK_FALSE(cache.contains(256));
  CHECK(cache.contains(128));
}

} // namespace ptxrewrite::tests::stride_prefetcher_test
