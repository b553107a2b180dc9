// Micro-benchmarks that each expose one figure of a machine: kernels in PTX, generated here.
//
// A probe is launched with two numbers of trips; the difference of the two times is the duration of the additional
// links of its chain, without one-time costs. Chains of dependent instructions in one warp show a latency; several
// chains in each of 32 warps, a unit's throughput; chases of pointers, caches; streams, bandwidths.
//
// All kernels have the parameters (out, in, trips, a, b, c, d): every thread stores the end of its chain to out[thread
// index], 8 bytes, so that the assembler cannot remove the chain; `in` is memory filled as the probe requires; a to d
// are numbers used by the chains.
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

// Initial contents of `in`.
enum class ProbeMemory : uint8_t {
  none,
  ring,        // addresses: each node points to the next one, `stride` bytes further; the last one to the first
  random_ring, // the same, as one random cycle over all nodes
  numbers,     // 32-bit words, each with its own index
  constants,   // unused; the module's constants are a ring of addresses
};

struct Probe {
  std::string name;   // also that of its kernel
  std::string figure; // the figure to be fitted: "latency.fp32" (ir/machine/figures/machine_fields.h); "" if the probe
                      // is only predicted
  launch::Dim3 grid, block;
  uint32_t short_trips = 0, long_trips = 0; // if short_trips is 0, only the long launch is timed
  uint32_t short_grid = 0;                  // if not 0, more blocks instead of more trips: the grid of the short launch
  unsigned links = 0;                       // per trip
  uint64_t memory_bytes = 0;
  uint32_t stride = 0; // distance of nodes in bytes
  ProbeMemory memory = ProbeMemory::none;
  bool fresh = false;                             // each launch starts at nodes that no earlier one has read: `trips`
                                                  // nodes further on
  std::array<uint32_t, 4> numbers = {1, 1, 1, 1}; // a to d
  launch::Dim3 grid_of(bool long_one) const {
    return long_one || short_grid == 0 ? grid : launch::Dim3{short_grid, 1, 1};
  }
};

// The size of probes: SMs and L2 of the machine, and the length of chains (1 for a GPU, whose timer needs long ones;
// tests use less).
struct ProbeScale {
  uint32_t sms = 132;
  uint64_t l2_bytes = 50 << 20;
  double length = 1;
  bool tensor_cores = false; // those of compute capability 8.0
};
std::vector<Probe> probes(const ProbeScale& scale);
bool needs_tensor_cores(std::span<const Probe> probes);

// Links per trip, by kind of chain.
inline constexpr unsigned chain_links = 64, chase_links = 16;
// Returns a module with the kernels of all probes, for compute capability 6.0 and later; with tensor cores for 8.0 and
// later. `longer` multiplies the number of links, to examine their code.
std::string probe_module_text(unsigned longer = 1, bool tensor_cores = false);

// The bytes of `in` at `address`; also those of the constants.
std::vector<std::byte> probe_memory(const Probe& probe, uint64_t address);

// The module's constants, and a kernel that stores their address to out[0].
inline constexpr std::string_view constants_name = "ring_of_constants", constants_kernel = "address_of_constants";

} // namespace ptxrewrite::evaluate
