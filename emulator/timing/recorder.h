// What the timing model keeps of a run: an observer that looks at the blocks of some SMs, and remembers what their
// warps executed and where they accessed memory.
//
//   Recorder recorder({.port = port_law(machine), .sms = machine.sms});
//   request.observer = &recorder;
//   program->launch(request);
//   recorder.finish(): clusters of warps, accesses by block, statistics by instruction
//
// Blocks go to SMs in turns (block b to SM b mod SMs, the next ones behind them). All blocks are looked at where there
// are few; otherwise those of some SMs in pairs of neighbours, about one block in sixteen: the choice depends on the
// launch's shape alone. All others run as without an observer.
//
// Warps that execute the same instructions as often, but for 5 %, are a cluster (interval models that take one warp for
// all err where warps differ); there are at most eight, and each keeps the sequence of its first warp.
#pragma once

#include "emulator/observer.h"
#include "emulator/timing/memory_port.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr size_t most_clusters = 8;
inline constexpr size_t longest_sequence = size_t(1) << 18; // instructions that are kept of a warp

// One instruction that a warp executed: its number, and whether the guard was false in all lanes.
struct Step {
  uint32_t number : 31 = 0;
  uint32_t guarded_off : 1 = 0;
};

struct Cluster {
  std::vector<Step> steps; // of its first warp, at most longest_sequence
  uint64_t length = 0;     // of that warp, all steps
  uint64_t warps = 0;      // that were looked at
};

// Accesses of one static instruction in the blocks that were looked at.
struct AccessCounts {
  uint64_t accesses = 0; // warps
  uint64_t lines = 0, sectors = 0;
  uint64_t port_clocks = 0;
};

// Accesses of global and local memory of one block, warp after warp, as words: a head (instruction's number, how many
// lines, kind), then line << 4 | sectors for each.
struct BlockAccesses {
  uint64_t block = 0;
  std::vector<uint32_t> warp_ends; // in words
  std::vector<uint64_t> words;
};
struct AccessHead {
  uint32_t number = 0;
  uint32_t lines = 0;
  emulator::AccessKind kind = emulator::AccessKind::load;
};
uint64_t encode(const AccessHead& head);
AccessHead decode_head(uint64_t word);
inline LineRequest decode_line(uint64_t word) {
  return {word >> 4, static_cast<uint8_t>(word & 0xf)};
}

// A static instruction by its number.
struct Site {
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint8_t section = 0; // 1 + ir::SectionKind inside a section of R2D2's hardware form
};

// Of R2D2's hardware form: what a warp executes of each section. The machine executes sections less often than every
// warp does here (Counters have it right), so they are no part of the clusters.
inline constexpr size_t most_sections = 5; // one more than there are kinds

struct Recording {
  uint64_t blocks = 0;           // of the launch
  uint64_t blocks_looked_at = 0; // whose accesses are here
  uint32_t all_sms = 1;          // of the machine
  std::vector<uint32_t> sms;     // that were looked at, in order
  uint32_t warps_per_block = 0;
  uint64_t shared_bytes = 0; // of a block
  std::vector<Site> sites;
  std::vector<uint64_t> executions;         // by number: by warps with at least one lane whose guard was true
  std::vector<AccessCounts> global, shared; // by number; local memory is with global
  std::vector<Cluster> clusters;
  std::array<Cluster, most_sections> sections;           // by Site::section
  std::map<std::vector<uint16_t>, uint64_t> block_kinds; // clusters of a block's warps; how many such blocks
  std::vector<BlockAccesses> accesses;                   // in the order of blocks
  uint64_t allocated_lines = 0;                          // of all allocations that they touch: no launch touches more
  bool is_cut = false; // there was too much to remember: later blocks were not looked at
};

struct RecorderOptions {
  PortLaw port;
  uint32_t sms = 1;
  uint64_t most_words = uint64_t(1) << 23; // of accesses that are kept
};

// SMs whose blocks are looked at, in a launch of `blocks` on a machine of `sms`.
std::vector<uint32_t> sampled_sms(uint64_t blocks, uint32_t sms);

class Recorder final : public emulator::Observer {
public:
  explicit Recorder(RecorderOptions options) : options_(options) {}

  bool wants(const emulator::Block& block) override;
  bool wants_accesses() const override { return true; }
  void before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override;
  void passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override;
  void accessed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op,
                const emulator::ObservedAccess& access) override;
  void block_ended(emulator::Block& block) override;

  // When the launch is over. What is recorded goes to the caller.
  Recording finish();

private:
  struct WarpState {
    std::vector<Step> steps;
    uint64_t length = 0;
    uint64_t hash = 0;
    std::vector<uint64_t> words;
  };
  struct BlockState {
    std::vector<WarpState> warps;
  };
  void prepare(const emulator::Block& block);
  BlockState& state_of(const emulator::Block& block);
  void note(const emulator::Block& block, const emulator::Warp& warp, Step step);
  uint8_t cluster_of(const WarpState& warp);
  void count_allocations(const emulator::Block& block, const std::vector<uint64_t>& words);

  RecorderOptions options_;
  Recording recording_;
  bool prepared_ = false;
  std::vector<emulator::MemoryRange> ranges_; // allocations that were touched
  emulator::MemoryRange last_range_;
  std::vector<bool> wanted_; // by SM
  uint64_t words_ = 0;
  uint64_t local_stride_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<BlockState>> running_;
  std::vector<std::unique_ptr<BlockState>> spare_;
  BlockState* current_ = nullptr;
  uint64_t current_block_ = UINT64_MAX;
  std::unordered_map<uint64_t, uint8_t> cluster_of_hash_;
  std::vector<std::vector<uint32_t>> profiles_; // of clusters: executions by number
};

} // namespace ptxrewrite::timing
