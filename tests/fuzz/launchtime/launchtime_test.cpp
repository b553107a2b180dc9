// Each check of fuzz_launchtime finds its error: variants that are wrong on purpose, made by changing text.
#include "tests/fuzz/launchtime/check.h"
#include "tests/fuzz/launchtime/generator.h"
#include "tests/fuzz/launchtime/print.h"
#include "tests/fuzz/launchtime/sites.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

using namespace ptxrewrite::fuzz::launchtime;

namespace {

std::string replaced(std::string text, const std::string& what, const std::string& with) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + with.size()))
    text.replace(at, what.size(), with);
  return text;
}

// A variant of the kernel, changed by `change`, that runs if all the predicates hold.
template <class Change>
std::string with_variant(const Kernel& kernel, const std::vector<std::string>& predicates, Change change) {
  const std::string text = print(kernel);
  const size_t entry = text.find(".visible");
  std::string variant = change(text.substr(entry));
  variant = replaced(variant, kernel.name + "_param", kernel.name + "__t_param");
  variant = replaced(variant, ".entry " + kernel.name + "(", ".entry " + kernel.name + "__t(");
  std::string terms = "//@ t original " + kernel.name + "\n";
  for (const std::string& predicate : predicates)
    terms += "//@ t requires " + predicate + "\n";
  // Annotations are placed before the first instruction.
  variant.insert(variant.find("\tld.param"), terms);
  return text + "\n" + variant;
}

size_t times(const Verdict& verdict, Wrong wrong) {
  return static_cast<size_t>(std::ranges::count(verdict.findings, wrong, &Finding::wrong));
}

std::string non_coherent(const std::string& text) {
  return replaced(text, "ld.global.", "ld.global.nc.");
}

// Kernels of an idiom, from seed 1 on, for which `test` is true.
template <class Test> Kernel first_of(std::string_view idiom, Test test) {
  for (uint64_t seed = 1;; ++seed) {
    Kernel kernel = generate(seed, idiom);
    if (test(kernel)) return kernel;
    REQUIRE(seed < 500);
  }
}

bool has_generic(const Kernel& kernel) {
  return std::ranges::any_of(kernel.parameters, &Parameter::is_generic);
}

// Ranges of kernel "stream" with two pointers and a stride of 4: elements 0 .. threads - 1 of each.
Kernel plain_stream() {
  return first_of("stream", [](const Kernel& kernel) {
    return kernel.parameters.size() == 2 && !has_generic(kernel) && print(kernel).find("setp") == std::string::npos &&
           print(kernel).find(", 4;") != std::string::npos;
  });
}
const std::string bytes = "4*ntid.x*nctaid.x";

} // namespace

TEST_CASE("oracle and emulator agree on every kind of kernel, and every kind of site occurs") {
  std::set<std::string> seen;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    const Kernel kernel = generate(seed);
    const Subject subject(kernel);
    CHECK_MESSAGE(subject.defects().empty(), "seed " << seed << ": " << subject.defects().front());
    for (const PatternSite& site : kernel.sites)
      seen.insert(site.idiom);
  }
  for (const SiteKind& kind : site_kinds()) {
    const Kernel kernel = generate(7, kind.idiom);
    CHECK(kernel.sites.size() == 1);
    CHECK(Subject(kernel).defects().empty());
  }
  CHECK(seen.size() >= 20);
}

TEST_CASE("a variant that is right is right: ranges that do not meet, to the byte") {
  const Kernel kernel = plain_stream();
  const Subject subject(kernel);
  const std::string predicate = "P0 + " + bytes + " <= P1 || P1 + " + bytes + " <= P0";
  const Verdict verdict = subject.check(with_variant(kernel, {predicate}, non_coherent), {"memory"});
  CHECK(verdict.findings.empty());
  for (size_t i = 0; i < kernel.launches.size(); ++i)
    CHECK(verdict.chosen[i] == ranges_are_disjoint(subject.outcome(i).trace));
  CHECK(std::ranges::count(verdict.chosen, true) >= 4);
  CHECK(std::ranges::count(verdict.chosen, false) >= 2);
}

TEST_CASE("a predicate that forgets the last element holds where the ranges meet") {
  size_t found = 0;
  for (uint64_t seed = 1; seed <= 800; ++seed) {
    const Kernel kernel = generate(seed, "stream");
    if (kernel.parameters.size() != 2 || has_generic(kernel) || print(kernel).find("setp") != std::string::npos ||
        print(kernel).find(", 4;") == std::string::npos)
      continue;
    const std::string predicate = "P0 + " + bytes + " - 4 <= P1 || P1 + " + bytes + " - 4 <= P0";
    found += times(Subject(kernel).check(with_variant(kernel, {predicate}, non_coherent), {"memory"}),
                   Wrong::stored_constants);
  }
  CHECK(found > 0);
}

