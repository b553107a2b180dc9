// Shares of clocks and accesses.
#pragma once

namespace ptxrewrite::timing {

// 0 of nothing.
inline double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

} // namespace ptxrewrite::timing
