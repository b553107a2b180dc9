// Registers that are certainly needed, since all values are live across a barrier.
#include "ir/machine/registers/registers.h"

#include "ir/machine/figures/figures.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::registers_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

// Loads `count` values, waits, and stores them.
std::string held_values(unsigned count, const std::string& type) {
  std::string loads, stores;
  for (unsigned i = 0; i < count; ++i) {
    std::string value = "%v" + std::to_string(i), place = std::to_string(8 * i) + "]";
    loads += "ld.global." + type + " " + value + ", [%a+" + place + ";\n";
    stores += "st.global." + type + " [%a+" + place + ", " + value + ";\n";
  }
  return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n.reg .b64 %a; .reg ." +
         type + " %v<" + std::to_string(count) + ">;\nld.param.u64 %a, [p];\n" + loads + "bar.sync 0;\n" + stores +
         "ret;\n}\n";
}

std::string entry(const std::string& registers, const std::string& body, const std::string& functions = "") {
  return ".version 8.0\n.target sm_80\n.address_size 64\n" + functions +
         ".visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n)\n{\n" + registers + "\n" + body + "ret;\n}\n";
}

// The same text for Turing and later.
std::string for_turing(std::string text) {
  const std::string target = "sm_80";
  return text.replace(text.find(target), target.size(), "sm_75");
}

// Estimate and ptxas's number.
std::pair<int, int> registers_for(const std::string& ptx, uint32_t capability) {
  ReadText text(ptx);
  REQUIRE_MESSAGE(text.ok(), text.messages());
  for (const auto& function : text.module->functions)
    if (function->has_body) REQUIRE(construct_ssa(*function).ok());
  Result<FiguresByFunction> figures = machine_figures(ptx, "sm_" + std::to_string(capability));
  REQUIRE(figures.ok());
  for (const auto& function : text.module->functions)
    if (function->is_entry)
      return {static_cast<int>(register_need(*function, capability).registers),
              static_cast<int>(figures->at("k").registers)};
  return {};
}

} // namespace

TEST_CASE("values that are live at the same time have registers of their own") {
  for (bool ssa : {false, true})
    for (unsigned count : {1, 8, 40, 90})
      for (const char* type : {"f32", "f64"}) {
        CAPTURE(count);
        CAPTURE(type);
        std::string ptx = held_values(count, type);
        ReadText text(ptx);
        REQUIRE(text.ok());
        if (ssa) REQUIRE(construct_ssa(text.function()).ok());
        unsigned units = count * (type[1] == '6' ? 2 : 1);
        uint32_t need = register_need(text.function(), 80).registers;
        CHECK(need >= units + 2); // plus the address
        // Words that are stored are in odd registers: ptxas 13.0 has 22 for 8 of them, 26 for 10.
        CHECK(need <= units + std::max(12U, count + 8));
        if (!find_ptxas()) continue;
        Result<FiguresByFunction> figures = machine_figures(ptx, "sm_80");
        REQUIRE(figures.ok());
        int real = static_cast<int>(figures->at("k").registers);
        CHECK(std::abs(static_cast<int>(need) - real) <= 4 + real / 10);
      }
}

TEST_CASE("loads of shared memory are issued next to their readers") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  // All loads first, then their readers.
  std::string loads, sums;
  for (unsigned i = 0; i < 60; ++i) {
    const std::string number = std::to_string(i);
    loads += "ld.shared.f32 %f" + number + ", [%r2+" + std::to_string(36 * i) + "];\n";
    sums += "fma.rn.f32 %s, %s, %s, %f" + number + ";\n";
  }
  const std::string ptx = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
                          ".reg .b64 %a; .reg .b32 %r<80>; .reg .f32 %f<80>, %s; .shared .b8 tile[8192];\n"
                          "ld.param.u64 %a, [p]; mov.u32 %r1, %tid.x; shl.b32 %r3, %r1, 2; mov.u32 %r2, tile;\n"
                          "add.s32 %r2, %r2, %r3; mov.f32 %s, 0f3F800000;\n" +
                          loads + sums + "st.global.f32 [%a], %s; ret;\n}\n";
  ReadText text(ptx);
  REQUIRE(text.ok());
  REQUIRE(construct_ssa(text.function()).ok());
  const int need = static_cast<int>(register_need(text.function(), 80).registers);
  Result<FiguresByFunction> figures = machine_figures(ptx, "sm_80");
  REQUIRE(figures.ok());
  const int real = static_cast<int>(figures->at("k").registers);
  INFO(need << " estimated, " << real << " by ptxas");
  CHECK(real <= 32);
  CHECK(need <= 32); // the estimate fills the registers that cost no warps
}

