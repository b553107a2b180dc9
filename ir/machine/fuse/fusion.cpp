// Parses the rows of fuse.def and applies them, see fusion.h.
#include "ir/machine/fuse/fusion.h"

#include "ir/machine/figures/generations.h"
#include "ir/machine/fuse/coded_fusions.h"
#include "ir/machine/fuse/fusion_expression.h"
#include "ir/machine/fuse/fusion_pattern.h"
#include "ir/machine/fuse/uniform_base.h"
#include "ir/machine/prepare/rule_helpers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace ptxrewrite::ir {

namespace {

enum class Effect : uint8_t { fuse, fold, share, weigh, source };
enum class Readers : uint8_t { only, pair, one, all, any };
enum class By : uint8_t { readers, sources };

using Columns = std::array<uint16_t, generation_count>;

struct CostChange {
  enum class Kind : uint8_t { none, producer, reader, reader_more, read_instead };
  Kind kind = Kind::none;
  FusionExpression value = nullptr;
  size_t variable = 0; // read_instead: of the operand that the readers read
};

struct RowText {
  Effect effect = Effect::fuse;
  std::string_view name, producer;
  Readers readers = Readers::any;
  std::string_view reader;
  FusionExpression condition = nullptr;
  CostChange cost;
  bool (*code)(LoweringContext&, InstructionId) = nullptr;
  By by = By::readers;
  Columns columns{};
};

#define UNCHANGED                                                                                                      \
  CostChange {}
#define PRODUCER(...)                                                                                                  \
  CostChange {                                                                                                         \
    CostChange::Kind::producer, PTXREWRITE_FUSION_EXPRESSION(__VA_ARGS__), 0                                           \
  }
#define READER(...)                                                                                                    \
  CostChange {                                                                                                         \
    CostChange::Kind::reader, PTXREWRITE_FUSION_EXPRESSION(__VA_ARGS__), 0                                             \
  }
#define READER_MORE(...)                                                                                               \
  CostChange {                                                                                                         \
    CostChange::Kind::reader_more, PTXREWRITE_FUSION_EXPRESSION(__VA_ARGS__), 0                                        \
  }
#define READ_INSTEAD(variable)                                                                                         \
  CostChange {                                                                                                         \
    CostChange::Kind::read_instead, nullptr, variable_index(*#variable)                                                \
  }
constexpr RowText row_texts[] = {
#define FUSION(effect, name, producer, who, reader, condition, cost, ...)                                              \
  {Effect::effect, name,    producer,                                                                                  \
   Readers::who,   reader,  PTXREWRITE_FUSION_EXPRESSION(condition),                                                   \
   cost,           nullptr, Effect::effect == Effect::source ? By::sources : By::readers,                              \
   {__VA_ARGS__}},
#define FUSION_CODE(name, opcodes, function, who, ...)                                                                 \
  {Effect::fold, name, opcodes, Readers::any, {}, nullptr, {}, function, By::who, {__VA_ARGS__}},
#include "ir/machine/fuse/fuse.def"
#undef FUSION
#undef FUSION_CODE
};

struct Row {
  const RowText* text = nullptr;
  FusionAlternatives producer;
  std::vector<FusionAlternatives> readers; // by step of the chain; empty for rows without readers
};

Row parse_row(const RowText& text, std::string& error) {
  Row row;
  row.text = &text;
  if (text.code) {
    FusionTerm any;
    any.form.opcodes = parse_fusion_opcodes(text.producer, error);
    row.producer.push_back(std::move(any));
    return row;
  }
  row.producer = parse_fusion_terms(text.producer, error);
  row.readers = parse_fusion_chain(text.reader, error);
  if ((text.readers == Readers::any) != row.readers.empty()) error += "readers are asked for, or none is";
  for (const FusionTerm& term : row.producer)
    if (term.form.opcodes.empty()) error += "a producer names its opcodes";
  return row;
}

struct Table {
  std::vector<Row> rows;
  std::vector<std::vector<const Row*>> by_opcode; // of the producer, in the order of the file
  std::vector<std::string> errors;
};

const Table& table() {
  static const Table all = [] {
    Table result;
    for (const RowText& text : row_texts) {
      std::string error;
      Row row = parse_row(text, error);
      if (error.empty())
        result.rows.push_back(std::move(row));
      else
        result.errors.push_back(std::string(text.name) + ": " + error);
    }
    for (const Row& row : result.rows)
      for (const FusionTerm& term : row.producer)
        for (Opcode opcode : term.form.opcodes) {
          const auto index = static_cast<size_t>(opcode);
          if (result.by_opcode.size() <= index) result.by_opcode.resize(index + 1);
          std::vector<const Row*>& rows = result.by_opcode[index];
          if (rows.empty() || rows.back() != &row) rows.push_back(&row);
        }
    return result;
  }();
  return all;
}

bool is_same(const Operand& a, const Operand& b) {
  return a.kind == b.kind && a.id == b.id && a.immediate == b.immediate;
}

// Applies one row to one instruction.
class RowMatcher {
public:
  // `result`: the only register that the instruction writes.
  RowMatcher(LoweringContext& context, const Row& row, uint16_t count, InstructionId id, ValueId result)
      : context_(context), row_(row), id_(id), result_(result) {
    match_.producer = id;
    match_.count = count;
  }

  // Returns true if the producer is absorbed.
  bool apply() {
    const FusionMatch nothing = match_;
    for (const FusionTerm& term : row_.producer)
      for (const bool swapped : {false, true}) {
        if (swapped && !term.commutes) continue;
        match_ = nothing;
        if (fits(term, id_, ValueId(), swapped) && readers_fit()) {
          change_costs();
          return row_.text->effect == Effect::fuse || row_.text->effect == Effect::fold ||
                 row_.text->effect == Effect::source;
        }
      }
    return false;
  }

private:
  // `result`: the value that @ matches. If the term does not match, earlier bindings are kept.
  bool fits(const FusionTerm& term, InstructionId id, ValueId result, bool swapped) {
    const Form* form = context_.form(id);
    if (!form || !term.form.fits(*form)) return false;
    const FusionMatch before = match_;
    for (size_t i = 0; i < term.operands.size(); ++i) {
      const size_t place = swapped && i < 2 ? 1 - i : i;
      if (!operand_fits(term.operands[i], context_.source(id, place), id, result)) {
        match_ = before;
        return false;
      }
    }
    return true;
  }

  bool operand_fits(const FusionOperand& pattern, const Operand* operand, InstructionId id, ValueId result) {
    using Kind = FusionOperand::Kind;
    if (!operand) return false;
    const bool is_result = result && operand->is(OperandKind::value) && operand->as_value() == result;
    switch (pattern.kind) {
    case Kind::anything:
      return true;
    case Kind::result:
      return is_result;
    case Kind::number:
      return operand->is(OperandKind::integer) && operand->immediate == pattern.number;
    case Kind::integer:
      return operand->is(OperandKind::integer) && bind(pattern.variable, operand);
    case Kind::literal:
      return context_.is_literal(operand) && bind(pattern.variable, operand);
    case Kind::variable:
      return !is_result && bind(pattern.variable, operand);
    case Kind::term:
      return !is_result && inner_fits(pattern.term.front(), operand, id);
    }
    return false;
  }

  bool bind(size_t variable, const Operand* operand) {
    const Operand*& place = match_.operands[variable];
    if (place) return is_same(*place, *operand);
    place = operand;
    return true;
  }

  bool inner_fits(const FusionTerm& term, const Operand* operand, InstructionId id) {
    const InstructionId source = context_.definition(operand);
    if (!source || !context_.same_block(source, id_) || context_.values.only_reader(operand->as_value()) != id)
      return false;
    if (!fits(term, source, ValueId(), false) && !(term.commutes && fits(term, source, ValueId(), true))) return false;
    match_.source = source;
    return true;
  }

  bool readers_fit() {
    InstructionId reader;
    switch (row_.text->readers) {
    case Readers::any:
      match_.reader = id_;
      return row_.text->condition({context_, match_}) != 0;
    case Readers::all:
      return all_readers(context_, result_, [&](InstructionId one) { return reader_fits(one, result_, 0); });
    case Readers::only:
      reader = free_only_reader(context_, id_);
      break;
    case Readers::pair:
      reader = result_ && !context_.function.instructions[id_].guard ? context_.values.only_reader(result_)
                                                                     : InstructionId();
      if (reader && !context_.same_block(id_, reader)) reader = {};
      break;
    case Readers::one:
      reader = result_ ? context_.values.only_reader(result_) : InstructionId();
      break;
    }
    return reader && reader_fits(reader, result_, 0);
  }

  // True if the reader matches the step of the chain, the remaining steps match, and the condition holds. The bindings
  // are in `match_` afterwards; those of the producer are kept in any case.
  bool reader_fits(InstructionId reader, ValueId value, size_t step) {
    const FusionMatch before = match_;
    for (const FusionTerm& term : row_.readers[step])
      for (const bool swapped : {false, true}) {
        if (swapped && !term.commutes) continue;
        match_ = before;
        if (fits(term, reader, value, swapped) && goes_on(reader, step)) {
          last_ = match_;
          match_ = before;
          return true;
        }
      }
    match_ = before;
    return false;
  }

  bool goes_on(InstructionId reader, size_t step) {
    if (step == 0) match_.through = reader;
    if (step + 1 == row_.readers.size()) {
      match_.reader = reader;
      return row_.text->condition({context_, match_}) != 0;
    }
    const ValueId value = context_.result(reader);
    if (row_.text->readers == Readers::all)
      return all_readers(context_, value, [&](InstructionId one) { return reader_fits(one, value, step + 1); });
    const InstructionId next = value ? context_.values.only_reader(value) : InstructionId();
    if (!next || !reader_fits(next, value, step + 1)) return false;
    match_ = last_;
    return true;
  }

  void change_costs() {
    const Effect effect = row_.text->effect;
    if (effect == Effect::source && match_.source) take_over(context_, match_.source);
    change_cost_of_producer();
    const bool takes = effect == Effect::fuse || effect == Effect::share;
    if (row_.readers.empty()) return;
    if (row_.text->readers != Readers::all) return change_reader(last_, takes);
    if (!takes && row_.text->cost.kind == CostChange::Kind::none) return;
    if (row_.readers.size() > 1) return; // chains of rows with readers `all` change no costs
    for (InstructionId reader : context_.values.readers(result_))
      if (context_.needed[reader.index()] && reader_fits_still(reader)) change_reader(last_, takes);
  }

  // Each reader has matched; it is matched again for its bindings, even if other readers have changed since.
  bool reader_fits_still(InstructionId reader) {
    const FusionMatch before = match_;
    for (const FusionTerm& term : row_.readers[0])
      for (const bool swapped : {false, true}) {
        if (swapped && !term.commutes) continue;
        match_ = before;
        if (!fits(term, reader, result_, swapped)) continue;
        match_.reader = match_.through = reader;
        last_ = match_;
        match_ = before;
        return true;
      }
    match_ = before;
    return false;
  }

  void change_cost_of_producer() {
    const CostChange& cost = row_.text->cost;
    if (cost.kind == CostChange::Kind::producer) {
      weight(id_) = static_cast<uint16_t>(cost.value({context_, match_}));
    } else if (cost.kind == CostChange::Kind::read_instead) {
      const Operand* operand = match_.operands[cost.variable];
      if (operand && operand->is(OperandKind::value)) context_.without_constant[result_.index()] = operand->as_value();
    }
  }

  void change_reader(const FusionMatch& match, bool takes) {
    if (takes) take_over(context_, match.reader);
    const CostChange& cost = row_.text->cost;
    if (cost.kind != CostChange::Kind::reader && cost.kind != CostChange::Kind::reader_more) return;
    const auto value = static_cast<uint16_t>(cost.value({context_, match}));
    uint16_t& changed = weight(match.reader);
    changed = cost.kind == CostChange::Kind::reader_more ? static_cast<uint16_t>(changed + value) : value;
  }

  uint16_t& weight(InstructionId id) { return context_.costs[id.index()].weight; }

  LoweringContext& context_;
  const Row& row_;
  InstructionId id_;
  ValueId result_;
  FusionMatch match_; // of the producer, except while a reader is matched
  FusionMatch last_;  // of the last reader that matched
};

// The rows with a term that the form fits, in the order of the file.
const std::vector<const Row*>& rows_for(const Form& form) {
  struct Found {
    bool searched = false;
    std::vector<const Row*> rows;
  };
  thread_local std::vector<Found> by_form; // by FormId
  const size_t index = form.id.index();
  if (by_form.size() <= index) by_form.resize(std::max<size_t>(index + 1, 2 * by_form.size()));
  Found& found = by_form[index];
  if (std::exchange(found.searched, true)) return found.rows;
  const Table& all = table();
  const auto opcode = static_cast<size_t>(form.opcode);
  if (opcode >= all.by_opcode.size()) return found.rows;
  std::ranges::copy_if(all.by_opcode[opcode], std::back_inserter(found.rows), [&](const Row* row) {
    return row->text->code ||
           std::ranges::any_of(row->producer, [&](const FusionTerm& term) { return term.form.fits(form); });
  });
  return found.rows;
}

} // namespace

AppliedFusion apply_fusions(LoweringContext& context, InstructionId id) {
  const std::vector<const Row*>& rows = rows_for(*context.form(id));
  if (rows.empty()) return {};
  const auto generation = static_cast<size_t>(generation_of(context.capability));
  const ValueId result = context.result(id);
  for (const Row* row : rows) {
    const uint16_t count = row->text->columns[generation];
    if (count == 0) continue;
    const bool absorbed =
        row->text->code ? row->text->code(context, id) : RowMatcher(context, *row, count, id, result).apply();
    if (absorbed) return {row->text->name, row->text->by == By::sources};
  }
  return {};
}

FusionRowCounts fusion_row_counts() {
  FusionRowCounts counts;
  for (const RowText& text : row_texts)
    ++(text.code ? counts.coded : counts.patterns);
  return counts;
}

std::vector<std::string> fusion_row_errors() {
  return table().errors;
}

} // namespace ptxrewrite::ir
