// A function as a list of lines for display, each with the source instruction it corresponds to. `diff` compares
// listings.
#pragma once

#include "ir/core/module.h"

#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::evaluate {

struct ListingLine {
  std::string text;            // without indentation
  ir::ProvenanceId provenance; // of real instructions; invalid if there is no counterpart in the source
  uint32_t source_line = 0;    // 1-based; 0 if created by a pass
  bool is_instruction = false; // a real instruction, counted in statistics
  bool indented = false;       // inside the body, not a label
  bool in_section = false;     // of a hardware form: not executed by every thread
};

struct FunctionListing {
  std::string name;
  ir::FunctionId id;
  std::string variant_of;         // the original of a rewritten variant (`//@ PASS original NAME`), or empty
  std::vector<ListingLine> lines; // header and body, without the braces of the body
};

struct ModuleListing {
  std::vector<ListingLine> items; // items outside functions with a body, one line per item, blanks normalised
  std::vector<FunctionListing> functions;
};

// Lists the functions whose name, or whose original's name, matches `glob`, and all module items. Functions must not be
// in SSA form.
ModuleListing list_module(const ir::Module& module, const std::string& glob);

// Replaces each run of blanks and comments by one blank.
std::string normalise_blanks(std::string_view text);

} // namespace ptxrewrite::evaluate
