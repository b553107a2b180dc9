// The names of a launch file, and evaluation of its values with them.
#pragma once

#include "launch/launch_plan.h"
#include "support/diagnostic.h"
#include "support/text/document.h"

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::launch {

// Evaluates values of the file and reports errors to the diagnostics. Names of [let] are evaluated on first use, so
// that their order is irrelevant.
class Scope {
public:
  // `lets` may be null. `sized_names`: names that only some sizes define, with those sizes, for messages.
  Scope(const Node* lets, std::map<std::string, std::string> sized_names, Diagnostics& diagnostics);

  // Evaluates all of [let], so that errors are reported even in unused names.
  void check_all();

  // The names of [let] that have a value.
  std::map<std::string, Number> values() const;

  // Loop names; the innermost hides others.
  void push(const std::string& name, Int128 value) { loops_.emplace_back(name, value); }
  void pop() { loops_.pop_back(); }
  // "t = 3, s = 0"
  std::string trip() const;

  // Evaluates a number, or a string with an expression. `what` begins messages: "grid.x". Returns nullopt on errors.
  std::optional<Number> number(const Node& node, const std::string& what);
  // As above, for an integer from `low` to `high`.
  std::optional<Int128> integer(const Node& node, const std::string& what, Int128 low, Int128 high);

  // An expression over the element index. Returns nullopt after diagnosing an error.
  std::optional<BoundExpression> formula(const Node& node, const std::string& what);

  void error(SourceRange range, std::string message, std::vector<std::string> notes = {});

private:
  enum class State : uint8_t { waiting, busy, known, wrong };
  struct Let {
    const Node* node = nullptr;
    SourceRange key_range;
    State state = State::waiting;
    Number value;
  };

  // The parsed expression of a string node; nullptr after an error, which is diagnosed once.
  const ArithmeticExpression* parsed(const Node& node, const std::string& what);
  std::optional<Number> lookup(const std::string& name, SourceRange range);
  // Converts a range in an expression to one in the file.
  static SourceRange in_file(const Node& node, SourceRange range);

  std::map<std::string, Let> lets_;
  std::map<std::string, std::string> sized_names_;
  std::vector<std::pair<std::string, Int128>> loops_;
  std::unordered_map<const Node*, std::optional<ArithmeticExpression>> expressions_;
  unsigned depth_ = 0;
  Diagnostics& diagnostics_;
};

// The reason why this cannot be a name in expressions: not an identifier, or a reserved word. nullopt if it can.
std::optional<std::string> why_no_name(std::string_view name);

} // namespace ptxrewrite::launch
