// Sums of the table against ones made by hand; which files a folder of groups has.
#include "support/file_io.h"
#include "tests/lowering/corpus.h"
#include "tests/lowering/halves.h"
#include "tests/lowering/table.h"

#include <doctest/doctest.h>
#include <filesystem>

using namespace ptxrewrite;
using namespace ptxrewrite::tests;

TEST_CASE("the halves never change") {
  // FNV-1a, from its authors' test vectors: "" is 0x811c9dc5, "a" 0xe40c292c, "foobar" 0xbf9cf968.
  CHECK(is_held_out(""));
  CHECK_FALSE(is_held_out("a"));
  CHECK_FALSE(is_held_out("foobar"));
}

TEST_CASE("errors are means of absolute values, by group and half") {
  const std::vector<KernelRow> rows{{"x", "one", false, 100, 110, 10, 12},
                                    {"x", "two", false, 100, 80, 10, 10},
                                    {"y", "three", false, 50, 50, 20, 10},
                                    {"x", "four", true, 100, 150, 40, 40}};
  const std::vector<SignRow> signs{{"x", false, {"v", "one", 100, 90, 110, 100}}, // both shorter
                                   {"x", false, {"v", "two", 100, 110, 80, 80}},  // unseen
                                   {"x", false, {"w", "two", 100, 100, 80, 90}},  // no difference: does not count
                                   {"y", false, {"v", "three", 50, 51, 50, 49}},  // wrong
                                   {"x", true, {"v", "four", 100, 101, 150, 152}}};
  const Figures x = figures_of(rows, signs, "x", false);
  CHECK(x.kernels == 2);
  CHECK(x.absolute == doctest::Approx(15));
  CHECK(x.mean == doctest::Approx(-5));
  CHECK(x.registers == doctest::Approx(10));
  CHECK(x.signs.changed == 2);
  CHECK(x.signs.right == 1);
  const Figures all = figures_of(rows, signs, "", false);
  CHECK(all.kernels == 3);
  CHECK(all.absolute == doctest::Approx(10));
  CHECK(all.signs.changed == 3);
  CHECK(all.signs.right == 1);
  const Figures held_out = figures_of(rows, signs, "", true);
  CHECK(held_out.kernels == 1);
  CHECK(held_out.absolute == doctest::Approx(50));
  CHECK(held_out.signs.right == 1);
}

TEST_CASE("signs by version, orders alone apart") {
  const std::vector<SignRow> signs{{"x", false, {"r2d2(force)", "one", 100, 90, 100, 90}},       // both shorter
                                   {"x", false, {"r2d2(force)", "two", 100, 90, 100, 100}},      // unseen
                                   {"x", false, {"schedule(force)", "one", 100, 101, 100, 100}}, // unseen
                                   {"x", true, {"r2d2(force)", "three", 100, 90, 100, 110}}};    // wrong
  const VersionSigns looked_at = version_signs(signs, false), held_out = version_signs(signs, true);
  REQUIRE(looked_at.by_version.size() == 2);
  CHECK(looked_at.by_version.at("r2d2(force)").changed == 2);
  CHECK(looked_at.by_version.at("r2d2(force)").right == 1);
  CHECK(looked_at.order_alone.changed == 1);
  CHECK(looked_at.order_alone.right == 0);
  CHECK(looked_at.others.changed == 2);
  CHECK(held_out.others.changed == 1);
  CHECK(held_out.others.right == 0);
}

TEST_CASE("a corpus is its folders' PTX files") {
  Result<TempDirectory> folder = TempDirectory::create();
  REQUIRE(folder);
  for (const char* group : {"b", "a"})
    std::filesystem::create_directory(folder->path() / group);
  for (const char* name : {"a/one.ptx", "a/two.ptx", "a/notes.txt", "b/three.ptx", "stray.ptx"})
    REQUIRE(write_file(folder->file(name), "text").ok());
  REQUIRE(write_file(folder->file("b/large.ptx"), std::string(100, ' ')).ok());
  const std::vector<CorpusFile> files = corpus_files(folder->path().string(), {}, 50);
  REQUIRE(files.size() == 3);
  CHECK(files[0].group == "a");
  CHECK(files[1].group == "a");
  CHECK(files[2].path == folder->file("b/three.ptx"));
  CHECK(corpus_files(folder->path().string(), {"b"}, 50).size() == 1);
  CHECK(corpus_files(folder->file("none"), {}, 50).empty());
}

TEST_CASE("texts for newer targets become texts for older ones, not the other way round") {
  CHECK(text_for_target(".version 8.0\n.target sm_90a\n", "sm_80") == ".version 8.0\n.target sm_80\n");
  CHECK(text_for_target(".target sm_52, debug\n", "sm_80") == ".target sm_52, debug\n");
}
