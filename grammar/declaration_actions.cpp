// Registers, variables and parameters.
#include "grammar/actions.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::grammar {

using namespace ir;

namespace {

bool is_declarable(ScalarType type) {
  switch (type) {
  case ScalarType::pred:
  case ScalarType::b8:
  case ScalarType::b16:
  case ScalarType::b32:
  case ScalarType::b64:
  case ScalarType::b128:
  case ScalarType::u8:
  case ScalarType::u16:
  case ScalarType::u32:
  case ScalarType::u64:
  case ScalarType::s8:
  case ScalarType::s16:
  case ScalarType::s32:
  case ScalarType::s64:
  case ScalarType::f16:
  case ScalarType::f16x2:
  case ScalarType::f32:
  case ScalarType::f64:
    return true;
  default:
    return type_kind(type) == TypeKind::opaque_handle;
  }
}

bool is_handle(ScalarType type) {
  return type_kind(type) == TypeKind::opaque_handle;
}

RegisterClass class_of(std::string_view prefix) {
  if (prefix == "%cr") return RegisterClass::coefficient;
  if (prefix == "%tr") return RegisterClass::thread_index;
  if (prefix == "%br") return RegisterClass::block_index;
  if (prefix == "%lr") return RegisterClass::linear;
  return RegisterClass::general;
}

} // namespace

void ReaderActions::begin_declaration() {
  declaration_ = {};
  declares_registers_ = false;
  register_text_.clear();
  operands_.clear();
  notes_.clear();
  // Initialisers are not operands of an instruction.
  mnemonic_resolved_ = true;
  unknown_instruction_ = false;
  form_ = nullptr;
}

void ReaderActions::declared_alignment(const Lexeme& number) {
  const uint32_t alignment = number32(number);
  if (!std::has_single_bit(alignment)) error(number.range, "an alignment must be a power of two");
  if (declaration_.pointer) {
    declaration_.attributes =
        intern(std::string(module_.text(declaration_.attributes)) + " .align " + std::string(text(number)));
    return;
  }
  if (declaration_.type != ScalarType::none) fail(number.range, ".align must stand before the type");
  declaration_.alignment = alignment;
  declaration_.range.end = number.range.end;
}

void ReaderActions::begin_attribute(const Lexeme& word) {
  attribute_ = word.range;
  declaration_.managed = false;
}

void ReaderActions::attribute_word(const Lexeme& word) {
  if (text(word) == ".managed")
    declaration_.managed = true;
  else if (text(word) != ".unified")
    fail(word.range, "unknown attribute " + quote(word.range));
}

void ReaderActions::end_attribute(const Lexeme& parenthesis) {
  attribute_.end = parenthesis.range.end;
  // Normalise blanks and comments.
  std::string normal;
  for (char c : text(attribute_))
    if (c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '\f')
      normal += c == ',' ? std::string(", ") : std::string(1, c);
  declaration_.attributes = intern(normal);
}

void ReaderActions::declared_attribute() {
  if (declaration_.type != ScalarType::none) fail(attribute_, ".attribute must stand before the type");
}

void ReaderActions::declared_space(const Lexeme& word) {
  std::string_view name = text(word);
  if (declaration_.pointer) {
    if (name == ".param" || name == ".reg" || name == ".tex")
      fail(word.range, "a pointer cannot point to " + std::string(name));
    declaration_.attributes = intern(std::string(module_.text(declaration_.attributes)) + " " + std::string(name));
    return;
  }
  if (declaration_.has_space) fail(word.range, "a second state space: " + quote(word.range));
  if (declaration_.type != ScalarType::none) fail(word.range, "the state space must stand before the type");
  declaration_.has_space = true;
  declaration_.space = *parse_state_space(name);
  if (declaration_.range.empty()) declaration_.range.begin = word.range.begin;
  declaration_.range.end = word.range.end;
}

void ReaderActions::declared_bank(const Lexeme& number) {
  declaration_.has_bank = true;
  declaration_.bank = number32(number, 10);
  if (version_at_least(2, 2)) error(number.range, "constant banks are not allowed from PTX 2.2 on");
}

