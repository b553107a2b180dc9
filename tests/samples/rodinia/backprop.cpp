// One layer of back-propagation: partial sums of blocks of 16 inputs, and weights updated with momentum.
#include "tests/samples/reference.h"

namespace {

constexpr int tile = 16;
constexpr double rate = 0.3, momentum = 0.3;

} // namespace

REFERENCE(backprop) {
  const int64_t inputs = data.value("inputs"), hidden = data.value("hidden"), columns = hidden + 1;
  auto input = data.f32("input");

  // Sixteen products of a hidden unit are added up pairwise: neighbours, neighbours two apart, and so on. The value
  // finally in each place is written back to the weights; sums use each product once, so the order is determined.
  auto forward_weights = data.f32("forward_weights"), partial_sums = data.f32("partial_sums");
  for (int64_t first = 1; first <= inputs; first += tile)
    for (int64_t unit = 1; unit <= hidden; ++unit) {
      float products[tile];
      for (int k = 0; k < tile; ++k)
        products[k] = forward_weights[(first + k) * columns + unit] * input[first + k];
      for (int distance = 1; distance < tile; distance *= 2)
        for (int k = 0; k < tile; k += 2 * distance)
          products[k] += products[k + distance];
      for (int k = 0; k < tile; ++k)
        forward_weights[(first + k) * columns + unit] = products[k];
      partial_sums[(first - 1) / tile * hidden + unit - 1] = products[0];
    }

  // In double, then rounded to float once; whether a product and a sum are fused may change the float's last bit.
  auto delta = data.f32("delta"), weights = data.f32("weights"), old_weights = data.f32("old_weights");
  for (int64_t from = 0; from <= inputs; ++from)
    for (int64_t to = 1; to <= hidden; ++to) {
      const int64_t index = from * columns + to;
      const double activation = from == 0 ? 1.0 : input[from];
      const double change = rate * delta[to] * activation + momentum * old_weights[index];
      weights[index] = static_cast<float>(weights[index] + change);
      old_weights[index] = static_cast<float>(change);
    }
  data.tolerate("weights", {.relative = 1.2e-7, .absolute = 1e-8});
  data.tolerate("old_weights", {.relative = 1.2e-7, .absolute = 1e-8});
}
