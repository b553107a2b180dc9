// A launch file with all numbers evaluated: buffers, module variables, textures, and launches in order. Plain data,
// independent of the machine: the emulator and the CUDA driver use the same plan.
#pragma once

#include "ir/isa/tensor_map.h"
#include "ir/isa/types.h"
#include "launch/expression.h"
#include "support/source.h"

#include <array>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ptxrewrite::launch {

struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  uint64_t count() const { return uint64_t{x} * y * z; } // cannot overflow within the limits of a launch
  bool operator==(const Dim3&) const = default;
};
std::string to_string(const Dim3& dimensions); // "16x16x1"

// Limits that CUDA guarantees on every supported GPU.
constexpr uint32_t max_block_threads = 1024;
constexpr Dim3 max_block{1024, 1024, 64};
constexpr Dim3 max_cluster{16, 16, 16};
constexpr Dim3 max_grid{2147483647, 65535, 65535};
constexpr uint32_t max_dynamic_shared = 227 * 1024;
constexpr uint64_t max_buffer_bytes = uint64_t{1} << 36; // total of all buffers of a plan
constexpr uint64_t max_heap_bytes = uint64_t{1} << 36;
constexpr size_t max_launches = 200000; // of a plan, with loops unrolled

// An expression with the values of its names.
struct BoundExpression {
  std::shared_ptr<const ArithmeticExpression> expression;
  std::vector<Number> values;
  // Index of the element index and count among `values`, if the expression uses them.
  std::optional<size_t> index_slot, count_slot;

  Result<Number> evaluate(const ElementContext& element) const;
};

// The initial contents of a buffer. One of: an expression per element, listed values, a file, bytes, zeros.
struct Contents {
  std::optional<BoundExpression> formula;
  std::vector<Number> values;
  std::string file;                                    // path to open
  std::shared_ptr<const std::vector<std::byte>> bytes; // the whole contents; in plans without a launch file

  bool is_zero() const { return !formula && values.empty() && file.empty() && !bytes; }
};

struct Tolerance {
  double absolute = 0;
  double relative = 0; // relative to the original's element
  bool exact() const { return absolute == 0 && relative == 0; }
};

struct Buffer {
  std::string name;
  ir::ScalarType type = ir::ScalarType::none;
  uint64_t count = 0; // elements
  Contents contents;
  bool output = false;
  std::string expected; // file with the contents after the launches; "": unknown
  Tolerance tolerance;
  bool any_order = false; // compared as a set: `atomics = true`
  uint64_t address = 0;   // device address, if pointers to it are stored in memory; 0: any
  SourceRange range;      // the buffer's table in the file

  uint64_t element_bytes() const { return ir::byte_width(type); }
  uint64_t bytes() const { return count * element_bytes(); }
  // Fills `memory`, which has bytes() bytes. Returns an error for values that do not fit and unreadable files.
  Status initialise(std::span<std::byte> memory) const;
};

// One kernel parameter, or a member of a struct that is passed by value.
struct Argument {
  enum class Kind : uint8_t { bytes, buffer, texture, tensor_map, structure };
  Kind kind = Kind::bytes;
  ir::ScalarType type = ir::ScalarType::none; // of scalars; none: raw bytes
  std::vector<std::byte> bytes;               // scalars and raw bytes
  uint32_t index = 0;                         // of the buffer, texture or tensor map in the plan
  uint64_t offset = 0;                        // bytes into the buffer
  std::vector<Argument> members;
  SourceRange range;
};

// Size and natural alignment; addresses have `address_bytes`.
struct ArgumentSize {
  uint64_t bytes = 0;
  uint64_t alignment = 1;
};
ArgumentSize size_of(const Argument& argument, unsigned address_bytes);

struct Launch {
  std::string kernel;
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;
  bool cooperative = false;    // blocks may wait for all others
  std::optional<Dim3> cluster; // blocks of a cluster; none: as in the kernel (.reqnctapercluster)
  std::vector<Argument> arguments;
  uint32_t place = 0; // index of its [[launch]] in the file, from 0
  std::string trip;   // "t = 3", if in a loop
  SourceRange kernel_range, arguments_range, grid_range, block_range;
};

