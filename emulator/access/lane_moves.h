// Moves elements between memory and lane arrays for accesses whose pattern is known: whole runs of lanes at once if
// they are consecutive or equal, else lane by lane. (AVX2 gathers are slower than that where microcode mitigates them.)
// If two lanes store to one address, the higher lane wins.
#pragma once

#include "emulator/core/lanes.h"
#include "emulator/memory/access_site.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace ptxrewrite::emulator {

// A memory access of a warp whose pattern is known.
struct KnownAccess {
  const AddressPattern& pattern;
  std::byte* first; // bytes of the first active lane

  std::byte* host(unsigned lane) const { return first + pattern.host_distance[lane]; }
};

// Bytes from the address of a load of global memory to the cache lines that it prefetches. Blocks run in the order of
// their index and usually load consecutive memory. The host's own prefetcher does not detect this if each warp has a
// large stride.
inline constexpr unsigned prefetch_distance = 2048, cache_line = 64;
// Prefetching an unmapped address is harmless.
inline void prefetch_behind(const std::byte* loaded, uint64_t bytes) {
  const auto begin = reinterpret_cast<uintptr_t>(loaded) + prefetch_distance;
  for (uint64_t at = 0; at < bytes; at += cache_line)
    __builtin_prefetch(reinterpret_cast<const void*>(begin + at));
}

template <class Raw> inline Raw read_raw(const std::byte* from) {
  Raw value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

namespace detail {

// Moves `count` consecutive elements of each of `lanes` consecutive lanes to targets[element] + lane, in one loop that
// the compiler turns into permutations.
template <unsigned count, unsigned lanes, class Raw>
[[gnu::always_inline]] inline void spread_elements(const std::byte* from, Raw* const* targets, unsigned first_lane) {
  if constexpr (count == 2) {
    Raw *first = targets[0] + first_lane, *second = targets[1] + first_lane;
#pragma GCC ivdep
    for (unsigned lane = 0; lane < lanes; ++lane) {
      first[lane] = read_raw<Raw>(from + lane * 2 * sizeof(Raw));
      second[lane] = read_raw<Raw>(from + (lane * 2 + 1) * sizeof(Raw));
    }
  } else {
    static_assert(count == 4);
    Raw *first = targets[0] + first_lane, *second = targets[1] + first_lane;
    Raw *third = targets[2] + first_lane, *fourth = targets[3] + first_lane;
#pragma GCC ivdep
    for (unsigned lane = 0; lane < lanes; ++lane) {
      first[lane] = read_raw<Raw>(from + lane * 4 * sizeof(Raw));
      second[lane] = read_raw<Raw>(from + (lane * 4 + 1) * sizeof(Raw));
      third[lane] = read_raw<Raw>(from + (lane * 4 + 2) * sizeof(Raw));
      fourth[lane] = read_raw<Raw>(from + (lane * 4 + 3) * sizeof(Raw));
    }
  }
}

// The reverse of spread_elements().
template <unsigned count, unsigned lanes, class Raw>
[[gnu::always_inline]] inline void collect_elements(std::byte* to, const Raw* const* sources, unsigned first_lane) {
  Raw packed[count * lanes];
#pragma GCC ivdep
  for (unsigned lane = 0; lane < lanes; ++lane) {
    packed[lane * count] = sources[0][first_lane + lane];
    packed[lane * count + 1] = sources[1][first_lane + lane];
    if constexpr (count == 4) {
      packed[lane * count + 2] = sources[2][first_lane + lane];
      packed[lane * count + 3] = sources[3][first_lane + lane];
    }
  }
  std::memcpy(to, packed, sizeof packed);
}

// Calls body(constant number of lanes, first lane) for each run of lanes.
template <class Body> [[gnu::always_inline]] inline void for_each_run(const AddressPattern& pattern, Body&& body) {
  switch (pattern.run) {
  case 16:
    for (unsigned lane = 0; lane < warp_size; lane += 16)
      body(std::integral_constant<unsigned, 16>(), lane);
    break;
  case 8:
    for (unsigned lane = 0; lane < warp_size; lane += 8)
      body(std::integral_constant<unsigned, 8>(), lane);
    break;
  case 4:
    for (unsigned lane = 0; lane < warp_size; lane += 4)
      body(std::integral_constant<unsigned, 4>(), lane);
    break;
  default: // no runs: all lanes form one
    body(std::integral_constant<unsigned, 32>(), 0u);
  }
}

template <unsigned lanes, class Raw> [[gnu::always_inline]] inline void fill_lanes(Raw* target, Raw value) {
  for (unsigned lane = 0; lane < lanes; ++lane)
    target[lane] = value;
}

// Loads for consecutive or scattered accesses with inactive lanes, whose elements do not change.
template <class Raw>
[[gnu::always_inline]] inline void load_some_elements(const KnownAccess& access, unsigned offset, Raw* target) {
  for (uint32_t lanes = access.pattern.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    target[lane] = read_raw<Raw>(access.host(lane) + offset);
  }
}

// Consecutive accesses of single elements with inactive lanes: `access.first` belongs to the first active lane.
#if defined(__AVX2__)
inline __m256i active_lanes(const AddressPattern& pattern, unsigned lane) {
  return _mm256_load_si256(reinterpret_cast<const __m256i*>(&pattern.active[lane]));
}
inline void load_some_consecutive(const KnownAccess& access, uint32_t* target) {
  const auto* from = reinterpret_cast<const int*>(access.first) - std::countr_zero(access.pattern.mask);
  for (unsigned lane = 0; lane < warp_size; lane += 8) {
    const __m256i active = active_lanes(access.pattern, lane);
    auto* to = reinterpret_cast<__m256i*>(target + lane);
    _mm256_store_si256(to,
                       _mm256_blendv_epi8(_mm256_load_si256(to), _mm256_maskload_epi32(from + lane, active), active));
  }
}
inline void store_some_consecutive(const KnownAccess& access, const uint32_t* values) {
  auto* to = reinterpret_cast<int*>(access.first) - std::countr_zero(access.pattern.mask);
  for (unsigned lane = 0; lane < warp_size; lane += 8)
    _mm256_maskstore_epi32(to + lane, active_lanes(access.pattern, lane),
                           _mm256_load_si256(reinterpret_cast<const __m256i*>(values + lane)));
}
#endif

} // namespace detail

// One element per lane.
template <class Raw> [[gnu::always_inline]] inline void load_single(const KnownAccess& access, Raw* target) {
  const AddressPattern& pattern = access.pattern;
  switch (pattern.kind) {
  case LanePattern::consecutive:
    if (pattern.mask == full_mask) {
      std::memcpy(target, access.first, warp_size * sizeof(Raw));
      return;
    }
#if defined(__AVX2__)
    if constexpr (sizeof(Raw) == 4) return detail::load_some_consecutive(access, target);
#endif
    break;
  case LanePattern::consecutive_runs:
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      std::memcpy(target + lane, access.host(lane), lanes() * sizeof(Raw));
    });
  case LanePattern::same:
    if (pattern.mask == full_mask) return detail::fill_lanes<warp_size>(target, read_raw<Raw>(access.first));
    break;
  case LanePattern::same_runs:
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      detail::fill_lanes<lanes()>(target + lane, read_raw<Raw>(access.host(lane)));
    });
  case LanePattern::scattered:
    if (pattern.mask != full_mask) break;
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < warp_size; ++lane)
      target[lane] = read_raw<Raw>(access.host(lane));
    return;
  }
  detail::load_some_elements(access, 0, target);
}

