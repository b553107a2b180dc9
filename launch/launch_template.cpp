#include "launch/launch_template.h"

#include "launch/scalar_bytes.h"
#include "launch/signature.h"

#include <map>
#include <set>

namespace ptxrewrite::launch {

namespace {

// What the code does with the memory behind a parameter.
struct ParameterUse {
  bool is_address = false;
  bool is_written = false;
  ir::ScalarType type = ir::ScalarType::none; // of the first access
};

// Follows each parameter through moves, cvta and additions to loads and stores. Registers are as written in the text,
// so one that is used for several parameters belongs to the one that it was first made of: good enough for a skeleton.
class ParameterTracer {
public:
  explicit ParameterTracer(const ir::Function& kernel) : kernel_(kernel) {
    auto list = kernel.variable_lists.view(kernel.signature.parameters);
    for (size_t i = 0; i < list.size(); ++i)
      parameter_of_variable_[list[i].index()] = i;
    uses_.resize(list.size());
  }

  std::vector<ParameterUse> trace() {
    // Until nothing new is found: a loop may use a register above its definition.
    do {
      changed_ = false;
      for (ir::BlockId block : kernel_.layout)
        for (ir::InstructionId id : kernel_.instructions_in(block))
          if (kernel_.instructions[id].kind == ir::InstructionKind::real) visit(id);
    } while (changed_);
    return uses_;
  }

private:
  static constexpr size_t nobody = SIZE_MAX;

  size_t owner(const ir::Operand& operand) const {
    if (!operand.is(ir::OperandKind::value)) return nobody;
    auto found = owner_.find(operand.as_value().index());
    return found == owner_.end() ? nobody : found->second;
  }
  void give(const ir::Operand& operand, size_t parameter) {
    if (!operand.is(ir::OperandKind::value) || !operand.is_definition()) return;
    changed_ |= owner_.try_emplace(operand.as_value().index(), parameter).second;
  }

  void visit(ir::InstructionId id) {
    const ir::Form& form = kernel_.form_of(id);
    std::span<const ir::Operand> operands = kernel_.operands_of(id);
    if (operands.empty()) return;
    if (form.opcode == ir::Opcode::ld && ir::is_param(form.space)) return visit_load_of_parameter(operands);
    switch (form.opcode) {
    case ir::Opcode::mov:
    case ir::Opcode::cvta:
    case ir::Opcode::add:
    case ir::Opcode::sub:
    case ir::Opcode::mad:
    case ir::Opcode::selp:
      for (const ir::Operand& operand : operands.subspan(1))
        if (size_t parameter = owner(operand); parameter != nobody) {
          give(operands[0], parameter);
          if (form.opcode == ir::Opcode::cvta) uses_[parameter].is_address = true;
        }
      return;
    default:
      visit_access(form, operands);
    }
  }

  // operands: destination, address group, base.
  void visit_load_of_parameter(std::span<const ir::Operand> operands) {
    for (size_t i = 0; i + 1 < operands.size(); ++i) {
      if (!operands[i].is(ir::OperandKind::address) || !operands[i + 1].is(ir::OperandKind::symbol)) continue;
      const ir::SymbolRef symbol = operands[i + 1].as_symbol();
      if (symbol.kind() != ir::SymbolRef::Kind::local_variable) return;
      auto found = parameter_of_variable_.find(symbol.variable().index());
      if (found != parameter_of_variable_.end()) give(operands[0], found->second);
    }
  }

  void visit_access(const ir::Form& form, std::span<const ir::Operand> operands) {
    for (size_t i = 0; i + 1 < operands.size(); ++i) {
      if (!operands[i].is(ir::OperandKind::address)) continue;
      const size_t parameter = owner(operands[i + 1]);
      if (parameter == nobody) continue;
      ParameterUse& use = uses_[parameter];
      use.is_address = true;
      use.is_written |=
          form.opcode == ir::Opcode::st || form.opcode == ir::Opcode::atom || form.opcode == ir::Opcode::red;
      if (use.type == ir::ScalarType::none && is_plain_type(form.type())) use.type = form.type();
    }
  }

  const ir::Function& kernel_;
  std::map<uint32_t, size_t> parameter_of_variable_;
  std::map<uint32_t, size_t> owner_; // register -> parameter
  std::vector<ParameterUse> uses_;
  bool changed_ = false;
};

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

// A bare key where TOML takes one.
std::string key(std::string_view name) {
  for (char c : name)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return toml_string(name);
  return std::string(name);
}

class TemplateWriter {
public:
  explicit TemplateWriter(const ir::Module& module) : module_(module) {}

