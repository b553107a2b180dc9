// `ptxrewrite record`: records the results of a GPU, and compares those of the emulator with them.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/launch_options.h"
#include "evaluate/common/module_input.h"
#include "evaluate/common/progress.h"
#include "evaluate/record/record.h"
#include "support/file_io.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

namespace ptxrewrite::cli::record_command {

namespace {

struct RecordOptions {
  std::vector<std::string> files;
  LaunchInputOptions input;
  DeviceOptions device;
  std::string output = "record.json";
  std::vector<std::string> compare;
  std::string root = ".";
  uint64_t elements = default_sample_size;
};

std::string under(const std::string& root, const std::string& file) {
  return root == "." ? file : (std::filesystem::path(root) / file).string();
}

// Returns nullptr, after showing the error, if there is no GPU.
std::unique_ptr<cuda::Device> open_device(const RecordOptions& options) {
  Result<std::unique_ptr<cuda::Device>> gpu = open_gpu(options.device);
  if (!gpu) {
    show(gpu.error());
    return nullptr;
  }
  if (*gpu) return std::move(*gpu);
  return cuda::make_emulator_device({.host_threads = options.device.host_threads});
}

int run_recording(const RecordOptions& options, const Session& session) {
  std::unique_ptr<cuda::Device> device = open_device(options);
  if (!device) return exit_no_gpu;
  DeviceRecord record;
  record.device = device->info();
  int code = exit_ok;
  Progress progress(options.files.size());
  for (size_t i = 0; i < options.files.size(); ++i) {
    const std::string& file = options.files[i];
    progress.show(i, file);
    std::optional<LaunchInput> input = read_launch_input(under(options.root, file), options.input, session);
    if (!input) {
      code = exit_diagnostics;
      continue;
    }
    record.files.push_back(record_file(file, *input, *device, options.elements));
    const std::string& refused = record.files.back().refused;
    if (refused.empty()) continue;
    progress.clear();
    std::fprintf(stderr, "%s: not recorded: %s\n", file.c_str(), refused.c_str());
    // A fault destroys a GPU's context; the next file gets a new one.
    device.reset();
    device = open_device(options);
    if (!device) return exit_no_gpu;
  }
  progress.clear();
  if (Status status = write_file(options.output, to_json(record)); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return code;
}

int compare_one_record(const RecordOptions& options, const std::string& path, const Session& session) {
  Result<std::string> text = read_file(path);
  Result<DeviceRecord> record = text ? read_record(*text) : Result<DeviceRecord>(text.error());
  if (!record) {
    show(Error{path + ": " + record.error().message, {}});
    return exit_diagnostics;
  }
  std::unique_ptr<cuda::Device> device = open_device(options);
  if (!device) return exit_no_gpu;
  size_t same = 0, differing = 0, unknown = 0;
  int code = exit_ok;
  Progress progress(record->files.size());
  for (const FileRecord& recorded : record->files) {
    progress.show(same + differing + unknown, recorded.file);
    if (!recorded.refused.empty()) {
      ++unknown;
      continue;
    }
    LaunchInputOptions input_options = options.input;
    input_options.size = recorded.size;
    std::optional<LaunchInput> input = read_launch_input(under(options.root, recorded.file), input_options, session);
    if (!input) return exit_diagnostics;
    uint64_t elements = 0; // the number recorded
    for (const BufferRecord& output : recorded.outputs)
      elements = std::max<uint64_t>(elements, output.sample.size());
    const FileRecord now = record_file(recorded.file, *input, *device, elements);
    const std::vector<std::string> complaints = compare_with_record(recorded, now, input->plan);
    ++(complaints.empty() ? same : differing);
    if (complaints.empty()) continue;
    code = exit_differs;
    progress.clear();
    for (const std::string& complaint : complaints)
      std::printf("%s%s%s: %s\n", recorded.file.c_str(), recorded.size.empty() ? "" : ", size ", recorded.size.c_str(),
                  complaint.c_str());
  }
  progress.clear();
  std::printf("%s, %s: %zu equal, %zu differ, %zu were not recorded\n", path.c_str(), record->device.name.c_str(), same,
              differing, unknown);
  return code;
}

int run_record(RecordOptions& options, const Session& session) {
  if (options.files.empty() == options.compare.empty())
    return usage_error("record", "say launch files to record, or --compare with a record");
  if (!options.device.device_given && options.compare.empty()) options.device.device = "cuda";
  if (options.compare.empty()) return run_recording(options, session);
  int code = exit_ok;
  for (const std::string& path : options.compare)
    code = std::max(code, compare_one_record(options, path, session));
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<RecordOptions>();
  command.add_option("FILE", options->files, "launch files");
  add_launch_input_options(command, options->input);
  add_limit_options(command);
  add_device_options(command, options->device);
  command.add_option("-o,--output", options->output, "where the record is written (default record.json)")
      .type_name("FILE");
  command.add_option("--elements", options->elements, "keep N elements of each output (default 16)").type_name("N");
  command.add_option("--compare", options->compare, "run the launches of this record, and compare (repeatable)")
      .type_name("RECORD")
      .one_each();
  command.add_option("--root", options->root, "the folder that names of launch files start from").type_name("DIR");
  return [options, &session] { return run_record(*options, session); };
}

const RegisterCommand registration(
    {.name = "record",
     .about = "store results of kernels on a GPU, and compare the emulator's with them",
     .example = "ptxrewrite record samples/*/*.toml -o samples.json\n"
                "  ptxrewrite record --compare samples.json\n"
                "Records checksums and some elements of each output. Recording is done on a GPU unless --device says "
                "otherwise\n"
                "(exit code 77 without one), comparing on the emulator; exit code 4 when something differs.",
     .place = 70,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::record_command
