// One sum per block: each of 256 threads adds up every (256 * blocks)-th element, then halves are added to halves in
// warps, then in the results of the warps.
#include "tests/samples/reference.h"

namespace {

constexpr int threads = 256, warp = 32;

float sum_by_halves(std::span<const float> values) {
  std::vector<float> sums(values.begin(), values.end());
  sums.resize(warp);
  for (int half = warp / 2; half > 0; half /= 2)
    for (int k = 0; k < half; ++k)
      sums[k] += sums[k + half];
  return sums[0];
}

} // namespace

REFERENCE(warp_reduction) {
  const int64_t n = data.value("n"), blocks = data.value("blocks");
  auto values = data.f32("values"), block_sums = data.f32("block_sums");
  for (int64_t block = 0; block < blocks; ++block) {
    std::vector<float> of_threads(threads);
    for (int thread = 0; thread < threads; ++thread)
      for (int64_t i = block * threads + thread; i < n; i += blocks * threads)
        of_threads[thread] += values[i];
    std::vector<float> of_warps;
    for (int first = 0; first < threads; first += warp)
      of_warps.push_back(sum_by_halves(std::span(of_threads).subspan(first, warp)));
    block_sums[block] = sum_by_halves(of_warps);
  }
}
