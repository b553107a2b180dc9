// Which columns of a sparse matrix A its stored elements belong to, by the metadata of mma.sp and wgmma.mma_async.sp
// (PTX ISA 9.7.14.6.1, "Sparse matrix storage", and the figures of metadata in 9.7.14.6.2).
//
// Half of each row is stored. An index of two bits stands for one of four units in a row: elements of 16 and 8 bits,
// pairs of elements of 4 bits; an element of tf32 is two units, of which the first one's index counts. A row has two
// indices for each four units, and eight of them, 16 bits, lie in one lane: in the low half for row lane / 4, in the
// high half for the row eight below. A row takes one, two or four lanes of the four with that quotient; where there is
// a choice the sparsity selector says which.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

inline constexpr unsigned sparse_rows = 16; // of A that one warp has

// columns[row * k / 2 + i]: of the i-th stored element. element_bits: with what pads them. k: columns of A. metadata:
// of each lane.
void sparse_columns(unsigned element_bits, unsigned k, const uint32_t* metadata, unsigned selector, uint8_t* columns);

} // namespace ptxrewrite::emulator
