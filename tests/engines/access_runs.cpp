// Straight code of loads and stores with common base registers, which the interpreter executes as runs
// (emulator/access/access_run.h): against what the host computes, against lane by lane (count_memory), and as generated
// code.
//
//   access_runs [--count N] [--verbose]
//
// Each kernel is a random list of steps in a loop, whose turns take the bases of their lanes from a table: patterns
// that repeat and change, up to both ends of the memory; in some kernels the last turn is beyond an end, or misaligned.
#include "grammar/reader.h"
#include "support/log.h"
#include "tests/engines/access_launch.h"
#include "tests/fuzz/random.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace ptxrewrite::test {
namespace {

constexpr uint32_t lanes = 32, buffer_bytes = 4096, base_count = 3, turn_count = 60, block_count = 2;
constexpr int32_t farthest = 256; // offset of a step

struct Step {
  enum Kind : uint8_t { load, store, move, take } kind = load; // move: base + 8; take: the base becomes a loaded value
  uint32_t base = 0;
  uint32_t bytes = 4;
  int32_t offset = 0;
  bool guarded = false;
};

struct Kernel {
  std::vector<Step> steps;
  bool is_shared[base_count] = {};
  uint32_t threads = lanes;
  bool parts = false;  // in every fourth turn some lanes skip the steps
  bool faults = false; // in the last turn, as a rule
};

// Offsets of the table: by turn, base, lane.
struct Data : AccessData {
  std::vector<uint8_t> own;
};

bool is_guarded_lane(uint32_t lane) {
  return (lane & 5) != 1;
}

Kernel random_kernel(fuzz::Random& random) {
  Kernel kernel;
  const uint64_t spaces = random.below(4);
  for (uint32_t base = 0; base < base_count; ++base)
    kernel.is_shared[base] = spaces == 0 || (spaces != 1 && base == 0);
  if (random.below(4) == 0) kernel.threads = 27;
  kernel.parts = random.below(3) == 0;
  kernel.faults = random.below(3) == 0;
  const bool words = random.below(2) == 0;
  const uint64_t bases = 1 + random.below(base_count), count = 2 + random.below(14);
  for (uint64_t i = 0; i < count; ++i) {
    Step step;
    const uint64_t kind = random.below(20);
    step.kind = kind < 11 ? Step::load : kind < 18 ? Step::store : kind == 18 ? Step::move : Step::take;
    step.base = static_cast<uint32_t>(random.below(bases));
    step.bytes = random.below(4) == 0 && !words ? 8 : 4;
    step.offset = (static_cast<int32_t>(random.below(2 * farthest / 8)) - farthest / 8) * 8;
    if (step.bytes == 4 && random.below(2)) step.offset += 4;
    step.guarded = random.below(12) == 0;
    kernel.steps.push_back(step);
  }
  return kernel;
}

// How lanes differ: by multiples of what the steps access.
std::vector<uint32_t> random_turn(bool has_words_only, uint64_t kind, fuzz::Random& random) {
  std::vector<uint32_t> offsets;
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    const uint32_t any = static_cast<uint32_t>(random.below(lanes));
    const uint32_t elements[] = {lane, 0, lane / 16 * 4, lane % 16, lane / 8, lanes - 1 - lane, any};
    offsets.push_back(elements[kind] * (has_words_only ? 4 : 8));
  }
  return offsets;
}

