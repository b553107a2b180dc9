// The steps of SSA construction that come before values are numbered. Private to ir/ssa*.cpp.
#pragma once

#include "ir/core/function.h"
#include "support/result.h"

#include <string>
#include <unordered_map>
#include <unordered_set>

namespace ptxrewrite::ir {

// Says why a function has no SSA reading; changes nothing.
Status check_ssa_readable(const Function& function);

// Of an instruction that writes p|p the first result stays: the second becomes `_`.
void drop_second_of_equal_results(Function& function);

// Replaces registers declared as .v2 or .v4 by one value per component.
void scalarise_vector_registers(Function& function);

// Removes what control never reaches, scopes and register declarations. Declarations of what is still used move to the
// entry block, and labels that debug sections may name stay on empty blocks. Makes sure the entry block has no
// predecessors.
void drop_unreachable_and_scopes(Function& function);

// Renames local variables, labels, tables and prototypes that met a second one of the same name when scopes went, or
// that would now hide a name of the module.
void make_names_unique(Function& function);

// Hands out names that are not taken.
class UniqueNames {
public:
  explicit UniqueNames(Module& module) : module_(module) {}
  // False if the name was taken already.
  bool take(Symbol name) { return !name || taken_.insert(name.index()).second; }
  bool taken(Symbol name) const { return name && taken_.count(name.index()) != 0; }
  // `name`, or the first of name_1, name_2 ... that is free; takes it.
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

// All names of things that are not registers and that a function's body mentions or declares.
void take_names(const Function& function, UniqueNames& names);

} // namespace ptxrewrite::ir
