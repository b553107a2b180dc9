// The builder, by which passes written in Python change functions in SSA form.
#include "python/core/errors.h"
#include "python/core/handles.h"

#include "ir/core/builder.h"
#include "ir/core/operand_summary.h"

#include <pybind11/stl.h>

#include <optional>

namespace ptxrewrite::python {

namespace py = pybind11;

namespace {

class BuilderHandle {
public:
  explicit BuilderHandle(FunctionHandle function) : function_(std::move(function)), builder_(function_.get()) {
    if (!function_.get().is_ssa) raise("only functions in SSA form can be edited: in a pass, by Module.apply(pass)");
  }

  BuilderHandle& before(const InstructionHandle& position) {
    check(position);
    builder_.before(position.id).standing_for(position.id);
    placed_ = true;
    return *this;
  }
  BuilderHandle& after(const InstructionHandle& position) {
    check(position);
    if (function_.get().terminator(position.get().block) == position.id)
      raise("no instruction can follow the end of a block");
    builder_.after(position.id).standing_for(position.id);
    placed_ = true;
    return *this;
  }
  BuilderHandle& guarded_by(const ValueHandle& predicate, bool negated) {
    check(predicate);
    if (function_.get().values[predicate.id].type != ir::ScalarType::pred) raise("a guard is a predicate");
    builder_.guarded_by(predicate.id, negated);
    guarded_ = true;
    return *this;
  }
  BuilderHandle& unguarded() {
    builder_.unguarded();
    guarded_ = false;
    return *this;
  }
  ValueHandle new_value(const std::string& type, const std::string& hint) {
    const std::optional<ir::ScalarType> parsed = ir::parse_type(type);
    if (!parsed || *parsed == ir::ScalarType::none) raise("there is no type '" + type + "'");
    (void)function_.get();
    return {function_, builder_.new_value(*parsed, hint)};
  }
  InstructionHandle emit(const std::string& mnemonic, const py::sequence& operands);
  ValueHandle emit_value(const std::string& mnemonic, const std::string& type, const py::sequence& sources) {
    ValueHandle result = new_value(type, "%v");
    py::list operands;
    operands.append(result);
    for (const py::handle source : sources)
      operands.append(source);
    emit(mnemonic, operands);
    return result;
  }

private:
  template <class Handle> void check(const Handle& handle) const {
    if (&handle.owner.get() != &function_.get()) raise("it belongs to another function");
    if constexpr (std::is_same_v<Handle, InstructionHandle>) (void)handle.get();
  }
  void append(std::vector<ir::Operand>& out, py::handle given, bool is_definition) const;
  void append_old_values(std::vector<ir::Operand>& list);

