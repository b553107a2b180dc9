// The sum of integers: exact in any order.
#include "tests/samples/reference.h"

#include <numeric>

REFERENCE(reduction) {
  const auto values = data.f32("values");
  data.f32("sum")[0] = static_cast<float>(std::accumulate(values.begin(), values.end(), 0.0));
}
