// A block's bitwise instructions form a graph; an instruction with three inputs can replace any part of it that has
// three inputs and one result. Choosing the parts is the covering problem of look-up tables in FPGA mapping: cuts of at
// most three inputs are listed for each node, a cover is chosen by area flow and then improved node by node, counting
// exactly the operations that each choice adds. Parts may overlap: it can be cheaper to compute a shared value twice,
// which ptxas does not consider. Literals that are complements of each other are one input.
#include "transforms/composite/composite_logic.h"

#include "transforms/composite/composite_match.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace ptxrewrite::transforms::legal::composite {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;

using Input = uint32_t; // index into Graph::inputs: nodes and leaves of the graph
constexpr std::array<uint32_t, 3> leaf_tables{0xf0, 0xcc, 0xaa};

struct Cut {
  std::vector<Input> leaves; // sorted, at most three
  uint32_t table = 0;        // truth table over the leaves, in this order
  double flow = 0;
};

// The truth table of the same function over other leaves, which include all leaves of the cut.
uint32_t table_over(const Cut& cut, const std::vector<Input>& leaves) {
  uint32_t table = 0;
  for (unsigned row = 0; row < 8; ++row) {
    unsigned own = 0;
    for (size_t i = 0; i < cut.leaves.size(); ++i) {
      const size_t place = static_cast<size_t>(std::ranges::find(leaves, cut.leaves[i]) - leaves.begin());
      if (row >> (2 - place) & 1) own |= 4u >> i;
    }
    table |= (cut.table >> own & 1) << row;
  }
  return table;
}

class Cover {
public:
  Cover(Editor& editor, ir::BlockId block);

  size_t rewrite(bool force);
  size_t size();

private:
  struct Node {
    InstructionId instruction; // invalid: an input of the graph
    Operand operand;           // represents the node or input
    const LogicRule* row = nullptr;
    uint32_t literal = 0;      // for a lop3: its table
    std::vector<Cut> operands; // each operand as a cut over one node or none
    std::vector<Cut> cuts;
    uint32_t inner_readers = 0, readers = 0;
    double flow = 0;
    uint32_t references = 0; // number of references in the cover
    size_t chosen = 0;
    bool is_absorbed = false; // by ptxas, as far as can be predicted
    uint32_t component = 0;
  };

  const LogicRule* row_of(InstructionId id) const;
  Cut cut_of(const Operand& operand);
  void add(InstructionId id, const LogicRule& row);
  void list_cuts(Node& node);
  void merge_cuts(Node& node, size_t operand, std::vector<const Cut*>& chosen);
  void choose();
  void choose_exactly();
  size_t reference(Input input);
  size_t release(Input input);
  void estimate_assembler();
  uint32_t component_of(Input input);
  bool emit(Node& node);
  bool is_node(Input input) const { return static_cast<bool>(nodes_[input].instruction); }

  static constexpr size_t most_cuts = 16;
  static constexpr size_t exact_nodes = 12; // graphs up to this size are covered optimally
  Editor& editor_;
  std::vector<Node> nodes_;
  std::map<std::tuple<OperandKind, uint32_t, int64_t>, Input> inputs_;
  std::vector<Input> order_; // nodes in block order
};

const LogicRule* Cover::row_of(InstructionId id) const {
  if (!editor_.is_computation(id)) return nullptr;
  const std::string_view mnemonic = editor_.mnemonic(id);
  for (const LogicRule& row : logic_rules()) {
    if (row.pattern.text != mnemonic) continue;
    if (mnemonic == "lop3.b32" && !editor_.literal(editor_.sources(id)[3])) return nullptr;
    const ir::Value& value = editor_.function().values[editor_.result(id)];
    return ir::is_float(value.type) ? nullptr : &row;
  }
  return nullptr;
}

Cut Cover::cut_of(const Operand& operand) {
  Operand plain = operand;
  if (plain.is(OperandKind::value)) plain.flags = ir::OperandFlag::none;
  bool is_complement = false;
  if (const std::optional<uint32_t> number = editor_.literal(operand)) {
    if (*number == 0) return {{}, 0, 0};
    if (*number == UINT32_MAX) return {{}, 0xff, 0};
    is_complement = *number > ~*number;
    plain = literal_operand("lop3.b32", is_complement ? ~*number : *number);
  }
  const auto key = std::tuple(plain.kind, plain.id, plain.immediate);
  const auto [place, is_new] = inputs_.try_emplace(key, static_cast<Input>(nodes_.size()));
  if (is_new) {
    nodes_.emplace_back();
    nodes_.back().operand = plain;
  }
  return {{place->second}, is_complement ? ~leaf_tables[0] & 0xff : leaf_tables[0], 0};
}

