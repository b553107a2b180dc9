// An example of a tool based on ptxrewrite: reads a PTX file, runs its own pass on every function, prints the result.
// The pass counts every shared-memory store in a statistic and does not change the code.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "support/file_io.h"
#include "transforms/manager/pipeline.h"

#include <iostream>

using namespace ptxrewrite;

static transforms::Change count_shared_stores(ir::Function& function, transforms::PassContext& context) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.is_opcode(id, ir::Opcode::st) && ir::is_shared(function.form_of(id).space))
        ++context.statistics["shared stores in " + std::string(function.module().text(function.name))];
  return transforms::Change::unchanged;
}

static const transforms::RegisterPass registration({"count-shared-stores", "counts st.shared", count_shared_stores});

int main(int argument_count, char** arguments) {
  Result<std::string> text = read_file(argument_count > 1 ? arguments[1] : "-");
  if (!text) return std::cerr << text.error().message << '\n', 1;
  SourceFile source(argument_count > 1 ? arguments[1] : "<stdin>", std::move(*text));

  Diagnostics diagnostics;
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  for (const Diagnostic& diagnostic : diagnostics.list())
    std::cerr << render(diagnostic, source);
  if (!module) return 1;

  Result<transforms::Pipeline> pipeline = transforms::parse_pipeline("count-shared-stores");
  if (!pipeline) return std::cerr << pipeline.error().message << '\n', 1;
  Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline);
  if (!report) return std::cerr << report.error().message << '\n', 1;
  std::cout << ir::print(*module);
  for (const auto& [what, number] : report->statistics)
    std::cerr << number << ' ' << what << '\n';
}
