// The timing model's record of a run: an observer that looks at the blocks of some SMs and stores the instructions that
// their warps execute and the memory that they access.
//
//   Recorder recorder({.port = port_law(machine), .sms = machine.sms});
//   request.observer = &recorder;
//   program->launch(request);
//   recorder.finish(): clusters of warps, accesses by block, statistics by instruction
//
// Blocks are assigned to SMs in turns (block b to SM b mod SMs). All blocks are looked at if they are few and short;
// otherwise those of some pairs of neighbouring SMs: about one block in sixteen, at least sixteen (but no more than a
// quarter of the blocks if that is much work), or as few as two if the first block is long. Long warps are looked at
// in windows, with gaps of 1, 2, 4, 8 and then always 15 windows, at the same places in all warps, so that data which
// warps share stay shared. Windows are counted between barriers; where there are many barriers, whole phases between
// two barriers are looked at or skipped. The rest runs as without an observer. The choice depends on the launch
// alone.
//
// Warps whose execution counts per instruction differ by at most 5 % form a cluster (interval models that use one warp
// for all err where warps differ); there are at most eight, and each stores the sequence of its first warp.
#pragma once

#include "emulator/core/observer.h"
#include "emulator/memory/texture_layout.h"
#include "emulator/timing/access_memo.h"
#include "emulator/timing/block_sample.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::timing {

inline constexpr size_t most_clusters = 8;
inline constexpr size_t longest_sequence = size_t(1) << 18; // stored instructions of a warp

// One instruction executed by a warp: its number, and whether the guard was false in all lanes.
struct Step {
  uint32_t number : 31 = 0;
  uint32_t guarded_off : 1 = 0;
};

struct Cluster {
  std::vector<Step> steps; // of its first warp: those in windows, at most longest_sequence
  uint64_t length = 0;     // all steps of that warp
  uint64_t warps = 0;      // that were looked at
};

// Accesses of one static instruction in the blocks that were looked at.
struct AccessCounts {
  uint64_t accesses = 0; // by warps
  uint64_t lines = 0, sectors = 0;
  uint64_t port_clocks = 0; // of shared memory passes
};

// One access of a warp to global or local memory.
struct Access {
  uint64_t first_line = 0; // of the first lane: the pattern's lines are relative to it
  uint32_t pattern = 0;    // in Recording::patterns
  uint32_t number : 27 = 0;
  uint32_t kind : 4 = 0;       // an AccessKind
  uint32_t odd_window : 1 = 0; // whether the warp's window has an odd number
  emulator::AccessKind access_kind() const { return static_cast<emulator::AccessKind>(kind); }
};
// The accesses of one block, warp after warp.
struct BlockAccesses {
  uint64_t block = 0;
  std::vector<uint32_t> warp_ends; // in accesses
  // Places in accesses where the warps waited for each other at barriers, warp after warp, and each warp's end in them.
  std::vector<uint32_t> barriers, barrier_ends;
  std::vector<Access> accesses;
};

// The lines of accesses, relative to the first lane's line: few patterns serve many accesses.
class AccessPatterns {
public:
  uint32_t add(std::span<const LineRequest> lines);
  std::span<const uint64_t> operator[](uint32_t pattern) const {
    return std::span(words_).subspan(patterns_[pattern].begin, patterns_[pattern].count);
  }
  // The line request of one word of the access's pattern.
  static LineRequest line_of(const Access& access, uint64_t word) {
    const uint64_t absolute = word + (access.first_line << sector_bits);
    return {absolute >> sector_bits, static_cast<uint8_t>(absolute & ((1 << sector_bits) - 1))};
  }
  // The lowest and highest line.
  std::pair<uint64_t, uint64_t> extent(const Access& access) const {
    const Pattern& pattern = patterns_[access.pattern];
    return {access.first_line + pattern.low, access.first_line + pattern.high};
  }
  uint64_t sectors(uint32_t pattern) const { return patterns_[pattern].sectors; }
  // Removes all patterns; the memory is kept.
  void clear();

private:
  static constexpr unsigned sector_bits = 4;
  std::vector<uint64_t> words_; // line << sector_bits | sectors, modulo 2^64
  struct Pattern {
    uint64_t begin = 0; // in words_
    uint32_t count = 0, sectors = 0;
    uint64_t low = 0, high = 0; // lines, modulo 2^64
  };
  std::vector<Pattern> patterns_;
};

// Lines [first, past).
struct LineRange {
  uint64_t first = 0, past = 0;
  uint64_t size() const { return past - first; }
  bool operator==(const LineRange&) const = default;
};

