// ldmatrix, stmatrix, movmatrix, wmma.load and wmma.store: matrices between memory and the registers of a warp (PTX ISA
// 9.7.14.5.15 to 17 and 9.7.14.4). The table also gets the instructions on sparse vectors (sparse_vectors.h).
#include "emulator/core/address.h"
#include "emulator/core/watch.h"
#include "emulator/semantics/wide_transpose.h"
#include "emulator/special/matrix.h"
#include "emulator/special/sparse_vectors.h"
#include "emulator/tiles/matrix_tile.h"

#include <algorithm>
#include <array>
#include <bit>

// The static analyzer does not know that the sizes of a matrix product were checked when it was decoded.
// NOLINTBEGIN(clang-analyzer-core.*)
namespace ptxrewrite::emulator {
namespace {

// MicroOp::flags of all of these: the space, and
constexpr uint32_t flag_narrow = 1u << 8;    // the address has 32 bits
constexpr uint32_t flag_transpose = 1u << 9; // .trans
constexpr uint32_t flag_store = 1u << 10;

Space space_of(const MicroOp& op) {
  return static_cast<Space>(op.flags & 0xff);
}

// The lanes' addresses, op.source[0] + op.immediate.
void read_addresses(const Collective& all, uint64_t (&addresses)[warp_size]) {
  const auto offset = static_cast<uint64_t>(all.op().immediate);
  if (all.op().flags & flag_narrow) {
    uint32_t storage[warp_size];
    const uint32_t* base = all.values(0, storage);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      addresses[lane] = static_cast<uint32_t>(base[lane] + offset);
  } else {
    uint64_t storage[warp_size];
    const uint64_t* base = all.values(0, storage);
    for (unsigned lane = 0; lane < warp_size; ++lane)
      addresses[lane] = base[lane] + offset;
  }
}

// The largest access of a lane.
constexpr uint64_t widest_access = 16;

// Reports `count` accesses to the watchers, each as one lane's. Longer lines are several accesses of all lanes, as in
// ptxas's code for wmma.load.
bool watch_lines(const Collective& all, const uint64_t* addresses, unsigned count, uint64_t bytes) {
  Warp& warp = all.warp();
  if (!warp.block->watch_memory) return true;
  const uint32_t mask = warp.mask;
  warp.mask = count >= warp_size ? full_mask : (1u << count) - 1;
  uint64_t padded[warp_size];
  for (unsigned i = 0; i < warp_size; ++i)
    padded[i] = addresses[std::min(i, count - 1)];
  const AccessKind kind = all.op().flags & flag_store ? AccessKind::store : AccessKind::load;
  bool good = true;
  for (uint64_t done = 0; done < bytes && good; done += widest_access) {
    good = watch_access(warp, all.op(), space_of(all.op()), padded, std::min(widest_access, bytes - done), kind);
    for (uint64_t& address : padded)
      address += widest_access;
  }
  warp.mask = mask;
  return good;
}

// Returns the bytes of a row, or nullptr after the block has failed.
std::byte* row_bytes(const Collective& all, unsigned lane, uint64_t address, uint64_t bytes, uint64_t alignment) {
  const MicroOp& op = all.op();
  std::byte* host = resolve(*all.warp().block, all.warp(), lane, space_of(op), address, bytes);
  if (host && address % alignment == 0) return host;
  bad_access(all.warp(), op, lane, space_of(op), address, host ? alignment : bytes,
             op.flags & flag_store ? "matrix store" : "matrix load");
  return nullptr;
}

// Locates `count` aligned rows of `bytes` bytes; returns false unless all are in the block's own shared memory.
bool find_shared_rows(const Collective& all, const uint64_t* addresses, unsigned count, uint64_t bytes,
                      std::byte** rows) {
  const Block& block = *all.warp().block;
  const Space space = space_of(all.op());
  const bool is_generic = space == Space::generic;
  if (block.cluster || (space != Space::shared && space != Space::cluster && !is_generic)) return false;
  if (block.shared_bytes < bytes) return false;
  const uint64_t begin = is_generic ? shared_window : 0, limit = block.shared_bytes - bytes;
  uint64_t outside = 0, misaligned = 0; // outside: only its sign bit matters
  for (unsigned i = 0; i < count; ++i) {
    const uint64_t offset = addresses[i] - begin;
    outside |= offset | (limit - offset);
    misaligned |= offset & (bytes - 1);
  }
  if (static_cast<int64_t>(outside) < 0 || misaligned) return false;
  for (unsigned i = 0; i < count; ++i)
    rows[i] = block.shared + (addresses[i] - begin);
  return true;
}

// Locates the rows in any memory. Returns false if the block has failed.
bool find_rows(const Collective& all, const uint64_t* addresses, unsigned count, uint64_t bytes, std::byte** rows) {
  if (find_shared_rows(all, addresses, count, bytes, rows)) return true;
  for (unsigned i = 0; i < count; ++i) {
    rows[i] = row_bytes(all, i, addresses[i], bytes, bytes);
    if (!rows[i]) return false;
  }
  return true;
}

constexpr unsigned side = 8;
constexpr unsigned most_matrices = warp_size / side;

// The same for 32-bit addresses that no watcher sees and that come from one place, without the lanes' 64-bit addresses.
// `count`: a multiple of `side`. `offsets`: in the block's shared memory.
bool find_narrow_rows(const Collective& all, unsigned count, uint32_t bytes, uint32_t (&offsets)[warp_size]) {
  const Warp& warp = all.warp();
  const Block& block = *warp.block;
  if (!(all.op().flags & flag_narrow) || space_of(all.op()) != Space::shared || block.cluster || block.watch_memory ||
      !warp.gathered.empty() || block.shared_bytes < bytes)
    return false;
  const auto limit = static_cast<uint32_t>(std::min<uint64_t>(block.shared_bytes - bytes, UINT32_MAX));
  const auto add = static_cast<uint32_t>(all.op().immediate);
  const uint32_t* base = warp.lanes<uint32_t>(all.op().source[0]);
  using Words = uint32_t __attribute__((vector_size(side * sizeof(uint32_t))));
  Words bad = {};
  for (unsigned first = 0; first < count; first += side) {
    Words places;
    std::memcpy(&places, base + first, sizeof places);
    places += add;
    bad |= (Words)(places > limit) | (places & (bytes - 1));
    std::memcpy(offsets + first, &places, sizeof places);
  }
  uint32_t any = 0;
  for (unsigned i = 0; i < side; ++i)
    any |= bad[i];
  return any == 0;
}

// --- 8x8 matrices of 16 bits: lane T holds row T / 4, columns 2 * (T % 4) and 2 * (T % 4) + 1; so the lanes of a
// register hold the rows in order ---

constexpr unsigned small_row = side * sizeof(uint16_t);

// `load`: called with the number of a matrix and where its rows, or with .trans its columns, go.
template <class Load> void load_each(const Collective& all, const Load& load) {
  const unsigned count = all.op().count;
  uint32_t* whole[most_matrices];
  for (unsigned i = 0; i < count; ++i)
    whole[i] = all.whole_listed<uint32_t>(i);
  for (unsigned i = 0; i < count; ++i) {
    uint32_t storage[warp_size];
    load(i, whole[i] ? whole[i] : storage);
    if (!whole[i]) all.write_listed<uint32_t>(i, [&](unsigned lane) { return storage[lane]; });
  }
}

void load_narrow_rows(const Collective& all, const uint32_t* offsets) {
  const std::byte* shared = all.warp().block->shared;
  const bool transposed = all.op().flags & flag_transpose;
#if defined(PTXREWRITE_WIDE_TRANSPOSE)
  if (transposed && semantics::host_has_avx512())
    return load_each(
        all, [=](unsigned i, uint32_t* matrix) { semantics::wide_transpose(shared, offsets + i * side, matrix); });
#endif
  load_each(all, [=](unsigned i, uint32_t* matrix) {
#pragma GCC unroll 8
    for (unsigned row = 0; row < side; ++row)
      std::memcpy(matrix + row * 4, shared + offsets[i * side + row], small_row);
    if (transposed) transpose_half_matrix(matrix);
  });
}

// Lanes 8 * i to 8 * i + 7 have the addresses of the rows of matrix i. op.count matrices.
const MicroOp* load_matrices(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const unsigned count = all.op().count * side;
    uint32_t offsets[warp_size];
    if (find_narrow_rows(all, count, small_row, offsets)) return load_narrow_rows(all, offsets);
    uint64_t addresses[warp_size];
    read_addresses(all, addresses);
    if (!watch_lines(all, addresses, count, small_row)) return;
    std::byte* rows[warp_size];
    if (!find_rows(all, addresses, count, small_row, rows)) return;
    load_each(all, [&](unsigned i, uint32_t* matrix) {
      for (unsigned row = 0; row < side; ++row)
        std::memcpy(matrix + row * 4, rows[i * side + row], small_row);
      if (all.op().flags & flag_transpose) transpose_half_matrix(matrix);
    });
  });
}

