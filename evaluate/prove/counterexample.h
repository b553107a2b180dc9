// Looks for a launch and a thread in which a rewritten kernel computes something else than the original: both kernels'
// terms are evaluated along the way that one thread of the original goes, in chosen launches that the variant's
// predicates admit. Only what is found here is called "not equal"; what the solver finds may rest on unknowns that are
// none.
#pragma once

#include "evaluate/prove/evaluation.h"
#include "evaluate/prove/symbolic.h"
#include "launch/predicate.h"

#include <random>

namespace ptxrewrite::prove {

// Instructions that are compared: the original's and its partner's, which have equally many terms.
struct ObservedPair {
  const Observation* before = nullptr;
  const Observation* after = nullptr;
};

struct Counterexample {
  ir::InstructionId instruction; // of the original
  std::string text;              // the values that differ, and the launch
};

// Of one side: what registers hold depends on its own way through joins.
struct Side {
  const ir::Function& function;
  const SymbolicKernel& kernel;
};

class CounterexampleSearch {
public:
  // `requirements`: launch predicates of the variant, all of which hold where it runs. `assumed`: what the user vouched
  // for, as ranges of exact values.
  CounterexampleSearch(const Terms& terms, const Side& before, const Side& after, const LaunchSize& size,
                       std::vector<launch::LaunchExpression> requirements, std::vector<Assumption> assumed);

  // `hints`: values by the names of leaves ("P2", "%ntid.x"), as the solver had them; tried before random launches.
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
  std::map<ir::BlockId, std::vector<const Observation*>> observed_; // of the original
  std::vector<unsigned> parameter_bytes_;

  // One launch and thread.
  std::mt19937_64 random_;
  launch::LaunchFacts facts_;
  std::array<uint32_t, 3> thread_{}, block_{};
  uint64_t memory_seed_ = 0;
  unsigned memory_kind_ = 0; // small bytes, edges of bytes, any
  bool memory_is_known_ = true;
  std::map<std::pair<unsigned, UInt128>, std::optional<uint8_t>> written_; // by space and address
  std::map<std::string, std::optional<UInt128>> values_;                   // loads and trips, by the leaf's name
  std::set<std::string> replaced_;                                         // leaves of loads without a partner
  std::map<std::string, std::optional<UInt128>> path_[2];                  // registers that depend on the way
  Evaluation evaluation_[2];
  size_t budget_ = 0; // terms that may still be evaluated
};

} // namespace ptxrewrite::prove
