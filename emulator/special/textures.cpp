// tex, tld4 and txq: textures of one to three dimensions, cubes and arrays of them, nearest and linear (PTX ISA 9.7.10;
// CUDA programming guide, Texture Fetching).
//
// Weights of linear filtering, also between levels of detail, have 8 fraction bits, as on hardware. Integer
// coordinates count texels, whatever the binding says; outside they read zeros, as tex1Dfetch does. A channel that
// the texture lacks reads as zero. Levels of detail: Vulkan specification, Level-of-Detail Operation, which states
// for all GPUs what CUDA's descriptions of textures leave open; no anisotropy.
#include "emulator/core/lanes.h"
#include "emulator/semantics/half.h"
#include "emulator/special/texture_access.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace ptxrewrite::emulator {
namespace {

// MicroOp::flags.
constexpr uint32_t flag_integer_coordinates = 1u << 8;
constexpr uint32_t flag_layered = 1u << 9;
constexpr uint32_t flag_cube = 1u << 10;
constexpr uint32_t flag_offsets = 1u << 11; // in texels, added to the coordinates
constexpr uint32_t flag_f16 = 1u << 12;     // results are four halves
constexpr uint32_t flag_f16x2 = 1u << 13;   // results are two pairs of halves
constexpr uint32_t flag_resident = 1u << 14;
constexpr uint32_t flag_level = 1u << 15;     // a level of detail
constexpr uint32_t flag_gradients = 1u << 16; // of the coordinates in two directions, which choose the level
// op.count: coordinates of a place. The list: coordinates after the layer, op.auxiliary of them; four results;
// with flag_offsets three offsets; with flag_resident a predicate; with flag_level the level; with flag_gradients twice
// op.count changes of a coordinate.

constexpr unsigned result_count = 4;

using Texel = std::array<float, 4>; // floats, or integers as bits

uint32_t channel_bits(const TextureBinding& binding, const std::byte* texel, unsigned channel) {
  uint32_t value = 0;
  std::memcpy(&value, texel + channel * binding.channel_bits / 8, binding.channel_bits / 8);
  if (binding.kind == TexelKind::signed_integer && binding.channel_bits < 32) {
    const unsigned unused = 32 - binding.channel_bits;
    value = static_cast<uint32_t>(static_cast<int32_t>(value << unused) >> unused);
  }
  return value;
}

float channel_value(const TextureBinding& binding, const std::byte* texel, unsigned channel) {
  const uint32_t bits = channel_bits(binding, texel, channel);
  if (binding.kind == TexelKind::floating)
    return binding.channel_bits == 16 ? semantics::to_float(semantics::Float16{static_cast<uint16_t>(bits)})
                                      : std::bit_cast<float>(bits);
  if (!binding.normalised_float) return std::bit_cast<float>(bits);
  const double largest = std::ldexp(1.0, static_cast<int>(binding.channel_bits)) - 1;
  if (binding.kind == TexelKind::unsigned_integer) return static_cast<float>(bits / largest);
  const double largest_signed = std::ldexp(1.0, static_cast<int>(binding.channel_bits) - 1) - 1;
  return static_cast<float>(std::max(static_cast<int32_t>(bits) / largest_signed, -1.0));
}

// Index of a texel along one dimension according to the addressing mode; -1: outside.
int64_t addressed(const TextureBinding& binding, int64_t index, int64_t size) {
  TextureAddressing mode = binding.addressing;
  if (!binding.normalised_coordinates && mode != TextureAddressing::border) mode = TextureAddressing::clamp;
  switch (mode) {
  case TextureAddressing::wrap:
    return (index % size + size) % size;
  case TextureAddressing::mirror: {
    const int64_t turn = (index % (2 * size) + 2 * size) % (2 * size);
    return turn < size ? turn : 2 * size - 1 - turn;
  }
  case TextureAddressing::clamp:
    return std::clamp<int64_t>(index, 0, size - 1);
  case TextureAddressing::border:
    return index < 0 || index >= size ? -1 : index;
  }
  return -1;
}

struct Sampler {
  const BoundTexture& texture;
  TexelAccesses& accesses;
  unsigned lane = 0;
  unsigned dimensions = 1;
  uint64_t layer = 0;
  bool cube = false; // on a face of a cube: coordinates are 0 to 1, edges are clamped
  std::array<int64_t, 3> offset{};

