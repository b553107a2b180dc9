#include "ir/core/print.h"

#include "ir/core/print_operand.h"

namespace ptxrewrite::ir {

namespace {

struct AnnotationPlace {
  std::string_view word;
  bool behind; // the annotation follows its instruction on the same line
};
constexpr AnnotationPlace annotation_places[] = {
#define ANNOTATION(word, behind) {word, behind},
#include "ir/core/annotations.def"
#undef ANNOTATION
};

bool is_written_behind(std::string_view word) {
  for (const AnnotationPlace& place : annotation_places)
    if (place.word == word) return place.behind;
  return false;
}

std::string_view linkage_word(Linkage linkage) {
  switch (linkage) {
  case Linkage::none:
    return "";
  case Linkage::external:
    return ".extern ";
  case Linkage::visible:
    return ".visible ";
  case Linkage::weak:
    return ".weak ";
  case Linkage::common:
    return ".common ";
  }
  return "";
}

std::string_view section_word(SectionKind kind) {
  switch (kind) {
  case SectionKind::r2d2_coefficient:
    return ".r2d2.coefficient";
  case SectionKind::r2d2_thread:
    return ".r2d2.thread";
  case SectionKind::r2d2_block:
    return ".r2d2.block";
  case SectionKind::dac_affine:
    return ".dac.affine";
  }
  return "";
}

// `.global .align 4 .b8 name[3]`, without initialiser and semicolon. `function` owns the variable; null: the module.
void print_declaration(std::string& out, const Module& module, const Function* function, const Variable& variable) {
  auto space = variable.space == StateSpace::none ? std::string_view() : spelling(variable.space);
  std::string_view attributes = module.text(variable.attributes);
  bool pointer = attributes.starts_with(".ptr");
  if (!space.empty()) (out += '.') += space;
  if (variable.bank != 0) {
    out += '[';
    append_number(out, variable.bank);
    out += ']';
  }
  if (!attributes.empty() && !pointer) (out += ' ') += attributes;
  if (variable.alignment != 0) {
    out += " .align ";
    append_number(out, variable.alignment);
  }
  if (variable.vector_width > 1) {
    out += " .v";
    append_number(out, variable.vector_width);
  }
  (out += " .") += spelling(variable.type);
  if (pointer) (out += ' ') += attributes;
  (out += ' ') += module.text(variable.name);
  for (uint64_t count :
       function ? function->dimensions.view(variable.dimensions) : module.dimensions.view(variable.dimensions)) {
    out += '[';
    if (count != 0) append_number(out, count);
    out += ']';
  }
}

// `function` owns the variable; null: the module does.
void print_initialiser(std::string& out, const Module& module, const Function* function,
                       std::span<const Operand> initialiser) {
  if (initialiser.empty()) return;
  out += " = ";
  OperandPrinter printer(out, module, function);
  bool property_list = initialiser[0].is(OperandKind::pair) && initialiser[1].is(OperandKind::text);
  if (property_list) out += "{ ";
  printer.print_list(initialiser, 0, initialiser.size(), ", ");
  if (property_list) out += " }";
}

class FunctionPrinter {
public:
  FunctionPrinter(std::string& out, const Function& function, const PrintOptions& options, bool numbered)
      : out_(out), function_(function), module_(function.module()), options_(options), numbered_(numbered),
        operands_(out, module_, &function, numbered) {}

  void print() {
    print_header();
    if (!function_.has_body) {
      out_ += ";\n";
      return;
    }
    out_ += "{\n";
    print_blocks();
    out_ += "}\n";
  }

  void print_blocks() {
    for (BlockId block : function_.layout)
      print_block(block);
  }

