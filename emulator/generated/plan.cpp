#include "emulator/generated/plan.h"

#include "emulator/core/address.h"
#include "emulator/core/decode.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace ptxrewrite::emulator::generated {
namespace {

// Larger kernels are compiled as several functions.
constexpr unsigned largest_plan = 1200;
constexpr unsigned half_warp = warp_size / 2;
// Longer pieces are left to the interpreter where only some lanes execute them: their code would be there twice.
constexpr unsigned longest_skipped = 10;

bool is_uniform_special(LaneRef lanes) {
  return lanes == thread_special(ThreadSpecial::warpid) || lanes == thread_special(ThreadSpecial::zero);
}

// Shape of a + b, and of a scaled by a number that is the same in all lanes.
Shape shape_of_sum(Shape a, Shape b) {
  if (a == Shape::uniform && b == Shape::uniform) return Shape::uniform;
  if (a == Shape::vector && b == Shape::vector) return Shape::vector;
  return Shape::sum;
}
Shape joined(Shape a, Shape b) {
  if (a == b) return a;
  if (a == Shape::uniform) return b;
  return b == Shape::uniform ? a : Shape::sum;
}

// Where values meet, open NaNs become the canonical one if another's bits count.
Nans joined(Nans a, Nans b) {
  return std::max(a, b);
}

} // namespace

Plan::Plan(FunctionCode& function_code, uint32_t entry_index, const UniformAtEntry& uniform, const HasCode& has_code)
    : code(function_code), entry(entry_index), uniform_(uniform) {
  find_pieces(has_code);
  count_operations();
  find_loops();
}

void Plan::find_values() {
  if (has_values_) return;
  has_values_ = true;
  find_slots();
  find_shapes();
}

void Plan::find_pieces(const HasCode& has_code) {
  std::deque<uint32_t> waiting{entry};
  unsigned found = 0;
  while (!waiting.empty()) {
    const uint32_t first = waiting.front();
    waiting.pop_front();
    if (pieces.contains(first) || (found > largest_plan && first != entry)) continue;
    const Piece& piece = pieces.emplace(first, piece_at(first)).first->second;
    found += piece.past - piece.first;
    waiting.insert(waiting.end(), piece.followers.begin(), piece.followers.end());
  }
  if (!has_code) return;
  const std::set<uint32_t> before = pieces_before_entry();
  std::map<uint32_t, Piece> taken;
  waiting = {entry};
  while (!waiting.empty()) {
    const uint32_t first = waiting.front();
    waiting.pop_front();
    const bool ends_here = first != entry && !before.contains(first) && has_code(first);
    if (taken.contains(first) || !pieces.contains(first) || ends_here) continue;
    const Piece& piece = taken.emplace(first, pieces.at(first)).first->second;
    waiting.insert(waiting.end(), piece.followers.begin(), piece.followers.end());
  }
  pieces = std::move(taken);
}

// Those from which the entry can be reached.
std::set<uint32_t> Plan::pieces_before_entry() const {
  std::map<uint32_t, std::vector<uint32_t>> leaders;
  for (const auto& [first, piece] : pieces)
    for (uint32_t follower : piece.followers)
      leaders[follower].push_back(first);
  std::set<uint32_t> before;
  std::deque<uint32_t> waiting{entry};
  while (!waiting.empty()) {
    const uint32_t at = waiting.front();
    waiting.pop_front();
    for (uint32_t leader : leaders[at])
      if (before.insert(leader).second) waiting.push_back(leader);
  }
  return before;
}

// Depth first: an edge to a piece that is still open leads back.
void Plan::find_loops() {
  struct Visit {
    uint32_t piece;
    size_t next;
  };
  std::map<uint32_t, bool> is_open{{entry, true}};
  std::vector<Visit> path{{entry, 0}};
  while (!path.empty()) {
    Visit& visit = path.back();
    const std::vector<uint32_t>& followers = pieces.at(visit.piece).followers;
    if (visit.next == followers.size()) {
      is_open[visit.piece] = false;
      path.pop_back();
      continue;
    }
    const uint32_t follower = followers[visit.next++];
    if (!pieces.contains(follower)) continue;
    const auto known = is_open.find(follower);
    if (known == is_open.end()) {
      is_open[follower] = true;
      path.push_back({follower, 0});
    } else if (known->second) {
      pieces.at(follower).begins_loop = true;
    }
  }
}

