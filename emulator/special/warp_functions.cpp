// shfl, vote, match, activemask, redux, elect and bar.warp: exchange of values between lanes of a warp (PTX ISA 9.7.9.5
// and 9.7.13). The forms without .sync use the lanes that currently execute them together.
#include "emulator/core/decode.h"
#include "emulator/semantics/wide_shuffle.h"
#include "emulator/special/collective.h"

#include <bit>
#include <cmath>
#include <limits>

namespace ptxrewrite::emulator {
namespace {

// op.source of every function here: operands, with the member mask last. Its index:
constexpr unsigned members_after_one = 1;
constexpr unsigned members_after_three = 3;

template <bool sync, class Body>
const MicroOp* execute(Warp& warp, const MicroOp& op, unsigned members_index, Body&& body) {
  if constexpr (sync) {
    return execute_together(warp, op, op.source[members_index], body);
  } else {
    warp.gathered.clear();
    body(Collective(warp, op, warp.mask, warp.mask));
    return &op + 1;
  }
}

// --- shfl ---

using semantics::ShuffleMode;

struct ShuffleSource {
  unsigned lane = 0;
  bool in_range = false;
};

template <ShuffleMode mode> constexpr ShuffleSource shuffle_source(unsigned lane, uint32_t b, uint32_t c) {
  const int own = static_cast<int>(lane), distance = static_cast<int>(b & 31u);
  const int clamp = static_cast<int>(c & 31u), segment = static_cast<int>(c >> 8 & 31u);
  const int lowest = own & segment, bound = lowest | (clamp & ~segment);
  const int from = mode == ShuffleMode::up          ? own - distance
                   : mode == ShuffleMode::down      ? own + distance
                   : mode == ShuffleMode::butterfly ? (own ^ distance)
                                                    : (lowest | (distance & ~segment));
  const bool in_range = mode == ShuffleMode::up ? from >= bound : from <= bound;
  const int keep = -static_cast<int>(in_range); // branch-free so that loops over lanes are vectorised
  return {static_cast<unsigned>((from & keep) | (own & ~keep)) & 31u, in_range};
}

// to[lane] = values[from[lane]]
inline void permute_lanes(const uint32_t* values, const uint32_t* from, uint32_t* to) {
#if defined(__AVX2__)
  using Words = uint32_t __attribute__((vector_size(32)));
  using SignedWords = int32_t __attribute__((vector_size(32)));
  using Floats = float __attribute__((vector_size(32)));
  SignedWords parts[4];
  std::memcpy(parts, values, sizeof parts);
  for (unsigned first = 0; first < warp_size; first += 8) {
    Words places;
    std::memcpy(&places, from + first, sizeof places);
    // Selects from each eight values by the lower three bits of the places; the upper bits, as signs, select the blend.
    Floats chosen[4];
    for (unsigned part = 0; part < 4; ++part)
      chosen[part] = (Floats)__builtin_ia32_permvarsi256(parts[part], (SignedWords)places);
    const auto odd = (Floats)(places << 28), upper = (Floats)(places << 27);
    const Floats low = __builtin_ia32_blendvps256(chosen[0], chosen[1], odd);
    const Floats high = __builtin_ia32_blendvps256(chosen[2], chosen[3], odd);
    const Floats all = __builtin_ia32_blendvps256(low, high, upper);
    std::memcpy(to + first, &all, sizeof all);
  }
#else
  for (unsigned lane = 0; lane < warp_size; ++lane)
    to[lane] = values[from[lane]];
#endif
}

// The values that all lanes read, and the lanes whose source is in range.
struct Shuffled {
  alignas(64) uint32_t values[warp_size];
  uint32_t in_range = 0;
};

template <ShuffleMode mode>
void shuffle_values(const uint32_t* a, const uint32_t* b, const uint32_t* c, uint32_t lanes, Shuffled& result) {
#if defined(PTXREWRITE_WIDE_SHUFFLE)
  if (semantics::host_has_avx512()) {
    result.in_range = semantics::wide_shuffle<mode>(a, b, c, lanes, result.values);
    return;
  }
#endif
  // Each loop does one kind of work, so that the compiler can vectorise it.
  alignas(32) uint32_t from[warp_size];
  alignas(32) uint8_t in_range[warp_size];
  for (unsigned lane = 0; lane < warp_size; ++lane)
    from[lane] = shuffle_source<mode>(lane, b[lane], c[lane]).lane;
  for (unsigned lane = 0; lane < warp_size; ++lane)
    in_range[lane] = shuffle_source<mode>(lane, b[lane], c[lane]).in_range;
  // The source lane does not participate (undefined in PTX): the lane keeps its own value.
  if (lanes != full_mask)
    for (unsigned lane = 0; lane < warp_size; ++lane)
      from[lane] = (lanes >> from[lane]) & 1 ? from[lane] : lane;
  permute_lanes(a, from, result.values);
  result.in_range = detail::pack_mask(in_range);
}

template <ShuffleMode mode, bool sync> const MicroOp* shuffle(Warp& warp, const MicroOp& op) {
  return execute<sync>(warp, op, members_after_three, [](const Collective& all) {
    uint32_t a_storage[warp_size], b_storage[warp_size], c_storage[warp_size];
    const uint32_t* a = all.values(0, a_storage);
    const uint32_t* b = all.values(1, b_storage);
    const uint32_t* c = all.values(2, c_storage);
    Shuffled shuffled; // computed before a result is written, which may be b or c
    shuffle_values<mode>(a, b, c, all.lanes(), shuffled);
    all.write<uint32_t>(0, [&](unsigned lane) { return shuffled.values[lane]; });
    all.write<bool>(1, [&](unsigned lane) { return (shuffled.in_range >> lane) & 1; });
  });
}

template <bool sync> Handler shuffle_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::up)) return &shuffle<ShuffleMode::up, sync>;
  if (form.has(ir::Modifier::down)) return &shuffle<ShuffleMode::down, sync>;
  if (form.has(ir::Modifier::bfly)) return &shuffle<ShuffleMode::butterfly, sync>;
  return &shuffle<ShuffleMode::index, sync>;
}

