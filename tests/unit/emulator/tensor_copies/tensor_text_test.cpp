// The statements of these tests, and all others of tensor copies that the emulator supports, are legal: ptxas assembles
// them, and the emulator accepts them.
#include "support/ptxas.h"
#include "tests/unit/emulator/tensor_copies/tensor_run.h"

#include <iostream>

namespace ptxrewrite::emulator::tensor_text_test {
namespace {

std::string braces(const char* prefix, size_t count) {
  return "{" + registers(prefix, count) + "}";
}

std::vector<std::string> statements() {
  std::vector<std::string> made;
  const std::string load = "cp.async.bulk.tensor.", done = ".mbarrier::complete_tx::bytes";
  for (size_t rank = 1; rank <= 5; ++rank) {
    const std::string dimensions = std::to_string(rank) + "d";
    const std::string place = "[%map, " + braces("c", rank) + "]";
    made.push_back(load + dimensions + ".shared::cluster.global" + done + " [%tile], " + place + ", [%bar]");
    made.push_back(load + dimensions + ".shared::cta.global.tile" + done + ".L2::cache_hint [%tile+128], " + place +
                   ", [%bar], %policy");
    made.push_back(load + dimensions + ".shared::cluster.global.tile" + done + ".multicast::cluster [%tile], " + place +
                   ", [%bar], %h0");
    made.push_back(load + dimensions + ".shared::cluster.global.tile" + done + ".cta_group::1 [%tile], " + place +
                   ", [%bar]");
    made.push_back(load + dimensions + ".global.shared::cta.tile.bulk_group " + place + ", [%tile]");
    made.push_back(load + dimensions + ".global.shared::cta.bulk_group.L2::cache_hint " + place + ", [%tile], %policy");
    made.push_back("cp.async.bulk.prefetch.tensor." + dimensions + ".L2.global.tile " + place);
    for (const char* operation : {"add", "min", "max", "inc", "dec", "and", "or", "xor"})
      made.push_back("cp.reduce.async.bulk.tensor." + dimensions + ".global.shared::cta." + operation +
                     ".tile.bulk_group " + place + ", [%tile]");
    if (rank < 3) continue;
    const std::string offsets = braces("h", rank - 2);
    made.push_back(load + dimensions + ".shared::cluster.global.im2col" + done + " [%tile], " + place + ", [%bar], " +
                   offsets);
    made.push_back(load + dimensions + ".shared::cluster.global.im2col" + done + ".multicast::cluster [%tile], " +
                   place + ", [%bar], " + offsets + ", 1");
    made.push_back("cp.async.bulk.prefetch.tensor." + dimensions + ".L2.global.im2col " + place + ", " + offsets);
    made.push_back(load + dimensions + ".global.shared::cta.im2col_no_offs.bulk_group " + place + ", [%tile]");
    made.push_back("cp.reduce.async.bulk.tensor." + dimensions + ".global.shared::cta.add.im2col_no_offs.bulk_group " +
                   place + ", [%tile]");
  }
  const std::string rows = "[%map, " + braces("c", 5) + "]";
  made.push_back(load + "2d.shared::cta.global.tile::gather4" + done + " [%tile], " + rows + ", [%bar]");
  made.push_back(load + "2d.shared::cluster.global.tile::gather4" + done + " [%tile], " + rows + ", [%bar]");
  made.push_back(load + "2d.global.shared::cta.tile::scatter4.bulk_group " + rows + ", [%tile]");
  made.push_back("cp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 " + rows);
  for (const char* space : {".global", ".shared::cta", ""}) {
    const std::string at = std::string(space) + ".b1024.b32 [%tensor], ";
    for (const char* field :
         {"rank", "elemtype", "interleave_layout", "swizzle_mode", "swizzle_atomicity", "fill_mode"})
      made.push_back("tensormap.replace.tile." + std::string(field) + at + "1");
    for (const char* field : {"box_dim", "global_dim", "element_stride"})
      made.push_back("tensormap.replace.tile." + std::string(field) + at + "4, %c0");
    made.push_back("tensormap.replace.tile.global_address" + std::string(space) + ".b1024.b64 [%tensor], %d0");
    made.push_back("tensormap.replace.tile.global_stride" + std::string(space) + ".b1024.b64 [%tensor], 3, %d0");
  }
  made.push_back("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%tensor], "
                 "[%tile], 128");
  made.push_back("fence.proxy.tensormap::generic.acquire.gpu [%tensor], 128");
  made.push_back("fence.proxy.tensormap::generic.release.cta");
  made.push_back("prefetch.tensormap [%map]");
  return made;
}

TEST_CASE("statements of tensor copies: ptxas assembles them, the emulator takes them") {
  TensorSetup setup;
  for (const std::string& statement : statements())
    setup.copy += "  " + statement + ";\n";
  const std::string text = tensor_kernel(setup);
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", text), diagnostics);
  REQUIRE_MESSAGE(module, diagnostics.list().front().message);
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  const Status status = (*program)->check_supported("k");
  CHECK_MESSAGE(status, status.error().message);
  if (!find_ptxas()) {
    std::cout << "skipped: there is no ptxas to judge tensor copies\n";
    return;
  }
  Result<PtxasRun> run = assemble(text, {.optimization_level = 0});
  REQUIRE(run);
  CHECK_MESSAGE(run->ok, run->messages);
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_text_test
