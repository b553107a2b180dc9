// The parts of a random kernel: launch shapes, buffers, parameters, a prologue that makes the first values, random
// statements, and an epilogue that stores the live values.
#include "tests/fuzz/kernels/kernel_generator.h"

#include "tests/fuzz/kernels/kernel_builder.h"

#include <cstdio>
#include <cstdlib>

namespace ptxrewrite::fuzz {

std::vector<std::string> operation_group_names(); // kernel_statements.cpp

namespace {

constexpr std::array<uint32_t, 3> full_blocks[3][4] = {{{32, 1, 1}, {64, 1, 1}, {96, 1, 1}, {128, 1, 1}},
                                                       {{32, 2, 1}, {16, 4, 1}, {8, 8, 1}, {4, 8, 1}},
                                                       {{4, 4, 4}, {8, 2, 2}, {32, 1, 3}, {2, 8, 4}}};
constexpr std::array<uint32_t, 3> partial_blocks[3][4] = {{{1, 1, 1}, {33, 1, 1}, {17, 1, 1}, {70, 1, 1}},
                                                          {{5, 3, 1}, {17, 3, 1}, {31, 2, 1}, {1, 40, 1}},
                                                          {{3, 3, 3}, {5, 2, 4}, {7, 5, 2}, {2, 2, 2}}};
constexpr std::array<uint32_t, 3> many_warps[3][6] = {
    {{256, 1, 1}, {192, 1, 1}, {160, 1, 1}, {128, 1, 1}, {80, 1, 1}, {100, 1, 1}},
    {{16, 16, 1}, {32, 6, 1}, {8, 24, 1}, {16, 7, 1}, {64, 3, 1}, {24, 8, 1}},
    {{4, 4, 10}, {8, 4, 6}, {2, 16, 4}, {16, 2, 5}, {8, 3, 8}, {32, 2, 3}}};
constexpr std::array<uint32_t, 3> grids[3][4] = {{{1, 1, 1}, {2, 1, 1}, {3, 1, 1}, {5, 1, 1}},
                                                 {{1, 1, 1}, {2, 2, 1}, {1, 3, 1}, {3, 1, 1}},
                                                 {{1, 1, 2}, {2, 1, 2}, {1, 2, 1}, {2, 1, 1}}};

constexpr uint32_t sweep_rows = 40;
const char* const dimension_features[] = {"one-dimensional", "two-dimensional", "three-dimensional"};

} // namespace

// Long: a list of names.
const std::vector<std::string>& all_features() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all = operation_group_names();
    for (const char* name : {"one-dimensional",
                             "two-dimensional",
                             "three-dimensional",
                             "partial warps",
                             "several blocks",
                             "early exit",
                             "dynamic shared memory",
                             "static shared memory",
                             "device function",
                             "function with register parameters",
                             "early return from a function",
                             "guard",
                             "assignment to a live register",
                             "index with wrap-around",
                             "negative index",
                             "index as data",
                             "access by an index",
                             "index in bounds by itself",
                             "index on both sides of a pointer",
                             "confined index",
                             "confined offset",
                             "index behind a guard",
                             "index behind a branch",
                             "index written on several paths",
                             "loop that advances indices",
                             "many linear forms",
                             "own place in shared memory",
                             "store by an index",
                             "qualified memory access",
                             "vector load or store",
                             "narrow load or store",
                             "store to own slot",
                             "load from own slot",
                             "load at a masked index",
                             "load at a linear index",
                             "store to a column",
                             "accesses with a common base",
                             "constant table",
                             "global table",
                             "parameter array",
                             "local memory",
                             "generic address",
                             "commutative atomic",
                             "atomic with result",
                             "barrier",
                             "barrier with reduction",
                             "exchange through shared memory",
                             "shared atomic",
                             "bar.warp",
                             "shfl",
                             "vote",
                             "match",
                             "redux",
                             "uniform branch",
                             "warp-uniform branch",
                             "divergent branch",
                             "branch with else",
                             "uniform switch",
                             "divergent switch",
                             "uniform loop",
                             "divergent loop",
                             "loop tested at its head",
                             "loop tested at its end",
                             "pointer stepping through a loop",
                             "break",
                             "continue",
                             "break or continue of an outer loop",
                             "exit in nested code",
                             "selected pointer",
                             "scope",
                             "special register",
                             "fence or sleep",
                             "call",
                             "call in divergent code"})
      all.push_back(name);
    return all;
  }();
  return names;
}

