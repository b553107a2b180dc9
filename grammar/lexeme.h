// A token in the reader's own code: a kind and a range of the source.
#pragma once

#include "support/source.h"

#include <cstdint>

namespace ptxrewrite::grammar {

struct Lexeme {
  SourceRange range;
  uint32_t type = 0; // PtxLexer's token type; 0 at the end of the item
};

} // namespace ptxrewrite::grammar
