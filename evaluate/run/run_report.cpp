#include "evaluate/run/run_report.h"

#include "cuda/buffer_text.h"
#include "emulator/machines/composite/composite_registers.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/r2d2/section_counts.h"
#include "emulator/machines/regless/staging_counters.h"
#include "ir/core/print.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>

namespace ptxrewrite::evaluate {

namespace {

// All executions of one entry by one [[launch]] of the file.
struct RunGroup {
  std::string kernel, entry;
  std::string grid, block; // of the first one; followed by "..." if others differ
  launch::Dim3 first_grid, first_block;
  uint64_t launches = 0, blocks = 0, warp_instructions = 0, thread_instructions = 0;
  double seconds = 0;
};

std::vector<RunGroup> groups_of(const LaunchInput& input, const cuda::SessionResult& result) {
  std::vector<RunGroup> groups;
  std::map<std::pair<uint32_t, std::string>, size_t> index;
  for (const cuda::SessionRun& run : result.runs) {
    const launch::Launch& launch = input.plan.launches[run.launch];
    auto [place, is_new] = index.try_emplace({launch.place, run.entry}, groups.size());
    if (is_new) {
      RunGroup group{launch.kernel, run.entry, to_string(launch.grid), to_string(launch.block)};
      group.first_grid = launch.grid;
      group.first_block = launch.block;
      groups.push_back(std::move(group));
    }
    RunGroup& group = groups[place->second];
    if (!(launch.grid == group.first_grid) && !group.grid.ends_with(" ...")) group.grid += " ...";
    if (!(launch.block == group.first_block) && !group.block.ends_with(" ...")) group.block += " ...";
    ++group.launches;
    group.blocks += run.counters.blocks;
    group.warp_instructions += run.counters.warp_instructions;
    group.thread_instructions += run.counters.thread_instructions;
    group.seconds += run.seconds;
  }
  return groups;
}

struct FunctionSum {
  const ir::Function* source = nullptr;
  std::vector<emulator::InstructionCounters> instructions;
};

// Counters summed over all launches, by function, in the order of first execution.
std::vector<FunctionSum> sums_of(const cuda::SessionResult& result) {
  std::vector<FunctionSum> sums;
  for (const cuda::SessionRun& run : result.runs)
    for (const emulator::FunctionCounters& function : run.counters.functions) {
      if (!function.source) continue;
      auto sum = std::ranges::find(sums, function.source, &FunctionSum::source);
      if (sum == sums.end()) sum = sums.insert(sums.end(), {function.source, {}});
      sum->instructions.resize(std::max(sum->instructions.size(), function.instructions.size()));
      for (size_t i = 0; i < function.instructions.size(); ++i) {
        sum->instructions[i].executions += function.instructions[i].executions;
        sum->instructions[i].lanes += function.instructions[i].lanes;
        sum->instructions[i].guarded_off += function.instructions[i].guarded_off;
        sum->instructions[i].transactions += function.instructions[i].transactions;
      }
    }
  return sums;
}

// Warp instructions of hardware forms by section, summed over all launches of an entry.
std::map<std::string, emulator::SectionCounts> sections_of(const cuda::SessionResult& result) {
  std::map<std::string, emulator::SectionCounts> sums;
  for (const cuda::SessionRun& run : result.runs)
    if (const emulator::SectionCounts counts = emulator::section_counts(run.counters); counts.linear().warps > 0)
      sums[run.entry] += counts;
  return sums;
}

// Counters of DARSIE's machine, summed over all launches of an entry.
std::map<std::string, emulator::SkipCounters> skips_of(const cuda::SessionResult& result) {
  std::map<std::string, emulator::SkipCounters> sums;
  for (const cuda::SessionRun& run : result.runs)
    if (const auto& counts = run.machines.get<emulator::SkipCounters>(); counts.executed > 0) sums[run.entry] += counts;
  return sums;
}

std::string skips_text(const cuda::SessionResult& result) {
  std::string out;
  for (const auto& [entry, counts] : skips_of(result)) {
    const uint64_t all = counts.executed + counts.all_skipped();
    out += fmt::format("\n{} on DARSIE's machine: {} of {} warp instructions skipped, {:.1f} %\n", entry,
                       counts.all_skipped(), all, 100.0 * double(counts.all_skipped()) / double(all));
    TextTable table{{{"count", true}, {"of"}}, {}};
    for (const emulator::NamedCount& row : emulator::named_counts(counts))
      if (row.count > 0) table.rows.push_back({std::to_string(row.count), std::string(row.name)});
    out += table.text();
  }
  return out;
}

// Counters of RegLess's machine, summed over all launches of an entry.
std::map<std::string, emulator::StagingCounters> stagings_of(const cuda::SessionResult& result) {
  std::map<std::string, emulator::StagingCounters> sums;
  for (const cuda::SessionRun& run : result.runs)
    if (const auto& counts = run.machines.get<emulator::StagingCounters>(); counts.regions > 0)
      sums[run.entry] += counts;
  return sums;
}

std::string stagings_text(const cuda::SessionResult& result) {
  std::string out;
  for (const auto& [entry, counts] : stagings_of(result)) {
    const auto per = [](uint64_t sum, uint64_t count) { return count ? double(sum) / double(count) : 0.0; };
    out += fmt::format(
        "\n{} on RegLess's machine: {:.1f} instructions and {:.0f} cycles per region, {:.1f} inputs, {:.1f} "
        "live; {:.3f} L1 requests per cycle\n",
        entry, per(counts.region_instructions, counts.regions), per(counts.whole_cycles, counts.regions),
        per(counts.inputs, counts.regions), per(counts.live, counts.regions), per(counts.l1_requests(), counts.cycles));
    TextTable table{{{"count", true}, {"of"}}, {}};
    for (const emulator::StagingCount& row : emulator::named_counts(counts))
      if (row.count > 0) table.rows.push_back({std::to_string(row.count), std::string(row.name)});
    out += table.text();
  }
  return out;
}

// Counts of composite instructions, summed over all launches of an entry, as `score` uses them.
std::map<std::string, emulator::CompositeCounts> composites_of(const cuda::SessionResult& result) {
  std::map<std::string, emulator::CompositeCounts> sums;
  for (const cuda::SessionRun& run : result.runs)
    if (const emulator::CompositeCounts counts = emulator::composite_counts(run.counters); counts.composites > 0)
      sums[run.entry] += counts;
  return sums;
}

std::string composites_text(const cuda::SessionResult& result) {
  std::string out;
  for (const auto& [entry, counts] : composites_of(result))
    out += fmt::format("\n{}: {} warp instructions are composite; their slot is written {} and read {} times\n", entry,
                       counts.composites, counts.slot_writes, counts.slot_reads);
  return out;
}

// Counters of DAC's machine, summed over all launches of an entry.
std::map<std::string, emulator::AffineCounters> affine_counts_of(const cuda::SessionResult& result) {
  std::map<std::string, emulator::AffineCounters> sums;
  for (const cuda::SessionRun& run : result.runs)
    if (const auto* counts = run.machines.find<emulator::AffineCounters>()) sums[run.entry] += *counts;
  return sums;
}

std::string affine_text(const cuda::SessionResult& result) {
  std::string out;
  for (const auto& [entry, counts] : affine_counts_of(result)) {
    out += fmt::format("\n{} on DAC's machine: {} of {} warp instructions on the affine warp, {} of {} loads by it\n",
                       entry, counts.affine, counts.affine + counts.body, counts.early_loads, counts.loads);
    if (!counts.fallback_reason.empty())
      out += fmt::format("the original ran in {} of its launches: {}\n", counts.fallbacks, counts.fallback_reason);
    TextTable table{{{"count", true}, {"of"}}, {}};
    for (const emulator::NamedAffineCount& row : emulator::named_counts(counts))
      if (row.count > 0) table.rows.push_back({std::to_string(row.count), std::string(row.name)});
    out += table.text();
  }
  return out;
}

// Notes, one per line: why originals ran, and how much of the register file hardware forms use.
std::string notes_text(const cuda::SessionResult& result) {
  std::vector<std::string> notes;
  auto add = [&](std::string note) {
    if (std::ranges::find(notes, note) == notes.end()) notes.push_back(std::move(note));
  };
  for (const cuda::SessionRun& run : result.runs) {
    for (const std::string& reason : run.reasons)
      add(run.entry + " ran; not " + reason);
    if (!run.registers.empty()) add(run.entry + ": linear registers take " + run.registers);
  }
  for (const auto& [entry, counts] : sections_of(result))
    add(fmt::format("{}: warp instructions for coefficients {}, thread parts {}, block parts {}, the rest {}", entry,
                    counts.coefficient.warps, counts.thread.warps, counts.block.warps, counts.rest.warps));
  std::string out;
  for (const std::string& note : notes)
    out += note + '\n';
  return out;
}

// Calls `visit(id, counters, line)` for each instruction of the function in text order.
template <class Visit> void for_each_instruction(const FunctionSum& sum, Visit&& visit) {
  const ir::Function& function = *sum.source;
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != ir::InstructionKind::real || id.index() >= sum.instructions.size())
        continue;
      const SourceRange range = function.instructions[id].range;
      const uint32_t line = range.empty() ? 0 : function.module().source.locate(range.begin).line;
      visit(id, sum.instructions[id.index()], line);
    }
}