std::string statistics_line(const std::vector<Kernel>& kernels) {
  std::map<std::string, uint64_t> sums;
  for (const Kernel& kernel : kernels)
    for (const auto& [feature, times] : kernel.features)
      sums[feature] += times;
  std::string line = std::to_string(kernels.size()) + " kernels:";
  for (const std::string& feature : all_features())
    line += " " + feature + " " + std::to_string(sums[feature]) + (feature == all_features().back() ? "" : ",");
  return line;
}

Knobs index_knobs() {
  Knobs knobs;
  knobs.statements = 12;
  knobs.nested_statements = 3;
  knobs.depth = 2;
  knobs.trips = 18;
  knobs.floats = false;
  knobs.functions = 0;
  knobs.approximate = 0;
  knobs.indices = true;
  knobs.early_exit = 0.15;
  knobs.qualified_memory = 0.1;
  for (const char* name : {"index access", "index data", "index loop", "index choice", "index store", "own shared"})
    knobs.weights[name] = 4;
  for (const char* name : {"operation", "warp function", "barrier reduction", "shared atomic", "local access", "switch",
                           "slot load", "slot atomic", "commutative atomic"})
    knobs.weights[name] = 0.2;
  return knobs;
}

Knobs redundancy_knobs() {
  Knobs knobs;
  knobs.many_warps = true;
  knobs.uniform = 0.6;
  knobs.approximate = 0;
  knobs.races = 0.3;
  for (const char* name : {"special register", "table load", "parameter load", "masked load"})
    knobs.weights[name] = 4;
  for (const char* name : {"index data", "index loop", "index choice", "own shared", "loop"})
    knobs.weights[name] = 2;
  return knobs;
}

Knobs loop_knobs() {
  Knobs knobs;
  knobs.statements = 14;
  knobs.trips = 64;
  knobs.functions = 0;
  knobs.approximate = 0;
  knobs.qualified_memory = 0.1;
  for (const char* name : {"loop", "index loop"})
    knobs.weights[name] = 6;
  return knobs;
}

Knobs stream_knobs() {
  Knobs knobs;
  knobs.statements = 16;
  knobs.nested_statements = 4;
  knobs.trips = 24;
  knobs.functions = 0.1;
  knobs.approximate = 0;
  knobs.early_exit = 0.3;
  knobs.qualified_memory = 0.1;
  for (const char* name : {"index access", "index data", "index loop", "index choice", "index store", "own shared"})
    knobs.weights[name] = 4;
  for (const char* name : {"loop", "branch", "break", "exchange", "barrier reduction", "linear load", "linear store"})
    knobs.weights[name] = 2;
  for (const char* name : {"operation", "switch", "call", "no effect"}) // fences order loads, switches are not split
    knobs.weights[name] = 0.15;
  return knobs;
}

Kernel generate_kernel(uint64_t seed, const Knobs& knobs) {
  return Builder(seed, knobs).build();
}

uint32_t sweep_count() {
  return (static_cast<uint32_t>(operations().size()) + sweep_rows - 1) / sweep_rows;
}

Kernel generate_sweep(uint64_t seed, uint32_t part) {
  Knobs knobs;
  knobs.assign = 0;
  knobs.guard = 0;
  const auto rows = static_cast<uint32_t>(operations().size());
  Kernel kernel =
      Builder(seed * 1000 + part, knobs).build_sweep(part * sweep_rows, std::min(rows, (part + 1) * sweep_rows));
  return kernel;
}

Builder::Builder(uint64_t seed, const Knobs& knobs) : random_(seed * 0x2545f4914f6cdd1dull + 77), knobs_(knobs) {
  kernel_.seed = seed;
  kernel_.name = "fuzz_" + std::to_string(seed);
  kernel_.races = knobs.races > 0 && random_.chance(knobs.races);
  kernel_.may_wrap = !knobs.indices || random_.chance(knobs.wrap);
  if (kernel_.may_wrap) return;
  knobs_.perturb = 0;
  knobs_.weights["operation"] = 0;
}

