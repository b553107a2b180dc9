// Comparison, selection, conversion between integers and moves.
#include "tests/emulator/reference.h"

#include <algorithm>

namespace ptxrewrite::test {

namespace {

using ir::ScalarType;

// Is the mnemonic's comparison true for numbers with this difference?
bool compares(const Statement& statement, Big difference) {
  for (const std::string& word : statement.words) {
    if (word == "eq") return difference == 0;
    if (word == "ne") return difference != 0;
    if (word == "lt" || word == "lo") return difference < 0;
    if (word == "le" || word == "ls") return difference <= 0;
    if (word == "gt" || word == "hi") return difference > 0;
    if (word == "ge" || word == "hs") return difference >= 0;
  }
  return false;
}

bool joined(const Statement& statement, bool value, std::span<const Raw> sources) {
  if (sources.size() < 3) return value;
  const bool c = sources[2] != 0;
  return statement.has("and") ? value && c : statement.has("or") ? value || c : value != c;
}

Reference comparison(const Statement& statement) {
  const ScalarType type = statement.types.back();
  const bool to_predicate = statement.opcode == "setp";
  const Raw true_value = statement.type() == ScalarType::f32 ? 0x3f800000 : 0xffffffff;
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const bool value = compares(statement, number_of(in.sources[0], type) - number_of(in.sources[1], type));
    const bool p = joined(statement, value, in.sources);
    if (!to_predicate) return {{p ? true_value : 0}, false};
    return {{p, joined(statement, !value, in.sources)}, false};
  };
}

// Is the 32-bit float at least zero? NaN is not; -0 is, and with .ftz every number below the smallest normal one.
bool is_at_least_zero(Raw bits, bool flush) {
  const Raw magnitude = low_bits(bits, 31);
  if (magnitude > 0x7f800000) return false;
  return !bit_of(bits, 31) || magnitude == 0 || (flush && magnitude < 0x00800000);
}

Reference selection(const Statement& statement) {
  const bool by_predicate = statement.opcode == "selp";
  const bool by_float = !by_predicate && statement.type(1) == ScalarType::f32;
  const bool flush = statement.has("ftz");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    const Raw c = in.sources[2];
    const bool first = by_predicate ? c != 0 : by_float ? is_at_least_zero(c, flush) : !bit_of(c, 31);
    return {{in.sources[first ? 0 : 1]}, false};
  };
}

Reference conversion(const Statement& statement) {
  const ScalarType to = statement.type(0);
  const ScalarType from = statement.type(1);
  const bool saturate = statement.has("sat");
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Big value = number_of(in.sources[0], from);
    if (saturate) value = clamped_to(value, ir::bit_width(to), ir::is_signed(to));
    // A wider register holds the number in the destination type.
    return {{static_cast<Raw>(number_of(static_cast<Raw>(value), to))}, false};
  };
}

Reference packing(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const bool is_signed = ir::is_signed(statement.type());
  return [=](const ReferenceInput& in) -> ReferenceResult {
    Raw result = in.sources.size() > 2 ? in.sources[2] : Raw{0};
    for (size_t i : {0, 1}) {
      const Big value = clamped_to(number_of(in.sources[i], 32, true), bits, is_signed);
      result = (result << bits) | low_bits(static_cast<Raw>(value), bits);
    }
    return {{low_bits(result, 32)}, false};
  };
}

// Between a register and its parts, the first of which is the least significant; or a single register.
Reference move(const Statement& statement) {
  const unsigned bits = ir::bit_width(statement.type());
  const size_t targets = std::max<size_t>(1, statement.operands[0].elements.size());
  const size_t sources = std::max<size_t>(1, statement.operands[1].elements.size());
  const bool is_predicate = bits == 1;
  if (statement.operands[1].kind == StatementOperand::Kind::special) return {};
  // A constant has 64 bits; ptxas extends it with zeros.
  const bool constant = statement.operands[1].kind == StatementOperand::Kind::constant;
  // A vector from one plain register is undocumented; ptxas sets the other components to zero.
  const bool from_one_register = (statement.has("v2") || statement.has("v4")) && sources == 1;
  if (from_one_register && constant) return {};
  return [=](const ReferenceInput& in) -> ReferenceResult {
    if (is_predicate) return {{in.sources[0] != 0}, false};
    std::vector<Raw> written;
    if (from_one_register) {
      written.assign(targets, 0);
      written[0] = in.sources[0];
    } else if (targets == sources) {
      for (size_t i = 0; i < targets; ++i)
        written.push_back(constant ? low_bits(in.sources[i], 64) : in.sources[i]);
    } else if (sources > 1) {
      const unsigned part = bits / static_cast<unsigned>(sources);
      Raw whole = 0;
      for (size_t i = sources; i-- > 0;)
        whole = (whole << part) | low_bits(in.sources[i], part);
      written.push_back(whole);
    } else {
      const unsigned part = bits / static_cast<unsigned>(targets);
      const Raw whole = constant ? low_bits(in.sources[0], 64) : in.sources[0];
      for (unsigned i = 0; i < targets; ++i)
        written.push_back(low_bits(whole >> (i * part), part));
    }
    return {written, false};
  };
}

bool all_integers(const Statement& statement) {
  return std::all_of(statement.types.begin(), statement.types.end(),
                     [](ScalarType type) { return ir::is_integer(type) || ir::is_bit_type(type); });
}

} // namespace

Reference selection_reference(const Statement& statement) {
  const std::string& opcode = statement.opcode;
  if (opcode == "selp" || opcode == "slct") return selection(statement);
  if (opcode == "mov") return move(statement);
  if (opcode == "cvt" && all_integers(statement))
    return statement.has("pack") ? packing(statement) : conversion(statement);
  const ScalarType compared = statement.types.empty() ? ScalarType::none : statement.types.back();
  const bool compares_integers = ir::is_integer(compared) || ir::is_bit_type(compared);
  if (opcode == "setp" && compares_integers) return comparison(statement);
  if (opcode == "set" && compares_integers && (all_integers(statement) || statement.type() == ScalarType::f32))
    return comparison(statement);
  return {};
}

Reference reference_for(const Statement& statement) {
  if (is_stated_in_unit_tests(statement)) return {};
  for (auto family : {&arithmetic_reference, &bit_reference, &selection_reference, &video_reference})
    if (Reference reference = family(statement)) return reference;
  return {};
}

} // namespace ptxrewrite::test
