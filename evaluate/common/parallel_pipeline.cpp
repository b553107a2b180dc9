// Forks the processes, sends their results through pipes and merges them in the order of the functions.
#include "evaluate/common/parallel_pipeline.h"

#include "ir/core/print.h"
#include "support/interruption.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace ptxrewrite::evaluate {

namespace {

using transforms::Obligation;
using transforms::PipelineReport;
using transforms::Remark;
using transforms::StageTime;

// --- results as bytes ---

class Writer {
public:
  void put(uint64_t number) { bytes_.append(reinterpret_cast<const char*>(&number), sizeof number); }
  void put(double number) { put(std::bit_cast<uint64_t>(number)); }
  void put(std::string_view text) {
    put(uint64_t{text.size()});
    bytes_ += text;
  }
  void put(SourceRange range) { put(uint64_t{range.begin} << 32 | range.end); }
  const std::string& bytes() const { return bytes_; }

private:
  std::string bytes_;
};

// Reading behind the end gives zeros and sets `failed`.
class Reader {
public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}
  bool failed() const { return failed_; }
  uint64_t number() {
    uint64_t number = 0;
    const std::string_view part = take(sizeof number);
    if (!failed_) std::memcpy(&number, part.data(), sizeof number);
    return number;
  }
  double real() { return std::bit_cast<double>(number()); }
  std::string text() { return std::string(take(number())); }
  SourceRange range() {
    const uint64_t both = number();
    return {static_cast<uint32_t>(both >> 32), static_cast<uint32_t>(both)};
  }

private:
  std::string_view take(uint64_t size) {
    failed_ |= size > bytes_.size();
    if (failed_) return {};
    const std::string_view part = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return part;
  }
  std::string_view bytes_;
  bool failed_ = false;
};

void put(Writer& writer, const PipelineReport& report) {
  writer.put(uint64_t{report.functions.size()});
  for (const std::string& name : report.functions)
    writer.put(name);
  writer.put(uint64_t{report.remarks.size()});
  for (const Remark& remark : report.remarks) {
    writer.put(remark.text);
    writer.put(remark.range);
    writer.put(remark.pass);
    writer.put(remark.function);
  }
  writer.put(uint64_t{report.ledger.size()});
  for (const Obligation& entry : report.ledger) {
    writer.put(entry.function);
    writer.put(entry.statement);
    writer.put(entry.raised_by);
    writer.put(static_cast<uint64_t>(entry.discharge));
    writer.put(entry.reason);
    writer.put(entry.range);
    writer.put(entry.exact);
  }
  writer.put(uint64_t{report.statistics.size()});
  for (const auto& [name, count] : report.statistics) {
    writer.put(name);
    writer.put(static_cast<uint64_t>(count));
  }
  writer.put(uint64_t{report.times.size()});
  for (const StageTime& time : report.times) {
    writer.put(time.stage);
    writer.put(time.runs);
    writer.put(time.changes);
    writer.put(time.seconds);
  }
  for (const uint64_t number : {report.executions, report.assemblies, report.most_assemblies, report.assembled_kernels})
    writer.put(number);
  writer.put(static_cast<uint64_t>(report.ptxas_refused));
}

// Adds the report of a later share.
void add(Reader& reader, PipelineReport& report) {
  for (uint64_t left = reader.number(); left > 0 && !reader.failed(); --left)
    report.functions.push_back(reader.text());
  for (uint64_t left = reader.number(); left > 0 && !reader.failed(); --left) {
    Remark remark(reader.text());
    remark.range = reader.range();
    remark.pass = reader.text();
    remark.function = reader.text();
    report.remarks.push_back(std::move(remark));
  }
  for (uint64_t left = reader.number(); left > 0 && !reader.failed(); --left) {
    Obligation entry;
    entry.function = reader.text();
    entry.statement = reader.text();
    entry.raised_by = reader.text();
    entry.discharge = static_cast<transforms::Discharge>(reader.number());
    entry.reason = reader.text();
    entry.range = reader.range();
    entry.exact = reader.text();
    report.ledger.push_back(std::move(entry));
  }
  for (uint64_t left = reader.number(); left > 0 && !reader.failed(); --left) {
    const std::string name = reader.text();
    report.statistics[name] += static_cast<int64_t>(reader.number());
  }
  for (uint64_t left = reader.number(); left > 0 && !reader.failed(); --left) {
    const std::string stage = reader.text();
    auto time = std::ranges::find(report.times, stage, &StageTime::stage);
    if (time == report.times.end()) time = report.times.insert(time, StageTime{stage});
    time->runs += reader.number();
    time->changes += reader.number();
    time->seconds += reader.real();
  }
  report.executions += reader.number();
  report.assemblies += reader.number();
  report.most_assemblies = std::max(report.most_assemblies, reader.number());
  report.assembled_kernels += reader.number();
  report.ptxas_refused |= reader.number() != 0;
}

