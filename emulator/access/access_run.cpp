#include "emulator/access/access_run.h"

#include "emulator/access/address_pattern.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::emulator {
namespace {

constexpr size_t most_bases = 4, longest_run = 512;
constexpr int64_t longest_distance = 1 << 20; // between the accesses of one base

// The accesses of one base register and size.
struct RunBase {
  LaneRef lanes;
  bool narrow = false;
  uint8_t bytes = 4;
  Space space = Space::shared;
  uint32_t site = 0;               // of the first access
  int64_t lowest = 0, highest = 0; // offsets from the base
};

enum class StepKind : uint8_t { plain, load_4, load_8, store_4, store_8 };
struct Step {
  StepKind kind = StepKind::plain;
  uint8_t base = 0; // in AccessRun::bases
};

// A description of DecodedFunction: MicroOp::extra of the leader is its index.
struct AccessRun {
  std::array<RunBase, most_bases> bases;
  size_t base_count = 0;
  std::vector<Step> steps; // one for each micro-operation, from the leader on

  size_t accesses() const {
    return static_cast<size_t>(std::ranges::count_if(steps, [](Step step) { return step.kind != StepKind::plain; }));
  }
};

class RunFinder {
public:
  RunFinder(const DecodedFunction& function, DescribeRunnable describe) : code_(function.code), describe_(describe) {}

  // Nothing: no run begins there, or one that is not worth it.
  std::optional<AccessRun> find(size_t leader) {
    AccessRun run;
    written_.clear();
    size_t used = 0; // steps up to the last access
    for (size_t at = leader; at < code_.size() && at - leader < longest_run; ++at) {
      const RunnableOp about = code_[at].guard ? RunnableOp() : describe_(code_[at]);
      if (about.kind == RunnableOp::other) break;
      Step step;
      if (about.kind == RunnableOp::access) {
        if (!add_access(run, code_[at], about, step)) break;
        used = at - leader + 1;
      }
      run.steps.push_back(step);
      if (about.stores) continue;
      for (LaneRef lanes : code_[at].destination)
        if (lanes) written_.push_back(lanes);
    }
    run.steps.resize(used);
    if (run.accesses() <= run.base_count) return std::nullopt;
    return run;
  }

private:
  // Adds the access to the run. Returns false if the run ends in front of it.
  bool add_access(AccessRun& run, const MicroOp& op, const RunnableOp& about, Step& step) {
    const auto space = static_cast<Space>(op.flags & 0xff);
    const bool fits = (space == Space::shared || space == Space::global) && (about.bytes == 4 || about.bytes == 8) &&
                      op.source[0].base() == LaneBase::registers;
    if (!fits || std::ranges::find(written_, op.source[0]) != written_.end()) return false;
    size_t index = 0;
    while (index < run.base_count && (run.bases[index].lanes != op.source[0] || run.bases[index].bytes != about.bytes ||
                                      run.bases[index].space != space))
      ++index;
    if (index == most_bases) return false;
    RunBase& base = run.bases[index];
    if (index == run.base_count) {
      base = {op.source[0], about.narrow_base, about.bytes, space, op.auxiliary, op.immediate, op.immediate};
      ++run.base_count;
    }
    if ((op.immediate - base.lowest) % base.bytes != 0) return false;
    const int64_t lowest = std::min(base.lowest, op.immediate), highest = std::max(base.highest, op.immediate);
    if (highest - lowest > longest_distance) return false;
    base.lowest = lowest;
    base.highest = highest;
    step.base = static_cast<uint8_t>(index);
    step.kind = about.bytes == 4 ? (about.stores ? StepKind::store_4 : StepKind::load_4)
                                 : (about.stores ? StepKind::store_8 : StepKind::load_8);
    return true;
  }

  const std::vector<MicroOp>& code_;
  DescribeRunnable describe_;
  std::vector<LaneRef> written_; // in the run so far
};

// The accesses of a base, all in bounds.
struct KnownBase {
  const AddressPattern* pattern = nullptr;
  uintptr_t zero = 0; // the host address of the first active lane at offset 0, where there may be no bytes
  bool prefetches = false;