// --- vote, match, redux, elect, activemask, bar.warp ---

enum class Vote : uint8_t { all, any, uniform, ballot };

template <Vote vote, bool sync> const MicroOp* take_vote(Warp& warp, const MicroOp& op) {
  return execute<sync>(warp, op, members_after_one, [](const Collective& all) {
    const uint32_t yes = all.predicate(0);
    if constexpr (vote == Vote::ballot) {
      all.write<uint32_t>(0, [&](unsigned) { return yes; });
    } else {
      const bool result = vote == Vote::all   ? yes == all.lanes()
                          : vote == Vote::any ? yes != 0
                                              : yes == 0 || yes == all.lanes();
      all.write<bool>(0, [&](unsigned) { return result; });
    }
  });
}

template <bool sync> Handler vote_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::ballot)) return &take_vote<Vote::ballot, sync>;
  if (form.has(ir::Modifier::all)) return &take_vote<Vote::all, sync>;
  if (form.has(ir::Modifier::any)) return &take_vote<Vote::any, sync>;
  return &take_vote<Vote::uniform, sync>;
}

template <class T> const MicroOp* match_any(Warp& warp, const MicroOp& op) {
  return execute<true>(warp, op, members_after_one, [](const Collective& all) {
    T storage[warp_size];
    const T* values = all.values(0, storage);
    uint32_t equal[warp_size] = {};
    for (uint32_t rest = all.lanes(); rest;) {
      const T value = values[std::countr_zero(rest)];
      uint32_t same = 0;
      for (unsigned lane = 0; lane < warp_size; ++lane)
        same |= static_cast<uint32_t>(values[lane] == value) << lane;
      same &= rest;
      for (uint32_t lanes = same; lanes; lanes &= lanes - 1)
        equal[std::countr_zero(lanes)] = same;
      rest &= ~same;
    }
    all.write<uint32_t>(0, [&](unsigned lane) { return equal[lane]; });
  });
}

template <class T> const MicroOp* match_all(Warp& warp, const MicroOp& op) {
  return execute<true>(warp, op, members_after_one, [](const Collective& all) {
    T storage[warp_size];
    const T* values = all.values(0, storage);
    bool same = true;
    for (uint32_t lanes = all.lanes(); lanes; lanes &= lanes - 1)
      same = same && values[std::countr_zero(lanes)] == values[std::countr_zero(all.lanes())];
    all.write<uint32_t>(0, [&](unsigned) { return same ? all.lanes() : 0; });
    all.write<bool>(1, [&](unsigned) { return same; });
  });
}

