#include "evaluate/calibrate/probes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <numeric>

namespace ptxrewrite::evaluate {
namespace {

// One instruction of a chain, or two that alternate: `{x}` is the chain's register, `{p}` a predicate, `{f}` a second
// 32-bit register, `{l}` a 64-bit one. The parameters a to d are %a to %d; %fa, %fb are the same as f32, %da, %db as
// f64.
struct Chain {
  const char* name; // of the figure, without "latency." or "throughput."
  const char* type; // of {x}
  const char* even;
  const char* odd;
};

// Links that the assembler cannot combine: adjacent operations differ, or have different operands that are unknown
// before the launch.
constexpr Chain latency_chains[] = {
    {"integer", "b32", "add.u32 {x}, {x}, %a;", "xor.b32 {x}, {x}, %b;"},
    {"integer_multiply_add", "b32", "mad.lo.u32 {x}, {x}, %a, %b;", "mad.lo.u32 {x}, {x}, %c, %d;"},
    {"fp32", "f32", "fma.rn.f32 {x}, {x}, %fa, %fb;", "fma.rn.f32 {x}, {x}, %fb, %fa;"},
    {"fp64", "f64", "fma.rn.f64 {x}, {x}, %da, %db;", "fma.rn.f64 {x}, {x}, %db, %da;"},
    {"special_function", "f32", "rsqrt.approx.ftz.f32 {x}, {x};", "rsqrt.approx.ftz.f32 {x}, {x};"},
};
// A half-precision matrix product of a warp, with factors so small that the sum does not change.
constexpr const char* product = "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {{x}, {f}}, {%a, %b, %c, %d}, "
                                "{%a, %b}, {{x}, {f}};";
constexpr Chain matrix_chain = {"matrix", "b32", product, product};
constexpr Chain throughput_chains[] = {
    {"integer_add", "b32", "add.u32 {x}, {x}, %a;", "xor.b32 {x}, {x}, %b;"},
    {"integer_multiply_add", "b32", "mad.lo.u32 {x}, {x}, %a, %b;", "mad.lo.u32 {x}, {x}, %c, %d;"},
    {"shift", "b32", "shl.b32 {x}, {x}, %a;", "shr.u32 {x}, {x}, %b;"},
    {"logic", "b32", "lop3.b32 {x}, {x}, %a, %b, 0xe8;", "lop3.b32 {x}, {x}, %c, %d, 0xe8;"},
    {"compare", "b32", "setp.lt.u32 {p}, {x}, %a; selp.b32 {x}, %b, {x}, {p};",
     "setp.gt.u32 {p}, {x}, %c; selp.b32 {x}, %d, {x}, {p};"},
    {"convert32", "b32", "cvt.rn.f32.u32 {f}, {x}; mov.b32 {x}, {f};", "cvt.rn.f32.s32 {f}, {x}; mov.b32 {x}, {f};"},
    {"convert8", "b32", "cvt.rn.f32.u8 {f}, {x}; mov.b32 {x}, {f};", "cvt.rn.f32.s8 {f}, {x}; mov.b32 {x}, {f};"},
    {"convert64", "b32", "cvt.rn.f64.u32 {l}, {x};", "cvt.rzi.u32.f64 {x}, {l};"},
    {"population_count", "b32", "popc.b32 {x}, {x};", "popc.b32 {x}, {x};"},
    {"bit_field_extract", "b32", "bfe.u32 {x}, {x}, %a, %d;", "bfe.s32 {x}, {x}, %b, %c;"},
    {"shuffle", "b32", "shfl.sync.bfly.b32 {x}, {x}, %a, 31, -1;", "shfl.sync.bfly.b32 {x}, {x}, %b, 31, -1;"},
    {"fp32", "f32", "fma.rn.f32 {x}, {x}, %fa, %fb;", "fma.rn.f32 {x}, {x}, %fb, %fa;"},
    {"fp64", "f64", "fma.rn.f64 {x}, {x}, %da, %db;", "fma.rn.f64 {x}, {x}, %db, %da;"},
    {"special_function", "f32", "rsqrt.approx.ftz.f32 {x}, {x};", "rsqrt.approx.ftz.f32 {x}, {x};"},
    {"barrier", "b32", "bar.sync 0; add.u32 {x}, {x}, %a;", "bar.sync 0; xor.b32 {x}, {x}, %b;"},
};

constexpr unsigned chains_of_warp = 4;
constexpr unsigned stream_loads = 8; // in flight per thread
constexpr uint32_t full_block = 1024;
constexpr uint32_t ring_bytes = 4096; // of shared and constant memory

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}

// The parts of a kernel's text. `declarations` and `before` precede the loop, `trip` is its body, `after` computes the
// result in %rd9.
struct Body {
  std::string declarations, before, trip, after;
};

constexpr const char* parameter_list = "(.param .u64 out, .param .u64 in, .param .u32 trips, .param .u32 a, .param "
                                       ".u32 b, .param .u32 c, .param .u32 d)\n";

std::string kernel_text(const std::string& name, const Body& body) {
  std::string text = ".visible .entry " + name + parameter_list +
                     "{\n"
                     "  .reg .pred %more, %p<4>;\n"
                     "  .reg .b32 %r<10>, %a, %b, %c, %d, %trips, %thread, %f<4>;\n"
                     "  .reg .f32 %fa, %fb;\n"
                     "  .reg .f64 %da, %db;\n"
                     "  .reg .b64 %rd<10>, %in, %l<4>;\n" +
                     body.declarations +
                     "  ld.param.u32 %trips, [trips];\n"
                     "  ld.param.u32 %a, [a]; ld.param.u32 %b, [b]; ld.param.u32 %c, [c]; ld.param.u32 %d, [d];\n"
                     "  ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd1, %rd0;\n"
                     "  ld.param.u64 %rd2, [in]; cvta.to.global.u64 %in, %rd2;\n"
                     "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
                     "  mad.lo.u32 %thread, %r0, %r1, %r2;\n" +
                     body.before + "TRIP:\n  .pragma \"nounroll\";\n" + body.trip +
                     "  sub.u32 %trips, %trips, 1;\n"
                     "  setp.ne.u32 %more, %trips, 0;\n"
                     "  @%more bra TRIP;\n" +
                     body.after +
                     "  mul.wide.u32 %rd3, %thread, 8;\n"
                     "  add.s64 %rd4, %rd1, %rd3;\n"
                     "  st.global.u64 [%rd4], %rd9;\n"
                     "  ret;\n}\n\n";
  return text;
}

// Combines the final values of the chains, of any type, into 64 bits in %rd9.
std::string collect(std::string_view type, unsigned chains) {
  std::string text = "  mov.u64 %rd9, 0;\n";
  for (unsigned i = 0; i < chains; ++i) {
    if (type == "f64")
      text += fmt::format("  mov.b64 %rd8, %x{};\n", i);
    else
      text += fmt::format("  mov.b32 %r8, %x{}; cvt.u64.u32 %rd8, %r8;\n", i);
    text += "  add.s64 %rd9, %rd9, %rd8;\n";
  }
  return text;
}

std::string chain_kernel(const std::string& name, const Chain& chain, unsigned chains, unsigned longer) {
  Body body;
  const std::string type = chain.type;
  body.declarations = fmt::format("  .reg .{} %x<4>;\n", type);
  body.before = "  cvt.rn.f32.u32 %fa, %a; cvt.rn.f32.u32 %fb, %b; cvt.rn.f64.u32 %da, %a; cvt.rn.f64.u32 %db, %b;\n";
  for (unsigned i = 0; i < chains; ++i) {
    // A different value for each chain, so that none can be merged with another.
    body.before += fmt::format("  add.u32 %r3, %thread, {}; ", i + 1);
    body.before += type == "f32"   ? fmt::format("cvt.rn.f32.u32 %x{}, %r3;\n", i)
                   : type == "f64" ? fmt::format("cvt.rn.f64.u32 %x{}, %r3;\n", i)
                                   : fmt::format("mov.b32 %x{}, %r3;\n", i);
  }
  for (unsigned link = 0; link < chain_links * longer; ++link)
    for (unsigned i = 0; i < chains; ++i) {
      std::string text = link % 2 ? chain.odd : chain.even;
      text = replaced(text, "{x}", fmt::format("%x{}", i));
      text = replaced(text, "{p}", fmt::format("%p{}", i));
      text = replaced(text, "{f}", fmt::format("%f{}", i));
      text = replaced(text, "{l}", fmt::format("%l{}", i));
      body.trip += "  " + text + "\n";
    }
  body.after = collect(type, chains);
  return kernel_text(name, body);
}

// Pointer chase in shared memory. Lane l starts at word `a` * l: a = 1 has no conflicts, a = 32 has all lanes in one
// bank. All warps start at the same words.
std::string shared_kernel(const std::string& name, unsigned chains, unsigned longer) {
  Body body;
  body.declarations =
      fmt::format("  .reg .b32 %x<4>, %base;\n  .shared .align 16 .b8 ring_{}[{}];\n", name, ring_bytes);
  // Word w of the ring holds its own address: the chase stays at one word, and so in one bank.
  body.before = fmt::format("  mov.u32 %base, ring_{};\n", name) +
                "  mov.u32 %r3, %r2;\n"
                "FILL:\n"
                "  .pragma \"nounroll\";\n"
                "  shl.b32 %r4, %r3, 2; add.u32 %r4, %base, %r4;\n"
                "  st.shared.u32 [%r4], %r4;\n"
                "  add.u32 %r3, %r3, %r1;\n" +
                fmt::format("  setp.lt.u32 %more, %r3, {};\n", ring_bytes / 4) +
                "  @%more bra FILL;\n"
                "  bar.sync 0;\n"
                "  and.b32 %r5, %r2, 31; mul.lo.u32 %r5, %r5, %a;\n";
  for (unsigned i = 0; i < chains; ++i)
    body.before += fmt::format("  add.u32 %r6, %r5, {}; and.b32 %r6, %r6, {}; shl.b32 %r6, %r6, 2; add.u32 %x{}, "
                               "%base, %r6;\n",
                               i * 32, ring_bytes / 4 - 1, i);
  for (unsigned link = 0; link < chain_links * longer; ++link)
    for (unsigned i = 0; i < chains; ++i)
      body.trip += fmt::format("  ld.shared.u32 %x{0}, [%x{0}];\n", i);
  // Converted to offsets, which are the same on every machine.
  for (unsigned i = 0; i < chains; ++i)
    body.after += fmt::format("  sub.u32 %x{0}, %x{0}, %base;\n", i);
  body.after += collect("b32", chains);
  return kernel_text(name, body);
}

// Pointer chase in global memory, starting at node `thread x b + a`; `c` is the distance of nodes.
std::string chase_kernel(const std::string& name, const char* load, unsigned longer) {
  Body body;
  body.before = "  mad.lo.u32 %r3, %thread, %b, %a; mul.wide.u32 %rd5, %r3, %c; add.s64 %rd6, %in, %rd5;\n";
  for (unsigned link = 0; link < chase_links * longer; ++link)
    body.trip += fmt::format("  {} %rd6, [%rd6];\n", load);
  body.after = "  sub.s64 %rd9, %rd6, %in;\n";
  return kernel_text(name, body);
}

// Pointer chase in constant memory, whose addresses must be written by the host.
std::string constant_kernel(const std::string& name, unsigned longer) {
  Body body;
  body.before =
      fmt::format("  mov.u64 %rd5, {}; mul.wide.u32 %rd6, %r2, 0; add.s64 %rd6, %rd6, %rd5;\n", constants_name);
  for (unsigned link = 0; link < chase_links * longer; ++link)
    body.trip += "  ld.const.u64 %rd6, [%rd6];\n";
  body.after = "  sub.s64 %rd9, %rd6, %rd5;\n";
  return kernel_text(name, body);
}

// Every thread loads words, several at a time, from memory that is read once, or repeatedly (`b` is the mask of words).
// `a` is the distance by which all threads advance. Wider loads would access several lines, and so depend on the number
// of outstanding misses, too.
std::string stream_kernel(const std::string& name, const char* load) {
  Body body;
  body.declarations = fmt::format("  .reg .b32 %v<{}>, %at, %x0;\n", stream_loads);
  body.before = "  mov.u32 %at, %thread; mov.u32 %x0, 0;\n";
  for (unsigned i = 0; i < stream_loads; ++i)
    body.trip += fmt::format("  and.b32 %r3, %at, %b; mul.wide.u32 %rd5, %r3, 4; add.s64 %rd6, %in, %rd5;\n"
                             "  {} %v{}, [%rd6];\n"
                             "  add.u32 %at, %at, %a;\n",
                             load, i);
  for (unsigned i = 0; i < stream_loads; ++i)
    body.trip += fmt::format("  xor.b32 %x0, %x0, %v{};\n", i);
  body.after = collect("b32", 1);
  return kernel_text(name, body);
}

std::string constants_text() {
  return fmt::format(".const .align 8 .u64 {}[{}];\n\n.visible .entry {}{}{{\n  .reg .b64 %rd<3>;\n"
                     "  ld.param.u64 %rd0, [out]; cvta.to.global.u64 %rd1, %rd0;\n"
                     "  mov.u64 %rd2, {};\n  st.global.u64 [%rd1], %rd2;\n  ret;\n}}\n\n",
                     constants_name, ring_bytes / 8, constants_kernel, parameter_list, constants_name);
}

uint32_t trips(double length, double whole) {
  return std::max(static_cast<uint32_t>(length * whole), 2u);
}

Probe chain_probe(const std::string& kind, const Chain& chain, double length) {
  const bool one_warp = kind == "latency";
  Probe probe;
  probe.name = kind + "_" + chain.name;
  probe.figure = kind + "." + chain.name;
  probe.grid = {1, 1, 1};
  probe.block = {one_warp ? 32 : full_block, 1, 1};
  probe.links = chain_links * (one_warp ? 1 : chains_of_warp);
  probe.short_trips = trips(length, 200);
  probe.long_trips = trips(length, 1000);
  probe.numbers = {1, 1, 3, 5};
  return probe;
}

void add_shared_probes(double length, std::vector<Probe>& all) {
  auto add = [&](const std::string& name, const std::string& figure, uint32_t threads, uint32_t words) {
    Probe probe;
    probe.name = name;
    probe.figure = figure;
    probe.grid = {1, 1, 1};
    probe.block = {threads, 1, 1};
    probe.links = chain_links * (threads == 32 ? 1 : chains_of_warp);
    probe.short_trips = trips(length, 200);
    probe.long_trips = trips(length, words > 4 ? 400 : 1000);
    probe.numbers[0] = words;
    all.push_back(std::move(probe));
  };
  add("latency_shared", "latency.shared", 32, 1);
  add("throughput_load_store", "throughput.load_store", full_block, 1);
  // Bank conflicts are not a figure: these probes are only predicted.
  for (uint32_t words : {2, 4, 8, 16, 32})
    add(fmt::format("shared_stride_{}", words), "", full_block, words);
}

void add_chases(const ProbeScale& scale, std::vector<Probe>& all) {
  auto add = [&](const char* name, const char* figure, uint64_t bytes, uint32_t stride, double passes_short,
                 double passes_long) {
    Probe probe;
    probe.name = name;
    probe.figure = figure;
    probe.grid = {1, 1, 1};
    probe.block = {1, 1, 1};
    probe.links = chase_links;
    probe.memory = ProbeMemory::random_ring;
    probe.memory_bytes = bytes;
    probe.stride = stride;
    const uint64_t whole_nodes = bytes / stride;
    const auto nodes = static_cast<double>(whole_nodes);
    probe.short_trips = trips(1, nodes * passes_short / chase_links);
    probe.long_trips = trips(1, nodes * passes_long / chase_links);
    probe.numbers = {0, 1, stride, 0};
    all.push_back(std::move(probe));
    return &all.back();
  };
  const double length = scale.length;
  add("latency_l1", "latency.l1", 8192, 64, 4, 4 + std::max(200 * length, 4.0));
  // Smaller than L2, larger than L1; the loads bypass L1 anyway.
  add("latency_l2", "latency.l2", 1 << 20, 256, 1, 2 + std::floor(4 * length));
  // More nodes than L2 can hold, none of them repeated.
  const uint64_t fresh_nodes = static_cast<uint64_t>(std::max(20000 * length, 400.0)) / chase_links * chase_links;
  const uint64_t dram_bytes =
      std::max<uint64_t>(8 * scale.l2_bytes * static_cast<uint64_t>(std::ceil(length)), 1 << 20);
  Probe* dram = add("latency_dram", "latency.dram", dram_bytes, 512, 0, 0);
  dram->fresh = true;
  dram->short_trips = static_cast<uint32_t>(fresh_nodes / chase_links / 4);
  dram->long_trips = static_cast<uint32_t>(fresh_nodes / chase_links);
  // Each access of the 1024 threads has a line of its own.
  Probe* misses = add("outstanding_misses", "memory.outstanding_misses", 4 << 20, 128, 0, 0);
  misses->block = {full_block, 1, 1};
  misses->short_trips = 2;
  misses->long_trips = trips(length, 60) + 4;
  misses->numbers = {0, 31, 128, 0};
  Probe constant;
  constant.name = "latency_constant";
  constant.figure = "latency.constant";
  constant.grid = {1, 1, 1};
  constant.block = {32, 1, 1};
  constant.links = chase_links;
  constant.memory = ProbeMemory::constants;
  constant.memory_bytes = ring_bytes;
  constant.stride = 8;
  constant.short_trips = trips(length, 400);
  constant.long_trips = trips(length, 2000);
  all.push_back(std::move(constant));
}

// The largest power of two that does not exceed `value`.
uint64_t power_below(uint64_t value) {
  uint64_t power = 1;
  while (power * 2 <= value)
    power *= 2;
  return power;
}

void add_streams(const ProbeScale& scale, std::vector<Probe>& all) {
  constexpr uint32_t threads = 256;
  Probe probe;
  probe.block = {threads, 1, 1};
  probe.grid = {scale.sms * 8, 1, 1};
  probe.links = stream_loads;
  probe.memory = ProbeMemory::numbers;
  probe.stride = 4;
  const uint32_t together = probe.grid.x * threads;
  auto set = [&](const char* name, const char* figure, uint64_t bytes, uint32_t short_trips, uint32_t long_trips) {
    probe.name = name;
    probe.figure = figure;
    probe.memory_bytes = bytes;
    probe.short_trips = short_trips;
    probe.long_trips = long_trips;
    probe.numbers = {together, static_cast<uint32_t>(bytes / 4 - 1), 0, 0};
    all.push_back(probe);
  };
  // Several times the size of L2 in both launches: hits on data of the preceding launch shorten both alike.
  const uint32_t dram_trips = trips(scale.length, 48) + 2;
  const uint64_t read = uint64_t(together) * 4 * stream_loads * dram_trips;
  set("stream_dram", "memory.achieved_dram_gb_per_second", 2 * power_below(read - 1), dram_trips / 2, dram_trips);
  // An eighth of the size of L2, read by all SMs.
  const uint64_t l2_bytes = std::max<uint64_t>(power_below(scale.l2_bytes / 8), 1 << 16);
  set("stream_l2", "memory.l2_bytes_per_clock", l2_bytes, trips(scale.length, 16) + 2, trips(scale.length, 80) + 8);
}

void add_launches(const ProbeScale& scale, std::vector<Probe>& all) {
  Probe probe;
  probe.name = "launch_constant";
  probe.figure = "launch.constant";
  probe.grid = {1, 1, 1};
  probe.block = {32, 1, 1};
  probe.long_trips = 1;
  all.push_back(probe);
  probe.name = "launch_per_block";
  probe.figure = "launch.per_block";
  probe.short_grid = scale.sms * 8;
  probe.grid = {scale.sms * trips(scale.length, 400) + 8 * scale.sms, 1, 1};
  all.push_back(probe);
}

} // namespace

