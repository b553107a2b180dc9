#include "emulator/tiles/decode_numbers.h"

#include "emulator/semantics/accumulate.h"
#include "emulator/semantics/half_vector.h"
#include "emulator/semantics/small_floats.h"

#include <algorithm>
#include <cstring>
#if defined(PTXREWRITE_HALF_VECTORS)
#include <immintrin.h>
#endif

namespace ptxrewrite::emulator {
namespace {

using ir::ScalarType;
using namespace semantics;

// A chunk is 16 bytes. Each type below has the count of numbers in a chunk, and decodes one.
constexpr unsigned chunk_bytes = 16;

template <class Element> struct Elements {
  Element values[chunk_bytes / sizeof(Element)];
  explicit Elements(const std::byte* packed) { std::memcpy(values, packed, chunk_bytes); }
};

#if defined(PTXREWRITE_HALF_VECTORS)
__m128i load_chunk(const void* packed) {
  return _mm_loadu_si128(static_cast<const __m128i*>(packed));
}

// Stores sixteen 16-bit integers as numbers of the target type.
void store_integers(__m256i integers, int16_t* numbers) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(numbers), integers);
}
void store_integers(__m256i integers, float* numbers) {
  for (unsigned half = 0; half < 2; ++half) {
    const __m128i eight = half == 0 ? _mm256_castsi256_si128(integers) : _mm256_extracti128_si256(integers, 1);
    _mm256_storeu_ps(numbers + half * 8, _mm256_cvtepi32_ps(_mm256_cvtepi16_epi32(eight)));
  }
}
#endif

// Decodes sixteen codes of at most 8 bits through f16, whose conversion is not slower for subnormal numbers; the f16
// value is too small by the factor 2^(f16 bias - bias), which a multiplication corrects.
template <SmallFormat format> void decode_codes(const uint8_t* codes, float* numbers) {
#if defined(PTXREWRITE_HALF_VECTORS)
  constexpr int to_sign = 15 - (format.exponent_bits + format.fraction_bits), to_fraction = 10 - format.fraction_bits;
  constexpr auto sign = static_cast<int16_t>(format.sign());
  constexpr int16_t magnitude = sign - 1, half_nan = 0x7fff;
  constexpr float scale = from_bits<float>(static_cast<uint32_t>(127 + 15 - format.bias()) << 23);
  using Codes = int16_t __attribute__((vector_size(32)));
  const auto words = (Codes)_mm256_cvtepu8_epi16(load_chunk(codes));
  Codes halves = (words & sign) << to_sign | (words & magnitude) << to_fraction;
  if constexpr (format.infinity == 0 && format.nan != format.max_finite)
    halves |= ((words & magnitude) > static_cast<int16_t>(format.max_finite)) & half_nan;
  for (unsigned half = 0; half < 2; ++half) {
    const __m128i eight =
        half == 0 ? _mm256_castsi256_si128((__m256i)halves) : _mm256_extracti128_si256((__m256i)halves, 1);
    _mm256_storeu_ps(numbers + half * 8, _mm256_cvtph_ps(eight) * scale);
  }
#else
  for (unsigned i = 0; i < 16; ++i)
    numbers[i] = decode<format>(codes[i] & (2 * format.sign() - 1));
#endif
}

struct F16 {
  static constexpr unsigned count = 8;
  static void decode(const std::byte* packed, float* numbers) {
#if defined(PTXREWRITE_HALF_VECTORS)
    Halves halves;
    std::memcpy(&halves, packed, sizeof halves);
    const Floats values = to_floats(halves);
    std::memcpy(numbers, &values, sizeof values);
#else
    const Elements<uint16_t> elements(packed);
    for (unsigned i = 0; i < count; ++i)
      numbers[i] = to_float(Float16{elements.values[i]});
#endif
  }
};

struct BF16 {
  static constexpr unsigned count = 8;
  static void decode(const std::byte* packed, float* numbers) {
    const Elements<uint16_t> elements(packed);
    for (unsigned i = 0; i < count; ++i)
      numbers[i] = to_float(BFloat16{elements.values[i]});
  }
};

struct TF32 {
  static constexpr unsigned count = 4;
  static void decode(const std::byte* packed, float* numbers) {
    const Elements<uint32_t> elements(packed);
    for (unsigned i = 0; i < count; ++i)
      numbers[i] = tf32_operand(elements.values[i]);
  }
};

struct F32 {
  static constexpr unsigned count = 4;
  static void decode(const std::byte* packed, float* numbers) { std::memcpy(numbers, packed, chunk_bytes); }
};

// One code per byte, starting at bit `first`.
template <SmallFormat format, unsigned first> struct Codes {
  static constexpr unsigned count = 16;
  static void decode(const std::byte* packed, float* numbers) {
    Elements<uint8_t> codes(packed);
    for (uint8_t& code : codes.values)
      code >>= first;
    decode_codes<format>(codes.values, numbers);
  }
};

template <class Integer> struct Bytes {
  static constexpr unsigned count = 16;
  template <class Number> static void decode(const std::byte* packed, Number* numbers) {
#if defined(PTXREWRITE_HALF_VECTORS)
    const __m128i bytes = load_chunk(packed);
    store_integers(std::is_signed_v<Integer> ? _mm256_cvtepi8_epi16(bytes) : _mm256_cvtepu8_epi16(bytes), numbers);
#else
    const Elements<Integer> elements(packed);
    for (unsigned i = 0; i < count; ++i)
      numbers[i] = static_cast<Number>(elements.values[i]);
#endif
  }
};

