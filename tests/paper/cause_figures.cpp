// Why our averages differ from a paper's: removes suspected causes, one at a time, and prints the resulting
// means.
//
//   cause_figures --paper NAME [--size SIZE] [--exact] [--json] LAUNCH_FILE ...
//   cause_figures --paper NAME --columns ...             all figures: as the paper counts, with today's code, on an
//   H100 cause_figures --paper dac --check LAUNCH_FILE ...    no removed cost makes the technique slower
//   ... --captured DIR    captures of the benchmarks that the files represent, in their place (score_captured.h)
//
// Each row changes the machine, the launches or the model for the original and the technique alike (ScoreExperiment);
// none is a setting of `score`. Files are classified by their bound in the unchanged model.
#include "emulator/timing/slice.h"
#include "evaluate/score/benchmark_slice.h"
#include "evaluate/score/score_captured.h"
#include "evaluate/score/score_paper.h"
#include "ir/core/instruction.h"
#include "support/text/json_text.h"
#include "support/text/table.h"
#include "tests/paper/sample_tool.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <sstream>

namespace {

using namespace ptxrewrite;
using namespace ptxrewrite::tests;
using json = nlohmann::ordered_json;

// A change.
struct Cause {
  std::string about;
  bool spares = false; // it only removes costs from the technique
  evaluate::ScoreExperiment experiment = {};
  uint32_t slice = 0;       // of the machine; 0: as in the paper's table
  double bandwidth = 1;     // factor on the bandwidth of L2 and DRAM
  bool waits = true;        // false: every result is available in the next clock, and memory takes no time
  std::string machine = {}; // instead of the paper's
};

void take_no_time_for_affine_warp(timing::Technique& technique, const timing::ModelInput&) {
  technique.added_warps.clear();
  if (!technique.run_ahead) return;
  auto ahead = std::make_shared<timing::RunAhead>(*technique.run_ahead);
  for (std::vector<double>& clocks : ahead->enqueued)
    std::ranges::fill(clocks, 0.0);
  technique.run_ahead = std::move(ahead);
}

void expand_for_nothing(timing::Technique& technique, const timing::ModelInput&) {
  technique.demands[timing::index(timing::Cause::expansion)] = 0;
  technique.instructions = 0; // comparisons of all lanes
}

void look_up_early_requests_elsewhere(timing::Technique& technique, const timing::ModelInput&) {
  technique.demands[timing::index(timing::Cause::memory_port)] = 0;
}

// Little's law for all lines that miss L1, also for individual loads: a miss register is held until the line
// arrives.
void hold_miss_registers(timing::Technique& technique, const timing::ModelInput& input) {
  if (!input.machine.memory.outstanding_misses.known) return;
  const std::vector<timing::LoadTime> loads = timing::load_times(input);
  double held = 0; // register clocks of all loads
  timing::for_each_site(input, [&](uint32_t number, const emulator::InstructionCounters& counts) {
    const auto performed = static_cast<double>(counts.executions - counts.guarded_off);
    held += performed * loads[number].miss_lines * loads[number].latency;
  });
  technique.demands[timing::index(timing::Cause::misses)] = held / input.machine.memory.outstanding_misses.value;
}

// The paper's baseline has two levels of scheduling; eight active warps are a guess.
void let_eight_warps_be_active(timing::Technique& technique, const timing::ModelInput&) {
  technique.active_warps = 8;
}

void occupy_no_units(timing::Technique& technique, const timing::ModelInput& input) {
  technique.sites.resize(input.recording.sites.size());
  for (timing::SiteChange& site : technique.sites)
    site.unit = 0;
  technique.demands = {};
}

void take_no_time_for_linear_parts(timing::Recording& recording) {
  for (ir::SectionKind part :
       {ir::SectionKind::r2d2_coefficient, ir::SectionKind::r2d2_thread, ir::SectionKind::r2d2_block})
    recording.sections[1 + static_cast<size_t>(part)] = {};
}

constexpr uint32_t first_generation = 13; // PTXPLUS is the code of machines of that kind

std::vector<Cause> causes_of_dac() {
  const std::string ptx = "each PTX instruction is one of the machine";
  evaluate::ScoreExperiment all{.code = timing::CodeIs::ptx,
                                .assembler = 0,
                                .recording = {},
                                .technique = [](auto& technique, const auto& input) {
                                  take_no_time_for_affine_warp(technique, input);
                                  expand_for_nothing(technique, input);
                                  look_up_early_requests_elsewhere(technique, input);
                                }};
  return {
      {"as the model has it"},
      {.about = ptx, .experiment = {.code = timing::CodeIs::ptx}},
      {.about = "machine instructions of sm_13 (PTXPLUS)", .experiment = {.assembler = first_generation}},
      {.about = "neighbours in shared memory are not joined", .experiment = {.code = timing::CodeIs::apart}},
      {.about = "on a slice of one SM: grids 15 times as dense", .slice = 15},
      {.about = "the affine warp takes no time",
       .spares = true,
       .experiment = {.technique = take_no_time_for_affine_warp}},
      {.about = "expansion takes no time", .spares = true, .experiment = {.technique = expand_for_nothing}},
      {.about = "early requests look L1 up beside its port",
       .spares = true,
       .experiment = {.technique = look_up_early_requests_elsewhere}},
      {.about = "each line that misses holds one of 32 miss registers",
       .experiment = {.technique = hold_miss_registers}},
      {.about = "eight active warps of a scheduler", .experiment = {.technique = let_eight_warps_be_active}},
      {.about = "nothing waits: issue, units and ports alone", .waits = false},
      {.about = ptx + "; nothing waits", .experiment = {.code = timing::CodeIs::ptx}, .waits = false},
      {.about = ptx + "; affine warp, expansion and early requests free", .experiment = all},
      {.about = ptx + "; slice of one SM", .experiment = {.code = timing::CodeIs::ptx}, .slice = 15},
      {.about = ptx + "; slice; affine warp, expansion and early requests free", .experiment = all, .slice = 15},
  };
}

std::vector<Cause> causes_of_r2d2() {
  const std::string ptx = "each PTX instruction is one of the machine";
  constexpr double ample = 100;
  const evaluate::ScoreExperiment as_ptx{.code = timing::CodeIs::ptx};
  const evaluate::ScoreExperiment free_parts{.recording = take_no_time_for_linear_parts};
  const evaluate::ScoreExperiment both{.code = timing::CodeIs::ptx, .recording = take_no_time_for_linear_parts};
  return {
      {"as the model has it"},
      {.about = ptx, .experiment = as_ptx},
      {.about = "bandwidth of L2 and DRAM 100 times as large", .bandwidth = ample},
      {.about = "linear parts take no time", .spares = true, .experiment = free_parts},
      {.about = "on the whole machine", .slice = 1},
      {.about = "nothing waits: issue, units and ports alone", .waits = false},
      {.about = "nothing waits: issue alone", .experiment = {.technique = occupy_no_units}, .waits = false},
      {.about = ptx + "; nothing waits", .experiment = as_ptx, .waits = false},
      {.about = ptx + "; bandwidth", .experiment = as_ptx, .bandwidth = ample},
      {.about = ptx + "; bandwidth; linear parts take no time", .experiment = both, .bandwidth = ample},
  };
}

std::vector<Cause> causes_of_composite() {
  return {
      {"as the model has it"},
      {.about = "on a slice of one SM: grids 30 times as dense", .slice = 30},
      {.about = "nothing waits: issue, units and ports alone", .waits = false},
      {.about = "nothing waits; slice of one SM", .slice = 30, .waits = false},
  };
}

std::vector<Cause> causes_of_darsie() {
  const evaluate::ScoreExperiment as_ptx{.code = timing::CodeIs::ptx};
  constexpr double ample = 100;
  return {
      {"as the model has it"},
      {.about = "each PTX instruction is one of the machine", .experiment = as_ptx},
      {.about = "machine instructions of sm_13 (PTXPLUS)", .experiment = {.assembler = first_generation}},
      {.about = "bandwidth of L2 and DRAM 100 times as large", .bandwidth = ample},
      {.about = "nothing waits: issue, units and ports alone", .waits = false},
      {.about = "nothing waits: issue alone", .experiment = {.technique = occupy_no_units}, .waits = false},
      {.about = "on the whole machine", .slice = 1},
  };
}

std::vector<Cause> causes_of_regless() {
  return {{"as the model has it"}, {.about = "nothing waits: issue, units and ports alone", .waits = false}};
}

// What changes on a machine of today, and why.
std::vector<Cause> causes_on_today() {
  const std::string today = "on an H100";
  return {
      {.about = today, .machine = "h100"},
      {.about = today + "; bandwidth of L2 and DRAM 100 times as large", .bandwidth = 100, .machine = "h100"},
      {.about = today + "; nothing waits", .waits = false, .machine = "h100"},
  };
}

std::vector<Cause> causes_of_technique(std::string_view paper) {
  return paper == "dac"       ? causes_of_dac()
         : paper == "r2d2"    ? causes_of_r2d2()
         : paper == "darsie"  ? causes_of_darsie()
         : paper == "regless" ? causes_of_regless()
                              : causes_of_composite();
}

std::vector<Cause> causes_of(std::string_view paper) {
  std::vector<Cause> causes = causes_of_technique(paper);
  std::ranges::move(causes_on_today(), std::back_inserter(causes));
  if (paper == "dac")
    causes.push_back({.about = "on an H100; the affine warp takes no time",
                      .experiment = {.technique = take_no_time_for_affine_warp},
                      .machine = "h100"});
  return causes;
}

// The columns of a paper's table. The simulators of r2d2 and composite execute PTX, those of the others PTXPLUS, the
// code of machines of the first generation; the first column is the classification of files, too.
std::vector<Cause> columns() {
  return {
      {"today's code"},
      {.about = "PTX", .experiment = {.code = timing::CodeIs::ptx}},
      {.about = "PTXPLUS", .experiment = {.assembler = first_generation}},
      {.about = "H100", .machine = "h100"},
  };
}

// Only issue, units, ports, and the costs added by the technique remain.
ir::Machine without_waits(const ir::Machine& machine) {
  ir::Machine changed = evaluate::with_perfect_memory(machine).machine;
  ir::LatencyFacts& latency = changed.latency;
  for (ir::Figure* figure : {&latency.integer, &latency.integer_multiply_add, &latency.fp32, &latency.fp64,
                             &latency.special_function, &latency.shared, &latency.constant})
    if (figure->known) figure->value = 1;
  return changed;
}

struct Settings {
  const evaluate::Paper& paper;
  std::string size;
  bool exact = false;
  std::string captured; // a folder; "": the files themselves
};

struct FileScore {
  std::shared_ptr<const ir::Machine> machine; // of `scored`
  evaluate::ScoredFile scored;
};

std::shared_ptr<const ir::Machine> machine_for(const Settings& settings, const Cause& cause, uint32_t slice) {
  const ir::Machine& whole = *ir::find_machine(cause.machine.empty() ? settings.paper.machine : cause.machine);
  const ir::Machine part = slice > 1 ? timing::slice_of(whole, slice) : whole;
  const auto machine =
      std::make_shared<ir::Machine>(cause.machine.empty() ? evaluate::machine_of(settings.paper, part) : part);
  machine->memory.achieved_dram_gb_per_second.value *= cause.bandwidth;
  machine->memory.l2_bytes_per_clock.value *= cause.bandwidth;
  if (!cause.waits) *machine = without_waits(*machine);
  return machine;
}

Result<FileScore> score_of_launches(const std::string& file, const std::string& size, const Settings& settings,
                                    const Cause& cause) {
  Result<evaluate::LaunchInput> input = read_sample(file, size);
  if (!input) return input.error();
  const evaluate::Paper& paper = settings.paper;
  const uint32_t sms = ir::find_machine(cause.machine.empty() ? paper.machine : cause.machine)->sms;
  const bool is_dense = paper.sliced && settings.captured.empty();
  const uint32_t slice = cause.slice ? cause.slice : is_dense ? evaluate::benchmark_slice(input->plan, sms) : 1;
  const std::shared_ptr<const ir::Machine> machine = machine_for(settings, cause, slice);
  evaluate::ScoreSettings score{.machine = *machine,
                                .slice = slice,
                                .passes = {},
                                .darsie = paper.darsie,
                                .paper_marks = true,
                                .form = transforms::OutputForm::hardware,
                                .exact = settings.exact,
                                .changes = {}};
  if (!paper.passes.empty()) score.passes.emplace_back(paper.passes);
  if (paper.regless) score.regless = evaluate::paper_configurations();
  std::istringstream comparators{std::string(paper.comparators)};
  for (std::string name; comparators >> name;)
    score.comparators.push_back(name);
  if (paper.by_bound) score.changes.push_back(evaluate::with_perfect_memory(*machine));
  score.experiment = cause.experiment;
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  Result<evaluate::ScoreRun> run = evaluate::score(*input, score, place);
  if (!run) return run.error();
  if (run->failure) return Error{run->failure->message, {}};
  run->scored.has_perfect_memory = paper.by_bound;
  return FileScore{machine, std::move(run->scored)};
}

Result<FileScore> score_of(const std::string& file, const Settings& settings, const Cause& cause) {
  if (settings.captured.empty()) return score_of_launches(file, settings.size, settings, cause);
  std::shared_ptr<const ir::Machine> machine;
  std::vector<evaluate::ScoredFile> launches;
  for (const std::string& launch : evaluate::captured_launches(settings.captured, file)) {
    Result<FileScore> scored = score_of_launches(launch, {}, settings, cause);
    if (!scored) return scored.error();
    if (!machine) machine = scored->machine;
    launches.push_back(std::move(scored->scored));
    launches.back().machine = machine.get(); // equal for all launches
  }
  return FileScore{machine, evaluate::merged_launches(std::move(launches), file)};
}

// The paper's averages: of speed, instructions and energy, or all.
std::vector<evaluate::PaperTimeFigure> figures_of(const evaluate::Paper& paper, bool all) {
  std::vector<evaluate::PaperTimeFigure> figures;
  for (const evaluate::PaperTimeFigure& figure : evaluate::paper_time_figures())
    if (figure.paper == paper.name && (all || figure.measure == evaluate::PaperMeasure::speedup ||
                                       figure.measure == evaluate::PaperMeasure::fewer_instructions ||
                                       figure.measure == evaluate::PaperMeasure::less_energy))
      figures.push_back(figure);
  return figures;
}

// Over the files that are `counted`. `bounds`: the same files in the unchanged model, which classifies them.
evaluate::OurFigure mean(evaluate::PaperTimeFigure figure, const std::vector<FileScore>& files,
                         const std::vector<FileScore>& bounds, const std::vector<bool>& counted) {
  std::vector<evaluate::ScoredFile> scored;
  for (size_t i = 0; i < files.size(); ++i) {
    evaluate::FileGain gain;
    if (counted[i] && evaluate::gain_of(bounds[i].scored, figure.version, gain) &&
        evaluate::is_counted(figure.files, gain))
      scored.push_back(files[i].scored);
  }
  figure.files = evaluate::PaperFiles::all;
  return evaluate::our_figure(figure, scored);
}

std::string number_text(double number, evaluate::PaperMeasure measure) {
  const bool is_percentage = measure != evaluate::PaperMeasure::speedup &&
                             measure != evaluate::PaperMeasure::power_efficiency &&
                             measure < evaluate::PaperMeasure::preloads_from_l1;
  return fmt::format("{:.{}f}", number, is_percentage ? 1 : 3);
}
std::string figure_text(const evaluate::OurFigure& ours, evaluate::PaperMeasure measure) {
  if (ours.files == 0) return "-";
  const std::string least = number_text(ours.least, measure), most = number_text(ours.most, measure);
  return least == most ? least : least + " .. " + most;
}
json figure_json(const evaluate::OurFigure& ours) {
  return ours.files == 0 ? json() : ours.least == ours.most ? json(ours.least) : json{ours.least, ours.most};
}

TextTable empty_table(const std::string& title, const std::vector<evaluate::PaperTimeFigure>& figures) {
  TextTable table{{{title, false}}, {{"reported"}}};
  for (const evaluate::PaperTimeFigure& figure : figures) {
    table.columns.push_back({std::string(figure.what.substr(0, figure.what.find(" ("))), true});
    table.rows[0].push_back(number_text(figure.reported, figure.measure));
  }
  return table;
}

json add_row(const std::string& about, const std::vector<evaluate::PaperTimeFigure>& figures,
             const std::vector<FileScore>& files, const std::vector<FileScore>& bounds,
             const std::vector<bool>& counted, TextTable& table) {
  table.rows.push_back({about});
  json row = json::object();
  for (const evaluate::PaperTimeFigure& figure : figures) {
    const evaluate::OurFigure ours = mean(figure, files, bounds, counted);
    table.rows.back().push_back(figure_text(ours, figure.measure));
    row[std::string(figure.what)] = figure_json(ours);
  }
  return row;
}

// Speed-ups by file and version.
json gains_json(const std::vector<std::string>& names, const std::vector<FileScore>& files) {
  json gains = json::object();
  for (size_t i = 0; i < files.size(); ++i)
    for (const evaluate::ScoredVersion& version : files[i].scored.versions) {
      evaluate::FileGain gain;
      if (&version != &files[i].scored.versions.front() && evaluate::gain_of(files[i].scored, version.name, gain))
        gains[sample_of(names[i])][version.name] = gain.speedup;
    }
  return gains;
}

// A figure a row.
TextTable transposed(const TextTable& table, const std::vector<evaluate::PaperTimeFigure>& figures) {
  TextTable result{{{table.columns[0].title, false}}, {}};
  for (const std::vector<std::string>& row : table.rows)
    result.columns.push_back({row[0], true});
  for (size_t i = 0; i < figures.size(); ++i) {
    result.rows.push_back({std::string(figures[i].what)});
    for (const std::vector<std::string>& row : table.rows)
      result.rows.back().push_back(row[i + 1]);
  }
  return result;
}

// Reports files in which a technique is slower although a cost was removed.
void check_row(const Cause& cause, const std::vector<FileScore>& as_is, const std::vector<FileScore>& changed,
               SampleTool& tool) {
  if (!cause.spares) return;
  for (size_t i = 0; i < as_is.size(); ++i)
    for (const evaluate::ScoredVersion& version : as_is[i].scored.versions) {
      evaluate::FileGain before, after;
      if (evaluate::gain_of(as_is[i].scored, version.name, before) &&
          evaluate::gain_of(changed[i].scored, version.name, after) && after.speedup < before.speedup * (1 - 1e-9))
        tool.complain(sample_of(tool.files[i]), fmt::format("{}, {}: {:.4f} times as fast, {:.4f} otherwise",
                                                            version.name, cause.about, after.speedup, before.speedup));
    }
}

} // namespace

