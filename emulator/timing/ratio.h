// Shares of clocks and accesses.
#pragma once

namespace ptxrewrite::timing {

// part / whole, or 0 if `whole` is 0.
inline double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

} // namespace ptxrewrite::timing