bool needs_tensor_cores(std::span<const Probe> probes) {
  return std::ranges::any_of(probes, [](const Probe& probe) { return probe.figure.ends_with(".matrix"); });
}

std::vector<Probe> probes(const ProbeScale& scale) {
  std::vector<Probe> all;
  for (const Chain& chain : throughput_chains)
    all.push_back(chain_probe("throughput", chain, scale.length / 4));
  for (const Chain& chain : latency_chains)
    all.push_back(chain_probe("latency", chain, scale.length));
  if (scale.tensor_cores) {
    all.push_back(chain_probe("throughput", matrix_chain, scale.length / 4));
    all.push_back(chain_probe("latency", matrix_chain, scale.length));
  }
  add_shared_probes(scale.length, all);
  add_chases(scale, all);
  add_streams(scale, all);
  add_launches(scale, all);
  return all;
}

std::string probe_module_text(unsigned longer, bool tensor_cores) {
  std::string text =
      std::string("// Micro-benchmarks of machines: made by the program, see evaluate/calibrate/probes.h.\n") +
      (tensor_cores ? ".version 7.0\n.target sm_80" : ".version 6.4\n.target sm_60") + "\n.address_size 64\n\n" +
      constants_text();
  for (const Chain& chain : throughput_chains)
    text += chain_kernel(std::string("throughput_") + chain.name, chain, chains_of_warp, longer);
  for (const Chain& chain : latency_chains)
    text += chain_kernel(std::string("latency_") + chain.name, chain, 1, longer);
  if (tensor_cores) {
    text += chain_kernel("throughput_matrix", matrix_chain, chains_of_warp, longer);
    text += chain_kernel("latency_matrix", matrix_chain, 1, longer);
  }
  text += shared_kernel("latency_shared", 1, longer);
  text += shared_kernel("throughput_load_store", chains_of_warp, longer);
  for (unsigned words : {2, 4, 8, 16, 32})
    text += shared_kernel(fmt::format("shared_stride_{}", words), chains_of_warp, longer);
  text += chase_kernel("latency_l1", "ld.global.ca.u64", longer);
  for (const char* name : {"latency_l2", "latency_dram", "outstanding_misses"})
    text += chase_kernel(name, "ld.global.cg.u64", longer);
  text += constant_kernel("latency_constant", longer);
  text += stream_kernel("stream_dram", "ld.global.u32");
  text += stream_kernel("stream_l2", "ld.global.cg.u32");
  for (const char* name : {"launch_constant", "launch_per_block"})
    text += std::string(".visible .entry ") + name + parameter_list + "{\n  ret;\n}\n\n";
  return text;
}

