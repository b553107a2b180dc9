// `ptxrewrite run`: launches kernels and shows the resulting memory contents.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "emulator/machines/dac/affine_counters.h"
#include "emulator/machines/darsie/skip_counters.h"
#include "emulator/machines/regless/staging_counters.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/rewrite.h"
#include "evaluate/launches/launch_input.h"
#include "evaluate/run/expected.h"
#include "evaluate/run/run_report.h"
#include "ir/machine/registers/regless_mark.h"
#include "support/file_io.h"
#include "support/text/json_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <memory>

namespace ptxrewrite::cli::run_command {

namespace {

struct RunOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  DeviceOptions device;
  const ir::Machine* machine = nullptr; // selected by `device`
  RunReportOptions report;
  std::string dump;
  bool check = false;
  bool late_copies = false;
  bool json = false;
  std::string darsie;   // a variant of DARSIE's machine; "": not used
  uint32_t regless = 0; // entries per SM of RegLess's machine; 0: not used
  uint32_t compressor_lines = emulator::StagingSettings().compressor_lines;
  uint32_t dac_entries = 0;
};

// Writes buffers as raw bytes to DIR/NAME.bin.
bool dump_buffers(const std::string& folder, const LaunchInput& input, const cuda::SessionResult& result) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  for (size_t i = 0; i < result.buffers.size(); ++i) {
    const std::vector<std::byte>& bytes = result.buffers[i];
    // Names come from the user's file; a path in a name must not lead out of the folder.
    const std::string name = input.plan.buffers[i].name;
    if (bytes.empty()) continue;
    if (name.find('/') != name.npos) {
      show(Error{"buffer '" + name + "' is not dumped: its name has a /", {}});
      return false;
    }
    const std::string path = (std::filesystem::path(folder) / (name + ".bin")).string();
    if (Status status = write_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}); !status) {
      show(status.error());
      return false;
    }
  }
  return true;
}

// Shows faults and findings with their PTX lines; returns the exit code.
int show_troubles(const LaunchInput& input, const cuda::SessionResult& result, const Session& session) {
  int code = exit_ok;
  for (const cuda::SessionRun& run : result.runs) {
    const std::string& trip = input.plan.launches[run.launch].trip;
    auto show_one = [&](Diagnostic diagnostic) {
      if (!trip.empty()) diagnostic.notes.push_back("in the launch with " + trip);
      show(diagnostic, input.module->source, session);
      code = exit_fault;
    };
    for (const emulator::Finding& finding : run.findings)
      show_one(finding.to_diagnostic(input.module->source));
    if (run.failure) show_one(run.failure->to_diagnostic());
  }
  return code;
}

emulator::MachineData machine_settings(const RunOptions& options) {
  emulator::MachineData machines(
      emulator::AffineSettings{.entries_per_warp = options.dac_entries, .check = options.check});
  for (emulator::SkipVariant variant : emulator::all_skip_variants)
    if (options.darsie == spelling(variant))
      machines.set(emulator::SkipSettings{.variant = variant, .check = options.check});
  if (options.regless != 0)
    machines.set(emulator::StagingSettings{.entries = options.regless, .compressor_lines = options.compressor_lines});
  return machines;
}

// RegLess's machine needs annotations: adds them to kernels without any, for a unit of this size.
Status annotate(LaunchInput& input, const RunOptions& options) {
  const auto is_annotated = [&](const launch::Launch& launch) {
    return ir::has_regless_marks(*input.module, launch.kernel);
  };
  if (options.regless == 0 || std::ranges::all_of(input.plan.launches, is_annotated)) return {};
  // A region may use a quarter of a shard, and all of any one bank.
  const std::string passes =
      fmt::format("regless(live={},bank={})", std::max(1u, options.regless / 16), std::max(1u, options.regless / 32));
  Result<Rewritten> rewritten = rewrite(*input.module, passes, transforms::OutputForm::annotated, {});
  if (!rewritten) return rewritten.error();
  if (rewritten->module) input.module = std::move(rewritten->module);
  for (const launch::Launch& launch : input.plan.launches) {
    if (is_annotated(launch)) continue;
    const auto remark = std::ranges::find(rewritten->remarks, launch.kernel, &transforms::Remark::function);
    const std::string reason = remark == rewritten->remarks.end() ? "it has no regions" : remark->text;
    return Error{fmt::format("'{}' cannot run with --regless: {}", launch.kernel, reason), {}};
  }
  return {};
}

