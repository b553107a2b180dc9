// Which rows of the table a mnemonic's modifier words fit. Private to ir/isa*.cpp.
#pragma once

#include "ir/isa/isa_table.h"

#include <functional>
#include <span>
#include <vector>

namespace ptxrewrite::ir::table {

// The words that fill the slots of one row; by slot, none for an optional slot left out. Only the first word of an
// alternative with several words is kept: operands refer to single words.
using Binding = std::vector<Modifier>;

struct Match {
  const Row* row = nullptr;
  Binding binding;
};

// More words than any mnemonic has.
constexpr size_t max_words = 32;

// Rows whose operand lists apply, empty if the words are no legal combination.
std::vector<Match> match_rows(const OpcodeRows& opcode, std::span<const Modifier> words);

// Whether the words are legal with the rows that `wanted` takes alone. Unlike in match_rows(), this asks of the cache
// and eviction rows of `ld` and `st`, too.
bool match_only(const OpcodeRows& opcode, std::span<const Modifier> words,
                const std::function<bool(const Row&)>& wanted);

// Why match_rows() found nothing, for people. `mnemonic` as spelled.
std::string explain_mismatch(const OpcodeRows& opcode, std::string_view opcode_name, std::span<const Modifier> words);

} // namespace ptxrewrite::ir::table
