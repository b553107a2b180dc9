// Packs bytes and halves into words for stores, and unpacks them after loads.
#pragma once

#include "ir/core/builder.h"

#include <vector>

namespace ptxrewrite::transforms::memory {

// Packs the low bytes (`bits` 8: four to a word), or halves in 16-bit registers (16: two to a word), into words, the
// first one lowest. Bytes that were shifted out of a word are taken directly from that word, so that the shifts become
// dead.
std::vector<ir::Operand> pack_words(ir::Function& function, ir::Builder& builder,
                                    const std::vector<ir::Operand>& elements, unsigned bits);

// Operands that define new 32-bit registers.
std::vector<ir::Operand> fresh_words(ir::Builder& builder, size_t count);
// Defines `parts` from the words as loads of `type` would: halves in 16-bit registers, two from each word, or bytes,
// extended to registers of 16 or 32 bits, four from each.
void split_words(const ir::Function& function, ir::Builder& builder, const std::vector<ir::Operand>& words,
                 const std::vector<ir::Operand>& parts, ir::ScalarType type);

} // namespace ptxrewrite::transforms::memory