  void print_statement(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    switch (instruction.kind) {
    case InstructionKind::real:
      print_real(id, instruction);
      break;
    case InstructionKind::location:
      print_location(id);
      break;
    case InstructionKind::pragma:
      print_pragma(id);
      break;
    case InstructionKind::annotation:
      (out_ += "//") += text_operand(id);
      break;
    case InstructionKind::scope_begin:
      out_ += '{';
      break;
    case InstructionKind::scope_end:
    case InstructionKind::section_end:
      out_ += '}';
      break;
    case InstructionKind::declare_values:
      (out_ += text_operand(id)) += ';';
      break;
    case InstructionKind::declare_variable:
      print_local_variable(id);
      break;
    case InstructionKind::label_table:
      print_label_table(id);
      break;
    case InstructionKind::prototype:
      print_prototype(id);
      break;
    case InstructionKind::section_begin:
      out_ += section_word(static_cast<SectionKind>(function_.operands_of(id)[0].immediate));
      out_ += " {";
      break;
    case InstructionKind::linear_row:
      print_linear_row(id);
      break;
    }
  }

private:
  void print_header() {
    out_ += linkage_word(function_.linkage);
    out_ += function_.is_entry ? ".entry " : ".func ";
    if (function_.attributes) (out_ += module_.text(function_.attributes)) += ' ';
    if (function_.signature.has_result_list) {
      print_parameters(function_.signature.results);
      out_ += ' ';
    }
    out_ += module_.text(function_.name);
    if (function_.signature.has_parameter_list) print_parameters(function_.signature.parameters);
    out_ += '\n';
    for (const FunctionDirective& directive : function_.directives)
      print_directive(directive);
  }

  void print_directive(const FunctionDirective& directive) {
    std::string_view name = module_.text(directive.name);
    out_ += name;
    for (uint8_t i = 0; i < directive.count; ++i) {
      out_ += i == 0 ? " " : ", ";
      append_number(out_, directive.numbers[i]);
    }
    if (directive.text) ((out_ += " \"") += module_.text(directive.text)) += '"';
    out_ += name == ".pragma" ? ";\n" : "\n";
  }

  void print_parameters(PoolSpan list) {
    bool several = list.count > 1;
    out_ += '(';
    bool first = true;
    for (VariableId id : function_.variable_lists.view(list)) {
      if (!first) out_ += ',';
      if (several) out_ += "\n\t";
      first = false;
      print_declaration(out_, module_, &function_, function_.variables[id]);
    }
    out_ += several ? "\n)" : ")";
  }

  void print_block(BlockId id) {
    const Block& block = function_.blocks[id];
    if (function_.is_ssa) {
      append_block(out_, function_, id);
      print_block_parameters(id);
      out_ += ":\n";
    } else if (block.label) {
      (out_ += module_.text(block.label)) += ":\n";
    }
    for (InstructionId instruction : function_.instructions_in(id)) {
      if (!options_.provenance && stands_behind(instruction))
        out_.back() = ' ';
      else if (function_.instructions[instruction].kind != InstructionKind::annotation)
        out_ += '\t';
      print_statement(instruction);
      if (options_.provenance && function_.instructions[instruction].provenance) {
        out_ += "\t// #";
        append_number(out_, function_.instructions[instruction].provenance.index());
      }
      out_ += '\n';
      print_affine_stream(instruction);
    }
    if (function_.is_ssa) print_edges(id);
  }

  // The first word after `@`; "" if there is none.
  std::string_view annotation_word(InstructionId id) const {
    for (const Operand& operand : function_.operands_of(id)) {
      if (!operand.is(OperandKind::text)) continue;
      std::string_view text = module_.text(Symbol(operand.id));
      text.remove_prefix(std::min(text.find_first_not_of("@ \t"), text.size()));
      return text.substr(0, text.find_first_of(" \t\r\n"));
    }
    return {};
  }

