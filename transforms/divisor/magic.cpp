#include "transforms/divisor/magic.h"

namespace ptxrewrite::transforms {

namespace {

// ceil(log2 d): 2*d - 1 lies between the same powers of two as a d that is not a power of two, and below the next power
// if d is one.
std::string ceiling_log2(const std::string& d) {
  return "log2(2*" + d + " - 1)";
}

Magic rounded_up(ir::ScalarType type, unsigned bits, unsigned shifted_out, const std::string& d) {
  const std::string exponent = std::to_string(bits) + " + " + ceiling_log2(d);
  return {type,
          "((1 << " + exponent + ") + " + d + " - 1) / " + d,
          std::to_string(int(bits) - int(shifted_out)) + " + " + ceiling_log2(d),
          {}};
}

Magic any_unsigned(const std::string& d) {
  const std::string power = "(1 << 32 + log2(" + d + "))";
  const std::string up = d + " - " + power + " % " + d + " < 1 << log2(" + d + ")";
  const std::string down = "min(" + power + " / " + d + ", 4294967295)";
  return {ir::ScalarType::u32, up + " ? " + power + " / " + d + " + 1 : " + down, "32 + log2(" + d + ")",
          up + " ? 0 : " + down};
}

Magic any_signed(ir::ScalarType type, unsigned bits, const std::string& d) {
  const std::string exponent = "max(1, " + ceiling_log2(d) + ")";
  return {type,
          "(1 << " + std::to_string(bits - 1) + " + " + exponent + ") / " + d + " + 1 - (1 << " + std::to_string(bits) +
              ")",
          exponent + " - 1",
          {}};
}

} // namespace

Magic magic_of(MagicForm form, const std::string& d) {
  switch (form) {
  case MagicForm::natural32:
    return rounded_up(ir::ScalarType::u32, 31, 0, d);
  case MagicForm::unsigned32:
    return any_unsigned(d);
  case MagicForm::signed32:
    return any_signed(ir::ScalarType::s32, 32, d);
  case MagicForm::natural64:
    return rounded_up(ir::ScalarType::u64, 63, 64, d);
  case MagicForm::unsigned64:
    return {ir::ScalarType::u64,
            "(1 << 64) * ((1 << " + ceiling_log2(d) + ") - " + d + ") / " + d + " + 1",
            ceiling_log2(d) + " - 1",
            {}};
  case MagicForm::signed64:
    return any_signed(ir::ScalarType::s64, 64, d);
  }
  return {};
}

} // namespace ptxrewrite::transforms
