// Loads, stores and atomics of random kernels. A thread writes only its own places: its slot in the output (rows), its
// elements of the columns, its local memory; or, atomically and commutatively, a cell used by a single statement.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

namespace {

// The widths in which a register of that kind is loaded and stored.
std::vector<unsigned> memory_widths(Kind kind) {
  switch (kind) {
  case Kind::b16:
    return {8, 16};
  case Kind::b32:
    return {8, 16, 32, 32};
  case Kind::b64:
    return {8, 16, 32, 64, 64};
  case Kind::f16:
    return {16};
  case Kind::f16x2:
  case Kind::f32:
    return {32};
  default:
    return {64};
  }
}

const char* integer_letter(Random& random) {
  static constexpr const char* letters[] = {"u", "s", "b"};
  return random.pick(letters);
}

std::string type_suffix(Kind kind, unsigned bits, Random& random, bool& is_signed) {
  const bool has_float_type = kind == Kind::f32 || kind == Kind::f64;
  if (has_float_type && !random.one_in(4)) return "f" + std::to_string(bits);
  const std::string letter = is_float(kind) ? "b" : integer_letter(random);
  is_signed = letter == "s";
  return letter + std::to_string(bits);
}

unsigned vector_count(unsigned element_bytes, unsigned bytes, Random& random) {
  const unsigned most = std::min(4u, bytes / element_bytes);
  if (most >= 4 && random.one_in(4)) return 4;
  if (most >= 2 && random.one_in(3)) return 2;
  return 1;
}

std::string vector_suffix(unsigned count) {
  return count == 1 ? "" : ".v" + std::to_string(count);
}

} // namespace

std::string Builder::memory_qualifier(const std::string& space, bool is_store, bool read_only) {
  static constexpr const char* loads[] = {".ca", ".cg", ".cs", ".lu", ".cv"};
  static constexpr const char* stores[] = {".wb", ".cg", ".cs", ".wt"};
  static constexpr const char* evictions[] = {".L1::evict_last", ".L1::evict_first", ".L1::no_allocate"};
  if (!random_.chance(knobs_.qualified_memory) || (space != ".global" && space != ".shared")) return "";
  const bool global = space == ".global";
  count("qualified memory access");
  switch (random_.below(5)) {
  case 0:
    return ".volatile" + space;
  case 1:
    return std::string(random_.one_in(2) ? ".relaxed.gpu" : ".relaxed.cta") + space;
  case 2:
    if (global) return space + random_.pick(evictions);
    return ".weak" + space;
  case 3:
    if (read_only && !is_store && global) return space + ".nc";
    [[fallthrough]];
  default:
    return space + (is_store ? random_.pick(stores) : random_.pick(loads));
  }
}

// `access` is the location; the width is chosen here, within `element_bits` x `count`. Results are new or existing.
Statement& Builder::emit_load(const std::string& space, const MemoryAccess& access, Kind kind, unsigned count_wanted,
                              Level level, bool may_qualify, bool read_only) {
  Statement statement;
  statement.kind = StatementKind::load_or_store;
  statement.memory = access;
  const unsigned bits = access.element_bits;
  const std::string type = type_suffix(kind, bits, random_, statement.memory.is_signed);
  std::string qualifier = may_qualify ? memory_qualifier(space, false, read_only) : "";
  if (qualifier.empty()) qualifier = space;
  statement.text = "ld" + qualifier + vector_suffix(count_wanted) + "." + type;
  if (count_wanted > 1) count("vector load or store");
  if (bits < width_of(kind)) count("narrow load or store");
  for (unsigned i = 0; i < count_wanted; ++i) {
    uint32_t target = 0;
    // One instruction must not write a register twice.
    const bool existing =
        random_.chance(knobs_.assign) && pick_target(kind, highest(level, context_), target) &&
        std::find(statement.results.begin(), statement.results.end(), target) == statement.results.end();
    statement.results.push_back(existing ? target : hidden_variable(kind, level));
  }
  bool all_existing = true;
  for (uint32_t result : statement.results) {
    const bool is_new = std::find(visible_.begin(), visible_.end(), result) == visible_.end();
    all_existing = all_existing && !is_new;
  }
  if (all_existing && random_.chance(knobs_.guard)) {
    Level least = Level::thread;
    for (uint32_t result : statement.results)
      least = std::min(least, level_of(result));
    statement.guard = pick_guard(least);
    count("guard");
  }
  for (uint32_t result : statement.results)
    if (std::find(visible_.begin(), visible_.end(), result) == visible_.end()) {
      kernel_.variables[result].constant = random_.one_in(3);
      visible_.push_back(result);
    }
  return emit(std::move(statement));
}

