#include "tests/fuzz/hostile/hostile_generator.h"

#include "emulator/memory/memory.h"
#include "tests/fuzz/hostile/hostile_writer.h"
#include "tests/fuzz/kernels/kernel_generator.h"
#include "tests/fuzz/kernels/kernel_print.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ptxrewrite::fuzz {

namespace {

constexpr std::string_view module_head = R"(.address_size 64
.global .align 16 .b8 gvar[256];
.global .u32 gu32;
.const .align 16 .b8 cvar[256] = {1, 2, 3, 4, 5};
.extern .shared .align 16 .b8 dyn[];
.global .texref gtex;
.global .surfref gsurf;
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.extern .func (.param .b64 r) malloc(.param .b64 a);
.extern .func free(.param .b64 a);
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.func (.param .b32 r) fn1(.param .b32 x)
{
  .reg .b32 %a;
  ld.param.b32 %a, [x];
  add.s32 %a, %a, 7;
  st.param.b32 [r], %a;
  ret;
}
.func (.param .b32 r) fn2(.param .b32 x)
{
  .reg .b32 %a<4>;
  .reg .pred %q;
  .local .align 4 .b8 own[64];
  ld.param.b32 %a0, [x];
  st.local.b32 [own+4], %a0;
  setp.gt.s32 %q, %a0, 5;
  @%q trap;
  ld.local.b32 %a1, [own+4];
  st.param.b32 [r], %a1;
  ret;
}
.func fn0()
{
  ret;
}
.func none(.param .b32 x)
{
  ret;
}
.func (.param .b32 r) recursive(.param .b32 x)
{
  .reg .b32 %a;
  .reg .pred %q;
  ld.param.b32 %a, [x];
  setp.eq.s32 %q, %a, 0;
  @%q bra END;
  {
    .param .b32 in;
    .param .b32 out;
    sub.s32 %a, %a, 1;
    st.param.b32 [in], %a;
    call (out), recursive, (in);
    ld.param.b32 %a, [out];
  }
END:
  st.param.b32 [r], %a;
  ret;
}
)";

constexpr std::string_view entry_head = R"((
  .param .u64 p, .param .u64 q, .param .u32 n, .param .u64 kp, .param .u32 kp32)
)";

// More registers than the prologue writes: statements of the table use high numbers.
constexpr std::string_view registers = R"({
  .reg .pred %p<16>;
  .reg .b8 %c<16>;
  .reg .b16 %h<32>;
  .reg .b32 %r<320>;
  .reg .b64 %l<80>;
  .reg .f32 %f<160>;
  .reg .f64 %d<40>;
  .reg .b128 %q<16>;
  .shared .align 128 .b8 svar[512];
  .local .align 16 .b8 lvar[64];
)";

struct Target {
  const char* version;
  const char* name;
};
constexpr std::array targets = {Target{"9.0", "sm_90a"}, Target{"9.0", "sm_90a"}, Target{"8.6", "sm_90"},
                                Target{"9.0", "sm_80"},  Target{"9.0", "sm_75"},  Target{"9.0", "sm_100a"},
                                Target{"9.0", "sm_120a"}};

std::string head_for(const Target& target) {
  return fmt::format(".version {}\n.target {}\n{}", target.version, target.name, module_head);
}

