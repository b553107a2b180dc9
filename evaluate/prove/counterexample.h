// Searches for a launch and a thread in which a rewritten kernel computes a different result than the original:
// evaluates both kernels' terms along the path of one thread of the original, in selected launches that the variant's
// predicates admit. Only a result of this search is called "not equal", because a counterexample of the solver may
// depend on values that cannot occur.
#pragma once

#include "evaluate/prove/evaluation.h"
#include "evaluate/prove/symbolic.h"
#include "launch/predicate.h"

#include <random>

namespace ptxrewrite::prove {

// A pair of corresponding instructions of the original and the rewritten kernel, with the same number of terms.
struct ObservedPair {
  const Observation* before = nullptr;
  const Observation* after = nullptr;
};

struct Counterexample {
  ir::InstructionId instruction; // in the original
  std::string text;              // the values that differ, and the launch
};

// One of the two kernels: register values depend on its own path through joins.
struct Side {
  const ir::Function& function;
  const SymbolicKernel& kernel;
};

class CounterexampleSearch {
public:
  // `requirements`: launch predicates of the variant, all true in launches that run it. `assumed`: the user's
  // assumptions, as ranges of exact values.
  CounterexampleSearch(const Terms& terms, const Side& before, const Side& after, const LaunchSize& size,
                       std::vector<launch::LaunchExpression> requirements, std::vector<Assumption> assumed);

  // `hints`: values by leaf name ("P2", "%ntid.x"), from the solver; tried before random launches.
  std::optional<Counterexample> find(const std::vector<ObservedPair>& pairs,
                                     const std::vector<std::map<std::string, UInt128>>& hints);

private:
  bool choose_launch(const std::map<std::string, UInt128>& hint);
  uint64_t chosen_parameter(unsigned index, unsigned bytes);
  std::optional<Counterexample> walk();
  std::optional<Counterexample> visit(ir::BlockId block);
  std::optional<Counterexample> compare(const ObservedPair& pair);
  bool assumptions_hold();
  void execute(const Observation& seen);
  void follow(ir::EdgeId edge);
  std::optional<ir::EdgeId> next(ir::BlockId block);
  std::optional<UInt128> leaf(AtomId id, unsigned side);
  std::optional<UInt128> computed_leaf(const Atom& row);
  std::optional<uint8_t> byte_at(ir::StateSpace space, UInt128 address);
  std::string describe() const;

  const Terms& terms_;
  Side sides_[2];
  LaunchSize size_;
  std::vector<launch::LaunchExpression> requirements_;
  std::vector<Assumption> assumed_;
  std::map<ir::InstructionId, ObservedPair> pairs_;
  std::map<ir::BlockId, std::vector<const Observation*>> observed_; // in the original
  std::vector<unsigned> parameter_bytes_;

  // State for one launch and thread.
  std::mt19937_64 random_;
  launch::LaunchFacts facts_;
  std::array<uint32_t, 3> thread_{}, block_{};
  uint64_t memory_seed_ = 0;
  unsigned memory_kind_ = 0; // selects the initial memory: small bytes, extreme bytes, or any
  bool memory_is_known_ = true;
  std::map<std::pair<unsigned, UInt128>, std::optional<uint8_t>> written_; // by space and address
  std::map<std::string, std::optional<UInt128>> values_;                   // of loads and trip numbers, by the leaf's
                                                                           // name
  std::set<std::string> replaced_;                                         // leaves of loads without a counterpart
  std::map<std::string, std::optional<UInt128>> path_[2];                  // registers that depend on the path
  Evaluation evaluation_[2];
  size_t budget_ = 0; // remaining number of terms to evaluate
};

} // namespace ptxrewrite::prove