enum class Reduction : uint8_t { add, min, max, and_, or_, xor_ };

template <Reduction reduction, class T> T reduce(T a, T b) {
  switch (reduction) {
  case Reduction::add:
    return static_cast<T>(static_cast<uint32_t>(a) + static_cast<uint32_t>(b));
  case Reduction::min:
    return b < a ? b : a;
  case Reduction::max:
    return a < b ? b : a;
  case Reduction::and_:
    return a & b;
  case Reduction::or_:
    return a | b;
  case Reduction::xor_:
    return a ^ b;
  }
  return a;
}

template <Reduction reduction, class T> const MicroOp* reduce_lanes(Warp& warp, const MicroOp& op) {
  return execute<true>(warp, op, members_after_one, [](const Collective& all) {
    T storage[warp_size];
    const T* values = all.values(0, storage);
    T total = values[std::countr_zero(all.lanes())];
    for (uint32_t lanes = all.lanes() & (all.lanes() - 1); lanes; lanes &= lanes - 1)
      total = reduce<reduction>(total, values[std::countr_zero(lanes)]);
    all.write<T>(0, [&](unsigned) { return total; });
  });
}

// min and max of floats: a NaN loses against a number, or wins with .NaN; -0 is less than +0.
template <bool maximum> const MicroOp* reduce_floats(Warp& warp, const MicroOp& op) {
  return execute<true>(warp, op, members_after_one, [](const Collective& all) {
    float storage[warp_size];
    const float* values = all.values(0, storage);
    constexpr uint32_t canonical_nan = 0x7fffffff;
    uint32_t best = canonical_nan;
    bool any_nan = false;
    for (uint32_t lanes = all.lanes(); lanes; lanes &= lanes - 1) {
      float value = values[std::countr_zero(lanes)];
      if (all.op().flags & flag_abs) value = std::fabs(value);
      const float so_far = std::bit_cast<float>(best);
      any_nan |= std::isnan(value);
      if (std::isnan(value)) continue;
      const bool better = std::isnan(so_far) || (maximum ? value > so_far || (value == so_far && std::signbit(so_far))
                                                         : value < so_far || (value == so_far && std::signbit(value)));
      if (better) best = std::bit_cast<uint32_t>(value);
    }
    if (any_nan && (all.op().flags & flag_nan)) best = canonical_nan;
    all.write<uint32_t>(0, [&](unsigned) { return best; });
  });
}

template <class T> Handler reduction_handler(const ir::Form& form) {
  if (form.has(ir::Modifier::add)) return &reduce_lanes<Reduction::add, T>;
  if (form.has(ir::Modifier::min)) return &reduce_lanes<Reduction::min, T>;
  if (form.has(ir::Modifier::max)) return &reduce_lanes<Reduction::max, T>;
  if (form.has(ir::Modifier::and_)) return &reduce_lanes<Reduction::and_, T>;
  if (form.has(ir::Modifier::or_)) return &reduce_lanes<Reduction::or_, T>;
  return &reduce_lanes<Reduction::xor_, T>;
}

// The lowest lane is elected: the manual leaves it open, but programs rely on it.
const MicroOp* elect(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, op.source[0], [](const Collective& all) {
    const auto leader = static_cast<uint32_t>(std::countr_zero(all.lanes()));
    all.write<uint32_t>(0, [&](unsigned) { return leader; });
    all.write<bool>(1, [&](unsigned lane) { return lane == leader; });
  });
}

const MicroOp* wait_for_members(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, op.source[0], [](const Collective&) {});
}

const MicroOp* active_mask(Warp& warp, const MicroOp& op) {
  const uint32_t mask = warp.mask;
  detail::write_lanes<uint32_t>(warp, op.destination[0], mask, [&](unsigned) { return mask; });
  return &op + 1;
}

// --- decoding ---

// The instruction's results, `d` or `d|p`.
struct Results {
  LaneRef first, second;
};

