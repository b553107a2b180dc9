// DAC's legal form: the loads that run ahead, the writes that they may pass, and the estimate.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "ir/ssa/ssa.h"
#include "ir/verify/verify.h"
#include "launch/predicate.h"
#include "transforms/common/uniform_branches.h"
#include "transforms/dac/run_ahead_cost.h"
#include "transforms/manager/pass.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace ptxrewrite::tests::run_ahead_test {

using namespace ptxrewrite;
using transforms::Change;
using transforms::Discharge;

namespace {

struct Outcome {
  Change change = Change::unchanged;
  std::string text; // of all remarks
  std::vector<transforms::Obligation> ledger;
  std::string printed;
};

// The only function of `text`, in SSA form, after dac with `options`, such as "force,distance=2".
Outcome rewrite(const std::string& text, const std::string& options, const std::vector<std::string>& assumptions = {}) {
  Diagnostics diagnostics;
  const std::unique_ptr<ir::Module> module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE_MESSAGE(module, text);
  ir::Function& function = *module->functions.front();
  REQUIRE(ir::construct_ssa(function));
  transforms::PassContext context;
  context.assumptions = assumptions;
  for (size_t start = 0; start < options.size();) {
    const size_t end = std::min(options.find(',', start), options.size());
    const std::string option = options.substr(start, end - start);
    const size_t equals = option.find('=');
    context.options.set(option.substr(0, equals), equals == option.npos ? "1" : option.substr(equals + 1));
    start = end + 1;
  }
  Outcome result;
  result.change = transforms::find_pass("dac")->run(function, context);
  for (const ir::VerifierFinding& finding : ir::verify(function))
    FAIL_CHECK(finding.rule << ": " << finding.message);
  for (const transforms::Remark& remark : context.remarks)
    result.text += remark.text + "\n";
  result.ledger = context.ledger;
  ir::print(function, result.printed);
  return result;
}

// A loop of %r1 trips over `body`, whose row address is in %rd4; `advance` is added to it in each trip.
std::string loop(const std::string& body, const std::string& condition = "setp.lt.u32 %p2, %r4, %r1;",
                 const std::string& target = "sm_80", const std::string& header = ".reqntid 32\n", int advance = 128) {
  return ".version 8.0\n.target " + target +
         "\n.address_size 64\n.visible .entry k(.param .u64 from, .param .u64 to, .param .u32 rows)\n" + header +
         "{\n.reg .pred %p<9>;\n.reg .b16 %h<9>;\n.reg .b32 %r<40>;\n.reg .b64 %rd<40>;\n"
         "ld.param.u64 %rd1, [from];\nld.param.u64 %rd2, [to];\nld.param.u32 %r1, [rows];\n"
         "mov.u32 %r3, %tid.x;\nmul.wide.u32 %rd3, %r3, 8;\nadd.s64 %rd4, %rd1, %rd3;\nadd.s64 %rd5, %rd2, %rd3;\n"
         "mov.u32 %r4, 0;\nmov.u32 %r5, 0;\n"
         "$row:\n" +
         body + "\nadd.s64 %rd4, %rd4, " + std::to_string(advance) + ";\nadd.u32 %r4, %r4, 1;\n" + condition +
         "\n@%p2 bra $row;\nst.global.u32 [%rd5], %r5;\nret;\n}\n";
}

const std::string sum = "ld.global.u32 %r6, [%rd4];\nadd.u32 %r5, %r5, %r6;";

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

} // namespace

