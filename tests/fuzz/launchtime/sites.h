// The kinds of sites in random kernels, one function each: the code, the choice of its arguments, and the conditions of
// a launch for the rewrite that the site tests.
#pragma once

#include "tests/fuzz/launchtime/builder.h"

#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::fuzz::launchtime {

struct SiteKind {
  const char* family;
  const char* idiom;
  void (*write)(Builder&);
};
// All kinds, by family.
std::vector<SiteKind> site_kinds();
std::span<const SiteKind> memory_sites();
std::span<const SiteKind> index_sites();
std::span<const SiteKind> divisor_sites();
std::span<const SiteKind> byte_sites();
std::span<const SiteKind> packed_sites();
std::span<const SiteKind> warp_sites();

// --- common parts ---

// Stores a value of the thread to the thread's own buffer.
void store_result(Builder& b, Register value);
// A number for every launch: one of `plain`, or in the edge mood one of both lists.
void fill_number(Builder& b, uint32_t parameter, std::vector<uint64_t> plain, std::vector<uint64_t> edges);
// A number of threads to compare with: all of them, one more, one less ...; and the branch with the comparison.
void for_threads_below(Builder& b, Register index, const std::function<void()>& body);

// Whether no store through one pointer touches the range accessed through another: the fact that can be checked before
// a launch.
bool ranges_are_disjoint(const Trace& trace);
// Whether there is a pointer whose loads read only bytes that are never stored.
bool some_loads_are_constant(const Trace& trace);

// Accesses to neighbouring elements: nodes by ascending offset.
struct Group {
  std::vector<uint32_t> nodes;
  unsigned element = 4;
  bool some_pair_is_aligned(const Trace& trace) const;
  bool is_aligned(const Trace& trace) const; // as one access
};
// `count` loads of neighbouring elements in some order; values by ascending offset.
std::vector<Register> load_neighbours(Builder& b, uint32_t pointer, Register address, int64_t offset,
                                      const std::string& type, unsigned count, Group& group,
                                      const std::function<void()>& between = {});
void store_neighbours(Builder& b, uint32_t pointer, Register address, int64_t offset, const std::string& type,
                      const std::vector<Register>& values, Group& group, const std::function<void()>& between = {});
// A site whose rewrite merges the accesses of these groups.
void add_joining_site(Builder& b, const char* family, const char* idiom, std::vector<Group> groups);
// A site whose rewrite has no single condition: only results are compared.
void add_plain_site(Builder& b, const char* family, const char* idiom, std::function<bool(const Trace&)> sufficient);

} // namespace ptxrewrite::fuzz::launchtime
