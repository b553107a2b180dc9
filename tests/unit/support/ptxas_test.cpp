// The ptxas runner. Cases that need ptxas report it and pass if there is none.
#include "support/cuda_programs.h"
#include "support/file_io.h"
#include "support/ptxas.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>

namespace ptxrewrite::tests::ptxas_test {

using namespace ptxrewrite;

namespace {

constexpr const char* shared_kernel = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {
  .reg .b64 %rd<3>; .reg .b32 %r<4>;
  .shared .align 4 .b8 tile[4096];
  ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile;
  st.shared.u32 [%r2], %r1; bar.sync 0; ld.shared.u32 %r3, [%r2+4]; st.global.u32 [%rd1], %r3; ret;
}
)";

bool have_ptxas() {
  bool found = find_ptxas().ok();
  if (!found) MESSAGE("skipped: no ptxas on this machine");
  return found;
}

// Sets $PTXREWRITE_PTXAS for one scope.
class ChosenPtxas {
public:
  explicit ChosenPtxas(const std::string& path) {
    if (const char* old = std::getenv("PTXREWRITE_PTXAS")) old_ = old;
    ::setenv("PTXREWRITE_PTXAS", path.c_str(), 1);
  }
  ~ChosenPtxas() {
    if (old_.empty())
      ::unsetenv("PTXREWRITE_PTXAS");
    else
      ::setenv("PTXREWRITE_PTXAS", old_.c_str(), 1);
  }

private:
  std::string old_;
};

std::string script(const TempDirectory& directory, const std::string& body) {
  std::string path = directory.file("ptxas");
  REQUIRE(write_file(path, "#!/bin/sh\n" + body).ok());
  REQUIRE(::chmod(path.c_str(), 0755) == 0);
  return path;
}

} // namespace

TEST_CASE("figures are read from the lines ptxas prints") {
  auto figures = parse_ptxas_figures(R"(ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kPf' for 'sm_80'
ptxas info    : Function properties for _Z1kPf
    400 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 24 registers, used 1 barriers, 400 bytes cumulative stack size, 4096 bytes smem, 360 bytes cmem[0]
ptxas info    : Compile time = 1.310 ms
ptxas info    : Function properties for helper
    16 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads
)");
  REQUIRE(figures.size() == 2);
  CHECK(figures[0].function == "_Z1kPf");
  CHECK(figures[0].is_entry);
  CHECK(figures[0].registers == 24);
  CHECK(figures[0].barriers == 1);
  CHECK(figures[0].shared == 4096);
  CHECK(figures[0].stack_frame == 400);
  CHECK(figures[0].spill_stores == 8);
  CHECK(figures[0].spill_loads == 12);
  CHECK(figures[1].function == "helper");
  CHECK_FALSE(figures[1].is_entry);
  CHECK(figures[1].spill_loads == 4);
  CHECK(figures[1].registers == 0);
}

TEST_CASE("the target is read past comments and stops at the first function") {
  CHECK(target_architecture(".version 8.0\n.target sm_90a, debug\n") == "sm_90a");
  CHECK(target_architecture("// .target sm_50\n/* .target sm_60 */ .version 7.0 .target  sm_75//x\n") == "sm_75");
  CHECK(target_architecture(".version 8.0\n.visible .entry k() { }\n.target sm_80\n") == "");
  CHECK(target_architecture("") == "");
  CHECK(target_architecture(".target") == "");
  CHECK(target_architecture("/*") == "");
}

TEST_CASE("a good kernel assembles and its figures are there") {
  if (!have_ptxas()) return;
  auto run = assemble(shared_kernel);
  REQUIRE(run.ok());
  REQUIRE_MESSAGE(run->ok, run->messages);
  CHECK(run->cubin.starts_with("\177ELF"));
  const PtxasFigures* figures = run->find("k");
  REQUIRE(figures != nullptr);
  CHECK(figures->is_entry);
  CHECK(figures->shared == 4096);
  CHECK(figures->barriers == 1);
  CHECK(figures->registers > 0);
}

TEST_CASE("a refused text is a result with ptxas's message") {
  if (!have_ptxas()) return;
  auto run = assemble(".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { add.q32 %r1; }\n");
  REQUIRE(run.ok());
  CHECK_FALSE(run->ok);
  CHECK_FALSE(run->crashed);
  CHECK(run->messages.find("q32") != std::string::npos);
}

