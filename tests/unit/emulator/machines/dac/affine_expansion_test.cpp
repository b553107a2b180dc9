// DAC's expansion units, queues, SIMT stack and divergent tuples (dac-isca17 sections 4.2, 4.3, 4.5, 4.6), each against
// all threads one by one.
#include "emulator/machines/dac/affine_expansion.h"
#include "emulator/machines/dac/affine_queues.h"
#include "emulator/machines/dac/affine_stack.h"
#include "emulator/machines/dac/line_locks.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <map>
#include <random>
#include <set>

namespace ptxrewrite::tests::affine_expansion_test {

using namespace ptxrewrite::emulator;

namespace {

const std::vector<Dimensions> two_blocks = {{3, 1, 0}, {4, 1, 0}};

std::vector<Dimensions> block_shapes() {
  return {{32}, {256}, {33}, {16, 16}, {8, 8, 8}, {20, 3}, {1, 70}, {7, 5, 3}, {64, 2}, {31}};
}

// The indices of a thread, by its number: x varies fastest.
ThreadPosition counted(const Dimensions& shape, const Dimensions& block, uint32_t thread) {
  ThreadPosition at{0, 0, 0, block.x, block.y, block.z};
  for (uint32_t i = 0; i < thread; ++i)
    if (++at[0] == shape.x) {
      at[0] = 0;
      if (++at[1] == shape.y) {
        at[1] = 0;
        ++at[2];
      }
    }
  return at;
}

uint64_t value_of(const AffineTuple& tuple, const ThreadPosition& thread) {
  uint64_t value = tuple.base;
  for (unsigned i = 0; i < index_components; ++i)
    value += tuple.offsets[i] * thread[i];
  return tuple.bits == 32 ? static_cast<uint32_t>(value) : value;
}

AffineTuple tuple_of(uint64_t base, IndexOffsets offsets, unsigned bits = 64) {
  AffineTuple tuple = AffineTuple::scalar(base, bits);
  for (unsigned i = 0; i < index_components; ++i)
    tuple.offsets[i] = low_bits(offsets[i], bits);
  return tuple;
}

constexpr uint64_t minus(uint64_t value) {
  return ~value + 1;
}

} // namespace

TEST_CASE("affine expansion: addresses of all lanes, and the words they touch") {
  const std::vector<AffineTuple> tuples = {
      tuple_of(0x7f4000001000, {4, 64, 256, 1024, 0, 0}), // consecutive rows
      tuple_of(0x7f4000001000, {4, 4096, 65536, 64, 0, 0}),
      tuple_of(0x7f4000001000, {8, 0, 0, 0, 0, 0}),
      tuple_of(0x7f4000100004, {minus(4), minus(128), 12, 4, 0, 0}),
      tuple_of(0x7f4000001040, {0, 0, 0, 4, 0, 0}),
      tuple_of(0x7f4000001000, {256, 4, 0, 0, 0, 0}),
      tuple_of(0x100, {4, 80, 0, 0, 0, 0}, 32),
  };
  for (const Dimensions& shape : block_shapes())
    for (const AffineTuple& tuple : tuples)
      for (unsigned bytes : {1u, 2u, 4u, 8u, 16u}) {
        const AffineBatch batch(shape, two_blocks);
        const ThreadSet all = ThreadSet::all(batch);
        const std::vector<AffineValue::Part> parts = {{all, tuple}};
        for (uint32_t warp = 0; warp < batch.warps(); ++warp) {
          const WarpAddresses record = expand_addresses(parts, bytes, batch, warp);
          std::set<uint64_t> touched, expected;
          uint32_t exist = 0;
          for (unsigned lane = 0; lane < warp_size; ++lane) {
            const uint32_t thread = warp % batch.warps_per_block() * warp_size + lane;
            if (thread >= shape.count()) continue;
            exist |= 1u << lane;
            const uint64_t address =
                value_of(tuple, counted(shape, two_blocks[warp / batch.warps_per_block()], thread));
            REQUIRE(record.addresses[lane] == address);
            for (uint64_t byte = address; byte < address + bytes; ++byte)
              expected.insert(byte / record.unit);
          }
          CHECK(record.lanes == exist);
          CHECK(record.unit == std::min(bytes, 4u));
          for (const TouchedLine& line : record.lines) {
            CHECK(line.address % (record.unit * 32) == 0);
            for (unsigned unit = 0; unit < 32; ++unit)
              if (line.units >> unit & 1) touched.insert(line.address / record.unit + unit);
          }
          CHECK(touched == expected);
        }
      }
}

TEST_CASE(
    "affine expansion: an offset of 4 is one line for a warp, one of 8 is two with every other word (Figs. 10, 11)") {
  const AffineBatch batch({64}, std::vector<Dimensions>{{0}});
  const ThreadSet all = ThreadSet::all(batch);
  const std::vector<AffineValue::Part> four = {{all, tuple_of(0x1000, {4})}}, eight = {{all, tuple_of(0x1000, {8})}};
  CHECK(expand_addresses(four, 4, batch, 0).lines == std::vector<TouchedLine>{{0x1000, 0xffffffff}});
  CHECK(expand_addresses(four, 4, batch, 1).lines == std::vector<TouchedLine>{{0x1080, 0xffffffff}});
  CHECK(expand_addresses(eight, 4, batch, 1).lines ==
        std::vector<TouchedLine>{{0x1100, 0x55555555}, {0x1180, 0x55555555}});
  const AffineBatch rows({16, 8}, std::vector<Dimensions>{{0}});
  const std::vector<AffineValue::Part> pitch = {{ThreadSet::all(rows), tuple_of(0x1000, {4, 256})}};
  const WarpAddresses record = expand_addresses(pitch, 4, rows, 1);
  CHECK(record.lines == std::vector<TouchedLine>{{0x1200, 0xffff}, {0x1300, 0xffff}});
  CHECK(record.adjustments == 1);
  CHECK(record.adjusted_lines == 1); // to the second row's line
  // Consecutive rows: the second one is in the line of the first.
  const std::vector<AffineValue::Part> dense = {{ThreadSet::all(rows), tuple_of(0x1000, {4, 64})}};
  const WarpAddresses of_dense = expand_addresses(dense, 4, rows, 1);
  CHECK(of_dense.lines == std::vector<TouchedLine>{{0x1080, 0xffffffff}});
  CHECK(of_dense.adjustments == 1);
  CHECK(of_dense.adjusted_lines == 0);
}

TEST_CASE("affine expansion: divergent and mod tuples by lane") {
  const AffineBatch batch({40, 2}, two_blocks);
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<AffineValue::Part> parts;
    ThreadSet rest = ThreadSet::all(batch);
    rest[0] &= random();
    for (unsigned i = 0; i < 4; ++i) {
      ThreadSet some = rest;
      for (uint32_t warp = 0; warp < batch.warps(); ++warp)
        some[warp] &= random();
      AffineTuple tuple = tuple_of(random() % 4096 * 4, {random() % 9 * 4, random() % 5 * 4, 0, 4});
      if (i % 2) tuple = *remainder(tuple, AffineTuple::scalar(60, 64), i == 3);
      parts.push_back({some, tuple});
      rest.remove(some);
    }
    for (uint32_t warp = 0; warp < batch.warps(); ++warp) {
      const WarpAddresses record = expand_addresses(parts, 4, batch, warp);
      for (unsigned lane = 0; lane < warp_size; ++lane) {
        const AffineValue::Part* part = nullptr;
        for (const AffineValue::Part& one : parts)
          if (one.threads[warp] >> lane & 1) part = &one;
        CHECK((record.lanes >> lane & 1) == (part != nullptr));
        if (!part) continue;
        const uint32_t thread = warp % batch.warps_per_block() * warp_size + lane;
        const ThreadPosition at = counted({40, 2}, two_blocks[warp / batch.warps_per_block()], thread);
        const AffineTuple::Modulo* modulo = part->tuple.modulo ? &*part->tuple.modulo : nullptr;
        const uint64_t expected =
            modulo ? value_of(tuple_of(modulo->base, modulo->offsets), at) % 60 : value_of(part->tuple, at);
        CHECK(record.addresses[lane] == expected);
      }
    }
  }
}

