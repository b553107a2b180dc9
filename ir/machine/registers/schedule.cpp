// List scheduling of blocks, see schedule.h.
#include "ir/machine/registers/schedule.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <set>
#include <tuple>

namespace ptxrewrite::ir {

namespace {

// Number of ready instructions that are examined per step: large blocks have thousands.
constexpr size_t window = 64;
constexpr uint32_t free_predicates = 6;

} // namespace

// A block's instructions and the registers that they read and write, numbered from 0.
struct ScheduleProblem {
  struct Value {
    uint32_t units = 0; // registers
    bool is_predicate = false;
    bool live_out = false;
    uint32_t readers = 0;
  };
  BlockDependences graph;
  std::vector<Value> values;
  std::vector<std::vector<uint32_t>> reads, writes; // by node
  std::vector<bool> far;                            // by node: a load of global memory
  uint32_t live_out = 0;                            // registers at the end of the block
  uint32_t size() const { return static_cast<uint32_t>(graph.instructions.size()); }
};

namespace {

using Problem = ScheduleProblem;

// Numbers of live registers and predicates.
struct Live {
  int registers = 0, predicates = 0;
  void add(const Problem::Value& value, int sign) {
    registers += sign * static_cast<int>(value.units);
    predicates += value.is_predicate ? sign : 0;
  }
  int cost() const { return registers + std::max(0, predicates - static_cast<int>(free_predicates)); }
};

// Liveness in a walk from the end of the block to its start.
class UpwardLiveness {
public:
  explicit UpwardLiveness(const Problem& problem) : problem_(problem), is_live_(problem.values.size()) {
    now_.registers = static_cast<int>(problem.live_out);
    for (size_t i = 0; i < problem.values.size(); ++i) {
      is_live_[i] = problem.values[i].live_out;
      if (is_live_[i] && problem.values[i].is_predicate) ++now_.predicates;
    }
    most_ = now_.cost();
  }
  // The change of liveness from after the instruction to before it.
  Live change_by(uint32_t node) const {
    Live change;
    for (uint32_t value : problem_.writes[node])
      if (is_live_[value]) change.add(problem_.values[value], -1);
    for (uint32_t value : problem_.reads[node])
      if (!is_live_[value]) change.add(problem_.values[value], +1);
    return change;
  }
  void step(uint32_t node) {
    for (uint32_t value : problem_.writes[node])
      if (!is_live_[value]) set(value, true);
    most_ = std::max(most_, now_.cost());
    for (uint32_t value : problem_.writes[node])
      set(value, false);
    for (uint32_t value : problem_.reads[node])
      if (!is_live_[value]) set(value, true);
    most_ = std::max(most_, now_.cost());
  }
  int most() const { return most_; }

private:
  void set(uint32_t value, bool live) {
    if (is_live_[value] == live) return;
    is_live_[value] = live;
    now_.add(problem_.values[value], live ? +1 : -1);
  }
  const Problem& problem_;
  std::vector<bool> is_live_;
  Live now_;
  int most_ = 0;
};

int most_live_of(const Problem& problem, const std::vector<uint32_t>& order) {
  UpwardLiveness live(problem);
  for (size_t i = order.size(); i-- > 0;)
    live.step(order[i]);
  return live.most();
}

std::vector<uint32_t> as_it_stands(const Problem& problem) {
  std::vector<uint32_t> order(problem.size());
  for (uint32_t i = 0; i < order.size(); ++i)
    order[i] = i;
  return order;
}

std::vector<uint32_t> order_for_few_registers(const Problem& problem) {
  std::vector<uint32_t> waiting(problem.size()), order;
  std::set<uint32_t, std::greater<>> ready;
  for (uint32_t node = 0; node < problem.size(); ++node) {
    waiting[node] = static_cast<uint32_t>(problem.graph.successors[node].size());
    if (waiting[node] == 0) ready.insert(node);
  }
  UpwardLiveness live(problem);
  while (!ready.empty()) {
    std::pair<int, int> least{INT32_MAX, 0};
    uint32_t best = *ready.begin();
    size_t seen = 0;
    for (auto node = ready.begin(); node != ready.end() && seen < window; ++node, ++seen) {
      const Live change = live.change_by(*node);
      const std::pair<int, int> cost{change.registers, change.predicates};
      if (cost >= least) continue; // the last of equal ones
      least = cost;
      best = *node;
    }
    ready.erase(best);
    live.step(best);
    order.push_back(best);
    for (const Dependence& before : problem.graph.predecessors[best])
      if (--waiting[before.node] == 0) ready.insert(before.node);
  }
  std::ranges::reverse(order);
  const std::vector<uint32_t> old = as_it_stands(problem);
  return most_live_of(problem, order) < most_live_of(problem, old) ? order : old;
}

// By node: the level, and 0 for loads and the instructions that they need in their own level, 1 for others.
using Band = std::pair<uint32_t, uint32_t>;

std::vector<Band> bands_of(const Problem& problem) {
  std::vector<uint32_t> level(problem.size());
  std::vector<bool> feeds(problem.size());
  std::vector<Band> bands(problem.size());
  for (uint32_t node = 0; node < problem.size(); ++node)
    for (const Dependence& before : problem.graph.predecessors[node])
      level[node] = std::max(level[node], level[before.node] + (before.data && problem.far[before.node] ? 1 : 0));
  for (uint32_t node = problem.size(); node-- > 0;) {
    feeds[node] = problem.far[node];
    uint32_t first_reader = UINT32_MAX;
    for (const Dependence& behind : problem.graph.successors[node]) {
      feeds[node] = feeds[node] || (feeds[behind.node] && level[behind.node] == level[node]);
      if (behind.data) first_reader = std::min(first_reader, bands[behind.node].first);
    }
    bands[node] = {feeds[node] || first_reader == UINT32_MAX ? level[node] : first_reader, feeds[node] ? 0 : 1};
  }
  return bands;
}

// Schedules from the start of the block to its end.
class EarlyLoads {
public:
  EarlyLoads(const Problem& problem, int limit)
      : problem_(problem), limit_(limit), bands_(bands_of(problem)), waiting_(problem.size()),
        unread_(problem.values.size()) {
    int change = 0;
    std::vector<bool> written(problem.values.size());
    for (uint32_t node = 0; node < problem.size(); ++node) {
      waiting_[node] = static_cast<uint32_t>(problem.graph.predecessors[node].size());
      if (waiting_[node] == 0) ready_.insert(key(node));
      for (uint32_t value : problem.writes[node])
        written[value] = true;
    }
    for (size_t i = 0; i < problem.values.size(); ++i) {
      const Problem::Value& value = problem.values[i];
      unread_[i] = value.readers + (value.live_out ? 1 : 0);
      change += static_cast<int>(value.units) * ((value.live_out ? 1 : 0) - (written[i] ? 0 : 1));
    }
    live_ = static_cast<int>(problem.live_out) - change; // at the start
  }