// --- one process ---

// Writes the text of each function of the share, together with neighbouring functions that passes added. An added
// function between two others may be written with either one.
void put_texts(Writer& writer, const ir::Module& module, size_t count_as_read, const std::vector<bool>& ours) {
  std::vector<std::pair<uint32_t, std::string>> texts;
  std::string before;
  bool follows = false; // the item before belongs to the last one of `texts`
  for (const ir::Item& item : module.items) {
    const bool is_added = item.kind == ir::ItemKind::function && item.id >= count_as_read;
    if (!is_added && (item.kind != ir::ItemKind::function || !ours[item.id])) {
      follows = false;
      continue;
    }
    if (!is_added) {
      texts.emplace_back(item.id, std::exchange(before, {}));
      follows = true;
    }
    std::string& text = follows ? texts.back().second : before;
    ir::print(*module.functions[item.id], text);
    text += '\n';
  }
  for (const auto& [id, text] : texts) {
    writer.put(uint64_t{id} + 1);
    writer.put(text);
  }
  writer.put(uint64_t{0});
}

std::string run_share(ir::Module& module, const transforms::Pipeline& pipeline, transforms::RunOptions options,
                      const std::vector<bool>& ours) {
  const size_t count = module.functions.size();
  for (size_t i = 0; i < count; ++i)
    if (!ours[i]) options.excluded.emplace_back(module.text(module.functions[i]->name));
  Writer writer;
  Result<PipelineReport> report = transforms::run_pipeline(module, pipeline, options);
  writer.put(static_cast<uint64_t>(report.ok()));
  if (!report) {
    writer.put(report.error().message);
    writer.put(report.error().range);
    return writer.bytes();
  }
  put(writer, *report);
  writer.put(static_cast<uint64_t>(module.hardware_form));
  put_texts(writer, module, count, ours);
  return writer.bytes();
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

struct Process {
  pid_t id = -1;
  int output = -1; // its results
};

Process start(ir::Module& module, const transforms::Pipeline& pipeline, const transforms::RunOptions& options,
              const std::vector<bool>& ours) {
  std::array<int, 2> ends{-1, -1};
  if (::pipe(ends.data()) != 0) return {};
  std::fflush(nullptr);
  const pid_t id = interruption::fork_child();
  if (id == 0) {
    ::setpgid(0, 0);
    leave_signals_to_next_program();
    ::close(ends[0]);
    const bool sent = write_all(ends[1], run_share(module, pipeline, options, ours));
    ::_exit(sent ? 0 : 1);
  }
  ::close(ends[1]);
  if (id < 0) ::close(ends[0]);
  return {id, id < 0 ? -1 : ends[0]};
}

// Waits for the end of the process; nullopt if it failed.
std::optional<std::string> finish(const Process& process) {
  if (process.id < 0) return std::nullopt;
  std::string bytes;
  std::array<char, 1 << 16> part;
  while (true) {
    const ssize_t size = ::read(process.output, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    bytes.append(part.data(), static_cast<size_t>(size));
  }
  ::close(process.output);
  int status = 0;
  while (::waitpid(process.id, &status, 0) < 0 && errno == EINTR) {
  }
  interruption::child_ended(process.id);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return std::nullopt;
  return bytes;
}

// --- shares ---

bool is_processed(const ir::Module& module, const ir::Function& function, const transforms::RunOptions& options) {
  const std::string name(module.text(function.name));
  return function.has_body && transforms::matches_glob(options.functions, name) &&
         std::ranges::find(options.excluded, name) == options.excluded.end();
}

// Contiguous shares of about the same length of text.
std::vector<std::vector<bool>> shares_of(const ir::Module& module, const transforms::RunOptions& options,
                                         unsigned jobs) {
  std::vector<uint64_t> lengths(module.functions.size());
  uint64_t all = 0;
  for (size_t i = 0; i < lengths.size(); ++i)
    if (is_processed(module, *module.functions[i], options)) {
      const SourceRange range = module.functions[i]->range;
      all += lengths[i] = 1 + range.end - range.begin;
    }
  std::vector<std::vector<bool>> shares(jobs, std::vector<bool>(lengths.size()));
  uint64_t before = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    if (lengths[i] == 0) continue;
    const uint64_t middle = before + lengths[i] / 2;
    shares[std::min<uint64_t>(middle * jobs / std::max<uint64_t>(all, 1), jobs - 1)][i] = true;
    before += lengths[i];
  }
  std::erase_if(shares, [](const std::vector<bool>& share) { return std::ranges::find(share, true) == share.end(); });
  return shares;
}

bool names_function(const ir::Operand& operand) {
  return operand.is(ir::OperandKind::symbol) && operand.as_symbol().kind() == ir::SymbolRef::Kind::function;
}

// Does an instruction or an initialiser name a function?
bool names_functions(const ir::Module& module) {
  for (const ir::Variable& variable : module.variables)
    if (std::ranges::any_of(module.initialisers.view(variable.initialiser), names_function)) return true;
  for (const auto& function : module.functions)
    for (ir::BlockId block : function->layout)
      for (ir::InstructionId id : function->instructions_in(block))
        if (std::ranges::any_of(function->operands_of(id), names_function)) return true;
  return false;
}

// Passes whose result for a kernel depends on no other function of the module: their new labels and names are numbered
// within the kernel.
bool stays_in_kernel(const transforms::PipelineStep& step) {
  constexpr std::array<std::string_view, 10> passes = {"composite", "dce",  "divisor",  "memory", "narrow",
                                                       "packed",    "r2d2", "schedule", "spill",  "warp"};
  if (std::ranges::find(passes, step.pass.name) == passes.end()) return false;
  return !step.options.flag("persistent") &&
         step.options.text("discharge", "").find("kernel") == std::string_view::npos;
}

} // namespace

