// The choice of pairs; see composite_choice.h.
//
// A block is divided into segments that share no pair and no slot. Each segment is solved greedily: pairs with the
// fewest alternatives come first, each at the latest position that the others allow. Then exchanges are tried: one pair
// is removed for two others. Small segments are finally searched exhaustively for a better result: all matchings with
// more gain, all positions.
#include "transforms/composite/composite_choice.h"

#include <algorithm>
#include <cassert>
#include <optional>

namespace ptxrewrite::transforms::composite {

namespace {

constexpr uint32_t none = UINT32_MAX;

using Readers = std::vector<std::vector<uint32_t>>; // by node

Readers readers_of(const Problem& problem) {
  Readers readers(problem.size());
  for (uint32_t node = 0; node < problem.size(); ++node)
    for (uint32_t read : problem.reads[node])
      readers[read].push_back(node);
  return readers;
}

// An order of items under construction.
class Schedule {
public:
  Schedule(const Problem& problem, const Readers& readers)
      : problem_(&problem), readers_(&readers), host_(problem.size(), -1), place_(problem.size()) {
    for (uint32_t node = 0; node < problem.size(); ++node) {
      order_.push_back({node, -1});
      place_[node] = node;
    }
  }

  const std::vector<Item>& order() const { return order_; }
  int64_t gain() const { return gain_; }
  bool is_free(uint32_t node) const { return host_[node] < 0; }
  int32_t host(uint32_t node) const { return host_[node]; } // the pair that contains the node, or -1

  // Inserts the pair at a position that is valid while all others stay in place: preferably that of its second half,
  // then earlier, then later.
  bool add(uint32_t index) {
    const Pair& pair = problem_->pairs[index];
    if (!is_free(pair.first) || !is_free(pair.second)) return false;
    return at_every_place(index, [&] { return keeps_slot(index); });
  }

  // Splits the pair into two nodes, each at its own position.
  void remove(uint32_t index) {
    const Pair& pair = problem_->pairs[index];
    gain_ -= pair.gain;
    order_.erase(order_.begin() + place_[pair.second]);
    host_[pair.first] = host_[pair.second] = -1;
    // Nodes keep their order, and pairs stay after their operands: before the next node, after all pairs there.
    for (uint32_t node : {pair.first, pair.second}) {
      auto next = std::ranges::find_if(order_, [&](const Item& item) { return item.pair < 0 && item.node > node; });
      order_.insert(next, {node, -1});
    }
    renumber();
    settle(pair);
  }

  // Tries all positions of the pair in turn, until `inside` returns true.
  template <class Inside> bool at_every_place(uint32_t index, Inside&& inside) {
    const Pair& pair = problem_->pairs[index];
    const Window window = window_of(pair);
    const std::vector<Item> before = order_;
    auto fits_at = [&](uint32_t place) {
      insert(index, place);
      if (inside()) return true;
      order_ = before;
      host_[pair.first] = host_[pair.second] = -1;
      gain_ -= pair.gain;
      renumber();
      return false;
    };
    for (uint32_t place = std::min(window.own, window.high) + 1; place-- > window.low;)
      if (fits_at(place)) return true;
    for (uint32_t place = std::max(window.own + 1, window.low); place <= window.high; ++place)
      if (fits_at(place)) return true;
    return false;
  }

  // Does every pair's intermediate result stay in the slot as long as it is read?
  bool slots_are_kept() const {
    for (uint32_t place = 0; place < order_.size(); ++place)
      if (order_[place].pair >= 0 && !interval_is_clear(place)) return false;
    return true;
  }

  bool dependences_are_kept() const {
    for (uint32_t node = 0; node < problem_->size(); ++node)
      for (uint32_t read : problem_->reads[node])
        if (place_[read] > place_[node] || (place_[read] == place_[node] && host_[node] < 0)) return false;
    return true;
  }

private:
  void renumber() {
    for (uint32_t place = 0; place < order_.size(); ++place) {
      const Item& item = order_[place];
      place_[item.node] = place;
      if (item.pair >= 0) place_[problem_->pairs[static_cast<size_t>(item.pair)].first] = place;
    }
  }

  // Pairs that read a node that was split off may now be too early: move them after it.
  void settle(const Pair& freed) {
    for (uint32_t node : {freed.first, freed.second})
      for (uint32_t reader : (*readers_)[node])
        if (host_[reader] >= 0 && place_[reader] < place_[node]) {
          Item item = order_[place_[reader]];
          order_.erase(order_.begin() + place_[reader]);
          renumber();
          order_.insert(order_.begin() + place_[node] + 1, item);
          renumber();
        }
  }

