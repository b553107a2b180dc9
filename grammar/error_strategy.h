// Syntax errors: reports one diagnostic with a caret and abandons the statement. Include antlr4-runtime.h
// first.
#pragma once

#include "grammar/actions.h"

namespace ptxrewrite::grammar {

class ErrorStrategy final : public antlr4::ANTLRErrorStrategy {
public:
  explicit ErrorStrategy(ReaderActions& actions) : actions_(actions) {}

  void reset(antlr4::Parser*) override {}
  antlr4::Token* recoverInline(antlr4::Parser* parser) override;
  void recover(antlr4::Parser* parser, std::exception_ptr error) override;
  void sync(antlr4::Parser*) override {}
  bool inErrorRecoveryMode(antlr4::Parser*) override { return false; }
  void reportMatch(antlr4::Parser*) override {}
  void reportError(antlr4::Parser*, const antlr4::RecognitionException&) override {}

private:
  [[noreturn]] void give_up(antlr4::Parser& parser);

  ReaderActions& actions_;
};

} // namespace ptxrewrite::grammar