void Plan::count_operations() {
  for (const auto& [first, piece] : pieces) {
    if (code.is_region(first)) fuel += code.op(first).auxiliary;
    for (uint32_t at = code.is_region(first) ? first + 1 : first; at < piece.past; ++at) {
      const OpInfo info = code.info(at);
      const bool is_call = info.kind == OpKind::call || info.kind == OpKind::collective ||
                           (info.kind == OpKind::row && !info.recipe->build);
      ++(is_call ? called : built);
    }
  }
}

Piece Plan::piece_at(uint32_t first) {
  Piece piece;
  piece.first = first;
  uint32_t at = code.is_region(first) ? first + 1 : first;
  for (;; ++at) {
    piece.past = at;
    if (code.is_region(at)) {
      piece.end = Piece::falls;
      piece.followers = {at};
      return piece;
    }
    const OpInfo info = code.info(at);
    if (info.kind == OpKind::stop) return piece;
    if (info.kind == OpKind::branch) {
      piece.end = Piece::branches;
      piece.followers = {code.index_of(std::bit_cast<const MicroOp*>(code.op(at).immediate))};
      if (code.op(at).guard) piece.followers.push_back(at + 1);
      return piece;
    }
  }
}

const Piece* Plan::skipped_by(uint32_t branch) const {
  const MicroOp& op = code.op(branch);
  const uint32_t target = code.index_of(std::bit_cast<const MicroOp*>(op.immediate));
  const auto found = pieces.find(branch + 1);
  if (found == pieces.end()) return nullptr;
  const Piece& piece = found->second;
  if (piece.end != Piece::falls || piece.followers[0] != target || piece.begins_loop ||
      piece.past - piece.first > longest_skipped || !code.is_region(piece.first))
    return nullptr;
  for (uint32_t at = piece.first + 1; at < piece.past; ++at) {
    const OpKind kind = code.info(at).kind;
    if (kind == OpKind::call || kind == OpKind::collective || code.op(at).guard) return nullptr;
  }
  return &piece;
}

void Plan::use(const LaneUse& use, bool writes) {
  if (!use.lanes || use.lanes.base() != LaneBase::registers) return;
  Slot& slot = slots[use.lanes.offset()];
  if (slot.bits == 0) slot.bits = use.bits;
  // Two widths, or wider than a register of the host.
  if (slot.bits != use.bits || use.bits > 64) slot.in_frame = true;
  slot.written |= writes;
}

void Plan::find_slots() {
  for (const auto& [first, piece] : pieces)
    for (uint32_t at = code.is_region(first) ? first + 1 : first; at < piece.past; ++at) {
      const OpUses uses = code.uses(at, code.info(at));
      for (const LaneUse& source : uses.sources)
        use(source, false);
      for (const LaneUse& destination : uses.destinations)
        use(destination, true);
      if (code.op(at).guard) use({code.op(at).guard, 1}, false);
      // The carry flag lives as long as the function, but is not a register.
      const ir::Form& form =
          code.function.source->form_of(ir::InstructionId(code.op(at).instruction - code.function.first_instruction));
      if (form.effects.reads_carry || form.effects.writes_carry)
        for (const auto& list : {uses.sources, uses.destinations})
          for (const LaneUse& lanes : list)
            if (lanes.bits == 1 && !code.is_register(lanes.lanes.offset())) slots[lanes.lanes.offset()].in_frame = true;
    }
  for (const auto& [first, piece] : pieces)
    if (piece.end == Piece::branches && code.op(piece.past).guard) use({code.op(piece.past).guard, 1}, false);
}

