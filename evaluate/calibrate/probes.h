// Micro-benchmarks that show the figures of a machine one at a time: kernels in PTX of our own, made here.
//
// A probe is launched with two numbers of trips; the difference of the two times is what so many more links of its
// chain take, and everything that happens once is out of it. Chains of dependent instructions in one warp show a
// latency; several chains in each of 32 warps, a unit's throughput; chases of pointers, caches; streams, bandwidths.
//
// All kernels have the parameters (out, in, trips, a, b, c, d): every thread leaves the end of its chain at
// out[its number], 8 bytes, so that no assembler may leave the chain away; `in` is memory filled as the probe says; a
// to d are numbers that the chains work with.
#pragma once

#include "launch/launch_plan.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

// What `in` holds in the beginning.
enum class ProbeMemory : uint8_t {
  none,
  ring,        // addresses: each node holds that of the next one, `stride` bytes on, the last one that of the first
  random_ring, // the same in one random cycle over all nodes
  numbers,     // 32-bit words, each its own number
  constants,   // none; the module's constants are a ring of addresses
};

struct Probe {
  std::string name; // and its kernel's
  std::string
      figure; // that it shows: "latency.fp32" (ir/machine/figures/machine_fields.h); "": none, it is only predicted
  launch::Dim3 grid, block;
  uint32_t short_trips = 0, long_trips = 0; // no short one: the time itself is what counts
  uint32_t short_grid = 0;                  // more blocks instead of more trips: the grid of the short launch
  unsigned links = 0;                       // of a trip
  uint64_t memory_bytes = 0;
  uint32_t stride = 0; // of nodes, in bytes
  ProbeMemory memory = ProbeMemory::none;
  bool fresh = false;                             // each launch starts where none was before: trips nodes further on
  std::array<uint32_t, 4> numbers = {1, 1, 1, 1}; // a to d
  launch::Dim3 grid_of(bool long_one) const {
    return long_one || short_grid == 0 ? grid : launch::Dim3{short_grid, 1, 1};
  }
};

// How large: SMs and L2 of the machine, and how long chains are (1: as on a GPU, whose clock needs long ones; tests
// take less).
struct ProbeScale {
  uint32_t sms = 132;
  uint64_t l2_bytes = 50 << 20;
  double length = 1;
  bool tensor_cores = false; // as compute capability 8.0 has them
};
std::vector<Probe> probes(const ProbeScale& scale);
bool needs_tensor_cores(std::span<const Probe> probes);

// Links of a trip, by chain.
inline constexpr unsigned chain_links = 64, chase_links = 16;
// A module with the kernels of all probes, for compute capability 6.0 and later; for 8.0 and later with those of tensor
// cores. `longer`: so many times the links, to see what links are made of.
std::string probe_module_text(unsigned longer = 1, bool tensor_cores = false);

// The bytes of `in` when it stands at `address`; of the constants in the same way.
std::vector<std::byte> probe_memory(const Probe& probe, uint64_t address);

// Constants of the module, and a kernel that leaves their address at out[0].
inline constexpr std::string_view constants_name = "ring_of_constants", constants_kernel = "address_of_constants";

} // namespace ptxrewrite::evaluate
