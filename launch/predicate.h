// Launch predicates and host-computed parameters: expressions over one launch in exact integers.
//
//   P0, P1 ...     kernel parameters, unsigned: their bytes (at most 8), little-endian; P3@8: bytes of P3 from 8 on
//   ntid.x ...     block and grid dimensions: ntid.* nctaid.*, components x y z, and w, which is 0
//   + - * / %      / and % truncate, as PTX and C do
//   << >> & | ^ ~ == != < <= > >= && || ! ?: min max
//   sext16(e) zext16(e) trunc16(e), likewise 1, 8, 32, 64: the low bits of e as a signed or (zext, trunc) unsigned
//   number mulhi_s32(a, b) mulhi_u32(a, b), likewise 16, 64: high half of the product of the low bits
//   log2(e)        the exponent of the largest power of two that is at most e; no value if e < 1
//
// Only these functions wrap. If a value does not fit 128 bits, or for a division by zero, the expression has an error
// and no value, and a predicate is false. So a predicate is never true by mistake.
#pragma once

#include "launch/expression.h"
#include "launch/launch_plan.h"
#include "launch/signature.h"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::launch {

// The data of one launch that predicates use.
struct LaunchFacts {
  std::vector<std::vector<std::byte>> parameters; // bytes of each parameter
  Dim3 grid, block;
};

// `parameter_block` has the layout of pack_parameters.
LaunchFacts facts_of(const Signature& signature, std::span<const std::byte> parameter_block, const Dim3& grid,
                     const Dim3& block);

// A name of a launch expression.
struct LaunchSymbol {
  enum class Kind : uint8_t { parameter, block, grid } kind = Kind::parameter;
  unsigned index = 0;       // of the parameter, or component 0..3
  unsigned byte_offset = 0; // into the parameter
};

class LaunchExpression {
public:
  // Errors refer to `text` plus `offset`: syntax, or an unknown name.
  static Result<LaunchExpression> parse(std::string_view text, uint32_t offset = 0);

  const std::string& text() const { return text_; }
  Result<Int128> evaluate(const LaunchFacts& facts) const;
  // True if the value is known and not 0.
  bool holds(const LaunchFacts& facts) const;
  // The expression in postfix order; `name` is called with an index into symbols(). See ArithmeticExpression::visit.
  void visit(PostfixVisitor& visitor) const { expression_.visit(visitor); }
  std::span<const LaunchSymbol> symbols() const { return symbols_; }
  // Highest parameter index in use + 1; 0: none.
  unsigned parameter_count() const { return parameter_count_; }

private:
  using Symbol = LaunchSymbol;
  static bool parse_symbol(std::string_view name, Symbol& symbol);
  static const char* value_of(const Symbol& symbol, const LaunchFacts& facts, Number& value);

  std::string text_;
  ArithmeticExpression expression_;
  std::vector<Symbol> symbols_; // one per name of the expression
  unsigned parameter_count_ = 0;
};

// The same language with names defined by the caller, for statements about more than one launch.
Result<ArithmeticExpression> parse_exact_expression(std::string_view text);

} // namespace ptxrewrite::launch