  // Range of positions for the pair, as indices into the order without the pair's two nodes: after all its operands,
  // before all its readers. `own`: the position of its second half.
  struct Window {
    uint32_t low = 1, high = 0, own = 0;
  };
  Window window_of(const Pair& pair) const {
    uint32_t low = 0, high = static_cast<uint32_t>(order_.size());
    for (uint32_t half : {pair.first, pair.second}) {
      for (uint32_t read : problem_->reads[half])
        if (read != pair.first) low = std::max(low, place_[read] + 1);
      for (uint32_t reader : (*readers_)[half])
        if (reader != pair.second) high = std::min(high, place_[reader]);
    }
    auto without = [&](uint32_t place) {
      return place - (place_[pair.first] < place ? 1 : 0) - (place_[pair.second] < place ? 1 : 0);
    };
    if (low > high) return {};
    return {without(low), without(high), without(place_[pair.second])};
  }

  void insert(uint32_t index, uint32_t place) {
    const Pair& pair = problem_->pairs[index];
    order_.erase(order_.begin() + place_[pair.second]);
    order_.erase(order_.begin() + place_[pair.first]);
    order_.insert(order_.begin() + place, {pair.second, static_cast<int32_t>(index)});
    host_[pair.first] = host_[pair.second] = static_cast<int32_t>(index);
    gain_ += pair.gain;
    renumber();
  }

  bool overwrites(const Item& item) const { return item.pair >= 0 || problem_->clobbers[item.node]; }

  // Is the slot kept from the pair at `place` to the last item that reads its intermediate result?
  bool interval_is_clear(uint32_t place) const {
    const Pair& pair = problem_->pairs[static_cast<size_t>(order_[place].pair)];
    uint32_t last = place;
    for (uint32_t reader : (*readers_)[pair.first])
      if (reader != pair.second) {
        if (place_[reader] <= place) return false;
        last = std::max(last, place_[reader]);
      }
    for (uint32_t between = place + 1; between < last; ++between)
      if (overwrites(order_[between])) return false;
    return true;
  }

  // After an insertion: checks the pair's own interval, and those of earlier pairs, which it may interrupt or whose
  // readers it has moved.
  bool keeps_slot(uint32_t index) const {
    const Pair& pair = problem_->pairs[index];
    uint32_t place = place_[pair.second];
    if (!interval_is_clear(place)) return false;
    for (uint32_t before = place; before-- > 0;)
      if (overwrites(order_[before])) {
        if (order_[before].pair >= 0 && !interval_is_clear(before)) return false;
        break;
      }
    for (uint32_t half : {pair.first, pair.second})
      for (uint32_t read : problem_->reads[half])
        if (read != pair.first && host_[read] >= 0 && !interval_is_clear(place_[read])) return false;
    return true;
  }

  const Problem* problem_;
  const Readers* readers_;
  std::vector<int32_t> host_;   // by node: the pair that contains it, or -1
  std::vector<uint32_t> place_; // by node: index into order_
  std::vector<Item> order_;
  int64_t gain_ = 0;
};

// One segment of a block.
class Segment {
public:
  Segment(Problem problem, const Effort& effort)
      : problem_(std::move(problem)), readers_(readers_of(problem_)), effort_(effort) {
    pairs_of_.resize(problem_.size());
    for (uint32_t i = 0; i < problem_.pairs.size(); ++i) {
      pairs_of_[problem_.pairs[i].first].push_back(i);
      pairs_of_[problem_.pairs[i].second].push_back(i);
    }
  }

  PairChoice solve() {
    keep_best(greedy());
    if (problem_.pairs.size() <= effort_.exact_pairs) search();
    return std::move(best_);
  }

private:
  void keep_best(const Schedule& schedule) {
    if (!best_.order.empty() && schedule.gain() <= best_.gain) return;
    best_ = {schedule.order(), schedule.gain()};
  }

  // The number of candidates that share a node with the pair.
  size_t freedom(const Pair& pair) const { return pairs_of_[pair.first].size() + pairs_of_[pair.second].size(); }

  Schedule greedy() {
    std::vector<uint32_t> by_worth(problem_.pairs.size());
    for (uint32_t i = 0; i < by_worth.size(); ++i)
      by_worth[i] = i;
    // Fewest alternatives first, so that a chain is paired from its ends.
    std::ranges::stable_sort(by_worth, [&](uint32_t a, uint32_t b) {
      const Pair &x = problem_.pairs[a], &y = problem_.pairs[b];
      size_t free_x = freedom(x), free_y = freedom(y);
      return free_x != free_y ? free_x < free_y : x.gain != y.gain ? x.gain > y.gain : x.first < y.first;
    });
    Schedule schedule(problem_, readers_);
    for (uint32_t index : by_worth)
      schedule.add(index);
    constexpr int most_rounds = 4;
    for (int round = 0; round < most_rounds && exchange(schedule); ++round) {
    }
    return schedule;
  }

