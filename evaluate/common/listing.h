// A function as the lines a reader sees, each knowing which source instruction it stands for. `diff` compares listings.
#pragma once

#include "ir/core/module.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct ListingLine {
  std::string text;            // without indentation
  ir::ProvenanceId provenance; // real instructions; invalid where nothing in the source corresponds
  uint32_t source_line = 0;    // 1-based; 0 when made by a pass
  bool is_instruction = false; // a real one: what the statistics count
  bool indented = false;       // stands inside the body, not a label
  bool in_section = false;     // of a hardware form: not executed by every thread
};

struct FunctionListing {
  std::string name;
  ir::FunctionId id;
  std::string variant_of;         // the kernel it is a rewritten variant of (`//@ PASS original NAME`), or empty
  std::vector<ListingLine> lines; // header, then the body; braces of the body left out
};

struct ModuleListing {
  std::vector<ListingLine> items; // what stands outside functions with a body, one line per item, blanks normalised
  std::vector<FunctionListing> functions;
};

// Lists the functions whose name, or whose original's name, matches `glob`; module items always. Functions must not be
// in SSA form.
ModuleListing list_module(const ir::Module& module, const std::string& glob);

// The text with every run of blanks and comments as one blank.
std::string normalise_blanks(std::string_view text);

} // namespace ptxrewrite::evaluate
