// Writes as text the libraries' results for PTX files and random kernels: one file for each kind of result.
//
//   freeze_dump FOLDER NAME=FILE.ptx ...             FOLDER/NAME/KIND: read, ssa, pass.r2d2.hardware, lower.sm_80 ...
//   freeze_dump FOLDER fuzz=FIRST-LAST ...           FOLDER/fuzz/FIRST/KIND, the kernels of these seeds in one file
//   freeze_dump FOLDER launches=SEED ...             FOLDER/kSEED.toml, .ptx and buffers, for the commands that launch
//
// The output is the same on every machine: no assembler is used, and no time, address or path is printed.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/machine/registers/allocation.h"
#include "ir/machine/registers/registers.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/file_io.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_launch_file.h"
#include "tests/fuzz/kernels/kernel_print.h"
#include "transforms/common/family.h"
#include "transforms/manager/text_insertion.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <map>

namespace {

using namespace ptxrewrite;

constexpr std::array<uint32_t, 8> targets = {13, 20, 52, 61, 70, 75, 80, 90};

// Texts by kind of result: of one item, or of several random kernels concatenated.
using Dump = std::map<std::string, std::string>;

std::unique_ptr<ir::Module> read(const std::string& text, std::string* messages = nullptr) {
  Diagnostics diagnostics;
  const SourceFile source("text.ptx", text);
  std::unique_ptr<ir::Module> module = grammar::read_module(source, diagnostics);
  if (messages)
    for (const Diagnostic& diagnostic : diagnostics.list())
      *messages += render(diagnostic, source);
  return module;
}

std::string place(const SourceRange& range) {
  return std::to_string(range.begin) + "-" + std::to_string(range.end);
}

// ---- passes

std::string report_text(const transforms::PipelineReport& report) {
  static constexpr std::array discharges = {"proved", "launch-checked", "in-kernel", "assumed"};
  std::string text;
  for (const transforms::Remark& remark : report.remarks)
    text += "remark: " + remark.pass + " " + remark.function + " " + place(remark.range) + ": " + remark.text + "\n";
  for (const transforms::Obligation& entry : report.ledger)
    text += "obligation: " + entry.function + ": " + entry.statement + " | " + entry.raised_by + " | " +
            discharges.at(static_cast<size_t>(entry.discharge)) + " | " + entry.reason + " | " + place(entry.range) +
            " | " + entry.exact + "\n";
  for (const auto& [name, number] : report.statistics)
    text += "statistic: " + name + " " + std::to_string(number) + "\n";
  return text;
}

std::string rewritten(const std::string& text, const std::string& passes, transforms::OutputForm form) {
  const Result<transforms::Pipeline> pipeline = transforms::parse_pipeline(passes);
  if (!pipeline) return "no pipeline: " + pipeline.error().message + "\n";
  const std::unique_ptr<ir::Module> module = read(text);
  transforms::RunOptions options;
  options.form = form;
  if (transforms::only_annotates(*pipeline, form)) {
    const transforms::AnnotatedText annotated = transforms::annotated_text(*module, *pipeline, options);
    return report_text(annotated.report) + annotated.text;
  }
  const Result<transforms::PipelineReport> report = transforms::run_pipeline(*module, *pipeline, options);
  if (!report) return "failed: " + report.error().message + "\n";
  return report_text(*report) + ir::print(*module);
}

// Pipelines with options, for passes whose results depend most on them.
const std::vector<std::pair<std::string, transforms::OutputForm>>& further_pipelines() {
  using enum transforms::OutputForm;
  static const std::vector<std::pair<std::string, transforms::OutputForm>> pipelines = {
      {"r2d2(force)", legal},
      {"r2d2(persistent)", legal},
      {"r2d2(limit=4)", hardware},
      {"dac(force)", legal},
      {"dac(tuples)", hardware},
      {"composite(force)", legal},
      {"composite(force)", hardware},
      {"darsie(specialise=\"block=64,grid=4\",force)", legal},
      {"darsie(carrier=pragma)", annotated},
      {"regless(live=12,bank=8)", annotated},
      {"schedule(force,goal=registers)", legal},
      {"schedule(force,goal=loads,live=64)", legal},
      {"spill(limit=20,predicates=3)", legal},
      {"composite,r2d2,dce", legal},
      {"dce,composite", hardware}};
  return pipelines;
}

// Families of rewrites have only the legal form.
bool has_other_forms(const transforms::PassDescription& pass) {
  return !std::ranges::equal(pass.options, transforms::legal::family_options(), {},
                             &transforms::PassOptionDescription::name, &transforms::PassOptionDescription::name);
}

void dump_passes(const std::string& text, Dump& dump) {
  static constexpr std::array forms = {"legal", "annotated", "hardware"};
  const std::string as_read = ir::print(*read(text));
  dump["pass..legal"] += rewritten(text, "", transforms::OutputForm::legal);
  auto add = [&](const std::string& passes, transforms::OutputForm form) {
    std::string result = rewritten(text, passes, form);
    // Most passes do not change most kernels.
    if (result.ends_with(as_read)) result.replace(result.size() - as_read.size(), as_read.size(), "unchanged\n");
    std::string kind = "pass." + passes + "." + forms.at(static_cast<size_t>(form));
    std::erase(kind, '"');
    dump[kind] += result;
  };
  for (const transforms::PassDescription& pass : transforms::all_passes())
    for (size_t form = 0; form < (has_other_forms(pass) ? forms.size() : 1); ++form)
      add(std::string(pass.name), static_cast<transforms::OutputForm>(form));
  for (const auto& [passes, form] : further_pipelines())
    add(passes, form);
}

// ---- machine level

std::string id_list(std::vector<ir::ValueId> values) {
  std::string text;
  for (const ir::ValueId value : values)
    text += " %" + std::to_string(value.index());
  return text;
}

std::string listing(const ir::Function& function, const ir::Lowering& lowering) {
  std::string text =
      "prologue " + std::to_string(lowering.prologue()) + "+" + std::to_string(lowering.prologue_uniform()) +
      ", subroutines " + std::to_string(lowering.subroutine_instructions()) + ", unrolled " +
      std::to_string(lowering.unrolled_instructions()) + ", static " + std::to_string(lowering.static_instructions()) +
      "+" + std::to_string(lowering.static_uniform_instructions()) + "\n";
  for (const ir::BlockId block : function.layout) {
    text += function.block_name(block) + ": " + std::to_string(lowering.copies_of(block)) + " copies\n";
    for (const ir::InstructionId id : function.instructions_in(block)) {
      const ir::InstructionCost& cost = lowering.cost(id);
      text += "  " + std::to_string(cost.weight) + "+" + std::to_string(cost.uniform) + " ";
      text += ir::spelling(cost.pipe);
      text += lowering.needed(id) ? "" : " dead";
      text += lowering.absorbed(id) ? " absorbed  " : "  ";
      text += ir::print_instruction(function, id) + "\n";
    }
  }
  text += "register units:";
  for (uint32_t i = 0; i < function.values.size(); ++i) {
    const ir::ValueId value(i);
    const ir::ValueId base = lowering.without_constant(value);
    text += " " + std::to_string(lowering.register_units(value)) + (base ? "@" + std::to_string(base.index()) : "");
  }
  return text + "\n";
}

std::string allocation_text(const ir::Function& function, const ir::AllocationOptions& options) {
  const Result<ir::Allocation> allocation = ir::allocate_registers(function, options);
  if (!allocation) return "no allocation: " + allocation.error().message + "\n";
  std::string text = std::to_string(allocation->registers) + " registers, " + std::to_string(allocation->predicates) +
                     " predicates; live " + std::to_string(allocation->live_registers) + ", " +
                     std::to_string(allocation->live_predicates) +
                     "\napart:" + id_list({allocation->apart.begin(), allocation->apart.end()}) + "\n";
  for (uint32_t i = 0; i < function.values.size(); ++i)
    if (const uint16_t first = allocation->first_register(ir::ValueId(i)); first != ir::Allocation::no_register)
      text += " %" + std::to_string(i) + "=" + std::to_string(first);
  text += "\n";
  for (const ir::VectorTemporary& vector : allocation->temporaries)
    text += "temporary: instruction " + std::to_string(vector.instruction.index()) + " operand " +
            std::to_string(vector.operand) + ": " + std::to_string(vector.first) + ", " + std::to_string(vector.count) +
            "\n";
  for (const ir::RegisterMove& move : allocation->moves)
    text += "move: " +
            (move.edge ? "edge " + std::to_string(move.edge.index())
                       : "instruction " + std::to_string(move.instruction.index())) +
            id_list({move.from, move.to}) + "\n";
  return text;
}

void dump_machine_level(const std::string& text, Dump& dump) {
  const std::unique_ptr<ir::Module> module = read(text);
  for (const std::unique_ptr<ir::Function>& function : module->functions) {
    if (!function->has_body) continue;
    const std::string head = "---- " + std::string(module->text(function->name)) + "\n";
    for (const uint32_t target : {52u, 80u})
      dump["lower_as_read.sm_" + std::to_string(target)] += head + listing(*function, ir::lower(*function, target));
    if (const Status status = ir::construct_ssa(*function); !status) {
      dump["ssa"] += head + status.error().message + "\n";
      continue;
    }
    ir::print(*function, dump["ssa"]);
    for (const uint32_t target : targets) {
      const ir::RegisterNeed need = ir::register_need(*function, target);
      dump["lower.sm_" + std::to_string(target)] += head + "needs " + std::to_string(need.registers) + " registers, " +
                                                    std::to_string(need.predicates) + " predicates\n" +
                                                    listing(*function, ir::lower(*function, target));
    }
    dump["lower_as_written.sm_80"] += head + listing(*function, ir::lower_as_written(*function, 80));
    for (const uint32_t target : {52u, 80u})
      dump["allocate.sm_" + std::to_string(target)] +=
          head + allocation_text(*function, {.compute_capability = target}) +
          "as in the text: " + allocation_text(*function, {.compute_capability = target, .keep_names = true});
  }
}

// ---- items

void add_text(const std::string& text, Dump& dump) {
  dump["input"] += text;
  std::string messages;
  const std::unique_ptr<ir::Module> module = read(text, &messages);
  dump["read"] += messages;
  if (!module) return;
  ir::print(*module, dump["read"]);
  dump_machine_level(text, dump);
  dump_passes(text, dump);
}

fuzz::Kernel kernel_of(uint64_t seed) {
  static const std::array<fuzz::Knobs, 6> knobs = {fuzz::Knobs{},         fuzz::index_knobs(), fuzz::redundancy_knobs(),
                                                   fuzz::integer_knobs(), fuzz::loop_knobs(),  fuzz::stream_knobs()};
  return fuzz::generate_kernel(seed, knobs.at(seed % knobs.size()));
}

Status write_dump(const Dump& dump, const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  for (const auto& [kind, text] : dump)
    if (Status status = write_file(folder + "/" + kind, text); !status) return status;
  return {};
}

uint64_t number(std::string_view text) {
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

Status dump_item(const std::string& folder, const std::string& name, const std::string& what) {
  if (name == "launches") {
    const fuzz::Kernel kernel = kernel_of(number(what));
    return fuzz::write_case(kernel, kernel.shapes.front(), folder);
  }
  Dump dump;
  if (name == "fuzz") {
    const size_t dash = what.find('-');
    for (uint64_t seed = number(what); seed <= number(what.substr(dash + 1)); ++seed) {
      add_text(fuzz::print_module(kernel_of(seed)), dump);
      for (auto& [kind, text] : dump)
        text += "==== end of seed " + std::to_string(seed) + "\n";
    }
    return write_dump(dump, folder + "/fuzz/" + what.substr(0, dash));
  }
  const Result<std::string> text = read_file(what);
  if (!text) return text.error();
  add_text(*text, dump);
  return write_dump(dump, folder + "/" + name);
}

} // namespace

int main(int argument_count, char** arguments) {
  if (argument_count < 3) {
    std::fputs("usage: freeze_dump FOLDER (NAME=FILE.ptx | fuzz=FIRST-LAST | launches=SEED)...\n", stderr);
    return 2;
  }
  for (int i = 2; i < argument_count; ++i) {
    const std::string item = arguments[i];
    const size_t equal = std::min(item.find('='), item.size());
    const Status status = dump_item(arguments[1], item.substr(0, equal), item.substr(std::min(equal + 1, item.size())));
    if (status) continue;
    std::fprintf(stderr, "freeze_dump: %s: %s\n", item.c_str(), status.error().message.c_str());
    return 1;
  }
  return 0;
}
