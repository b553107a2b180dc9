// Functions: signatures, header directives, bodies with their scopes, labels and blocks, and statements other than
// instructions.
#include "grammar/actions.h"

#include "ir/forms/composite.h"
#include "ir/forms/dac.h"
#include "ir/forms/registry.h"

#include <algorithm>

namespace ptxrewrite::grammar {

using namespace ir;

// ---------------------------------------------------------------- headers

void ReaderActions::begin_function(const Lexeme& word) {
  require_header(word.range);
  if (linkage_ == Linkage::common) fail(linkage_range_, ".common is for variables");
  function_id_ = module_.add_function();
  function_ = &module_.function(function_id_);
  function_->is_entry = text(word) == ".entry";
  function_->linkage = linkage_;
  function_->range = item_;
  function_->header_range = {item_.begin, word.range.end};
  unbound_results_.clear();
  provenance_ = 0;
  sums_ = 0;
}

void ReaderActions::function_attribute() {
  if (declaration_.managed) fail(attribute_, ".managed is for variables");
  function_->attributes = declaration_.attributes;
}

Prototype& ReaderActions::signature_being_read() {
  return reading_prototype_ ? prototype_ : function_->signature;
}

void ReaderActions::begin_results() {
  if (!reading_prototype_ && function_->is_entry) fail(function_->header_range, "an entry function has no results");
  signature_being_read().has_result_list = true;
  signature_variables_.clear();
  parameter_owner_ = Owner::result;
}

void ReaderActions::begin_parameters() {
  signature_being_read().has_parameter_list = true;
  signature_variables_.clear();
  parameter_owner_ = reading_prototype_    ? Owner::prototype_parameter
                     : function_->is_entry ? Owner::entry_parameter
                                           : Owner::function_parameter;
}

void ReaderActions::end_parameters(const Lexeme& parenthesis) {
  PoolSpan list = function_->variable_lists.add(signature_variables_);
  if (parameter_owner_ == Owner::result) {
    signature_being_read().results = list;
    if (signature_variables_.size() > 1)
      for (VariableId id : signature_variables_)
        if (function_->variables[id].space == StateSpace::param) {
          error(function_->variables[id].range, "several results must be in .reg");
          break;
        }
  } else {
    signature_being_read().parameters = list;
  }
  parameter_owner_ = Owner::module;
  if (!reading_prototype_) function_->header_range.end = parenthesis.range.end;
}

void ReaderActions::function_name(const Lexeme& name) {
  function_->name = intern(text(name));
  function_name_range_ = name.range;
  function_->header_range.end = name.range.end;
  declare_function(name.range);
  names_.begin_function(*function_);
  for (VariableId id : unbound_results_)
    bind_parameter(id);
}

void ReaderActions::declare_function(SourceRange name_range) {
  const Binding* earlier = names_.find_plain(text(name_range));
  if (earlier && earlier->kind != NameKind::function) {
    report_duplicate(name_range, *earlier);
    return;
  }
  if (earlier) return; // compared with its prototype when the signature is complete
  Binding binding;
  binding.kind = NameKind::function;
  binding.index = function_id_.index();
  binding.range = name_range;
  names_.declare(function_->name, text(name_range), binding);
}

void ReaderActions::check_against_prototype() {
  const Binding* earlier = names_.find_plain(module_.text(function_->name));
  if (!earlier || earlier->kind != NameKind::function || earlier->index == function_id_.index()) return;
  const Function& known = module_.function(FunctionId(earlier->index));
  if (known.has_body && function_->has_body) {
    report_duplicate(function_name_range_, *earlier);
    return;
  }
  if (known.is_entry != function_->is_entry)
    error(function_name_range_, quote(function_name_range_) + " was declared as the other of .entry and .func");
  if (known.signature.parameters.count != function_->signature.parameters.count ||
      known.signature.results.count != function_->signature.results.count)
    error(function_name_range_,
          "the prototypes of " + quote(function_name_range_) + " have different numbers of parameters");
  if (function_->has_body) names_.rebind(function_->name, function_id_.index());
}

void ReaderActions::header_directive(const Lexeme& word) {
  const std::string_view name = text(word);
  static constexpr std::string_view for_entries[] = {".maxnreg",         ".maxntid",        ".reqntid",
                                                     ".minnctapersm",    ".maxnctapersm",   ".reqnctapercluster",
                                                     ".explicitcluster", ".maxclusterrank", ".blocksareclusters",
                                                     ".pragma",          ".language",       ".minperctamemory"};
  static constexpr std::string_view for_functions[] = {".noreturn", ".abi_preserve", ".abi_preserve_control",
                                                       ".language"};
  const bool entry = !reading_prototype_ && function_->is_entry;
  const bool known =
      entry ? std::find(std::begin(for_entries), std::end(for_entries), name) != std::end(for_entries)
            : std::find(std::begin(for_functions), std::end(for_functions), name) != std::end(for_functions);
  if (!known) fail(word.range, "unexpected " + quote(word.range) + " in the header of a function");
  if (name == ".maxnctapersm" && version_at_least(2, 1))
    error(word.range, ".maxnctapersm is not allowed from PTX 2.1 on");
  warn_of_version(word.range, find_directive(name) ? find_directive(name)->version : std::string_view());
  if (name == ".noreturn") {
    if (!signature_being_read().results.empty()) error(word.range, ".noreturn on a function with results");
    for (const FunctionDirective& earlier : function_->directives)
      if (!reading_prototype_ && earlier.name) fail(word.range, ".noreturn must come before .abi_preserve");
  }
  if (reading_prototype_) {
    if (!trailing_.empty()) trailing_ += ' ';
    trailing_ += name;
    return;
  }
  FunctionDirective directive;
  directive.name = intern(name);
  function_->directives.push_back(directive);
  function_->header_range.end = word.range.end;
}

void ReaderActions::header_number(const Lexeme& number) {
  const uint32_t value = number32(number);
  if (reading_prototype_) {
    trailing_ += " " + std::to_string(value);
    return;
  }
  FunctionDirective& directive = function_->directives.back();
  const std::string_view name = module_.text(directive.name);
  const bool triple = name == ".maxntid" || name == ".reqntid" || name == ".reqnctapercluster";
  const bool none_allowed = name == ".explicitcluster" || name == ".blocksareclusters" || name == ".noreturn";
  if (name == ".language") return header_language(value, number.range);
  if (none_allowed || directive.count >= (triple ? 3 : 1))
    fail(number.range, "too many numbers for " + std::string(name));
  const bool zero_allowed = name.starts_with(".abi") || name == ".language" || name == ".minperctamemory";
  if (value == 0 && !zero_allowed) error(number.range, std::string(name) + " needs a positive number");
  directive.numbers[directive.count++] = value;
}

// The directive for the next value of a list: `.pragma "a", "b"` and `.language 3, 5` are two directives each.
FunctionDirective& ReaderActions::next_listed_directive() {
  if (function_->directives.back().text || function_->directives.back().count > 0) {
    FunctionDirective another;
    another.name = function_->directives.back().name;
    function_->directives.push_back(another);
  }
  return function_->directives.back();
}

void ReaderActions::header_language(uint32_t number, SourceRange range) {
  constexpr uint32_t last_language = 10; // "optix"
  if (number > last_language) error(range, ".language takes a number in [0..10]");
  FunctionDirective& directive = next_listed_directive();
  directive.numbers[directive.count++] = number;
}

void ReaderActions::header_string(const Lexeme& words) {
  // Language names, case-insensitive.
  static constexpr std::string_view languages[] = {"unknown", "ptx",           "nvvm",    "cuda c++", "cuda c++ tile",
                                                   "tile ir", "python-cutile", "fortran", "optix"};
  if (reading_prototype_) fail(words.range, "unexpected " + quote(words.range));
  std::string_view value = text(words);
  value = value.substr(1, value.size() - 2);
  const std::string_view name = module_.text(function_->directives.back().name);
  if (name == ".language") {
    std::string lower(value);
    for (char& c : lower)
      c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (std::find(std::begin(languages), std::end(languages), lower) == std::end(languages))
      error(words.range, "unknown language " + quote(words.range));
  } else if (name != ".pragma") {
    fail(words.range, std::string(name) + " takes no text");
  }
  next_listed_directive().text = intern(value);
}

void ReaderActions::check_header_directives() {
  bool maxntid = false, reqntid = false, cluster = false, rank = false, blocks_are_clusters = false;
  for (const FunctionDirective& directive : function_->directives) {
    const std::string_view name = module_.text(directive.name);
    maxntid |= name == ".maxntid";
    reqntid |= name == ".reqntid";
    cluster |= name == ".reqnctapercluster";
    rank |= name == ".maxclusterrank";
    blocks_are_clusters |= name == ".blocksareclusters";
    const bool needs_number =
        name != ".pragma" && name != ".noreturn" && name != ".explicitcluster" && name != ".blocksareclusters";
    if (needs_number && directive.count == 0 && !directive.text)
      error(function_->header_range, std::string(name) + " needs a number");
  }
  if (maxntid && reqntid) error(function_->header_range, ".maxntid and .reqntid exclude each other");
  if (cluster && rank) error(function_->header_range, ".reqnctapercluster and .maxclusterrank exclude each other");
  if (blocks_are_clusters && !(reqntid && cluster))
    error(function_->header_range, ".blocksareclusters needs .reqntid and .reqnctapercluster");
}

void ReaderActions::end_prototype(const Lexeme& semicolon) {
  function_->header_range.end = semicolon.range.end;
}

void ReaderActions::end_header() {
  if (in_body_) return;
  function_->range = function_->header_range;
  check_against_prototype();
  check_header_directives();
  close_function();
}

void ReaderActions::close_function() {
  if (function_->name) module_.items.push_back({ItemKind::function, function_id_.index(), {}, function_->range});
  names_.end_function();
  function_ = nullptr;
  body_ = nullptr;
  queues_.clear();
  in_body_ = false;
  reading_prototype_ = false;
  parameter_owner_ = Owner::module;
  scope_is_section_.clear();
  block_ = {};
}

// ---------------------------------------------------------------- bodies and scopes

void ReaderActions::begin_body(const Lexeme& brace) {
  function_->has_body = true;
  if (linkage_ == Linkage::external) error(linkage_range_, "an .extern function cannot have a body");
  check_against_prototype();
  check_header_directives();
  // Typical densities of compiled PTX. Reserving avoids copies as tables grow; untouched pages cost nothing.
  const uint32_t bytes = item_.end - brace.range.end;
  function_->instructions.reserve(bytes / 24 + 8);
  function_->operands.reserve(bytes / 8 + 16);
  function_->values.reserve(bytes / 48 + 8);
  in_body_ = true;
  names_.open_scope();
  block(); // the entry block has no label, so no branch leads to it
}

void ReaderActions::open_scope(const Lexeme& brace) {
  append_marker(InstructionKind::scope_begin, brace.range);
  names_.open_scope();
  scope_is_section_.push_back(false);
}

void ReaderActions::close_scope(const Lexeme& brace) {
  names_.close_scope(
      [this](const Names::Pending& pending, const Binding& binding) { resolve_pending(pending, binding); });
  if (scope_is_section_.empty()) {
    finish_body(brace);
    return;
  }
  const bool section = scope_is_section_.back();
  scope_is_section_.pop_back();
  if (section && body_) end_affine_stream();
  append_behind(section ? InstructionKind::section_end : InstructionKind::scope_end, brace.range);
}

void ReaderActions::finish_body(const Lexeme& brace) {
  function_->range = {item_.begin, brace.range.end};
  report_unresolved();
  connect_blocks();
  function_->source_instruction_count = provenance_;
  if (function_->affine_stream) function_->affine_stream->source_instruction_count = provenance_;
  if (module_.hardware_form && !diagnostics_.has_errors()) {
    check_forms(brace.range);
  }
  close_function();
}

// At the end of its scope, a name was found to be a label, a table or a prototype.
void ReaderActions::resolve_pending(const Names::Pending& pending, const Binding& binding) {
  Operand& operand = function_->operands.view(PoolSpan{pending.operand, 1})[0];
  using Wants = Names::Wants;
  bool fits = true;
  switch (binding.kind) {
  case NameKind::block:
    operand.kind = OperandKind::block;
    fits = pending.wants == Wants::anything || pending.wants == Wants::block;
    break;
  case NameKind::label_table:
    operand.kind = OperandKind::label_table;
    fits = pending.wants != Wants::block;
    break;
  case NameKind::prototype:
    operand.kind = OperandKind::prototype;
    fits = pending.wants == Wants::anything || pending.wants == Wants::call_table;
    break;
  case NameKind::local_variable:
    operand.kind = OperandKind::symbol;
    operand.id = SymbolRef::local_variable(VariableId(binding.index)).bits();
    fits = pending.wants == Wants::anything;
    break;
  default:
    fits = false;
    break;
  }
  if (binding.kind != NameKind::local_variable) operand.id = binding.index;
  if (!fits) error(pending.range, quote(pending.range) + " is not what is wanted here: a label was expected");
}

void ReaderActions::report_unresolved(size_t first_pending) {
  for (const Names::Pending& pending : names_.pending().subspan(first_pending)) {
    if (pending.resolved) continue;
    if (const Binding* binding = names_.find_plain(module_.text(pending.name));
        binding && pending.wants == Names::Wants::anything) {
      Operand& operand = function_->operands.view(PoolSpan{pending.operand, 1})[0];
      operand.kind = OperandKind::symbol;
      if (binding->kind == NameKind::function) {
        operand.id = SymbolRef::function(FunctionId(binding->index)).bits();
        continue;
      }
      if (binding->kind == NameKind::module_variable) {
        operand.id = SymbolRef::module_variable(VariableId(binding->index)).bits();
        continue;
      }
      if (binding->kind == NameKind::local_variable) {
        operand.id = SymbolRef::local_variable(VariableId(binding->index)).bits();
        continue;
      }
    }
    if (pending.wants == Names::Wants::anything) { // of an unknown instruction
      Operand& operand = function_->operands.view(PoolSpan{pending.operand, 1})[0];
      operand.kind = OperandKind::symbol;
      operand.id = SymbolRef::undeclared(pending.name).bits();
      continue;
    }
    error(pending.range, "unknown label " + quote(pending.range));
    if (limit_reached()) return;
  }
}

// ---------------------------------------------------------------- control-flow edges

void ReaderActions::connect_blocks() {
  if (diagnostics_.has_errors()) return; // operands may be missing
  Function& function = *function_;
  std::vector<EdgeId> edges;
  for (size_t i = 0; i < function.layout.size(); ++i) {
    const BlockId id = function.layout[i];
    const bool has_next = i + 1 < function.layout.size();
    bool falls = has_next;
    edges.clear();
    if (InstructionId last = function.terminator(id)) {
      const Instruction& instruction = function.instructions[last];
      const Form& form = function.form_of(last);
      falls = falls && (instruction.guard.valid() || form.opaque);
      if (form.effects.branch)
        for (const Operand& operand : function.operands.view(instruction.operands)) {
          if (operand.is(OperandKind::block)) edges.push_back(function.add_edge(id, operand.as_block()));
          if (operand.is(OperandKind::label_table)) {
            const LabelTable& table = function.label_tables[LabelTableId(operand.id)];
            for (const Operand& target : function.operands.view(table.operands))
              if (target.is(OperandKind::block)) edges.push_back(function.add_edge(id, target.as_block()));
          }
        }
    }
    if (falls) edges.push_back(function.add_edge(id, function.layout[i + 1]));
    function.set_successors(id, edges, falls);
  }
}

// ---------------------------------------------------------------- labels, label tables, prototypes

void ReaderActions::label_begins() {
  label_range_ = mnemonic_range_;
  label_names_table_ = false;
}

void ReaderActions::label_ends() {
  if (label_names_table_) return;
  const std::string_view name = text(label_range_);
  Symbol symbol = intern(name);
  block_ = function_->add_block(symbol);
  function_->place_block(block_);
  Binding binding;
  binding.kind = NameKind::block;
  binding.index = block_.index();
  binding.range = label_range_;
  if (const Binding* clash = names_.declare(symbol, name, binding)) report_duplicate(label_range_, *clash);
}

void ReaderActions::begin_label_table(const Lexeme&, bool call_targets) {
  label_names_table_ = true;
  operands_.clear();
  notes_.clear();
  pending_.clear();
  prototype_ = {};
  LabelTable table;
  table.label = intern(text(label_range_));
  table.is_call_targets = call_targets;
  Binding binding;
  binding.kind = NameKind::label_table;
  binding.index = function_->label_tables.add(table).index();
  binding.range = label_range_;
  if (const Binding* clash = names_.declare(table.label, text(label_range_), binding))
    report_duplicate(label_range_, *clash);
}

void ReaderActions::branch_target(const Lexeme& name) {
  Operand operand;
  operand.kind = OperandKind::block;
  operand.id = BlockId::invalid_index;
  if (text(name) == text(label_range_)) {
    // A table may name its own label: this position becomes a block.
    block_ = function_->add_block(module_.intern(std::string(text(name)) + "$here"));
    function_->place_block(block_);
    operand.id = block_.index();
  } else {
    pending_.push_back({static_cast<uint32_t>(operands_.size()), intern(text(name)), name.range, Names::Wants::block});
  }
  push(operand, {name.range});
}

void ReaderActions::branch_target_count(const Lexeme& number) {
  // PREFIX<n>: PREFIX0 ... PREFIX(n-1)
  constexpr uint32_t limit = 1 << 20;
  const uint32_t count = number32(number, limit);
  const LocalPending prefix = pending_.empty() ? LocalPending{} : pending_.back();
  if (pending_.empty() || prefix.operand + 1 != operands_.size())
    fail(number.range, "a label prefix was expected before '<'");
  const std::string name(module_.text(prefix.name));
  pending_.pop_back();
  operands_.pop_back();
  notes_.pop_back();
  if (uint64_t{count} * 4 > item_.end - item_.begin) fail(number.range, "more labels than this function can have");
  for (uint32_t i = 0; i < count; ++i) {
    Operand operand;
    operand.kind = OperandKind::block;
    operand.id = BlockId::invalid_index;
    pending_.push_back({static_cast<uint32_t>(operands_.size()), module_.intern(name + std::to_string(i)), prefix.range,
                        Names::Wants::block});
    push(operand, {prefix.range});
  }
}

void ReaderActions::call_target(const Lexeme& name) {
  Names::Found found = names_.lookup(text(name));
  if (!found.binding || found.binding->kind != NameKind::function)
    fail(name.range, "unknown function " + quote(name.range));
  push(Operand::symbol(SymbolRef::function(FunctionId(found.binding->index))), {name.range});
}

void ReaderActions::end_label_table(const Lexeme& semicolon) {
  const LabelTableId id(static_cast<uint32_t>(function_->label_tables.size() - 1));
  PoolSpan span = function_->operands.add(operands_);
  function_->label_tables[id].operands = span;
  flush_pending_operands(span.offset);
  Operand operand;
  operand.kind = OperandKind::label_table;
  operand.id = id.index();
  append_marker(InstructionKind::label_table, {label_range_.begin, semicolon.range.end}, {&operand, 1});
}

void ReaderActions::begin_call_prototype(const Lexeme&) {
  label_names_table_ = true;
  prototype_ = {};
  prototype_.label = intern(text(label_range_));
  trailing_.clear();
  reading_prototype_ = true;
}

void ReaderActions::end_call_prototype(const Lexeme& semicolon) {
  reading_prototype_ = false;
  if (!trailing_.empty()) prototype_.trailing = intern(trailing_);
  PrototypeId id = function_->prototypes.add(prototype_);
  Binding binding;
  binding.kind = NameKind::prototype;
  binding.index = id.index();
  binding.range = label_range_;
  if (const Binding* clash = names_.declare(prototype_.label, text(label_range_), binding))
    report_duplicate(label_range_, *clash);
  Operand operand;
  operand.kind = OperandKind::prototype;
  operand.id = id.index();
  append_marker(InstructionKind::prototype, {label_range_.begin, semicolon.range.end}, {&operand, 1});
}

// ---------------------------------------------------------------- .loc and .pragma

void ReaderActions::begin_location(const Lexeme& word) {
  statement_ = word.range;
  operands_.clear();
  notes_.clear();
}

void ReaderActions::begin_intermediate_location(const Lexeme& word) {
  begin_location(word);
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = intern(text(word)).index();
  push(operand, {word.range});
}

void ReaderActions::location_number(const Lexeme& number) {
  push(Operand::integer(number32(number)), {number.range});
  statement_.end = number.range.end;
}

void ReaderActions::location_word(const Lexeme& word, std::string_view expected) {
  if (text(word) != expected) fail(word.range, "expected '" + std::string(expected) + "', not " + quote(word.range));
}

void ReaderActions::location_label(const Lexeme& name) {
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = intern(text(name)).index();
  push(operand, {name.range});
}

void ReaderActions::location_label_offset(const Lexeme& number) {
  Operand& label = operands_.back();
  std::string with_offset(module_.text(Symbol(label.id)));
  with_offset += "+" + std::string(text(number));
  label.id = module_.intern(with_offset).index();
}

void ReaderActions::end_location() {
  append_marker(InstructionKind::location, statement_, operands_);
}

void ReaderActions::begin_pragma(const Lexeme& word) {
  statement_ = word.range;
  operands_.clear();
  notes_.clear();
}

void ReaderActions::pragma_string(const Lexeme& words) {
  std::string_view pragma = text(words);
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = module_.intern(pragma.substr(1, pragma.size() - 2)).index();
  push(operand, {words.range});
}

void ReaderActions::end_pragma(const Lexeme& semicolon) {
  append_marker(InstructionKind::pragma, {statement_.begin, semicolon.range.end}, operands_);
}

// ---------------------------------------------------------------- hardware forms

void ReaderActions::begin_hardware_section(const Lexeme& word) {
  if (!module_.hardware_form) fail(word.range, quote(word.range) + " needs the first line `//@ ptxrewrite hardware 1`");
  statement_ = word.range;
}

void ReaderActions::open_hardware_section(const Lexeme& brace) {
  if (!scope_is_section_.empty()) fail(statement_, "a hardware section cannot stand inside braces");
  const std::string_view word = text(statement_);
  SectionKind kind = word == ".r2d2.coefficient" ? SectionKind::r2d2_coefficient
                     : word == ".r2d2.thread"    ? SectionKind::r2d2_thread
                     : word == ".r2d2.block"     ? SectionKind::r2d2_block
                                                 : SectionKind::dac_affine;
  Operand operand = Operand::integer(static_cast<int64_t>(kind));
  append_marker(InstructionKind::section_begin, {statement_.begin, brace.range.end}, {&operand, 1});
  scope_is_section_.push_back(true);
  if (kind == SectionKind::dac_affine)
    begin_affine_stream(statement_);
  else
    names_.open_scope();
}

// The text up to the closing brace is read into a function of its own.
void ReaderActions::begin_affine_stream(SourceRange range) {
  if (function_->affine_stream) error(range, "the kernel has an affine stream already");
  function_->affine_stream = OwnedFunction(make_affine_stream(*function_));
  body_ = function_;
  body_block_ = block_;
  first_stream_pending_ = names_.pending().size();
  function_ = body_->affine_stream.get();
  function_->range = range;
  names_.enter_stream(*function_);
  block_ = function_->entry();
}

void ReaderActions::end_affine_stream() {
  report_unresolved(first_stream_pending_);
  connect_blocks();
  names_.leave_stream(*body_, first_stream_pending_);
  queues_.clear();
  function_ = body_;
  body_ = nullptr;
  block_ = body_block_;
}

void ReaderActions::check_forms(SourceRange end) {
  for (const auto& [rule, finding] : ir::check_forms(*function_)) {
    const Function& stream = finding.in_affine_stream ? *function_->affine_stream : *function_;
    error(finding.instruction ? stream.instructions[finding.instruction].range : end, finding.message);
  }
}

void ReaderActions::begin_linear_row(const Lexeme& word) {
  if (!module_.hardware_form) fail(word.range, quote(word.range) + " needs the first line `//@ ptxrewrite hardware 1`");
  statement_ = word.range;
  operands_.clear();
  notes_.clear();
}

void ReaderActions::linear_name(const Lexeme& name) {
  Names::Found found = names_.lookup(text(name));
  if (!found.value || found.binding->register_class != RegisterClass::linear)
    fail(name.range, quote(name.range) + " is not a declared %lr register");
  push(Operand::definition(found.value), {name.range});
}

void ReaderActions::linear_part(const Lexeme& name) {
  Names::Found found = names_.lookup(text(name));
  const RegisterClass wanted = operands_.size() == 1 ? RegisterClass::thread_index : RegisterClass::block_index;
  if (!found.value || found.binding->register_class != wanted)
    fail(name.range, quote(name.range) + " is not a declared " + (operands_.size() == 1 ? "%tr" : "%br") + " register");
  push(Operand::value(found.value), {name.range});
}

void ReaderActions::linear_zero(const Lexeme& number) {
  if (parse_integer(text(number)).value != 0) fail(number.range, "a part is a register or 0");
  push(Operand::integer(0), {number.range});
}

void ReaderActions::end_linear_row(const Lexeme& semicolon) {
  append_marker(InstructionKind::linear_row, {statement_.begin, semicolon.range.end}, operands_);
}

} // namespace ptxrewrite::grammar