  // True if an annotation is printed on its instruction's line: as in the source, or as annotations.def says if new.
  bool stands_behind(InstructionId id) const {
    const Instruction& annotation = function_.instructions[id];
    if (annotation.kind != InstructionKind::annotation || !annotation.previous) return false;
    const Instruction& before = function_.instructions[annotation.previous];
    if (before.kind != InstructionKind::real) return false;
    if (annotation.range.empty()) return is_written_behind(annotation_word(id));
    if (before.range.empty() || before.range.end > annotation.range.begin) return false;
    const std::string_view between =
        module_.source.text().substr(before.range.end, annotation.range.begin - before.range.end);
    return between.find('\n') == between.npos;
  }

  void print_block_parameters(BlockId id) {
    auto parameters = function_.parameters(id);
    if (parameters.empty()) return;
    out_ += '(';
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (i != 0) out_ += ", ";
      append_value(out_, function_, parameters[i], numbered_);
      (out_ += ':') += spelling(function_.values[parameters[i]].type);
    }
    out_ += ')';
  }

  void print_edges(BlockId id) {
    for (EdgeId edge : function_.successors(id)) {
      out_ += "\t// -> ";
      append_block(out_, function_, function_.edges[edge].to);
      auto arguments = function_.arguments(edge);
      for (size_t i = 0; i < arguments.size(); ++i) {
        out_ += i == 0 ? "(" : ", ";
        append_value(out_, function_, arguments[i], numbered_);
      }
      out_ += arguments.empty() ? "\n" : ")\n";
    }
  }

  void print_real(InstructionId id, const Instruction& instruction) {
    if (instruction.guard) {
      out_ += instruction.guard_negated ? "@!" : "@";
      append_value(out_, function_, instruction.guard, numbered_);
      out_ += ' ';
    }
    out_ += form(instruction.form).mnemonic;
    auto operands = function_.operands_of(id);
    bool first = true;
    for (size_t index = 0; index < operands.size();) {
      if (operands[index].has(OperandFlag::old_value)) {
        // Printed in SSA form only: the register has this value where the guard is false.
        if (function_.is_ssa) {
          out_ += " /* else ";
          operands_.print(operands, index);
          out_ += " */";
        }
        index = next_sibling(operands, index);
        continue;
      }
      out_ += first ? " \t" : ", ";
      first = false;
      index = operands_.print(operands, index);
    }
    out_ += ';';
  }

  // The affine stream is printed between the two markers of its position.
  void print_affine_stream(InstructionId id) {
    const Instruction& instruction = function_.instructions[id];
    if (instruction.kind != InstructionKind::section_begin || !function_.affine_stream) return;
    if (static_cast<SectionKind>(function_.operands_of(id)[0].immediate) != SectionKind::dac_affine) return;
    FunctionPrinter(out_, *function_.affine_stream, options_, function_.affine_stream->is_ssa).print_blocks();
  }

  void print_location(InstructionId id) {
    // file line column [, function_name label+offset, inlined_at file line column]
    auto operands = function_.operands_of(id);
    const bool named = !operands.empty() && operands[0].is(OperandKind::text);
    out_ += named ? function_.module().text(Symbol(operands[0].id)) : std::string_view(".loc");
    for (size_t i = named ? 1 : 0; i < operands.size(); ++i) {
      if (operands[i].is(OperandKind::text)) {
        out_ += ", function_name ";
        operands_.print(operands, i);
        out_ += ", inlined_at";
      } else {
        out_ += ' ';
        operands_.print(operands, i);
      }
    }
  }

  void print_pragma(InstructionId id) {
    out_ += ".pragma ";
    bool first = true;
    for (const Operand& operand : function_.operands_of(id)) {
      if (!first) out_ += ", ";
      first = false;
      ((out_ += '"') += module_.text(Symbol(operand.id))) += '"';
    }
    out_ += ';';
  }

  void print_local_variable(InstructionId id) {
    const Variable& variable = function_.variables[function_.operands_of(id)[0].as_symbol().variable()];
    print_declaration(out_, module_, &function_, variable);
    print_initialiser(out_, module_, &function_, function_.initialisers.view(variable.initialiser));
    out_ += ';';
  }