void ReaderActions::declared_word(const Lexeme& word) {
  const std::string_view name = text(word);
  if (declaration_.type == ScalarType::none && declaration_.vector_width == 1 && (name == ".v2" || name == ".v4")) {
    declaration_.vector_width = name[2] == '2' ? 2 : 4;
    return;
  }
  if (name == ".ptr" && declaration_.type != ScalarType::none && !declaration_.pointer) {
    if (parameter_owner_ != Owner::entry_parameter)
      fail(word.range, ".ptr is allowed on parameters of entry functions only");
    declaration_.pointer = true;
    declaration_.attributes = intern(name);
    return;
  }
  std::optional<ScalarType> type = parse_type(name);
  if (type && is_handle(*type) && declaration_.pointer) { // .param .u64 .ptr .texref: OpenCL parameters
    declaration_.attributes = intern(std::string(module_.text(declaration_.attributes)) + " " + std::string(name));
    return;
  }
  if (!type || declaration_.type != ScalarType::none)
    fail(word.range, "unexpected " + quote(word.range) + " in a declaration");
  if (!is_declarable(*type))
    fail(word.range, "type " + std::string(name) + " cannot be declared; it is for instructions only");
  declaration_.type = *type;
  declaration_.range.end = word.range.end;
}

void ReaderActions::declared_name(const Lexeme& name) {
  if (declaration_.type == ScalarType::none)
    fail(name.range, "the declaration of " + quote(name.range) + " has no type");
  if (!declaration_.has_space) fail(name.range, "the declaration of " + quote(name.range) + " has no state space");
  declaration_.name = name.range;
  declaration_.has_count = false;
  declaration_.count = 0;
  declaration_.dimension_count = 0;
  declaration_.unsized = false;
  declaration_.has_initialiser = false;
  dimensions_.clear();
}

void ReaderActions::declared_count(const Lexeme& number) {
  constexpr uint64_t most = uint64_t{1} << 30; // ptxas runs out of memory before that
  declaration_.has_count = true;
  declaration_.count = number32(number, most);
}

void ReaderActions::dimension() {
  Constant size = finish_constant();
  dimension_given_ = true;
  if (size.is_float || (!size.is_unsigned && static_cast<int64_t>(size.integer) <= 0) || size.integer == 0)
    error(constant_range_, "an array's size must be a positive integer");
  dimensions_.push_back(size.integer);
}

void ReaderActions::end_dimension() {
  if (!dimension_given_) {
    if (declaration_.dimension_count > 0)
      error(declaration_.name, "only the first dimension of an array may be left open");
    declaration_.unsized = true;
    dimensions_.push_back(0);
  }
  ++declaration_.dimension_count;
}

void ReaderActions::begin_initialiser(const Lexeme& equal) {
  const StateSpace space = declaration_.space;
  if (space != StateSpace::global && space != StateSpace::constant)
    fail(equal.range, "variables in ." + std::string(spelling(space)) + " cannot have an initial value");
  if (linkage_ == Linkage::external) fail(equal.range, "an .extern variable cannot have an initial value");
  declaration_.has_initialiser = true;
  operands_.clear();
  notes_.clear();
}

void ReaderActions::end_initialiser() {}

void ReaderActions::end_declarator() {
  if (in_body_ && !reading_prototype_) {
    if (declaration_.space == StateSpace::reg)
      declare_registers();
    else
      declare_variable();
    return;
  }
  if (!function_ && declaration_.space == StateSpace::reg && parameter_owner_ == Owner::module) {
    if (version_at_least(3, 0)) fail(declaration_.name, "registers cannot be declared at module scope");
    declare_registers();
    is_verbatim_ = true;
    return;
  }
  declare_variable();
}

void ReaderActions::report_duplicate(SourceRange range, const Binding& other) {
  if (limit_reached()) return;
  Diagnostic diagnostic{Severity::error, range, "duplicate definition of " + quote(range), {}};
  LineColumn place = module_.source.locate(other.range.begin);
  diagnostic.notes.push_back("first defined at line " + std::to_string(place.line) + ", column " +
                             std::to_string(place.column));
  diagnostics_.add(std::move(diagnostic));
}

