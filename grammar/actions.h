// The parser's actions: they fill the tables of ir::Module and ir::Function directly and report errors. One method per
// position in PtxParser.g4, called in text order. Independent of ANTLR.
//
// Errors: `error` records a diagnostic and reading continues; `fail` also abandons the current statement (or item) by
// throwing StatementError, which never leaves this folder.
#pragma once

#include "grammar/constant.h"
#include "grammar/lexeme.h"
#include "grammar/names.h"
#include "grammar/reader.h"
#include "ir/core/module.h"
#include "ir/core/operand_summary.h"

#include <bitset>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace ptxrewrite::grammar {

struct StatementError {}; // its diagnostic has been recorded

class ReaderActions {
public:
  ReaderActions(ir::Module& module, Diagnostics& diagnostics, const ReadOptions& options);

  // ---- called by the reader's loop (actions.cpp)
  void begin_item(SourceRange item);
  void end_item(uint32_t end); // after the item's last token
  void annotation_item(SourceRange comment);
  void annotations(std::span<const SourceRange> comments);
  void abandon_item(); // the item is malformed; closes its function, if any
  void abandon_statement();
  // Called if the statement could not be parsed. If its instruction is an unknown one, keeps its operands as text up to
  // the semicolon at the end of `operand_text` and returns true.
  bool salvage_unknown_instruction(SourceRange operand_text);
  bool may_salvage() const { return unknown_instruction_; }
  uint32_t statement_begin() const { return statement_.begin; }
  uint32_t mnemonic_end() const { return mnemonic_range_.end; }
  bool in_body() const { return in_body_; }
  bool limit_reached() const { return diagnostics_.error_count() >= options_.error_limit; }
  void error(SourceRange range, std::string message);
  [[noreturn]] void fail(SourceRange range, std::string message);
  std::string quote(SourceRange range) const; // the text in quotes, shortened if long

  // ---- items (module_actions.cpp)
  void begin_version(const Lexeme& word);
  void version(const Lexeme& number);
  void target(const Lexeme& word);
  void address_size(const Lexeme& number);
  void begin_file(const Lexeme& word);
  void verbatim();
  void alias_name(const Lexeme& name);
  void alias_target(const Lexeme& name);
  void module_pragma(const Lexeme& text);
  void dwarf(const Lexeme& line);
  // Returns true if the item's contents are not parsed (is_raw_section), after storing it as text.
  bool raw_section(SourceRange item);
  void linkage(const Lexeme& word);
  void section_word(const Lexeme& word);
  void section_minus() { section_minus_ = true; }
  void section_number(const Lexeme& number);
  void end_module_variables();

  // ---- functions (function_actions.cpp)
  void begin_function(const Lexeme& word);
  void function_attribute();
  void begin_results();
  void begin_parameters();
  void end_parameters(const Lexeme& parenthesis);
  void function_name(const Lexeme& name);
  void header_directive(const Lexeme& word);
  void header_number(const Lexeme& number);
  void header_string(const Lexeme& text);
  void header_language(uint32_t number, SourceRange range);
  void end_prototype(const Lexeme& semicolon);
  void end_header();
  void begin_body(const Lexeme& brace);
  void open_scope(const Lexeme& brace);
  void close_scope(const Lexeme& brace);
  void label_begins();
  void label_ends();
  void begin_label_table(const Lexeme& word, bool call_targets);
  void branch_target(const Lexeme& name);
  void branch_target_count(const Lexeme& number);
  void call_target(const Lexeme& name);
  void end_label_table(const Lexeme& semicolon);
  void begin_call_prototype(const Lexeme& word);
  void end_call_prototype(const Lexeme& semicolon);
  void begin_location(const Lexeme& word);
  void begin_intermediate_location(const Lexeme& word);
  void location_number(const Lexeme& number);
  void location_word(const Lexeme& word, std::string_view expected);
  void location_label(const Lexeme& name);
  void location_label_offset(const Lexeme& number);
  void end_location();
  void begin_pragma(const Lexeme& word);
  void pragma_string(const Lexeme& text);
  void end_pragma(const Lexeme& semicolon);
  void begin_hardware_section(const Lexeme& word);
  void open_hardware_section(const Lexeme& brace);
  void begin_linear_row(const Lexeme& word);
  void linear_name(const Lexeme& name);
  void linear_part(const Lexeme& name);
  void linear_zero(const Lexeme& number);
  void end_linear_row(const Lexeme& semicolon);