// `row_of`: the bytes of a row, nullptr after the block has failed.
template <class RowOf> void store_rows(const Collective& all, const RowOf& row_of) {
  const bool transposed = all.op().flags & flag_transpose;
  for (unsigned i = 0; i < all.op().count; ++i) {
    uint32_t storage[warp_size], turned[warp_size];
    const uint32_t* matrix = all.listed(i, storage);
    if (transposed) {
      std::memcpy(turned, matrix, sizeof turned);
      transpose_half_matrix(turned);
      matrix = turned;
    }
    for (unsigned row = 0; row < side; ++row) {
      std::byte* host = row_of(i * side + row);
      if (!host) return;
      std::memcpy(host, matrix + row * 4, small_row);
    }
  }
}

const MicroOp* store_matrices(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const unsigned count = all.op().count * side;
    uint32_t offsets[warp_size];
    if (find_narrow_rows(all, count, small_row, offsets)) {
      std::byte* shared = all.warp().block->shared;
      return store_rows(all, [&](unsigned row) { return shared + offsets[row]; });
    }
    uint64_t addresses[warp_size];
    read_addresses(all, addresses);
    if (!watch_lines(all, addresses, count, small_row)) return;
    std::byte* rows[warp_size];
    const bool is_found = find_shared_rows(all, addresses, count, small_row, rows);
    store_rows(all, [&](unsigned row) {
      return is_found ? rows[row] : row_bytes(all, row, addresses[row], small_row, small_row);
    });
  });
}