TEST_CASE("affine expansion: predicates of all lanes in all three cases, each only where it is allowed") {
  std::mt19937_64 random(11);
  std::map<PredicateCase, unsigned> seen;
  auto small = [&] { return static_cast<uint64_t>(static_cast<int64_t>(random() % 200) - 100); };
  for (const Dimensions& shape : block_shapes()) {
    const AffineBatch batch(shape, two_blocks);
    for (int round = 0; round < 200; ++round) {
      const unsigned bits = random() % 2 ? 32 : 64;
      const bool wide = random() % 4 == 0; // so that values wrap
      auto number = [&] { return wide ? random() : small(); };
      const AffineTuple scalar = tuple_of(number(), {0, 0, 0, random() % 3}, bits);
      AffineTuple other = tuple_of(number(), {random() % 3 ? number() : 0, number(), number(), number()}, bits);
      if (random() % 5 == 0) other = tuple_of(other.base, {0, 0, 0, 7}, bits);
      if (random() % 3 == 0) { // of one index alone
        IndexOffsets one{};
        one[random() % 3] = number();
        other = tuple_of(other.base, one, bits);
      }
      const bool swapped = random() % 2;
      const AffineComparison comparison{.less = random() % 2 == 0,
                                        .equal = random() % 2 == 0,
                                        .greater = random() % 2 == 0,
                                        .is_signed = random() % 2 == 0,
                                        .bits = bits};
      for (uint32_t warp = 0; warp < batch.warps(); ++warp) {
        const WarpPredicate predicate =
            expand_comparison(comparison, swapped ? scalar : other, swapped ? other : scalar, batch, warp);
        ++seen[predicate.how];
        uint32_t expected = 0;
        std::set<uint32_t> rows;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
          const uint32_t thread = warp % batch.warps_per_block() * warp_size + lane;
          if (thread >= shape.count()) continue;
          const ThreadPosition at = counted(shape, two_blocks[warp / batch.warps_per_block()], thread);
          rows.insert(thread / shape.x);
          uint64_t a = value_of(scalar, at), b = value_of(other, at);
          if (!swapped) std::swap(a, b);
          bool less = a < b;
          if (comparison.is_signed && bits == 64) less = static_cast<int64_t>(a) < static_cast<int64_t>(b);
          if (comparison.is_signed && bits == 32) less = static_cast<int32_t>(a) < static_cast<int32_t>(b);
          const bool holds = a == b ? comparison.equal : less ? comparison.less : comparison.greater;
          expected |= static_cast<uint32_t>(holds) << lane;
        }
        REQUIRE(predicate.bits == expected);
        const unsigned indices = (other.offsets[0] != 0) + (other.offsets[1] != 0) + (other.offsets[2] != 0);
        if (predicate.how == PredicateCase::ends) CHECK((rows.size() == 1 || indices == 1));
      }
    }
  }
  CHECK(seen[PredicateCase::scalar] > 100);
  CHECK(seen[PredicateCase::ends] > 100);
  CHECK(seen[PredicateCase::lanes] > 100);
}

