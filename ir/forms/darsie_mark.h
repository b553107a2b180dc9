// What DARSIE's compiler says about one instruction: whether its result is the same vector of lanes in every warp of a
// block, and under which block shapes; and of which kind that vector is (darsie §2, §4.2).
//
// As text: `DR uniform`, `CR x affine`, `CR xy unstructured`, `V`. A mark stands behind its instruction as the
// annotation `//@ darsie DR uniform`, or in front of it (and of its guard) as `.pragma "darsie DR uniform";`. A mark
// may end in `+`: a note of whoever wrote it (transforms/darsie/darsie_text.h).
#pragma once

#include "ir/core/function.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

// From strongest to weakest; a result takes the weakest of its sources.
enum class MarkStrength : uint8_t {
  definite,       // DR: in any launch
  conditional_x,  // CR x: if each warp holds whole rows of tid.x
  conditional_xy, // CR xy: if each warp holds whole planes of tid.x, tid.y
  vector,         // V: nothing is known
};

// From most to least regular; of results, or of sources where there is no result. Of `vector` it says nothing.
enum class MarkKind : uint8_t {
  uniform,      // all lanes of all warps hold the same
  affine,       // base + stride times an index of the thread
  unstructured, // the same in all warps, without a pattern
};

struct DarsieMark {
  MarkStrength strength = MarkStrength::vector;
  MarkKind kind = MarkKind::unstructured;

  static constexpr DarsieMark uniform() { return {MarkStrength::definite, MarkKind::uniform}; }
  bool is_definite() const { return strength == MarkStrength::definite; }
  bool is_vector() const { return strength == MarkStrength::vector; }
  bool is_conditional() const { return !is_definite() && !is_vector(); }
  bool operator==(const DarsieMark&) const = default;
};

// The weakest of both, and the less regular kind; one `vector` for all of that strength.
DarsieMark weakest(DarsieMark first, DarsieMark second);

std::string_view spelling(MarkKind kind);
std::string to_string(DarsieMark mark);
// Blanks around words do not matter; `CR` without x or xy means x, the paper's only condition.
std::optional<DarsieMark> parse_mark(std::string_view text);

// The marking that holds in a launch (§4.2): `conditional_x` is definite where the block has more than one dimension
// and ntid.x is a power of two of at most 32, `conditional_xy` where ntid.z > 1 and ntid.x * ntid.y is one; else they
// are vector. Never conditional. A block of one warp is promoted like any other: it just has nobody to share with.
DarsieMark promote(DarsieMark mark, const std::array<uint32_t, 3>& block);

// The mark that the text gives an instruction by annotation or pragma; nothing if it has none.
std::optional<DarsieMark> written_mark(const Function& function, InstructionId instruction);
// Is this an annotation or pragma that holds a mark?
bool carries_mark(const Function& function, InstructionId instruction);
// Does the text mark any instruction of the function? One that it leaves out is `vector` then.
bool has_written_marks(const Function& function);

// `darsie DR uniform` without the slashes, blanks and quotes of its carrier.
inline constexpr std::string_view mark_prefix = "darsie ";

} // namespace ptxrewrite::ir
