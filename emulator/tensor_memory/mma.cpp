// tcgen05.mma: checks a product when it is issued (PTX ISA 9.7.16.10.9). Every address that the
// product will use must be inside shared memory, or allocated, at that time; if not, that is a fault of the kernel.
#include "emulator/core/check.h"
#include "emulator/core/observer.h"
#include "emulator/core/watch.h"
#include "emulator/special/async_access.h"
#include "emulator/special/matrix.h"
#include "emulator/tensor_memory/cell_check.h"
#include "emulator/tensor_memory/instructions.h"
#include "emulator/tensor_memory/shared_operand.h"
#include "emulator/tensor_memory/sparse_places.h"
#include "emulator/tensor_memory/tensor_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace ptxrewrite::emulator {
namespace {

// Operands of the instruction.
struct ProductOperands {
  ProductForm form;
  AddressSource d, a, a_scales, b_scales, metadata; // in tensor memory; a: only if A is there
  LaneRef a_descriptor, b_descriptor, instruction_descriptor, adds;
  std::vector<LaneRef> disabled; // bit masks of lanes of D
  LaneRef zero_columns;          // of .ws; invalid: none
  unsigned d_shift = 0;
};

// A lane's product while it is issued.
class Issue {
public:
  Issue(Warp& warp, const MicroOp& op, unsigned lane)
      : warp_(warp), op_(op), lane_(lane),
        operands_(*static_cast<const ProductOperands*>(warp.activation->function->descriptions[op.auxiliary].get())) {}

  // Returns false if the block has failed.
  bool run();

private:
  bool fail(std::string message, FaultKind kind = FaultKind::launch_failure) {
    warp_.block->fail(warp_, op_, lane_, std::move(message), kind);
    return false;
  }
  uint32_t place(const AddressSource& source) const {
    return static_cast<uint32_t>(lane_address(warp_, source.base, source.narrow, source.offset, lane_));
  }
  bool read_operands();
  bool check_tensor_memory(const TensorMemory& memory);
  bool check_shared(TensorMemory& memory);
  void check_order(TensorMemory& memory);
  bool check_matrix(TensorMemory& memory, char name, uint64_t descriptor, bool mn_major, unsigned lines, unsigned k,
                    ir::ScalarType type);

