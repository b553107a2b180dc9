// The scalar types and state spaces of PTX.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace ptxrewrite::ir {

enum class ScalarType : uint8_t {
  none, // no type, or unknown
#define SCALAR_TYPE(name, bits, kind) name,
#include "ir/isa/types.def"
#undef SCALAR_TYPE
};

// Number of enumerators, including `none`.
constexpr unsigned scalar_type_count = 1
#define SCALAR_TYPE(name, bits, kind) +1
#include "ir/isa/types.def"
#undef SCALAR_TYPE
    ;

enum class TypeKind : uint8_t { none, predicate, bits, unsigned_, signed_, floating, packed, opaque_handle };

namespace detail {
struct ScalarTypeRow {
  std::string_view spelling;
  uint16_t bits;
  TypeKind kind;
};
inline constexpr ScalarTypeRow scalar_type_rows[] = {
    {"", 0, TypeKind::none},
#define SCALAR_TYPE(name, bits, kind) {#name, bits, TypeKind::kind},
#include "ir/isa/types.def"
#undef SCALAR_TYPE
};
} // namespace detail

// Size of one value in bits; 0 for none. A predicate has 1; for packed types, the sum of all elements.
constexpr unsigned bit_width(ScalarType type) {
  return detail::scalar_type_rows[static_cast<unsigned>(type)].bits;
}
// Size in memory in bytes; 1 for sub-byte types and predicates.
constexpr unsigned byte_width(ScalarType type) {
  return (bit_width(type) + 7) / 8;
}
// The word without its dot: "u32".
constexpr std::string_view spelling(ScalarType type) {
  return detail::scalar_type_rows[static_cast<unsigned>(type)].spelling;
}
constexpr TypeKind type_kind(ScalarType type) {
  return detail::scalar_type_rows[static_cast<unsigned>(type)].kind;
}
constexpr bool is_signed(ScalarType type) {
  return type_kind(type) == TypeKind::signed_;
}
constexpr bool is_unsigned(ScalarType type) {
  return type_kind(type) == TypeKind::unsigned_;
}
constexpr bool is_integer(ScalarType type) {
  return is_signed(type) || is_unsigned(type);
}
// True for single floating-point numbers; false for packed types.
constexpr bool is_float(ScalarType type) {
  return type_kind(type) == TypeKind::floating;
}
// .b1 ... .b128, not .pred.
constexpr bool is_bit_type(ScalarType type) {
  return type_kind(type) == TypeKind::bits;
}

// `word` with or without its dot: "u32" or ".u32". Returns nullopt for other words.
std::optional<ScalarType> parse_type(std::string_view word);

enum class StateSpace : uint8_t {
  none, // not written: generic addressing for memory instructions
  reg,
  sreg,
  constant,
  global,
  local,
  param,
  param_entry,
  param_func,
  shared,
  shared_cta,
  shared_cluster,
  tex,
  generic,
};

// The word without its dot, as PTX spells it ("const", "shared::cta"); "" for none.
std::string_view spelling(StateSpace space);
// `word` with or without its dot. Returns nullopt for other words.
std::optional<StateSpace> parse_state_space(std::string_view word);
constexpr bool is_shared(StateSpace space) {
  return space == StateSpace::shared || space == StateSpace::shared_cta || space == StateSpace::shared_cluster;
}
constexpr bool is_param(StateSpace space) {
  return space == StateSpace::param || space == StateSpace::param_entry || space == StateSpace::param_func;
}

} // namespace ptxrewrite::ir
