// tex, tld4 and txq: textures of one to three dimensions and arrays of them, nearest and linear (PTX ISA 9.7.10; CUDA
// programming guide, Texture Fetching).
//
// There is one level of detail. Weights of linear filtering have 8 bits of fraction, as on hardware. Integer
// coordinates count texels, whatever the binding says; outside they read zeros, as tex1Dfetch does. A channel that the
// texture does not have reads as zero.
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
// op.count: dimensions. The list: coordinates, then four results. op.auxiliary: how many coordinates.

using Texel = std::array<float, 4>; // of floats, or integers as bits

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

// Index of a texel along one dimension by the addressing mode; -1: outside.
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

  uint64_t size(unsigned dimension) const {
    const TextureBinding& binding = *texture.binding;
    return dimension == 0 ? binding.width : dimension == 1 ? binding.rows() : binding.planes();
  }
  // By indices, each inside or -1.
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
      index[d] = addressed(*texture.binding, index[d], static_cast<int64_t>(size(d)));
    return fetch(index);
  }
  // In texels.
  double position(double coordinate, unsigned dimension) const {
    if (!std::isfinite(coordinate)) return 0;
    const double texels = static_cast<double>(size(dimension));
    return std::clamp(texture.binding->normalised_coordinates ? coordinate * texels : coordinate, -0x1p40, 0x1p40);
  }
};

Texel sample_nearest(const Sampler& sampler, const std::array<double, 3>& coordinates) {
  std::array<int64_t, 3> index{};
  for (unsigned d = 0; d < sampler.dimensions; ++d)
    index[d] = static_cast<int64_t>(std::floor(sampler.position(coordinates[d], d)));
  return sampler.fetch_addressed(index);
}

// The texels around a place: the lowest indices, and the weights of those one further.
struct Footprint {
  std::array<int64_t, 3> lowest{};
  std::array<double, 3> weight{};
};

