// The unit of compilation: the straight pieces of code that a warp can reach from one region entry without diverging,
// and how the values between the pieces are held.
#pragma once

#include "emulator/generated/function_code.h"

#include <map>

namespace ptxrewrite::emulator::generated {

// How a value is held: one number for all active lanes; the sum of a number and a vector; a vector.
enum class Shape : uint8_t { uniform, sum, vector };

// A lane array of the activation.
struct Slot {
  unsigned bits = 0;
  bool in_frame = false; // stays in the frame: loaded and stored there each time
  bool between = false;  // read in another piece than the one that wrote it
  bool written = false;
  Shape shape = Shape::uniform; // between pieces
  bool open_nan = false;        // between pieces: a NaN may not be the canonical one
};

struct Piece {
  uint32_t first = 0, past = 0; // micro-operations; `past`: the one of `end`, or the start of the next piece
  enum End : uint8_t { falls, branches, stops } end = stops;
  std::vector<uint32_t> followers; // first micro-operations of the pieces that may follow, planned or not
};

// Knowledge about a value at a point of a piece.
struct Held {
  Shape shape = Shape::uniform;
  bool open_nan = false;
};

// The registers that hold one number in all active lanes at the entry.
using UniformAtEntry = std::set<uint32_t>;

class Plan {
public:
  // Plans from the region entry at micro-operation `entry`.
  Plan(FunctionCode& code, uint32_t entry, const UniformAtEntry& uniform);

  FunctionCode& code;
  const uint32_t entry;
  std::map<uint32_t, Piece> pieces; // by first micro-operation
  std::map<uint32_t, Slot> slots;   // by offset
  unsigned built = 0;               // micro-operations that need no call
  unsigned called = 0;
  std::vector<const std::byte*> frames; // of warps at the entry, for the contents of their registers
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