// Sets %l0, %l1, %l2, %r0, %r1, %r2 for the features; the others get a value each, or only some of them.
void write_prologue(HostileWriter& out) {
  const bool all = out.is_defined || !out.random.one_in(4);
  const auto wanted = [&] { return all || out.random.one_in(2); };
  const std::array fixed = {"ld.param.u64 %l0, [p];", "ld.param.u64 %l1, [q];", "mov.u32 %r0, %tid.x;",
                            "ld.param.u32 %r1, [n];", "mov.u32 %r2, %ctaid.x;"};
  for (const char* line : fixed)
    if (wanted()) out.raw(line);
  // The thread's number in the grid, for any shape.
  if (wanted())
    for (const char* line :
         {"mov.u32 %r3, %tid.z;", "mov.u32 %r4, %ntid.y;", "mov.u32 %r5, %tid.y;", "mad.lo.u32 %r3, %r3, %r4, %r5;",
          "mov.u32 %r5, %ntid.x;", "mad.lo.u32 %r6, %r3, %r5, %r0;", "mul.lo.u32 %r4, %r4, %r5;",
          "mov.u32 %r5, %ntid.z;", "mul.lo.u32 %r4, %r4, %r5;", "mov.u32 %r3, %ctaid.z;", "mov.u32 %r5, %nctaid.y;",
          "mov.u32 %r7, %ctaid.y;", "mad.lo.u32 %r3, %r3, %r5, %r7;", "mov.u32 %r5, %nctaid.x;",
          "mad.lo.u32 %r3, %r3, %r5, %r2;", "mad.lo.u32 %r6, %r3, %r4, %r6;", "mad.wide.u32 %l2, %r6, 16, %l1;"})
      out.raw(line);
  for (unsigned i = 3; i < 8; ++i) {
    if (wanted()) out.line("add.s32 %r{}, %r{}, {};", i, i % 3, 1 + out.random.below(99));
    if (wanted()) out.line("cvt.u64.u32 %l{}, %r{};", i, i);
  }
  for (unsigned i = 0; i < 8; ++i) {
    if (wanted()) out.line("cvt.rn.f32.s32 %f{}, %r{};", i, i);
    if (wanted()) out.line("cvt.rn.f64.s32 %d{}, %r{};", i, i);
    if (wanted()) out.line("cvt.u16.u32 %h{}, %r{};", i, i);
    if (wanted()) out.line("cvt.u8.u32 %c{}, %r{};", i, i);
    if (wanted()) out.line("mov.b128 %q{}, {{%l{}, %l{}}};", i, i, (i + 1) % 8);
    if (wanted()) out.line("setp.lt.u32 %p{}, %r{}, {};", i, i, i % 2 ? out.random.below(40) : 1 + out.random.below(6));
  }
}

// All values are stored somewhere, otherwise most of them would be dead.
void write_epilogue(HostileWriter& out) {
  out.line("xor.b32 %r3, %r3, %r4;\n  add.s32 %r3, %r3, %r5;\n  add.s32 %r3, %r3, %r6;\n  xor.b32 %r3, %r3, %r7;");
  out.line("add.s64 %l3, %l3, %l4;\n  cvt.u32.u64 %r4, %l3;\n  add.f32 %f3, %f3, %f4;\n  selp.b32 %r5, 1, 0, %p3;");
  // Addresses differ between original and rewritten if there are more variables; they are not compared.
  out.line("st.global.u32 [%l2], %r3;\n  st.global.u32 [%l2+4], %r5;\n  st.global.f32 [%l2+8], %f3;");
  if (!out.is_defined) out.line("st.global.u32 [%l2+12], %r4;");
}

std::vector<HostileFeature> all_features(bool defined) {
  std::vector<HostileFeature> all;
  for (const auto list : {value_features(), memory_features(), declaration_features(), control_features(),
                          cooperation_features(), system_features()})
    for (const HostileFeature& feature : list)
      if (!defined || feature.may_be_defined) all.push_back(feature);
  return all;
}

