// `ptxrewrite lower`: shows the machine instructions that the model predicts for each kernel.
#include "cli/command.h"
#include "cli/machine_choice.h"
#include "evaluate/common/module_input.h"
#include "evaluate/lower/machine_listing_report.h"
#include "evaluate/lower/sass_lines.h"
#include "support/file_io.h"
#include "support/ptxas.h"
#include "support/text/json_text.h"
#include "transforms/manager/pipeline.h"

#include <nlohmann/json.hpp>

#include <memory>

namespace ptxrewrite::cli::lower_command {

namespace {

struct LowerOptions {
  std::vector<std::string> files;
  std::string kernels = "*";
  std::string gpu;
  bool json = false;
  bool no_ptxas = false;
  bool sass = false;
};

int lower_file(const LowerOptions& options, const std::string& path, const Session& session, std::string& out,
               nlohmann::ordered_json& document) {
  std::unique_ptr<ir::Module> module = read_input(path, session);
  if (!module || !check_selection(*module, options.kernels, session)) return exit_diagnostics;
  int code = exit_ok;
  const CodeTarget target = code_target("lower", options.gpu, *module, session, code);
  if (!target.machine) return code;
  ir::FiguresByFunction real;
  if (!options.no_ptxas)
    if (Result<ir::FiguresByFunction> figures = ir::machine_figures(module->source.text(), target.name()))
      real = *std::move(figures);
  SassByFunction sass;
  if (options.sass) {
    Result<SassByFunction> disassembled = sass_of(module->source.text(), target.name());
    if (!disassembled) {
      show(disassembled.error());
      return exit_diagnostics;
    }
    sass = *std::move(disassembled);
  }
  std::string assembler;
  if (!real.empty() || !sass.empty())
    if (Result<std::string> program = find_ptxas()) assembler = "ptxas " + ptxas_release(*program);
  for (const auto& function : module->functions) {
    const std::string_view name = module->text(function->name);
    if (!function->has_body || !transforms::matches_glob(options.kernels, name)) continue;
    MachineListing listing = machine_listing(*function, *target.machine, target.capability);
    if (const auto found = real.find(name); found != real.end()) listing.ptxas = found->second;
    if (const auto found = sass.find(name); found != sass.end()) add_sass(listing, found->second);
    if (options.json)
      document.push_back(machine_listing_json(listing, *target.machine, target.name(), assembler));
    else
      out += (out.empty() ? "" : "\n") + machine_listing_text(listing, *target.machine, target.name(), assembler);
  }
  return exit_ok;
}

int run_lower(const LowerOptions& options, const Session& session) {
  if (options.files.empty()) return usage_error("lower", "FILE is missing (- is standard input)");
  if (options.sass && options.no_ptxas) return usage_error("lower", "--sass asks ptxas, --no-ptxas forbids it");
  int code = exit_ok;
  std::string out;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const std::string& path : options.files)
    code = std::max(code, lower_file(options, path, session, out, document));
  if (options.json) out = json_text(document) + '\n';
  if (Status status = write_file("-", out); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return code;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<LowerOptions>();
  command.add_option("FILE", options->files, "PTX files; - is standard input");
  command.add_option("-k,--kernel", options->kernels, "only kernels and functions with such a name").type_name("GLOB");
  command
      .add_option("--gpu", options->gpu,
                  "the machine: h200, gtx480, sm_80, FILE.toml ...; without it the target that the text names")
      .type_name("NAME");
  command.add_flag("--no-ptxas", options->no_ptxas, "do not compile the kernels with ptxas for comparison");
  command.add_flag("--sass", options->sass, "print ptxas's machine code beside each line (needs ptxas and nvdisasm)");
  command.add_flag("--json", options->json, "print JSON");
  return [options, &session] { return run_lower(*options, session); };
}

const RegisterCommand registration({.name = "lower",
                                    .about = "show the machine instructions that the model counts for a kernel",
                                    .example = "ptxrewrite lower kernel.ptx --gpu a100 --kernel 'bp_*'",
                                    .place = 35,
                                    .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::lower_command