  FunctionHandle function_;
  ir::Builder builder_;
  bool placed_ = false;
  bool guarded_ = false;
};

// Accepts registers, operands of other instructions, and integers.
void BuilderHandle::append(std::vector<ir::Operand>& out, py::handle given, bool is_definition) const {
  if (py::isinstance<ValueHandle>(given)) {
    const auto& value = given.cast<const ValueHandle&>();
    check(value);
    out.push_back(is_definition ? ir::Operand::definition(value.id) : ir::Operand::value(value.id));
  } else if (py::isinstance<OperandHandle>(given)) {
    const auto& operand = given.cast<const OperandHandle&>();
    if (operand.owner.lease) check(operand);
    if (operand.parts.front().is_definition() != is_definition)
      raise(is_definition ? "a result has to be a register that is written"
                          : "a source has to be an operand that is read");
    out.insert(out.end(), operand.parts.begin(), operand.parts.end());
  } else if (py::isinstance<py::int_>(given) && !is_definition) {
    out.push_back(ir::Operand::integer(given.cast<int64_t>()));
  } else {
    raise(is_definition ? "a result has to be a Value" : "a source has to be a Value, an Operand or an int");
  }
}

// In lanes where the guard is false, the results of a guarded instruction are undefined.
void BuilderHandle::append_old_values(std::vector<ir::Operand>& list) {
  if (!guarded_) return;
  ir::Function& function = function_.get();
  for (size_t i = 0, count = list.size(); i < count; ++i) {
    if (!list[i].is(ir::OperandKind::value) || !list[i].is_definition()) continue;
    ir::Value undefined;
    undefined.type = function.values[list[i].as_value()].type;
    undefined.is_undefined = true;
    list.push_back(ir::Operand::value(function.add_value(undefined)));
    list.back().flags = ir::OperandFlag::old_value;
  }
}

InstructionHandle BuilderHandle::emit(const std::string& mnemonic, const py::sequence& operands) {
  ir::Function& function = function_.get();
  if (!placed_) raise("a place is missing: call before(instruction) or after(instruction) first");
  const Result<ir::FormId> form_id = ir::resolve_form(mnemonic);
  if (!form_id) raise(form_id.error().message);
  const ir::Form& form = ir::form(*form_id);
  if (form.opaque) raise("there is no instruction '" + mnemonic + "'");
  if (form.effects.transfers_control()) raise("'" + mnemonic + "' transfers control: control flow cannot be edited");
  std::vector<ir::Operand> list;
  size_t at = 0;
  for (const py::handle given : operands)
    append(list, given, at++ < form.definitions);
  ir::OperandSummaries summaries;
  if (const auto wrong = ir::check_operands(form, summaries.of(function, form, list)))
    raise("'" + mnemonic + "': " + wrong->message);
  append_old_values(list);
  return {function_, builder_.emit(mnemonic, list)};
}

// Replaces all inputs of an instruction; its results stay the same.
void set_operands(const InstructionHandle& handle, const std::vector<OperandHandle>& operands) {
  (void)handle.get();
  ir::Function& function = handle.owner.get();
  if (!function.is_ssa) raise("only functions in SSA form can be edited: in a pass, by Module.apply(pass)");
  const ir::Form& form = function.form_of(handle.id);
  std::vector<ir::Operand> list;
  for (const OperandHandle& operand : operands) {
    if (operand.owner.lease && &operand.owner.get() != &function) raise("an operand belongs to another function");
    list.insert(list.end(), operand.parts.begin(), operand.parts.end());
  }
  ir::OperandSummaries summaries;
  if (const auto wrong = ir::check_operands(form, summaries.of(function, form, list)))
    raise("'" + std::string(form.mnemonic) + "': " + wrong->message);
  for (const ir::Operand& old : std::as_const(function).operands_of(handle.id))
    if (old.has(ir::OperandFlag::old_value)) list.push_back(old);
  function.set_operands(handle.id, list);
}

void remove(const FunctionHandle& handle, const InstructionHandle& instruction) {
  ir::Function& function = handle.get();
  if (&instruction.owner.get() != &function) raise("the instruction belongs to another function");
  if (!function.is_ssa) raise("only functions in SSA form can be edited: in a pass, by Module.apply(pass)");
  (void)instruction.get();
  if (function.form_of(instruction.id).effects.transfers_control())
    raise("control flow cannot be edited: the instruction ends a block");
  function.remove(instruction.id);
}

OperandHandle operand_of(const py::object& given) {
  if (py::isinstance<OperandHandle>(given)) return given.cast<OperandHandle>();
  if (py::isinstance<ValueHandle>(given)) {
    const auto value = given.cast<ValueHandle>();
    return {value.owner, {ir::Operand::value(value.id)}};
  }
  return {{}, {ir::Operand::integer(given.cast<int64_t>())}};
}

} // namespace

void bind_builder(py::module_& core) {
  py::class_<BuilderHandle>(core, "Builder", "Makes instructions at a place in a function in SSA form.")
      .def(py::init<FunctionHandle>(), py::arg("function"))
      .def("before", &BuilderHandle::before, py::arg("instruction"), py::return_value_policy::reference_internal)
      .def("after", &BuilderHandle::after, py::arg("instruction"), py::return_value_policy::reference_internal)
      .def("guarded_by", &BuilderHandle::guarded_by, py::arg("predicate"), py::arg("negated") = false,
           py::return_value_policy::reference_internal)
      .def("unguarded", &BuilderHandle::unguarded, py::return_value_policy::reference_internal)
      .def("new_value", &BuilderHandle::new_value, py::arg("type"), py::arg("hint") = "%v")
      .def("emit", &BuilderHandle::emit, py::arg("mnemonic"), py::arg("operands"))
      .def("emit_value", &BuilderHandle::emit_value, py::arg("mnemonic"), py::arg("type"), py::arg("sources"));
  core.def("operand", &operand_of, py::arg("of"), "A register or a whole number as an operand that is read.");
  core.def("set_operands", &set_operands, py::arg("instruction"), py::arg("operands"));
  core.def("remove", &remove, py::arg("function"), py::arg("instruction"));
}

} // namespace ptxrewrite::python
