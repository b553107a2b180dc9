// Common code of the pieces of the operation table: making rows, truncating and extending numbers.
#pragma once

#include "tests/fuzz/kernels/kernel_operations.h"

#include <string>
#include <utility>
#include <vector>

namespace ptxrewrite::fuzz {

using Int128 = __int128;
using Unsigned128 = unsigned __int128;

inline uint64_t cut(uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((uint64_t(1) << bits) - 1);
}
inline int64_t sign_extend(uint64_t value, unsigned bits) {
  return bits >= 64 ? static_cast<int64_t>(value) : static_cast<int64_t>(value << (64 - bits)) >> (64 - bits);
}

// The value of the low `bits` bits as a number.
inline Int128 number(uint64_t value, unsigned bits, bool is_signed) {
  return is_signed ? Int128(sign_extend(value, bits)) : Int128(cut(value, bits));
}

struct IntegerType {
  const char* name; // "s32"
  unsigned bits;
  bool is_signed;

  char letter() const { return bits <= 16 ? 'h' : bits == 32 ? 'r' : 'd'; }
  Int128 least() const { return is_signed ? -(Int128(1) << (bits - 1)) : 0; }
  Int128 greatest() const { return (Int128(1) << (is_signed ? bits - 1 : bits)) - 1; }
};
// Operation::wraps of a row of 16 or 32 bits. `exact` computes with the sources as numbers.
template <class Exact> std::function<bool(const uint64_t*)> wraps_when(const IntegerType& type, Exact exact) {
  if (type.bits > 32) return nullptr;
  return [type, exact](const uint64_t* in) {
    const IntegerType as_signed{"", type.bits, true};
    const auto fits = [&](const IntegerType& range) {
      const Int128 result = exact(in, [&](uint64_t v) { return number(v, range.bits, range.is_signed); });
      return result >= range.least() && result <= range.greatest();
    };
    return !fits(as_signed) && (type.is_signed || !fits(type));
  };
}

inline constexpr IntegerType register_types[] = {{"s16", 16, true},  {"u16", 16, false}, {"s32", 32, true},
                                                 {"u32", 32, false}, {"s64", 64, true},  {"u64", 64, false}};

// Collects rows.
class Rows {
public:
  explicit Rows(std::string group) : group_(std::move(group)) {}

  Operation& add(std::string text, std::string results, std::string sources, Evaluate evaluate) {
    rows_.push_back({std::move(text), std::move(results), std::move(sources), group_, std::move(evaluate), false});
    return rows_.back();
  }
  // One result, truncated to its kind by the caller.
  template <class Function>
  Operation& add_value(std::string text, char result, std::string sources, Function function) {
    return add(std::move(text), std::string(1, result), std::move(sources),
               [function](const uint64_t* in, uint64_t* out) { out[0] = static_cast<uint64_t>(function(in)); });
  }
  void group(std::string name) { group_ = std::move(name); }
  std::vector<Operation> take() { return std::move(rows_); }

private:
  std::string group_;
  std::vector<Operation> rows_;
};

} // namespace ptxrewrite::fuzz
