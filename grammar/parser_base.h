// Base class of the generated parser: antlr4::Parser with shortened hot paths, and errors that end the statement.
// Include antlr4-runtime.h first.
#pragma once

#include "grammar/actions.h"
#include "grammar/token_ring.h"

namespace ptxrewrite::grammar {

class ParserBase : public antlr4::Parser {
public:
  explicit ParserBase(antlr4::TokenStream* input) : Parser(input) { setBuildParseTree(false); }
  void attach(ReaderActions& reader_actions, TokenRing& ring) {
    actions = &reader_actions;
    ring_ = &ring;
  }
  // Frees all rule contexts; must only be called between statements or items.
  void forget_contexts() {
    _tracker.reset();
    _ctx = nullptr;
    _matchedEOF = false;
  }

  antlr4::Token* match(size_t type) override {
    if (ring_->current().type != type || type == antlr4::Token::EOF) return Parser::match(type);
    ring_->advance();
    return nullptr; // the grammar has no token labels
  }
  antlr4::Token* consume() override {
    ring_->advance();
    return nullptr;
  }
  void enterRule(antlr4::ParserRuleContext* context, size_t state, size_t) override {
    setState(state);
    _ctx = context;
  }
  void enterOuterAlt(antlr4::ParserRuleContext* context, size_t) override { _ctx = context; }

protected:
  // The generated code calls these two by their bare names and so finds them instead of the runtime's: no listener is
  // told, contexts have no stop token, every parent is a rule's context, the caller sets its next state itself, and the
  // guard needs no std::function.
  void exitRule() { _ctx = static_cast<antlr4::ParserRuleContext*>(_ctx->parent); }
  template <class Leave> class RuleExit {
  public:
    explicit RuleExit(Leave leave) : leave_(leave) {}
    RuleExit(const RuleExit&) = delete;
    RuleExit& operator=(const RuleExit&) = delete;
    ~RuleExit() { leave_(); }

  private:
    Leave leave_;
  };
  template <class Leave> static RuleExit<Leave> finally(Leave leave) { return RuleExit<Leave>(leave); }

  const Lexeme& last() const { return ring_->previous().lexeme; }

  ReaderActions* actions = nullptr;

private:
  TokenRing* ring_ = nullptr;
};

} // namespace ptxrewrite::grammar

using ptxrewrite::grammar::ParserBase;