int main(int count, char** arguments) {
  std::string name, only, captured;
  bool exact = false, all_figures = false;
  SampleTool tool("What differs from a paper's averages, by cause", "");
  tool.application.add_option("--paper", name, "r2d2, darsie, dac, regless or composite")
      .required()
      .one_of({"r2d2", "darsie", "dac", "regless", "composite"});
  tool.application.add_flag("--exact", exact, "look at all blocks and instructions");
  tool.application.add_flag("--columns", all_figures, "all figures as the paper counts, with today's code, on an H100");
  tool.application.add_option("--captured", captured, "folder of captures of the benchmarks, in place of the files");
  tool.application.add_option("--only", only, "of the rows behind the first: those with such a text");
  if (std::optional<int> code = tool.application.parse(count, arguments)) return *code;
  if (!captured.empty())
    std::erase_if(tool.files,
                  [&](const std::string& file) { return evaluate::captured_launches(captured, file).empty(); });
  const Settings settings{*evaluate::find_paper(name), tool.size, exact, captured};
  const std::vector<evaluate::PaperTimeFigure> figures = figures_of(settings.paper, all_figures);
  // All files, and the paper's benchmarks among them.
  const std::vector<bool> all(tool.files.size(), true);
  std::vector<bool> benchmarks;
  for (const std::string& file : tool.files)
    benchmarks.push_back(evaluate::is_benchmark(settings.paper, file));
  TextTable of_all = empty_table("all samples", figures), of_benchmarks = empty_table("its benchmarks", figures);
  json document = json::array();
  std::vector<FileScore> as_is;
  for (const Cause& cause : all_figures ? columns() : causes_of(name)) {
    if (!as_is.empty() && cause.about.find(only) == std::string::npos) continue;
    std::vector<FileScore> scores;
    for (const std::string& file : tool.files) {
      Result<FileScore> of_file = score_of(file, settings, cause);
      if (!of_file) {
        tool.complain(sample_of(file), of_file.error().message);
        return tool.exit_code();
      }
      scores.push_back(std::move(*of_file));
    }
    if (as_is.empty()) as_is = scores;
    check_row(cause, as_is, scores, tool);
    json row = {{"cause", cause.about}};
    row["all"] = add_row(cause.about, figures, scores, as_is, all, of_all);
    row["benchmarks"] = add_row(cause.about, figures, scores, as_is, benchmarks, of_benchmarks);
    row["speedups"] = gains_json(tool.files, scores);
    document.push_back(std::move(row));
    std::fprintf(stderr, "%s\n", cause.about.c_str());
  }
  if (all_figures) of_all = transposed(of_all, figures), of_benchmarks = transposed(of_benchmarks, figures);
  std::fputs(tool.json ? (json_text(document) + '\n').c_str() : (of_all.text() + '\n' + of_benchmarks.text()).c_str(),
             stdout);
  return tool.exit_code();
}
