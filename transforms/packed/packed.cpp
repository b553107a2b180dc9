// Pass `packed`: two numbers in one register, computed by one instruction.
//
//   * pairs of f32 operations on neighbours -> f32x2, on sm_100 and later (float_pairs.h);
//   * sums, minima and maxima of two 16-bit integers -> u16x2, s16x2, on sm_90 and later (short_pairs.h);
//   * halves that are computed as floats and rounded back -> half instructions, if the result is the same
//     (half_via_float.h).
#include "ir/edit/dead_code.h"
#include "transforms/common/family.h"
#include "transforms/packed/float_pairs.h"
#include "transforms/packed/half_via_float.h"
#include "transforms/packed/short_pairs.h"

namespace ptxrewrite::transforms {

namespace {

bool apply(legal::Attempt& attempt, legal::SiteFilter& sites, PassContext&) {
  ir::Function& function = attempt.function();
  const std::vector<packed::HalfOperation> halves = packed::find_half_operations(function);
  std::vector<packed::FloatPairs> pairs;
  if (packed::has_float_pairs(function.module())) pairs = packed::find_float_pairs(function);
  std::vector<packed::ShortPair> shorts;
  if (packed::has_short_pairs(function.module())) shorts = packed::find_short_pairs(function);
  bool changed = false;
  for (const packed::HalfOperation& half : halves) {
    if (!sites.take(half.root, packed::description(function, half))) continue;
    packed::replace(function, half);
    ++attempt.statistics["packed.half"];
    changed = true;
  }
  for (const packed::FloatPairs& block : pairs) {
    if (!sites.take(block.pairs.front().first, packed::description(function, block))) continue;
    packed::replace(function, block);
    attempt.statistics["packed.f32x2"] += static_cast<int64_t>(block.pairs.size());
    changed = true;
  }
  for (const packed::ShortPair& pair : shorts) {
    if (!sites.take(pair.root, packed::description(pair))) continue;
    packed::replace(function, pair);
    ++attempt.statistics["packed.s16x2"];
    changed = true;
  }
  if (changed) ir::remove_dead_code(function);
  return changed;
}

Change run(ir::Function& function, PassContext& context) {
  return legal::run_family(function, context, {"packed", apply});
}

const RegisterPass registration(legal::family_pass(
    "packed", "packed instructions for pairs of values; f16 arithmetic without conversion to f32", run));

} // namespace

} // namespace ptxrewrite::transforms
