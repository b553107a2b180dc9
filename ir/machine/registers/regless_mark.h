// RegLess's annotations as text (RegLess §4, Fig. 6): what the proposed hardware gets from its compiler. Each stands
// in a comment of its own:
//
//   //@ regless machine 80                     whose instructions these are: compute capability; in front of the first
//   //@ regless alloc %rd4=R4:R5 %r1=R6        in front of the first instruction; again where a name changes meaning
//   //@ regless region 3 live 7 banks 1,1,1,0,1,1,1,1 preload R4 R6! invalidate R9      in front of a region
//   //@ regless erase R6 evict R4              behind the instruction that accesses them last
//
// `!`: the stored copy goes. An empty list is left out with its word. A mark may end in `+`: a note of whoever wrote it
// (transforms/manager/text_insertion.h).
#pragma once

#include "ir/machine/registers/regions.h"
#include "support/result.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ptxrewrite::ir {

struct RegLessMark {
  enum class Kind : uint8_t { machine, alloc, region, release } kind = Kind::release;
  uint32_t compute_capability = 0;                                      // machine
  std::vector<std::pair<std::string, std::vector<uint16_t>>> registers; // alloc: name and machine registers
  uint32_t number = 0, live = 0;                                        // region
  std::array<uint8_t, staging_banks> banks{};                           //
  RegisterSet preload, last_reads, invalidate;                          //
  RegisterSet erase, evict;                                             // release
};

// What one annotation says; nothing for other comments. `text` is that of the annotation without its slashes.
Result<std::optional<RegLessMark>> parse_regless_mark(std::string_view text);

// Is it a comment that holds a mark, well written or not?
bool carries_regless_mark(const Function& function, InstructionId instruction);
// Then what it says.
Result<RegLessMark> regless_mark_of(const Function& function, InstructionId instruction);
bool has_regless_marks(const Function& function);
// Of the kernel of that name; false where there is none.
bool has_regless_marks(const Module& module, std::string_view kernel);

} // namespace ptxrewrite::ir
