// Replaces pairs by composite instructions; see composite_rewrite.h.
#include "transforms/composite/composite_rewrite.h"

#include "ir/core/builder.h"
#include "ir/forms/composite.h"

#include <set>

namespace ptxrewrite::transforms::composite {

namespace {

using ir::InstructionId;
using ir::Operand;
using ir::OperandKind;
using ir::ValueId;

class BlockRewriter {
public:
  BlockRewriter(ir::Function& function, ir::BlockId block, const BlockGraph& graph, const PairChoice& choice)
      : function_(function), block_(block), graph_(graph), choice_(choice), builder_(function),
        pair_of_(graph.nodes.size(), -1), value_of_(graph.nodes.size()) {}

  RewriteCounts run() {
    for (const Item& item : choice_.order)
      if (item.pair >= 0) {
        pair_of_[pair_at(item).first] = item.pair;
        pair_of_[pair_at(item).second] = item.pair;
      }
    find_slot_values();
    find_expanded();
    for (size_t i = 0; i < choice_.order.size(); ++i)
      write(i);
    for (InstructionId id : replaced_)
      function_.remove(id);
    return counts_;
  }

private:
  const Pair& pair_at(const Item& item) const { return graph_.problem.pairs[static_cast<size_t>(item.pair)]; }
  bool is_first(uint32_t node) const {
    return pair_of_[node] >= 0 && graph_.problem.pairs[static_cast<size_t>(pair_of_[node])].first == node;
  }

  // Results of first halves are only in the slot.
  void find_slot_values() {
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node)
      if (is_first(node) && graph_.nodes[node].result) slot_values_.insert(graph_.nodes[node].result.index());
  }

  // Instructions of several steps are written as steps if one of them is half of a pair, or reads the slot: then all
  // steps must be at their positions.
  void find_expanded() {
    for (uint32_t node = 0; node < graph_.nodes.size(); ++node) {
      if (graph_.nodes[node].expansion < 0) continue;
      bool reads_slot = false;
      for (const Source& source : graph_.nodes[node].sources)
        reads_slot |= source.step < 0 && in_slot(source.operand);
      if (pair_of_[node] >= 0 || reads_slot) expanded_.insert(graph_.nodes[node].expansion);
    }
    counts_.expanded = static_cast<uint32_t>(expanded_.size());
  }

  bool in_slot(const Operand& operand) const {
    return operand.is(OperandKind::value) && !operand.is_definition() && slot_values_.contains(operand.id);
  }

  bool is_step_to_write(const Node& node) const { return node.expansion >= 0 && expanded_.contains(node.expansion); }

  // An unchanged instruction is at the position of its last step.
  bool stays(const Item& item) const {
    const Node& node = graph_.nodes[item.node];
    return item.pair < 0 && !is_step_to_write(node) &&
           (node.expansion < 0 || node.expansion == static_cast<int32_t>(item.node));
  }

  // New instructions are inserted before the next unchanged one.
  void place_builder(size_t index) {
    for (size_t i = index; i < choice_.order.size(); ++i)
      if (stays(choice_.order[i])) {
        builder_.before(graph_.nodes[choice_.order[i].node].instruction);
        return;
      }
    builder_.at_end(block_);
  }

  Operand slot_operand() {
    ++counts_.slot_reads;
    return Operand::special(static_cast<uint32_t>(ir::SpecialRegister::crf));
  }

  Operand read(const Source& source) {
    if (source.step < 0) return in_slot(source.operand) ? slot_operand() : source.operand;
    if (is_first(static_cast<uint32_t>(source.step))) return slot_operand();
    return Operand::value(value_of_[static_cast<size_t>(source.step)]);
  }

  ValueId result_of(uint32_t node) {
    if (graph_.nodes[node].result) return graph_.nodes[node].result;
    return value_of_[node] = builder_.new_value(ir::ScalarType::b32, "%r");
  }

  void write(size_t index) {
    const Item& item = choice_.order[index];
    const Node& node = graph_.nodes[item.node];
    if (item.pair >= 0) {
      place_builder(index);
      write_composite(item);
    } else if (is_step_to_write(node)) {
      place_builder(index);
      write_step(item.node);
    } else if (stays(item)) {
      read_from_slot(node.instruction);
    }
  }

  // Replaced instructions are removed at the end, because their operands are needed until then.
  void replace(uint32_t node) { replaced_.insert(graph_.nodes[node].instruction); }

  void write_composite(const Item& item) {
    const Pair& pair = pair_at(item);
    const Node &early = graph_.nodes[pair.first], &late = graph_.nodes[pair.second];
    const Fusion& fusion = graph_.fusions[static_cast<size_t>(item.pair)];
    std::vector<Operand> sources;
    for (const Source& source : early.sources)
      sources.push_back(read(source));
    for (unsigned i = 0; i < late.sources.size(); ++i)
      if (i != fusion.position) sources.push_back(read(late.sources[i]));
    emit(fusion.mnemonic, late.instruction, pair.second, sources);
    replace(pair.first);
    replace(pair.second);
    ++counts_.composites;
  }

  void write_step(uint32_t node) {
    std::vector<Operand> sources;
    for (const Source& source : graph_.nodes[node].sources)
      sources.push_back(read(source));
    emit(graph_.nodes[node].mnemonic, graph_.nodes[node].instruction, node, sources);
    replace(node);
  }

  void emit(std::string_view mnemonic, InstructionId original, uint32_t node, const std::vector<Operand>& sources) {
    builder_.standing_for(original).unguarded();
    const ir::Instruction& instruction = function_.instructions[original];
    if (instruction.guard) builder_.guarded_by(instruction.guard, instruction.guard_negated);
    std::vector<Operand> operands{Operand::definition(result_of(node))};
    operands.insert(operands.end(), sources.begin(), sources.end());
    std::span<const Operand> before = function_.operands_of(original);
    if (instruction.guard && before.back().has(ir::OperandFlag::old_value)) operands.push_back(before.back());
    builder_.emit(mnemonic, operands);
  }

  void read_from_slot(InstructionId id) {
    std::span<const Operand> before = function_.operands_of(id);
    std::vector<Operand> operands(before.begin(), before.end());
    bool changed = false;
    for (Operand& operand : operands)
      if (in_slot(operand)) {
        operand = slot_operand();
        changed = true;
      }
    if (changed) function_.set_operands(id, operands);
  }

  ir::Function& function_;
  ir::BlockId block_;
  const BlockGraph& graph_;
  const PairChoice& choice_;
  ir::Builder builder_;
  std::vector<int32_t> pair_of_;   // by node
  std::vector<ValueId> value_of_;  // by node: results of the steps that are written
  std::set<uint32_t> slot_values_; // ValueIds
  std::set<int32_t> expanded_;     // last steps
  std::set<InstructionId> replaced_;
  RewriteCounts counts_;
};

} // namespace

RewriteCounts rewrite_block(ir::Function& function, ir::BlockId block, const BlockGraph& graph,
                            const PairChoice& choice) {
  return BlockRewriter(function, block, graph, choice).run();
}

} // namespace ptxrewrite::transforms::composite
