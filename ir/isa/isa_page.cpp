// The reference page of `ptxrewrite isa NAME`: an entry of the table as text for people.
#include "ir/isa/isa_table.h"

namespace ptxrewrite::ir {

namespace {

void add_line(std::string& page, std::string_view label, std::string_view text) {
  if (text.empty()) return;
  page.append("  ").append(label);
  if (label.size() < 11) page.append(11 - label.size(), ' ');
  page.append(" ").append(text).append("\n");
}

std::string opcode_page(Opcode opcode) {
  std::string page;
  for (const auto& row : table::row_texts()) {
    if (row.opcode != opcode) continue;
    if (page.empty()) {
      page.append(row.mnemonic).append(row.extension ? "  (extension of a hardware form)\n" : "\n");
    }
    page.append("\n  ").append(row.mnemonic);
    if (!row.modifiers.empty()) page.append("  ").append(row.modifiers);
    page.append("\n");
    add_line(page, "  operands", row.operands);
    std::string since;
    if (!row.version.empty()) since.append("PTX ").append(row.version).append(", ").append(row.targets);
    add_line(page, "  since", since);
    add_line(page, "  class", spelling(row.kind));
    add_line(page, "  effects", row.effects.empty() ? std::string_view("none") : row.effects);
  }
  return page;
}

std::string_view uniformity_text(Uniformity uniformity) {
  switch (uniformity) {
  case Uniformity::launch:
    return "one value per launch";
  case Uniformity::cluster:
    return "one value per cluster";
  case Uniformity::block:
    return "one value per block";
  case Uniformity::warp:
    return "one value per warp";
  case Uniformity::thread:
    return "one value per thread";
  }
  return "";
}

std::string register_page(const SpecialRegisterInfo& special) {
  std::string page(special.name);
  page.append("\n");
  std::string type = special.vector_width > 1 ? ".v" + std::to_string(special.vector_width) + " ." : ".";
  add_line(page, "type", type.append(spelling(special.type)));
  add_line(page, "meaning", special.meaning);
  add_line(page, "varies", uniformity_text(special.uniformity));
  if (special.is_volatile) add_line(page, "volatile", "two reads may differ");
  add_line(page, "read by", special.readers);
  add_line(page, "since", std::string("PTX ").append(special.version).append(", ").append(special.targets));
  return page;
}

std::string directive_page(const DirectiveInfo& directive) {
  std::string page(directive.name);
  page.append("\n");
  add_line(page, "group", directive.group);
  add_line(page, "syntax", directive.syntax);
  add_line(page, "allowed", directive.allowed_at);
  add_line(page, "since", std::string("PTX ").append(directive.version));
  add_line(page, "notes", directive.notes);
  return page;
}

} // namespace

std::string isa_page(std::string_view name) {
  if (auto opcode = table::find_opcode(name)) return opcode_page(*opcode);
  if (auto special = parse_special_register(name)) return register_page(info(*special));
  if (const DirectiveInfo* directive = find_directive(name)) return directive_page(*directive);
  return {};
}

} // namespace ptxrewrite::ir