// The storable form of a variable: integers unchanged, floats if they are not NaN, predicates as integers.
uint32_t Builder::as_storable(uint32_t variable) {
  switch (kernel_.variables[variable].kind) {
  case Kind::f16:
  case Kind::f32:
  case Kind::f64:
    return make_number(variable);
  case Kind::f16x2: {
    Statement statement;
    statement.operation = operation_named("mov.b32 {$0, $1}, $2", "ee", "w");
    statement.sources = {reg(variable)};
    const Level level = level_of(variable);
    const uint32_t low = new_variable(Kind::f16, level, true), high = new_variable(Kind::f16, level, true);
    statement.results = {low, high};
    emit(std::move(statement));
    return compute("mov.b32 $0, {$1, $2}", "w", "ee", {reg(make_number(low)), reg(make_number(high))});
  }
  case Kind::predicate:
    return compute("selp.b32", "r", "rr!", {number32(1), number32(0), reg(variable)});
  default:
    return variable;
  }
}

uint32_t Builder::storable(Kind kind) {
  return as_storable(pick_variable(kind, Level::thread));
}

// All of one kind, already storable.
void Builder::emit_store_of(const std::string& space, MemoryAccess access, const std::vector<uint32_t>& variables) {
  Statement statement;
  statement.kind = StatementKind::load_or_store;
  statement.memory = access;
  statement.memory.is_store = true;
  const Kind kind = kernel_.variables[variables[0]].kind;
  bool is_signed = false;
  const std::string type = type_suffix(kind, access.element_bits, random_, is_signed);
  std::string qualifier = memory_qualifier(space, true, false);
  if (qualifier.empty()) qualifier = space;
  statement.text = "st" + qualifier + vector_suffix(static_cast<unsigned>(variables.size())) + "." + type;
  if (variables.size() > 1) count("vector load or store");
  if (access.element_bits < width_of(kind)) count("narrow load or store");
  for (uint32_t variable : variables)
    statement.sources.push_back(reg(variable));
  emit(std::move(statement));
}

// Stores up to `bytes_left` bytes at a place with that alignment.
void Builder::emit_store(const std::string& space, const MemoryAccess& access, unsigned bytes_left) {
  static constexpr Kind kinds[] = {Kind::b16, Kind::b32, Kind::b32,   Kind::b64,      Kind::f16,
                                   Kind::f32, Kind::f64, Kind::f16x2, Kind::predicate};
  const Kind kind = pick_kind(kinds);
  MemoryAccess chosen = access;
  std::vector<uint32_t> variables = {storable(kind)};
  const Kind stored = kernel_.variables[variables[0]].kind;
  chosen.element_bits = random_.pick(memory_widths(stored));
  const unsigned count_wanted = vector_count(chosen.element_bits / 8, bytes_left, random_);
  while (variables.size() < count_wanted)
    variables.push_back(storable(kind));
  const bool guarded = random_.chance(knobs_.guard);
  const Guard guard = guarded ? pick_guard(Level::thread) : Guard{};
  if (guarded) count("guard");
  emit_store_of(space, chosen, variables);
  out_->back().guard = guard;
}

// A place in the thread's slot; when the slot is full, places are reused.
unsigned Builder::slot_offset(unsigned bytes) {
  const unsigned aligned = (slot_used_ + bytes - 1) / bytes * bytes;
  if (aligned + bytes <= slot_size_) {
    slot_used_ = aligned + bytes;
    return aligned;
  }
  return static_cast<unsigned>(random_.below(slot_size_ / bytes)) * bytes;
}

void Builder::store_to_slot(const std::vector<uint32_t>& variables) {
  std::vector<uint32_t> storables;
  for (uint32_t variable : variables)
    storables.push_back(as_storable(variable));
  MemoryAccess access;
  access.element_bits = width_of(kernel_.variables[storables[0]].kind);
  access.base = reg(slot_pointer_);
  access.offset = slot_offset(access.element_bits / 8 * static_cast<unsigned>(storables.size()));
  emit_store_of(".global", access, storables);
}

void Builder::random_slot_store() {
  count("store to own slot");
  MemoryAccess access;
  access.base = reg(slot_pointer_);
  access.offset = slot_offset(16);
  emit_store(random_.one_in(5) ? "" : ".global", access, 16);
}

