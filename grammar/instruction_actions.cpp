// Instructions: mnemonic, guard, operand checks by the ISA table, and the row in the function's tables.
#include "grammar/actions.h"

#include "ir/core/kernel_parameters.h"
#include "ir/core/operand_summary.h"
#include "ir/forms/dac.h"
#include "ir/isa/isa_availability.h"

#include <cstring>

namespace ptxrewrite::grammar {

using namespace ir;

void ReaderActions::start_instruction(SourceRange begin, SourceRange mnemonic_range) {
  statement_ = begin;
  mnemonic_range_ = mnemonic_range;
  split_mnemonic_.clear();
  mnemonic_resolved_ = false;
  unknown_instruction_ = false;
  bad_instruction_ = false;
  has_sums_ = false;
  operands_.clear();
  notes_.clear();
  open_groups_.clear();
  pending_.clear();
  address_queue_.reset();
}

void ReaderActions::begin_statement(const Lexeme& word) {
  start_instruction(word.range, word.range);
  guarded_ = false;
  guard_negated_ = false;
  guard_ = {};
}

void ReaderActions::begin_guard(const Lexeme& at) {
  statement_ = at.range;
  guarded_ = true;
  guard_negated_ = false;
  guard_ = {};
  unknown_instruction_ = false;
}

void ReaderActions::guard(const Lexeme& name) {
  Names::Found found = names_.lookup(text(name));
  if (!found.value) fail(name.range, "unknown register " + quote(name.range));
  if (found.binding->type != ScalarType::pred)
    fail(name.range,
         "a guard must be a predicate; " + quote(name.range) + " is ." + std::string(spelling(found.binding->type)));
  guard_ = found.value;
}

// `@dac.deq.pred(3)`: the number follows.
void ReaderActions::queue_guard(const Lexeme& name) {
  const std::optional<RegisterClass> queue = parse_queue(text(name));
  if (!queue || (*queue != RegisterClass::queued_predicate && *queue != RegisterClass::taken_predicate))
    fail(name.range, quote(name.range) + " is no predicate");
  guard_queue_ = *queue;
  queue_begin_ = name.range.begin;
}

void ReaderActions::queue_number(const Lexeme& number) {
  guard_ = queue_value({queue_begin_, number.range.end + 1}, guard_queue_, number);
}

ValueId ReaderActions::queue_value(SourceRange range, RegisterClass register_class, const Lexeme& number) {
  if (!module_.hardware_form) fail(range, quote(range) + " needs the first line `//@ ptxrewrite hardware 1`");
  const uint32_t place = number32(number);
  auto [entry, fresh] = queues_.try_emplace(uint64_t{place} << 8 | static_cast<uint64_t>(register_class), ValueId());
  if (fresh) entry->second = add_queue_value(*function_, register_class, place);
  return entry->second;
}

void ReaderActions::guarded_opcode(const Lexeme& word) {
  start_instruction(statement_, word.range);
}

// A part of the mnemonic after a blank or comment.
void ReaderActions::modifier(const Lexeme& word) {
  if (split_mnemonic_.empty()) split_mnemonic_ = text(mnemonic_range_);
  split_mnemonic_ += text(word);
  mnemonic_range_.end = word.range.end;
}

void ReaderActions::resolve_mnemonic() {
  mnemonic_resolved_ = true;
  const std::string_view words = mnemonic();
  uint64_t hash = words.size() * 0x9e3779b97f4a7c15ull;
  const char* data = words.data();
  size_t left = words.size();
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t chunk;
    std::memcpy(&chunk, data, 8);
    hash = (hash ^ chunk) * 0xff51afd7ed558ccdull;
    hash ^= hash >> 32;
  }
  uint64_t chunk = 0;
  std::memcpy(&chunk, data, left);
  hash = (hash ^ chunk) * 0xff51afd7ed558ccdull;
  hash ^= hash >> 29;
  CachedForm& cached = forms_[hash % forms_.size()];
  if (!cached.form || cached.hash != hash || form(cached.form).mnemonic != words) {
    Result<FormId> resolved = resolve_form(words);
    if (!resolved) {
      error(mnemonic_range_, resolved.error().message);
      bad_instruction_ = true;
      form_ = nullptr;
      // The operands are still read, without checks, to find the next statement.
      return;
    }
    cached = {hash, *resolved};
    warn_of(form(*resolved));
  }
  form_id_ = cached.form;
  form_ = &form(form_id_);
  unknown_instruction_ = form_->opaque;
}

// Warns, once per form, of instructions that can be read but that ptxas rejects.
void ReaderActions::warn_of(const Form& form) {
  if (!looked_at_.insert(form.id.index()).second || limit_reached()) return;
  if (form.opaque) {
    diagnostics_.warning(mnemonic_range_, "unknown instruction " + quote(mnemonic_range_) +
                                              ": it is kept as it is, and nothing is moved across it");
    return;
  }
  const PtxVersion version{module_.version_major, module_.version_minor};
  if (const std::string why = why_not_available(form, version, target()); !why.empty())
    warn_not_available(quote(mnemonic_range_) + " " + why);
}

