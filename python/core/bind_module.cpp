// Modules, functions, instructions and operands, for reading from Python.
#include "python/core/errors.h"
#include "python/core/handles.h"

#include "evaluate/common/module_input.h"
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/core/print_operand.h"
#include "ir/verify/verify.h"
#include "launch/signature.h"

#include <pybind11/stl.h>

namespace ptxrewrite::python {

namespace py = pybind11;

ir::Function& FunctionHandle::get() const {
  if (!lease || !lease->alive) raise("the handle is invalid since passes ran over the module: get a new one");
  return *function;
}

const ir::Instruction& InstructionHandle::get() const {
  const ir::Function& function = owner.get();
  const ir::Instruction& instruction = function.instructions[id];
  if (!instruction.block) raise("the instruction was removed");
  return instruction;
}

ir::Module& ModuleBox::get() const {
  if (!lease_->alive || !lease_->keeps) raise("passes are running over the module");
  return *lease_->keeps;
}

std::shared_ptr<ir::Module> ModuleBox::take() {
  (void)get();
  lease_->alive = false;
  std::shared_ptr<ir::Module> module = std::move(lease_->keeps);
  lease_ = std::make_shared<Lease>();
  lease_->alive = false;
  return module;
}

void ModuleBox::put_back(std::shared_ptr<ir::Module> module) {
  lease_ = std::make_shared<Lease>();
  lease_->keeps = std::move(module);
}

namespace {

std::unique_ptr<ModuleBox> parse(const std::string& text, const std::string& name) {
  std::shared_ptr<ir::Module> module;
  {
    const py::gil_scoped_release release;
    const Collected collected;
    const SourceFile source(name, text);
    Diagnostics diagnostics;
    module = grammar::read_module(source, diagnostics);
    if (!module) {
      for (const Diagnostic& diagnostic : diagnostics.list())
        evaluate::show(diagnostic, source, collected.console());
      collected.raise();
    }
  }
  return std::make_unique<ModuleBox>(std::move(module));
}

std::vector<FunctionHandle> functions_of(const ModuleBox& box) {
  std::vector<FunctionHandle> functions;
  for (const auto& function : box.get().functions)
    functions.push_back({box.lease(), function.get()});
  return functions;
}

std::vector<InstructionHandle> instructions_of(const FunctionHandle& handle) {
  const ir::Function& function = handle.get();
  std::vector<InstructionHandle> instructions;
  for (const ir::BlockId block : function.layout)
    for (const ir::InstructionId id : function.instructions_in(block))
      if (function.instructions[id].kind == ir::InstructionKind::real) instructions.push_back({handle, id});
  return instructions;
}

std::vector<OperandHandle> operands_of(const InstructionHandle& handle) {
  (void)handle.get();
  const std::span<const ir::Operand> all = std::as_const(handle.owner.get()).operands_of(handle.id);
  std::vector<OperandHandle> operands;
  for (size_t at = 0; at < all.size(); at = ir::next_sibling(all, at)) {
    if (all[at].has(ir::OperandFlag::old_value)) continue;
    const auto part = all.subspan(at, ir::next_sibling(all, at) - at);
    operands.push_back({handle.owner, {part.begin(), part.end()}});
  }
  return operands;
}

std::vector<ValueHandle> values_of(const InstructionHandle& handle, bool definitions) {
  (void)handle.get();
  const ir::Function& function = handle.owner.get();
  std::vector<ValueHandle> values;
  const auto visit = [&](ir::ValueId id) { values.push_back({handle.owner, id}); };
  if (definitions)
    ir::for_each_definition(function, handle.id, visit);
  else
    ir::for_each_use(function, handle.id, visit);
  return values;
}

std::string text_of(const OperandHandle& operand) {
  std::string text;
  // Constants have no owning function; all other operands do.
  const ir::Function* function = operand.owner.lease ? &operand.owner.get() : nullptr;
  static const ir::Module none;
  ir::OperandPrinter(text, function ? function->module() : none, function).print(operand.parts, 0);
  return text;
}

py::object line_of(const InstructionHandle& handle) {
  const SourceRange range = handle.get().range;
  if (range.empty()) return py::none();
  return py::int_(handle.owner.get().module().source.locate(range.begin).line);
}

// (name, type, bytes, is array) for each parameter.
std::vector<std::tuple<std::string, std::string, uint64_t, bool>> parameters_of(const FunctionHandle& handle) {
  std::vector<std::tuple<std::string, std::string, uint64_t, bool>> parameters;
  for (const launch::Parameter& one : launch::signature_of(handle.get()).parameters)
    parameters.emplace_back(one.name, ir::spelling(one.type), one.bytes, one.is_array);
  return parameters;
}

void bind_function(py::module_& core) {
  py::class_<FunctionHandle>(core, "Function", "A kernel or device function of a module, or of a pass that has it.")
      .def_property_readonly("name", [](const FunctionHandle& one) { return one.get().module().text(one.get().name); })
      .def_property_readonly("is_entry", [](const FunctionHandle& one) { return one.get().is_entry; })
      .def_property_readonly("has_body", [](const FunctionHandle& one) { return one.get().has_body; })
      .def_property_readonly("is_ssa", [](const FunctionHandle& one) { return one.get().is_ssa; })
      .def_property_readonly("parameters", &parameters_of, "(name, type, bytes, is array) of each parameter.")
      .def_property_readonly("instructions", &instructions_of, "Instructions of PTX, in the order of the text.")
      .def_property_readonly("text",
                             [](const FunctionHandle& one) {
                               std::string text;
                               ir::print(one.get(), text);
                               return text;
                             })
      .def(
          "verify",
          [](const FunctionHandle& one) {
            std::vector<std::string> messages;
            for (const ir::VerifierFinding& finding : ir::verify(one.get()))
              messages.push_back(finding.rule + ": " + finding.message);
            return messages;
          },
          "Rules of the representation that do not hold; empty: all do.")
      .def("__repr__", [](const FunctionHandle& one) {
        return "<ptxrewrite.Function " + std::string(one.get().module().text(one.get().name)) + ">";
      });
}

void bind_instruction(py::module_& core) {
  py::class_<InstructionHandle>(core, "Instruction", "One instruction of a function.")
      .def_property_readonly("text",
                             [](const InstructionHandle& one) {
                               (void)one.get();
                               return ir::print_instruction(one.owner.get(), one.id);
                             })
      .def_property_readonly("mnemonic", [](const InstructionHandle& one) { return ir::form(one.get().form).mnemonic; })
      .def_property_readonly("opcode",
                             [](const InstructionHandle& one) { return ir::spelling(ir::form(one.get().form).opcode); })
      .def_property_readonly("guarded", [](const InstructionHandle& one) { return bool(one.get().guard); })
      .def_property_readonly("line", &line_of, "Line of the source that it was read from; None: a pass made it.")
      .def_property_readonly("operands", &operands_of)
      .def_property_readonly("definitions", [](const InstructionHandle& one) { return values_of(one, true); })
      .def_property_readonly("uses", [](const InstructionHandle& one) { return values_of(one, false); })
      .def("__eq__",
           [](const InstructionHandle& one, const InstructionHandle& other) {
             return one.id == other.id && one.owner.function == other.owner.function;
           })
      .def("__hash__", [](const InstructionHandle& one) { return size_t{one.id.index()}; })
      .def("__repr__", [](const InstructionHandle& one) {
        (void)one.get();
        return "<ptxrewrite.Instruction " + ir::print_instruction(one.owner.get(), one.id) + ">";
      });
}

} // namespace

void bind_module(py::module_& core) {
  py::class_<ModuleBox>(core, "Module")
      .def_static("parse", &parse, py::arg("text"), py::arg("name"))
      .def_property_readonly("name", [](const ModuleBox& box) { return box.get().source.name(); })
      .def_property_readonly(
          "version", [](const ModuleBox& box) { return std::pair(box.get().version_major, box.get().version_minor); })
      .def_property_readonly("targets",
                             [](const ModuleBox& box) {
                               std::vector<std::string> words;
                               for (const Symbol word : box.get().targets)
                                 words.emplace_back(box.get().text(word));
                               return words;
                             })
      .def_property_readonly("functions", &functions_of)
      .def_property_readonly("text", [](const ModuleBox& box) { return ir::print(box.get()); });
  bind_function(core);
  bind_instruction(core);
  py::class_<ValueHandle>(core, "Value", "A register; in SSA form, a value with one definition.")
      .def_property_readonly("name", [](const ValueHandle& one) { return one.owner.get().value_name(one.id); })
      .def_property_readonly("type",
                             [](const ValueHandle& one) { return ir::spelling(one.owner.get().values[one.id].type); })
      .def("__eq__",
           [](const ValueHandle& one, const ValueHandle& other) {
             return one.id == other.id && one.owner.function == other.owner.function;
           })
      .def("__hash__", [](const ValueHandle& one) { return size_t{one.id.index()}; })
      .def("__repr__",
           [](const ValueHandle& one) { return "<ptxrewrite.Value " + one.owner.get().value_name(one.id) + ">"; });
  py::class_<OperandHandle>(core, "Operand", "An operand with all that is inside it.")
      .def_property_readonly("text", &text_of)
      .def_property_readonly(
          "value",
          [](const OperandHandle& one) -> py::object {
            if (!one.parts.front().is(ir::OperandKind::value)) return py::none();
            return py::cast(ValueHandle{one.owner, one.parts.front().as_value()});
          },
          "The register that it is, else None.")
      .def_property_readonly(
          "constant",
          [](const OperandHandle& one) -> py::object {
            if (!one.parts.front().is(ir::OperandKind::integer)) return py::none();
            return py::int_(one.parts.front().immediate);
          },
          "The integer that it is, else None.")
      .def_property_readonly("is_definition",
                             [](const OperandHandle& one) { return one.parts.front().is_definition(); })
      .def("__repr__", [](const OperandHandle& one) { return "<ptxrewrite.Operand " + text_of(one) + ">"; });
}

} // namespace ptxrewrite::python