void Builder::random_slot_update() {
  count("load from own slot");
  static constexpr Kind kinds[] = {Kind::b16, Kind::b32, Kind::b64, Kind::f32, Kind::f64, Kind::f16};
  const Kind kind = pick_kind(kinds);
  MemoryAccess access;
  access.element_bits = random_.pick(memory_widths(kind));
  const unsigned bytes = access.element_bits / 8;
  const unsigned wanted = vector_count(bytes, 16, random_);
  access.base = reg(slot_pointer_);
  access.offset = static_cast<int64_t>(random_.below(slot_size_ / (bytes * wanted)) * bytes * wanted);
  emit_load(random_.one_in(5) ? "" : ".global", access, kind, wanted, Level::thread, true, false);
}

void Builder::random_masked_load() {
  count("load at a masked index");
  static constexpr Kind kinds[] = {Kind::b16, Kind::b32, Kind::b32, Kind::b64,
                                   Kind::f32, Kind::f64, Kind::f16, Kind::f16x2};
  const Kind kind = pick_kind(kinds);
  MemoryAccess access;
  access.element_bits = random_.pick(memory_widths(kind));
  const unsigned bytes = access.element_bits / 8;
  const unsigned wanted = vector_count(bytes, 16, random_);
  const bool selects = random_.one_in(5); // of two pointers, the second of which points into the middle
  const uint32_t index = masked_index(input_bytes / (selects ? 2 : 1) / (bytes * wanted));
  uint32_t base = input_pointer_;
  if (selects) {
    count("selected pointer");
    const uint32_t condition = pick_predicate(Level::thread);
    base = compute("selp.b64", "a", "aa!", {reg(middle_pointer_), reg(input_pointer_), reg(condition)});
  }
  access.base = reg(scaled_pointer(base, index, bytes * wanted, random_.one_in(2)));
  emit_load(random_.one_in(6) ? "" : ".global", access, kind, wanted, level_of(access.base), true, true);
}

void Builder::random_linear_load() {
  count("load at a linear index");
  static constexpr Kind kinds[] = {Kind::b32, Kind::b64, Kind::f32, Kind::f64, Kind::b16, Kind::f16};
  const Kind kind = pick_kind(kinds);
  MemoryAccess access;
  access.element_bits = random_.pick(memory_widths(kind));
  const unsigned bytes = access.element_bits / 8;
  const unsigned wanted = vector_count(bytes, 16, random_);
  const unsigned element = bytes * wanted;
  // A quarter of the input is reserved for constants after the index.
  uint32_t index = perturbed(linear_index(input_bytes / 2 / 16));
  access.offset = static_cast<int64_t>(random_.below(64)) * element;
  const Level level = level_of(index);
  const bool from_middle = random_.one_in(3);
  if (from_middle) {
    count("negative index");
    index = compute("sub.s32", "r", "rr", {reg(index), number32(input_bytes / 2 / element)});
    access.base = reg(scaled_pointer(middle_pointer_, index, element, true));
  } else {
    access.base = reg(scaled_pointer(input_pointer_, index, element, random_.one_in(2)));
  }
  if (random_.one_in(4)) { // a pointer after the place, and a negative constant
    const int64_t constant = static_cast<int64_t>(random_.below(1000)) * element;
    access.base = reg(compute("add.s64", "a", "ad", {access.base, number64(constant)}));
    access.offset -= constant;
  }
  emit_load(".global", access, kind, wanted, level, true, true);
}

// One linear address, several times at constant distances, recomputed each time in 64 bits and in another order, like
// the neighbours in a grid. Transforms may share one base for all.
void Builder::random_stencil() {
  using enum SpecialRegister;
  count("accesses with a common base");
  static constexpr SpecialRegister threads[] = {tid_x, tid_y, tid_z};
  const SpecialRegister fast = random_.pick(threads);
  const bool has_blocks = random_.one_in(2); // ctaid.x * ntid.x
  const int64_t factor = random_.between(1, 6);
  static constexpr Kind kinds[] = {Kind::b32, Kind::b64, Kind::f32, Kind::f64, Kind::b16};
  const Kind kind = pick_kind(kinds);
  const unsigned bytes = width_of(kind) / 8;
  const uint32_t base = random_.one_in(3) ? middle_pointer_ : input_pointer_;
  for (size_t i = 0, points = 2 + random_.below(3); i < points; ++i) {
    const int64_t distance = random_.between(0, 40);
    const bool early = random_.one_in(3); // the distance is added to the index
    uint32_t index = special(fast);
    if (early) index = compute("add.s32", "r", "rr", {reg(index), number32(distance)});
    const uint32_t slow = special(has_blocks ? ctaid_x : fast);
    uint32_t offset = compute("mul.wide.u32", "d", "rr", {reg(index), number32(factor * bytes)});
    if (has_blocks) {
      const uint32_t first = compute("mul.wide.u32", "d", "rr", {reg(slow), reg(special(ntid_x))});
      const uint32_t scaled = compute("mul.lo.s64", "d", "dd", {reg(first), number64(bytes)});
      offset = random_.one_in(2) ? compute("add.s64", "d", "dd", {reg(offset), reg(scaled)})
                                 : compute("add.u64", "d", "dd", {reg(scaled), reg(offset)});
    }
    MemoryAccess access;
    access.element_bits = 8 * bytes;
    const int64_t rest = early ? 0 : distance * factor * bytes;
    if (random_.one_in(2))
      access.offset = rest;
    else
      offset = compute("add.s64", "d", "dd", {reg(offset), number64(rest)});
    access.base = reg(compute("add.s64", "a", "ad", {reg(base), reg(offset)}));
    emit_load(".global", access, kind, 1, Level::thread, true, true);
  }
}

