#include "tests/launchtime/family_rows.h"

#include "cli/pipeline_options.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/figures/figures.h"
#include "ir/ssa/ssa.h"
#include "launch/variants.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "transforms/common/choice.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace ptxrewrite::tests {

namespace {

constexpr const char* family_names[] = {"memory", "narrow", "divisor", "warp", "packed", "small", "composite", "r2d2"};

double user_seconds(int who) {
  rusage usage{};
  getrusage(who, &usage);
  return double(usage.ru_utime.tv_sec) + 1e-6 * double(usage.ru_utime.tv_usec);
}

std::unique_ptr<ir::Module> read_text(const std::string& name, const std::string& text, std::string& failed) {
  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile(name, text), diagnostics);
  if (!module) failed = diagnostics.list().empty() ? "no reason known" : diagnostics.list()[0].message;
  return module;
}

// Machine instructions of a kernel by the model, weighted by loop depth; 0 if it has no SSA form.
double weight_of(const ir::Function& function) {
  ir::Function copy(function);
  if (!ir::construct_ssa(copy)) return 0;
  return transforms::legal::model_cost_of(copy).weighted;
}

const ir::Function* find_kernel(const ir::Module& module, const std::string& name) {
  for (const auto& function : module.functions)
    if (function->has_body && function->is_entry && module.text(function->name) == name) return function.get();
  return nullptr;
}

std::string one_line(std::string text) {
  text = text.substr(0, text.find('\n'));
  std::ranges::replace(text, '\t', ' ');
  return text.substr(0, 200);
}

void write(std::FILE* out, const KernelRow& row) {
  std::fprintf(out, "kernel\t%s\t%s\t%s\t%d\t%d\t%u\t%u\t%u\t%u\t%u\t%u\t%.17g\t%.17g\n", row.candidate.c_str(),
               row.file.c_str(), row.kernel.c_str(), row.changed, row.is_variant, row.instructions_before,
               row.instructions_after, row.registers_before, row.registers_after, row.spills_before, row.spills_after,
               row.weighted_before, row.weighted_after);
}

void write(std::FILE* out, const FileRow& row) {
  std::fprintf(out, "file\t%s\t%s\t%.4f\t%.4f\t%u\t%s\n", row.candidate.c_str(), row.file.c_str(), row.pass_seconds,
               row.ptxas_seconds, row.assemblies, row.failure.c_str());
  std::fflush(out);
}

// Measures one file in its own process.
class FileMeasurement {
public:
  FileMeasurement(const std::string& file, const MeasureSettings& settings, std::FILE* out)
      : file_(file), settings_(settings), out_(out) {}

  // Returns why the original cannot be measured; "" if it can.
  std::string prepare() {
    const Result<std::string> text = read_file(file_);
    if (!text) return "not read: " + text.error().message;
    text_ = *text;
    if (!settings_.by_model) retarget();
    std::string failed;
    original_ = read_text(file_, text_, failed);
    if (!original_) return "not read: " + failed;
    const Result<PtxasRun> run = assemble(text_, {.arch = settings_.architecture});
    if (!run || !run->ok) return "original refused by ptxas";
    ptxas_seconds_ = run->user_seconds;
    const Result<ir::FiguresByFunction> figures = ir::machine_figures(text_, settings_.architecture);
    if (!figures) return "original refused by ptxas";
    before_ = *figures;
    for (const auto& function : original_->functions)
      if (function->has_body && function->is_entry)
        weights_[std::string(original_->text(function->name))] = weight_of(*function);
    return "";
  }

  void measure(const Candidate& candidate) {
    FileRow row{candidate.name, file_, "", 0, ptxas_seconds_, 0};
    row.failure = one_line(measure(candidate, row));
    write(out_, row);
  }

private:
  // ptxas chooses for the target that the text names, which must be the measured one. Old versions of PTX lack it.
  void retarget() {
    const std::string own = target_architecture(text_);
    const size_t at = own.empty() ? std::string::npos : text_.find(own, text_.find(".target"));
    if (at == std::string::npos) return;
    std::string changed = text_;
    changed.replace(at, own.size(), settings_.architecture);
    const Result<PtxasRun> run = assemble(changed, {.arch = settings_.architecture});
    if (run && run->ok) text_ = changed;
  }

