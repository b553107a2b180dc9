// Stored figures are read back, and only these: not for another question, nor from damaged files, links, or files that
// others may write.
#include "ir/machine/figures/figures_store.h"

#include "support/file_io.h"

#include <doctest/doctest.h>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace ptxrewrite::tests::figures_store_test {

using namespace ptxrewrite;
using namespace ptxrewrite::ir;

namespace {

const FiguresByFunction figures{{"k", {12, 8, 0}}, {"other$1", {4000000000u, 255, 16}}};

std::filesystem::path only_file(const std::filesystem::path& folder) {
  auto first = std::filesystem::directory_iterator(folder);
  REQUIRE(first != std::filesystem::directory_iterator());
  return first->path();
}

uint64_t bytes_in(const std::filesystem::path& folder) {
  uint64_t sum = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    sum += entry.file_size();
  return sum;
}

} // namespace

TEST_CASE("figures come back for the same question alone") {
  const auto place = TempDirectory::create();
  REQUIRE(place);
  const std::string folder = place->file("cache/figures");
  FiguresStore(folder).keep("ptxas\nsm_80\ntext", figures);
  const FiguresStore again(folder);
  CHECK(again.find("ptxas\nsm_80\ntext") == figures);
  CHECK_FALSE(again.find("ptxas\nsm_80\ntexu"));
  CHECK_FALSE(FiguresStore("").find("ptxas\nsm_80\ntext"));
}

TEST_CASE("no answer from a file that holds another question, is damaged, a link, or writable by others") {
  const auto place = TempDirectory::create();
  REQUIRE(place);
  const std::string folder = place->file("figures");
  FiguresStore store(folder);
  store.keep("question", figures);
  const std::filesystem::path file = only_file(folder);
  const std::string good = *read_file(file.string());
  REQUIRE(store.find("question") == figures);

  auto answer_of = [&](const std::string& bytes) {
    std::ofstream(file, std::ios::trunc) << bytes;
    return store.find("question");
  };
  for (size_t length = 0; length < good.size(); ++length)
    CHECK_FALSE(answer_of(good.substr(0, length)));
  std::string other = good;
  other.replace(other.find("question"), 8, "questiom");
  CHECK_FALSE(answer_of(other));
  CHECK_FALSE(answer_of(good + "x"));
  CHECK_FALSE(answer_of(good + "1 1 1 more\n"));
  CHECK(answer_of(good) == figures);

  chmod(file.c_str(), 0666);
  CHECK_FALSE(store.find("question"));
  std::filesystem::rename(file, place->file("elsewhere"));
  chmod(place->file("elsewhere").c_str(), 0600);
  std::filesystem::create_symlink(place->file("elsewhere"), file);
  CHECK_FALSE(store.find("question"));
}

TEST_CASE("a folder that others may write, or that is a link, is not used") {
  const auto place = TempDirectory::create();
  REQUIRE(place);
  const std::string open_to_all = place->file("open"), link = place->file("link");
  std::filesystem::create_directory(open_to_all);
  chmod(open_to_all.c_str(), 0777);
  FiguresStore(open_to_all).keep("question", figures);
  CHECK(std::filesystem::is_empty(open_to_all));
  chmod(open_to_all.c_str(), 0700);
  std::filesystem::create_directory_symlink(open_to_all, link);
  FiguresStore(link).keep("question", figures);
  CHECK(std::filesystem::is_empty(open_to_all));
}

TEST_CASE("the folder stays within its bound, and what was asked for last stays") {
  const auto place = TempDirectory::create();
  REQUIRE(place);
  const std::string folder = place->file("figures");
  constexpr uint64_t most = 100'000;
  FiguresStore store(folder, most);
  for (int i = 0; i < 300; ++i)
    store.keep(std::to_string(i) + std::string(1000, 'x'), figures);
  CHECK(bytes_in(folder) <= most + most / 16 + 2000);
  CHECK(store.find("299" + std::string(1000, 'x')) == figures);
  CHECK_FALSE(store.find("0" + std::string(1000, 'x')));
}

} // namespace ptxrewrite::tests::figures_store_test
