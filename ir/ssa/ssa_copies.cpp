// Copies for old values and block arguments: see ssa_copies.h.
#include "ir/ssa/ssa_copies.h"

#include "ir/core/builder.h"
#include "ir/core/module.h"
#include "ir/ssa/ssa_steps.h"

#include <algorithm>
#include <unordered_map>

namespace ptxrewrite::ir {

namespace {

std::string_view copy_mnemonic(ScalarType type) {
  if (type == ScalarType::pred) return "mov.pred";
  switch (bit_width(type)) {
  case 16:
    return "mov.b16";
  case 32:
    return "mov.b32";
  case 64:
    return "mov.b64";
  case 128:
    return "mov.b128";
  default:
    return "cvt.u8.u8"; // mov does not take 8-bit registers
  }
}

bool same_kind(const Function& function, ValueId a, ValueId b) {
  const Value &x = function.values[a], &y = function.values[b];
  return x.type == y.type && x.register_class == y.register_class;
}

} // namespace

InstructionId make_copy(Function& function, ValueId destination, ValueId source) {
  Instruction instruction;
  instruction.form = known_form(copy_mnemonic(function.values[destination].type));
  Operand operands[] = {Operand::definition(destination), Operand::value(source)};
  return function.add_instruction(instruction, operands);
}

bool separate_old_values(Function& function, const LiveRanges& ranges) {
  bool changed = false;
  std::vector<ValueId> definitions;
  for (BlockId block : ranges.flow().reverse_postorder())
    for (InstructionId id : function.instructions_in(block)) {
      if (!function.keeps_old_values(id)) continue;
      definitions.clear();
      for_each_definition(function, id, [&](ValueId value) { definitions.push_back(value); });
      size_t first = 0, count = function.operands_of(id).size();
      while (first < count && !function.operands_of(id)[first].has(OperandFlag::old_value))
        ++first;
      for (size_t i = 0; i < definitions.size() && first + i < count; ++i) {
        ValueId old = function.operands_of(id)[first + i].as_value();
        if (function.values[old].is_undefined) continue;
        bool twice = false;
        for (size_t k = 0; k < i; ++k)
          twice |= function.operands_of(id)[first + k].as_value() == old;
        if (!twice && same_kind(function, definitions[i], old) && !ranges.live_behind(old, definitions[i])) continue;
        Value row = function.values[definitions[i]];
        ValueId copy = function.add_value(row);
        function.insert_before(id, make_copy(function, copy, old));
        function.operands_of(id)[first + i].id = copy.index();
        changed = true;
      }
    }
  return changed;
}

namespace {

struct Copy {
  ValueId destination, source;
};

class EdgeCopies {
public:
  EdgeCopies(Function& function, const LiveRanges& ranges, const RegisterClasses& classes)
      : function_(function), ranges_(ranges), classes_(classes), names_(function.module()) {}

  void run() {
    std::vector<EdgeId> edges;
    for (BlockId block : function_.layout)
      for (EdgeId edge : function_.successors(block))
        edges.push_back(edge);
    for (EdgeId edge : edges) {
      collect(edge);
      if (copies_.empty()) continue;
      BlockId from = function_.edges[edge].from, to = function_.edges[edge].to;
      if (may_precede_terminator(edge)) {
        InstructionId terminator = function_.terminator(from);
        bool branch = terminator && function_.form_of(terminator).effects.branch;
        emit([&](InstructionId copy) {
          if (branch)
            function_.insert_before(terminator, copy);
          else
            function_.append(from, copy);
        });
      } else if (ranges_.flow().predecessors(to).size() == 1) {
        InstructionId first = function_.blocks[to].first;
        emit([&](InstructionId copy) {
          if (first)
            function_.insert_before(first, copy);
          else
            function_.append(to, copy);
        });
      } else {
        BlockId middle = split(edge);
        InstructionId branch = function_.terminator(middle);
        emit([&](InstructionId copy) {
          if (branch)
            function_.insert_before(branch, copy);
          else
            function_.append(middle, copy);
        });
      }
    }
    rebuild_layout();
  }

private:
  // Collects the parameters of an edge whose register differs from their argument's.
  void collect(EdgeId edge) {
    copies_.clear();
    std::span<const ValueId> parameters = function_.parameters(function_.edges[edge].to);
    std::span<const ValueId> arguments = function_.arguments(edge);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (function_.values[arguments[i]].is_undefined) continue;
      ValueId destination = classes_.representative(parameters[i]), source = classes_.representative(arguments[i]);
      if (destination != source) copies_.push_back({destination, source});
    }
  }

