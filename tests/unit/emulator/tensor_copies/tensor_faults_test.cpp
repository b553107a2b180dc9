// Tensor copies that cannot be, and maps of any bytes: a fault that says what is wrong, and no byte touched beside the
// tensor and the tile.
#include "tests/unit/emulator/tensor_copies/tensor_run.h"

#include <algorithm>

namespace ptxrewrite::emulator::tensor_faults_test {
namespace {

constexpr const char* load_2d =
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1}], "
    "[%bar];\n";
constexpr const char* store_2d = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {%c0, %c1}], [%tile];\n";

// A tile of 8 rows of 64 bytes in a tensor of 16 rows of 128.
TensorSetup small_tile() {
  TensorSetup setup;
  setup.map.rank = 2;
  setup.map.dims = {128, 16};
  setup.map.strides = {0, 128};
  setup.map.box = {64, 8};
  setup.map.element_strides = {1, 1};
  setup.coordinates = {0, 0};
  setup.tensor = random_bytes(2048, 1);
  setup.shared = random_bytes(1024, 2);
  setup.expected_bytes = 512;
  setup.copy = load_2d;
  return setup;
}

template <class Change> std::string failure_of(Change&& change) {
  TensorSetup setup = small_tile();
  change(setup);
  const TensorRun run = run_tensor(setup);
  if (!run.error.empty()) return run.error;
  if (!run.failure.empty()) {
    // The copy that fails moves nothing.
    CHECK(run.tensor == setup.tensor);
    return run.failure;
  }
  return "none";
}

void check_names(const std::string& failure, const std::string& part) {
  CAPTURE(failure);
  CAPTURE(part);
  CHECK(failure.find(part) != std::string::npos);
}

TEST_CASE("tensor copies that the map, the coordinates or memory forbid") {
  CHECK(failure_of([](TensorSetup&) {}) == "none");
  check_names(failure_of([](TensorSetup& s) {
                s.map.rank = 3, s.map.dims[2] = 1, s.map.box[2] = 1, s.map.element_strides[2] = 1;
              }),
              "of a tensor with 3 dimensions; the instruction has 2");
  check_names(failure_of([](TensorSetup& s) { s.tile_offset = 64; }), "which is not a multiple of 128");
  check_names(failure_of([](TensorSetup& s) { s.map.box[1] = 32; }),
              "shared tensor copy of 2048 bytes at 0x400 is out of bounds: the block has");
  check_names(failure_of([](TensorSetup& s) { s.map.box = {256, 256}; }), "of 65536 bytes at 0x400 is out of bounds");
  check_names(failure_of([](TensorSetup& s) { s.map.dims[1] = 1000, s.coordinates[1] = 500; }),
              "global tensor copy of 64 bytes");
  check_names(failure_of([](TensorSetup& s) { s.copy = store_2d, s.map.dims[1] = 1000, s.coordinates[1] = 14; }),
              "global tensor copy of 64 bytes");
  check_names(failure_of([](TensorSetup& s) { s.before = "add.u64 %map, %map, 32;\n"; }),
              "which is not a multiple of 64");
  check_names(failure_of([](TensorSetup& s) { s.before = "cvt.u64.u32 %map, %tile;\ncvta.shared.u64 %map, %map;\n"; }),
              "a tensor map in shared memory");
  check_names(failure_of([](TensorSetup& s) { s.copy = store_2d, s.coordinates[0] = -16; }),
              "coordinate 0 is -16; a store has none below 0");
  check_names(failure_of([](TensorSetup& s) { s.map_bytes = random_bytes(128, 9); }), "its bytes are no tensor map");
  check_names(failure_of([](TensorSetup& s) { s.map_bytes.resize(128); }), "dims[0] is 0");
  check_names(failure_of([](TensorSetup& s) { s.map.strides[1] = 136; }), "which is no multiple of 16");
  check_names(failure_of([](TensorSetup& s) { s.map.access = ir::TensorAccess::im2col; }), "the rank is 2; 3 to 5");
  check_names(failure_of([](TensorSetup& s) {
                s.copy = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
                         "[%tile], [%map, {%c0, %c1, %c2, %c3, %c4}], [%bar];\n";
              }),
              "the map's box has 8 rows");
  check_names(failure_of([](TensorSetup& s) {
                s.copy = store_2d, s.map.swizzle = ir::SwizzleSpan::bytes128, s.map.box[0] = 128,
                s.map.atom = ir::SwizzleAtom::bytes32_flip8;
              }),
              "a swizzle that flips 8 bytes is for loads");
  const auto pad = [](TensorSetup& s) { s.map.element = ir::TensorElement::b4x16_p64, s.map.box[0] = 128; };
  check_names(failure_of([&](TensorSetup& s) { pad(s), s.copy = store_2d; }),
              "a store of elements of type b4x16_p64, which there are only loads of");
  check_names(failure_of([&](TensorSetup& s) { pad(s), s.coordinates[0] = 64; }),
              "coordinate 0 is 64; of elements of type b4x16_p64 it has to be a multiple of 128");
}

