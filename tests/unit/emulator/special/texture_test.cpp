// Textures and surfaces against the CUDA programming guide's formulas, stated on real numbers.
#include "emulator/core/observer.h"
#include "tests/unit/emulator/run_ptx.h"

#include <bit>
#include <cmath>
#include <map>
#include <set>

namespace ptxrewrite::emulator::texture_test {
namespace {

// Runs `body` in `threads` threads with a texture bound to `t` (a .texref), to `s` (a .surfref) and to the first
// parameter as a handle. The texels come first among the results, then one float4 (or four words) for each thread:
// the body leaves them in %r0 to %r3 and finds the inputs in %f0 to %f3, as numbers, and %i0 to %i3, as integers.
struct TextureRun {
  std::string error;
  std::vector<std::byte> texels;
  std::vector<std::array<uint32_t, 4>> results;
  std::map<unsigned, std::set<uint64_t>> touched; // by lane of the first warp: offsets in the texels
  float number(size_t thread, size_t channel) const { return std::bit_cast<float>(results[thread][channel]); }
};

// Offsets of what lanes access in the texels.
class Touches final : public Observer {
public:
  Touches(uint64_t begin, uint64_t bytes, TextureRun& run) : begin_(begin), bytes_(bytes), run_(run) {}
  bool wants_accesses() const override { return true; }
  void accessed(Block&, Warp& warp, const MicroOp&, const ObservedAccess& access) override {
    for (unsigned lane = 0; lane < warp_size; ++lane)
      if (const uint64_t offset = access.addresses[lane] - begin_; warp.mask >> lane & 1 && offset < bytes_)
        run_.touched[lane].insert(offset);
  }

private:
  uint64_t begin_, bytes_;
  TextureRun& run_;
};

TextureRun run_texture(const std::string& body, TextureBinding binding, const Buffer& texels,
                       const std::vector<std::array<float, 4>>& inputs) {
  // Samplers exist in the mode where they are separate from textures.
  const bool independent = body.find("sampler") != std::string::npos;
  std::string text = kernel("k", ".param .u64 handle, .param .u64 in, .param .u64 out", R"(
  .reg .b32 %r<8>, %t, %i<4>;
  .reg .f32 %f<4>;
  .reg .b16 %h<4>;
  .reg .b64 %handle, %p, %o, %x;
  mov.u32 %t, %tid.x;
  mul.wide.u32 %o, %t, 32;
  ld.param.u64 %handle, [handle];
  ld.param.u64 %p, [in];
  add.u64 %p, %p, %o;
  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%p];
  ld.global.v4.b32 {%i0, %i1, %i2, %i3}, [%p+16];
  mov.b32 %r0, 0; mov.b32 %r1, 0; mov.b32 %r2, 0; mov.b32 %r3, 0;
)" + body + R"(
  ld.param.u64 %p, [out];
  mul.wide.u32 %o, %t, 16;
  add.u64 %p, %p, %o;
  st.global.v4.b32 [%p], {%r0, %r1, %r2, %r3};
  ret;)",
                            std::string(".global .texref t;\n.global .surfref s;\n") +
                                (independent ? ".global .samplerref sampler;\n" : ""));
  if (independent) text.insert(text.find("sm_90") + 5, ", texmode_independent");
  Diagnostics diagnostics;
  auto module = grammar::read_module(SourceFile("test.ptx", std::move(text)), diagnostics);
  TextureRun run;
  for (const Diagnostic& diagnostic : diagnostics.list())
    run.error += diagnostic.message;
  if (!module) return run;
  DeviceMemory memory;
  auto program = Program::load(*module, memory);
  REQUIRE(program);
  const uint64_t image = *memory.allocate(texels.bytes.size(), "texels");
  const uint64_t in = *memory.allocate(inputs.size() * 32, "in"), out = *memory.allocate(inputs.size() * 16, "out");
  REQUIRE(memory.write(image, texels.bytes));
  std::vector<int32_t> words; // of each thread: the inputs as they are, and as integers
  for (const std::array<float, 4>& input : inputs) {
    for (float number : input)
      words.push_back(std::bit_cast<int32_t>(number));
    for (float number : input)
      words.push_back(static_cast<int32_t>(number));
  }
  REQUIRE(memory.write(in, std::as_bytes(std::span(words))));
  binding.address = image;
  Result<uint64_t> handle = (*program)->bind_texture(binding);
  REQUIRE(handle);
  REQUIRE((*program)->bind_texture(binding, "t"));
  REQUIRE((*program)->bind_texture(binding, "s"));
  CHECK_FALSE((*program)->bind_texture(binding, "nothing"));
  LaunchRequest request{.kernel = "k", .block = {static_cast<uint32_t>(inputs.size())}};
  const uint64_t arguments[] = {*handle, in, out};
  Touches touches(image, texels.bytes.size(), run);
  request.observer = &touches;
  request.parameters.assign(std::as_bytes(std::span(arguments)).begin(), std::as_bytes(std::span(arguments)).end());
  Result<LaunchResult> result = (*program)->launch(request);
  if (!result)
    run.error = result.error().message;
  else if (result->failure)
    run.error = result->failure->message;
  run.texels.resize(texels.bytes.size());
  run.results.resize(inputs.size());
  REQUIRE(memory.read(image, run.texels));
  REQUIRE(memory.read(out, std::as_writable_bytes(std::span(run.results))));
  return run;
}