Footprint footprint_of(const Sampler& sampler, const std::array<double, 3>& coordinates) {
  Footprint footprint;
  for (unsigned d = 0; d < sampler.dimensions; ++d) {
    const double place = sampler.position(coordinates[d], d) - 0.5;
    footprint.lowest[d] = static_cast<int64_t>(std::floor(place));
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

// Runs `sample(sampler, coordinates as written)` for each lane, and writes what comes back.
template <class Sample> const MicroOp* for_each_sample(Warp& warp, const MicroOp& op, Sample&& sample) {
  const LaneRef* list = warp.activation->function->lists.data() + op.extra;
  TextureLookup lookup(warp, op);
  TexelAccesses accesses(warp, op);
  std::array<Texel, warp_size> results;
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const BoundTexture* texture = lookup.find(lane);
    if (!texture) return nullptr;
    Sampler sampler{*texture, accesses, lane, op.count};
    unsigned next = 0;
    if (op.flags & flag_layered)
      sampler.layer = std::min<uint64_t>(warp.lanes<uint32_t>(list[next++])[lane], texture->binding->planes() - 1);
    std::array<uint32_t, 3> coordinates{};
    for (unsigned d = 0; d < op.count; ++d)
      coordinates[d] = warp.lanes<uint32_t>(list[next++])[lane];
    results[lane] = sample(sampler, coordinates);
  }
  accesses.tell(AccessKind::load);
  for (unsigned channel = 0; channel < 4; ++channel)
    if (LaneRef target = list[op.auxiliary + channel])
      detail::write_lanes<uint32_t>(warp, target, warp.mask,
                                    [&](unsigned lane) { return std::bit_cast<uint32_t>(results[lane][channel]); });
  return &op + 1;
}

std::array<double, 3> as_floats(const std::array<uint32_t, 3>& coordinates) {
  std::array<double, 3> numbers;
  std::transform(coordinates.begin(), coordinates.end(), numbers.begin(),
                 [](uint32_t bits) { return static_cast<double>(std::bit_cast<float>(bits)); });
  return numbers;
}

const MicroOp* sample_texture(Warp& warp, const MicroOp& op) {
  return for_each_sample(warp, op, [&](const Sampler& sampler, const std::array<uint32_t, 3>& coordinates) {
    if (op.flags & flag_integer_coordinates) {
      std::array<int64_t, 3> index{};
      for (unsigned d = 0; d < sampler.dimensions; ++d) {
        index[d] = static_cast<int32_t>(coordinates[d]);
        if (index[d] >= static_cast<int64_t>(sampler.size(d))) index[d] = -1;
      }
      return sampler.fetch(index);
    }
    return filters(*sampler.texture.binding) ? sample_linear(sampler, as_floats(coordinates))
                                             : sample_nearest(sampler, as_floats(coordinates));
  });
}

// One channel, op.immediate, of the four texels that linear filtering would take: lower left first, then
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

enum class Query : uint8_t { width, height, depth, layers, levels };

template <Query query> const MicroOp* query_texture(Warp& warp, const MicroOp& op) {
  TextureLookup lookup(warp, op);
  uint32_t results[warp_size] = {};
  for (uint32_t lanes = warp.mask; lanes; lanes &= lanes - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
    const BoundTexture* texture = lookup.find(lane);
    if (!texture) return nullptr;
    const TextureBinding& binding = *texture->binding;
    const uint64_t value = query == Query::width                         ? binding.width
                           : query == Query::height                      ? binding.height
                           : query == Query::levels                      ? 1
                           : (query == Query::layers) == binding.layered ? binding.depth
                                                                         : 0;
    results[lane] = static_cast<uint32_t>(value);
  }
  detail::write_lanes<uint32_t>(warp, op.destination[0], warp.mask, [&](unsigned lane) { return results[lane]; });
  return &op + 1;
}

// --- decoding ---

// The instruction's four results; empty and refused when they are not four words.
std::vector<LaneRef> four_results(Decoder& decoder) {
  const std::span<const ir::Operand> operands = decoder.operands();
  std::vector<LaneRef> results;
  if (!operands[0].is(ir::OperandKind::vector) || operands[0].group_size() != 4) {
    decoder.unsupported("a texture instruction without four results is not emulated");
    return results;
  }
  for (size_t i = 1; i <= 4; ++i)
    results.push_back(operands[i].is(ir::OperandKind::sink) ? LaneRef()
                                                            : decoder.destination(operands[i], lanes_of_bits(32)));
  return results;
}

void emit_sample(Decoder& decoder, Handler handler, Geometry geometry, uint32_t flags, int64_t immediate) {
  TextureOperand texture = texture_operand(decoder, 1);
  const std::vector<LaneRef> results = four_results(decoder);
  if (results.empty()) return;
  if (texture.coordinates.size() < geometry.dimensions + (geometry.layered ? 1 : 0))
    return decoder.unsupported("a texture instruction with too few coordinates");
  const auto coordinates = static_cast<uint32_t>(texture.coordinates.size());
  texture.coordinates.insert(texture.coordinates.end(), results.begin(), results.end());
  const uint32_t list = decoder.add_list(texture.coordinates);
  MicroOp& op = decoder.emit(handler);
  op.source[0] = texture.handle;
  op.flags = flags | (geometry.layered ? flag_layered : 0);
  op.count = static_cast<uint8_t>(geometry.dimensions);
  op.extra = list;
  op.auxiliary = coordinates;
  op.immediate = immediate;
}

void decode_tex(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::optional<Geometry> geometry = geometry_of(form);
  if (!geometry) return decoder.unsupported("cube and multi-sample textures are not emulated");
  if (ir::bit_width(form.type(0)) != 32 || form.type(0) == ir::ScalarType::f16x2)
    return decoder.unsupported("textures that are read as f16 are not emulated");
  // Levels and gradients choose among levels of detail, of which there is one.
  const unsigned expected = 2 + (form.has(ir::Modifier::level) ? 1 : 0) + (form.has(ir::Modifier::grad) ? 2 : 0);
  if (decoder.top_level_count() != expected)
    return decoder.unsupported("texel offsets and depth comparison are not emulated");
  emit_sample(decoder, &sample_texture, *geometry, ir::is_integer(form.type(1)) ? flag_integer_coordinates : 0, 0);
}

void decode_tld4(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::optional<Geometry> geometry = geometry_of(form);
  if (!geometry || decoder.top_level_count() != 2)
    return decoder.unsupported("of tld4 only two-dimensional textures without offsets are emulated");
  const int64_t channel = form.has(ir::Modifier::r)   ? 0
                          : form.has(ir::Modifier::g) ? 1
                          : form.has(ir::Modifier::b) ? 2
                                                      : 3;
  emit_sample(decoder, &gather_texels, *geometry, 0, channel);
}

void decode_query(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const std::pair<ir::Modifier, Handler> queries[] = {
      {ir::Modifier::width, &query_texture<Query::width>},
      {ir::Modifier::height, &query_texture<Query::height>},
      {ir::Modifier::depth, &query_texture<Query::depth>},
      {ir::Modifier::array_size, &query_texture<Query::layers>},
      {ir::Modifier::num_mipmap_levels, &query_texture<Query::levels>},
  };
  for (const auto& [word, handler] : queries) {
    if (!form.has(word) || form.has(ir::Modifier::level)) continue;
    const TextureOperand texture = texture_operand(decoder, 1);
    const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(32));
    MicroOp& op = decoder.emit(handler);
    op.source[0] = texture.handle;
    op.destination[0] = target;
    return;
  }
  decoder.unsupported("only sizes of textures can be asked for");
}

} // namespace

void add_texture_operations(OperationTable& table) {
  table.special("tex*", &decode_tex);
  table.special("tld4*", &decode_tld4);
  table.special("txq*", &decode_query);
  table.special("suq*", &decode_query);
}

} // namespace ptxrewrite::emulator
