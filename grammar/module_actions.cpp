// Items other than functions and variables: the header, and items that are kept verbatim.
#include "grammar/actions.h"
#include "grammar/item_scanner.h"

#include "ir/isa/isa_availability.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::grammar {

using namespace ir;

namespace {

// All PTX versions up to 9.5, as major * 10 + minor.
constexpr std::array<uint8_t, 49> known_versions = {10, 11, 12, 13, 14, 15, 20, 21, 22, 23, 30, 31, 32, 40, 41, 42, 43,
                                                    50, 51, 60, 61, 62, 63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78,
                                                    80, 81, 82, 83, 84, 85, 86, 87, 88, 90, 91, 92, 93, 94, 95};

bool is_target_name(std::string_view word) {
  for (std::string_view option : {"texmode_unified", "texmode_independent", "debug", "map_f64_to_f32"})
    if (word == option) return true;
  size_t digits = word.starts_with("sm_") ? 3 : word.starts_with("compute_") ? 8 : 0;
  if (digits == 0) return false;
  word.remove_prefix(digits);
  if (!word.empty() && (word.back() == 'a' || word.back() == 'f')) word.remove_suffix(1);
  return word.size() >= 2 && word.size() <= 4 &&
         std::all_of(word.begin(), word.end(), [](char c) { return c >= '0' && c <= '9'; });
}

} // namespace

void ReaderActions::require_header(SourceRange range) {
  if (!version_seen_) fail(range, "the file must begin with .version");
  items_seen_ = true;
}

void ReaderActions::begin_version(const Lexeme& word) {
  if (version_seen_) fail(word.range, "a second .version");
  if (items_seen_) fail(word.range, ".version must come first");
}

void ReaderActions::version(const Lexeme& number) {
  version_seen_ = true;
  const std::string_view words = text(number);
  const size_t dot = words.find('.');
  const bool plain = dot != std::string_view::npos && dot > 0 && dot <= 2 && words.size() - dot - 1 >= 1 &&
                     words.size() - dot - 1 <= 2 && words.find_first_not_of("0123456789.") == std::string_view::npos;
  if (!plain) fail(number.range, "not a PTX version: " + quote(number.range));
  auto digits = [](std::string_view part) {
    unsigned value = 0;
    for (char c : part)
      value = value * 10 + static_cast<unsigned>(c - '0');
    return static_cast<uint16_t>(value);
  };
  module_.version_major = digits(words.substr(0, dot));
  module_.version_minor = digits(words.substr(dot + 1));
  const unsigned combined = module_.version_major * 10u + module_.version_minor;
  if (combined > 95 || module_.version_minor > 9) {
    if (module_.version_major < 9) fail(number.range, "not a PTX version: " + quote(number.range));
    diagnostics_.warning(number.range, "this PTX version is newer than the 9.5 that we know");
  } else if (std::find(known_versions.begin(), known_versions.end(), combined) == known_versions.end()) {
    fail(number.range, "not a PTX version: " + quote(number.range));
  }
}

void ReaderActions::target(const Lexeme& word) {
  if (!version_seen_) require_header(word.range);
  if (items_seen_ || module_.address_size != 0) fail(word.range, ".target must stand behind .version");
  if (!is_target_name(text(word))) error(word.range, "unknown target " + quote(word.range));
  if (text(word) == "texmode_independent") texture_mode_independent_ = true;
  if (const std::optional<PtxVersion> first = first_version_of_target(text(word));
      first && *first > PtxVersion{module_.version_major, module_.version_minor})
    diagnostics_.warning(word.range, quote(word.range) + " needs PTX " + std::to_string(first->major) + "." +
                                         std::to_string(first->minor) + " or later");
  module_.targets.push_back(intern(text(word)));
}

void ReaderActions::address_size(const Lexeme& number) {
  if (!version_seen_) require_header(number.range);
  if (items_seen_ || module_.address_size != 0) fail(number.range, ".address_size must stand behind .target");
  const uint32_t bits = number32(number);
  if (bits != 32 && bits != 64) fail(number.range, ".address_size must be 32 or 64");
  module_.address_size = static_cast<uint16_t>(bits);
}

void ReaderActions::begin_file(const Lexeme& word) {
  require_header(word.range);
}

void ReaderActions::verbatim() {
  require_header(item_);
  is_verbatim_ = true;
}

