// The reader's main loop: item by item, and statement by statement in a body.
#include <antlr4-runtime.h>

#include "PtxLexer.h"
#include "PtxParser.h"
#include "grammar/error_strategy.h"
#include "grammar/foreign_input.h"
#include "grammar/item_scanner.h"
#include "grammar/reader.h"

#include <cstring>

namespace ptxrewrite::grammar {

namespace {

// Reports bytes that a PTX file must not contain, even in comments. Returns true if there are none.
bool check_bytes(std::string_view text, Diagnostics& diagnostics, uint32_t error_limit) {
  uint32_t errors = 0;
  size_t position = 0;
  while (position < text.size()) {
    // Eight bytes at a time: is any byte above 127 or zero?
    if (position + 8 <= text.size()) {
      uint64_t chunk;
      std::memcpy(&chunk, text.data() + position, 8);
      constexpr uint64_t ones = 0x0101010101010101ull, highs = 0x8080808080808080ull;
      if (((chunk | ((chunk - ones) & ~chunk)) & highs) == 0) {
        position += 8;
        continue;
      }
    }
    const auto byte = static_cast<unsigned char>(text[position]);
    if (byte != 0 && byte < 0x80) {
      ++position;
      continue;
    }
    size_t end = position + 1;
    while (end < text.size() && byte != 0 && static_cast<unsigned char>(text[end]) >= 0x80)
      ++end;
    diagnostics.error({static_cast<uint32_t>(position), static_cast<uint32_t>(end)},
                      byte == 0 ? "NUL byte in the text"
                                : "non-ASCII characters, which PTX does not allow even in comments");
    if (++errors >= error_limit) return false;
    position = end;
  }
  return errors == 0;
}

class Reader {
public:
  Reader(ir::Module& module, Diagnostics& diagnostics, const ReadOptions& options)
      : source_(module.source.text()), actions_(module, diagnostics, options), parser_(&ring_) {
    parser_.removeErrorListeners();
    parser_.setErrorHandler(std::make_shared<ErrorStrategy>(actions_));
    parser_.attach(actions_, ring_);
  }

  void read(uint32_t begin) {
    ItemScanner scanner(source_, begin);
    SourceRange item;
    while (!actions_.limit_reached() && scanner.next(item))
      read_item(item);
  }

private:
  void read_item(SourceRange item) {
    if (source_.substr(item.begin, 3) == "//@") {
      actions_.annotation_item(item);
      return;
    }
    ring_.open(source_, item);
    actions_.begin_item(item);
    try {
      if (actions_.raw_section(item)) return;
      parser_.item();
      if (actions_.in_body()) read_body();
      if (!ring_.at_end()) {
        const SourceRange extra = ring_.current().lexeme.range;
        actions_.fail(extra, "unexpected " + actions_.quote(extra));
      }
      actions_.end_item(ring_.previous().lexeme.range.end);
    } catch (const StatementError&) {
      actions_.abandon_item();
    }
    parser_.forget_contexts();
  }

  void read_body() {
    constexpr unsigned batch = 64; // statements between releases of rule contexts
    unsigned statements = 0;
    while (actions_.in_body() && !actions_.limit_reached()) {
      const bool at_end = ring_.at_end();
      take_annotations();
      if (at_end) actions_.fail(ring_.current().lexeme.range, "the body has no closing '}'");
      if (++statements % batch == 0) parser_.forget_contexts();
      read_statement();
    }
    if (actions_.in_body()) throw StatementError{};
  }

  void take_annotations() {
    if (ring_.annotations.empty()) return;
    actions_.annotations(ring_.annotations);
    ring_.annotations.clear();
  }

  void read_statement() {
    const size_t before = ring_.index();
    try {
      parser_.statement();
    } catch (const StatementError&) {
      const bool salvage = actions_.may_salvage();
      const uint32_t resume = skip_statement(before);
      const SourceRange rest{actions_.mnemonic_end(), resume};
      if (salvage && actions_.salvage_unknown_instruction(rest))
        std::erase_if(ring_.annotations, [&](SourceRange comment) { // they are part of the text that is kept
          return rest.begin <= comment.begin && comment.end <= rest.end;
        });
      else if (salvage)
        actions_.error({actions_.mnemonic_end(), actions_.mnemonic_end()}, "this instruction cannot be understood");
      actions_.abandon_statement();
      parser_.forget_contexts();
    }
  }

  // Skips to after the next semicolon, or to the brace that closes the scope. Returns the end of the statement's text.
  uint32_t skip_statement(size_t before) {
    unsigned depth = 0;
    if (ring_.previous().type == PtxLexer::SEMICOLON && ring_.index() != before)
      return ring_.previous().lexeme.range.begin;
    for (;;) {
      const RingToken& token = ring_.current();
      const uint32_t begin = token.lexeme.range.begin;
      if (token.type == antlr4::Token::EOF) return begin;
      if (token.type == PtxLexer::SEMICOLON) {
        ring_.advance();
        return begin;
      }
      if (token.type == PtxLexer::LEFT_BRACE) ++depth;
      if (token.type == PtxLexer::RIGHT_BRACE) {
        if (depth == 0) {
          if (ring_.index() == before) ring_.advance(); // ensures progress
          return begin;
        }
        --depth;
      }
      ring_.advance();
    }
  }

  std::string_view source_;
  ReaderActions actions_;
  TokenRing ring_;
  PtxParser parser_;
};

} // namespace

std::unique_ptr<ir::Module> read_module(const SourceFile& source, Diagnostics& diagnostics,
                                        const ReadOptions& options) {
  auto module = std::make_unique<ir::Module>(source);
  const std::string_view text = module->source.text();
  const size_t errors_before = diagnostics.error_count();
  if (text.size() >= UINT32_MAX / 2) {
    diagnostics.error({}, "the file is too large");
    return nullptr;
  }
  uint32_t begin = 0;
  if (text.substr(0, 3) == "\xef\xbb\xbf") {
    begin = 3;
    diagnostics.warning({0, 3}, "a byte order mark, which ptxas does not accept; it is left out");
  }
  if (const std::string_view what = what_is_not_ptx(text); !what.empty()) {
    diagnostics.error({}, std::string(what));
    return nullptr;
  }
  ReadOptions limited = options;
  limited.error_limit = static_cast<uint32_t>(errors_before + std::max<uint32_t>(options.error_limit, 1));
  if (check_bytes(text.substr(begin), diagnostics, options.error_limit)) {
    try {
      Reader reader(*module, diagnostics, limited);
      reader.read(begin);
    } catch (const std::exception& unexpected) { // usually out of memory
      diagnostics.error({}, std::string("reading failed: ") + unexpected.what());
    }
  }
  if (diagnostics.error_count() == errors_before && module->version_major == 0)
    diagnostics.error({}, "the file must begin with .version");
  if (diagnostics.error_count() != errors_before) return nullptr;
  return module;
}

} // namespace ptxrewrite::grammar
