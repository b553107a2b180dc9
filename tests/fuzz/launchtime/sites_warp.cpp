// Trees of shuffles over whole warps, parts of them and absent lanes; barriers of one warp.
#include "tests/fuzz/launchtime/sites.h"

namespace ptxrewrite::fuzz::launchtime {

namespace {

constexpr uint64_t all_lanes = 0xffffffff;

// The number of lanes of a tree, and the operands of its shuffles.
struct Extent {
  unsigned lanes = 32;
  uint64_t bound = 31; // and segments
  Operand members = all_lanes;
};

Register combine(Builder& b, const std::string& name, Register one, Register other) {
  return b.op(name, {one, other});
}

// The same in a loop that halves or doubles the distance.
Register tree_in_loop(Builder& b, const std::string& name, Register value, const Extent& extent, bool down,
                      bool ascends) {
  const Register sum = b.fresh('r'), distance = b.fresh('r');
  b.assign(sum, "mov.u32", {value});
  b.assign(distance, "mov.u32", {uint64_t(ascends ? 1 : extent.lanes / 2)});
  b.loop([&] {
    const Register other = b.shuffle(down ? "down" : "bfly", sum, distance, extent.bound, extent.members);
    b.assign(sum, name, {sum, other});
    b.assign(distance, ascends ? "shl.b32" : "shr.u32", {distance, uint64_t(1)});
    return ascends ? b.op("setp.lt.u32", {distance, uint64_t(extent.lanes)})
                   : b.op("setp.ne.s32", {distance, uint64_t(0)});
  });
  return sum;
}

Register tree(Builder& b, const std::string& name, Register value, const Extent& extent, bool down) {
  const bool ascends = !down && b.random.one_in(3);
  if (b.random.one_in(3)) return tree_in_loop(b, name, value, extent, down, ascends);
  for (unsigned step = 1; step < extent.lanes; step *= 2) {
    const unsigned distance = ascends ? step : extent.lanes / 2 / step;
    const Register other = b.shuffle(down ? "down" : "bfly", value, uint64_t(distance), extent.bound, extent.members);
    value = combine(b, name, value, other);
  }
  return value;
}

Extent some_extent(Builder& b) {
  Extent extent;
  switch (b.random.below(4)) {
  case 0: // segments of 16
    extent.lanes = 16;
    extent.bound = 0x101f;
    break;
  case 1: { // the existing lanes, as a value of the program
    const Register there = b.op("setp.ge.u32", {b.thread(), uint64_t(0)});
    extent.members = b.vote("ballot", there, all_lanes);
    break;
  }
  default:
    break;
  }
  return extent;
}

void reduction(Builder& b) {
  static const std::string names[] = {"add.s32", "min.s32", "max.s32", "min.u32",
                                      "max.u32", "and.b32", "or.b32",  "xor.b32"};
  const std::string name = b.random.pick(names);
  const bool down = b.random.one_in(3);
  const Register t = b.thread();
  const uint32_t a = b.pointer(4);
  const Register v = b.load(a, b.address(a, b.global_thread(), 4), 0, "u32");
  const Register result = b.fresh('r');
  b.assign(result, "mov.u32", {uint64_t(1)});
  if (b.random.one_in(4)) { // half a warp alone
    b.branch(b.op("setp.lt.u32", {t, uint64_t(16)}), false, [&] {
      b.assign(result, "mov.u32", {tree(b, name, v, {16, 31, uint64_t(0xffff)}, false)});
    });
  } else {
    const Extent extent = some_extent(b);
    b.assign(result, "mov.u32", {tree(b, name, v, extent, down)});
  }
  if (down) { // lanes other than the first hold partial results
    const Register first = b.op("setp.eq.s32", {b.op("and.b32", {t, uint64_t(15)}), uint64_t(0)});
    b.assign(result, "selp.b32", {result, uint64_t(77), first});
  }
  store_result(b, result);
  add_plain_site(b, "warp", "reduction", [](const Trace& trace) { return !trace.is_undefined; });
}

// The number of lanes, whether any, whether all: as numbers 0 and 1.
void counting(Builder& b) {
  const uint32_t a = b.pointer(4);
  const Register v = b.load(a, b.address(a, b.global_thread(), 4), 0, "u32");
  const Register holds = b.op("setp.gt.s32", {v, uint64_t(b.random.one_in(2) ? 0 : 0xffffffff)});
  const Register one = b.op("selp.b32", {uint64_t(1), uint64_t(0), holds});
  static const std::string names[] = {"add.s32", "or.b32", "and.b32"};
  const std::string name = b.random.pick(names);
  const Register result = tree(b, name, one, some_extent(b), false);
  store_result(b, result);
  add_plain_site(b, "warp", name == "add.s32" ? "count" : "any or all",
                 [](const Trace& trace) { return !trace.is_undefined; });
}

// Threads of a block exchange values; in blocks of one warp a weaker barrier suffices.
void exchange(Builder& b) {
  b.kernel.shared_bytes = 4 * 256;
  const Register t = b.thread();
  const uint32_t a = b.pointer(4);
  const Register v = b.load(a, b.address(a, b.global_thread(), 4), 0, "u32");
  const Register base = b.special("exchange");
  const auto place = [&](Register index) { return b.op("mad.lo.s32", {index, uint64_t(4), base}); };
  const Register mine = place(t);
  // The thread at the other end of the block.
  const Register last = b.op("sub.s32", {b.special("%ntid.x"), uint64_t(1)});
  const Register theirs = place(b.op("sub.s32", {last, t}));
  Register sum = v;
  for (size_t round = 0; round < 2; ++round) {
    Node& store = b.node(Node::Kind::store);
    store.is_shared = true;
    store.type = "u32";
    store.sources = {mine, sum};
    b.node(Node::Kind::barrier);
    const Register other = b.fresh('r');
    Node& load = b.node(Node::Kind::load);
    load.is_shared = true;
    load.type = "u32";
    load.results = {other};
    load.sources = {theirs};
    b.node(Node::Kind::barrier);
    sum = b.op("mad.lo.s32", {sum, uint64_t(3), other});
  }
  store_result(b, sum);
  add_plain_site(b, "warp", "barriers", [](const Trace&) { return true; });
}

constexpr SiteKind kinds[] = {
    {"warp", "reduction", reduction}, {"warp", "count", counting}, {"warp", "barriers", exchange}};

} // namespace

std::span<const SiteKind> warp_sites() {
  return kinds;
}

} // namespace ptxrewrite::fuzz::launchtime
