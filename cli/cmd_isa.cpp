// `ptxrewrite isa`: queries the instruction table.
#include "cli/command.h"
#include "ir/isa/isa.h"
#include "support/text/json_text.h"
#include "support/text/near_names.h"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

namespace ptxrewrite::cli::isa_command {

namespace {

struct IsaOptions {
  std::vector<std::string> names;
  bool json = false;
};

// Suggests similar names; the full list has over two hundred and would not help.
std::string did_you_mean(const std::string& name) {
  static constexpr const char* special_registers[] = {
#define SPECIAL_REGISTER(name, text, type, width, uniformity, is_volatile, readers, version, targets, meaning) text,
#include "ir/isa/specialregs.def"
#undef SPECIAL_REGISTER
  };
  std::vector<std::string> known(std::begin(special_registers), std::end(special_registers));
  for (std::string_view opcode : ir::list_opcodes())
    known.emplace_back(opcode);
  for (const ir::DirectiveInfo& directive : ir::directives())
    known.emplace_back(directive.name);
  const std::string hint = near_names(name, known);
  return hint.starts_with("; did you mean") ? hint : "; 'ptxrewrite isa' lists all opcodes";
}

int run_isa(const IsaOptions& options) {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  if (options.names.empty()) {
    for (std::string_view opcode : ir::list_opcodes()) {
      if (options.json)
        document.push_back(opcode);
      else
        std::printf("%.*s\n", static_cast<int>(opcode.size()), opcode.data());
    }
  }
  int code = exit_ok;
  for (const std::string& name : options.names) {
    std::string page = ir::isa_page(name);
    if (page.empty()) {
      std::fprintf(stderr, "ptxrewrite: error: nothing in the instruction set is called '%s'%s\n", name.c_str(),
                   did_you_mean(name).c_str());
      code = exit_diagnostics;
    } else if (options.json) {
      document.push_back({{"name", name}, {"page", page}});
    } else {
      std::fputs(page.c_str(), stdout);
      if (page.back() != '\n') std::fputc('\n', stdout);
    }
  }
  if (options.json) std::puts(json_text(document).c_str());
  return code;
}

Action set_up(Options& command, const Session&) {
  auto options = std::make_shared<IsaOptions>();
  command.add_option("NAME", options->names, "an opcode, special register or directive; none: list all opcodes");
  command.add_flag("--json", options->json, "print JSON");
  return [options] { return run_isa(*options); };
}

const RegisterCommand
    registration({.name = "isa",
                  .about = "show the properties of an opcode, special register or directive",
                  .example = "ptxrewrite isa mad        # forms, operands, effects, first version and target\n"
                             "  ptxrewrite isa %tid .maxntid\n  ptxrewrite isa            # all opcodes",
                  .place = 160,
                  .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::isa_command