Data random_data(const Kernel& kernel, fuzz::Random& random) {
  Data data;
  data.buffer.resize(buffer_bytes);
  for (uint8_t& byte : data.buffer)
    byte = static_cast<uint8_t>(random.next());
  data.own = data.buffer;
  data.results.resize(size_t(turn_count) * lanes * 8 + buffer_bytes);
  const bool has_words_only = std::ranges::all_of(kernel.steps, [](const Step& step) { return step.bytes == 4; });
  std::vector<uint32_t> turns[base_count];
  for (uint32_t turn = 0; turn < turn_count; ++turn)
    for (auto& offsets : turns) {
      const bool repeats = turn > 0 && random.below(4) != 0;
      if (!repeats) offsets = random_turn(has_words_only, turn == 0 ? 0 : random.below(7), random); // first consecutive
      const uint32_t lowest = *std::min_element(offsets.begin(), offsets.end());
      const uint32_t highest = *std::max_element(offsets.begin(), offsets.end());
      // The lowest and the highest places that all steps reach; moved bases go up.
      const uint32_t moves = static_cast<uint32_t>(kernel.steps.size()) * 8;
      const uint32_t room = buffer_bytes - 2 * farthest - (highest - lowest) - 8 - moves;
      const uint64_t end = random.below(6);
      uint32_t at = farthest + (end == 0   ? 0
                                : end == 1 ? room / 8 * 8
                                           : static_cast<uint32_t>(random.below(room / 8) * 8));
      if (kernel.faults && turn + 1 == turn_count) {
        const uint32_t beyond[] = {at + 2, buffer_bytes - 16, 0, static_cast<uint32_t>(-24)};
        at = beyond[random.below(4)];
      }
      for (uint32_t& offset : offsets)
        offset = offset - lowest + at;
      data.table.insert(data.table.end(), offsets.begin(), offsets.end());
    }
  data.table.resize(data.table.size() + size_t(base_count) * lanes); // what the last turn reads for the next one
  return data;
}

// Takes the bases of a turn from the table.
std::string bases_of(const Kernel& kernel) {
  std::string text;
  for (uint32_t base = 0; base < base_count; ++base) {
    const std::string number = std::to_string(base);
    text += "ld.global.u32 %o, [%lt+" + std::to_string(base * lanes * 4) + "];\n";
    text += kernel.is_shared[base]
                ? "mov.u32 %a" + number + ", own; add.u32 %a" + number + ", %a" + number + ", %o;\n"
                : "cvt.s64.s32 %la" + number + ", %o; add.u64 %la" + number + ", %lb, %la" + number + ";\n";
  }
  return text;
}

