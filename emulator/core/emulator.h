// Runs kernels of an IR module on the host: functional SIMT at warp granularity.
//
//   DeviceMemory memory;
//   auto program = Program::load(module, memory);            // places variables; decodes kernels when first launched
//   LaunchRequest request{.kernel = "vecadd", .grid = {1024}, .block = {256}, .parameters = bytes};
//   Result<LaunchResult> result = (*program)->launch(request);
//
// There are three kinds of failure: the program faults (result->failure, FailureKind::program_fault or deadlock), it
// uses an instruction that is not emulated (an Error before it runs, naming instruction and line), or it runs out of
// fuel. Results and counters do not depend on the number of host threads: a kernel whose result could depend on the
// order of blocks (an atomic's old value is used, float atomics, strong loads or stores in global memory, malloc) runs
// on one host thread unless `unordered` is set.
#pragma once

#include "emulator/core/counters.h"
#include "emulator/core/machine_data.h"
#include "emulator/memory/memory.h"
#include "emulator/memory/texture.h"
#include "ir/core/module.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::emulator {

struct Dimensions {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t(x) * y * z; }
  bool operator==(const Dimensions&) const = default;
};

// not_emulated: the program may be correct, but the model of a paper's machine cannot follow it.
enum class FailureKind : uint8_t { program_fault, deadlock, out_of_fuel, not_emulated };

// The GPU's name of a program fault (CUDA driver API, CUresult).
enum class FaultKind : uint8_t { launch_failure, illegal_address, misaligned_address, assertion, trap };

// The position and reason of a failed launch.
struct Failure {
  FailureKind kind = FailureKind::program_fault;
  FaultKind fault = FaultKind::launch_failure;
  std::string message; // "global load of 4 bytes at 0x...: 4 bytes behind the end of 'w' (1024 bytes)"
  std::string kernel;
  std::string function; // the running function; equals kernel outside of device functions
  Dimensions block;     // indices
  Dimensions thread;
  bool has_thread = false;
  ir::InstructionId instruction;
  SourceRange range;       // in the module's source
  std::string source_file; // CUDA line from `.loc`, if there is one
  uint32_t source_line = 0;

  // Converts to a diagnostic on the module's source.
  Diagnostic to_diagnostic() const;
};

// A finding of check mode, which does not stop the kernel: the first one of an instruction, with the number of times.
struct Finding {
  Failure where;                // kind is program_fault
  uint64_t times = 1;           // executions of the instruction by warps
  std::optional<Failure> other; // of a race: the earlier access

  // Converts to a diagnostic on the module's source.
  Diagnostic to_diagnostic(const SourceFile& source) const;
};

class Observer; // emulator/core/observer.h

// Blocks of a cluster: 8 on all GPUs with clusters, 16 if the program requests it (CUDA programming guide, Thread Block
// Clusters).
inline constexpr uint64_t largest_cluster = 16;

// Seconds of emulation for a block in an endless loop, and about the time limit of a GPU's watchdog.
inline constexpr uint64_t default_fuel = 4'000'000'000;
inline constexpr uint64_t launch_fuel_factor = 64;

// The order in which matrix products of floats sum, which the ISA leaves open (emulator/special/matrix.cpp).
enum class MatrixSums : uint8_t {
  sequential, // along k, each step rounded to nearest even in f32
  hopper      // as the tensor cores of sm_90 (emulator/tiles/aligned_sums.h): mma.sync, wmma, wgmma
};
// The order of requests that name none: sequential, unless --matrix-sums has been given before the first launch.
MatrixSums& default_matrix_sums();
// By its word: sequential, hopper. nullopt: it is neither.
std::optional<MatrixSums> matrix_sums_of(std::string_view word);
std::string word_of(MatrixSums sums);

// What %clock, %globaltimer and their parts count.
enum class ClockUnit : uint8_t {
  instructions, // warp instructions of the block; a basic block counts when it is entered
  reads         // earlier reads of a clock by the same lanes: the values do not depend on other instructions, so a
                // rewritten kernel reads the same ones
};

