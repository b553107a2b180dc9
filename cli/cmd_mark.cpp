// `ptxrewrite mark`: DARSIE's marks, for any launch or for one block shape, as a listing or in the text itself.
#include "cli/command.h"
#include "evaluate/common/module_input.h"
#include "ir/analysis/redundancy/redundancy.h"
#include "ir/core/print.h"
#include "launch/launch_plan.h"
#include "support/file_io.h"
#include "support/text/json_text.h"
#include "support/text/table.h"
#include "transforms/darsie/darsie_text.h"
#include "transforms/manager/pipeline.h"
#include "transforms/manager/text_insertion.h"

#include <nlohmann/json.hpp>

#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>

namespace ptxrewrite::cli::mark_command {

namespace {

using BlockExtents = std::array<uint32_t, 3>;

struct MarkOptions {
  std::string file;
  std::string kernels = "*";
  std::vector<uint32_t> block;
  std::string carrier;
  std::string output = "-";
  bool strip = false;
  bool json = false;
};

// Describes a contradiction between the options; empty if there is none.
std::string contradiction(const MarkOptions& options) {
  if (options.block.size() > 3) return "--block has three dimensions at most";
  const BlockExtents most = {launch::max_block.x, launch::max_block.y, launch::max_block.z};
  uint64_t threads = 1;
  for (size_t i = 0; i < options.block.size(); ++i) {
    if (options.block[i] == 0 || options.block[i] > most[i]) return "--block is no block shape";
    threads *= options.block[i];
  }
  if (threads > launch::max_block_threads) return "--block has more than 1024 threads";
  if (options.strip && (options.json || !options.carrier.empty() || !options.block.empty()))
    return "--strip only takes marks away";
  if (options.json && !options.carrier.empty()) return "--json and --carrier exclude each other";
  return "";
}

std::optional<BlockExtents> block_of(const MarkOptions& options) {
  if (options.block.empty()) return std::nullopt;
  BlockExtents block{1, 1, 1};
  std::copy(options.block.begin(), options.block.end(), block.begin());
  return block;
}

std::vector<ir::DarsieMark> marks_for(const ir::Function& function, const std::optional<BlockExtents>& block) {
  std::vector<ir::DarsieMark> marks = ir::marks_of(function);
  if (block)
    for (ir::DarsieMark& mark : marks)
      mark = promote(mark, *block);
  return marks;
}

// The selected functions that have a body.
std::vector<const ir::Function*> selected(const ir::Module& module, const std::string& glob) {
  std::vector<const ir::Function*> functions;
  for (const auto& function : module.functions)
    if (function->has_body && transforms::matches_glob(glob, module.text(function->name)))
      functions.push_back(function.get());
  return functions;
}

template <class Visit> void for_each_instruction(const ir::Function& function, Visit&& visit) {
  for (ir::BlockId block : function.layout)
    for (ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real) visit(id);
}

std::string listing(const ir::Function& function, const std::vector<ir::DarsieMark>& marks) {
  TextTable table{{{"line", true}, {"mark"}, {"instruction"}}, {}};
  std::map<std::string, size_t> counts;
  for_each_instruction(function, [&](ir::InstructionId id) {
    const ir::DarsieMark mark = marks[id.index()];
    ++counts[to_string(mark)];
    const uint32_t line = function.module().source.locate(function.instructions[id].range.begin).line;
    table.rows.push_back({std::to_string(line), to_string(mark), print_instruction(function, id)});
  });
  std::string text = std::string(function.module().text(function.name)) + ":";
  for (const auto& [mark, count] : counts)
    text += (text.back() == ':' ? " " : ", ") + mark + ' ' + std::to_string(count);
  return text + '\n' + table.text();
}

nlohmann::ordered_json json_of(const ir::Function& function, const std::vector<ir::DarsieMark>& marks) {
  nlohmann::ordered_json instructions = nlohmann::ordered_json::array();
  for_each_instruction(function, [&](ir::InstructionId id) {
    const uint32_t line = function.module().source.locate(function.instructions[id].range.begin).line;
    instructions.push_back(
        {{"line", line}, {"mark", to_string(marks[id.index()])}, {"instruction", print_instruction(function, id)}});
  });
  return {{"function", function.module().text(function.name)}, {"instructions", std::move(instructions)}};
}

std::string marked_text(const ir::Module& module, const MarkOptions& options) {
  const auto carrier = transforms::parse_carrier(options.carrier).value_or(transforms::MarkCarrier::comment);
  std::vector<transforms::TextInsertion> insertions;
  for (const ir::Function* function : selected(module, options.kernels)) {
    // Existing marks are kept; new ones beside them could contradict them.
    if (ir::has_written_marks(*function)) continue;
    std::ranges::move(transforms::mark_insertions(*function, marks_for(*function, block_of(options)), carrier),
                      std::back_inserter(insertions));
  }
  return transforms::with_insertions(module.source.text(), std::move(insertions));
}

std::string result_text(const ir::Module& module, const MarkOptions& options) {
  if (options.strip) return transforms::without_marks(module);
  if (!options.carrier.empty()) return marked_text(module, options);
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  std::string text;
  for (const ir::Function* function : selected(module, options.kernels)) {
    const std::vector<ir::DarsieMark> marks = marks_for(*function, block_of(options));
    if (options.json)
      document.push_back(json_of(*function, marks));
    else
      text += (text.empty() ? "" : "\n") + listing(*function, marks);
  }
  return options.json ? json_text(document) + '\n' : text;
}

int run_mark(const MarkOptions& options, const Session& session) {
  if (std::string wrong = contradiction(options); !wrong.empty()) return usage_error("mark", wrong);
  std::unique_ptr<ir::Module> module = read_input(options.file, session);
  if (!module || !check_selection(*module, options.kernels, session)) return exit_diagnostics;
  if (Status status = write_file(options.output, result_text(*module, options)); !status) {
    show(status.error());
    return exit_diagnostics;
  }
  return exit_ok;
}

Action set_up(Options& command, const Session& session) {
  auto options = std::make_shared<MarkOptions>();
  command.add_option("FILE", options->file, "a PTX file; - is standard input").required();
  command.add_option("-k,--kernel", options->kernels, "only kernels and functions with such a name").type_name("GLOB");
  command.add_option("--block", options->block, "the marks that hold for this block shape")
      .delimiter(',')
      .one_each()
      .type_name("X[,Y[,Z]]");
  command
      .add_option("--carrier", options->carrier,
                  "write the text with its marks: behind the instructions (comment) or in front of them (pragma)")
      .one_of({"comment", "pragma"})
      .type_name("CARRIER");
  command.add_flag("--strip", options->strip, "write the text without the marks in it, RegLess's annotations too");
  command.add_flag("--json", options->json, "print JSON");
  command.add_option("-o,--output", options->output, "where to write; standard output if not given").type_name("FILE");
  return [options, &session] { return run_mark(*options, session); };
}

const RegisterCommand registration(
    {.name = "mark",
     .about = "say which instructions all warps of a block execute alike",
     .example = "ptxrewrite mark samples/matmul/matmul.ptx -k matmul_tiled --block 16,16\n"
                "  ptxrewrite mark kernel.ptx --carrier=comment -o marked.ptx\n"
                "DR: redundant in any launch; CR x, CR xy: if ntid.x (ntid.x*ntid.y) fits into a warp; V: no. With "
                "--block, DR or V.",
     .place = 110,
     .set_up = set_up});

} // namespace

} // namespace ptxrewrite::cli::mark_command
