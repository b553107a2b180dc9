// Shared by the matrix instructions: reading and writing fragments.
#pragma once

#include "emulator/core/decode.h"
#include "emulator/special/collective.h"
#include "emulator/special/matrix_layout.h"

#include <vector>

namespace ptxrewrite::emulator {

// Returns the registers of a vector operand, or the operand itself.
std::vector<ir::Operand> matrix_registers(const Decoder& decoder, unsigned top_level_index);

// Adds a description and returns its number, for MicroOp::auxiliary and Collective::description.
template <class T> uint32_t add_description(Decoder& decoder, T description) {
  decoder.output().descriptions.push_back(std::make_shared<const T>(std::move(description)));
  return static_cast<uint32_t>(decoder.output().descriptions.size() - 1);
}

// Reads the raw bits of all elements of a fragment whose registers are listed from op.extra + first on.
template <class Register>
void unpack_fragment(const Collective& all, unsigned first, const Fragment& fragment, uint64_t* elements) {
  const unsigned bits = fragment.element_bits, count = fragment.per_register();
  const uint64_t mask = bits == 64 ? ~uint64_t(0) : (uint64_t(1) << bits) - 1;
  const uint16_t* place = fragment.places.data();
  for (unsigned reg = 0; reg < fragment.registers; ++reg) {
    Register storage[warp_size];
    const Register* lanes = all.listed(first + reg, storage);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      for (unsigned i = 0; i < count; ++i)
        // NOLINTNEXTLINE(clang-analyzer-core.BitwiseShift): a register has `count` elements of `bits`
        elements[*place++] = (static_cast<uint64_t>(lanes[lane]) >> (i * bits)) & mask;
  }
}

template <class Register>
void pack_fragment(const Collective& all, unsigned first, const Fragment& fragment, const uint64_t* elements) {
  const unsigned bits = fragment.element_bits, count = fragment.per_register();
  const uint16_t* place = fragment.places.data();
  for (unsigned reg = 0; reg < fragment.registers; ++reg) {
    Register packed[warp_size];
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      uint64_t value = 0;
      for (unsigned i = 0; i < count; ++i)
        value |= elements[*place++] << (i * bits);
      packed[lane] = static_cast<Register>(value);
    }
    all.write_listed<Register>(first + reg, [&](unsigned lane) { return packed[lane]; });
  }
}

} // namespace ptxrewrite::emulator