template <class Raw> [[gnu::always_inline]] inline void store_single(const KnownAccess& access, const Raw* values) {
  const AddressPattern& pattern = access.pattern;
  if (pattern.kind == LanePattern::consecutive) {
    if (pattern.mask == full_mask) return (void)std::memcpy(access.first, values, warp_size * sizeof(Raw));
#if defined(__AVX2__)
    if constexpr (sizeof(Raw) == 4) return detail::store_some_consecutive(access, values);
#endif
  } else if (pattern.kind == LanePattern::consecutive_runs) {
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      std::memcpy(access.host(lane), values + lane, lanes() * sizeof(Raw));
    });
  } else if (pattern.kind == LanePattern::scattered && pattern.mask == full_mask) {
#pragma GCC unroll 8
    for (unsigned lane = 0; lane < warp_size; ++lane)
      std::memcpy(access.host(lane), values + lane, sizeof(Raw));
    return;
  }
  for (uint32_t lanes = pattern.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    std::memcpy(access.host(lane), values + lane, sizeof(Raw));
  }
}

// Vectors of `count` elements per lane; element i is moved to or from arrays[i].
template <unsigned count, class Raw> void load_vectors(const KnownAccess& access, Raw* const* targets) {
  const AddressPattern& pattern = access.pattern;
  if (pattern.mask == full_mask &&
      (pattern.kind == LanePattern::consecutive || pattern.kind == LanePattern::consecutive_runs))
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      detail::spread_elements<count, lanes()>(access.host(lane), targets, lane);
    });
  if (pattern.mask == full_mask && (pattern.kind == LanePattern::same || pattern.kind == LanePattern::same_runs))
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      for (unsigned i = 0; i < count; ++i)
        detail::fill_lanes<lanes()>(targets[i] + lane, read_raw<Raw>(access.host(lane) + i * sizeof(Raw)));
    });
  if (pattern.mask == full_mask) {
    // Packs four lanes at a time into a short run.
    for (unsigned lane = 0; lane < warp_size; lane += 4) {
      alignas(16) std::byte packed[4 * count * sizeof(Raw)];
      for (unsigned i = 0; i < 4; ++i)
        std::memcpy(packed + i * count * sizeof(Raw), access.host(lane + i), count * sizeof(Raw));
      detail::spread_elements<count, 4>(packed, targets, lane);
    }
    return;
  }
  for (unsigned i = 0; i < count; ++i)
    detail::load_some_elements(access, i * sizeof(Raw), targets[i]);
}

template <unsigned count, class Raw> void store_vectors(const KnownAccess& access, const Raw* const* sources) {
  const AddressPattern& pattern = access.pattern;
  if (pattern.mask == full_mask &&
      (pattern.kind == LanePattern::consecutive || pattern.kind == LanePattern::consecutive_runs))
    return detail::for_each_run(pattern, [&](auto lanes, unsigned lane) {
      detail::collect_elements<count, lanes()>(access.host(lane), sources, lane);
    });
  for (uint32_t lanes = pattern.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    Raw packed[count];
    for (unsigned i = 0; i < count; ++i)
      packed[i] = sources[i][lane];
    std::memcpy(access.host(lane), packed, sizeof packed);
  }
}

} // namespace ptxrewrite::emulator