std::string counters_text(const cuda::SessionResult& result) {
  std::string out;
  for (const FunctionSum& sum : sums_of(result)) {
    TextTable table{{{"line", true},
                     {"executions", true},
                     {"lanes", true},
                     {"guarded off", true},
                     {"transactions", true},
                     {"instruction"}},
                    {}};
    for_each_instruction(sum, [&](ir::InstructionId id, const emulator::InstructionCounters& counters, uint32_t line) {
      table.rows.push_back({line ? std::to_string(line) : "", std::to_string(counters.executions),
                            std::to_string(counters.lanes), std::to_string(counters.guarded_off),
                            std::to_string(counters.transactions), ir::print_instruction(*sum.source, id)});
    });
    out += '\n' + std::string(sum.source->module().text(sum.source->name)) + '\n' + table.text();
  }
  return out;
}

// Buffers and module variables to show: outputs, or all.
struct Shown {
  const launch::Buffer* buffer;
  std::span<const std::byte> bytes;
};

std::vector<Shown> shown_buffers(const LaunchInput& input, const cuda::SessionResult& result, bool all) {
  std::vector<Shown> shown;
  for (size_t i = 0; i < input.plan.buffers.size(); ++i)
    if ((all || input.plan.buffers[i].output) && !result.buffers[i].empty())
      shown.push_back({&input.plan.buffers[i], result.buffers[i]});
  for (size_t i = 0; i < input.plan.variables.size(); ++i) {
    const launch::ModuleVariable& variable = input.plan.variables[i];
    if (variable.value || (!all && !variable.data.output)) continue;
    std::span<const std::byte> bytes = result.variables[i];
    shown.push_back({&variable.data, bytes.first(std::min<size_t>(bytes.size(), variable.data.bytes()))});
  }
  return shown;
}