// Column k holds one 8-byte element per thread.
void Builder::random_linear_store() {
  count("store to a column");
  const uint32_t index = perturbed(random_.one_in(3) && !row_major_ ? global_index_ : global_index(row_major_));
  const auto column = static_cast<int64_t>(random_.below(column_count));
  uint32_t element = index;
  if (column != 0) {
    const uint32_t skipped = compute("mul.lo.s32", "r", "rr", {reg(total_threads_), number32(column)});
    element = compute("add.s32", "r", "rr", {reg(index), reg(skipped)});
  }
  MemoryAccess access;
  access.base = reg(scaled_pointer(columns_pointer_, element, 8, random_.one_in(2)));
  emit_store(".global", access, 8);
}

void Builder::random_table_load() {
  const bool constant = random_.one_in(2);
  int& object = constant ? constant_object_ : table_object_;
  if (object < 0) return;
  count(constant ? "constant table" : "global table");
  static constexpr Kind kinds[] = {Kind::b32, Kind::b64, Kind::f32, Kind::b16, Kind::f64};
  const Kind kind = pick_kind(kinds);
  const std::string space = constant ? ".const" : ".global";
  MemoryAccess access;
  access.element_bits = random_.pick(memory_widths(kind));
  const unsigned bytes = access.element_bits / 8;
  const unsigned wanted = vector_count(bytes, 16, random_);
  if (random_.one_in(3)) {
    access.object = object;
    access.offset = static_cast<int64_t>(random_.below(table_bytes / (bytes * wanted)) * bytes * wanted);
    emit_load(space, access, kind, wanted, Level::block, false, true);
    return;
  }
  const bool generic = random_.one_in(3);
  if (generic) count("generic address");
  const uint32_t index = masked_index(table_bytes / (bytes * wanted));
  access.base = reg(scaled_pointer(object_pointer(object, generic), index, bytes * wanted, random_.one_in(2)));
  emit_load(generic ? "" : space, access, kind, wanted, level_of(index), false, true);
}

void Builder::random_parameter_load() {
  count("parameter array");
  const Argument& argument = kernel_.arguments[array_argument_];
  static constexpr Kind kinds[] = {Kind::b32, Kind::b64, Kind::f32};
  const Kind kind = pick_kind(kinds);
  MemoryAccess access;
  access.element_bits = random_.pick(memory_widths(kind));
  const unsigned bytes = access.element_bits / 8;
  const unsigned size = kernel_.objects[argument.object].size;
  const unsigned wanted = random_.one_in(4) && bytes <= 4 ? 2 : 1;
  access.object = static_cast<int>(argument.object);
  access.offset = static_cast<int64_t>(random_.below(size / (bytes * wanted)) * bytes * wanted);
  emit_load(".param", access, kind, wanted, Level::block, false, true);
}

void Builder::random_local_access() {
  if (local_object_ < 0 || function_ != 0) return;
  count("local memory");
  // Every thread has other memory at such an address.
  const bool is_same_address = knobs_.own_addresses > 0 && random_.chance(knobs_.own_addresses);
  const bool generic = is_same_address || random_.one_in(3);
  if (generic) count("generic address");
  const std::string space = generic ? "" : ".local";
  MemoryAccess access;
  if (is_same_address) {
    access.base = reg(own_pointer_);
    access.offset = static_cast<int64_t>(random_.below(2) * 8); // few, so that a load finds what was stored
  } else {
    const uint32_t index = masked_index(local_bytes / 8);
    access.base = reg(scaled_pointer(object_pointer(local_object_, generic), index, 8, random_.one_in(2)));
  }
  if (random_.one_in(2)) return emit_store(space, access, 8);
  static constexpr Kind kinds[] = {Kind::b32, Kind::b64, Kind::f32, Kind::b16};
  const Kind kind = pick_kind(kinds);
  access.element_bits = random_.pick(memory_widths(kind));
  emit_load(space, access, kind, access.element_bits <= 32 && random_.one_in(3) ? 2 : 1, Level::thread, false, false);
}

