// `ptxrewrite targets`: prints the targets of files.
#include "cli/command.h"
#include "evaluate/common/module_input.h"

#include <cstdio>
#include <memory>

namespace ptxrewrite::cli {

static int run_targets(const std::vector<std::string>& files, const Session& session) {
  int code = exit_ok;
  for (const std::string& file : files) {
    const std::unique_ptr<ir::Module> module = read_input(file, session);
    if (!module) {
      code = exit_diagnostics;
      continue;
    }
    std::printf("%s:", file.c_str());
    for (const Symbol target : module->targets)
      std::printf(" %s", std::string(module->text(target)).c_str());
    std::puts("");
  }
  return code;
}

static Action set_up(Options& command, const Session& session) {
  auto files = std::make_shared<std::vector<std::string>>();
  command.add_option("FILE", *files, "PTX files; - is standard input").required();
  return [files, &session] { return run_targets(*files, session); };
}

static const RegisterCommand registration({.name = "targets",
                                           .about = "print what files are written for",
                                           .example = "ptxrewrite targets kernel.ptx",
                                           .place = 155,
                                           .set_up = set_up});

} // namespace ptxrewrite::cli
