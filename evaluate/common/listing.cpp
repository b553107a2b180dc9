#include "evaluate/common/listing.h"

#include "ir/core/print.h"
#include "transforms/manager/pipeline.h"

#include <algorithm>

namespace ptxrewrite::evaluate {

namespace {

// Lists the printed text before the body, line by line.
void list_header(const ir::Function& function, std::vector<ListingLine>& lines) {
  std::string text;
  ir::print(function, text);
  size_t begin = 0;
  uint32_t source_line = function.module().source.locate(function.range.begin).line;
  while (begin < text.size()) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = normalise_blanks(std::string_view(text).substr(begin, end - begin));
    begin = end + 1;
    if (line == "{") return;
    bool opens_body = line.size() > 1 && line.back() == '{';
    if (opens_body) line = normalise_blanks(std::string_view(line).substr(0, line.size() - 1));
    if (!line.empty()) lines.push_back({std::move(line), {}, source_line, false, false});
    if (opens_body) return;
  }
}

// `in_section` tells whether the block begins inside a section of a hardware form, and is updated for its end.
void list_block(const ir::Function& function, ir::BlockId block, bool& in_section, std::vector<ListingLine>& lines) {
  const SourceFile& source = function.module().source;
  if (function.blocks[block].label) lines.push_back({function.block_name(block) + ":", {}, 0, false, false});
  // The order of register declarations has no meaning and is lost in SSA form: runs of them are sorted.
  size_t run_begin = lines.size();
  auto by_text = [](const ListingLine& a, const ListingLine& b) { return a.text < b.text; };
  for (ir::InstructionId id : function.instructions_in(block)) {
    const ir::Instruction& instruction = function.instructions[id];
    if (instruction.kind != ir::InstructionKind::declare_values) {
      std::sort(lines.begin() + static_cast<ptrdiff_t>(run_begin), lines.end(), by_text);
      run_begin = lines.size() + 1;
    }
    ListingLine line{ir::print_instruction(function, id)};
    line.is_instruction =
        instruction.kind == ir::InstructionKind::real || instruction.kind == ir::InstructionKind::linear_row;
    line.indented = true;
    if (instruction.kind == ir::InstructionKind::section_begin) in_section = true;
    line.in_section = in_section;
    if (instruction.kind == ir::InstructionKind::section_end) in_section = false;
    line.provenance = instruction.provenance;
    if (!instruction.range.empty()) line.source_line = source.locate(instruction.range.begin).line;
    lines.push_back(std::move(line));
    if (instruction.kind != ir::InstructionKind::section_begin || !function.affine_stream) continue;
    for (ir::BlockId inner : function.affine_stream->layout)
      list_block(*function.affine_stream, inner, in_section, lines);
    run_begin = lines.size();
  }
  if (run_begin < lines.size()) std::sort(lines.begin() + static_cast<ptrdiff_t>(run_begin), lines.end(), by_text);
}

// The word after ` original ` in an annotation of the entry block, by which passes name the original of a rewritten
// kernel.
std::string original_name(const ir::Function& function) {
  constexpr std::string_view marker = " original ";
  for (ir::InstructionId id : function.instructions_in(function.entry())) {
    if (function.instructions[id].kind != ir::InstructionKind::annotation) continue;
    std::string_view text = function.module().text(Symbol(function.operands_of(id)[0].id));
    size_t place = text.find(marker);
    if (place != std::string_view::npos && text.find(' ', 2) == place)
      return std::string(text.substr(place + marker.size()));
  }
  return {};
}

} // namespace

std::string normalise_blanks(std::string_view text) {
  std::string out;
  bool pending = false, quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '"' || quoted) {
      if (pending && !out.empty()) out += ' ';
      pending = false;
      if (c == '"') quoted = !quoted;
      out += c;
    } else if (c == '/' && i + 1 < text.size() && (text[i + 1] == '/' || text[i + 1] == '*')) {
      bool line_comment = text[i + 1] == '/';
      size_t end = line_comment ? text.find('\n', i) : text.find("*/", i + 2);
      if (end == std::string_view::npos) break;
      i = line_comment ? end : end + 1;
      pending = true;
    } else if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      pending = true;
    } else {
      if (pending && !out.empty()) out += ' ';
      pending = false;
      out += c;
    }
  }
  return out;
}

ModuleListing list_module(const ir::Module& module, const std::string& glob) {
  ModuleListing listing;
  if (module.hardware_form) listing.items.push_back({"//@ ptxrewrite hardware 1"});
  std::string header = ".version " + std::to_string(module.version_major) + "." + std::to_string(module.version_minor);
  listing.items.push_back({std::move(header)});
  std::string targets = ".target ";
  for (size_t i = 0; i < module.targets.size(); ++i) {
    if (i) targets += ", ";
    targets += module.text(module.targets[i]);
  }
  listing.items.push_back({std::move(targets)});
  if (module.address_size) listing.items.push_back({".address_size " + std::to_string(module.address_size)});

  for (const ir::Item& item : module.items) {
    if (item.kind == ir::ItemKind::function && module.functions[item.id]->has_body) {
      const ir::Function& function = *module.functions[item.id];
      std::string name(module.text(function.name));
      std::string original = original_name(function);
      bool selected =
          transforms::matches_glob(glob, name) || (!original.empty() && transforms::matches_glob(glob, original));
      if (!selected) continue;
      FunctionListing& functions = listing.functions.emplace_back(
          FunctionListing{std::move(name), ir::FunctionId(item.id), std::move(original), {}});
      list_header(function, functions.lines);
      bool in_section = false;
      for (ir::BlockId block : function.layout)
        list_block(function, block, in_section, functions.lines);
      continue;
    }
    std::string_view text = item.text.empty() ? module.source.text(item.range) : item.text;
    uint32_t line = item.range.empty() ? 0 : module.source.locate(item.range.begin).line;
    listing.items.push_back({normalise_blanks(text), {}, line, false, false});
  }
  return listing;
}

} // namespace ptxrewrite::evaluate
