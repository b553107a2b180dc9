#include "support/ptxas.h"

#include "support/cuda_programs.h"
#include "support/file_io.h"
#include "support/process.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <unistd.h>

namespace ptxrewrite {

namespace {

constexpr std::string_view whitespace = " \t\r\n";

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

// Text that makes ptxas ask for more ends ptxas, not other programs of the machine.
uint64_t most_address_space() {
  const long pages = ::sysconf(_SC_PHYS_PAGES), bytes = ::sysconf(_SC_PAGE_SIZE);
  return pages > 0 && bytes > 0 ? static_cast<uint64_t>(pages) * static_cast<uint64_t>(bytes) / 4 * 3 : 0;
}

// The environment's choice: a variable and its value; empty if none is set.
std::pair<std::string, std::string> chosen_ptxas() {
  for (const char* variable : {"PTXREWRITE_PTXAS", "PTXAS"})
    if (const char* chosen = std::getenv(variable); chosen != nullptr && *chosen != '\0') return {variable, chosen};
  return {};
}

// The number before `unit`, e.g. number_before("12 bytes smem", " bytes smem") == 12; 0 if absent.
uint32_t number_before(std::string_view line, std::string_view unit) {
  size_t end = line.find(unit);
  if (end == std::string_view::npos) return 0;
  size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9')
    --begin;
  uint32_t number = 0;
  std::from_chars(line.data() + begin, line.data() + end, number);
  return number;
}

class FigureReader {
public:
  void line(std::string_view text) {
    if (size_t at = text.find("Compiling entry function '"); at != std::string_view::npos) {
      std::string_view name = text.substr(at + 26);
      entry_ = name.substr(0, name.find('\''));
      current(entry_);
    } else if (at = text.find("Function properties for "); at != std::string_view::npos) {
      std::string_view name = text.substr(at + 24);
      properties_ = name.substr(0, name.find_first_of(whitespace));
    } else if (text.find(" bytes stack frame") != std::string_view::npos) {
      PtxasFigures& figures = current(properties_);
      figures.stack_frame = number_before(text, " bytes stack frame");
      figures.spill_stores = number_before(text, " bytes spill stores");
      figures.spill_loads = number_before(text, " bytes spill loads");
    } else if (at = text.find(": Used "); at != std::string_view::npos) {
      PtxasFigures& figures = current(entry_.empty() ? properties_ : entry_);
      figures.registers = number_before(text, " registers");
      figures.barriers = number_before(text, " barriers");
      figures.shared = number_before(text, " bytes smem");
    }
  }
  std::vector<PtxasFigures> take() && { return std::move(all_); }

private:
  PtxasFigures& current(std::string_view name) {
    auto found = std::find_if(all_.begin(), all_.end(), [&](const PtxasFigures& f) { return f.function == name; });
    if (found == all_.end()) {
      all_.push_back({});
      all_.back().function = name;
      found = all_.end() - 1;
    }
    found->is_entry = found->is_entry || name == entry_;
    return *found;
  }

