// PtxLexer's automaton as flat tables: state x byte -> state.
//
// The ANTLR runtime stores the edges of its lexer automaton in hash maps behind a lock and reads text as 32-bit
// characters. The build computes all edges with it and writes them as arrays (grammar/tables); a byte costs one load.
// PtxLexer.g4 remains the only description of the tokens.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ptxrewrite::grammar {

class LexerTables {
public:
  using State = uint16_t;
  static constexpr State dead = 0;
  static constexpr State start = 1;

  // The state after `byte`, or `dead`.
  static State next(State state, uint8_t byte) {
    return byte < byte_count ? edges[size_t{state} * byte_count + byte] : dead;
  }
  // Token type of the word that ends in this state, `skipped` for blanks and comments, 0 for none.
  static uint16_t accepts(State state) { return accepted[state]; }
  static constexpr uint16_t skipped = 0xffff;

private:
  static constexpr size_t byte_count = 128; // PTX is ASCII; as in grammar/tables/lexer_table_generator.cpp
  static const uint16_t edges[];
  static const uint16_t accepted[];
};

} // namespace ptxrewrite::grammar
