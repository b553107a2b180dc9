// The video instructions against definitions with unbounded numbers and arrays of bytes.
#include "emulator/semantics/video.h"
#include "emulator/semantics/video_simd.h"
#include "tests/unit/emulator/semantics/edge_operands.h"

#include <doctest/doctest.h>

#include <array>

namespace ptxrewrite::emulator::semantics::video_semantics_test {
namespace {

using test::Big;
using test::wrapped;

const uint32_t words[] = {0,          1,          0x7fffffff, 0x80000000, 0x80000001, 0xffffffff, 0x7f80ff01,
                          0x80017fff, 0xfffe8000, 0x00ff0080, 0x12345678, 0xfedcba98, 0x0000ffff, 0xffff0000};
const VideoPart parts[] = {
    {}, VideoPart::byte(0), VideoPart::byte(1), VideoPart::byte(3), VideoPart::half(0), VideoPart::half(1)};

// The number in a part of a register.
Big number(uint32_t value, VideoPart part, bool is_signed) {
  const Big modulus = Big{1} << part.width;
  const Big field = (Big{value} >> part.offset) % modulus;
  return is_signed && field * 2 >= modulus ? field - modulus : field;
}

// Wraps a value to a two's-complement number of this many bits.
Big fold_to_bits(Big value, unsigned bits) {
  const Big modulus = Big{1} << bits;
  Big rest = value % modulus;
  if (rest < 0) rest += modulus;
  return rest * 2 >= modulus ? rest - modulus : rest;
}

Big clamp_to(Big value, unsigned bits, bool is_signed) {
  const Big high = (Big{1} << (is_signed ? bits - 1 : bits)) - 1;
  const Big low = is_signed ? -high - 1 : Big{0};
  return value < low ? low : value > high ? high : value;
}

// The manual's processing of an intermediate result.
uint32_t finished(Big intermediate, const VideoResult& result, uint32_t c) {
  Big value = fold_to_bits(intermediate, 34);
  if (result.saturate) value = clamp_to(value, result.part.width, result.is_signed);
  value = fold_to_bits(value, 33);
  const Big third = number(c, {}, result.is_signed);
  switch (result.secondary) {
  case SecondaryOperation::none:
    break;
  case SecondaryOperation::add:
    value = value + third;
    break;
  case SecondaryOperation::min:
    value = third < value ? third : value;
    break;
  case SecondaryOperation::max:
    value = third > value ? third : value;
    break;
  }
  uint32_t merged = 0;
  for (unsigned i = 0; i < 32; ++i) {
    const bool inside = i >= result.part.offset && i < unsigned{result.part.offset} + result.part.width;
    if (inside ? test::bit(wrapped<uint64_t>(value), i - result.part.offset) : test::bit(c, i)) merged |= 1u << i;
  }
  return merged;
}

template <class Check> void for_each_result(Check check) {
  for (bool is_signed : {false, true})
    for (bool saturate : {false, true}) {
      for (SecondaryOperation secondary :
           {SecondaryOperation::none, SecondaryOperation::add, SecondaryOperation::min, SecondaryOperation::max})
        check(VideoResult{is_signed, saturate, secondary, {}});
      for (VideoPart part : parts)
        check(VideoResult{is_signed, saturate, SecondaryOperation::none, part});
    }
}

template <class Check> void for_each_source(Check check) {
  for (VideoPart a : parts)
    for (VideoPart b : {VideoPart{}, VideoPart::byte(1), VideoPart::half(0)})
      for (bool a_signed : {false, true})
        for (bool b_signed : {false, true})
          check(VideoSource{a, a_signed}, VideoSource{b, b_signed});
}

Big stated(VideoOperation operation, Big a, Big b) {
  switch (operation) {
  case VideoOperation::add:
    return a + b;
  case VideoOperation::sub:
    return a - b;
  case VideoOperation::absdiff:
    return a - b < 0 ? -(a - b) : a - b;
  case VideoOperation::min:
    return a - b < 0 ? a : b;
  case VideoOperation::max:
    return a - b < 0 ? b : a;
  case VideoOperation::shl: {
    for (; b > 0; b -= 1)
      a *= 2;
    return a;
  }
  case VideoOperation::shr: {
    for (; b > 0; b -= 1)
      a = (a - (a % 2 != 0 ? 1 : 0)) / 2; // rounds down
    return a;
  }
  }
  return 0;
}

template <VideoOperation Operation> void check_video() {
  unsigned wrong = 0;
  for_each_result([&](const VideoResult& result) {
    for_each_source([&](VideoSource a_source, VideoSource b_source) {
      for (uint32_t a : words)
        for (uint32_t b : words)
          for (uint32_t c : {0x80000000u, 5u, 0xfffffffeu}) {
            const Big x = number(a, a_source.part, a_source.is_signed);
            const Big y = number(b, b_source.part, b_source.is_signed);
            wrong +=
                video<Operation>(a, a_source, b, b_source, c, result) != finished(stated(Operation, x, y), result, c);
          }
    });
  });
  CHECK(wrong == 0);
}

TEST_CASE("scalar arithmetic") {
  check_video<VideoOperation::add>();
  check_video<VideoOperation::sub>();
  check_video<VideoOperation::absdiff>();
  check_video<VideoOperation::min>();
  check_video<VideoOperation::max>();
}

template <VideoOperation Operation, Overflow Mode> void check_video_shift() {
  unsigned wrong = 0;
  for_each_result([&](const VideoResult& result) {
    for_each_source([&](VideoSource a_source, VideoSource b_source) {
      for (uint32_t a : words)
        for (uint32_t b : {0u, 1u, 7u, 8u, 0x1f1fu, 0x2020u, 0x2121u, 0xffffffffu, 0x80000003u}) {
          const Big amount = number(b, b_source.part, false);
          const Big in_range = Mode == Overflow::wrap ? amount % 32 : amount > 32 ? Big{32} : amount;
          const Big x = number(a, a_source.part, a_source.is_signed);
          wrong += video_shift<Operation, Mode>(a, a_source, b, b_source, 0x9abcdef1, result) !=
                   finished(stated(Operation, x, in_range), result, 0x9abcdef1);
        }
    });
  });
  CHECK(wrong == 0);
}

TEST_CASE("scalar shifts") {
  check_video_shift<VideoOperation::shl, Overflow::clamp>();
  check_video_shift<VideoOperation::shl, Overflow::wrap>();
  check_video_shift<VideoOperation::shr, Overflow::clamp>();
  check_video_shift<VideoOperation::shr, Overflow::wrap>();
}

template <IntegerComparison Comparison> bool holds(Big difference) {
  using enum IntegerComparison;
  constexpr bool less = Comparison == lt || Comparison == le || Comparison == ne;
  constexpr bool equal = Comparison == eq || Comparison == le || Comparison == ge;
  constexpr bool greater = Comparison == gt || Comparison == ge || Comparison == ne;
  return difference < 0 ? less : difference > 0 ? greater : equal;
}

// Two halves or four bytes of b:a in the order of the selector.
template <unsigned Elements> std::array<Big, Elements> elements(uint32_t a, uint32_t b, SimdSource source) {
  constexpr unsigned width = 32 / Elements;
  std::array<Big, Elements> result;
  for (unsigned i = 0; i < Elements; ++i) {
    const unsigned index = source.selector >> (4 * i) & 0xf;
    const uint32_t word = index < Elements ? a : b;
    result[i] = number(word, {static_cast<uint8_t>(index % Elements * width), width}, source.is_signed);
  }
  return result;
}

template <unsigned Elements>
uint32_t finished_simd(std::array<Big, Elements> values, const SimdResult& result, uint32_t c) {
  constexpr unsigned width = 32 / Elements;
  Big sum = c;
  Big merged = 0;
  for (unsigned i = Elements; i-- > 0;) {
    const bool chosen = (result.mask >> i) % 2 == 1;
    if (result.saturate) values[i] = clamp_to(values[i], width, result.is_signed);
    if (chosen) sum += values[i];
    const Big field = chosen ? values[i] : Big{c >> (i * width)};
    merged = (merged << width) + wrapped<uint32_t>(field) % (1u << (width - 1) << 1);
  }
  return wrapped<uint32_t>(result.accumulate ? sum : merged);
}

template <unsigned Elements, class Check> void for_each_simd_shape(Check check) {
  const uint16_t selectors_2[] = {0x10, 0x32, 0x03, 0x21};
  const uint16_t selectors_4[] = {0x3210, 0x7654, 0x0246, 0x7071};
  for (uint16_t a_selector : Elements == 2 ? selectors_2 : selectors_4)
    for (uint16_t b_selector : Elements == 2 ? selectors_2 : selectors_4)
      for (unsigned signs = 0; signs < 4; ++signs)
        for (uint8_t mask : {1, 2, 3, 6, 8, 15})
          for (SimdResult result : {SimdResult{}, SimdResult{.is_signed = true}, SimdResult{.saturate = true},
                                    SimdResult{true, true, false}, SimdResult{.accumulate = true}}) {
            result.mask = mask;
            check(SimdSource{a_selector, (signs & 1) != 0}, SimdSource{b_selector, (signs & 2) != 0}, result);
          }
}

Big stated_simd(SimdOperation operation, Big a, Big b) {
  switch (operation) {
  case SimdOperation::add:
    return a + b;
  case SimdOperation::sub:
    return a - b;
  case SimdOperation::avrg: {
    const Big sum = a + b;
    const bool odd = sum % 2 != 0;
    return sum / 2 + (!odd ? 0 : sum > 0 ? 1 : -1);
  }
  case SimdOperation::absdiff:
    return a > b ? a - b : b - a;
  case SimdOperation::min:
    return b < a ? b : a;
  case SimdOperation::max:
    return b < a ? a : b;
  }
  return 0;
}

template <unsigned Elements, SimdOperation Operation> void check_simd() {
  unsigned wrong = 0;
  for_each_simd_shape<Elements>([&](SimdSource a_source, SimdSource b_source, const SimdResult& result) {
    for (uint32_t a : words)
      for (uint32_t b : words) {
        auto x = elements<Elements>(a, b, a_source);
        const auto y = elements<Elements>(a, b, b_source);
        for (unsigned i = 0; i < Elements; ++i)
          x[i] = stated_simd(Operation, x[i], y[i]);
        wrong += video_simd<Elements, Operation>(a, a_source, b, b_source, 0x80f17e05, result) !=
                 finished_simd<Elements>(x, result, 0x80f17e05);
      }
  });
  CHECK(wrong == 0);
}

TEST_CASE("halves and bytes") {
  check_simd<2, SimdOperation::add>();
  check_simd<2, SimdOperation::sub>();
  check_simd<2, SimdOperation::avrg>();
  check_simd<2, SimdOperation::absdiff>();
  check_simd<2, SimdOperation::min>();
  check_simd<2, SimdOperation::max>();
  check_simd<4, SimdOperation::add>();
  check_simd<4, SimdOperation::sub>();
  check_simd<4, SimdOperation::avrg>();
  check_simd<4, SimdOperation::absdiff>();
  check_simd<4, SimdOperation::min>();
  check_simd<4, SimdOperation::max>();
}

template <IntegerComparison Comparison> void check_vset() {
  unsigned wrong = 0;
  for_each_result([&](const VideoResult& result) {
    for_each_source([&](VideoSource a_source, VideoSource b_source) {
      for (uint32_t a : words)
        for (uint32_t b : words) {
          const Big difference =
              number(a, a_source.part, a_source.is_signed) - number(b, b_source.part, b_source.is_signed);
          const VideoResult is_unsigned{false, false, result.secondary, result.part};
          wrong += vset<Comparison>(a, a_source, b, b_source, 0x80000000, result) !=
                   finished(holds<Comparison>(difference) ? 1 : 0, is_unsigned, 0x80000000);
        }
    });
  });
  for_each_simd_shape<2>([&](SimdSource a_source, SimdSource b_source, const SimdResult& result) {
    auto x = elements<2>(words[6], words[7], a_source);
    const auto y = elements<2>(words[6], words[7], b_source);
    for (unsigned i = 0; i < 2; ++i)
      x[i] = holds<Comparison>(x[i] - y[i]);
    wrong +=
        vset_simd<2, Comparison>(words[6], a_source, words[7], b_source, 7, result) != finished_simd<2>(x, result, 7);
  });
  for_each_simd_shape<4>([&](SimdSource a_source, SimdSource b_source, const SimdResult& result) {
    auto x = elements<4>(words[6], words[9], a_source);
    const auto y = elements<4>(words[6], words[9], b_source);
    for (unsigned i = 0; i < 4; ++i)
      x[i] = holds<Comparison>(x[i] - y[i]);
    wrong +=
        vset_simd<4, Comparison>(words[6], a_source, words[9], b_source, 7, result) != finished_simd<4>(x, result, 7);
  });
  CHECK(wrong == 0);
}

TEST_CASE("vset, vset2, vset4") {
  check_vset<IntegerComparison::eq>();
  check_vset<IntegerComparison::ne>();
  check_vset<IntegerComparison::lt>();
  check_vset<IntegerComparison::le>();
  check_vset<IntegerComparison::gt>();
  check_vset<IntegerComparison::ge>();
}

uint32_t stated_vmad(Big a, Big b, uint32_t c, bool both_unsigned, const VmadShape& shape) {
  const bool is_signed = !both_unsigned || shape.negate_product || shape.negate_c;
  Big sum = shape.negate_product ? -(a * b) : a * b;
  const Big third = number(c, {}, is_signed);
  // Negating the smallest 32-bit number complements it within 32 bits first: +2^31 stays exact.
  if (shape.negate_c)
    sum += number(~c, {}, true) + 1;
  else
    sum += third;
  if (shape.plus_one) sum += 1;
  for (unsigned i = 0; i < shape.shift; ++i)
    sum = (sum - (sum % 2 != 0 ? 1 : 0)) / 2;
  const Big scaled = is_signed ? fold_to_bits(sum, 64) : Big{wrapped<uint64_t>(sum)};
  return wrapped<uint32_t>(shape.saturate ? clamp_to(scaled, 32, is_signed) : scaled);
}

TEST_CASE("vmad") {
  unsigned wrong = 0;
  for_each_source([&](VideoSource a_source, VideoSource b_source) {
    for (unsigned variant = 0; variant < 4; ++variant)
      for (bool saturate : {false, true})
        for (uint8_t shift : {0, 7, 15}) {
          const VmadShape shape{variant == 1, variant == 2, variant == 3, saturate, shift};
          for (uint32_t a : words)
            for (uint32_t b : words)
              for (uint32_t c : {0u, 1u, 0x7fffffffu, 0x80000000u, 0xffffffffu})
                wrong += vmad(a, a_source, b, b_source, c, shape) !=
                         stated_vmad(number(a, a_source.part, a_source.is_signed),
                                     number(b, b_source.part, b_source.is_signed), c,
                                     !a_source.is_signed && !b_source.is_signed, shape);
        }
  });
  CHECK(wrong == 0);
}

} // namespace
} // namespace ptxrewrite::emulator::semantics::video_semantics_test
