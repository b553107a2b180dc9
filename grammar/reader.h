// PTX text to IR. The only interface of the parser; no ANTLR type leaves this folder.
#pragma once

#include "ir/core/module.h"
#include "support/diagnostic.h"

#include <memory>

namespace ptxrewrite::grammar {

struct ReadOptions {
  uint32_t error_limit = 20; // stop after this many errors
};

// Reads a whole module. Returns nullptr on errors, which are in the diagnostics; warnings may accompany a module. Never
// throws or crashes, whatever the input.
std::unique_ptr<ir::Module> read_module(const SourceFile& source, Diagnostics& diagnostics,
                                        const ReadOptions& options = {});

} // namespace ptxrewrite::grammar