TEST_CASE("what no public text describes is refused by name") {
  check_names(failure_of([](TensorSetup& s) { s.map.swizzle = ir::SwizzleSpan::bytes128; }),
              "rows of 64 bytes in a swizzle of 128, which is not emulated");
  check_names(failure_of([](TensorSetup& s) { s.map.swizzle = ir::SwizzleSpan::bytes96; }),
              "rows of 64 bytes in a swizzle of 96, which is not emulated");
  const auto refusal = [](const std::string& copy) { return failure_of([&](TensorSetup& s) { s.copy = copy; }); };
  check_names(refusal("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                      "[%tile], [%map, {%c0, %c1}], [%bar], 3;\n"),
              "a copy to the blocks of mask 3, in a cluster of 1");
}

// --- any bytes ---

constexpr const char* hostile_instructions[] = {
    load_2d,
    store_2d,
    "cp.async.bulk.tensor.1d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {%c0}], [%bar];\n",
    "cp.async.bulk.tensor.5d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1, %c2, %c3, "
    "%c4}], [%bar];\n",
    "cp.async.bulk.tensor.4d.shared::cta.global.im2col.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1, %c2, "
    "%c3}], [%bar], {%h0, %h1};\n",
    "cp.async.bulk.tensor.3d.global.shared::cta.im2col_no_offs.bulk_group [%map, {%c0, %c1, %c2}], [%tile];\n",
    "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [%map, {%c0, %c1, %c2, %c3, %c4}], "
    "[%tile];\n",
    "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {%c0, %c1}], [%tile];\n",
    "cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {%c0, %c1}];\n",
    "cp.async.bulk.tensor.4d.shared::cta.global.im2col::w.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1, %c2, "
    "%c3}], [%bar], {%h0, %h1};\n",
    "cp.async.bulk.tensor.3d.shared::cta.global.im2col::w::128.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1, "
    "%c2}], [%bar], {%h0, %h1};\n",
    "mov.b32 %c0, 0;\nmov.b32 %c1, 0;\n"
    "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.override::global_address.override::global_dim_stride "
    "[%map, %tensor, {%h0, %h1}, {%c2}, %h2, {%c0, %c1}], [%tile];\n",
    // Copied to global memory, changed there, used there.
    "ld.global.b64 %d0, [%image];\n"
    "st.global.b64 [%tensor], %d0;\n"
    "tensormap.replace.tile.global_dim.global.b1024.b32 [%tensor], 1, %c1;\n"
    "cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%tile], [%tensor, {%c0, %c1}], "
    "[%bar];\n",
};

constexpr int accesses[] = {0, 0, 0, 0, 0, 1, 2, 3}; // mostly tiles

TEST_CASE("maps of any bytes: 2,600 kernels") {
  DeviceMemory memory;
  const auto allocate = [&](size_t bytes, const char* name) { return *memory.allocate(bytes, name); };
  // The tensor between two guards; reading beyond it is a fault, and so is writing.
  const uint64_t before = allocate(4096, "before"), tensor = allocate(4096, "tensor"), after = allocate(4096, "after"),
                 image = allocate(4096, "image");
  const std::vector<std::byte> guard = random_bytes(4096, 5);
  REQUIRE(memory.write(before, guard));
  REQUIRE(memory.write(after, guard));
  unsigned faults = 0, completions = 0;
  std::mt19937_64 random(1);
  for (const char* instruction : hostile_instructions) {
    TensorSetup setup = small_tile();
    setup.copy = instruction;
    if (setup.copy.find("override") != std::string::npos) setup.target = ".version 9.4\n.target sm_107f\n";
    Diagnostics diagnostics;
    auto module = grammar::read_module(SourceFile("test.ptx", tensor_kernel(setup)), diagnostics);
    REQUIRE(module);
    auto program = Program::load(*module, memory);
    REQUIRE(program);
    for (unsigned round = 0; round < 200; ++round) {
      TensorMapObject object;
      for (std::byte& byte : object)
        byte = static_cast<std::byte>(random());
      if (round % 4 != 0) { // a map: of anything, or of something sensible with a few bytes of anything
        ir::TensorMap map = setup.map;
        map.address = tensor;
        map.rank = 1 + static_cast<uint32_t>(random() % 5);
        for (unsigned i = 0; i < 5; ++i) {
          map.dims[i] = round % 4 == 1 ? random() : 1 + random() % 64;
          map.strides[i] = round % 4 == 1 ? random() : 16 * (random() % 8);
          map.box[i] = round % 4 == 1 ? static_cast<uint32_t>(random()) : 16 << random() % 2 >> (i == 0 ? 0 : 4);
          map.element_strides[i] = 1 + static_cast<uint32_t>(random() % (round % 4 == 1 ? 300 : 2));
        }
        map.access = static_cast<ir::TensorAccess>(accesses[random() % std::size(accesses)]);
        map.element = static_cast<ir::TensorElement>(random() % (round % 4 == 1 ? 16 : 5));
        map.channels = 16;
        map.pixels = static_cast<uint32_t>(random() % 64);
        map.fill = static_cast<ir::TensorFill>(random() % 8 == 0);
        object = encode_tensor_map(map);
        if (round % 4 == 3)
          for (int i = 0; i < 2; ++i)
            object[random() % object.size()] = static_cast<std::byte>(random());
      }
      LaunchRequest request{.kernel = "k", .block = {32}};
      request.shared_bytes = 1024;
      request.late_copies = round % 8 == 7;
      request.fuel = 100'000;
      request.parameters.resize(184);
      std::byte* to = request.parameters.data();
      std::memcpy(to, object.data(), object.size());
      std::memcpy(to + 128, &image, 8);
      const uint32_t words = 16, bytes = 0;
      std::memcpy(to + 136, &words, 4);
      std::memcpy(to + 140, &bytes, 4);
      for (unsigned i = 0; i < 8; ++i) {
        const auto value = static_cast<int32_t>(random() >> (round % 2 ? 62 : 32));
        std::memcpy(to + 144 + 4 * i, &value, 4);
      }
      std::memcpy(to + 176, &tensor, 8);
      REQUIRE(memory.write(image, object));
      auto result = (*program)->launch(request);
      REQUIRE(result);
      if (result->failure) {
        CHECK_FALSE(result->failure->message.empty());
        ++faults;
      } else {
        ++completions;
      }
    }
  }
  std::vector<std::byte> found(4096);
  REQUIRE(memory.read(before, found));
  CHECK(found == guard);
  REQUIRE(memory.read(after, found));
  CHECK(found == guard);
  CHECK(faults + completions == 2600);
  CHECK(faults > 500);
  CHECK(completions > 100);
}

// --- a kernel that makes its map ---

// A kernel that makes the map of `host` itself, behind the tensor, and loads by it.
TensorSetup self_made(const TensorSetup& host, const std::string& fence) {
  TensorSetup device = host;
  device.map_bytes.resize(128);     // not used
  device.tensor.resize(2048 + 128); // the map goes behind the tensor
  device.copy = R"(
  .reg .b32 %zero, %m, %l;
  mov.b32 %zero, 0;
  add.u32 %m, %tile, 768;
)";
  for (int i = 0; i < 128; i += 4)
    device.copy += "  st.shared.b32 [%m+" + std::to_string(i) + "], %zero;\n";
  device.copy += R"(
  cvt.u64.u32 %d1, %m;
  tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%d1], %tensor;
  tensormap.replace.tile.rank.shared::cta.b1024.b32 [%d1], 1;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d1], 0, 32;
  tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%d1], 1, 8;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d1], 0, 60;
  tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%d1], 1, 16;
  mov.b64 %d2, 128;
  tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%d1], 0, %d2;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d1], 0, 1;
  tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%d1], 1, 1;
  tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%d1], 6;
  tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%d1], 0;
  tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%d1], 2;
  tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%d1], 1;
  add.u64 %map, %tensor, 2048;
  tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [%d1], 128;
)" + fence + host.copy;
  return device;
}