void ReaderActions::declare_registers() {
  const SourceRange range = declaration_.name;
  Variable as_variable;
  as_variable.type = declaration_.type;
  as_variable.vector_width = declaration_.vector_width;
  as_variable.space = StateSpace::reg;
  check_type(as_variable);
  if (declaration_.attributes) fail(range, "registers cannot have attributes");
  if (declaration_.dimension_count > 0) fail(range, "an array cannot be in registers");
  if (is_handle(declaration_.type)) fail(range, "texture, sampler and surface references cannot be in registers");
  Binding binding;
  binding.type = declaration_.type;
  binding.vector_width = declaration_.vector_width;
  binding.range = range;
  const std::string_view name = text(range);
  if (module_.hardware_form) binding.register_class = class_of(declaration_.has_count ? name : split_name(name).prefix);
  const Binding* clash = nullptr;
  if (declaration_.has_count) {
    binding.kind = NameKind::register_range;
    binding.count = declaration_.count;
    clash = names_.declare_range(intern(name), binding);
  } else {
    binding.kind = NameKind::register_;
    clash = names_.declare(intern(name), name, binding);
  }
  if (clash) report_duplicate(range, *clash);
  if (!declares_registers_) {
    declares_registers_ = true;
    register_text_ = ".reg ";
    if (declaration_.alignment) register_text_ += ".align " + std::to_string(declaration_.alignment) + " ";
    if (declaration_.vector_width > 1) register_text_ += declaration_.vector_width == 2 ? ".v2 " : ".v4 ";
    register_text_ += '.';
    register_text_ += spelling(declaration_.type);
    register_text_ += ' ';
  } else {
    register_text_ += ", ";
  }
  register_text_ += name;
  if (declaration_.has_count) register_text_ += "<" + std::to_string(declaration_.count) + ">";
}

void ReaderActions::end_local_declaration(const Lexeme& semicolon) {
  if (!declares_registers_) return;
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = intern(register_text_).index();
  append_marker(InstructionKind::declare_values, {declaration_.range.begin, semicolon.range.end}, {&operand, 1});
}

void ReaderActions::declare_variable() {
  const std::string_view name = text(declaration_.name);
  if (!declaration_.has_count) {
    add_variable(name, true);
    return;
  }
  // name<n> declares name0 ... name(n-1).
  constexpr uint32_t limit = 65536;
  if (declaration_.count > limit) fail(declaration_.name, "more than 65536 variables in one declaration");
  if (declaration_.has_initialiser) fail(declaration_.name, "name<n> cannot have an initial value");
  for (uint32_t i = 0; i < declaration_.count; ++i)
    add_variable(std::string(name) + std::to_string(i), i == 0);
}

void ReaderActions::add_variable(std::string_view variable_name, bool first) {
  Variable variable;
  variable.name = intern(variable_name);
  variable.space = declaration_.space;
  variable.type = declaration_.type;
  variable.vector_width = declaration_.vector_width;
  variable.linkage = function_ ? Linkage::none : linkage_;
  variable.is_array = declaration_.dimension_count > 0;
  variable.unsized = declaration_.unsized;
  variable.alignment = declaration_.alignment;
  variable.bank = declaration_.bank;
  variable.attributes = declaration_.attributes;
  variable.range = declaration_.name;
  variable.dimensions = dimension_pool().add(dimensions_);
  if (declaration_.has_initialiser) {
    variable.initialiser = initialiser_pool().add(operands_);
    for (const Operand& operand : operands_)
      if (operand.is(OperandKind::pair)) variable.byte_address_initialiser = true;
  }
  if (first) {
    check_type(variable);
    const bool is_local = in_body_ && !reading_prototype_;
    if (!is_local && parameter_owner_ != Owner::module)
      check_parameter(variable);
    else
      check_variable(variable);
  }
  Binding binding;
  binding.range = declaration_.name;
  const Binding* clash = nullptr;
  if (parameter_owner_ != Owner::module) {
    // A parameter. Those of a .callprototype are not visible as names; results are bound once the function is known.
    VariableId id = function_->variables.add(variable);
    signature_variables_.push_back(id);
    if (reading_prototype_ || variable_name == "_") return;
    if (parameter_owner_ == Owner::result) {
      unbound_results_.push_back(id);
      return;
    }
    bind_parameter(id);
    return;
  }
  if (in_body_) {
    VariableId id = function_->variables.add(variable);
    binding.kind = NameKind::local_variable;
    binding.index = id.index();
    clash = names_.declare(variable.name, variable_name, binding);
    Operand operand = Operand::symbol(SymbolRef::local_variable(id));
    append_marker(InstructionKind::declare_variable, declaration_.name, {&operand, 1});
  } else {
    require_header(declaration_.name);
    VariableId id = module_.variables.add(variable);
    binding.kind = NameKind::module_variable;
    binding.index = id.index();
    // An .extern declaration may precede or follow the definition.
    const Binding* earlier = names_.find_plain(variable_name);
    const bool declared_before =
        earlier && earlier->kind == NameKind::module_variable &&
        (module_.variables[VariableId(earlier->index)].linkage == Linkage::external || linkage_ == Linkage::external);
    if (declared_before)
      names_.rebind(variable.name, id.index());
    else
      clash = names_.declare(variable.name, variable_name, binding);
    module_.items.push_back({ItemKind::variable, id.index(), {}, item_});
  }
  if (clash) report_duplicate(declaration_.name, *clash);
}

