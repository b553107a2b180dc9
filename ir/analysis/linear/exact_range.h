// Obligations of one thread as text in exact integers, for `ptxrewrite prove`, which checks them without the analysis.
//
//   -2147483648 <= sext32(P1*ntid.x)*ctaid.x + tid.x + 4*k3 <= 2147483647
//
// The grammar is that of launch predicates (launch/predicate.h) with further names: tid.x ... ctaid.z, `k3` for the
// trip number of the loop whose header is block 3, `v12` for the register with ValueId 12 as a signed number, `symbol5`
// and `window.shared` for addresses, named as in expressions.
#pragma once

#include "ir/analysis/linear/linear.h"

#include <string>

namespace ptxrewrite::ir {

// Empty if the obligation concerns something without such a text (remainders, loads). Several ranges, all of which have
// to hold, are separated by "; ".
std::string print_exact_range(const LinearForms& forms, ObligationId id);

// The signed representative of any expression as an exact integer; ExpressionPool::print_predicate does the same for
// evaluable expressions only. Empty if the expression contains a load.
std::string print_exact_integer(const ExpressionPool& pool, ExpressionId id);

} // namespace ptxrewrite::ir
