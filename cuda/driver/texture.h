// A buffer as a texture or surface of the GPU.
//
// Kernels sample CUDA arrays, whose layout is undocumented: the texels are copied into an array, and back after a
// kernel has stored through the surface. One-dimensional textures that are only read by element number use the buffer
// directly, because arrays are too short for some of them.
#pragma once

#include "cuda/driver/gpu.h"
#include "ir/isa/types.h"
#include "launch/launch_plan.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace ptxrewrite::driver {

enum class TexelStore : uint8_t {
  array,
  surface_array, // an array that kernels may store to
  buffer,        // the buffer itself: one dimension, element numbers as coordinates
};

class GpuTexture {
public:
  // `element`: the type of the buffer's elements. The buffer must outlive the texture. Fails for an element type that
  // textures do not support, for a driver without textures, or with the driver's error.
  static Result<std::unique_ptr<GpuTexture>> make(Gpu& gpu, const launch::Texture& texture, ir::ScalarType element,
                                                  DevicePointer buffer, TexelStore store);
  ~GpuTexture();
  GpuTexture(const GpuTexture&) = delete;
  GpuTexture& operator=(const GpuTexture&) = delete;

  TextureObject texture() const { return texture_; }
  SurfaceObject surface() const { return surface_; } // 0 if there is none
  DevicePointer buffer() const { return buffer_; }
  const std::string& name() const { return plan_.name; }

  // Binds a .texref or .surfref variable of the module to it.
  Status bind_reference(const GpuModule& module, std::string_view name);
  Status bind_surface_reference(const GpuModule& module, std::string_view name);

  // Copies between buffer and array; does nothing without an array.
  Status take_from_buffer();
  Status give_to_buffer();

private:
  GpuTexture(Gpu& gpu, const launch::Texture& texture, DevicePointer buffer)
      : gpu_(gpu), plan_(texture), buffer_(buffer) {}
  Status create_array(bool stores);
  Status create_objects(bool stores);
  Status create_levels(const ArrayDescription& description);
  Status copy(bool to_array);
  size_t row_bytes() const { return plan_.width * plan_.channels * element_bytes_; }
  unsigned flags() const;

  Gpu& gpu_;
  launch::Texture plan_;
  DevicePointer buffer_;
  ArrayFormat format_ = ArrayFormat::float_32;
  size_t element_bytes_ = 4;
  bool is_integer_ = false;
  MipmappedArrayHandle mipmapped_ = nullptr; // of a texture with levels of detail
  std::vector<ArrayHandle> arrays_; // by level; owned by `mipmapped_` if there is one; empty: the buffer itself
  TextureObject texture_ = 0;
  SurfaceObject surface_ = 0;
};

} // namespace ptxrewrite::driver
