#include <antlr4-runtime.h>

#include "PtxLexer.h"
#include "grammar/token_ring.h"

namespace ptxrewrite::grammar {

// The longest token that begins at `begin` and ends before `end`: its type and its end, unchanged if there is none.
void TokenRing::longest_token(uint32_t begin, uint32_t end, uint16_t& accepted, uint32_t& accepted_end) const {
  LexerTables::State state = LexerTables::start;
  for (uint32_t position = begin; position < end;) {
    state = LexerTables::next(state, static_cast<uint8_t>(source_[position++]));
    if (uint16_t type = LexerTables::accepts(state)) {
      accepted = type;
      accepted_end = position;
    }
  }
}

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
    LexerTables::State last = state;
    while (position < end_ &&
           (state = LexerTables::next(state, static_cast<uint8_t>(text[position]))) != LexerTables::dead) {
      last = state;
      ++position;
    }
    if (uint16_t type = LexerTables::accepts(last)) {
      accepted = type;
      accepted_end = position;
    } else {
      // Rare: the longest token ends earlier, as in `1.` before a letter.
      longest_token(begin, position, accepted, accepted_end);
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
