#include "launch/scope.h"

#include "launch/functions.h"
#include "support/text/near_names.h"

#include <algorithm>

namespace ptxrewrite::launch {

namespace {

constexpr unsigned depth_limit = 100; // of names defined by other names

// Names in a buffer's formula.
constexpr std::string_view index_name = "i";
constexpr std::string_view count_name = "count";
constexpr std::string_view reserved_names[] = {index_name, count_name, "ptx",    "buffer",
                                               "launch",   "constant", "global", "texture"};

} // namespace

std::optional<std::string> why_no_name(std::string_view name) {
  auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool identifier = !name.empty() && is_letter(name[0]) &&
                    std::ranges::all_of(name, [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
  if (!identifier) return "a name is made of letters, digits and _, and starts with no digit";
  for (std::string_view reserved : reserved_names)
    if (name == reserved) return "'" + std::string(name) + "' means something else in a launch file";
  for (const FunctionRow& row : launch_dialect().functions)
    if (name == row.name) return "'" + std::string(name) + "' is a function of expressions";
  return std::nullopt;
}

Scope::Scope(const Node* lets, std::map<std::string, std::string> sized_names, Diagnostics& diagnostics)
    : sized_names_(std::move(sized_names)), diagnostics_(diagnostics) {
  if (!lets) return;
  for (const Member& member : lets->members) {
    if (auto reason = why_no_name(member.key)) {
      error(member.key_range, *reason);
      continue;
    }
    lets_[member.key] = Let{&member.value, member.key_range};
  }
}

void Scope::check_all() {
  std::vector<std::pair<uint32_t, std::string>> order;
  for (const auto& [name, let] : lets_)
    order.emplace_back(let.key_range.begin, name);
  std::ranges::sort(order);
  for (const auto& [ignored, name] : order)
    (void)lookup(name, lets_[name].key_range);
}

std::map<std::string, Number> Scope::values() const {
  std::map<std::string, Number> known;
  for (const auto& [name, let] : lets_)
    if (let.state == State::known) known.emplace(name, let.value);
  return known;
}

std::string Scope::trip() const {
  std::string text;
  for (const auto& [name, value] : loops_)
    text += (text.empty() ? "" : ", ") + name + " = " + to_string(value);
  return text;
}

void Scope::error(SourceRange range, std::string message, std::vector<std::string> notes) {
  if (std::string where = trip(); !where.empty()) notes.push_back("with " + where);
  diagnostics_.add({Severity::error, range, std::move(message), std::move(notes)});
}

SourceRange Scope::in_file(const Node& node, SourceRange range) {
  if (node.text_offset == 0 || range.empty()) return node.range;
  return {node.text_offset + range.begin, node.text_offset + range.end};
}

const ArithmeticExpression* Scope::parsed(const Node& node, const std::string& what) {
  auto found = expressions_.find(&node);
  if (found == expressions_.end()) {
    Result<ArithmeticExpression> expression = ArithmeticExpression::parse(node.text, launch_dialect());
    if (!expression) error(in_file(node, expression.error().range), what + ": " + expression.error().message);
    found = expressions_.emplace(&node, expression ? std::optional(*std::move(expression)) : std::nullopt).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<Number> Scope::lookup(const std::string& name, SourceRange range) {
  for (auto loop = loops_.rbegin(); loop != loops_.rend(); ++loop)
    if (loop->first == name) return Number(loop->second);
  auto found = lets_.find(name);
  if (found == lets_.end()) {
    if (auto sized = sized_names_.find(name); sized != sized_names_.end()) {
      error(range, "'" + name + "' has a value only with a size: choose one with --size (" + sized->second + ")");
      return std::nullopt;
    }
    std::vector<std::string> known;
    for (const auto& [key, ignored] : lets_)
      known.push_back(key);
    for (const auto& [key, ignored] : loops_)
      known.push_back(key);
    error(range, "there is no name '" + name + "'" + near_names(name, known));
    return std::nullopt;
  }
  Let& let = found->second;
  if (let.state == State::busy) {
    error(let.key_range, "'" + name + "' is defined by itself");
    let.state = State::wrong;
  }
  if (let.state == State::waiting && depth_ == depth_limit) {
    error(let.key_range, "names depend on one another more than " + std::to_string(depth_limit) + " times over");
    let.state = State::wrong;
  }
  if (let.state == State::waiting) {
    let.state = State::busy;
    ++depth_;
    // Loop names are not visible in [let].
    auto hidden = std::move(loops_);
    loops_.clear();
    std::optional<Number> value = number(*let.node, name);
    loops_ = std::move(hidden);
    --depth_;
    if (value && let.state == State::busy) let.value = *value;
    let.state = value && let.state == State::busy ? State::known : State::wrong;
  }
  if (let.state == State::wrong) return std::nullopt; // diagnosed
  return let.value;
}

std::optional<Number> Scope::number(const Node& node, const std::string& what) {
  if (node.is(NodeKind::integer)) return Number(node.integer);
  if (node.is(NodeKind::decimal)) return Number::of(node.decimal);
  if (!node.is(NodeKind::text)) {
    error(node.range,
          what + ": expected a number or a string with an expression, not " + std::string(describe(node.kind)));
    return std::nullopt;
  }
  const ArithmeticExpression* expression = parsed(node, what);
  if (!expression) return std::nullopt;
  if (expression->per_element()) {
    error(node.range, what + ": functions like uniform and iota are for the contents of buffers");
    return std::nullopt;
  }
  std::vector<Number> values;
  for (size_t i = 0; i < expression->names().size(); ++i) {
    std::optional<Number> value = lookup(expression->names()[i], in_file(node, expression->name_ranges()[i]));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  Result<Number> result = expression->evaluate(values);
  if (!result) {
    error(in_file(node, result.error().range), what + ": " + result.error().message);
    return std::nullopt;
  }
  return *result;
}

std::optional<Int128> Scope::integer(const Node& node, const std::string& what, Int128 low, Int128 high) {
  std::optional<Number> value = number(node, what);
  if (!value) return std::nullopt;
  if (value->is_decimal) {
    error(node.range, what + " is " + to_string(*value) + "; expected an integer");
    return std::nullopt;
  }
  if (value->integer < low || value->integer > high) {
    error(node.range,
          what + " is " + to_string(value->integer) + "; expected " + to_string(low) + " to " + to_string(high));
    return std::nullopt;
  }
  return value->integer;
}

std::optional<BoundExpression> Scope::formula(const Node& node, const std::string& what) {
  if (!node.is(NodeKind::text)) {
    error(node.range,
          what + ": expected a string like \"uniform(-1, 1, seed=1)\", not " + std::string(describe(node.kind)));
    return std::nullopt;
  }
  const ArithmeticExpression* expression = parsed(node, what);
  if (!expression) return std::nullopt;
  BoundExpression bound;
  bound.expression = std::make_shared<const ArithmeticExpression>(*expression);
  for (size_t i = 0; i < expression->names().size(); ++i) {
    const std::string& name = expression->names()[i];
    std::optional<Number> value = Number(0);
    if (name == index_name)
      bound.index_slot = i;
    else if (name == count_name)
      bound.count_slot = i;
    else
      value = lookup(name, in_file(node, expression->name_ranges()[i]));
    if (!value) return std::nullopt;
    bound.values.push_back(*value);
  }
  return bound;
}

} // namespace ptxrewrite::launch