  // Removes one pair if others, with more gain in total, can replace it.
  bool exchange(Schedule& schedule) {
    bool improved = false;
    for (uint32_t wanted = 0; wanted < problem_.pairs.size(); ++wanted) {
      const Pair& pair = problem_.pairs[wanted];
      std::vector<uint32_t> in_the_way;
      for (uint32_t node : {pair.first, pair.second})
        if (int32_t host = schedule.host(node); host >= 0) in_the_way.push_back(static_cast<uint32_t>(host));
      if (in_the_way.size() == 2 && in_the_way[0] == in_the_way[1]) continue; // already in the order
      if (in_the_way.size() > 1) continue;
      improved |= improves(schedule, wanted, in_the_way);
    }
    return improved;
  }

  bool improves(Schedule& schedule, uint32_t wanted, const std::vector<uint32_t>& in_the_way) {
    Schedule trial = schedule;
    std::vector<uint32_t> freed;
    for (uint32_t index : in_the_way) {
      trial.remove(index);
      freed = {problem_.pairs[index].first, problem_.pairs[index].second};
    }
    if (!trial.slots_are_kept() || !trial.dependences_are_kept() || !trial.add(wanted)) return false;
    for (uint32_t node : freed)
      for (uint32_t index : pairs_of_[node])
        trial.add(index);
    if (trial.gain() <= schedule.gain()) return false;
    schedule = std::move(trial);
    return true;
  }

  // --- exhaustive search ---

  void search() {
    std::vector<uint32_t> chosen;
    std::vector<bool> taken(problem_.size());
    match(0, 0, chosen, taken);
  }

  // An upper bound for the gain of the pairs from `next` on: each free node contributes at most half of its best pair.
  int64_t bound(uint32_t next, const std::vector<bool>& taken) const {
    std::vector<int32_t> most(problem_.size());
    for (uint32_t i = next; i < problem_.pairs.size(); ++i) {
      const Pair& pair = problem_.pairs[i];
      if (taken[pair.first] || taken[pair.second]) continue;
      for (uint32_t node : {pair.first, pair.second})
        most[node] = std::max(most[node], pair.gain);
    }
    int64_t sum = 0;
    for (int32_t gain : most)
      sum += gain;
    return sum / 2;
  }

  void match(uint32_t next, int64_t gain, std::vector<uint32_t>& chosen, std::vector<bool>& taken) {
    if (steps_ >= effort_.steps || gain + bound(next, taken) <= best_.gain) return;
    ++steps_;
    if (next == problem_.pairs.size()) {
      Schedule schedule(problem_, readers_);
      place(schedule, chosen, 0);
      return;
    }
    const Pair& pair = problem_.pairs[next];
    if (!taken[pair.first] && !taken[pair.second]) {
      taken[pair.first] = taken[pair.second] = true;
      chosen.push_back(next);
      match(next + 1, gain + pair.gain, chosen, taken);
      chosen.pop_back();
      taken[pair.first] = taken[pair.second] = false;
    }
    match(next + 1, gain, chosen, taken);
  }

  // Tries all positions for the chosen pairs, one after the other. A later pair can move a reader to an earlier
  // position and so shorten an interval; therefore slots are checked only when all pairs are placed.
  bool place(Schedule& schedule, const std::vector<uint32_t>& chosen, size_t next) {
    if (++steps_ >= effort_.steps) return false;
    if (next == chosen.size()) {
      if (!schedule.slots_are_kept()) return false;
      keep_best(schedule);
      return true;
    }
    return schedule.at_every_place(chosen[next], [&] { return place(schedule, chosen, next + 1); });
  }