  std::vector<uint32_t> run() {
    std::vector<uint32_t> order;
    while (!ready_.empty()) {
      const uint32_t node = choose();
      ready_.erase(key(node));
      step(node);
      order.push_back(node);
      for (const Dependence& behind : problem_.graph.successors[node])
        if (--waiting_[behind.node] == 0) ready_.insert(key(behind.node));
    }
    return order;
  }

private:
  using Key = std::tuple<Band, uint32_t>;
  Key key(uint32_t node) const { return {bands_[node], node}; }

  uint32_t choose() const {
    const uint32_t first = std::get<1>(*ready_.begin());
    if (live_ + written_by(first) <= limit_ || change_by(first) <= 0) return first;
    uint32_t best = first;
    int least = change_by(first);
    size_t seen = 0;
    for (auto candidate = ready_.begin(); candidate != ready_.end() && seen < window; ++candidate, ++seen) {
      const uint32_t node = std::get<1>(*candidate);
      if (change_by(node) >= least) continue;
      least = change_by(node);
      best = node;
    }
    return best;
  }
  int written_by(uint32_t node) const {
    int units = 0;
    for (uint32_t value : problem_.writes[node])
      units += static_cast<int>(problem_.values[value].units);
    return units;
  }
  int change_by(uint32_t node) const {
    int change = written_by(node);
    for (uint32_t value : problem_.reads[node])
      if (unread_[value] == 1) change -= static_cast<int>(problem_.values[value].units);
    return change;
  }
  void step(uint32_t node) {
    live_ += change_by(node);
    for (uint32_t value : problem_.reads[node])
      --unread_[value];
    for (uint32_t value : problem_.writes[node])
      if (unread_[value] == 0) live_ -= static_cast<int>(problem_.values[value].units);
  }