TEST_CASE("a crash of ptxas does not take us along") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  ChosenPtxas direct(script(*directory, "kill -SEGV $$\n"));
  auto run = assemble(shared_kernel);
  REQUIRE(run.ok());
  CHECK(run->crashed);
  CHECK_FALSE(run->ok);
  ChosenPtxas wrapped(script(*directory, "sh -c 'kill -SEGV $$'\n"));
  run = assemble(shared_kernel);
  REQUIRE(run.ok());
  CHECK(run->crashed);
}

TEST_CASE("a ptxas that hangs is stopped") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  ChosenPtxas slow(script(*directory, "sleep 60\n"));
  PtxasOptions options;
  options.timeout_seconds = 0.2;
  auto run = assemble(shared_kernel, options);
  REQUIRE(run.ok());
  CHECK(run->timed_out);
  CHECK_FALSE(run->crashed);
  CHECK_FALSE(run->ok);
}

TEST_CASE("ptxas may have three quarters of the machine's memory, or what it is given") {
  auto directory = TempDirectory::create();
  REQUIRE(directory.ok());
  const std::string told = directory->file("told");
  ChosenPtxas telling(
      script(*directory,
             "{ ulimit -v; sed -n 's/MemTotal: *\\([0-9]*\\) kB/\\1/p' /proc/meminfo; } > " + told + "\nexit 1\n"));
  const auto limits = [&](uint64_t bytes) {
    PtxasOptions options;
    options.address_space_bytes = bytes;
    REQUIRE(assemble(shared_kernel, options).ok());
    uint64_t limit = 0, machine = 0;
    std::ifstream(told) >> limit >> machine;
    return std::pair(limit, machine);
  };
  const auto [limit, machine] = limits(0);
  CHECK(limit > 0);
  CHECK(limit <= machine);
  CHECK(limits(uint64_t(1) << 30).first == uint64_t(1) << 20);
}

TEST_CASE("a missing ptxas is an error that says what to do") {
  ChosenPtxas missing("/no/such/ptxas");
  auto run = assemble(shared_kernel);
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().message.find("PTXREWRITE_PTXAS") != std::string::npos);
}

TEST_CASE("NVIDIA's wheel in the environment of a running interpreter is one of the places") {
  auto directory = TempDirectory::create();
  REQUIRE(directory);
  const std::string bin = directory->file("lib/python3.12/site-packages/nvidia/cu13/bin");
  std::filesystem::create_directories(bin);
  REQUIRE(write_file(bin + "/ptxas", "#!/bin/sh\n").ok());
  REQUIRE(::chmod((bin + "/ptxas").c_str(), 0755) == 0);
  const std::vector<std::string> before = all_ptxas();
  CHECK(std::ranges::find(before, bin + "/ptxas") == before.end());
  add_python_environment(directory->path().string());
  const std::vector<std::string> after = all_ptxas();
  CHECK(std::ranges::find(after, bin + "/ptxas") != after.end());
  CHECK(after.front() == before.front()); // behind PATH and toolkits
}

TEST_CASE("NVIDIA's wheel in a virtual environment is one of the places") {
  auto directory = TempDirectory::create();
  REQUIRE(directory);
  const std::string bin = directory->file("lib/python3.11/site-packages/nvidia/cu13/bin");
  std::filesystem::create_directories(bin);
  const std::string program = bin + "/ptxas";
  REQUIRE(write_file(program, "#!/bin/sh\necho 'Cuda compilation tools, release 13.5, V13.5.37'\n").ok());
  REQUIRE(::chmod(program.c_str(), 0755) == 0);
  const char* environment = std::getenv("VIRTUAL_ENV");
  const std::string old = environment != nullptr ? environment : "";
  ::setenv("VIRTUAL_ENV", directory->file("").c_str(), 1);
  const std::vector<std::string> all = all_ptxas();
  old.empty() ? ::unsetenv("VIRTUAL_ENV") : ::setenv("VIRTUAL_ENV", old.c_str(), 1);
  const auto found = std::find_if(all.begin(), all.end(),
                                  [&](const std::string& path) { return std::filesystem::equivalent(path, program); });
  REQUIRE(found != all.end());
  CHECK(ptxas_release(*found) == "13.5");
  CHECK(ptxas_release("/bin/true") == "");
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      CHECK(!std::filesystem::equivalent(all[i], all[j]));
  const ChosenPtxas chosen(program);
  CHECK(*find_ptxas() == program);
  CHECK(all_ptxas().front() == program);
  CHECK(describe_ptxas() == "ptxas 13.5 (" + program + ")");
}

} // namespace ptxrewrite::tests::ptxas_test