  Problem problem_;
  Readers readers_;
  Effort effort_;
  std::vector<std::vector<uint32_t>> pairs_of_; // by node
  PairChoice best_;
  uint64_t steps_ = 0;
};

// Nodes [begin, end) as a separate problem. No pair crosses the limits.
Problem part(const Problem& problem, uint32_t begin, uint32_t end) {
  Problem result;
  result.clobbers.assign(problem.clobbers.begin() + begin, problem.clobbers.begin() + end);
  for (uint32_t node = begin; node < end; ++node) {
    std::vector<uint32_t>& reads = result.reads.emplace_back();
    for (uint32_t read : problem.reads[node])
      if (read >= begin) reads.push_back(read - begin);
  }
  return result;
}

// By node: the last position that a pair and the readers of its intermediate result reach.
std::vector<uint32_t> reach_of_nodes(const Problem& problem) {
  std::vector<uint32_t> last_reader(problem.size());
  for (uint32_t node = 0; node < problem.size(); ++node) {
    last_reader[node] = node;
    for (uint32_t read : problem.reads[node])
      last_reader[read] = std::max(last_reader[read], node);
  }
  std::vector<uint32_t> reach(problem.size());
  for (uint32_t node = 0; node < problem.size(); ++node)
    reach[node] = node;
  for (const Pair& pair : problem.pairs)
    reach[pair.first] = std::max({reach[pair.first], pair.second, last_reader[pair.first]});
  return reach;
}

} // namespace

PairChoice choose_pairs(const Problem& problem, const Effort& effort) {
  PairChoice result;
  std::vector<uint32_t> reach = reach_of_nodes(problem);
  size_t next_pair = 0;
  std::vector<uint32_t> by_first(problem.pairs.size());
  for (uint32_t i = 0; i < by_first.size(); ++i)
    by_first[i] = i;
  std::ranges::stable_sort(by_first, {}, [&](uint32_t i) { return problem.pairs[i].first; });
  const uint32_t last = std::min(problem.end, problem.size());
  auto add_alone = [&](uint32_t from, uint32_t to) {
    for (uint32_t node = from; node < to; ++node)
      result.order.push_back({node, -1});
  };
  add_alone(0, problem.begin);
  for (uint32_t begin = problem.begin; begin < last;) {
    uint32_t end = begin + 1;
    for (uint32_t node = begin; node < end; ++node)
      end = std::min(std::max(end, reach[node] + 1), last);
    Problem own = part(problem, begin, end);
    std::vector<uint32_t> original;
    for (; next_pair < by_first.size() && problem.pairs[by_first[next_pair]].first < end; ++next_pair) {
      const Pair& pair = problem.pairs[by_first[next_pair]];
      own.pairs.push_back({pair.first - begin, pair.second - begin, pair.gain});
      original.push_back(by_first[next_pair]);
    }
    PairChoice choice = Segment(std::move(own), effort).solve();
    for (const Item& item : choice.order)
      result.order.push_back(
          {item.node + begin, item.pair < 0 ? -1 : static_cast<int32_t>(original[static_cast<size_t>(item.pair)])});
    result.gain += choice.gain;
    begin = end;
  }
  add_alone(std::max(problem.begin, last), problem.size());
  assert(is_valid(problem, result.order));
  return result;
}

bool is_valid(const Problem& problem, const std::vector<Item>& order) {
  std::vector<uint32_t> place(problem.size(), none);
  uint32_t last_node = none;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const Item& item = order[i];
    if (item.node >= problem.size() || place[item.node] != none) return false;
    place[item.node] = i;
    if (item.pair < 0) {
      if (last_node != none && item.node < last_node) return false;
      last_node = item.node;
      continue;
    }
    const Pair& pair = problem.pairs[static_cast<size_t>(item.pair)];
    if (pair.second != item.node || place[pair.first] != none) return false;
    place[pair.first] = i;
  }
  int64_t writer = -1; // the pair whose intermediate result is in the slot
  std::vector<int64_t> pair_of(problem.size(), -1);
  for (const Item& item : order)
    if (item.pair >= 0) pair_of[problem.pairs[static_cast<size_t>(item.pair)].first] = item.pair;
  for (uint32_t i = 0; i < order.size(); ++i) {
    const Item& item = order[i];
    std::vector<uint32_t> halves{item.node};
    if (item.pair >= 0) halves.push_back(problem.pairs[static_cast<size_t>(item.pair)].first);
    for (uint32_t half : halves)
      for (uint32_t read : problem.reads[half]) {
        bool own = item.pair >= 0 && pair_of[read] == item.pair;
        if (own) continue;
        if (place[read] == none || place[read] >= i) return false;
        if (pair_of[read] >= 0 && writer != pair_of[read]) return false; // an intermediate result that was overwritten
      }
    if (item.pair >= 0) writer = item.pair;
    if (item.pair < 0 && problem.clobbers[item.node]) writer = -1;
  }
  return std::ranges::none_of(place, [](uint32_t at) { return at == none; });
}

} // namespace ptxrewrite::transforms::composite
