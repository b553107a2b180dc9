#include "tests/fuzz/kernels/kernel_program.h"

#include "tests/fuzz/random.h"

#include <algorithm>
#include <cstring>

namespace ptxrewrite::fuzz {

const char* name_of(SpecialRegister which) {
  static constexpr const char* names[] = {"%tid.x",       "%tid.y",       "%tid.z",      "%ntid.x",      "%ntid.y",
                                          "%ntid.z",      "%ctaid.x",     "%ctaid.y",    "%ctaid.z",     "%nctaid.x",
                                          "%nctaid.y",    "%nctaid.z",    "%laneid",     "%lanemask_eq", "%lanemask_lt",
                                          "%lanemask_le", "%lanemask_gt", "%lanemask_ge"};
  return names[static_cast<size_t>(which)];
}

namespace {

// (One random call per expression: the order within one is the compiler's.)
// Eight bytes of typical data: small numbers, bits, halves, floats near one, and the edges of formats.
uint64_t random_word(Random& random) {
  static constexpr uint64_t edges[] = {0,
                                       ~uint64_t(0),
                                       0x8000000000000000,
                                       0x7fffffffffffffff,
                                       0x800000007fffffff,
                                       0x7f800000ff800000,
                                       0x7fc0000000000001,
                                       0x0080000000400000,
                                       0x7ff0000000000000,
                                       0x7ff8000000000000,
                                       0x000fffffffffffff,
                                       0x3c007c00fc000001,
                                       0x80007bff04003c00};
  switch (random.below(6)) {
  case 0:
    return random.next();
  case 1:
    return random.pick(edges);
  case 2: {
    const uint64_t low = random.below(100);
    return random.below(100) << 32 | low;
  }
  case 3: { // two floats
    const uint64_t low = 0x3f000000 + (random.next() & 0x81ffffff);
    return (0x3f000000 + (random.next() & 0x81ffffff)) << 32 | low;
  }
  case 4:
    return 0x3fe0000000000000 + (random.next() & 0x803fffffffffffff);
  default: { // few bits
    const uint64_t some = random.next();
    return some & random.next();
  }
  }
}

} // namespace

std::vector<uint8_t> Kernel::buffer_contents(size_t buffer, const Shape& shape) const {
  std::vector<uint8_t> bytes(buffer_size(buffer, shape));
  if (buffers[buffer].contents == Contents::zeros) return bytes;
  Random random(buffers[buffer].seed);
  for (size_t at = 0; at < bytes.size(); at += 8) {
    const uint64_t word = random_word(random);
    std::memcpy(&bytes[at], &word, std::min<size_t>(8, bytes.size() - at));
  }
  return bytes;
}

std::vector<uint8_t> Kernel::parameter_block(const Shape& shape, const std::vector<uint64_t>& addresses) const {
  std::vector<uint8_t> block;
  for (const Argument& argument : arguments) {
    const MemoryObject& object = objects[argument.object];
    block.resize((block.size() + object.alignment - 1) / object.alignment * object.alignment);
    uint64_t value = 0;
    switch (argument.kind) {
    case ArgumentKind::bytes:
      block.insert(block.end(), argument.bytes_in(shape).begin(), argument.bytes_in(shape).end());
      continue;
    case ArgumentKind::buffer:
      value = addresses[argument.buffer] + argument.offset;
      break;
    case ArgumentKind::total_threads:
      value = shape.threads();
      break;
    case ArgumentKind::row_threads:
      value = uint64_t(shape.grid[0]) * shape.block[0];
      break;
    }
    for (unsigned byte = 0; byte < object.size; ++byte)
      block.push_back(static_cast<uint8_t>(value >> (8 * byte)));
  }
  return block;
}

uint32_t Kernel::dynamic_shared_size() const {
  uint32_t size = 0;
  for (const MemoryObject& object : objects)
    if (object.space == Space::dynamic_shared) size += object.size;
  return size;
}

} // namespace ptxrewrite::fuzz
