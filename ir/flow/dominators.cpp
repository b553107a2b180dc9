// Lengauer and Tarjan's dominator algorithm on index graphs: forwards for dominators, and backwards from a virtual exit
// for post-dominators; Cooper, Harvey and Kennedy's on the reverse post-order.
#include "ir/flow/dominators.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t none = UINT32_MAX;
constexpr size_t few_blocks = 48; // for which the quadratic algorithm is faster

// Successor and predecessor lists of vertices 0 .. count-1.
class Graph {
public:
  Graph(uint32_t count, const std::vector<std::pair<uint32_t, uint32_t>>& edges) : count_(count) {
    fill(edges, successor_start_, successors_, false);
    fill(edges, predecessor_start_, predecessors_, true);
  }
  uint32_t count() const { return count_; }
  std::span<const uint32_t> successors(uint32_t vertex) const { return list(successor_start_, successors_, vertex); }
  std::span<const uint32_t> predecessors(uint32_t vertex) const {
    return list(predecessor_start_, predecessors_, vertex);
  }

private:
  void fill(const std::vector<std::pair<uint32_t, uint32_t>>& edges, std::vector<uint32_t>& start,
            std::vector<uint32_t>& targets, bool backwards) {
    start.assign(count_ + 1, 0);
    for (auto [from, to] : edges)
      ++start[(backwards ? to : from) + 1];
    std::partial_sum(start.begin(), start.end(), start.begin());
    targets.resize(edges.size());
    std::vector<uint32_t> next(start.begin(), start.end() - 1);
    for (auto [from, to] : edges)
      targets[next[backwards ? to : from]++] = backwards ? from : to;
  }
  static std::span<const uint32_t> list(const std::vector<uint32_t>& start, const std::vector<uint32_t>& targets,
                                        uint32_t vertex) {
    return std::span(targets).subspan(start[vertex], start[vertex + 1] - start[vertex]);
  }

  uint32_t count_;
  std::vector<uint32_t> successor_start_, successors_, predecessor_start_, predecessors_;
};

// Immediate dominators of a graph from `root`. All vectors except `number_` and the result are indexed by depth-first
// number.
class LengauerTarjan {
public:
  LengauerTarjan(const Graph& graph, uint32_t root) : graph_(graph), number_(graph.count(), none) { search(root); }

  // Per vertex; `none` for the root and for vertices that it does not reach.
  std::vector<uint32_t> run() {
    uint32_t size = static_cast<uint32_t>(vertex_.size());
    std::vector<uint32_t> dominator(size, none), bucket_head(size, none), bucket_next(size, none);
    for (uint32_t v = size; v-- > 1;) {
      for (uint32_t p : graph_.predecessors(vertex_[v]))
        if (uint32_t w = number_[p]; w != none) semi_[v] = std::min(semi_[v], semi_[best(w)]);
      bucket_next[v] = std::exchange(bucket_head[semi_[v]], v);
      uint32_t up = parent_[v];
      ancestor_[v] = up;
      for (uint32_t w = std::exchange(bucket_head[up], none); w != none; w = bucket_next[w]) {
        uint32_t u = best(w);
        dominator[w] = semi_[u] < semi_[w] ? u : up;
      }
    }
    std::vector<uint32_t> result(graph_.count(), none);
    for (uint32_t v = 1; v < size; ++v) {
      if (dominator[v] != semi_[v]) dominator[v] = dominator[dominator[v]];
      result[vertex_[v]] = vertex_[dominator[v]];
    }
    return result;
  }

private:
  void search(uint32_t root) {
    struct Frame {
      uint32_t number;
      uint32_t next;
    };
    std::vector<Frame> stack;
    auto enter = [&](uint32_t vertex, uint32_t parent) {
      uint32_t number = static_cast<uint32_t>(vertex_.size());
      number_[vertex] = number;
      vertex_.push_back(vertex);
      parent_.push_back(parent);
      stack.push_back({number, 0});
    };
    enter(root, none);
    while (!stack.empty()) {
      Frame& frame = stack.back();
      std::span<const uint32_t> successors = graph_.successors(vertex_[frame.number]);
      if (frame.next == successors.size()) {
        stack.pop_back();
        continue;
      }
      uint32_t to = successors[frame.next++];
      if (number_[to] == none) enter(to, frame.number);
    }
    semi_.resize(vertex_.size());
    std::iota(semi_.begin(), semi_.end(), 0u);
    label_ = semi_;
    ancestor_.assign(vertex_.size(), none);
  }

