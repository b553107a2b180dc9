#include "tests/fuzz/launchtime/print.h"

#include "tests/fuzz/kernels/kernel_operations.h"

#include <algorithm>
#include <cstdio>

namespace ptxrewrite::fuzz::launchtime {

namespace {

std::string name_of(Register reg) {
  return std::string("%") + (reg.kind == 'h' ? "h" : std::string(1, reg.kind)) + "_" + std::to_string(reg.number);
}

std::string immediate(uint64_t bits, char kind) {
  if (kind == 'f') {
    char text[16];
    std::snprintf(text, sizeof text, "0f%08X", static_cast<unsigned>(bits));
    return text;
  }
  if (kind == 'h') return std::to_string(static_cast<int16_t>(bits));
  if (kind == 'r') return std::to_string(static_cast<int32_t>(bits));
  return std::to_string(static_cast<int64_t>(bits));
}

std::string text_of(const Operand& operand, char kind) {
  return operand.is_register ? name_of(operand.reg) : immediate(operand.bits, kind);
}

char register_kind(char letter) {
  switch (width_of(kind_of_letter(letter))) {
  case 1:
    return 'p';
  case 16:
    return 'h';
  case 64:
    return 'd';
  default:
    return kind_of_letter(letter) == fuzz::Kind::f32 ? 'f' : 'r';
  }
}

class Printer {
public:
  explicit Printer(const Kernel& kernel) : kernel_(kernel) {}

  std::string print() {
    text_ = ".version 9.0\n.target " + kernel_.target + "\n.address_size 64\n\n.visible .entry " + kernel_.name + "(";
    for (size_t i = 0; i < kernel_.parameters.size(); ++i)
      text_ += std::string(i ? "," : "") + "\n\t.param ." + (kernel_.parameters[i].kind == 'r' ? "u32 " : "u64 ") +
               parameter(i);
    text_ += "\n)\n{\n";
    declare();
    for (size_t i = 0; i < kernel_.parameters.size(); ++i)
      load_parameter(kernel_.parameters[i], parameter(i));
    print(kernel_.body);
    return text_ + "\tret;\n}\n";
  }

private:
  std::string parameter(size_t index) const { return kernel_.name + "_param_" + std::to_string(index); }
  void line(const std::string& text) { text_ += "\t" + text + ";\n"; }

  void declare() {
    static constexpr const char* types[] = {"pred", "b16", "b32", "b64", "f32"};
    for (size_t i = 0; i < kernel_.registers.size(); ++i)
      if (kernel_.registers[i])
        line(std::string(".reg .") + types[i] + " %" + "phrdf"[i] + "_<" + std::to_string(kernel_.registers[i]) + ">");
    if (kernel_.shared_bytes) line(".shared .align 16 .b8 exchange[" + std::to_string(kernel_.shared_bytes) + "]");
  }

  void load_parameter(const Parameter& parameter, const std::string& name) {
    line(std::string("ld.param.") + (parameter.kind == 'r' ? "u32 " : "u64 ") + name_of(parameter.reg) + ", [" + name +
         "]");
    if (parameter.is_pointer && !parameter.is_generic)
      line("cvta.to.global.u64 " + name_of(parameter.reg) + ", " + name_of(parameter.reg));
  }

  void print(const std::vector<Node>& nodes) {
    for (const Node& node : nodes)
      print(node);
  }

  void print(const Node& node) {
    switch (node.kind) {
    case Node::Kind::operation:
      return print_operation(node);
    case Node::Kind::special:
      return line("mov.u32 " + name_of(node.results[0]) + ", " + node.text);
    case Node::Kind::load:
    case Node::Kind::store:
      return print_access(node);
    case Node::Kind::add:
      return line("red" + space_of(node) + ".add.u32 [" + name_of(node.sources[0].reg) + "], " +
                  name_of(node.sources[1].reg));
    case Node::Kind::branch: {
      const std::string end = label();
      line((node.is_negated ? "@" : "@!") + name_of(node.sources[0].reg) + " bra " + end);
      print(node.body);
      text_ += end + ":\n";
      return;
    }
    case Node::Kind::loop: {
      const std::string start = label();
      text_ += start + ":\n";
      print(node.body);
      return line("@" + name_of(node.sources[0].reg) + " bra " + start);
    }
    case Node::Kind::shuffle: {
      std::string list;
      for (const Operand& source : node.sources)
        list += ", " + text_of(source, 'r');
      return line("shfl.sync." + node.text + ".b32 " + name_of(node.results[0]) + list);
    }
    case Node::Kind::vote:
      return line("vote.sync." + node.text + (node.text == "ballot" ? ".b32 " : ".pred ") + name_of(node.results[0]) +
                  ", " + text_of(node.sources[0], 'p') + ", " + text_of(node.sources[1], 'r'));
    case Node::Kind::barrier:
      return line("bar.sync 0");
    }
  }

  void print_operation(const Node& node) {
    const Operation& row = operations()[node.operation];
    std::vector<std::string> operands;
    for (const Register result : node.results)
      operands.push_back(name_of(result));
    for (size_t i = 0; i < node.sources.size(); ++i)
      operands.push_back(text_of(node.sources[i], register_kind(row.sources[i])));
    if (!row.has_places()) {
      std::string list;
      for (size_t i = 0; i < operands.size(); ++i)
        list += (i ? ", " : " ") + operands[i];
      return line(row.text + list);
    }
    std::string text;
    for (size_t i = 0; i < row.text.size(); ++i)
      if (row.text[i] == '$')
        text += operands[static_cast<size_t>(row.text[++i] - '0')];
      else
        text += row.text[i];
    line(text);
  }

  std::string space_of(const Node& node) const {
    if (node.is_shared) return ".shared";
    const auto is_generic = [](const Parameter& parameter) { return parameter.is_generic; };
    const bool generic = node.pointer >= 0 ? is_generic(kernel_.parameters[static_cast<size_t>(node.pointer)])
                                           : std::ranges::any_of(kernel_.parameters, is_generic);
    return generic ? "" : ".global";
  }

  void print_access(const Node& node) {
    const bool is_load = node.kind == Node::Kind::load;
    std::string values;
    const size_t count = is_load ? node.results.size() : node.sources.size() - 1;
    for (size_t i = 0; i < count; ++i)
      values += (i ? ", " : "") + (is_load ? name_of(node.results[i]) : name_of(node.sources[i + 1].reg));
    if (count > 1) values = "{" + values + "}";
    const std::string address =
        "[" + name_of(node.sources[0].reg) + (node.offset == 0 ? "" : "+" + std::to_string(node.offset)) + "]";
    const std::string vector = count > 1 ? ".v" + std::to_string(count) : "";
    const std::string space = space_of(node);
    line((is_load ? "ld" : "st") + space + vector + "." + node.type + " " + (is_load ? values : address) + ", " +
         (is_load ? address : values));
  }

  std::string label() { return "$L_" + std::to_string(labels_++); }

  const Kernel& kernel_;
  std::string text_;
  unsigned labels_ = 0;
};

} // namespace

std::string print(const Kernel& kernel) {
  return Printer(kernel).print();
}

} // namespace ptxrewrite::fuzz::launchtime