void Cover::add(InstructionId id, const LogicRule& row) {
  const Operand result = Operand::value(editor_.result(id));
  const Input input = static_cast<Input>(nodes_.size());
  Node node;
  node.instruction = id;
  node.operand = result;
  node.row = &row;
  node.readers = editor_.readers(result.as_value());
  const std::span<const Operand> sources = editor_.sources(id);
  if (row.pattern.text == "lop3.b32") node.literal = *editor_.literal(sources[3]);
  nodes_.push_back(node);
  inputs_[{result.kind, result.id, result.immediate}] = input;
  for (size_t i = 0; i < std::min<size_t>(sources.size(), 3); ++i) {
    const Cut operand = cut_of(sources[i]);
    for (Input leaf : operand.leaves)
      ++nodes_[leaf].inner_readers;
    nodes_[input].operands.push_back(operand);
  }
  nodes_[input].component = input;
  order_.push_back(input);
}

Cover::Cover(Editor& editor, ir::BlockId block) : editor_(editor) {
  for (InstructionId id : editor.function().instructions_in(block))
    if (const LogicRule* row = row_of(id)) add(id, *row);
  for (Input input : order_)
    list_cuts(nodes_[input]);
}

void Cover::merge_cuts(Node& node, size_t operand, std::vector<const Cut*>& chosen) {
  if (operand < node.operands.size()) {
    const Cut& own = node.operands[operand];
    chosen.push_back(&own);
    merge_cuts(node, operand + 1, chosen);
    chosen.pop_back();
    if (own.leaves.empty() || !is_node(own.leaves[0])) return;
    for (const Cut& cut : nodes_[own.leaves[0]].cuts) {
      chosen.push_back(&cut);
      merge_cuts(node, operand + 1, chosen);
      chosen.pop_back();
    }
    return;
  }
  Cut merged;
  for (const Cut* cut : chosen)
    for (Input leaf : cut->leaves)
      if (auto place = std::ranges::lower_bound(merged.leaves, leaf); place == merged.leaves.end() || *place != leaf)
        merged.leaves.insert(place, leaf);
  if (merged.leaves.size() > 3) return;
  // An instruction can hold only one literal.
  auto is_literal = [&](Input leaf) { return nodes_[leaf].operand.is(OperandKind::integer); };
  if (std::ranges::count_if(merged.leaves, is_literal) > 1 && !node.cuts.empty()) return;
  std::array<uint32_t, 3> tables{};
  for (size_t i = 0; i < chosen.size(); ++i)
    tables[i] = table_over(*chosen[i], merged.leaves);
  const Meaning meaning{[&](const std::string& name) { return name == "n" ? node.literal : tables[name[0] - 'A']; },
                        {}};
  merged.table = evaluate(node.row->table, meaning) & 0xff;
  merged.flow = 1;
  for (Input leaf : merged.leaves)
    if (is_node(leaf)) merged.flow += nodes_[leaf].flow / std::max(1u, nodes_[leaf].readers);
  auto same = std::ranges::find(node.cuts, merged.leaves, &Cut::leaves);
  if (same == node.cuts.end()) node.cuts.push_back(std::move(merged));
}

void Cover::list_cuts(Node& node) {
  std::vector<const Cut*> chosen;
  merge_cuts(node, 0, chosen);
  std::ranges::stable_sort(node.cuts, {}, [](const Cut& cut) { return std::pair(cut.flow, cut.leaves.size()); });
  if (node.cuts.size() > most_cuts && order_.size() > exact_nodes) node.cuts.resize(most_cuts);
  node.flow = node.cuts.front().flow;
}

// Adds the node to the cover, together with the nodes that its cut needs. Returns the number of operations added.
size_t Cover::reference(Input input) {
  Node& node = nodes_[input];
  if (!is_node(input) || node.references++ != 0) return 0;
  size_t added = 1;
  for (Input leaf : node.cuts[node.chosen].leaves)
    added += reference(leaf);
  return added;
}

size_t Cover::release(Input input) {
  Node& node = nodes_[input];
  if (!is_node(input) || --node.references != 0) return 0;
  size_t removed = 1;
  for (Input leaf : node.cuts[node.chosen].leaves)
    removed += release(leaf);
  return removed;
}

void Cover::choose() {
  for (Node& node : nodes_)
    node.references = 0;
  for (Input input : order_)
    if (nodes_[input].readers > nodes_[input].inner_readers) reference(input);
  constexpr unsigned rounds = 3;
  for (unsigned round = 0; round < rounds; ++round)
    for (Input input : order_) {
      Node& node = nodes_[input];
      if (node.references == 0) continue;
      // The number of operations that this node would add, for each of its cuts.
      const uint32_t references = node.references;
      node.references = 1;
      release(input);
      size_t best = node.chosen, least = SIZE_MAX;
      for (size_t i = 0; i < node.cuts.size(); ++i) {
        node.chosen = i;
        const size_t size = reference(input);
        release(input);
        if (size < least || (size == least && i == best)) {
          least = size;
          best = i;
        }
      }
      node.chosen = best;
      reference(input);
      node.references = references;
    }
  if (order_.size() <= exact_nodes) choose_exactly();
}

