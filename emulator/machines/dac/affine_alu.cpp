// The arithmetic of DAC's affine warp: for each set of threads in which every operand is a single tuple, computes the
// tuple of the result (dac-isca17 §4.4, §4.6).
#include "emulator/core/block.h"
#include "emulator/core/decode.h"
#include "emulator/machines/dac/affine_warp.h"
#include "emulator/semantics/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace ptxrewrite::emulator {
namespace {

// Limit on combinations of differing operands; the written register has its own limit of tuples.
constexpr size_t most_combinations = 16;

bool all_scalar(const std::vector<AffineTuple>& tuples) {
  return std::ranges::all_of(tuples, [](const AffineTuple& tuple) { return tuple.is_scalar(); });
}

// The lowest bits of a number, as a remainder by a power of two.
std::optional<AffineTuple> masked(const AffineTuple& a, const AffineTuple& b) {
  const AffineTuple& mask = a.is_scalar() ? a : b;
  const AffineTuple& value = a.is_scalar() ? b : a;
  if (!mask.is_scalar()) return std::nullopt;
  const uint64_t ones = mask.at({});
  if (ones == low_bits(~uint64_t(0), value.bits)) return value;
  if ((ones & (ones + 1)) != 0) return std::nullopt;
  return remainder(value, AffineTuple::scalar(ones + 1, value.bits), false);
}

std::optional<AffineTuple> product(const ir::Form& form, const AffineTuple& a, const AffineTuple& b) {
  const bool is_signed = ir::is_signed(form.type());
  if (form.has(ir::Modifier::lo)) return multiply(a, b);
  if (form.has(ir::Modifier::wide))
    return multiply(convert(a, a.bits * 2, is_signed), convert(b, b.bits * 2, is_signed));
  return std::nullopt;
}

std::optional<AffineTuple> converted(const ir::Form& form, const AffineTuple& a) {
  const ir::ScalarType to = form.type(0), from = form.type(1);
  const unsigned to_bits = ir::bit_width(to), from_bits = ir::bit_width(from);
  if (ir::is_float(to) || ir::is_float(from) || to_bits < 16 || from_bits < 16 || form.has(ir::Modifier::sat))
    return std::nullopt;
  return convert(convert(a, from_bits, false), to_bits, ir::is_signed(from));
}

// Returns nullopt if tuples have no such operation.
std::optional<AffineTuple> operate(const AffineInstruction& instruction, std::span<const AffineTuple> from,
                                   const MicroOp& own) {
  using ir::Operation;
  const ir::Form& form = *instruction.form;
  if (instruction.results.size() != 1 || ir::is_float(form.type()) || form.has(ir::Modifier::sat)) return std::nullopt;
  const bool is_signed = ir::is_signed(form.type());
  const auto result = [&]() -> std::optional<AffineTuple> {
    switch (form.operation) {
    case Operation::add:
      return add(from[0], from[1]);
    case Operation::subtract:
      return subtract(from[0], from[1]);
    case Operation::multiply:
      return product(form, from[0], from[1]);
    case Operation::multiply_add:
      if (const auto first = product(form, from[0], from[1])) return add(*first, from[2]);
      return std::nullopt;
    case Operation::shift_left:
      return shift_left(from[0], from[1]);
    case Operation::negate:
      return negate(from[0]);
    case Operation::complement:
      return add(negate(from[0]), AffineTuple::scalar(~uint64_t(0), from[0].bits));
    case Operation::bit_and:
      return masked(from[0], from[1]);
    case Operation::copy:
      return from.size() == 1 ? std::optional(from[0]) : std::nullopt;
    case Operation::convert:
      return converted(form, from[0]);
    case Operation::convert_address:
      return add(from[0], AffineTuple::scalar(static_cast<uint64_t>(own.immediate), from[0].bits));
    case Operation::remainder:
      return remainder(from[0], from[1], is_signed);
    case Operation::none:
    case Operation::absolute:
    case Operation::multiply_24:
    case Operation::multiply_add_24:
    case Operation::divide:
    case Operation::minimum:
    case Operation::maximum:
    case Operation::bit_or:
    case Operation::bit_xor:
    case Operation::logic_of_three:
    case Operation::shift_right:
    case Operation::compare:
    case Operation::select:
      break;
    }
    return std::nullopt;
  }();
  // A register wider than the result holds it extended, which tuples cannot express.
  return result && result->bits == instruction.result_bits ? result : std::nullopt;
}

AffineComparison comparison_of(const ir::Form& form) {
  const uint32_t flags = modifier_flags(form);
  return {.less = (flags & flag_less) != 0,
          .equal = (flags & flag_equal) != 0,
          .greater = (flags & flag_greater) != 0,
          .is_signed = ir::is_signed(form.type()),
          .bits = ir::bit_width(form.type())};
}

semantics::BooleanOperation joined_by(const ir::Form& form) {
  using semantics::BooleanOperation;
  return form.has(ir::Modifier::and_)   ? BooleanOperation::and_
         : form.has(ir::Modifier::or_)  ? BooleanOperation::or_
         : form.has(ir::Modifier::xor_) ? BooleanOperation::xor_
                                        : BooleanOperation::none;
}

} // namespace