void Builder::choose_shapes() {
  dimensions_ = 1 + static_cast<unsigned>(random_.below(3));
  full_warps_ = !random_.chance(knobs_.partial_warps);
  row_major_ = random_.one_in(2);
  count(dimension_features[dimensions_ - 1]);
  if (!full_warps_) count("partial warps");
  for (size_t i = 0; i < 3; ++i) {
    Shape shape;
    shape.launch = static_cast<uint32_t>(i);
    shape.block = random_.pick((full_warps_ ? full_blocks : partial_blocks)[dimensions_ - 1]);
    if (knobs_.many_warps) {
      do
        shape.block = random_.pick(many_warps[dimensions_ - 1]);
      while (full_warps_ && shape.block_threads() % 32 != 0);
    }
    shape.grid = random_.pick(grids[dimensions_ - 1]);
    largest_block_ = std::max(largest_block_, shape.block_threads());
    largest_grid_ = std::max(largest_grid_, shape.blocks());
    if (shape.blocks() > 1) count("several blocks");
    kernel_.shapes.push_back(shape);
  }
}

void Builder::declare_buffers() {
  static constexpr unsigned slot_sizes[] = {256, 320, 512};
  slot_size_ = random_.pick(slot_sizes);
  const auto add = [&](const char* name, uint64_t fixed, uint64_t per_thread) {
    kernel_.buffers.push_back({name, fixed, per_thread, Contents::random, random_.next()});
    return static_cast<uint32_t>(kernel_.buffers.size() - 1);
  };
  input_ = add("input", input_bytes, 0);
  output_ = add("output", 0, slot_size_);
  columns_ = add("columns", 0, uint64_t(8) * (column_count + reversed_columns));
  cells_ = add("cells", uint64_t(8) * atomic_cells * atomic_region_limit, 0);
}

uint32_t Builder::add_object(const std::string& name, Space space, uint32_t size, uint32_t alignment) {
  MemoryObject object{name + "_" + std::to_string(kernel_.seed), space, size, alignment, {}};
  if (space == Space::global || space == Space::constant)
    for (uint32_t i = 0; i < size; ++i)
      object.initial.push_back(static_cast<uint8_t>(random_.next()));
  kernel_.objects.push_back(std::move(object));
  return static_cast<uint32_t>(kernel_.objects.size() - 1);
}

void Builder::declare_objects() {
  if (!random_.one_in(4)) {
    const bool dynamic = random_.one_in(3);
    count(dynamic ? "dynamic shared memory" : "static shared memory");
    const uint32_t cells = kernel_.races ? 48 : 32; // after the threads' slots
    shared_object_ = static_cast<int>(add_object("exchange", dynamic ? Space::dynamic_shared : Space::shared,
                                                 largest_block_ * shared_slot + cells, 16));
  }
  if (random_.one_in(knobs_.indices ? 2 : 4)) {
    own_shared_object_ = static_cast<int>(add_object("own", Space::shared, largest_block_ * shared_slot, 16));
    own_shared_is_reversed_ = random_.one_in(2);
  }
  if (random_.one_in(3) || knobs_.own_addresses > 0)
    local_object_ = static_cast<int>(add_object("depot", Space::local, local_bytes, 16));
  if (random_.one_in(2)) constant_object_ = static_cast<int>(add_object("constants", Space::constant, table_bytes, 16));
  if (random_.one_in(2)) table_object_ = static_cast<int>(add_object("table", Space::global, table_bytes, 16));
}

uint32_t Builder::add_argument(const std::string& name, const std::string& type, ArgumentKind kind, uint32_t size) {
  Argument argument;
  argument.object = add_object(name, Space::parameter, size, std::min(size, 8u));
  argument.type = type;
  argument.kind = kind;
  kernel_.arguments.push_back(std::move(argument));
  return static_cast<uint32_t>(kernel_.arguments.size() - 1);
}

uint32_t Builder::add_buffer_argument(const std::string& name, uint32_t buffer, uint64_t offset) {
  const uint32_t index = add_argument(name, "u64", ArgumentKind::buffer, 8);
  kernel_.arguments[index].buffer = buffer;
  kernel_.arguments[index].offset = offset;
  return index;
}

void Builder::add_scalar_arguments() {
  static constexpr std::pair<const char*, uint32_t> types[] = {
      {"u32", 4}, {"s32", 4}, {"u64", 8}, {"s64", 8}, {"f32", 4}, {"f64", 8}, {"u16", 2}, {"s16", 2}, {"u8", 1}};
  for (size_t i = 0, wanted = 2 + random_.below(5); i < wanted; ++i) {
    const auto& [type, size] = random_.pick(types);
    if (type[0] == 'f' && !knobs_.floats) continue;
    const uint32_t index = add_argument("scalar" + std::to_string(i), type, ArgumentKind::bytes, size);
    const bool is_float = type[0] == 'f';
    const Operand value = random_immediate(is_float ? (size == 4 ? Kind::f32 : Kind::f64) : Kind::b64, true);
    for (uint32_t byte = 0; byte < size; ++byte)
      kernel_.arguments[index].bytes.push_back(static_cast<uint8_t>(value.bits >> (8 * byte)));
    scalar_arguments_.push_back(index);
  }
  array_argument_ = add_argument("array", "b8", ArgumentKind::bytes, 24);
  kernel_.objects[kernel_.arguments[array_argument_].object].alignment = 8;
  kernel_.arguments[array_argument_].is_array = true;
  for (int byte = 0; byte < 24; ++byte)
    kernel_.arguments[array_argument_].bytes.push_back(static_cast<uint8_t>(random_.next()));
}

