// Tuples of DAC's affine warp (dac-isca17 section 4.4) against the 16-, 32- or 64-bit arithmetic of every thread,
// computed with the host's integers.
#include "emulator/machines/dac/affine_tuple.h"

#include <doctest/doctest.h>

#include <random>

namespace ptxrewrite::tests::affine_tuple_test {

using namespace ptxrewrite::emulator;

namespace {

// All threads of a few blocks.
std::vector<ThreadPosition> threads() {
  std::vector<ThreadPosition> all;
  for (uint32_t block : {0u, 1u, 7u, 65535u})
    for (uint32_t z = 0; z < 2; ++z)
      for (uint32_t y = 0; y < 3; ++y)
        for (uint32_t x = 0; x < 5; ++x)
          all.push_back({x, y, z, block, block % 3, block % 2});
  return all;
}

class Random {
public:
  uint64_t number(unsigned bits) {
    // Small numbers and numbers at the ends of the range are critical.
    const uint64_t any = engine_();
    switch (engine_() % 4) {
    case 0:
      return low_bits(any % 7, bits);
    case 1:
      return low_bits(-(any % 7), bits);
    case 2:
      return low_bits((uint64_t(1) << (bits - 1)) + any % 5 - 2, bits);
    default:
      return low_bits(any, bits);
    }
  }
  AffineTuple tuple(unsigned bits) {
    AffineTuple result = AffineTuple::scalar(number(bits), bits);
    for (uint64_t& offset : result.offsets)
      if (engine_() % 2) offset = number(bits);
    return result;
  }
  AffineTuple scalar(unsigned bits) { return AffineTuple::scalar(number(bits), bits); }

private:
  std::mt19937_64 engine_{20171};
};

template <class U> void check_width(unsigned bits) {
  using S = std::make_signed_t<U>;
  Random random;
  for (int round = 0; round < 300; ++round) {
    const AffineTuple a = random.tuple(bits), b = random.tuple(bits), s = random.scalar(bits);
    const uint32_t places = static_cast<uint32_t>(random.number(16)) % (bits + 9);
    const auto by = static_cast<U>(s.base ? s.base : 1);
    const auto divisor = AffineTuple::scalar(by, bits);
    const auto sum = add(a, b), difference = subtract(a, b), product = multiply(a, s), other = multiply(s, b);
    const auto shifted = shift_left(a, AffineTuple::scalar(places, 32));
    const auto rest = remainder(a, divisor, false), signed_rest = remainder(a, divisor, true);
    REQUIRE((sum && difference && product && other && shifted && rest && signed_rest));
    const auto rest_later = add(*multiply(*rest, s), AffineTuple::scalar(b.base, bits));
    REQUIRE(rest_later);
    for (const ThreadPosition& thread : threads()) {
      // The register of a thread, by the definition: base + sum of offset * index.
      U x = static_cast<U>(a.base), y = static_cast<U>(b.base);
      for (unsigned i = 0; i < index_components; ++i) {
        x = static_cast<U>(x + static_cast<U>(a.offsets[i]) * uint64_t(thread[i]));
        y = static_cast<U>(y + static_cast<U>(b.offsets[i]) * uint64_t(thread[i]));
      }
      const auto factor = static_cast<U>(s.base);
      REQUIRE(a.at(thread) == x);
      CHECK(sum->at(thread) == static_cast<U>(x + y));
      CHECK(difference->at(thread) == static_cast<U>(x - y));
      CHECK(product->at(thread) == static_cast<U>(uint64_t(x) * factor));
      CHECK(other->at(thread) == static_cast<U>(uint64_t(y) * factor));
      CHECK(negate(a).at(thread) == static_cast<U>(-x));
      CHECK(shifted->at(thread) == (places < bits ? static_cast<U>(uint64_t(x) << places) : U(0)));
      CHECK(rest->at(thread) == static_cast<U>(x % by));
      const bool overflows = static_cast<S>(by) == -1; // the smallest number by -1: 0, which C++ leaves open
      const S signed_x = static_cast<S>(x);
      const U expected = overflows ? U(0) : static_cast<U>(signed_x % static_cast<S>(by));
      CHECK(signed_rest->at(thread) == expected);
      CHECK(rest_later->at(thread) == static_cast<U>(uint64_t(static_cast<U>(x % by)) * factor + b.base));
    }
  }
}

} // namespace

TEST_CASE("affine tuples: arithmetic is each thread's, modulo 2^16, 2^32 and 2^64") {
  check_width<uint16_t>(16);
  check_width<uint32_t>(32);
  check_width<uint64_t>(64);
}

TEST_CASE("affine tuples: the values of the paper's Fig. 5") {
  // A[] = 0x80000 as a parameter, r1 = threadIdx.x * 4 in block 0, addrA = A[] + r1, num = 0x400.
  const AffineTuple parameter = AffineTuple::scalar(0x80000, 32);
  const AffineTuple r1 = *multiply(AffineTuple::index(0), AffineTuple::scalar(4, 32));
  CHECK(r1.base == 0);
  CHECK(r1.offsets[0] == 4);
  AffineTuple address = *add(parameter, r1);
  CHECK(address.base == 0x80000);
  CHECK(address.offsets[0] == 4);
  const AffineTuple r3 = *multiply(AffineTuple::scalar(0x400, 32), AffineTuple::scalar(4, 32));
  CHECK(r3 == AffineTuple::scalar(0x1000, 32));
  address = *add(r3, address);
  for (uint32_t thread = 0; thread < 3; ++thread)
    CHECK(address.at({thread}) == 0x81000 + 4 * thread);
}

TEST_CASE("affine tuples: what they cannot express is refused") {
  const AffineTuple x = AffineTuple::index(0), y = AffineTuple::index(1), three = AffineTuple::scalar(3, 32);
  CHECK_FALSE(multiply(x, y));
  CHECK_FALSE(multiply(x, x));
  CHECK_FALSE(remainder(x, y, false));
  CHECK_FALSE(shift_left(three, x));
  const AffineTuple rest = *remainder(x, three, false);
  CHECK_FALSE(rest.is_scalar());
  CHECK_FALSE(add(rest, y));
  CHECK_FALSE(add(y, rest));
  CHECK_FALSE(add(rest, rest));
  CHECK_FALSE(remainder(rest, three, false));
  CHECK(add(rest, three));
  CHECK(add(three, rest));
  CHECK(AffineTuple::index(3).is_block_scalar());
  CHECK_FALSE(AffineTuple::index(3).is_scalar());
  CHECK_FALSE(x.is_block_scalar());
}

TEST_CASE("affine tuples: widening is each thread's where no thread's narrow value wraps") {
  // n - 1 - tid, negative steps; tid - 2, negative values; both as int and converted to 64 bits.
  const AffineTuple x = AffineTuple::index(0);
  const AffineTuple down = *subtract(AffineTuple::scalar(99, 32), x);
  const AffineTuple below = *subtract(x, AffineTuple::scalar(2, 32));
  for (uint32_t thread = 0; thread < 99; ++thread) {
    CHECK(convert(down, 64, true).at({thread}) == 99u - thread);
    CHECK(convert(down, 64, false).at({thread}) == 99u - thread);
    CHECK(convert(below, 64, true).at({thread}) == static_cast<uint64_t>(int64_t(thread) - 2));
    CHECK(convert(convert(below, 64, true), 32, true).at({thread}) == thread - 2u);
    CHECK(convert(down, 16, true).at({thread}) == 99u - thread);
  }
  const AffineTuple big = AffineTuple::scalar(0xffff'fff0, 32);
  CHECK(convert(big, 64, false).base == 0xffff'fff0u);
  CHECK(convert(big, 64, true).base == ~uint64_t(0) - 15);
  // The remainder of a wrapped value is right in 32 bits, and remains so in 64 bits.
  const AffineTuple rest = *remainder(below, AffineTuple::scalar(10, 32), false);
  for (uint32_t thread = 0; thread < 40; ++thread)
    CHECK(convert(rest, 64, false).at({thread}) == (thread - 2u) % 10u);
  const AffineTuple signed_rest = *remainder(below, AffineTuple::scalar(10, 32), true);
  for (uint32_t thread = 0; thread < 40; ++thread)
    CHECK(convert(signed_rest, 64, true).at({thread}) == static_cast<uint64_t>(int64_t((int(thread) - 2) % 10)));
}

} // namespace ptxrewrite::tests::affine_tuple_test
