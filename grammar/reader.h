// PTX text to IR. The only way into the parser; no ANTLR type leaves this folder.
#pragma once

#include "ir/core/module.h"
#include "support/diagnostic.h"

#include <memory>

namespace ptxrewrite::grammar {

struct ReadOptions {
  uint32_t error_limit = 20; // stop after this many errors
};

// Reads a whole module. On errors the diagnostics say why and the pointer is null. Warnings may come with a module.
// Never throws, never crashes, whatever the bytes.
std::unique_ptr<ir::Module> read_module(SourceFile source, Diagnostics& diagnostics, const ReadOptions& options = {});

} // namespace ptxrewrite::grammar
