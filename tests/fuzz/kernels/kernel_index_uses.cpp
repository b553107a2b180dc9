// Uses of indices in random kernels: for memory accesses, directly if their bounds allow it, else confined or after a
// comparison; as data; in loops that advance them; in registers that several paths write.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

namespace {

constexpr Kind index_kinds[] = {Kind::b32, Kind::b32, Kind::b64, Kind::b16};
constexpr uint32_t most_beyond = 8; // elements after an index that immediates reach

uint32_t power_of_two_up_to(uint32_t limit) {
  uint32_t power = 1;
  while (power <= limit / 2)
    power *= 2;
  return power;
}

std::string letter_of(unsigned bits) {
  return bits == 16 ? "h" : bits == 32 ? "r" : "d";
}

Operand number_of(unsigned bits, uint64_t value) {
  return Operand::immediate(bits == 16 ? Kind::b16 : bits == 32 ? Kind::b32 : Kind::b64, cut(value, bits));
}

} // namespace

Builder::Region Builder::any_region() {
  if (constant_object_ >= 0 && random_.one_in(5))
    return {".const", object_pointer(constant_object_, false), table_bytes};
  if (table_object_ >= 0 && random_.one_in(6)) {
    const bool generic = random_.one_in(2);
    return {generic ? "" : ".global", object_pointer(table_object_, generic), table_bytes};
  }
  return {".global", input_pointer_, input_bytes};
}

// base + index * element_bytes, computed in the index's width.
uint32_t Builder::index_pointer(uint32_t base, const Index& index, unsigned element_bytes, bool is_signed) {
  const uint32_t variable = as_variable(index);
  const std::string sign = is_signed ? "s" : "u";
  if (index.bits == 32) return scaled_pointer(base, variable, element_bytes, is_signed);
  const auto add = [&](uint32_t bytes) {
    return random_.one_in(3) ? compute("add.s64", "a", "Da", {reg(bytes), reg(base)})
                             : compute("add.s64", "a", "ad", {reg(base), reg(bytes)});
  };
  if (index.bits == 64) {
    unsigned shift = 0;
    while ((1u << shift) < element_bytes)
      ++shift;
    switch (random_.below(3)) {
    case 0:
      return add(compute("shl.b64", "d", "dc", {reg(variable), number32(shift)}));
    case 1:
      return compute("mad.lo.s64", "a", "Dda", {reg(variable), number64(element_bytes), reg(base)});
    default:
      return add(compute("mul.lo." + sign + "64", "d", "dd", {reg(variable), number64(element_bytes)}));
    }
  }
  switch (random_.below(3)) {
  case 0: {
    const uint32_t bytes = compute("mul.wide." + sign + "16", "r", "hh", {reg(variable), number16(element_bytes)});
    return add(compute("cvt." + sign + "64." + sign + "32", "d", "R", {reg(bytes)}));
  }
  case 1: {
    const uint32_t wide = compute("cvt." + sign + "32." + sign + "16", "r", "H", {reg(variable)});
    return scaled_pointer(base, wide, element_bytes, is_signed);
  }
  default: {
    const uint32_t wide = compute("cvt." + sign + "64." + sign + "16", "d", "H", {reg(variable)});
    return add(compute("mul.lo.s64", "d", "dd", {reg(wide), number64(element_bytes)}));
  }
  }
}

// 0 <= index < limit.
uint32_t Builder::in_range(const Index& index, uint32_t limit) {
  const std::string letters = letter_of(index.bits) + letter_of(index.bits), width = std::to_string(index.bits);
  const Operand bound = number_of(index.bits, limit);
  switch (random_.below(3)) {
  case 0: {
    const uint32_t is_natural = compute("setp.ge.s" + width, "p", letters, {index.operand, number_of(index.bits, 0)});
    const uint32_t is_below = compute("setp.lt.s" + width, "p", letters, {index.operand, bound});
    return compute("and.pred", "p", "!!", {reg(is_natural), reg(is_below)});
  }
  case 1:
    return compute("setp.hi.u" + width, "p", letters, {reg(as_variable({bound, index.bits, {}})), index.operand});
  default:
    return compute("setp.lt.u" + width, "p", letters, {index.operand, bound});
  }
}