  uint64_t size(unsigned dimension) const {
    const TextureBinding& binding = *texture.binding;
    return dimension == 0 ? binding.width : dimension == 1 ? binding.rows() : binding.planes();
  }
  // Fetches a texel by indices, each inside or -1.
  Texel fetch(const std::array<int64_t, 3>& index) const {
    Texel texel{};
    if (std::any_of(index.begin(), index.begin() + dimensions, [](int64_t i) { return i < 0; })) return texel;
    const uint64_t plane = dimensions == 3 ? static_cast<uint64_t>(index[2]) : layer;
    const std::byte* at =
        texture.at(static_cast<uint64_t>(index[0]), dimensions > 1 ? static_cast<uint64_t>(index[1]) : 0, plane);
    accesses.add(lane, texture, at, texture.binding->texel_bytes());
    for (unsigned channel = 0; channel < texture.binding->channels; ++channel)
      texel[channel] = channel_value(*texture.binding, at, channel);
    return texel;
  }
  Texel fetch_addressed(std::array<int64_t, 3> index) const {
    for (unsigned d = 0; d < dimensions; ++d)
      if (const auto texels = static_cast<int64_t>(size(d)); cube)
        index[d] = std::clamp<int64_t>(index[d], 0, texels - 1);
      else
        index[d] = addressed(*texture.binding, index[d], texels);
    return fetch(index);
  }
  // Converts a coordinate to texels.
  double position(double coordinate, unsigned dimension) const {
    if (!std::isfinite(coordinate)) return 0;
    const double texels = static_cast<double>(size(dimension));
    return std::clamp(texture.binding->normalised_coordinates || cube ? coordinate * texels : coordinate, -0x1p40,
                      0x1p40);
  }
};

Texel sample_nearest(const Sampler& sampler, const std::array<double, 3>& coordinates) {
  std::array<int64_t, 3> index{};
  for (unsigned d = 0; d < sampler.dimensions; ++d)
    index[d] = static_cast<int64_t>(std::floor(sampler.position(coordinates[d], d))) + sampler.offset[d];
  return sampler.fetch_addressed(index);
}

// The texels around a place: the lowest indices, and the weights of the texels at the next indices.
struct Footprint {
  std::array<int64_t, 3> lowest{};
  std::array<double, 3> weight{};
};

Footprint footprint_of(const Sampler& sampler, const std::array<double, 3>& coordinates) {
  Footprint footprint;
  for (unsigned d = 0; d < sampler.dimensions; ++d) {
    const double place = sampler.position(coordinates[d], d) - 0.5;
    footprint.lowest[d] = static_cast<int64_t>(std::floor(place)) + sampler.offset[d];
    footprint.weight[d] = std::nearbyint((place - std::floor(place)) * 256) / 256;
  }
  return footprint;
}

Texel sample_linear(const Sampler& sampler, const std::array<double, 3>& coordinates) {
  const Footprint footprint = footprint_of(sampler, coordinates);
  std::array<double, 4> sum{};
  for (unsigned corner = 0; corner < 1u << sampler.dimensions; ++corner) {
    std::array<int64_t, 3> index = footprint.lowest;
    double weight = 1;
    for (unsigned d = 0; d < sampler.dimensions; ++d) {
      const bool further = (corner >> d) & 1;
      index[d] += further;
      weight *= further ? footprint.weight[d] : 1 - footprint.weight[d];
    }
    if (weight == 0) continue;
    const Texel texel = sampler.fetch_addressed(index);
    for (unsigned channel = 0; channel < 4; ++channel)
      sum[channel] += weight * static_cast<double>(texel[channel]);
  }
  Texel result;
  std::transform(sum.begin(), sum.end(), result.begin(), [](double value) { return static_cast<float>(value); });
  return result;
}

bool filters(const TextureBinding& binding) {
  return binding.filter == TextureFilter::linear && (binding.kind == TexelKind::floating || binding.normalised_float);
}

// The face of a cube in a direction, and the position on it, 0 to 1 (CUDA programming guide, Cubemap Textures).
struct CubeFace {
  unsigned face = 0;
  float s = 0, t = 0;
};

CubeFace cube_face(float x, float y, float z) {
  const float ax = std::abs(x), ay = std::abs(y), az = std::abs(z);
  const auto place = [](unsigned face, float m, float s, float t) {
    return CubeFace{face, (s / m + 1) / 2, (t / m + 1) / 2};
  };
  if (ax >= ay && ax >= az) return x >= 0 ? place(0, x, -z, -y) : place(1, -x, z, -y);
  if (ay >= az) return y >= 0 ? place(2, y, x, z) : place(3, -y, x, -z);
  return z >= 0 ? place(4, z, x, -y) : place(5, -z, -x, -y);
}

constexpr unsigned cube_faces = 6;

// Reads the lane's coordinates: sets layer, face and offsets in the sampler; returns coordinates as given, or on the
// face. Returns false if the block has failed.
bool read_place(Warp& warp, const MicroOp& op, unsigned lane, Sampler& sampler, std::array<uint32_t, 3>& coordinates) {
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  const TextureBinding& binding = *sampler.texture.binding;
  unsigned next = 0;
  const uint64_t layers = op.flags & flag_cube ? binding.planes() / cube_faces : binding.planes();
  if (layers == 0) {
    warp.block->fail(warp, op, lane, "a texture with fewer than the six layers of a cube");
    return false;
  }
  if (op.flags & flag_layered) sampler.layer = std::min<uint64_t>(warp.lanes<uint32_t>(list[next++])[lane], layers - 1);
  for (unsigned d = 0; d < op.count; ++d)
    coordinates[d] = warp.lanes<uint32_t>(list[next++])[lane];
  if (op.flags & flag_offsets)
    for (unsigned d = 0; d < sampler.dimensions; ++d)
      if (LaneRef offset = list[op.auxiliary + result_count + d]) sampler.offset[d] = warp.lanes<int32_t>(offset)[lane];
  if (!(op.flags & flag_cube)) return true;
  if ((op.flags & flag_gradients) && binding.mipmap.count > 1) {
    warp.block->fail(warp, op, lane, "gradients on cubes with levels of detail are not emulated");
    return false;
  }
  const CubeFace face = cube_face(std::bit_cast<float>(coordinates[0]), std::bit_cast<float>(coordinates[1]),
                                  std::bit_cast<float>(coordinates[2]));
  sampler.cube = true;
  sampler.dimensions = 2;
  sampler.layer = sampler.layer * cube_faces + face.face;
  coordinates = {std::bit_cast<uint32_t>(face.s), std::bit_cast<uint32_t>(face.t), 0};
  return true;
}

uint16_t half_of(float value) {
  return semantics::to_half<semantics::Float16>(value).bits;
}

void write_results(Warp& warp, const MicroOp& op, const std::array<Texel, warp_size>& results) {
  const LaneRef* targets = warp.activation->function->lists.data() + op.extra + op.auxiliary;
  for (unsigned i = 0; i < result_count; ++i) {
    if (!targets[i]) continue;
    if (op.flags & flag_f16)
      detail::write_lanes<uint16_t>(warp, targets[i], warp.mask,
                                    [&](unsigned lane) { return half_of(results[lane][i]); });
    else if (op.flags & flag_f16x2)
      detail::write_lanes<uint32_t>(warp, targets[i], warp.mask, [&](unsigned lane) {
        return uint32_t(half_of(results[lane][2 * i])) | uint32_t(half_of(results[lane][2 * i + 1])) << 16;
      });
    else
      detail::write_lanes<uint32_t>(warp, targets[i], warp.mask,
                                    [&](unsigned lane) { return std::bit_cast<uint32_t>(results[lane][i]); });
  }
  // All texels are resident.
  if (op.flags & flag_resident) warp.predicate(targets[result_count + (op.flags & flag_offsets ? 3 : 0)]) |= warp.mask;
}

// Calls `sample(sampler, coordinates)` for each lane, and writes its results.
template <class Sample> const MicroOp* for_each_sample(Warp& warp, const MicroOp& op, Sample&& sample) {
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  std::array<Texel, warp_size> results;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const BoundTexture* texture = lookup.find(lane);
    if (!texture) return nullptr;
    Sampler sampler{*texture, accesses, lane, op.count};
    std::array<uint32_t, 3> coordinates{};
    if (!read_place(warp, op, lane, sampler, coordinates)) return nullptr;
    results[lane] = sample(sampler, coordinates);
  }
  accesses.tell(AccessKind::load);
  write_results(warp, op, results);
  return &op + 1;
}