  const Problem& problem_;
  int limit_;
  std::vector<Band> bands_;
  std::vector<uint32_t> waiting_; // by node: number of unscheduled predecessors
  std::vector<uint32_t> unread_;  // by value: remaining readers, including the end of the block
  std::set<Key> ready_;
  int live_ = 0;
};

} // namespace

Scheduler::Scheduler(const Function& function, uint32_t compute_capability)
    : Scheduler(function, std::make_shared<const Lowering>(lower_as_written(function, compute_capability))) {}

Scheduler::Scheduler(const Function& function, std::shared_ptr<const Lowering> lowering)
    : function_(function), flow_(function), values_(function, flow_, std::move(lowering)), dependences_(function),
      live_out_(function.blocks.size()) {
  std::vector<int> change(2 * values_.index_count() + 2);
  for (ValueId value : function.values.ids())
    for (const LiveRange& range : values_.ranges(value)) {
      const int units = values_.is_predicate(value) ? 0 : static_cast<int>(values_.units(value));
      change[range.begin] += units;
      change[range.end] -= units;
    }
  int now = 0;
  uint32_t point = 0;
  for (BlockId block : function.layout) {
    for (; point <= 2 * values_.end_of(block); ++point) {
      now += change[point];
      most_live_ = std::max(most_live_, static_cast<uint32_t>(now));
    }
    live_out_[block.index()] = static_cast<uint32_t>(now);
  }
}

Scheduler::~Scheduler() = default;

const ScheduleProblem& Scheduler::problem_of(BlockId block) const {
  problems_.resize(function_.blocks.size());
  if (const auto& known = problems_[block.index()]) return *known;
  number_.resize(function_.values.size(), UINT32_MAX);
  auto problem = std::make_unique<Problem>();
  problem->graph = dependences_.of(block);
  problem->live_out = live_out_[block.index()];
  std::vector<ValueId> numbered;
  auto number_of = [&](ValueId value) {
    uint32_t& number = number_[value.index()];
    if (number == UINT32_MAX) {
      number = static_cast<uint32_t>(problem->values.size());
      numbered.push_back(value);
      const bool predicate = values_.is_predicate(value);
      problem->values.push_back(
          {predicate ? 0 : values_.units(value), predicate, values_.live_at(value, 2 * values_.end_of(block))});
    }
    return number;
  };
  for (InstructionId id : problem->graph.instructions) {
    std::vector<uint32_t>&reads = problem->reads.emplace_back(), &writes = problem->writes.emplace_back();
    for (ValueId value : values_.reads(id)) {
      reads.push_back(number_of(value));
      ++problem->values[reads.back()].readers;
    }
    for (ValueId value : values_.writes(id))
      writes.push_back(number_of(value));
    problem->far.push_back(function_.instructions[id].kind == InstructionKind::real &&
                           is_long_latency(function_.form_of(id)) && !writes.empty());
  }
  for (ValueId value : numbered)
    number_[value.index()] = UINT32_MAX;
  return *(problems_[block.index()] = std::move(problem));
}

std::vector<InstructionId> Scheduler::order_of(BlockId block, const ScheduleOptions& options) const {
  if (!flow_.reachable(block)) {
    std::vector<InstructionId> as_is;
    for (InstructionId id : function_.instructions_in(block))
      as_is.push_back(id);
    return as_is;
  }
  const Problem& problem = problem_of(block);
  const std::vector<uint32_t> places = options.goal == ScheduleGoal::few_registers
                                           ? order_for_few_registers(problem)
                                           : EarlyLoads(problem, static_cast<int>(options.live_limit)).run();
  assert(places.size() == problem.size()); // a definition stands before its uses
  std::vector<InstructionId> order;
  for (uint32_t place : places)
    order.push_back(problem.graph.instructions[place]);
  return order;
}

uint32_t Scheduler::most_live(BlockId block, const std::vector<InstructionId>& order) const {
  const Problem& problem = problem_of(block);
  std::map<InstructionId, uint32_t> place;
  for (uint32_t i = 0; i < problem.size(); ++i)
    place[problem.graph.instructions[i]] = i;
  std::vector<uint32_t> places;
  for (InstructionId id : order)
    places.push_back(place.at(id));
  return static_cast<uint32_t>(most_live_of(problem, places));
}

bool reorder(Function& function, BlockId block, const std::vector<InstructionId>& order) {
  size_t place = 0;
  bool moves = false;
  for (InstructionId id : function.instructions_in(block))
    moves |= order[place++] != id;
  if (!moves) return false;
  for (InstructionId id : order)
    function.remove(id);
  for (InstructionId id : order)
    function.append(block, id);
  return true;
}

bool schedule(Function& function, uint32_t compute_capability, const ScheduleOptions& options) {
  std::vector<std::vector<InstructionId>> orders;
  {
    Scheduler scheduler(function, compute_capability);
    for (BlockId block : function.layout)
      orders.push_back(scheduler.order_of(block, options));
  }
  bool moved = false;
  for (size_t i = 0; i < orders.size(); ++i)
    moved |= reorder(function, function.layout[i], orders[i]);
  return moved;
}

} // namespace ptxrewrite::ir