  KnownAccess at(int64_t offset) const {
    return {*pattern, reinterpret_cast<std::byte*>(zero + static_cast<uintptr_t>(offset))};
  }
};

template <class Base> bool find_known(Warp& warp, const RunBase& base, KnownBase& known) {
  Block& block = *warp.block;
  AccessSite& site = block.sites[base.site];
  const AddressPattern& pattern = *site.pattern;
  const Base* values = warp.lanes<Base>(base.lanes);
  const Base first = values[std::countr_zero(warp.mask)];
  if (!detail::has_distances<Base>(pattern, values, first)) return false;
  const uint64_t lowest = static_cast<Base>(first + static_cast<uint64_t>(base.lowest));
  const uint64_t highest = static_cast<Base>(first + static_cast<uint64_t>(base.highest));
  if (lowest & (base.bytes - 1u)) return false;
  // If both ends are inside, no address between them wraps: memory does not reach around the address space.
  const bool global = base.space == Space::global;
  const uint64_t begin = global ? site.range.begin : 0, bytes = global ? site.range.size : block.shared_bytes;
  if (!detail::both_inside(lowest + static_cast<uint64_t>(pattern.lowest),
                           highest + static_cast<uint64_t>(pattern.highest), base.bytes, begin, bytes))
    return false;
  site.held = true;
  known.pattern = &pattern;
  known.zero = reinterpret_cast<uintptr_t>(global ? site.range.at(lowest) : block.shared + lowest) -
               static_cast<uintptr_t>(base.lowest);
  known.prefetches = !base.narrow && pattern.kind == LanePattern::consecutive;
  return true;
}

template <class Raw>
[[gnu::always_inline]] inline void load_step(const Warp& warp, const MicroOp& op, const KnownBase& base) {
  const KnownAccess access = base.at(op.immediate);
  if (base.prefetches) prefetch_behind(access.first, warp_size * sizeof(Raw));
  load_single(access, warp.lanes<Raw>(op.destination[0]));
}

} // namespace

void lead_runs(DecodedFunction& function, DescribeRunnable describe, Handler (*handler_for)(const RunnableOp& leader)) {
  RunFinder finder(function, describe);
  for (size_t at = 0; at < function.code.size(); ++at) {
    MicroOp& op = function.code[at];
    const RunnableOp about = op.guard ? RunnableOp() : describe(op);
    if (about.kind != RunnableOp::access) continue;
    std::optional<AccessRun> run = finder.find(at);
    if (!run) continue;
    at += run->steps.size() - 1;
    op.handler = handler_for(about);
    op.extra = static_cast<uint32_t>(function.descriptions.size());
    function.descriptions.push_back(std::make_shared<const AccessRun>(*std::move(run)));
  }
}

const MicroOp* run_accesses(Warp& warp, const MicroOp& leader) {
  const Block& block = *warp.block;
  if (block.single_steps) return nullptr;
  const auto& run = *static_cast<const AccessRun*>(warp.activation->function->descriptions[leader.extra].get());
  for (size_t i = 0; i < run.base_count; ++i) {
    const AddressPattern* pattern = block.sites[run.bases[i].site].pattern;
    if (!pattern || pattern->mask != warp.mask) return nullptr;
  }
  std::array<KnownBase, most_bases> bases;
  for (size_t i = 0; i < run.base_count; ++i) {
    const RunBase& base = run.bases[i];
    if (!(base.narrow ? find_known<uint32_t>(warp, base, bases[i]) : find_known<uint64_t>(warp, base, bases[i])))
      return nullptr;
  }
  const MicroOp* op = &leader;
  for (const Step step : run.steps) {
    const KnownBase& base = bases[step.base];
    switch (step.kind) {
    case StepKind::plain:
      op->handler(warp, *op);
      break;
    case StepKind::load_4:
      load_step<uint32_t>(warp, *op, base);
      break;
    case StepKind::load_8:
      load_step<uint64_t>(warp, *op, base);
      break;
    case StepKind::store_4:
      store_single(base.at(op->immediate), warp.lanes<const uint32_t>(op->source[1]));
      break;
    case StepKind::store_8:
      store_single(base.at(op->immediate), warp.lanes<const uint64_t>(op->source[1]));
      break;
    }
    ++op;
  }
  return op;
}

} // namespace ptxrewrite::emulator