// A frame that has not been written holds zeros, from which no address pattern can be derived.
void Plan::guess_addresses(const std::vector<const std::byte*>& frames, const KnownPlaces& known) {
  guesses.clear();
  for (const auto& [first, piece] : pieces)
    for (uint32_t at = code.is_region(first) ? first + 1 : first; at < piece.past; ++at) {
      const OpInfo info = code.info(at);
      if (info.kind != OpKind::load && info.kind != OpKind::store) continue;
      const MicroOp& op = code.op(at);
      AddressGuess guess;
      guess.op = at;
      guess.address_bytes = info.memory.narrow_base ? 4 : 8;
      guess.size = uint64_t(info.memory.bytes) * op.count;
      guess.places = LanePlaces::line;
      if (const auto found = known.find(at); found != known.end()) {
        guess.places = found->second;
      } else if (op.source[0].base() == LaneBase::registers) {
        static constexpr std::byte zeros[warp_size * 8] = {};
        for (const std::byte* frame : frames) {
          const std::byte* addresses = frame + op.source[0].offset();
          if (std::memcmp(addresses, zeros, size_t(warp_size) * guess.address_bytes) == 0) continue;
          guess.places = places_of(addresses, guess.address_bytes, guess.size);
          break;
        }
      }
      guesses.push_back(guess);
    }
}

std::string Plan::places() const {
  std::string places;
  for (const AddressGuess& guess : guesses)
    places += static_cast<char>('a' + static_cast<int>(guess.places));
  return places;
}

void Plan::take_places(std::string_view places) {
  for (size_t i = 0; i < guesses.size() && places.size() == guesses.size(); ++i)
    guesses[i].places = static_cast<LanePlaces>(places[i] - 'a');
}

std::optional<size_t> Plan::guess_of(uint32_t op) const {
  const auto found = std::ranges::lower_bound(guesses, op, {}, &AddressGuess::op);
  if (found == guesses.end() || found->op != op) return std::nullopt;
  return static_cast<size_t>(found - guesses.begin());
}

LanePlaces places_of(const std::byte* addresses, unsigned bytes, uint64_t size) {
  const auto address = [&](unsigned lane) {
    uint64_t value = 0;
    std::memcpy(&value, addresses + size_t(lane) * bytes, bytes);
    return value;
  };
  for (const LanePlaces places :
       {LanePlaces::same, LanePlaces::line, LanePlaces::halves_same, LanePlaces::halves_line}) {
    const bool halves = places == LanePlaces::halves_same || places == LanePlaces::halves_line;
    const bool line = places == LanePlaces::line || places == LanePlaces::halves_line;
    bool holds = true;
    for (unsigned lane = 0; lane < warp_size; ++lane) {
      const unsigned first = halves ? lane / half_warp * half_warp : 0;
      holds &= address(lane) == address(first) + (line ? (lane - first) * size : 0);
    }
    if (holds) return places;
  }
  return LanePlaces::any;
}

Shape Plan::shape_of_base(LaneRef lanes) const {
  switch (lanes.base()) {
  case LaneBase::constants:
  case LaneBase::block_special:
    return Shape::uniform;
  case LaneBase::thread_special:
    return is_uniform_special(lanes) ? Shape::uniform : Shape::vector;
  case LaneBase::registers:
    break;
  }
  return Shape::vector;
}

void Plan::find_shapes() {
  for (uint32_t offset : code.live_at(entry))
    if (const auto slot = slots.find(offset); slot != slots.end()) {
      slot->second.nans = Nans::exact;
      if (!uniform_.contains(offset)) slot->second.shape = Shape::vector;
    }
  for (auto& [offset, slot] : slots)
    if (!code.is_register(offset)) {
      slot.shape = Shape::vector;
      slot.nans = Nans::exact;
    }
  bool changed = true;
  while (changed) {
    changed = false;
    for (const auto& [first, piece] : pieces)
      changed |= walk(piece);
  }
}

Held Plan::read(const std::map<uint32_t, Held>& held, const LaneUse& use) {
  if (!use.lanes) return {};
  if (use.lanes.base() != LaneBase::registers) return {shape_of_base(use.lanes), nans_of_base(use)};
  Slot& slot = slots[use.lanes.offset()];
  if (slot.in_frame) return {Shape::vector, Nans::exact};
  if (const auto known = held.find(use.lanes.offset()); known != held.end()) return known->second;
  slot.between = true;
  return {slot.shape, slot.nans};
}

Nans Plan::nans_of_base(const LaneUse& use) const {
  if (use.lanes.base() != LaneBase::constants || use.bits != 32) return Nans::exact;
  uint32_t bits = 0;
  std::memcpy(&bits, const_cast<KernelImage&>(code.image).constants.data() + use.lanes.offset(), sizeof bits);
  return (bits & 0x7fffffff) <= 0x7f800000 ? Nans::canonical : Nans::exact;
}

