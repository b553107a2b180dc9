#include "launch/launch_template.h"

#include "ir/machine/figures/target.h"
#include "launch/launch_plan.h"
#include "launch/parameter_use.h"
#include "launch/scalar_bytes.h"
#include "launch/signature.h"

#include <algorithm>
#include <set>

namespace ptxrewrite::launch {

namespace {

std::string toml_string(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

// A bare key if TOML allows it.
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
    out_ = "ptx = " + toml_string(ptx) +
           (calls_malloc() ? "\n# heap = \"64 << 20\" # bytes for malloc; without this line 8 MiB" : "") +
           "\n\n[let]\n"
           "n = 128 # bounds, extents and strides: set what the kernels need\n"
           "elements = \"4 * n * n\" # of each buffer\n";
    for (const ir::Function* kernel : kernels)
      if (requires_too_large_blocks(*kernel))
        out_ += "\n# " + std::string(module_.text(kernel->name)) + " is left out: no GPU runs the blocks that its " +
                ".reqntid requires\n";
      else
        write_kernel(*kernel);
    out_ += buffers_;
    write_variables();
    return out_;
  }

private:
  bool calls_malloc() const {
    return std::ranges::any_of(module_.functions,
                               [&](const auto& function) { return module_.text(function->name) == "malloc"; });
  }

  // ptxas takes any numbers after .reqntid.
  bool requires_too_large_blocks(const ir::Function& kernel) const {
    for (const ir::FunctionDirective& directive : kernel.directives) {
      if (module_.text(directive.name) != ".reqntid") continue;
      const uint32_t most[] = {max_block.x, max_block.y, max_block.z};
      uint64_t threads = 1;
      for (unsigned i = 0; i < directive.count && i < 3; ++i) {
        if (directive.numbers[i] > most[i]) return true;
        threads *= directive.numbers[i];
      }
      return threads > max_block_threads;
    }
    return false;
  }

  // The block dimensions that the kernel requires, otherwise 256 threads.
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

  // Some bytes, if the launch determines the size: 48 KiB are available on every GPU; from sm_80 on twice as much.
  uint64_t shared_bytes(const ir::Function& kernel) const {
    if (!uses_dynamic_shared_memory(module_, kernel)) return 0;
    const uint64_t most = (ir::target_capability(module_, 0) < 80 ? 48 : 96) * 1024;
    uint64_t fixed = 0;
    for (ir::VariableId id : module_.variables.ids())
      fixed += shared_bytes(module_.variables[id], module_.dimensions);
    for (const auto& function : module_.functions)
      for (ir::VariableId id : function->variables.ids())
        fixed += shared_bytes(function->variables[id], function->dimensions);
    return fixed + 1024 < most ? (most - fixed) / 1024 * 1024 : 1024;
  }
  static uint64_t shared_bytes(const ir::Variable& variable, const SpanPool<uint64_t>& dimensions) {
    if (!is_shared(variable.space)) return 0;
    return std::min<uint64_t>(bytes_of(variable, dimensions.view(variable.dimensions)), 1 << 20);
  }

  // One cluster if the kernel requires a cluster size, and a size if the kernel requires the launch to specify one.
  std::string grid_of(const ir::Function& kernel) const {
    std::string grid = "[1, 1, 1]";
    bool wants_size = false, has_size = false, counts_clusters = false;
    for (const ir::FunctionDirective& directive : kernel.directives) {
      const std::string_view name = module_.text(directive.name);
      const auto extent = [&](unsigned i) { return std::to_string(i < directive.count ? directive.numbers[i] : 1u); };
      if (name == ".reqnctapercluster") grid = "[" + extent(0) + ", " + extent(1) + ", " + extent(2) + "]";
      has_size = has_size || name == ".reqnctapercluster";
      wants_size = wants_size || name == ".explicitcluster";
      counts_clusters = counts_clusters || name == ".blocksareclusters";
    }
    return "\ngrid = " + (counts_clusters ? "[1, 1, 1]" : grid) +
           (wants_size && !has_size ? "\ncluster = [1, 1, 1] # blocks of a cluster: the kernel has to be told" : "");
  }

  void write_kernel(const ir::Function& kernel) {
    const Signature signature = signature_of(kernel);
    const std::vector<std::vector<ParameterPart>> parts = parameter_parts(module_, kernel);
    const std::string name(module_.text(kernel.name));
    out_ += "\n[[launch]]\nkernel = " + toml_string(name) + "" + grid_of(kernel) + "\nblock = " + block_of(kernel) +
            "\nshared = " + std::to_string(shared_bytes(kernel)) + " # bytes of dynamic shared memory\nargs = [\n";
    for (size_t i = 0; i < signature.parameters.size(); ++i) {
      const Parameter& parameter = signature.parameters[i];
      out_ += "    " + argument(name, parameter, parts[i]) + ", # " + std::string(parameter.name) + ": ." +
              std::string(spelling(parameter.type)) +
              (parameter.is_array ? "[" + std::to_string(parameter.bytes / byte_width(parameter.type)) + "]" : "") +
              "\n";
    }
    out_ += "]\n";
  }