bool AffineWarp::calculate(const AffineInstruction& instruction, const ThreadSet& threads) {
  std::vector<Combination> list;
  if (!combine(instruction, threads, list)) return false;
  size_t tuples = list.size();
  switch (instruction.action) {
  case AffineAction::compare:
    compare(instruction, threads, list);
    break;
  case AffineAction::logic:
    logic(instruction, threads);
    tuples = 0;
    break;
  case AffineAction::select:
  case AffineAction::extremum:
    choose(instruction, list);
    break;
  default:
    if (!compute(instruction, list)) return false;
  }
  count_lanes(instruction, tuples);
  return !has_failed();
}

bool AffineWarp::combine(const AffineInstruction& instruction, const ThreadSet& threads,
                         std::vector<Combination>& list) {
  list = {{threads, {}}};
  const bool joins_sets = instruction.action == AffineAction::compare || instruction.action == AffineAction::logic;
  for (const AffineSource& source : instruction.sources) {
    if (source.kind == AffineSource::Kind::value && source.bits == 1 && joins_sets) continue;
    if (source.kind == AffineSource::Kind::value) {
      if (!refine(source, list)) return false;
      continue;
    }
    const AffineTuple tuple = source.kind == AffineSource::Kind::index
                                  ? convert(AffineTuple::index(source.component), source.bits, false)
                                  : AffineTuple::scalar(other_value(instruction, source), source.bits);
    for (Combination& one : list)
      one.tuples.push_back(tuple);
  }
  return true;
}

bool AffineWarp::refine(const AffineSource& source, std::vector<Combination>& list) {
  std::vector<Combination> refined;
  auto add_part = [&](const Combination& one, ThreadSet threads, const AffineTuple& tuple) {
    if (threads.empty()) return;
    refined.push_back({std::move(threads), one.tuples});
    refined.back().tuples.push_back(tuple);
  };
  for (const Combination& one : list) {
    if (source.bits == 1) {
      const ThreadSet& bits = predicate(source.value);
      add_part(one, one.threads & bits, AffineTuple::scalar(!source.negated, 1));
      add_part(one, without(one.threads, bits), AffineTuple::scalar(source.negated, 1));
      continue;
    }
    const auto parts = value(source.value).read(one.threads);
    if (!parts) {
      give_up(fmt::format("'{}' has more than four tuples, by more than two divergent conditions",
                          program_->source().value_name(source.value)));
      return false;
    }
    for (const AffineValue::Part& part : *parts)
      add_part(one, part.threads, part.tuple);
  }
  if (refined.size() > most_combinations) {
    give_up("operands differ by more divergent conditions than the affine warp has lanes for");
    return false;
  }
  list = std::move(refined);
  return true;
}

uint64_t AffineWarp::other_value(const AffineInstruction& instruction, const AffineSource& source) {
  if (!source.lanes) return 0; // an element of a group, which only micro-operations read
  run_operations(instruction.first_op, instruction.own_op, 1);
  if (source.bits == 1) return scratch_.predicate(source.lanes) & 1;
  uint64_t number = 0;
  std::memcpy(&number, scratch_.lanes<std::byte>(source.lanes), std::min(source.bits / 8, 8u));
  return number;
}