  bool is_destination(ValueId value) const {
    if (function_.values[value].is_undefined) return false;
    ValueId wanted = classes_.representative(value);
    return std::any_of(copies_.begin(), copies_.end(), [&](const Copy& copy) { return copy.destination == wanted; });
  }

  // True if the copies of this edge may execute before the terminator, whichever successor is taken.
  bool may_precede_terminator(EdgeId edge) const {
    BlockId from = function_.edges[edge].from;
    InstructionId terminator = function_.terminator(from);
    bool seen = false;
    if (terminator && function_.form_of(terminator).effects.branch)
      for_each_use(function_, terminator, [&](ValueId value) { seen |= is_destination(value); });
    for (EdgeId other : function_.successors(from)) {
      if (other == edge || seen) continue;
      BlockId to = function_.edges[other].to;
      for (ValueId value : function_.arguments(other))
        seen |= is_destination(value);
      for (ValueId value : function_.parameters(to))
        seen |= is_destination(value);
      if (to.index() < original_blocks_)
        for (ValueId value : ranges_.liveness().live_in(to))
          seen |= is_destination(value);
      else
        seen = true; // already split; not analysed further
    }
    return !seen;
  }

  // Emits the parallel copy as a sequence, with one extra register per cycle.
  template <class Place> void emit(Place&& place) {
    readers_.clear();
    for (const Copy& copy : copies_)
      ++readers_[copy.source.index()];
    std::vector<Copy> pending = copies_, ready;
    auto is_ready = [&](const Copy& copy) {
      auto found = readers_.find(copy.destination.index());
      return found == readers_.end() || found->second == 0;
    };
    auto sweep = [&] {
      auto blocked = std::stable_partition(pending.begin(), pending.end(), is_ready);
      ready.assign(pending.begin(), blocked);
      pending.erase(pending.begin(), blocked);
      for (const Copy& copy : ready) {
        place(make_copy(function_, copy.destination, copy.source));
        --readers_[copy.source.index()];
      }
      return !ready.empty();
    };
    while (!pending.empty()) {
      if (sweep()) continue;
      // Only cycles remain: save the first destination's old contents in a new register and redirect its readers.
      ValueId lost = pending.front().destination;
      Value row = function_.values[lost];
      ValueId saved = function_.add_value(row);
      place(make_copy(function_, saved, lost));
      for (Copy& copy : pending)
        if (copy.source == lost) {
          copy.source = saved;
          ++readers_[saved.index()];
          --readers_[lost.index()];
        }
    }
  }

  // ---- splitting

  BlockId split(EdgeId edge) {
    if (layout_index_.empty()) prepare_layout();
    BlockId from = function_.edges[edge].from, to = function_.edges[edge].to;
    std::span<const EdgeId> old = function_.successors(from);
    size_t which = static_cast<size_t>(std::find(old.begin(), old.end(), edge) - old.begin());
    bool fall_through = function_.blocks[from].falls_through && which + 1 == old.size();
    BlockId middle = function_.add_block();
    function_.blocks[middle].in_layout = true;
    std::vector<EdgeId> successors(old.begin(), old.end());
    successors[which] = function_.add_edge(from, middle);
    function_.set_successors(from, successors, function_.blocks[from].falls_through);
    bool falls = true;
    if (fall_through) {
      behind_[from.index()].push_back(middle);
    } else {
      retarget(from, which, to, middle);
      function_.blocks[middle].label = new_label();
      falls = place_split_block(from, to, middle);
    }
    EdgeId out = function_.add_edge(middle, to);
    function_.set_successors(middle, {&out, 1}, falls);
    if (!falls) {
      if (!function_.blocks[to].label) function_.blocks[to].label = new_label();
      Builder(function_).at_end(middle).emit("bra.uni", {Operand::block(to)});
    }
    return middle;
  }

  Symbol new_label() {
    if (!names_ready_) take_names(function_, names_);
    names_ready_ = true;
    return names_.unique(function_.module().intern("$L__edge"));
  }

