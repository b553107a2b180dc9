// Applies a function of one lane's values to the 32 lanes of a warp.
//
// lane_handler<f> is the Handler of a plain function f: its parameter types determine how sources are read (bool is a
// predicate), its result type what is written; a last parameter of type Flags receives the modifiers. The loops are
// written for vectorisation: f is computed for all lanes and the result stored where the lane is active, so f must be
// total: no trap and no undefined behaviour for any value of an inactive lane.
#pragma once

#include "emulator/core/warp.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

namespace ptxrewrite::emulator {

// The modifiers of the instruction, for functions that depend on them. Warp-uniform: the compiler hoists tests of them.
struct Flags {
  uint32_t bits = 0;
  constexpr bool has(uint32_t flag) const { return (bits & flag) != 0; }
};

struct Bits128 {
  uint64_t low = 0;
  uint64_t high = 0;
};

// Two results of one instruction: `p|q`, `d|p`, or a sum and its carry.
template <class First, class Second> struct Two {
  First first;
  Second second;
};

// The element type of a lane array for values of T. Types that are no numbers specify by a specialisation the number
// that stores them, because compilers only vectorise loops over numbers.
template <class T> struct LaneStorage {
  using Stored = T;
  static constexpr T load(T stored) { return stored; }
  static constexpr T store(T value) { return value; }
};

namespace detail {

template <class T> inline constexpr bool is_predicate = std::is_same_v<T, bool>;
template <class T> struct TwoParts : std::false_type {};
template <class A, class B> struct TwoParts<Two<A, B>> : std::true_type {
  using First = A;
  using Second = B;
};

// Bit i of the result is set if values[i] is not zero.
inline uint32_t pack_mask(const uint8_t* values) {
#if defined(__AVX2__)
  uint32_t mask;
  using Bytes = uint8_t __attribute__((vector_size(32)));
  Bytes bytes;
  std::memcpy(&bytes, values, sizeof bytes);
  using Signed = char __attribute__((vector_size(32)));
  Signed nonzero = (Signed)(bytes != 0);
  mask = static_cast<uint32_t>(__builtin_ia32_pmovmskb256(nonzero));
  return mask;
#else
  uint32_t mask = 0;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    mask |= static_cast<uint32_t>(values[lane] != 0) << lane;
  return mask;
#endif
}

// The inverse: values[i] is 0xff if bit i of the mask is set, else 0. Bytes, because compilers do not vectorise tests
// of single bits.
inline void spread_mask(uint32_t mask, uint8_t* values) {
  using Bytes = uint8_t __attribute__((vector_size(32)));
  using Words = uint32_t __attribute__((vector_size(32)));
  const Words copies = {mask, mask, mask, mask, mask, mask, mask, mask};
  // Byte lane/8 of the mask for each lane, from the same half of the vector.
  const Bytes of_lane = __builtin_shufflevector((Bytes)copies, (Bytes)copies, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1,
                                                1, 1, 18, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 19);
  const Bytes bits = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128,
                      1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const Bytes set = (Bytes)((of_lane & bits) != 0);
  std::memcpy(values, &set, sizeof set);
}

// Reads the lanes of a source.
template <class T> struct Reader {
  using Stored = typename LaneStorage<T>::Stored;
  const Stored* values;
  Reader(const Warp& warp, LaneRef ref) : values(warp.lanes<Stored>(ref)) {}
  T operator[](unsigned lane) const { return LaneStorage<T>::load(values[lane]); }
};
template <> struct Reader<bool> {
  alignas(32) uint8_t values[warp_size];
  Reader(const Warp& warp, LaneRef ref) { spread_mask(warp.predicate(ref), values); }
  bool operator[](unsigned lane) const { return values[lane] != 0; }
};

// Writes `compute(lane)` to the active lanes of `destination`.
template <class T, class Compute>
[[gnu::always_inline]] inline void write_lanes(Warp& warp, LaneRef destination, uint32_t mask, Compute&& compute) {
  if constexpr (is_predicate<T>) {
    alignas(32) uint8_t bits[warp_size];
    for (unsigned lane = 0; lane < warp_size; ++lane)
      bits[lane] = compute(lane) ? 1 : 0;
    uint32_t& target = warp.predicate(destination);
    target = (target & ~mask) | (pack_mask(bits) & mask);
  } else {
    using Stored = typename LaneStorage<T>::Stored;
    Stored* target =
        static_cast<Stored*>(__builtin_assume_aligned(warp.lanes<Stored>(destination), LaneRef::alignment));
    if (mask == full_mask) {
#pragma GCC ivdep
      for (unsigned lane = 0; lane < warp_size; ++lane)
        target[lane] = LaneStorage<T>::store(compute(lane));
    } else {
#pragma GCC ivdep
      for (unsigned lane = 0; lane < warp_size; ++lane) {
        const Stored computed = LaneStorage<T>::store(compute(lane));
        target[lane] = (mask >> lane) & 1 ? computed : target[lane];
      }
    }
  }
}

template <auto function, class Signature> struct LaneHandler;

template <auto function, class R, class... P> struct LaneHandler<function, R (*)(P...)> {
  using Result = R;
  static constexpr bool takes_flags = sizeof...(P) > 0 && (std::is_same_v<P, Flags> || ...);
  static constexpr unsigned source_count = sizeof...(P) - (takes_flags ? 1 : 0);
  static_assert(source_count <= 4, "a micro-operation has four sources");
  using Parameters = std::tuple<std::remove_cvref_t<P>...>;

  template <size_t... i>
  [[gnu::always_inline]] static inline const MicroOp* apply(Warp& warp, const MicroOp& op, std::index_sequence<i...>) {
    const std::tuple<Reader<std::tuple_element_t<i, Parameters>>...> sources{
        Reader<std::tuple_element_t<i, Parameters>>(warp, op.source[i])...};
    const Flags flags{op.flags};
    auto compute = [&](unsigned lane) {
      if constexpr (takes_flags)
        return function(std::get<i>(sources)[lane]..., flags);
      else
        return function(std::get<i>(sources)[lane]...);
    };
    if constexpr (TwoParts<R>::value) {
      // Both results are computed before either is written: a destination may also be a source.
      std::array<R, warp_size> results;
      for (unsigned lane = 0; lane < warp_size; ++lane)
        results[lane] = compute(lane);
      write_lanes<typename TwoParts<R>::First>(warp, op.destination[0], warp.mask,
                                               [&](unsigned lane) { return results[lane].first; });
      write_lanes<typename TwoParts<R>::Second>(warp, op.destination[1], warp.mask,
                                                [&](unsigned lane) { return results[lane].second; });
    } else {
      write_lanes<R>(warp, op.destination[0], warp.mask, compute);
    }
    return &op + 1;
  }

  static const MicroOp* run(Warp& warp, const MicroOp& op) {
    return apply(warp, op, std::make_index_sequence<source_count>());
  }
};

template <class F> struct SignatureOf {
  // A captureless lambda.
  using Pointer = decltype(+std::declval<F>());
};
template <class R, class... P> struct SignatureOf<R (*)(P...)> { using Pointer = R (*)(P...); };
template <class R, class... P> struct SignatureOf<R (*)(P...) noexcept> { using Pointer = R (*)(P...); };

} // namespace detail

template <auto function>
using LaneHandlerOf =
    detail::LaneHandler<function, typename detail::SignatureOf<std::remove_cv_t<decltype(function)>>::Pointer>;

template <auto function> inline constexpr Handler lane_handler = &LaneHandlerOf<function>::run;

} // namespace ptxrewrite::emulator
