// GPU launches on the fake driver: results equal those of the emulator, and every failure becomes an error, without
// crashes and leaks.
#include "cuda/driver/gpu.h"
#include "cuda/session.h"
#include "grammar/reader.h"
#include "launch/launch_file.h"
#include "support/file_io.h"

#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <span>
#include <unistd.h>
#include <vector>

using namespace ptxrewrite;

namespace {

const std::string fake_driver = PTXREWRITE_FAKE_DRIVER_PATH;

const char* const add_text = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 data, .param .u32 amount)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [data];
  ld.param.u32 %r1, [amount];
  mov.u32 %r2, %tid.x;
  mul.wide.u32 %rd2, %r2, 4;
  add.u64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  add.u32 %r3, %r3, %r1;
  st.global.u32 [%rd3], %r3;
  ret;
}
)";

// Sets the faults of the fake driver; they are removed at the end of the scope.
class Faults {
public:
  explicit Faults(const std::string& what) { setenv("PTXREWRITE_FAKE_DRIVER", what.c_str(), 1); }
  ~Faults() { unsetenv("PTXREWRITE_FAKE_DRIVER"); }
};

// The fake driver's count of objects that were not freed when the device was closed.
class LeakReport {
public:
  LeakReport() : path_(std::filesystem::temp_directory_path() / ("ptxrewrite_leaks_" + std::to_string(getpid()))) {
    setenv("PTXREWRITE_FAKE_DRIVER_REPORT", path_.c_str(), 1);
  }
  ~LeakReport() {
    unsetenv("PTXREWRITE_FAKE_DRIVER_REPORT");
    std::filesystem::remove(path_);
  }
  std::string text() const {
    Result<std::string> text = read_file(path_.string());
    return text ? *text : "no report";
  }

private:
  std::filesystem::path path_;
};
const char* const nothing_leaked = "never given back: 0 allocations, 0 modules, 0 events, 0 arrays, 0 textures\n";

std::unique_ptr<ir::Module> read_text(const std::string& text) {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("add.ptx", text), diagnostics);
  REQUIRE(module);
  return module;
}

const char* const add_launch = R"(ptx = "add.ptx"
[[launch]]
kernel = "add"
grid = 1
block = 64
args = [ { buffer = "data" }, { u32 = 7 } ]
[buffer.data]
type = "u32"
count = 64
init = "iota"
output = true
)";

launch::LaunchPlan make_add_plan(const std::string& text = add_launch) {
  Diagnostics diagnostics;
  auto file = launch::read_launch_file(SourceFile("add.toml", text), diagnostics);
  REQUIRE(file);
  auto plan = launch::make_plan(*file, {}, diagnostics);
  REQUIRE(plan);
  return *plan;
}

} // namespace

TEST_CASE("a plan gives the same buffers on the GPU and on the emulator") {
  LeakReport leaks;
  {
    auto device = cuda::make_cuda_device(fake_driver);
    REQUIRE_MESSAGE(device.ok(), device.error().message);
    auto emulator = cuda::make_emulator_device();
    auto module = read_text(add_text);
    const launch::LaunchPlan plan = make_add_plan();
    auto on_gpu = cuda::run_plan(plan, *module, **device);
    auto on_emulator = cuda::run_plan(plan, *module, *emulator);
    REQUIRE_MESSAGE(on_gpu.ok(), on_gpu.error().message);
    REQUIRE(on_emulator.ok());
    CHECK(on_gpu->buffers == on_emulator->buffers);
    std::vector<uint32_t> values(64);
    std::memcpy(values.data(), on_gpu->buffers[0].data(), 256);
    CHECK(values[0] == 7);
    CHECK(values[63] == 70);
  }
  CHECK(leaks.text() == nothing_leaked);
}

TEST_CASE("without a driver there is no GPU here") {
  auto device = cuda::make_cuda_device("/nonexistent/libcuda.so.1");
  REQUIRE(!device.ok());
  CHECK(device.error().message.find("no GPU here") == 0);
}

TEST_CASE("a driver without a device, or that does not start, is no GPU here") {
  for (const char* fault : {"no_device", "cuInit=999", "cuDeviceGetCount=100"}) {
    Faults faults(fault);
    auto device = cuda::make_cuda_device(fake_driver);
    REQUIRE(!device.ok());
    CHECK_MESSAGE(device.error().message.find("no GPU here") == 0, fault);
  }
}