namespace {

struct AtomicRow {
  const char* text;
  AtomicFunction function;
  Kind kind;
  bool is_signed;
};
constexpr AtomicRow commutative[] = {{"add.u32", AtomicFunction::add, Kind::b32, false},
                                     {"add.s32", AtomicFunction::add, Kind::b32, true},
                                     {"add.u64", AtomicFunction::add, Kind::b64, false},
                                     {"min.s32", AtomicFunction::min_signed, Kind::b32, true},
                                     {"max.s32", AtomicFunction::max_signed, Kind::b32, true},
                                     {"min.u32", AtomicFunction::min_unsigned, Kind::b32, false},
                                     {"max.u32", AtomicFunction::max_unsigned, Kind::b32, false},
                                     {"min.s64", AtomicFunction::min_signed, Kind::b64, true},
                                     {"max.u64", AtomicFunction::max_unsigned, Kind::b64, false},
                                     {"and.b32", AtomicFunction::and_, Kind::b32, false},
                                     {"or.b32", AtomicFunction::or_, Kind::b32, false},
                                     {"xor.b32", AtomicFunction::xor_, Kind::b32, false},
                                     {"and.b64", AtomicFunction::and_, Kind::b64, false},
                                     {"or.b64", AtomicFunction::or_, Kind::b64, false},
                                     {"xor.b64", AtomicFunction::xor_, Kind::b64, false}};
constexpr AtomicRow ordered[] = {{"inc.u32", AtomicFunction::increment, Kind::b32, false},
                                 {"dec.u32", AtomicFunction::decrement, Kind::b32, false},
                                 {"exch.b32", AtomicFunction::exchange, Kind::b32, false},
                                 {"exch.b64", AtomicFunction::exchange, Kind::b64, false},
                                 {"cas.b32", AtomicFunction::compare_and_swap, Kind::b32, false},
                                 {"cas.b64", AtomicFunction::compare_and_swap, Kind::b64, false}};

} // namespace

// Cells used by this statement alone, so that the result does not depend on the order of threads.
void Builder::random_global_atomic() {
  if (atomic_regions_ >= atomic_region_limit) return;
  count("commutative atomic");
  const AtomicRow& row = random_.pick(commutative);
  Statement statement;
  statement.kind = StatementKind::atomic;
  statement.atomic_function = row.function;
  const bool reduces = random_.one_in(2);
  statement.text =
      std::string(reduces ? "red" : "atom") + (random_.one_in(3) ? ".relaxed.gpu" : "") + ".global." + row.text;
  statement.memory.element_bits = width_of(row.kind);
  const uint32_t index = masked_index(atomic_cells);
  const uint32_t pointer = scaled_pointer(cells_pointer_, index, 8, random_.one_in(2));
  statement.memory.base = reg(pointer);
  statement.memory.offset = static_cast<int64_t>(atomic_regions_++) * atomic_cells * 8;
  statement.sources = {pick_operand(row.kind == Kind::b32 ? 'r' : 'd', Level::thread)};
  // The old value depends on the order: it is not used.
  if (!reduces && random_.one_in(2)) statement.results = {hidden_variable(row.kind, Level::thread)};
  if (random_.chance(knobs_.guard)) {
    statement.guard = pick_guard(Level::thread);
    count("guard");
  }
  emit(std::move(statement));
}

// On the thread's own slot the old value is that of the thread.
void Builder::random_slot_atomic() {
  count("atomic with result");
  const bool any = random_.one_in(2);
  const AtomicRow& row = any ? random_.pick(commutative) : random_.pick(ordered);
  Statement statement;
  statement.kind = StatementKind::atomic;
  statement.atomic_function = row.function;
  statement.text = std::string("atom.global.") + row.text;
  statement.memory.element_bits = width_of(row.kind);
  statement.memory.base = reg(slot_pointer_);
  const unsigned bytes = statement.memory.element_bits / 8;
  statement.memory.offset = static_cast<int64_t>(random_.below(slot_size_ / bytes) * bytes);
  const char letter = row.kind == Kind::b32 ? 'r' : 'd';
  statement.sources = {pick_operand(letter, Level::thread)};
  if (row.function == AtomicFunction::compare_and_swap)
    statement.sources.push_back(pick_operand(letter, Level::thread));
  statement.results = {new_variable(row.kind, Level::thread)};
  emit(std::move(statement));
}

} // namespace ptxrewrite::fuzz