// Loads at the index, which is in range, and up to `beyond` elements after it; some through one address, others through
// separate addresses.
void Builder::emit_index_loads(const Region& region, const Index& index, Kind kind, uint32_t beyond) {
  const unsigned bytes = width_of(kind) / 8;
  uint32_t pointer = 0;
  for (size_t i = 0, loads = 1 + random_.below(3); i < loads; ++i) {
    const auto distance = static_cast<int64_t>(random_.below(beyond + 1));
    const bool is_signed = index.bounds.low < 0 || random_.one_in(2);
    MemoryAccess access;
    access.element_bits = 8 * bytes;
    access.offset = distance * bytes;
    if (i == 0 || random_.one_in(2)) {
      Index moved = index;
      if (random_.one_in(3)) {
        const std::string letters = letter_of(index.bits);
        moved.operand = reg(compute("add.s" + std::to_string(index.bits), letters, letters + letters,
                                    {index.operand, number_of(index.bits, static_cast<uint64_t>(distance))}));
        access.offset = 0;
        access.base = reg(index_pointer(region.base, moved, bytes, is_signed));
      } else {
        pointer = index_pointer(region.base, index, bytes, is_signed);
        access.base = reg(pointer);
      }
    } else if (pointer == 0) {
      continue;
    } else {
      access.base = reg(pointer);
    }
    const uint32_t result = emit_load(region.space, access, kind, 1, level_of(access.base), true, true).results[0];
    store_to_slot({result});
  }
}

// The same under guards: of the load, or of the last step to its address.
void Builder::emit_guarded_index_loads(const Region& region, const Index& index, Kind kind, uint32_t limit) {
  count("index behind a guard");
  const unsigned bytes = width_of(kind) / 8;
  const uint32_t inside = in_range(index, limit);
  // Lanes disabled by the guard widen their index, too: a negative one as signed, unless wrapping is allowed.
  const bool is_signed = random_.one_in(2) || (!kernel_.may_wrap && index.bounds.low < 0);
  MemoryAccess access;
  access.element_bits = 8 * bytes;
  if (random_.one_in(2)) {
    const uint32_t chosen = hidden_variable(Kind::pointer, Level::thread);
    Statement copy;
    copy.operation = operation_named("mov.u64", "a", "a");
    copy.results = {chosen};
    copy.sources = {reg(region.base)};
    emit(std::move(copy));
    const uint32_t pointer = index_pointer(region.base, index, bytes, is_signed);
    std::erase(visible_, pointer);
    out_->back().results = {chosen};
    out_->back().guard = {true, false, inside};
    access.base = reg(chosen);
    const uint32_t result = emit_load(region.space, access, kind, 1, Level::thread, true, true).results[0];
    return store_to_slot({result});
  }
  const char* const text = kind == Kind::b16 ? "mov.b16" : kind == Kind::b32 ? "mov.u32" : "mov.b64";
  const std::string letter = letter_of(8 * bytes);
  const uint32_t result = compute(text, letter, letter, {number_of(8 * bytes, random_.below(9))});
  kernel_.variables[result].level = Level::thread;
  access.base = reg(index_pointer(region.base, index, bytes, is_signed));
  const size_t visible = visible_.size();
  Statement& load = emit_load(region.space, access, kind, 1, Level::thread, true, true);
  visible_.resize(visible);
  load.results = {result};
  load.guard = {true, false, inside};
  store_to_slot({result});
}

Builder::Index Builder::confined(const Index& index, uint32_t limit) {
  const std::string one = letter_of(index.bits), width = std::to_string(index.bits);
  const bool may_compare = kernel_.may_wrap || index.bounds.low >= 0;
  const Bounds bounds = {0, Int128(limit - 1)};
  switch (may_compare ? random_.below(4) : 0) {
  case 1:
    return finished(compute("min.u" + width, one, one + one, {index.operand, number_of(index.bits, limit - 1)}),
                    index.bits, bounds);
  case 2: {
    const std::string divisor = index.bits == 16 ? "u" : index.bits == 32 ? "v" : "x";
    return finished(compute("rem.u" + width, one, one + divisor, {index.operand, number_of(index.bits, limit)}),
                    index.bits, bounds);
  }
  default:
    return finished(
        compute("and.b" + width, one, one + one, {index.operand, number_of(index.bits, power_of_two_up_to(limit) - 1)}),
        index.bits, {0, Int128(power_of_two_up_to(limit)) - 1});
  }
}