TEST_CASE("A load passes its own thread's stores only where they never meet, by brute force") {
  for (int step : {-12, -8, -4, 4, 8, 12})
    for (int offset = -28; offset <= 28; offset += 4)
      for (int distance : {1, 2, 3})
        for (bool store_first : {false, true}) {
          // The load of trip k + j against the store of trip k, 4 bytes each.
          bool meet = false;
          for (int j = store_first ? 0 : 1; j <= distance; ++j)
            meet |= std::abs(j * step - offset) < 4;
          const std::string store = "st.global.u32 [%rd4+" + std::to_string(offset) + "], %r4;\n";
          const std::string body = store_first ? store + sum : sum + "\n" + store;
          const Outcome result = rewrite(loop(body, "setp.lt.u32 %p2, %r4, %r1;", "sm_80", ".reqntid 32\n", step),
                                         "force,form=registers,distance=" + std::to_string(distance));
          CHECK_MESSAGE((result.change == Change::changed) == !meet, step << " " << offset << " " << distance << " "
                                                                          << store_first << "\n"
                                                                          << result.text);
          if (meet) CHECK(contains(result.text, "writes what the load reads within"));
        }
}

TEST_CASE("What cannot be told ahead stays, with its reason") {
  const auto reason = [](const std::string& text) {
    const Outcome result = rewrite(text, "force");
    CHECK(result.change == Change::unchanged);
    return result.text;
  };
  // The end of the loop depends on loaded data.
  CHECK(contains(reason(loop(sum, "setp.ne.u32 %p2, %r6, 0;")), "the end of the loop is not known ahead"));
  // So does the address.
  CHECK(contains(reason(loop("ld.global.u32 %r6, [%rd5];\ncvt.u64.u32 %rd7, %r6;\nadd.s64 %rd8, %rd1, %rd7;\n"
                             "ld.global.u32 %r7, [%rd8];\nadd.u32 %r5, %r5, %r7;")),
                 "its address is not known ahead: it depends on loaded data"));
  CHECK(contains(reason(loop("ld.global.u32 %r6, [%rd5];\nadd.u32 %r5, %r5, %r6;")), "the same in every trip"));
  CHECK(contains(reason(loop("ld.volatile.global.u32 %r6, [%rd4];\nadd.u32 %r5, %r5, %r6;")), "volatile or ordered"));
  CHECK(contains(reason(loop("ld.global.cs.u32 %r6, [%rd4];\nadd.u32 %r5, %r5, %r6;")), "cache operator"));
  CHECK(contains(reason(loop(sum + "\n@%p2 exit;")), "a thread may end inside the loop"));
}

TEST_CASE("Fences and ordered accesses keep loads in their place, but not loads of read-only data") {
  const std::string read_only = "ld.global.nc.u32 %r6, [%rd4];\nadd.u32 %r5, %r5, %r6;";
  for (const char* order : {"membar.gl;", "fence.acq_rel.gpu;", "ld.acquire.gpu.global.u32 %r9, [%rd5];",
                            "st.release.gpu.global.u32 [%rd5], %r4;", "atom.acquire.gpu.global.add.u32 %r9, [%rd5], 1;",
                            "ld.volatile.global.u32 %r9, [%rd5];"}) {
    CAPTURE(order);
    CHECK(rewrite(loop(sum + "\n" + order), "force,form=ring").change == Change::unchanged);
    CHECK(rewrite(loop(read_only + "\n" + order), "force,form=ring").change == Change::changed);
    // A prefetch has no visible effect.
    CHECK(rewrite(loop(sum + "\n" + order), "force,form=prefetch").change == Change::changed);
  }
}

TEST_CASE("Forms need what they need") {
  CHECK(contains(rewrite(loop(sum, "setp.lt.u32 %p2, %r4, %r1;", "sm_75"), "force,form=ring").text, "sm_80"));
  CHECK(rewrite(loop(sum, "setp.lt.u32 %p2, %r4, %r1;", "sm_50"), "force").change == Change::changed);
  CHECK(rewrite(loop(sum, "setp.lt.u32 %p2, %r4, %r1;", "sm_50"), "force,form=prefetch").change == Change::changed);
  // cp.async cannot copy two bytes; a register can.
  const std::string narrow = "ld.global.u16 %h1, [%rd4];\ncvt.u32.u16 %r6, %h1;\nadd.u32 %r5, %r5, %r6;";
  CHECK(contains(rewrite(loop(narrow), "force,form=ring").text, "4, 8 or 16 bytes"));
  CHECK(rewrite(loop(narrow), "force").change == Change::changed);
  // The kernel's own groups would be counted with those of the ring.
  const std::string own = sum + "\ncp.async.ca.shared.global [%r5], [%rd4], 4;\n";
  CHECK(contains(rewrite(loop(own), "force,form=ring").text, "asynchronous copies of its own"));
  // 1,024 threads of 16 bytes in 4 stages exceed the shared memory.
  const std::string wide = "ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd4];\nadd.u32 %r5, %r6, %r9;";
  CHECK(contains(rewrite(loop(wide, "setp.lt.u32 %p2, %r4, %r1;", "sm_80", ".reqntid 1024\n"), "force,form=ring").text,
                 "more shared memory than there is"));
}

