#include "evaluate/exec/capturing.h"

#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "evaluate/exec/captured_files.h"
#include "evaluate/exec/rewriting.h"
#include "support/file_io.h"
#include "support/text/json_text.h"
#include "support/text/table.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

namespace ptxrewrite::evaluate {
namespace {

// The readable part of a mangled name is enough for a folder name; the launch file has the full name.
std::string folder_name(const std::string& kernel, uint64_t launch) {
  constexpr size_t longest = 80;
  std::string name = kernel.substr(0, longest);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_') c = '_';
  return fmt::format("{}-{}", name, launch);
}

// Creates a new folder in `parent`. Kernels with a common prefix, and child processes, may request the same name.
Result<std::filesystem::path> make_folder(const std::string& parent, const std::string& name) {
  constexpr int most_of_a_name = 100000;
  for (int number = 1; number <= most_of_a_name; ++number) {
    const std::filesystem::path path =
        std::filesystem::path(parent) / (number == 1 ? name : fmt::format("{}-{}", name, number));
    if (::mkdir(path.c_str(), 0700) == 0) return path;
    if (errno != EEXIST) break;
  }
  return Error{fmt::format("{}/{}: cannot make the folder: {}", parent, name, std::strerror(errno)), {}};
}

Status write_files(const std::filesystem::path& folder, const CapturedFiles& captured) {
  for (const CapturedFile& file : captured.files)
    if (Status status = create_private_file((folder / file.name).string(), file.bytes); !status) return status;
  return {};
}

} // namespace

CapturingHook::KernelCaptures& CapturingHook::captures_of(const cuda::Kernel& kernel) {
  KernelCaptures*& captures = places_[&kernel];
  if (!captures) {
    captures = kernels_.emplace_back(std::make_unique<KernelCaptures>()).get();
    captures->name = kernel.name;
  }
  return *captures;
}

void CapturingHook::before(cuda::LaunchCall& call) {
  pending_ = nullptr;
  KernelCaptures& kernel = captures_of(call.kernel);
  ++kernel.launches;
  if (!settings_.hottest && kernel.launches > settings_.launches) return;
  Result<LaunchInput*> input = images_->of(call);
  if (input) {
    pending_ = *input;
    return;
  }
  if (!settings_.hottest || kernel.captured.empty())
    kernel.captured.push_back({.launch = kernel.launches, .problem = input.error().message});
  cuda::log(cuda::LogLevel::warn, "launch {} of {} is not captured: {}", kernel.launches, kernel.name,
            input.error().message);
}

void CapturingHook::after(const cuda::LaunchCall& call, const emulator::LaunchResult& result) {
  if (!pending_) return;
  const LaunchInput& input = *pending_;
  pending_ = nullptr;
  KernelCaptures& kernel = captures_of(call.kernel);
  Captured captured{.launch = kernel.launches,
                    .warp_instructions = result.counters.warp_instructions,
                    .thread_instructions = result.counters.thread_instructions};
  if (settings_.hottest && !kernel.captured.empty()) {
    const Captured& best = kernel.captured.front();
    if (best.problem.empty() && best.warp_instructions >= captured.warp_instructions) return;
  }
  const auto give_up = [&](const std::string& problem) {
    captured.problem = problem;
    cuda::log(cuda::LogLevel::warn, "launch {} of {} is not captured: {}", kernel.launches, kernel.name, problem);
    if (!settings_.hottest || kernel.captured.empty()) kernel.captured.push_back(std::move(captured));
  };
  if (result.failure) return give_up("it fails: " + result.failure->message);
  Result<TouchedMemory> touched = touched_memory(input);
  if (!touched) return give_up(touched.error().message);
  const Result<CapturedFiles> files = captured_files(call, input, *touched);
  if (!files) return give_up(files.error().message);
  Result<std::filesystem::path> folder = make_folder(settings_.folder, folder_name(kernel.name, kernel.launches));
  if (!folder) return give_up(folder.error().message);
  std::error_code ignored;
  if (Status status = write_files(*folder, *files); !status) {
    std::filesystem::remove_all(*folder, ignored);
    return give_up(status.error().message);
  }
  captured.file = (*folder / files->files.back().name).string();
  captured.process = getpid();
  captured.buffers = files->buffers;
  captured.bytes = files->bytes;
  captured.has_addresses = files->has_addresses;
  if (settings_.hottest) {
    // After a fork, earlier captures belong to the parent process.
    for (const Captured& colder : kernel.captured)
      if (colder.process == captured.process)
        std::filesystem::remove_all(std::filesystem::path(colder.file).parent_path(), ignored);
    kernel.captured.clear();
  }
  kernel.captured.push_back(std::move(captured));
}

cuda::ReportPart CapturingHook::report() {
  TextTable table{{{"kernel"}, {"launch", true}, {"of", true}, {"buffers", true}, {"bytes", true}, {"file"}, {""}}, {}};
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (const auto& kernel : kernels_)
    for (const Captured& one : kernel->captured) {
      const std::string remark = !one.problem.empty() ? "not captured: " + beginning(one.problem)
                                 : one.has_addresses  ? "holds addresses: for the emulator alone"
                                                      : "";
      table.rows.push_back({kernel->name, std::to_string(one.launch), std::to_string(kernel->launches),
                            std::to_string(one.buffers), std::to_string(one.bytes), one.file, remark});
      nlohmann::ordered_json row = {{"kernel", kernel->name},
                                    {"launch", one.launch},
                                    {"launches", kernel->launches},
                                    {"file", one.file},
                                    {"buffers", one.buffers},
                                    {"bytes", one.bytes},
                                    {"warp_instructions", one.warp_instructions},
                                    {"thread_instructions", one.thread_instructions},
                                    {"holds_addresses", one.has_addresses}};
      if (!one.problem.empty()) row["problem"] = one.problem;
      rows.push_back(std::move(row));
    }
  return {"captured launches\n" + table.text(), "captures", json_text(rows)};
}

} // namespace ptxrewrite::evaluate