// Tries all sets of nodes smaller than the cover so far: each node of a set needs a cut whose leaves are in the set.
void Cover::choose_exactly() {
  auto size = [&] { return std::ranges::count_if(order_, [&](Input input) { return nodes_[input].references != 0; }); };
  uint32_t outputs = 0;
  std::map<Input, unsigned> bits;
  for (size_t i = 0; i < order_.size(); ++i) {
    bits[order_[i]] = static_cast<unsigned>(i);
    if (nodes_[order_[i]].readers > nodes_[order_[i]].inner_readers) outputs |= 1u << i;
  }
  auto fitting_cut = [&](const Node& node, uint32_t set) {
    return std::ranges::find_if(node.cuts, [&](const Cut& cut) {
      return std::ranges::all_of(cut.leaves, [&](Input leaf) { return !is_node(leaf) || set >> bits[leaf] & 1; });
    });
  };
  uint32_t best = 0;
  int least = static_cast<int>(size());
  for (uint32_t set = 0; set < 1u << order_.size(); ++set) {
    if ((set & outputs) != outputs || std::popcount(set) >= least) continue;
    bool covers = true;
    for (Input input : order_)
      if (set >> bits[input] & 1) covers &= fitting_cut(nodes_[input], set) != nodes_[input].cuts.end();
    if (!covers) continue;
    best = set;
    least = std::popcount(set);
  }
  if (best == 0) return;
  for (Input input : order_) {
    Node& node = nodes_[input];
    node.references = best >> bits[input] & 1;
    if (node.references != 0) node.chosen = static_cast<size_t>(fitting_cut(node, best) - node.cuts.begin());
  }
}

// Estimates the result of ptxas: an operation absorbs operands that have no other reader, as long as three inputs
// suffice.
void Cover::estimate_assembler() {
  for (auto place = order_.rbegin(); place != order_.rend(); ++place) {
    Node& node = nodes_[*place];
    if (node.is_absorbed) continue;
    std::set<Input> inputs;
    for (const Cut& operand : node.operands)
      inputs.insert(operand.leaves.begin(), operand.leaves.end());
    for (bool again = true; again;) {
      again = false;
      for (Input input : inputs) {
        Node& inner = nodes_[input];
        if (!is_node(input) || inner.readers != 1) continue;
        std::set<Input> merged = inputs;
        merged.erase(input);
        for (const Cut& operand : inner.operands)
          merged.insert(operand.leaves.begin(), operand.leaves.end());
        if (merged.size() > 3) continue;
        inner.is_absorbed = true;
        inputs = std::move(merged);
        again = true;
        break;
      }
    }
  }
}

uint32_t Cover::component_of(Input input) {
  while (nodes_[input].component != input)
    input = nodes_[input].component = nodes_[nodes_[input].component].component;
  return input;
}

// Returns whether an instruction was written.
bool Cover::emit(Node& node) {
  const Cut& cut = node.cuts[node.chosen];
  // An instruction with only its own operands stays unchanged.
  std::set<Input> own;
  for (const Cut& operand : node.operands)
    own.insert(operand.leaves.begin(), operand.leaves.end());
  if (std::ranges::equal(own, cut.leaves) && cut.leaves.size() == node.operands.size()) return false;
  if (editor_.is_only_tested(editor_.result(node.instruction))) return false;
  editor_.begin(node.instruction);
  std::vector<Operand> operands;
  for (Input leaf : cut.leaves)
    operands.push_back(nodes_[leaf].operand);
  while (operands.size() < 3)
    operands.push_back(operands.empty() ? Operand::integer(0) : operands.back());
  operands.push_back(literal_operand("lop3.b32", table_over({cut.leaves, cut.table, 0}, cut.leaves)));
  editor_.finish("lop3.b32", operands);
  return true;
}

size_t Cover::rewrite(bool force) {
  if (order_.size() < 2) return 0;
  choose();
  estimate_assembler();
  for (Input input : order_)
    for (const Cut& operand : nodes_[input].operands)
      for (Input leaf : operand.leaves)
        if (is_node(leaf)) nodes_[component_of(leaf)].component = component_of(input);
  std::map<uint32_t, std::array<size_t, 3>> sizes; // number of operations: original, by ptxas, in the cover
  for (Input input : order_) {
    auto& [before, assembled, covered] = sizes[component_of(input)];
    ++before;
    assembled += !nodes_[input].is_absorbed;
    covered += nodes_[input].references != 0;
  }
  size_t made = 0;
  for (Input input : order_) {
    const auto& [before, assembled, covered] = sizes[component_of(input)];
    if (nodes_[input].references == 0 || !(force ? covered < before : covered < assembled)) continue;
    made += emit(nodes_[input]);
  }
  return made;
}

size_t Cover::size() {
  choose();
  return static_cast<size_t>(std::ranges::count_if(order_, [&](Input input) { return nodes_[input].references != 0; }));
}

} // namespace

size_t cover_logic(Editor& editor, ir::BlockId block, bool force) {
  return Cover(editor, block).rewrite(force);
}

size_t size_of_cover(Editor& editor, ir::BlockId block) {
  return Cover(editor, block).size();
}

} // namespace ptxrewrite::transforms::legal::composite
