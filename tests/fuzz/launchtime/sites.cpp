#include "tests/fuzz/launchtime/sites.h"

#include <algorithm>

namespace ptxrewrite::fuzz::launchtime {

std::vector<SiteKind> site_kinds() {
  std::vector<SiteKind> all;
  for (const auto& list : {memory_sites(), index_sites(), divisor_sites(), byte_sites(), packed_sites(), warp_sites()})
    all.insert(all.end(), list.begin(), list.end());
  return all;
}

void store_result(Builder& b, Register value) {
  const unsigned bytes = value.kind == 'd' ? 8 : value.kind == 'h' ? 2 : 4;
  const uint32_t out = b.pointer(bytes);
  const char* type = value.kind == 'd' ? "u64" : value.kind == 'h' ? "b16" : value.kind == 'f' ? "f32" : "u32";
  b.store(out, b.address(out, b.global_thread(), bytes), 0, type, value);
}

void fill_number(Builder& b, uint32_t parameter, std::vector<uint64_t> plain, std::vector<uint64_t> edges) {
  edges.insert(edges.end(), plain.begin(), plain.end());
  b.fill([=](Random& random, Mood mood, Launch& launch) {
    launch.arguments[parameter] = random.pick(mood == Mood::plain ? plain : edges);
  });
}

void for_threads_below(Builder& b, Register index, const std::function<void()>& body) {
  const uint32_t count = b.number('r');
  b.fill([=](Random& random, Mood mood, Launch& launch) {
    const uint64_t threads = launch.threads();
    const uint64_t plain[] = {threads, threads - 1, threads + 5, threads / 2 + 1};
    const uint64_t edges[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, threads};
    launch.arguments[count] = mood == Mood::plain ? random.pick(plain) : random.pick(edges);
  });
  const bool is_signed = b.random.one_in(2);
  const Register outside = b.op(is_signed ? "setp.ge.s32" : "setp.ge.u32", {index, b.parameter(count)});
  b.branch(outside, true, body);
}

bool ranges_are_disjoint(const Trace& trace) {
  for (size_t p = 0; p < trace.pointers.size(); ++p)
    for (size_t q = 0; q < trace.pointers.size(); ++q)
      if (p != q && (trace.pointers[p].stores.range_meets(trace.pointers[q].loads) ||
                     trace.pointers[p].stores.range_meets(trace.pointers[q].stores)))
        return false;
  return true;
}

bool some_loads_are_constant(const Trace& trace) {
  return std::ranges::any_of(trace.pointers, [&](const PointerTrace& pointer) {
    return !pointer.loads.empty() && !pointer.loads.meets(trace.stores);
  });
}

bool Group::some_pair_is_aligned(const Trace& trace) const {
  for (size_t i = 0; i + 1 < nodes.size(); ++i) {
    const NodeTrace& node = trace.nodes[nodes[i]];
    if (node.executions == 0 || node.address_bits % (2 * element) == 0) return true;
  }
  return false;
}

bool Group::is_aligned(const Trace& trace) const {
  return trace.nodes[nodes.front()].address_bits % (element * nodes.size()) == 0;
}

namespace {

// 0 .. count - 1, sometimes in another order.
std::vector<unsigned> order_of(Random& random, unsigned count) {
  std::vector<unsigned> order(count);
  for (unsigned i = 0; i < count; ++i)
    order[i] = i;
  if (random.one_in(3))
    for (unsigned i = 1; i < count; ++i)
      std::swap(order[i], order[random.below(i + 1)]);
  return order;
}

} // namespace

std::vector<Register> load_neighbours(Builder& b, uint32_t pointer, Register address, int64_t offset,
                                      const std::string& type, unsigned count, Group& group,
                                      const std::function<void()>& between) {
  group.element = bytes_of(type);
  group.nodes.resize(count);
  std::vector<Register> values(count);
  const size_t interruption = b.random.below(count);
  for (unsigned turn = 0; const unsigned i : order_of(b.random, count)) {
    if (turn++ == interruption && between) between();
    values[i] = b.load(pointer, address, offset + int64_t(i) * group.element, type);
    group.nodes[i] = b.last_id();
  }
  return values;
}

void store_neighbours(Builder& b, uint32_t pointer, Register address, int64_t offset, const std::string& type,
                      const std::vector<Register>& values, Group& group, const std::function<void()>& between) {
  group.element = bytes_of(type);
  group.nodes.resize(values.size());
  const size_t interruption = b.random.below(values.size());
  for (unsigned turn = 0; const unsigned i : order_of(b.random, static_cast<unsigned>(values.size()))) {
    if (turn++ == interruption && between) between();
    group.nodes[i] = b.store(pointer, address, offset + int64_t(i) * group.element, type, values[i]);
  }
}

void add_joining_site(Builder& b, const char* family, const char* idiom, std::vector<Group> groups) {
  PatternSite& site = b.kernel.sites.emplace_back();
  site.family = family;
  site.idiom = idiom;
  site.evidence = Evidence::vectors;
  site.has_evidence = true;
  site.necessary = [groups](const Trace& trace) {
    return std::ranges::any_of(groups, [&](const Group& group) { return group.some_pair_is_aligned(trace); });
  };
  site.sufficient = [groups](const Trace& trace) {
    return ranges_are_disjoint(trace) &&
           std::ranges::all_of(groups, [&](const Group& group) { return group.is_aligned(trace); });
  };
}

void add_plain_site(Builder& b, const char* family, const char* idiom, std::function<bool(const Trace&)> sufficient) {
  PatternSite& site = b.kernel.sites.emplace_back();
  site.family = family;
  site.idiom = idiom;
  site.necessary = [](const Trace&) { return true; };
  site.sufficient = std::move(sufficient);
}

} // namespace ptxrewrite::fuzz::launchtime
