// Scalar products in double precision.
#include "tests/samples/reference.h"

REFERENCE(scalar_product) {
  const std::size_t length = data.value("length");
  const auto a = data.f32("a");
  const auto b = data.f32("b");
  const auto products = data.f32("products");

  for (std::size_t pair = 0; pair < products.size(); ++pair) {
    double sum = 0;
    for (std::size_t i = pair * length; i < (pair + 1) * length; ++i) {
      sum += double{a[i]} * b[i];
    }
    products[pair] = static_cast<float>(sum);
  }

  // All terms are positive; each is rounded in a chain of at most eight and a tree of ten.
  data.tolerate("products", {.relative = 2e-6});
}
