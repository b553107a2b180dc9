// The tokens of one item's text: a few reusable ones, filled as the parser looks ahead. Include antlr4-runtime.h
// first.
#pragma once

#include "grammar/lexeme.h"
#include "grammar/lexer_tables.h"

#include <array>
#include <string_view>
#include <vector>

namespace ptxrewrite::grammar {

class RingToken final : public antlr4::Token {
public:
  Lexeme lexeme;
  size_t type = EOF;
  size_t index = 0;

  std::string getText() const override { return {}; }
  size_t getType() const override { return type; }
  size_t getLine() const override { return 0; }
  size_t getCharPositionInLine() const override { return 0; }
  size_t getChannel() const override { return DEFAULT_CHANNEL; }
  size_t getTokenIndex() const override { return index; }
  size_t getStartIndex() const override { return lexeme.range.begin; }
  size_t getStopIndex() const override { return lexeme.range.end; }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  antlr4::CharStream* getInputStream() const override { return nullptr; }
  std::string toString() const override { return {}; }
};

class TokenRing final : public antlr4::TokenStream {
public:
  // Restarts on a range of `source`.
  void open(std::string_view source, SourceRange item) {
    source_ = source;
    cursor_ = item.begin;
    end_ = item.end;
    position_ = filled_ = 1;
    tokens_[0].type = antlr4::Token::INVALID_TYPE;
    tokens_[0].lexeme = {{item.begin, item.begin}, 0};
    annotations.clear();
  }

  const RingToken& current() {
    if (position_ == filled_) fill();
    return tokens_[position_ % size_of_ring];
  }
  const RingToken& previous() const { return tokens_[(position_ - 1) % size_of_ring]; }
  void advance() {
    if (current().type != antlr4::Token::EOF) ++position_;
  }
  bool at_end() { return current().type == antlr4::Token::EOF; }

  // `//@` comments since the list was last cleared.
  std::vector<SourceRange> annotations;

  antlr4::Token* LT(ssize_t k) override {
    if (k < 0) return &tokens_[(position_ - 1) % size_of_ring];
    while (position_ + static_cast<size_t>(k) - 1 >= filled_)
      fill();
    return &tokens_[(position_ + static_cast<size_t>(k) - 1) % size_of_ring];
  }
  size_t LA(ssize_t k) override { return k == 1 ? current().type : LT(k)->getType(); }
  void consume() override { advance(); }
  ssize_t mark() override { return 0; }
  void release(ssize_t) override {}
  size_t index() override { return position_; }
  void seek(size_t) override {}
  size_t size() override { return filled_; }
  std::string getSourceName() const override { return {}; }
  antlr4::Token* get(size_t index) const override { return const_cast<RingToken*>(&tokens_[index % size_of_ring]); }
  antlr4::TokenSource* getTokenSource() const override { return nullptr; }
  std::string getText(const antlr4::misc::Interval&) override { return {}; }
  std::string getText() override { return {}; }
  std::string getText(antlr4::RuleContext*) override { return {}; }
  std::string getText(antlr4::Token*, antlr4::Token*) override { return {}; }

private:
  void fill();
  void longest_token(uint32_t begin, uint32_t end, uint16_t& accepted, uint32_t& accepted_end) const;

  // The parser looks one token ahead (every decision is LL(1)) and back at the previous one.
  static constexpr size_t size_of_ring = 8;
  std::array<RingToken, size_of_ring> tokens_;
  size_t position_ = 1; // of the current token, counted from 1
  size_t filled_ = 1;   // tokens lexed
  std::string_view source_;
  uint32_t cursor_ = 0;
  uint32_t end_ = 0;
};

} // namespace ptxrewrite::grammar