void Builder::use_index(const Index& index) {
  if (random_.one_in(3)) return store_to_slot({as_variable(index)});
  const Region region = any_region();
  const Kind kind = random_.pick(index_kinds);
  const unsigned bytes = width_of(kind) / 8;
  const auto beyond = static_cast<uint32_t>(random_.below(most_beyond));
  const uint32_t limit = std::min(region.bytes / bytes - beyond, 0x7fffu);
  if (index.bounds.low >= 0 && index.bounds.high < limit && !random_.one_in(4)) {
    count("index in bounds by itself");
    return emit_index_loads(region, index, kind, beyond);
  }
  if (region.bytes == input_bytes && index.bounds.low < 0 && index.bounds.low >= -Int128(limit / 2) &&
      index.bounds.high < limit / 2 && !random_.one_in(4)) {
    count("index on both sides of a pointer");
    return emit_index_loads({region.space, middle_pointer_, region.bytes}, index, kind, beyond);
  }
  switch (random_.below(4)) {
  case 0:
    count("confined index");
    return emit_index_loads(region, confined(index, limit), kind, beyond);
  case 1:
    return emit_guarded_index_loads(region, index, kind, limit);
  case 2: { // the offset is masked after the widening
    count("confined offset");
    const Index narrow = index.bits == 32 ? index : converted(index, 32);
    const bool is_signed = index.bounds.low < 0 ? true : random_.one_in(2);
    const uint32_t wide =
        compute(is_signed ? "mul.wide.s32" : "mul.wide.u32", "d", "rr", {narrow.operand, number32(bytes)});
    const uint32_t offset =
        compute("and.b64", "d", "dd", {reg(wide), number64(int64_t(power_of_two_up_to(limit) - 1) * bytes)});
    MemoryAccess access;
    access.element_bits = 8 * bytes;
    access.offset = static_cast<int64_t>(random_.below(beyond + 1)) * bytes;
    access.base = reg(compute("add.s64", "a", "ad", {reg(region.base), reg(offset)}));
    const uint32_t result = emit_load(region.space, access, kind, 1, level_of(access.base), true, true).results[0];
    return store_to_slot({result});
  }
  default: {
    count("index behind a branch");
    const uint32_t inside = in_range(index, limit);
    Statement branch;
    branch.kind = StatementKind::branch;
    branch.guard = {true, false, inside};
    branch.bodies.push_back(in_body(level_of(inside), [&] { emit_index_loads(region, index, kind, beyond); }));
    emit(std::move(branch));
    return;
  }
  }
}

void Builder::random_index_data() {
  count("index as data");
  const Index made = any_index(2 + static_cast<unsigned>(random_.below(2)));
  store_to_slot({made.operand.variable});
}

void Builder::random_index_access() {
  count("access by an index");
  use_index(any_index(1 + static_cast<unsigned>(random_.below(3))));
}

// A register that is rewritten on some paths.
void Builder::random_index_choice() {
  count("index written on several paths");
  const unsigned bits = random_.one_in(3) ? 64 : 32;
  const std::string letter = letter_of(bits);
  const Index first = index(bits, 1);
  const uint32_t chosen = hidden_variable(
      first.operand.is_variable ? kernel_.variables[first.operand.variable].kind : first.operand.kind, Level::thread);
  Bounds bounds = first.bounds;
  const auto write = [&](const Operand& value) {
    Statement copy;
    copy.operation = operation_named("add.s" + std::to_string(bits), letter, letter + letter);
    copy.results = {chosen};
    copy.sources = {value, number_of(bits, 0)};
    emit(std::move(copy));
  };
  write(first.operand);
  const auto write_another = [&] {
    const Index another = index(bits, 1 + static_cast<unsigned>(random_.below(2)));
    bounds = hull(bounds, another.bounds);
    write(another.operand);
  };
  const uint32_t condition = pick_condition();
  if (random_.one_in(3)) {
    write_another();
    out_->back().guard = {true, random_.one_in(2), condition};
  } else {
    Statement branch;
    branch.kind = StatementKind::branch;
    branch.guard = {true, random_.one_in(2), condition};
    branch.bodies.push_back(in_body(level_of(condition), write_another));
    if (random_.one_in(2)) branch.bodies.push_back(in_body(level_of(condition), write_another));
    emit(std::move(branch));
  }
  visible_.push_back(chosen);
  const Index result = finished(chosen, bits, bounds);
  for (size_t i = 0, uses = 1 + random_.below(2); i < uses; ++i)
    use_index(result);
}

