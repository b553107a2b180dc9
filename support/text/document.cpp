// Only this file includes toml++. Some malformed files drive its parser into states that it asserts to be impossible,
// with undefined behaviour under NDEBUG; here an assertion becomes a diagnostic in every build.
#include <exception>

namespace {
struct ParserAssertion : std::exception {
  const char* what() const noexcept override { return "the parser does not understand this file"; }
};
[[noreturn]] void fail_assertion() {
  throw ParserAssertion();
}
} // namespace

#undef NDEBUG
#define TOML_ASSERT(condition) ((condition) ? void() : fail_assertion())
#define TOML_EXCEPTIONS 1
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "support/text/document.h"
#include "support/text/toml_depth.h"

#include <algorithm>
#include <optional>

namespace ptxrewrite {

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Node* Node::find(std::string_view key) {
  return const_cast<Node*>(std::as_const(*this).find(key));
}

std::string_view describe(NodeKind kind) {
  switch (kind) {
  case NodeKind::table:
    return "a table";
  case NodeKind::array:
    return "an array";
  case NodeKind::text:
    return "a string";
  case NodeKind::integer:
    return "an integer";
  case NodeKind::decimal:
    return "a decimal number";
  case NodeKind::boolean:
    return "true or false";
  case NodeKind::other:
    break;
  }
  return "a date or time";
}

namespace {

class DocumentReader {
public:
  explicit DocumentReader(const SourceFile& source) : text_(source.text()) {
    line_starts_.push_back(0);
    for (size_t at = 0; at < text_.size(); ++at)
      if (text_[at] == '\n') line_starts_.push_back(static_cast<uint32_t>(at + 1));
  }

  Node convert(const toml::node& from) const {
    Node node;
    node.range = range_of(from.source());
    if (const toml::table* table = from.as_table())
      convert_table(*table, node);
    else if (const toml::array* array = from.as_array())
      convert_array(*array, node);
    else if (const auto* text = from.as_string())
      convert_text(text->get(), node);
    else if (const auto* integer = from.as_integer()) {
      node.kind = NodeKind::integer;
      node.integer = integer->get();
    } else if (const auto* decimal = from.as_floating_point()) {
      node.kind = NodeKind::decimal;
      node.decimal = decimal->get();
    } else if (const auto* boolean = from.as_boolean()) {
      node.kind = NodeKind::boolean;
      node.boolean = boolean->get();
    }
    return node;
  }

  SourceRange range_of(const toml::source_region& region) const {
    uint32_t begin = offset_of(region.begin), end = offset_of(region.end);
    if (text_.empty()) return {};
    begin = std::min(begin, static_cast<uint32_t>(text_.size() - 1));
    return {begin, std::max(end, begin + 1)};
  }

private:
  // toml++ counts columns in characters, this program in bytes. Queries usually advance within a line, so the search
  // continues from the last answer.
  uint32_t offset_of(const toml::source_position& position) const {
    if (position.line == 0 || position.line > line_starts_.size()) return 0;
    if (position.line != last_.line || position.column < last_.column) {
      last_ = {position.line, 1};
      last_offset_ = line_starts_[position.line - 1];
    }
    for (; last_.column < position.column && last_offset_ < text_.size() && text_[last_offset_] != '\n';
         ++last_.column) {
      ++last_offset_;
      while (last_offset_ < text_.size() && (static_cast<unsigned char>(text_[last_offset_]) & 0xc0) == 0x80)
        ++last_offset_;
    }
    return static_cast<uint32_t>(last_offset_);
  }

  void convert_table(const toml::table& table, Node& node) const {
    node.kind = NodeKind::table;
    node.members.reserve(table.size());
    for (const auto& [key, value] : table)
      node.members.push_back({std::string(key.str()), range_of(key.source()), convert(value)});
    // toml++ sorts by name; restore file order.
    std::ranges::stable_sort(node.members, {}, [](const Member& member) { return member.key_range.begin; });
  }

  void convert_array(const toml::array& array, Node& node) const {
    node.kind = NodeKind::array;
    node.items.reserve(array.size());
    for (const toml::node& item : array)
      node.items.push_back(convert(item));
  }

  void convert_text(const std::string& text, Node& node) const {
    node.kind = NodeKind::text;
    node.text = text;
    // If the text directly follows one quote, there are no escapes and no line breaks.
    if (node.range.begin + 1 + text.size() <= text_.size() && text_.substr(node.range.begin + 1, text.size()) == text)
      node.text_offset = node.range.begin + 1;
  }

  std::string_view text_;
  std::vector<uint32_t> line_starts_;
  mutable toml::source_position last_{1, 1};
  mutable size_t last_offset_ = 0;
};

} // namespace

std::optional<Node> read_document(const SourceFile& source, Diagnostics& diagnostics) {
  if (const std::optional<size_t> place = too_deep_at(source.text())) {
    const auto begin = static_cast<uint32_t>(*place);
    diagnostics.error({begin, begin + 1},
                      "TOML: tables nest deeper than " + std::to_string(deepest_toml) + " levels here");
    return std::nullopt;
  }
  DocumentReader reader(source);
  try {
    return reader.convert(toml::parse(source.text(), std::string_view(source.name())));
  } catch (const toml::parse_error& error) {
    diagnostics.error(reader.range_of(error.source()), "TOML: " + std::string(error.description()));
  } catch (const ParserAssertion& error) {
    diagnostics.error({}, std::string("TOML: ") + error.what());
  }
  return std::nullopt;
}

} // namespace ptxrewrite
