// Converts registers to values. A register with one unguarded definition that dominates every use keeps its handle and
// needs no work. For each other register, a backward walk from its uses finds the blocks into which it is live; a pass
// over just these blocks in reverse post-order determines the value that reaches each, adding a block parameter where
// different values meet. At the header of a loop, where the value of the back edges is not known yet, there is one if
// the loop defines the register; in irreducible code the pass has to guess, and removes parameters that prove to merge
// a single value. Takes time proportional to the live ranges, whatever the numbers of blocks and registers.
#include "ir/ssa/ssa.h"

#include "ir/flow/cfg.h"
#include "ir/flow/dominators.h"
#include "ir/flow/loops.h"
#include "ir/ssa/ssa_names.h"
#include "ir/ssa/ssa_steps.h"

#include <algorithm>
#include <cassert>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t none = UINT32_MAX;

class ValueNumbering {
public:
  ValueNumbering(Function& function)
      : function_(function), flow_(function), dominators_(function, flow_), loops_(function, flow_, dominators_),
        register_count_(static_cast<uint32_t>(function.values.size())) {}

  void run() {
    collect();
    for (uint32_t r = 0; r < register_count_; ++r)
      place(ValueId(r));
    rename();
    attach_parameters();
  }

private:
  // The use or definition of one register in one block.
  struct RegisterSite {
    uint32_t reg;
    BlockId block;
    ValueId last; // of definitions: the value at the end of the block
  };
  struct Parameter {
    BlockId block;
    ValueId value;
    uint32_t first_argument; // in arguments_; one per predecessor edge, in the order of ControlFlow::predecessors
  };

  // ---- sites

  void collect() {
    std::vector<uint32_t> written_in(register_count_, none), exposed_in(register_count_, none), slot(register_count_);
    std::vector<RegisterSite> definitions, exposed;
    definition_count_.assign(register_count_, 0);
    guarded_.assign(register_count_, false);
    for (BlockId block : flow_.reverse_postorder()) {
      uint32_t here = block.index();
      auto read = [&](ValueId value) {
        uint32_t r = value.index();
        if (written_in[r] == here || exposed_in[r] == here) return;
        exposed_in[r] = here;
        exposed.push_back({r, block, {}});
      };
      for (InstructionId id : function_.instructions_in(block)) {
        for_each_use(function_, id, read);
        bool guarded = function_.keeps_old_values(id);
        if (guarded) for_each_definition(function_, id, read);
        for_each_definition(function_, id, [&](ValueId value) {
          uint32_t r = value.index();
          ValueId fresh = new_definition(value);
          guarded_[r] = guarded_[r] || guarded;
          if (written_in[r] != here) {
            written_in[r] = here;
            slot[r] = static_cast<uint32_t>(definitions.size());
            definitions.push_back({r, block, {}});
          }
          definitions[slot[r]].last = fresh;
        });
      }
    }
    sort_by_register(definitions, definition_start_, definitions_);
    sort_by_register(exposed, exposed_start_, exposed_);
  }

  // The first definition keeps the register's handle.
  ValueId new_definition(ValueId reg) {
    ValueId value = reg;
    if (definition_count_[reg.index()]++ != 0) {
      Value copy = function_.values[reg];
      value = function_.add_value(copy);
    }
    new_values_.push_back(value);
    return value;
  }

  void sort_by_register(const std::vector<RegisterSite>& sites, std::vector<uint32_t>& start,
                        std::vector<RegisterSite>& sorted) const {
    start.assign(register_count_ + 1, 0);
    for (const RegisterSite& site : sites)
      ++start[site.reg + 1];
    for (uint32_t r = 0; r < register_count_; ++r)
      start[r + 1] += start[r];
    sorted.resize(sites.size());
    std::vector<uint32_t> next(start.begin(), start.end() - 1);
    for (const RegisterSite& site : sites)
      sorted[next[site.reg]++] = site;
  }
  std::span<const RegisterSite> definitions(ValueId reg) const {
    return std::span(definitions_)
        .subspan(definition_start_[reg.index()], definition_start_[reg.index() + 1] - definition_start_[reg.index()]);
  }
  std::span<const RegisterSite> exposed(ValueId reg) const {
    return std::span(exposed_).subspan(exposed_start_[reg.index()],
                                       exposed_start_[reg.index() + 1] - exposed_start_[reg.index()]);
  }

