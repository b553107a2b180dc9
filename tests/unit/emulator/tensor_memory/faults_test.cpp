// Errors of a kernel with tensor memory end in a fault with a message, for all addresses and descriptors.
#include "tests/unit/emulator/tensor_memory/tensor_kernel.h"

#include <random>

namespace ptxrewrite::emulator::tensor_memory_test::faults_test {
namespace {

constexpr uint64_t version = uint64_t(1) << 46;
constexpr uint32_t f32_of_f16_128x64 = 1 << 4 | 64 / 8 << 17 | 128 / 16 << 24;

std::string fault(TensorKernel kernel) {
  kernel.shared.resize(std::max<size_t>(kernel.shared.size(), 16384));
  const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * kernel.columns));
  CHECK_MESSAGE(run.error.empty(), run.error);
  CHECK(run.result.failure);
  return run.failure();
}

std::string fault_behind(const std::string& text) {
  TensorKernel kernel;
  kernel.behind = text;
  return fault(kernel);
}

std::string fault_of_product(uint64_t a, uint64_t b, uint64_t descriptor, const std::string& d = "%tm") {
  TensorKernel kernel;
  kernel.operations = "  mov.b32 %w7, " + d + ";\n  tcgen05.mma.cta_group::1.kind::f16 [%w7], %x0, %x1, %w2, %no;\n";
  kernel.parameters = {a, b, descriptor};
  return fault(kernel);
}

TEST_CASE("loads and stores outside of allocations and of the warp's lanes") {
  const std::string ld = "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%v];\n";
  CHECK(fault_behind("  add.u32 %v, %mine, 512;\n" + ld) ==
        "an access in tensor memory takes columns 512 to 512, of 512");
  CHECK(fault_behind("  add.u32 %v, %mine, 0x08000000;\n" + ld).find("warp 0 accesses lanes 2048 to 2079") == 0);
  CHECK(fault_behind("  add.u32 %v, %mine, 0x00100000;\n" + ld).find("warp 0 accesses lanes 16 to 47") == 0);
  CHECK(fault_behind("  add.u32 %v, %mine, 500;\n  tcgen05.st.sync.aligned.16x256b.x2.b32 [%v], " + registers("%r", 8) +
                     ";\n") == "an access in tensor memory takes columns 500 to 515, of 512");
  CHECK(fault_behind("  add.u32 %v, %mine, %t;\n" + ld) ==
        "an address in tensor memory that differs between lanes of the warp");
  CHECK(fault_behind("  tcgen05.ld.sync.aligned.16x32bx2.x4.b32 {%r0, %r1, %r2, %r3}, [%mine], 100000;\n") ==
        "an access in tensor memory takes columns 512 to 515, of 512");
}