// Makes a parameter visible in its function.
void ReaderActions::bind_parameter(VariableId id) {
  Variable& variable = function_->variables[id];
  Binding binding;
  binding.range = variable.range;
  if (variable.space == StateSpace::reg) {
    Value value;
    value.type = variable.type;
    value.vector_width = variable.vector_width;
    value.name = variable.name;
    variable.register_parameter = function_->values.add(value);
    binding.kind = NameKind::register_;
    binding.type = variable.type;
    binding.vector_width = variable.vector_width;
    binding.index = variable.register_parameter.index();
  } else {
    binding.kind = NameKind::local_variable;
    binding.index = id.index();
  }
  if (const Binding* clash = names_.declare(variable.name, module_.text(variable.name), binding))
    report_duplicate(variable.range, *clash);
}

void ReaderActions::check_type(const Variable& variable) {
  if (variable.type == ScalarType::pred && variable.space != StateSpace::reg)
    error(declaration_.name, "a predicate must be in .reg");
  if (bit_width(variable.type) * variable.vector_width > 128)
    error(declaration_.name, "a vector must not be larger than 128 bits");
  if (variable.type == ScalarType::pred && variable.vector_width > 1)
    error(declaration_.name, "predicates do not form vectors");
}

// Checks for sizes that ptxas rejects or silently reduces modulo 2^32.
void ReaderActions::check_size(const Variable& variable) {
  constexpr uint64_t largest_on_chip = INT32_MAX, largest = INT64_MAX;
  uint64_t bytes = bit_width(variable.type) / 8 * variable.vector_width;
  for (uint64_t dimension : dimensions_)
    if (dimension != 0 && __builtin_mul_overflow(bytes, dimension, &bytes)) bytes = UINT64_MAX;
  const bool on_chip = variable.space == StateSpace::constant || variable.space == StateSpace::shared;
  const uint64_t limit = on_chip ? largest_on_chip : largest;
  if (bytes > limit)
    error(declaration_.name, quote(declaration_.name) + " is larger than the " + std::to_string(limit) +
                                 " bytes that a variable in ." + std::string(spelling(variable.space)) + " may have");
}

void ReaderActions::check_variable(const Variable& variable) {
  const SourceRange range = declaration_.name;
  check_size(variable);
  const StateSpace space = variable.space;
  const bool local = in_body_;
  if (space == StateSpace::tex && (local || version_at_least(1, 5)))
    error(range, local ? "texture variables must be declared at module scope" : ".tex is not allowed from PTX 1.5 on");
  if (!local && space == StateSpace::param) error(range, "parameters cannot be declared at module scope");
  if (!local && space == StateSpace::local && version_at_least(3, 0))
    error(range, ".local variables cannot be declared at module scope");
  if (is_handle(variable.type)) {
    if (local || (space != StateSpace::global && space != StateSpace::tex))
      error(range, "texture, sampler and surface references must be .global at module scope or parameters of entries");
    else if (variable.type == ScalarType::samplerref && !texture_mode_independent_)
      error(range, ".samplerref needs .target texmode_independent");
  }
  if (variable.unsized && !declaration_.has_initialiser && linkage_ != Linkage::external)
    error(range, "only an .extern variable may have no size");
  if (variable.linkage == Linkage::common && space != StateSpace::global)
    error(linkage_range_, ".common is for .global variables");
  if (variable.attributes && declaration_.managed && space != StateSpace::global)
    error(attribute_, ".managed is for .global variables");
  if (space == StateSpace::param && (variable.vector_width > 1 || variable.type == ScalarType::f16x2))
    error(range, "this type cannot be in .param");
}