Results results_of(Decoder& decoder, LaneType first, LaneType second) {
  const std::span<const ir::Operand> operands = decoder.operands();
  if (!operands[0].is(ir::OperandKind::pair)) return {decoder.destination(operands[0], first), {}};
  return {decoder.destination(operands[1], first), decoder.destination(operands[2], second)};
}

// Emits an operation with sources of the given types, which are the operands after the result.
void emit_with_sources(Decoder& decoder, Handler handler, Results results, std::initializer_list<LaneType> types) {
  LaneRef sources[4];
  unsigned count = 0;
  for (LaneType type : types) {
    const size_t position = decoder.top_level(count + 1);
    if (position >= decoder.operands().size()) return decoder.unsupported("an operand is missing");
    sources[count++] = decoder.source(decoder.operands()[position], type);
  }
  MicroOp& op = decoder.emit(handler);
  op.destination[0] = results.first;
  op.destination[1] = results.second;
  std::copy_n(sources, count, op.source);
  op.flags = modifier_flags(decoder.form());
}

constexpr LaneType predicate_type = lanes_of_bits(1);
constexpr LaneType word = lanes_of_bits(32);

void decode_shuffle(Decoder& decoder, ir::InstructionId) {
  const Results results = results_of(decoder, word, predicate_type);
  if (decoder.form().has(ir::Modifier::sync))
    emit_with_sources(decoder, shuffle_handler<true>(decoder.form()), results, {word, word, word, word});
  else
    emit_with_sources(decoder, shuffle_handler<false>(decoder.form()), results, {word, word, word});
}

void decode_vote(Decoder& decoder, ir::InstructionId) {
  const bool ballot = decoder.form().has(ir::Modifier::ballot);
  const Results results{decoder.destination(decoder.operands()[0], ballot ? word : predicate_type), {}};
  if (decoder.form().has(ir::Modifier::sync))
    emit_with_sources(decoder, vote_handler<true>(decoder.form()), results, {predicate_type, word});
  else
    emit_with_sources(decoder, vote_handler<false>(decoder.form()), results, {predicate_type});
}

void decode_match(Decoder& decoder, ir::InstructionId) {
  const bool wide = ir::bit_width(decoder.form().type()) == 64, all = decoder.form().has(ir::Modifier::all);
  const Results results = results_of(decoder, word, predicate_type);
  Handler handler =
      all ? (wide ? &match_all<uint64_t> : &match_all<uint32_t>) : (wide ? &match_any<uint64_t> : &match_any<uint32_t>);
  emit_with_sources(decoder, handler, results, {wide ? lanes_of_bits(64) : word, word});
}

void decode_redux(Decoder& decoder, ir::InstructionId) {
  const ir::ScalarType type = decoder.form().type();
  const Results results{decoder.destination(decoder.operands()[0], word), {}};
  if (type == ir::ScalarType::f32) {
    Handler handler = decoder.form().has(ir::Modifier::max) ? &reduce_floats<true> : &reduce_floats<false>;
    emit_with_sources(decoder, handler, results, {{LaneKind::floating, 32}, word});
    return;
  }
  emit_with_sources(decoder,
                    ir::is_signed(type) ? reduction_handler<int32_t>(decoder.form())
                                        : reduction_handler<uint32_t>(decoder.form()),
                    results, {word, word});
}

void decode_elect(Decoder& decoder, ir::InstructionId) {
  emit_with_sources(decoder, &elect, results_of(decoder, word, predicate_type), {word});
}

void decode_active_mask(Decoder& decoder, ir::InstructionId) {
  emit_with_sources(decoder, &active_mask, {decoder.destination(decoder.operands()[0], word), {}}, {});
}

void decode_bar_warp(Decoder& decoder, ir::InstructionId) {
  const LaneRef members = decoder.source(decoder.operands()[0], word);
  MicroOp& op = decoder.emit(&wait_for_members);
  op.source[0] = members;
}

} // namespace

void add_warp_operations(OperationTable& table) {
  table.special("shfl*", &decode_shuffle);
  table.special("vote*", &decode_vote);
  table.special("match*", &decode_match);
  table.special("redux*", &decode_redux);
  table.special("elect*", &decode_elect);
  table.special("activemask*", &decode_active_mask);
  table.special("bar.warp*", &decode_bar_warp);
}

} // namespace ptxrewrite::emulator
