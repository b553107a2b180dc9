// Child processes against the documented behaviour of shell and kernel.
#include "support/file_io.h"
#include "support/process.h"

#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace ptxrewrite::tests::process_test {

using namespace ptxrewrite;

namespace {
ProcessResult shell(const std::string& script, ProcessOptions options = {}) {
  options.arguments = {"sh", "-c", script};
  Result<ProcessResult> result = run_process(options);
  REQUIRE(result.ok());
  return *result;
}
} // namespace

TEST_CASE("output, errors, input and exit code come back") {
  ProcessOptions options;
  options.input = "from the caller\n";
  ProcessResult result = shell("cat; echo oops >&2; exit 3", options);
  CHECK(result.out == "from the caller\n");
  CHECK(result.err == "oops\n");
  CHECK(result.exit_code == 3);
  CHECK(result.signal == 0);
  CHECK_FALSE(result.succeeded());
}

TEST_CASE("large input and output in both directions do not deadlock") {
  std::string input(8 << 20, 'x');
  ProcessOptions options;
  options.input = input;
  ProcessResult result = shell("tee /dev/stderr", options);
  CHECK(result.out == input);
  CHECK(result.err == input);
}

TEST_CASE("a child that ignores its input is no error") {
  std::string input(8 << 20, 'x');
  ProcessOptions options;
  options.input = input;
  CHECK(shell("exit 0", options).succeeded());
}

TEST_CASE("a crash of the child is a value") {
  CHECK(shell("kill -SEGV $$").signal == SIGSEGV);
  CHECK(shell("kill -ABRT $$").signal == SIGABRT);
}

TEST_CASE("time-out ends the whole group") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  // Doubles the time until the shell has written its child's number.
  const std::string number = directory->file("child");
  ProcessOptions options;
  options.timeout_seconds = 0.2;
  while (!std::filesystem::exists(number)) {
    ProcessResult result =
        shell("sleep 1000 & echo $! > " + number + ".new; mv " + number + ".new " + number + "; sleep 1000", options);
    CHECK(result.timed_out);
    CHECK(result.signal == SIGKILL);
    options.timeout_seconds *= 2;
    REQUIRE(options.timeout_seconds < 1000);
  }
  pid_t child = 0;
  std::ifstream(number) >> child;
  REQUIRE(child > 0);
  // The process that inherits a killed one may leave it a zombie for a while.
  auto is_dead = [&] {
    std::string state, word;
    std::ifstream status("/proc/" + std::to_string(child) + "/stat");
    if (!(status >> word >> word >> state)) return true;
    return state == "Z" || state == "X";
  };
  for (int i = 0; i < 6000 && !is_dead(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(is_dead());
}

TEST_CASE("an orphan that keeps the pipes does not keep us") {
  // The orphan sleeps for longer than tests may take, and is still there afterwards.
  ProcessResult result = shell("sleep 1000000 & echo $!");
  const auto orphan = static_cast<pid_t>(std::strtol(result.out.c_str(), nullptr, 10));
  REQUIRE(orphan > 0);
  CHECK(::kill(orphan, 0) == 0);
  ::kill(orphan, SIGKILL);
}

TEST_CASE("processor time is bounded") {
  ProcessOptions options;
  options.cpu_seconds = 1;
  ProcessResult result = shell("while :; do :; done", options);
  CHECK(result.signal != 0);
  CHECK(result.user_seconds + result.system_seconds >= 0.5);
}

TEST_CASE("address space is bounded") {
  ProcessOptions options;
  options.address_space_bytes = 256 << 20;
  options.arguments = {"python3", "-c", "x = bytearray(1 << 30)"};
  Result<ProcessResult> result = run_process(options);
  REQUIRE(result.ok());
  CHECK(result->exit_code == 1);
  CHECK(result->err.find("MemoryError") != std::string::npos);
}

TEST_CASE("peak memory of a child larger than we are") {
  ProcessOptions options;
  options.arguments = {"python3", "-c", "x = b'1' * (512 << 20)"};
  Result<ProcessResult> result = run_process(options);
  REQUIRE(result.ok());
  CHECK(result->peak_memory_kib > 512 * 1024);
  CHECK(result->peak_memory_kib < 700 * 1024);
}

TEST_CASE("kept output is bounded, the rest is dropped") {
  ProcessOptions options;
  options.output_limit = 10;
  ProcessResult result = shell("head -c 1000000 /dev/zero | tr '\\0' a", options);
  CHECK(result.out == "aaaaaaaaaa");
  CHECK(result.output_truncated);
  CHECK(result.succeeded());
}

TEST_CASE("a missing program and a wrong directory are errors") {
  ProcessOptions missing;
  missing.arguments = {"no-such-program-here"};
  Result<ProcessResult> result = run_process(missing);
  REQUIRE_FALSE(result.ok());
  CHECK(result.error().message.find("no-such-program-here") != std::string::npos);
  ProcessOptions wrong;
  wrong.arguments = {"true"};
  wrong.working_directory = "/no/such/directory";
  CHECK_FALSE(run_process(wrong).ok());
}

} // namespace ptxrewrite::tests::process_test