std::array<double, 3> as_floats(const std::array<uint32_t, 3>& coordinates) {
  std::array<double, 3> numbers;
  std::transform(coordinates.begin(), coordinates.end(), numbers.begin(),
                 [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); });
  return numbers;
}

// The length of a gradient in texels of level 0.
double gradient_length(const Warp& warp, const LaneRef* gradient, const Sampler& sampler) {
  double sum = 0;
  for (unsigned d = 0; d < sampler.dimensions; ++d) {
    double change = static_cast<double>(warp.lanes<float>(gradient[d])[sampler.lane]);
    if (sampler.texture.binding->normalised_coordinates) change *= static_cast<double>(sampler.size(d));
    sum += change * change;
  }
  return std::sqrt(sum);
}

// The level between the first and the last one that the operands and the binding choose; 0 if neither does.
double level_of_detail(const Warp& warp, const MicroOp& op, const Sampler& sampler) {
  const MipmapLevels& mipmap = sampler.texture.binding->mipmap;
  const LaneRef* operands = warp.activation->function->lists.data() + op.extra + op.auxiliary + result_count +
                            (op.flags & flag_offsets ? 3 : 0) + (op.flags & flag_resident ? 1 : 0);
  double level = 0;
  if (op.flags & flag_level)
    level = op.flags & flag_integer_coordinates ? warp.lanes<int32_t>(*operands)[sampler.lane]
                                                : static_cast<double>(warp.lanes<float>(*operands)[sampler.lane]);
  if (op.flags & flag_gradients)
    level = std::log2(
        std::max(gradient_length(warp, operands, sampler), gradient_length(warp, operands + op.count, sampler)));
  level = std::fmin(std::fmax(level + static_cast<double>(mipmap.bias), static_cast<double>(mipmap.least)),
                    static_cast<double>(mipmap.most));
  return std::fmin(std::fmax(level, 0.0), mipmap.count - 1); // NaN becomes 0
}

