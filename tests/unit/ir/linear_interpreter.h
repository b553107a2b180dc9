// Runs an SSA function one thread at a time, by the definitions of the PTX instructions, and compares every value with
// its linear form from the analysis. Shares no arithmetic with the analysis.
#pragma once

#include "ir/analysis/linear/linear.h"
#include "ir/core/module.h"
#include "ir/core/print.h"

#include <map>
#include <string>
#include <vector>

namespace ptxrewrite::tests {

class LinearChecker {
public:
  struct Counts {
    uint64_t compared = 0;        // values compared bit by bit with a form
    uint64_t with_threads = 0;    // of them, forms with a thread or block coefficient or a loop offset
    uint64_t obliged = 0;         // of them, forms with obligations that this launch fulfils
    uint64_t refused = 0;         // values whose obligations this launch does not fulfil
    uint64_t refused_rightly = 0; // of them, values that differ from their form
    uint64_t uniform = 0;         // opaque uniform values compared between threads
  };

  LinearChecker(const ir::LinearForms& forms, const ir::LaunchValues& launch)
      : forms_(forms), function_(forms.function()), launch_(launch) {
    for (ir::ObligationId id : forms.all_obligations().ids())
      fulfilled_.push_back(forms.evaluate(id, launch));
  }

  // Runs one thread; returns false if it exceeds the step limit.
  bool run(std::array<uint32_t, 3> tid, std::array<uint32_t, 3> ctaid) {
    thread_ = {};
    thread_.tid = tid;
    thread_.ctaid = ctaid;
    trips_.clear();
    registers_.assign(function_.values.size(), 0);
    groups_.clear();
    compares_.clear();
    ir::BlockId block = function_.entry();
    for (unsigned step = 0; block; ++step) {
      if (step > 500) return false;
      block = run_block(block);
    }
    return true;
  }

  const std::vector<std::string>& mismatches() const { return mismatches_; }
  const Counts& counts() const { return counts_; }

private:
  static uint64_t cut(uint64_t value, unsigned bits) {
    return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1);
  }
  static int64_t sign(uint64_t value, unsigned bits) {
    return bits >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
  }
  unsigned width(ir::ValueId value) const { return ir::bit_width(function_.values[value].type); }

  // --- control ---

  ir::BlockId run_block(ir::BlockId block) {
    for (ir::InstructionId id : function_.instructions_in(block)) {
      const ir::Instruction& row = function_.instructions[id];
      if (row.kind != ir::InstructionKind::real) continue;
      bool on = !row.guard || ((registers_[row.guard.index()] & 1) != 0) != row.guard_negated;
      ir::Opcode opcode = function_.form_of(id).opcode;
      check_uses(id, block);
      if (opcode == ir::Opcode::bra) {
        if (on) return enter(function_.successors(block)[0]);
        continue;
      }
      if (opcode == ir::Opcode::ret || opcode == ir::Opcode::exit) {
        if (on) return {};
        continue;
      }
      execute(id, on);
    }
    if (!function_.blocks[block].falls_through) return {};
    return enter(function_.successors(block).back());
  }

  ir::BlockId enter(ir::EdgeId edge_id) {
    const ir::Edge& edge = function_.edges[edge_id];
    std::vector<uint64_t> values;
    for (ir::ValueId argument : function_.arguments(edge_id)) {
      check_form(argument, forms_.form_at(argument, edge.to), registers_[argument.index()], "argument");
      values.push_back(registers_[argument.index()]);
    }
    const ir::LoopForest& loops = forms_.loops();
    for (ir::LoopId loop = loops.innermost(edge.to); loop; loop = loops.loops()[loop].parent)
      if (loops.loops()[loop].header == edge.to) {
        if (loops.contains(loop, edge.from))
          ++trips_[loop];
        else
          trips_[loop] = 0;
      }
    auto parameters = function_.parameters(edge.to);
    auto incoming = forms_.control_flow().predecessors(edge.to);
    for (size_t i = 0; i < parameters.size(); ++i) {
      for (size_t at = 0; at < incoming.size(); ++at)
        if (incoming[at] == edge_id) groups_[parameters[i]] = at;
      registers_[parameters[i].index()] = cut(values[i], width(parameters[i]));
    }
    for (ir::ValueId parameter : parameters)
      check_definition(parameter);
    return edge.to;
  }

