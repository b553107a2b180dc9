// Random kernels in clusters, with hostile addresses, ranks, masks and counts: they end in a result, a fault or a
// refusal, reproducibly, and access only their own memory.
#include "tests/unit/emulator/run_ptx.h"

#include <array>

namespace ptxrewrite::emulator::cluster_hostile_test {
namespace {

class Random {
public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t below(uint64_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return state_ % limit;
  }
  template <class T, size_t n> const T& pick(const std::array<T, n>& from) { return from[below(n)]; }

private:
  uint64_t state_;
};

constexpr std::array narrow = {"0",          "1",          "8",          "16",         "252",        "256",
                               "0x100",      "0xffffffff", "0x1000000",  "0x10000f8",  "0x2000000",  "0xf000010",
                               "0x10000000", "0xff000000", "0x00ffffff", "0x01ffffff", "0x7fffffff", "0x80000000"};
constexpr std::array wide = {"0x7f0000000000", "0x7f0001000000", "0x7f000f000010",     "0x7f00ffffffff",
                             "0x7f0100000000", "0x7f4000000000", "0xffffffffffffffff", "0"};

constexpr std::array lines = {
    "mapa.shared::cluster.u32 R, R, R;",
    "mapa.u64 D, D, R;",
    "getctarank.shared::cluster.u32 R, R;",
    "getctarank.u64 R, D;",
    "ld.shared::cluster.u32 R, [R];",
    "ld.shared.u32 R, [R];",
    "ld.u32 R, [D];",
    "st.shared::cluster.u32 [R], R;",
    "st.shared::cluster.v4.u32 [R], {R, R, R, R};",
    "st.u32 [D], R;",
    "atom.relaxed.cluster.shared::cluster.add.u32 R, [R], R;",
    "red.relaxed.cluster.shared::cluster.add.u32 [R], R;",
    "barrier.cluster.arrive;",
    "barrier.cluster.wait;",
    "barrier.cluster.arrive;\nbarrier.cluster.wait;",
    "barrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;",
    "bar.sync 0;",
    "mbarrier.init.shared::cta.b64 [R], R;",
    "mbarrier.init.shared::cta.b64 [full], 1;",
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [R];",
    "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [R], R;",
    "mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [R], R;",
    "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [R], R;",
    "mbarrier.test_wait.parity.shared::cta.b64 P, [full], R;",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [R], R, [R];",
    "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b64 [R], {D, D}, [R];",
    "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.dec.u32 [R], R, [R];",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [R], [R], R, [R];",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [R], [D], R, [R];",
    "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [R], [D], R, [R], H;",
    "isspacep.shared::cluster P, D;",
    "setp.ne.u32 P, R, R;",
    "@P ret;",
    "cvta.shared.u64 D, place;",
    "mov.u32 R, full;",
    "mov.u32 R, %cluster_ctarank;"};

std::string hostile_kernel(uint64_t seed) {
  Random random(seed);
  const auto name = [&](char kind, unsigned count) {
    return std::string("%") + kind + std::to_string(random.below(count));
  };
  std::string text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 out) {\n.reg .b32 "
                     "%r<6>;\n.reg .b64 %d<4>;\n.reg .b16 %h<2>;\n.reg .pred %p<3>;\n.shared .align 16 .b8 "
                     "place[256];\n.shared .align 8 .b64 full;\n";
  for (unsigned i = 0; i < 6; ++i)
    text += "mov.u32 %r" + std::to_string(i) + ", " + random.pick(narrow) + ";\n";
  for (unsigned i = 0; i < 3; ++i)
    text += "mov.u64 %d" + std::to_string(i) + ", " + random.pick(wide) + ";\n";
  text += "ld.param.u64 %d3, [out];\nmov.u16 %h0, 3;\nmov.u16 %h1, " + std::to_string(random.below(65536)) +
          ";\nsetp.eq.u32 %p0, %r0, 1;\nmov.u32 %r5, %tid.x;\nsetp.lt.u32 %p1, %r5, 5;\nsetp.eq.u32 %p2, %r0, %r0;\n";
  for (uint64_t i = 0, count = 2 + random.below(12); i < count; ++i) {
    const std::string line = random.pick(lines);
    if (random.below(6) == 0 && !line.starts_with('@')) text += "@" + name('p', 3) + " ";
    for (char c : line)
      text += c == 'R'   ? name('r', 6)
              : c == 'D' ? name('d', 4)
              : c == 'H' ? name('h', 2)
              : c == 'P' ? name('p', 3)
                         : std::string(1, c);
    text += '\n';
  }
  return text + "ret;\n}\n";
}

TEST_CASE("hostile kernels in clusters") {
  unsigned results = 0, faults = 0;
  for (uint64_t seed = 1; seed <= 1500; ++seed) {
    Random random(seed + 1'000'000);
    const std::string text = hostile_kernel(seed);
    CAPTURE(text);
    LaunchRequest request{.kernel = "k", .block = {static_cast<uint32_t>(1 + random.below(64))}, .fuel = 20'000};
    const auto size = static_cast<uint32_t>(1 + random.below(5));
    request.cluster = Dimensions{size};
    request.grid = {size * 2};
    request.check = random.below(2) == 0;
    request.late_copies = random.below(3) == 0;
    const auto once = [&] { return run_ptx(text, request, {zeros<uint32_t>(64)}); };
    const PtxRun run = once(), again = once();
    REQUIRE(run.error == "");
    REQUIRE(again.failure() == run.failure());
    REQUIRE(again.buffers == run.buffers);
    REQUIRE(again.result.findings.size() == run.result.findings.size());
    run.result.failure ? ++faults : ++results;
  }
  // Both outcomes occur often.
  CHECK(results > 40);
  CHECK(faults > 500);
}

} // namespace
} // namespace ptxrewrite::emulator::cluster_hostile_test