TEST_CASE("affine expansion: tid < n takes two comparisons but in the warp where n lies") {
  const AffineBatch batch({128}, std::vector<Dimensions>{{0}});
  const AffineComparison less{.less = true, .is_signed = true};
  const AffineTuple n = AffineTuple::scalar(70, 32);
  auto how = [&](uint32_t warp) { return expand_comparison(less, AffineTuple::index(0), n, batch, warp).how; };
  CHECK(how(0) == PredicateCase::ends);
  CHECK(how(1) == PredicateCase::ends);
  CHECK(how(2) == PredicateCase::lanes);
  CHECK(how(3) == PredicateCase::ends);
  CHECK(expand_comparison(less, AffineTuple::index(3), n, batch, 3).how == PredicateCase::scalar);
  // A lane at n exactly is not strictly on one side.
  CHECK(expand_comparison(less, AffineTuple::index(0), AffineTuple::scalar(64, 32), batch, 2).how ==
        PredicateCase::lanes);
}

TEST_CASE("affine expansion: in a warp of two rows what depends on one index alone takes two comparisons") {
  const AffineBatch batch({16, 16}, std::vector<Dimensions>{{0}});
  const AffineComparison less{.less = true, .is_signed = true};
  auto how = [&](const AffineTuple& tuple, uint64_t n, uint32_t warp) {
    return expand_comparison(less, tuple, AffineTuple::scalar(n, 32), batch, warp).how;
  };
  const AffineTuple x = AffineTuple::index(0), y = AffineTuple::index(1);
  CHECK(how(x, 16, 0) == PredicateCase::ends);
  CHECK(how(x, 15, 0) == PredicateCase::lanes); // lane 15 differs from both ends of the warp's second row but one
  CHECK(how(y, 4, 1) == PredicateCase::ends);   // rows 2 and 3
  CHECK(how(y, 3, 1) == PredicateCase::lanes);  // between them
  CHECK(how(tuple_of(0, {1, 16}, 32), 256, 0) == PredicateCase::lanes); // of both
}