std::vector<std::string> launch_words(Random& random, bool defined) {
  constexpr std::array grids = {"1", "1", "2", "3,2", "2,1,2"};
  constexpr std::array blocks = {"1", "32", "32", "33", "64", "8,4", "5,3,2"};
  constexpr std::array bad_grids = {"0", "2147483648", "1,65536", "-1", "1,1,70000"};
  constexpr std::array bad_blocks = {"0", "1025", "32,33", "1,1,65", "4294967296", "1024,1024"};
  const bool is_bad = !defined && random.one_in(50);
  std::vector<std::string> words = {"--grid", is_bad && random.one_in(2) ? random.pick(bad_grids) : random.pick(grids),
                                    "--block", is_bad ? random.pick(bad_blocks) : random.pick(blocks)};
  constexpr std::array shared = {"0", "16", "4096", "232448", "1000000", "4294967295"};
  if (!defined) words.insert(words.end(), {"--shared", random.one_in(2) ? shared[0] : random.pick(shared)});
  constexpr std::array counts = {"0", "16", "33", "4294967295"};
  // The second buffer has 16 bytes for each of at most 6 * 64 threads.
  words.insert(words.end(),
               {"--arg", "buffer=u32:64:iota", "--arg", defined ? "buffer=u32:1536:out" : "buffer=u32:1540:iota:out",
                "--arg", std::string("u32=") + random.pick(counts), "--arg",
                random.one_in(2) ? "u64=0" : "u64=18446744073709551600", "--arg", "u32=7"});
  return words;
}

HostileKernel write_kernel(uint64_t seed, const HostileMaterial& material, bool defined) {
  Random random(seed * 0x9e3779b97f4a7c15ull + 99);
  HostileWriter out(random, material, defined);
  HostileKernel kernel;
  kernel.seed = seed;
  kernel.is_defined = defined;
  kernel.origin = defined ? "defined" : "attack";
  const Target& target = random.pick(targets);
  // Compilers other than nvcc start with a label; no register has a value then.
  const bool label_first = random.one_in(6);
  if (label_first) out.place("ENTRY");
  if (defined || !random.one_in(20)) write_prologue(out);
  const std::vector<HostileFeature> features = all_features(defined);
  // Attacks mostly end in a fault: the code before and between them makes the kernel worth analysing.
  const std::vector<HostileFeature> calm = all_features(true);
  const auto add = [&](const HostileFeature& feature) {
    kernel.features.push_back(feature.name);
    feature.write(out);
  };
  // Behind other features, calls of the driver's functions are seldom reached: of 1,500 kernels 18 printed.
  if (!defined && random.one_in(3)) add(random.pick(system_features()));
  for (size_t i = 0, count = 1 + random.below(8); i < count; ++i)
    add(random.pick(random.one_in(2) ? features : calm));
  if (defined || !random.one_in(8)) write_epilogue(out);
  if (out.body.find("LEND") != std::string::npos) out.place("LEND");
  if (!random.one_in(8)) out.line("{}", defined || random.one_in(2) ? "ret;" : "exit;"); // `ret` is optional
  kernel.text = head_for(target) + out.module + ".visible .entry k" + std::string(entry_head);
  if (!defined && random.one_in(10))
    kernel.text += fmt::format(
        ".{} {}\n", random.pick(std::array{"maxntid", "reqntid", "minnctapersm", "maxnreg", "reqnctapercluster"}),
        random.below(70));
  kernel.text += std::string(registers) + type_registers(out.body) + out.declarations + out.body + "}\n";
  kernel.launch = launch_words(random, defined);
  return kernel;
}

// A kernel of ours, a sound random kernel, or a file, mostly changed in one or two places.
HostileKernel mutated_kernel(uint64_t seed, const HostileMaterial& material) {
  Random random(seed * 0xd1342543de82ef95ull + 7);
  HostileKernel kernel;
  const size_t base = random.below(4);
  if (base == 0 || (base > 1 && material.modules.empty())) {
    kernel = write_kernel(seed ^ 0x5555, material, random.one_in(2));
    kernel.origin = "mutated attack";
  } else if (base == 1) {
    Knobs knobs;
    knobs.statements = 8;
    knobs.nested_statements = 3;
    kernel.text = print_module(generate_kernel(seed, knobs));
    kernel.origin = "mutated sound";
  } else {
    kernel.text = random.pick(material.modules);
    kernel.origin = "mutated file";
  }
  kernel.seed = seed;
  kernel.is_defined = false;
  for (size_t i = 0, steps = 1 + random.below(3); i < steps; ++i)
    kernel.text = mutate_alike(kernel.text, random);
  return kernel;
}

} // namespace