Texel sample_at(const MicroOp& op, const Sampler& sampler, const std::array<uint32_t, 3>& coordinates) {
  if (op.flags & flag_integer_coordinates) {
    std::array<int64_t, 3> index{};
    for (unsigned d = 0; d < sampler.dimensions; ++d) {
      index[d] = static_cast<int32_t>(coordinates[d]) + sampler.offset[d];
      if (index[d] >= static_cast<int64_t>(sampler.size(d))) index[d] = -1;
    }
    return sampler.fetch(index);
  }
  return filters(*sampler.texture.binding) ? sample_linear(sampler, as_floats(coordinates))
                                           : sample_nearest(sampler, as_floats(coordinates));
}

Texel sample_level(const MicroOp& op, const Sampler& sampler, const std::array<uint32_t, 3>& coordinates,
                   unsigned number) {
  const TextureBinding& whole = *sampler.texture.binding;
  const TextureBinding level = whole.level(number);
  const BoundTexture texture{&level, sampler.texture.texels + (level.address - whole.address)};
  return sample_at(
      op,
      Sampler{texture, sampler.accesses, sampler.lane, sampler.dimensions, sampler.layer, sampler.cube, sampler.offset},
      coordinates);
}

Texel sample_levels(const MicroOp& op, const Sampler& sampler, const std::array<uint32_t, 3>& coordinates,
                    double level) {
  const TextureBinding& binding = *sampler.texture.binding;
  const bool blends = binding.mipmap.filter == TextureFilter::linear &&
                      (binding.kind == TexelKind::floating || binding.normalised_float) &&
                      !(op.flags & flag_integer_coordinates);
  if (!blends) return sample_level(op, sampler, coordinates, static_cast<unsigned>(std::floor(level + 0.5)));
  const auto finer = static_cast<unsigned>(level);
  const double weight = std::nearbyint((level - finer) * 256) / 256;
  Texel result = sample_level(op, sampler, coordinates, finer);
  if (weight == 0) return result;
  const Texel coarser = sample_level(op, sampler, coordinates, finer + 1);
  for (unsigned channel = 0; channel < result.size(); ++channel)
    result[channel] = static_cast<float>((1 - weight) * static_cast<double>(result[channel]) +
                                         weight * static_cast<double>(coarser[channel]));
  return result;
}

