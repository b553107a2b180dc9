// The part of a kernel that goes into DAC's affine stream (dac-isca17 4.5, 4.7), and why the rest does not.
//
// Sites are the values that cross from the affine stream to the body: addresses of memory accesses, and predicates that
// the body reads. The affine stream computes their operands, and has the barriers and all branches that decide whether
// a site or barrier is executed, or which tuple a value has there. It replaces other branches by a jump to their join.
// So a warp reaches its sites in the same order in both streams: between an omitted branch and its join there is no
// site.
#pragma once

#include "transforms/dac/dac_classes.h"
#include "transforms/manager/pass.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ptxrewrite::transforms::dac {

enum class SiteKind : uint8_t { data, address, predicate };

struct DacSite {
  SiteKind kind = SiteKind::data;
  ir::InstructionId instruction;
  size_t address = 0;       // index of its address operand
  uint32_t number = 0;      // position of the instruction in the original's text: see number_instructions
  ir::InstructionId reader; // for a predicate: its only reader, in the same block, which it guards
};

// A predicate that only the body can compute, and that controls code of the affine stream.
struct Given {
  ir::InstructionId instruction; // the branch or exit that the predicate guards
  uint32_t number = 0;
};

struct Plan {
  std::string refusal; // of the whole kernel; if empty, the other fields are valid
  SourceRange refused_at;
  std::vector<DacSite> sites; // in text order
  std::vector<Given> given;
  std::vector<ir::InstructionId> barriers;
  std::vector<bool> in_affine;              // by InstructionId: computed in the affine stream
  std::set<ir::InstructionId> sums_by_or;   // those that are an `or` of operands without a common bit
  std::vector<bool> needed;                 // by ValueId: needed in the affine stream
  std::vector<bool> relevant_branch;        // by BlockId: its branch, or guarded exit, is in the affine stream
  std::vector<bool> needed_in_body;         // by BlockId: its branch controls code that remains in the body
  std::vector<ir::BlockId> divergent_joins; // where a divergent condition of a needed value arises
  std::set<ir::ObligationId> obligations;
  struct Staying {
    ir::InstructionId instruction;
    std::string reason;
  };
  std::vector<Staying> staying; // candidates of a suitable kind that were not decoupled
};

// Numbers of the instructions in text order, by InstructionId. Counts real instructions except mov and bra, which
// leaving SSA form may add, so that a number identifies the original instruction in the printed text, too.
std::vector<uint32_t> number_instructions(const ir::Function& function);

Plan make_plan(ir::LinearForms& forms, const AffineClasses& classes);

} // namespace ptxrewrite::transforms::dac
