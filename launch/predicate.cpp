#include "launch/predicate.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace ptxrewrite::launch {

namespace {

using Arguments = std::span<const Number>;

const char* minimum(Arguments a, const ElementContext&, Number& result) {
  result = *std::ranges::min_element(a, {}, &Number::integer);
  return nullptr;
}

const char* maximum(Arguments a, const ElementContext&, Number& result) {
  result = *std::ranges::max_element(a, {}, &Number::integer);
  return nullptr;
}

const char* floor_of_log2(Arguments a, const ElementContext&, Number& result) {
  if (a[0].integer <= 0) return "log2 wants a number above 0";
  int exponent = -1;
  for (Int128 rest = a[0].integer; rest != 0; rest >>= 1)
    ++exponent;
  result = Number(Int128(exponent));
  return nullptr;
}

template <unsigned bits> const char* sign_extend(Arguments a, const ElementContext&, Number& result) {
  result = Number(sign_extended(a[0].integer, bits));
  return nullptr;
}

template <unsigned bits> const char* zero_extend(Arguments a, const ElementContext&, Number& result) {
  result = Number(zero_extended(a[0].integer, bits));
  return nullptr;
}

template <unsigned bits> const char* high_signed(Arguments a, const ElementContext&, Number& result) {
  result = Number((sign_extended(a[0].integer, bits) * sign_extended(a[1].integer, bits)) >> bits);
  return nullptr;
}

template <unsigned bits> const char* high_unsigned(Arguments a, const ElementContext&, Number& result) {
  UInt128 product = UInt128(zero_extended(a[0].integer, bits)) * UInt128(zero_extended(a[1].integer, bits));
  result = Number(Int128(product >> bits));
  return nullptr;
}

constexpr FunctionRow rows[] = {
    {"min", 1, unbounded_arguments, minimum}, {"max", 1, unbounded_arguments, maximum},
    {"sext1", 1, 1, sign_extend<1>},          {"sext8", 1, 1, sign_extend<8>},
    {"sext16", 1, 1, sign_extend<16>},        {"sext32", 1, 1, sign_extend<32>},
    {"sext64", 1, 1, sign_extend<64>},        {"zext1", 1, 1, zero_extend<1>},
    {"zext8", 1, 1, zero_extend<8>},          {"zext16", 1, 1, zero_extend<16>},
    {"zext32", 1, 1, zero_extend<32>},        {"zext64", 1, 1, zero_extend<64>},
    {"trunc1", 1, 1, zero_extend<1>},         {"trunc8", 1, 1, zero_extend<8>},
    {"trunc16", 1, 1, zero_extend<16>},       {"trunc32", 1, 1, zero_extend<32>},
    {"trunc64", 1, 1, zero_extend<64>},       {"mulhi_s16", 2, 2, high_signed<16>},
    {"mulhi_s32", 2, 2, high_signed<32>},     {"mulhi_s64", 2, 2, high_signed<64>},
    {"mulhi_u16", 2, 2, high_unsigned<16>},   {"mulhi_u32", 2, 2, high_unsigned<32>},
    {"mulhi_u64", 2, 2, high_unsigned<64>},   {"log2", 1, 1, floor_of_log2},
};

constexpr Dialect dialect{rows, false};

// Parses all of `digits` as a number.
bool parse_index(std::string_view digits, unsigned& out) {
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
}

} // namespace

LaunchFacts facts_of(const Signature& signature, std::span<const std::byte> parameter_block, const Dim3& grid,
                     const Dim3& block) {
  LaunchFacts facts;
  facts.grid = grid;
  facts.block = block;
  for (const Parameter& parameter : signature.parameters) {
    std::vector<std::byte> bytes;
    if (parameter.offset <= parameter_block.size() && parameter.bytes <= parameter_block.size() - parameter.offset) {
      auto part = parameter_block.subspan(parameter.offset, parameter.bytes);
      bytes.assign(part.begin(), part.end());
    }
    facts.parameters.push_back(std::move(bytes));
  }
  return facts;
}

bool LaunchExpression::parse_symbol(std::string_view name, Symbol& symbol) {
  constexpr std::string_view components = "xyzw";
  for (std::string_view prefix : {"ntid.", "nctaid."})
    if (name.starts_with(prefix) && name.size() == prefix.size() + 1) {
      const size_t component = components.find(name.back());
      symbol.kind = prefix == "ntid." ? Symbol::Kind::block : Symbol::Kind::grid;
      symbol.index = static_cast<unsigned>(component);
      return component != components.npos;
    }
  if (!name.starts_with('P')) return false;
  name.remove_prefix(1);
  const size_t at = name.find('@');
  if (at != name.npos && !parse_index(name.substr(at + 1), symbol.byte_offset)) return false;
  return parse_index(name.substr(0, at), symbol.index) && symbol.index < 65536 && symbol.byte_offset < 65536;
}

Result<LaunchExpression> LaunchExpression::parse(std::string_view text, uint32_t offset) {
  Result<ArithmeticExpression> expression = ArithmeticExpression::parse(text, dialect, offset);
  if (!expression) return expression.error();
  LaunchExpression parsed;
  parsed.text_ = text;
  for (size_t i = 0; i < expression->names().size(); ++i) {
    Symbol symbol;
    if (!parse_symbol(expression->names()[i], symbol))
      return Error{"'" + expression->names()[i] +
                       "' is no parameter (P0, P1, ...) and no dimension (ntid.x, nctaid.x, ...)",
                   expression->name_ranges()[i]};
    if (symbol.kind == Symbol::Kind::parameter)
      parsed.parameter_count_ = std::max(parsed.parameter_count_, symbol.index + 1);
    parsed.symbols_.push_back(symbol);
  }
  parsed.expression_ = *std::move(expression);
  return parsed;
}

Result<ArithmeticExpression> parse_exact_expression(std::string_view text) {
  return ArithmeticExpression::parse(text, dialect);
}

const char* LaunchExpression::value_of(const Symbol& symbol, const LaunchFacts& facts, Number& value) {
  if (symbol.kind == Symbol::Kind::parameter) {
    if (symbol.index >= facts.parameters.size()) return "the kernel has no such parameter";
    std::span<const std::byte> bytes = facts.parameters[symbol.index];
    if (symbol.byte_offset >= bytes.size()) return "the parameter has no such byte";
    bytes = bytes.subspan(symbol.byte_offset);
    Int128 number = 0;
    for (size_t i = 0; i < std::min<size_t>(8, bytes.size()); ++i)
      number |= Int128(std::to_integer<uint64_t>(bytes[i])) << (8 * i);
    value = Number(number);
    return nullptr;
  }
  const Dim3& dimensions = symbol.kind == Symbol::Kind::block ? facts.block : facts.grid;
  const std::array<uint32_t, 4> parts = {dimensions.x, dimensions.y, dimensions.z, 0};
  value = Number(Int128(parts[symbol.index]));
  return nullptr;
}

Result<Int128> LaunchExpression::evaluate(const LaunchFacts& facts) const {
  std::vector<Number> values(symbols_.size());
  for (size_t i = 0; i < symbols_.size(); ++i)
    if (const char* failure = value_of(symbols_[i], facts, values[i]))
      return Error{expression_.names()[i] + ": " + failure, expression_.name_ranges()[i]};
  Result<Number> result = expression_.evaluate(values);
  if (!result) return result.error();
  return result->integer;
}

bool LaunchExpression::holds(const LaunchFacts& facts) const {
  Result<Int128> value = evaluate(facts);
  return value && *value != 0;
}

} // namespace ptxrewrite::launch