// 6 x 4 floats: 10 y + x.
Buffer grid() {
  std::vector<float> values;
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 6; ++x)
      values.push_back(static_cast<float>(10 * y + x));
  return buffer_of(values);
}
const TextureBinding grid_binding{.width = 6, .height = 4};

const std::vector<std::array<float, 4>> places = {
    {0, 0, 0, 0},         {0.99f, 0.5f, 0, 0}, {1, 3.5f, 0, 0},      {5.5f, 2.25f, 0, 0},
    {-3, 1, 0, 0},        {7, 9, 0, 0},        {2.5f, 2.5f, 0, 0},   {3, 3, 0, 0},
    {0.25f, 3.75f, 0, 0}, {5.9f, -0.2f, 0, 0}, {1.5f, 0.125f, 0, 0},
};

TEST_CASE("nearest texels, clamped or zero outside") {
  for (const bool border : {false, true})
    for (const std::string where : {"t", "%handle", "t, sampler"}) {
      TextureBinding binding = grid_binding;
      binding.addressing = border ? TextureAddressing::border : TextureAddressing::clamp;
      const TextureRun run =
          run_texture("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [" + where + ", {%f0, %f1}];", binding, grid(), places);
      REQUIRE_MESSAGE(run.error.empty(), run.error);
      for (size_t i = 0; i < places.size(); ++i) {
        double x = std::floor(places[i][0]), y = std::floor(places[i][1]);
        const bool outside = x < 0 || x > 5 || y < 0 || y > 3;
        x = std::fmin(std::fmax(x, 0), 5);
        y = std::fmin(std::fmax(y, 0), 3);
        CHECK(run.number(i, 0) == (border && outside ? 0 : 10 * y + x));
        CHECK(run.number(i, 1) == 0);
      }
    }
}

TEST_CASE("linear filtering: a plane is itself between its texels") {
  TextureBinding binding = grid_binding;
  binding.filter = TextureFilter::linear;
  const TextureRun run = run_texture("tex.2d.v4.f32.f32 {%r0, %r1, %r2, _}, [t, {%f0, %f1}];", binding, grid(), places);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  for (size_t i = 0; i < places.size(); ++i) {
    // Texel centres lie at halves; beyond the outermost ones the texture is constant.
    const double x = std::fmin(std::fmax(places[i][0] - 0.5, 0), 5), y = std::fmin(std::fmax(places[i][1] - 0.5, 0), 3);
    CHECK(std::fabs(run.number(i, 0) - (10 * y + x)) <= 10.0 / 512 + 1.0 / 512); // weights of 8 bits
  }
}