// --- matrices of bytes, in rows of 16 ---
//
// The lanes of transposed matrices follow CUTLASS's traits of these instructions (SM100_U8x8_LDSM_T
// and similar ones in cute/atom/copy_traits_sm100.hpp), which map bits of a tile to the lane that addresses them and to
// the lane that holds them. Elements of 4 and 6 bits are packed from the start of a row; each is expanded to a byte.

constexpr unsigned byte_row = 16;
using ByteRow = std::array<uint8_t, byte_row>;

// MicroOp::auxiliary: bits of an element in memory.
ByteRow expanded(const std::byte* packed, unsigned bits) {
  ByteRow row;
  for (unsigned i = 0; i < byte_row; ++i) {
    const unsigned at = i * bits;
    const unsigned low = static_cast<unsigned>(packed[at / 8]);
    const unsigned high = at / 8 + 1 < byte_row ? static_cast<unsigned>(packed[at / 8 + 1]) : 0;
    row[i] = static_cast<uint8_t>((low | high << 8) >> at % 8 & ((1u << bits) - 1));
  }
  return row;
}

// Row (numbered by the lane that has its address) and column of byte `byte` of register `reg` of a lane.
std::pair<unsigned, unsigned> place_of_byte(bool transposed, bool store, unsigned lane, unsigned reg, unsigned byte) {
  if (!transposed) return {reg * 8 + lane / 4, lane % 4 * 4 + byte};
  const unsigned column = lane / 4 + byte / 2 * 8;
  if (store) return {reg * 8 + lane % 4 * 2 + byte % 2, column};
  return {reg / 2 * 16 + lane % 4 * 4 + reg % 2 * 2 + byte % 2, column};
}

