// --check of tensor memory: a kernel with correct waits has no findings; each planted fault has one.
#include "tests/unit/emulator/tensor_memory/product_statement.h"
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

namespace ptxrewrite::emulator::tensor_memory_test::check_test {
namespace {

TensorKernel good_kernel() {
  TensorKernel kernel;
  kernel.columns = 64;
  kernel.shared.resize(16384);
  kernel.parameters = {descriptor(0, 128, 256, Swizzle::none), descriptor(8192, 128, 256, Swizzle::none),
                       1 << 4 | 32 / 8 << 17 | 128 / 16 << 24};
  kernel.operations = "  tcgen05.mma.cta_group::1.kind::f16 [%tm], %x0, %x1, %w2, %yes;\n";
  return kernel;
}

// The messages, and the line of text of each.
std::vector<std::string> findings(const TensorKernel& kernel) {
  LaunchRequest request;
  request.check = true;
  const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * kernel.columns), request);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  std::vector<std::string> messages;
  for (const Finding& finding : run.result.findings)
    messages.push_back(finding.where.message);
  return messages;
}

bool has(const std::vector<std::string>& messages, std::string_view text) {
  for (const std::string& message : messages)
    if (message.find(text) != std::string::npos) return true;
  return false;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
}

PtxRun run_text(const std::string& text, const TensorKernel& kernel) {
  LaunchRequest request{.kernel = "k", .block = {128}};
  request.check = true;
  std::vector<Argument> arguments = {buffer_of(kernel.shared), zeros<uint32_t>(128 * kernel.columns),
                                     zeros<uint32_t>(128 * kernel.columns)};
  std::vector<uint64_t> parameters = kernel.parameters;
  parameters.resize(8);
  for (uint64_t parameter : parameters)
    arguments.emplace_back(std::in_place_type<uint64_t>, parameter);
  return run_ptx(text, request, arguments);
}

std::vector<std::string> findings_of_text(const std::string& text, const TensorKernel& kernel) {
  const PtxRun run = run_text(text, kernel);
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  std::vector<std::string> messages;
  for (const Finding& finding : run.result.findings)
    messages.push_back(finding.where.message);
  return messages;
}

TEST_CASE("a kernel that waits as it must") {
  const std::vector<std::string> messages = findings(good_kernel());
  for (const std::string& message : messages)
    MESSAGE(message);
  CHECK(messages.empty());
}

TEST_CASE("D is read before its commit has been waited for") {
  TensorKernel kernel = good_kernel();
  kernel.wait = "  bar.sync 0;\n";
  CHECK(has(findings(kernel),
            "tensor memory: cells that this instruction reads are written by an asynchronous operation "
            "whose commit the warp knows nothing of"));
}

TEST_CASE("one warp waits, and a barrier tells the others") {
  TensorKernel kernel = good_kernel();
  kernel.wait = "  @!%first bra TOLD;\n" + kernel.wait + "TOLD:\n  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n";
  CHECK(findings(kernel).empty());
}

TEST_CASE("stores that nothing orders with the product, or that have not been waited for") {
  const TensorKernel kernel = good_kernel();
  std::string text = kernel_text(kernel);
  replace(text, "  tcgen05.wait::st.sync.aligned;\n", "");
  CHECK(has(findings_of_text(text, kernel), "with no tcgen05.wait::st behind"));
  text = kernel_text(kernel);
  replace(text, "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @!%one bra ISSUED;\n",
          "  @!%one bra ISSUED;\n");
  CHECK(has(findings_of_text(text, kernel), "tensor memory: cells that this instruction writes are"));
}

// PTX ISA 9.7.16.6.4: with .relaxed operations tcgen05.fence makes the order; a commit needs none before it.
TEST_CASE("a relaxed wait for a commit, with and without the fence after it") {
  TensorKernel kernel = good_kernel();
  const std::string fence = "  tcgen05.fence::after_thread_sync;\n";
  kernel.wait = "WAIT:\n  mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %done, [bar], 0;\n"
                "  @!%done bra WAIT;\n";
  CHECK(has(findings(kernel), "or a .relaxed one without tcgen05.fence::after_thread_sync"));
  kernel.wait += fence;
  CHECK(findings(kernel).empty());
}

