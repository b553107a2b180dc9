// `ptxrewrite launch-template`: writes a skeleton launch file from the signatures of a PTX file's kernels.
#include "cli/command.h"
#include "launch/launch_template.h"

#include "evaluate/common/module_input.h"
#include "support/file_io.h"
#include "support/text/near_names.h"
#include "transforms/manager/pipeline.h"

#include <filesystem>
#include <memory>

namespace ptxrewrite::cli::launch_template_command {

namespace {

struct TemplateOptions {
  std::string file;
  std::string kernels = "*";
  std::string output = "-";
};

// The path of the PTX file in a launch file at `output`: paths in launch files are relative to their folder. A launch
// file on standard output is assumed to be saved in the current folder.
std::string path_from_launch_file(const std::string& ptx, const std::string& output) {
  namespace fs = std::filesystem;
  if (ptx == "-") return "kernel.ptx"; // placeholder, because the text's file name is unknown
  if (output == "-" || fs::path(ptx).is_absolute()) return ptx;
  // Resolves symbolic links in both paths, because `..` would lead elsewhere through them.
  std::error_code error;
  const fs::path file = fs::absolute(ptx);
  const fs::path from = fs::weakly_canonical(fs::absolute(output).parent_path(), error);
  if (error) return file.string();
  const fs::path to = fs::weakly_canonical(file.parent_path(), error);
  if (error) return file.string();
  return (to.lexically_relative(from) / file.filename()).lexically_normal().string();
}

int run_template(const TemplateOptions& options, const Session& session) {
  if (options.file.empty()) return usage_error("launch-template", "FILE is missing (- is standard input)");
  std::unique_ptr<ir::Module> module = read_input(options.file, session);
  if (!module) return exit_diagnostics;
  std::vector<const ir::Function*> kernels;
  std::vector<std::string> known;
  for (const auto& function : module->functions) {
    if (!function->is_entry || !function->has_body) continue;
    known.emplace_back(module->text(function->name));
    if (transforms::matches_glob(options.kernels, known.back())) kernels.push_back(function.get());
  }
  if (kernels.empty()) {
    show(Error{"no kernel matches '" + options.kernels + "'" +
                   (known.empty() ? "; there is none in this file" : near_names(options.kernels, known)),
               {}},
         module->source, session);
    return exit_diagnostics;
  }
  if (Status status =
          write_file(options.output,
                     launch::launch_template(*module, kernels, path_from_launch_file(options.file, options.output)));
      !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return exit_ok;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<TemplateOptions>();
  command.add_option("FILE", options->file, "a PTX file; - is standard input");
  command.add_option("-k,--kernel", options->kernels, "only kernels with such a name").type_name("GLOB");
  command.add_option("-o,--output", options->output, "where to write; standard output if not given").type_name("FILE");
  return [options, &session] { return run_template(*options, session); };
}

const RegisterCommand registration({.name = "launch-template",
                                    .about = "write a skeleton launch file for a PTX file",
                                    .example = "ptxrewrite launch-template kernel.ptx -o kernel.toml",
                                    .place = 120,
                                    .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::launch_template_command