  // --- checks ---

  void check_uses(ir::InstructionId id, ir::BlockId block) {
    ir::for_each_use(function_, id, [&](ir::ValueId value) {
      const ir::LinearForm& seen = forms_.form_at(value, block);
      if (seen == forms_.form(value)) return;
      check_form(value, seen, registers_[value.index()], "use outside its loop");
    });
  }

  void check_definition(ir::ValueId value) {
    const ir::LinearForm& form = forms_.form(value);
    check_form(value, form, registers_[value.index()], "definition");
  }

  std::vector<std::pair<ir::LoopId, uint64_t>> trips_around(ir::BlockId block) const {
    std::vector<std::pair<ir::LoopId, uint64_t>> list;
    const ir::LoopForest& loops = forms_.loops();
    for (ir::LoopId loop = loops.innermost(block); loop; loop = loops.loops()[loop].parent)
      list.push_back({loop, trips_.at(loop)});
    return list;
  }

  std::optional<bool> condition(const ir::FormCondition& condition) const {
    switch (condition.kind) {
    case ir::FormCondition::Kind::predicate:
      return (registers_[condition.value.index()] & 1) != 0;
    case ir::FormCondition::Kind::edge: {
      auto found = groups_.find(condition.value);
      auto groups = forms_.edge_groups(condition.value);
      if (found == groups_.end() || groups.empty()) return std::nullopt;
      return (groups[found->second] >> condition.bit & 1) != 0;
    }
    case ir::FormCondition::Kind::compare: {
      auto found = compares_.find(condition.instruction);
      if (found == compares_.end()) return std::nullopt;
      return found->second;
    }
    }
    return std::nullopt;
  }

  void check_form(ir::ValueId value, const ir::LinearForm& form, uint64_t bits, const char* where) {
    bool holds = true;
    for (ir::ObligationId id : forms_.obligations(value))
      holds &= bool(fulfilled_[id.index()]);
    ir::ThreadPosition thread = thread_;
    for (auto [loop, trip] : trips_)
      thread.trips.push_back({loop, trip});
    for (unsigned i = 0; i < form.condition_count; ++i)
      if (auto known = condition(form.conditions[i])) thread.conditions.push_back({form.conditions[i], *known});
    auto expected = forms_.evaluate(form, launch_, thread);
    if (!holds) {
      ++counts_.refused;
      counts_.refused_rightly += expected && *expected != bits;
      return;
    }
    if (expected) {
      ++counts_.compared;
      bool threads = form.kind != ir::ValueClass::constant && form.kind != ir::ValueClass::launch_uniform;
      counts_.with_threads += threads;
      counts_.obliged += !forms_.obligations(value).empty();
      if (*expected != bits) report(value, form, bits, *expected, where);
    }
    check_uniform(value, form, bits, where);
  }

  void check_uniform(ir::ValueId value, const ir::LinearForm& form, uint64_t bits, const char* where) {
    bool launch = form.kind == ir::ValueClass::constant || form.kind == ir::ValueClass::launch_uniform;
    if (!launch && form.kind != ir::ValueClass::block_uniform) return;
    std::vector<uint64_t> key{value.index(), uint64_t(where[0])};
    if (!launch) key.insert(key.end(), thread_.ctaid.begin(), thread_.ctaid.end());
    if (form.varies)
      for (auto [loop, trip] : trips_around(forms_.def_use().definition(value).block)) {
        key.push_back(loop.index());
        key.push_back(trip);
      }
    ++counts_.uniform;
    auto [found, fresh] = seen_.try_emplace(key, bits);
    if (!fresh && found->second != bits) report(value, form, bits, found->second, where);
  }

  void report(ir::ValueId value, const ir::LinearForm& form, uint64_t is, uint64_t expected, const char* where) {
    std::string text = std::string(where) + " of " + function_.value_name(value) + ": " + std::to_string(is) +
                       ", but its form " + std::string(ir::spelling(form.kind)) + " " + forms_.print_exact(form) +
                       " says " + std::to_string(expected) + " in thread " + std::to_string(thread_.tid[0]) + "," +
                       std::to_string(thread_.tid[1]) + "," + std::to_string(thread_.tid[2]) + " of block " +
                       std::to_string(thread_.ctaid[0]) + "," + std::to_string(thread_.ctaid[1]) + "," +
                       std::to_string(thread_.ctaid[2]);
    mismatches_.push_back(text);
  }