  std::string measure(const Candidate& candidate, FileRow& row) {
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text(file_, text_, failed);
    const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(candidate.passes);
    if (!pipeline) return pipeline.error().message;
    transforms::RunOptions options;
    options.run_ptxas = !settings_.by_model;
    const double start = user_seconds(RUSAGE_SELF);
    const Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
    row.pass_seconds = user_seconds(RUSAGE_SELF) - start;
    if (!report) return "pass fails: " + report.error().message;
    const std::string text = ir::print(*module);
    const std::unique_ptr<ir::Module> after = read_text(file_, text, failed);
    if (!after) return "not read back: " + failed;
    if (ir::print(*after) != text) return "no fixed point";
    // If nothing changed, ptxas need not run again.
    const bool is_changed = text != identity()->source.text();
    const Result<ir::FiguresByFunction> figures =
        is_changed ? ir::machine_figures(text, settings_.architecture) : before_;
    if (!figures) return "refused by ptxas: " + figures.error().message;
    const Result<launch::Variants> variants = launch::Variants::of(*after, nullptr);
    if (!variants) return "variants: " + variants.error().message;
    for (const auto& [kernel, weight] : weights_)
      write_kernel(candidate, kernel, *after, *variants, *figures);
    return "";
  }

  // The text of a function, as in the module.
  static std::string printed(const ir::Module& module, const ir::Function& function) {
    return std::string(module.source.text().substr(function.range.begin, function.range.end - function.range.begin));
  }

  void write_kernel(const Candidate& candidate, const std::string& kernel, const ir::Module& after,
                    const launch::Variants& variants, const ir::FiguresByFunction& figures) {
    const auto then = before_.find(kernel);
    const std::span<const launch::Variant> stand_ins = variants.of_kernel(kernel);
    const std::string& entry = stand_ins.empty() ? kernel : stand_ins.front().entry;
    const auto now = figures.find(entry);
    const ir::Function *old_one = find_kernel(*identity(), kernel), *new_one = find_kernel(after, entry);
    if (then == before_.end() || now == figures.end() || !old_one || !new_one) return;
    KernelRow row{.candidate = candidate.name, .file = file_, .kernel = kernel};
    row.is_variant = !stand_ins.empty();
    row.changed = row.is_variant || printed(*identity(), *old_one) != printed(after, *new_one);
    row.instructions_before = then->second.instructions, row.instructions_after = now->second.instructions;
    row.registers_before = then->second.registers, row.registers_after = now->second.registers;
    row.spills_before = then->second.spilled_bytes, row.spills_after = now->second.spilled_bytes;
    row.weighted_before = weights_.at(kernel);
    row.weighted_after = row.changed ? weight_of(*new_one) : row.weighted_before;
    write(out_, row);
  }

  // The module as printed without any pass: the text of an unchanged kernel.
  const ir::Module* identity() {
    if (identity_) return identity_.get();
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text(file_, text_, failed);
    const Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, {});
    identity_ = read_text(file_, report ? ir::print(*module) : text_, failed);
    return identity_.get();
  }

  const std::string& file_;
  const MeasureSettings& settings_;
  std::FILE* out_;
  std::string text_;
  std::unique_ptr<ir::Module> original_, identity_;
  ir::FiguresByFunction before_;
  std::map<std::string, double> weights_;
  double ptxas_seconds_ = 0;
};

// Work that passes and reader do once per process must not count as time of the first file.
void warm_up(const std::vector<Candidate>& list) {
  const std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
                           ".reg .b32 %r<3>; .reg .b64 %d<4>;\nld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x;\n"
                           "mul.wide.u32 %d2, %r1, 4; add.s64 %d3, %d1, %d2; st.global.u32 [%d3], %r1; ret;\n}\n";
  for (const Candidate& candidate : list) {
    std::string failed;
    const std::unique_ptr<ir::Module> module = read_text("warm-up", text, failed);
    const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(candidate.passes);
    if (module && pipeline) (void)transforms::run_pipeline(*module, *pipeline).ok();
  }
}

// Runs over one file in its own process, for all candidates without a row.
pid_t start(const std::string& file, const std::vector<Candidate>& todo, const MeasureSettings& settings,
            const std::string& output) {
  const pid_t child = fork();
  if (child != 0) return child;
  const rlimit limit{settings.seconds, settings.seconds};
  setrlimit(RLIMIT_CPU, &limit);
  std::FILE* out = std::fopen(output.c_str(), "w");
  FileMeasurement measurement(file, settings, out);
  const std::string failure = one_line(measurement.prepare());
  for (const Candidate& candidate : todo)
    if (failure.empty())
      measurement.measure(candidate);
    else
      write(out, FileRow{candidate.name, file, failure, 0, 0, 0});
  std::fclose(out);
  _exit(0);
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');)
    fields.push_back(field);
  return fields;
}

} // namespace