// op.count registers, of eight rows each.
const MicroOp* load_byte_matrices(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    uint64_t addresses[warp_size];
    read_addresses(all, addresses);
    const unsigned rows = all.op().count * side;
    if (!watch_lines(all, addresses, rows, byte_row)) return;
    ByteRow matrix[warp_size];
    for (unsigned row = 0; row < rows; ++row) {
      const std::byte* host = row_bytes(all, row, addresses[row], byte_row, byte_row);
      if (!host) return;
      matrix[row] = expanded(host, all.op().auxiliary);
    }
    const bool transposed = all.op().flags & flag_transpose;
    for (unsigned reg = 0; reg < all.op().count; ++reg)
      all.write_listed<uint32_t>(reg, [&](unsigned lane) {
        uint32_t value = 0;
        for (unsigned byte = 0; byte < 4; ++byte) {
          const auto [row, column] = place_of_byte(transposed, false, lane, reg, byte);
          value |= uint32_t{matrix[row][column]} << (byte * 8);
        }
        return value;
      });
  });
}

const MicroOp* store_byte_matrices(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    uint64_t addresses[warp_size];
    read_addresses(all, addresses);
    const unsigned rows = all.op().count * side;
    if (!watch_lines(all, addresses, rows, byte_row)) return;
    ByteRow matrix[warp_size];
    for (unsigned reg = 0; reg < all.op().count; ++reg) {
      uint32_t storage[warp_size];
      const uint32_t* values = all.listed(reg, storage);
      for (unsigned lane = 0; lane < warp_size; ++lane)
        for (unsigned byte = 0; byte < 4; ++byte) {
          const auto [row, column] = place_of_byte(true, true, lane, reg, byte);
          matrix[row][column] = static_cast<uint8_t>(values[lane] >> (byte * 8));
        }
    }
    for (unsigned row = 0; row < rows; ++row) {
      std::byte* host = row_bytes(all, row, addresses[row], byte_row, byte_row);
      if (!host) return;
      std::memcpy(host, matrix[row].data(), byte_row);
    }
  });
}

const MicroOp* transpose_matrix(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    uint32_t storage[warp_size], matrix[warp_size];
    std::memcpy(matrix, all.values(0, storage), sizeof matrix);
    transpose_half_matrix(matrix);
    all.write<uint32_t>(0, [&](unsigned lane) { return matrix[lane]; });
  });
}

// --- wmma ---

// A fragment and the layout of its matrix in memory.
struct Transfer {
  Fragment fragment;
  unsigned type_bits = 32; // bits of an element, the unit of strides
  bool by_columns = false;
};

// Addresses of a matrix's lines: rows, or columns with .col.
struct Lines {
  unsigned count = 0, length = 0; // in elements of the fragment
  uint64_t bytes = 0;
  uint64_t addresses[warp_size];
  unsigned lane = 0; // the lane whose address is used
};

Lines lines_of(const Collective& all, const Transfer& transfer) {
  const Fragment& fragment = transfer.fragment;
  Lines lines;
  lines.count = transfer.by_columns ? fragment.columns : fragment.rows;
  lines.length = transfer.by_columns ? fragment.rows : fragment.columns;
  lines.bytes = uint64_t(lines.length) * fragment.element_bits / 8;
  lines.lane = static_cast<unsigned>(std::countr_zero(all.lanes()));
  uint64_t addresses[warp_size];
  read_addresses(all, addresses);
  uint64_t distance = lines.bytes;
  if (all.op().source[1]) {
    uint32_t storage[warp_size];
    distance = uint64_t(all.values(1, storage)[lines.lane]) * transfer.type_bits / 8;
  }
  for (unsigned i = 0; i < lines.count; ++i)
    lines.addresses[i] = addresses[lines.lane] + i * distance;
  return lines;
}

