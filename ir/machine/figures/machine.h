// The machines for which costs are computed: properties of GPUs, as data (machines/*.toml). Figures that are guesses
// are marked and treated as guesses.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

struct Figure {
  double value = 0;
  bool known = false; // false: the chip has no such unit
  bool guess = false; // from memory, or taken from a related chip

  constexpr Figure() = default;
  constexpr Figure(double number, bool is_guess = false) : value(number), known(true), guess(is_guess) {}
};

enum class RegisterUnit : uint8_t { block, warp }; // unit of register allocation

// Per SM unless stated otherwise.
struct OccupancyFacts {
  uint32_t max_warps = 0;
  uint32_t max_blocks = 0;
  uint32_t max_threads_per_block = 0;
  uint32_t registers = 0; // of 32 bits
  RegisterUnit register_unit = RegisterUnit::warp;
  uint32_t register_granularity = 0; // registers are allocated in multiples of this
  uint32_t warp_granularity = 0;     // warps are allocated registers in multiples of this
  uint32_t max_registers_per_thread = 0;
  uint32_t shared_bytes = 0; // with the largest carve-out
  uint32_t max_shared_bytes_per_block = 0;
  uint32_t shared_granularity = 0;
  uint32_t shared_reserved = 0; // per block, by the system
};

struct MemoryFacts {
  Figure l1_kib, l2_kib;
  Figure dram_gb_per_second, achieved_dram_gb_per_second;
  Figure l1_bytes_per_clock, l2_bytes_per_clock; // per SM
  Figure l2_slices;                              // of the chip: consecutive lines are interleaved among them
  Figure outstanding_misses;                     // per SM
};

// Instructions on their way to the schedulers. Unknown: code of any size arrives in time.
struct FetchFacts {
  Figure cache_kib;       // the cache next to a scheduler
  Figure bytes_per_clock; // that an SM's schedulers together get of what these caches miss
};

// Results (lanes) per clock and SM; a warp instruction takes 32 / figure clocks of its unit.
struct ThroughputFacts {
  Figure integer_add, integer_multiply_add, shift, logic, compare;
  Figure convert32, convert8, convert64;
  Figure population_count, bit_field_extract, shuffle;
  Figure fp32, fp64, special_function;
  Figure load_store, barrier;
  Figure matrix;       // multiply-adds of two 16-bit numbers, by tensor cores; time of other types: matrix_work.h
  Figure matrix_async; // the same by wgmma and tcgen05.mma, which read their operands from shared memory
};

// Clocks from issue until a dependent instruction may issue.
struct LatencyFacts {
  Figure integer, integer_multiply_add, fp32, fp64, special_function;
  Figure shared, shared_cluster, l1, l2, dram, constant; // shared_cluster: another block's shared memory
  Figure matrix;                                         // of m16n8k16, or the largest product below that
};

// Overhead of a launch in addition to its instructions.
struct LaunchFacts {
  Figure constant, per_block; // clocks
};

struct Machine {
  // Views of strings owned elsewhere. Those of users' machines are valid until the program ends.
  std::string_view name;           // "TITANV"
  std::string_view chip;           // "GV100"
  uint32_t compute_capability = 0; // 70 for 7.0
  uint32_t sms = 0;
  uint32_t clock_mhz = 0;
  uint32_t schedulers = 0; // per SM
  Figure issue_rate;       // instructions per scheduler and clock
  bool uniform_datapath = false;
  OccupancyFacts occupancy;
  MemoryFacts memory;
  FetchFacts fetch;
  ThroughputFacts throughput;
  LatencyFacts latency;
  LaunchFacts launch;
};

// Oldest first, by compute capability and name.
std::span<const Machine> all_machines();

// Finds a machine by name; ignores case, blanks, dashes and underscores ("TITAN V" is "titanv"). Returns nullptr if
// there is none; unknown_machine() then gives a message that lists all machines, the most similar names first.
const Machine* find_machine(std::string_view name);
std::string unknown_machine(std::string_view name);

// The representative machine of a target, 80 for sm_80: the newest machine that is not newer, the first in the table of
// those with equal compute capability; for targets older than all machines, the oldest one.
const Machine& machine_for(uint32_t compute_capability);
// 90 for "sm_90", "sm_90a", "compute_90"; 0 if the text is not an architecture.
uint32_t compute_capability_of(std::string_view architecture);

} // namespace ptxrewrite::ir