// The same for operand lists that not every version or target with the mnemonic has.
void ReaderActions::warn_of_operands(std::span<const OperandSummary> operands) {
  if (!availability_depends_on_operands(*form_) || limit_reached()) return;
  const PtxVersion version{module_.version_major, module_.version_minor};
  if (!why_not_available(*form_, version, target()).empty()) return; // warn_of() has
  const std::string why = why_not_available(*form_, operands, version, target());
  if (!why.empty() && warned_operands_.insert(form_id_.index()).second)
    warn_not_available(quote(mnemonic_range_) + " with these operands " + why);
}

std::string_view ReaderActions::target() const {
  std::string_view target;
  for (Symbol word : module_.targets)
    if (const std::string_view name = module_.text(word); name.starts_with("sm_") || name.starts_with("compute_"))
      target = name;
  return target;
}

void ReaderActions::warn_not_available(std::string message) {
  diagnostics_.warning(mnemonic_range_, std::move(message) + "; this file is PTX " +
                                            std::to_string(module_.version_major) + "." +
                                            std::to_string(module_.version_minor) + " for " + std::string(target()));
}

void ReaderActions::warn_of_version(SourceRange range, std::string_view since) {
  const PtxVersion version{module_.version_major, module_.version_minor};
  const std::optional<PtxVersion> first = parse_version(since);
  if (!first || *first <= version || limit_reached()) return;
  diagnostics_.warning(range, quote(range) + " needs PTX " + std::to_string(first->major) + "." +
                                  std::to_string(first->minor) + " or later");
}

void ReaderActions::warn_of_target(SourceRange range, std::string_view first) {
  if (target().empty() || is_target_at_least(target(), first) || limit_reached()) return;
  diagnostics_.warning(range, quote(range) + " needs " + std::string(first) + " or later; this file is for " +
                                  std::string(target()));
}

// Index in operands_ of the n-th top-level operand; operands_.size() if there are fewer.
size_t ReaderActions::top_level_operand(int number) const {
  size_t index = 0;
  for (int i = 0; i < number && index < operands_.size(); ++i)
    index = next_sibling(operands_, index);
  return index;
}

void ReaderActions::mark_definitions(unsigned count) {
  size_t index = 0;
  for (unsigned i = 0; i < count && index < operands_.size(); ++i) {
    const size_t end = next_sibling(operands_, index);
    const Operand& head = operands_[index];
    if (!head.is(OperandKind::address))
      for (size_t inside = index; inside < end; ++inside)
        if (operands_[inside].is(OperandKind::value))
          operands_[inside].flags = operands_[inside].flags | OperandFlag::definition;
    index = end;
  }
}

// ---------------------------------------------------------------- checks beyond the table

// `!r` and `-r` are the same flag in the IR, where the register's type tells them apart.
void ReaderActions::check_negations() {
  for (size_t index = 0; index < operands_.size(); ++index)
    if (operands_[index].has(OperandFlag::negated) && (notes_[index].type == ScalarType::pred) == notes_[index].minus) {
      error(notes_[index].range,
            notes_[index].minus ? "a predicate is negated with '!'" : "'!' negates predicates only");
      bad_instruction_ = true;
    }
}

// Rejects stores to a kernel's parameter, whatever its type.
void ReaderActions::check_store_to_parameter() {
  if (form_->opcode != Opcode::st || !is_param(form_->space) || !function_->is_entry) return;
  if (operands_.size() < 2 || !operands_[0].is(OperandKind::address) || !operands_[1].is(OperandKind::symbol)) return;
  if (!is_own_parameter(*function_, operands_[1].as_symbol())) return;
  error(notes_[1].range, "a kernel cannot write its parameter " + quote(notes_[1].range));
  bad_instruction_ = true;
}

// Index of the called function or register: the first operand that is not a list.
uint32_t ReaderActions::callee_index() const {
  if (!operands_.empty() && operands_[0].is(OperandKind::list))
    return static_cast<uint32_t>(next_sibling(operands_, 0));
  return 0;
}

// Checks the number of results and arguments against the callee's signature.
void ReaderActions::check_call() {
  const uint32_t callee = callee_index();
  if (callee >= operands_.size() || !operands_[callee].is(OperandKind::symbol)) return;
  const SymbolRef symbol = operands_[callee].as_symbol();
  if (symbol.kind() == SymbolRef::Kind::undeclared) return;
  if (symbol.kind() != SymbolRef::Kind::function) {
    error(notes_[callee].range, quote(notes_[callee].range) + " is not a function");
    bad_instruction_ = true;
    return;
  }
  const Function& function = module_.function(symbol.function());
  auto count_inside = [this](size_t list) {
    uint32_t count = 0;
    for (size_t index = list + 1; index < next_sibling(operands_, list); index = next_sibling(operands_, index))
      ++count;
    return count;
  };
  const uint32_t results = callee > 0 ? count_inside(0) : 0;
  const size_t arguments_at = callee + 1;
  const uint32_t arguments =
      arguments_at < operands_.size() && operands_[arguments_at].is(OperandKind::list) ? count_inside(arguments_at) : 0;
  const size_t extra = next_sibling(operands_, callee) < operands_.size()
                           ? next_sibling(operands_, next_sibling(operands_, callee))
                           : operands_.size();
  if (extra < operands_.size()) {
    error(notes_[extra].range, "the call of a named function has no table or prototype");
    bad_instruction_ = true;
  }
  auto parameters = function.variable_lists.view(function.signature.parameters);
  const bool variadic = !parameters.empty() && function.variables[parameters.back()].unsized;
  const bool arguments_fit = variadic ? arguments + 1 >= parameters.size() : arguments == parameters.size();
  if (!arguments_fit || results != function.signature.results.count) {
    error(notes_[callee].range, "the call of " + quote(notes_[callee].range) + " has the wrong number of " +
                                    (arguments_fit ? "results" : "arguments"));
    bad_instruction_ = true;
  }
}