// A .const or .global variable of the module, filled before the first launch.
struct ModuleVariable {
  ir::StateSpace space = ir::StateSpace::global;
  Buffer data;                   // its name is the variable's
  std::optional<Argument> value; // a struct, instead of data.contents
};

enum class AddressMode : uint8_t { wrap, clamp, mirror, border };
enum class FilterMode : uint8_t { nearest, linear };

// Levels of detail of a texture: each has half the extents of the one before, at least 1 (the number of layers is not
// halved), and follows it in the buffer. CUDA programming guide, "Texture Fetching".
struct TextureLevels {
  uint32_t count = 1;                      // level 0 included
  FilterMode filter = FilterMode::nearest; // between the two nearest levels
  float bias = 0;                          // added to the level that an instruction asks for
  float least = 0, most = 0;               // limits of the sum
  bool operator==(const TextureLevels&) const = default;
};

struct Texture {
  std::string name;
  uint32_t buffer = 0; // index in the plan; its type is the channels' type
  uint64_t width = 0;  // texels
  uint64_t height = 0; // 0: one-dimensional
  uint64_t depth = 0;  // 0: at most two-dimensional; with `layered` the number of layers
  uint64_t pitch = 0;  // bytes from one row to the next; 0: rows have no gaps between them
  uint32_t channels = 1;
  bool layered = false;
  AddressMode address = AddressMode::clamp; // in every direction
  FilterMode filter = FilterMode::nearest;
  bool normalised_coordinates = false;
  bool normalised_float = false; // integers read as numbers in 0..1 or -1..1
  bool is_linear = false;        // over linear memory, not an array: affects timing only
  uint64_t offset = 0;           // of the first texel, in bytes of the buffer
  TextureLevels levels{};
  uint64_t handle = 0; // its handle, if handles are stored in memory; 0: any
  SourceRange range;
};

// A level by itself. Rows and planes are at least 1; planes of a layered texture are its layers.
struct LevelExtents {
  uint64_t width = 1, rows = 1, planes = 1;
};
LevelExtents extents_of_level(const Texture& texture, uint32_t level);

// A further shape that a launch supports according to the file.
struct ShapeOverride {
  uint32_t place = 0; // index of the [[launch]] in the file
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;
};

// A tensor map argument, for a tensor in a buffer.
struct PlannedTensorMap {
  ir::TensorMap map; // valid except for its address, which is the offset from the buffer's address
  uint32_t buffer = 0;
  SourceRange range;
};

struct LaunchPlan {
  SourceFile source; // the launch file, to which ranges refer
  std::string about;
  std::string size;                    // "" if none was selected
  std::map<std::string, Number> names; // of [let], with the size's values
  std::string ptx;                     // path to open; selected by target if the file has several
  SourceRange ptx_range;
  std::optional<uint64_t> heap_bytes; // available to malloc in kernels; nullopt: the device's default
  std::vector<Buffer> buffers;
  std::vector<ModuleVariable> variables;
  std::vector<Texture> textures;
  std::vector<PlannedTensorMap> tensor_maps;
  std::vector<Launch> launches;
  std::vector<std::vector<ShapeOverride>> shapes; // as listed; [k] has the k-th shape of every launch that has one

  const Buffer* find_buffer(std::string_view name) const;
};

// The device values of arguments: addresses of buffers, handles of textures and the bytes of tensor maps, by their
// indices in the plan.
struct DeviceAddresses {
  std::vector<uint64_t> buffers;
  std::vector<uint64_t> textures;
  std::vector<std::array<std::byte, ir::tensor_map_bytes>> tensor_maps;
  unsigned address_bytes = 8;
};

// Writes one argument to `out`, which has size_of(argument) bytes; padding is set to 0.
void pack(const Argument& argument, const DeviceAddresses& addresses, std::span<std::byte> out);

} // namespace ptxrewrite::launch