TEST_CASE("allocations") {
  const auto alone = [](const std::string& body) {
    const PtxRun run =
        run_ptx(".version 9.4\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\n  .shared .b32 "
                "place;\n  .reg .b32 %r<8>, %v;\n  .reg .pred %p;\n" +
                    body + "  ret;\n}\n",
                {.kernel = "k", .block = {64}});
    CHECK_MESSAGE(run.error.empty(), run.error);
    return run.failure();
  };
  const std::string alloc = "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [place], ";
  const std::string one_warp = "  mov.u32 %v, %tid.x;\n  setp.ge.u32 %p, %v, 32;\n  @%p bra END;\n";
  CHECK(alone(one_warp + "  mov.u32 %v, 48;\n" + alloc + "%v;\nEND:\n") ==
        "an allocation of 48 columns of tensor memory, which is no power of two from 32 to 512");
  CHECK(alone(one_warp + "  mov.u32 %v, 4294967295;\n" + alloc + "%v;\nEND:\n")
            .find("an allocation of 4294967295 columns") == 0);
  CHECK(alone(one_warp + "  tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n" + alloc + "32;\nEND:\n") ==
        "tcgen05.alloc in a block that has given up the right to allocate");
  CHECK(alone(one_warp + alloc +
              "64;\n  ld.shared.u32 %r0, [place];\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;\nEND:\n") ==
        "tcgen05.dealloc of 32 columns at 0x0 of tensor memory, which is no allocation");
  CHECK(alone(one_warp + alloc +
              "64;\n  mov.u32 %r0, 0xffffffff;\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;\nEND:\n") ==
        "tcgen05.dealloc of 64 columns at 0xffffffff of tensor memory, which is no allocation");
  CHECK(
      alone(one_warp + alloc + "32;\n  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 32;\nEND:\n") ==
      ".cta_group::2 in a block that has executed tcgen05 instructions with .cta_group::1");
  CHECK(alone(one_warp + "  tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [place], 32;\nEND:\n") ==
        ".cta_group::2 in a block that has no other one in its cluster to make a pair with");
  // With .exclusive (PTX ISA 9.4): a multiple of 32, the only allocation, given back with .exclusive.
  const std::string exclusive = "  tcgen05.alloc.exclusive.cta_group::1.sync.aligned.shared::cta.b32 [place], ";
  const std::string place = "  ld.shared.u32 %r0, [place];\n";
  const std::string give_back = "  tcgen05.dealloc.exclusive.cta_group::1.sync.aligned.b32 %r0, 96;\n";
  CHECK(alone(one_warp + exclusive + "96;\n" + place + give_back + alloc + "64;\nEND:\n") == "");
  CHECK(alone(one_warp + "  mov.u32 %v, 80;\n" + exclusive + "%v;\nEND:\n") ==
        "an allocation of 80 columns of tensor memory, which is no multiple of 32 from 32 to 512");
  CHECK(alone(one_warp + exclusive + "96;\n" + place +
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 96;\nEND:\n") ==
        "tcgen05.dealloc of 96 columns at 0x0 of tensor memory, which is no allocation");
  CHECK(alone(one_warp + exclusive + "96;\n" + alloc + "32;\nEND:\n").find("nothing that they wait for will come") !=
        std::string::npos);
  CHECK(alone(one_warp + alloc + "32;\n" + exclusive + "96;\nEND:\n").find("nothing that they wait for will come") !=
        std::string::npos);
  // PTX ISA 6.4.1: an address is truncated to the width of the state space. A generic one has the offset in its low
  // half.
  CHECK(alone(one_warp +
              "  .reg .b64 %a;\n  mov.u64 %a, place;\n  cvta.shared.u64 %a, %a;\n"
              "  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%a], 64;\n  ld.shared.u32 %r0, [place];\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 64;\nEND:\n") == "");
  // Both warps request all columns, and neither releases them.
  CHECK(alone(alloc + "512;\n").find("nothing that they wait for will come") != std::string::npos);
  // Use after dealloc.
  CHECK(alone(one_warp + alloc +
              "32;\n  ld.shared.u32 %r0, [place];\n"
              "  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r0, 32;\n"
              "  tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r0];\nEND:\n") ==
        "an access in tensor memory takes columns 0 to 0, which are not all allocated");
}

TEST_CASE("an allocation waits for one that another warp gives back") {
  const PtxRun run = run_ptx(R"(.version 8.8
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 out)
{
  .shared .b32 place[2];
  .reg .b32 %r<8>, %s, %i;
  .reg .b64 %p;
  .reg .pred %q;
  mov.u32 %r0, %tid.x;
  shr.u32 %r1, %r0, 5;
  mov.u32 %s, place;
  mad.lo.u32 %s, %r1, 4, %s;
  mov.u32 %i, 0;
AGAIN:
  tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s], 512;
  ld.shared.u32 %r2, [%s];
  tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 512;
  add.u32 %i, %i, 1;
  setp.lt.u32 %q, %i, 50;
  @%q bra AGAIN;
  ld.param.u64 %p, [out];
  st.global.u32 [%p], %i;
  ret;
}
)",
                             {.kernel = "k", .block = {64}}, {zeros<uint32_t>(1)});
  REQUIRE_MESSAGE(run.ok(), run.error << run.failure());
  CHECK(run.buffer<uint32_t>(0)[0] == 50);
}