bool AffineWarp::compute(const AffineInstruction& instruction, std::vector<Combination>& list) {
  std::vector<const Combination*> scalars;
  std::vector<std::pair<const Combination*, AffineTuple>> results;
  for (const Combination& one : list) {
    if (all_scalar(one.tuples)) {
      scalars.push_back(&one);
      continue;
    }
    const MicroOp& own = program_->function().code[instruction.own_op];
    std::optional<AffineTuple> result = operate(instruction, one.tuples, own);
    if (!result) {
      wrong(fmt::format("'{}' has operands that differ between threads, and tuples have no such operation",
                        instruction.form->mnemonic));
      return false;
    }
    results.emplace_back(&one, std::move(*result));
  }
  if (!scalars.empty()) compute_scalars(instruction, scalars);
  for (const auto& [one, tuple] : results)
    write(instruction.results.front(), one->threads, tuple);
  return true;
}

// Computes all combinations at once: each is a lane of an ordinary warp.
void AffineWarp::compute_scalars(const AffineInstruction& instruction, std::span<const Combination* const> scalars) {
  const std::vector<LaneRef>& registers = program_->function().registers;
  for (size_t i = 0; i < instruction.sources.size(); ++i) {
    const AffineSource& source = instruction.sources[i];
    if (source.kind != AffineSource::Kind::value) continue;
    const LaneRef place = registers[source.value.index()];
    for (size_t lane = 0; lane < scalars.size(); ++lane) {
      const uint64_t number = scalars[lane]->tuples[i].at({});
      if (source.bits == 1) {
        // The value of the register; the operations apply the negation.
        const uint32_t bit = 1u << lane;
        uint32_t& mask = scratch_.predicate(place);
        mask = (number != 0) != source.negated ? mask | bit : mask & ~bit;
      } else {
        std::memcpy(scratch_.lanes<std::byte>(place) + lane * (source.bits / 8), &number, source.bits / 8);
      }
    }
  }
  run_operations(instruction.first_op, instruction.past_op, (1u << scalars.size()) - 1);
  for (ir::ValueId result : instruction.results) {
    const unsigned bits = lane_bits(program_->source().values[result].type);
    const LaneRef place = registers[result.index()];
    for (size_t lane = 0; lane < scalars.size(); ++lane) {
      const ThreadSet& threads = scalars[lane]->threads;
      if (bits == 1) {
        const bool holds = scratch_.predicate(place) >> lane & 1;
        write_predicate(result, threads, holds ? threads : ThreadSet(batch_->warps()));
        continue;
      }
      uint64_t number = 0;
      std::memcpy(&number, scratch_.lanes<std::byte>(place) + lane * (bits / 8), bits / 8);
      write(result, threads, AffineTuple::scalar(number, bits));
    }
  }
}

void AffineWarp::run_operations(uint32_t first, uint32_t past, uint32_t lanes) {
  const std::vector<MicroOp>& code = program_->function().code;
  for (uint32_t at = first; at < past && !has_failed(); ++at) {
    scratch_.mask = lanes;
    code[at].handler(scratch_, code[at]);
  }
}

ThreadSet AffineWarp::holding(const AffineComparison& comparison, const ThreadSet& threads, const AffineTuple& a,
                              const AffineTuple& b) const {
  ThreadSet found(batch_->warps());
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp)
    if (threads[warp]) found[warp] = threads[warp] & expand_comparison(comparison, a, b, *batch_, warp).bits;
  return found;
}

// A warp whose lanes have different operands needs one comparison per lane, too.
void AffineWarp::count_case(const AffineComparison& comparison, uint32_t warp, uint32_t lanes,
                            std::span<const Combination> list, bool first_of_block) {
  PredicateCase how = PredicateCase::lanes;
  for (const Combination& one : list)
    if (one.threads[warp] == lanes)
      how = expand_comparison(comparison, one.tuples[0], one.tuples[1], *batch_, warp).how;
  ++counters_->predicate_cases[static_cast<size_t>(how)];
  switch (how) {
  case PredicateCase::scalar:
    counters_->comparisons += first_of_block;
    break;
  case PredicateCase::ends:
    counters_->comparisons += 2;
    break;
  case PredicateCase::lanes:
    counters_->comparisons += warp_size;
    break;
  }
}