// A static instruction by its number.
struct Site {
  const ir::Function* function = nullptr;
  ir::InstructionId instruction;
  uint8_t section = 0; // 1 + ir::SectionKind inside a section of a hardware form
  bool operator==(const Site&) const = default;
};

// The steps of a warp in each section of a hardware form. The machine executes sections less often than every warp does
// here (Counters have the right counts), so they are not part of the clusters. For a stream
// (DecodedFunction::stream_of): the machine's execution for the first blocks that it runs side by side.
inline constexpr size_t most_sections = 5; // one more than there are kinds

struct Recording {
  uint64_t blocks = 0;           // of the launch
  uint64_t blocks_looked_at = 0; // with accesses in this recording
  uint32_t all_sms = 1;          // of the machine
  std::vector<uint32_t> sms;     // that were looked at, in order
  uint32_t warps_per_block = 0;
  uint64_t shared_bytes = 0; // of a block
  std::vector<Site> sites;
  std::vector<uint64_t> executions;         // by number: by warps with at least one lane whose guard was true
  std::vector<AccessCounts> global, shared; // by number; local memory is with global
  std::vector<AccessCounts> constant;       // by number: one clock per different address
  std::vector<uint64_t> multiplications;    // by number, of tcgen05.mma; empty: there are none
  std::vector<Cluster> clusters;
  std::array<Cluster, most_sections> sections;           // by Site::section
  std::map<std::vector<uint16_t>, uint64_t> block_kinds; // clusters of a block's warps, with the number of such blocks
  AccessPatterns patterns;
  std::vector<BlockAccesses> accesses;    // in the order of blocks
  std::vector<LineRange> allocations;     // touched by accesses, in the order of the first touch
  uint64_t steps_seen = 0, steps_all = 0; // of the warps that were looked at: in windows, and all
  // The share of the steps of the warps that were looked at that is in windows.
  double share_seen() const { return steps_all ? static_cast<double>(steps_seen) / static_cast<double>(steps_all) : 1; }
  // Whether the whole launch was looked at.
  bool is_complete() const { return blocks_looked_at == blocks && steps_seen == steps_all && !is_cut; }
  uint64_t blocks_run = 0; // all blocks, unless the launch is sampled (RecorderOptions::sampled)
  // For a sampled launch, per block that was looked at.
  BlockSample instructions_by_block, sectors_by_block;
  bool is_cut = false; // the memory limit was reached: later blocks were not looked at
};

// The rules that select blocks and windows.
struct SampleRules {
  uint64_t one_block_in = 16, few_blocks = 16;  // the larger of few_blocks and a share of all blocks
  uint64_t steps_of_few = uint64_t(9) << 14;    // limit of steps in all: reduces few_blocks, to two at least,
  uint64_t steps_of_all = uint64_t(3) << 14;    // and if the whole launch has more steps than this,
  uint64_t one_of_few_in = 4;                   // to this share of all blocks, to two at least
  uint64_t fewest_sampled = 16;                 // of a sampled launch: enough to estimate the variation
  uint64_t window_of_block = uint64_t(1) << 14; // steps of a block's warps together
  uint64_t shortest_window = 512, longest_window = uint64_t(1) << 13; // of a warp
  uint64_t one_window_in = 16;
};

struct RecorderOptions {
  PortLaw port;
  uint32_t sms = 1;
  bool everything = false; // all blocks, all instructions: for comparisons
  bool sampled = false;    // blocks that are not looked at do not run
  bool textures = true;    // texture accesses go through the simulated caches
  // The SMs to look at in a launch of `chosen_of` blocks; empty: chosen by the recorder. Versions of one launch are
  // compared on the same blocks.
  uint64_t chosen_of = 0;
  std::vector<uint32_t> chosen_sms;
  SampleRules rules = {};
  uint64_t most_lines = uint64_t(1) << 23; // limit of stored lines and accesses
};

// The SMs to look at, in a launch of `blocks` on a machine of `sms` SMs: as many as have about `target` blocks
// together.
std::vector<uint32_t> sampled_sms(uint64_t blocks, uint32_t sms, uint64_t target);

class Recorder final : public emulator::Observer {
public:
  explicit Recorder(const RecorderOptions& options) : options_(options), memo_(options.port) {}
  // For another launch on the same machine: takes over the access patterns that `before` computed.
  Recorder(const RecorderOptions& options, Recorder&& before);

  bool runs(uint64_t number) override;
  bool wants(const emulator::Block& block) override;
  bool wants_accesses() const override { return true; }
  bool wants_after() const override { return false; }
  void before(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override;
  void passed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op) override;
  void accessed(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op,
                const emulator::ObservedAccess& access) override;
  void multiplied(emulator::Block& block, emulator::Warp& warp, const emulator::MicroOp& op,
                  uint64_t multiplications) override;
  void block_ended(emulator::Block& block) override;
  void left_out(emulator::Block& block, emulator::Warp& warp, uint64_t instructions) override;
  void stream_executed(const emulator::Block& first, uint32_t number) override;
  void restarted() override { *this = Recorder(options_, std::move(*this)); }

