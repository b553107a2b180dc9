// The unit of compilation: the straight pieces of code that a warp can reach from one region entry without diverging,
// and how the values between the pieces are held.
#pragma once

#include "emulator/generated/context.h"
#include "emulator/generated/function_code.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace ptxrewrite::emulator::generated {

// How a value is held: one number for all active lanes; the sum of a number and a vector; a vector.
enum class Shape : uint8_t { uniform, sum, vector };

// The NaNs that lanes of 32 bits may hold: the canonical one alone; any, all of which stand for the canonical one
// (rows.h); any, whose bits are the value's.
enum class Nans : uint8_t { canonical, open, exact };

// A lane array of the activation.
struct Slot {
  unsigned bits = 0;
  bool in_frame = false; // stays in the frame: loaded and stored there each time
  bool between = false;  // read in another piece than the one that wrote it
  bool written = false;
  Shape shape = Shape::uniform; // between pieces
  Nans nans = Nans::canonical;  // likewise
};

struct Piece {
  uint32_t first = 0, past = 0; // micro-operations; `past`: that of `end`, or where the next piece begins
  bool begins_loop = false;     // a piece that comes after it may lead back to it
  enum End : uint8_t { falls, branches, stops } end = stops;
  std::vector<uint32_t> followers; // first micro-operations of the pieces that may follow, planned or not
};

// Knowledge about a value at a point of a piece.
struct Held {
  Shape shape = Shape::uniform;
  Nans nans = Nans::canonical;
};

// The registers that hold one number in all active lanes at the entry.
using UniformAtEntry = std::set<uint32_t>;

class Plan {
public:
  // From the region entry at micro-operation `entry`. The plan ends at other entries that have code already, unless
  // they belong to a loop with this one: so there is not much more code than there are micro-operations.
  using HasCode = std::function<bool(uint32_t index)>;
  Plan(FunctionCode& code, uint32_t entry, const UniformAtEntry& uniform, const HasCode& has_code = {});

  FunctionCode& code;
  const uint32_t entry;
  std::map<uint32_t, Piece> pieces; // by first micro-operation
  std::map<uint32_t, Slot> slots;   // by offset
  unsigned built = 0;               // micro-operations that need no call
  unsigned called = 0;
  uint64_t fuel = 0; // that all pieces take once: more than any way through them that begins no loop anew
  std::vector<AddressGuess> guesses; // of loads and stores, in their order
  size_t size() const { return built + called; }
  // Less is not worth the way in and out, nor is a plan that is mostly calls. Behind a barrier the way in is short: the
  // code of another warp has come before (engine.cpp).
  bool is_worthwhile() const { return built >= std::max(follows_barrier() ? 4u : 6u, called); }
  bool follows_barrier() const { return entry > 0 && is_plain_barrier(code.op(entry - 1)); }
  // Does the branch only skip a straight piece of few operations, which some lanes of a full warp can execute without
  // the others? The interpreter would run these lanes first, while the others wait behind the piece (Warp::diverge()),
  // and then all together: nothing can come in between.
  const Piece* skipped_by(uint32_t branch) const;

  // Finds slots and the shapes of values, which full code and LLVM's quick code hold in registers.
  void find_values();
  // By the addresses in `frames`, those of warps that came to the entry: their instructions have left them there.
  void guess_addresses(const std::vector<const std::byte*>& frames, const KnownPlaces& known);
  // The guesses as text, a letter for each; the reverse, for a plan with as many guesses.
  std::string places() const;
  void take_places(std::string_view places);
  // Nothing: no guess was made.
  std::optional<size_t> guess_of(uint32_t op) const;
  Shape shape_of_base(LaneRef lanes) const;

  const UniformAtEntry& uniform() const { return uniform_; }

private:
  void find_pieces(const HasCode& has_code);
  std::set<uint32_t> pieces_before_entry() const;
  Piece piece_at(uint32_t first);
  void count_operations();
  void find_loops();
  void find_slots();
  void use(const LaneUse& use, bool writes);
  void find_shapes();
  bool walk(const Piece& piece);
  void walk_op(uint32_t index, std::map<uint32_t, Held>& held);
  Held read(const std::map<uint32_t, Held>& held, const LaneUse& use);
  Nans nans_of_base(const LaneUse& use) const;
  void need(const std::map<uint32_t, Held>& held, const std::vector<uint32_t>& offsets);

  UniformAtEntry uniform_;
  bool has_values_ = false;
};

} // namespace ptxrewrite::emulator::generated