TEST_CASE("descriptors of matrices") {
  const uint64_t good = version | uint64_t(8) << 16 | uint64_t(16) << 32;
  CHECK(fault_of_product(good & ~version, good, f32_of_f16_128x64) ==
        "matrix A: a matrix descriptor (0x1000080000) that is none of tcgen05's: bits 46 to 48 are 0, not 1");
  CHECK(fault_of_product(good | 0x3fff, good, f32_of_f16_128x64)
            .find("the descriptor of matrix A describes 16 bytes at "
                  "shared 0x3fff0") == 0);
  CHECK(fault_of_product(good, good | 0x3f0, f32_of_f16_128x64).find("the descriptor of matrix B describes") == 0);
  CHECK(fault_of_product(good, good | uint64_t(3) << 61, f32_of_f16_128x64).find("matrix B: a matrix descriptor") == 0);
  CHECK(fault_of_product(good, good | uint64_t(1) << 61, f32_of_f16_128x64).find("128 bytes by 32") !=
        std::string::npos);
}

TEST_CASE("descriptors of instructions, and D outside of its allocation") {
  const uint64_t good = version | uint64_t(8) << 16 | uint64_t(16) << 32;
  CHECK(fault_of_product(good, good, 0) ==
        "an instruction descriptor of a product of 0 rows and 0 columns, which .cta_group::1 has not");
  CHECK(fault_of_product(good, good, 0xffffffff).find("types of A and B") != std::string::npos);
  CHECK(fault_of_product(good, good, f32_of_f16_128x64 | 4).find("sparse product in an instruction without .sp") !=
        std::string::npos);
  CHECK(fault_of_product(good, good, f32_of_f16_128x64 | 1 << 5).find("a type of D") != std::string::npos);
  CHECK(fault_of_product(good, good, f32_of_f16_128x64, "449") ==
        "D in tensor memory takes columns 449 to 512, of 512");
  CHECK(fault_of_product(good, good, f32_of_f16_128x64, "0xffffffff").find("lane 65535, where it begins in lane 0") !=
        std::string::npos);
  CHECK(fault_of_product(good, good, f32_of_f16_128x64, "0x00100000").find("lane 16, where it begins in lane 0") !=
        std::string::npos);
}

TEST_CASE("any descriptors and addresses end in a result or a fault") {
  std::mt19937_64 random(7);
  unsigned faults = 0;
  for (unsigned i = 0; i < 200; ++i) {
    TensorKernel kernel;
    kernel.shared.resize(4096);
    const uint64_t layout = i % 2 ? version : 0, small = i % 4 == 3 ? 0xe0000fff003f00ff : UINT64_MAX;
    kernel.parameters = {(random() & small) | layout, (random() & small) | layout,
                         i % 3 ? f32_of_f16_128x64 ^ (uint32_t(1) << random() % 32) : random(),
                         random() % 3 ? 0 : random()};
    const char* operations[] = {
        "  tcgen05.mma.cta_group::1.kind::f16 [%w3], %x0, %x1, %w2, %yes;\n",
        "  tcgen05.mma.cta_group::1.kind::f8f6f4 [%w3], [%w1], %x1, %w2, %yes;\n",
        "  tcgen05.mma.ws.cta_group::1.kind::i8 [%w3], %x0, %x1, %w2, %yes;\n",
        "  tcgen05.mma.cta_group::1.kind::mxf4nvf4.block_scale.block16 [%w3], %x0, %x1, %w2, [%w0], [%w1], %yes;\n",
        "  tcgen05.cp.cta_group::1.128x256b [%w3], %x0;\n",
        "  tcgen05.cp.cta_group::1.64x128b.warpx2::01_23.b8x16.b6x16_p32 [%w3], %x0;\n",
    };
    kernel.operations = operations[random() % std::size(operations)];
    LaunchRequest request;
    request.late_copies = random() % 2;
    request.check = random() % 4 == 0;
    const PtxRun run = run_tensor_kernel(kernel, std::vector<uint32_t>(128 * kernel.columns), request);
    CHECK_MESSAGE(run.error.empty(), run.error);
    faults += run.result.failure.has_value();
  }
  CHECK(faults > 100);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_memory_test::faults_test
