// Parses the rows of expand.def and finds the first that matches a form. The names are parsed by the compiler.
#include "ir/machine/figures/expansion.h"

#include "ir/machine/figures/form_pattern.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::ir {

namespace {

constexpr uint32_t first_named_target = 20;

// One item of a row's names: "8*[DFMA]".
struct NameItem {
  std::string_view name;
  uint16_t count = 1;
  bool is_principal = false;
};

// Calls `visit` for each item.
template <class Visit> constexpr void for_each_name(std::string_view names, Visit&& visit) {
  while (!names.empty()) {
    const size_t end = std::min(names.find(' '), names.size());
    NameItem item{names.substr(0, end)};
    names.remove_prefix(std::min(end + 1, names.size()));
    if (const size_t star = item.name.find('*'); star != std::string_view::npos) {
      item.count = 0;
      for (const char digit : item.name.substr(0, star))
        item.count = static_cast<uint16_t>(10 * item.count + (digit - '0'));
      item.name.remove_prefix(star + 1);
    }
    if (item.name.starts_with('[')) {
      item.is_principal = true;
      item.name = item.name.substr(1, item.name.size() - 2);
    }
    visit(item);
  }
}

struct SubroutineRow {
  SubroutineSize size;
  std::string_view work;
};

#define EXPAND(opcode, words, targets, names, subroutine)
#define EXPAND_CLASS(kind, names)
#define EXPAND_FUSED(rule, opcode, words, targets, names)
#define EXPAND_ORDER(words, targets, before, behind)
#define SUBROUTINE(name, instructions, at_place, executed, moves, work)                                                \
  {{instructions, at_place, executed, moves}, work},
constexpr SubroutineRow subroutine_rows[] = {
    {},
#include "ir/machine/figures/expand.def"
};
#undef EXPAND
#undef EXPAND_CLASS
#undef SUBROUTINE
#undef EXPAND_FUSED

consteval Expansion expansion(std::string_view names, Subroutine subroutine) {
  Expansion result{names, 0, {}, subroutine, true};
  std::string_view opcode_of_all;
  bool is_marked = false;
  for_each_name(names, [&](const NameItem& item) {
    result.instructions = static_cast<uint16_t>(result.instructions + item.count);
    const MachineOpcode opcode = machine_opcode(item.name);
    if (!is_marked) result.principal = opcode;
    is_marked |= item.is_principal;
    const std::string_view plain = item.name.substr(0, item.name.find('.'));
    if (opcode_of_all.empty()) opcode_of_all = plain;
    result.is_of_one_opcode &= plain == opcode_of_all && !plain.starts_with('?');
  });
  const SubroutineRow& row = subroutine_rows[static_cast<size_t>(subroutine)];
  if (row.size.executed > 0) result.principal = machine_opcode(row.work);
  return result;
}

struct ExpansionRow {
  Opcode opcode;
  std::string_view words, targets;
  Expansion expansion;
};

struct FusedRow {
  std::string_view rule;
  Opcode opcode;
  std::string_view words, targets;
  Expansion expansion;
};

#define EXPAND_CLASS(kind, names)
#define SUBROUTINE(name, instructions, at_place, executed, moves, work)
#define EXPAND_FUSED(rule, opcode, words, targets, names)
#define EXPAND(opcode, words, targets, names, subroutine)                                                              \
  ExpansionRow{Opcode::opcode, words, targets, expansion(names, Subroutine::subroutine)},
constexpr ExpansionRow expansion_rows[] = {
#include "ir/machine/figures/expand.def"
};
#undef EXPAND
#undef EXPAND_FUSED
#define EXPAND(opcode, words, targets, names, subroutine)
#define EXPAND_FUSED(rule, opcode, words, targets, names)                                                              \
  FusedRow{rule, Opcode::opcode, words, targets, expansion(names, Subroutine::none)},
constexpr FusedRow fused_rows[] = {
#include "ir/machine/figures/expand.def"
};
#undef EXPAND_CLASS
#undef EXPAND_FUSED
#undef EXPAND_ORDER

consteval uint16_t number_of(std::string_view names) {
  uint16_t number = 0;
  for_each_name(names, [&](const NameItem& item) { number = static_cast<uint16_t>(number + item.count); });
  return number;
}

struct OrderRow {
  std::string_view words, targets, before, behind;
  uint16_t instructions;
};

#undef EXPAND
#define EXPAND(opcode, words, targets, names, subroutine)
#define EXPAND_CLASS(kind, names)
#define EXPAND_FUSED(rule, opcode, words, targets, names)
#define EXPAND_ORDER(words, targets, before, behind)                                                                   \
  OrderRow{words, targets, before, behind, static_cast<uint16_t>(number_of(before) + number_of(behind))},
constexpr OrderRow order_rows[] = {
#include "ir/machine/figures/expand.def"
};
#undef EXPAND_CLASS
#undef EXPAND_FUSED
#undef EXPAND_ORDER

#define EXPAND_ORDER(words, targets, before, behind)

const Expansion& class_expansion(InstructionClass kind) {
  static constexpr Expansion nothing;
  switch (kind) {
#define EXPAND_FUSED(rule, opcode, words, targets, names)
#define EXPAND_CLASS(kind, names)                                                                                      \
  case InstructionClass::kind: {                                                                                       \
    static constexpr Expansion row = expansion(names, Subroutine::none);                                               \
    return row;                                                                                                        \
  }
#include "ir/machine/figures/expand.def"
#undef EXPAND
#undef EXPAND_CLASS
#undef EXPAND_FUSED
#undef EXPAND_ORDER
#undef SUBROUTINE
  }
  return nothing;
}

template <class Text> struct ParsedRow {
  const Text* text = nullptr;
  FormPattern pattern;
};

// Rows by opcode, in the order of the file.
template <class Text> std::vector<std::vector<ParsedRow<Text>>> by_opcode(std::span<const Text> rows) {
  std::vector<std::vector<ParsedRow<Text>>> table;
  for (const Text& text : rows) {
    const auto index = static_cast<size_t>(text.opcode);
    if (table.size() <= index) table.resize(index + 1);
    table[index].push_back({&text, FormPattern(text.words, text.targets)});
  }
  return table;
}

// The first row of the table that matches the form and the predicate; nullptr if there is none.
template <class Text, class Suits>
const Text* first_row(const std::vector<std::vector<ParsedRow<Text>>>& table, const Form& form,
                      uint32_t compute_capability, bool literal, Suits&& suits) {
  const auto index = static_cast<size_t>(form.opcode);
  if (index < table.size())
    for (const ParsedRow<Text>& row : table[index])
      if (suits(*row.text) && row.pattern.fits(form, compute_capability, literal)) return row.text;
  return nullptr;
}

// Not inlined into expansion_of(), which rarely comes here and has little to do otherwise.
[[gnu::noinline]] const Expansion& find_expansion(const Form& form, uint32_t compute_capability, bool literal) {
  static const auto table = by_opcode<ExpansionRow>(expansion_rows);
  const ExpansionRow* row =
      first_row(table, form, compute_capability, literal, [](const ExpansionRow&) { return true; });
  return row ? row->expansion : class_expansion(form.kind);
}

const Expansion* find_fused(const Form& form, uint32_t compute_capability, bool literal,
                            std::span<const std::string_view> rules) {
  static const auto table = by_opcode<FusedRow>(fused_rows);
  const FusedRow* row = first_row(table, form, compute_capability, literal, [&](const FusedRow& fused) {
    return std::ranges::find(rules, fused.rule) != rules.end();
  });
  return row ? &row->expansion : nullptr;
}

// nullptr if the form does not order other accesses, or a row of its opcode says how (fences).
const OrderRow* find_order(const Form& form, uint32_t compute_capability) {
  if (form.kind != InstructionClass::load && form.kind != InstructionClass::store &&
      form.kind != InstructionClass::atomic)
    return nullptr;
  if (!form.has(Modifier::acquire) && !form.has(Modifier::release) && !form.has(Modifier::acq_rel)) return nullptr;
  static const auto patterns = [] {
    std::vector<FormPattern> parsed;
    for (const OrderRow& row : order_rows)
      parsed.emplace_back(row.words, row.targets);
    return parsed;
  }();
  for (size_t i = 0; i < patterns.size(); ++i)
    if (patterns[i].fits(form, compute_capability, false)) return &order_rows[i];
  return nullptr;
}

// What has been asked for recently.
struct RecentExpansion {
  FormId form;
  uint32_t capability_and_literal = 0;
  const Expansion* expansion = nullptr;
};

[[gnu::noinline]] const Expansion& renewed(RecentExpansion& entry, const Form& form, uint32_t compute_capability,
                                           bool literal, uint32_t key) {
  entry = {form.id, key, &find_expansion(form, compute_capability, literal)};
  return *entry.expansion;
}

} // namespace