  Warp& warp_;
  const MicroOp& op_;
  unsigned lane_;
  const ProductOperands& operands_;
  ProductIssue issue_;
  uint32_t number_ = 0; // for --check
};

bool Issue::read_operands() {
  const ProductForm& form = operands_.form;
  issue_.form = &form;
  const uint32_t bits = warp_.lanes<uint32_t>(operands_.instruction_descriptor)[lane_];
  if (std::string wrong = read_descriptor(bits, form, issue_.descriptor); !wrong.empty()) return fail(std::move(wrong));
  issue_.d = place(operands_.d);
  if (form.a_in_memory)
    issue_.a_place = place(operands_.a);
  else
    issue_.a = warp_.lanes<uint64_t>(operands_.a_descriptor)[lane_];
  issue_.b = warp_.lanes<uint64_t>(operands_.b_descriptor)[lane_];
  if (form.scale_count) {
    // CUTLASS also stores the number of the first byte, which the instruction descriptor has, in the two highest bits
    // of the addresses (mma_sm100_desc.hpp, make_runtime_instr_desc_block_scaled): these bits are ignored.
    constexpr uint32_t address_bits = 0x3fffffff;
    issue_.a_scales = place(operands_.a_scales) & address_bits;
    issue_.b_scales = place(operands_.b_scales) & address_bits;
  }
  if (form.sparse) issue_.metadata = place(operands_.metadata);
  for (size_t i = 0; i < operands_.disabled.size(); ++i)
    issue_.disabled[i] = warp_.lanes<uint32_t>(operands_.disabled[i])[lane_];
  issue_.adds = (warp_.predicate(operands_.adds) >> lane_ & 1) != 0;
  issue_.d_shift = operands_.d_shift;
  if (operands_.zero_columns && warp_.lanes<uint64_t>(operands_.zero_columns)[lane_] != 0)
    return fail("masks of columns of B that are zeros are not emulated");
  if (form.a_in_memory && issue_.descriptor.a_rows_major)
    return fail("an instruction descriptor that transposes a matrix A in tensor memory");
  return true;
}

bool Issue::check_tensor_memory(const TensorMemory& memory) {
  const ProductForm& form = operands_.form;
  const InstructionDescriptor& shape = issue_.descriptor;
  const RowPlaces places = row_places(form, shape);
  const auto is_good = [&](const char* what, uint32_t address, unsigned columns, bool may_be_lower) {
    const TensorAddress at = tensor_address(address);
    if (at.lane != 0 && !(may_be_lower && at.lane == 16))
      return fail(fmt::format("{} of a matrix product in tensor memory at {:#x}: lane {}, where it begins in lane 0{}",
                              what, address, at.lane, may_be_lower ? " or 16" : ""),
                  FaultKind::illegal_address);
    return is_in_allocation(warp_, op_, lane_, memory, what, at, 1, columns);
  };
  if (!is_good("D", issue_.d, shape.n / places.folds, places.is_spread)) return false;
  if (form.a_in_memory) {
    if (!is_good("A", issue_.a_place, a_columns, places.is_spread)) return false;
    if (places.is_spread && tensor_address(issue_.a_place).lane != tensor_address(issue_.d).lane)
      return fail("A and D of 64 rows in tensor memory that are not in the same lanes");
    if (form.weights_stay && places.folds > 1)
      return fail("A of 32 or 64 rows in tensor memory is not emulated with .ws");
  }
  if (form.sparse) {
    if (places.is_spread)
      return fail("a sparse product of 64 rows in a block, which is not emulated: public text does not say where its "
                  "metadata lie");
    if (has_selector(form.kind) && tensor_address(issue_.metadata).column % 2 != 0)
      return fail(
          fmt::format("metadata of a sparse product in tensor memory at {:#x}, an odd column", issue_.metadata));
    if (!is_good("the metadata of A", issue_.metadata, metadata_columns, false)) return false;
  }
  if (!form.scale_count) return true;
  return is_good("the scales of A", issue_.a_scales, (places.rows + 31) / 32, false) &&
         is_good("the scales of B", issue_.b_scales, (shape.n / places.folds + 31) / 32, false);
}

// Checks `lines` rows of A or columns of B of k elements, and reports them to --check and observers.
bool Issue::check_matrix(TensorMemory& memory, char name, uint64_t descriptor, bool mn_major, unsigned lines,
                         unsigned k, ir::ScalarType type) {
  SharedOperand operand;
  if (std::string wrong = read_shared_operand(descriptor, mn_major, operand); !wrong.empty())
    return fail(fmt::format("matrix {}: {}", name, wrong));
  const Block& block = memory.block();
  const bool watched = warp_.block->watch_memory && &block == warp_.block;
  const bool in_chunks = operands_.form.kind == ProductKind::f8f6f4 || operands_.form.kind == ProductKind::mxf8f6f4;
  const unsigned elements = chunk_elements(type, in_chunks);
  const unsigned rows = mn_major ? k : lines, chunks = ((mn_major ? lines : k) + elements - 1) / elements;
  if (!watched && !operand.by_pairs && end_of_chunks(operand.matrix, mn_major, rows, chunks) <= block.shared_bytes)
    return true;
  uint64_t addresses[warp_size];
  unsigned count = 0;
  const auto watch = [&] {
    const uint32_t mask = std::exchange(warp_.mask, count == warp_size ? full_mask : (1u << count) - 1);
    std::fill(addresses + count, addresses + warp_size, addresses[0]);
    const bool good = watch_product_reads(warp_, op_, addresses, chunk_bytes, number_);
    warp_.mask = mask;
    count = 0;
    return good;
  };
  for (unsigned row = 0; row < rows; ++row)
    for (unsigned chunk = 0; chunk < chunks; ++chunk) {
      const uint64_t address = chunk_address(operand, mn_major, row, chunk);
      if (!contains(0, block.shared_bytes, address, chunk_bytes))
        return fail(fmt::format("the descriptor of matrix {} describes 16 bytes at shared {:#x}, of {} bytes of shared "
                                "memory",
                                name, address, block.shared_bytes),
                    FaultKind::illegal_address);
      if (!watched) continue;
      addresses[count++] = address;
      if (count == warp_size && !watch()) return false;
    }
  return count == 0 || watch();
}

bool Issue::check_shared(TensorMemory& memory) {
  const ProductForm& form = operands_.form;
  const InstructionDescriptor& shape = issue_.descriptor;
  if (!form.a_in_memory && !check_matrix(memory, 'A', issue_.a, shape.a_rows_major, shape.m / form.group,
                                         form.sparse ? shape.k / 2 : shape.k, shape.a_type))
    return false;
  return check_matrix(memory, 'B', issue_.b, shape.b_columns_major, shape.n / form.group, shape.k, shape.b_type);
}

void Issue::check_order(TensorMemory& memory) {
  const ProductForm& form = operands_.form;
  const InstructionDescriptor& shape = issue_.descriptor;
  const RowPlaces places = row_places(form, shape);
  const auto use = [&](uint32_t address, unsigned columns, CellUse how, bool is_spread) {
    const TensorAddress at = tensor_address(address);
    const unsigned halves = at.lane ? 0xaa : 0x55; // 16 lanes of each quarter
    check_cells(warp_, op_, memory, {is_spread ? static_cast<uint8_t>(halves) : all_groups, at.column, columns}, how,
                number_);
  };
  if (form.a_in_memory) use(issue_.a_place, a_columns, CellUse::operation_read, places.is_spread);
  if (form.sparse) use(issue_.metadata, metadata_columns, CellUse::operation_read, false);
  if (form.scale_count) {
    use(issue_.a_scales, (places.rows + 31) / 32, CellUse::operation_read, false);
    use(issue_.b_scales, (shape.n / places.folds + 31) / 32, CellUse::operation_read, false);
  }
  use(issue_.d, shape.n / places.folds, CellUse::operation_write, places.is_spread);
}

bool Issue::run() {
  TensorPair pair;
  if (!find_tensor_pair(warp_, op_, operands_.form.group, pair) || !read_operands()) return false;
  issue_.even = pair.even;
  issue_.odd = pair.odd;
  TensorMemory* own = own_tensor_memory(warp_, op_, operands_.form.group);
  number_ = own->next_operation(warp_.index);
  for (TensorMemory* memory : {pair.even, pair.odd})
    if (memory && !(check_tensor_memory(*memory) && check_shared(*memory))) return false;
  for (TensorMemory* memory : {pair.even, pair.odd})
    if (memory && warp_.block->checker) check_order(*memory);
  const InstructionDescriptor& shape = issue_.descriptor;
  warp_.block->take_fuel(shape.m / 64 * uint64_t(shape.n) * shape.k / 256);
  if (!own->has_room(warp_, op_, lane_)) return false;
  if (Observer* observer = warp_.block->observer)
    observer->multiplied(*warp_.block, warp_, op_,
                         uint64_t(shape.m) * shape.n * shape.k / (operands_.form.sparse ? 2 : 1));
  TensorOperation operation;
  operation.thread = warp_.index * warp_size + lane_;
  operation.product = issue_;
  own->issue(std::move(operation));
  return true;
}

const MicroOp* issue_product(Warp& warp, const MicroOp& op) {
  return for_each_lane(warp, op, [&](unsigned lane) { return Issue(warp, op, lane).run(); });
}

// --- decoding ---

std::optional<ProductKind> kind_of(const ir::Form& form) {
  constexpr std::pair<ir::Modifier, ProductKind> kinds[] = {
      {ir::Modifier::kind_f16, ProductKind::f16},       {ir::Modifier::kind_tf32, ProductKind::tf32},
      {ir::Modifier::kind_f8f6f4, ProductKind::f8f6f4}, {ir::Modifier::kind_i8, ProductKind::i8},
      {ir::Modifier::kind_ti16, ProductKind::ti16},     {ir::Modifier::kind_mxf8f6f4, ProductKind::mxf8f6f4},
      {ir::Modifier::kind_mxf4, ProductKind::mxf4},     {ir::Modifier::kind_mxf4nvf4, ProductKind::mxf4nvf4}};
  for (const auto& [word, kind] : kinds)
    if (form.has(word)) return kind;
  return std::nullopt;
}

// Without a size in the name there is one scale for 32 elements; mxf4nvf4 always has a size in its name.
unsigned scale_count_of(const ir::Form& form, ProductKind kind) {
  using enum ir::Modifier;
  if (!form.has(block_scale)) return 0;
  if (kind == ProductKind::mxf8f6f4) return 1;
  return form.has(scale_vec_4X) || form.has(block16) ? 4 : 2;
}

const char* why_not_emulated(const ir::Form& form) {
  using enum ir::Modifier;
  if (form.has(decompress_lut_b))
    return "matrices B that are decompressed by a table, whose layout public text shows in figures only,";
  if (form.has(ashift))
    return "matrices A that are shifted (.ashift): public text does not say whether the product takes "
           "their rows before or after the shift; they";
  return nullptr;
}

} // namespace

