// Interns mnemonics: each spelling is matched against the table once per process.
#include "ir/isa/isa_operands.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cassert>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

namespace ptxrewrite::ir {

constinit std::array<std::atomic<const Form*>, form_limit> forms_by_id{};

namespace {

// A form with the storage that its spans refer to.
struct StoredForm {
  Form form;
  std::string mnemonic;
  std::vector<Modifier> modifiers;
  std::vector<ScalarType> types;
  std::vector<OperandShape> shapes;
};

// Adds the effects that modifier words imply.
void add_modifier_effects(std::span<const Modifier> words, Effects& effects) {
  for (Modifier word : words) {
    switch (word) {
    case Modifier::cc:
      effects.writes_carry = true;
      break;
    case Modifier::volatile_:
    case Modifier::mmio:
      effects.volatile_result = effects.side_effect = true;
      break;
    case Modifier::relaxed:
      if (effects.reads_memory || effects.writes_memory)
        effects.volatile_result = effects.side_effect = effects.atomic = true;
      break;
    case Modifier::acquire:
    case Modifier::release:
    case Modifier::acq_rel:
    case Modifier::sc:
      effects.volatile_result = effects.side_effect = effects.atomic = effects.barrier = true;
      break;
    default:
      break;
    }
  }
}

Effects all_effects() {
  Effects e;
  e.reads_memory = e.writes_memory = e.atomic = e.barrier = e.convergent = e.branch = e.call = e.volatile_result = true;
  e.reads_carry = e.writes_carry = e.may_trap = e.side_effect = true;
  return e;
}

struct Spelled {
  std::string_view opcode;
  std::vector<Modifier> words;
  bool unknown_word = false;
};

// Splits a mnemonic at its dots. Extension instructions have an opcode of two words.
Spelled cut(std::string_view mnemonic) {
  Spelled result;
  size_t end = mnemonic.find('.');
  result.opcode = mnemonic.substr(0, end);
  if (end != std::string_view::npos && !table::find_opcode(result.opcode)) {
    size_t second = mnemonic.find('.', end + 1);
    if (table::find_opcode(mnemonic.substr(0, second))) {
      result.opcode = mnemonic.substr(0, second);
      end = second;
    }
  }
  while (end != std::string_view::npos) {
    size_t next = mnemonic.find('.', end + 1);
    if (auto word = parse_modifier(mnemonic.substr(end + 1, next - end - 1)))
      result.words.push_back(*word);
    else
      result.unknown_word = true;
    end = next;
  }
  return result;
}

// Words that ptxas accepts repeatedly; determined by doubling each modifier of the table's forms.
bool may_repeat(Modifier word) {
  constexpr Modifier flags[] = {Modifier::sync,   Modifier::sat, Modifier::satfinite, Modifier::relu,
                                Modifier::approx, Modifier::NaN, Modifier::cc,        Modifier::uni};
  return std::ranges::find(flags, word) != std::end(flags);
}

void drop_repeated(std::vector<Modifier>& words) {
  for (size_t i = 1; i < words.size();)
    if (may_repeat(words[i]) && std::find(words.begin(), words.begin() + i, words[i]) != words.begin() + i)
      words.erase(words.begin() + i);
    else
      ++i;
}

void fill_from_words(StoredForm& stored) {
  Form& form = stored.form;
  for (Modifier word : stored.modifiers) {
    form.modifier_filter |= uint64_t{1} << (static_cast<unsigned>(word) % 64);
    if (is_type(word)) {
      const auto type = ScalarType(word);
      stored.types.push_back(type);
      form.integers_only &= is_integer(type) || is_bit_type(type) || type == ScalarType::pred;
    }
    if (table::ordering(word) == table::Ordering::spaces) {
      StateSpace space = *parse_state_space(spelling(word));
      (form.space == StateSpace::none ? form.space : form.source_space) = space;
    }
    if (word == Modifier::v2) form.vector_width = 2;
    if (word == Modifier::v4) form.vector_width = 4;
    if (word == Modifier::v8) form.vector_width = 8;
    form.carry_out |= word == Modifier::cc;
  }
}

void fill_from_rows(StoredForm& stored, std::span<const table::Match> matches) {
  Form& form = stored.form;
  const table::Row& row = *matches.front().row;
  form.kind = row.text->kind;
  form.operation = row.text->operation;
  form.extension = row.text->extension;
  form.lax = std::all_of(matches.begin(), matches.end(), [](const table::Match& match) { return match.row->lax; });
  form.effects = row.effects;
  add_modifier_effects(stored.modifiers, form.effects);
  stored.shapes = compile_shapes(matches, stored.modifiers, form.space);
  for (const OperandShape& shape : stored.shapes) {
    form.definitions = std::max<uint8_t>(form.definitions, static_cast<uint8_t>(shape.definitions));
    form.definitions_vary |= shape.definitions != stored.shapes.front().definitions;
  }
}

// Sets only spans and views into `stored` itself, which must not move afterwards.
void point_into(StoredForm& stored) {
  stored.form.mnemonic = stored.mnemonic;
  stored.form.modifiers = stored.modifiers;
  stored.form.types = stored.types;
  std::copy_n(stored.types.begin(), std::min(stored.types.size(), stored.form.first_types.size()),
              stored.form.first_types.begin());
  stored.form.shapes = stored.shapes;
}

Result<std::unique_ptr<StoredForm>> build(std::string_view mnemonic) {
  auto stored = std::make_unique<StoredForm>();
  stored->mnemonic = mnemonic;
  Spelled spelled = cut(mnemonic);
  drop_repeated(spelled.words);
  stored->modifiers = std::move(spelled.words);
  fill_from_words(*stored);
  auto opcode = table::find_opcode(spelled.opcode);
  if (!opcode || spelled.unknown_word) {
    stored->form.opaque = true;
    stored->form.effects = all_effects();
  } else {
    const table::OpcodeRows& rows = table::rows_of(*opcode);
    auto matches = table::match_rows(rows, stored->modifiers);
    if (matches.empty()) return Error{table::explain_mismatch(rows, spelled.opcode, stored->modifiers), {}};
    stored->form.opcode = *opcode;
    fill_from_rows(*stored, matches);
  }
  point_into(*stored);
  return stored;
}

// All forms of the process. form() takes no lock: a form never moves.
class Registry {
public:
  static Registry& instance() {
    static Registry registry;
    return registry;
  }

