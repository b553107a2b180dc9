// Euclidean distance of every record's place to the target.
#include "tests/samples/reference.h"

REFERENCE(nn) {
  struct Place {
    float latitude, longitude;
  };
  auto places = data.as<Place>("places");
  auto distances = data.f32("distances");
  for (size_t record = 0; record < places.size(); ++record)
    distances[record] = static_cast<float>(std::hypot(30.0 - places[record].latitude, 90.0 - places[record].longitude));
  // Four float operations; the differences may be exact.
  data.tolerate("distances", {.relative = 2.5e-7});
}