  // The vertex with the smallest semidominator on the linked path above `v`, `v` included.
  uint32_t best(uint32_t v) {
    if (ancestor_[v] == none) return v;
    path_.clear();
    for (uint32_t u = v; ancestor_[ancestor_[u]] != none; u = ancestor_[u])
      path_.push_back(u);
    while (!path_.empty()) {
      uint32_t u = path_.back(), up = ancestor_[u];
      path_.pop_back();
      if (semi_[label_[up]] < semi_[label_[u]]) label_[u] = label_[up];
      ancestor_[u] = ancestor_[up];
    }
    return label_[v];
  }

  const Graph& graph_;
  std::vector<uint32_t> number_, vertex_, parent_, semi_, label_, ancestor_, path_;
};

// The forest that `parent` describes: children of each vertex in the order of `order`, and depth-first numbers.
struct Tree {
  std::vector<std::vector<uint32_t>> children;
  std::vector<uint32_t> enter, leave, depth;

  Tree(const std::vector<uint32_t>& parent, const std::vector<uint32_t>& order, uint32_t root)
      : children(parent.size()), enter(parent.size(), none), leave(parent.size(), none), depth(parent.size(), 0) {
    for (uint32_t vertex : order)
      if (parent[vertex] != none) children[parent[vertex]].push_back(vertex);
    uint32_t clock = 0;
    std::vector<std::pair<uint32_t, uint32_t>> stack{{root, 0}};
    enter[root] = clock++;
    while (!stack.empty()) {
      auto& [vertex, next] = stack.back();
      if (next == children[vertex].size()) {
        leave[vertex] = clock++;
        stack.pop_back();
        continue;
      }
      uint32_t child = children[vertex][next++];
      depth[child] = depth[vertex] + 1;
      enter[child] = clock++;
      stack.push_back({child, 0});
    }
  }
};

// Adds an edge to the virtual exit from one block of each endless loop, that is, of each terminal strongly connected
// component of the blocks that reach no exit. `reaches` flags those that do; indices are reverse post-order positions.
class EndlessLoops {
public:
  EndlessLoops(const Function& function, const ControlFlow& flow, const std::vector<bool>& reaches)
      : function_(function), flow_(flow), index_(reaches.size(), none), low_(reaches.size(), 0),
        component_(reaches.size(), none) {
    for (uint32_t vertex = 0; vertex < reaches.size(); ++vertex)
      if (!reaches[vertex] && index_[vertex] == none) visit(vertex);
  }
  const std::vector<uint32_t>& representatives() const { return representatives_; }

private:
  uint32_t successor(uint32_t vertex, size_t i) const {
    return flow_.position(function_.edges[successors(vertex)[i]].to);
  }
  std::span<const EdgeId> successors(uint32_t vertex) const {
    return function_.successors(flow_.reverse_postorder()[vertex]);
  }

