// Branches, loops and switches of random kernels. A condition's level becomes the context of the guarded statements.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

// A list of statements; variables defined in it are not visible after it.
Builder::Statements Builder::in_body(Level level, const std::function<void()>& emit_body) {
  Statements statements;
  Statements* const outer = out_;
  const Level context = context_;
  const size_t visible = visible_.size();
  out_ = &statements;
  context_ = highest(context_, level);
  emit_body();
  visible_.resize(visible);
  context_ = context;
  out_ = outer;
  return statements;
}

Builder::Statements Builder::nested(unsigned count_wanted, Level level) {
  return in_body(level, [&] {
    ++depth_;
    random_statements(count_wanted);
    --depth_;
  });
}

void Builder::random_branch() {
  const uint32_t condition = pick_condition();
  const Level level = level_of(condition);
  count(level == Level::block ? "uniform branch" : level == Level::warp ? "warp-uniform branch" : "divergent branch");
  Statement statement;
  statement.kind = StatementKind::branch;
  statement.guard = {true, random_.one_in(2), condition};
  statement.is_uniform = level != Level::thread && context_ != Level::thread && random_.one_in(3);
  const auto length = [&] { return static_cast<unsigned>(1 + random_.below(knobs_.nested_statements)); };
  statement.bodies.push_back(nested(length(), level));
  if (random_.one_in(2)) {
    count("branch with else");
    statement.bodies.push_back(nested(length(), level));
  }
  emit(std::move(statement));
}

void Builder::random_choose() {
  const unsigned cases = 2 + static_cast<unsigned>(random_.below(3));
  const uint32_t any = pick_for_control();
  const uint32_t index = cases == 4 ? compute("and.b32", "r", "rr", {reg(any), number32(3)})
                                    : compute("rem.u32", "r", "rv", {reg(any), number32(cases)});
  count(level_of(index) == Level::thread ? "divergent switch" : "uniform switch");
  Statement statement;
  statement.kind = StatementKind::choose;
  statement.sources = {reg(index)};
  for (unsigned i = 0; i < cases; ++i)
    statement.bodies.push_back(
        nested(static_cast<unsigned>(1 + random_.below(knobs_.nested_statements / 2 + 1)), level_of(index)));
  emit(std::move(statement));
}

// 1..most, constant or from a register.
uint32_t Builder::pick_limit(unsigned most, Level& level) {
  if (random_.one_in(4)) {
    level = Level::block;
    return compute("mov.u32", "r", "r", {number32(random_.between(1, most))});
  }
  const uint32_t any = pick_for_control();
  const uint32_t below = compute("rem.u32", "r", "rv", {reg(any), number32(most)});
  const uint32_t limit = compute("add.s32", "r", "rr", {reg(below), number32(1)});
  level = level_of(limit);
  return limit;
}

// A pointer into the input that is advanced in the latch. Returns it; the caller loads through it.
uint32_t Builder::emit_walk(Statements& latch) {
  count("pointer stepping through a loop");
  const uint32_t index = perturbed(linear_index(input_bytes / 2 / 16));
  const uint32_t start = scaled_pointer(input_pointer_, index, 8, true);
  const uint32_t walker = hidden_variable(Kind::pointer, highest(level_of(start), Level::thread));
  Statement copy;
  copy.operation = operation_named("mov.u64", "a", "a");
  copy.results = {walker};
  copy.sources = {reg(start)};
  emit(std::move(copy));
  Statement step;
  step.operation = operation_named("add.s64", "a", "ad");
  step.results = {walker};
  step.sources = {reg(walker), number64(random_.between(1, 32) * 8)};
  latch.push_back(std::move(step));
  return walker;
}

namespace {

// The counting of a loop. The limit is the number of trips; the counter starts anywhere.
struct Counting {
  const char* add;
  const char* subtract;
  const char* multiply;
  const char* less;
  const char* greater;
  const char* unequal;
  char letter;
};
constexpr Counting countings[] = {
    {"add.s32", "sub.s32", "mul.lo.s32", "setp.lt.s32", "setp.gt.s32", "setp.ne.s32", 'r'},
    {"add.u32", "sub.u32", "mul.lo.u32", "setp.lt.u32", "setp.gt.u32", "setp.ne.u32", 'r'},
    {"add.s64", "sub.s64", "mul.lo.s64", "setp.lt.s64", "setp.gt.s64", "setp.ne.s64", 'd'},
    {"add.s16", "sub.s16", "mul.lo.s16", "setp.lt.s16", "setp.gt.s16", "setp.ne.s16", 'h'}};

} // namespace

