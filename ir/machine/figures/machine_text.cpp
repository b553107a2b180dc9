#include "ir/machine/figures/machine_text.h"

#include "ir/machine/figures/machine_fields.h"
#include "support/text/near_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <vector>

namespace ptxrewrite::ir {
namespace {

constexpr std::string_view no_unit = "none";

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "90" or "9.0", both 90; "12.1" is 121.
std::optional<double> capability_in(std::string_view text) {
  const size_t dot = text.find('.');
  const std::optional<double> major = number_in(text.substr(0, dot));
  if (dot == std::string_view::npos || !major || text.size() != dot + 2) return std::nullopt;
  const std::optional<double> minor = number_in(text.substr(dot + 1));
  return minor ? std::optional(*major * 10 + *minor) : std::nullopt;
}

// Describes the values of a field, for messages.
std::string expected(const MachineField& field) {
  switch (field.kind) {
  case FieldKind::capability:
    return "a string like \"9.0\"";
  case FieldKind::flag:
    return "true or false";
  case FieldKind::register_unit:
    return "\"block\" or \"warp\"";
  default:
    break;
  }
  std::string text = fmt::format("{} from {} to {}", field.kind == FieldKind::count ? "a whole number" : "a number",
                                 number_text(field.least), number_text(field.most));
  if (!field.unit.empty()) text += fmt::format(" ({})", field.unit);
  if (field.may_be_guess()) text += ", or a guess like \"" + number_text(std::max(field.least, 10.0)) + "?\"";
  if (field.may_be_none()) text += ", or \"none\"";
  return text;
}

// The field's value in a node; nullopt if the node has another type.
std::optional<Figure> value_of(const MachineField& field, const Node& node) {
  const bool whole = node.is(NodeKind::integer);
  const bool number = whole || node.is(NodeKind::decimal);
  const double value = whole ? static_cast<double>(node.integer) : node.decimal;
  switch (field.kind) {
  case FieldKind::capability:
    if (node.is(NodeKind::text))
      if (const std::optional<double> capability = capability_in(node.text)) return Figure(*capability);
    return std::nullopt;
  case FieldKind::flag:
    return node.is(NodeKind::boolean) ? std::optional(Figure(node.boolean ? 1 : 0)) : std::nullopt;
  case FieldKind::register_unit:
    if (!node.is(NodeKind::text) || (node.text != "block" && node.text != "warp")) return std::nullopt;
    return Figure(node.text == "warp" ? 1 : 0);
  case FieldKind::count:
    return whole ? std::optional(Figure(value)) : std::nullopt;
  case FieldKind::figure:
  case FieldKind::optional_figure:
  case FieldKind::added_figure:
    break;
  }
  if (number) return Figure(value);
  if (!node.is(NodeKind::text)) return std::nullopt;
  if (node.text == no_unit && field.may_be_none()) return Figure();
  if (!node.text.ends_with('?')) return std::nullopt;
  const std::optional<double> guessed = number_in(std::string_view(node.text).substr(0, node.text.size() - 1));
  return guessed ? std::optional(Figure(*guessed, true)) : std::nullopt;
}

class MachineReader {
public:
  MachineReader(Diagnostics& diagnostics, MachineText& file, const ExtraSection& extra)
      : diagnostics_(diagnostics), file_(file), extra_(extra) {}

  void read(const Node& document) {
    take_base(document);
    take_members(document, "");
    if (!has_base_) complain_of_missing(document);
    if (!diagnostics_.has_errors())
      if (const std::string wrong = contradiction(file_.machine); !wrong.empty()) diagnostics_.error({}, wrong);
  }

private:
  void take_base(const Node& document) {
    const Node* base = document.find("base");
    if (!base) return;
    has_base_ = true; // also if it is invalid, so that missing figures are not reported
    if (!base->is(NodeKind::text)) {
      diagnostics_.error(base->range,
                         fmt::format("base: expected the name of a machine, found {}", describe(base->kind)));
    } else if (const Machine* machine = find_machine(base->text)) {
      file_.machine = *machine;
      file_.chip = machine->chip;
    } else {
      diagnostics_.error(base->range, "base: " + unknown_machine(base->text));
    }
  }

  void take_members(const Node& table, const std::string& section) {
    for (const Member& member : table.members) {
      if (section.empty() && (member.key == "base" || take_text(member))) continue;
      const MachineField* field = find_machine_field(section, member.key);
      if (section.empty() && extra_.read && member.key == extra_.name)
        extra_.read(member.value);
      else if (field)
        take_figure(*field, member);
      else if (section.empty() && is_section(member.key))
        take_section(member);
      else
        unknown(member, section);
    }
  }

  bool take_text(const Member& member) {
    std::string* to = member.key == "name" ? &file_.name : member.key == "chip" ? &file_.chip : nullptr;
    if (!to) return false;
    if (member.value.is(NodeKind::text) && !member.value.text.empty())
      *to = member.value.text;
    else
      diagnostics_.error(member.value.range, fmt::format("{}: expected a string that is not empty, found {}",
                                                         member.key, describe(member.value.kind)));
    return true;
  }