  // Call it after the launch. Moves the recording to the caller.
  Recording finish();
  // Takes over the memory of a recording that is no longer needed.
  void reuse(Recording&& recording);

private:
  struct WarpState {
    std::vector<Step> steps;
    uint64_t unseen = 0;         // instructions
    uint64_t beyond = 0;         // steps that were looked at, but not stored
    uint64_t hash_of_beyond = 0; // of the steps beyond
    uint64_t window = 0;         // its number
    int64_t window_left = 0;     // steps; an access of many lines counts as several; 0 in gaps and between phases
    bool in_gap = false;
    uint64_t gap_left = 0; // instructions still to be skipped
    uint64_t phase = 0;    // barriers so far
    bool phase_begins = true;
    std::vector<Access> accesses;
    std::vector<uint32_t> barriers; // places in accesses
    void pass_barrier();
    uint64_t seen() const { return steps.size() + beyond; }
    uint64_t length() const { return seen() + unseen; }
    void begin_phase();
  };
  // Phases between barriers are looked at or not in all warps alike; the first warp that enters a phase decides, by the
  // length of the warps so far.
  struct BlockState {
    std::vector<WarpState> warps;
    std::vector<bool> phases;
    uint64_t windows = 0;
    uint64_t since = 0; // mean length of the warps at the start of the window or gap
    bool is_seen(uint64_t phase, uint64_t window, uint64_t longest_gap);
  };
  void prepare(const emulator::Block& block);
  void choose_sms(uint64_t few_blocks);
  bool has_choice() const { return !options_.chosen_sms.empty() && options_.chosen_of == recording_.blocks; }
  void choose_again(const emulator::Block& first);
  BlockState& state_of(const emulator::Block& block);
  WarpState& state_of(const emulator::Block& block, const emulator::Warp& warp);
  // The local memory of this many warps.
  uint64_t local_bytes(uint64_t warps) const { return warps * emulator::warp_size * (local_stride_ + 4); }
  void begin(BlockState& block) const;
  bool is_seen(BlockState& block, WarpState& warp);
  void note(const emulator::Block& block, const emulator::Warp& warp, Step step);
  void note_other(const emulator::Block& block, const emulator::Warp& warp, Step step);
  void keep(WarpState& warp, Step step);
  void note_section(const emulator::Block& block, const emulator::Warp& warp, Step step);
  uint8_t cluster_of(const WarpState& warp);
  uint32_t pattern_of(AccessCost& cost);
  void add_to_samples(const BlockState& block, const std::vector<Access>& accesses);
  void count_allocations(const emulator::Block& block, const std::vector<Access>& accesses);
  const emulator::MemoryRange* range_of(uint64_t address);
  void add_range(const emulator::Block& block, uint64_t address);

  RecorderOptions options_;
  AccessMemo memo_;
  uint64_t launch_ = 1; // number of the launch among those that used the memo
  Recording recording_;
  bool prepared_ = false;
  std::vector<emulator::MemoryRange> ranges_; // allocations that were touched
  size_t last_range_ = 0;
  std::vector<bool> wanted_; // by SM
  uint64_t lines_ = 0;       // lines and accesses so far
  uint64_t window_ = 0;      // steps of a warp
  enum class SiteKind : uint8_t { plain, barrier, in_section };
  std::vector<SiteKind> kinds_; // by number
  bool has_barriers_ = false;
  uint64_t local_stride_ = 0;
  emulator::TextureLayout textures_;
  std::vector<bool> products_;  // by number: is it wgmma or tcgen05.mma?
  std::vector<uint8_t> copies_; // by number: accesses to shared memory for each that the emulator reports
  std::unordered_map<uint64_t, std::unique_ptr<BlockState>> running_;
  std::vector<std::unique_ptr<BlockState>> spare_;
  std::vector<BlockAccesses> spare_accesses_;
  BlockState* current_ = nullptr;
  const emulator::Warp* current_warp_ = nullptr;
  WarpState* current_warp_state_ = nullptr;
  bool seen_ = true; // whether the current instruction is looked at
  uint64_t current_block_ = UINT64_MAX;
  uint64_t affine_batch_ = UINT64_MAX; // first block of the batch whose stream is recorded
  std::unordered_map<uint64_t, uint8_t> cluster_of_hash_;
  std::vector<std::vector<uint32_t>> profiles_; // of clusters: executions by number
};

} // namespace ptxrewrite::timing
