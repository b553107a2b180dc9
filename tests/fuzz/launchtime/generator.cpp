#include "tests/fuzz/launchtime/generator.h"

#include "tests/fuzz/launchtime/oracle.h"
#include "tests/fuzz/launchtime/sites.h"

#include <algorithm>

namespace ptxrewrite::fuzz::launchtime {

namespace {

constexpr uint64_t region_bytes = 16384; // for each pointer: more than its accesses need, on both sides
constexpr uint64_t arena_address = uint64_t(1) << 40;

class Launches {
public:
  Launches(Kernel& kernel, const std::vector<Builder::Fill>& fills, Random& random)
      : kernel_(kernel), fills_(fills), random_(random) {
    for (size_t i = 0; i < kernel.parameters.size(); ++i)
      if (kernel.parameters[i].is_pointer) pointers_.push_back(i);
    kernel.arena_bytes = region_bytes * (pointers_.size() + 1);
  }

  void make() {
    add(Mood::plain, "plain");
    add(Mood::plain, "plain");
    add(Mood::edges, "edges");
    add(Mood::edges, "edges");
    if (pointers_.size() > 1) {
      overlap("same buffer", [](const Pair&) { return int64_t(0); });
      overlap("overlap by a few bytes", [&](const Pair& pair) {
        return int64_t(pair.grain) * random_.between(1, std::max<int64_t>(1, 24 / pair.grain)) *
               (random_.one_in(2) ? 1 : -1);
      });
      overlap("touching", [](const Pair& pair) { return pair.touching; });
      overlap("last bytes",
              [&](const Pair& pair) { return pair.touching - int64_t(pair.grain) * random_.between(1, 3); });
    }
    misalign();
    misalign();
  }

private:
  // Two pointers; there is a store through the first one.
  struct Pair {
    size_t one, other;
    unsigned grain;
    int64_t touching; // other - one where the two ranges are adjacent, on either side
  };

  Launch& add(Mood mood, const char* kind) {
    static constexpr uint32_t blocks[] = {32, 64, 64, 96, 48, 33, 20, 1};
    Launch& launch = kernel_.launches.emplace_back();
    launch.kind = kind;
    launch.block = random_.pick(blocks);
    launch.grid = static_cast<uint32_t>(1 + random_.below(launch.block > 64 ? 2 : 3));
    launch.arguments.resize(kernel_.parameters.size());
    for (size_t i = 0; i < pointers_.size(); ++i)
      launch.arguments[pointers_[i]] = region_bytes * i + region_bytes / 2 * (i > 0) + 1024 * (i == 0);
    for (const Builder::Fill& fill : fills_)
      fill(random_, mood, launch);
    return launch;
  }

  template <class Distance> void overlap(const char* kind, Distance distance) {
    Launch& launch = add(random_.one_in(4) ? Mood::edges : Mood::plain, kind);
    const Trace trace = carry_out(kernel_, launch, arena_address).trace;
    std::vector<size_t> stored;
    for (const size_t pointer : pointers_)
      if (!trace.pointers[pointer].stores.empty()) stored.push_back(pointer);
    if (stored.empty()) return;
    Pair pair{};
    pair.one = random_.pick(stored);
    do
      pair.other = random_.pick(pointers_);
    while (pair.other == pair.one);
    // An access of 4 bytes needs an alignment of 4.
    pair.grain = std::max(kernel_.parameters[pair.one].grain, kernel_.parameters[pair.other].grain);
    const auto range = [&](size_t pointer) {
      const PointerTrace& touched = trace.pointers[pointer];
      const uint64_t base = launch.arguments[pointer];
      const uint64_t low = std::min(touched.loads.low(), touched.stores.low());
      const uint64_t high = std::max(touched.loads.high(), touched.stores.high());
      return low < high ? std::pair(int64_t(low - base), int64_t(high - base)) : std::pair(int64_t(0), int64_t(0));
    };
    const auto one = range(pair.one), other = range(pair.other);
    pair.touching = random_.one_in(2) ? one.second - other.first : one.first - other.second;
    // `other` may have a coarser grain: bytes before the adjacent ones stay free.
    const int64_t wanted = distance(pair), grain = kernel_.parameters[pair.other].grain;
    launch.arguments[pair.other] =
        launch.arguments[pair.one] + static_cast<uint64_t>((wanted + (wanted > 0 ? grain - 1 : 0)) / grain * grain);
  }

  void misalign() {
    if (pointers_.empty()) return;
    Launch& launch = add(random_.one_in(4) ? Mood::edges : Mood::plain, "misaligned");
    const size_t pointer = random_.pick(pointers_);
    const unsigned grain = kernel_.parameters[pointer].grain;
    static constexpr unsigned distances[] = {1, 2, 4, 8, 12};
    const unsigned by = std::max(grain, random_.pick(distances) / grain * grain);
    launch.arguments[pointer] += by;
  }

  Kernel& kernel_;
  const std::vector<Builder::Fill>& fills_;
  Random& random_;
  std::vector<size_t> pointers_;
};

} // namespace

Kernel generate(uint64_t seed, std::string_view idiom) {
  static const std::vector<SiteKind> kinds = site_kinds();
  Random random(seed * 1000003 + 17);
  Kernel kernel;
  kernel.seed = seed;
  kernel.name = "k" + std::to_string(seed);
  Builder builder(kernel, random);
  const size_t count = !idiom.empty() || random.chance(0.65) ? 1 : 2 + random.below(2);
  for (size_t i = 0; i < count; ++i) {
    const SiteKind* kind = &random.pick(kinds);
    if (!idiom.empty()) kind = &*std::ranges::find(kinds, idiom, &SiteKind::idiom);
    kind->write(builder);
  }
  Launches(kernel, builder.fills, random).make();
  return kernel;
}

} // namespace ptxrewrite::fuzz::launchtime
