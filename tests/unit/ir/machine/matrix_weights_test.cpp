// Tensor-core instructions: machine instructions against ptxas, and times against the peaks of data sheets.
#include "ir/machine/figures/expansion.h"
#include "ir/machine/figures/figures.h"
#include "ir/machine/figures/latency.h"
#include "ir/machine/figures/matrix_work.h"
#include "ir/machine/select/lowering.h"
#include "ir/ssa/ssa.h"
#include "support/ptxas.h"
#include "tests/unit/grammar/read.h"

#include <doctest/doctest.h>

#include <cmath>

namespace ptxrewrite::tests::matrix_weights_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

struct Product {
  const char* mnemonic;
  unsigned d, a, b;     // registers of D (and C), A and B
  unsigned oldest;      // architecture
  bool doubles = false; // double precision
};

constexpr Product products[] = {
    {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32", 8, 2, 2, 75},
    {"mma.sync.aligned.m8n8k4.row.col.f16.f16.f16.f16", 4, 2, 2, 75},
    {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32", 4, 2, 1, 75},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 4, 4, 2, 80},
    {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", 4, 4, 2, 80},
    {"mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 4, 4, 2, 80},
    {"mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32", 2, 1, 1, 75},
    {"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 4, 4, 2, 80},
    {"mma.sync.aligned.m16n8k256.row.col.s32.b1.b1.s32.and.popc", 4, 4, 2, 80},
    {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 2, 1, 1, 80, true},
    {"mma.sync.aligned.m16n8k16.row.col.f64.f64.f64.f64", 4, 8, 4, 90, true},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 8, 8, 8, 75},
    {"wmma.mma.sync.aligned.row.row.m16n16k16.f16.f16", 4, 8, 8, 75},
    {"wmma.mma.sync.aligned.row.col.m32n8k16.f32.f32", 8, 8, 8, 75},
    {"wmma.mma.sync.aligned.row.col.m16n16k16.s32.s8.s8.s32", 8, 2, 2, 75},
    {"wmma.mma.sync.aligned.row.col.m16n16k8.f32.tf32.tf32.f32", 8, 4, 4, 80},
    {"wmma.mma.sync.aligned.row.col.m8n8k4.f64.f64.f64.f64.rn", 2, 1, 1, 80, true},
};

struct Move {
  const char* mnemonic;
  unsigned registers;
  bool shared, stores;
};

constexpr Move moves[] = {
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16", 8, false, false},
    {"wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", 8, true, false},
    {"wmma.load.b.sync.aligned.row.m16n16k16.shared.f16", 8, true, false},
    {"wmma.load.c.sync.aligned.row.m16n16k16.global.f32", 8, false, false},
    {"wmma.load.c.sync.aligned.row.m16n16k16.shared.f32", 8, true, false},
    {"wmma.load.a.sync.aligned.row.m16n16k16.global.s8", 2, false, false},
    {"wmma.store.d.sync.aligned.row.m16n16k16.global.f32", 8, false, true},
    {"wmma.store.d.sync.aligned.row.m16n16k16.shared.f32", 8, true, true},
};

std::string group(const std::string& prefix, unsigned count) {
  std::string list = "{";
  for (unsigned i = 0; i < count; ++i)
    list += (i ? ", " : "") + prefix + std::to_string(i);
  return list + "}";
}

std::string kernel(unsigned target, const std::string& body) {
  return ".version 8.4\n.target sm_" + std::to_string(target) +
         "\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u32 stride) {\n"
         ".reg .b64 %rd<4>; .reg .b32 %s, %a<9>, %b<9>, %r<200>; .reg .f32 %c<9>; .reg .f64 %da<9>, %db<9>, %dc<9>;\n"
         "ld.param.u64 %rd1, [p]; ld.param.u32 %s, [stride]; cvta.to.global.u64 %rd2, %rd1; cvta.to.shared.u64 %rd3, "
         "%rd1;\n" +
         body + "ret;\n}\n";
}

std::string loads(const std::string& prefix, unsigned count, unsigned bits, unsigned offset) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "ld.volatile.global.b" + std::to_string(bits) + " " + prefix + std::to_string(i) + ", [%rd2+" +
            std::to_string(offset + 8 * i) + "];\n";
  return text;
}

std::string stores(const std::string& prefix, unsigned count, unsigned bits) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += "st.volatile.global.b" + std::to_string(bits) + " [%rd2+" + std::to_string(8 * i) + "], " + prefix +
            std::to_string(i) + ";\n";
  return text;
}

std::string with_products(const Product& product, unsigned target, unsigned copies) {
  const unsigned bits = product.doubles ? 64 : 32;
  const std::string a = product.doubles ? "%da" : "%a", b = product.doubles ? "%db" : "%b";
  // Sums are single precision where the mnemonic's first type is, words otherwise.
  const bool single = std::string_view(product.mnemonic).find(".f32") != std::string_view::npos;
  const std::string c = product.doubles ? "%dc" : single ? "%c" : "%r";
  std::string body = loads(a, product.a, bits, 0) + loads(b, product.b, bits, 128);
  for (unsigned i = 0; i < copies; ++i) {
    const std::string sums = group(c, product.d);
    body += loads(c, product.d, bits, 256) + product.mnemonic + " " + sums + ", " + group(a, product.a) + ", " +
            group(b, product.b) + ", " + sums + ";\n" + stores(c, product.d, bits);
  }
  return kernel(target, body);
}

std::string with_moves(const Move& move, unsigned target, unsigned copies) {
  const bool single = std::string_view(move.mnemonic).find(".f32") != std::string_view::npos;
  std::string body;
  for (unsigned i = 0; i < copies; ++i) {
    // Each in registers of its own: nothing waits for another.
    const std::string prefix = single ? "%c" : "%r" + std::to_string(i);
    const std::string registers = group(prefix, move.registers);
    const std::string place = std::string(move.shared ? "[%rd3+" : "[%rd2+") + std::to_string(4096 * i) + "]";
    if (move.stores)
      body += loads(prefix, move.registers, 32, 0) + move.mnemonic + " " + place + ", " + registers + ", %s;\n";
    else
      body +=
          std::string(move.mnemonic) + " " + registers + ", " + place + ", %s;\n" + stores(prefix, move.registers, 32);
  }
  return kernel(target, body);
}

// Machine instructions added by each of the copies from the third to the seventh, by ptxas and by our estimate.
struct Added {
  double real = 0, estimated = 0;
};

template <class Text> Added added_by(unsigned target, Text text) {
  Added added;
  for (const int sign : {-1, 1}) {
    const std::string ptx = text(sign < 0 ? 2u : 6u);
    const Result<FiguresByFunction> figures = machine_figures(ptx, "sm_" + std::to_string(target));
    REQUIRE_MESSAGE(figures, figures.error().message);
    added.real += sign * static_cast<double>(figures->at("k").instructions) / 4;
    ReadText read(ptx);
    REQUIRE_MESSAGE(read.ok(), read.messages());
    REQUIRE(construct_ssa(read.function()).ok());
    added.estimated += sign * static_cast<double>(lower(read.function(), target).static_instructions()) / 4;
  }
  return added;
}

double clocks_of(const char* machine, const char* mnemonic) {
  const Machine& on = *find_machine(machine);
  const Form& product = form(known_form(mnemonic));
  return 32 / throughput(on, product).value * expansion_of(product, on.compute_capability, false).instructions;
}

} // namespace

TEST_CASE("matrix products are as many instructions as ptxas makes of them") {
  if (!find_ptxas()) {
    MESSAGE("skipped: no ptxas");
    return;
  }
  for (const unsigned target : {75u, 80u, 90u}) {
    CAPTURE(target);
    for (const Product& product : products) {
      // On newer machines an instruction without hardware support is a call of a function.
      const bool emulated =
          target >= 80 && std::string_view(product.mnemonic).find("m8n8k4.row.col.f") == 17 && !product.doubles;
      if (product.oldest > target || emulated) continue;
      CAPTURE(product.mnemonic);
      const Added added = added_by(target, [&](unsigned copies) { return with_products(product, target, copies); });
      CAPTURE(added.real);
      CAPTURE(added.estimated);
      // On 8.0 there are two empty slots between some products and a store of their results.
      CHECK(std::abs(added.real - added.estimated) <= 2);
    }
    for (const Move& move : moves) {
      CAPTURE(move.mnemonic);
      const Added added = added_by(target, [&](unsigned copies) { return with_moves(move, target, copies); });
      CAPTURE(added.real);
      CAPTURE(added.estimated);
      CHECK(std::abs(added.real - added.estimated) <= 2);
    }
  }
}

// Data sheets: A100 312 TFLOPS in half precision and in bfloat16, 156 in tf32, 624 TOPS of 8 bits, 19.5 TFLOPS in
// double precision; at 1410 MHz on 108 SMs. Two operations are a product and its sum.
TEST_CASE("tensor cores reach the peaks of their data sheets and no more") {
  auto tera_operations = [&](const char* mnemonic, double multiplications) {
    return 2 * multiplications / clocks_of("a100", mnemonic) * 108 * 1410e6 / 1e12;
  };
  auto near = [](double value) { return doctest::Approx(value).epsilon(0.01); };
  CHECK(tera_operations("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32", 16 * 8 * 16) == near(312));
  CHECK(tera_operations("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32", 16 * 8 * 8) == near(312));
  CHECK(tera_operations("wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32", 16 * 16 * 16) == near(312));
  CHECK(tera_operations("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", 16 * 8 * 8) == near(156));
  CHECK(tera_operations("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", 16 * 8 * 32) == near(624));
  CHECK(tera_operations("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", 8 * 8 * 4) == near(19.5));
  // Half of a sparse matrix is not stored: 624 TFLOPS, counted as if it were.
  CHECK(tera_operations("mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", 16 * 8 * 32) == near(624));
  // TITAN V: 110 TFLOPS at 1200 MHz on 80 SMs; four products of 8 x 8 x 4 by instruction.
  const double clocks = clocks_of("titanv", "mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32");
  CHECK(2 * 4 * 8 * 8 * 4 / clocks * 80 * 1200e6 / 1e12 == doctest::Approx(110).epsilon(0.15));
}

// B200: 2.25 PFLOPS in half precision, 4.5 of 8 bits, 9 of 4 bits; each of four warps has 16 rows of wgmma.
TEST_CASE("asynchronous products: one warp's share, and the time of a multiplication by kind") {
  CHECK(matrix_products(form(known_form("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16"))) == 16 * 256 * 16);
  CHECK(matrix_products(form(known_form("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32"))) == 16 * 8 * 8 * 2);
  CHECK(matrix_products(form(known_form("wgmma.mma_async.sp.sync.aligned.m64n8k64.f32.e4m3.e4m3"))) == 16 * 8 * 64 / 4);
  const auto time = [](const std::string& kind) {
    return tensor_memory_product_time(form(known_form("tcgen05.mma.cta_group::1.kind::" + kind)));
  };
  CHECK(time("f16") == 1);
  CHECK(time("tf32") == 2);
  CHECK(time("f8f6f4") == .5);
  CHECK(time("i8") == .5);
  CHECK(time("mxf4.block_scale.scale_vec::2X") == .25);
}

TEST_CASE("what is no product of one warp has no products") {
  CHECK(matrix_products(form(known_form("wmma.load.a.sync.aligned.row.m16n16k16.global.f16"))) == 0);
  CHECK(matrix_products(form(known_form("ldmatrix.sync.aligned.m8n8.x4.shared.b16"))) == 0);
  CHECK(matrix_products(form(known_form("fma.rn.f32"))) == 0);
  CHECK(matrix_products(form(known_form("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"))) == 16 * 8 * 16);
  CHECK_FALSE(
      throughput(*find_machine("gtx1080ti"), form(known_form("mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32")))
          .known);
}

} // namespace ptxrewrite::tests::matrix_weights_test
