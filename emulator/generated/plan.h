// What is compiled together: the straight pieces of code that a warp can come to from one region entry without parting
// its lanes, and how the values between them are held.
#pragma once

#include "emulator/generated/function_code.h"

#include <map>

namespace ptxrewrite::emulator::generated {

// How a value is held: one number for all active lanes; a number and a vector whose sum it is; a vector.
enum class Shape : uint8_t { uniform, sum, vector };

// A lane array of the activation.
struct Slot {
  unsigned bits = 0;
  bool in_frame = false; // stays in the frame: read and written there each time
  bool between = false;  // read in another piece than it was written in
  bool written = false;
  Shape shape = Shape::uniform; // between pieces
  bool open_nan = false;        // likewise: a NaN may not be the canonical one
};

struct Piece {
  uint32_t first = 0, past = 0; // micro-operations; `past`: that of `end`, or where the next piece begins
  enum End : uint8_t { falls, branches, stops } end = stops;
  std::vector<uint32_t> followers; // first micro-operations of pieces that may follow, planned or not
};

// What is known of a value while a piece is walked through.
struct Held {
  Shape shape = Shape::uniform;
  bool open_nan = false;
};

// Which registers hold one number in all active lanes at the entry.
using UniformAtEntry = std::set<uint32_t>;

class Plan {
public:
  // From the region entry at micro-operation `entry`.
  Plan(FunctionCode& code, uint32_t entry, const UniformAtEntry& uniform);

  FunctionCode& code;
  const uint32_t entry;
  std::map<uint32_t, Piece> pieces; // by first micro-operation
  std::map<uint32_t, Slot> slots;   // by offset
  unsigned built = 0;               // micro-operations that need no call
  unsigned called = 0;
  std::vector<const std::byte*> frames; // of warps that came to the entry, as their instructions have left them
  size_t size() const { return built + called; }

  Shape shape_of_base(LaneRef lanes) const;

private:
  void find_pieces();
  Piece piece_at(uint32_t first);
  void find_slots();
  void use(const LaneUse& use, bool writes);
  void find_shapes(const UniformAtEntry& uniform);
  bool walk(const Piece& piece);
  void walk_op(uint32_t index, std::map<uint32_t, Held>& held);
  Held read(const std::map<uint32_t, Held>& held, const LaneUse& use);
  void need(const std::map<uint32_t, Held>& held, const std::vector<uint32_t>& offsets);
};

} // namespace ptxrewrite::emulator::generated