// Emits the counter's start before the loop, its step in the latch, its test in the condition. Returns the counter.
uint32_t Builder::emit_counting(Statement& loop, uint32_t limit32, Level level) {
  const Counting& how = random_.pick(countings);
  const std::string one(1, how.letter), two(2, how.letter);
  const Kind kind = kind_of_letter(how.letter);
  const auto number = [&](int64_t value) {
    return kind == Kind::b64 ? number64(value) : kind == Kind::b16 ? number16(value) : number32(value);
  };
  const uint32_t limit = how.letter == 'r'   ? limit32
                         : how.letter == 'd' ? compute("cvt.s64.s32", "d", "R", {reg(limit32)})
                                             : compute("cvt.s16.s32", "h", "R", {reg(limit32)});
  const bool by_inequality = random_.one_in(3);
  const bool downwards = random_.one_in(3);
  const int64_t step = random_.between(1, 5);
  // Ordered comparisons start with small numbers, so that nothing wraps; != may start anywhere.
  const bool starts_anywhere = by_inequality && kernel_.may_wrap;
  const int64_t start = starts_anywhere ? static_cast<int64_t>(random_.next() >> 1)
                        : downwards     ? 0
                                        : random_.between(0, 9);
  const uint32_t counter = hidden_variable(kind, level);
  const uint32_t distance = compute(how.multiply, one, two, {reg(limit), number(step)});
  const char* const move = kind == Kind::b64 ? "mov.b64" : kind == Kind::b16 ? "mov.b16" : "mov.u32";
  const uint32_t low = compute(move, one, one, {number(start)});
  const uint32_t high = compute(how.add, one, two, {reg(low), reg(distance)});
  Statement initial;
  initial.operation = operation_named(how.add, one, two);
  initial.results = {counter};
  initial.sources = {reg(downwards ? high : low), number(0)};
  emit(std::move(initial));

  Statement advance;
  advance.operation = operation_named(downwards ? how.subtract : how.add, one, two);
  advance.results = {counter};
  advance.sources = {reg(counter), number(step)};
  loop.bodies[1].push_back(std::move(advance));
  Statement condition;
  condition.operation = operation_named(by_inequality ? how.unequal : downwards ? how.greater : how.less, "p", two);
  const uint32_t again = hidden_variable(Kind::predicate, level);
  condition.results = {again};
  condition.sources = {reg(counter), reg(downwards ? low : high)};
  loop.bodies[2].push_back(std::move(condition));
  loop.guard = {true, false, again};
  return counter;
}

// A load through the stepping pointer.
Builder::Statements Builder::walking_load(uint32_t walker) {
  Statements body;
  Statements* const outer = out_;
  const Level context = context_;
  out_ = &body;
  context_ = loops_.back();
  MemoryAccess access;
  access.element_bits = 64;
  access.base = reg(walker);
  access.offset = static_cast<int64_t>(8 * random_.below(16));
  static constexpr Kind kinds[] = {Kind::b64, Kind::f64};
  emit_load(".global", access, pick_kind(kinds), 1, Level::thread, true, true);
  context_ = context;
  out_ = outer;
  return body;
}

void Builder::random_loop() {
  const unsigned most = std::min(8u, knobs_.trips / trips_);
  if (most < 2) return;
  Level level = Level::block;
  const uint32_t limit = pick_limit(most, level);
  // Threads leave a loop with breaks individually: such a loop is divergent from the start.
  if (random_.one_in(4)) level = Level::thread;
  const bool is_uniform = level == Level::block;
  count(is_uniform ? "uniform loop" : "divergent loop");

  Statement loop;
  loop.kind = StatementKind::loop;
  loop.bodies.resize(3);
  loop.bottom_tested = random_.one_in(2);
  loop.is_uniform = is_uniform && context_ != Level::thread && random_.one_in(4);
  count(loop.bottom_tested ? "loop tested at its end" : "loop tested at its head");
  const bool walks = random_.one_in(2) && function_ == 0;
  const uint32_t walker = walks ? emit_walk(loop.bodies[1]) : 0;
  const uint32_t counter = emit_counting(loop, limit, level);

  const size_t visible = visible_.size();
  visible_.push_back(counter);
  loops_.push_back(highest(context_, level));
  const unsigned trips = trips_;
  trips_ *= most;
  if (walks) loop.bodies[0] = walking_load(walker);
  for (Statement& statement : nested(static_cast<unsigned>(1 + random_.below(knobs_.nested_statements)), level))
    loop.bodies[0].push_back(std::move(statement));
  trips_ = trips;
  loops_.pop_back();
  visible_.resize(visible);
  emit(std::move(loop));
}

void Builder::random_break() {
  if (loops_.empty()) return;
  const bool leaves = random_.one_in(2);
  Statement statement;
  statement.kind = leaves ? StatementKind::break_loop : StatementKind::continue_loop;
  statement.outer_loops = static_cast<uint32_t>(random_.below(std::min<size_t>(loops_.size(), 3)));
  // Threads that leave alone must not be missed by the others, in any of the loops that are left.
  const Level limit = *std::min_element(loops_.end() - 1 - statement.outer_loops, loops_.end());
  const uint32_t condition = pick_predicate(limit);
  if (highest(level_of(condition), context_) > limit) return;
  count(leaves ? "break" : "continue");
  if (statement.outer_loops != 0) count("break or continue of an outer loop");
  statement.guard = {true, random_.one_in(2), condition};
  emit(std::move(statement));
}

// ret or exit anywhere: in device functions, and in kernels after the last point where threads wait for each other.
void Builder::random_leave() {
  if (function_ == 0 && sync_allowed_) return;
  count(function_ == 0 ? "exit in nested code" : "early return from a function");
  Statement statement;
  statement.kind = StatementKind::leave;
  statement.guard = pick_guard(Level::thread);
  statement.text = function_ == 0 && random_.one_in(2) ? "exit" : "ret";
  emit(std::move(statement));
}

void Builder::random_scope() {
  count("scope");
  Statement scope;
  scope.kind = StatementKind::scope;
  scope.bodies.resize(1);
  scopes_.push_back(&scope);
  Statements body = nested(static_cast<unsigned>(1 + random_.below(knobs_.nested_statements)), Level::block);
  scopes_.pop_back();
  scope.bodies[0] = std::move(body);
  emit(std::move(scope));
}

} // namespace ptxrewrite::fuzz