void Builder::emit_scalar_loads() {
  for (uint32_t index : scalar_arguments_) {
    const Argument& argument = kernel_.arguments[index];
    Statement statement;
    statement.kind = StatementKind::load_or_store;
    statement.text = "ld.param." + argument.type;
    statement.memory.object = static_cast<int>(argument.object);
    statement.memory.element_bits = 8 * kernel_.objects[argument.object].size;
    statement.memory.is_signed = argument.type[0] == 's';
    const unsigned bits = statement.memory.element_bits;
    const Kind kind = argument.type == "f32"   ? Kind::f32
                      : argument.type == "f64" ? Kind::f64
                      : bits == 64             ? Kind::b64
                      : bits == 32             ? Kind::b32
                      : random_.one_in(2)      ? Kind::b16
                                               : Kind::b32;
    statement.results = {new_variable(kind, Level::block)};
    emit(std::move(statement));
  }
}

// Partial warps have fewer lanes for votes and shuffles.
void Builder::emit_live_lanes() {
  if (full_warps_) return;
  const uint32_t first = compute("and.b32", "r", "rr", {reg(thread_in_block_), number32(-32)});
  const uint32_t rest = compute("sub.u32", "r", "rr", {reg(block_size_), reg(first)});
  const uint32_t live = compute("min.u32", "r", "rr", {reg(rest), number32(32)});
  last_lane_ = compute("sub.s32", "r", "rr", {reg(live), number32(1)});
  lane_mask_ = compute("bmsk.clamp.b32", "r", "cc", {number32(0), reg(live)});
  // Warp-uniform, although computed from values that are not.
  kernel_.variables[last_lane_].level = Level::warp;
  kernel_.variables[lane_mask_].level = Level::warp;
}

// Registers that later statements change, of every kind and several levels.
void Builder::emit_first_values() {
  const auto load = [&](Kind kind, bool per_thread) {
    MemoryAccess access;
    access.element_bits = width_of(kind);
    if (per_thread) {
      const unsigned bytes = access.element_bits / 8;
      access.base = reg(scaled_pointer(input_pointer_, perturbed(linear_index(input_bytes / 2 / 16)), bytes, true));
    } else {
      access.base = reg(input_pointer_);
      access.offset = static_cast<int64_t>(8 * random_.below(100));
    }
    Statement& statement = emit_load(".global", access, kind, 1, per_thread ? Level::thread : Level::block, true, true);
    kernel_.variables[statement.results[0]].constant = false;
  };
  for (const Kind kind : {Kind::b32, Kind::b32, Kind::b64, Kind::f32, Kind::f64, Kind::b16, Kind::f16})
    if (knobs_.floats || !is_float(kind)) load(kind, true);
  for (const Kind kind : {Kind::b32, Kind::b64})
    load(kind, false);
  kernel_.variables[compute("add.s32", "r", "rr", {reg(global_index_), number32(random_.between(-5, 5))})].constant =
      false;
  kernel_.variables[compute("setp.lt.u32", "p", "rr", {reg(thread_in_block_), number32(random_.between(1, 40))})]
      .constant = false;
}

