#include "tests/fuzz/kernels/kernel_operations.h"

#include "tests/fuzz/kernels/operations/operation_rows.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ptxrewrite::fuzz {

namespace {

// Arithmetic on pointers: used for addresses, never drawn. In the oracle a global or shared address equals its generic
// address.
std::vector<Operation> address_operations() {
  Rows rows("address arithmetic");
  const auto same = [](auto in) { return in[0]; };
  rows.add_value("mov.u64", 'a', "a", same);
  rows.add_value("cvta.to.global.u64", 'a', "a", same);
  rows.add_value("cvta.global.u64", 'a', "a", same);
  rows.add_value("cvta.const.u64", 'a', "a", same);
  rows.add_value("cvta.shared.u64", 'a', "a", same);
  rows.add_value("cvta.local.u64", 'a', "a", same);
  rows.add_value("cvt.u64.u32", 'a', "s", same);
  rows.add_value("mov.u32", 's', "s", same);
  for (const char* name : {"add.s64", "add.u64"}) {
    rows.add_value(name, 'a', "ad", [](auto in) { return in[0] + in[1]; });
    rows.add_value(name, 'a', "Da", [](auto in) { return in[0] + in[1]; });
  }
  rows.add_value("sub.s64", 'a', "ad", [](auto in) { return in[0] - in[1]; });
  rows.add_value("mad.wide.s32", 'a', "Rra", [](auto in) {
    return static_cast<uint64_t>(sign_extend(in[0], 32) * sign_extend(in[1], 32)) + in[2];
  });
  rows.add_value("mad.wide.u32", 'a', "Rra", [](auto in) { return in[0] * in[1] + in[2]; });
  rows.add_value("mad.lo.s64", 'a', "Dda", [](auto in) { return in[0] * in[1] + in[2]; });
  rows.add_value("add.s32", 's', "sr", [](auto in) { return in[0] + in[1]; });
  rows.add_value("add.u32", 's', "Rs", [](auto in) { return in[0] + in[1]; });
  rows.add_value("mad.lo.s32", 's', "Rrs", [](auto in) { return in[0] * in[1] + in[2]; });
  rows.add_value("selp.b64", 'a', "aa!", [](auto in) { return in[2] != 0 ? in[0] : in[1]; });
  return rows.take();
}

std::vector<Operation> make_table() {
  std::vector<Operation> table;
  for (auto piece : {integer_operations, bit_operations, conversion_operations, float_operations, half_operations,
                     address_operations})
    for (Operation& row : piece())
      table.push_back(std::move(row));
  return table;
}

} // namespace

const std::vector<Operation>& operations() {
  static const std::vector<Operation> table = make_table();
  return table;
}

uint32_t operation_named(std::string_view text, std::string_view results, std::string_view sources) {
  const std::vector<Operation>& table = operations();
  for (size_t i = 0; i < table.size(); ++i)
    if (table[i].text == text && table[i].results == results && table[i].sources == sources)
      return static_cast<uint32_t>(i);
  std::fprintf(stderr, "kernel generator: no operation %.*s\n", static_cast<int>(text.size()), text.data());
  std::abort();
}

Kind kind_of_letter(char letter) {
  static constexpr std::pair<const char*, Kind> letters[] = {
      {"p!", Kind::predicate}, {"hHu", Kind::b16},         {"rRcknv", Kind::b32}, {"dDx", Kind::b64},
      {"ej", Kind::f16},       {"w", Kind::f16x2},         {"fy", Kind::f32},     {"gY", Kind::f64},
      {"a", Kind::pointer},    {"s", Kind::shared_pointer}};
  for (const auto& [members, kind] : letters)
    if (std::strchr(members, letter) != nullptr) return kind;
  std::fprintf(stderr, "kernel generator: no kind for letter %c\n", letter);
  std::abort();
}

unsigned width_of(Kind kind) {
  static constexpr unsigned widths[kind_count] = {1, 16, 32, 64, 16, 32, 32, 64, 64, 32};
  return widths[static_cast<size_t>(kind)];
}

} // namespace ptxrewrite::fuzz