size_t element_index(const Transfer& transfer, unsigned line, unsigned i) {
  return transfer.by_columns ? i * transfer.fragment.columns + line : line * transfer.fragment.columns + i;
}

constexpr unsigned largest_fragment = 32 * 32;

template <class Register> const MicroOp* load_fragment(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const Transfer& transfer = all.description<Transfer>();
    const Lines lines = lines_of(all, transfer);
    if (!watch_lines(all, lines.addresses, lines.count, lines.bytes)) return;
    const unsigned bits = transfer.fragment.element_bits;
    uint64_t elements[largest_fragment];
    for (unsigned line = 0; line < lines.count; ++line) {
      const std::byte* host = row_bytes(all, lines.lane, lines.addresses[line], lines.bytes, std::max(bits / 8, 1u));
      if (!host) return;
      for (unsigned i = 0; i < lines.length; ++i) {
        uint64_t value = 0;
        std::memcpy(&value, host + i * bits / 8, std::max(bits / 8, 1u));
        if (bits == 4) value = value >> (i % 2 * 4) & 15;
        elements[element_index(transfer, line, i)] = value;
      }
    }
    pack_fragment<Register>(all, 0, transfer.fragment, elements);
  });
}

// Only for accumulators: their elements are whole bytes.
template <class Register> const MicroOp* store_fragment(Warp& warp, const MicroOp& op) {
  return execute_together(warp, op, {}, [](const Collective& all) {
    const Transfer& transfer = all.description<Transfer>();
    const Lines lines = lines_of(all, transfer);
    if (!watch_lines(all, lines.addresses, lines.count, lines.bytes)) return;
    uint64_t elements[largest_fragment];
    unpack_fragment<Register>(all, 0, transfer.fragment, elements);
    const unsigned bytes = transfer.fragment.element_bits / 8;
    for (unsigned line = 0; line < lines.count; ++line) {
      std::byte* host = row_bytes(all, lines.lane, lines.addresses[line], lines.bytes, bytes);
      if (!host) return;
      for (unsigned i = 0; i < lines.length; ++i)
        std::memcpy(host + i * bytes, &elements[element_index(transfer, line, i)], bytes);
    }
  });
}

// --- decoding ---

struct AddressSource {
  LaneRef base;
  int64_t offset = 0;
  uint32_t flags = 0;
};

AddressSource address_source(Decoder& decoder, unsigned top_level_index) {
  Decoder::Address address = decoder.address(decoder.top_level(top_level_index), true);
  AddressSource result{address.base, address.offset, static_cast<uint32_t>(decode_space(decoder.form().space))};
  if (address.constant)
    result.base = decoder.constant(0, 64);
  else if (address.narrow)
    result.flags |= flag_narrow;
  return result;
}

void decode_small_matrices(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const bool of_bytes = !form.has(ir::Modifier::m8n8);
  const bool stores = form.opcode == ir::Opcode::stmatrix;
  AddressSource address = address_source(decoder, stores ? 0 : 1);
  const std::vector<ir::Operand> registers = matrix_registers(decoder, stores ? 1 : 0);
  if (registers.size() > 4) return decoder.unsupported("more than four matrices at once");
  std::vector<LaneRef> lanes;
  for (const ir::Operand& operand : registers)
    lanes.push_back(stores ? decoder.source(operand, lanes_of_bits(32))
                           : decoder.destination(operand, lanes_of_bits(32)));
  const uint32_t list = decoder.add_list(lanes);
  MicroOp& op = decoder.emit(stores ? (of_bytes ? &store_byte_matrices : &store_matrices)
                                    : (of_bytes ? &load_byte_matrices : &load_matrices));
  op.flags = address.flags | (form.has(ir::Modifier::trans) ? flag_transpose : 0) | (stores ? flag_store : 0);
  op.count = static_cast<uint8_t>(registers.size());
  op.source[0] = address.base;
  op.immediate = address.offset;
  op.extra = list;
  op.auxiliary = form.has(ir::Modifier::b4x16_p64) ? 4 : form.has(ir::Modifier::b6x16_p32) ? 6 : 8;
}