void Builder::emit_prologue() {
  const auto pointer = [&](uint32_t argument) {
    Statement statement;
    statement.kind = StatementKind::load_or_store;
    statement.text = "ld.param.u64";
    statement.memory.object = static_cast<int>(kernel_.arguments[argument].object);
    statement.memory.element_bits = 64;
    const uint32_t result = new_variable(Kind::pointer, Level::block, true);
    statement.results = {result};
    emit(std::move(statement));
    return random_.one_in(2) ? compute("cvta.to.global.u64", "a", "a", {reg(result)}) : result;
  };
  const uint32_t input = add_buffer_argument("input", input_, 0);
  const uint32_t middle = add_buffer_argument("middle", input_, input_bytes / 2);
  const uint32_t output = add_buffer_argument("output", output_, 0);
  add_scalar_arguments();
  const uint32_t columns = add_buffer_argument("columns", columns_, 0);
  const uint32_t cells = add_buffer_argument("cells", cells_, 0);
  add_index_arguments();
  const uint32_t total = add_argument("total", "u32", ArgumentKind::total_threads, 4);
  input_pointer_ = pointer(input);
  middle_pointer_ = pointer(middle);
  const uint32_t output_pointer = pointer(output);
  columns_pointer_ = pointer(columns);
  cells_pointer_ = pointer(cells);
  emit_scalar_loads();
  thread_in_block_ = thread_in_block();
  block_size_ = block_size();
  global_index_ = global_index(false);
  scalar_arguments_ = {total};
  emit_scalar_loads();
  total_threads_ = visible_.back();
  kernel_.variables[total_threads_].constant = true;
  emit_index_arguments();
  slot_pointer_ = compute("mad.wide.u32", "a", "Rra", {reg(global_index_), number32(slot_size_), reg(output_pointer)});
  emit_live_lanes();

  // Initialises memory without contents.
  const auto zero = [&] { return compute("mov.u32", "r", "r", {number32(0)}); };
  for (const int object : {shared_object_, own_shared_object_}) {
    if (object < 0) continue;
    MemoryAccess own;
    own.base = reg(shared_pointer(object, object == own_shared_object_ ? own_shared_slot() : thread_in_block_));
    const uint32_t value = zero();
    emit_store_of(".shared", own, {value, value, thread_in_block_, value});
  }
  for (uint32_t at = 0; local_object_ >= 0 && at < local_bytes; at += 16) {
    MemoryAccess place;
    place.object = local_object_;
    place.offset = at;
    const uint32_t value = zero();
    emit_store_of(".local", place, {value, global_index_, value, value});
  }
  if (knobs_.own_addresses > 0) own_pointer_ = object_pointer(local_object_, true);
  emit_first_values();
}

void Builder::emit_epilogue() {
  // Some threads leave, the others continue a little; from here on nothing may wait for all.
  if (random_.chance(knobs_.early_exit)) {
    count("early exit");
    sync_allowed_ = false;
    store_to_slot({pick_variable(Kind::b32, Level::thread), pick_variable(Kind::b32, Level::thread)});
    Statement leave;
    leave.kind = StatementKind::leave;
    leave.guard = pick_guard(Level::thread);
    leave.text = random_.one_in(2) ? "exit" : "ret";
    emit(std::move(leave));
    context_ = Level::thread;
    random_statements(6);
  }
  std::vector<uint32_t> alive;
  for (uint32_t variable : visible_)
    if (width_of(kernel_.variables[variable].kind) > 0 && kernel_.variables[variable].kind != Kind::pointer &&
        kernel_.variables[variable].kind != Kind::shared_pointer)
      alive.push_back(variable);
  // The latest first: they depend on the others. Registers with several writes come before all.
  std::reverse(alive.begin(), alive.end());
  std::stable_partition(alive.begin(), alive.end(),
                        [&](uint32_t variable) { return !kernel_.variables[variable].constant; });
  for (size_t i = 0; i < alive.size() && i < 40; ++i)
    store_to_slot({alive[i]});
}

void Builder::generate_functions() {
  if (!random_.chance(knobs_.functions)) return;
  const auto wanted = static_cast<uint32_t>(1 + random_.below(2));
  for (uint32_t i = 0; i < wanted; ++i)
    generate_function(i);
}