TEST_CASE("a store's registers are not written for a while if others are free") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  // Each value is dead after its store: one register would do.
  for (unsigned stores : {1, 4}) {
    std::string body = "ld.param.u64 %a, [p]; mov.u32 %r0, %tid.x; mul.wide.u32 %b, %r0, 4; add.s64 %a, %a, %b;\n";
    for (unsigned i = 1; i <= stores; ++i)
      body += "mul.lo.s32 %r" + std::to_string(i) + ", %r0, " + std::to_string(1000 + i) + "; st.global.u32 [%a+" +
              std::to_string(4096 * i) + "], %r" + std::to_string(i) + ";\n";
    for (uint32_t capability : {80u, 90u}) {
      const auto [need, real] = registers_for(entry(".reg .b64 %a, %b; .reg .b32 %r<20>;", body), capability);
      INFO(stores << " stores, sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
      CHECK(std::abs(need - real) <= 3);
    }
  }
}

// ptxas 13.0, sm_75 to sm_120: 6 + 2n registers for n words that are computed and stored at one address, 4 + 4n if each
// has an address of its own, and the pairs of six loads' addresses although their results are words.
TEST_CASE("words beside those of accesses stay free in pairs") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto address = [](const std::string& name, const std::string& pointer) {
    return "ld.param.u64 " + name + ", [" + pointer + "]; add.s64 " + name + ", " + name + ", %b;\n";
  };
  const auto kernel_of = [](int pointers, const std::string& body) {
    std::string parameters = ".param .u32 n";
    for (int i = 0; i < pointers; ++i)
      parameters += ", .param .u64 p" + std::to_string(i);
    return ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(" + parameters +
           ")\n{\n.reg .b64 %a<16>; .reg .b64 %b; .reg .b32 %r<8>; .reg .f32 %v<16>; .reg .f32 %f; .reg .pred %p;\n"
           "mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;\n"
           "ld.param.u32 %r4, [n]; setp.ge.s32 %p, %r3, %r4; @%p bra E;\nmul.wide.s32 %b, %r3, 4;\n"
           "cvt.rn.f32.s32 %f, %r3;\n" +
           body + "E: ret;\n}\n";
  };
  const auto check = [](const std::string& text, int most, const std::string& title) {
    for (uint32_t capability : {75u, 80u, 90u, 120u}) {
      const auto [need, real] = registers_for(text, capability);
      INFO(title << ", sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
      CHECK(std::abs(need - real) <= most);
      CHECK(need % 2 == real % 2); // both even
    }
  };
  for (int count : {1, 2, 4, 6, 8}) {
    std::string same = address("%a0", "p0"), offsets = same, own, loads, sums = "mov.f32 %f, 0f3F800000;\n";
    for (int i = 0; i < count; ++i) {
      const std::string number = std::to_string(i), value = "%v" + number, place = "%a" + number;
      const std::string product = "mul.f32 " + value + ", %f, 0f40" + std::to_string(i + 1) + "00000; ";
      same += product + "st.global.f32 [%a0+" + std::to_string(64 * i) + "], " + value + ";\n";
      own += address(place, "p" + number) + product + "st.global.f32 [" + place + "], " + value + ";\n";
      offsets += "ld.global.f32 " + value + ", [%a0+" + std::to_string(12 * i) + "];\n";
      loads += address(place, "p" + number) + "ld.global.f32 " + value + ", [" + place + "];\n";
      sums += "fma.rn.f32 %f, %f, 0f40400000, " + value + ";\n";
    }
    check(kernel_of(1, same), 2, std::to_string(count) + " words at one address");
    if (count <= 6) check(kernel_of(count, own), 2, std::to_string(count) + " words at addresses of their own");
    // All loads but the last leave the address as it is.
    const std::string stored = address("%a9", "p1") + "st.global.f32 [%a9], %f;\n";
    if (count > 1) check(kernel_of(2, offsets + sums + stored), 2, std::to_string(count) + " loads at one address");
    sums += address("%a9", "p" + std::to_string(count)) + "st.global.f32 [%a9], %f;\n";
    check(kernel_of(count + 1, loads + sums), 4, std::to_string(count) + " loads");
  }
}

// ptxas 13.0 has n + 3 registers for n words that are held and stored at an address of a parameter on sm_75, 2n + 6
// on sm_80.
TEST_CASE("words that are stored at uniform addresses are not in odd registers") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (unsigned count : {4u, 8u, 12u}) {
    std::string text = held_values(count, "f32");
    text.replace(text.find("sm_80"), 5, "sm_75");
    const auto [need, real] = registers_for(text, 75);
    INFO(count << " words: " << need << " estimated, " << real << " by ptxas");
    CHECK(std::abs(need - real) <= 4);
  }
}