std::string text_of(const Kernel& kernel) {
  std::string text =
      ".version 8.0\n.target sm_80\n.address_size 64\n"
      ".visible .entry k(.param .u64 table, .param .u64 buffer, .param .u64 results, .param .u32 turns)\n{\n"
      ".reg .b32 %a<3>, %o, %t, %i, %n, %u, %v, %x, %w; .reg .b64 %la<3>, %lb, %lt, %lr, %lo, %lv, %lx, %lw;\n"
      ".reg .pred %p, %q, %g; .shared .align 16 .b8 own[4096];\n"
      "ld.param.u64 %lt, [table]; ld.param.u64 %lb, [buffer]; ld.param.u64 %lr, [results];\n"
      "ld.param.u32 %n, [turns]; mov.u32 %t, %tid.x; mul.wide.u32 %lo, %t, 4; add.u64 %lt, %lt, %lo;\n"
      "mul.wide.u32 %lo, %t, 8; add.u64 %lr, %lr, %lo; and.b32 %o, %t, 5; setp.ne.u32 %g, %o, 1; mov.u32 %i, 0;\n"
      "mov.u32 %x, %t; mov.u64 %lx, %lo; mov.u32 %w, 0;\nTHERE:\n"
      "cvt.u64.u32 %lw, %w; add.u64 %lw, %lb, %lw; mov.u32 %o, own; add.u32 %o, %o, %w;\n"
      "ld.global.v2.b32 {%v, %u}, [%lw]; st.shared.v2.b32 [%o], {%v, %u}; add.u32 %w, %w, 8;\n"
      "setp.lt.u32 %p, %w, 4096; @%p bra THERE;\n";
  text += bases_of(kernel);
  // The accesses in front of the loop find the bases as its first turn has them.
  for (uint32_t base = 0; base < base_count; ++base)
    text +=
        (kernel.is_shared[base] ? "ld.shared.b32 %v, [%a" : "ld.global.b32 %v, [%la") + std::to_string(base) + "];\n";
  text += "LOOP:\n";
  if (kernel.parts)
    text += "and.b32 %o, %i, 3; setp.eq.u32 %p, %o, 1; not.pred %q, %g; and.pred %p, %p, %q; @%p bra SKIPPED;\n";
  for (const Step& step : kernel.steps) {
    const bool shared = kernel.is_shared[step.base];
    const std::string base = (shared ? "%a" : "%la") + std::to_string(step.base);
    const std::string place = (shared ? "shared.b" : "global.b") + std::to_string(step.bytes * 8);
    const std::string address = "[" + base + "+" + std::to_string(step.offset) + "]";
    const std::string guard = step.guarded ? "@%g " : "", sum = step.bytes == 8 ? "%lx" : "%x";
    const std::string value = step.bytes == 8 ? "%lv" : "%v", type = step.bytes == 8 ? "u64 " : "u32 ";
    switch (step.kind) {
    case Step::load:
      if (step.guarded) text += "mov." + type + value + ", 5;\n";
      text += guard + "ld." + place + " " + value + ", " + address + ";\n";
      text += "add." + type + sum + ", " + sum + ", " + value + ";\n";
      break;
    case Step::store:
      text += guard + "st." + place + " " + address + ", " + sum + ";\n";
      break;
    case Step::move:
      text += std::string(shared ? "add.u32 " : "add.u64 ") + base + ", " + base + ", 8;\n";
      break;
    case Step::take: // of a load: 0 or 8
      text += std::string("ld.") + (shared ? "shared.b32 %v, " : "global.b32 %v, ") + "[" + base +
              "+8]; and.b32 %v, %v, 8;\n";
      text += shared ? "add.u32 " + base + ", " + base + ", %v;\n"
                     : "cvt.u64.u32 %lv, %v; add.u64 " + base + ", " + base + ", %lv;\n";
    }
  }
  if (kernel.parts) text += "SKIPPED:\n";
  return text +
         "cvt.u64.u32 %lv, %x; add.u64 %lv, %lv, %lx; st.global.u64 [%lr], %lv;\n"
         "add.u64 %lt, %lt, 384; add.u64 %lr, %lr, 256;\n" +
         bases_of(kernel) +
         "add.u32 %i, %i, 1; setp.lt.u32 %p, %i, %n; @%p bra LOOP;\n"
         "mov.u32 %w, 0; sub.u64 %lr, %lr, %lo;\nBACK:\n" // the own memory, behind the results
         "cvt.u64.u32 %lw, %w; add.u64 %lw, %lr, %lw; mov.u32 %o, own; add.u32 %o, %o, %w;\n"
         "ld.shared.b32 %v, [%o]; st.global.b32 [%lw], %v; add.u32 %w, %w, 4; setp.lt.u32 %p, %w, 4096;\n"
         "@%p bra BACK;\nret;\n}\n";
}

// Computes the expected memory. Of lanes that store to the same address, the last one's value remains.
void expect_block(const Kernel& kernel, Data& data) {
  data.own = data.buffer;
  std::vector<uint32_t> x(lanes);
  std::vector<uint64_t> lx(lanes);
  for (uint32_t lane = 0; lane < lanes; ++lane) {
    x[lane] = lane;
    lx[lane] = uint64_t(lane) * 8;
  }
  for (uint32_t turn = 0; turn < turn_count; ++turn) {
    std::vector<uint32_t> at(data.table.begin() + turn * base_count * lanes,
                             data.table.begin() + (turn + 1) * base_count * lanes);
    for (const Step& step : kernel.steps)
      for (uint32_t lane = 0; lane < kernel.threads; ++lane) {
        uint32_t& base = at[step.base * lanes + lane];
        uint8_t* memory = kernel.is_shared[step.base] ? data.own.data() : data.buffer.data();
        if (kernel.parts && turn % 4 == 1 && !is_guarded_lane(lane)) continue;
        const bool executes = !step.guarded || is_guarded_lane(lane);
        uint64_t value = 5;
        switch (step.kind) {
        case Step::load:
          if (executes) std::memcpy(&(value = 0), memory + base + step.offset, step.bytes);
          if (step.bytes == 8)
            lx[lane] += value;
          else
            x[lane] += static_cast<uint32_t>(value);
          break;
        case Step::store:
          value = step.bytes == 8 ? lx[lane] : x[lane];
          if (executes) std::memcpy(memory + base + step.offset, &value, step.bytes);
          break;
        case Step::move:
          base += 8;
          break;
        case Step::take:
          base += memory[base + 8] & 8;
        }
      }
    for (uint32_t lane = 0; lane < kernel.threads; ++lane) {
      const uint64_t result = lx[lane] + x[lane];
      std::memcpy(data.results.data() + (size_t(turn) * lanes + lane) * 8, &result, 8);
    }
  }
  std::memcpy(data.results.data() + size_t(turn_count) * lanes * 8, data.own.data(), buffer_bytes);
}