void decode_movmatrix(Decoder& decoder, ir::InstructionId) {
  const LaneRef source = decoder.source(decoder.operands()[decoder.top_level(1)], lanes_of_bits(32));
  const LaneRef target = decoder.destination(decoder.operands()[0], lanes_of_bits(32));
  MicroOp& op = decoder.emit(&transpose_matrix);
  op.source[0] = source;
  op.destination[0] = target;
}

void decode_transfer(Decoder& decoder, ir::InstructionId) {
  const ir::Form& form = decoder.form();
  const bool stores = form.has(ir::Modifier::store);
  const MatrixShape shape = ir::matrix_shape(form);
  const MatrixRole role = form.has(ir::Modifier::a)   ? MatrixRole::a
                          : form.has(ir::Modifier::b) ? MatrixRole::b
                                                      : MatrixRole::accumulator;
  AddressSource address = address_source(decoder, stores ? 0 : 1);
  const std::vector<ir::Operand> registers = matrix_registers(decoder, stores ? 1 : 0);
  Transfer transfer;
  transfer.fragment = wmma_fragment(shape, role, form.type(), static_cast<unsigned>(registers.size()));
  transfer.type_bits = ir::bit_width(form.type());
  transfer.by_columns = form.has(ir::Modifier::col);
  const Fragment& fragment = transfer.fragment;
  if (shape.m == 0 || fragment.size() > largest_fragment || fragment.size() % warp_size ||
      registers.size() * fragment.per_register() * warp_size < fragment.size())
    return decoder.unsupported("a matrix of this shape is not emulated");
  // Elements of four bits or fewer cannot start inside a byte: only whole rows of A and columns of B are possible.
  if (fragment.element_bits < 8 && transfer.by_columns == (role == MatrixRole::a))
    return decoder.unsupported("elements of four bits across lines are not emulated");

  const bool wide = form.type() == ir::ScalarType::f64;
  std::vector<LaneRef> lanes;
  for (const ir::Operand& operand : registers)
    lanes.push_back(stores ? decoder.source(operand, lanes_of_bits(wide ? 64 : 32))
                           : decoder.destination(operand, lanes_of_bits(wide ? 64 : 32)));
  LaneRef stride;
  if (const size_t position = decoder.top_level(2); position < decoder.operands().size())
    stride = decoder.source(decoder.operands()[position], lanes_of_bits(32));
  const uint32_t list = decoder.add_list(lanes);
  const uint32_t description = add_description(decoder, std::move(transfer));
  Handler handler = stores ? (wide ? &store_fragment<uint64_t> : &store_fragment<uint32_t>)
                           : (wide ? &load_fragment<uint64_t> : &load_fragment<uint32_t>);
  MicroOp& op = decoder.emit(handler);
  op.flags = address.flags | (stores ? flag_store : 0);
  op.source[0] = address.base;
  op.source[1] = stride;
  op.immediate = address.offset;
  op.extra = list;
  op.auxiliary = description;
}

} // namespace

void add_matrix_memory_operations(OperationTable& table) {
  table.special("ldmatrix*", &decode_small_matrices);
  table.special("stmatrix*", &decode_small_matrices);
  table.special("movmatrix*", &decode_movmatrix);
  table.special("spcompress*", &decode_sparse_vector);
  table.special("spdecompress*", &decode_sparse_vector);
  table.special("wmma.load*", &decode_transfer);
  table.special("wmma.store*", &decode_transfer);
}

} // namespace ptxrewrite::emulator
// NOLINTEND(clang-analyzer-core.*)
