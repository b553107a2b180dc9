// Base class of the generated parser: antlr4::Parser with shortened hot paths, and errors that end the statement.
// Include antlr4-runtime.h first.
#pragma once

#include "grammar/actions.h"
#include "grammar/token_ring.h"

#include <cstddef>
#include <exception>
#include <memory>
#include <new>
#include <utility>
#include <vector>

namespace ptxrewrite::grammar {

// Rule contexts of one statement or a few, in memory that is used again. No destructor runs: as no tree is built, only
// an error that a rule has met is owned by its context.
class ContextPool {
public:
  ContextPool() = default;
  ContextPool(const ContextPool&) = delete;
  ContextPool& operator=(const ContextPool&) = delete;
  ~ContextPool() { reset(); }

  template <class Context, class... Arguments> Context* createInstance(Arguments&&... arguments) {
    static_assert(sizeof(Context) <= Slot::size && alignof(Context) <= alignof(std::max_align_t));
    if (used_ == slots_.size()) slots_.push_back(std::make_unique<Slot>());
    Slot& slot = *slots_[used_++];
    Context* context = new (slot.bytes) Context(std::forward<Arguments>(arguments)...);
    slot.context = context;
    return context;
  }
  void reset() {
    for (; used_ > 0; --used_)
      if (std::exception_ptr& error = slots_[used_ - 1]->context->exception) error = nullptr;
  }

private:
  struct Slot {
    static constexpr size_t size = 256;
    alignas(std::max_align_t) std::byte bytes[size];
    antlr4::ParserRuleContext* context = nullptr;
  };
  std::vector<std::unique_ptr<Slot>> slots_;
  size_t used_ = 0;
};

// The members with the runtime's names hide them: the generated code calls them by their bare names, and finds calls
// that can be inlined instead of virtual ones and of functions in a library.
class ParserBase : public antlr4::Parser {
public:
  explicit ParserBase(antlr4::TokenStream* input) : Parser(input) { setBuildParseTree(false); }
  void attach(ReaderActions& reader_actions, TokenRing& ring) {
    actions = &reader_actions;
    _input = &ring;
  }
  // Frees all rule contexts; must only be called between statements or items.
  void forget_contexts() {
    _tracker.reset();
    _ctx = nullptr;
    _matchedEOF = false;
  }

  antlr4::Token* match(size_t type) final {
    if (_input->current().type != type || type == antlr4::Token::EOF) return Parser::match(type);
    _input->advance();
    return nullptr; // the grammar has no token labels
  }
  antlr4::Token* consume() final {
    _input->advance();
    return nullptr;
  }
  void enterRule(antlr4::ParserRuleContext* context, size_t state, size_t) final {
    state_ = state;
    _ctx = context;
  }
  void enterOuterAlt(antlr4::ParserRuleContext* context, size_t) final { _ctx = context; }
  size_t getState() const final { return state_; }
  // No listener is told, contexts have no stop token, every parent is a rule's context, and the caller sets its next
  // state itself.
  void exitRule() { _ctx = static_cast<antlr4::ParserRuleContext*>(_ctx->parent); }

protected:
  void setState(size_t state) { state_ = state; }

  // The generated code calls the error strategy at each token. Only errors are passed on to the strategy that is set.
  class Errors {
  public:
    Errors* operator->() { return this; }
    void sync(antlr4::Parser*) {}
    void reportMatch(antlr4::Parser*) {}
    void reportError(antlr4::Parser*, const antlr4::RecognitionException&) {}
    antlr4::Token* recoverInline(antlr4::Parser* parser) { return parser->getErrorHandler()->recoverInline(parser); }
    void recover(antlr4::Parser* parser, std::exception_ptr error) {
      parser->getErrorHandler()->recover(parser, error);
    }
  };

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

  const Lexeme& last() const { return _input->previous().lexeme; }

  ReaderActions* actions = nullptr;
  TokenRing* _input = nullptr;
  ContextPool _tracker;
  Errors _errHandler;

private:
  size_t state_ = 0;
};

} // namespace ptxrewrite::grammar

using ptxrewrite::grammar::ParserBase;
