// Softmax of every row in double precision, straight from the definition.
#include "tests/samples/reference.h"

#include <cmath>

REFERENCE(softmax) {
  const std::size_t columns = data.value("columns");
  const auto logits = data.f32("logits");
  const auto probabilities = data.f32("probabilities");

  for (std::size_t first = 0; first < logits.size(); first += columns) {
    double sum = 0;
    for (std::size_t i = first; i < first + columns; ++i) {
      sum += std::exp(double{logits[i]});
    }
    for (std::size_t i = first; i < first + columns; ++i) {
      probabilities[i] = static_cast<float>(std::exp(double{logits[i]}) / sum);
    }
  }

  // Approximate exponentials of arguments down to -30, and a sum in the tree's order.
  data.tolerate("probabilities", {.relative = 5e-6});
}