constexpr const char* map_fence = "fence.proxy.tensormap::generic.acquire.gpu [%map], 128;\n";

TensorSetup half_tile() {
  TensorSetup host = small_tile();
  host.map.element = ir::TensorElement::f16;
  host.map.dims = {60, 16};
  host.map.box = {32, 8};
  host.map.swizzle = ir::SwizzleSpan::bytes64;
  host.map.fill = ir::TensorFill::nan;
  host.coordinates = {40, 12};
  return host;
}

TEST_CASE("tensormap.replace: a map from zeros, in shared memory, carried to global memory") {
  // What the host would have made of the same numbers is the truth: the tile must be the same.
  const TensorRun by_host = run_tensor(half_tile());
  REQUIRE_MESSAGE(by_host.failure.empty(), by_host.failure);
  const TensorRun by_device = run_tensor(self_made(half_tile(), map_fence));
  REQUIRE_MESSAGE(by_device.error.empty(), by_device.error);
  REQUIRE_MESSAGE(by_device.failure.empty(), by_device.failure);
  CHECK(std::equal(by_host.shared.begin(), by_host.shared.begin() + 512, by_device.shared.begin()));
}

// --- what --check and --late-copies find ---

// The first finding's message; "none".
std::string finding_of(TensorSetup setup) {
  setup.check = true;
  const TensorRun run = run_tensor(setup);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  REQUIRE_MESSAGE(run.failure.empty(), run.failure);
  return run.findings.empty() ? "none" : run.findings.front().where.message;
}