TEST_CASE("a constant that is stored has a register") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (unsigned stores : {2, 4}) {
    std::string body = "ld.param.u64 %a, [p];\n";
    for (unsigned i = 1; i <= stores; ++i)
      body += "st.global.u32 [%a+" + std::to_string(4096 * i) + "], " + std::to_string(1000 + 77 * i) + ";\n";
    for (uint32_t capability : {80u, 90u}) {
      const auto [need, real] = registers_for(entry(".reg .b64 %a;", body), capability);
      INFO(stores << " stores, sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
      CHECK(std::abs(need - real) <= 3);
    }
  }
}

TEST_CASE("slow paths of divisions and roots need registers beside those of live values") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::pair<const char*, const char*> forms[] = {
      {"f32", "div.rn.f32 %z, %x, %y;"}, {"f32", "rcp.rn.f32 %z, %x;"},  {"f64", "div.rn.f64 %z, %x, %y;"},
      {"f64", "rcp.rn.f64 %z, %x;"},     {"f64", "sqrt.rn.f64 %z, %x;"}, {"u64", "div.u64 %z, %x, %y;"},
      {"s64", "div.s64 %z, %x, %y;"},    {"s64", "rem.s64 %z, %x, %y;"}};
  for (const auto& [type, form] : forms)
    for (unsigned live : {0u, 4u, 40u}) {
      const std::string of_type = type;
      std::string body = "ld.param.u64 %a, [p];\n", stores;
      for (unsigned i = 0; i < live; ++i) {
        const std::string value = "%r" + std::to_string(i), place = "[%a+" + std::to_string(4096 + 4 * i) + "]";
        body += "ld.global.u32 " + value + ", " + place + ";\n";
        stores += "st.global.u32 " + place + ", " + value + ";\n";
      }
      body += "ld.global." + of_type + " %x, [%a]; ld.global." + of_type + " %y, [%a+8]; bar.sync 0;\n" + form +
              "st.global." + of_type + " [%a+16], %z; bar.sync 0;\n" + stores;
      const std::string registers = ".reg .b64 %a; .reg .b32 %r<50>; .reg ." + of_type + " %x, %y, %z;";
      for (uint32_t capability : {80u, 90u}) {
        const auto [need, real] = registers_for(entry(registers, body), capability);
        INFO(std::string(form) << ' ' << live << " live, sm_" << capability << ": " << need << " estimated, " << real
                               << " by ptxas");
        CHECK(std::abs(need - real) <= 4 + real / 10);
      }
    }
}

