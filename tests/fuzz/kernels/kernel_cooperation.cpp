// Cooperation of the threads of a warp or block in random kernels. Shared memory is used in rounds: barrier, each
// thread writes its own slot, barrier, all read. Later uses start with a barrier again.
#include "tests/fuzz/kernels/kernel_builder.h"

namespace ptxrewrite::fuzz {

void Builder::emit_barrier() {
  static constexpr const char* texts[] = {"bar.sync", "bar.sync", "barrier.sync", "barrier.sync.aligned"};
  count("barrier");
  Statement statement;
  statement.kind = StatementKind::barrier;
  statement.text = random_.pick(texts);
  statement.sources = {number32(random_.one_in(4) ? 3 : 0)};
  // With a thread count, here that of the whole block.
  if (full_warps_ && random_.one_in(6)) statement.sources = {number32(1), reg(block_size_)};
  emit(std::move(statement));
}

void Builder::random_barrier_reduction() {
  if (context_ != Level::block || function_ != 0 || !sync_allowed_) return;
  count("barrier with reduction");
  Statement statement;
  statement.kind = StatementKind::barrier;
  const std::string prefix = random_.one_in(2) ? "bar.red" : "barrier.red";
  Operand predicate = reg(pick_predicate(Level::thread));
  predicate.negated = random_.one_in(3);
  static constexpr BarrierFunction functions[] = {BarrierFunction::count, BarrierFunction::all, BarrierFunction::any};
  statement.barrier_function = random_.pick(functions);
  const bool counts = statement.barrier_function == BarrierFunction::count;
  statement.text = prefix + (counts                                               ? ".popc.u32"
                             : statement.barrier_function == BarrierFunction::all ? ".and.pred"
                                                                                  : ".or.pred");
  statement.results = {new_variable(counts ? Kind::b32 : Kind::predicate, Level::block)};
  statement.sources = {number32(2), predicate};
  emit(std::move(statement));
}

// The slot of some thread of the block, possibly the same for all.
uint32_t Builder::neighbour() {
  switch (random_.below(4)) {
  case 0: { // rotated
    const uint32_t moved = compute("add.u32", "r", "rr", {reg(thread_in_block_), number32(random_.between(1, 40))});
    return compute("rem.u32", "r", "rv", {reg(moved), reg(block_size_)});
  }
  case 1: { // mirrored
    const uint32_t last = compute("sub.u32", "r", "rr", {reg(block_size_), number32(1)});
    return compute("sub.s32", "r", "rr", {reg(last), reg(thread_in_block_)});
  }
  case 2: { // exchanged with a partner, if there is one
    const uint32_t partner =
        compute("xor.b32", "r", "rr", {reg(thread_in_block_), number32(int64_t(1) << random_.below(6))});
    const uint32_t exists = compute("setp.lt.u32", "p", "rr", {reg(partner), reg(block_size_)});
    return compute("selp.b32", "r", "rr!", {reg(partner), reg(thread_in_block_), reg(exists)});
  }
  default: {
    const Level level = random_.one_in(2) ? Level::block : Level::thread;
    return compute("rem.u32", "r", "rv", {reg(pick_dividend(level)), reg(block_size_)});
  }
  }
}

void Builder::random_exchange() {
  if (context_ != Level::block || function_ != 0 || !sync_allowed_ || in_exchange_ || shared_object_ < 0) return;
  count("exchange through shared memory");
  in_exchange_ = true;
  const bool generic = random_.one_in(4);
  if (generic) count("generic address");
  const std::string space = generic ? "" : ".shared";
  const auto place = [&](uint32_t slot) -> uint32_t {
    if (!generic && random_.one_in(2)) return shared_pointer(shared_object_, slot);
    const uint32_t base = object_pointer(shared_object_, generic);
    return scaled_pointer(base, slot, shared_slot, random_.one_in(2));
  };
  emit_barrier();
  MemoryAccess own;
  own.base = reg(place(thread_in_block_));
  for (size_t i = 0, stores = 1 + random_.below(2); i < stores; ++i) {
    own.offset = static_cast<int64_t>(8 * i);
    emit_store(space, own, i == 0 && stores == 1 ? 16 : 8);
  }
  if (random_.one_in(2)) random_statements(static_cast<unsigned>(random_.below(3)));
  emit_barrier();
  for (size_t i = 0, loads = 1 + random_.below(3); i < loads; ++i) {
    static constexpr Kind kinds[] = {Kind::b32, Kind::b32, Kind::b64, Kind::f32, Kind::b16, Kind::f64, Kind::f16};
    const Kind kind = pick_kind(kinds);
    const uint32_t slot = neighbour();
    MemoryAccess theirs;
    theirs.base = reg(place(slot));
    const unsigned width = width_of(kind);
    theirs.element_bits = kind != Kind::f16 && kind != Kind::f32 && kind != Kind::f64 && random_.one_in(4) ? 8 : width;
    const unsigned wanted = random_.one_in(3) ? 2 : 1;
    const unsigned bytes = theirs.element_bits / 8 * wanted;
    theirs.offset = static_cast<int64_t>(random_.below(shared_slot / bytes) * bytes);
    emit_load(space, theirs, kind, wanted, level_of(slot), true, false);
  }
  in_exchange_ = false;
}

// One thread clears a cell, all add to it, all read the sum.
void Builder::random_shared_atomic() {
  if (context_ != Level::block || function_ != 0 || !sync_allowed_ || in_exchange_ || shared_object_ < 0) return;
  count("shared atomic");
  in_exchange_ = true;
  struct Row {
    const char* text;
    AtomicFunction function;
  };
  static constexpr Row rows[] = {{"add.u32", AtomicFunction::add},          {"min.s32", AtomicFunction::min_signed},
                                 {"max.u32", AtomicFunction::max_unsigned}, {"xor.b32", AtomicFunction::xor_},
                                 {"or.b32", AtomicFunction::or_},           {"and.b32", AtomicFunction::and_}};
  const Row& row = random_.pick(rows);
  MemoryAccess cell;
  cell.element_bits = 32;
  cell.object = shared_object_;
  cell.offset = static_cast<int64_t>(largest_block_ * shared_slot + 8 * random_.below(4));
  emit_barrier();
  const uint32_t is_first = compute("setp.eq.s32", "p", "rr", {reg(thread_in_block_), number32(0)});
  emit_store_of(".shared", cell, {compute("mov.u32", "r", "r", {random_immediate(Kind::b32, true)})});
  out_->back().guard = {true, false, is_first};
  emit_barrier();
  Statement statement;
  statement.kind = StatementKind::atomic;
  statement.atomic_function = row.function;
  statement.text = std::string(random_.one_in(2) ? "red.shared." : "atom.shared.") + row.text;
  statement.memory = cell;
  statement.sources = {pick_operand('r', Level::thread)};
  if (random_.one_in(2)) statement.guard = pick_guard(Level::thread);
  emit(std::move(statement));
  emit_barrier();
  emit_load(".shared", cell, Kind::b32, 1, Level::block, true, false);
  in_exchange_ = false;
}

// All threads read a cell and write it, in any order: a later warp reads another value. The read values are not used.
// Without races no kernel would show whether a load's result is reused across a store.
void Builder::random_race() {
  if (context_ != Level::block || function_ != 0 || in_exchange_ || shared_object_ < 0) return;
  MemoryAccess cell;
  cell.element_bits = 32;
  cell.object = shared_object_;
  cell.offset = static_cast<int64_t>(largest_block_ * shared_slot + 32);
  Statement load;
  load.kind = StatementKind::load_or_store;
  load.memory = cell;
  load.text = "ld.shared.u32";
  load.results = {hidden_variable(Kind::b32, Level::thread)};
  emit(std::move(load));
  if (random_.one_in(2)) random_operation();
  Statement store;
  store.kind = StatementKind::load_or_store;
  store.memory = cell;
  store.memory.is_store = true;
  store.text = "st.shared.u32";
  store.sources = {reg(thread_in_block_)};
  emit(std::move(store));
}

namespace {

struct WarpRow {
  WarpFunction function;
  const char* text;
  Kind source;
  Kind result;
};
constexpr WarpRow warp_rows[] = {{WarpFunction::vote_all, "vote.sync.all.pred", Kind::predicate, Kind::predicate},
                                 {WarpFunction::vote_any, "vote.sync.any.pred", Kind::predicate, Kind::predicate},
                                 {WarpFunction::vote_uni, "vote.sync.uni.pred", Kind::predicate, Kind::predicate},
                                 {WarpFunction::ballot, "vote.sync.ballot.b32", Kind::predicate, Kind::b32},
                                 {WarpFunction::match_any, "match.any.sync.b32", Kind::b32, Kind::b32},
                                 {WarpFunction::match_any, "match.any.sync.b64", Kind::b64, Kind::b32},
                                 {WarpFunction::match_all, "match.all.sync.b32", Kind::b32, Kind::b32},
                                 {WarpFunction::match_all, "match.all.sync.b64", Kind::b64, Kind::b32},
                                 {WarpFunction::redux_add, "redux.sync.add.u32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_add, "redux.sync.add.s32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_min_s32, "redux.sync.min.s32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_max_s32, "redux.sync.max.s32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_min_u32, "redux.sync.min.u32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_max_u32, "redux.sync.max.u32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_and, "redux.sync.and.b32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_or, "redux.sync.or.b32", Kind::b32, Kind::b32},
                                 {WarpFunction::redux_xor, "redux.sync.xor.b32", Kind::b32, Kind::b32},
                                 {WarpFunction::sync, "bar.warp.sync", Kind::b32, Kind::b32}};
constexpr WarpRow shuffle_rows[] = {{WarpFunction::shfl_idx, "shfl.sync.idx.b32", Kind::b32, Kind::b32},
                                    {WarpFunction::shfl_up, "shfl.sync.up.b32", Kind::b32, Kind::b32},
                                    {WarpFunction::shfl_down, "shfl.sync.down.b32", Kind::b32, Kind::b32},
                                    {WarpFunction::shfl_bfly, "shfl.sync.bfly.b32", Kind::b32, Kind::b32}};

} // namespace

void Builder::random_warp_function() {
  if (context_ == Level::thread || function_ != 0 || !sync_allowed_) return;
  const bool shuffles = random_.one_in(2);
  const WarpRow& row = shuffles ? random_.pick(shuffle_rows) : random_.pick(warp_rows);
  Statement statement;
  statement.kind = StatementKind::warp;
  statement.text = row.text;
  statement.warp_function = row.function;
  const std::string name = std::string(row.text).substr(0, std::string_view(row.text).find('.'));
  count(row.function == WarpFunction::sync ? "bar.warp" : name);
  const Operand mask = full_warps_ ? number32(-1) : reg(lane_mask_);

  if (shuffles) {
    const Operand value = reg(pick_variable(Kind::b32, Level::thread));
    const Operand lane = pick_operand('c', Level::thread);
    // No lane reads from an absent lane: the clamp is the last lane of the warp.
    const bool up = row.function == WarpFunction::shfl_up;
    Operand clamp = up ? number32(0) : full_warps_ ? number32(31) : reg(last_lane_);
    if (full_warps_ && random_.one_in(3)) clamp.bits |= (0x1e & ~((2u << random_.below(4)) - 2)) << 8;
    statement.sources = {value, lane, clamp, mask};
  } else if (row.function == WarpFunction::sync) {
    statement.sources = {mask};
  } else {
    Operand source =
        reg(row.source == Kind::predicate ? pick_predicate(Level::thread) : pick_variable(row.source, Level::thread));
    source.negated = row.source == Kind::predicate && random_.one_in(3);
    statement.sources = {source, mask};
  }
  const Level level = shuffles || row.function == WarpFunction::match_any ? Level::thread : Level::warp;
  if (row.function != WarpFunction::sync) statement.results = {new_variable(row.result, level)};
  if (row.function == WarpFunction::match_all && random_.one_in(2))
    statement.results.push_back(new_variable(Kind::predicate, level));
  if (shuffles && random_.one_in(3)) statement.results.push_back(new_variable(Kind::predicate, Level::thread));
  emit(std::move(statement));
}

} // namespace ptxrewrite::fuzz
