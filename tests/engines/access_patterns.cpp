// Loads and stores whose lanes' addresses lie in every way: interpreted as sites remember it (emulator/access), lane by
// lane (count_memory), and as generated code, against what the host computes from the table of offsets.
//
//   access_patterns [--verbose]
//
// A kernel has one load or store, in a loop whose turns take the offsets of their lanes from a table. Turns repeat a
// pattern, leave it for one turn, come back, and go to the ends of the buffer. Without LLVM the interpreter is tested
// alone.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/access_launch.h"
#include "tests/fuzz/random.h"

#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

constexpr unsigned lanes = 32, buffer_bytes = 4096;

struct Access {
  std::string space; // "global", "shared", "local", "" for generic addresses of global memory
  unsigned bytes = 4, count = 1;
  bool is_store = false;
  // some: a partial warp; parted: those that do not branch around the access.
  enum Lanes : uint8_t { all, some, guarded, parted } executing = all;
  bool stores_number = false; // an immediate operand
  unsigned size() const { return bytes * count; }
};

std::string name_of(const Access& access) {
  return (access.is_store ? "st." : "ld.") + access.space + " " + std::to_string(access.count) + " x " +
         std::to_string(access.bytes) + " bytes, " +
         (access.executing == Access::all      ? "full warps"
          : access.executing == Access::some   ? "partial warps"
          : access.executing == Access::parted ? "a branch"
                                               : "a guard") +
         (access.stores_number ? ", a number" : "");
}

using Turn = std::vector<uint32_t>; // offsets of the lanes

// One pattern: element numbers by lane, below `elements`.
std::vector<Turn> patterns(uint32_t elements, fuzz::Random& random) {
  std::vector<Turn> all;
  const auto add = [&](const std::function<uint64_t(uint32_t)>& element) {
    Turn& turn = all.emplace_back();
    for (uint32_t lane = 0; lane < lanes; ++lane)
      turn.push_back(static_cast<uint32_t>(element(lane) % elements));
  };
  add([](uint32_t lane) { return lane; });
  add([](uint32_t) { return 3; });
  for (uint32_t run : {16, 8, 4, 2}) {
    add([&](uint32_t lane) { return lane % run + lane / run * 40; });
    add([&](uint32_t lane) { return lane / run * 7; });
    add([&](uint32_t lane) { return lane % run; });                                    // runs at one place
    add([&](uint32_t lane) { return 100 - lane / run * run + lane % run; });           // runs that go down
    add([&](uint32_t lane) { return lane == 5 ? 90 : lane % run + lane / run * 16; }); // one lane elsewhere
    add([&](uint32_t lane) { return lane == 31 ? 2 : lane / run; });
  }
  add([](uint32_t lane) { return 31 - lane; });
  add([](uint32_t lane) { return 2 * lane; });
  add([](uint32_t lane) { return lane ^ 1; });
  add([](uint32_t lane) { return lane < 16 ? lane : lane + 1; });
  add([&](uint32_t lane) { return elements - lanes + lane; });
  for (int i = 0; i < 4; ++i)
    add([&](uint32_t) { return random.next(); });
  return all;
}

std::vector<Turn> turns_of(const Access& access) {
  fuzz::Random random(access.size());
  const uint32_t size = access.size(), elements = buffer_bytes / size;
  const std::vector<Turn> all = patterns(elements, random);
  std::vector<Turn> turns;
  const auto add = [&](const Turn& turn, uint32_t moved) {
    Turn& offsets = turns.emplace_back(turn);
    for (uint32_t& offset : offsets)
      offset = (offset + moved) % elements * size;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    for (uint32_t turn = 0; turn < 6; ++turn)
      add(all[i], turn);
    add(all[random.below(all.size())], 0);
    for (uint32_t turn = 0; turn < 80; turn += 9) // long enough for a wrong guess to be replaced
      add(all[i], turn);
  }
  for (int i = 0; i < 200; ++i) // any order
    add(all[random.below(all.size())], static_cast<uint32_t>(random.below(elements)));
  return turns;
}

constexpr uint64_t number = 93;

std::string registers(const Access& access) {
  std::string list;
  for (unsigned i = 0; i < access.count; ++i)
    list += (i ? ", %v" : "%v") + std::to_string(i);
  return access.count == 1 ? list : "{" + list + "}";
}

