// The choice of the next statement, and the statements that compute in registers.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

namespace {

// Rows of the table by their group, without address arithmetic.
struct Group {
  std::string name;
  double weight;
  std::vector<uint32_t> rows;
  bool has_floats = false; // in any row
};

double default_weight(const std::string& group) {
  if (group == "integer arithmetic" || group == "integer multiplication") return 3;
  if (group == "integer conversion" || group == "integer comparison" || group == "logic" || group == "shift") return 2;
  if (group == "f32 arithmetic") return 2;
  return 1;
}

const std::vector<Group>& groups() {
  static const std::vector<Group> all = [] {
    std::vector<Group> result;
    const std::vector<Operation>& table = operations();
    for (uint32_t i = 0; i < table.size(); ++i) {
      if (table[i].group == "address arithmetic") continue;
      auto found = std::find_if(result.begin(), result.end(), [&](const Group& g) { return g.name == table[i].group; });
      if (found == result.end()) {
        result.push_back({table[i].group, default_weight(table[i].group), {}, false});
        found = result.end() - 1;
      }
      found->rows.push_back(i);
      for (char letter : table[i].results + table[i].sources)
        found->has_floats = found->has_floats || is_float(kind_of_letter(letter));
    }
    return result;
  }();
  return all;
}

template <class Choices, class Weight> size_t pick_weighted(Random& random, const Choices& choices, Weight&& weight) {
  double total = 0;
  for (const auto& choice : choices)
    total += weight(choice);
  double at = static_cast<double>(random.next() >> 11) * 0x1p-53 * total;
  size_t last = 0; // the last permitted one, in case of rounding
  for (size_t i = 0; i < std::size(choices); ++i) {
    if (weight(choices[i]) <= 0) continue;
    last = i;
    at -= weight(choices[i]);
    if (at < 0) return i;
  }
  return last;
}

} // namespace

std::vector<std::string> operation_group_names() {
  std::vector<std::string> names;
  for (const Group& group : groups())
    names.push_back(group.name);
  return names;
}

void Builder::random_statements(unsigned count_wanted) {
  for (unsigned i = 0; i < count_wanted; ++i)
    random_statement();
}

void Builder::random_statement() {
  using Generate = void (Builder::*)();
  struct Choice {
    const char* name;
    double weight;
    Generate generate;
    bool nests;     // holds statements
    bool in_kernel; // not in device functions
  };
  static constexpr Choice choices[] = {{"operation", 50, &Builder::random_operation, false, false},
                                       {"integer chain", 60, &Builder::random_integer_chain, false, false},
                                       {"special register", 2, &Builder::random_special_register, false, true},
                                       {"masked load", 5, &Builder::random_masked_load, false, true},
                                       {"linear load", 5, &Builder::random_linear_load, false, true},
                                       {"stencil", 2.5, &Builder::random_stencil, false, true},
                                       {"slot store", 5, &Builder::random_slot_store, false, true},
                                       {"slot load", 2, &Builder::random_slot_update, false, true},
                                       {"index access", 3, &Builder::random_index_access, false, true},
                                       {"index data", 2, &Builder::random_index_data, false, true},
                                       {"index loop", 1.5, &Builder::random_index_loop, true, true},
                                       {"index choice", 1.5, &Builder::random_index_choice, false, true},
                                       {"index store", 1.5, &Builder::random_index_store, false, true},
                                       {"own shared", 1.5, &Builder::random_own_shared, false, true},
                                       {"many forms", 0.3, &Builder::random_many_forms, false, true},
                                       {"linear store", 5, &Builder::random_linear_store, false, true},
                                       {"table load", 3, &Builder::random_table_load, false, false},
                                       {"parameter load", 1, &Builder::random_parameter_load, false, true},
                                       {"local access", 4, &Builder::random_local_access, false, true},
                                       {"commutative atomic", 1.5, &Builder::random_global_atomic, false, true},
                                       {"slot atomic", 1.5, &Builder::random_slot_atomic, false, true},
                                       {"barrier reduction", 2, &Builder::random_barrier_reduction, false, true},
                                       {"exchange", 4, &Builder::random_exchange, false, true},
                                       {"shared atomic", 2, &Builder::random_shared_atomic, false, true},
                                       {"race", 6, &Builder::random_race, false, true},
                                       {"warp function", 10, &Builder::random_warp_function, false, true},
                                       {"call", 4, &Builder::random_call, false, false},
                                       {"branch", 7, &Builder::random_branch, true, false},
                                       {"loop", 5, &Builder::random_loop, true, false},
                                       {"switch", 2, &Builder::random_choose, true, false},
                                       {"scope", 1, &Builder::random_scope, true, false},
                                       {"break", 8, &Builder::random_break, false, false},
                                       {"leave", 2, &Builder::random_leave, false, false},
                                       {"no effect", 1, &Builder::random_no_effect, false, true}};
  const Choice& choice = choices[pick_weighted(random_, choices, [&](const Choice& candidate) {
    if (candidate.nests && depth_ >= knobs_.depth) return 0.0;
    if (candidate.in_kernel && function_ != 0) return 0.0;
    if (candidate.generate == &Builder::random_integer_chain && !knobs_.integer_chains) return 0.0;
    if (candidate.generate == &Builder::random_race && !kernel_.races) return 0.0;
    if (candidate.generate == &Builder::random_break && loops_.empty()) return 0.0;
    if (candidate.generate == &Builder::random_leave && function_ == 0 && sync_allowed_) return 0.0;
    return candidate.weight * weight(candidate.name);
  })];
  (this->*choice.generate)();
}