  // Tarjan's algorithm with an explicit stack. It visits no vertex outside the set, which is closed under successors.
  void visit(uint32_t root) {
    std::vector<std::pair<uint32_t, uint32_t>> work{{root, 0}};
    begin(root);
    while (!work.empty()) {
      auto& [vertex, next] = work.back();
      if (next < successors(vertex).size()) {
        uint32_t to = successor(vertex, next++);
        if (index_[to] == none) {
          begin(to);
          work.push_back({to, 0});
        } else if (component_[to] == none) {
          low_[vertex] = std::min(low_[vertex], index_[to]);
        }
        continue;
      }
      uint32_t done = vertex;
      work.pop_back();
      if (!work.empty()) low_[work.back().first] = std::min(low_[work.back().first], low_[done]);
      if (low_[done] == index_[done]) finish(done);
    }
  }
  void begin(uint32_t vertex) {
    index_[vertex] = low_[vertex] = clock_++;
    pending_.push_back(vertex);
  }
  void finish(uint32_t root) {
    size_t first = pending_.size();
    do
      component_[pending_[--first]] = components_;
    while (pending_[first] != root);
    bool terminal = true;
    uint32_t last = root;
    for (size_t i = first; i < pending_.size(); ++i) {
      last = std::max(last, pending_[i]);
      for (size_t k = 0; k < successors(pending_[i]).size(); ++k)
        terminal &= component_[successor(pending_[i], k)] == components_;
    }
    if (terminal) representatives_.push_back(last);
    pending_.resize(first);
    ++components_;
  }

  const Function& function_;
  const ControlFlow& flow_;
  std::vector<uint32_t> index_, low_, component_, pending_, representatives_;
  uint32_t clock_ = 0, components_ = 0;
};

bool leaves_function(const Function& function, BlockId block) {
  if (function.successors(block).empty()) return true;
  for (InstructionId id : function.instructions_in(block))
    if (function.instructions[id].kind == InstructionKind::real && function.form_of(id).effects.terminates) return true;
  return false;
}

std::vector<uint32_t> indices(const std::vector<BlockId>& blocks) {
  std::vector<uint32_t> result;
  result.reserve(blocks.size());
  for (BlockId block : blocks)
    result.push_back(block.index());
  return result;
}

// Of two vertices in a tree whose parents have smaller numbers.
uint32_t common_ancestor(std::span<const uint32_t> parent, uint32_t a, uint32_t b) {
  while (a != b)
    if (a > b)
      a = parent[a];
    else
      b = parent[b];
  return a;
}

// By position in the reverse post-order: whether the virtual exit succeeds the block.
std::vector<uint8_t> exits(const Function& function, const ControlFlow& flow) {
  const std::vector<BlockId>& order = flow.reverse_postorder();
  std::vector<uint8_t> leaves(order.size());
  std::vector<bool> reaches(order.size());
  std::vector<uint32_t> work;
  for (uint32_t at = 0; at < order.size(); ++at)
    if (leaves_function(function, order[at])) {
      leaves[at] = reaches[at] = true;
      work.push_back(at);
    }
  size_t reached = work.size();
  while (!work.empty()) {
    const BlockId block = order[work.back()];
    work.pop_back();
    for (EdgeId edge : flow.predecessors(block)) {
      const uint32_t from = flow.position(function.edges[edge].from);
      if (from == none || reaches[from]) continue;
      reaches[from] = true;
      ++reached;
      work.push_back(from);
    }
  }
  if (reached < order.size()) {
    const EndlessLoops endless(function, flow, reaches);
    for (uint32_t position : endless.representatives())
      leaves[position] = true;
  }
  return leaves;
}

// The virtual exit and the positions of blocks, in reverse post-order of a walk backwards from the exit.
std::vector<uint32_t> backwards_from_exit(const Function& function, const ControlFlow& flow,
                                          std::span<const uint8_t> leaves) {
  const std::vector<BlockId>& order = flow.reverse_postorder();
  struct Frame {
    uint32_t vertex, next;
  };
  std::vector<Frame> stack;
  std::vector<bool> seen(order.size());
  std::vector<uint32_t> sequence;
  stack.reserve(order.size() + 1);
  sequence.reserve(order.size() + 1);
  const auto enter = [&](uint32_t vertex) {
    if (vertex == none || seen[vertex]) return;
    seen[vertex] = true;
    stack.push_back({vertex, 0});
  };
  const auto exit = static_cast<uint32_t>(order.size());
  stack.push_back({exit, 0});
  while (!stack.empty()) {
    const uint32_t vertex = stack.back().vertex, next = stack.back().next++;
    const bool is_exit = vertex == exit;
    const std::span<const EdgeId> edges = is_exit ? std::span<const EdgeId>() : flow.predecessors(order[vertex]);
    if (next == (is_exit ? order.size() : edges.size())) {
      sequence.push_back(vertex);
      stack.pop_back();
    } else if (!is_exit) {
      enter(flow.position(function.edges[edges[next]].from));
    } else if (leaves[next]) {
      enter(next);
    }
  }
  std::reverse(sequence.begin(), sequence.end());
  return sequence;
}

