// A program of CUDA 11 without its headers or compiler: what nvcc 11 generates for texture and surface references,
// registered by hand. Texels are compared with the host's arrays.
#include "tests/applications/expect.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

struct Channels {
  int x, y, z, w, kind; // bits; 0 signed, 1 unsigned, 2 floating
};

// textureReference of CUDA 11.8's texture_types.h: 124 bytes.
struct TextureReference {
  int normalised, filter, address[3];
  Channels channels;
  int rest[21];
};
static_assert(sizeof(TextureReference) == 124);

extern "C" {
void** __cudaRegisterFatBinary(const void* wrapper);
void __cudaRegisterFatBinaryEnd(void** handle);
void __cudaRegisterFunction(void** handle, const void* host, char* device, const char* name, int limit, void*, void*,
                            void*, void*, int*);
void __cudaRegisterTexture(void** handle, const void* host, const char* in_ptx, const char* in_source, int dimensions,
                           int normalised_floats, int);
void __cudaRegisterSurface(void** handle, const void* host, const char* in_ptx, const char* in_source, int dimensions,
                           int);
int cudaMalloc(void** pointer, size_t bytes);
int cudaMemcpy(void* to, const void* from, size_t bytes, int kind);
int cudaMallocArray(void** array, const Channels* channels, size_t width, size_t height, unsigned flags);
int cudaMemcpy2DToArray(void* array, size_t x, size_t y, const void* from, size_t pitch, size_t width, size_t height,
                        int kind);
int cudaBindTexture(size_t* offset, const void* reference, const void* pointer, const Channels* channels, size_t bytes);
int cudaBindTexture2D(size_t* offset, const void* reference, const void* pointer, const Channels* channels,
                      size_t width, size_t height, size_t pitch);
int cudaBindTextureToArray(const void* reference, const void* array, const Channels* channels);
int cudaUnbindTexture(const void* reference);
int cudaGetTextureReference(const void** reference, const void* symbol);
int cudaGetTextureAlignmentOffset(size_t* offset, const void* reference);
int cudaBindSurfaceToArray(const void* reference, const void* array, const Channels* channels);
int cudaLaunchKernel(const void* kernel, struct Grid grid, struct Grid block, void** arguments, size_t shared,
                     void* stream);
int cudaDeviceSynchronize();
}
struct Grid {
  unsigned x, y, z;
};

static const char ptx[] = R"(
.version 6.5
.target sm_70
.address_size 64
.global .texref linear;
.global .texref plane;
.global .surfref target;
.visible .entry read(.param .u64 out)
{
  .reg .b32 %r<9>;
  .reg .f32 %f<9>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd2, %r1, 8;
  add.s64 %rd3, %rd1, %rd2;
  tex.1d.v4.u32.s32 {%r2, %r3, %r4, %r5}, [linear, {%r1}];
  cvt.rn.f32.s32 %f1, %r1;
  mov.f32 %f2, 0f3F800000;
  tex.2d.v4.f32.f32 {%f3, %f4, %f5, %f6}, [plane, {%f1, %f2}];
  st.global.u32 [%rd3], %r2;
  st.global.f32 [%rd3+4], %f3;
  shl.b32 %r6, %r1, 2;
  mov.u32 %r7, 1;
  sust.b.2d.b32.trap [target, {%r6, %r7}], {%r1};
  ret;
}
)";

// One entry of PTX, as in a fat binary of nvcc: a head of 64 bytes, the text padded to 8 bytes.
static std::vector<uint64_t> fat_binary() {
  const size_t text = (sizeof ptx + 7) / 8 * 8;
  std::vector<uint64_t> words(2 + 8 + text / 8);
  auto* bytes = reinterpret_cast<unsigned char*>(words.data());
  const auto put = [&](size_t at, auto value) { std::memcpy(bytes + at, &value, sizeof value); };
  put(0, 0xba55ed50u), put(4, uint16_t(1)), put(6, uint16_t(16)), put(8, uint64_t(64 + text));
  put(16, uint16_t(1)), put(18, uint16_t(0x101)), put(20, 64u), put(24, uint64_t(text)), put(44, 70u);
  std::memcpy(bytes + 80, ptx, sizeof ptx);
  return words;
}

static TextureReference linear{}, plane{};
static Channels target{};
static void read() {}