TEST_CASE("a kernel has the registers of the functions that it calls") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  std::string loads, stores;
  for (unsigned i = 0; i < 60; ++i) {
    const std::string value = "%v" + std::to_string(i), place = "[%a+" + std::to_string(4 * i) + "]";
    loads += "ld.global.u32 " + value + ", " + place + ";\n";
    stores += "st.global.u32 " + place + ", " + value + ";\n";
  }
  const std::string function = ".func f(.param .b64 x)\n{\n.reg .b64 %a; .reg .b32 %v<60>;\n"
                               "ld.param.b64 %a, [x];\n" +
                               loads + "bar.sync 0;\n" + stores + "ret;\n}\n";
  const std::string ptx =
      entry(".reg .b64 %a; .param .b64 x;", "ld.param.u64 %a, [p]; st.param.b64 [x], %a; call f, (x);\n", function);
  for (uint32_t capability : {80u, 90u}) {
    const auto [need, real] = registers_for(ptx, capability);
    INFO("sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
    CHECK(real >= 60);
    CHECK(std::abs(need - real) <= 8);
  }
  // 28 words that are live at the call have others.
  std::string kept, read;
  for (unsigned i = 0; i < 28; ++i) {
    const std::string value = "%w" + std::to_string(i);
    kept += "ld.volatile.global.u32 " + value + ", [%a+" + std::to_string(1024 + 4 * i) + "];\n";
    read += "st.volatile.global.u32 [%a+" + std::to_string(2048 + 4 * i) + "], " + value + ";\n";
  }
  const std::string across = entry(".reg .b64 %a; .reg .b32 %w<28>; .param .b64 x;",
                                   "ld.param.u64 %a, [p];\n" + kept + "st.param.b64 [x], %a; call f, (x);\n" +
                                       "st.param.b64 [x], %a; call f, (x);\n" + read,
                                   function);
  for (uint32_t capability : {80u, 90u}) {
    const auto [need, real] = registers_for(across, capability);
    INFO("sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
    CHECK(real >= 88);
    CHECK(std::abs(need - real) <= 8);
  }
}

TEST_CASE("a kernel that is short of registers has three beside those of its values") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (unsigned words : {25u, 26u}) { // and two of the address: up to 31
    std::string ptx = held_values(words, "f32");
    for (uint32_t capability : {80u, 90u}) {
      ptx.replace(ptx.find("sm_"), 5, "sm_" + std::to_string(capability));
      const auto [need, real] = registers_for(ptx, capability);
      INFO(words << " words, sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
      CHECK(need == real);
    }
  }
}

TEST_CASE("a kernel that states its block and needs far too many registers gets those of a full SM") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto check = [](std::string ptx, const std::string& stated) {
    const std::string head = ".visible .entry k(.param .u64 p)\n";
    ptx.replace(ptx.find(head), head.size(), head + stated + "\n");
    for (uint32_t capability : {75u, 80u, 86u, 90u}) {
      ptx.replace(ptx.find("sm_"), 5, "sm_" + std::to_string(capability));
      const auto [need, real] = registers_for(ptx, capability);
      INFO(stated << ", sm_" << capability << ": " << need << " estimated, " << real << " by ptxas");
      CHECK(need == real);
    }
  };
  for (const char* stated : {"", ".reqntid 128", ".maxntid 256", ".reqntid 32", ".reqntid 128\n.minnctapersm 1",
                             ".reqntid 128\n.minnctapersm 4", ".reqntid 512", ".maxntid 1024"})
    check(held_values(520, "f32"), stated);
  for (const char* stated : {"", ".reqntid 128", ".maxntid 256", ".maxntid 1024"})
    check(held_values(400, "f32"), stated);
  for (const char* stated : {"", ".reqntid 128", ".maxntid 1024"})
    check(held_values(265, "f32"), stated);
}

// ptxas 13.0: 64 registers where an SM holds 1,024 threads of them, 40 where it holds 1,536, and 32 where it holds
// 2,048.
TEST_CASE("loads are early as far as the registers of a full SM go") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto sum_of = [](int words) {
    std::string loads, sums,
        head = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n"
               ".reg .b64 %a; .reg .f32 %v<64>; .reg .f32 %s;\nld.param.u64 %a, [p];\n";
    for (int i = 0; i < words; ++i) {
      const std::string value = "%v" + std::to_string(i);
      loads += "ld.global.f32 " + value + ", [%a+" + std::to_string(12 * i) + "];\n";
      sums += (i == 0 ? "mov.f32 %s, " : "add.f32 %s, %s, ") + value + ";\n";
    }
    return head + loads + sums + "st.global.f32 [%a], %s;\nret;\n}\n";
  };
  for (const auto& [capability, words] : {std::pair(75u, 48), std::pair(86u, 32), std::pair(120u, 32)}) {
    const auto [estimated, real] = registers_for(sum_of(words), capability);
    INFO("sm_" << capability << ": " << estimated << " estimated, " << real << " by ptxas");
    CHECK(real > words);
    CHECK(estimated >= words + 4);
    CHECK(std::abs(estimated - real) <= 4);
  }
}

