// Obligations in exact integers of one thread, for those who check them without the analysis: `ptxrewrite prove`.
//
//   -2147483648 <= sext32(P1*ntid.x)*ctaid.x + tid.x + 4*k3 <= 2147483647
//
// The grammar is that of launch predicates (launch/predicate.h) with further names: tid.x ... ctaid.z, `k3` the trip
// number of the loop whose header is block 3, `v12` the register with ValueId 12 as a signed number, `symbol5` and
// `window.shared` the addresses that expressions call so.
#pragma once

#include "ir/analysis/linear/linear.h"

#include <string>

namespace ptxrewrite::ir {

// Empty: the obligation is about something that has no such text (remainders, loads). Several ranges, all of which are
// meant, are separated by "; ".
std::string print_exact_range(const LinearForms& forms, ObligationId id);

// The signed representative of any expression as an exact integer, as ExpressionPool::print_predicate, which takes
// evaluable ones only. Empty where a load is in it.
std::string print_exact_integer(const ExpressionPool& pool, ExpressionId id);

} // namespace ptxrewrite::ir