const MicroOp* sample_texture(Warp& warp, const MicroOp& op) {
  return for_each_sample(warp, op, [&](const Sampler& sampler, const std::array<uint32_t, 3>& coordinates) {
    if (sampler.texture.binding->mipmap.count == 1) return sample_at(op, sampler, coordinates);
    return sample_levels(op, sampler, coordinates, level_of_detail(warp, op, sampler));
  });
}

// One channel, op.immediate, of the four texels that linear filtering would use: lower left first, then
// counter-clockwise, with the second coordinate pointing down.
const MicroOp* gather_texels(Warp& warp, const MicroOp& op) {
  return for_each_sample(warp, op, [&](const Sampler& sampler, const std::array<uint32_t, 3>& coordinates) {
    const Footprint footprint = footprint_of(sampler, as_floats(coordinates));
    constexpr int64_t corners[4][2] = {{0, 1}, {1, 1}, {1, 0}, {0, 0}};
    Texel result;
    for (unsigned i = 0; i < 4; ++i)
      result[i] = sampler.fetch_addressed({footprint.lowest[0] + corners[i][0], footprint.lowest[1] + corners[i][1],
                                           0})[static_cast<size_t>(op.immediate)];
    return result;
  });
}

enum class Query : uint8_t {
  width,
  height,
  depth,
  layers,
  levels,
  samples,
  normalised,
  filter,
  addressing,
  data_type,
  order,
  linear_layout
};

// PTX ISA 5.3.3: OpenCL's numbers, which PTX uses.
uint32_t channel_data_type(const TextureBinding& binding) {
  const unsigned size = binding.channel_bits == 8 ? 0 : binding.channel_bits == 16 ? 1 : 2;
  switch (binding.kind) {
  case TexelKind::floating:
    return binding.channel_bits == 16 ? 0x10dd : 0x10de;
  case TexelKind::signed_integer:
    return (binding.normalised_float ? 0x10d0 : 0x10d7) + size;
  case TexelKind::unsigned_integer:
    return (binding.normalised_float ? 0x10d2 : 0x10da) + size;
  }
  return 0;
}

uint32_t channel_order(const TextureBinding& binding) {
  return binding.channels == 1 ? 0x10b0 : binding.channels == 2 ? 0x10b2 : 0x10b5; // R, RG, RGBA
}

// Integer from `enum { wrap, mirror, clamp_ogl, clamp_to_edge, clamp_to_border }` (PTX ISA 9.7.10.5).
uint32_t addressing_number(TextureAddressing addressing) {
  switch (addressing) {
  case TextureAddressing::wrap:
    return 0;
  case TextureAddressing::mirror:
    return 1;
  case TextureAddressing::clamp:
    return 3;
  case TextureAddressing::border:
    return 4;
  }
  return 0;
}

template <Query query> uint64_t answer(const TextureBinding& binding) {
  switch (query) {
  case Query::width:
    return binding.width;
  case Query::height:
    return binding.height;
  case Query::depth:
    return binding.layered ? 0 : binding.depth;
  case Query::layers:
    return binding.layered ? binding.depth : 0;
  case Query::levels:
    return binding.mipmap.count;
  case Query::samples:
    return 0;
  case Query::normalised:
    return binding.normalised_coordinates;
  case Query::filter:
    return binding.filter == TextureFilter::linear;
  case Query::addressing:
    return addressing_number(binding.addressing);
  case Query::data_type:
    return channel_data_type(binding);
  case Query::order:
    return channel_order(binding);
  case Query::linear_layout:
    return 0; // for arrays
  }
  return 0;
}

