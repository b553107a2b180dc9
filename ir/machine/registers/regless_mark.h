// RegLess's annotations as text (RegLess §4, Fig. 6): the data that the proposed hardware gets from its compiler. Each
// is a comment of its own:
//
//   //@ regless machine 80                     compute capability of the described code; before the first instruction
//   //@ regless alloc %rd4=R4:R5 %r1=R6        before the first instruction; again where a name changes its meaning
//   //@ regless region 3 live 7 banks 1,1,1,0,1,1,1,1 preload R4 R6! invalidate R9      before a region
//   //@ regless erase R6 evict R4              after the instruction that accesses them last
//
// `!`: the stored copy becomes invalid. An empty list is omitted with its keyword. A mark may end in `+` and a note of
// the pass that wrote it (transforms/manager/text_insertion.h).
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

// Parses one annotation; nullopt for other comments. `text` is the annotation without its slashes.
Result<std::optional<RegLessMark>> parse_regless_mark(std::string_view text);

// True for a comment that contains a mark, even a malformed one.
bool carries_regless_mark(const Function& function, InstructionId instruction);
// Parses the mark of such a comment.
Result<RegLessMark> regless_mark_of(const Function& function, InstructionId instruction);
bool has_regless_marks(const Function& function);
// For the kernel of that name; false if there is none.
bool has_regless_marks(const Module& module, std::string_view kernel);

} // namespace ptxrewrite::ir
