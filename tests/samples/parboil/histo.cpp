// A histogram that saturates at 255, and the rows of 1024 bins that are within ten deviations of the mean of any of the
// parts that the estimate uses.
#include "tests/samples/reference.h"

#include <algorithm>

namespace {

constexpr int64_t bins = 1024, rows = 64;

} // namespace

REFERENCE(histo) {
  auto image = data.u32("image");
  auto histogram = data.u8("histogram");
  for (uint32_t bin : image)
    if (histogram[bin] < 255) ++histogram[bin];

  auto least_row = data.u32("least_row"), most_row = data.u32("most_row");
  const size_t part_size = image.size() / data.value("prescan_blocks");
  for (size_t first = 0; first + part_size <= image.size(); first += part_size) {
    double sum = 0, square_sum = 0;
    for (uint32_t bin : image.subspan(first, part_size))
      sum += bin;
    const double mean = sum / part_size;
    for (uint32_t bin : image.subspan(first, part_size))
      square_sum += (bin - mean) * (bin - mean);
    const double reach = 10 * std::sqrt(square_sum / part_size);
    const int64_t least = std::max<int64_t>(static_cast<int64_t>(mean - reach) / bins, 0);
    const int64_t most = std::min<int64_t>(static_cast<int64_t>(mean + reach) / bins, rows - 1);
    least_row[0] = std::min(least_row[0], static_cast<uint32_t>(least));
    most_row[0] = std::max(most_row[0], static_cast<uint32_t>(most));
  }
  if (most_row[0] - least_row[0] >= data.value("busy_rows"))
    throw std::runtime_error("the launch file's grid is too small for the busy rows");
}