template <Query query> const MicroOp* query_texture(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  uint32_t results[warp_size] = {};
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const BoundTexture* texture = lookup.find(lane);
    if (!texture) return nullptr;
    const TextureBinding& binding = *texture->binding;
    const uint32_t level = op.source[1] ? warp.lanes<uint32_t>(op.source[1])[lane] : 0;
    if (level >= binding.mipmap.count) continue; // has no size
    results[lane] = static_cast<uint32_t>(level ? answer<query>(binding.level(level)) : answer<query>(binding));
  }
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) { return results[lane]; });
  return &op + 1;
}

// --- decoding ---

// Results of the instruction: four, or two pairs of halves.
struct SampleResults {
  std::vector<LaneRef> texel; // four, the last two invalid for pairs of halves
  LaneRef resident;
};

std::optional<SampleResults> sample_results(Decoder& decoder) {
  const std::span<const ir::Operand> operands = decoder.operands();
  const ir::ScalarType type = decoder.form().type(0);
  const unsigned count = type == ir::ScalarType::f16x2 ? 2 : result_count;
  const size_t at = operands[0].is(ir::OperandKind::pair) ? 1 : 0; // of the vector
  if (!operands[at].is(ir::OperandKind::vector) || operands[at].group_size() != count) {
    decoder.unsupported("a texture instruction whose results are no vector is not emulated");
    return std::nullopt;
  }
  SampleResults results{std::vector<LaneRef>(result_count), {}};
  const LaneType element = lanes_of_bits(type == ir::ScalarType::f16 ? 16 : 32);
  for (size_t i = 0; i < count; ++i)
    if (const ir::Operand& target = operands[at + 1 + i]; !target.is(ir::OperandKind::sink))
      results.texel[i] = decoder.destination(target, element);
  if (at == 1 && operands[at + 1 + count].is(ir::OperandKind::value))
    results.resident = decoder.destination(operands[at + 1 + count], lanes_of_bits(1));
  return results;
}

// Decodes the offsets and other operands after the address and `levels` operands of the level of detail. Returns false
// after reporting to the decoder.
bool decode_offsets(Decoder& decoder, unsigned levels, std::array<LaneRef, 3>& offsets) {
  const std::span<const ir::Operand> operands = decoder.operands();
  unsigned next = 2 + levels;
  if (const size_t at = decoder.top_level(next); at < operands.size() && operands[at].is(ir::OperandKind::vector)) {
    for (size_t i = 0; i < std::min<size_t>(operands[at].group_size(), 3); ++i)
      offsets[i] = decoder.source(operands[at + 1 + i], lanes_of_bits(32));
    ++next;
  }
  if (next == decoder.top_level_count()) return true;
  decoder.unsupported("comparisons with depth textures are not emulated: CUDA makes none, and PTX does not say which "
                      "comparison it is");
  return false;
}

// Appends the operands that choose a level of detail, which follow the address.
void add_level_operands(Decoder& decoder, uint32_t flags, const Geometry& geometry, std::vector<LaneRef>& list) {
  const std::span<const ir::Operand> operands = decoder.operands();
  if (flags & flag_level) list.push_back(decoder.source(operands[decoder.top_level(2)], lanes_of_bits(32)));
  for (unsigned i = 0; (flags & flag_gradients) && i < 2; ++i) {
    const size_t at = decoder.top_level(2 + i);
    const bool is_vector = operands[at].is(ir::OperandKind::vector);
    if ((is_vector ? operands[at].group_size() : 1) < geometry.dimensions)
      return decoder.unsupported("a gradient with fewer numbers than coordinates");
    for (size_t d = 0; d < geometry.dimensions; ++d)
      list.push_back(decoder.source(operands[at + (is_vector ? 1 + d : 0)], lanes_of_bits(32)));
  }
}

