// Statistics of a program's kernels over all their launches, written when the program exits.
#include "cuda/context/context.h"
#include "cuda/context/log.h"
#include "support/text/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

namespace ptxrewrite::cuda {
namespace {

std::vector<const Kernel*> launched_kernels(const std::list<std::unique_ptr<Module>>& modules) {
  std::vector<const Kernel*> all;
  for (const auto& module : modules)
    for (const Kernel* kernel : module->all_kernels())
      if (kernel->statistics.launches) all.push_back(kernel);
  std::ranges::stable_sort(all, [](const Kernel* a, const Kernel* b) {
    return a->statistics.warp_instructions > b->statistics.warp_instructions;
  });
  return all;
}

std::string table(const std::vector<const Kernel*>& kernels, bool with_findings) {
  uint64_t total = 0;
  size_t width = 6;
  for (const Kernel* kernel : kernels) {
    total += kernel->statistics.warp_instructions;
    width = std::max(width, shortened(kernel->name, longest_name).size());
  }
  std::string text =
      fmt::format("{:<{}}  {:>8} {:>10} {:>18} {:>20} {:>7}{}\n", "kernel", width, "launches", "blocks",
                  "warp instructions", "thread instructions", "share", with_findings ? "  findings" : "");
  for (const Kernel* kernel : kernels) {
    const KernelStatistics& of = kernel->statistics;
    text += fmt::format("{:<{}}  {:>8} {:>10} {:>18} {:>20} {:>6.1f}%", shortened(kernel->name, longest_name), width,
                        of.launches, of.blocks, of.warp_instructions, of.thread_instructions,
                        total ? 100.0 * static_cast<double>(of.warp_instructions) / static_cast<double>(total) : 0.0);
    if (with_findings) text += fmt::format("  {:>8}", of.findings);
    text += '\n';
  }
  return text;
}

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\')
      out += '\\', out += c;
    else if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", c);
    else
      out += c;
  }
  return out + '"';
}

std::string document(const Settings& settings, const std::vector<const Kernel*>& kernels,
                     const std::vector<ReportPart>& parts) {
  std::string text = fmt::format("{{\n  \"machine\": {},\n  \"kernels\": [", json_string(settings.machine->name));
  const char* separator = "\n";
  for (const Kernel* kernel : kernels) {
    const KernelStatistics& of = kernel->statistics;
    text += fmt::format("{}    {{\"kernel\": {}, \"launches\": {}, \"blocks\": {}, \"warp_instructions\": {}, "
                        "\"thread_instructions\": {}, \"findings\": {}, \"seconds\": {:.6f}}}",
                        separator, json_string(kernel->name), of.launches, of.blocks, of.warp_instructions,
                        of.thread_instructions, of.findings, of.seconds);
    separator = ",\n";
  }
  text += "\n  ]";
  for (const ReportPart& part : parts)
    if (!part.key.empty()) text += fmt::format(",\n  {}: {}", json_string(part.key), part.json);
  return text + "\n}\n";
}

std::vector<ReportPart> parts_of(const LaunchHooks& hooks) {
  std::vector<ReportPart> parts;
  for (const auto& hook : hooks) {
    try {
      parts.push_back(hook->report());
    } catch (const std::exception& error) {
      log(LogLevel::error, "a part of the report is missing: {}", error.what());
    }
  }
  return parts;
}

void write_report(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "w");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file && std::fclose(file) == 0 && written) return;
  log(LogLevel::error, "{}: cannot write the report", path);
}

// A thread that loads a module needs some milliseconds, one that waits for another thread's endless kernel does not
// unlock.
Context::Lock lock_patiently(std::recursive_mutex& mutex) {
  constexpr int tries = 1000;
  for (int i = 0; i < tries; ++i) {
    if (Context::Lock lock(mutex, std::try_to_lock); lock) return lock;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

} // namespace

void Context::report(int status) {
  operations_.finish_own();
  Lock lock = lock_patiently(mutex_);
  if (!lock) return;
  // Exit handlers that follow destroy what calls use, the parser's tables for example.
  ending_thread_ = std::this_thread::get_id();
  if (!operations_.finish_own()) return; // another thread's kernel may never end
  flush_printed();
  const std::vector<const Kernel*> kernels = launched_kernels(modules_);
  const std::vector<ReportPart> parts = parts_of(hooks_);
  std::string text = settings_.counters || settings_.check ? table(kernels, settings_.check) : "";
  for (const ReportPart& part : parts)
    if (!part.text.empty()) text += (text.empty() ? "" : "\n") + part.text;
  if (!text.empty()) std::fflush(stdout);
  std::fwrite(text.data(), 1, text.size(), stderr);
  if (!settings_.json.empty()) write_report(settings_.json, document(settings_, kernels, parts));
  const bool has_failed = std::ranges::any_of(parts, [](const ReportPart& part) { return part.has_failed; });
  if (!has_failed || status != 0) return;
  lock.unlock();
  std::exit(1); // inside an exit handler, glibc continues with the remaining handlers
}

} // namespace ptxrewrite::cuda