struct LaunchRequest {
  std::string kernel;
  Dimensions grid{};
  Dimensions block{};
  uint32_t shared_bytes = 0;           // dynamic
  std::vector<std::byte> parameters{}; // layout of the kernel's .param space: natural alignment
  unsigned host_threads = 0;           // 0: as many as the host has
  bool unordered = false;              // blocks of any kernel may run at the same time
  bool reversed = false;               // the last block starts first, to test whether results depend on the order
  bool check = false;        // uninitialised reads, races ...; out of bounds and misaligned are always checked
  bool late_copies = false;  // asynchronous copies are performed by the wait, not when they are issued
  bool count_memory = false; // InstructionCounters::transactions
  ClockUnit clock_unit = ClockUnit::instructions;
  MatrixSums matrix_sums = default_matrix_sums();
  // Warp instructions that a block may execute; all blocks together may execute launch_fuel_factor times as many.
  uint64_t fuel = default_fuel;
  // Memory by which the blocks of a cooperative launch synchronise: %envreg1 (high half) and %envreg2; 0: none.
  uint64_t grid_workspace = 0;
  // Blocks of a cluster (thread block cluster, PTX ISA 5.1): they run at the same time and access each other's shared
  // memory. nullopt: the kernel's own size (.reqnctapercluster), or each block is its own cluster.
  std::optional<Dimensions> cluster{};
  // SMs of the machine for the counts of a hardware form's sections (Counters); 0: the value of %nsmid, which does not
  // depend on the machine.
  uint32_t multiprocessors = 0;
  Observer* observer = nullptr;
  // Settings of machines (emulator/core/machine.h): each machine's header tells whether they select the machine, or
  // control how it runs kernels in its hardware form. Launches on a machine use one host thread.
  MachineData machines{};
};

struct LaunchResult {
  Counters counters;    // of the program, including instructions that a machine skips
  MachineData machines; // counters of the machine that the launch ran on, in its own type
  std::string printed;  // by the kernel's printf, in block order
  std::vector<Finding> findings;
  std::optional<Failure> failure;
};

struct KernelImage;

class Program {
public:
  // `module` and `memory` must outlive the program. Returns an error if a variable cannot be placed.
  static Result<std::unique_ptr<Program>> load(const ir::Module& module, DeviceMemory& memory);
  virtual ~Program() = default;

  // Returns an error for an unknown kernel, bad dimensions, a wrong parameter size, or an instruction that is not
  // emulated (all functions that the kernel can call are checked before it runs).
  virtual Result<LaunchResult> launch(const LaunchRequest& request) = 0;
  // Returns the error of `launch` if the kernel has an instruction that is not emulated.
  virtual Status check_supported(std::string_view kernel) = 0;
  // Bytes of shared memory of a block that the kernel declares, without dynamic memory. Errors: as launch.
  virtual Result<uint64_t> static_shared(std::string_view kernel) = 0;
  // Returns the image of a kernel, for tools that look at its code. Errors: as launch.
  virtual Result<KernelImage*> decoded(std::string_view kernel) = 0;
  // The bytes of a .global or .const variable of the module, for reading and writing; empty if there is none.
  virtual std::span<std::byte> variable(std::string_view name) = 0;
  // Generic address of a .global or .const variable; 0 if there is none.
  virtual uint64_t variable_address(std::string_view name) const = 0;
  // Makes a texture or surface known to kernels. `reference`: its .texref or .surfref variable; empty: kernels use the
  // returned handle as an argument, which is `handle` if that is not 0. Returns an error if there is no such variable.
  virtual Result<uint64_t> bind_texture(const TextureBinding& binding, std::string_view reference = {},
                                        uint64_t handle = 0) = 0;
  // Replaces all bindings, with handles chosen by the caller. The handle of a reference is the address of its
  // variable.
  virtual void set_textures(TextureTable textures) = 0;
};

// Checks the limits: blocks of more than 1024 threads, zero sizes, grid limits. Used by launch and by readers of launch
// files.
Status check_dimensions(const Dimensions& grid, const Dimensions& block);

// The grid and clusters of a launch, from its request and the kernel's directives (PTX ISA 11.7 and 11.8).
struct ClusterShape {
  Dimensions grid;                   // in blocks: .blocksareclusters counts it in clusters
  std::optional<Dimensions> cluster; // nullopt: no size is given
};
// `asked`: the launch's cluster size. Returns an error, as GPUs do, if the kernel requires another size or an explicit
// one, if there are too many blocks, or if the grid is no multiple of the cluster.
Result<ClusterShape> cluster_shape(const ir::Module& module, const ir::Function& kernel, const Dimensions& grid,
                                   const std::optional<Dimensions>& asked);

} // namespace ptxrewrite::emulator
