#include "evaluate/reduce/reduce_edits.h"

#include "ir/isa/isa.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace ptxrewrite::evaluate {

namespace {

using ir::InstructionId;
using ir::InstructionKind;
using ir::OperandKind;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%' || c == '.';
}

std::string_view source_text(const ir::Module& module, SourceRange range) {
  return module.source.text().substr(range.begin, range.end - range.begin);
}

// Extends the range from the first byte of its line to the end of its last line, including the newline.
TextEdit whole_lines(const ir::Module& module, SourceRange range) {
  const std::string_view text = module.source.text();
  const size_t begin = text.rfind('\n', range.begin) + 1; // npos + 1 = 0
  const size_t end = text.find('\n', range.end);
  return {
      static_cast<uint32_t>(begin), static_cast<uint32_t>(end == std::string_view::npos ? text.size() : end + 1), {}};
}

template <class Visit> void for_each_instruction(const ir::Module& module, Visit&& visit) {
  for (const auto& pointer : module.functions) {
    const ir::Function& function = *pointer;
    if (!function.has_body) continue;
    for (ir::BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        visit(function, id);
  }
}

// --- source ranges of the parts of an instruction ---

struct InstructionText {
  SourceRange guard; // including the following blank; empty if there is no guard
  SourceRange mnemonic;
  std::vector<SourceRange> operands; // the outermost ones
};

void skip_blanks(std::string_view text, size_t& at) {
  while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at])) != 0)
    ++at;
}
void skip_word(std::string_view text, size_t& at) {
  while (at < text.size() && is_word(text[at]))
    ++at;
}

SourceRange trimmed(std::string_view text, size_t begin, size_t end, uint32_t offset) {
  skip_blanks(text, begin);
  while (end > begin && std::isspace(static_cast<unsigned char>(text[end - 1])) != 0)
    --end;
  return {offset + static_cast<uint32_t>(begin), offset + static_cast<uint32_t>(end)};
}

// Splits `@%p1 add.s32 %r1, %r2, 4;`. Labels before the instruction (T: .branchtargets) do not occur with real
// instructions.
InstructionText split(const ir::Module& module, SourceRange range) {
  const std::string_view text = source_text(module, range);
  InstructionText result;
  size_t at = 0;
  if (text.starts_with('@')) {
    at = 1 + (text.size() > 1 && text[1] == '!' ? 1 : 0);
    skip_blanks(text, at);
    skip_word(text, at);
    skip_blanks(text, at);
    result.guard = {range.begin, range.begin + static_cast<uint32_t>(at)};
  }
  const size_t start = at;
  while (at < text.size() && (is_word(text[at]) || text[at] == ':'))
    ++at;
  result.mnemonic = {range.begin + static_cast<uint32_t>(start), range.begin + static_cast<uint32_t>(at)};
  int depth = 0;
  size_t begin = at;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if ((c == ',' && depth == 0) || c == ';') {
      const SourceRange operand = trimmed(text, begin, at, range.begin);
      if (operand.end > operand.begin) result.operands.push_back(operand);
      begin = at + 1;
    }
  }
  return result;
}

// Returns the index in the operand list of each outermost operand; empty if text and IR differ in their number.
std::vector<size_t> outermost(const ir::Function& function, InstructionId id, const InstructionText& text) {
  const auto operands = function.operands_of(id);
  std::vector<size_t> indices;
  for (size_t i = 0; i < operands.size(); i = ir::next_sibling(operands, i))
    indices.push_back(i);
  return indices.size() == text.operands.size() ? indices : std::vector<size_t>();
}

// --- constants ---

const char* zero_of(ir::ScalarType type) {
  if (type == ir::ScalarType::f32) return "0f00000000";
  if (type == ir::ScalarType::f64) return "0d0000000000000000";
  return "0";
}
const char* one_of(ir::ScalarType type) {
  if (type == ir::ScalarType::f32) return "0f3F800000";
  if (type == ir::ScalarType::f64) return "0d3FF0000000000000";
  return "1";
}

// Returns `mov.b32 name, 0;`; nothing for registers to which no constant can be moved.
std::optional<std::string> assignment_of_zero(std::string_view name, ir::ScalarType type) {
  const std::string target(name);
  if (type == ir::ScalarType::pred) return "setp.ne.s32 \t" + target + ", 0, 0;";
  if (type == ir::ScalarType::f32 || type == ir::ScalarType::f64)
    return (type == ir::ScalarType::f32 ? "mov.f32 \t" : "mov.f64 \t") + target + ", " + zero_of(type) + ";";
  const unsigned bits = ir::bit_width(type);
  if (bits != 16 && bits != 32 && bits != 64) return std::nullopt;
  return "mov.b" + std::to_string(bits) + " \t" + target + ", 0;";
}