void emit_sample(Decoder& decoder, Handler handler, uint32_t flags, int64_t immediate) {
  const std::optional<Geometry> geometry = geometry_of(decoder.form());
  if (!geometry) return decoder.unsupported("multi-sample textures are not emulated: CUDA makes none");
  TextureOperand texture = texture_operand(decoder, 1);
  const std::optional<SampleResults> results = sample_results(decoder);
  std::array<LaneRef, 3> offsets;
  const unsigned levels = flags & flag_gradients ? 2 : flags & flag_level ? 1 : 0;
  if (!results || !decode_offsets(decoder, levels, offsets)) return;
  if (texture.coordinates.size() < geometry->dimensions + (geometry->layered ? 1 : 0))
    return decoder.unsupported("a texture instruction with too few coordinates");
  const auto coordinates = static_cast<uint32_t>(texture.coordinates.size());
  std::vector<LaneRef> list = std::move(texture.coordinates);
  list.insert(list.end(), results->texel.begin(), results->texel.end());
  if (offsets[0]) {
    flags |= flag_offsets;
    list.insert(list.end(), offsets.begin(), offsets.end());
  }
  if (results->resident) {
    flags |= flag_resident;
    list.push_back(results->resident);
  }
  add_level_operands(decoder, flags, *geometry, list);
  const ir::ScalarType type = decoder.form().type(0);
  flags |= type == ir::ScalarType::f16 ? flag_f16 : type == ir::ScalarType::f16x2 ? flag_f16x2 : 0;
  const uint32_t first = decoder.add_list(list);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = texture.handle;
  op.flags = flags | (geometry->layered ? flag_layered : 0) | (geometry->cube ? flag_cube : 0);
  op.count = static_cast<uint8_t>(geometry->dimensions);
  op.extra = first;
  op.auxiliary = coordinates;
  op.immediate = immediate;
}

void decode_tex(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const uint32_t flags = (form.has(ir::Modifier::level) ? flag_level : 0) |
                         (form.has(ir::Modifier::grad) ? flag_gradients : 0) |
                         (ir::is_integer(form.type(1)) ? flag_integer_coordinates : 0);
  emit_sample(decoder, &sample_texture, flags, 0);
}

void decode_tld4(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const int64_t channel = form.has(ir::Modifier::r)   ? 0
                          : form.has(ir::Modifier::g) ? 1
                          : form.has(ir::Modifier::b) ? 2
                                                      : 3;
  emit_sample(decoder, &gather_texels, 0, channel);
}

void decode_query(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  using enum ir::Modifier;
  constexpr std::pair<ir::Modifier, Handler> queries[] = {
      {width, &query_texture<Query::width>},
      {height, &query_texture<Query::height>},
      {depth, &query_texture<Query::depth>},
      {array_size, &query_texture<Query::layers>},
      {num_mipmap_levels, &query_texture<Query::levels>},
      {num_samples, &query_texture<Query::samples>},
      {normalized_coords, &query_texture<Query::normalised>},
      {filter_mode, &query_texture<Query::filter>},
      {addr_mode_0, &query_texture<Query::addressing>},
      {addr_mode_1, &query_texture<Query::addressing>},
      {addr_mode_2, &query_texture<Query::addressing>},
      {channel_data_type, &query_texture<Query::data_type>},
      {channel_order, &query_texture<Query::order>},
      {memory_layout, &query_texture<Query::linear_layout>},
  };
  for (const auto& [word, handler] : queries) {
    if (!form.has(word)) continue;
    const TextureOperand texture = texture_operand(decoder, 1);
    LaneRef level;
    if (form.has(ir::Modifier::level))
      level = decoder.source(decoder.operands()[decoder.top_level(2)], lanes_of_bits(32));
    const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(32));
    MicroOp& op = decoder.emit(handler);
    op.source[0] = texture.handle;
    op.source[1] = level;
    op.destination[0] = target;
    return;
  }
  decoder.unsupported("samplers apart from their textures are not emulated");
}

} // namespace

void add_texture_operations(OperationTable& table) {
  table.special("tex*", &decode_tex);
  table.special("tld4*", &decode_tld4);
  table.special("txq*", &decode_query);
  table.special("suq*", &decode_query);
}

} // namespace ptxrewrite::emulator