void decode_tensor_product(Decoder& decoder) {
  const ir::Form& form = decoder.form();
  if (const char* reason = why_not_emulated(form))
    return decoder.unsupported(fmt::format("{} are not emulated", reason));
  const std::optional<ProductKind> kind = kind_of(form);
  if (!kind) return decoder.unsupported("a matrix product of a kind that is not emulated");
  const std::span<const ir::Operand> all = decoder.operands();
  const auto operand = [&](unsigned index) { return all[decoder.top_level(index)]; };
  ProductOperands operands;
  operands.form.kind = *kind;
  operands.form.group = form.has(ir::Modifier::cta_group_2) ? 2 : 1;
  operands.form.weights_stay = form.has(ir::Modifier::ws);
  operands.form.sparse = form.has(ir::Modifier::sp);
  operands.form.scale_count = scale_count_of(form, *kind);
  operands.form.a_in_memory = operand(1).is(ir::OperandKind::address);
  operands.d = address_source(decoder, 0);
  if (operands.form.a_in_memory)
    operands.a = address_source(decoder, 1);
  else
    operands.a_descriptor = decoder.source(operand(1), lanes_of_bits(64));
  operands.b_descriptor = decoder.source(operand(2), lanes_of_bits(64));
  unsigned next = 3;
  if (operands.form.sparse) operands.metadata = address_source(decoder, next++);
  operands.instruction_descriptor = decoder.source(operand(next++), lanes_of_bits(32));
  if (operands.form.scale_count) {
    operands.a_scales = address_source(decoder, next++);
    operands.b_scales = address_source(decoder, next++);
  }
  if (operand(next).is(ir::OperandKind::vector)) {
    for (const ir::Operand& word : matrix_registers(decoder, next))
      operands.disabled.push_back(decoder.source(word, lanes_of_bits(32)));
    if (operands.disabled.size() != 4 * operands.form.group)
      return decoder.unsupported(
          "a matrix product with another number of words of disabled lanes than 4 for each block");
    ++next;
  }
  operands.adds = decoder.source(operand(next++), lanes_of_bits(1));
  if (next < decoder.top_level_count()) {
    if (operands.form.weights_stay) {
      operands.zero_columns = decoder.source(operand(next), lanes_of_bits(64));
    } else if (*kind == ProductKind::f16 || *kind == ProductKind::tf32) {
      operands.d_shift = static_cast<unsigned>(operand(next).immediate) & 15;
    } else {
      return decoder.unsupported(
          "a scale of D, which the manual has for kind::f16 and kind::tf32 only, is not emulated");
    }
  }
  const uint32_t description = add_description(decoder, std::move(operands));
  MicroOp& op = decoder.emit(&issue_product);
  op.auxiliary = description;
}

} // namespace ptxrewrite::emulator
