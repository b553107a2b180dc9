#include "evaluate/launches/launch_input.h"

#include "evaluate/common/module_input.h"
#include "grammar/foreign_input.h"
#include "launch/signature.h"
#include "support/file_io.h"
#include "support/text/near_names.h"
#include "transforms/manager/pipeline.h"

#include <filesystem>

namespace ptxrewrite::evaluate {

namespace {

std::optional<SourceFile> read_source(const std::string& path, const Console& console) {
  Result<std::string> text = read_file(path);
  if (!text) {
    show(text.error(), console);
    return std::nullopt;
  }
  return SourceFile(path == "-" ? "<stdin>" : path, *std::move(text));
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// "4,2" as a TOML array of expressions.
std::string dimension_list(const std::string& text) {
  std::string out = "[";
  size_t start = 0, depth = 0;
  for (size_t at = 0; at <= text.size(); ++at) {
    const char c = at < text.size() ? text[at] : ',';
    if (c == '(') ++depth;
    if (c == ')' && depth > 0) --depth;
    if (c != ',' || (depth > 0 && at < text.size())) continue;
    out += (out.size() > 1 ? ", " : "") + quoted(text.substr(start, at - start));
    start = at + 1;
  }
  return out + "]";
}

// "TYPE:COUNT[:INIT][:out]" as a [buffer.NAME] section.
std::string buffer_section(const std::string& name, std::string text) {
  std::string section = "[buffer." + name + "]\n";
  if (text.ends_with(":out")) {
    section += "output = true\n";
    text.resize(text.size() - 4);
  }
  const size_t first = text.find(':');
  section += "type = " + quoted(text.substr(0, first)) + '\n';
  if (first == text.npos) return section;
  const size_t second = text.find(':', first + 1);
  section += "count = " + quoted(text.substr(first + 1, second == text.npos ? second : second - first - 1)) + '\n';
  if (second != text.npos) section += "init = " + quoted(text.substr(second + 1)) + '\n';
  return section;
}

bool keep_launches(launch::LaunchPlan& plan, const std::string& kernels, const Console& console) {
  std::vector<std::string> known;
  for (const launch::Launch& launch : plan.launches)
    if (std::find(known.begin(), known.end(), launch.kernel) == known.end()) known.push_back(launch.kernel);
  std::erase_if(plan.launches,
                [&](const launch::Launch& one) { return !transforms::matches_glob(kernels, one.kernel); });
  if (!plan.launches.empty() || known.empty()) return true;
  show(Error{"no launch is of a kernel '" + kernels + "'" + near_names(kernels, known), {}}, plan.source, console);
  return false;
}

// Reads the side file beside a PTX file. Returns false if there is one and it is invalid.
bool read_side_file_of(const std::string& ptx, std::optional<launch::SideFile>& side_file, const Console& console) {
  const std::string path = launch::side_file_path(ptx);
  std::error_code ignored;
  if (ptx == "-" || !std::filesystem::is_regular_file(path, ignored)) return true;
  std::optional<SourceFile> source = read_source(path, console);
  if (!source) return false;
  Diagnostics diagnostics;
  side_file = launch::read_side_file(*source, diagnostics);
  show_all(diagnostics, *source, console);
  return side_file.has_value();
}

// The only kernel of a module, if the user names none.
std::string kernel_of(const ir::Module& module, const std::string& wanted) {
  if (wanted != "*") return wanted;
  std::string name;
  for (const auto& function : module.functions) {
    if (!function->is_entry || !function->has_body) continue;
    if (!name.empty()) return {};
    name = module.text(function->name);
  }
  return name;
}

std::optional<launch::LaunchPlan> plan_of(const SourceFile& source, const LaunchInputOptions& options,
                                          const Console& console) {
  Diagnostics diagnostics;
  std::optional<launch::LaunchFile> file = launch::read_launch_file(source, diagnostics);
  std::optional<launch::LaunchPlan> plan;
  if (file) plan = launch::make_plan(*file, {options.size, options.target}, diagnostics);
  show_all(diagnostics, source, console);
  return plan;
}

bool is_ptx(const std::string& path) {
  return path == "-" || path.ends_with(".ptx");
}

std::optional<LaunchInput> read_direct(const std::string& path, const LaunchInputOptions& options,
                                       const Console& console) {
  LaunchInput input;
  input.module = read_input(path, console);
  if (!input.module) return std::nullopt;
  const std::string kernel = kernel_of(*input.module, options.kernels);
  if (kernel.empty()) {
    show(Error{"which kernel: name it with --kernel", {}}, input.module->source, console);
    return std::nullopt;
  }
  SourceFile source("<command line>", direct_launch_text(path, kernel, options.direct));
  std::optional<launch::LaunchPlan> plan = plan_of(source, {}, console);
  if (!plan) return std::nullopt;
  input.plan = *std::move(plan);
  return input;
}

// Describes the kind of a file that cannot be a launch file; empty if it can be one.
std::string what_is_no_launch_file(std::string_view text) {
  if (grammar::is_launch_file(text)) return {};
  if (grammar::begins_as_ptx(text))
    return "this is PTX, and no launch file: a name that ends in .ptx says so, with --grid and --block; 'ptxrewrite "
           "launch-template FILE' writes a launch file for it";
  return std::string(grammar::what_is_not_ptx(text));
}

std::optional<LaunchInput> read_from_file(const std::string& path, const LaunchInputOptions& options,
                                          const Console& console) {
  std::optional<SourceFile> source = read_source(path, console);
  if (!source) return std::nullopt;
  if (const std::string what = what_is_no_launch_file(source->text()); !what.empty()) {
    show(Error{what, {}}, *source, console);
    return std::nullopt;
  }
  std::optional<launch::LaunchPlan> plan = plan_of(*source, options, console);
  if (!plan) return std::nullopt;
  LaunchInput input;
  input.plan = *std::move(plan);
  if (!options.ptx.empty()) input.plan.ptx = options.ptx;
  if (!keep_launches(input.plan, options.kernels, console)) return std::nullopt;
  input.module = read_input(input.plan.ptx, console);
  if (!input.module) return std::nullopt;
  return input;
}

} // namespace

std::string contradiction_of_files(const std::vector<std::string>& files, const LaunchInputOptions& options) {
  if (files.empty()) return "FILE is missing: a launch file, or PTX with --grid and --block";
  for (const std::string& path : files) {
    const bool ptx = is_ptx(path);
    if (ptx && (options.direct.grid.empty() || options.direct.block.empty()))
      return path + " is PTX: say --grid and --block, or name a launch file";
    if (!ptx && options.direct.any()) return path + " is a launch file: --grid, --block and --arg are for PTX files";
    if (ptx && (!options.size.empty() || !options.ptx.empty()))
      return path + " is PTX: --size and --ptx are for launch files";
  }
  return {};
}

std::string direct_launch_text(const std::string& ptx_path, const std::string& kernel, const DirectLaunch& direct) {
  std::string arguments, buffers;
  for (size_t i = 0; i < direct.arguments.size(); ++i) {
    const std::string& text = direct.arguments[i];
    const size_t equals = text.find('=');
    const std::string kind = text.substr(0, equals);
    const std::string value = equals == text.npos ? "" : text.substr(equals + 1);
    const std::string name = "arg" + std::to_string(i);
    arguments += i ? ",\n    " : "\n    ";
    if (kind == "buffer") {
      arguments += "{ buffer = " + quoted(name) + " }";
      buffers += '\n' + buffer_section(name, value);
    } else {
      arguments += "{ " + (kind.find_first_of(" \"'={}[].\n") == kind.npos && !kind.empty() ? kind : quoted(kind)) +
                   " = " + (kind == "pred" ? value : quoted(value)) + " }";
    }
  }
  return "ptx = " + quoted(ptx_path) + "\n\n[[launch]]\nkernel = " + quoted(kernel) +
         "\ngrid = " + dimension_list(direct.grid) + "\nblock = " + dimension_list(direct.block) +
         (direct.cluster.empty() ? "" : "\ncluster = " + dimension_list(direct.cluster)) +
         "\nshared = " + quoted(direct.shared) + "\nargs = [" + arguments + "\n]\n" + buffers;
}

std::optional<LaunchInput> read_launch_input(const std::string& path, const LaunchInputOptions& options,
                                             const Console& console) {
  std::optional<LaunchInput> input =
      is_ptx(path) ? read_direct(path, options, console) : read_from_file(path, options, console);
  if (!input) return std::nullopt;
  launch::take_required_clusters(*input->module, input->plan);
  Diagnostics diagnostics;
  const bool right = launch::check_arguments(*input->module, input->plan, diagnostics);
  show_all(diagnostics, input->plan.source, console);
  if (!right || !read_side_file_of(is_ptx(path) ? path : input->plan.ptx, input->side_file, console))
    return std::nullopt;
  return input;
}

void show_session_error(const Error& error, cuda::ErrorPlace place, const LaunchInput& input, const Console& console) {
  show(error, place == cuda::ErrorPlace::module ? input.module->source : input.plan.source, console);
}

} // namespace ptxrewrite::evaluate
