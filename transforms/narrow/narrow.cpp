// Pass `narrow`: does 64-bit integer operations in 32 bits, and signed operations as unsigned, if the ranges of the
// numbers allow it. An index computed as size_t or long long takes two machine instructions for each one of an int, a
// comparison two, a division a call of some 90; the launch shows that the numbers are small.
//
//   div.u64 rem.u64 div.s64 rem.s64   both below 2^32, the divisor not 0: of 32 bits, unsigned
//   setp of 64 bits                   both in the range of 32-bit numbers: of 32 bits
//   mul.lo, mad.lo and shl of 64 bits both factors in the range of 32-bit numbers: mul.wide, mad.wide
//   div.s32, rem.s32                  not negative, the divisor positive: unsigned
//   shr by 31 or 63                   the sign of a number that is not negative: 0 (signed division by a literal)
//   x >= 0 && x < w                   w not negative: one unsigned comparison
//   (a | b) & 0xffffffff00000000      all below 2^32: the compiler's test whether a short division will do; folded
//
// Such an instruction reads only the low half of 64-bit values (transforms/narrow/twins.h): preceding additions,
// products and loop counters become 32-bit if their high half has no other readers.
#include "transforms/narrow/narrow_sites.h"

#include "ir/edit/dead_code.h"
#include "ir/edit/fold_control.h"
#include "transforms/common/family.h"

namespace ptxrewrite::transforms {

namespace {

using legal::Attempt;
using legal::SiteFilter;

// First the conditions that are decided, then all other instructions: ranges are recomputed in between.
bool apply(Attempt& attempt, SiteFilter& sites, PassContext& context) {
  ir::Function& function = attempt.function();
  bool changed = fold_width_tests(attempt, sites, context.analyses);
  if (changed) {
    ir::remove_unreachable_blocks(function);
    ir::Replacements replacements;
    ir::find_needless_parameters(function, replacements);
    ir::replace(function, replacements);
    ir::remove_needless_jumps(function);
    function.changed();
    ir::remove_dead_code(function);
    ir::LinearForms forms(function);
    narrow_instructions(attempt, sites, forms);
    return true;
  }
  return narrow_instructions(attempt, sites, context.analyses.of<ir::LinearForms>(attempt.original()));
}

Change run(ir::Function& function, PassContext& context) {
  return legal::run_family(function, context,
                           {.name = "narrow", .apply = apply, .least_gain = legal::least_gain_of_other_widths});
}

const RegisterPass registration(
    legal::family_pass("narrow", "32-bit and unsigned arithmetic for 64-bit and signed, by value ranges", run));

} // namespace

} // namespace ptxrewrite::transforms
