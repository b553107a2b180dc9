// Finds the rows of the table that match a mnemonic's modifier words. Private to ir/isa*.cpp.
#pragma once

#include "ir/isa/isa_table.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::ir::table {

// The words that fill the slots of one row, by slot; `none` for an omitted optional slot. Of an alternative with
// several words only the first is kept: operands refer to single words.
using Binding = std::vector<Modifier>;

struct Match {
  const Row* row = nullptr;
  Binding binding;
};

// An upper bound on the words of a mnemonic.
constexpr size_t max_words = 32;

// Returns the rows whose operand lists apply; empty if the combination of words is illegal.
std::vector<Match> match_rows(const OpcodeRows& opcode, std::span<const Modifier> words);

// Returns true if the words are legal with only the rows that `wanted` accepts. It is also called for cache and
// eviction rows of `ld` and `st`, which the result of match_rows() does not contain.
bool match_only(const OpcodeRows& opcode, std::span<const Modifier> words,
                const std::function<bool(const Row&)>& wanted);

// Explains, for people, why match_rows() found no row. `mnemonic` as spelled.
std::string explain_mismatch(const OpcodeRows& opcode, std::string_view opcode_name, std::span<const Modifier> words);

} // namespace ptxrewrite::ir::table
