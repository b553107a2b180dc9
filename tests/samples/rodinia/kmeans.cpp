// The nearest of a few centres for every point. Squares are added up feature by feature.
#include "tests/samples/reference.h"

#include <limits>

REFERENCE(kmeans) {
  const int64_t points = data.value("points"), features = data.value("features");
  auto by_point = data.f32("by_point"), by_feature = data.f32("by_feature"), centres = data.f32("centres");
  auto membership = data.s32("membership");
  for (int64_t point = 0; point < points; ++point) {
    const auto place = by_point.subspan(point * features, features);
    for (int64_t feature = 0; feature < features; ++feature)
      by_feature[feature * points + point] = place[feature];
    float least = std::numeric_limits<float>::max();
    for (int64_t cluster = 0; cluster < data.value("clusters"); ++cluster) {
      float squared = 0;
      for (int64_t feature = 0; feature < features; ++feature) {
        const float difference = place[feature] - centres[cluster * features + feature];
        squared = std::fma(difference, difference, squared);
      }
      if (squared < least) {
        least = squared;
        membership[point] = static_cast<int32_t>(cluster);
      }
    }
  }
}