  // --- instructions ---

  uint64_t special(const ir::Operand& operand) const {
    unsigned component = operand.selector & 3u;
    if (component == 3) return 0;
    switch (ir::SpecialRegister(operand.id)) {
    case ir::SpecialRegister::tid:
      return thread_.tid[component];
    case ir::SpecialRegister::ctaid:
      return thread_.ctaid[component];
    case ir::SpecialRegister::ntid:
      return launch_.block[component];
    case ir::SpecialRegister::nctaid:
      return launch_.grid[component];
    default:
      return (thread_.tid[0] + launch_.block[0] * (thread_.tid[1] + launch_.block[1] * thread_.tid[2])) % 32;
    }
  }

  uint64_t read(const ir::Operand& operand) const {
    switch (operand.kind) {
    case ir::OperandKind::value:
      return operand.has(ir::OperandFlag::negated) ? registers_[operand.id] ^ 1 : registers_[operand.id];
    case ir::OperandKind::special_register:
      return special(operand);
    case ir::OperandKind::symbol:
      return 4096 + 16 * uint64_t(operand.id & 255) + static_cast<uint64_t>(operand.immediate);
    default:
      return static_cast<uint64_t>(operand.immediate);
    }
  }

  void execute(ir::InstructionId id, bool on) {
    auto operands = function_.operands_of(id);
    ir::ValueId target;
    std::vector<uint64_t> in;
    uint64_t old = 0;
    for (const ir::Operand& operand : operands) {
      if (operand.is_group() || operand.is(ir::OperandKind::sink)) continue;
      if (operand.is_definition()) {
        if (!target) target = operand.as_value();
      } else if (operand.has(ir::OperandFlag::old_value)) {
        old = read(operand);
      } else {
        in.push_back(read(operand));
      }
    }
    if (!target) return;
    const ir::Form& form = function_.form_of(id);
    uint64_t result = form.opcode == ir::Opcode::ld ? load(id, form) : compute(id, form, in, width(target));
    registers_[target.index()] = cut(on ? result : old, width(target));
    check_definition(target);
  }

  uint64_t load(ir::InstructionId id, const ir::Form& form) {
    auto operands = function_.operands_of(id);
    auto parameters = function_.variable_lists.view(function_.signature.parameters);
    uint64_t value = 0;
    for (size_t i = 0; i + 1 < operands.size(); ++i) {
      if (!operands[i].is(ir::OperandKind::address)) continue;
      unsigned bits = ir::bit_width(form.type());
      size_t offset = static_cast<size_t>(operands[i].immediate);
      for (size_t number = 0; number < parameters.size(); ++number)
        if (operands[i + 1].is(ir::OperandKind::symbol) &&
            operands[i + 1].as_symbol() == ir::SymbolRef::local_variable(parameters[number])) {
          for (unsigned byte = 0; byte < bits / 8; ++byte)
            value |= uint64_t(launch_.parameters.at(number).at(offset + byte)) << (8 * byte);
          return ir::is_signed(form.type()) ? static_cast<uint64_t>(sign(value, bits)) : value;
        }
      // Memory: every thread loads a different value.
      return (read(operands[i + 1]) + thread_.tid[0] * 77 + thread_.ctaid[0]) * 0x9e3779b97f4a7c15ull >> 7;
    }
    return value;
  }