// --- kinds of edits ---

std::vector<Opportunity> find_items(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const ir::Item& item : module.items)
    if (item.range.end > item.range.begin) result.push_back({whole_lines(module, item.range)});
  return result;
}

std::vector<Opportunity> find_bodies(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const auto& function : module.functions) {
    if (!function->has_body) continue;
    const std::string_view text = source_text(module, function->range);
    const size_t open = text.find('{', function->header_range.end - function->range.begin);
    const std::string_view empty = "{\n\tret;\n}";
    if (open == std::string_view::npos || text.substr(open) == empty) continue;
    const auto begin = static_cast<uint32_t>(function->range.begin + open);
    result.push_back({{begin, function->range.end, std::string(empty)}});
  }
  return result;
}

// Removes { ... } with its contents; registers that a call in it sets are set to zero.
std::vector<Opportunity> find_scopes(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const auto& pointer : module.functions) {
    const ir::Function& function = *pointer;
    if (!function.has_body) continue;
    struct Open {
      uint32_t begin;
      std::string assignments;
    };
    std::vector<Open> open;
    for (ir::BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block)) {
        const ir::Instruction& row = function.instructions[id];
        if (row.kind == InstructionKind::scope_begin) {
          open.push_back({whole_lines(module, row.range).begin, {}});
        } else if (row.kind == InstructionKind::scope_end && !open.empty()) {
          result.push_back({{open.back().begin, whole_lines(module, row.range).end, open.back().assignments}});
          open.pop_back();
        } else if (row.kind == InstructionKind::real && !open.empty() && function.is_opcode(id, ir::Opcode::ld) &&
                   ir::is_param(function.form_of(id).space)) {
          ir::for_each_definition(function, id, [&](ir::ValueId value) {
            if (auto zero = assignment_of_zero(function.value_name(value), function.values[value].type))
              open.back().assignments += "\t" + *zero + "\n";
          });
        }
      }
  }
  return result;
}

// Removes only the braces.
std::vector<Opportunity> find_braces(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const auto& pointer : module.functions) {
    if (!pointer->has_body) continue;
    std::vector<TextEdit> open;
    for (ir::BlockId block : pointer->layout)
      for (InstructionId id : pointer->instructions_in(block)) {
        const ir::Instruction& row = pointer->instructions[id];
        if (row.kind == InstructionKind::scope_begin) open.push_back(whole_lines(module, row.range));
        if (row.kind == InstructionKind::scope_end && !open.empty()) {
          result.push_back({open.back(), whole_lines(module, row.range)});
          open.pop_back();
        }
      }
  }
  return result;
}

std::vector<Opportunity> find_instructions(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    switch (row.kind) {
    case InstructionKind::real:
    case InstructionKind::location:
    case InstructionKind::pragma:
    case InstructionKind::annotation:
    case InstructionKind::prototype:
    case InstructionKind::label_table:
    case InstructionKind::linear_row:
      if (row.range.end > row.range.begin) result.push_back({whole_lines(module, row.range)});
      break;
    default:
      break;
    }
  });
  return result;
}

// Replaces a result by a constant, so that its computation can be removed.
std::vector<Opportunity> find_results(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real) return;
    Opportunity opportunity;
    std::string assignments;
    bool possible = true;
    ir::for_each_definition(function, id, [&](ir::ValueId value) {
      const auto zero = assignment_of_zero(function.value_name(value), function.values[value].type);
      possible = possible && zero.has_value();
      if (zero) assignments += (assignments.empty() ? "" : "\n\t") + *zero;
    });
    if (!possible || assignments.empty() || assignments == source_text(module, row.range)) return;
    result.push_back({{row.range.begin, row.range.end, std::move(assignments)}});
  });
  return result;
}

// Replaces occurrences of a word outside `except`.
void replace_word(const ir::Module& module, SourceRange within, SourceRange except, std::string_view word,
                  const std::string& replacement, Opportunity& opportunity) {
  const std::string_view text = module.source.text();
  for (size_t at = text.find(word, within.begin); at < within.end; at = text.find(word, at + 1)) {
    const bool starts = at == 0 || !is_word(text[at - 1]);
    const bool ends = at + word.size() >= text.size() || !is_word(text[at + word.size()]);
    if (!starts || !ends || (at >= except.begin && at < except.end)) continue;
    opportunity.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(at + word.size()), replacement});
  }
}

