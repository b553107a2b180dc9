#include "emulator/observe/lane_facts.h"

#include "support/mix.h"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

namespace ptxrewrite::emulator {
namespace {

constexpr unsigned vector_bytes = 32;
template <class T> struct VectorOf;
template <> struct VectorOf<uint8_t> { using Type = uint8_t __attribute__((vector_size(vector_bytes))); };
template <> struct VectorOf<uint16_t> { using Type = uint16_t __attribute__((vector_size(vector_bytes))); };
template <> struct VectorOf<uint32_t> { using Type = uint32_t __attribute__((vector_size(vector_bytes))); };
template <> struct VectorOf<uint64_t> { using Type = uint64_t __attribute__((vector_size(vector_bytes))); };
template <class T> using Vector = typename VectorOf<T>::Type;

template <class V> V load(const void* from) {
  V value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

template <class V> bool is_zero(V value) {
  const auto words = std::bit_cast<Vector<uint64_t>>(value);
  return (words[0] | words[1] | words[2] | words[3]) == 0;
}

// One key per 64-bit word of the widest array: multiples of the golden ratio, mixed by mixed_bits.
constexpr auto make_keys() {
  std::array<uint64_t, 64> keys{};
  for (uint64_t i = 0; i < keys.size(); ++i)
    keys[i] = mixed_bits((i + 1) * 0x9e3779b97f4a7c15);
  return keys;
}
alignas(64) constexpr std::array<uint64_t, 64> keys = make_keys();

// Sums products of 32-bit halves, like fast non-cryptographic hashes; the words themselves are added so that a half
// that is zero does not cancel the other one.
template <unsigned bytes> uint64_t hash_of(const std::byte* lanes) {
  using Words = Vector<uint64_t>;
  Words sum = {};
#pragma GCC unroll 8
  for (unsigned at = 0; at < bytes; at += vector_bytes) {
    const Words word = load<Words>(lanes + at);
    const Words keyed = word ^ load<Words>(&keys[at / sizeof(uint64_t)]);
    sum += (keyed & 0xffffffff) * (keyed >> 32) + (word << 29 | word >> 35);
  }
  return mixed_bits((sum[0] ^ std::rotl(sum[1], 17)) * 0x9fb21c651e98df25 + (sum[2] ^ std::rotl(sum[3], 41)) + bytes);
}

template <class T> T lane_of(const std::byte* lanes, unsigned lane) {
  T value;
  std::memcpy(&value, lanes + lane * sizeof(T), sizeof value);
  return value;
}

template <class T> struct Strides { T x = 0, y = 0, z = 0; };
template <class T> Strides<T> strides_of(const std::byte* lanes, const WarpShape& shape) {
  Strides<T> strides;
  const T first = lane_of<T>(lanes, 0);
  if (shape.x_lane < warp_size)
    strides.x = static_cast<T>(lane_of<T>(lanes, shape.x_lane + 1) - lane_of<T>(lanes, shape.x_lane));
  auto index = [](uint32_t difference) { return static_cast<T>(static_cast<int32_t>(difference)); };
  if (unsigned lane = shape.y_lane; lane < warp_size)
    strides.y = static_cast<T>(lane_of<T>(lanes, lane) - first - strides.x * index(shape.x[lane]));
  if (unsigned lane = shape.z_lane; lane < warp_size)
    strides.z = static_cast<T>(lane_of<T>(lanes, lane) - first - strides.x * index(shape.x[lane]) -
                               strides.y * index(shape.y[lane]));
  return strides;
}

// The value of the lane in an affine array with these strides.
template <class T> T affine_lane(T first, const Strides<T>& strides, const WarpShape& shape, unsigned lane) {
  auto index = [](uint32_t difference) { return static_cast<T>(static_cast<int32_t>(difference)); };
  return static_cast<T>(first + strides.x * index(shape.x[lane]) + strides.y * index(shape.y[lane]) +
                        strides.z * index(shape.z[lane]));
}

template <class T> bool is_affine(const std::byte* lanes, const WarpShape& shape, const Strides<T>& strides) {
  const T first = lane_of<T>(lanes, 0);
  // A quick test that rejects most arrays that are not affine.
  for (unsigned lane : {31u, 14u})
    if (lane_of<T>(lanes, lane) != affine_lane(first, strides, shape, lane)) return false;
  alignas(64) std::array<T, warp_size> values;
  std::memcpy(values.data(), lanes, sizeof values);
  T difference = 0;
  if (!shape.has_y) {
    // Lanes of one row: the x index equals the lane.
    for (unsigned lane = 0; lane < warp_size; ++lane)
      difference |= static_cast<T>(values[lane] ^ static_cast<T>(first + strides.x * static_cast<T>(lane)));
  } else if (!shape.has_z) {
    for (unsigned lane = 0; lane < warp_size; ++lane)
      difference |=
          static_cast<T>(values[lane] ^ static_cast<T>(first + strides.x * static_cast<T>(int32_t(shape.x[lane])) +
                                                       strides.y * static_cast<T>(int32_t(shape.y[lane]))));
  } else {
    for (unsigned lane = 0; lane < warp_size; ++lane)
      difference |= static_cast<T>(values[lane] ^ affine_lane(first, strides, shape, lane));
  }
  return difference == 0;
}

// For an affine array: is the step from each lane to the next the same, also at the ends of rows and planes? Lanes
// outside of `mask` are not compared.
template <class T> bool is_consecutive(const std::byte* lanes, const WarpShape& shape, uint32_t mask = full_mask) {
  if (!shape.has_y || (mask & 3) != 3) return true; // lanes of one row, or only one lane
  const T first = lane_of<T>(lanes, 0), step = static_cast<T>(lane_of<T>(lanes, 1) - first);
  auto goes_on = [&](unsigned lane) {
    return lane >= warp_size || !(mask >> lane & 1) ||
           lane_of<T>(lanes, lane) == static_cast<T>(first + step * static_cast<T>(lane));
  };
  const unsigned next = shape.x_lane < warp_size ? shape.x_lane + 1 : warp_size;
  return goes_on(shape.x_lane) && goes_on(next) && goes_on(shape.y_lane) && goes_on(shape.z_lane);
}

// Hashes of uniform and affine arrays, computed from the numbers that describe them.
template <class T> uint64_t hash_of_uniform(T value) {
  return mixed_bits(uint64_t(value) + 0x9e3779b97f4a7c15 * sizeof(T));
}
template <class T> uint64_t hash_of_affine(T first, const Strides<T>& strides) {
  return mixed_bits(hash_of_uniform(first) + uint64_t(strides.x) * 0x9fb21c651e98df25 +
                    std::rotl(uint64_t(strides.y) * 0xd6e8feb86659fd93, 23) +
                    std::rotl(uint64_t(strides.z) * 0xa0761d6478bd642f, 47));
}

template <class T> LaneFacts facts_of(const std::byte* lanes, const WarpShape& shape) {
  using V = Vector<T>;
  constexpr unsigned bytes = warp_size * sizeof(T);
  const T first = lane_of<T>(lanes, 0);
  V any = {}, all = ~any, different = {};
  const V same = V{} + first;
#pragma GCC unroll 8
  for (unsigned at = 0; at < bytes; at += vector_bytes) {
    const V value = load<V>(lanes + at);
    different |= value ^ same;
    any |= value;
    all &= value;
  }
  bool narrow = true, negative = false;
  if constexpr (sizeof(T) >= 4) {
    const V upper = V{} + static_cast<T>(~T(0xffff));
    negative = is_zero(~all & upper);
    narrow = negative || is_zero(any & upper);
  }
  if (is_zero(different)) return {hash_of_uniform(first), {true, true, true, narrow, negative}};
  const Strides<T> strides = strides_of<T>(lanes, shape);
  const bool affine = is_affine<T>(lanes, shape, strides);
  const uint64_t hash = affine && shape.regular ? hash_of_affine(first, strides) : hash_of<bytes>(lanes);
  return {hash, {false, affine, affine && is_consecutive<T>(lanes, shape), narrow, negative}};
}

LaneFacts facts_of_wide(const std::byte* lanes) {
  bool uniform = true;
  for (unsigned lane = 1; lane < warp_size && uniform; ++lane)
    uniform = std::memcmp(lanes, lanes + lane * 16, 16) == 0;
  return {hash_of<warp_size * 16>(lanes), {uniform, uniform, uniform, false, false}};
}

LaneFacts facts_of_predicate(const std::byte* lanes, uint32_t mask) {
  const auto bits = lane_of<uint32_t>(lanes, 0) & mask;
  const bool uniform = bits == 0 || bits == mask;
  // Uniform predicates have the same hash for all masks.
  return {mixed_bits(0x5bd1e995 + (uniform ? (bits ? full_mask : 0) : bits)), {uniform, uniform, uniform, true, false}};
}

template <class T> bool is_affine_in(const std::byte* lanes, const WarpShape& shape, uint32_t mask) {
  // A stride is known only if the lanes that define it are in the mask; otherwise it is taken as 0.
  WarpShape there = shape;
  auto has = [&](unsigned lane) { return lane < warp_size && (mask >> lane & 1); };
  if (!has(0)) return false;
  if (!has(shape.x_lane) || !has(shape.x_lane + 1)) there.x_lane = warp_size;
  if (!has(shape.y_lane)) there.y_lane = warp_size;
  if (!has(shape.z_lane)) there.z_lane = warp_size;
  const Strides<T> strides = strides_of<T>(lanes, there);
  const T first = lane_of<T>(lanes, 0);
  for (; mask; mask &= mask - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(mask));
    if (lane_of<T>(lanes, lane) != affine_lane(first, strides, shape, lane)) return false;
  }
  return true;
}

template <class T> LaneFacts facts_in(const std::byte* lanes, const WarpShape& shape, uint32_t mask) {
  alignas(64) std::array<T, warp_size> values;
  const T first = lane_of<T>(lanes, static_cast<unsigned>(std::countr_zero(mask)));
  std::memcpy(values.data(), lanes, sizeof values);
  for (unsigned lane = 0; lane < warp_size; ++lane) {
    const auto there = static_cast<T>(-static_cast<T>((mask >> lane) & 1));
    values[lane] = static_cast<T>(first ^ ((values[lane] ^ first) & there));
  }
  const LaneFacts facts = facts_of<T>(reinterpret_cast<const std::byte*>(values.data()), shape);
  if (facts.uniform()) return facts;
  const bool affine = is_affine_in<T>(lanes, shape, mask);
  return {facts.hash(),
          {false, affine, affine && is_consecutive<T>(lanes, shape, mask), facts.narrow(), facts.negative()}};
}

} // namespace

WarpShape WarpShape::of(uint32_t warp, uint32_t block_x, uint32_t block_y) {
  WarpShape shape;
  const uint32_t thread = warp * warp_size;
  auto x_of = [&](uint32_t t) { return t % block_x; };
  auto y_of = [&](uint32_t t) { return t / block_x % block_y; };
  auto z_of = [&](uint32_t t) { return t / block_x / block_y; };
  for (uint32_t lane = 0; lane < warp_size; ++lane) {
    shape.x[lane] = x_of(thread + lane) - x_of(thread);
    shape.y[lane] = y_of(thread + lane) - y_of(thread);
    shape.z[lane] = z_of(thread + lane) - z_of(thread);
    shape.has_y = shape.has_y || shape.y[lane] != 0 || shape.z[lane] != 0;
    shape.has_z = shape.has_z || shape.z[lane] != 0;
    if (shape.y_lane == warp_size && shape.y[lane] == 1 && shape.z[lane] == 0) shape.y_lane = lane;
    if (shape.z_lane == warp_size && shape.z[lane] == 1) shape.z_lane = lane;
  }
  for (uint32_t lane = warp_size - 1; lane-- > 0;)
    if (shape.x[lane + 1] == shape.x[lane] + 1) shape.x_lane = lane;
  // Regular: a warp consists of whole rows of one plane, of whole planes, or of a part of a row.
  auto divides = [](uint64_t part, uint64_t whole) { return whole % part == 0; };
  const uint64_t plane = uint64_t(block_x) * block_y;
  shape.regular = divides(warp_size, block_x) ||
                  (divides(block_x, warp_size) && (divides(warp_size, plane) || divides(plane, warp_size)));
  return shape;
}

LaneFacts lane_facts(const std::byte* lanes, unsigned bits, const WarpShape& shape) {
  switch (bits) {
  case 1:
    return facts_of_predicate(lanes, full_mask);
  case 8:
    return facts_of<uint8_t>(lanes, shape);
  case 16:
    return facts_of<uint16_t>(lanes, shape);
  case 32:
    return facts_of<uint32_t>(lanes, shape);
  case 64:
    return facts_of<uint64_t>(lanes, shape);
  default:
    return facts_of_wide(lanes);
  }
}

LaneFacts lane_facts_in(const std::byte* lanes, unsigned bits, const WarpShape& shape, uint32_t mask) {
  switch (bits) {
  case 1:
    return facts_of_predicate(lanes, mask);
  case 8:
    return facts_in<uint8_t>(lanes, shape, mask);
  case 16:
    return facts_in<uint16_t>(lanes, shape, mask);
  case 32:
    return facts_in<uint32_t>(lanes, shape, mask);
  case 64:
    return facts_in<uint64_t>(lanes, shape, mask);
  default: {
    alignas(64) std::array<std::array<std::byte, 16>, warp_size> values;
    const auto first = static_cast<unsigned>(std::countr_zero(mask));
    for (unsigned lane = 0; lane < warp_size; ++lane)
      std::memcpy(&values[lane], lanes + ((mask >> lane) & 1 ? lane : first) * 16, 16);
    return facts_of_wide(values[0].data());
  }
  }
}

LaneFacts uniform_facts(uint64_t value, unsigned bits, uint64_t high) {
  alignas(64) std::array<std::byte, warp_size * 16> lanes{};
  const uint64_t halves[2] = {bits == 1 ? (value ? full_mask : 0) : value, high};
  const size_t bytes = bits == 1 ? sizeof(uint32_t) : bits / 8;
  for (unsigned lane = 0; lane < (bits == 1 ? 1 : warp_size); ++lane)
    std::memcpy(lanes.data() + lane * bytes, halves, bytes);
  return lane_facts(lanes.data(), bits, WarpShape());
}

} // namespace ptxrewrite::emulator
