// Steps of SSA construction before values are numbered. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"
#include "support/result.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ptxrewrite::ir {

// Returns an error if the function contains something that SSA form cannot represent; changes nothing.
Status check_ssa_readable(const Function& function);

// If an instruction writes p|p, replaces the second result by `_`; the first is kept.
void drop_second_of_equal_results(Function& function);

// Replaces each register declared as .v2 or .v4 by one value per component.
void scalarise_vector_registers(Function& function);

// Removes unreachable blocks, scopes and register declarations. Moves declarations of entities still in use to the
// entry block, and keeps labels that debug sections may name, on empty blocks. Ensures that the entry block has no
// predecessors.
void drop_unreachable_and_scopes(Function& function);

// Renames local variables, labels, tables and prototypes that would clash with another of the same name once scopes are
// removed, or that would hide a name of the module.
void make_names_unique(Function& function);

// Generates names that are not in use.
class UniqueNames {
public:
  explicit UniqueNames(Module& module) : module_(module) {}
  // Reserves `name`; returns false if it was in use already.
  bool take(Symbol name) { return !name || taken_.insert(name.index()).second; }
  bool taken(Symbol name) const { return name && taken_.count(name.index()) != 0; }
  // Reserves and returns `name`, or the first of name_1, name_2 ... that is free.
  Symbol unique(Symbol name);
  template <class Visit> void for_each(Visit&& visit) const {
    for (uint32_t name : taken_)
      visit(Symbol(name));
  }

private:
  Module& module_;
  std::unordered_set<uint32_t> taken_;
  std::unordered_map<uint32_t, uint32_t> next_; // suffix to try, per base name
};

// Reserves all names that a function's body mentions or declares, except register names.
void take_names(const Function& function, UniqueNames& names);

} // namespace ptxrewrite::ir
