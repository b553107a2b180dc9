#include "emulator/special/texture_access.h"

#include "emulator/core/observer.h"

#include <fmt/format.h>

namespace ptxrewrite::emulator {

std::optional<Geometry> geometry_of(const ir::Form& form) {
  constexpr std::pair<ir::Modifier, Geometry> words[] = {
      {ir::Modifier::_1d, {1, false}},        {ir::Modifier::_2d, {2, false}}, {ir::Modifier::_3d, {3, false}},
      {ir::Modifier::a1d, {1, true}},         {ir::Modifier::a2d, {2, true}},  {ir::Modifier::cube, {3, false, true}},
      {ir::Modifier::acube, {3, true, true}},
  };
  for (const auto& [word, geometry] : words)
    if (form.has(word)) return geometry;
  return std::nullopt;
}

TextureOperand texture_operand(Decoder& decoder, unsigned top_level_index) {
  TextureOperand result;
  const std::span<const ir::Operand> operands = decoder.operands();
  const size_t position = decoder.top_level(top_level_index);
  if (position >= operands.size() || !operands[position].is(ir::OperandKind::address)) {
    decoder.unsupported("a texture operand that the emulator cannot read");
    return result;
  }
  const size_t past = ir::next_sibling(operands, position);
  std::vector<size_t> parts;
  for (size_t i = position + 1; i < past; i = ir::next_sibling(operands, i))
    parts.push_back(i);
  const ir::Operand& base = operands[parts[0]];
  if (base.is(ir::OperandKind::symbol)) {
    if (std::optional<uint64_t> address = decoder.fixed_address(base.as_symbol()))
      result.handle = decoder.constant(*address, 64);
    else
      decoder.unsupported(fmt::format("'{}' cannot be bound to a texture", decoder.symbol_name(base.as_symbol())));
  } else {
    result.handle = decoder.source(base, lanes_of_bits(64));
  }
  if (parts.size() < 2) return result;
  const size_t coordinates = parts.back();
  if (!operands[coordinates].is(ir::OperandKind::vector)) {
    result.coordinates.push_back(decoder.source(operands[coordinates], lanes_of_bits(32)));
    return result;
  }
  for (size_t i = coordinates + 1; i < past; i = ir::next_sibling(operands, i))
    result.coordinates.push_back(decoder.source(operands[i], lanes_of_bits(32)));
  return result;
}

const BoundTexture* TextureLookup::find(unsigned lane) {
  const uint64_t handle = warp_.lanes<uint64_t>(op_.source[0])[lane];
  if (texture_.binding && handle == handle_) return &texture_;
  Block& block = *warp_.block;
  const auto found = block.image->textures->find(handle);
  if (found == block.image->textures->end()) {
    block.fail(warp_, op_, lane, fmt::format("{:#x} is no texture or surface that is bound", handle));
    return nullptr;
  }
  const MemoryRange range = block.launch->memory->find(found->second.address);
  const TextureBinding& binding = found->second;
  const uint64_t bytes = binding.mipmap.count == 1 ? binding.bytes() : binding.bytes_of_levels();
  if (!range.contains(binding.address, bytes)) {
    block.fail(warp_, op_, lane, fmt::format("a texture of {} bytes, of which not all are allocated", bytes));
    return nullptr;
  }
  handle_ = handle;
  texture_ = {&binding, range.at(binding.address)};
  return &texture_;
}

bool TexelAccesses::is_wanted(const Block& block) {
  return block.watch_memory && block.observer && block.observer->wants_accesses();
}

void TexelAccesses::keep(unsigned lane, uint64_t address, uint64_t bytes) {
  bytes_ = bytes;
  for (unsigned texel = 0; texel < most_texels; ++texel) {
    if (lanes_[texel] >> lane & 1) continue;
    lanes_[texel] |= 1u << lane;
    addresses_[texel][lane] = address;
    return;
  }
}

void TexelAccesses::tell(AccessKind kind) {
  const uint32_t mask = warp_.mask;
  for (unsigned texel = 0; texel < most_texels && lanes_[texel]; ++texel) {
    warp_.mask = lanes_[texel];
    warp_.block->observer->accessed(*warp_.block, warp_, op_, {Space::global, addresses_[texel].data(), bytes_, kind});
  }
  warp_.mask = mask;
}

} // namespace ptxrewrite::emulator