void Builder::random_operation() {
  const Group& group = groups()[pick_weighted(random_, groups(), [&](const Group& candidate) {
    if (candidate.name == "approximate" && kernel_.exact) return 0.0;
    if (candidate.has_floats && !knobs_.floats) return 0.0;
    return candidate.weight * weight(candidate.name);
  })];
  emit_operation(random_.pick(group.rows));
}

// Writes to a new register, or to an existing one, possibly guarded.
void Builder::emit_operation(uint32_t index) {
  const Operation& operation = operations()[index];
  count(operation.group);
  Statement statement;
  statement.operation = index;
  Level limit = random_.chance(knobs_.uniform) ? Level::block : Level::thread;
  uint32_t target = 0;
  const bool assigns = operation.results.size() == 1 && !operation.is_sequence && random_.chance(knobs_.assign) &&
                       pick_target(kind_of_letter(operation.results[0]), context_, target);
  if (assigns) limit = level_of(target);
  for (char letter : operation.sources)
    statement.sources.push_back(pick_operand(letter, limit));
  if (assigns) {
    count("assignment to a live register");
    statement.results = {target};
    if (random_.chance(knobs_.guard)) {
      count("guard");
      statement.guard = pick_guard(limit);
    }
  } else {
    const Level level = level_of(statement.sources);
    for (char letter : operation.results)
      statement.results.push_back(new_variable(kind_of_letter(letter), level, random_.one_in(3)));
  }
  emit(std::move(statement));
}

void Builder::random_special_register() {
  count("special register");
  Statement statement;
  statement.kind = StatementKind::special_register;
  const auto last = static_cast<size_t>(SpecialRegister::lanemask_ge);
  statement.special = static_cast<SpecialRegister>(random_.below(last + 1));
  const Level level = statement.special <= SpecialRegister::tid_z || statement.special >= SpecialRegister::laneid
                          ? Level::thread
                          : Level::block;
  const bool wide = random_.one_in(4);
  statement.text = wide ? "cvt.u64.u32" : random_.one_in(6) ? "cvt.u32.u32" : "mov.u32";
  statement.results = {new_variable(wide ? Kind::b64 : Kind::b32, level)};
  emit(std::move(statement));
}

void Builder::random_no_effect() {
  static constexpr const char* texts[] = {"membar.gl", "membar.cta", "fence.acq_rel.gpu", "fence.sc.cta",
                                          "nanosleep.u32 20"};
  count("fence or sleep");
  Statement statement;
  statement.kind = StatementKind::no_effect;
  statement.text = random_.pick(texts);
  emit(std::move(statement));
}

void Builder::random_call() {
  // Functions only call earlier ones.
  const size_t callable = function_ == 0 ? kernel_.functions.size() : function_ - 1;
  if (callable == 0) return;
  Statement statement;
  statement.kind = StatementKind::call;
  statement.callee = static_cast<uint32_t>(random_.below(callable));
  const Function& callee = kernel_.functions[statement.callee];
  for (uint32_t parameter : callee.parameters)
    statement.sources.push_back(reg(pick_variable(kernel_.variables[parameter].kind, Level::thread)));
  count(context_ == Level::thread ? "call in divergent code" : "call");
  statement.is_uniform = context_ != Level::thread && random_.one_in(3);
  statement.results = {new_variable(kernel_.variables[callee.result].kind, level_of(statement.sources))};
  emit(std::move(statement));
}

} // namespace ptxrewrite::fuzz