// Blocks run one after the other; in the second one the sites of all accesses are known.
void expect(const Kernel& kernel, Data& data) {
  for (uint32_t block = 0; block < block_count; ++block)
    expect_block(kernel, data);
}

EngineRun launch(const ir::Module& module, const Kernel& kernel, const Data& data, AccessWay way) {
  return launch_accesses(module, {kernel.threads, block_count, turn_count}, data, way);
}

// Returns the number of ways that are wrong.
int test(uint64_t number, bool with_generator, EngineTally& tally) {
  fuzz::Random random(number);
  const Kernel kernel = random_kernel(random);
  const Data data = random_data(kernel, random);
  const std::string name = "kernel " + std::to_string(number);
  Diagnostics diagnostics;
  const auto module = grammar::read_module(SourceFile("runs.ptx", text_of(kernel)), diagnostics);
  if (!module) {
    std::printf("%s: not read: %s\n", name.c_str(), diagnostics.list()[0].message.c_str());
    return 1;
  }
  int wrong = 0;
  ++tally.kernels;
  const EngineRun by_runs = launch(*module, kernel, data, AccessWay::predicted);
  if (!kernel.faults) {
    Data after = data;
    expect(kernel, after);
    if (const std::string what = difference_from_host(after, by_runs); !what.empty() && ++wrong)
      std::printf("%s, host and interpreter: %s\n", name.c_str(), what.c_str());
  }
  const EngineRun lane_by_lane = launch(*module, kernel, data, AccessWay::lane_by_lane);
  if (const std::string what = difference(lane_by_lane, by_runs); !what.empty() && ++wrong)
    std::printf("%s, lane by lane and by runs: %s\n", name.c_str(), what.c_str());
  if (wrong) std::printf("%s", text_of(kernel).c_str());
  if (!with_generator) return wrong;
  wrong += !tally.add(name + ", quick code", by_runs, launch(*module, kernel, data, AccessWay::quick));
  if (number % 25 != 0) return wrong; // LLVM takes longer
  wrong += !tally.add(name + ", quick code by LLVM", by_runs, launch(*module, kernel, data, AccessWay::portable));
  wrong += !tally.add(name + ", full code", by_runs, launch(*module, kernel, data, AccessWay::full));
  return wrong;
}

int run(uint64_t count) {
  const bool with_generator = has_generator();
  EngineTally tally;
  int wrong = 0;
  for (uint64_t number = 0; number < count && wrong < 5; ++number)
    wrong += test(number, with_generator, tally);
  if (with_generator) return tally.finish("runs of accesses") | (wrong != 0);
  std::printf("%d kernels, %d wrong\n", static_cast<int>(tally.kernels), wrong);
  return wrong != 0;
}

} // namespace
} // namespace ptxrewrite::test

int main(int count, char** arguments) {
  uint64_t kernels = 200;
  for (int i = 1; i < count; ++i) {
    if (std::strcmp(arguments[i], "--verbose") == 0) ptxrewrite::start_logging("debug");
    if (std::strcmp(arguments[i], "--count") == 0 && i + 1 < count)
      kernels = std::strtoull(arguments[++i], nullptr, 10);
  }
  return ptxrewrite::test::run(kernels);
}