  // Long: one case per operation.
  uint64_t compute(ir::InstructionId id, const ir::Form& form, const std::vector<uint64_t>& in, unsigned target_width) {
    using ir::Modifier;
    using ir::Opcode;
    ir::ScalarType type = form.type();
    unsigned bits = ir::bit_width(type);
    bool is_signed = ir::is_signed(type);
    auto get = [&](size_t i) { return is_signed ? static_cast<uint64_t>(sign(in[i], bits)) : cut(in[i], bits); };
    auto less = [&](uint64_t a, uint64_t b) {
      return is_signed ? static_cast<int64_t>(a) < static_cast<int64_t>(b) : a < b;
    };
    switch (form.opcode) {
    case Opcode::mov:
      return cut(in[0], bits);
    case Opcode::cvta:
      return in[0];
    case Opcode::cvt: {
      ir::ScalarType from = form.type(1);
      unsigned from_bits = ir::bit_width(from);
      uint64_t value = ir::is_signed(from) ? static_cast<uint64_t>(sign(in[0], from_bits)) : cut(in[0], from_bits);
      value = cut(value, bits);
      return target_width > bits && is_signed ? static_cast<uint64_t>(sign(value, bits)) : value;
    }
    case Opcode::add:
      return get(0) + get(1);
    case Opcode::sub:
      return get(0) - get(1);
    case Opcode::neg:
      return 0 - get(0);
    case Opcode::not_:
      return ~in[0];
    case Opcode::mul:
      return get(0) * get(1); // lo and wide: 16- and 32-bit products fit 64 bits
    case Opcode::mad:
      return get(0) * get(1) + in[2];
    case Opcode::shl:
      return cut(in[1], 32) >= bits ? 0 : in[0] << cut(in[1], 32);
    case Opcode::shr: {
      uint64_t amount = cut(in[1], 32);
      if (amount >= bits) return is_signed && sign(in[0], bits) < 0 ? ~uint64_t(0) : 0;
      return is_signed ? static_cast<uint64_t>(sign(in[0], bits) >> amount) : cut(in[0], bits) >> amount;
    }
    case Opcode::and_:
      return in[0] & in[1];
    case Opcode::or_:
      return in[0] | in[1];
    case Opcode::xor_:
      return in[0] ^ in[1];
    case Opcode::div: {
      if (get(1) == 0) return ~uint64_t(0);
      if (!is_signed) return get(0) / get(1);
      if (sign(in[1], bits) == -1) return 0 - get(0);
      return static_cast<uint64_t>(sign(in[0], bits) / sign(in[1], bits));
    }
    case Opcode::rem: {
      if (get(1) == 0) return ~uint64_t(0);
      if (!is_signed) return get(0) % get(1);
      if (sign(in[1], bits) == -1) return 0;
      return static_cast<uint64_t>(sign(in[0], bits) % sign(in[1], bits));
    }
    case Opcode::abs: {
      bool negative = sign(in[0], bits) < 0;
      compares_[id] = negative;
      return negative ? 0 - get(0) : get(0);
    }
    case Opcode::min:
    case Opcode::max: {
      bool second = form.opcode == Opcode::min ? less(get(1), get(0)) : less(get(0), get(1));
      compares_[id] = second;
      return second ? in[1] : in[0];
    }
    case Opcode::selp:
      return (in[2] & 1) != 0 ? in[0] : in[1];
    case Opcode::popc:
      return static_cast<uint64_t>(__builtin_popcountll(cut(in[0], bits)));
    case Opcode::setp: {
      bool smaller = less(get(0), get(1)), same = get(0) == get(1);
      if (form.has(Modifier::eq)) return same;
      if (form.has(Modifier::ne)) return !same;
      if (form.has(Modifier::lt) || form.has(Modifier::lo)) return smaller;
      if (form.has(Modifier::le) || form.has(Modifier::ls)) return smaller || same;
      if (form.has(Modifier::gt) || form.has(Modifier::hi)) return !smaller && !same;
      return !smaller;
    }
    default:
      throw std::runtime_error("the checker does not know " + std::string(form.mnemonic));
    }
  }

  const ir::LinearForms& forms_;
  const ir::Function& function_;
  const ir::LaunchValues& launch_;
  std::vector<bool> fulfilled_;
  ir::ThreadPosition thread_;
  std::map<ir::LoopId, uint64_t> trips_;
  std::vector<uint64_t> registers_;
  std::map<ir::ValueId, size_t> groups_;
  std::map<ir::InstructionId, bool> compares_;
  std::map<std::vector<uint64_t>, uint64_t> seen_;
  std::vector<std::string> mismatches_;
  Counts counts_;
};

} // namespace ptxrewrite::tests