TEST_CASE("A ring for a block of unknown size asks the launch") {
  const Outcome result = rewrite(loop(sum, "setp.lt.u32 %p2, %r4, %r1;", "sm_80", ""), "force,form=ring,threads=96");
  CHECK(result.change == Change::changed);
  REQUIRE(result.ledger.size() == 1);
  CHECK(result.ledger[0].discharge == Discharge::launch_checked);
  CHECK(result.ledger[0].reason == "ntid.x*ntid.y*ntid.z <= 96");
}

TEST_CASE(
    "A launch predicate for run-ahead: with `few`, loads that wait only with few warps on an SM ask for a small grid") {
  // Much work in a trip: with all warps that fit, it hides the load.
  std::string work = sum;
  for (int i = 0; i < 12; ++i)
    work += "mad.lo.u32 %r5, %r5, %r5, %r6;";
  const std::string header = ".reqntid 256\n";
  const std::string text = loop(work, "setp.lt.u32 %p2, %r4, %r1;", "sm_80", header);
  CHECK(rewrite(text, "").change == Change::unchanged);
  const Outcome result = rewrite(text, "few");
  CHECK(result.change == Change::changed);
  const auto asks = [](const transforms::Obligation& entry) {
    return entry.discharge == Discharge::launch_checked && entry.reason.starts_with("nctaid.x*nctaid.y*nctaid.z <= ");
  };
  REQUIRE(std::ranges::count_if(result.ledger, asks) == 1);
  // The number of blocks with this many warps that 108 SMs hold; 0 if a block has more.
  const std::string reason = std::ranges::find_if(result.ledger, asks)->reason;
  const auto predicate = launch::LaunchExpression::parse(reason);
  REQUIRE(predicate);
  const size_t bracket = reason.find('(');
  const unsigned long warps = std::stoul(reason.substr(bracket + 1)), blocks = warps / 8;
  const auto holds = [&](uint32_t grid, uint32_t block) {
    launch::LaunchFacts facts;
    facts.grid = {grid, 1, 1};
    facts.block = {block, 1, 1};
    return predicate->holds(facts);
  };
  CHECK(holds(static_cast<uint32_t>(108 * blocks), 256));
  CHECK(!holds(static_cast<uint32_t>(108 * blocks) + 1, 256));
  CHECK(!holds(1, 1024 * 2));
}

TEST_CASE("Clocks of a trip, by hand") {
  ir::Machine machine;
  machine.schedulers = 4;
  machine.issue_rate = 1;
  machine.sms = 10;
  machine.clock_mhz = 1000;
  machine.memory.achieved_dram_gb_per_second = 100; // 10 bytes per clock and SM
  machine.memory.l2_bytes_per_clock = 20;
  transforms::legal::TripWork work;
  work.instructions = 8;
  work.ahead_latency = 400;
  work.staying_latency = 20;
  CHECK(transforms::legal::trip_clocks(machine, work, 2, 0) == 408);     // one warp's chain
  CHECK(transforms::legal::trip_clocks(machine, work, 2, 300) == 108);   // a part of it elsewhere
  CHECK(transforms::legal::trip_clocks(machine, work, 2, 1000) == 28);   // what stays is waited for
  CHECK(transforms::legal::trip_clocks(machine, work, 64, 1000) == 128); // 64 * 8 / 4
  work.dram_bytes = 128;
  CHECK(transforms::legal::trip_clocks(machine, work, 64, 1000) == doctest::Approx(819.2)); // 64 * 128 / 10
  work.dram_bytes = 0;
  work.l2_bytes = 128;
  CHECK(transforms::legal::trip_clocks(machine, work, 64, 1000) == doctest::Approx(409.6));
}