  // ---- declarations (declaration_actions.cpp)
  void begin_declaration();
  void declared_alignment(const Lexeme& number);
  void begin_attribute(const Lexeme& word);
  void attribute_word(const Lexeme& word);
  void end_attribute(const Lexeme& parenthesis);
  void declared_attribute();
  void declared_space(const Lexeme& word);
  void declared_bank(const Lexeme& number);
  void declared_word(const Lexeme& word);
  void declared_name(const Lexeme& name);
  void declared_count(const Lexeme& number);
  void begin_dimension() { dimension_given_ = false; }
  void dimension();
  void end_dimension();
  void begin_initialiser(const Lexeme& equal);
  void end_initialiser();
  void end_declarator();
  void end_local_declaration(const Lexeme& semicolon);
  void initialiser_name(const Lexeme& name);
  void initialiser_generic(const Lexeme& name);
  void initialiser_property();
  void property_word(const Lexeme& word);
  void initialiser_mask(const Lexeme& name);
  void end_initialiser_mask();

  // ---- instructions (instruction_actions.cpp)
  void begin_statement(const Lexeme& word);
  void begin_guard(const Lexeme& at);
  void negate_guard() { guard_negated_ = true; }
  void guard(const Lexeme& name);
  void queue_guard(const Lexeme& name);
  void queue_number(const Lexeme& number);
  void guarded_opcode(const Lexeme& word);
  void modifier(const Lexeme& word);
  void end_instruction(const Lexeme& semicolon);

  // ---- operands (operand_actions.cpp)
  void name(const Lexeme& name);
  void selector(const Lexeme& word);
  void sink(const Lexeme& underscore);
  void integer(const Lexeme& literal);
  void decimal(const Lexeme& literal);
  void float_bits(const Lexeme& literal);
  void sign(const Lexeme& sign);
  void signed_name(const Lexeme& name);
  void signed_constant();
  void symbol_offset();
  void begin_pair();
  void end_pair(const Lexeme& second);
  void begin_vector(const Lexeme& brace);
  void end_vector(const Lexeme& brace);
  void begin_list(const Lexeme& parenthesis);
  void end_list(const Lexeme& parenthesis);
  void begin_cast(const Lexeme& type);
  void begin_address(const Lexeme& bracket);
  void address_name(const Lexeme& name);
  void queue_address(const Lexeme& number);
  void begin_index(const Lexeme& bracket);
  void end_address(const Lexeme& bracket);
  void address_suffix(const Lexeme& word);
  void address_offset(const Lexeme& literal);
  void begin_offset_tail();
  void address_constant();
  void second_base(const Lexeme& name);
  void immediate_base();

  // ---- constant expressions (operand_actions.cpp)
  void begin_constant();
  void begin_constant_tail(); // the previous operand is the first term
  void constant_integer(const Lexeme& literal);
  void constant_decimal(const Lexeme& literal);
  void constant_warp_size(const Lexeme& word);
  void constant_prefix(const Lexeme& op);
  void constant_operator(const Lexeme& op);
  void constant_open(const Lexeme& parenthesis);
  void constant_close() { constants_.close(); }
  void constant_cast(const Lexeme& type);
  void constant_operand(); // the expression is an operand

private:
  // Properties of an operand in addition to those in the IR.
  struct Note {
    SourceRange range;
    ir::ScalarType type = ir::ScalarType::none;
    uint8_t vector_width = 1;
    bool minus = false;
    bool hardware = false;
    bool is_unsigned = false; // integer constants
  };
  // A name to be resolved at the end of its scope; `operand` is relative to the instruction's first operand.
  struct LocalPending {
    uint32_t operand = 0;
    Symbol name;
    SourceRange range;
    Names::Wants wants = Names::Wants::anything;
  };
  enum class Owner : uint8_t { module, body, entry_parameter, function_parameter, result, prototype_parameter };
  struct Declaration {
    ir::StateSpace space = ir::StateSpace::none;
    bool has_space = false;
    ir::ScalarType type = ir::ScalarType::none;
    uint8_t vector_width = 1;
    uint32_t alignment = 0;
    uint32_t bank = 0;
    bool has_bank = false;
    bool managed = false;
    bool pointer = false; // .ptr has been read: the rest describes the pointee
    Symbol attributes;
    SourceRange range; // first to last word
    // of the declarator
    SourceRange name;
    bool has_count = false;
    uint32_t count = 0;
    uint32_t dimension_count = 0;
    bool unsized = false;
    bool has_initialiser = false;
  };

