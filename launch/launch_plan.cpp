#include "launch/launch_plan.h"

#include "launch/scalar_bytes.h"
#include "support/packed_file.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::launch {

std::string to_string(const Dim3& dimensions) {
  return std::to_string(dimensions.x) + "x" + std::to_string(dimensions.y) + "x" + std::to_string(dimensions.z);
}

Result<Number> BoundExpression::evaluate(const ElementContext& element) const {
  if (!index_slot && !count_slot) return expression->evaluate(values, element);
  std::vector<Number> filled = values;
  if (index_slot) filled[*index_slot] = Number(Int128(element.index));
  if (count_slot) filled[*count_slot] = Number(Int128(element.count));
  return expression->evaluate(filled, element);
}

namespace {

Error at_element(const Buffer& buffer, uint64_t index, const std::string& message) {
  return Error{"buffer '" + buffer.name + "', element " + std::to_string(index) + ": " + message, buffer.range};
}

Status fill_from_file(const Buffer& buffer, std::span<std::byte> memory) {
  Status status = read_unpacked(buffer.contents.file, memory);
  if (status) return status;
  return Error{"buffer '" + buffer.name + "': " + status.error().message, buffer.range};
}

// Copies the first element to all others, in pieces of doubling length.
void repeat_first(std::span<std::byte> memory, size_t element_bytes) {
  for (size_t done = element_bytes; done < memory.size(); done *= 2)
    std::memcpy(memory.data() + done, memory.data(), std::min(done, memory.size() - done));
}

Status fill_by_call(const Buffer& buffer, const ArithmeticExpression::SingleCall& call, std::span<std::byte> memory) {
  const size_t step = buffer.element_bytes();
  ElementContext element{0, buffer.count, buffer.type};
  Number value;
  for (; element.index < buffer.count; ++element.index) {
    if (const char* failure = call.body(call.arguments, element, value))
      return at_element(buffer, element.index, failure);
    if (std::string wrong = encode(buffer.type, value, memory.data() + element.index * step); !wrong.empty())
      return at_element(buffer, element.index, wrong);
  }
  return {};
}

Status fill_by_formula(const Buffer& buffer, std::span<std::byte> memory) {
  BoundExpression formula = *buffer.contents.formula;
  const bool same = !formula.expression->per_element() && !formula.index_slot;
  if (!same)
    if (auto call = formula.expression->as_single_call()) return fill_by_call(buffer, *call, memory);
  const size_t step = buffer.element_bytes();
  if (formula.count_slot) formula.values[*formula.count_slot] = Number(Int128(buffer.count));
  for (uint64_t i = 0; i < (same ? std::min<uint64_t>(1, buffer.count) : buffer.count); ++i) {
    if (formula.index_slot) formula.values[*formula.index_slot] = Number(Int128(i));
    Result<Number> value = formula.expression->evaluate(formula.values, {i, buffer.count, buffer.type});
    if (!value) return at_element(buffer, i, value.error().message);
    if (std::string wrong = encode(buffer.type, *value, memory.data() + i * step); !wrong.empty())
      return at_element(buffer, i, wrong);
  }
  if (same) repeat_first(memory, step);
  return {};
}

} // namespace

Status Buffer::initialise(std::span<std::byte> memory) const {
  if (memory.size() != bytes()) return Error{"buffer '" + name + "': its memory has another size", range};
  if (!contents.file.empty()) return fill_from_file(*this, memory);
  if (contents.bytes) {
    if (contents.bytes->size() != memory.size())
      return Error{"buffer '" + name + "': its contents have another size", range};
    std::ranges::copy(*contents.bytes, memory.begin());
    return {};
  }
  if (contents.formula) return fill_by_formula(*this, memory);
  if (contents.values.empty()) {
    std::ranges::fill(memory, std::byte{0});
    return {};
  }
  for (uint64_t i = 0; i < count; ++i)
    if (std::string wrong = encode(type, contents.values[i], memory.data() + i * element_bytes()); !wrong.empty())
      return at_element(*this, i, wrong);
  return {};
}

ArgumentSize size_of(const Argument& argument, unsigned address_bytes) {
  switch (argument.kind) {
  case Argument::Kind::bytes: {
    // An array of scalars is aligned like one of them.
    uint64_t alignment = argument.type == ir::ScalarType::none ? 1 : ir::byte_width(argument.type);
    return {argument.bytes.size(), alignment};
  }
  case Argument::Kind::buffer:
    return {address_bytes, address_bytes};
  case Argument::Kind::texture:
    return {8, 8};
  case Argument::Kind::tensor_map:
    return {ir::tensor_map_bytes, ir::tensor_map_alignment};
  case Argument::Kind::structure:
    break;
  }
  ArgumentSize size;
  for (const Argument& member : argument.members) {
    ArgumentSize part = size_of(member, address_bytes);
    size.bytes = (size.bytes + part.alignment - 1) / part.alignment * part.alignment + part.bytes;
    size.alignment = std::max(size.alignment, part.alignment);
  }
  size.bytes = (size.bytes + size.alignment - 1) / size.alignment * size.alignment;
  return size;
}

void pack(const Argument& argument, const DeviceAddresses& addresses, std::span<std::byte> out) {
  std::ranges::fill(out, std::byte{0});
  auto put = [out](uint64_t value, size_t bytes) {
    std::memcpy(out.data(), &value, std::min({bytes, out.size(), sizeof value}));
  };
  switch (argument.kind) {
  case Argument::Kind::bytes:
    std::memcpy(out.data(), argument.bytes.data(), std::min(out.size(), argument.bytes.size()));
    return;
  case Argument::Kind::buffer:
    put(addresses.buffers.at(argument.index) + argument.offset, addresses.address_bytes);
    return;
  case Argument::Kind::texture:
    put(addresses.textures.at(argument.index), 8);
    return;
  case Argument::Kind::tensor_map: {
    const auto& bytes = addresses.tensor_maps.at(argument.index);
    std::memcpy(out.data(), bytes.data(), std::min(out.size(), bytes.size()));
    return;
  }
  case Argument::Kind::structure:
    break;
  }
  uint64_t at = 0;
  for (const Argument& member : argument.members) {
    ArgumentSize part = size_of(member, addresses.address_bytes);
    at = (at + part.alignment - 1) / part.alignment * part.alignment;
    if (at + part.bytes > out.size()) return;
    pack(member, addresses, out.subspan(at, part.bytes));
    at += part.bytes;
  }
}

const Buffer* LaunchPlan::find_buffer(std::string_view name) const {
  for (const Buffer& buffer : buffers)
    if (buffer.name == name) return &buffer;
  return nullptr;
}

LevelExtents extents_of_level(const Texture& texture, uint32_t level) {
  const auto halved = [&](uint64_t extent) { return std::max<uint64_t>(1, extent >> level); };
  return {halved(texture.width), halved(texture.height),
          texture.layered ? std::max<uint64_t>(1, texture.depth) : halved(texture.depth)};
}

} // namespace ptxrewrite::launch