// `gpu`: nullptr to use the emulator.
int run_file(const RunOptions& options, const std::string& path, const Session& session, cuda::Device* gpu,
             nlohmann::ordered_json& document) {
  std::optional<LaunchInput> input = read_launch_input(path, options.input, session);
  if (!input) return exit_diagnostics;
  if (Status status = annotate(*input, options); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  Result<launch::Variants> variants =
      launch::Variants::of(*input->module, input->side_file ? &*input->side_file : nullptr);
  if (!variants) {
    show(variants.error());
    return exit_diagnostics;
  }
  if (Status status = cuda::check_memory(input->plan, 1); !status) {
    show(status.error(), input->plan.source, session);
    return exit_diagnostics;
  }
  std::unique_ptr<cuda::Device> emulator;
  if (!gpu)
    emulator = cuda::make_emulator_device({.check = options.check,
                                           .count_memory = options.report.counters,
                                           .late_copies = options.late_copies,
                                           .host_threads = options.device.host_threads,
                                           .machine = options.machine,
                                           .machines = machine_settings(options)});
  cuda::ErrorPlace place = cuda::ErrorPlace::launch_file;
  cuda::SessionOptions session_options;
  session_options.variants = &*variants;
  session_options.fetch_all = options.report.all_buffers;
  session_options.error_place = &place;
  Result<cuda::SessionResult> result =
      cuda::run_plan(input->plan, *input->module, gpu ? *gpu : *emulator, session_options);
  if (!result) {
    show_session_error(result.error(), place, *input, session);
    return exit_diagnostics;
  }
  std::string out;
  for (const cuda::SessionRun& run : result->runs)
    out += run.printed;
  if (options.json)
    document.push_back(run_json(path, *input, *result, options.report));
  else
    out += run_text(path, *input, *result, options.report);
  if (options.json) {
    if (!out.empty()) document.back()["printed"] = std::move(out);
  } else {
    std::fwrite(out.data(), 1, out.size(), stdout);
  }
  Result<std::vector<cuda::BufferComparison>> comparisons = compare_with_expected(input->plan, *result);
  if (!comparisons) {
    show(comparisons.error());
    return exit_diagnostics;
  }
  if (options.json && !comparisons->empty()) document.back()["expected"] = expected_json(*comparisons);
  if (!options.json) std::fputs(expected_text(*comparisons).c_str(), stdout);
  std::fflush(stdout);
  int code = show_troubles(*input, *result, session);
  const bool is_expected = std::ranges::all_of(*comparisons, &cuda::BufferComparison::same);
  if (code == exit_ok && !is_expected) code = exit_differs;
  if (!options.dump.empty() && !dump_buffers(options.dump, *input, *result)) return exit_diagnostics;
  return code;
}

// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const RunOptions& options) {
  if (std::string wrong = contradiction_of_files(options.files, options.input); !wrong.empty()) return wrong;
  const bool wants_emulator = options.check || options.late_copies ||
                              emulator::default_matrix_sums() != emulator::MatrixSums::sequential ||
                              options.report.counters || cuda::emulator_limits().fuel != emulator::default_fuel ||
                              !options.darsie.empty() || options.dac_entries > 0;
  if (options.device.device == "cuda" && wants_emulator)
    return "--check, --late-copies, --matrix-sums, --counters, --fuel, --darsie and --dac-entries are for the emulator";
  return {};
}

int run_run(RunOptions& options, const Session& session) {
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("run", wrong);
  Result<std::unique_ptr<cuda::Device>> gpu = open_gpu(options.device);
  if (!gpu) {
    show(gpu.error());
    return exit_no_gpu;
  }
  const MachineChoice choice = machine_of(options.device, "run", session);
  if (choice.code != exit_ok) return choice.code;
  options.machine = choice.machine;
  options.report.has_counts = !*gpu;
  int code = exit_ok;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const std::string& path : options.files) {
    if (path != options.files.front() && !options.json) std::puts("");
    code = std::max(code, run_file(options, path, session, gpu->get(), document));
  }
  if (options.json) std::puts(json_text(document).c_str());
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<RunOptions>();
  command.add_option("FILE", options->files, "launch files, or PTX files with --grid, --block and --arg");
  add_launch_input_options(command, options->input);
  command.add_option("--ptx", options->input.ptx, "this PTX file in the place of the launch file's").type_name("FILE");
  command.add_option("-k,--kernel", options->input.kernels, "only launches of such kernels; the kernel of a PTX file")
      .type_name("GLOB");
  add_direct_launch_options(command, options->input.direct);
  add_device_options(command, options->device);
  options->device.gpu = "titanv"; // the machine of the R2D2 paper
  add_machine_option(command, options->device, options->device.gpu);
  command.add_flag("--check", options->check,
                   "also look for uninitialised reads, and for races in shared and global memory; on one host thread");
  command.add_flag("--late-copies", options->late_copies,
                   "asynchronous copies take place when they are waited for, not when they are issued");
  command
      .add_flag("--darsie{standard}", options->darsie,
                "on DARSIE's machine: instructions that are the same in all warps of a block are executed once; "
                "--darsie=ignore-store, =no-cf-sync, =paper-marks: its variants; with --check skipped instructions are "
                "executed, too")
      .one_of({"standard", "ignore-store", "no-cf-sync", "paper-marks"});
  command
      .add_flag("--regless{512}", options->regless,
                "on RegLess's machine, with a staging unit of N entries per SM: by the annotations in the text, or "
                "else by those that pass regless makes")
      .range(32, 8192);
  command
      .add_option("--compressor", options->compressor_lines,
                  "lines of its compressor in each shard (default 12); 0: none")
      .type_name("N")
      .range(0, 1024);
  command
      .add_option(
          "--dac-entries", options->dac_entries,
          "entries of each warp's queues on DAC's machine, on which kernels in its hardware form run (default: "
          "192 of each kind for the warps of an SM); with --check their values are compared with the original's")
      .type_name("N")
      .range(1u, 192u);
  add_limit_options(command);
  command.add_flag("--counters", options->report.counters, "show counters of each instruction");
  command.add_flag("--all", options->report.all_buffers, "show and dump all buffers, not only outputs");
  command.add_option("--head", options->report.head, "elements of each buffer to show (default 8)").type_name("N");
  command.add_option("--dump", options->dump, "write each buffer to DIR/NAME.bin").type_name("DIR");
  command.add_flag("--time", options->report.time, "show how long launches took");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_run(*options, session); };
}

const RegisterCommand
    registration({.name = "run",
                  .about = "launch kernels and show memory afterwards",
                  .example = "ptxrewrite run samples/backprop/backprop.toml --check\n"
                             "  ptxrewrite run samples/vecadd/vecadd.ptx --grid 4 --block 256 \\\n"
                             "    --arg 'buffer=f32:1000:uniform(-1,1,seed=1)' --arg 'buffer=f32:1000:iota' --arg "
                             "buffer=f32:1000:out --arg s32=1000\n"
                             "docs/launch_files.md describes launch files.",
                  .place = 40,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::run_command
