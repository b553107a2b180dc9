// Copies to, from and between CUDA arrays. Offsets and widths are in bytes here.
#include "cuda/context/array.h"
#include "cuda/runtime/entry.h"

namespace ptxrewrite::cuda::runtime {
namespace {

struct ArrayPlace {
  const Array* array = nullptr;
  size_t x = 0, y = 0; // bytes, rows
};

Rows rows_of(const ArrayPlace& place) {
  return {place.array->address + place.y * place.array->row_bytes() + place.x, place.array->row_bytes(), 0};
}

bool fits(const ArrayPlace& place, size_t width, size_t height) {
  return place.array && place.x + width <= place.array->row_bytes() && place.y + height <= place.array->rows();
}

int submit(const char* name, const Rows& to, const Rows& from, size_t width, size_t height, int kind, void* handle,
           bool fits_in_arrays) {
  return entry(name, [&](Context& context) {
    if (!fits_in_arrays) return Code::invalid_value;
    Stream* stream = nullptr;
    if (const Code code = stream_of(context, handle, stream); code != Code::success) return code;
    return context.submit(stream, NodeType::copy, [=, &context] {
      return context.copy_rows(to, from, width, height, 1, static_cast<CopyDirection>(kind));
    });
  });
}

// Copies consecutive bytes, which continue in the next row of the array.
int linear(const char* name, const ArrayPlace& place, uint64_t other, size_t bytes, int kind, void* handle,
           bool to_array) {
  const bool fits_in_array =
      place.array && place.y * place.array->row_bytes() + place.x + bytes <= place.array->bytes();
  const Rows inside = place.array ? Rows{rows_of(place).address, bytes, 0} : Rows{};
  const Rows outside{other, bytes, 0};
  return submit(name, to_array ? inside : outside, to_array ? outside : inside, bytes, 1, kind, handle, fits_in_array);
}

} // namespace

RUNTIME_API int cudaMemcpy2DToArrayAsync(Array* to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                         size_t height, int kind, void* stream) {
  const ArrayPlace place{to, x, y};
  const bool fitting = fits(place, width, height);
  return submit("cudaMemcpy2DToArray", fitting ? rows_of(place) : Rows{}, {address_of(from), pitch, 0}, width, height,
                kind, stream, fitting);
}

RUNTIME_API int cudaMemcpy2DToArray(Array* to, size_t x, size_t y, const void* from, size_t pitch, size_t width,
                                    size_t height, int kind) {
  return cudaMemcpy2DToArrayAsync(to, x, y, from, pitch, width, height, kind, nullptr);
}

RUNTIME_API int cudaMemcpy2DFromArrayAsync(void* to, size_t pitch, const Array* from, size_t x, size_t y, size_t width,
                                           size_t height, int kind, void* stream) {
  const ArrayPlace place{from, x, y};
  const bool fitting = fits(place, width, height);
  return submit("cudaMemcpy2DFromArray", {address_of(to), pitch, 0}, fitting ? rows_of(place) : Rows{}, width, height,
                kind, stream, fitting);
}

RUNTIME_API int cudaMemcpy2DFromArray(void* to, size_t pitch, const Array* from, size_t x, size_t y, size_t width,
                                      size_t height, int kind) {
  return cudaMemcpy2DFromArrayAsync(to, pitch, from, x, y, width, height, kind, nullptr);
}

RUNTIME_API int cudaMemcpy2DArrayToArray(Array* to, size_t to_x, size_t to_y, const Array* from, size_t from_x,
                                         size_t from_y, size_t width, size_t height, int kind) {
  const ArrayPlace target{to, to_x, to_y}, source{from, from_x, from_y};
  const bool fitting = fits(target, width, height) && fits(source, width, height);
  return submit("cudaMemcpy2DArrayToArray", fitting ? rows_of(target) : Rows{}, fitting ? rows_of(source) : Rows{},
                width, height, kind, nullptr, fitting);
}

RUNTIME_API int cudaMemcpyToArrayAsync(Array* to, size_t x, size_t y, const void* from, size_t bytes, int kind,
                                       void* stream) {
  return linear("cudaMemcpyToArray", {to, x, y}, address_of(from), bytes, kind, stream, true);
}

RUNTIME_API int cudaMemcpyToArray(Array* to, size_t x, size_t y, const void* from, size_t bytes, int kind) {
  return cudaMemcpyToArrayAsync(to, x, y, from, bytes, kind, nullptr);
}

RUNTIME_API int cudaMemcpyFromArrayAsync(void* to, const Array* from, size_t x, size_t y, size_t bytes, int kind,
                                         void* stream) {
  return linear("cudaMemcpyFromArray", {from, x, y}, address_of(to), bytes, kind, stream, false);
}

RUNTIME_API int cudaMemcpyFromArray(void* to, const Array* from, size_t x, size_t y, size_t bytes, int kind) {
  return cudaMemcpyFromArrayAsync(to, from, x, y, bytes, kind, nullptr);
}

RUNTIME_ALIAS(cudaMemcpy2DToArray_ptds, cudaMemcpy2DToArray)
RUNTIME_ALIAS(cudaMemcpy2DToArrayAsync_ptsz, cudaMemcpy2DToArrayAsync)
RUNTIME_ALIAS(cudaMemcpy2DFromArray_ptds, cudaMemcpy2DFromArray)
RUNTIME_ALIAS(cudaMemcpy2DFromArrayAsync_ptsz, cudaMemcpy2DFromArrayAsync)
RUNTIME_ALIAS(cudaMemcpy2DArrayToArray_ptds, cudaMemcpy2DArrayToArray)
RUNTIME_ALIAS(cudaMemcpyToArray_ptds, cudaMemcpyToArray)
RUNTIME_ALIAS(cudaMemcpyToArrayAsync_ptsz, cudaMemcpyToArrayAsync)
RUNTIME_ALIAS(cudaMemcpyFromArray_ptds, cudaMemcpyFromArray)
RUNTIME_ALIAS(cudaMemcpyFromArrayAsync_ptsz, cudaMemcpyFromArrayAsync)

} // namespace ptxrewrite::cuda::runtime