  // ---- one register

  // While a register is processed, an arriving value is a ValueId index, or a parameter (flag bit and index into
  // candidates_), or undefined_mark.
  static constexpr uint32_t parameter_flag = 0x80000000u;
  static constexpr uint32_t undefined_mark = parameter_flag - 1;

  struct Candidate {
    BlockId block;
    uint32_t first_argument = 0; // in candidate_arguments_
    uint32_t replaced_by = none; // the value it merges, if the parameter is not needed
    ValueId value;
  };

  void place(ValueId reg) {
    if (exposed(reg).empty()) return;
    if (definitions(reg).empty()) {
      function_.values[reg].is_undefined = true;
      return;
    }
    if (definition_count_[reg.index()] == 1 && !guarded_[reg.index()]) {
      BlockId block = definitions(reg)[0].block;
      if (std::all_of(exposed(reg).begin(), exposed(reg).end(),
                      [&](const RegisterSite& site) { return dominators_.strictly_dominates(block, site.block); }))
        return;
    }
    find_live_blocks(reg);
    mark_defining_loops(reg);
    find_arrivals();
    drop_needless_parameters();
    publish(reg);
  }

  void find_live_blocks(ValueId reg) {
    ++stamp_;
    if (block_state_.empty()) block_state_.resize(function_.blocks.size());
    for (const RegisterSite& site : definitions(reg)) {
      block_state_[site.block.index()].written = stamp_;
      block_state_[site.block.index()].last = site.last.index();
    }
    live_.clear();
    auto enter = [&](BlockId block) {
      BlockState& state = block_state_[block.index()];
      if (state.live == stamp_) return;
      state.live = stamp_;
      state.arriving = none;
      live_.push_back(flow_.position(block));
    };
    for (const RegisterSite& site : exposed(reg))
      enter(site.block);
    for (size_t i = 0; i < live_.size(); ++i)
      for (EdgeId edge : flow_.predecessors(flow_.reverse_postorder()[live_[i]])) {
        BlockId from = function_.edges[edge].from;
        if (flow_.reachable(from) && block_state_[from.index()].written != stamp_) enter(from);
      }
    std::sort(live_.begin(), live_.end());
  }

  // Without this, a register that is live through a nest of loops would get a parameter at each header, of which all
  // but one are removed again one by one: cubic in the depth of the nest.
  void mark_defining_loops(ValueId reg) {
    defining_loop_.resize(loops_.loops().size(), 0);
    for (const RegisterSite& site : definitions(reg))
      for (LoopId loop = loops_.innermost(site.block); loop && defining_loop_[loop.index()] != stamp_;
           loop = loops_.loops()[loop].parent)
        defining_loop_[loop.index()] = stamp_;
  }

  // True if a value that enters the block is still there wherever an edge leads back to it.
  bool keeps_value(BlockId block) const {
    if (loops_.irreducible()) return false;
    LoopId loop = loops_.innermost(block);
    return loop && loops_.loops()[loop].header == block && defining_loop_[loop.index()] != stamp_;
  }

  // The value at the end of a block; `none` if it is not known yet.
  uint32_t leaving(BlockId block) {
    const BlockState& state = block_state_[block.index()];
    return resolve(state.written == stamp_ ? state.last : state.arriving);
  }

  // Follows replacements of removed parameters, with path compression.
  uint32_t resolve(uint32_t value) {
    while (value != none && value >= parameter_flag) {
      uint32_t& next = candidates_[value - parameter_flag].replaced_by;
      if (next == none) break;
      if (next >= parameter_flag && candidates_[next - parameter_flag].replaced_by != none)
        next = candidates_[next - parameter_flag].replaced_by;
      value = next;
    }
    return value;
  }