std::string buffers_text(const std::vector<Shown>& shown, size_t head) {
  TextTable table{{{"buffer"}, {"type"}, {"elements", true}, {"checksum"}, {"first elements"}}, {}};
  for (const Shown& one : shown)
    table.rows.push_back({one.buffer->name, std::string(spelling(one.buffer->type)),
                          std::to_string(one.bytes.size() / one.buffer->element_bytes()),
                          cuda::checksum_text(one.bytes), cuda::head_text(one.buffer->type, one.bytes, head)});
  return table.text();
}

} // namespace

std::string run_text(const std::string& title, const LaunchInput& input, const cuda::SessionResult& result,
                     const RunReportOptions& options) {
  std::string out = title + (input.plan.size.empty() ? "" : ", size " + input.plan.size) + '\n';
  TextTable table{{{"kernel"}, {"launches", true}, {"grid"}, {"block"}}, {}};
  if (options.has_counts)
    for (const char* what : {"blocks", "warp instructions", "thread instructions"})
      table.columns.push_back({what, true});
  if (options.time) table.columns.push_back({"seconds", true});
  if (options.time && options.has_counts) table.columns.push_back({"M thread instructions/s", true});
  for (const RunGroup& group : groups_of(input, result)) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row = {group.entry == group.kernel ? group.kernel : group.kernel + " as " + group.entry,
           std::to_string(group.launches), group.grid, group.block};
    if (options.has_counts)
      for (uint64_t count : {group.blocks, group.warp_instructions, group.thread_instructions})
        row.push_back(std::to_string(count));
    if (options.time) row.push_back(fmt::format("{:.{}f}", group.seconds, options.has_counts ? 4 : 7));
    if (options.time && options.has_counts)
      row.push_back(
          fmt::format("{:.0f}", group.seconds > 0 ? double(group.thread_instructions) * 1e-6 / group.seconds : 0.0));
  }
  out += table.text() + notes_text(result) + skips_text(result) + stagings_text(result) + affine_text(result) +
         composites_text(result);
  if (options.counters) out += counters_text(result);
  const std::vector<Shown> shown = shown_buffers(input, result, options.all_buffers);
  return out +
         (shown.empty() ? "\nno output: no buffer says output = true\n" : '\n' + buffers_text(shown, options.head));
}