// Removes an instruction and replaces its result everywhere by one of its sources.
std::vector<Opportunity> find_forwarding(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real) return;
    std::vector<ir::ValueId> written;
    ir::for_each_definition(function, id, [&](ir::ValueId value) { written.push_back(value); });
    if (written.size() != 1) return;
    ir::for_each_use(function, id, [&](ir::ValueId source) {
      if (source == written[0] || function.values[source].type != function.values[written[0]].type) return;
      Opportunity opportunity = {whole_lines(module, row.range)};
      replace_word(module, function.range, row.range, function.value_name(written[0]), function.value_name(source),
                   opportunity);
      result.push_back(std::move(opportunity));
    });
  });
  return result;
}

std::vector<Opportunity> find_guards(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real || !row.guard) return;
    const InstructionText text = split(module, row.range);
    if (text.guard.end > text.guard.begin) result.push_back({{text.guard.begin, text.guard.end, {}}});
  });
  return result;
}

// Replaces a branch through a table by a branch to its first target.
std::vector<Opportunity> find_table_branches(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real || !function.is_opcode(id, ir::Opcode::brx)) return;
    for (ir::EdgeId edge : function.successors(row.block))
      result.push_back(
          {{row.range.begin, row.range.end, "bra \t" + function.block_name(function.edges[edge].to) + ";"}});
  });
  return result;
}

// Removes the text after an unguarded branch or return, up to the next label that is used.
std::vector<Opportunity> find_unreachable(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const auto& pointer : module.functions) {
    const ir::Function& function = *pointer;
    if (!function.has_body) continue;
    std::vector<bool> reached(function.blocks.size());
    std::vector<ir::BlockId> work = {function.entry()};
    reached[function.entry().index()] = true;
    while (!work.empty()) {
      const ir::BlockId block = work.back();
      work.pop_back();
      for (ir::EdgeId edge : function.successors(block)) {
        const ir::BlockId to = function.edges[edge].to;
        if (reached[to.index()]) continue;
        reached[to.index()] = true;
        work.push_back(to);
      }
    }
    Opportunity all;
    for (ir::BlockId block : function.layout)
      for (InstructionId id : function.instructions_in(block))
        if (!reached[block.index()] && function.instructions[id].kind == InstructionKind::real)
          all.push_back(whole_lines(module, function.instructions[id].range));
    if (!all.empty()) result.push_back(std::move(all));
  }
  return result;
}

std::vector<Opportunity> find_operands(const ir::Module& module, bool as_one) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real) return;
    const InstructionText text = split(module, row.range);
    const std::vector<size_t> indices = outermost(function, id, text);
    const auto operands = function.operands_of(id);
    for (size_t i = 0; i < indices.size(); ++i) {
      const ir::Operand& operand = operands[indices[i]];
      if (operand.is_definition()) continue;
      std::string constant;
      if (operand.is(OperandKind::value)) {
        const ir::ScalarType type = function.values[operand.as_value()].type;
        constant = as_one ? one_of(type) : zero_of(type);
      } else if (operand.is(OperandKind::special_register) ||
                 (operand.is(OperandKind::integer) && operand.immediate != 0 && operand.immediate != 1)) {
        constant = as_one ? "1" : "0";
      } else {
        continue;
      }
      result.push_back({{text.operands[i].begin, text.operands[i].end, std::move(constant)}});
    }
  });
  return result;
}
std::vector<Opportunity> find_operands_for_zero(const ir::Module& module) {
  return find_operands(module, false);
}
std::vector<Opportunity> find_operands_for_one(const ir::Module& module) {
  return find_operands(module, true);
}

// Replaces [x+16] by [x].
std::vector<Opportunity> find_offsets(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    if (row.kind != InstructionKind::real) return;
    const InstructionText text = split(module, row.range);
    for (const SourceRange& operand : text.operands) {
      const std::string_view spelled = source_text(module, operand);
      const size_t plus = spelled.find('+');
      if (!spelled.starts_with('[') || plus == std::string_view::npos || !spelled.ends_with(']')) continue;
      result.push_back({{operand.begin + static_cast<uint32_t>(plus), operand.end - 1, {}}});
    }
  });
  return result;
}

// Removes registers, memory variables of bodies, and labels, which each have a line in the printed form.
std::vector<Opportunity> find_declarations(const ir::Module& module) {
  std::vector<Opportunity> result;
  for_each_instruction(module, [&](const ir::Function& function, InstructionId id) {
    const ir::Instruction& row = function.instructions[id];
    const bool declares = row.kind == InstructionKind::declare_values || row.kind == InstructionKind::declare_variable;
    if (declares && row.range.end > row.range.begin) result.push_back({whole_lines(module, row.range)});
  });
  return result;
}

