// Runs kernels of an IR module on the host: functional SIMT at warp granularity.
//
//   DeviceMemory memory;
//   auto program = Program::load(module, memory);            // places variables; decodes kernels when first launched
//   LaunchRequest request{.kernel = "vecadd", .grid = {1024}, .block = {256}, .parameters = bytes};
//   Result<LaunchResult> result = (*program)->launch(request);
//
// Three things can go wrong, and are told apart: the program faults (result->failure, FailureKind::program_fault or
// deadlock), it uses what is not emulated (an Error before anything runs, naming instruction and line), it runs out of
// fuel. Results and counters do not depend on the number of host threads: a kernel whose result could depend on the
// order of blocks (an atomic's old value is used, float atomics, strong loads or stores in global memory, malloc) runs
// on one host thread unless `unordered` allows otherwise.
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

enum class FailureKind : uint8_t { program_fault, deadlock, out_of_fuel };

// What a GPU calls a program's fault (CUDA driver API, CUresult).
enum class FaultKind : uint8_t { launch_failure, illegal_address, misaligned_address, assertion, trap };

// Where and why a launch stopped.
struct Failure {
  FailureKind kind = FailureKind::program_fault;
  FaultKind fault = FaultKind::launch_failure;
  std::string message; // "global load of 4 bytes at 0x...: 4 bytes behind the end of 'w' (1024 bytes)"
  std::string kernel;
  std::string function; // the one that was running; equals kernel outside device functions
  Dimensions block;     // indices
  Dimensions thread;
  bool has_thread = false;
  ir::InstructionId instruction;
  SourceRange range;       // in the module's source
  std::string source_file; // CUDA line from `.loc`, when there is one
  uint32_t source_line = 0;

  // As a diagnostic on the module's source.
  Diagnostic to_diagnostic() const;
};

// A finding of check mode that does not stop the kernel: the first one of an instruction, and how often it came.
struct Finding {
  Failure where;                // kind is program_fault
  uint64_t times = 1;           // executions of the instruction by warps
  std::optional<Failure> other; // of a race: the access that came first

  // As a diagnostic on the module's source.
  Diagnostic to_diagnostic(const SourceFile& source) const;
};

class Observer; // emulator/core/observer.h

// Blocks of a cluster: 8 wherever there are clusters, 16 where the program asks for it (CUDA programming guide, Thread
// Block Clusters).
inline constexpr uint64_t largest_cluster = 16;

// Seconds for a block that turns round in a loop, and as long as a GPU's watchdog would wait for what it stands for.
inline constexpr uint64_t default_fuel = 4'000'000'000;
inline constexpr uint64_t launch_fuel_factor = 64;

struct LaunchRequest {
  std::string kernel;
  Dimensions grid{};
  Dimensions block{};
  uint32_t shared_bytes = 0;           // dynamic
  std::vector<std::byte> parameters{}; // as the kernel's .param space lies: natural alignment
  unsigned host_threads = 0;           // 0: as many as the machine has
  bool unordered = false;              // blocks of any kernel may run at the same time
  bool reversed = false;               // the last block starts first: do results depend on the order?
  bool check = false;        // uninitialised reads, races ...; out of bounds and misaligned always are checked
  bool late_copies = false;  // asynchronous copies happen when they are waited for, not when they are issued
  bool count_memory = false; // InstructionCounters::transactions
  // Warp instructions that a block may execute; all blocks together may launch_fuel_factor times as many.
  uint64_t fuel = default_fuel;
  // Address of the memory in which the blocks of a cooperative launch meet: %envreg1 (high half) and %envreg2; 0: none.
  uint64_t grid_workspace = 0;
  // Blocks of a cluster (thread block cluster, PTX ISA 5.1): they run at the same time and reach one another's shared
  // memory. None: the kernel's own (.reqnctapercluster), or each block is a cluster for itself.
  std::optional<Dimensions> cluster{};
  // SMs of the machine that a hardware form is counted for (Counters of its sections); 0: as many as %nsmid says, which
  // is the same whatever the machine.
  uint32_t multiprocessors = 0;
  Observer* observer = nullptr;
  // Settings of machines (emulator/core/machine.h): each machine's header says whether they make the launch run on it,
  // or how it runs kernels that are in its hardware form. On a machine there is one host thread.
  MachineData machines{};
};

struct LaunchResult {
  Counters counters;    // of the program: instructions that a machine skips are counted
  MachineData machines; // what the machine counted that the launch ran on, of a type of its own
  std::string printed;  // by the kernel's printf, in block order
  std::vector<Finding> findings;
  std::optional<Failure> failure;
};

class Program {
public:
  // `module` and `memory` must outlive the program. Error: a variable that cannot be placed.
  static Result<std::unique_ptr<Program>> load(const ir::Module& module, DeviceMemory& memory);
  virtual ~Program() = default;

  // Error: no such kernel, bad dimensions, wrong parameter size, or an instruction that is not emulated (all of the
  // functions the kernel can call are looked at before it runs).
  virtual Result<LaunchResult> launch(const LaunchRequest& request) = 0;
  // Would `launch` refuse the kernel for an instruction that is not emulated? Then the reason.
  virtual Status check_supported(std::string_view kernel) = 0;
  // Shared memory of a block that the kernel declares, in bytes; dynamic comes on top. Errors: as launch.
  virtual Result<uint64_t> static_shared(std::string_view kernel) = 0;
  // Bytes of a .global or .const variable of the module, to fill or read; empty if there is none of that name.
  virtual std::span<std::byte> variable(std::string_view name) = 0;
  // Generic address of a .global or .const variable; 0 if there is none.
  virtual uint64_t variable_address(std::string_view name) const = 0;
  // Makes a texture or surface known to kernels. `reference`: the .texref or .surfref variable that stands for it;
  // empty: the handle that comes back does, as an argument; `handle`, if that is not 0. Error: no such variable.
  virtual Result<uint64_t> bind_texture(const TextureBinding& binding, std::string_view reference = {},
                                        uint64_t handle = 0) = 0;
  // All bindings at once, by handles of the caller's choice, in the place of those before. A reference's handle is its
  // variable's address.
  virtual void set_textures(TextureTable textures) = 0;
};

// All but what does not fit: block of more than 1024 threads, zero sizes, grid limits. Used by launch and by readers of
// launch files alike.
Status check_dimensions(const Dimensions& grid, const Dimensions& block);

// A launch's grid and clusters, as the launch and the kernel's directives (PTX ISA 11.7 and 11.8) have them together.
struct ClusterShape {
  Dimensions grid;                   // in blocks: .blocksareclusters counts it in clusters
  std::optional<Dimensions> cluster; // none: neither says a size
};
// `asked`: the launch's cluster size. Errors, which GPUs have, too: the kernel requires another size or that one is
// given, too many blocks, a grid that is no multiple.
Result<ClusterShape> cluster_shape(const ir::Module& module, const ir::Function& kernel, const Dimensions& grid,
                                   const std::optional<Dimensions>& asked);

} // namespace ptxrewrite::emulator