nlohmann::ordered_json run_json(const std::string& title, const LaunchInput& input, const cuda::SessionResult& result,
                                const RunReportOptions& options) {
  using json = nlohmann::ordered_json;
  json launches = json::array(), buffers = json::array();
  for (const cuda::SessionRun& run : result.runs) {
    const launch::Launch& launch = input.plan.launches[run.launch];
    json one = {{"kernel", launch.kernel},
                {"entry", run.entry},
                {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                {"block", {launch.block.x, launch.block.y, launch.block.z}}};
    if (options.has_counts) {
      one["blocks"] = run.counters.blocks;
      one["warps"] = run.counters.warps;
      one["warp_instructions"] = run.counters.warp_instructions;
      one["thread_instructions"] = run.counters.thread_instructions;
      one["findings"] = run.findings.size();
    }
    if (options.time) one["seconds"] = run.seconds;
    if (!run.reasons.empty()) one["not_run"] = run.reasons;
    if (!run.registers.empty()) one["linear_registers"] = run.registers;
    if (const emulator::SectionCounts counts = emulator::section_counts(run.counters); counts.linear().warps > 0)
      one["warp_instructions_of"] = {{"coefficients", counts.coefficient.warps},
                                     {"thread_parts", counts.thread.warps},
                                     {"block_parts", counts.block.warps},
                                     {"rest", counts.rest.warps}};
    if (const auto& skips = run.machines.get<emulator::SkipCounters>(); skips.executed > 0)
      for (const emulator::NamedCount& row : emulator::named_counts(skips))
        one["darsie"][row.name] = row.count;
    const auto& staging = run.machines.get<emulator::StagingCounters>();
    if (staging.regions > 0)
      for (const emulator::StagingCount& row : emulator::named_counts(staging))
        one["regless"][row.name] = row.count;
    for (const emulator::RegionRuns& region : staging.by_region) {
      nlohmann::ordered_json dropped = nlohmann::ordered_json::array();
      for (size_t number = 0; number < region.dropped.size(); ++number)
        if (region.dropped.test(number)) dropped.push_back(number);
      one["regless_regions"].push_back(region.runs);
      one["regless_dropped"].push_back(dropped);
    }
    if (const emulator::CompositeCounts counts = emulator::composite_counts(run.counters); counts.composites > 0)
      one["composite"] = {
          {"composites", counts.composites}, {"slot_writes", counts.slot_writes}, {"slot_reads", counts.slot_reads}};
    if (const auto* affine = run.machines.find<emulator::AffineCounters>()) {
      for (const emulator::NamedAffineCount& row : emulator::named_counts(*affine))
        one["dac"][row.name] = row.count;
      if (!affine->fallback_reason.empty()) one["dac"]["fallback_reason"] = affine->fallback_reason;
    }
    if (run.failure) one["failure"] = run.failure->message;
    launches.push_back(std::move(one));
  }
  for (const Shown& shown : shown_buffers(input, result, options.all_buffers)) {
    json head = json::array();
    const size_t size = shown.buffer->element_bytes(), count = shown.bytes.size() / size;
    for (size_t i = 0; i < count && i < options.head; ++i)
      head.push_back(cuda::element_text(shown.buffer->type, shown.bytes.data() + i * size));
    buffers.push_back({{"name", shown.buffer->name},
                       {"type", std::string(spelling(shown.buffer->type))},
                       {"elements", count},
                       {"checksum", cuda::checksum_text(shown.bytes)},
                       {"head", std::move(head)}});
  }
  json document = {{"file", title}, {"size", input.plan.size}, {"launches", launches}, {"buffers", buffers}};
  if (options.counters) {
    json functions = json::array();
    for (const FunctionSum& sum : sums_of(result)) {
      json rows = json::array();
      for_each_instruction(sum,
                           [&](ir::InstructionId id, const emulator::InstructionCounters& counters, uint32_t line) {
                             rows.push_back({{"line", line},
                                             {"instruction", ir::print_instruction(*sum.source, id)},
                                             {"executions", counters.executions},
                                             {"lanes", counters.lanes},
                                             {"guarded_off", counters.guarded_off},
                                             {"transactions", counters.transactions}});
                           });
      functions.push_back({{"function", sum.source->module().text(sum.source->name)}, {"instructions", rows}});
    }
    document["counters"] = std::move(functions);
  }
  return document;
}

} // namespace ptxrewrite::evaluate