void ReaderActions::alias_name(const Lexeme& name) {
  require_header(name.range);
  alias_ = name.range;
  const Binding* binding = names_.find_plain(text(name));
  if (!binding || binding->kind != NameKind::function) fail(name.range, "unknown function " + quote(name.range));
  const Function& function = module_.function(FunctionId(binding->index));
  if (function.is_entry || function.has_body) fail(name.range, "an alias must be a declared .func without a body");
}

void ReaderActions::alias_target(const Lexeme& name) {
  const Binding* binding = names_.find_plain(text(name));
  if (!binding || binding->kind != NameKind::function) fail(name.range, "unknown function " + quote(name.range));
  const Function& target = module_.function(FunctionId(binding->index));
  const Function& alias = module_.function(FunctionId(names_.find_plain(text(alias_))->index));
  if (target.is_entry) fail(name.range, "an entry function cannot have an alias");
  if (!target.has_body) fail(name.range, "an alias must name a function with a body");
  if (target.linkage == Linkage::weak) fail(name.range, "a .weak function cannot have an alias");
  if (target.signature.parameters.count != alias.signature.parameters.count ||
      target.signature.results.count != alias.signature.results.count)
    fail(name.range, "the alias and its function have different numbers of parameters");
}

void ReaderActions::module_pragma(const Lexeme& words) {
  std::string_view pragma = text(words);
  pragma = pragma.substr(1, pragma.size() - 2);
  auto begins = [&](std::string_view known) { return pragma.substr(0, known.size()) == known; };
  if (begins("used_bytes_mask") || begins("enable_smem_spilling") || begins("frequency"))
    error(words.range, "this pragma is allowed only inside functions");
  else if (pragma != "nounroll")
    error(words.range, "unknown pragma " + quote(words.range));
}

bool ReaderActions::raw_section(SourceRange item) {
  std::string_view words = text(item);
  const size_t name_end = std::min(words.find_first_of(" \t\r\n{"), words.size());
  const std::string_view name = words.substr(0, name_end);
  if (!is_raw_section(name)) return false;
  const SourceRange name_range{item.begin, item.begin + static_cast<uint32_t>(name_end)};
  require_header(name_range);
  if (const DirectiveInfo* known = find_directive(name)) warn_of_version(name_range, known->version);
  const size_t open = words.find_first_not_of(" \t\r\n", name_end);
  if (open == std::string_view::npos || words[open] != '{' || words.back() != '}')
    fail(item, std::string(name) + " needs its contents in braces");
  verbatim();
  end_item(item.end);
  return true;
}

void ReaderActions::dwarf(const Lexeme& line) {
  if (version_at_least(2, 0)) fail(line.range, "@@DWARF is not allowed from PTX 2.0 on; use .section");
  verbatim();
}

void ReaderActions::linkage(const Lexeme& word) {
  if (linkage_ != Linkage::none) fail(word.range, "a second linkage word: " + quote(word.range));
  linkage_range_ = word.range;
  switch (text(word)[1]) {
  case 'e':
    linkage_ = Linkage::external;
    break;
  case 'v':
    linkage_ = Linkage::visible;
    break;
  case 'w':
    linkage_ = Linkage::weak;
    break;
  default:
    linkage_ = Linkage::common;
    break;
  }
}

void ReaderActions::section_word(const Lexeme& word) {
  const std::string_view type = text(word);
  section_minus_ = false;
  if (type == ".b8")
    section_bits_ = 8;
  else if (type == ".b16")
    section_bits_ = 16;
  else if (type == ".b32")
    section_bits_ = 32;
  else if (type == ".b64")
    section_bits_ = 64;
  else
    fail(word.range, "expected .b8, .b16, .b32 or .b64 in a .section, not " + quote(word.range));
}

void ReaderActions::section_number(const Lexeme& number) {
  const IntegerLiteral literal = parse_integer(text(number));
  const bool negative = section_minus_;
  section_minus_ = false;
  // The limit is the magnitude of the most negative signed number, or the largest unsigned number, of the width.
  const uint64_t limit = negative              ? uint64_t{1} << (section_bits_ - 1)
                         : section_bits_ == 64 ? UINT64_MAX
                                               : (uint64_t{1} << section_bits_) - 1;
  if (literal.value > limit)
    error(number.range, quote(number.range) + " does not fit into .b" + std::to_string(section_bits_));
}

void ReaderActions::end_module_variables() {}

} // namespace ptxrewrite::grammar
