// A solver for sparse, optimistic dataflow problems over SSA form.
//
// Each value has a state; it starts as "not visited" and is recomputed when a state it depends on changes. The work
// list is ordered by reverse post-order and revisits the block parameters of a loop header only after all blocks of the
// loop are up to date, so that a parameter is never merged with the stale state of a back edge.
//
//   struct Problem {
//     using State = ...;                                     // cheap to copy and compare
//     State visit_parameter(BlockId, unsigned index, bool back_edges_ready);
//     void visit_instruction(InstructionId, auto&& set);     // calls set(ValueId, State) for each definition
//   };
//   SparseDataflow<Problem> flow(function, control_flow, def_use, problem);
//   flow.solve();   flow[value] -> const State*: null if not visited
//
// Problems whose states depend on more than operands request visits with schedule_uses_of / schedule_instruction /
// schedule_parameter. The problem ensures termination: each state may change a bounded number of times.
#pragma once

#include "ir/flow/cfg.h"
#include "ir/flow/def_use.h"

#include <bit>
#include <optional>
#include <vector>

namespace ptxrewrite::ir {

template <class Problem> class SparseDataflow {
public:
  using State = typename Problem::State;

  SparseDataflow(const Function& function, const ControlFlow& flow, const DefUse& def_use, Problem& problem)
      : function_(function), flow_(flow), def_use_(def_use), problem_(problem), states_(function.values.size()),
        visited_(function.values.size(), false), instruction_point_(function.instructions.size(), UINT32_MAX),
        parameter_point_(function.blocks.size(), UINT32_MAX), recheck_point_(function.blocks.size(), UINT32_MAX) {
    number_points();
  }

  // Null while the value has not been visited (the optimistic initial state).
  const State* operator[](ValueId value) const { return visited_[value.index()] ? &states_[value.index()] : nullptr; }

  void solve() {
    for (size_t point = 0; point < points_.size(); ++point)
      if (!points_[point].recheck) schedule(static_cast<uint32_t>(point));
    while (next_pending()) {
      uint32_t point = cursor_;
      pending_[point / 64] &= ~(uint64_t(1) << (point % 64));
      visit(points_[point]);
    }
  }

  void schedule_instruction(InstructionId id) { schedule(instruction_point_[id.index()]); }
  void schedule_parameter(BlockId block, unsigned index) {
    if (parameter_point_[block.index()] != UINT32_MAX) schedule(parameter_point_[block.index()] + index);
  }
  void schedule_uses_of(ValueId value) {
    for (const Use& use : def_use_.uses(value)) {
      if (use.instruction) {
        schedule_instruction(use.instruction);
      } else if (use.edge) {
        const Edge& edge = function_.edges[use.edge];
        bool back = flow_.position(edge.to) <= flow_.position(edge.from);
        uint32_t base = (back ? recheck_point_ : parameter_point_)[edge.to.index()];
        if (base != UINT32_MAX) schedule(base + use.index);
      }
    }
  }
  // Requests a visit of the parameter that includes its back edges, once the loop is up to date.
  void schedule_recheck(BlockId header, unsigned index) {
    if (recheck_point_[header.index()] != UINT32_MAX) schedule(recheck_point_[header.index()] + index);
  }

  uint64_t visits() const { return visits_; }

private:
  struct Point {
    InstructionId instruction; // invalid: the point is a parameter of `block`
    BlockId block;
    uint32_t parameter = 0;
    bool recheck = false; // the visit includes the back edges
  };

  void number_points() {
    const auto& order = flow_.reverse_postorder();
    // Parameters of a header are rechecked after the source block of the header's last back edge.
    std::vector<BlockId> last_source(function_.blocks.size());
    std::vector<std::vector<BlockId>> headers_after(function_.blocks.size());
    for (BlockId block : order)
      for (EdgeId edge : flow_.predecessors(block)) {
        BlockId from = function_.edges[edge].from;
        if (!flow_.reachable(from) || flow_.position(from) < flow_.position(block)) continue;
        BlockId& last = last_source[block.index()];
        if (!last || flow_.position(last) < flow_.position(from)) last = from;
      }
    for (BlockId block : order)
      if (BlockId last = last_source[block.index()]) headers_after[last.index()].push_back(block);
    for (BlockId block : order) {
      parameter_point_[block.index()] = static_cast<uint32_t>(points_.size());
      add_parameter_points(block, false);
      for (InstructionId id : function_.instructions_in(block)) {
        instruction_point_[id.index()] = static_cast<uint32_t>(points_.size());
        points_.push_back({id, block, 0, false});
      }
      // Inner loops are rechecked first.
      auto& headers = headers_after[block.index()];
      for (size_t i = headers.size(); i-- > 0;) {
        recheck_point_[headers[i].index()] = static_cast<uint32_t>(points_.size());
        add_parameter_points(headers[i], true);
      }
    }
    pending_.assign(points_.size() / 64 + 1, 0);
  }

  void add_parameter_points(BlockId block, bool recheck) {
    for (uint32_t i = 0; i < function_.parameters(block).size(); ++i)
      points_.push_back({{}, block, i, recheck});
  }

  void schedule(uint32_t point) {
    if (point == UINT32_MAX) return;
    pending_[point / 64] |= uint64_t(1) << (point % 64);
    if (point < cursor_) cursor_ = point;
  }

  bool next_pending() {
    size_t word = cursor_ / 64;
    if (word >= pending_.size()) return false;
    uint64_t bits = pending_[word] & (~uint64_t(0) << (cursor_ % 64));
    while (bits == 0) {
      if (++word == pending_.size()) return false;
      bits = pending_[word];
    }
    cursor_ = static_cast<uint32_t>(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
    return true;
  }

  void visit(const Point& point) {
    ++visits_;
    if (point.instruction) {
      problem_.visit_instruction(point.instruction, [this](ValueId value, const State& state) { set(value, state); });
      return;
    }
    bool changed = set(function_.parameters(point.block)[point.parameter],
                       problem_.visit_parameter(point.block, point.parameter, point.recheck));
    // A new state must be checked against the back edges after they have used it, even if no state in the loop changes.
    if (changed || !point.recheck) schedule_recheck(point.block, point.parameter);
  }

  bool set(ValueId value, const State& state) {
    if (visited_[value.index()] && states_[value.index()] == state) return false;
    states_[value.index()] = state;
    visited_[value.index()] = true;
    schedule_uses_of(value);
    return true;
  }

  const Function& function_;
  const ControlFlow& flow_;
  const DefUse& def_use_;
  Problem& problem_;
  std::vector<State> states_;
  std::vector<bool> visited_;
  std::vector<Point> points_;
  std::vector<uint32_t> instruction_point_, parameter_point_, recheck_point_;
  std::vector<uint64_t> pending_;
  uint32_t cursor_ = 0;
  uint64_t visits_ = 0;
};

} // namespace ptxrewrite::ir