  void print_label_table(InstructionId id) {
    const LabelTable& table = function_.label_tables[LabelTableId(function_.operands_of(id)[0].id)];
    (out_ += module_.text(table.label)) += table.is_call_targets ? ": .calltargets " : ": .branchtargets ";
    auto operands = function_.operands.view(table.operands);
    operands_.print_list(operands, 0, operands.size(), ", ");
    out_ += ';';
  }

  void print_prototype(InstructionId id) {
    const Prototype& prototype = function_.prototypes[PrototypeId(function_.operands_of(id)[0].id)];
    (out_ += module_.text(prototype.label)) += ": .callprototype ";
    if (prototype.has_result_list) {
      print_parameters(prototype.results);
      out_ += ' ';
    }
    out_ += '_';
    if (prototype.has_parameter_list) {
      out_ += ' ';
      print_parameters(prototype.parameters);
    }
    if (prototype.trailing) (out_ += ' ') += module_.text(prototype.trailing);
    out_ += ';';
  }

  void print_linear_row(InstructionId id) {
    auto operands = function_.operands_of(id);
    out_ += ".r2d2.linear ";
    operands_.print(operands, 0);
    out_ += " = ";
    operands_.print(operands, 1);
    out_ += " + ";
    operands_.print(operands, 2);
    out_ += ';';
  }

  std::string_view text_operand(InstructionId id) const {
    return module_.text(Symbol(function_.operands_of(id)[0].id));
  }

  std::string& out_;
  const Function& function_;
  const Module& module_;
  const PrintOptions& options_;
  bool numbered_;
  OperandPrinter operands_;
};

void print_module_header(std::string& out, const Module& module) {
  if (module.hardware_form) out += "//@ ptxrewrite hardware 1\n";
  if (module.version_major == 0) return;
  out += ".version ";
  append_number(out, module.version_major);
  out += '.';
  append_number(out, module.version_minor);
  out += '\n';
  for (size_t i = 0; i < module.targets.size(); ++i)
    ((out += i == 0 ? ".target " : ", ") += module.text(module.targets[i]));
  if (!module.targets.empty()) out += '\n';
  if (module.address_size != 0) {
    out += ".address_size ";
    append_number(out, module.address_size);
    out += '\n';
  }
  out += '\n';
}

} // namespace

void print(const Module& module, std::string& out, const PrintOptions& options) {
  print_module_header(out, module);
  for (const Item& item : module.items) {
    switch (item.kind) {
    case ItemKind::verbatim:
      out += item.text;
      if (item.text.empty() || item.text.back() != '\n') out += '\n';
      break;
    case ItemKind::variable: {
      const Variable& variable = module.variables[VariableId(item.id)];
      out += linkage_word(variable.linkage);
      print_declaration(out, module, nullptr, variable);
      print_initialiser(out, module, nullptr, module.initialisers.view(variable.initialiser));
      out += ";\n";
      break;
    }
    case ItemKind::function:
      print(module.function(FunctionId(item.id)), out, options);
      out += '\n';
      break;
    }
  }
}

std::string print(const Module& module, const PrintOptions& options) {
  std::string out;
  out.reserve(module.source.text().size() + 256);
  print(module, out, options);
  return out;
}

void print(const Function& function, std::string& out, const PrintOptions& options) {
  FunctionPrinter(out, function, options, function.is_ssa).print();
}

std::string print_instruction(const Function& function, InstructionId instruction) {
  std::string out;
  FunctionPrinter(out, function, {}, false).print_statement(instruction);
  // Collapse to one line with single blanks, as listings show it.
  std::string line;
  for (char c : out)
    if (!((c == '\t' || c == ' ') && !line.empty() && line.back() == ' ')) line += c == '\t' ? ' ' : c;
  return line;
}

} // namespace ptxrewrite::ir
