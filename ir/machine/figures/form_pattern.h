// The words and targets in a row of a table (expand.def) that select forms of an opcode.
#pragma once

#include "ir/isa/isa.h"

#include <cstdint>
#include <string_view>
#include <vector>

namespace ptxrewrite::ir {

// `words`: groups separated by blanks, all of which must match; a group is alternatives separated by |, each a word of
// the mnemonic. `dtype=` and `atype=` groups match only the first and the second instruction type; `imm` requires that
// the last operand is a literal. `targets`: "sm_80+", "sm_70..sm_75"; "" all.
class FormPattern {
public:
  FormPattern(std::string_view words, std::string_view targets);

  // `literal`: whether the last operand is a literal.
  bool fits(const Form& form, uint32_t compute_capability, bool literal) const;

private:
  enum class Place : uint8_t { anywhere, first_type, second_type, literal };

  // Matches if one of these modifiers is present.
  struct WordGroup {
    Place place = Place::anywhere;
    std::vector<Modifier> alternatives;

    bool fits(const Form& form, bool literal) const;
  };

  std::vector<WordGroup> groups_;
  uint32_t first_target_ = 0, last_target_ = UINT32_MAX;
};

} // namespace ptxrewrite::ir