TEST_CASE("affine values: threads keep what was written for them; the fifth tuple makes the oldest unknown") {
  const AffineBatch batch({64}, two_blocks);
  std::mt19937 random(3);
  AffineValue value(batch.warps(), 32);
  std::vector<std::array<uint64_t, 32>> model(batch.warps());
  for (int round = 0; round < 60; ++round) {
    ThreadSet threads = ThreadSet::all(batch);
    for (uint32_t warp = 0; warp < batch.warps(); ++warp)
      threads[warp] &= random() & random();
    const uint64_t number = random() % 4; // never more than four different ones, zero among them
    value.write(threads, AffineTuple::scalar(number, 32));
    for (uint32_t warp = 0; warp < batch.warps(); ++warp)
      for (unsigned lane = 0; lane < 32; ++lane)
        if (threads[warp] >> lane & 1) model[warp][lane] = number;
    ThreadSet wanted = ThreadSet::all(batch);
    wanted[round % 4] = random();
    const auto parts = value.read(wanted);
    REQUIRE(parts);
    ThreadSet covered(batch.warps());
    for (const AffineValue::Part& part : *parts) {
      CHECK_FALSE(part.threads.empty());
      CHECK((covered & part.threads).empty());
      covered |= part.threads;
      for (uint32_t warp = 0; warp < batch.warps(); ++warp)
        for (unsigned lane = 0; lane < 32; ++lane)
          if (part.threads[warp] >> lane & 1) CHECK(part.tuple.base == model[warp][lane]);
    }
    CHECK(covered == wanted);
  }
  AffineValue many(batch.warps(), 32);
  std::vector<ThreadSet> writers;
  for (unsigned i = 0; i < 5; ++i) {
    ThreadSet one(batch.warps());
    one[1] = 1u << i;
    writers.push_back(one);
    many.write(one, AffineTuple::scalar(10 + i, 32));
  }
  CHECK_FALSE(many.read(writers[0]));
  CHECK(many.read(writers[1]));
  many.write(writers[0], AffineTuple::scalar(14, 32)); // written again, known again
  CHECK(many.read(writers[0])->front().tuple.base == 14);
}

TEST_CASE("affine queues: 192 entries for the warps of an SM, at least one each") {
  CHECK(entries_of_warp(48) == 4);
  CHECK(entries_of_warp(8) == 24);
  CHECK(entries_of_warp(64) == 3);
  CHECK(entries_of_warp(193) == 1);
  CHECK(entries_of_warp(0) == 1);
}