// Marks live values that this piece does not hold as coming from other pieces.
void Plan::need(const std::map<uint32_t, Held>& held, const std::vector<uint32_t>& offsets) {
  for (uint32_t offset : offsets)
    if (const auto slot = slots.find(offset); slot != slots.end() && slot->second.written && !held.contains(offset))
      slot->second.between = true;
}

bool Plan::walk(const Piece& piece) {
  std::map<uint32_t, Held> held;
  need(held, code.live_at(piece.first));
  for (uint32_t at = code.is_region(piece.first) ? piece.first + 1 : piece.first; at < piece.past; ++at)
    walk_op(at, held);
  if (piece.end == Piece::branches && code.op(piece.past).guard) (void)read(held, {code.op(piece.past).guard, 1});
  need(held, code.live_at(piece.past));
  for (uint32_t follower : piece.followers)
    need(held, code.live_at(follower));
  bool changed = false;
  for (const auto& [offset, value] : held) {
    Slot& slot = slots[offset];
    const Shape shape = joined(slot.shape, value.shape);
    const Nans nans = joined(slot.nans, value.nans);
    changed |= shape != slot.shape || nans != slot.nans;
    slot.shape = shape;
    slot.nans = nans;
  }
  return changed;
}

void Plan::walk_op(uint32_t index, std::map<uint32_t, Held>& held) {
  const OpInfo info = code.info(index);
  const OpUses uses = code.uses(index, info);
  const MicroOp& op = code.op(index);
  if (info.kind == OpKind::collective) need(held, code.live_at(index));
  std::vector<Held> sources;
  bool all_uniform = true;
  for (const LaneUse& source : uses.sources) {
    sources.push_back(read(held, source));
    all_uniform &= sources.back().shape == Shape::uniform;
  }
  const bool guard_is_uniform = !op.guard || read(held, {op.guard, 1}).shape == Shape::uniform;
  Held result{Shape::vector, Nans::exact};
  switch (info.kind) {
  case OpKind::row:
    if (!info.recipe->build) break;
    if (info.recipe->traits & is_copy)
      result = sources[0];
    else if (info.recipe->traits & (is_sum | is_difference))
      result.shape = shape_of_sum(sources[0].shape, sources[1].shape);
    else if (info.recipe->traits & is_scaling && sources[1].shape == Shape::uniform)
      result.shape = sources[0].shape;
    else if (all_uniform)
      result.shape = Shape::uniform;
    if (info.recipe->traits & leaves_open_nans) result.nans = Nans::open;
    break;
  case OpKind::lane_sum:
    result.shape = shape_of_sum(sources[0].shape, sources[1].shape);
    if (result.shape == Shape::vector) result.shape = Shape::sum;
    break;
  case OpKind::shift:
    result.shape = sources[0].shape == Shape::uniform ? Shape::uniform : Shape::sum;
    break;
  case OpKind::extraction:
    if (all_uniform) result.shape = Shape::uniform;
    break;
  case OpKind::insertion: {
    const Held old = read(held, uses.destinations[0]);
    if (all_uniform && old.shape == Shape::uniform) result.shape = Shape::uniform;
    break;
  }
  case OpKind::load:
    if (all_uniform && !loads_own_memory(op)) result.shape = Shape::uniform;
    break;
  case OpKind::fixed_load:
    result.shape = Shape::uniform;
    break;
  case OpKind::store:
  case OpKind::call:
  case OpKind::collective:
  case OpKind::branch:
  case OpKind::stop:
    break;
  }
  const bool is_load = info.kind == OpKind::load || info.kind == OpKind::fixed_load;
  for (const LaneUse& destination : uses.destinations) {
    if (!destination.lanes || slots[destination.lanes.offset()].in_frame) continue;
    Held written = result;
    if (op.guard) {
      const Held old = read(held, destination);
      written.nans = joined(written.nans, old.nans);
      const bool stays_uniform =
          guard_is_uniform && !is_load && result.shape == Shape::uniform && old.shape == Shape::uniform;
      written.shape = stays_uniform ? Shape::uniform : Shape::vector;
    }
    held[destination.lanes.offset()] = written;
  }
}

} // namespace ptxrewrite::emulator::generated