// Expands 32 elements of 4 bits to a byte each; the first element is in the low half of its byte.
template <bool is_signed> struct Nibbles {
  alignas(32) std::byte values[32];
  explicit Nibbles(const std::byte* packed) {
#if defined(PTXREWRITE_HALF_VECTORS)
    const __m128i pairs = load_chunk(packed), mask = _mm_set1_epi8(15);
    const __m128i even = _mm_and_si128(pairs, mask), odd = _mm_and_si128(_mm_srli_epi16(pairs, 4), mask);
    __m256i all = _mm256_set_m128i(_mm_unpackhi_epi8(even, odd), _mm_unpacklo_epi8(even, odd));
    const __m256i sign = _mm256_set1_epi8(8);
    if constexpr (is_signed) all = _mm256_sub_epi8(_mm256_xor_si256(all, sign), sign);
    _mm256_store_si256(reinterpret_cast<__m256i*>(values), all);
#else
    const auto value = [](unsigned bits) { return static_cast<std::byte>(is_signed ? (bits ^ 8) - 8 : bits); };
    for (unsigned i = 0; i < 16; ++i) {
      values[2 * i] = value(static_cast<unsigned>(packed[i]) & 15);
      values[2 * i + 1] = value(static_cast<unsigned>(packed[i]) >> 4);
    }
#endif
  }
};

template <bool is_signed> struct IntegerNibbles {
  static constexpr unsigned count = 32;
  template <class Number> static void decode(const std::byte* packed, Number* numbers) {
    const Nibbles<is_signed> nibbles(packed);
    Bytes<int8_t>::decode(nibbles.values, numbers);
    Bytes<int8_t>::decode(nibbles.values + chunk_bytes, numbers + count / 2);
  }
};

struct E2M1Nibbles {
  static constexpr unsigned count = 32;
  static void decode(const std::byte* packed, float* numbers) {
    const Nibbles<false> nibbles(packed);
    Codes<e2m1_format, 0>::decode(nibbles.values, numbers);
    Codes<e2m1_format, 0>::decode(nibbles.values + chunk_bytes, numbers + count / 2);
  }
};

// Calls body with an object of the chunk's type.
template <class Body> void with_elements(ScalarType type, Body&& body) {
  switch (type) {
  case ScalarType::f16:
    return body(F16());
  case ScalarType::bf16:
    return body(BF16());
  case ScalarType::tf32:
    return body(TF32());
  case ScalarType::e4m3:
    return body(Codes<e4m3_format, 0>());
  case ScalarType::e5m2:
    return body(Codes<e5m2_format, 0>());
  case ScalarType::s8:
    return body(Bytes<int8_t>());
  case ScalarType::u8:
    return body(Bytes<uint8_t>());
  case ScalarType::s4:
    return body(IntegerNibbles<true>());
  case ScalarType::u4:
    return body(IntegerNibbles<false>());
  case ScalarType::e2m1:
    return body(E2M1Nibbles());
  default: // f32 bits
    return body(F32());
  }
}

template <class Body> void with_containers(ScalarType type, Body&& body) {
  switch (type) {
  case ScalarType::e3m2:
    return body(Codes<e3m2_format, 0>());
  case ScalarType::e2m3:
    return body(Codes<e2m3_format, 0>());
  case ScalarType::e2m1:
    return body(Codes<e2m1_format, 2>());
  default:
    return with_elements(type, body);
  }
}

template <class Chunk> void decode_all(const std::byte* packed, unsigned count, float* numbers) {
  for (; count >= Chunk::count; count -= Chunk::count, packed += chunk_bytes, numbers += Chunk::count)
    Chunk::decode(packed, numbers);
  if (count == 0) return;
  std::byte padded[chunk_bytes] = {};
  float last[Chunk::count];
  std::memcpy(padded, packed, count * chunk_bytes / Chunk::count);
  Chunk::decode(padded, last);
  std::copy_n(last, count, numbers);
}

template <class Chunk, class Number> void decode_eight(const Lines& lines, Number* numbers) {
  const auto* packed = reinterpret_cast<const std::byte*>(lines.lanes);
  Number* targets[8];
  for (unsigned line = 0; line < 8; ++line)
    targets[line] = numbers + size_t(lines.places[line]) * lines.distance;
#pragma GCC unroll 8
  for (unsigned line = 0; line < 8; ++line)
    Chunk::decode(packed + line * chunk_bytes, targets[line]);
}

} // namespace

void decode_elements(ScalarType type, const std::byte* packed, unsigned count, float* numbers) {
  with_elements(type, [&](auto chunk) { decode_all<decltype(chunk)>(packed, count, numbers); });
}

void decode_containers(ScalarType type, const std::byte* packed, unsigned count, float* numbers) {
  with_containers(type, [&](auto chunk) { decode_all<decltype(chunk)>(packed, count, numbers); });
}

void decode_lines(ScalarType type, bool in_containers, const Lines& lines, float* numbers) {
  const auto decode = [&](auto chunk) { decode_eight<decltype(chunk)>(lines, numbers); };
  if (in_containers)
    with_containers(type, decode);
  else
    with_elements(type, decode);
}

void decode_integer_lines(ScalarType type, const Lines& lines, int16_t* numbers) {
  switch (type) {
  case ScalarType::s8:
    return decode_eight<Bytes<int8_t>>(lines, numbers);
  case ScalarType::u8:
    return decode_eight<Bytes<uint8_t>>(lines, numbers);
  case ScalarType::s4:
    return decode_eight<IntegerNibbles<true>>(lines, numbers);
  default:
    return decode_eight<IntegerNibbles<false>>(lines, numbers);
  }
}

} // namespace ptxrewrite::emulator
