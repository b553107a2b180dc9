// DARSIE's compiler mark of an instruction: whether the lane vector of its result is the same in every warp of a block,
// under which block shapes, and of which kind that vector is (darsie §2, §4.2).
//
// As text: `DR uniform`, `CR x affine`, `CR xy unstructured`, `V`. A mark follows its instruction as the annotation
// `//@ darsie DR uniform`, or precedes it (and its guard) as `.pragma "darsie DR uniform";`. A mark may end in `+` and
// a note of the pass that wrote it (transforms/darsie/darsie_text.h).
#pragma once

#include "ir/core/function.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::ir {

// From strongest to weakest; a result gets the weakest mark of its sources.
enum class MarkStrength : uint8_t {
  definite,       // DR: in any launch
  conditional_x,  // CR x: if each warp holds whole rows of tid.x
  conditional_xy, // CR xy: if each warp holds whole planes of tid.x, tid.y
  vector,         // V: not known to be the same
};

// From most to least regular; describes the result, or the sources if there is no result. Meaningless for `vector`.
enum class MarkKind : uint8_t {
  uniform,      // all lanes of all warps have the same value
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

// The weaker strength and the less regular kind; always the same mark for strength `vector`.
DarsieMark weakest(DarsieMark first, DarsieMark second);

std::string_view spelling(MarkKind kind);
std::string to_string(DarsieMark mark);
// Ignores blanks around words; `CR` without x or xy means x, the paper's only condition. Returns nullopt if not a mark.
std::optional<DarsieMark> parse_mark(std::string_view text);

// The mark for a launch (§4.2): `conditional_x` becomes definite if the block has more than one dimension and ntid.x is
// a power of two of at most 32, `conditional_xy` if ntid.z > 1 and ntid.x * ntid.y is one; otherwise they become
// vector, so the result is never conditional. Also applies to blocks of one warp, which has no warp to share with.
DarsieMark promote(DarsieMark mark, const std::array<uint32_t, 3>& block);

// The mark that the text gives an instruction by annotation or pragma; nullopt if there is none.
std::optional<DarsieMark> written_mark(const Function& function, InstructionId instruction);
// True for an annotation or pragma that contains a mark.
bool carries_mark(const Function& function, InstructionId instruction);
// True if the text marks any instruction of the function. Instructions without a mark are `vector` then.
bool has_written_marks(const Function& function);

// A mark without the slashes, blanks and quotes around it starts with this: `darsie DR uniform`.
inline constexpr std::string_view mark_prefix = "darsie ";

} // namespace ptxrewrite::ir