TEST_CASE("observers see the texels that are fetched, and the elements of surfaces") {
  const std::string fetch = "tex.2d.v4.f32.f32 {%r0, %r1, %r2, _}, [t, {%f0, %f1}];";
  auto offset = [](int64_t x, int64_t y) {
    return static_cast<uint64_t>(4 * (6 * std::clamp<int64_t>(y, 0, 3) + std::clamp<int64_t>(x, 0, 5)));
  };
  const std::vector<std::array<float, 4>> some = {{0.5f, 0.5f, 0, 0}, {2.75f, 1.5f, 0, 0}, {3, 2, 0, 0}, {9, -3, 0, 0}};
  TextureRun run = run_texture(fetch, grid_binding, grid(), some);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  for (unsigned i = 0; i < some.size(); ++i)
    CHECK(run.touched[i] == std::set<uint64_t>{offset(static_cast<int64_t>(std::floor(some[i][0])),
                                                      static_cast<int64_t>(std::floor(some[i][1])))});
  // Linear filtering takes one texel at a centre, two between two, four between four.
  TextureBinding binding = grid_binding;
  binding.filter = TextureFilter::linear;
  run = run_texture(fetch, binding, grid(), some);
  CHECK(run.touched[0] == std::set<uint64_t>{offset(0, 0)});
  CHECK(run.touched[1] == std::set<uint64_t>{offset(2, 1), offset(3, 1)});
  CHECK(run.touched[2] == std::set<uint64_t>{offset(2, 1), offset(3, 1), offset(2, 2), offset(3, 2)});
  CHECK(run.touched[3] == std::set<uint64_t>{offset(5, 0)});
  // A border is nowhere.
  binding.filter = TextureFilter::nearest;
  binding.addressing = TextureAddressing::border;
  CHECK(run_texture(fetch, binding, grid(), some).touched.count(3) == 0);
  // The first coordinate of a surface counts bytes.
  for (const char* access : {"suld.b.2d.b32.trap %r0, [s, {%i0, %i1}];", "sust.b.2d.b32.trap [s, {%i0, %i1}], %r0;"}) {
    run = run_texture(access, grid_binding, grid(), {{4, 1, 0, 0}, {20, 3, 0, 0}});
    REQUIRE_MESSAGE(run.error.empty(), run.error);
    CHECK(run.touched[0] == std::set<uint64_t>{offset(1, 1)});
    CHECK(run.touched[1] == std::set<uint64_t>{offset(5, 3)});
  }
}

TEST_CASE("normalised coordinates, wrapped and mirrored") {
  // 4 texels 1 2 3 4, sampled at their centres, three times over.
  std::vector<std::array<float, 4>> inputs;
  for (int i = -4; i < 8; ++i)
    inputs.push_back({(static_cast<float>(i) + 0.5f) / 4, 0, 0, 0});
  TextureBinding binding{.width = 4, .normalised_coordinates = true};
  const std::pair<TextureAddressing, std::vector<float>> rows[] = {
      {TextureAddressing::wrap, {1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}},
      {TextureAddressing::mirror, {4, 3, 2, 1, 1, 2, 3, 4, 4, 3, 2, 1}},
      {TextureAddressing::clamp, {1, 1, 1, 1, 1, 2, 3, 4, 4, 4, 4, 4}},
      {TextureAddressing::border, {0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0}},
  };
  for (const auto& [mode, expected] : rows)
    for (const TextureFilter filter : {TextureFilter::nearest, TextureFilter::linear}) {
      binding.addressing = mode;
      binding.filter = filter;
      const TextureRun run = run_texture("tex.level.1d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0}], 0f00000000;",
                                         binding, buffer_of<float>({1, 2, 3, 4}), inputs);
      REQUIRE_MESSAGE(run.error.empty(), run.error);
      for (size_t i = 0; i < inputs.size(); ++i)
        CHECK(run.number(i, 0) == expected[i]);
    }
}