// Parameters: table of offsets, buffer, results (an element a lane and turn), turns.
std::string text_of(const Access& access) {
  const unsigned bits = access.bytes * 8;
  const std::string type = "b" + std::to_string(bits),
                    vector = access.count == 1 ? "" : ".v" + std::to_string(access.count);
  const std::string space = access.space.empty() ? "" : "." + access.space;
  const bool narrow = access.space == "shared" || access.space == "local";
  const std::string base = narrow ? "[%a]" : "[%la]";
  const std::string guard = access.executing == Access::guarded ? "@%g " : "";
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 table, .param .u64 buffer, .param .u64 results, .param .u32 turns)\n{\n"
      ".reg .b32 %a, %c, %o, %t, %i, %n, %w; .reg .b64 %la, %lb, %lt, %lr, %lo, %lx; .reg .pred %p, %g;\n"
      ".reg ." +
      type +
      " %v<4>; .shared .align 16 .b8 own[4096]; .local .align 16 .b8 mine[4096];\n"
      "ld.param.u64 %lt, [table]; ld.param.u64 %lb, [buffer]; ld.param.u64 %lr, [results];\n"
      "ld.param.u32 %n, [turns]; mov.u32 %t, %tid.x; mul.wide.u32 %lo, %t, 4; add.u64 %lt, %lt, %lo;\n"
      "mul.wide.u32 %lo, %t, " +
      std::to_string(access.size()) +
      "; add.u64 %lr, %lr, %lo;\n"
      "and.b32 %o, %t, 5; setp.ne.u32 %g, %o, 1; mov.u32 %i, 0;\n";
  const auto copy = [&](bool back) { // the buffer to the own memory, by the first lane or by each for itself
    const std::string own = access.space == "shared" ? "own" : "mine";
    const std::string label = back ? "BACK" : "THERE";
    std::string loop = "mov.u32 %c, 0;\n" + label + ":\n";
    loop += "cvt.u64.u32 %la, %c; add.u64 %la, %lb, %la; mov.u32 %o, " + own + "; add.u32 %o, %o, %c;\n";
    loop += back ? "ld." + access.space + ".b32 %w, [%o]; st.global.b32 [%la], %w;\n"
                 : "ld.global.b32 %w, [%la]; st." + access.space + ".b32 [%o], %w;\n";
    return loop + "add.u32 %c, %c, 4; setp.lt.u32 %p, %c, 4096; @%p bra " + label + ";\n";
  };
  if (narrow) text += copy(false);
  for (unsigned i = 0; i < access.count; ++i)
    text += (bits == 8 ? "cvt.u8.u32 %v0, %i;\n" : "mov." + type + " %v" + std::to_string(i) + ", 0;\n");
  text += "LOOP:\nld.global.u32 %o, [%lt];\n";
  if (narrow)
    text += std::string("mov.u32 %a, ") + (access.space == "shared" ? "own" : "mine") + "; add.u32 %a, %a, %o;\n";
  else
    text += "cvt.u64.u32 %la, %o; add.u64 %la, %lb, %la;\n";
  const std::string branch = access.executing == Access::parted ? "@!%g bra PAST;\n" : "";
  const std::string past = access.executing == Access::parted ? "PAST:\n" : "";
  if (access.is_store) {
    text += "ld.global" + vector + "." + type + " " + registers(access) + ", [%lr];\n";
    text += branch + guard + "st" + space + vector + "." + type + " " + base + ", " +
            (access.stores_number ? std::to_string(number) : registers(access)) + ";\n" + past;
  } else {
    text += branch + guard + "ld" + space + vector + "." + type + " " + registers(access) + ", " + base + ";\n" + past;
    text += "st.global" + vector + "." + type + " [%lr], " + registers(access) + ";\n";
  }
  text += "add.u64 %lt, %lt, 128; add.u64 %lr, %lr, " + std::to_string(lanes * access.size()) +
          ";\nadd.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra LOOP;\n";
  if (access.space == "shared" && access.is_store) text += copy(true);
  return text + "ret;\n}\n";
}

bool executes(const Access& access, unsigned lane) {
  return access.executing == Access::all || (access.executing == Access::some ? lane < 27 : (lane & 5) != 1);
}

