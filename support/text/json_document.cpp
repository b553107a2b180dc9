#include "support/text/json_document.h"

#include "support/text/near_names.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>
#include <set>

namespace ptxrewrite {

namespace {

using json = nlohmann::json;

constexpr size_t depth_limit = 100;

// Counts the characters that the parser has consumed, because its events have no positions.
class CountingIterator {
public:
  using difference_type = std::ptrdiff_t;
  using value_type = char;
  using pointer = const char*;
  using reference = const char&;
  using iterator_category = std::input_iterator_tag;

  CountingIterator(const char* at, size_t* taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*taken_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

private:
  const char* at_;
  size_t* taken_;
};

// Builds the tree from the parser's events. A token starts at the first character after the last token that is neither
// a blank nor a separator.
class TreeBuilder : public nlohmann::json_sax<json> {
public:
  TreeBuilder(const SourceFile& source, const size_t& taken, Diagnostics& diagnostics)
      : text_(source.text()), taken_(taken), diagnostics_(diagnostics) {}

  Node root;

  bool null() override { return add(make(NodeKind::other)); }
  bool boolean(bool value) override {
    Node node = make(NodeKind::boolean);
    node.boolean = value;
    return add(std::move(node));
  }
  bool number_integer(number_integer_t value) override { return add_integer(value); }
  bool number_unsigned(number_unsigned_t value) override {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return add_integer(static_cast<int64_t>(value));
    return number_float(static_cast<double>(value), {});
  }
  bool number_float(number_float_t value, const string_t&) override {
    Node node = make(NodeKind::decimal);
    node.decimal = value;
    return add(std::move(node));
  }
  bool string(string_t& value) override {
    Node node = make(NodeKind::text);
    node.text = value;
    const size_t inside = node.range.begin + 1;
    if (inside + value.size() <= text_.size() && text_.substr(inside, value.size()) == value)
      node.text_offset = static_cast<uint32_t>(inside);
    return add(std::move(node));
  }
  bool binary(binary_t&) override { return false; } // does not occur in JSON text
  bool start_object(size_t) override { return open(NodeKind::table); }
  bool start_array(size_t) override { return open(NodeKind::array); }
  bool key(string_t& name) override {
    key_range_ = token();
    key_ = name;
    if (keys_.back().insert(name).second) return true;
    diagnostics_.error(key_range_, "'" + name + "' stands here twice");
    return false;
  }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool parse_error(size_t position, const std::string&, const json::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while ...": keep the part after
    // the position.
    std::string message = error.what();
    if (size_t at = message.find("column "); at != message.npos)
      if (size_t colon = message.find(": ", at); colon != message.npos) message.erase(0, colon + 2);
    SourceRange range;
    if (const uint32_t size = static_cast<uint32_t>(text_.size()); size > 0) {
      range.begin = std::min(static_cast<uint32_t>(position == 0 ? 0 : position - 1), size - 1);
      range.end = range.begin + 1;
    }
    diagnostics_.error(range, "JSON: " + message);
    return false;
  }

private:
  SourceRange token() {
    size_t begin = last_end_;
    auto is_between = [](char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ',' || c == ':'; };
    while (begin < text_.size() && is_between(text_[begin]))
      ++begin;
    size_t end = std::max(taken_, begin + 1);
    // The parser recognises a number's end only by the next character.
    if (begin < text_.size() && (text_[begin] == '-' || (text_[begin] >= '0' && text_[begin] <= '9')))
      end = std::min(text_.find_first_of(" \t\r\n,]}:", begin), text_.size());
    last_end_ = end;
    return {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)};
  }
  Node make(NodeKind kind) {
    Node node;
    node.kind = kind;
    node.range = token();
    return node;
  }
  bool add_integer(int64_t value) {
    Node node = make(NodeKind::integer);
    node.integer = value;
    return add(std::move(node));
  }
  Node* place(Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return &root;
    }
    Node& parent = *stack_.back();
    if (parent.is(NodeKind::array)) {
      parent.items.push_back(std::move(node));
      return &parent.items.back();
    }
    parent.members.push_back({key_, key_range_, std::move(node)});
    return &parent.members.back().value;
  }
  bool add(Node node) {
    place(std::move(node));
    return true;
  }
  // A parent's list does not grow while one of its elements is open, so pointers in stack_ stay valid.
  bool open(NodeKind kind) {
    Node node = make(kind);
    if (stack_.size() >= depth_limit) {
      diagnostics_.error(node.range, "JSON: nested too deeply");
      return false;
    }
    stack_.push_back(place(std::move(node)));
    keys_.emplace_back();
    return true;
  }
  bool close() {
    token();
    stack_.pop_back();
    keys_.pop_back();
    return true;
  }

  std::string_view text_;
  const size_t& taken_;
  Diagnostics& diagnostics_;
  size_t last_end_ = 0;
  std::vector<Node*> stack_;
  std::vector<std::set<std::string>> keys_; // of the open objects
  std::string key_;
  SourceRange key_range_;
};

class SchemaChecker {
public:
  SchemaChecker(const Node& root, Diagnostics& diagnostics) : root_(root), diagnostics_(diagnostics) {}