TEST_CASE("affine queues: each warp finds its tuples in order, whatever the others do; a tuple leaves with its last") {
  std::mt19937 random(5);
  const AffineBatch batch({96}, std::vector<Dimensions>{{0}, {1}});
  TupleQueue queue(tuple_queue_entries, batch.warps());
  std::vector<std::array<std::vector<uint32_t>, 2>> expected(batch.warps()), seen(batch.warps());
  uint32_t site = 0;
  for (int round = 0; round < 20000; ++round) {
    if (site < 500 && !queue.full() && random() % 3 == 0) {
      QueuedTuple tuple;
      tuple.kind = random() % 2 ? TupleKind::predicate : TupleKind::address;
      tuple.site = site++;
      tuple.threads = ThreadSet(batch.warps());
      for (uint32_t warp = 0; warp < batch.warps(); ++warp)
        if (random() % 2) {
          tuple.threads[warp] = 1u << (random() % 32);
          expected[warp][tuple.kind == TupleKind::predicate].push_back(tuple.site);
        }
      queue.push(tuple);
    }
    const uint32_t warp = static_cast<uint32_t>(random() % batch.warps());
    const bool predicates = random() % 2;
    if (const QueuedTuple* tuple = queue.next(warp, predicates)) {
      CHECK(queue.next(warp, predicates) == tuple);
      CHECK(tuple->threads[warp] != 0);
      seen[warp][predicates].push_back(tuple->site);
      queue.pass(warp, predicates);
    }
    REQUIRE(queue.size() <= tuple_queue_entries);
  }
  CHECK(queue.empty());
  CHECK(site == 500);
  CHECK(seen == expected);
}

TEST_CASE("line locks: all ways of a set but one, all lines of a request or none, until the last who wants them") {
  LineLocks locks(2, 4); // lines with even numbers in one set, with odd numbers in the other
  unsigned fresh = 0;
  auto lock = [&](std::vector<uint64_t> numbers) {
    for (uint64_t& number : numbers)
      number *= line_bytes;
    const LineLocks::Outcome outcome = locks.lock(numbers, fresh);
    return std::pair(outcome, numbers.size());
  };
  using enum LineLocks::Outcome;
  CHECK(lock({0, 2, 1}) == std::pair(locked, size_t(3)));
  CHECK(fresh == 3);
  CHECK(lock({2, 4}) == std::pair(locked, size_t(2)));
  CHECK(fresh == 1);
  CHECK(lock({3, 6}).first == full); // a fourth line in the even set; 3 is not locked either
  CHECK_FALSE(locks.is_locked(3 * line_bytes));
  const std::vector<uint64_t> two = {2 * line_bytes}, zero = {0};
  locks.unlock(two);
  CHECK(locks.is_locked(2 * line_bytes)); // once more
  locks.unlock(zero);
  CHECK(lock({3, 6}) == std::pair(locked, size_t(2)));
  CHECK(locks.locked_lines() == 5);
  LineLocks alone(2, 4);
  std::vector<uint64_t> many;
  for (uint64_t number = 0; number < 20; number += 2)
    many.push_back(number * line_bytes);
  CHECK(alone.lock(many, fresh) == locked); // of more lines than a set can lock, the rest stays unlocked
  CHECK(many.size() == 3);
}

namespace {

// A small program for the stack: a place is an instruction; branches define the threads that take them.
struct Step {
  uint32_t target = 0;
  uint32_t meet = never_meets;
  std::function<bool(uint32_t thread)> takes = {}; // empty: no branch
  bool ends = false;
};

// Runs one warp alone, by the rules of ordinary warps: fall-through side first, reconvergence at the post-dominator.
void run_lanes(const std::vector<Step>& program, std::vector<uint32_t> lanes, uint32_t at, uint32_t meet,
               std::vector<std::pair<uint32_t, uint32_t>>& trace, std::vector<bool>& ended) {
  while (at != meet) {
    std::erase_if(lanes, [&](uint32_t thread) { return ended[thread]; });
    if (lanes.empty()) return;
    uint32_t mask = 0;
    for (uint32_t thread : lanes)
      mask |= 1u << (thread % 32);
    trace.emplace_back(at, mask);
    const Step& step = program[at];
    if (step.ends) {
      for (uint32_t thread : lanes)
        ended[thread] = true;
      return;
    }
    if (!step.takes) {
      ++at;
      continue;
    }
    std::vector<uint32_t> taken, others;
    for (uint32_t thread : lanes)
      (step.takes(thread) ? taken : others).push_back(thread);
    if (taken.empty() || others.empty()) {
      at = others.empty() ? step.target : at + 1;
      continue;
    }
    const uint32_t place = step.meet == never_meets ? meet : step.meet;
    run_lanes(program, others, at + 1, place, trace, ended);
    run_lanes(program, taken, step.target, place, trace, ended);
    if (step.meet == never_meets) return;
    at = step.meet;
  }
}

} // namespace