  // Places it before its target, without a jump, unless a block falls through to that. True if it falls through.
  bool place_split_block(BlockId from, BlockId to, BlockId middle) {
    uint32_t index = layout_index_[to.index()];
    bool entered = index == 0 || function_.blocks[function_.layout[index - 1]].falls_through;
    if (!entered && ahead_[to.index()].empty()) {
      ahead_[to.index()].push_back(middle);
      return true;
    }
    // Otherwise after the next block that does not fall through.
    uint32_t place = layout_index_[from.index()];
    while (place + 1 < function_.layout.size() && function_.blocks[function_.layout[place]].falls_through)
      ++place;
    BlockId last = function_.layout[place];
    if (!function_.terminator(last) && function_.successors(last).empty() && !is_unreachable(last))
      Builder(function_).at_end(last).emit("ret", {});
    behind_[last.index()].push_back(middle);
    return false;
  }

  bool is_unreachable(BlockId block) const { return !ranges_.flow().reachable(block); }

  void retarget(BlockId from, size_t which, BlockId to, BlockId middle) {
    InstructionId terminator = function_.terminator(from);
    for (size_t i = 0; i < function_.operands_of(terminator).size(); ++i) {
      Operand& operand = function_.operands_of(terminator)[i];
      if (operand.is(OperandKind::block) && operand.as_block() == to) operand.id = middle.index();
      if (!operand.is(OperandKind::label_table)) continue;
      LabelTableId table = own_table(terminator, i);
      std::span<Operand> targets = function_.operands.view(function_.label_tables[table].operands);
      if (which < targets.size() && targets[which].as_block() == to) targets[which].id = middle.index();
    }
  }

  // Returns a table that no other branch uses, because the targets of others must not change.
  LabelTableId own_table(InstructionId terminator, size_t operand) {
    LabelTableId table(function_.operands_of(terminator)[operand].id);
    bool shared = false;
    InstructionId declaration;
    for (BlockId block : function_.layout)
      for (InstructionId id : function_.instructions_in(block)) {
        if (id == terminator) continue;
        for (const Operand& other : function_.operands_of(id)) {
          if (!other.is(OperandKind::label_table) || other.id != table.index()) continue;
          if (function_.instructions[id].kind == InstructionKind::label_table)
            declaration = id;
          else
            shared = true;
        }
      }
    if (!shared || !declaration) return table;
    LabelTable copy = function_.label_tables[table];
    if (!names_ready_) take_names(function_, names_);
    names_ready_ = true;
    copy.label = names_.unique(copy.label);
    std::span<const Operand> targets = function_.operands.view(copy.operands);
    copy.operands = function_.operands.add(targets);
    LabelTableId fresh = function_.label_tables.add(copy);
    Instruction row = function_.instructions[declaration];
    Operand operand_row = function_.operands_of(declaration)[0];
    operand_row.id = fresh.index();
    function_.insert_after(declaration, function_.add_instruction(row, {&operand_row, 1}));
    function_.operands_of(terminator)[operand].id = fresh.index();
    return fresh;
  }

  void prepare_layout() {
    layout_index_.assign(function_.blocks.size(), 0);
    ahead_.resize(function_.blocks.size());
    behind_.resize(function_.blocks.size());
    for (uint32_t i = 0; i < function_.layout.size(); ++i)
      layout_index_[function_.layout[i].index()] = i;
  }

  void rebuild_layout() {
    if (layout_index_.empty()) return;
    std::vector<BlockId> layout;
    for (BlockId block : function_.layout) {
      for (BlockId added : ahead_[block.index()])
        layout.push_back(added);
      layout.push_back(block);
      for (BlockId added : behind_[block.index()])
        layout.push_back(added);
    }
    function_.layout = std::move(layout);
    function_.changed();
  }

  Function& function_;
  const LiveRanges& ranges_;
  const RegisterClasses& classes_;
  UniqueNames names_;
  bool names_ready_ = false;
  size_t original_blocks_ = function_.blocks.size();
  std::vector<Copy> copies_;
  std::unordered_map<uint32_t, uint32_t> readers_;
  std::vector<uint32_t> layout_index_;               // by block, in the layout before any split; empty until a split
  std::vector<std::vector<BlockId>> ahead_, behind_; // blocks to be placed before and after a block
};

} // namespace

void insert_edge_copies(Function& function, const LiveRanges& ranges, const RegisterClasses& classes) {
  EdgeCopies(function, ranges, classes).run();
}

} // namespace ptxrewrite::ir
