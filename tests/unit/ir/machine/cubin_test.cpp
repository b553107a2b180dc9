// The cubin reader against `ptxas -v`, against counts from the PTX, and against hostile files.
#include "ir/machine/figures/cubin.h"
#include "support/ptxas.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace ptxrewrite::tests::cubin_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Kernels with shared memory, barriers, a stack frame, a device-function call, a library subroutine, and spills (under
// a register limit): every figure of `ptxas -v` is non-zero for some kernel.
std::string varied_module() {
  std::string text = R"(
.version 8.8
.target sm_75
.address_size 64
.extern .shared .align 16 .b8 dynamic[];
.visible .entry empty() { ret; }
.visible .entry shared_and_barriers(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  .shared .align 8 .b8 tile[1000];
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
  st.shared.u32 [%r2], %r1; bar.sync 0; bar.sync 2; ld.shared.u32 %r3, [%r2+4]; st.global.u32 [%rd1], %r3; ret;
}
.visible .entry dynamic_shared(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p]; mov.u32 %r2, dynamic; ld.shared.u32 %r3, [%r2+4]; st.global.u32 [%rd1], %r3; ret;
}
.visible .entry frame(.param .u64 p) {
  .reg .b64 %rd<4>; .local .align 8 .b8 depot[400];
  ld.param.u64 %rd1, [p]; mov.u64 %rd3, depot; add.u64 %rd3, %rd3, %rd1;
  st.local.u64 [%rd3], %rd1; ld.local.u64 %rd2, [%rd3+8]; st.global.u64 [%rd1], %rd2; ret;
}
.visible .entry division(.param .u64 p) {
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [%rd1]; div.s64 %rd2, %rd2, %rd1; st.global.u64 [%rd1], %rd2; ret;
}
.visible .entry forever() { L: bra L; }
.visible .entry spilling(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<101>; .reg .b64 %wide<40>;
  ld.param.u64 %rd1, [p];
)";
  for (int i = 0; i < 100; ++i)
    text += "  ld.volatile.global.u32 %r" + std::to_string(i) + ", [%rd1+" + std::to_string(4 * i) + "];\n";
  for (int i = 0; i < 40; ++i)
    text += "  ld.volatile.global.u64 %wide" + std::to_string(i) + ", [%rd1+" + std::to_string(4096 + 8 * i) + "];\n";
  text += "  bar.sync 0;\n";
  for (int i = 0; i < 100; ++i)
    text += "  st.volatile.global.u32 [%rd1+" + std::to_string(4 * i) + "], %r" + std::to_string(i) + ";\n";
  for (int i = 0; i < 40; ++i)
    text += "  st.volatile.global.u64 [%rd1+" + std::to_string(4096 + 8 * i) + "], %wide" + std::to_string(i) + ";\n";
  return text + "  ret;\n}\n";
}

bool have_ptxas() {
  bool found = find_ptxas().ok();
  if (!found) MESSAGE("skipped: no ptxas on this machine");
  return found;
}

PtxasRun must_assemble(const std::string& text, const PtxasOptions& options) {
  auto run = assemble(text, options);
  REQUIRE(run.ok());
  REQUIRE_MESSAGE(run->ok, run->messages);
  return *run;
}

} // namespace

TEST_CASE("figures agree with ptxas -v on every architecture and level") {
  if (!have_ptxas()) return;
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_120"}) {
    for (int level : {0, 3}) {
      CAPTURE(arch);
      CAPTURE(level);
      PtxasRun run = must_assemble(varied_module(), {arch, level, {"-maxrregcount=32"}});
      auto cubin = read_cubin(run.cubin);
      REQUIRE(cubin.ok());
      CHECK(cubin->architecture == std::stoul(arch + 3));
      REQUIRE(cubin->functions.size() == 7);
      for (const CubinFunction& function : cubin->functions) {
        CAPTURE(function.name);
        const PtxasFigures* figures = run.find(function.name);
        REQUIRE(figures != nullptr);
        CHECK(function.is_entry);
        CHECK(function.registers == figures->registers);
        CHECK(function.barriers == figures->barriers);
        CHECK(function.shared == figures->shared);
        CHECK(function.stack_frame == figures->stack_frame);
        if (function.spill_stores) CHECK(*function.spill_stores == figures->spill_stores);
        if (function.spill_loads) CHECK(*function.spill_loads == figures->spill_loads);
      }
      CHECK(cubin->find("spilling")->stack_frame > 0);
      CHECK(cubin->find("shared_and_barriers")->barriers == 3);
    }
  }
}

