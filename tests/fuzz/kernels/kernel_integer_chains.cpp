// Integer instructions whose results are only read by each other: shifts, logic, multiply-adds, bit fields,
// conversions, permutations, in 32 and 64 bits. Candidates for fusing passes.
#include "tests/fuzz/kernels/kernel_builder.h"

#include <algorithm>

namespace ptxrewrite::fuzz {

namespace {

bool is_integer_group(const std::string& group) {
  for (const char* name : {"integer arithmetic", "integer multiplication", "logic", "lop3", "shift", "funnel shift",
                           "bit fields", "integer conversion"})
    if (group == name) return true;
  return false;
}

// Operations from one kind of register to another: the letter of a source that may be the chain's last value.
struct Link {
  uint32_t operation = 0;
  std::vector<size_t> sources; // positions
};

std::vector<Link> links(char from, char to) {
  std::vector<Link> result;
  const std::vector<Operation>& table = operations();
  for (uint32_t i = 0; i < table.size(); ++i) {
    const Operation& operation = table[i];
    if (!is_integer_group(operation.group) || operation.is_sequence || operation.results != std::string(1, to))
      continue;
    Link link{i, {}};
    for (size_t at = 0; at < operation.sources.size(); ++at)
      if (std::tolower(operation.sources[at]) == from || (from == 'r' && operation.sources[at] == 'c'))
        link.sources.push_back(at);
    if (!link.sources.empty()) result.push_back(std::move(link));
  }
  return result;
}

const std::vector<Link>& links_between(bool from_wide, bool to_wide) {
  static const std::vector<Link> all[4] = {links('r', 'r'), links('r', 'd'), links('d', 'r'), links('d', 'd')};
  return all[2 * from_wide + to_wide];
}

} // namespace

// One register of 32 bits and one of 64 pass through the whole chain, so that each value is dead after the next one;
// sometimes another instruction reads it before.
void Builder::random_integer_chain() {
  // Sources first: a new variable could be picked before it has a value.
  const Operand first_narrow = reg(pick_variable(Kind::b32, Level::thread));
  const Operand first_wide = reg(pick_variable(Kind::b64, Level::thread));
  const uint32_t narrow = new_variable(Kind::b32, Level::thread);
  auto assign = [&](uint32_t operation, uint32_t target, std::vector<Operand> sources, const Guard& guard) {
    count(operations()[operation].group);
    Statement statement;
    statement.operation = operation;
    statement.sources = std::move(sources);
    statement.results = {target};
    statement.guard = guard;
    emit(std::move(statement));
  };
  assign(operation_named("mov.u32", "r", "r"), narrow, {first_narrow}, {});
  const uint32_t wide = new_variable(Kind::b64, Level::thread);
  assign(operation_named("mov.b64", "d", "d"), wide, {first_wide}, {});
  bool is_wide = false;
  const uint64_t length = 3 + random_.below(10);
  Guard guard;
  for (uint64_t i = 0; i < length; ++i) {
    if (random_.one_in(6)) guard = random_.chance(knobs_.guard) ? pick_guard(Level::thread) : Guard();
    const bool to_wide = is_wide ? !random_.one_in(3) : random_.one_in(6);
    const Link& link = random_.pick(links_between(is_wide, to_wide));
    const Operation& operation = operations()[link.operation];
    std::vector<Operand> sources;
    for (char letter : operation.sources)
      sources.push_back(pick_operand(letter, Level::thread));
    sources[random_.pick(link.sources)] = reg(is_wide ? wide : narrow);
    assign(link.operation, to_wide ? wide : narrow, std::move(sources), guard);
    is_wide = to_wide;
    if (random_.one_in(7)) { // another reader of a possible intermediate result
      const Operand second = pick_operand(is_wide ? 'd' : 'r', Level::thread);
      const uint32_t other = new_variable(is_wide ? Kind::b64 : Kind::b32, Level::thread);
      assign(operation_named(is_wide ? "add.s64" : "xor.b32", is_wide ? "d" : "r", is_wide ? "dd" : "rr"), other,
             {reg(is_wide ? wide : narrow), second}, {});
    }
  }
}

Knobs integer_knobs() {
  Knobs knobs;
  knobs.statements = 12;
  knobs.nested_statements = 4;
  knobs.depth = 2;
  knobs.trips = 12;
  knobs.floats = false;
  knobs.approximate = 0;
  knobs.functions = 0.15;
  knobs.integer_chains = true;
  for (const char* name : {"integer arithmetic", "integer multiplication", "logic", "lop3", "shift", "funnel shift",
                           "bit fields", "integer conversion"})
    knobs.weights[name] = 3;
  for (const char* name : {"warp function", "barrier reduction", "shared atomic", "commutative atomic", "slot atomic"})
    knobs.weights[name] = 0.2;
  return knobs;
}

} // namespace ptxrewrite::fuzz