// Immediate dominators by position in the reverse post-order (Cooper, Harvey and Kennedy, section 3): passes over the
// blocks until nothing changes, two for reducible graphs.
std::vector<uint32_t> by_iteration(const Function& function, const ControlFlow& flow) {
  const std::vector<BlockId>& order = flow.reverse_postorder();
  std::vector<uint32_t> immediate(order.size(), none);
  if (order.empty()) return immediate;
  immediate[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = 1; at < order.size(); ++at) {
      uint32_t common = none;
      for (EdgeId edge : flow.predecessors(order[at])) {
        uint32_t other = flow.position(function.edges[edge].from);
        if (other == none || immediate[other] == none) continue;
        common = common == none ? other : common_ancestor(immediate, common, other);
      }
      changed |= std::exchange(immediate[at], common) != common;
    }
  }
  return immediate;
}

// The same for any number of blocks.
std::vector<uint32_t> by_semidominators(const Function& function, const ControlFlow& flow) {
  std::vector<std::pair<uint32_t, uint32_t>> edges;
  const std::vector<BlockId>& order = flow.reverse_postorder();
  for (uint32_t at = 0; at < order.size(); ++at)
    for (EdgeId edge : function.successors(order[at]))
      edges.push_back({at, flow.position(function.edges[edge].to)});
  return LengauerTarjan(Graph(static_cast<uint32_t>(order.size()), edges), 0).run();
}

BlockId to_block(uint32_t index, uint32_t outside) {
  return index == none || index == outside ? BlockId() : BlockId(index);
}

} // namespace

DominatorTree::DominatorTree(const Function& function, const ControlFlow& flow) {
  number(function, flow,
         flow.reverse_postorder().size() <= few_blocks ? by_iteration(function, flow)
                                                       : by_semidominators(function, flow));
}

void DominatorTree::number(const Function& function, const ControlFlow& flow, std::span<const uint32_t> immediate) {
  const std::vector<BlockId>& order = flow.reverse_postorder();
  const auto count = static_cast<uint32_t>(function.blocks.size()), size = static_cast<uint32_t>(order.size());
  parent_.resize(count);
  child_start_.assign(count + 1, 0);
  enter_.assign(count, none);
  last_.assign(count, none);
  depth_.assign(count, 0);
  if (size == 0) return;
  // Blocks come behind their dominators: sizes of subtrees from the end, places from the start.
  std::vector<uint32_t> below(size, 1), next(size);
  for (uint32_t at = size; at-- > 1;) {
    below[immediate[at]] += below[at];
    ++child_start_[order[immediate[at]].index() + 1];
  }
  std::partial_sum(child_start_.begin(), child_start_.end(), child_start_.begin());
  children_.resize(size - 1);
  std::vector<uint32_t> place(child_start_.begin(), child_start_.end() - 1);
  for (uint32_t at = 0; at < size; ++at) {
    const uint32_t block = order[at].index();
    uint32_t enter = 0;
    if (at > 0) {
      const uint32_t up = immediate[at];
      enter = std::exchange(next[up], next[up] + below[at]);
      parent_[block] = order[up];
      depth_[block] = depth_[order[up].index()] + 1;
      children_[place[order[up].index()]++] = order[at];
    }
    next[at] = enter + 1;
    enter_[block] = enter;
    last_[block] = enter + below[at] - 1;
  }
}

