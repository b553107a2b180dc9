// Using a result without checking it ends the process, in every build.
#include "support/result.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

namespace ptxrewrite::tests::result_test {

using namespace ptxrewrite;

namespace {

struct Ended {
  int signal = 0;
  std::string said;
};

// The end of a child process that executes `deed`, and its output on standard error.
template <class Deed> Ended child_that(Deed deed) {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::signal(SIGABRT, SIG_DFL);
    ::dup2(ends[1], STDERR_FILENO);
    deed();
    ::_exit(0);
  }
  ::close(ends[1]);
  Ended ended;
  char buffer[512];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;)
    ended.said.append(buffer, static_cast<size_t>(count));
  ::close(ends[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  return ended;
}

} // namespace

TEST_CASE("the value of a failure ends the process and says what had failed and where") {
  const Result<int> failed = Error{"no such kernel", {}};
  const Ended ended = child_that([&] { static_cast<void>(failed.value()); });
  CHECK(ended.signal == SIGABRT);
  CHECK(ended.said.find("no such kernel") != std::string::npos);
  CHECK(ended.said.find("result_test.cpp") != std::string::npos);
  CHECK(child_that([&] { static_cast<void>(*failed); }).signal == SIGABRT);
}

TEST_CASE("the error of a success ends the process") {
  const Result<std::string> there = std::string("text");
  CHECK(child_that([&] { static_cast<void>(there.error()); }).signal == SIGABRT);
  CHECK(child_that([&] { static_cast<void>(Status().error()); }).signal == SIGABRT);
}

TEST_CASE("what is there can be taken") {
  const Result<std::string> there = std::string("text");
  CHECK(child_that([&] { static_cast<void>(there.value()); }).signal == 0);
  CHECK(there->size() == 4);
}

} // namespace ptxrewrite::tests::result_test