std::string type_registers(std::string_view body) {
  constexpr std::array types = {"u8",  "s8",  "b8",  "u16", "s16", "b16", "f16",  "u32", "s32",
                                "b32", "f32", "u64", "s64", "b64", "f64", "b128", "pred"};
  std::string declarations;
  for (const char* type : types)
    if (body.find(fmt::format("%x{}_", type)) != body.npos)
      declarations += fmt::format("  .reg .{0} %x{0}_<8>;\n", type);
  if (body.find("cpa") != body.npos || body.find("cpr") != body.npos)
    declarations += "  .param .b32 cpa;\n  .param .b32 cpr;\n";
  return declarations;
}

std::string single_statement_module(std::string_view statement) {
  std::string text = head_for(targets[0]) + ".visible .entry k" + std::string(entry_head) + std::string(registers) +
                     type_registers(statement) + "  " + std::string(statement) + "\n";
  if (statement.find("LEND") != statement.npos) text += "LEND:\n";
  return text + "  ret;\n}\n";
}

HostileKernel generate_hostile_kernel(uint64_t seed, const HostileMaterial& material) {
  switch (Random(seed * 0x2545f4914f6cdd1dull + 3).below(10)) {
  case 0:
  case 1:
    return write_kernel(seed, material, true);
  case 2:
  case 3:
  case 4:
    return mutated_kernel(seed, material);
  default:
    return write_kernel(seed, material, false);
  }
}

std::vector<std::string> hostile_features() {
  std::vector<std::string> names;
  for (const HostileFeature& feature : all_features(false))
    names.push_back(feature.name);
  return names;
}

uint64_t HostileWriter::edge() {
  switch (random.below(5)) {
  case 0:
    return random.below(20);
  case 1:
    return 0 - static_cast<uint64_t>(1 + random.below(20));
  case 2:
    return (uint64_t(1) << random.below(64)) - random.below(2);
  case 3:
    return (uint64_t(1) << (15 + 8 * random.below(4))) - 1 + random.below(3);
  default:
    return random.next();
  }
}

uint64_t HostileWriter::wild_address() {
  constexpr std::array<uint64_t, 8> places = {0,
                                              emulator::global_base,
                                              emulator::shared_window,
                                              emulator::local_window,
                                              emulator::constant_window,
                                              emulator::parameter_window,
                                              uint64_t(1) << 63,
                                              emulator::parameter_window + emulator::window_size};
  if (random.one_in(4)) return edge();
  const uint64_t around = random.one_in(2) ? 4 * random.below(100) : random.below(20);
  return random.pick(places) + (random.one_in(2) ? around : 0 - around);
}

std::string HostileWriter::fold_registers(std::string_view statement) {
  std::string text;
  for (size_t at = 0; at < statement.size();) {
    size_t end = at + 1;
    if (statement[at] == '%') {
      while (end < statement.size() && (std::isalpha(static_cast<unsigned char>(statement[end])) != 0))
        ++end;
      const bool known =
          end == at + 2 && std::string_view("pchrlfdq").find(statement[at + 1]) != std::string_view::npos;
      size_t digits = end;
      while (digits < statement.size() && std::isdigit(static_cast<unsigned char>(statement[digits])) != 0)
        ++digits;
      if (known && digits > end && digits - end < 4) {
        const size_t number = std::stoul(std::string(statement.substr(end, digits - end)));
        text += fmt::format("{}{}", statement.substr(at, 2), is_defined ? 3 + number % 5 : number % 8);
        at = digits;
        continue;
      }
    }
    text += statement.substr(at, end - at);
    at = end;
  }
  return text;
}

} // namespace ptxrewrite::fuzz