const Expansion& expansion_of(const Form& form, uint32_t compute_capability, bool literal) {
  // A kernel has few forms, and every version of it asks for all of them again.
  constexpr size_t kept = 1024;
  thread_local std::array<RecentExpansion, kept> recent;
  if (!form.id) return find_expansion(form, compute_capability, literal);
  const uint32_t key = compute_capability << 1 | static_cast<uint32_t>(literal);
  RecentExpansion& entry = recent[(form.id.index() << 1 | static_cast<uint32_t>(literal)) % kept];
  if (entry.form != form.id || entry.capability_and_literal != key)
    return renewed(entry, form, compute_capability, literal, key);
  return *entry.expansion;
}

uint16_t instructions_of_order(const Form& form, uint32_t compute_capability) {
  const OrderRow* row = find_order(form, compute_capability);
  return row ? row->instructions : 0;
}

bool may_use_subroutine(Opcode opcode) {
  static const auto uses = [] {
    std::vector<bool> list(static_cast<size_t>(Opcode::opaque) + 1);
    for (const ExpansionRow& row : expansion_rows)
      if (row.expansion.subroutine != Subroutine::none) {
        list.resize(std::max(list.size(), static_cast<size_t>(row.opcode) + 1));
        list[static_cast<size_t>(row.opcode)] = true;
      }
    return list;
  }();
  return static_cast<size_t>(opcode) < uses.size() && uses[static_cast<size_t>(opcode)];
}

SubroutineSize size_of(Subroutine subroutine) {
  return subroutine_rows[static_cast<size_t>(subroutine)].size;
}

std::vector<std::string> machine_names(const Form& form, uint32_t compute_capability, bool literal,
                                       std::span<const std::string_view> fused) {
  const uint32_t target = std::max(compute_capability, first_named_target);
  const Expansion* expansion = fused.empty() ? nullptr : find_fused(form, target, literal, fused);
  if (!expansion) expansion = &find_expansion(form, target, literal);
  std::vector<std::string> names;
  const auto append = [&](std::string_view list) {
    for_each_name(list, [&](const NameItem& item) {
      if (!item.name.starts_with('?')) names.insert(names.end(), item.count, std::string(item.name));
    });
  };
  const OrderRow* order = find_order(form, compute_capability);
  if (order) append(order->before);
  append(expansion->names);
  if (order) append(order->behind);
  return names;
}

} // namespace ptxrewrite::ir