TEST_CASE("integer coordinates, integer channels, and integers read as numbers") {
  const Buffer bytes = buffer_of<uint8_t>({0, 255, 51, 128, 1, 2, 3, 4});
  std::vector<std::array<float, 4>> inputs = {{0, 0, 0, 0}, {1, 0, 0, 0}, {2, 0, 0, 0}, {-1, 0, 0, 0}};
  TextureBinding binding{.kind = TexelKind::unsigned_integer, .channel_bits = 8, .channels = 4, .width = 2};
  TextureRun run = run_texture("tex.1d.v4.u32.s32 {%r0, %r1, %r2, %r3}, [t, {%i0}];", binding, bytes, inputs);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.results[0] == std::array<uint32_t, 4>{0, 255, 51, 128});
  CHECK(run.results[1] == std::array<uint32_t, 4>{1, 2, 3, 4});
  CHECK(run.results[2] == std::array<uint32_t, 4>{0, 0, 0, 0});
  CHECK(run.results[3] == std::array<uint32_t, 4>{0, 0, 0, 0});
  binding.kind = TexelKind::signed_integer;
  run = run_texture("tex.1d.v4.s32.s32 {%r0, %r1, %r2, %r3}, [t, {%i0}];", binding, bytes, inputs);
  CHECK(run.results[0] == std::array<uint32_t, 4>{0, static_cast<uint32_t>(-1), 51, static_cast<uint32_t>(-128)});
  binding.kind = TexelKind::unsigned_integer;
  binding.normalised_float = true;
  run = run_texture("tex.1d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0}];", binding, bytes, inputs);
  CHECK(run.number(0, 1) == 1.f);
  CHECK(run.number(0, 2) == 0.2f);
}

TEST_CASE("volumes and layers") {
  std::vector<float> values;
  for (int z = 0; z < 3; ++z)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 4; ++x)
        values.push_back(static_cast<float>(100 * z + 10 * y + x));
  TextureBinding binding{.width = 4, .height = 2, .depth = 3};
  const std::vector<std::array<float, 4>> inputs = {{3.5f, 1.5f, 2.5f, 0}, {0.5f, 0.5f, 1.2f, 0}, {9, 9, 9, 0}};
  TextureRun run = run_texture("tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1, %f2, %f3}];", binding,
                               buffer_of(values), inputs);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.number(0, 0) == 213);
  CHECK(run.number(1, 0) == 100);
  CHECK(run.number(2, 0) == 213);
  binding.filter = TextureFilter::linear;
  run = run_texture("tex.3d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1, %f2, %f3}];", binding, buffer_of(values),
                    {{2, 1, 1.5f, 0}, {2, 1, 2, 0}});
  CHECK(run.number(0, 0) == 100 + 5 + 1.5f);
  CHECK(run.number(1, 0) == 150 + 5 + 1.5f);
  binding.filter = TextureFilter::nearest;
  binding.layered = true;
  run = run_texture("tex.a2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%i2, %f0, %f1, %f1}];", binding, buffer_of(values),
                    inputs);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.number(0, 0) == 213);
  CHECK(run.number(1, 0) == 100);
  CHECK(run.number(2, 0) == 213); // layers are clamped
}

