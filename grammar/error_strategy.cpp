#include <antlr4-runtime.h>

#include "PtxLexer.h"
#include "grammar/error_strategy.h"
#include "grammar/token_ring.h"

namespace ptxrewrite::grammar {

namespace {

// The description of a token type in a message.
std::string describe(const antlr4::dfa::Vocabulary& vocabulary, size_t type) {
  switch (type) {
  case PtxLexer::IDENTIFIER:
    return "a name";
  case PtxLexer::MNEMONIC:
    return "an instruction";
  case PtxLexer::INTEGER:
    return "an integer";
  case PtxLexer::STRING:
    return "a string";
  case PtxLexer::DOTTED:
    return "a dotted word";
  case PtxLexer::DWARF:
    return "'@@DWARF'";
  default:
    break;
  }
  std::string name = vocabulary.getLiteralName(type);
  return name.empty() ? vocabulary.getSymbolicName(type) : name;
}

// "expected ';' or ','"; empty if there are too many alternatives.
std::string expectation(antlr4::Parser& parser) {
  const antlr4::misc::IntervalSet expected = parser.getExpectedTokens();
  std::vector<std::string> words;
  for (ssize_t type : expected.toList())
    if (type > 0) words.push_back(describe(parser.getVocabulary(), static_cast<size_t>(type)));
  if (words.empty() || words.size() > 4) return {};
  std::string text = "; expected ";
  for (size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + words[i];
  return text;
}

} // namespace

void ErrorStrategy::give_up(antlr4::Parser& parser) {
  if (actions_.may_salvage()) throw StatementError{};
  const auto& token = static_cast<const RingToken&>(*parser.getCurrentToken());
  const SourceRange range = token.lexeme.range;
  if (token.type == antlr4::Token::EOF) actions_.fail(range, "the text ends too early" + expectation(parser));
  if (token.type == PtxLexer::UNTERMINATED_COMMENT)
    actions_.fail({range.begin, range.begin + 2}, "the comment has no end");
  if (token.type == PtxLexer::UNTERMINATED_STRING)
    actions_.fail({range.begin, range.begin + 1}, "the string has no end");
  actions_.fail(range, "unexpected " + actions_.quote(range) + expectation(parser));
}

antlr4::Token* ErrorStrategy::recoverInline(antlr4::Parser* parser) {
  give_up(*parser);
}

void ErrorStrategy::recover(antlr4::Parser* parser, std::exception_ptr) {
  give_up(*parser);
}

} // namespace ptxrewrite::grammar