// A function computes in registers; its result has a value from the start, so that it may return anywhere.
void Builder::generate_function(uint32_t index) {
  static constexpr Kind kinds[] = {Kind::b32, Kind::b32, Kind::b64, Kind::f32, Kind::f64};
  count("device function");
  Function function;
  function.name = "helper" + std::to_string(index) + "_" + std::to_string(kernel_.seed);
  function.register_parameters = random_.one_in(3);
  if (function.register_parameters) count("function with register parameters");
  function_ = index + 1;
  visible_.clear();
  special_.clear();
  context_ = Level::thread;
  trips_ = 8;
  for (size_t i = 0, wanted = 1 + random_.below(3); i < wanted; ++i)
    function.parameters.push_back(new_variable(pick_kind(kinds), Level::thread));
  out_ = &function.body;
  const Kind result_kind = pick_kind(kinds);
  function.result = make_variable(result_kind);
  kernel_.variables[function.result].constant = false;
  kernel_.variables[function.result].level = Level::thread;
  random_statements(3);
  if (random_.one_in(2)) random_leave();
  random_statements(4);
  uint32_t last = 0;
  if (find_variable(result_kind, Level::block, Level::thread, last)) {
    Statement copy;
    const char letter = result_kind == Kind::b32   ? 'r'
                        : result_kind == Kind::b64 ? 'd'
                        : result_kind == Kind::f32 ? 'f'
                                                   : 'g';
    const char* name = result_kind == Kind::b32   ? "mov.u32"
                       : result_kind == Kind::b64 ? "mov.b64"
                       : result_kind == Kind::f32 ? "mov.f32"
                                                  : "mov.f64";
    copy.operation = operation_named(name, std::string(1, letter), std::string(1, letter));
    copy.results = {function.result};
    copy.sources = {reg(last)};
    emit(std::move(copy));
  }
  function_ = 0;
  kernel_.functions.push_back(std::move(function));
}

// Stores the results of the operation for several operands.
void Builder::sweep_operation(uint32_t index) {
  const Operation& operation = operations()[index];
  const size_t visible = visible_.size();
  for (int repeat = 0; repeat < 3; ++repeat) {
    Statement statement;
    statement.operation = index;
    for (char letter : operation.sources)
      statement.sources.push_back(pick_operand(letter, Level::thread));
    for (char letter : operation.results)
      statement.results.push_back(hidden_variable(kind_of_letter(letter), Level::thread));
    const std::vector<uint32_t> results = statement.results;
    emit(std::move(statement));
    for (uint32_t result : results)
      store_to_slot({result});
    visible_.resize(visible); // the next operands are loaded ones again
  }
}

Kernel Builder::build_sweep(uint32_t first, uint32_t last) {
  dimensions_ = 1;
  kernel_.shapes = {{{1, 1, 1}, {128, 1, 1}}, {{3, 1, 1}, {64, 1, 1}}};
  largest_block_ = 128;
  largest_grid_ = 3;
  knobs_.immediate = 0.15;
  declare_buffers();
  slot_size_ = 4096;
  kernel_.buffers[output_].size_per_thread = slot_size_;
  out_ = &kernel_.body;
  emit_prologue();
  visible_.clear();
  for (const Kind kind : {Kind::b16, Kind::b32, Kind::b64, Kind::f16, Kind::f32, Kind::f64, Kind::f16x2})
    for (int i = 0; i < 4; ++i) {
      MemoryAccess access;
      access.element_bits = width_of(kind);
      const unsigned bytes = access.element_bits / 8;
      // Neighbouring threads read distant addresses, and every register another one.
      const uint32_t far =
          compute("mul.lo.u32", "r", "rr", {reg(global_index_), number32(random_.between(3, 99999) | 1)});
      const uint32_t place = compute("and.b32", "r", "rr", {reg(far), number32(input_bytes / bytes - 1)});
      access.base = reg(scaled_pointer(input_pointer_, place, bytes, false));

      emit_load(".global", access, kind, 1, Level::thread, false, true);
    }
  std::erase_if(visible_, [&](uint32_t variable) {
    return kernel_.variables[variable].constant || kernel_.variables[variable].kind == Kind::pointer;
  });
  for (int i = 0; i < 3; ++i)
    compute("setp.lt.s32", "p", "rr",
            {reg(pick_variable(Kind::b32, Level::thread)), random_immediate(Kind::b32, true)});
  for (uint32_t index = first; index < last; ++index)
    if (operations()[index].evaluate && operations()[index].group != "address arithmetic") sweep_operation(index);
  return std::move(kernel_);
}

Kernel Builder::build() {
  kernel_.exact = !random_.chance(knobs_.approximate);
  choose_shapes();
  declare_buffers();
  declare_objects();
  generate_functions();
  visible_.clear();
  special_.clear();
  context_ = Level::block;
  trips_ = 1;
  out_ = &kernel_.body;
  emit_prologue();
  emit_sure_wrap();
  random_statements(knobs_.statements);
  emit_epilogue();
  for (const auto& [feature, times] : kernel_.features)
    if (std::find(all_features().begin(), all_features().end(), feature) == all_features().end()) {
      std::fprintf(stderr, "kernel generator: feature '%s' is not listed\n", feature.c_str());
      std::abort();
    }
  return std::move(kernel_);
}

} // namespace ptxrewrite::fuzz
