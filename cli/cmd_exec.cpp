// `ptxrewrite exec`: runs an unmodified CUDA program with its kernels on the emulator or, rewritten, on a GPU.
#include "cli/command.h"
#include "cli/device_options.h"
#include "cli/pipeline_options.h"
#include "cuda/context/settings.h"
#include "cuda/driver/library.h"
#include "cuda/interpose/settings.h"
#include "emulator/core/engine.h"
#include "evaluate/common/module_input.h"
#include "grammar/foreign_input.h"
#include "support/file_io.h"
#include "support/interruption.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <memory>
#include <sys/personality.h>
#include <sys/stat.h>
#include <unistd.h>

namespace ptxrewrite::cli::exec_command {
namespace {

struct ExecOptions {
  std::vector<std::string> program;
  std::string device; // "": see runs_on_gpu
  std::string machine;
  std::string json;
  PipelineOptions pipeline;
  PipelineOptions verify;
  std::string capture;
  std::string captures = "1";
  bool study = false;
  std::string score;
  std::string html;
  unsigned specialise = 0;
  unsigned host_threads = 0;
  bool check = false;
  bool counters = false;
  bool autotune = false;
};

constexpr const char* main_library = "libptxrewrite_cuda.so";
constexpr const char* driver_library = "libcuda.so.1";
// Python finds nvJitLink by its position in a package, so ours must already be loaded. Functions of the other precede
// NVRTC's.
constexpr std::array preloaded_libraries = {"libnvJitLink.so.13", "libptxrewrite_nvrtc.so"};

// The folder of a library relative to this program: in a build folder, or as installed. `name`: of the folder;
// `library`: a library that it must contain.
Result<std::string> library_folder(const char* built, const char* installed, const char* library) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path here = program.parent_path();
  std::vector<std::string> folders{std::string("../cuda/") + built};
  for (const char* libraries : {"lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"})
    folders.push_back(fmt::format("../{}/ptxrewrite/{}", libraries, installed));
  for (const std::string& folder : folders) {
    const fs::path candidate = here / folder;
    if (fs::exists(candidate / library, error)) return fs::weakly_canonical(candidate, error).string();
  }
  return Error{fmt::format("{} is neither in {} nor in {} of {}", library, folders[0], folders[1], here.string()), {}};
}

void prepend(const char* variable, const std::string& path) {
  const char* before = std::getenv(variable);
  setenv(variable, (!before || !*before ? path : path + ":" + before).c_str(), 1);
}

void set_variables(const std::vector<std::string>& assignments) {
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    setenv(assignment.substr(0, equals).c_str(), assignment.c_str() + equals + 1, 1);
  }
}

// The dynamic linker splits LD_PRELOAD at blanks and colons.
void preload(const std::string& folder) {
  if (folder.find_first_of(" :") != std::string::npos) {
    fmt::print(stderr,
               "ptxrewrite: warning: {} are not loaded into the program: their folder's path has a blank or a colon, "
               "where the dynamic linker splits its list\n",
               fmt::join(preloaded_libraries, " and "));
    return;
  }
  const char* before = std::getenv("LD_PRELOAD");
  std::string list = before ? before : "";
#ifdef __SANITIZE_THREAD__ // The program is not instrumented, so the sanitizer's runtime must be preloaded.
  list = "libtsan.so.2" + (list.empty() ? list : ":" + list);
#endif
  for (const char* library : preloaded_libraries)
    if (std::error_code error; std::filesystem::exists(folder + "/" + library, error))
      list += (list.empty() ? "" : ":") + folder + "/" + library;
  if (!list.empty()) setenv("LD_PRELOAD", list.c_str(), 1);
}

// Programs such as PyCUDA's compile kernels by nvcc to machine code, in which line information includes the PTX.
void make_nvcc_include_ptx() {
  constexpr const char* variable = "NVCC_APPEND_FLAGS";
  const char* before = std::getenv(variable);
  setenv(variable, (std::string(before ? before : "") + " -lineinfo").c_str(), 1);
}

void set_environment(const cuda::Settings& settings, const std::string& folder) {
  set_variables(cuda::environment_of(settings));
  make_nvcc_include_ptx();
  prepend("LD_LIBRARY_PATH", folder);
  preload(folder);
}

