#include "tests/fuzz/kernels/kernel_print.h"

#include "tests/fuzz/kernels/kernel_operations.h"

#include <cstdio>

namespace ptxrewrite::fuzz {

namespace {

constexpr const char* register_prefix[kind_count] = {"p", "h", "r", "rd", "e", "w", "f", "fd", "a", "sa"};
constexpr const char* register_type[kind_count] = {".pred", ".b16", ".b32", ".b64", ".b16",
                                                   ".b32",  ".f32", ".f64", ".b64", ".b32"};

std::string hexadecimal(const char* prefix, uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "%s%0*llX", prefix, digits, static_cast<unsigned long long>(value));
  return text;
}

// Integers are written signed or in hexadecimal, depending on their bits.
std::string immediate_text(Kind kind, uint64_t bits) {
  if (kind == Kind::f32) return hexadecimal("0f", bits, 8);
  if (kind == Kind::f64) return hexadecimal("0d", bits, 16);
  const unsigned width = width_of(kind);
  if (kind == Kind::predicate || width == 1) return bits != 0 ? "1" : "0";
  if ((bits & 4) != 0 && bits > 64) return hexadecimal("0x", bits, 1);
  return std::to_string(width == 64 ? static_cast<int64_t>(bits)
                                    : static_cast<int64_t>(bits << (64 - width)) >> (64 - width));
}

// Writes the body of one function.
class FunctionPrinter {
public:
  FunctionPrinter(const Kernel& kernel, uint32_t function, std::string& out)
      : kernel_(kernel), function_(function), out_(out) {
    numbers_.resize(kernel.variables.size());
    uint32_t next[kind_count] = {};
    for (size_t i = 0; i < kernel.variables.size(); ++i) {
      const Variable& variable = kernel.variables[i];
      if (variable.function != function) continue;
      numbers_[i] = variable.scoped ? static_cast<uint32_t>(i) : ++next[static_cast<size_t>(variable.kind)];
    }
    for (size_t i = 0; i < kind_count; ++i)
      counts_[i] = next[i];
  }

  void declare_registers() {
    for (size_t i = 0; i < kind_count; ++i)
      if (counts_[i] != 0)
        line(std::string(".reg ") + register_type[i] + " %" + register_prefix[i] + "<" +
             std::to_string(counts_[i] + 1) + ">;");
  }

  void declare_local_objects() {
    for (const MemoryObject& object : kernel_.objects) {
      const char* space = object.space == Space::local ? ".local" : object.space == Space::shared ? ".shared" : nullptr;
      if (space != nullptr)
        line(std::string(space) + " .align " + std::to_string(object.alignment) + " .b8 " + object.name + "[" +
             std::to_string(object.size) + "];");
    }
  }

  void print(const std::vector<Statement>& statements) {
    for (const Statement& statement : statements)
      print(statement);
  }

  void print_result() {
    const Function& function = kernel_.functions[function_ - 1];
    const std::string type = parameter_type(function.result);
    const std::string result = name(function.result);
    line(function.register_parameters ? "mov" + type + " returned, " + result + ";"
                                      : "st.param" + type + " [returned], " + result + ";");
  }

  std::string name(uint32_t variable) const {
    const Variable& row = kernel_.variables[variable];
    return std::string(row.scoped ? "%scoped_" : "%") + register_prefix[static_cast<size_t>(row.kind)] +
           std::to_string(numbers_[variable]);
  }
  void line(const std::string& text) { out_ += "\t" + text + "\n"; }

private:
  struct LoopLabels {
    std::string latch, end;
  };

  const LoopLabels& loop_of(const Statement& statement) const {
    return loops_[loops_.size() - 1 - statement.outer_loops];
  }
  void label(const std::string& text) { out_ += text + ":\n"; }
  std::string fresh_label() { return "$L" + std::to_string(function_) + "_" + std::to_string(next_label_++); }

  std::string operand_text(const Operand& operand) const {
    if (operand.is_variable) return (operand.negated ? "!" : "") + name(operand.variable);
    return immediate_text(operand.kind, operand.bits);
  }