std::vector<Candidate> candidates(const std::vector<std::string>& wanted, bool by_model) {
  std::vector<Candidate> list;
  const auto is_wanted = [&](std::string_view name) {
    return wanted.empty() || std::ranges::find(wanted, name) != wanted.end();
  };
  Candidate together{"together", ""};
  for (const char* name : family_names) {
    const transforms::PassDescription* pass = transforms::find_pass(name);
    if (pass == nullptr) continue;
    const bool has_cost = std::ranges::any_of(pass->options, [](const auto& option) { return option.name == "cost"; });
    const std::string passes = std::string(name) + (by_model && has_cost ? "(cost=model)" : "");
    together.passes += (together.passes.empty() ? "" : ",") + passes;
    if (is_wanted(name)) list.push_back({name, passes});
  }
  if (is_wanted(together.name)) list.push_back(together);
  if (!is_wanted("-O")) return list;
  cli::PipelineOptions best;
  best.optimise = true;
  if (const std::optional<transforms::Pipeline> pipeline = cli::make_pipeline(best, cli::Session{}))
    list.push_back({"-O", transforms::to_string(*pipeline)});
  return list;
}

Status measure_files(const std::vector<std::string>& files, const std::vector<Candidate>& list,
                     const MeasureSettings& settings, const std::string& rows_file) {
  if (Result<std::string> ptxas = find_ptxas(); !ptxas) return ptxas.error();
  std::set<std::pair<std::string, std::string>> known;
  if (const Result<FamilyRows> rows = read_rows(rows_file))
    for (const FileRow& row : rows->files)
      known.emplace(row.candidate, row.file);
  std::ofstream rows(rows_file, std::ios::app);
  warm_up(list);
  struct Job {
    std::string file, output;
    std::vector<Candidate> todo;
  };
  std::map<pid_t, Job> running;
  std::vector<Job> waiting;
  for (const std::string& file : files) {
    Job job{file, rows_file + "." + std::to_string(waiting.size()), {}};
    for (const Candidate& candidate : list)
      if (!known.contains({candidate.name, file})) job.todo.push_back(candidate);
    if (!job.todo.empty()) waiting.push_back(std::move(job));
  }
  std::ranges::reverse(waiting);
  while (!waiting.empty() || !running.empty()) {
    if (!waiting.empty() && running.size() < settings.jobs) {
      Job job = std::move(waiting.back());
      waiting.pop_back();
      const pid_t child = start(job.file, job.todo, settings, job.output);
      running.emplace(child, std::move(job));
      continue;
    }
    int status = 0;
    const pid_t child = wait(&status);
    if (!running.contains(child)) continue;
    Job job = std::move(running.at(child));
    running.erase(child);
    const Result<std::string> output = read_file(job.output);
    const std::string text = output ? *output : "";
    std::filesystem::remove(job.output);
    rows << text;
    const auto is_done = [&](const Candidate& one) {
      return text.find("file\t" + one.name + "\t" + job.file + "\t") != std::string::npos;
    };
    std::erase_if(job.todo, is_done);
    if (!job.todo.empty()) { // it died in the first candidate without a row
      const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      rows << "file\t" << job.todo[0].name << '\t' << job.file << "\t0\t0\t0\t"
           << (signal == SIGXCPU || signal == SIGKILL ? "time" : "crash") << '\n';
      job.todo.erase(job.todo.begin());
      if (!job.todo.empty()) waiting.push_back(std::move(job));
    }
    rows.flush();
  }
  if (!rows) return Error{rows_file + " cannot be written", {}};
  return {};
}

Result<FamilyRows> read_rows(const std::string& rows_file) {
  std::ifstream stream(rows_file);
  if (!stream) return Error{rows_file + " cannot be read", {}};
  FamilyRows rows;
  const auto whole = [](const std::string& text) {
    return static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10));
  };
  for (std::string line; std::getline(stream, line);) {
    const std::vector<std::string> f = split(line);
    if (f.size() == 14 && f[0] == "kernel")
      rows.kernels.push_back({f[1], f[2], f[3], f[4] == "1", f[5] == "1", whole(f[6]), whole(f[7]), whole(f[8]),
                              whole(f[9]), whole(f[10]), whole(f[11]), std::strtod(f[12].c_str(), nullptr),
                              std::strtod(f[13].c_str(), nullptr)});
    else if (f.size() >= 6 && f[0] == "file")
      rows.files.push_back({f[1], f[2], f.size() > 6 ? f[6] : "", std::strtod(f[3].c_str(), nullptr),
                            std::strtod(f[4].c_str(), nullptr), whole(f[5])});
  }
  return rows;
}

bool is_held_out(const std::string& file) {
  uint32_t hash = 2166136261u; // FNV-1a
  for (const char c : file.substr(file.rfind('/') + 1))
    hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return (hash ^ hash >> 16) & 1;
}

} // namespace ptxrewrite::tests