TEST_CASE("without a predicate constant loads of stored bytes are found, and that no fact holds") {
  const Kernel kernel = plain_stream();
  const Subject subject(kernel);
  const Verdict verdict = subject.check(with_variant(kernel, {}, non_coherent), {"memory"});
  CHECK(times(verdict, Wrong::stored_constants) > 0);
  CHECK(times(verdict, Wrong::predicate) > 0);
  // There are no findings in the launches with disjoint buffers.
  for (const Finding& finding : verdict.findings)
    CHECK(!ranges_are_disjoint(subject.outcome(finding.launch).trace));
}

TEST_CASE("vectors at misaligned addresses fail") {
  const Kernel kernel = first_of("structure", [](const Kernel& one) { return !has_generic(one); });
  const auto joined = [&](std::string text) {
    // The first four loads are merged into one at the position of the first.
    const size_t first = text.find("\tld.global.f32");
    const size_t address = text.find('[', first);
    const std::string base = text.substr(address + 1, text.find_first_of("+]", address) - address - 1);
    return text.insert(first, "\tld.global.v4.f32 {%f_0, %f_1, %f_2, %f_3}, [" + base + "];\n");
  };
  const Verdict unguarded = Subject(kernel).check(with_variant(kernel, {}, joined), {});
  CHECK(times(unguarded, Wrong::fails) > 0);
  const Verdict guarded = Subject(kernel).check(with_variant(kernel, {"P0 % 16 == 0"}, joined), {});
  CHECK(guarded.findings.empty());
  CHECK(std::ranges::count(guarded.chosen, true) > 0);
}

TEST_CASE("bytes that the original does not touch are noticed") {
  const Kernel kernel = plain_stream();
  const auto further = [](std::string text) {
    const size_t first = text.find("\tld.global.");
    const size_t end = text.find(']', first);
    std::string load = text.substr(first, end - first) + "+4];\n";
    load = replaced(load, "+0+4", "+4");
    return load.find("++") == std::string::npos ? text.insert(first, load) : text;
  };
  CHECK(times(Subject(kernel).check(with_variant(kernel, {}, further), {}), Wrong::other_bytes) > 0);
}

TEST_CASE("divisions of half the width are wrong where numbers are large, and only there") {
  size_t wrong_results = 0, wrong_predicates = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    const Kernel kernel = generate(seed, "64-bit division");
    const auto narrowed = [&](std::string text) {
      for (const std::string name : {"div", "rem"})
        for (const std::string type : {"s64", "u64"})
          for (size_t at = text.find(name + "." + type); at != text.npos; at = text.find(name + "." + type)) {
            const size_t end = text.find(';', at);
            std::string list = text.substr(at + 7, end - at - 7);
            const size_t comma = list.find(','), second = list.find(',', comma + 1);
            const std::string result = list.substr(0, comma), one = list.substr(comma + 1, second - comma - 1),
                              other = list.substr(second + 1);
            text.replace(at, end - at,
                         "{ .reg .b32 %x, %y; cvt.u32.u64 %x," + one + "; cvt.u32.u64 %y," + other + "; " + name +
                             ".u32 %x, %x, %y; cvt.u64.u32 " + result + ", %x; }");
            text.erase(text.find(';', text.find("; }", at) + 2), 1);
          }
      return text;
    };
    const Subject subject(kernel);
    const Verdict verdict = subject.check(with_variant(kernel, {}, narrowed), {"narrow"});
    CHECK(times(verdict, Wrong::not_read) == 0);
    wrong_results += times(verdict, Wrong::results);
    wrong_predicates += times(verdict, Wrong::predicate);
    for (const Finding& finding : verdict.findings)
      CHECK(!kernel.sites[0].sufficient(subject.outcome(finding.launch).trace));
    // Non-negative numbers below 2^32: the right predicate for these kernels.
    const std::string last = "P0 + ntid.x*nctaid.x";
    const std::string fits = last + " <= 4294967296";
    const Verdict right =
        subject.check(with_variant(kernel, {fits, "P1 != 0 && P1 < 4294967296"}, narrowed), {"narrow"});
    CHECK(right.findings.empty());
  }
  CHECK(wrong_results > 10);
  CHECK(wrong_predicates > 10);
}

TEST_CASE("a text that does not read is a finding") {
  const Kernel kernel = plain_stream();
  const Subject subject(kernel);
  CHECK(times(subject.check(replaced(subject.text(), "{", "("), {}), Wrong::not_read) == 1);
}