  void find_arrivals() {
    candidates_.clear();
    candidate_arguments_.clear();
    for (uint32_t position : live_) {
      BlockId block = flow_.reverse_postorder()[position];
      uint32_t arriving = none;
      bool merge = false;
      if (position == 0) {
        arriving = undefined_mark; // the entry has no predecessors
      } else {
        bool keeps = keeps_value(block);
        for (EdgeId edge : flow_.predecessors(block)) {
          BlockId from = function_.edges[edge].from;
          if (!flow_.reachable(from)) continue;
          uint32_t value = leaving(from);
          if (keeps && value == none) continue;
          merge |= value == none || (arriving != none && value != arriving);
          arriving = value;
        }
      }
      if (merge) {
        arriving = parameter_flag + static_cast<uint32_t>(candidates_.size());
        candidates_.push_back({block});
      }
      block_state_[block.index()].arriving = arriving;
    }
    for (Candidate& candidate : candidates_) {
      candidate.first_argument = static_cast<uint32_t>(candidate_arguments_.size());
      for (EdgeId edge : flow_.predecessors(candidate.block)) {
        BlockId from = function_.edges[edge].from;
        // An edge from unreachable code is never taken.
        candidate_arguments_.push_back(flow_.reachable(from) ? leaving(from) : undefined_mark);
      }
    }
  }

  // A parameter that merges only one value besides itself is replaced by it. This may make further parameters needless.
  void drop_needless_parameters() {
    std::vector<uint32_t> work;
    users_.assign(candidates_.size(), {});
    for (uint32_t i = 0; i < candidates_.size(); ++i) {
      for (uint32_t argument : arguments(i))
        if (argument >= parameter_flag) users_[argument - parameter_flag].push_back(i);
      work.push_back(i);
    }
    while (!work.empty()) {
      uint32_t i = work.back();
      work.pop_back();
      if (candidates_[i].replaced_by != none) continue;
      uint32_t only = none;
      bool needed = false;
      for (uint32_t argument : arguments(i)) {
        uint32_t value = resolve(argument);
        if (value == parameter_flag + i || value == only) continue;
        needed |= only != none;
        only = value;
      }
      if (needed) continue;
      assert(only != none);
      candidates_[i].replaced_by = only;
      for (uint32_t user : users_[i]) {
        work.push_back(user);
        // It now uses the merged value.
        if (only >= parameter_flag) users_[only - parameter_flag].push_back(user);
      }
    }
  }

  std::span<uint32_t> arguments(uint32_t candidate) {
    return std::span(candidate_arguments_)
        .subspan(candidates_[candidate].first_argument, flow_.predecessors(candidates_[candidate].block).size());
  }

  ValueId real_value(ValueId reg, uint32_t value) {
    value = resolve(value);
    if (value >= parameter_flag) return candidates_[value - parameter_flag].value;
    if (value != undefined_mark) return ValueId(value);
    if (!undefined_) {
      Value copy = function_.values[reg];
      copy.is_undefined = true;
      undefined_ = function_.add_value(copy);
    }
    return undefined_;
  }

  void publish(ValueId reg) {
    undefined_ = ValueId();
    for (Candidate& candidate : candidates_)
      if (candidate.replaced_by == none) {
        Value copy = function_.values[reg];
        candidate.value = function_.add_value(copy);
      }
    for (uint32_t i = 0; i < candidates_.size(); ++i) {
      if (candidates_[i].replaced_by != none) continue;
      parameters_.push_back({candidates_[i].block, candidates_[i].value, static_cast<uint32_t>(arguments_.size())});
      for (uint32_t argument : arguments(i))
        arguments_.push_back(real_value(reg, argument));
    }
    for (const RegisterSite& site : exposed(reg))
      arrivals_.push_back({reg.index(), site.block, real_value(reg, block_state_[site.block.index()].arriving)});
  }

  // ---- rewriting

