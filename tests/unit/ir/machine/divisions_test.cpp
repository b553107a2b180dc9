// Divisions by one divisor against ptxas: how many instructions the first, the second and further ones add.
#include "tests/unit/ir/machine/instruction_counts.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::divisions_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

constexpr int numbers = 12;

// `count` of twelve loaded numbers are divided by a parameter, or by a number that is stored, too; all are stored.
std::string kernel(const std::string& operation, int count, bool by_parameter) {
  std::string loads, work, stores;
  for (int i = 0; i < numbers; ++i) {
    const std::string number = "%r" + std::to_string(10 + i), result = "%r" + std::to_string(30 + i),
                      place = std::to_string(64 * i + 64);
    loads += "ld.shared.u32 " + number + ", [%r1+" + place + "];\n";
    work += i < count ? operation + " " + result + ", " + number + (by_parameter ? ", %r60;\n" : ", %r62;\n")
                      : "mov.u32 " + result + ", " + number + ";\n";
    stores += "st.shared.u32 [%r1+" + std::to_string(64 * i + 4096) + "], " + result + ";\n";
  }
  if (!by_parameter) stores += "st.shared.u32 [%r1+8192], %r62;\n";
  return ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 m)\n{\n"
         ".reg .b32 %r<80>;\nld.param.u32 %r60, [m]; mov.u32 %r1, %tid.x; ld.shared.u32 %r62, [%r1];\n" +
         loads + work + stores + "ret;\n}\n";
}

} // namespace

TEST_CASE("divisions by one divisor share its reciprocal, and from the second its complement") {
  if (skipped_without_ptxas()) return;
  struct Operation {
    const char* name;
    double tolerance; // of instructions per division: ptxas moves numbers between registers in signed ones
  };
  for (const auto& [name, tolerance] :
       {Operation{"rem.u32", 0}, Operation{"div.u32", 0}, Operation{"rem.s32", 1}, Operation{"div.s32", 1}})
    for (const bool by_parameter : {true, false})
      for (uint32_t capability : {75U, 80U, 90U, 120U}) {
        const auto [base, real_base] = instruction_counts(kernel(name, 0, by_parameter), capability);
        for (int count : {1, 2, 3, 12}) {
          const auto [model, real] = instruction_counts(kernel(name, count, by_parameter), capability);
          INFO("sm_" << capability << ", " << count << " of " << std::string(name) << " by "
                     << (by_parameter ? "a parameter: " : "a number: ") << model - base << " estimated, "
                     << real - real_base << " by ptxas");
          CHECK(std::abs((model - base) - (real - real_base)) <= tolerance * (count + 1));
        }
      }
}

} // namespace ptxrewrite::tests::divisions_test