  std::string guard_text(const Guard& guard, bool inverted = false) const {
    if (!guard.present) return "";
    return std::string(guard.negated != inverted ? "@!" : "@") + name(guard.variable) + " ";
  }

  std::string operation_text(const Statement& statement) const {
    const Operation& operation = operations()[statement.operation];
    std::vector<std::string> operands;
    for (uint32_t result : statement.results)
      operands.push_back(name(result));
    for (const Operand& source : statement.sources)
      operands.push_back(operand_text(source));
    std::string text;
    if (!operation.has_places()) {
      text = operation.text;
      for (size_t i = 0; i < operands.size(); ++i)
        text += (i == 0 ? " " : ", ") + operands[i];
      return text + ";";
    }
    for (size_t i = 0; i < operation.text.size(); ++i) {
      if (operation.text[i] == '$')
        text += operands[static_cast<size_t>(operation.text[++i] - '0')];
      else
        text += operation.text[i];
    }
    return text + ";";
  }

  std::string address_text(const MemoryAccess& access) const {
    std::string text = "[" + (access.object >= 0 ? kernel_.objects[static_cast<size_t>(access.object)].name
                                                 : operand_text(access.base));
    if (access.offset != 0) text += "+" + std::to_string(access.offset);
    return text + "]";
  }

  // One register, or several in braces.
  template <class List, class Text> std::string group(const List& list, Text&& text) const {
    if (list.size() == 1) return text(list[0]);
    std::string result = "{";
    for (size_t i = 0; i < list.size(); ++i)
      result += (i == 0 ? "" : ", ") + text(list[i]);
    return result + "}";
  }

  void print_load_or_store(const Statement& statement) {
    const std::string address = address_text(statement.memory);
    const std::string guard = guard_text(statement.guard);
    if (statement.memory.is_store)
      line(guard + statement.text + " " + address + ", " +
           group(statement.sources, [&](const Operand& source) { return operand_text(source); }) + ";");
    else
      line(guard + statement.text + " " + group(statement.results, [&](uint32_t result) { return name(result); }) +
           ", " + address + ";");
  }

  void print_atomic(const Statement& statement) {
    std::string text = guard_text(statement.guard) + statement.text + " ";
    if (statement.text.starts_with("atom"))
      text += (statement.results.empty() ? "_" : name(statement.results[0])) + ", ";
    text += address_text(statement.memory);
    for (const Operand& source : statement.sources)
      text += ", " + operand_text(source);
    line(text + ";");
  }

  // Results joined by '|', followed by the sources.
  void print_plain(const Statement& statement) {
    std::string text = guard_text(statement.guard) + statement.text;
    for (size_t i = 0; i < statement.results.size(); ++i)
      text += (i == 0 ? " " : "|") + name(statement.results[i]);
    for (size_t i = 0; i < statement.sources.size(); ++i)
      text += (i == 0 && statement.results.empty() ? " " : ", ") + operand_text(statement.sources[i]);
    line(text + ";");
  }

  void branch(const Guard& guard, bool inverted, const std::string& target, bool is_uniform) {
    line(guard_text(guard, inverted) + (is_uniform ? "bra.uni " : "bra ") + target + ";");
  }

  void print_branch(const Statement& statement) {
    const std::string end = fresh_label();
    if (statement.bodies.size() == 1) {
      branch(statement.guard, true, end, statement.is_uniform);
      print(statement.bodies[0]);
    } else {
      const std::string otherwise = fresh_label();
      branch(statement.guard, true, otherwise, statement.is_uniform);
      print(statement.bodies[0]);
      branch({}, false, end, true);
      label(otherwise);
      print(statement.bodies[1]);
    }
    label(end);
  }