TEST_CASE("affine stack: each warp sees the instructions it would execute alone, in that order, with these lanes") {
  // if (t & 1) { if (t & 2) exit; b } else c;  loop (t % 5 + 1 trips; ends at 9);  if (warp 1) d else e;  end
  std::vector<int> trips(64, 0);
  const std::vector<Step> program = {
      {5, 6, [](uint32_t t) { return (t & 1) == 0; }, false}, // 0
      {4, never_meets, [](uint32_t t) { return (t & 2) == 0; }, false},
      {},
      {.ends = true},
      {6, never_meets, [](uint32_t) { return true; }, false}, // 4
      {},                                                     // 5: c
      {},                                                     // 6: loop
      {},
      {6, 9, [&](uint32_t t) { return trips[t]++ < int(t % 5); }, false}, // 8
      {11, 12, [](uint32_t t) { return t >= 32; }, false},                // 9
      {12, never_meets, [](uint32_t) { return true; }, false},
      {},            // 11
      {.ends = true} // 12
  };
  const AffineBatch batch({64}, std::vector<Dimensions>{{0}});
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> alone(2), together(2);
  for (uint32_t warp = 0; warp < 2; ++warp) {
    std::vector<uint32_t> lanes;
    for (uint32_t lane = 0; lane < 32; ++lane)
      lanes.push_back(warp * 32 + lane);
    std::vector<bool> ended(64);
    run_lanes(program, lanes, 0, never_meets, alone[warp], ended);
  }
  std::fill(trips.begin(), trips.end(), 0);
  AffineStack stack(batch);
  while (!stack.empty()) {
    const uint32_t at = stack.next();
    const Step& step = program[at];
    for (uint32_t warp = 0; warp < 2; ++warp)
      if (stack.active()[warp]) together[warp].emplace_back(at, stack.active()[warp]);
    if (step.ends) {
      const ThreadSet all = stack.active();
      stack.exit(all, at + 1);
    } else if (step.takes) {
      ThreadSet taken(2);
      for (uint32_t warp = 0; warp < 2; ++warp)
        for (uint32_t lane = 0; lane < 32; ++lane)
          if ((stack.active()[warp] >> lane & 1) && step.takes(warp * 32 + lane)) taken[warp] |= 1u << lane;
      REQUIRE(stack.branch(taken, step.target, at + 1, step.meet));
    } else {
      stack.go_to(at + 1);
    }
    REQUIRE(stack.depth() <= affine_stack_depth);
  }
  CHECK(alone == together);
}

TEST_CASE("affine stack: loops do not grow it, nested branches do, up to eight; the last entry popped is a condition") {
  const AffineBatch batch({32}, std::vector<Dimensions>{{0}});
  AffineStack loop(batch);
  ThreadSet again = ThreadSet::all(batch);
  for (unsigned trip = 0; trip < 31; ++trip) {
    again[0] >>= 1;
    REQUIRE(loop.branch(again, 0, 7, 7));
    CHECK(loop.depth() == 2);
  }
  CHECK(loop.branch(ThreadSet(1), 0, 7, 7));
  CHECK(loop.depth() == 1);
  CHECK(loop.active()[0] == 0xffffffff);

  AffineStack nested(batch);
  ThreadSet some = ThreadSet::all(batch);
  uint32_t level = 0;
  for (;; ++level) {
    some[0] >>= 1;
    const ThreadSet others = without(nested.active(), some);
    const uint32_t meet = 100 - level;
    if (!nested.branch(some, level * 2 + 1, level * 2 + 2, meet)) break;
    CHECK(nested.next() == level * 2 + 2);
    CHECK(nested.active() == others);
    CHECK(nested.depth() == 3 + level); // the waiting entries, one per level, and the two sides
    nested.go_to(meet);                 // the fall-through side has arrived; the taken side diverges again
    CHECK(nested.last_popped() == others);
    CHECK(nested.next() == level * 2 + 1);
    CHECK(nested.active() == some);
  }
  CHECK(level == 6);
  CHECK(nested.active()[0] == 0xffffffff >> 6); // a branch that does not fit has no effect
}

} // namespace ptxrewrite::tests::affine_expansion_test