TEST_CASE("Few warps win, full machines stay as they are") {
  const std::string text = loop(sum);
  CHECK(rewrite(text, "warps=2").change == Change::changed);
  const Outcome full = rewrite(loop(sum, "setp.lt.u32 %p2, %r4, %r1;", "sm_80", ".reqntid 256\n"), "");
  CHECK(full.change == Change::unchanged);
  CHECK(contains(full.text, "a trip of 64 warps takes"));
}

TEST_CASE("Comparisons that are the same in whole warps, against each warp's threads") {
  unsigned found = 0;
  for (int64_t offset : {-32, -1, 0, 1, 31, 32, 40})
    for (int64_t bound = -1; bound < 140; ++bound)
      for (bool or_equal : {false, true}) {
        bool same = true;
        for (int64_t warp = 0; warp < 1024; warp += 32)
          for (int64_t thread = warp; thread < warp + 32; ++thread) {
            const auto holds = [&](int64_t x) { return or_equal ? x + offset <= bound : x + offset < bound; };
            same = same && holds(thread) == holds(warp);
          }
        const bool said = transforms::legal::parts_between_warps(offset, bound, or_equal);
        CHECK((!said || same));
        found += said;
        // No claims near the ends of the range of numbers, full ones elsewhere.
        if (offset >= 0 && bound >= 0) CHECK(said == same);
      }
  CHECK(found > 0);
}

TEST_CASE("Branches by whole warps are marked where warps lie in rows") {
  const std::string exchange = "shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;";
  const auto text = [&](const std::string& directive, const std::string& test, std::string body = "") {
    if (body.empty()) body = exchange;
    return ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p)\n" + directive +
           "{\n.reg .pred %p<3>;\n.reg .b32 %r<5>;\n.reg .b64 %rd<5>;\nld.param.u64 %rd1, [p];\nmov.u32 %r1, "
           "%tid.x;\n" +
           test + "\n@%p1 bra $L;\n" + body +
           "\nst.global.u32 [%rd1], %r1;\n$L:\nst.global.u32 [%rd1+4], %r1;\nret;\n}\n";
  };
  CHECK(contains(rewrite(text(".reqntid 128, 2\n", "setp.ge.u32 %p1, %r1, 64;"), "force").printed, "bra.uni"));
  CHECK(contains(rewrite(text(".reqntid 64, 4\n", "setp.gt.s32 %p1, %r1, 31;"), "force").printed, "bra.uni"));
  CHECK_FALSE(contains(rewrite(text(".reqntid 128, 2\n", "setp.ge.u32 %p1, %r1, 63;"), "force").printed, "bra.uni"));
  // ptxas finds it itself if the block is one row; predicates suffice if no lanes exchange values.
  CHECK(rewrite(text(".reqntid 256\n", "setp.ge.u32 %p1, %r1, 64;"), "force").change == Change::unchanged);
  CHECK_FALSE(
      contains(rewrite(text(".reqntid 128, 2\n", "setp.ge.u32 %p1, %r1, 64;", "add.s32 %r1, %r1, 1;"), "force").printed,
               "bra.uni"));
  const Outcome asked = rewrite(text("", "setp.lt.s32 %p1, %r1, 96;"), "force");
  REQUIRE(asked.ledger.size() == 1);
  CHECK(asked.ledger[0].reason == "ntid.x % 32 == 0 || ntid.y * ntid.z == 1");
  // Two rows of 16 threads make a warp.
  CHECK(rewrite(text(".reqntid 16, 16\n", "setp.lt.s32 %p1, %r1, 32;"), "force").change == Change::unchanged);
}

} // namespace ptxrewrite::tests::run_ahead_test