TEST_CASE("loads are issued before stores to other memory and to other places of the same base") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  constexpr int words = 24;
  // A word's load, then its store at `to`.
  const auto copies = [](const std::string& space, const std::string& to) {
    std::string body = ".shared .align 4 .b8 tile[8192];\nmov.u32 %i, %tid.x; shl.b32 %i, %i, 2; mov.u32 %t, tile; "
                       "add.s32 %t, %t, %i; mul.wide.u32 %o, %i, 3; ld.param.u64 %a, [p]; add.s64 %a, %a, %o; "
                       "ld.param.u64 %b, [q]; add.s64 %b, %b, %o;\n";
    for (int i = 0; i < words; ++i) {
      const std::string value = "%v" + std::to_string(i), place = std::to_string(128 * i);
      body += "ld.global.u32 " + value + ", [%a+" + place + "]; st." + space + ".u32 [" + to + "+" +
              std::to_string(128 * i + 4) + "], " + value + ";\n";
    }
    return for_turing(entry(".reg .b64 %a, %b, %o; .reg .b32 %i, %t, %v<24>;", body + "bar.sync 0;\n"));
  };
  for (uint32_t capability : {75U, 86U, 120U}) {
    const auto [shared, shared_real] = registers_for(copies("shared", "%t"), capability);
    const auto [apart, apart_real] = registers_for(copies("global", "%a"), capability);
    const auto [behind, behind_real] = registers_for(copies("global", "%b"), capability);
    INFO("sm_" << capability << ": " << shared << ", " << apart << ", " << behind << " estimated, " << shared_real
               << ", " << apart_real << ", " << behind_real << " by ptxas");
    CHECK(std::min(shared_real, apart_real) > words);
    CHECK(std::min(shared, apart) > words);
    CHECK(std::abs(shared - shared_real) <= 7);
    CHECK(std::abs(apart - apart_real) <= 2);
    CHECK(behind_real + 8 <= apart_real); // the place of the store is not known
    CHECK(behind + 8 <= apart);
  }
}

TEST_CASE("predicated code and the code behind it wait for each other's stores") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto sections = [](int count) {
    std::string body = "ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; mov.u32 %t, %tid.x;\n";
    for (int i = 0; i < count; ++i) {
      const std::string place = std::to_string(256 * i), label = "L" + std::to_string(i);
      body += "add.u32 %i, %t, " + place + "; setp.ge.u32 %q, %i, %n; @%q bra " + label + "; mad.lo.u32 %v, %i, %n, " +
              std::to_string(i) + "; mul.wide.u32 %o, %v, 4; add.s64 %c, %a, %o; xor.b32 %v, %v, %t;\n" +
              "st.global.u32 [%c], %v;\n" + label + ":\n";
    }
    return for_turing(entry(".reg .b64 %a, %o, %c; .reg .b32 %t, %n, %i, %v; .reg .pred %q;", body));
  };
  for (uint32_t capability : {75U, 80U, 90U}) {
    const auto [one, one_real] = registers_for(sections(1), capability);
    const auto [four, four_real] = registers_for(sections(4), capability);
    INFO("sm_" << capability << ": " << one << " and " << four << " estimated, " << one_real << " and " << four_real
               << " by ptxas");
    CHECK(four_real >= one_real + 8);
    CHECK(four >= one + 8);
    CHECK(std::abs(four - four_real) <= 6);
  }
}