std::vector<Opportunity> find_labels(const ir::Module& module) {
  std::vector<Opportunity> result;
  const std::string_view text = module.source.text();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    const bool is_label = line.size() > 1 && line.back() == ':' && std::all_of(line.begin(), line.end() - 1, is_word);
    const uint32_t past = static_cast<uint32_t>(std::min(end + 1, text.size()));
    if (is_label) result.push_back({{static_cast<uint32_t>(begin), past, {}}});
    begin = end + 1;
  }
  return result;
}

// Removes .maxntid and the like: the lines between a head and its body.
std::vector<Opportunity> find_directives(const ir::Module& module) {
  std::vector<Opportunity> result;
  for (const auto& function : module.functions) {
    const std::string_view text = source_text(module, function->range);
    const size_t open = text.find("\n{");
    for (size_t at = text.find("\n."); at < open && open != std::string_view::npos; at = text.find("\n.", at + 1)) {
      const size_t end = text.find('\n', at + 1);
      result.push_back({{static_cast<uint32_t>(function->range.begin + at + 1),
                         static_cast<uint32_t>(function->range.begin + end + 1),
                         {}}});
    }
  }
  return result;
}

// Removes one parameter of a function's head, with an adjacent comma.
std::vector<Opportunity> find_parameters(const ir::Module& module) {
  std::vector<Opportunity> result;
  const std::string_view text = module.source.text();
  for (const auto& function : module.functions) {
    const auto parameters = function->variable_lists.view(function->signature.parameters);
    for (size_t i = 0; i < parameters.size(); ++i) {
      const SourceRange name = function->variables[parameters[i]].range;
      if (name.end <= name.begin) continue;
      size_t begin = text.find_last_of(",(", name.begin);
      size_t end = text.find_first_of(",)", name.end);
      if (begin == std::string_view::npos || end == std::string_view::npos) continue;
      ++begin;
      if (text[end] == ',')
        ++end; // also removes the following comma
      else if (i != 0)
        --begin; // for the last one: the preceding comma
      result.push_back({{static_cast<uint32_t>(begin), static_cast<uint32_t>(end), {}}});
    }
  }
  return result;
}

std::vector<Opportunity> find_initialisers(const ir::Module& module) {
  std::vector<Opportunity> result;
  const std::string_view text = module.source.text();
  for (const ir::Item& item : module.items) {
    if (item.kind != ir::ItemKind::variable) continue;
    const std::string_view spelled = text.substr(item.range.begin, item.range.end - item.range.begin);
    const size_t equals = spelled.find(" =");
    if (equals == std::string_view::npos || !spelled.ends_with(';')) continue;
    result.push_back({{static_cast<uint32_t>(item.range.begin + equals), item.range.end - 1, {}}});
  }
  return result;
}

constexpr ReductionKind kinds[] = {{"functions and variables", find_items},
                                   {"bodies", find_bodies},
                                   {"scopes", find_scopes},
                                   {"instructions", find_instructions},
                                   {"table branches", find_table_branches},
                                   {"unreachable code", find_unreachable},
                                   {"results", find_results},
                                   {"forwarding", find_forwarding},
                                   {"guards", find_guards},
                                   {"operands", find_operands_for_zero},
                                   {"operands", find_operands_for_one},
                                   {"offsets", find_offsets},
                                   {"instructions", find_instructions},
                                   {"braces", find_braces},
                                   {"labels", find_labels},
                                   {"declarations", find_declarations},
                                   {"initialisers", find_initialisers},
                                   {"directives", find_directives},
                                   {"parameters", find_parameters}};

} // namespace

std::span<const ReductionKind> reduction_kinds() {
  return kinds;
}

std::string apply_edits(std::string_view text, std::span<const Opportunity> opportunities) {
  std::vector<TextEdit> edits;
  for (const Opportunity& opportunity : opportunities)
    edits.insert(edits.end(), opportunity.begin(), opportunity.end());
  std::stable_sort(edits.begin(), edits.end(), [](const TextEdit& a, const TextEdit& b) { return a.begin < b.begin; });
  std::string result;
  size_t at = 0;
  for (const TextEdit& edit : edits) {
    if (edit.begin < at) continue;
    result += text.substr(at, edit.begin - at);
    result += edit.replacement;
    at = edit.end;
  }
  result += text.substr(at);
  return result;
}

} // namespace ptxrewrite::evaluate