TEST_CASE("an old driver is told from none") {
  auto device = cuda::make_cuda_device(PTXREWRITE_OLD_DRIVER_PATH);
  REQUIRE(!device.ok());
  CHECK(device.error().message.find("too old: it has no cuOccupancyMaxActiveBlocksPerMultiprocessor") !=
        std::string::npos);
}

TEST_CASE("whatever call fails, the error names it and nothing leaks") {
  const char* const symbols[] = {"cuMemAlloc_v2",       "cuMemsetD8_v2",    "cuMemcpyHtoD_v2",    "cuModuleLoadDataEx",
                                 "cuModuleGetFunction", "cuLaunchKernel",   "cuEventCreate",      "cuEventRecord",
                                 "cuEventSynchronize",  "cuCtxSynchronize", "cuEventElapsedTime", "cuMemcpyDtoH_v2"};
  for (const char* symbol : symbols) {
    CAPTURE(symbol);
    LeakReport leaks;
    {
      Faults faults(std::string(symbol) + "=2");
      auto device = cuda::make_cuda_device(fake_driver);
      REQUIRE(device.ok());
      auto module = read_text(add_text);
      auto result = cuda::run_plan(make_add_plan(), *module, **device);
      // A failing wait means that the kernel faulted; all other failures are errors.
      if (std::string(symbol) == "cuCtxSynchronize") {
        REQUIRE(result.ok());
        REQUIRE(result->failed_launch.has_value());
        CHECK(result->runs.back().failure->message.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
      } else {
        REQUIRE(!result.ok());
        CHECK(result.error().message.find("CUDA_ERROR_OUT_OF_MEMORY") != std::string::npos);
      }
    }
    CHECK(leaks.text() == nothing_leaked);
  }
}

TEST_CASE("a kernel that faults is a failure of the run, and the device says so from then on") {
  auto device = cuda::make_cuda_device(fake_driver);
  REQUIRE(device.ok());
  auto module = read_text(add_text);
  std::string text = add_launch;
  text.replace(text.find("block = 64"), 10, "block = 99");
  auto result = cuda::run_plan(make_add_plan(text), *module, **device);
  REQUIRE(result.ok());
  REQUIRE(result->failed_launch.has_value());
  CHECK(result->runs.back().failure->message.find("CUDA_ERROR_ILLEGAL_ADDRESS") != std::string::npos);
  // The buffer cannot be read after a fault: the whole context is lost, as on a GPU.
  CHECK(result->buffers[0].empty());
}

TEST_CASE("what the driver's compiler complains about has a line") {
  auto gpu = driver::Gpu::open(fake_driver);
  REQUIRE(gpu.ok());
  std::string bad = add_text;
  bad.replace(bad.find("add.u32 %r3"), 11, "add.u32 %q3");
  SourceFile source("bad.ptx", bad);
  Diagnostics diagnostics;
  auto module = (*gpu)->load(source, diagnostics);
  REQUIRE(!module.ok());
  REQUIRE(diagnostics.has_errors());
  CHECK(source.locate(diagnostics.list()[0].range.begin).line == 14);
  CHECK(render(diagnostics.list()[0], source).find("bad.ptx:14:3: error: driver's compiler: ") == 0);
}

TEST_CASE("log lines without a place are diagnostics without one") {
  Diagnostics diagnostics;
  SourceFile source("a.ptx", "one\n  two\nthree\n");
  driver::read_jit_log("ptxas application ptx input, line 2; error   : Unknown symbol 'x'\n"
                       "ptxas fatal   : Ptx assembly aborted due to errors\n"
                       "ptxas warning : Something odd\n",
                       source, diagnostics);
  REQUIRE(diagnostics.list().size() == 3);
  CHECK(diagnostics.list()[0].message == "driver's compiler: Unknown symbol 'x'");
  CHECK(source.text(diagnostics.list()[0].range) == "two");
  CHECK(diagnostics.list()[1].range.empty());
  CHECK(diagnostics.list()[2].severity == Severity::warning);
}

TEST_CASE("a missing kernel and a missing variable are errors with their names") {
  auto gpu = driver::Gpu::open(fake_driver);
  REQUIRE(gpu.ok());
  Diagnostics diagnostics;
  auto module = (*gpu)->load(SourceFile("add.ptx", add_text), diagnostics);
  REQUIRE(module.ok());
  CHECK((*module)->function("sub").error().message.find("'sub'") != std::string::npos);
  CHECK((*module)->variable("table").error().message.find("'table'") != std::string::npos);
  CHECK((*gpu)->info().multiprocessors == 4);
  auto blocks = (*gpu)->occupancy(**module, "add", {128, 1, 1}, 0);
  REQUIRE(blocks.ok());
  CHECK(*blocks == 16);
}

namespace {

// Each block loads a row by its tensor map, and adds the size of its cluster.
const char* const ranks_text = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry ranks(.param .u32 pad, .param .align 64 .b8 map[128], .param .u64 out)
{
  .reg .b64 %rd<4>;
  .reg .b32 %r<6>;
  .reg .pred %p<2>;
  .shared .align 128 .b8 tile[128];
  .shared .align 8 .b64 full;
  ld.param.u64 %rd1, [out];
  mov.b64 %rd2, map;
  cvta.param.u64 %rd2, %rd2;
  mov.u32 %r1, tile;
  mov.u32 %r2, full;
  mbarrier.init.shared::cta.b64 [%r2], 1;
  fence.mbarrier_init.release.cluster;
  mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], 128;
  mov.u32 %r3, 0;
  mov.u32 %r5, %ctaid.x;
  cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd2, {%r3, %r5}], [%r2];
WAIT:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
  @!%p1 bra WAIT;
  ld.shared.u32 %r4, [tile+4];
  mov.u32 %r3, %cluster_nctarank;
  mad.lo.u32 %r4, %r3, 1000, %r4;
  mul.wide.u32 %rd3, %r5, 4;
  add.u64 %rd1, %rd1, %rd3;
  st.global.u32 [%rd1], %r4;
  ret;
}
)";