  void print_loop(const Statement& statement) {
    const std::string head = fresh_label(), latch = fresh_label(), end = fresh_label();
    label(head);
    if (!statement.bottom_tested) {
      print(statement.bodies[2]);
      branch(statement.guard, true, end, statement.is_uniform);
    }
    loops_.push_back({latch, end});
    print(statement.bodies[0]);
    loops_.pop_back();
    label(latch);
    print(statement.bodies[1]);
    if (statement.bottom_tested) {
      print(statement.bodies[2]);
      branch(statement.guard, false, head, statement.is_uniform);
    } else {
      branch({}, false, head, true);
    }
    label(end);
  }

  void print_choose(const Statement& statement) {
    const std::string table = "targets_" + std::to_string(function_) + "_" + std::to_string(next_label_++);
    std::string targets;
    std::vector<std::string> labels;
    for (size_t i = 0; i < statement.bodies.size(); ++i) {
      labels.push_back(fresh_label());
      targets += (i == 0 ? "" : ", ") + labels.back();
    }
    const std::string end = fresh_label();
    label(table);
    line(".branchtargets " + targets + ";");
    line("brx.idx " + operand_text(statement.sources[0]) + ", " + table + ";");
    for (size_t i = 0; i < statement.bodies.size(); ++i) {
      label(labels[i]);
      print(statement.bodies[i]);
      if (i + 1 < statement.bodies.size()) branch({}, false, end, true);
    }
    label(end);
  }

  void print_call(const Statement& statement) {
    const Function& callee = kernel_.functions[statement.callee];
    const std::string call = statement.is_uniform ? "call.uni (" : "call (";
    const std::string result = name(statement.results[0]);
    if (callee.register_parameters) {
      std::string arguments;
      for (const Operand& source : statement.sources)
        arguments += (arguments.empty() ? "" : ", ") + operand_text(source);
      line(call + result + "), " + callee.name + ", (" + arguments + ");");
      return;
    }
    line("{");
    std::string arguments;
    for (size_t i = 0; i < statement.sources.size(); ++i) {
      const std::string place = "argument" + std::to_string(i);
      const std::string type = parameter_type(callee.parameters[i]);
      line(".param " + type + " " + place + ";");
      line("st.param" + type + " [" + place + "], " + operand_text(statement.sources[i]) + ";");
      arguments += (i == 0 ? "" : ", ") + place;
    }
    const std::string type = parameter_type(callee.result);
    line(".param " + type + " outcome;");
    line(call + "outcome), " + callee.name + ", (" + arguments + ");");
    line("ld.param" + type + " " + result + ", [outcome];");
    line("}");
  }

  // The result of a device function is written first.
  void print_leave(const Statement& statement) {
    if (function_ == 0) return line(guard_text(statement.guard) + statement.text + ";");
    const std::string stays = fresh_label();
    branch(statement.guard, true, stays, false);
    print_result();
    line(statement.text + ";");
    label(stays);
  }

  void print_scope(const Statement& statement) {
    line("{");
    for (uint32_t variable : statement.declarations)
      line(std::string(".reg ") + register_type[static_cast<size_t>(kernel_.variables[variable].kind)] + " " +
           name(variable) + ";");
    print(statement.bodies[0]);
    line("}");
  }

  std::string parameter_type(uint32_t variable) const {
    return register_type[static_cast<size_t>(kernel_.variables[variable].kind)];
  }

  void print(const Statement& statement) {
    switch (statement.kind) {
    case StatementKind::operation:
      return line(guard_text(statement.guard) + operation_text(statement));
    case StatementKind::special_register:
      return line(guard_text(statement.guard) + statement.text + " " + name(statement.results[0]) + ", " +
                  name_of(statement.special) + ";");
    case StatementKind::address_of:
      return line(statement.text + " " + name(statement.results[0]) + ", " +
                  kernel_.objects[static_cast<size_t>(statement.memory.object)].name + ";");
    case StatementKind::load_or_store:
      return print_load_or_store(statement);
    case StatementKind::atomic:
      return print_atomic(statement);
    case StatementKind::warp:
    case StatementKind::barrier:
      return print_plain(statement);
    case StatementKind::no_effect:
      return line(statement.text + ";");
    case StatementKind::branch:
      return print_branch(statement);
    case StatementKind::loop:
      return print_loop(statement);
    case StatementKind::choose:
      return print_choose(statement);
    case StatementKind::break_loop:
      return branch(statement.guard, false, loop_of(statement).end, false);
    case StatementKind::continue_loop:
      return branch(statement.guard, false, loop_of(statement).latch, false);
    case StatementKind::leave:
      return print_leave(statement);
    case StatementKind::call:
      return print_call(statement);
    case StatementKind::scope:
      return print_scope(statement);
    }
  }