TEST_CASE("registers of stores to shared memory are free behind a barrier") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto exchange = [](const std::string& between) {
    constexpr int words = 12;
    std::string body = ".shared .align 4 .b8 tile[8192];\nld.param.u64 %a, [p]; mov.u32 %t, %tid.x; "
                       "mul.wide.u32 %o, %t, 4; add.s64 %a, %a, %o; shl.b32 %s, %t, 2; mov.u32 %v0, tile; "
                       "add.u32 %s, %s, %v0;\n";
    const auto for_all = [&](const std::string& before, const std::string& behind, bool first, int offset) {
      for (int i = 0; i < words; ++i) {
        const std::string value = "%v" + std::to_string(i), place = std::to_string(128 * i + offset);
        body += before + (first ? value + ", [" + behind + "+" + place + "];\n"
                                : "[" + behind + "+" + place + "], " + value + ";\n");
      }
    };
    for_all("ld.global.u32 ", "%a", true, 0);
    for_all("st.shared.u32 ", "%s", false, 0);
    body += between;
    for_all("ld.shared.u32 ", "%s", true, 4);
    for_all("st.global.u32 ", "%a", false, 4);
    return for_turing(entry(".reg .b64 %a, %o; .reg .b32 %s, %t, %v<12>;", body));
  };
  const auto [without, without_real] = registers_for(exchange(""), 75);
  const auto [with, with_real] = registers_for(exchange("bar.sync 0;\n"), 75);
  INFO(without << " and, with a barrier, " << with << " estimated, " << without_real << " and " << with_real
               << " by ptxas");
  CHECK(with_real + 8 <= without_real);
  CHECK(with + 8 <= without);
  CHECK(std::abs(with - with_real) <= 4);
}

// A fetch reads its coordinates some time after its issue; the result replaces one of them.
TEST_CASE("coordinates of textures are not overwritten for a while if registers are free") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (int fetches : {4, 8, 12}) {
    std::string body = "ld.param.u64 %a, [p]; ld.param.u64 %t, [q]; mov.u32 %i, %tid.x; cvt.rn.f32.u32 %x, %i; "
                       "mov.u32 %i, %tid.y; cvt.rn.f32.u32 %y, %i;\n",
                sums;
    for (int i = 0; i < fetches; ++i) {
      const std::string number = std::to_string(i);
      body += "add.f32 %c, %x, 0f4" + std::to_string(i % 10) + "000000; add.f32 %d, %y, 0f4" + std::to_string(i % 9) +
              "100000; tex.2d.v4.f32.f32 {%v" + number + ", %w, %w, %w}, [%t, {%c, %d}];\n";
      sums += "fma.rn.f32 %v0, %v0, %v" + number + ", %v0;\n";
    }
    const std::string text = entry(".reg .b64 %a, %t; .reg .b32 %i; .reg .f32 %x, %y, %c, %d, %w, %v<16>;",
                                   body + sums + "st.global.f32 [%a], %v0;\n");
    const auto [estimated, real] = registers_for(for_turing(text), 75);
    INFO(fetches << " fetches: " << estimated << " estimated, " << real << " by ptxas");
    CHECK(real >= 2 * fetches);
    CHECK(estimated >= 2 * fetches);
    CHECK(std::abs(estimated - real) <= 4);
  }
}

TEST_CASE("copies of a loop that writes to memory do not issue their loads early") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const auto loop = [](const std::string& write, const std::string& load = "ld.global.f32 ",
                       const std::string& back = "setp.lt.s32 %p, %i, %n; @%p bra L;\n") {
    std::string loads, sums, ends = "add.s64 %a, %a, 4096; add.s32 %i, %i, 1; " + back;
    for (int i = 0; i < 6; ++i) {
      const std::string value = "%v" + std::to_string(i);
      loads += load + value + ", [%a+" + std::to_string(12 * i) + "];\n";
      sums += "fma.rn.f32 %s, %s, %s, " + value + ";\n";
    }
    return entry(
        ".reg .b64 %a; .reg .b64 %b; .reg .f32 %v<8>; .reg .f32 %s; .reg .b32 %i; .reg .b32 %n; .reg .pred %p;",
        "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; ld.param.u32 %n, [n]; mov.f32 %s, 0f00000000;"
        "mov.u32 %i, 0;\nL:\n" +
            loads + sums + write + ends + "st.global.f32 [%b], %s;\n");
  };
  const std::string store = "st.global.f32 [%b+4], %s;\n";
  const std::string not_copied = "setp.ge.s32 %p, %i, %n; @%p bra E; bra L; E:\n";
  const std::pair<const char*, std::string> cases[] = {{"no write", loop("")},
                                                       {"store", loop(store)},
                                                       {"store, read-only loads", loop(store, "ld.global.nc.f32 ")},
                                                       {"barrier", loop("bar.sync 0;\n")},
                                                       {"reduction", loop("red.global.add.f32 [%b+4], %s;\n")},
                                                       {"no copies", loop("", "ld.global.f32 ", not_copied)}};
  for (uint32_t capability : {75u, 90u, 120u})
    for (const auto& [name, text] : cases) {
      std::string for_all = text;
      for_all.replace(for_all.find("sm_"), 5, "sm_75");
      const auto [estimated, real] = registers_for(for_all, capability);
      INFO(std::string(name) << ", sm_" << capability << ": " << estimated << " estimated, " << real << " by ptxas");
      CHECK(std::abs(estimated - real) <= 5);
    }
}

