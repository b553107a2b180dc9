#include "emulator/machines/regless/register_hierarchy.h"

#include <algorithm>
#include <map>

namespace ptxrewrite::emulator {
namespace {

constexpr uint32_t nowhere = UINT32_MAX;

// A value in a strand: from its definition, or from its first read of the main file.
struct Value {
  uint32_t definition = nowhere; // position in the block
  std::vector<uint32_t> reads;   // in order
  bool leaves = false;           // it is read after the strand
  bool stays_in_main = false;    // a late result, or a partial write of its register
  uint32_t first() const { return definition != nowhere ? definition : reads.front(); }
};

// A register is occupied from after instruction `begin` to `end`.
struct Taken {
  uint32_t begin, end;
};

class Places {
public:
  explicit Places(uint32_t entries) : taken_(entries) {}
  bool take(uint32_t begin, uint32_t end) {
    for (std::vector<Taken>& entry : taken_) {
      const bool free =
          std::ranges::all_of(entry, [&](const Taken& other) { return end <= other.begin || other.end <= begin; });
      if (!free) continue;
      entry.push_back({begin, end});
      return true;
    }
    return false;
  }

private:
  std::vector<std::vector<Taken>> taken_;
};

class StrandPlacer {
public:
  StrandPlacer(const std::vector<ir::RegisterInstruction>& instructions, const HierarchySettings& settings,
               const std::function<bool(ir::InstructionId)>& is_private, std::vector<HierarchyRow>& rows)
      : instructions_(instructions), settings_(settings), is_private_(is_private), rows_(rows), last_result_(1),
        operand_(settings.operand_entries) {}

  void place(std::vector<Value>& values) {
    std::vector<Value*> rest;
    for (Value* value : by_gain(values, FileLevel::last_result)) {
      const bool fits = value->definition != nowhere && reads_privately(*value) &&
                        saved(*value, value->reads.size(), FileLevel::last_result) > 0 &&
                        last_result_.take(value->first(), end_of(*value, value->reads.size()));
      if (fits)
        put(*value, value->reads.size(), FileLevel::last_result);
      else
        rest.push_back(value);
    }
    std::ranges::stable_sort(rest, std::ranges::greater(),
                             [&](const Value* value) { return gain(*value, FileLevel::operand); });
    for (Value* value : rest)
      put(*value, reads_in_operand_file(*value), FileLevel::operand);
  }

private:
  HierarchyRow& row(uint32_t place) { return rows_[instructions_[place].id.index()]; }

  bool reads_privately(const Value& value) const {
    return is_private_(instructions_[value.definition].id) &&
           std::ranges::all_of(value.reads, [&](uint32_t read) { return is_private_(instructions_[read].id); });
  }

  uint32_t end_of(const Value& value, size_t reads) const {
    return std::max(reads > 0 ? value.reads[reads - 1] : 0, value.first() + 1);
  }

  // The energy saved if its first `reads` reads are from the level.
  double saved(const Value& value, size_t reads, FileLevel level) const {
    if (value.stays_in_main) return -1;
    const auto at = static_cast<size_t>(level), main = static_cast<size_t>(FileLevel::main);
    const double by_read = settings_.read_energy[main] - settings_.read_energy[at];
    if (value.definition == nowhere) return (static_cast<double>(reads) - 1) * by_read - settings_.write_energy[at];
    const bool also_in_main = value.leaves || reads < value.reads.size();
    return static_cast<double>(reads) * by_read - settings_.write_energy[at] +
           (also_in_main ? 0 : settings_.write_energy[main]);
  }
  double gain(const Value& value, FileLevel level) const {
    return saved(value, value.reads.size(), level) / (end_of(value, value.reads.size()) - value.first());
  }
  std::vector<Value*> by_gain(std::vector<Value>& values, FileLevel level) const {
    std::vector<Value*> order;
    for (Value& value : values)
      order.push_back(&value);
    std::ranges::stable_sort(order, std::ranges::greater(), [&](const Value* value) { return gain(*value, level); });
    return order;
  }

  // The number of reads from the operand file; nothing is occupied if it is 0.
  size_t reads_in_operand_file(const Value& value) {
    for (size_t reads = value.reads.size();; --reads) {
      if (saved(value, reads, FileLevel::operand) > 0 && operand_.take(value.first(), end_of(value, reads)))
        return reads == 0 ? SIZE_MAX : reads; // a result without reads saves a write to the main file
      if (reads == 0) return 0;
    }
  }