// For one loop: registers advanced in its latch, by literals, parameters, other registers, or each other.
std::vector<Builder::Index> Builder::emit_inductions(Statement& loop, unsigned most) {
  std::vector<Index> inductions;
  for (size_t i = 0, wanted = 1 + random_.below(3); i < wanted; ++i) {
    const unsigned bits = random_.one_in(6) ? 16 : random_.one_in(3) ? 64 : 32;
    const std::string letter = letter_of(bits);
    const Index start = index(bits, 1);
    Index step = random_.one_in(2) ? index_literal(bits) : index(bits, random_.one_in(2) ? 1 : 0);
    if (!inductions.empty() && inductions.back().bits == bits && random_.one_in(3)) step = inductions.back();
    const Bounds trips = {0, Int128(most)};
    if (!kernel_.may_wrap && !fits(sum(start.bounds, product(step.bounds, trips)), bits)) continue;
    const Bounds bounds = sum(start.bounds, product(step.bounds, trips));
    const uint32_t variable = hidden_variable(bits == 16   ? Kind::b16
                                              : bits == 32 ? Kind::b32
                                                           : Kind::b64,
                                              Level::thread);
    Statement advance;
    advance.operation =
        operation_named(std::string("add.") + any_sign() + std::to_string(bits), letter, letter + letter);
    advance.results = {variable};
    Statement initial = advance;
    initial.sources = {start.operand, number_of(bits, 0)};
    emit(std::move(initial));
    advance.sources = {reg(variable), step.operand};
    loop.bodies[1].push_back(std::move(advance));
    visible_.push_back(variable);
    inductions.push_back(finished(variable, bits, bounds));
    visible_.pop_back();
  }
  return inductions;
}

void Builder::random_index_loop() {
  const unsigned most = std::min(6u, knobs_.trips / trips_);
  if (most < 2) return;
  Level level = Level::block;
  const uint32_t limit = pick_limit(most, level);
  if (random_.one_in(4)) level = Level::thread;
  count("loop that advances indices");
  Statement loop;
  loop.kind = StatementKind::loop;
  loop.bodies.resize(3);
  loop.bottom_tested = random_.one_in(2);
  const std::vector<Index> inductions = emit_inductions(loop, most);
  emit_counting(loop, limit, level);
  const size_t visible = visible_.size();
  loops_.push_back(highest(context_, level));
  const unsigned trips = trips_;
  trips_ *= most;
  for (const Index& index : inductions)
    visible_.push_back(index.operand.variable);
  loop.bodies[0] = in_body(level, [&] {
    ++depth_;
    for (const Index& index : inductions)
      use_index(index);
    random_statements(static_cast<unsigned>(random_.below(3)));
    --depth_;
  });
  trips_ = trips;
  loops_.pop_back();
  visible_.resize(visible);
  emit(std::move(loop));
  for (const Index& index : inductions) {
    visible_.push_back(index.operand.variable);
    if (random_.one_in(2)) use_index(index);
  }
}