// Computes the expected memory: of lanes that store to the same address, the last one's value remains.
void expect(const Access& access, AccessData& data) {
  const unsigned size = access.size();
  std::vector<uint8_t> last(lanes * size);
  for (size_t at = 0; at < data.table.size(); ++at) {
    const unsigned lane = at % lanes;
    uint8_t *place = data.buffer.data() + data.table[at], *result = data.results.data() + at * size;
    const bool exists = access.executing != Access::some || lane < 27;
    if (!exists) continue;
    if (access.is_store) {
      if (executes(access, lane))
        std::memcpy(place, access.stores_number ? reinterpret_cast<const uint8_t*>(&number) : result, size);
    } else {
      if (executes(access, lane)) std::memcpy(last.data() + lane * size, place, size);
      std::memcpy(result, last.data() + lane * size, size);
    }
  }
}

EngineRun launch(const ir::Module& module, const Access& access, const AccessData& data, AccessWay way) {
  const uint32_t threads = access.executing == Access::some ? 27 : lanes;
  return launch_accesses(module, {threads, 1, static_cast<uint32_t>(data.table.size() / lanes)}, data, way);
}

// Returns the number of ways that are wrong.
int test(const Access& access, bool with_generator, EngineTally& tally) {
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("access.ptx", text_of(access)), diagnostics);
  if (!module) {
    std::printf("%s: not read: %s\n", name_of(access).c_str(), diagnostics.list()[0].message.c_str());
    return 1;
  }
  AccessData data;
  for (const Turn& turn : turns_of(access))
    data.table.insert(data.table.end(), turn.begin(), turn.end());
  fuzz::Random random(3);
  data.buffer.resize(buffer_bytes);
  data.results.resize(data.table.size() * access.size());
  for (auto* bytes : {&data.buffer, &data.results})
    for (uint8_t& byte : *bytes)
      byte = static_cast<uint8_t>(random.next());
  AccessData after = data;
  expect(access, after);
  int wrong = 0;
  ++tally.kernels;
  const EngineRun by_sites = launch(*module, access, data, AccessWay::predicted);
  if (const std::string what = difference_from_host(after, by_sites); !what.empty() && ++wrong)
    std::printf("%s, host and interpreter: %s\n", name_of(access).c_str(), what.c_str());
  const EngineRun lane_by_lane = launch(*module, access, data, AccessWay::lane_by_lane);
  if (const std::string what = difference(lane_by_lane, by_sites); !what.empty() && ++wrong)
    std::printf("%s, lane by lane and by sites: %s\n", name_of(access).c_str(), what.c_str());
  if (!with_generator) return wrong;
  wrong += !tally.add(name_of(access) + ", quick code", by_sites, launch(*module, access, data, AccessWay::quick));
  wrong += !tally.add(name_of(access) + ", quick code by LLVM", by_sites,
                      launch(*module, access, data, AccessWay::portable));
  wrong += !tally.add(name_of(access) + ", full code", by_sites, launch(*module, access, data, AccessWay::full));
  return wrong;
}

int run() {
  const bool with_generator = has_generator();
  EngineTally tally;
  int wrong = 0;
  for (const char* space : {"global", "shared", "local", ""})
    for (const unsigned bytes : {1u, 2u, 4u, 8u})
      for (const unsigned count : {1u, 2u, 4u})
        for (const bool is_store : {false, true})
          for (const auto executing : {Access::all, Access::some, Access::guarded, Access::parted}) {
            const bool is_vector_of_bytes = bytes == 1 && count > 1; // needs registers of other widths
            if (bytes * count > 16 || is_vector_of_bytes) continue;
            if (std::strcmp(space, "local") == 0 && is_store) continue; // nobody reads it back
            wrong += test({space, bytes, count, is_store, executing}, with_generator, tally);
            if (is_store && count == 1)
              wrong += test({space, bytes, count, is_store, executing, true}, with_generator, tally);
          }
  if (with_generator) return tally.finish("accesses") | (wrong != 0);
  std::printf("%d kernels, %d wrong\n", static_cast<int>(tally.kernels), wrong);
  return wrong != 0;
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  if (count > 1 && std::strcmp(arguments[1], "--verbose") == 0) ptxrewrite::start_logging("debug");
  return ptxrewrite::test::run();
}
