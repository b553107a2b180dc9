// Two relations between the original and the rewritten kernel: loop registers of another width, and omitted loads. Both
// become substitutions for the unknowns of the terms.
//
// A block parameter that only the rewritten kernel has may be the low half of one of the original. This is assumed on
// entry to each block; then every edge must pass arguments for which it holds (simultaneous induction over the path
// that both kernels take). A load may be omitted if an earlier load dominates it and reads the same address, and if a
// launch condition of the ledger says that this address is not written.
#pragma once

#include "evaluate/prove/symbolic.h"

#include <set>
#include <vector>

namespace ptxrewrite::prove {

class Relations {
public:
  // `read_only`: see read_only_pointers() in joined_accesses.h.
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
