// The sum of two vectors.
#include "tests/samples/reference.h"

REFERENCE(vecadd) {
  auto a = data.f32("a"), b = data.f32("b"), c = data.f32("c");
  for (int64_t i = 0; i < data.value("n"); ++i)
    c[i] = a[i] + b[i];
}