  // `reads`: of the value, from the level; 0: it is only in the main file; SIZE_MAX: it has no reads.
  void put(Value& value, size_t reads, FileLevel level) {
    const auto at = static_cast<size_t>(level), main = static_cast<size_t>(FileLevel::main);
    const bool is_there = reads > 0 || (level == FileLevel::last_result && value.reads.empty());
    reads = std::min(reads, value.reads.size());
    if (value.definition != nowhere) {
      HierarchyRow& defined = row(value.definition);
      if (is_there) ++defined.writes[at];
      if (!is_there || value.leaves || reads < value.reads.size()) ++defined.writes[main];
    } else if (is_there) {
      ++row(value.reads.front()).fills;
    }
    for (size_t i = 0; i < value.reads.size(); ++i) {
      const bool from_main = !is_there || i >= reads || (value.definition == nowhere && i == 0);
      ++row(value.reads[i]).reads[from_main ? main : at];
    }
  }

  const std::vector<ir::RegisterInstruction>& instructions_;
  const HierarchySettings& settings_;
  const std::function<bool(ir::InstructionId)>& is_private_;
  std::vector<HierarchyRow>& rows_;
  Places last_result_, operand_;
};

// The values of the instructions [begin, end) of a block.
std::vector<Value> values_of(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness, uint32_t block,
                             uint32_t begin, uint32_t end) {
  const std::vector<ir::RegisterInstruction>& instructions = program.blocks[block].instructions;
  std::vector<Value> values;
  std::map<uint32_t, size_t> of_register; // the current value of a register
  for (uint32_t i = begin; i < end; ++i) {
    const ir::RegisterInstruction& instruction = instructions[i];
    for (uint32_t r = 0; r < program.registers; ++r) {
      if (!instruction.reads.test(r)) continue;
      const auto [place, is_new] = of_register.try_emplace(r, values.size());
      if (is_new) values.emplace_back();
      values[place->second].reads.push_back(i);
    }
    for (uint32_t r = 0; r < program.registers; ++r) {
      if (!instruction.writes.test(r)) continue;
      const bool keeps_something = instruction.guarded || liveness.soft(block, i).test(r);
      if (const auto before = of_register.find(r); before != of_register.end() && keeps_something)
        values[before->second].leaves = true;
      of_register[r] = values.size();
      Value& value = values.emplace_back();
      value.definition = i;
      value.stays_in_main = keeps_something || instruction.long_latency;
    }
  }
  const ir::RegisterSet live = end > begin ? liveness.live_behind(block, end - 1) : ir::RegisterSet();
  for (const auto& [r, value] : of_register)
    values[value].leaves |= live.test(r);
  return values;
}

} // namespace

std::vector<HierarchyRow> place_in_hierarchy(const ir::RegisterProgram& program, const ir::WarpLiveness& liveness,
                                             const HierarchySettings& settings,
                                             const std::function<bool(ir::InstructionId)>& is_private) {
  std::vector<HierarchyRow> rows;
  for (uint32_t block = 0; block < program.blocks.size(); ++block) {
    const std::vector<ir::RegisterInstruction>& instructions = program.blocks[block].instructions;
    uint32_t begin = 0;
    ir::RegisterSet late; // results of the strand's loads
    auto end_strand = [&](uint32_t end) {
      std::vector<Value> values = values_of(program, liveness, block, begin, end);
      StrandPlacer(instructions, settings, is_private, rows).place(values);
      begin = end;
      late.reset();
    };
    for (uint32_t i = 0; i < instructions.size(); ++i) {
      const ir::RegisterInstruction& instruction = instructions[i];
      rows.resize(std::max<size_t>(rows.size(), instruction.id.index() + 1));
      HierarchyRow& row = rows[instruction.id.index()];
      row.registers_read = static_cast<uint16_t>(instruction.reads.count());
      row.registers_written = static_cast<uint16_t>(instruction.writes.count());
      if (((instruction.reads | instruction.writes) & late).any()) end_strand(i);
      if (instruction.long_latency) late |= instruction.writes;
      if (instruction.waits) end_strand(i + 1);
    }
    end_strand(static_cast<uint32_t>(instructions.size()));
  }
  return rows;
}

HierarchyCounts& HierarchyCounts::operator+=(const HierarchyCounts& other) {
  for (size_t level = 0; level < file_levels; ++level) {
    reads[level] += other.reads[level];
    writes[level] += other.writes[level];
  }
  fills += other.fills;
  registers_read += other.registers_read;
  registers_written += other.registers_written;
  return *this;
}

HierarchyCounts count_hierarchy(const std::vector<HierarchyRow>& rows, const FunctionCounters& counters) {
  HierarchyCounts counts;
  for (size_t i = 0; i < std::min(rows.size(), counters.instructions.size()); ++i) {
    const uint64_t executions = counters.instructions[i].executions;
    for (size_t level = 0; level < file_levels; ++level) {
      counts.reads[level] += executions * rows[i].reads[level];
      counts.writes[level] += executions * rows[i].writes[level];
    }
    counts.fills += executions * rows[i].fills;
    counts.registers_read += executions * rows[i].registers_read;
    counts.registers_written += executions * rows[i].registers_written;
  }
  return counts;
}

} // namespace ptxrewrite::emulator