  Result<FormId> resolve(std::string_view mnemonic) {
    {
      std::shared_lock lock(mutex_);
      if (auto found = index_.find(mnemonic); found != index_.end()) return found->second;
    }
    auto built = build(mnemonic);
    if (!built) return built.error();
    std::unique_lock lock(mutex_);
    if (auto found = index_.find(mnemonic); found != index_.end()) return found->second;
    if (count_ == form_limit) return Error{"too many different instructions in one process", {}};
    FormId id(count_);
    (*built)->form.id = id;
    forms_by_id[count_].store(&(*built)->form, std::memory_order_release);
    index_.emplace((*built)->mnemonic, id);
    stored_.push_back(std::move(built).value());
    ++count_;
    return id;
  }

private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string_view, FormId> index_;
  std::vector<std::unique_ptr<StoredForm>> stored_;
  uint32_t count_ = 0;
};

// A cache, without the registry's lock, of the few mnemonics that a file uses repeatedly.
struct RecentForms {
  static constexpr size_t size = 512;
  struct Entry {
    std::string_view mnemonic;
    FormId id;
  };
  std::array<Entry, size> entries;
};

} // namespace

Result<FormId> resolve_form(std::string_view mnemonic) {
  thread_local RecentForms recent;
  auto& entry = recent.entries[std::hash<std::string_view>{}(mnemonic) % RecentForms::size];
  if (entry.id && entry.mnemonic == mnemonic) return entry.id;
  auto id = Registry::instance().resolve(mnemonic);
  if (id) entry = {form(*id).mnemonic, *id};
  return id;
}

FormId known_form(std::string_view mnemonic) {
  auto id = resolve_form(mnemonic);
  assert(id.ok() && !form(*id).opaque);
  return *id;
}

} // namespace ptxrewrite::ir
