#include "ir/isa/isa_availability.h"

#include "ir/isa/isa_match.h"
#include "ir/isa/isa_operands.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>

namespace ptxrewrite::ir {

namespace {

// First versions of targets, determined by trying every pair of .version and .target with ptxas 13.0 and 13.5; the
// latter has sm_88 only from 9.0 on.
struct TargetVersion {
  std::string_view target; // without sm_
  PtxVersion first;
};
constexpr TargetVersion target_versions[] = {
    {"10", {1, 0}},   {"11", {1, 0}},   {"12", {1, 2}},   {"13", {1, 2}},   {"20", {2, 0}},   {"21", {2, 0}},
    {"30", {3, 0}},   {"35", {3, 1}},   {"32", {4, 0}},   {"50", {4, 0}},   {"37", {4, 1}},   {"52", {4, 1}},
    {"53", {4, 2}},   {"60", {5, 0}},   {"61", {5, 0}},   {"62", {5, 0}},   {"70", {5, 1}},   {"72", {6, 1}},
    {"82", {6, 2}},   {"75", {6, 3}},   {"80", {7, 0}},   {"86", {7, 1}},   {"88", {9, 0}},   {"87", {7, 4}},
    {"89", {7, 8}},   {"90", {7, 8}},   {"90a", {8, 0}},  {"100", {8, 6}},  {"100a", {8, 6}}, {"101", {8, 6}},
    {"101a", {8, 6}}, {"120", {8, 7}},  {"120a", {8, 7}}, {"100f", {8, 8}}, {"101f", {8, 8}}, {"103", {8, 8}},
    {"103a", {8, 8}}, {"103f", {8, 8}}, {"120f", {8, 8}}, {"121", {8, 8}},  {"121a", {8, 8}}, {"121f", {8, 8}},
    {"110", {9, 0}},  {"110a", {9, 0}}, {"110f", {9, 0}}, {"107", {9, 4}},  {"107a", {9, 4}}, {"107f", {9, 4}},
};

unsigned number(std::string_view text) {
  unsigned value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

PtxVersion version_of(std::string_view text) {
  const size_t dot = text.find('.');
  return {number(text.substr(0, dot)), number(text.substr(dot + 1))};
}

// "90" for "sm_90" and "compute_90", "100a" for "sm_100a".
std::string_view bare(std::string_view target) {
  return target.substr(target.find('_') + 1);
}

// "2.0" (and later) or "1.0..1.3".
bool version_fits(std::string_view column, PtxVersion version) {
  const size_t dots = column.find("..");
  if (version < version_of(column.substr(0, dots))) return false;
  return dots == std::string_view::npos || version <= version_of(column.substr(dots + 2));
}

// One word of the column: "sm_90+", "sm_11..sm_13", "sm_100a", or "sm_100a@8.6" (supported from version 8.6 on).
bool target_fits(std::string_view word, PtxVersion version, std::string_view target) {
  if (const size_t at = word.find('@'); at != std::string_view::npos)
    return bare(word.substr(0, at)) == target && version >= version_of(word.substr(at + 1));
  if (word.ends_with('+')) return number(target) >= number(bare(word));
  // Until PTX 6.3, targets from sm_70 on support `vote` and `shfl` without .sync, whose rows end at sm_62.
  if (word.ends_with("..sm_62") && version <= PtxVersion{6, 3}) return number(target) >= number(bare(word));
  if (const size_t dots = word.find(".."); dots != std::string_view::npos)
    return number(target) >= number(bare(word.substr(0, dots))) &&
           number(target) <= number(bare(word.substr(dots + 2)));
  return bare(word) == target;
}

bool any_target_fits(std::string_view column, PtxVersion version, std::string_view target) {
  while (!column.empty()) {
    const size_t blank = column.find(' ');
    if (target_fits(column.substr(0, blank), version, target)) return true;
    column = blank == std::string_view::npos ? std::string_view() : column.substr(blank + 1);
  }
  return false;
}

bool is_available(const table::Row& row, PtxVersion version, std::string_view target) {
  return row.text->version.empty() ||
         (version_fits(row.text->version, version) && any_target_fits(row.text->targets, version, target));
}

void add_reason(const table::Row& row, std::string& reasons) {
  std::string reason = "PTX " + std::string(row.text->version);
  if (reason.find("..") == std::string::npos) reason += '+';
  reason += ", " + std::string(row.text->targets);
  if (reasons.find(reason) == std::string::npos) reasons += (reasons.empty() ? "needs " : " or ") + reason;
}

// `target` without its prefix.
std::string search_availability(const Form& form, PtxVersion version, std::string_view target) {
  const table::OpcodeRows& rows = table::rows_of(form.opcode);
  const bool available = table::match_only(rows, form.modifiers,
                                           [&](const table::Row& row) { return is_available(row, version, target); });
  if (available) return {};
  std::string reasons;
  for (const table::Match& match : table::match_rows(rows, form.modifiers))
    add_reason(*match.row, reasons);
  return reasons;
}

} // namespace

std::optional<PtxVersion> parse_version(std::string_view text) {
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  return version_of(text);
}

bool is_target_at_least(std::string_view target, std::string_view first) {
  return number(bare(target)) >= number(bare(first));
}

std::string why_not_available(const Form& form, PtxVersion version, std::string_view target) {
  if (form.opaque || form.extension || target.empty()) return {};
  // Questions repeat: a module has one version, one or two targets and few forms.
  struct Available {
    FormId form;
    PtxVersion version;
    std::string target;
  };
  constexpr size_t kept = 256;
  thread_local std::array<Available, kept> recent;
  if (!form.id) return search_availability(form, version, bare(target));
  Available& known = recent[form.id.index() % kept];
  if (known.form == form.id && known.version == version && known.target == target) return {};
  std::string reasons = search_availability(form, version, bare(target));
  if (reasons.empty()) known = {form.id, version, std::string(target)};
  return reasons;
}

bool availability_depends_on_operands(const Form& form) {
  return !form.shapes.empty() && form.shapes.front().rows_differ;
}

std::string why_not_available(const Form& form, std::span<const OperandSummary> operands, PtxVersion version,
                              std::string_view target) {
  std::string reasons;
  if (target.empty() || !availability_depends_on_operands(form)) return reasons;
  for (const OperandShape& shape : form.shapes) {
    if (!fits(shape, operands)) continue;
    for (const table::Row* row : shape.rows) {
      if (is_available(*row, version, bare(target))) return {};
      add_reason(*row, reasons);
    }
  }
  return reasons;
}

std::optional<PtxVersion> first_version_of_target(std::string_view target) {
  const auto known = std::ranges::find(target_versions, bare(target), &TargetVersion::target);
  if (known == std::end(target_versions)) return std::nullopt;
  return known->first;
}

} // namespace ptxrewrite::ir
