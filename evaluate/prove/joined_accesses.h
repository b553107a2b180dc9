// Splits vector accesses of a rewritten kernel into the accesses of the original that they replace: `.v4` is equivalent
// to four consecutive accesses of a quarter each, so that each is compared with its counterpart.
#pragma once

#include "evaluate/prove/symbolic.h"
#include "transforms/manager/pass.h"

#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::prove {

// An access that was split. Its address, which is that of its first part, must be a multiple of its size (ISA, ld and
// st); the parts need less.
struct JoinedAccess {
  ir::InstructionId first_part;
  unsigned bytes = 0; // a power of two
};

// Splits joined accesses of the rewritten kernel and returns those that are larger than each of their parts. A vector
// whose parts have no counterparts is kept. Both kernels must be in SSA form, with the values of the original.
std::vector<JoinedAccess> take_joined_accesses_apart(const ir::Function& original, ir::Function& rewritten);

// Is the second form the first one with the read-only data path (.nc)?
bool is_read_only_form_of(const ir::Form& original, const ir::Form& rewritten);

// Indices of pointer parameters whose data the launch does not write: the ledger has a launch condition that the bytes
// read through the parameter are disjoint from all bytes written, and no store or atomic of the kernel uses the
// parameter in its address.
std::set<unsigned> read_only_pointers(const Terms& terms, const ir::Function& function, const SymbolicKernel& kernel,
                                      const std::vector<transforms::Obligation>& ledger);

// Is the address computed from one of these parameters? True as well if the address contains no parameter, because it
// depends on the path: then the launch condition is trusted.
bool is_by_pointer(const Terms& terms, TermId address, const std::set<unsigned>& pointers);

// May `later`, which the original executes after `earlier`, be executed first in one thread? True for weak accesses of
// global memory that are both loads, that are disjoint by a literal offset, or one of which is read-only.
bool may_change_places(Terms& terms, const ir::Function& function, const Observation& earlier, const Observation& later,
                       bool either_is_read_only);

} // namespace ptxrewrite::prove
