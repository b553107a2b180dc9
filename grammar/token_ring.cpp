#include <antlr4-runtime.h>

#include "PtxLexer.h"
#include "grammar/token_ring.h"

namespace ptxrewrite::grammar {

// Lexes the next token for the parser.
void TokenRing::fill() {
  RingToken& token = tokens_[filled_ % size_of_ring];
  token.index = filled_++;
  const char* text = source_.data();
  for (;;) {
    if (cursor_ >= end_) {
      token.type = antlr4::Token::EOF;
      token.lexeme = {{end_, end_}, 0};
      return;
    }
    const uint32_t begin = cursor_;
    uint32_t position = begin;
    uint32_t accepted_end = begin;
    uint16_t accepted = 0;
    LexerTables::State state = LexerTables::start;
    while (position < end_) {
      state = LexerTables::next(state, static_cast<uint8_t>(text[position]));
      if (state == LexerTables::dead) break;
      ++position;
      if (uint16_t type = LexerTables::accepts(state)) {
        accepted = type;
        accepted_end = position;
      }
    }
    if (accepted == 0) accepted_end = begin + 1; // cannot happen while the grammar ends in a catch-all rule
    cursor_ = accepted_end;
    if (accepted == LexerTables::skipped) continue;
    SourceRange range{begin, accepted_end};
    if (accepted == PtxLexer::ANNOTATION) {
      annotations.push_back(range);
      continue;
    }
    token.type = accepted;
    token.lexeme = {range, accepted};
    return;
  }
}

} // namespace ptxrewrite::grammar