// More linear addresses than fit into any table of linear registers.
void Builder::random_many_forms() {
  using enum SpecialRegister;
  count("many linear forms");
  const uint32_t all = hidden_variable(Kind::b32, Level::thread);
  const auto write = [&](const char* text, const char* letters, std::vector<Operand> sources) {
    Statement statement;
    statement.operation = operation_named(text, "r", letters);
    statement.results = {all};
    statement.sources = std::move(sources);
    emit(std::move(statement));
  };
  write("mov.u32", "r", {number32(0)});
  const SpecialRegister thread = random_.one_in(2) ? tid_x : tid_y;
  const uint32_t limit = input_bytes / 4;
  for (uint32_t i = 0, forms = 17 + static_cast<uint32_t>(random_.below(6)); i < forms; ++i) {
    const uint32_t block_factor = static_cast<uint32_t>(random_.between(0, 60));
    const Bounds bounds = {0, Int128(extremum(thread)) * (i + 1) + Int128(extremum(ctaid_x)) * block_factor};
    if (bounds.high >= limit) return;
    const uint32_t row = compute("mul.lo.s32", "r", "rr", {reg(special(ctaid_x)), number32(block_factor)});
    const uint32_t place = multiply_add(special(thread), number32(i + 1), row);
    MemoryAccess access;
    access.base = reg(index_pointer(input_pointer_, {reg(place), 32, bounds}, 4, random_.one_in(2)));
    const size_t visible = visible_.size();
    const uint32_t value = hidden_variable(Kind::b32, Level::thread);
    Statement& load = emit_load(".global", access, Kind::b32, 1, Level::thread, true, true);
    load.results = {value};
    load.guard = {};
    visible_.resize(visible);
    write("xor.b32", "rr", {reg(all), reg(value)});
  }
  store_to_slot({all});
}

uint32_t Builder::own_shared_slot() {
  const uint32_t thread = random_.one_in(3) ? thread_in_block_ : perturbed(thread_in_block());
  if (!own_shared_is_reversed_) return thread;
  const uint32_t inverted = compute("not.b32", "r", "r", {reg(thread)});
  return compute("add.s32", "r", "rr", {reg(inverted), reg(block_size_)});
}

// The thread's own place in shared memory, recomputed repeatedly.
void Builder::random_own_shared() {
  if (own_shared_object_ < 0) return;
  count("own place in shared memory");
  const uint32_t thread = own_shared_slot();
  const bool is_generic = random_.one_in(4);
  MemoryAccess access;
  access.base =
      !is_generic && random_.one_in(2)
          ? reg(shared_pointer(own_shared_object_, thread))
          : reg(scaled_pointer(object_pointer(own_shared_object_, is_generic), thread, shared_slot, random_.one_in(2)));
  const std::string space = is_generic ? "" : ".shared";
  if (random_.one_in(2)) {
    access.offset = random_.one_in(2) ? 8 : 0;
    emit_store(space, access, access.offset == 0 ? 16 : 8);
  }
  const Kind kind = random_.pick(index_kinds);
  const unsigned bytes = width_of(kind) / 8;
  access.element_bits = 8 * bytes;
  access.offset = static_cast<int64_t>(random_.below(shared_slot / bytes) * bytes);
  const uint32_t result = emit_load(space, access, kind, 1, Level::thread, true, false).results[0];
  store_to_slot({result});
}

// The thread's own element of a column; some columns are reversed.
void Builder::random_index_store() {
  count("store by an index");
  uint32_t own = perturbed(random_.one_in(3) && !row_major_ ? global_index_ : global_index(row_major_));
  auto column = static_cast<int64_t>(random_.below(column_count));
  if (random_.one_in(2)) {
    column = column_count + static_cast<int64_t>(random_.below(reversed_columns));
    const uint32_t inverted = compute("not.b32", "r", "r", {reg(own)});
    own = compute("add.s32", "r", "rr", {reg(total_threads_), reg(inverted)});
  }
  MemoryAccess access;
  if (random_.one_in(2)) {
    const uint32_t element = multiply_add(total_threads_, number32(column), own);
    access.base = reg(scaled_pointer(columns_pointer_, element, 8, random_.one_in(2)));
  } else {
    const uint32_t skipped = compute("mul.wide.u32", "d", "rr", {reg(total_threads_), number32(column * 8)});
    const uint32_t start = compute("add.s64", "a", "ad", {reg(columns_pointer_), reg(skipped)});
    access.base = reg(scaled_pointer(start, own, 8, random_.one_in(2)));
  }
  if (random_.one_in(2)) return emit_store(".global", access, 8);
  const Index value = any_index(1);
  access.element_bits = value.bits;
  emit_store_of(".global", access, {value.operand.variable});
}

} // namespace ptxrewrite::fuzz
