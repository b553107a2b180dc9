// Relations between the two kernels that no instruction states: registers carried along paths in another width, and
// loads that the result does without. Both are given as substitutions for the unknowns of the terms.
//
// A register that depends on the path, and has no counterpart of its own, may be another one's low half: it is assumed
// to be so on entry to each block, and every edge must then pass values that are (simultaneous induction over the path
// that both kernels take). A load may be left out if an earlier one that dominates it read the same address, and the
// ledger has the launch check that what it reads is not written.
#pragma once

#include "evaluate/prove/symbolic.h"

#include <set>
#include <vector>

namespace ptxrewrite::prove {

class Relations {
public:
  // `read_only`: numbers of parameters; what is read through them is not written in the launch.
  Relations(Terms& terms, ExactForms& exact, const ir::Function& original, const SymbolicKernel& before,
            const ir::Function& rewritten, const SymbolicKernel& after, const std::set<unsigned>& read_only);

  TermId apply(TermId in) { return terms_.substitute(in, values_); }
  bool is_related(const PathUnknown& unknown) const { return related_.contains({unknown.block, unknown.parameter}); }
  // Instructions of the original.
  bool is_left_out(ir::InstructionId load) const { return left_out_.contains(load); }
  // Unknowns that the substitutions introduce.
  const std::set<AtomId>& unknowns() const { return unknowns_; }

private:
  enum class Kind : uint8_t { same, sign_extended, zero_extended };
  struct Candidate {
    ir::ValueId value; // of the original
    Kind kind = Kind::same;
  };
  struct Path {
    PathUnknown unknown; // of the rewritten kernel
    std::vector<Candidate> candidates;
    size_t chosen = 0;
  };

  void find_paths();
  std::vector<Candidate> candidates_of(const PathUnknown& unknown) const;
  void assume(const std::vector<Path>& paths);
  bool holds(const Path& path);
  TermId extended(TermId narrow, Kind kind, unsigned width);
  void find_left_out_loads();
  bool is_read_only(const Observation& load) const;
  bool reads_what_was_read(const Observation& earlier, const Observation& later);
  bool is_fixed(TermId address, ir::BlockId block);

  Terms& terms_;
  ExactForms& exact_;
  const ir::Function& original_;
  const SymbolicKernel& before_;
  const ir::Function& rewritten_;
  const SymbolicKernel& after_;
  const std::set<unsigned>& read_only_;
  ir::ControlFlow flow_; // of the original
  ir::DominatorTree dominators_;
  std::map<AtomId, TermId> values_;
  std::set<std::pair<ir::BlockId, uint32_t>> related_;
  std::set<ir::InstructionId> left_out_;
  std::set<AtomId> unknowns_;
};

} // namespace ptxrewrite::prove
