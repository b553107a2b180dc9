// Buckets by counting the pivots below each key, the result by std::sort.
#include "tests/samples/reference.h"

#include <algorithm>

REFERENCE(hybridsort) {
  auto keys = data.f32("keys"), pivots = data.f32("pivots"), packed = data.f32("packed");
  auto histogram = data.u32("histogram"), sizes = data.u32("bucket_sizes"), sums = data.u32("block_counts");
  const auto [least, greatest] = std::ranges::minmax(keys);
  const int64_t keys_a_round = 32 * data.value("blocks");

  std::vector<uint32_t> counts(sums.size());
  for (size_t i = 0; i < keys.size(); ++i) {
    ++histogram[static_cast<uint32_t>((keys[i] - least) / (greatest - least) * 1024) % 1024];
    const int64_t bucket = std::ranges::upper_bound(pivots.first(1023), keys[i]) - pivots.begin();
    ++counts[static_cast<int64_t>(i) % keys_a_round / 32 * 1024 + bucket];
  }
  // A block's counts are replaced by the sums over the blocks before it.
  for (size_t i = 0; i < counts.size(); ++i) {
    sums[i] = sizes[i % 1024];
    sizes[i % 1024] += counts[i];
  }
  std::ranges::copy(keys, packed.begin());
  std::ranges::sort(packed);
}
