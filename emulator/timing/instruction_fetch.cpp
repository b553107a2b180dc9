#include "emulator/timing/instruction_fetch.h"

#include "ir/flow/loops.h"

#include <algorithm>

namespace ptxrewrite::timing {
namespace {

// Of Volta and later (Jia et al., "Dissecting the NVIDIA Volta GPU architecture via microbenchmarking", 2018); only
// machines of these have figures of their caches.
constexpr double instruction_bytes = 16;

struct BlockCode {
  double bytes = 0;      // of its instructions, copies of unrolled loops included
  double executions = 0; // by warps
  double fetched = 0;    // bytes, if each execution fetches
  bool has_barrier = false;
};

// One function of the launch.
class FunctionCode {
public:
  explicit FunctionCode(const ir::Function& function) : function_(function), blocks_(function.blocks.size()) {}

  void add(const Site& site, const SiteCode& code, double executions, double share) {
    BlockCode& block = blocks_[function_.instructions[site.instruction].block.index()];
    block.bytes += instruction_bytes * code.instructions * code.copies;
    block.executions = std::max(block.executions, executions);
    block.fetched += instruction_bytes * code.instructions * executions * share;
    block.has_barrier |= code.waits == Waits::for_barrier;
  }

  double bytes() const {
    double sum = 0;
    for (const BlockCode& block : blocks_)
      sum += block.bytes;
    return sum;
  }

  // Bytes that miss a cache of `capacity` bytes; `sharers` warps of a block share one cache.
  double missed(double capacity, double sharers) const {
    const ir::ControlFlow flow(function_);
    const ir::DominatorTree dominators(function_, flow);
    const ir::LoopForest loops(function_, flow, dominators);
    double sum = 0;
    for (ir::BlockId block : function_.layout) {
      const BlockCode& code = blocks_[block.index()];
      if (code.executions <= 0) continue;
      double share = 1; // of the executions that fetch
      for (ir::LoopId loop = loops.innermost(block); loop; loop = loops.loops()[loop].parent) {
        const ir::Loop& body = loops.loops()[loop];
        if (bytes_of(body) <= capacity) share = std::min(share, entries_of(body, dominators) / code.executions);
        if (has_barrier(body)) share = std::min(share, 1 / sharers);
      }
      sum += code.fetched * share;
    }
    return sum;
  }

private:
  double bytes_of(const ir::Loop& loop) const {
    double sum = 0;
    for (ir::BlockId block : loop.blocks)
      sum += blocks_[block.index()].bytes;
    return sum;
  }
  bool has_barrier(const ir::Loop& loop) const {
    return std::ranges::any_of(loop.blocks, [&](ir::BlockId block) { return blocks_[block.index()].has_barrier; });
  }
  // How often warps come to the loop: as often, at most, as they execute the block in front of it.
  double entries_of(const ir::Loop& loop, const ir::DominatorTree& dominators) const {
    const double of_header = blocks_[loop.header.index()].executions;
    const ir::BlockId before = dominators.immediate_dominator(loop.header);
    const double of_block_before = before ? blocks_[before.index()].executions : 0;
    return of_block_before > 0 ? std::min(of_header, of_block_before) : of_header;
  }

  const ir::Function& function_;
  std::vector<BlockCode> blocks_; // by BlockId
};

} // namespace

double missed_instruction_bytes(const ModelInput& input) {
  const ir::FetchFacts& facts = input.machine.fetch;
  if (!facts.cache_kib.known || !facts.bytes_per_clock.known) return 0;
  const double capacity = facts.cache_kib.value * 1024;
  std::map<const ir::Function*, FunctionCode> functions;
  for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    if (counts.executions == 0 || input.code[number].instructions == 0) return;
    const Site& site = input.recording.sites[number];
    const auto function = functions.try_emplace(site.function, *site.function).first;
    function->second.add(site, input.code[number], static_cast<double>(counts.executions),
                         1 - technique_of(input).at(number).skipped);
  });
  double bytes = 0, missed = 0;
  for (const auto& [function, code] : functions)
    bytes += code.bytes();
  if (bytes <= capacity) return 0;
  const double sharers = std::max(input.recording.warps_per_block / static_cast<double>(input.machine.schedulers), 1.0);
  for (const auto& [function, code] : functions)
    missed += code.missed(capacity, sharers);
  return missed;
}

} // namespace ptxrewrite::timing