TEST_CASE("stores that a relaxed arrival tells of, with and without the fences on its sides") {
  for (const bool before : {true, false})
    for (const bool after : {true, false}) {
      CAPTURE(before);
      CAPTURE(after);
      TensorKernel kernel = good_kernel();
      kernel.begin = "  .shared .align 8 .b64 ready;\n  @%one mbarrier.init.shared::cta.b64 [ready], 128;\n";
      kernel.wait = "  bar.warp.sync -1;\n" + kernel.wait + "  bar.warp.sync -1;\n";
      std::string text = kernel_text(kernel);
      replace(text,
              "  tcgen05.fence::before_thread_sync;\n  bar.sync 0;\n  @!%one bra ISSUED;\n"
              "  tcgen05.fence::after_thread_sync;\n",
              std::string(before ? "  tcgen05.fence::before_thread_sync;\n" : "") +
                  "  mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [ready];\n  @!%one bra ISSUED;\nREADY:\n"
                  "  mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %done, [ready], 0;\n  @!%done bra READY;\n" +
                  (after ? "  tcgen05.fence::after_thread_sync;\n" : ""));
      const std::vector<std::string> messages = findings_of_text(text, kernel);
      if (before && after)
        CHECK(messages.empty());
      else
        CHECK(has(messages, "nothing orders the two (.relaxed operations do with a tcgen05.fence on each side)"));
    }
}

TEST_CASE("tcgen05.fence does not order accesses to shared memory") {
  TensorKernel kernel = good_kernel();
  kernel.begin = "  .shared .align 8 .b64 ready;\n  @%one mbarrier.init.shared::cta.b64 [ready], 32;\n"
                 "  .shared .align 4 .b32 word;\n";
  kernel.behind = "  setp.eq.u32 %no, %warp, 1;\n  @%no st.shared.u32 [word], %t;\n"
                  "  tcgen05.fence::before_thread_sync;\n"
                  "  @%no mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [ready];\nREADY:\n"
                  "  mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %done, [ready], 0;\n  @!%done bra READY;\n"
                  "  tcgen05.fence::after_thread_sync;\n  @%first ld.shared.u32 %v, [word];\n";
  CHECK(has(findings(kernel), "race"));
  replace(kernel.behind, "arrive.relaxed", "arrive.release");
  replace(kernel.behind, "parity.relaxed", "parity.acquire");
  CHECK_FALSE(has(findings(kernel), "race"));
}

TEST_CASE("a product that overwrites what warps still load") {
  TensorKernel kernel = good_kernel();
  kernel.before = "  tcgen05.wait::st.sync.aligned;\n  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%mine];\n";
  CHECK(has(findings(kernel), "are read by warp 0, with no tcgen05.wait::ld behind"));
  kernel.before += "  tcgen05.wait::ld.sync.aligned;\n";
  CHECK(findings(kernel).empty());
}

TEST_CASE("an operand in shared memory that is written while the product may read it") {
  TensorKernel kernel = good_kernel();
  const std::string write = "  mov.u32 %s, tile;\n  @%one st.shared.u32 [%s], 1;\n";
  kernel.behind = write;
  CHECK(findings(kernel).empty());
  kernel.wait = write + kernel.wait;
  kernel.behind = "";
  CHECK(has(findings(kernel), "race"));
  TensorKernel other = good_kernel();
  std::string text = kernel_text(other);
  replace(text, "  fence.proxy.async;\n", "");
  CHECK(has(findings_of_text(text, other), "missing fence"));
}

TEST_CASE("columns that are still allocated when the block ends") {
  TensorKernel kernel = good_kernel();
  kernel.deallocate = "\n";
  CHECK(findings(kernel) ==
        std::vector<std::string>{"tensor memory: the 512 columns from 0 on are still allocated when the block ends"});
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::check_test
