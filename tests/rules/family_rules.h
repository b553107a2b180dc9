// The rules of the families that rest on the launch (memory, narrow, divisor, warp, packed): the smallest kernel that
// has each rule's pattern, and the tests that prove it, run it at the edges and refuse it one step outside.
#pragma once

#include <array>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

struct FamilyRule {
  std::string family, name;
  std::string body;           // of a kernel; family_kernel() has the registers that it may use
  std::string marker;         // in the rewritten kernel, and not in the original
  std::array<int, 3> saves{}; // machine instructions of the whole kernel, at least: sm_80, sm_90, sm_100
  // by_prover: `prove` proves the rewritten kernel for all launches. Otherwise the test case that proves the rule by
  // exhaustion, or tests its memory rule by brute force.
  std::string proof;
  std::string edges, refused;   // test cases
  std::string target = "sm_80"; // the first with the replacement
  std::string version = "8.0";  // of PTX
  std::string also;             // a further pass behind the family's, without which the rule does not pay
  std::string directive;        // of the kernel
};

inline constexpr const char* by_prover = "prove";

std::vector<FamilyRule> family_rules();

// A kernel k(p, q, n, w, wide, pitch). %rd1, %rd2: p, q; %r1, %r2: n, w; %rd3, %rd4: wide, pitch; %r6, %rd5: the
// thread's number in the grid, of 32 and 64 bits; %rd6, %rd7: the thread's 64 bytes of p and q.
std::string family_kernel(const FamilyRule& rule, const std::string& target);

} // namespace ptxrewrite::tests