  void take_section(const Member& member) {
    if (member.value.is(NodeKind::table))
      take_members(member.value, member.key);
    else
      diagnostics_.error(member.value.range,
                         fmt::format("{}: expected a table, found {}", member.key, describe(member.value.kind)));
  }

  void take_figure(const MachineField& field, const Member& member) {
    const std::optional<Figure> value = value_of(field, member.value);
    said_.insert(&field);
    if (!value) {
      const Node& node = member.value;
      const std::string found = node.is(NodeKind::text) ? "\"" + node.text + "\"" : std::string(describe(node.kind));
      diagnostics_.error(node.range, fmt::format("{}: expected {}, found {}", field.name, expected(field), found));
    } else if (value->known && !(value->value >= field.least && value->value <= field.most)) {
      diagnostics_.error(member.value.range, fmt::format("{}: expected {}, found {}", field.name, expected(field),
                                                         value_text(field, value->value)));
    } else {
      field.write(file_.machine, *value);
      ++file_.said;
    }
  }

  static bool is_section(std::string_view name) {
    return std::ranges::any_of(
        machine_fields(), [&](const MachineField& field) { return !field.section.empty() && field.section == name; });
  }

  void unknown(const Member& member, const std::string& section) {
    std::vector<std::string> known;
    for (const MachineField& field : machine_fields())
      if (field.section == section) known.emplace_back(field.key);
    std::string elsewhere;
    for (const MachineField& field : machine_fields())
      if (field.section != section && field.key == member.key) elsewhere = field.name;
    if (section.empty()) {
      known.insert(known.end(), {"name", "chip", "base"});
      if (extra_.read) known.push_back(extra_.name);
      for (const MachineField& field : machine_fields())
        if (!field.section.empty() && std::ranges::find(known, field.section) == known.end())
          known.emplace_back(field.section);
    }
    diagnostics_.error(
        member.key_range,
        fmt::format("{}'{}' is no figure of a machine{}", section.empty() ? "" : section + ": ", member.key,
                    elsewhere.empty() ? near_names(member.key, known) : "; it belongs elsewhere: " + elsewhere));
  }

  // One message per section, so that an empty file gives a short list.
  void complain_of_missing(const Node& document) {
    std::string missing;
    SourceRange place;
    std::string_view section;
    auto tell = [&] {
      if (!missing.empty())
        diagnostics_.error(place, fmt::format("{}missing: {}; say {} or a base to take them from, like base = \"h200\"",
                                              section.empty() ? "" : fmt::format("[{}]: ", section), missing,
                                              missing.find(',') == std::string::npos ? "it" : "them"));
      missing.clear();
    };
    for (const MachineField& field : machine_fields()) {
      if (field.section != section) tell();
      section = field.section;
      const Node* table = section.empty() ? nullptr : document.find(section);
      place = table ? table->range : SourceRange{};
      if (!said_.contains(&field) && field.kind != FieldKind::added_figure)
        missing += (missing.empty() ? "" : ", ") + std::string(field.key);
    }
    tell();
  }

  Diagnostics& diagnostics_;
  MachineText& file_;
  const ExtraSection& extra_;
  bool has_base_ = false;
  std::set<const MachineField*> said_;
};

std::string toml_value(const MachineField& field, const Figure& figure) {
  if (!figure.known) return fmt::format("\"{}\"", no_unit);
  const std::string text = value_text(field, figure.value);
  if (figure.guess) return '"' + text + "?\"";
  const bool is_word = field.kind == FieldKind::capability || field.kind == FieldKind::register_unit;
  return is_word ? '"' + text + '"' : text;
}

// The text as a TOML string.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + '"';
}

} // namespace

void read_machine_text(const Node& document, const std::string& default_name, const ExtraSection& extra,
                       MachineText& text, Diagnostics& diagnostics) {
  MachineReader(diagnostics, text, extra).read(document);
  if (text.name.empty()) text.name = default_name;
  if (text.chip.empty()) text.chip = text.name;
  text.machine.name = text.name;
  text.machine.chip = text.chip;
}

std::string machine_text(const Machine& machine, bool remarks) {
  std::string out = fmt::format("name = {}\nchip = {}\n", quoted(machine.name), quoted(machine.chip));
  std::string_view section;
  for (const MachineField& field : machine_fields()) {
    if (field.section != section) out += fmt::format("\n[{}]\n", field.section);
    section = field.section;
    std::string line = fmt::format("{} = {}", field.key, toml_value(field, field.read(machine)));
    std::string remark(field.unit);
    if (!field.about.empty()) remark += (remark.empty() ? "" : ": ") + std::string(field.about);
    if (remarks && !remark.empty()) line = fmt::format("{:<36} # {}", line, remark);
    out += line + '\n';
  }
  return out;
}

} // namespace ptxrewrite::ir
