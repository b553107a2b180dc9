// Latencies and throughputs against published figures: vendors' throughput tables and public micro-benchmarks.
#include "ir/machine/figures/latency.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::latency_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

double latency_of(const char* machine, const char* mnemonic) {
  Figure figure = latency(*find_machine(machine), form(known_form(mnemonic)));
  return figure.known ? figure.value : -1;
}

double throughput_of(const char* machine, const char* mnemonic) {
  Figure figure = throughput(*find_machine(machine), form(known_form(mnemonic)));
  return figure.known ? figure.value : -1;
}

} // namespace

TEST_CASE("latencies are those of the unit that computes the result") {
  CHECK(latency_of("titanv", "add.s32") == 4);
  CHECK(latency_of("titanv", "fma.rn.f32") == 4);
  CHECK(latency_of("titanv", "fma.rn.f64") == 8);
  CHECK(latency_of("titanv", "ld.shared.f32") == 18);
  CHECK(latency_of("titanv", "ld.global.f32") == 30);
  CHECK(latency_of("gtx1080ti", "mad.lo.s32") == 13);
  CHECK(latency_of("gtx1080ti", "add.s32") == 6);
  CHECK(latency_of("gtx1080ti", "ex2.approx.ftz.f32") == 15);
  CHECK(latency_of("fx5800", "ld.global.f32") == 440); // no first-level cache
  CHECK(latency_of("h100", "atom.global.add.u32") == 262);
  CHECK(latency_of("a100", "st.global.f32") == -1);
  CHECK(latency_of("a100", "bar.sync") == -1);
}

TEST_CASE("throughputs are the programming guide's rows") {
  CHECK(throughput_of("titanv", "fma.rn.f32") == 64);
  CHECK(throughput_of("titanv", "fma.rn.f64") == 32);
  CHECK(throughput_of("titanv", "popc.b32") == 16);
  CHECK(throughput_of("titanv", "ex2.approx.ftz.f32") == 16);
  CHECK(throughput_of("titanv", "shfl.sync.bfly.b32") == 32);
  CHECK(throughput_of("titanv", "cvt.rn.f64.s32") == 16);
  CHECK(throughput_of("gtx980", "add.s32") == 128);
  CHECK(throughput_of("gtx980", "shl.b32") == 64);
  CHECK(throughput_of("gtx980", "setp.lt.s32") == 64);
  CHECK(throughput_of("gtx980", "fma.rn.f64") == 4);
  CHECK(throughput_of("h100", "fma.rn.f32") == 128);
  CHECK(throughput_of("gtx480", "shfl.sync.bfly.b32") == -1); // introduced by the next generation
}

} // namespace ptxrewrite::tests::latency_test