  void rename() {
    std::vector<uint32_t> start(function_.blocks.size() + 1, 0);
    for (const RegisterSite& site : arrivals_)
      ++start[site.block.index() + 1];
    for (size_t i = 0; i + 1 < start.size(); ++i)
      start[i + 1] += start[i];
    std::vector<RegisterSite> sorted(arrivals_.size());
    std::vector<uint32_t> next(start.begin(), start.end() - 1);
    for (const RegisterSite& site : arrivals_)
      sorted[next[site.block.index()]++] = site;

    std::vector<ValueId> current(register_count_);
    for (uint32_t r = 0; r < register_count_; ++r)
      current[r] = ValueId(r);
    size_t definition = 0;
    std::vector<Operand> list;
    for (BlockId block : flow_.reverse_postorder()) {
      for (uint32_t i = start[block.index()]; i < start[block.index() + 1]; ++i)
        current[sorted[i].reg] = sorted[i].last;
      for (InstructionId id : function_.instructions_in(block)) {
        Instruction& instruction = function_.instructions[id];
        bool writes = false;
        for (Operand& operand : function_.operands_of(id)) {
          if (!operand.is(OperandKind::value)) continue;
          if (operand.is_definition())
            writes = true;
          else
            operand.id = current[operand.id].index();
        }
        ValueId guard = instruction.guard;
        if (guard) instruction.guard = current[guard.index()];
        if (!writes) continue;
        list.clear();
        bool keeps = function_.keeps_old_values(id);
        if (keeps) append_old_values(id, current, list);
        for (Operand& operand : function_.operands_of(id)) {
          if (!operand.is(OperandKind::value) || !operand.is_definition()) continue;
          current[operand.id] = new_values_[definition++];
          operand.id = current[operand.id].index();
        }
        if (keeps) {
          std::span<const Operand> operands = function_.operands_of(id);
          list.insert(list.begin(), operands.begin(), operands.end());
          function_.set_operands(id, list);
        }
      }
    }
    assert(definition == new_values_.size());
  }

  void append_old_values(InstructionId id, const std::vector<ValueId>& current, std::vector<Operand>& list) const {
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::value) || !operand.is_definition()) continue;
      Operand old = Operand::value(current[operand.id]);
      old.flags = OperandFlag::old_value;
      list.push_back(old);
    }
  }

  void attach_parameters() {
    std::vector<std::vector<uint32_t>> of_block(function_.blocks.size());
    for (uint32_t i = 0; i < parameters_.size(); ++i)
      of_block[parameters_[i].block.index()].push_back(i);
    std::vector<ValueId> list;
    for (BlockId block : flow_.reverse_postorder()) {
      const std::vector<uint32_t>& parameters = of_block[block.index()];
      if (parameters.empty()) continue;
      list.clear();
      for (uint32_t i : parameters)
        list.push_back(parameters_[i].value);
      function_.set_parameters(block, list);
      std::span<const EdgeId> edges = flow_.predecessors(block);
      for (size_t k = 0; k < edges.size(); ++k) {
        list.clear();
        for (uint32_t i : parameters)
          list.push_back(arguments_[parameters_[i].first_argument + k]);
        function_.set_arguments(edges[k], list);
      }
    }
  }

  struct BlockState {
    uint32_t written = 0, live = 0; // stamps
    uint32_t last = none;           // value at the end, where written
    uint32_t arriving = none;       // value at the start, where live
  };

  Function& function_;
  ControlFlow flow_;
  DominatorTree dominators_;
  LoopForest loops_;
  uint32_t register_count_;
  std::vector<uint32_t> definition_count_, definition_start_, exposed_start_;
  std::vector<bool> guarded_;
  std::vector<RegisterSite> definitions_, exposed_, arrivals_;
  std::vector<ValueId> new_values_; // by definition, in visiting order
  std::vector<BlockState> block_state_;
  uint32_t stamp_ = 0;
  std::vector<uint32_t> defining_loop_; // stamps
  std::vector<uint32_t> live_;          // positions in the reverse post-order
  std::vector<Candidate> candidates_;
  std::vector<uint32_t> candidate_arguments_;
  std::vector<std::vector<uint32_t>> users_;
  ValueId undefined_;
  std::vector<Parameter> parameters_;
  std::vector<ValueId> arguments_;
};

} // namespace

Status construct_ssa(Function& function) {
  if (function.is_ssa || !function.has_body || function.layout.empty()) return {};
  if (Status status = check_ssa_readable(function); !status) return status;
  if (function.affine_stream)
    if (Status status = construct_ssa(*function.affine_stream); !status) return status;
  drop_unreachable_and_scopes(function);
  drop_second_of_equal_results(function);
  scalarise_vector_registers(function);
  make_names_unique(function);
  make_register_names_unique(function);
  ValueNumbering(function).run();
  function.is_ssa = true;
  function.changed();
  return {};
}

} // namespace ptxrewrite::ir