  std::string write(std::span<const ir::Function* const> kernels, std::string_view ptx) {
    out_ = "ptx = " + toml_string(ptx) + "\n\n[let]\nn = 1024 # elements of each buffer: set what the kernels need\n";
    for (const ir::Function* kernel : kernels)
      write_kernel(*kernel);
    out_ += buffers_;
    write_variables();
    return out_;
  }

private:
  // The dimensions that the kernel states, else a block of 256.
  std::string block_of(const ir::Function& kernel) const {
    for (const ir::FunctionDirective& directive : kernel.directives)
      if (module_.text(directive.name) == ".reqntid" && directive.count > 0) {
        std::string text = "[";
        for (unsigned i = 0; i < directive.count && i < 3; ++i)
          text += (i ? ", " : "") + std::to_string(directive.numbers[i]);
        return text + "]";
      }
    for (const ir::FunctionDirective& directive : kernel.directives)
      if (module_.text(directive.name) == ".maxntid" && directive.count > 0) {
        uint64_t threads = 1;
        for (unsigned i = 0; i < directive.count && i < 3; ++i)
          threads *= directive.numbers[i];
        if (threads < 256 && threads > 0) return std::to_string(threads);
      }
    return "256";
  }

  void write_kernel(const ir::Function& kernel) {
    const Signature signature = signature_of(kernel);
    const std::vector<ParameterUse> uses = ParameterTracer(kernel).trace();
    const std::string name(module_.text(kernel.name));
    out_ += "\n[[launch]]\nkernel = " + toml_string(name) + "\ngrid = [1, 1, 1]\nblock = " + block_of(kernel) +
            "\nshared = 0 # bytes of dynamic shared memory\nargs = [\n";
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const Parameter& parameter = signature.parameters[i];
      out_ += "    " + argument(name, parameter, uses[i]) + ", # " + std::string(parameter.name) + ": ." +
              std::string(spelling(parameter.type)) +
              (parameter.is_array ? "[" + std::to_string(parameter.bytes / byte_width(parameter.type)) + "]" : "") +
              "\n";
    }
    out_ += "]\n";
  }

  std::string argument(const std::string& kernel, const Parameter& parameter, const ParameterUse& use) {
    const unsigned address_bytes = module_.address_size == 32 ? 4 : 8;
    if (!parameter.is_array && parameter.bytes == address_bytes && use.is_address)
      return "{ buffer = " + toml_string(add_buffer(kernel, parameter, use)) + " }";
    if (parameter.is_array) {
      std::string bytes;
      for (uint64_t i = 0; i < parameter.bytes && i < max_parameter_bytes; ++i)
        bytes += i ? ", 0" : "0";
      return "{ bytes = [" + bytes + "] }";
    }
    if (type_kind(parameter.type) == ir::TypeKind::opaque_handle) return "{ u64 = 0 }";
    return "{ " + std::string(spelling(parameter.type)) + " = 0 }";
  }

  // nvcc names parameters KERNEL_param_0: the number alone says as much.
  std::string add_buffer(const std::string& kernel, const Parameter& parameter, const ParameterUse& use) {
    std::string name(parameter.name);
    const std::string prefix = kernel + "_param_";
    if (name.starts_with(prefix)) name = "p" + name.substr(prefix.size());
    if (!names_.insert(name).second) {
      name = kernel + "_" + name;
      while (!names_.insert(name).second)
        name += "_";
    }
    const ir::ScalarType type = use.type == ir::ScalarType::none ? ir::ScalarType::f32 : use.type;
    buffers_ += "\n[buffer." + key(name) + "]\ntype = " + toml_string(spelling(type)) + "\ncount = \"n\"\n";
    const char* const bounds = is_float(type) ? "-1, 1" : "0, 100";
    if (use.is_written)
      buffers_ += "output = true\n";
    else
      buffers_ += std::string("init = \"uniform(") + bounds + ", seed=" + std::to_string(names_.size()) + ")\"\n";
    return name;
  }

  void write_variables() {
    for (ir::VariableId id : module_.variables.ids()) {
      const ir::Variable& variable = module_.variables[id];
      const bool constant = variable.space == ir::StateSpace::constant;
      if ((!constant && variable.space != ir::StateSpace::global) || !variable.initialiser.empty()) continue;
      if (!is_plain_type(variable.type)) continue;
      const uint64_t bytes = bytes_of(variable, module_.dimensions.view(variable.dimensions));
      if (bytes == 0) continue;
      out_ += std::string("\n[") + (constant ? "constant." : "global.") + key(module_.text(variable.name)) +
              "]\ntype = " + toml_string(spelling(variable.type)) +
              "\ncount = " + std::to_string(bytes / byte_width(variable.type)) + "\n";
    }
  }

  const ir::Module& module_;
  std::string out_, buffers_;
  std::set<std::string> names_;
};

} // namespace

std::string launch_template(const ir::Module& module, std::span<const ir::Function* const> kernels,
                            std::string_view ptx) {
  return TemplateWriter(module).write(kernels, ptx);
}

} // namespace ptxrewrite::launch