// Returns 0 if the text is not a number.
uint64_t captures_of(const std::string& text) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? number : 0;
}

// The pass list for the libraries inside the program, normalized as the pass manager prints it; "" without passes.
// Returns nothing, after printing the diagnostic, if the list is invalid.
std::optional<std::string> passes_of(const PipelineOptions& options, const Session& session) {
  if (!options.passes_given && !options.optimise) return "";
  std::optional<transforms::Pipeline> pipeline = make_pipeline(options, session);
  if (!pipeline) return std::nullopt;
  return transforms::to_string(*pipeline);
}

// Options for the emulator alone, except those of its limits.
bool looks_into_launches(const ExecOptions& options) {
  return options.check || options.counters || options.study || options.verify.passes_given ||
         !options.machine.empty() || !options.capture.empty() || !options.score.empty();
}

bool limits_emulator(const ExecOptions& options) {
  const cuda::EmulatorLimits& given = cuda::emulator_limits();
  const cuda::EmulatorLimits usual;
  return options.host_threads != 0 || given.fuel != usual.fuel || given.memory != usual.memory ||
         emulator::default_engine() != emulator::Engine::interpreter ||
         emulator::default_matrix_sums() != emulator::MatrixSums::sequential;
}

// Unless --device says so: on the GPU of this machine if it has one, and no option is for the emulator.
bool runs_on_gpu(const ExecOptions& options) {
  if (!options.device.empty()) return options.device == "cuda";
  return !looks_into_launches(options) && !limits_emulator(options) && driver::Library::open();
}

// Describes a contradiction between the options; "" if there is none.
std::string contradiction(const ExecOptions& options, bool on_gpu) {
  const bool rewrites = options.pipeline.passes_given || options.pipeline.optimise;
  if (rewrites && options.verify.passes_given)
    return "--verify runs both versions of each launch: leave out --passes and -O";
  if (rewrites && !options.capture.empty())
    return "--capture takes the original launches and what they leave: leave out --passes and -O";
  const bool observes =
      options.verify.passes_given || !options.capture.empty() || options.study || !options.score.empty();
  if (options.specialise && observes)
    return "--specialise replaces kernels of launches: leave out --verify, --capture, --study and --score";
  if (!options.html.empty() && !options.study && options.score.empty())
    return "--html is the page of --study and --score: give one of them";
  if (!on_gpu && options.autotune) return "--autotune times launches on a GPU: add --device cuda";
  if (on_gpu && looks_into_launches(options))
    return "with --device cuda kernels run on the GPU, where launches are only rewritten: of the options that look "
           "into "
           "them there are --passes, -O, --specialise, --autotune and --json";
  if (options.autotune && !rewrites && !options.specialise)
    return "--autotune chooses between originals and what passes make: add -O, --passes or --specialise";
  if (options.captures != "hottest" && captures_of(options.captures) == 0)
    return "--capture-launches takes a number from 1 on, or hottest";
  return {};
}

// Creates an empty folder that only its owner can access. Fails with the reason.
Status make_capture_folder(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::exists(path, error)) {
    if (!fs::is_directory(path, error)) return Error{path + ": is no folder", {}};
    if (!fs::is_empty(path, error)) return Error{path + ": has files already; --capture wants a folder of its own", {}};
    // Another user who can write to the folder could redirect the capture files by symbolic links.
    struct stat folder;
    if (stat(path.c_str(), &folder) != 0 || folder.st_uid != geteuid() || (folder.st_mode & (S_IWGRP | S_IWOTH)) != 0)
      return Error{path + ": others may write there; --capture wants a folder of your own", {}};
    return {};
  }
  if (mkdir(path.c_str(), 0700) == 0) return {};
  return Error{fmt::format("{}: cannot make the folder: {}", path, std::strerror(errno)), {}};
}

