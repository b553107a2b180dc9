// Index arithmetic of random kernels: sums and products of thread and block indices, extents, parameters and literals
// in 16, 32 and 64 bits, signed and unsigned, widened and truncated in between. The generator knows bounds of each
// value that hold in all launches. Kernels that may wrap do so freely; in the others no value leaves its signed range.
#include "tests/fuzz/kernels/kernel_builder.h"
#include "tests/fuzz/kernels/operations/operation_rows.h"

namespace ptxrewrite::fuzz {

namespace {

constexpr unsigned index_widths[] = {16, 32, 32, 32, 64, 64};

char letter_of_width(unsigned bits) {
  return bits == 16 ? 'h' : bits == 32 ? 'r' : 'd';
}
char register_letter(unsigned bits) {
  return bits == 16 ? 'H' : bits == 32 ? 'R' : 'D';
}
Int128 least(unsigned bits) {
  return -(Int128(1) << (bits - 1));
}
Int128 greatest(unsigned bits) {
  return (Int128(1) << (bits - 1)) - 1;
}

} // namespace

bool Builder::fits(const Bounds& bounds, unsigned bits) {
  return bounds.low >= least(bits) && bounds.high <= greatest(bits);
}

Builder::Bounds Builder::sum(const Bounds& a, const Bounds& b) {
  return {a.low + b.low, a.high + b.high};
}
Builder::Bounds Builder::product(const Bounds& a, const Bounds& b) {
  // Bounds of 64-bit numbers: products fit 128 bits.
  const Int128 corners[] = {a.low * b.low, a.low * b.high, a.high * b.low, a.high * b.high};
  return {*std::min_element(std::begin(corners), std::end(corners)),
          *std::max_element(std::begin(corners), std::end(corners))};
}
Builder::Bounds Builder::hull(const Bounds& a, const Bounds& b) {
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

const char* Builder::any_sign() {
  return random_.one_in(2) ? "s" : "u";
}

// Near the ends of the range, or anywhere.
uint64_t Builder::wild_number(unsigned bits) {
  const uint64_t edge = uint64_t(1) << (bits - 1 - random_.below(4));
  const uint64_t value = random_.one_in(3) ? random_.next() : edge - static_cast<uint64_t>(random_.between(-2, 40));
  return cut(value, bits);
}

Builder::Index Builder::index_literal(unsigned bits) {
  const bool is_wild = kernel_.may_wrap && random_.one_in(3);
  const uint64_t cut_value = is_wild ? wild_number(bits) : cut(static_cast<uint64_t>(random_.between(-20, 60)), bits);
  const Int128 exact = sign_extend(cut_value, bits);
  const Kind kind = kind_of_letter(letter_of_width(bits));
  return {Operand::immediate(kind, cut_value), bits, {exact, exact}};
}

Builder::Index Builder::index_special() {
  using enum SpecialRegister;
  static constexpr SpecialRegister indices[] = {tid_x,   tid_x,   tid_x,  tid_y,  tid_z,  ctaid_x,  ctaid_x,
                                                ctaid_y, ctaid_z, ntid_x, ntid_y, ntid_z, nctaid_x, nctaid_y};
  const SpecialRegister which = random_.pick(indices);
  return {reg(special(which)), 32, {0, Int128(extremum(which))}};
}

// An earlier index of this width.
bool Builder::earlier_index(unsigned bits, Index& found) {
  std::vector<const Index*> fitting;
  for (const Index& index : indices_)
    if (index.bits == bits && std::find(visible_.begin(), visible_.end(), index.operand.variable) != visible_.end())
      fitting.push_back(&index);
  if (fitting.empty()) return false;
  const size_t from = random_.one_in(2) && fitting.size() > 5 ? fitting.size() - 5 : 0;
  found = *fitting[from + random_.below(fitting.size() - from)];
  return true;
}

Builder::Index Builder::index_leaf(unsigned bits) {
  Index leaf;
  if (random_.one_in(3) && earlier_index(bits, leaf)) return leaf;
  if (bits == 32) return random_.one_in(6) ? index_literal(32) : index_special();
  // Parameters and extents of another width, or literals.
  if (random_.one_in(4)) return index_literal(bits);
  return converted(index_special(), bits);
}

// The same number in another width; in kernels that may wrap, the same low bits.
Builder::Index Builder::converted(const Index& from, unsigned bits) {
  if (from.bits == bits) return from;
  const uint32_t source = as_variable(from);
  // Negative numbers are widened as signed, unless wrapping is allowed.
  const bool is_signed = from.bounds.low < 0 && !kernel_.may_wrap ? true : random_.one_in(2);
  const char* const to_sign = any_sign();
  const std::string text =
      std::string("cvt.") + to_sign + std::to_string(bits) + (is_signed ? ".s" : ".u") + std::to_string(from.bits);
  const Bounds bounds = (from.bounds.low >= 0 || is_signed) && fits(from.bounds, bits)
                            ? from.bounds
                            : Bounds{least(bits), greatest(bits)};
  return finished(
      compute(text, std::string(1, letter_of_width(bits)), std::string(1, register_letter(from.bits)), {reg(source)}),
      bits, bounds);
}

uint32_t Builder::as_variable(const Index& index) {
  if (index.operand.is_variable) return index.operand.variable;
  const char* const text = index.bits == 16 ? "mov.b16" : index.bits == 32 ? "mov.u32" : "mov.b64";
  const std::string letter(1, letter_of_width(index.bits));
  return compute(text, letter, letter, {index.operand});
}

// Records a new index.
Builder::Index Builder::finished(uint32_t variable, unsigned bits, Bounds bounds) {
  if (!fits(bounds, bits)) bounds = {least(bits), greatest(bits)};
  indices_.push_back({reg(variable), bits, bounds});
  return indices_.back();
}

// A sum, product, shift ... of `sources`; nullopt if the exact result has to fit, but does not.
std::optional<Builder::Index> Builder::arithmetic(const std::string& text, unsigned bits,
                                                  const std::vector<Index>& sources, const Bounds& bounds) {
  if (!kernel_.may_wrap && !fits(bounds, bits)) return std::nullopt;
  std::string letters;
  std::vector<Operand> operands;
  for (const Index& source : sources) {
    letters += letter_of_width(source.bits);
    operands.push_back(source.operand);
  }
  return finished(compute(text, std::string(1, letter_of_width(bits)), letters, operands), bits, bounds);
}

std::optional<Builder::Index> Builder::random_sum(unsigned bits, unsigned depth) {
  const Index a = index(bits, depth - 1);
  const Index b = index(bits, depth - 1);
  const std::string type = any_sign() + std::to_string(bits);
  const Bounds negative = {-b.bounds.high, -b.bounds.low};
  if (random_.one_in(2)) return arithmetic("add." + type, bits, {a, b}, sum(a.bounds, b.bounds));
  return arithmetic("sub." + type, bits, {a, b}, sum(a.bounds, negative));
}

// n - 1 - i is written as ~i + n.
std::optional<Builder::Index> Builder::random_negation(unsigned bits, unsigned depth) {
  const Index a = index(bits, depth - 1);
  if (random_.one_in(2)) {
    const Index source = a.operand.is_variable ? a : Index{reg(as_variable(a)), bits, a.bounds};
    const std::optional<Index> inverted =
        arithmetic("not.b" + std::to_string(bits), bits, {source}, {-a.bounds.high - 1, -a.bounds.low - 1});
    if (!inverted || random_.one_in(3)) return inverted;
    const Index b = index(bits, depth - 1);
    return arithmetic(std::string("add.") + any_sign() + std::to_string(bits), bits, {*inverted, b},
                      sum(inverted->bounds, b.bounds));
  }
  return arithmetic("neg.s" + std::to_string(bits), bits, {a}, {-a.bounds.high, -a.bounds.low});
}

std::optional<Builder::Index> Builder::random_product(unsigned bits, unsigned depth) {
  const Index a = index(bits, depth - 1);
  const Index b = random_.one_in(3) ? index_literal(bits) : index(bits, depth - 1);
  const Bounds bounds = product(a.bounds, b.bounds);
  const std::string type = any_sign() + std::to_string(bits);
  if (random_.one_in(2)) return arithmetic("mul.lo." + type, bits, {a, b}, bounds);
  const Index c = index(bits, depth - 1);
  if (!kernel_.may_wrap && !fits(bounds, bits)) return std::nullopt;
  return arithmetic("mad.lo." + type, bits, {a, b, c}, sum(bounds, c.bounds));
}

// mul.wide and mad.wide: the sources are read as the type specifies.
std::optional<Builder::Index> Builder::random_wide_product(unsigned bits, unsigned depth) {
  const unsigned half = bits / 2;
  Index a = index(half, depth - 1);
  Index b = random_.one_in(2) ? index_literal(half) : index(half, depth - 1);
  const bool is_signed = !kernel_.may_wrap && (a.bounds.low < 0 || b.bounds.low < 0) ? true : random_.one_in(2);
  Bounds bounds = product(a.bounds, b.bounds);
  if (!is_signed && (a.bounds.low < 0 || b.bounds.low < 0)) bounds = {least(bits), greatest(bits)};
  const std::string type = (is_signed ? "s" : "u") + std::to_string(half);
  if (random_.one_in(2)) return arithmetic("mul.wide." + type, bits, {a, b}, bounds);
  const Index c = index(bits, depth - 1);
  return arithmetic("mad.wide." + type, bits, {a, b, c}, sum(bounds, c.bounds));
}

std::optional<Builder::Index> Builder::random_left_shift(unsigned bits, unsigned depth) {
  const Index a = index(bits, depth - 1);
  const auto amount =
      static_cast<unsigned>(kernel_.may_wrap && random_.one_in(4) ? random_.below(bits) : 1 + random_.below(5));
  const Bounds factor = {Int128(1) << amount, Int128(1) << amount};
  const Bounds bounds = product(a.bounds, factor);
  if (!kernel_.may_wrap && !fits(bounds, bits)) return std::nullopt;
  const std::string letter(1, letter_of_width(bits));
  return finished(compute("shl.b" + std::to_string(bits), letter, letter + "c", {a.operand, number32(amount)}), bits,
                  bounds);
}

// Operations other than ring arithmetic: remainders, quotients, right shifts, masks, minima, selections.
std::optional<Builder::Index> Builder::random_other_index(unsigned bits, unsigned depth) {
  const Index a = index(bits, depth - 1);
  const bool is_natural = a.bounds.low >= 0;
  const char letter = letter_of_width(bits);
  const std::string one(1, letter);
  const std::string type = (is_natural || kernel_.may_wrap ? any_sign() : "s") + std::to_string(bits);
  const auto number = [&](int64_t value) {
    return Operand::immediate(kind_of_letter(letter), cut(static_cast<uint64_t>(value), bits));
  };
  const int64_t positive = random_.one_in(2) ? int64_t(1) << random_.below(10) : random_.between(1, 100);
  const Bounds unknown = {least(bits), greatest(bits)};
  switch (random_.below(6)) {
  case 0: {
    if (!is_natural && !kernel_.may_wrap) return std::nullopt;
    const bool divides = random_.one_in(2);
    const char divisor = bits == 16 ? 'u' : bits == 32 ? 'v' : 'x';
    const Bounds bounds = !is_natural ? unknown
                          : divides   ? Bounds{0, a.bounds.high / positive}
                                      : Bounds{0, std::min(a.bounds.high, Int128(positive - 1))};
    return finished(compute((divides ? "div." : "rem.") + type, one, one + divisor, {a.operand, number(positive)}),
                    bits, bounds);
  }
  case 1:
    return finished(compute("shr." + type, one, one + "c", {a.operand, number32(random_.between(1, 6))}), bits,
                    is_natural       ? Bounds{0, a.bounds.high}
                    : type[0] == 's' ? Bounds{a.bounds.low, std::max(a.bounds.high, Int128(0))}
                                     : unknown);
  case 2:
    return finished(compute("and.b" + std::to_string(bits), one, one + one, {a.operand, number(positive - 1)}), bits,
                    {0, Int128(positive - 1)});
  case 3: {
    const Index b = index(bits, depth - 1);
    if (!kernel_.may_wrap && type[0] == 'u' && b.bounds.low < 0) return std::nullopt;
    return finished(compute((random_.one_in(2) ? "min." : "max.") + type, one, one + one, {a.operand, b.operand}), bits,
                    hull(a.bounds, b.bounds));
  }
  case 4: {
    const Index b = index(bits, depth - 1);
    const Operand condition = reg(pick_predicate(random_.one_in(2) ? Level::block : Level::thread));
    return finished(compute("selp.b" + std::to_string(bits), one, one + one + "!", {a.operand, b.operand, condition}),
                    bits, hull(a.bounds, b.bounds));
  }
  default: { // through another width
    const unsigned other = random_.pick(index_widths);
    if (!kernel_.may_wrap && !fits(a.bounds, other)) return std::nullopt;
    return converted(converted(a, other), bits);
  }
  }
}

std::optional<Builder::Index> Builder::random_index(unsigned bits, unsigned depth) {
  switch (random_.below(14)) {
  case 0:
  case 1:
  case 2:
    return random_sum(bits, depth);
  case 3:
    return random_negation(bits, depth);
  case 4:
  case 5:
  case 6:
    return random_product(bits, depth);
  case 7:
    return random_left_shift(bits, depth);
  case 8:
  case 9:
    if (bits == 16) return random_sum(bits, depth);
    return random_wide_product(bits, depth);
  case 10:
  case 11:
  case 12: {
    const Index narrow = index(random_.pick(index_widths), depth - 1);
    if (!kernel_.may_wrap && !fits(narrow.bounds, bits)) return std::nullopt;
    return converted(narrow, bits);
  }
  default:
    return random_other_index(bits, depth);
  }
}

Builder::Index Builder::index(unsigned bits, unsigned depth) {
  for (int attempt = 0; depth > 0 && attempt < 3; ++attempt)
    if (const std::optional<Index> made = random_index(bits, depth)) return *made;
  return index_leaf(bits);
}

Builder::Index Builder::any_index(unsigned depth) {
  const unsigned bits = random_.pick(index_widths);
  const Index made = index(bits, depth);
  return {reg(as_variable(made)), bits, made.bounds};
}

// A 32-bit register that may be divided: any if wrapping is allowed, else a non-negative one.
uint32_t Builder::pick_dividend(Level limit) {
  if (kernel_.may_wrap) return pick_variable(Kind::b32, limit);
  std::vector<uint32_t> fitting;
  for (const Index& index : indices_)
    if (index.bits == 32 && index.bounds.low >= 0 && level_of(index.operand) <= limit &&
        std::find(visible_.begin(), visible_.end(), index.operand.variable) != visible_.end())
      fitting.push_back(index.operand.variable);
  if (!fitting.empty()) return random_.pick(fitting);
  return limit == Level::thread ? thread_in_block_ : block_size_;
}

// Parameters for indices. In kernels that may wrap the first launch is tame and the later ones are not, so that launch
// conditions of a rewriting hold in one and fail in another.
void Builder::add_index_arguments() {
  static constexpr std::pair<const char*, uint32_t> types[] = {{"u32", 4}, {"s32", 4}, {"u32", 4}, {"s64", 8},
                                                               {"u64", 8}, {"u16", 2}, {"s16", 2}, {"s32", 4}};
  for (size_t i = 0, wanted = 3 + random_.below(4); i < wanted; ++i) {
    const auto& [type, size] = random_.pick(types);
    const uint32_t argument = add_argument("index" + std::to_string(i), type, ArgumentKind::bytes, size);
    const bool is_signed = type[0] == 's';
    std::vector<uint64_t> values;
    for (size_t launch = 0; launch < kernel_.shapes.size(); ++launch) {
      const bool is_wild = kernel_.may_wrap && launch != 0 && random_.one_in(3);
      values.push_back(is_wild ? wild_number(8 * size)
                               : static_cast<uint64_t>(random_.between(is_signed ? -9 : 1, 70)));
    }
    set_index_argument(argument, is_signed, values);
  }
  if (!kernel_.may_wrap) return;
  // At least one that overflows the values computed from it: the second launch's, and often the third's.
  const uint32_t argument = add_argument("large", random_.one_in(2) ? "u32" : "s32", ArgumentKind::bytes, 4);
  const auto large = [&] { return static_cast<uint64_t>(0x7fffffff - random_.between(0, 2)); };
  const uint64_t second = large(), third = random_.one_in(2) ? large() : 3;
  set_index_argument(argument, true, {5, second, third});
}

// `values`: one per launch.
void Builder::set_index_argument(uint32_t argument, bool is_signed, const std::vector<uint64_t>& values) {
  const uint32_t size = kernel_.objects[kernel_.arguments[argument].object].size;
  Bounds bounds = {greatest(64), least(64)};
  for (uint64_t value : values) {
    std::vector<uint8_t> bytes;
    for (uint32_t byte = 0; byte < size; ++byte)
      bytes.push_back(static_cast<uint8_t>(value >> (8 * byte)));
    const Int128 exact = number(value, 8 * size, is_signed);
    bounds = hull(bounds, {exact, exact});
    if (kernel_.arguments[argument].bytes.empty())
      kernel_.arguments[argument].bytes = bytes;
    else
      kernel_.arguments[argument].later.push_back(bytes);
  }
  index_arguments_.push_back({argument, bounds});
}

// Index arithmetic that is known to wrap around in the second launch, widened and used.
void Builder::emit_sure_wrap() {
  if (!knobs_.indices || !kernel_.may_wrap) return;
  const Index large = large_index_;
  Index start = random_.one_in(2) ? index_special() : Index{reg(global_index_), 32, {0, Int128(1) << 20}};
  std::optional<Index> wrapped;
  switch (random_.below(4)) {
  case 0:
    wrapped = arithmetic("add.s32", 32, {start, large}, {0, greatest(64)});
    wrapped = arithmetic("add.s32", 32, {*wrapped, {number32(random_.between(3, 40)), 32, {}}}, {0, greatest(64)});
    break;
  case 1:
    wrapped = arithmetic("add.u32", 32, {start, {number32(random_.between(2, 9)), 32, {}}}, {0, greatest(64)});
    wrapped = arithmetic("mul.lo.s32", 32, {*wrapped, large}, {0, greatest(64)});
    break;
  case 2: // a coefficient that wraps
    wrapped = arithmetic("mad.lo.s32", 32, {large, {number32(16), 32, {}}, {number32(16), 32, {}}}, {0, greatest(64)});
    wrapped = arithmetic("mul.lo.s32", 32, {start, *wrapped}, {0, greatest(64)});
    break;
  default:
    wrapped = arithmetic("mad.lo.s32", 32, {start, {number32(int64_t(1) << random_.between(2, 6)), 32, {}}, large},
                         {0, greatest(64)});
    wrapped = arithmetic("sub.s32", 32, {*wrapped, {number32(-random_.between(3, 40)), 32, {}}}, {0, greatest(64)});
    break;
  }
  for (size_t i = 0, uses = 1 + random_.below(2); i < uses; ++i) {
    const Index scale = {number32(random_.between(1, 9)), 32, {}};
    if (random_.one_in(2))
      use_index(*arithmetic(random_.one_in(3) ? "mul.wide.u32" : "mul.wide.s32", 64, {*wrapped, scale},
                            {least(64), greatest(64)}));
    else
      use_index(random_.one_in(2) ? *wrapped : converted(*wrapped, 64));
  }
}

void Builder::emit_index_arguments() {
  for (const auto& [argument, bounds] : index_arguments_) {
    scalar_arguments_ = {argument};
    emit_scalar_loads();
    const uint32_t variable = visible_.back();
    kernel_.variables[variable].constant = true;
    // 16-bit parameters may be loaded into 32 bits, extended as their type says.
    large_index_ = finished(variable, width_of(kernel_.variables[variable].kind), bounds);
  }
  const Bounds block = {1, Int128(largest_block_)}, threads = {1, Int128(largest_block_) * largest_grid_};
  indices_.push_back({reg(thread_in_block_), 32, {0, block.high - 1}});
  indices_.push_back({reg(block_size_), 32, block});
  indices_.push_back({reg(global_index_), 32, {0, threads.high - 1}});
  indices_.push_back({reg(total_threads_), 32, threads});
}

} // namespace ptxrewrite::fuzz
