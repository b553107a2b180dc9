// Columns of the stored elements of a sparse matrix A, from the metadata of mma.sp and wgmma.mma_async.sp
// (PTX ISA 9.7.14.6.1, "Sparse matrix storage", and the figures of metadata in 9.7.14.6.2).
//
// Half of each row is stored. A 2-bit index selects one of four units in a row: elements of 16 and 8 bits,
// pairs of elements of 4 bits; a tf32 element is two units, of which only the first one's index is used. A row has two
// indices per four units, and eight of them, 16 bits, are in one lane: in the low half for row lane / 4, in the
// high half for the row eight below. A row uses one, two or four of the four lanes with that quotient; if there is a
// choice, the sparsity selector makes it.
#pragma once

#include <cstdint>

namespace ptxrewrite::emulator {

inline constexpr unsigned sparse_rows = 16; // rows of A in one warp

// columns[row * k / 2 + i]: column of the i-th stored element. element_bits: including padding. k: columns of A.
// metadata: of each lane.
void sparse_columns(unsigned element_bits, unsigned k, const uint32_t* metadata, unsigned selector, uint8_t* columns);

} // namespace ptxrewrite::emulator