  void check(const Node& value, const Node& schema, const std::string& what) {
    const Node& rule = resolved(schema);
    if (const Node* type = rule.find("type"); type && !has_type(value, type->text)) {
      diagnostics_.error(value.range, what + ": expected " + type_text(type->text));
      return;
    }
    check_value(value, rule, what);
    if (value.is(NodeKind::table)) check_table(value, rule, what);
    if (value.is(NodeKind::array)) check_array(value, rule, what);
  }

private:
  const Node& resolved(const Node& schema) const {
    const Node* reference = schema.find("$ref");
    if (!reference) return schema; // NOLINT(bugprone-return-const-ref-from-parameter): schemas outlive the check
    const Node* definitions = root_.find("$defs");
    const std::string name = reference->text.substr(reference->text.rfind('/') + 1);
    const Node* found = definitions ? definitions->find(name) : nullptr;
    return found ? *found : schema; // NOLINT(bugprone-return-const-ref-from-parameter)
  }

  static bool has_type(const Node& value, const std::string& type) {
    if (type == "object") return value.is(NodeKind::table);
    if (type == "array") return value.is(NodeKind::array);
    if (type == "string") return value.is(NodeKind::text);
    if (type == "integer") return value.is(NodeKind::integer);
    if (type == "boolean") return value.is(NodeKind::boolean);
    return true;
  }
  static std::string type_text(const std::string& type) {
    return (type.find_first_of("aeiou") == 0 ? "an " : "a ") + type;
  }
  static std::string shown(const Node& value) {
    return value.is(NodeKind::text) ? '"' + value.text + '"' : std::to_string(value.integer);
  }
  static bool same(const Node& a, const Node& b) {
    return a.kind == b.kind && a.text == b.text && a.integer == b.integer && a.boolean == b.boolean;
  }

  void check_value(const Node& value, const Node& rule, const std::string& what) {
    if (const Node* constant = rule.find("const"); constant && !same(value, *constant))
      diagnostics_.error(value.range, what + ": expected " + shown(*constant));
    if (const Node* choices = rule.find("enum")) {
      std::string list;
      for (const Node& choice : choices->items) {
        if (same(value, choice)) return;
        list += (list.empty() ? "" : ", ") + shown(choice);
      }
      diagnostics_.error(value.range, what + ": expected one of " + list);
    }
    if (const Node* least = rule.find("minLength"))
      if (static_cast<int64_t>(value.text.size()) < least->integer)
        diagnostics_.error(value.range, what + ": expected a string that is not empty");
    if (const Node* least = rule.find("minimum"))
      if (value.integer < least->integer)
        diagnostics_.error(value.range, what + ": expected at least " + std::to_string(least->integer));
  }

  void check_table(const Node& value, const Node& rule, const std::string& what) {
    const Node* properties = rule.find("properties");
    std::vector<std::string> known;
    if (properties)
      for (const Member& property : properties->members)
        known.push_back(property.key);
    for (const Member& member : value.members) {
      const Node* property = properties ? properties->find(member.key) : nullptr;
      if (property)
        check(member.value, *property, what + "." + member.key);
      else if (const Node* additional = rule.find("additionalProperties"); additional && !additional->boolean)
        diagnostics_.error(member.key_range,
                           "'" + member.key + "' is no key of " + what + near_names(member.key, known));
    }
    if (const Node* required = rule.find("required"))
      for (const Node& key : required->items)
        if (!value.find(key.text)) diagnostics_.error(value.range, what + ": '" + key.text + "' is missing");
  }

  void check_array(const Node& value, const Node& rule, const std::string& what) {
    if (const Node* least = rule.find("minItems"); least && static_cast<int64_t>(value.items.size()) < least->integer)
      diagnostics_.error(value.range, what + ": expected at least " + std::to_string(least->integer) + " entries");
    if (const Node* items = rule.find("items"))
      for (size_t i = 0; i < value.items.size(); ++i)
        check(value.items[i], *items, what + "[" + std::to_string(i) + "]");
  }

  const Node& root_;
  Diagnostics& diagnostics_;
};

} // namespace

std::optional<Node> read_json(const SourceFile& source, Diagnostics& diagnostics) {
  size_t taken = 0;
  TreeBuilder builder(source, taken, diagnostics);
  const char* begin = source.text().data();
  const size_t errors_before = diagnostics.error_count();
  const bool ok = json::sax_parse(CountingIterator(begin, &taken),
                                  CountingIterator(begin + source.text().size(), &taken), &builder);
  if (ok && diagnostics.error_count() == errors_before) return std::move(builder.root);
  if (diagnostics.error_count() == errors_before) diagnostics.error({}, "this is no JSON");
  return std::nullopt;
}

void check_schema(const Node& value, const Node& schema, Diagnostics& diagnostics) {
  SchemaChecker(schema, diagnostics).check(value, schema, "the file");
}

} // namespace ptxrewrite
