// What of a kernel goes into DAC's affine stream (dac-isca17 4.5, 4.7), and why the rest does not.
//
// Sites cross over: addresses of memory accesses, and predicates that the body reads. The affine stream computes what
// they need, has all branches that decide whether a site or a barrier is executed, or which tuple a value has there,
// and the barriers. What governs nothing of that it jumps over, to where the ways meet again. So in both streams a warp
// comes to its sites in the same order: between a branch that was left out and where its ways meet there is no site.
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
  uint32_t number = 0;      // place of the instruction in the original's text: see number_instructions
  ir::InstructionId reader; // of a predicate: its only reader, in the same block, which takes it as its guard
};

// A predicate that only the body knows, and that decides what the affine stream executes.
struct Given {
  ir::InstructionId instruction; // the branch or exit that it guards
  uint32_t number = 0;
};

struct Plan {
  std::string refusal; // of the whole kernel; empty: the rest counts
  SourceRange refused_at;
  std::vector<DacSite> sites; // in the order of the text
  std::vector<Given> given;
  std::vector<ir::InstructionId> barriers;
  std::vector<bool> in_affine;              // by InstructionId: computed in the affine stream
  std::set<ir::InstructionId> sums_by_or;   // of them: or of operands without a common bit
  std::vector<bool> needed;                 // by ValueId: known there
  std::vector<bool> relevant_branch;        // by BlockId: its branch, or guarded exit, is in the affine stream
  std::vector<bool> needed_in_body;         // by BlockId: its branch decides about something that the body still does
  std::vector<ir::BlockId> divergent_joins; // where a divergent condition of a needed value arises
  std::set<ir::ObligationId> obligations;
  struct Staying {
    ir::InstructionId instruction;
    std::string reason;
  };
  std::vector<Staying> staying; // candidates by their kind that were not decoupled
};

// Places of instructions in the text, by InstructionId: real ones are counted but for mov and bra, of which leaving SSA
// form may add some. So the number names the original instruction in the printed text, too.
std::vector<uint32_t> number_instructions(const ir::Function& function);

Plan make_plan(ir::LinearForms& forms, const AffineClasses& classes);

} // namespace ptxrewrite::transforms::dac