void AffineWarp::compare(const AffineInstruction& instruction, const ThreadSet& threads,
                         std::span<const Combination> list) {
  const AffineComparison comparison = comparison_of(*instruction.form);
  uint32_t block = UINT32_MAX; // of the last warp counted
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp) {
    if (!threads[warp]) continue;
    count_case(comparison, warp, threads[warp], list, batch_->block_of(warp) != block);
    block = batch_->block_of(warp);
  }
  ThreadSet found(batch_->warps());
  for (const Combination& one : list)
    found |= holding(comparison, one.threads, one.tuples[0], one.tuples[1]);
  const semantics::BooleanOperation joined = joined_by(*instruction.form);
  ThreadSet other(batch_->warps());
  if (joined != semantics::BooleanOperation::none)
    other = predicate_source(instruction, instruction.sources.back(), threads);
  ThreadSet first(batch_->warps()), second(batch_->warps());
  for (uint32_t warp = 0; warp < batch_->warps(); ++warp) {
    const semantics::PredicatePair<uint32_t> pair = semantics::setp(joined, found[warp], other[warp]);
    first[warp] = pair.p;
    second[warp] = pair.q;
  }
  // `_|q` has a single register, for the second result.
  const std::span<const ir::Operand> operands = program_->source().operands_of(instruction.id);
  const bool first_is_sink =
      operands.size() > 1 && operands[0].is(ir::OperandKind::pair) && operands[1].is(ir::OperandKind::sink);
  for (size_t i = 0; i < instruction.results.size(); ++i)
    write_predicate(instruction.results[i], threads, i > 0 || first_is_sink ? second : first);
}

ThreadSet AffineWarp::predicate_source(const AffineInstruction& instruction, const AffineSource& source,
                                       const ThreadSet& threads) {
  if (source.kind != AffineSource::Kind::value)
    return other_value(instruction, source) ? threads : ThreadSet(batch_->warps());
  const ThreadSet& bits = predicate(source.value);
  return source.negated ? without(threads, bits) : threads & bits;
}

void AffineWarp::logic(const AffineInstruction& instruction, const ThreadSet& threads) {
  ThreadSet result = predicate_source(instruction, instruction.sources[0], threads);
  const ir::Operation operation = instruction.form->operation;
  const auto second = [&] { return predicate_source(instruction, instruction.sources[1], threads); };
  if (operation == ir::Operation::complement) result = without(threads, result);
  if (operation == ir::Operation::bit_and) result &= second();
  if (operation == ir::Operation::bit_or) result |= second();
  if (operation == ir::Operation::bit_xor) result ^= second();
  write_predicate(instruction.results.front(), threads, result);
}

// selp, min, max, abs: select one of two values by a condition.
void AffineWarp::choose(const AffineInstruction& instruction, std::span<const Combination> list) {
  const ir::ValueId result = instruction.results.front();
  const ir::Form& form = *instruction.form;
  for (const Combination& one : list) {
    const AffineTuple& a = one.tuples[0];
    if (instruction.action == AffineAction::select) {
      write(result, one.threads, one.tuples[2].at({}) ? a : one.tuples[1]);
      continue;
    }
    const bool is_abs = form.opcode == ir::Opcode::abs;
    const AffineTuple zero = AffineTuple::scalar(0, a.bits);
    const AffineTuple& b = is_abs ? zero : one.tuples[1];
    const AffineComparison less{.less = true, .is_signed = ir::is_signed(form.type()), .bits = a.bits};
    const ThreadSet below = holding(less, one.threads, a, b);
    const ThreadSet others = without(one.threads, below);
    if (!below.empty()) write(result, below, is_abs ? negate(a) : form.opcode == ir::Opcode::min ? a : b);
    if (!others.empty()) write(result, others, is_abs || form.opcode == ir::Opcode::max ? a : b);
  }
}

} // namespace ptxrewrite::emulator
