// Options as tools and commands use them: the values of variables, and refused words.
#include "cli/options.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::options_test {

using namespace ptxrewrite::cli;

namespace {

struct Values {
  std::string text = "before", word = "a", form;
  std::vector<std::string> files, each, one;
  std::vector<uint32_t> numbers;
  uint32_t count = 7, staged = 0;
  uint64_t size = 0;
  double share = 0.5;
  std::optional<int> status;
  bool text_given = false, flag = false, shown = true;
  std::string taken;

  std::optional<int> parse(const std::vector<std::string>& words) {
    Application tool("options of a test");
    tool.add_option("FILE", files, "files");
    const Option option = tool.add_option("-t,--text", text, "text").sets(text_given);
    tool.add_option("--word", word, "a word").one_of({"a", "b"}).excludes(option);
    tool.add_option("--each", each, "repeatable").one_each();
    tool.add_option("--one", one, "not repeatable").only_one();
    tool.add_option("--numbers", numbers, "a list").delimiter(',').one_each();
    tool.add_option("--count", count, "a count").range(1u, 10u);
    tool.add_option("--size", size, "bytes").size_with_suffix();
    tool.add_option("--share", share, "a share").range(0.0, 1.0);
    tool.add_option("--status", status, "a status");
    tool.add_option(
        "--take", [this](const std::string& word) { taken = '<' + word + '>'; }, "taken");
    tool.add_flag("-f,--flag", flag, "a flag");
    tool.add_flag("!--hide", shown, "a flag for the contrary");
    tool.add_flag("--form{standard}", form, "a flag that may have a value");
    tool.add_flag("--staged{512}", staged, "a flag that may have a number");
    return tool.parse(words);
  }
};

} // namespace

TEST_CASE("variables hold what was given, and keep what they held else") {
  Values none;
  CHECK(!none.parse({}));
  CHECK(none.text == "before");
  CHECK(none.count == 7);
  CHECK(none.shown);
  CHECK(!none.text_given);
  CHECK(!none.status);

  Values all;
  CHECK(!all.parse({"x",         "-t",     "T",       "--each", "1",      "y",      "--each",       "2",
                    "--numbers", "3,4",    "--count", "10",     "--size", "8k",     "--share=0.25", "--status",
                    "-3",        "--take", "w",       "-f",     "--hide", "--form", "--staged",     "z"}));
  CHECK(all.files == std::vector<std::string>{"x", "y", "z"});
  CHECK(all.text == "T");
  CHECK(all.text_given);
  CHECK(all.each == std::vector<std::string>{"1", "2"});
  CHECK(all.numbers == std::vector<uint32_t>{3, 4});
  CHECK(all.count == 10);
  CHECK(all.size == 8192);
  CHECK(all.share == 0.25);
  CHECK(all.status == -3);
  CHECK(all.taken == "<w>");
  CHECK(all.flag);
  CHECK(!all.shown);
  CHECK(all.form == "standard");
  CHECK(all.staged == 512);

  Values words;
  CHECK(!words.parse({"--form=other", "--staged=64", "--word", "b"}));
  CHECK(words.form == "other");
  CHECK(words.staged == 64);
  CHECK(words.word == "b");
}

TEST_CASE("wrong usage ends with code 2, help with 0") {
  const std::vector<std::vector<std::string>> wrong = {{"--nothing"},
                                                       {"--word", "c"},
                                                       {"--word", "a", "--text", "T"},
                                                       {"--count", "0"},
                                                       {"--count", "11"},
                                                       {"--count", "one"},
                                                       {"--count", "-1"},
                                                       {"--share", "1.5"},
                                                       {"--size", "5Q"},
                                                       {"--status", "x"},
                                                       {"--one", "1", "--one", "2"},
                                                       {"--text"}};
  for (const std::vector<std::string>& words : wrong) {
    CAPTURE(words.front());
    CHECK(Values().parse(words) == 2);
  }
  CHECK(Values().parse({"--help"}) == 0);

  std::vector<std::string> files;
  Application strict("a file is needed");
  strict.add_option("FILE", files, "files").required().existing_files();
  CHECK(strict.parse(std::vector<std::string>{}) == 2);
  CHECK(strict.parse({"/nowhere/at/all"}) == 2);
  CHECK(!strict.parse({"/dev/null"}));
}

TEST_CASE("the command that is named is called, once its options are parsed") {
  const ProgramText text{
      .name = "tool", .about = "a tool", .footer = "the end", .version = [] { return std::string("tool 1"); }};
  std::string called;
  auto parse = [&](const std::vector<std::string>& words) {
    called.clear();
    Application tool(text);
    int size = 0;
    Options first = tool.add_command("first", "the first", "example");
    first.add_option("--size", size, "a size");
    first.when_named([&] { called = "first " + std::to_string(size); });
    tool.add_command("second", "the second", "example").when_named([&] { called = "second"; });
    const std::string help = tool.help();
    CHECK(help.find("first") < help.find("second"));
    CHECK(help.find("the end") != std::string::npos);
    return tool.parse(words);
  };
  CHECK(!parse({"first", "--size", "3"}));
  CHECK(called == "first 3");
  CHECK(!parse({"second"}));
  CHECK(called == "second");
  CHECK(!parse({}));
  CHECK(called.empty());
  CHECK(parse({"first", "second"}) == 2);
  CHECK(parse({"--version"}) == 0);
}

} // namespace ptxrewrite::tests::options_test