bool DominatorTree::dominates(BlockId upper, BlockId lower) const {
  if (upper == lower) return true;
  uint32_t u = upper.index(), l = lower.index();
  if (enter_[u] == none || enter_[l] == none) return false;
  return enter_[u] <= enter_[l] && enter_[l] <= last_[u];
}

PostDominatorTree::PostDominatorTree(const Function& function, const ControlFlow& flow) {
  const auto count = static_cast<uint32_t>(function.blocks.size());
  parent_.resize(count);
  enter_.assign(count, none);
  leave_.assign(count, none);
  if (function.layout.empty()) return;
  const std::vector<uint8_t> leaves = exits(function, flow);
  if (leaves.size() <= few_blocks)
    walk_back(function, flow, leaves);
  else
    use_semidominators(function, flow, leaves);
}

void PostDominatorTree::use_semidominators(const Function& function, const ControlFlow& flow,
                                           std::span<const uint8_t> leaves) {
  const auto count = static_cast<uint32_t>(function.blocks.size());
  const std::vector<BlockId>& order = flow.reverse_postorder();
  std::vector<std::pair<uint32_t, uint32_t>> edges; // backwards
  for (BlockId block : order) {
    if (leaves[flow.position(block)]) edges.push_back({count, block.index()});
    for (EdgeId edge : function.successors(block))
      edges.push_back({function.edges[edge].to.index(), block.index()});
  }
  std::vector<uint32_t> parent = LengauerTarjan(Graph(count + 1, edges), count).run();
  std::vector<uint32_t> backwards = indices(order);
  std::reverse(backwards.begin(), backwards.end());
  Tree tree(parent, backwards, count);
  for (uint32_t i = 0; i < count; ++i)
    parent_[i] = to_block(parent[i], count);
  enter_ = std::move(tree.enter);
  leave_ = std::move(tree.leave);
}

// As by_iteration(), on the graph backwards: vertices are positions in the reverse post-order, and the virtual exit.
void PostDominatorTree::walk_back(const Function& function, const ControlFlow& flow, std::span<const uint8_t> leaves) {
  const std::vector<BlockId>& order = flow.reverse_postorder();
  const auto exit = static_cast<uint32_t>(order.size()), size = exit + 1;
  std::vector<uint32_t> sequence = backwards_from_exit(function, flow, leaves), number(size), immediate(size, none);
  for (uint32_t at = 0; at < size; ++at)
    number[sequence[at]] = at;
  immediate[0] = 0;
  for (bool changed = true; changed;) {
    changed = false;
    for (uint32_t at = 1; at < size; ++at) {
      uint32_t common = leaves[sequence[at]] ? 0 : none;
      for (EdgeId edge : function.successors(order[sequence[at]])) {
        uint32_t other = number[flow.position(function.edges[edge].to)];
        if (immediate[other] != none) common = common == none ? other : common_ancestor(immediate, common, other);
      }
      changed |= std::exchange(immediate[at], common) != common;
    }
  }
  // Vertices come behind their post-dominators: sizes of subtrees from the end, places from the start.
  std::vector<uint32_t> below(size, 1), next(size);
  for (uint32_t at = size; at-- > 1;)
    below[immediate[at]] += below[at];
  next[0] = 1;
  for (uint32_t at = 1; at < size; ++at) {
    const uint32_t block = order[sequence[at]].index(), up = immediate[at];
    const uint32_t enter = std::exchange(next[up], next[up] + below[at]);
    next[at] = enter + 1;
    enter_[block] = enter;
    leave_[block] = enter + below[at] - 1;
    if (up != 0) parent_[block] = order[sequence[up]];
  }
}

bool PostDominatorTree::post_dominates(BlockId lower, BlockId upper) const {
  if (lower == upper) return true;
  uint32_t l = lower.index(), u = upper.index();
  if (enter_[l] == none || enter_[u] == none) return false;
  return enter_[l] <= enter_[u] && leave_[u] <= leave_[l];
}

} // namespace ptxrewrite::ir
