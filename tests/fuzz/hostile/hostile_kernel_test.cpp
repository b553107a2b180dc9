// The generator: kernels depend only on their seeds, all features occur, and most kernels pass the reader.
#include "grammar/reader.h"
#include "tests/fuzz/hostile/hostile_kernel.h"
#include "tests/fuzz/hostile/hostile_steps.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

using namespace ptxrewrite;

namespace {

bool is_read(const std::string& text) {
  Diagnostics diagnostics;
  return grammar::read_module(SourceFile("k.ptx", text), diagnostics) != nullptr;
}

// Small material for a fast test: statements with and without an effect, one of them not emulated.
fuzz::HostileMaterial small_material() {
  return fuzz::make_material("+\tadd.s32 %r1, %r2, %r3;\n-\tadd.s32 %r1;\n+\tst.global.u32 [%l1], %r2;\n"
                             "+\ttcgen05.mma.cta_group::1.kind::f16.ashift [%r1], [%r1], %l1, %r2, %p1;\n",
                             {".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry m()\n{\n  ret;\n}\n"});
}

} // namespace

TEST_CASE("material is sorted by what can be done with it") {
  const fuzz::HostileMaterial material = small_material();
  CHECK(material.statements.size() == 3);
  CHECK(material.runnable == std::vector<std::string>{"add.s32 %r1, %r2, %r3;", "st.global.u32 [%l1], %r2;"});
  CHECK(material.pure == std::vector<std::string>{"add.s32 %r1, %r2, %r3;"});
  CHECK(material.modules.size() > 1); // the module, and its hardware forms
}

TEST_CASE("a seed stands for one kernel") {
  const fuzz::HostileMaterial material = small_material();
  for (uint64_t seed = 1; seed < 30; ++seed) {
    const fuzz::HostileKernel kernel = fuzz::generate_hostile_kernel(seed, material);
    CHECK(kernel.text == fuzz::generate_hostile_kernel(seed, material).text);
    CHECK(kernel.text != fuzz::generate_hostile_kernel(seed + 1, material).text);
  }
}

TEST_CASE("every feature occurs, and most kernels go past the reader") {
  const fuzz::HostileMaterial material = small_material();
  std::set<std::string> features, origins;
  unsigned read = 0, defined = 0;
  constexpr unsigned count = 600;
  for (uint64_t seed = 1; seed <= count; ++seed) {
    const fuzz::HostileKernel kernel = fuzz::generate_hostile_kernel(seed, material);
    features.insert(kernel.features.begin(), kernel.features.end());
    origins.insert(kernel.origin);
    const bool ok = is_read(kernel.text);
    read += ok;
    defined += kernel.is_defined;
    CHECK_MESSAGE((ok || !kernel.is_defined), "seed " << seed);
  }
  for (const std::string& feature : fuzz::hostile_features())
    CHECK_MESSAGE(features.contains(feature), feature);
  CHECK(origins.size() == 5);
  CHECK(read > count * 8 / 10);
  CHECK(defined > count / 10);
}

TEST_CASE("few steps a kernel: all of them equally often, and always the one that decides") {
  const std::span<const fuzz::HostileStep> steps = fuzz::hostile_steps();
  const size_t others = steps.size() - 1;
  for (const unsigned few : {1u, 3u, 7u}) {
    std::vector<uint64_t> uses(steps.size());
    for (uint64_t seed = 1000; seed < 1000 + others; ++seed)
      for (size_t i = 0; i < steps.size(); ++i)
        uses[i] += fuzz::takes_step({.few = few}, seed, i);
    for (size_t i = 0; i < steps.size(); ++i)
      CHECK_MESSAGE(uses[i] == (steps[i].decides ? others : few), steps[i].words);
  }
}
