// What is to be launched, with all numbers known: buffers, module variables, textures, and launches in order. Plain
// data, independent of what runs it: the emulator and the CUDA driver read the same plan.
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
  uint64_t count() const { return uint64_t{x} * y * z; } // within the limits of a launch: fits
  bool operator==(const Dim3&) const = default;
};
std::string to_string(const Dim3& dimensions); // "16x16x1"

// What CUDA allows every GPU that we know.
constexpr uint32_t max_block_threads = 1024;
constexpr Dim3 max_block{1024, 1024, 64};
constexpr Dim3 max_cluster{16, 16, 16};
constexpr Dim3 max_grid{2147483647, 65535, 65535};
constexpr uint32_t max_dynamic_shared = 227 * 1024;
constexpr uint64_t max_buffer_bytes = uint64_t{1} << 36; // all buffers of a plan together
constexpr uint64_t max_heap_bytes = uint64_t{1} << 36;
constexpr size_t max_launches = 200000; // of a plan, loops unrolled

// An expression with the names it uses filled in.
struct BoundExpression {
  std::shared_ptr<const ArithmeticExpression> expression;
  std::vector<Number> values;
  // Position of the element index among `values`, if the expression uses it.
  std::optional<size_t> index_slot, count_slot;

  Result<Number> evaluate(const ElementContext& element) const;
};

// What a buffer holds before the first launch. One of: an expression per element, listed values, a file, bytes, zeros.
struct Contents {
  std::optional<BoundExpression> formula;
  std::vector<Number> values;
  std::string file;                                    // path as it is to be opened
  std::shared_ptr<const std::vector<std::byte>> bytes; // all of them; of plans that no file states

  bool is_zero() const { return !formula && values.empty() && file.empty() && !bytes; }
};

struct Tolerance {
  double absolute = 0;
  double relative = 0; // of the original's element
  bool exact() const { return absolute == 0 && relative == 0; }
};

struct Buffer {
  std::string name;
  ir::ScalarType type = ir::ScalarType::none;
  uint64_t count = 0; // elements
  Contents contents;
  bool output = false;
  std::string expected; // file of what the launches leave in it; "": not known
  Tolerance tolerance;
  bool any_order = false; // compared as a set: `atomics = true`
  uint64_t address = 0;   // on the device, where pointers to it are stored in memory; 0: wherever there is room
  SourceRange range;      // its table in the file

  uint64_t element_bytes() const { return ir::byte_width(type); }
  uint64_t bytes() const { return count * element_bytes(); }
  // Fills `memory`, which holds bytes() bytes. Errors: a value that does not fit the type, a file that cannot be read.
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
  std::optional<Dim3> cluster; // blocks of a cluster; none: as the kernel says (.reqnctapercluster)
  std::vector<Argument> arguments;
  uint32_t place = 0; // of its [[launch]] in the file, from 0
  std::string trip;   // "t = 3", in a loop
  SourceRange kernel_range, arguments_range, grid_range, block_range;
};

// A .const or .global variable of the module, filled before the first launch.
struct ModuleVariable {
  ir::StateSpace space = ir::StateSpace::global;
  Buffer data;                   // its name is the variable's
  std::optional<Argument> value; // instead of data.contents: a struct
};

enum class AddressMode : uint8_t { wrap, clamp, mirror, border };
enum class FilterMode : uint8_t { nearest, linear };

struct Texture {
  std::string name;
  uint32_t buffer = 0; // index in the plan; its type is the channels' type
  uint64_t width = 0;  // texels
  uint64_t height = 0; // 0: one-dimensional
  uint64_t depth = 0;  // 0: at most two-dimensional; with `layered` the number of layers
  uint32_t channels = 1;
  bool layered = false;
  AddressMode address = AddressMode::clamp; // in every direction
  FilterMode filter = FilterMode::nearest;
  bool normalised_coordinates = false;
  bool normalised_float = false; // integers read as numbers in 0..1 or -1..1
  uint64_t offset = 0;           // of the first texel, in bytes of the buffer
  uint64_t handle = 0;           // that stands for it, where handles are stored in memory; 0: any
  SourceRange range;
};

// A further shape that the file says a launch is right with.
struct ShapeOverride {
  uint32_t place = 0; // of the [[launch]] in the file
  Dim3 grid, block;
  uint32_t dynamic_shared = 0;
};

// An argument that is a tensor map, of a tensor in a buffer.
struct PlannedTensorMap {
  ir::TensorMap map; // legal but for its address, which is the offset; the buffer's address is added
  uint32_t buffer = 0;
  SourceRange range;
};

struct LaunchPlan {
  SourceFile source; // of the launch file; ranges point into it
  std::string about;
  std::string size;                    // "" when none was chosen
  std::map<std::string, Number> names; // of [let], with the size's values
  std::string ptx;                     // path as it is to be opened; by the wanted target where the file has several
  SourceRange ptx_range;
  std::optional<uint64_t> heap_bytes; // that malloc of kernels takes from; nothing: what the device has by itself
  std::vector<Buffer> buffers;
  std::vector<ModuleVariable> variables;
  std::vector<Texture> textures;
  std::vector<PlannedTensorMap> tensor_maps;
  std::vector<Launch> launches;
  std::vector<std::vector<ShapeOverride>> shapes; // as listed; [k] has the k-th shape of every launch that has one

  const Buffer* find_buffer(std::string_view name) const;
};

// What arguments become on a device: addresses of buffers, handles of textures and the bytes of tensor maps, by their
// indices in the plan.
struct DeviceAddresses {
  std::vector<uint64_t> buffers;
  std::vector<uint64_t> textures;
  std::vector<std::array<std::byte, ir::tensor_map_bytes>> tensor_maps;
  unsigned address_bytes = 8;
};

// Writes one argument at `out`, which has size_of(argument) bytes; padding becomes 0.
void pack(const Argument& argument, const DeviceAddresses& addresses, std::span<std::byte> out);

} // namespace ptxrewrite::launch