std::vector<std::byte> probe_memory(const Probe& probe, uint64_t address) {
  std::vector<std::byte> bytes(probe.memory_bytes);
  if (probe.memory == ProbeMemory::numbers) {
    for (uint32_t i = 0; i < bytes.size() / 4; ++i)
      std::memcpy(&bytes[size_t(i) * 4], &i, 4);
  } else if (probe.memory != ProbeMemory::none) {
    const auto nodes = static_cast<uint32_t>(probe.memory_bytes / probe.stride);
    std::vector<uint32_t> next(nodes);
    std::iota(next.begin(), next.end(), 0u);
    if (probe.memory == ProbeMemory::random_ring) {
      // Sattolo's shuffle: a single cycle over all nodes.
      uint64_t state = 1;
      for (uint32_t i = nodes; i-- > 1;) {
        state = state * 6364136223846793005 + 1442695040888963407;
        std::swap(next[i], next[(state >> 33) % i]);
      }
    } else {
      std::rotate(next.begin(), next.begin() + 1, next.end());
    }
    for (uint32_t i = 0; i < nodes; ++i) {
      const uint64_t to = address + uint64_t(next[i]) * probe.stride;
      std::memcpy(&bytes[size_t(i) * probe.stride], &to, 8);
    }
  }
  return bytes;
}

} // namespace ptxrewrite::evaluate