void ReaderActions::check_parameter(const Variable& variable) {
  const SourceRange range = declaration_.name;
  check_size(variable);
  const bool entry = parameter_owner_ == Owner::entry_parameter;
  const bool prototype = reading_prototype_;
  if (entry && variable.space != StateSpace::param) error(range, "parameters of an entry must be in .param");
  if (!entry && variable.space != StateSpace::param && variable.space != StateSpace::reg)
    error(range, "parameters must be in .param or .reg");
  if (!entry && !prototype && text(range) == "_") error(range, "'_' cannot name a parameter of a .func");
  if (variable.space == StateSpace::param) {
    if (variable.vector_width > 1 || variable.type == ScalarType::f16x2 || (!entry && is_handle(variable.type)))
      error(range, "this type cannot be in .param");
    if (!entry && variable.alignment > 128) error(range, "the alignment of a parameter must not exceed 128");
  } else if (variable.is_array) {
    error(range, "an array cannot be in registers");
  }
  if (variable.type == ScalarType::samplerref && entry && !texture_mode_independent_)
    error(range, ".samplerref needs .target texmode_independent");
  if (variable.unsized && entry) error(range, "an array parameter of an entry must have a size");
  if (variable.unsized && parameter_owner_ == Owner::result) error(range, "a result must have a size");
  if (!signature_variables_.empty() && function_->variables[signature_variables_.back()].unsized)
    error(range, "only the last parameter may have no size");
}

// ---------------------------------------------------------------- initialisers

Operand ReaderActions::initialiser_symbol(SourceRange range) {
  Names::Found found = names_.lookup(text(range));
  if (found.binding) {
    switch (found.binding->kind) {
    case NameKind::local_variable:
      return Operand::symbol(SymbolRef::local_variable(VariableId(found.binding->index)));
    case NameKind::module_variable:
      return Operand::symbol(SymbolRef::module_variable(VariableId(found.binding->index)));
    case NameKind::function:
      return Operand::symbol(SymbolRef::function(FunctionId(found.binding->index)));
    default:
      break;
    }
  }
  fail(range, "unknown symbol " + quote(range) + " in an initial value");
}

void ReaderActions::initialiser_name(const Lexeme& name) {
  // The next token decides whether it is a symbol, `generic` or a texture property.
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = intern(text(name)).index();
  Names::Found found = names_.lookup(text(name));
  const bool property = is_handle(declaration_.type);
  if (found.binding && found.binding->kind != NameKind::register_ && found.binding->kind != NameKind::register_range &&
      !property)
    operand = initialiser_symbol(name.range);
  else if (!property && text(name) != "generic")
    fail(name.range, "unknown symbol " + quote(name.range) + " in an initial value");
  push(operand, {name.range});
}

void ReaderActions::initialiser_generic(const Lexeme& name) {
  if (text(notes_.back().range) != "generic")
    fail(notes_.back().range, "expected 'generic', not " + quote(notes_.back().range));
  operands_.back() = initialiser_symbol(name.range);
  operands_.back().flags = operands_.back().flags | OperandFlag::generic_address;
  notes_.back().range = name.range;
}

void ReaderActions::initialiser_property() {
  if (!is_handle(declaration_.type))
    fail(notes_.back().range, "only texture, sampler and surface references have properties");
  begin_pair();
}

void ReaderActions::property_word(const Lexeme& word) {
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = intern(text(word)).index();
  static constexpr std::string_view known[] = {"nearest",   "linear",        "wrap",           "mirror",
                                               "clamp_ogl", "clamp_to_edge", "clamp_to_border"};
  const bool is_known = std::find(std::begin(known), std::end(known), text(word)) != std::end(known);
  if (!is_known) fail(word.range, "unknown property value " + quote(word.range));
  push(operand, {word.range});
}

void ReaderActions::initialiser_mask(const Lexeme& name) {
  begin_pair();
  // `generic` is not a reserved word: the next token decides whether it is a symbol.
  Operand operand;
  operand.kind = OperandKind::text;
  push(operand, {name.range});
}

void ReaderActions::end_initialiser_mask() {
  if (operands_.back().is(OperandKind::text)) operands_.back() = initialiser_symbol(notes_.back().range);
}

} // namespace ptxrewrite::grammar