  std::string_view text(SourceRange range) const { return source_.substr(range.begin, range.end - range.begin); }
  std::string_view text(const Lexeme& lexeme) const { return text(lexeme.range); }
  Symbol intern(std::string_view words) { return names_.intern(words); }
  bool version_at_least(unsigned major, unsigned minor) const {
    return module_.version_major > major || (module_.version_major == major && module_.version_minor >= minor);
  }
  uint32_t number32(const Lexeme& literal, uint64_t limit = UINT32_MAX);
  void require_header(SourceRange range);

  // functions
  ir::FunctionId new_function();
  void declare_function(SourceRange name_range);
  void check_against_prototype();
  void check_signature(SourceRange range, const ir::Prototype& signature, bool entry);
  void check_header_directives();
  void finish_body(const Lexeme& brace);
  void resolve_pending(const Names::Pending& pending, const Binding& binding);
  void report_unresolved(size_t first_pending = 0);
  void connect_blocks();
  void close_function();
  void begin_affine_stream(SourceRange range);
  void end_affine_stream();
  void check_forms(SourceRange end);
  ir::Prototype& signature_being_read();
  ir::BlockId block();
  ir::InstructionId append(ir::Instruction instruction, std::span<const ir::Operand> operands);
  ir::InstructionId append_marker(ir::InstructionKind kind, SourceRange range,
                                  std::span<const ir::Operand> operands = {});
  void append_behind(ir::InstructionKind kind, SourceRange range, std::span<const ir::Operand> operands = {});
  void flush_pending_operands(uint32_t first_operand);

  // declarations
  void check_type(const ir::Variable& variable);
  void check_variable(const ir::Variable& variable);
  void check_size(const ir::Variable& variable);
  void check_parameter(const ir::Variable& variable);
  void declare_registers();
  void declare_variable();
  void add_variable(std::string_view variable_name, bool first);
  void bind_parameter(ir::VariableId id);
  void report_duplicate(SourceRange range, const Binding& other);
  SpanPool<uint64_t>& dimension_pool() { return function_ ? function_->dimensions : module_.dimensions; }
  SpanPool<ir::Operand>& initialiser_pool() { return function_ ? function_->initialisers : module_.initialisers; }
  ir::Operand initialiser_symbol(SourceRange range);

  // instructions
  void start_instruction(SourceRange begin, SourceRange mnemonic);
  void resolve_mnemonic();
  void warn_of(const ir::Form& form);
  void warn_of_operands(std::span<const ir::OperandSummary> operands);
  std::string_view target() const; // the last one with instructions, or empty
  void warn_not_available(std::string message);
  // `since`: first version, "8.0" or "8.0, sm_90", of the directive or special register at `range`.
  void warn_of_version(SourceRange range, std::string_view since);
  void warn_of_target(SourceRange range, std::string_view first);
  ir::FunctionDirective& next_listed_directive();
  void check_own_memory(SourceRange range, ir::SpecialRegister special);
  std::string_view mnemonic() const { return split_mnemonic_.empty() ? text(mnemonic_range_) : split_mnemonic_; }
  void mark_definitions(unsigned count);
  void check_negations();
  void check_call();
  void emit_sums();
  void check_store_to_parameter();
  size_t top_level_operand(int number) const;