bool can_share_out(const ir::Module& module, const transforms::Pipeline& pipeline,
                   const transforms::RunOptions& options) {
  if (options.stop_after != UINT64_MAX || options.print_changed || !options.print_before.names.empty() ||
      !options.print_after.names.empty())
    return false;
  if (!std::ranges::all_of(pipeline.steps, stays_in_kernel)) return false;
  size_t kernels = 0;
  for (const auto& function : module.functions) {
    if (function->has_body && (!function->is_entry || function->affine_stream)) return false;
    kernels += is_processed(module, *function, options);
  }
  return kernels > 1 && !names_functions(module);
}

Result<PipelineReport> run_shared_out(ir::Module& module, const transforms::Pipeline& pipeline,
                                      const transforms::RunOptions& options, unsigned jobs, std::string& text) {
  std::vector<Process> processes;
  for (const std::vector<bool>& share : shares_of(module, options, jobs))
    processes.push_back(start(module, pipeline, options, share));
  PipelineReport report;
  std::map<uint64_t, std::string> texts; // by function
  std::optional<Error> error;
  for (const Process& process : processes) {
    const std::optional<std::string> bytes = finish(process);
    if (error) continue;
    Reader reader(bytes ? *bytes : std::string_view());
    const bool is_complete = reader.number() != 0;
    if (bytes && !is_complete && !reader.failed()) {
      std::string message = reader.text();
      error = Error{std::move(message), reader.range()};
      continue;
    }
    add(reader, report);
    module.hardware_form |= reader.number() != 0;
    for (uint64_t id = reader.number(); id != 0 && !reader.failed(); id = reader.number())
      texts[id - 1] = reader.text();
    if (reader.failed()) error = Error{"internal error: a process of --jobs has failed", {}};
  }
  if (error) return *std::move(error);
  if (report.statistics.contains("ptxas.most-of-a-kernel"))
    report.statistics["ptxas.most-of-a-kernel"] = static_cast<int64_t>(report.most_assemblies);
  std::vector<ir::Item> items = module.items;
  for (ir::Item& item : module.items)
    if (const auto found = texts.find(item.id); item.kind == ir::ItemKind::function && found != texts.end())
      item = {ir::ItemKind::verbatim, 0, found->second, item.range};
  ir::print(module, text);
  module.items = std::move(items);
  return report;
}

} // namespace ptxrewrite::evaluate