TEST_CASE("tld4 and the sizes of textures") {
  TextureRun run =
      run_texture("tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1}];", grid_binding, grid(), {{2, 2, 0, 0}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.number(0, 0) == 21); // texels (1, 2), (2, 2), (2, 1), (1, 1)
  CHECK(run.number(0, 1) == 22);
  CHECK(run.number(0, 2) == 12);
  CHECK(run.number(0, 3) == 11);
  run = run_texture("txq.width.b32 %r0, [t];\ntxq.height.b32 %r1, [%handle];\nsuq.width.b32 %r2, [s];", grid_binding,
                    grid(), {{0, 0, 0, 0}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.results[0] == std::array<uint32_t, 4>{6, 4, 6, 0});
}

TEST_CASE("surfaces: loads, stores, reductions, and what is outside") {
  TextureBinding binding = grid_binding;
  binding.kind = TexelKind::unsigned_integer;
  std::vector<uint32_t> values(24);
  for (uint32_t i = 0; i < 24; ++i)
    values[i] = 100 + i;
  // Thread t goes to byte 4 t of row 1.
  const std::string body = "shl.b32 %i0, %t, 2;\nmov.u32 %i1, 1;\n";
  const std::vector<std::array<float, 4>> threads(8);
  TextureRun run = run_texture(body + "suld.b.2d.b32.zero %r0, [s, {%i0, %i1}];\n"
                                      "suld.b.2d.b32.clamp %r1, [s, {%i0, %i1}];\n"
                                      "add.u32 %r4, %r1, 1000;\n"
                                      "sust.b.2d.b32.zero [s, {%i0, %i1}], %r4;\n"
                                      "mov.u32 %i2, 0;\n"
                                      "sured.b.add.2d.u32.zero [s, {%i2, %i2}], 5;\n",
                               binding, buffer_of(values), threads);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  std::vector<uint32_t> after(24);
  std::memcpy(after.data(), run.texels.data(), run.texels.size());
  for (uint32_t t = 0; t < 8; ++t) {
    CHECK(run.results[t][0] == (t < 6 ? 106 + t : 0));
    CHECK(run.results[t][1] == (t < 6 ? 106 + t : 111));
    if (t < 6) CHECK(after[6 + t] == 1106 + t);
  }
  CHECK(after[0] == 100 + 8 * 5);
  CHECK(after[12] == 112);
  run = run_texture(body + "suld.b.2d.v2.b16.trap {%h0, %h1}, [s, {%i0, %i1}];\ncvt.u32.u16 %r0, %h0;", binding,
                    buffer_of(values), {{}, {}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.results[1][0] == 107);
  run = run_texture(body + "suld.b.2d.b32.trap %r0, [s, {%i0, %i1}];", binding, buffer_of(values), threads);
  CHECK(run.error.find("surface access of 4 bytes at (24, 1, 0)") == 0);
}

// Six faces of 2 x 2 texels: 100 face + 10 y + x. Directions through the middle of each texel, from the table of the
// CUDA programming guide ("Cubemap Textures"), solved for the direction.
TEST_CASE("cubes: the texel that a direction meets") {
  std::vector<float> values;
  for (int cube = 0; cube < 2; ++cube)
    for (int face = 0; face < 6; ++face)
      for (int y = 0; y < 2; ++y)
        for (int x = 0; x < 2; ++x)
          values.push_back(static_cast<float>(1000 * cube + 100 * face + 10 * y + x));
  const auto direction = [](int face, float s, float t) -> std::array<float, 4> {
    switch (face) {
    case 0:
      return {1, -t, -s, 0};
    case 1:
      return {-1, -t, s, 0};
    case 2:
      return {s, 1, t, 0};
    case 3:
      return {s, -1, -t, 0};
    case 4:
      return {s, -t, 1, 0};
    default:
      return {-s, -t, -1, 0};
    }
  };
  TextureBinding binding{.width = 2, .height = 2, .depth = 12, .layered = true, .normalised_coordinates = true};
  std::vector<std::array<float, 4>> inputs;
  std::vector<float> expected;
  for (int face = 0; face < 6; ++face)
    for (int y = 0; y < 2; ++y)
      for (int x = 0; x < 2; ++x) {
        std::array<float, 4> place = direction(face, static_cast<float>(x) - 0.5f, static_cast<float>(y) - 0.5f);
        for (float& number : place)
          number *= 3; // length does not matter
        place[3] = 1;  // the second cube
        inputs.push_back(place);
        expected.push_back(static_cast<float>(100 * face + 10 * y + x));
      }
  for (const TextureFilter filter : {TextureFilter::nearest, TextureFilter::linear}) {
    binding.filter = filter;
    TextureRun run = run_texture("tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1, %f2, %f3}];", binding,
                                 buffer_of(values), inputs);
    REQUIRE_MESSAGE(run.error.empty(), run.error);
    for (size_t i = 0; i < inputs.size(); ++i)
      CHECK(run.number(i, 0) == expected[i]);
    run = run_texture("tex.acube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%i3, %f0, %f1, %f2}];", binding,
                      buffer_of(values), inputs);
    REQUIRE_MESSAGE(run.error.empty(), run.error);
    for (size_t i = 0; i < inputs.size(); ++i)
      CHECK(run.number(i, 0) == expected[i] + 1000);
  }
  // The four texels of a face, in the order of tld4, at its middle.
  const TextureRun run = run_texture("tld4.r.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1, %f2, %f3}];", binding,
                                     buffer_of(values), {{0, 5, 0, 0}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  const float order[] = {210, 211, 201, 200};
  for (size_t i = 0; i < 4; ++i)
    CHECK(run.number(0, i) == order[i]);
}

TEST_CASE("offsets in texels, halves and residency") {
  TextureRun run = run_texture("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1}], {%i2, %i3};", grid_binding,
                               grid(), {{2.5f, 1.5f, 2, -1}, {2.5f, 1.5f, -8, 7}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.number(0, 0) == 4);  // texel (4, 0)
  CHECK(run.number(1, 0) == 30); // clamped: (0, 3)
  run = run_texture("tex.2d.v4.f32.s32 {%r0, %r1, %r2, %r3}, [t, {%i0, %i1}], {%i2, %i3};", grid_binding, grid(),
                    {{2, 1, 2, -1}, {2, 1, 7, 0}});
  CHECK(run.number(0, 0) == 4);
  CHECK(run.number(1, 0) == 0); // outside
  run = run_texture("tld4.r.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1}], {%i2, %i3};", grid_binding, grid(),
                    {{2, 2, 1, -1}});
  CHECK(run.number(0, 0) == 12); // texels (2, 1), (3, 1), (3, 0), (2, 0)
  CHECK(run.number(0, 2) == 3);
  run = run_texture(".reg .pred %there;\n"
                    "tex.2d.v4.f16.f32 {%h0, %h1, %h2, %h3}|%there, [t, {%f0, %f1}];\n"
                    "mov.b32 %r0, {%h0, %h1};\nselp.b32 %r1, 1, 0, %there;\n"
                    "tex.2d.v2.f16x2.f32 {%r2, %r3}, [t, {%f0, %f1}];\n",
                    grid_binding, grid(), {{3.5f, 2.5f, 0, 0}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.results[0] == std::array<uint32_t, 4>{0x4dc0, 1, 0x4dc0, 0}); // 23 as f16
}

TEST_CASE("attributes of textures and surfaces, by OpenCL's numbers") {
  TextureBinding binding{.kind = TexelKind::signed_integer,
                         .channel_bits = 16,
                         .channels = 2,
                         .width = 4,
                         .height = 3,
                         .addressing = TextureAddressing::border,
                         .filter = TextureFilter::linear,
                         .normalised_coordinates = true};
  const TextureRun run = run_texture("txq.channel_data_type.b32 %r0, [t];\nsuq.channel_order.b32 %r1, [s];\n"
                                     "txq.filter_mode.b32 %r2, [t];\ntxq.addr_mode_1.b32 %r3, [t];\n"
                                     "shl.b32 %r2, %r2, 4;\ntxq.normalized_coords.b32 %r4, [t];\n"
                                     "or.b32 %r2, %r2, %r4;\n",
                                     binding, zeros<uint8_t>(48), {{}});
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  CHECK(run.results[0] == std::array<uint32_t, 4>{0x10d8, 0x10b2, 0x11, 4}); // CL_SIGNED_INT16, CL_RG, linear, border
}

TEST_CASE("surfaces: formatted stores and reductions of samples") {
  // Four components of which the sample has two; x counts samples.
  const std::string store = "sust.p.1d.v4.b32.zero [s, {%i0}], {%f1, %f2, %f3, %f3};";
  const std::vector<std::array<float, 4>> two = {{1, 0.5f, -7, 9}, {5, 1, 1, 1}};
  TextureBinding binding{.kind = TexelKind::floating, .channel_bits = 16, .channels = 2, .width = 3};
  TextureRun run = run_texture(store, binding, zeros<uint16_t>(6), two);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  const auto halves = [&] {
    std::vector<uint16_t> values(run.texels.size() / 2);
    std::memcpy(values.data(), run.texels.data(), run.texels.size());
    return values;
  };
  CHECK(halves() == std::vector<uint16_t>{0, 0, 0x3800, 0xc700, 0, 0}); // 0.5, -7
  // Numbers between -1 and 1 in 16 bits with a sign: nearest, and saturated.
  binding.kind = TexelKind::signed_integer;
  binding.normalised_float = true;
  run = run_texture(store, binding, zeros<uint16_t>(6), two);
  CHECK(halves() == std::vector<uint16_t>{0, 0, 16384, static_cast<uint16_t>(-32767), 0, 0});
  // Whole numbers are saturated.
  binding.normalised_float = false;
  const std::string integers = "sust.p.1d.v2.b32.clamp [s, {%i0}], {%i1, %i2};";
  run = run_texture(integers, binding, zeros<uint16_t>(6), {{1, 70000, -70000, 0}, {9, -3, 4, 0}});
  CHECK(halves() == std::vector<uint16_t>{0, 0, 32767, 32768, static_cast<uint16_t>(-3), 4});
  // The surface says whether 32 bits are signed.
  binding = {.kind = TexelKind::signed_integer, .channel_bits = 32, .channels = 1, .width = 4};
  const std::string reduce = "sured.p.min.1d.b32.trap [s, {%i0}], %i1;";
  const std::vector<std::array<float, 4>> minus = {{2, -5, 0, 0}};
  run = run_texture(reduce, binding, buffer_of<int32_t>({1, 2, 3, 4}), minus);
  REQUIRE_MESSAGE(run.error.empty(), run.error);
  std::vector<int32_t> words(4);
  std::memcpy(words.data(), run.texels.data(), 16);
  CHECK(words == std::vector<int32_t>{1, 2, -5, 4});
  binding.kind = TexelKind::unsigned_integer;
  run = run_texture(reduce, binding, buffer_of<int32_t>({1, 2, 3, 4}), minus);
  std::memcpy(words.data(), run.texels.data(), 16);
  CHECK(words == std::vector<int32_t>{1, 2, 3, 4});
  run =
      run_texture("sured.p.add.1d.b32.trap [s, {%i0}], 1;", binding, buffer_of<int32_t>({1, 2, 3, 4}), {{4, 0, 0, 0}});
  CHECK(run.error.find("surface access of 4 bytes at (16, 0, 0)") == 0);
}

TEST_CASE("what is not bound or not emulated is told") {
  const std::vector<std::array<float, 4>> one = {{}};
  CHECK(run_texture("mov.u64 %x, 77;\ntex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [%x, {%f0, %f1}];", grid_binding, grid(),
                    one)
            .error == "0x4d is no texture or surface that is bound");
  CHECK(run_texture("tex.cube.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1, %f2, %f3}];", grid_binding, grid(), one)
            .error == "a texture with fewer than the six layers of a cube");
  CHECK(run_texture("tex.2d.v4.f32.f32 {%r0, %r1, %r2, %r3}, [t, {%f0, %f1}], %f2;", grid_binding, grid(), one)
            .error.find("comparisons with depth textures are not emulated") == 0);
}

} // namespace
} // namespace ptxrewrite::emulator::texture_test