  // operands
  void before_operand() {
    if (!mnemonic_resolved_) resolve_mnemonic();
  }
  void push(ir::Operand operand, Note note) {
    last_operand_ = static_cast<uint32_t>(operands_.size());
    operands_.push_back(operand);
    notes_.push_back(note);
  }
  void push_name(SourceRange range, ir::OperandFlag flags, bool minus);
  void push_unfound(SourceRange range, std::string_view base, bool has_selector);
  void push_constant(const Constant& constant, SourceRange range);
  void open_group(ir::OperandKind kind, SourceRange range);
  void close_group(SourceRange end);
  void insert_group_before_last(ir::OperandKind kind);
  ir::Selector parse_selector(SourceRange range, std::string_view word, const Note& note, bool special);
  void add_term(const Constant& constant, SourceRange range);
  Constant finish_constant();
  double decimal_value(const Lexeme& literal);
  IntegerLiteral integer_value(const Lexeme& literal);
  uint32_t callee_index() const;
  ir::ValueId queue_value(SourceRange range, ir::RegisterClass register_class, const Lexeme& number);

  ir::Module& module_;
  Diagnostics& diagnostics_;
  const ReadOptions& options_;
  std::string_view source_;
  Names names_;
  ConstantEvaluator constants_;

  // item
  SourceRange item_;
  bool is_verbatim_ = false;
  bool version_seen_ = false;
  bool items_seen_ = false;
  ir::Linkage linkage_ = ir::Linkage::none;
  SourceRange linkage_range_;
  bool texture_mode_independent_ = false;
  SourceRange alias_;
  bool section_minus_ = false;
  unsigned section_bits_ = 0;

  // function
  ir::Function* function_ = nullptr;
  ir::FunctionId function_id_;
  Owner parameter_owner_ = Owner::module;
  std::vector<ir::VariableId> signature_variables_; // of the current list
  std::vector<ir::VariableId> unbound_results_;
  SourceRange function_name_range_;
  bool in_body_ = false;
  bool reading_prototype_ = false; // .callprototype
  ir::Prototype prototype_;
  std::string trailing_; // header directives of a .callprototype
  std::vector<bool> scope_is_section_;
  ir::BlockId block_;
  ir::Function* body_ = nullptr; // while `function_` is its affine stream
  ir::BlockId body_block_;       // the body's current block in the meantime
  size_t first_stream_pending_ = 0;
  std::unordered_map<uint64_t, ir::ValueId> queues_; // by register class and number; of `function_`
  SourceRange label_range_;
  bool label_names_table_ = false;
  uint32_t provenance_ = 0; // of the next real instruction

  // declaration
  Declaration declaration_;
  bool dimension_given_ = false;
  std::vector<uint64_t> dimensions_;
  std::string register_text_;
  bool declares_registers_ = false;
  SourceRange attribute_;

  // statement
  SourceRange statement_;
  SourceRange mnemonic_range_;
  std::string split_mnemonic_;
  bool mnemonic_resolved_ = false;
  bool unknown_instruction_ = false;
  bool bad_instruction_ = false;
  bool has_sums_ = false; // a register operand has an offset: %r1+4
  uint32_t sums_ = 0;     // registers created for such sums in this function
  ir::FormId form_id_;
  const ir::Form* form_ = nullptr;
  ir::ValueId guard_;
  bool guard_negated_ = false;
  bool guarded_ = false;
  ir::RegisterClass guard_queue_ = ir::RegisterClass::general;
  uint32_t queue_begin_ = 0; // of the guard's name
  struct CachedForm {
    uint64_t hash = 0;
    ir::FormId form;
  };
  std::vector<CachedForm> forms_;
  std::unordered_set<uint32_t> looked_at_;       // forms whose version and target were checked
  std::unordered_set<uint32_t> warned_operands_; // forms
  std::bitset<256> seen_special_;                // special registers whose version was checked

  // operands of the statement or initialiser, in pre-order, and their additional properties
  std::vector<ir::Operand> operands_;
  std::vector<Note> notes_;
  std::vector<uint32_t> open_groups_;
  std::vector<LocalPending> pending_;
  ir::OperandSummaries summaries_;
  uint32_t last_operand_ = 0;                      // index of the latest complete operand
  std::optional<ir::RegisterClass> address_queue_; // [dac.deq.data, before its number
  Lexeme sign_;
  Lexeme offset_;
  uint32_t pair_ = 0;
  SourceRange constant_range_;
  bool constant_range_open_ = false;
};

} // namespace ptxrewrite::grammar
