// operator new and delete of the programs (cli/small_blocks.cpp, linked into this test): blocks that are alive never
// overlap, keep their contents, and may be freed by another thread than the one that asked for them.
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>
#include <thread>
#include <vector>

namespace ptxrewrite::tests::small_blocks_test {

namespace {

struct Live {
  unsigned char* data = nullptr;
  size_t size = 0;
  unsigned char fill = 0;
};

Live take(std::mt19937& random, unsigned char fill) {
  Live block;
  block.size = random() % 8 ? random() % 300 : random() % 5000;
  block.fill = fill;
  block.data = static_cast<unsigned char*>(::operator new(block.size));
  std::memset(block.data, fill, block.size);
  return block;
}

// False if the contents have changed.
bool give_back(const Live& block, bool sized) {
  bool intact = reinterpret_cast<uintptr_t>(block.data) % alignof(std::max_align_t) == 0;
  for (size_t i = 0; i < block.size; ++i)
    intact = intact && block.data[i] == block.fill;
  if (sized)
    ::operator delete(block.data, block.size);
  else
    ::operator delete(block.data);
  return intact;
}

// The number of damaged blocks among `steps` allocations, a few hundred of them alive at a time.
size_t damaged_in(uint32_t seed, size_t steps, std::vector<Live>& alive) {
  std::mt19937 random(seed);
  size_t damaged = 0;
  for (size_t i = 0; i < steps; ++i) {
    if (alive.size() > 400 || (!alive.empty() && random() % 2)) {
      const size_t which = random() % alive.size();
      damaged += !give_back(alive[which], random() % 2);
      alive[which] = alive.back();
      alive.pop_back();
    } else {
      alive.push_back(take(random, static_cast<unsigned char>(random())));
    }
  }
  return damaged;
}

} // namespace

TEST_CASE("blocks keep their contents while they are alive") {
  std::vector<Live> alive;
  alive.reserve(1000);
  CHECK(damaged_in(1, 200'000, alive) == 0);
  for (const Live& block : alive)
    CHECK(give_back(block, true));
}

TEST_CASE("blocks move between threads") {
  std::array<std::vector<Live>, 4> alive;
  std::array<size_t, 4> damaged{};
  for (std::vector<Live>& list : alive)
    list.reserve(1000);
  for (uint32_t round = 0; round < 6; ++round) {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < alive.size(); ++i)
      threads.emplace_back(
          [&, i] { damaged[i] += damaged_in(100 * round + uint32_t(i), 20'000, alive[(i + round) % 4]); });
    for (std::thread& thread : threads)
      thread.join();
  }
  for (size_t i = 0; i < alive.size(); ++i) {
    CHECK(damaged[i] == 0);
    for (const Live& block : alive[i])
      CHECK(give_back(block, i % 2));
  }
}

TEST_CASE("a request beyond all memory throws") {
  volatile size_t bytes = size_t(1) << 60; // not known to the compiler, which would warn
  CHECK_THROWS_AS(::operator delete(::operator new(bytes)), std::bad_alloc);
}

} // namespace ptxrewrite::tests::small_blocks_test