  std::vector<PtxasFigures> all_;
  std::string_view entry_;
  std::string_view properties_;
};

} // namespace

const PtxasFigures* PtxasRun::find(std::string_view function) const {
  for (const PtxasFigures& row : figures)
    if (row.function == function) return &row;
  return nullptr;
}

Result<std::string> find_ptxas(const std::filesystem::path& other_than) {
  const auto is_it = [&](const std::string& path) {
    std::error_code failure;
    return !path.empty() && (other_than.empty() || !std::filesystem::equivalent(path, other_than, failure));
  };
  if (const auto& [variable, chosen] = chosen_ptxas(); !chosen.empty()) {
    std::string path = find_program(chosen);
    if (is_it(path)) return path;
    return Error{variable + " names '" + chosen + "', which is " +
                     (path.empty() ? "not an executable" : "this program itself"),
                 {}};
  }
  for (const std::string& folder : cuda_program_folders())
    if (std::string path = find_program(folder + "/ptxas"); is_it(path)) return path;
  return Error{"ptxas not found: install the CUDA toolkit, put ptxas on PATH, set PTXREWRITE_PTXAS to its path, or run "
               "./bootstrap ptxas",
               {}};
}

std::vector<std::string> all_ptxas() {
  std::vector<std::string> found;
  std::vector<std::filesystem::path> files; // with symbolic links resolved
  const auto add = [&](const std::string& name) {
    const std::string path = find_program(name);
    std::error_code failure;
    const std::filesystem::path file = std::filesystem::canonical(path, failure);
    if (path.empty() || failure || std::find(files.begin(), files.end(), file) != files.end()) return;
    files.push_back(file);
    found.push_back(path);
  };
  if (const std::string chosen = chosen_ptxas().second; !chosen.empty()) add(chosen);
  for (const std::string& folder : cuda_program_folders())
    add(folder + "/ptxas");
  return found;
}

std::string ptxas_release(const std::string& program) {
  ProcessOptions command;
  command.arguments = {program, "--version"};
  command.timeout_seconds = 60;
  const Result<ProcessResult> child = run_process(command);
  if (!child || !child->succeeded()) return {};
  constexpr std::string_view before = "release ";
  const std::string_view text = child->out;
  const size_t at = text.find(before);
  if (at == std::string_view::npos) return {};
  const std::string_view release = text.substr(at + before.size());
  return std::string(release.substr(0, release.find_first_not_of("0123456789.")));
}

std::string describe_ptxas() {
  const Result<std::string> ptxas = find_ptxas();
  if (!ptxas) return ptxas.error().message;
  const std::string release = ptxas_release(*ptxas);
  return "ptxas " + (release.empty() ? std::string("of an unknown release") : release) + " (" + *ptxas + ")";
}

Result<PtxasRun> assemble_file(const std::string& path, const PtxasOptions& options) {
  std::string arch = options.arch;
  if (arch.empty()) {
    Result<std::string> text = read_file(path);
    if (!text) return text.error();
    arch = target_architecture(*text);
  }
  Result<std::string> ptxas = options.program.empty() ? find_ptxas() : options.program;
  if (!ptxas) return ptxas.error();
  Result<TempDirectory> directory = TempDirectory::create();
  if (!directory) return directory.error();
  std::string cubin_path = directory->file("out.cubin");

  ProcessOptions command;
  command.arguments = {*ptxas, "-v", "-O" + std::to_string(options.optimization_level)};
  if (!arch.empty()) command.arguments.push_back("-arch=" + arch);
  command.arguments.insert(command.arguments.end(), options.extra_flags.begin(), options.extra_flags.end());
  command.arguments.insert(command.arguments.end(), {"-o", cubin_path, path});
  command.timeout_seconds = options.timeout_seconds;
  command.address_space_bytes = options.address_space_bytes ? options.address_space_bytes : most_address_space();
  Result<ProcessResult> child = run_process(command);
  if (!child) return child.error();

  PtxasRun run;
  run.timed_out = child->timed_out;
  // A shell wrapper around ptxas reports the signal of its child as 128 + number; 255 is ptxas's own rejection.
  bool wrapped_signal = child->exit_code > 128 && child->exit_code <= 128 + 64;
  run.crashed = !run.timed_out && (child->signal != 0 || wrapped_signal);
  run.messages = std::move(child->out) + child->err;
  run.user_seconds = child->user_seconds;
  run.peak_memory_kib = child->peak_memory_kib;
  run.ok = child->succeeded();
  if (run.ok) {
    Result<std::string> cubin = read_file(cubin_path);
    if (!cubin) return cubin.error();
    run.cubin = std::move(*cubin);
    run.figures = parse_ptxas_figures(run.messages);
  }
  return run;
}

Result<PtxasRun> assemble(std::string_view ptx, const PtxasOptions& options) {
  Result<TempDirectory> directory = TempDirectory::create();
  if (!directory) return directory.error();
  std::string path = directory->file("in.ptx");
  if (Status written = write_file(path, ptx); !written) return written.error();
  PtxasOptions with_arch = options;
  if (with_arch.arch.empty()) with_arch.arch = target_architecture(ptx);
  return assemble_file(path, with_arch);
}

std::vector<PtxasFigures> parse_ptxas_figures(std::string_view messages) {
  FigureReader reader;
  while (!messages.empty()) {
    size_t end = messages.find('\n');
    reader.line(messages.substr(0, end));
    messages = end == std::string_view::npos ? std::string_view() : messages.substr(end + 1);
  }
  return std::move(reader).take();
}

std::string target_architecture(std::string_view ptx) {
  while (!ptx.empty()) {
    size_t skip = ptx.find_first_not_of(whitespace);
    if (skip == std::string_view::npos) break;
    ptx.remove_prefix(skip);
    size_t end = 0;
    if (ptx.starts_with("//")) {
      end = ptx.find('\n');
    } else if (ptx.starts_with("/*")) {
      end = ptx.find("*/", 2);
      if (end != std::string_view::npos) end += 2;
    } else if (ptx.starts_with(".target")) {
      ptx.remove_prefix(std::min(ptx.find_first_not_of(whitespace, 7), ptx.size()));
      std::string_view word = ptx.substr(0, ptx.find_first_of(" \t\r\n,/"));
      return std::string(word.starts_with("sm_") || word.starts_with("compute_") ? word : std::string_view());
    } else if (starts_with_any(ptx, {".entry", ".func", ".visible", ".extern"})) {
      break; // end of the header
    } else {
      end = ptx.find_first_of(whitespace);
    }
    if (end == std::string_view::npos) break;
    ptx.remove_prefix(end);
  }
  return {};
}

} // namespace ptxrewrite
