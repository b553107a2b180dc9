// Bytes and halves that go to memory, or come from it, as words.
#pragma once

#include "ir/core/builder.h"

#include <vector>

namespace ptxrewrite::transforms::memory {

// Words of the low bytes (`bits` 8: four to a word) or of halves in 16-bit registers (16: two to a word), the first one
// lowest. Bytes that were shifted out of a word are taken from that word: what is left of the shifts is dead.
std::vector<ir::Operand> pack_words(ir::Function& function, ir::Builder& builder,
                                    const std::vector<ir::Operand>& elements, unsigned bits);

// Definitions of new 32-bit registers.
std::vector<ir::Operand> fresh_words(ir::Builder& builder, size_t count);
// Defines `parts` by the words, as loads of `type` would: halves in 16-bit registers, two from each word, or bytes,
// extended to registers of 16 or 32 bits, four from each.
void split_words(const ir::Function& function, ir::Builder& builder, const std::vector<ir::Operand>& words,
                 const std::vector<ir::Operand>& parts, ir::ScalarType type);

} // namespace ptxrewrite::transforms::memory