// The parameter block of `ranks`: the map at 64, the output's address at 192.
cuda::KernelLaunch launch_of_ranks(std::span<const std::byte> map, uint64_t out) {
  cuda::KernelLaunch launch;
  launch.kernel = "ranks";
  launch.grid = {4, 1, 1};
  launch.block = {1, 1, 1};
  launch.parameters.resize(200);
  std::memcpy(launch.parameters.data() + 64, map.data(), map.size());
  std::memcpy(launch.parameters.data() + 192, &out, 8);
  return launch;
}

ir::TensorMap rows_of(uint64_t address) {
  ir::TensorMap map;
  map.element = ir::TensorElement::u32;
  map.rank = 2;
  map.address = address;
  map.dims = {32, 4};
  map.strides = {0, 128};
  map.box = {32, 1};
  map.element_strides = {1, 1};
  return map;
}

} // namespace

TEST_CASE("clusters, cooperative launches and tensor maps run on a driver that has them") {
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("ranks.ptx", ranks_text), diagnostics);
  REQUIRE(module);
  auto gpu = cuda::make_cuda_device(fake_driver);
  REQUIRE(gpu.ok());
  cuda::Device& device = **gpu;
  REQUIRE(device.load(*module).ok());
  const uint64_t in = *device.allocate(4 * 128, "in"), out = *device.allocate(16, "out");
  std::vector<uint32_t> numbers(4 * 32);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<uint32_t>(i);
  REQUIRE(device.write(in, std::as_bytes(std::span(numbers))).ok());
  ir::TensorMap map = rows_of(in);
  const auto object = device.encode_tensor_map(map);
  REQUIRE(object.ok());
  cuda::KernelLaunch launch = launch_of_ranks(*object, out);
  for (const uint32_t blocks : {1u, 2u, 4u})
    for (const bool cooperative : {false, true}) {
      CAPTURE(blocks);
      launch.cluster = launch::Dim3{blocks, 1, 1};
      launch.cooperative = cooperative;
      const auto run = device.launch(launch);
      REQUIRE(run.ok());
      CHECK_FALSE(run->failure);
      std::array<uint32_t, 4> results{};
      REQUIRE(device.read(out, std::as_writable_bytes(std::span(results))).ok());
      for (uint32_t i = 0; i < 4; ++i)
        CHECK(results[i] == 1000 * blocks + 32 * i + 1);
    }
  map.box[0] = 300;
  CHECK_FALSE(device.encode_tensor_map(map).ok());
  // A driver before CUDA 12 has neither.
  auto old_gpu = cuda::make_cuda_device(PTXREWRITE_PLAIN_DRIVER_PATH);
  REQUIRE(old_gpu.ok());
  REQUIRE((*old_gpu)->load(*module).ok());
  const auto refused = (*old_gpu)->launch(launch);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().message.find("cuLaunchKernelEx") != std::string::npos);
  map.box[0] = 32;
  CHECK_FALSE((*old_gpu)->encode_tensor_map(map).ok());
}