  std::string argument(const std::string& kernel, const Parameter& parameter, const std::vector<ParameterPart>& parts) {
    if (type_kind(parameter.type) == ir::TypeKind::opaque_handle) return "{ u64 = 0 }";
    if (!parameter.is_array) {
      if (parts.empty()) return "{ " + std::string(spelling(parameter.type)) + " = 0 }"; // never loaded
      ParameterPart whole = parts.front();
      if (whole.offset == 0 && byte_width(whole.type) == parameter.bytes) {
        // If the signature has only bits, the load's type is more specific.
        if (is_float(parameter.type)) whole.type = parameter.type;
        if (whole.is_address) return "{ buffer = " + toml_string(add_buffer(kernel, parameter, whole)) + " }";
        return number(whole, is_float(parameter.type) || is_plain_type(parameter.type) ? parameter.type : whole.type);
      }
    }
    if (std::string members = struct_of(kernel, parameter, parts); !members.empty())
      return "{ struct = [" + members + " ] }";
    std::string bytes;
    for (uint64_t i = 0; i < parameter.bytes && i < max_parameter_bytes; ++i)
      bytes += i ? ", 0" : "0";
    return "{ bytes = [" + bytes + "] }";
  }

  // A value that makes a kernel do some work: an extent if it is used in arithmetic, 1 if it is a flag, few bits if it
  // is a shift amount.
  static std::string number(const ParameterPart& part, ir::ScalarType type) {
    std::string value = "\"n\"";
    if (is_float(type) || is_float(part.type))
      value = is_float(type) ? "0.5" : byte_width(type) == 4 ? "0x3f000000" : "0x3fe0000000000000";
    else if (part.counts_shifts)
      value = "2";
    else if (byte_width(type) == 1 || !part.has_other_uses)
      value = "1";
    return "{ " + std::string(spelling(type)) + " = " + value + " }";
  }

  // The members of a parameter that is passed by value, with zeros between them; "" if they overlap or do not have the
  // layout of a struct.
  std::string struct_of(const std::string& kernel, const Parameter& parameter,
                        const std::vector<ParameterPart>& parts) {
    std::string members;
    uint64_t at = 0, end = 0, widest = 1;
    const auto fill_to = [&](uint64_t place) {
      if (at == place) return;
      members += " { u8 = [";
      for (bool first = true; at < place; ++at, first = false)
        members += first ? "0" : ", 0";
      members += "] },";
    };
    for (const ParameterPart& part : parts) {
      const unsigned width = byte_width(part.type);
      if (part.offset < end || width == 0 || part.offset % width != 0 || part.offset + width > parameter.bytes)
        return "";
      widest = std::max<uint64_t>(widest, width);
      end = part.offset + width;
    }
    if (parts.empty() || parameter.bytes > max_parameter_bytes || parameter.bytes % widest != 0) return "";
    for (const ParameterPart& part : parts) {
      fill_to(part.offset);
      members += part.is_address ? " { buffer = " + toml_string(add_buffer(kernel, parameter, part)) + " },"
                                 : " " + number(part, part.type) + ",";
      at += byte_width(part.type);
    }
    fill_to(parameter.bytes);
    members.pop_back();
    return members;
  }

  // nvcc names parameters KERNEL_param_0: the number suffices.
  std::string add_buffer(const std::string& kernel, const Parameter& parameter, const ParameterPart& use) {
    std::string name(parameter.name);
    const std::string prefix = kernel + "_param_";
    if (name.starts_with(prefix)) name = "p" + name.substr(prefix.size());
    if (!names_.insert(name).second) {
      name = kernel + "_" + name;
      while (!names_.insert(name).second)
        name += '_';
    }
    const ir::ScalarType type = use.element_type == ir::ScalarType::none ? ir::ScalarType::f32 : use.element_type;
    buffers_ += "\n[buffer." + key(name) + "]\ntype = " + toml_string(spelling(type)) + "\ncount = \"elements\"\n";
    const char* const bounds = is_float(type) ? "-1, 1" : "0, 100";
    if (use.is_written) buffers_ += "output = true\n";
    // Counters and locks start at zero.
    if (use.is_read && !use.is_atomic)
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