  const Kernel& kernel_;
  uint32_t function_;
  std::string& out_;
  std::vector<uint32_t> numbers_; // of registers
  uint32_t counts_[kind_count] = {};
  std::vector<LoopLabels> loops_;
  uint32_t next_label_ = 0;
};

void print_function(const Kernel& kernel, uint32_t index, std::string& out) {
  const Function& function = kernel.functions[index];
  FunctionPrinter printer(kernel, index + 1, out);
  const auto type = [&](uint32_t variable) {
    return register_type[static_cast<size_t>(kernel.variables[variable].kind)];
  };
  const std::string space = function.register_parameters ? ".reg " : ".param ";
  out += ".func (" + space + type(function.result) + " returned) " + function.name + "(";
  for (size_t i = 0; i < function.parameters.size(); ++i)
    out += (i == 0 ? "" : ", ") + space + type(function.parameters[i]) + " given" + std::to_string(i);
  out += ")\n{\n";
  printer.declare_registers();
  const std::string load = function.register_parameters ? "mov" : "ld.param";
  for (size_t i = 0; i < function.parameters.size(); ++i) {
    const std::string place = "given" + std::to_string(i);
    printer.line(load + type(function.parameters[i]) + " " + printer.name(function.parameters[i]) + ", " +
                 (function.register_parameters ? place : "[" + place + "]") + ";");
  }
  printer.print(function.body);
  printer.print_result();
  out += "\tret;\n}\n";
}

void print_module_object(const MemoryObject& object, std::string& out) {
  if (object.space == Space::dynamic_shared) {
    out += ".extern .shared .align " + std::to_string(object.alignment) + " .b8 " + object.name + "[];\n";
    return;
  }
  if (object.space != Space::global && object.space != Space::constant) return;
  out += std::string(object.space == Space::global ? ".global" : ".const") + " .align " +
         std::to_string(object.alignment) + " .b8 " + object.name + "[" + std::to_string(object.size) + "] = {";
  for (size_t i = 0; i < object.initial.size(); ++i)
    out += (i == 0 ? "" : ", ") + std::to_string(object.initial[i]);
  out += "};\n";
}

void print_kernel(const Kernel& kernel, std::string& out) {
  for (const MemoryObject& object : kernel.objects)
    print_module_object(object, out);
  for (uint32_t i = 0; i < kernel.functions.size(); ++i)
    print_function(kernel, i, out);
  out += ".visible .entry " + kernel.name + "(";
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument& argument = kernel.arguments[i];
    const MemoryObject& object = kernel.objects[argument.object];
    out += (i == 0 ? "\n\t.param " : ",\n\t.param ");
    out += argument.is_array ? ".align " + std::to_string(object.alignment) + " .b8 " + object.name + "[" +
                                   std::to_string(object.size) + "]"
                             : "." + argument.type + " " + object.name;
  }
  out += ")\n{\n";
  FunctionPrinter printer(kernel, 0, out);
  printer.declare_registers();
  printer.declare_local_objects();
  printer.print(kernel.body);
  out += "\tret;\n}\n";
}

} // namespace

std::string print_module(const std::vector<const Kernel*>& kernels) {
  std::string out = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (const Kernel* kernel : kernels)
    print_kernel(*kernel, out);
  return out;
}

std::string print_module(const Kernel& kernel) {
  return print_module(std::vector<const Kernel*>{&kernel});
}

} // namespace ptxrewrite::fuzz
