// The operations that DirectEmitter writes out: one row for an operation, named by the pattern of its row in
// emulator/operations. Operations without one are calls of their handlers.
//
//   table.row("add.{u32|s32}", 32, [](RowCode& x) { x.op(vpaddd); });
//
// A row works on a chunk of the lanes: as many as 32 bytes hold of its widest operand. The sources are in y0 to y3, a
// narrower one in the low part of its register, predicates as parts of ones and zeros. The result goes to y0, likewise;
// a predicate result is the parts' top bits. y4 to y7 are free; y8 and y9 are those that `prepare` has left.
#pragma once

#include "emulator/core/operation.h"
#include "emulator/generated/x86/assembler.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ptxrewrite::emulator::generated {

// Constants that the code reads, behind the register `tables`.
struct alignas(64) LaneTables {
  // One bit for each lane: in parts of 32 bits; of 64, in both halves; of 16, for lanes 0 to 15.
  uint32_t bits32[32];
  uint32_t bits64[64];
  uint16_t bits16[16];
  uint32_t canonical_nan = 0x7fffffff, sign32 = 0x80000000, quiet32 = 0x00400000;
  uint32_t small[3] = {0, 31, 32};
  uint32_t one32 = 0x3f800000;
  uint64_t sign64 = uint64_t(1) << 63, quiet64 = uint64_t(1) << 51;
  // lane * 2^i for each lane, of 64 and of 32 bits.
  static constexpr unsigned ramps = 6;
  alignas(64) uint64_t ramp64[ramps][32];
  uint32_t ramp32[ramps][32];
  LaneTables();
  static const LaneTables& get();
};
inline constexpr x86::Register tables = x86::r15;

struct RowCode {
  x86::Assembler& code;
  uint32_t flags = 0; // MicroOp::flags, or MicroOp::extra

  // y0 = y0 op y1
  void op(x86::VectorOp which) { code.vector(which, x86::y0, x86::y0, x86::y1); }
  // y0 = op y0
  void one(x86::VectorOp which) { code.unary(which, x86::y0, x86::y0); }
};
using DirectBuild = void (*)(RowCode& x);

struct DirectRow {
  DirectBuild build = nullptr;
  DirectBuild prepare = nullptr; // before the chunks
  uint8_t bits = 32;             // of the widest operand
  // Of f64: y0 = y0 op y1, or y0 * y1 + y2, if no result is NaN; else the handler chooses the NaN.
  bool is_checked = false;
};

class DirectTable {
public:
  void row(std::string_view pattern, unsigned bits, DirectBuild build, DirectBuild prepare = nullptr) {
    add(pattern, {build, prepare, static_cast<uint8_t>(bits)});
  }
  void add(std::string_view pattern, const DirectRow& row);
  // Returns nullptr if the handler is called.
  const DirectRow* find(Handler handler) const {
    const auto found = rows_.find(handler);
    return found == rows_.end() ? nullptr : &found->second;
  }
  // Patterns that no row of OperationTable has.
  const std::vector<std::string_view>& unknown_patterns() const { return unknown_; }
  void handler(Handler handler, const DirectRow& row) { rows_[handler] = row; }

  static const DirectTable& get();

private:
  DirectTable();
  std::unordered_map<Handler, DirectRow> rows_;
  std::unordered_map<std::string_view, std::vector<Handler>> by_pattern_;
  std::vector<std::string_view> unknown_;
};

void add_direct_integers(DirectTable& table);
void add_direct_widths(DirectTable& table);
void add_direct_comparisons(DirectTable& table);
void add_direct_floats(DirectTable& table);

// y0 = the function of y0, y1 and y2 whose table is RowCode::flags: bit 4a + 2b + c of it.
void build_lop3(RowCode& x);

} // namespace ptxrewrite::emulator::generated