TEST_CASE("copies of a loop load few words of shared and constant memory ahead") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (const std::string space : {"shared", "const"})
    for (const char* back : {"setp.lt.s32 %p, %i, 64; @%p bra L;\n", "setp.ge.s32 %p, %i, %n; @%p bra E; bra L; E:\n"})
      for (uint32_t capability : {75u, 80u, 90u}) {
        std::string text = entry(
            ".reg .b64 %b; .reg .b32 %a<2>; .reg .b64 %w; .reg .b32 %v<8>; .reg .b32 %s; .reg .b32 %i; .reg .b32 %n;"
            " .reg .pred %p;",
            "ld.param.u64 %b, [q]; ld.param.u32 %n, [n]; mov.u32 %s, 0; mov.u32 %i, 0; mov.u32 %a0, " +
                (space == "const" ? std::string("0; mov.u64 %w, words") : "words") + ";\nL: ld." + space +
                ".u32 %v0, [" + (space == "const" ? "%w" : "%a0") +
                "]; xor.b32 %s, %s, %v0; mul.lo.s32 %s, %s, %s; ld." + space + ".u32 %v1, [" +
                (space == "const" ? "%w" : "%a0") +
                "+4]; xor.b32 %s, %s, %v1; mul.lo.s32 %s, %s, %s; add.s64 %w, %w, 8; add.s32 %a0, %a0, 8;"
                "add.s32 %i, %i, 1; " +
                back + "st.global.u32 [%b], %s;\n",
            "." + space + " .align 4 .b8 words[4096];\n");
        text.replace(text.find("sm_"), 5, "sm_" + std::to_string(capability));
        const auto [estimated, real] = registers_for(text, capability);
        INFO(space << ", sm_" << capability << ": " << estimated << " estimated, " << real << " by ptxas");
        CHECK(std::abs(estimated - real) <= 10);
      }
}

TEST_CASE("parameters that are addresses need no registers on Turing") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  const std::string ptx = entry(".reg .b64 %a; .reg .b64 %b; .reg .f32 %v; .reg .f32 %w;",
                                "ld.param.u64 %a, [p]; ld.param.u64 %b, [q]; ld.global.f32 %v, [%a];"
                                "ld.global.f32 %w, [%b+4]; add.f32 %v, %v, %w; st.global.f32 [%b], %v;\n");
  for (uint32_t capability : {75u, 80u}) {
    std::string text = ptx;
    text.replace(text.find("sm_"), 5, "sm_" + std::to_string(capability));
    const auto [estimated, real] = registers_for(text, capability);
    INFO("sm_" << capability << ": " << estimated << " estimated, " << real << " by ptxas");
    CHECK(std::abs(estimated - real) <= 2);
  }
}

TEST_CASE("predicates are counted apart") {
  ReadText text(kernel("ld.global.u32 %r1, [%rd1]; setp.lt.u32 %p1, %r1, 5; setp.lt.u32 %p2, %r1, 9; bar.sync 0;\n"
                       "@%p1 st.global.u32 [%rd1], %r1; @%p2 st.global.u32 [%rd1+4], %r1;"));
  REQUIRE(text.ok());
  RegisterNeed need = register_need(text.function(), 80);
  CHECK(need.predicates == 2);
  CHECK(need.registers < 16);
}

} // namespace ptxrewrite::tests::registers_test