TEST_CASE("padding is not counted, a loop of the program's own is") {
  if (!have_ptxas()) return;
  for (const char* arch : {"sm_75", "sm_80", "sm_90", "sm_100", "sm_120"}) {
    CAPTURE(arch);
    auto cubin = read_cubin(must_assemble(varied_module(), {arch, 3, {"-maxrregcount=32"}}).cubin);
    REQUIRE(cubin.ok());
    // `ret` alone: load of the stack pointer and EXIT.
    CHECK(cubin->find("empty")->instructions == 2);
    // `L: bra L`: the same load and the branch itself, which must not be taken for the padding branch.
    CHECK(cubin->find("forever")->instructions == 2);
    for (const CubinFunction& function : cubin->functions) {
      CHECK(function.padding_instructions >= 1);
      CHECK(function.instructions + function.padding_instructions == function.code.size() / 16);
    }
  }
}

TEST_CASE("one more store is one more instruction") {
  if (!have_ptxas()) return;
  auto count = [](int stores) {
    std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) { .reg .b64 %rd1;\n"
                       "ld.param.u64 %rd1, [p];\n";
    for (int i = 0; i < stores; ++i)
      text += "st.volatile.global.u32 [%rd1+4], 7;\n";
    auto cubin = read_cubin(must_assemble(text + "ret; }\n", {}).cubin);
    REQUIRE(cubin.ok());
    return cubin->find("k")->instructions;
  };
  uint32_t base = count(1);
  for (int stores = 2; stores < 12; ++stores)
    CHECK(count(stores) == base + static_cast<uint32_t>(stores) - 1);
}

TEST_CASE("a relocatable object lists its device functions") {
  if (!have_ptxas()) return;
  auto cubin = read_cubin(must_assemble(R"(.version 8.0
.target sm_80
.address_size 64
.visible .func (.reg .b32 r) helper(.reg .b32 a) { add.u32 r, a, 1; ret; }
.visible .entry k() { ret; }
)",
                                        {"sm_80", 3, {"-c"}})
                              .cubin);
  REQUIRE(cubin.ok());
  REQUIRE(cubin->find("helper") != nullptr);
  CHECK_FALSE(cubin->find("helper")->is_entry);
  CHECK(cubin->find("k")->is_entry);
}

TEST_CASE("code is compared without debug information") {
  if (!have_ptxas()) return;
  std::string text = varied_module();
  auto plain = read_cubin(must_assemble(text, {"sm_80", 3, {}}).cubin);
  auto spaced = read_cubin(must_assemble("\n\n// moved down\n" + text, {"sm_80", 3, {"-lineinfo"}}).cubin);
  std::string changed = text;
  changed.replace(changed.find("[%rd3+8]"), 8, "[%rd3+16]");
  auto other = read_cubin(must_assemble(changed, {"sm_80", 3, {}}).cubin);
  REQUIRE(plain.ok());
  REQUIRE(spaced.ok());
  REQUIRE(other.ok());
  CHECK(first_code_difference(*plain, *plain) == "");
  CHECK(first_code_difference(*plain, *other) == ".text.frame");
  CHECK(first_code_difference(*other, *plain) == ".text.frame");
}

TEST_CASE("what is no cubin is an error") {
  CHECK_FALSE(read_cubin("").ok());
  CHECK_FALSE(read_cubin("\177ELF").ok());
  CHECK_FALSE(read_cubin(std::string(4096, '\0')).ok());
  CHECK_FALSE(read_cubin(std::string(64, '\377')).ok());
}

TEST_CASE("truncated and damaged cubins end in a result or an error") {
  if (!have_ptxas()) return;
  std::string image = must_assemble(varied_module(), {"sm_90", 3, {"-maxrregcount=32"}}).cubin;
  uint64_t headers = 0;
  std::copy_n(image.data() + 40, 8, reinterpret_cast<char*>(&headers));
  // The section headers follow the sections: a file cut before their end is always incomplete.
  for (size_t size = 0; size <= headers + 64; size += 1 + size / 64)
    CHECK_FALSE(read_cubin(image.substr(0, size)).ok());
  std::string no_sections = image;
  std::fill_n(no_sections.begin() + 60, 2, '\0'); // e_shnum; the first header's size, which is then used, is 0 as well
  CHECK_FALSE(read_cubin(no_sections).ok());
  std::mt19937 random(1);
  size_t read = 0;
  for (int round = 0; round < 2000; ++round) {
    std::string damaged = image;
    int changes = 1 + static_cast<int>(random() % 8);
    for (int i = 0; i < changes; ++i) {
      size_t at = random() % (round % 2 != 0 ? 64 : damaged.size());
      damaged[at] = static_cast<char>(random());
    }
    // Section headers hold the most dangerous numbers.
    if (round % 3 == 0) damaged[headers + random() % (image.size() - headers)] = static_cast<char>(0xff);
    auto cubin = read_cubin(std::move(damaged));
    if (!cubin.ok()) continue;
    ++read;
    for (const CubinFunction& function : cubin->functions)
      CHECK(function.instructions <= image.size() / 16);
  }
  CHECK(read > 0);
}

} // namespace ptxrewrite::tests::cubin_test