static void register_module() {
  static std::vector<uint64_t> image = fat_binary();
  static struct {
    int magic = 0x466243b1, version = 1;
    const void* data = image.data();
    void* unused = nullptr;
  } wrapper;
  void** handle = __cudaRegisterFatBinary(&wrapper);
  __cudaRegisterFunction(handle, reinterpret_cast<const void*>(&read), nullptr, "read", -1, nullptr, nullptr, nullptr,
                         nullptr, nullptr);
  __cudaRegisterTexture(handle, &linear, "linear", "::linear", 1, 0, 0);
  __cudaRegisterTexture(handle, &plane, "plane", "::n::plane", 2, 1, 0); // bytes are read as 0 .. 1
  __cudaRegisterSurface(handle, &target, "target", "::target", 2, 0);
  __cudaRegisterFatBinaryEnd(handle);
}

struct Texels {
  unsigned number;
  float share;
};

static std::vector<Texels> run(void* out, unsigned threads) {
  void* arguments[] = {&out};
  EXPECT(cudaLaunchKernel(reinterpret_cast<const void*>(&read), {1, 1, 1}, {threads, 1, 1}, arguments, 0, nullptr) ==
         0);
  EXPECT(cudaDeviceSynchronize() == 0);
  std::vector<Texels> texels(threads);
  EXPECT(cudaMemcpy(texels.data(), out, threads * sizeof(Texels), 2) == 0);
  return texels;
}

int main() {
  register_module();
  constexpr unsigned width = 8;
  const unsigned numbers[width] = {3, 1, 4, 1, 5, 9, 2, 6};
  const unsigned char bytes[2][width] = {{}, {0, 51, 102, 153, 204, 255, 5, 10}};
  const Channels unsigned_word{32, 0, 0, 0, 1}, unsigned_byte{8, 0, 0, 0, 1};
  void *memory = nullptr, *out = nullptr, *array = nullptr, *surface = nullptr;
  EXPECT(cudaMalloc(&memory, sizeof numbers) == 0 && cudaMemcpy(memory, numbers, sizeof numbers, 1) == 0);
  EXPECT(cudaMalloc(&out, width * sizeof(Texels)) == 0);
  EXPECT(cudaMallocArray(&array, &unsigned_byte, width, 2, 0) == 0);
  EXPECT(cudaMemcpy2DToArray(array, 0, 0, bytes, width, width, 2, 1) == 0);
  EXPECT(cudaMallocArray(&surface, &unsigned_word, width, 2, 2) == 0);
  for (TextureReference* reference : {&linear, &plane})
    for (int& mode : reference->address)
      mode = 1; // clamp

  size_t offset = 7;
  EXPECT(cudaBindTexture(&offset, &linear, memory, &unsigned_word, UINT32_MAX) == 0 && offset == 0);
  EXPECT(cudaBindTextureToArray(&plane, array, &unsigned_byte) == 0);
  EXPECT(cudaBindSurfaceToArray(&target, surface, &unsigned_word) == 0);
  std::vector<Texels> texels = run(out, width);
  for (unsigned i = 0; i < width; ++i)
    EXPECT(texels[i].number == numbers[i] && texels[i].share == static_cast<float>(bytes[1][i]) / 255);

  // Bound again: two words later and as a plane of bytes; the surface's row as a texture.
  EXPECT(cudaBindTexture(nullptr, &linear, static_cast<char*>(memory) + 8, &unsigned_word, 12) == 0);
  EXPECT(cudaBindTexture2D(nullptr, &plane, memory, &unsigned_byte, 4, 2, 4) == 0);
  texels = run(out, 4);
  const auto* byte = reinterpret_cast<const unsigned char*>(numbers);
  for (unsigned i = 0; i < 4; ++i) // elements beyond the end are 0
    EXPECT(texels[i].number == (i < 3 ? numbers[2 + i] : 0) &&
           texels[i].share == static_cast<float>(byte[4 + i]) / 255);
  EXPECT(cudaBindTextureToArray(&plane, surface, &unsigned_word) == 0);

  const void* found = nullptr;
  EXPECT(cudaGetTextureReference(&found, &plane) == 0 && found == &plane);
  EXPECT(cudaGetTextureAlignmentOffset(&offset, &linear) == 0 && offset == 0);
  EXPECT(cudaBindTexture(nullptr, &found, memory, &unsigned_word, 12) == 18); // invalid texture reference
  EXPECT(cudaBindSurfaceToArray(&found, surface, &unsigned_word) == 37);
  EXPECT(cudaUnbindTexture(&linear) == 0);
  std::puts("right");
}
