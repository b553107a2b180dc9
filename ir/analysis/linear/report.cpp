// Listing and JSON of the linear-form analysis.
#include "ir/analysis/linear/report.h"

#include "ir/analysis/linear/linear.h"
#include "ir/core/module.h"
#include "ir/core/print.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace ptxrewrite::ir {

namespace {

const char* discharge_text(const RangeObligation& obligation) {
  if (obligation.proved) return "proved";
  return obligation.launch_checkable ? "to check at launch" : "not decidable at launch";
}

unsigned line_of(const Function& function, SourceRange range) {
  return range.empty() ? 0 : function.module().source.locate(range.begin).line;
}

std::string obligation_list(std::span<const ObligationId> list) {
  std::string text;
  for (ObligationId id : list)
    text += (text.empty() ? "o" : " o") + std::to_string(id.index());
  return text;
}

std::vector<ValueId> definitions_of(const Function& function, InstructionId id) {
  std::vector<ValueId> list;
  for_each_definition(function, id, [&](ValueId value) { list.push_back(value); });
  return list;
}

void append_value(std::string& out, const LinearForms& forms, ValueId value) {
  const Function& function = forms.function();
  const LinearForm& form = forms.form(value);
  std::string line = "      " + function.value_name(value);
  line.resize(std::max<size_t>(line.size() + 1, 18), ' ');
  line += spelling(form.kind);
  if (form.varies) line += " (by trip)";
  if (form.kind != ValueClass::any && forms.print(form) != "-") line += "  " + forms.print(form);
  if (auto list = forms.obligations(value); !list.empty()) line += "  needs " + obligation_list(list);
  out += line + "\n";
}

} // namespace

std::string analyze_report(const Function& function) {
  std::string name(function.module().text(function.name));
  if (!function.is_ssa || function.layout.empty()) return name + ": not in SSA form, not analysed\n";
  LinearForms forms(function);
  std::string out = (function.is_entry ? "kernel " : "function ") + name + "\n";
  for (BlockId block : function.layout) {
    out += "  " + function.block_name(block) + ":";
    if (LoopId loop = forms.loops().innermost(block); loop && forms.loops().loops()[loop].header == block)
      out += "  loop k" + std::to_string(loop.index()) + (forms.trip_bound(loop).known ? ", trips bounded" : "");
    if (function.successors(block).size() > 1)
      out += forms.branch_is_uniform(block) ? "  uniform branch" : "  divergent branch";
    out += '\n';
    for (ValueId parameter : function.parameters(block))
      append_value(out, forms, parameter);
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      out += "    " + print_instruction(function, id) + "\n";
      for (ValueId value : definitions_of(function, id))
        append_value(out, forms, value);
    }
  }
  if (!forms.all_obligations().empty()) out += "  obligations\n";
  for (ObligationId id : forms.all_obligations().ids()) {
    const RangeObligation& row = forms.obligation(id);
    out += "    o" + std::to_string(id.index()) + ": " + forms.statement(id) + "\n";
    out += "        raised by " + print_instruction(function, row.instruction);
    if (unsigned line = line_of(function, row.source)) out += " (line " + std::to_string(line) + ")";
    out += std::string(": ") + discharge_text(row);
    if (row.proved) out += ", " + std::string(row.reason);
    out += '\n';
    if (!row.proved)
      if (const std::string& predicate = forms.launch_predicate(id); !predicate.empty())
        out += "        when " + predicate + "\n";
  }
  return out;
}

std::string analyze_report_json(const Function& function) {
  using Json = nlohmann::ordered_json;
  Json root;
  root["function"] = std::string(function.module().text(function.name));
  root["entry"] = function.is_entry;
  if (!function.is_ssa || function.layout.empty()) {
    root["error"] = "not in SSA form, not analysed";
    return root.dump(2, ' ', false, Json::error_handler_t::replace);
  }
  LinearForms forms(function);
  auto describe = [&](ValueId value) {
    const LinearForm& form = forms.form(value);
    Json row;
    row["name"] = function.value_name(value);
    row["class"] = std::string(spelling(form.kind));
    row["width"] = form.width;
    if (form.varies) row["varies_by_trip"] = true;
    if (forms.print(form) != "-") {
      row["form"] = forms.print(form);
      row["exact"] = forms.print_exact(form);
    }
    Json needs = Json::array();
    for (ObligationId id : forms.obligations(value))
      needs.push_back(id.index());
    if (!needs.empty()) row["obligations"] = needs;
    return row;
  };
  Json blocks = Json::array();
  for (BlockId block : function.layout) {
    Json row;
    row["label"] = function.block_name(block);
    if (function.successors(block).size() > 1) row["uniform_branch"] = forms.branch_is_uniform(block);
    for (ValueId parameter : function.parameters(block))
      row["parameters"].push_back(describe(parameter));
    row["instructions"] = Json::array();
    for (InstructionId id : function.instructions_in(block)) {
      if (function.instructions[id].kind != InstructionKind::real) continue;
      Json instruction;
      instruction["text"] = print_instruction(function, id);
      if (unsigned line = line_of(function, function.instructions[id].range)) instruction["line"] = line;
      for (ValueId value : definitions_of(function, id))
        instruction["definitions"].push_back(describe(value));
      row["instructions"].push_back(instruction);
    }
    blocks.push_back(row);
  }
  root["blocks"] = blocks;
  root["obligations"] = Json::array();
  for (ObligationId id : forms.all_obligations().ids()) {
    const RangeObligation& obligation = forms.obligation(id);
    Json row;
    row["id"] = id.index();
    row["statement"] = forms.statement(id);
    row["raised_by"] = print_instruction(function, obligation.instruction);
    if (unsigned line = line_of(function, obligation.source)) row["line"] = line;
    row["discharge"] = discharge_text(obligation);
    if (obligation.proved) row["reason"] = std::string(obligation.reason);
    if (const std::string& predicate = forms.launch_predicate(id); !predicate.empty()) row["when"] = predicate;
    root["obligations"].push_back(row);
  }
  return root.dump(2, ' ', false, Json::error_handler_t::replace);
}

} // namespace ptxrewrite::ir