TEST_CASE("a missing fence.proxy.tensormap behind a map's change is found") {
  CHECK(finding_of(self_made(half_tile(), map_fence)) == "none");
  check_names(finding_of(self_made(half_tile(), "")), "missing fence: the tensor map has been changed");
}

TEST_CASE("a missing fence.proxy.async between stores and a copy out of shared memory is found") {
  TensorSetup setup = small_tile();
  setup.expected_bytes = 0;
  setup.copy = store_2d;
  CHECK(finding_of(setup) == "none");
  setup.fenced = false;
  check_names(finding_of(setup), "missing fence: the bulk copy reads shared 0x400");
  setup.copy = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%map, {%c0, %c1}], [%tile];\n";
  setup.map.element = ir::TensorElement::u32;
  setup.map.dims[0] = 32;
  setup.map.box[0] = 16;
  check_names(finding_of(setup), "missing fence: the bulk copy reads shared 0x400");
}

TEST_CASE("waits for the wrong phase, and for more bytes than come") {
  TensorSetup setup = small_tile();
  for (const bool late : {false, true}) {
    setup.late = late;
    setup.parity = 0;
    const TensorRun right = run_tensor(setup);
    REQUIRE_MESSAGE(right.failure.empty(), right.failure);
    CHECK(std::equal(right.shared.begin(), right.shared.begin() + 64, setup.tensor.begin()));
    // The phase before the first one is over already. A copy that takes its time has not come then; one that takes
    // none has ended the phase, and the other one never will.
    setup.parity = 1;
    const TensorRun wrong = run_tensor(setup);
    if (late)
      CHECK(std::equal(wrong.shared.begin(), wrong.shared.begin() + 64, setup.shared.begin()));
    else
      check_names(wrong.failure, "nothing that they wait for will come");
  }
  setup = small_tile();
  setup.expected_bytes = 528;
  check_names(run_tensor(setup).failure, "nothing that they wait for will come");
}

TEST_CASE("tensormap.replace of what is no map, and with what no map has") {
  const auto failure = [](const std::string& edit) { return failure_of([&](TensorSetup& s) { s.before = edit; }); };
  check_names(failure("tensormap.replace.tile.rank.global.b1024.b32 [%tensor], 1;\n"), "its bytes are no tensor map");
  check_names(failure("tensormap.replace.tile.rank.b1024.b32 [%map], 1;\n"),
              "a tensor map in parameter memory cannot be changed");
}

} // namespace
} // namespace ptxrewrite::emulator::tensor_faults_test