// ---------------------------------------------------------------- the end of an instruction

// `add.u32 %r1, %r2+4, %r3;` is not in the manual: inserts an instruction that computes the sum into a new register.
void ReaderActions::emit_sums() {
  for (size_t index = 0; index < operands_.size(); ++index) {
    Operand& operand = operands_[index];
    if (!operand.is(OperandKind::value) || operand.immediate == 0) continue;
    if (operand.is_definition()) {
      error(notes_[index].range, "a destination cannot have an offset");
      bad_instruction_ = true;
      return;
    }
    Value value;
    value.type = notes_[index].type;
    value.name = intern("$sum");
    value.number = sums_++;
    const ValueId sum = function_->values.add(value);
    Operand declaration;
    declaration.kind = OperandKind::text;
    declaration.id =
        module_.intern(".reg ." + std::string(spelling(value.type)) + " " + function_->value_name(sum)).index();
    append_marker(InstructionKind::declare_values, notes_[index].range, {&declaration, 1});
    Operand addition[] = {Operand::definition(sum), operand, Operand::integer(operand.immediate)};
    addition[1].immediate = 0;
    Instruction add;
    add.form = known_form(bit_width(value.type) == 16   ? "add.s16"
                          : bit_width(value.type) == 32 ? "add.s32"
                                                        : "add.s64");
    add.range = statement_;
    add.provenance = ProvenanceId(provenance_);
    append(add, addition);
    operand.id = sum.index();
    operand.immediate = 0;
  }
}

void ReaderActions::end_instruction(const Lexeme& semicolon) {
  before_operand();
  statement_.end = semicolon.range.end;
  if (form_ && !bad_instruction_) {
    if (!form_->opaque) {
      check_negations();
      if (bad_instruction_) return;
      std::span<const OperandSummary> summaries = summaries_.of(*function_, *form_, operands_);
      if (std::optional<OperandError> wrong = check_operands(*form_, summaries)) {
        SourceRange range = mnemonic_range_;
        if (wrong->operand_index >= 0) {
          const size_t index = top_level_operand(wrong->operand_index);
          if (index < notes_.size()) range = notes_[index].range;
        }
        error(range, wrong->message);
        return;
      }
      warn_of_operands(summaries);
      mark_definitions(definition_count(*form_, summaries));
      if (form_->effects.call) check_call();
      check_store_to_parameter();
    }
  }
  if (!form_ || bad_instruction_) return;
  if (has_sums_ && !form_->opaque) emit_sums();
  Instruction instruction;
  instruction.form = form_id_;
  instruction.guard = guard_;
  instruction.guard_negated = guard_negated_;
  instruction.range = statement_;
  instruction.provenance = ProvenanceId(provenance_++);
  const uint32_t first_operand = static_cast<uint32_t>(function_->operands.size());
  append(instruction, operands_);
  // An unknown instruction with an operand that may be a label may be a branch, with the next statement as one target.
  const bool may_branch = form_->opaque && !pending_.empty();
  if (!pending_.empty()) flush_pending_operands(first_operand);
  if (may_branch || (!form_->opaque && (form_->effects.branch || form_->effects.terminates))) block_ = {};
  unknown_instruction_ = false;
}

bool ReaderActions::salvage_unknown_instruction(SourceRange operand_text) {
  if (!in_body_ || !unknown_instruction_ || bad_instruction_ || !form_) return false;
  // A word without modifiers is more likely a typing error than a future instruction.
  if (mnemonic().find('.') == std::string_view::npos) return false;
  std::string_view words = text(operand_text);
  while (!words.empty() &&
         (words.front() == ' ' || words.front() == '\t' || words.front() == '\n' || words.front() == '\r'))
    words.remove_prefix(1);
  operands_.clear();
  notes_.clear();
  pending_.clear();
  open_groups_.clear();
  constants_.reset();
  Operand operand;
  operand.kind = OperandKind::text;
  operand.id = module_.intern(words).index();
  push(operand, {operand_text});
  end_instruction({{operand_text.end, operand_text.end + 1}, 0});
  return true;
}

} // namespace ptxrewrite::grammar