// A hint about a file that is not a program: its kind, and the command for it. Empty if the kind is unknown.
std::string hint_about(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const Result<std::string> text = read_file(path, 64 << 20);
  if (!text) return {};
  if (grammar::begins_as_ptx(*text))
    return "; this is PTX: 'ptxrewrite run " + path + " --grid N --block N' launches its kernel";
  if (path.ends_with(".cu"))
    return "; this is source: 'nvcc -cudart shared " + path + " -o PROGRAM' makes a program of it";
  const std::string_view what = grammar::what_is_not_ptx(*text);
  const bool is_elf = text->compare(0, 4, "\177ELF") == 0; // a program of another machine, or without leave to run
  return what.empty() || is_elf ? std::string() : "; " + std::string(what);
}

// Replaces this process by the program; returns only if the program cannot be started.
int run_program(const ExecOptions& options) {
  std::vector<char*> arguments;
  for (const std::string& argument : options.program)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  std::fflush(nullptr);
  leave_signals_to_next_program();
  execvp(arguments[0], arguments.data());
  const int reason = errno;
  const std::string& name = options.program.front();
  show(Error{fmt::format("{}: cannot run it: {}{}", name, std::strerror(reason), hint_about(name)), {}});
  return exit_diagnostics;
}

// The path of the driver of this machine's GPU: the environment's PTXREWRITE_LIBCUDA, or the system's. Fails if there
// is none.
Result<std::string> driver_path() {
  const char* const named = std::getenv("PTXREWRITE_LIBCUDA");
  const std::string name = named && *named ? named : driver_library;
  void* const handle = dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
  const link_map* map = nullptr;
  if (!handle || dlinfo(handle, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0)
    return Error{fmt::format("no GPU here: {} cannot be opened", name), {}};
  return std::filesystem::absolute(map->l_name).string();
}

// Runs on a GPU: our libcuda.so.1 comes first and forwards everything that it does not change to the driver.
int run_on_gpu(const ExecOptions& options, const std::string& passes, const Session& session) {
  Result<std::string> driver = driver_path();
  if (!driver) {
    show(driver.error());
    return exit_no_gpu;
  }
  Result<std::string> folder = library_folder("interposed", "interposed", driver_library);
  if (!folder) {
    show(folder.error());
    return exit_diagnostics;
  }
  cuda::interpose::GpuSettings settings;
  settings.passes = passes;
  settings.specialise = options.specialise;
  settings.autotune = options.autotune;
  settings.log_level = cuda::log_level_of(session.log_level);
  if (!options.json.empty()) settings.report = std::filesystem::absolute(options.json).string();
  set_variables(cuda::interpose::environment_of(settings));
  setenv("PTXREWRITE_LIBCUDA", driver->c_str(), 1);
  prepend("LD_LIBRARY_PATH", *folder);
  return run_program(options);
}

int run_exec(const ExecOptions& options, const Session& session) {
  const bool on_gpu = runs_on_gpu(options);
  if (const std::string wrong = contradiction(options, on_gpu); !wrong.empty()) return usage_error("exec", wrong);
  const std::optional<std::string> passes = passes_of(options.pipeline, session);
  const std::optional<std::string> verify = passes_of(options.verify, session);
  if (!passes || !verify) return exit_usage;
  if (on_gpu) return run_on_gpu(options, *passes, session);
  const MachineChoice machine = find_machine("exec", options.machine, session);
  if (machine.code != exit_ok) return machine.code;
  if (machine.machine && ir::find_machine(machine.machine->name) != machine.machine)
    return usage_error("exec", "--emulate takes the name of a machine that is built in");
  const MachineChoice score = find_machine("exec", options.score, session);
  if (score.code != exit_ok) return score.code;
  if (score.machine && ir::find_machine(score.machine->name) != score.machine)
    return usage_error("exec", "--score takes the name of a machine that is built in");
  if (!options.capture.empty())
    if (Status status = make_capture_folder(options.capture); !status)
      return usage_error("exec", status.error().message);
  Result<std::string> folder = library_folder("lib", "cuda", main_library);
  if (!folder) {
    show(folder.error());
    return exit_diagnostics;
  }
  cuda::Settings settings;
  settings.machine = machine.machine;
  settings.log_level = cuda::log_level_of(session.log_level);
  settings.check = options.check;
  settings.counters = options.counters;
  if (!options.json.empty()) settings.json = std::filesystem::absolute(options.json).string();
  settings.passes = *passes;
  settings.specialise = options.specialise;
  settings.verify = *verify;
  if (!options.capture.empty()) settings.capture = std::filesystem::absolute(options.capture).string();
  settings.captures = options.captures == "hottest" ? 0 : captures_of(options.captures);
  settings.study = options.study;
  settings.score = score.machine;
  if (!options.html.empty()) settings.html = std::filesystem::absolute(options.html).string();
  settings.fuel = cuda::emulator_limits().fuel;
  settings.memory = cuda::emulator_limits().memory;
  settings.engine = emulator::word_of(emulator::default_engine());
  settings.matrix_sums = emulator::word_of(emulator::default_matrix_sums());
  settings.host_threads = options.host_threads;
  set_environment(settings, *folder);
  // Host and device addresses must not overlap, which is guaranteed without address randomization. The call may be
  // forbidden.
  (void)personality(ADDR_NO_RANDOMIZE);
  return run_program(options);
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<ExecOptions>();
  command.add_option("program", options->program, "the program and its arguments, behind --")
      .required()
      .type_name("PROGRAM [ARGUMENT]");
  command
      .add_option(
          "--device", options->device,
          "emulator, or cuda: the GPU of this machine, with modules rewritten when they are loaded (default: the "
          "GPU if there is one and no other option is for the emulator)")
      .one_of({"emulator", "cuda"});
  command
      .add_option("--emulate", options->machine,
                  "the GPU that the program sees: titanv, a100, sm_80 ... (default h100)")
      .type_name("GPU");
  command.add_flag("--check", options->check, "look for races, uninitialised reads ... in every launch");
  command.add_flag("--counters", options->counters, "show a table of all kernels when the program ends");
  command.add_option("--json", options->json, "write the table to a file, as JSON").type_name("FILE");
  const Option passes =
      command
          .add_option("-p,--passes", options->pipeline.passes,
                      "rewrite modules when they are loaded: r2d2(limit=8),dce ...; at each launch the variant runs "
                      "whose conditions hold, else the original")
          .type_name("PIPELINE")
          .sets(options->pipeline.passes_given);
  command.add_flag("-O", options->pipeline.optimise, "the same with the best combination of passes").excludes(passes);
  command
      .add_option("--specialise", options->specialise,
                  "make a kernel for each launch that the program repeats N times, with its block, grid and integers "
                  "as literals; with --passes and -O rewritten further")
      .type_name("N")
      .range(0, 1000000000);
  command.add_flag(
      "--autotune", options->autotune,
      "with --device cuda: time originals and rewritten kernels in the program's own launches, and keep the "
      "faster one of each");
  command
      .add_option("--verify", options->verify.passes,
                  "run each launch once more, rewritten, on a copy of the memory, and compare the results")
      .type_name("PIPELINE")
      .sets(options->verify.passes_given);
  command
      .add_option("--capture", options->capture,
                  "write launches as launch files with PTX and memory, for run, verify, study, score and bench")
      .type_name("DIR");
  command
      .add_option(
          "--capture-launches", options->captures,
          "the first N launches of each kernel (default 1), or hottest: the one that executes most instructions")
      .type_name("N");
  command.add_flag("--study", options->study,
                   "print the redundant part of each kernel, and the part that remains with the papers' techniques");
  command.add_option("--score", options->score, "estimate each launch's time on this GPU; with --passes rewritten, too")
      .type_name("GPU");
  command.add_option("--html", options->html, "write a page with a table of all kernels, from --study and --score")
      .type_name("FILE");
  command.add_option("--host-threads", options->host_threads, "threads for the emulator; all of the machine's if 0")
      .type_name("N")
      .range(0, 1024);
  add_limit_options(command);
  return [options, &session] { return run_exec(*options, session); };
}

const RegisterCommand
    registration({.name = "exec",
                  .about = "run a whole CUDA program, its kernels on the emulator or rewritten on a GPU",
                  .example = "nvcc -cudart shared app.cu -o app && ptxrewrite exec --counters -- ./app 1000",
                  .place = 45,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::exec_command
