// Loads and stores through pointers that may or may not alias, and of neighbouring elements.
#include "tests/fuzz/launchtime/sites.h"

namespace ptxrewrite::fuzz::launchtime {

namespace {

void add_alias_site(Builder& b, const char* idiom) {
  PatternSite& site = b.kernel.sites.emplace_back();
  site.family = "memory";
  site.idiom = idiom;
  site.evidence = Evidence::non_coherent;
  site.has_evidence = true;
  site.necessary = some_loads_are_constant;
  site.sufficient = ranges_are_disjoint;
  site.is_idle = [](const Trace& trace) { return trace.loads.empty(); };
}

uint32_t some_stride(Random& random, uint32_t element) {
  const uint32_t strides[] = {element, 2 * element, 4 * element, 64};
  return random.pick(strides);
}

// o[t] = f(a[t]); o2[t] = g(a[t + ...]), where o2 may be o.
void stream(Builder& b) {
  const std::string type = b.random.one_in(2) ? "f32" : "u32";
  const std::string add = type == "f32" ? "add.rn.f32" : "add.s32";
  const uint32_t a = b.pointer(4), o = b.pointer(4), o2 = b.random.one_in(2) ? b.pointer(4) : o;
  const uint32_t stride = some_stride(b.random, 4);
  const int64_t second = stride > 4 ? 4 * b.random.between(0, stride / 4 - 1) : 0;
  const auto body = [&] {
    const Register t = b.global_thread();
    const Register from = b.address(a, t, stride), to = b.address(o, t, stride);
    const Register to2 = o2 == o ? to : b.address(o2, t, stride);
    const Register v = b.load(a, from, 0, type);
    b.store(o, to, 0, type, b.op(add, {v, v}));
    const Register w = b.load(a, from, second, type);
    b.store(o2, to2, second, type, b.op(add, {w, v}));
  };
  if (b.random.one_in(2))
    for_threads_below(b, b.global_thread(), body);
  else
    body();
  add_alias_site(b, "stream");
}

// A loop of `trips` trips; `body` gets the trip's number.
void count_trips(Builder& b, const std::function<void(Register)>& body) {
  const uint32_t trips = b.number('r');
  fill_number(b, trips, {1, 2, 3, 5}, {0, 0xffffffff, 0x80000000});
  const Register k = b.fresh('r');
  b.assign(k, "mov.u32", {uint64_t(0)});
  const Register some = b.op("setp.gt.s32", {b.parameter(trips), uint64_t(0)});
  b.branch(some, false, [&] {
    b.loop([&] {
      body(k);
      b.assign(k, "add.s32", {k, uint64_t(1)});
      return b.op("setp.lt.s32", {k, b.parameter(trips)});
    });
  });
}

// The element of this thread in trip k: t + k * threads of the grid.
Register element_of_trip(Builder& b, Register t, Register k) {
  const Register all = b.op("mul.lo.s32", {b.special("%nctaid.x"), b.special("%ntid.x")});
  return b.op("mad.lo.s32", {k, all, t});
}

// y[i] = x[i] * s[0] in a loop: s is invariant unless it aliases y.
void invariant_load(Builder& b) {
  const uint32_t s = b.pointer(4), x = b.pointer(4), y = b.pointer(4);
  const Register t = b.global_thread();
  count_trips(b, [&](Register k) {
    const Register i = element_of_trip(b, t, k);
    const Register v = b.load(x, b.address(x, i, 4), 0, "u32");
    const Register scale = b.load(s, b.parameter(s), 0, "u32");
    b.store(y, b.address(y, i, 4), 0, "u32", b.op("mad.lo.s32", {v, scale, k}));
  });
  add_alias_site(b, "invariant load");
}

// y[t] += x[i] in a loop.
void accumulate(Builder& b) {
  const std::string type = b.random.one_in(2) ? "f32" : "u32";
  const uint32_t x = b.pointer(4), y = b.pointer(4);
  const Register t = b.global_thread();
  const Register to = b.address(y, t, some_stride(b.random, 4));
  count_trips(b, [&](Register k) {
    const Register i = element_of_trip(b, t, k);
    const Register sum = b.load(y, to, 0, type);
    const Register v = b.load(x, b.address(x, i, 4), 0, type);
    b.store(y, to, 0, type, b.op(type == "f32" ? "add.rn.f32" : "add.s32", {sum, v}));
  });
  add_alias_site(b, "accumulate");
}

// A store that is overwritten, whose value is only visible to a load through another pointer.
void overwritten_store(Builder& b) {
  const uint32_t a = b.pointer(4), o = b.pointer(4);
  const uint32_t stride = some_stride(b.random, 4);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, stride), to = b.address(o, t, stride);
  b.store(o, to, 0, "u32", b.op("xor.b32", {t, uint64_t(0x5a5a)}));
  const Register v = b.load(a, from, 0, "u32");
  b.store(o, to, 0, "u32", b.op("add.s32", {v, uint64_t(7)}));
  add_alias_site(b, "overwritten store");
}

// Each thread adds to its own number, or stores through one of two pointers, between loads through another.
void other_writes(Builder& b) {
  const bool adds = b.random.one_in(2);
  const uint32_t a = b.pointer(4), o = b.pointer(4), o2 = b.pointer(4);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, 8), to = b.address(o, t, 8), to2 = b.address(o2, t, 8);
  const Register v = b.load(a, from, 0, "u32");
  if (adds) {
    b.add_in_memory(o, to, v);
  } else {
    const Register odd = b.op("setp.ne.s32", {b.op("and.b32", {v, uint64_t(1)}), uint64_t(0)});
    b.store_to_either(b.op("selp.b64", {to, to2, odd}), t);
  }
  const Register w = b.load(a, from, b.random.one_in(2) ? 4 : 0, "u32");
  b.store(o2, to2, 4, "u32", b.op("add.s32", {v, w}));
  add_alias_site(b, "other writes");
  if (!adds) b.kernel.sites.back().sufficient = [](const Trace&) { return false; }; // its target is unknown
}

// Neighbours of other threads, plane after plane.
void stencil(Builder& b) {
  const uint32_t a = b.pointer(4), o = b.pointer(4), pitch = b.number('r');
  b.fill([=](Random& random, Mood, Launch& launch) {
    const uint64_t pitches[] = {launch.threads() + 2, launch.threads() + 2, 40, 1, 0};
    launch.arguments[pitch] = random.pick(pitches);
  });
  const Register t = b.global_thread();
  Register at = t;
  for (unsigned plane = 0; plane < 2; ++plane) {
    at = b.op("add.s32", {at, b.parameter(pitch)});
    const Register from = b.address(a, at, 4);
    Register sum = b.load(a, from, 0, "u32");
    for (const int64_t neighbour : {4, 8})
      sum = b.op("mad.lo.s32", {sum, uint64_t(3), b.load(a, from, neighbour, "u32")});
    b.store(o, b.address(o, at, 4), 4, "u32", sum);
  }
  add_alias_site(b, "stencil");
}

struct Shape {
  std::string type;
  unsigned count;
  uint32_t stride;
  int64_t offset;
};
Shape some_shape(Random& random) {
  static const std::string types[] = {"u8", "b16", "u32", "f32", "u64"};
  Shape shape;
  shape.type = random.pick(types);
  const unsigned element = bytes_of(shape.type);
  shape.count = 2u << random.below(4);
  while (shape.count * element > 16)
    shape.count /= 2;
  const unsigned bytes = shape.count * element;
  const uint32_t strides[] = {bytes, bytes, 2 * bytes, bytes + element, 64};
  shape.stride = random.pick(strides);
  const int64_t offsets[] = {0, 0, bytes, element};
  shape.offset = random.pick(offsets);
  return shape;
}

// One number from values of any type.
Register combined(Builder& b, const std::vector<Register>& values) {
  Register sum = b.fresh('r');
  b.assign(sum, "mov.u32", {uint64_t(1)});
  for (const Register value : values) {
    Register word = value;
    if (value.kind == 'h') word = b.op("cvt.u32.u16", {value});
    if (value.kind == 'd')
      word = b.op("xor.b32",
                  {b.op("cvt.u32.u64", {value}), b.op("cvt.u32.u64", {b.op("shr.u64", {value, uint64_t(32)})})});
    if (value.kind == 'f') word = b.op("cvt.rzi.s32.f32", {value});
    sum = b.op("mad.lo.s32", {sum, uint64_t(31), word});
  }
  return sum;
}

void neighbouring_loads(Builder& b) {
  const Shape shape = some_shape(b.random);
  const uint32_t a = b.pointer(bytes_of(shape.type)), o = b.pointer(4);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, shape.stride), to = b.address(o, t, 8);
  Group loads, stores;
  std::function<void()> between;
  if (b.random.one_in(2)) between = [&] { stores.nodes.push_back(b.store(o, to, 4, "u32", t)); };
  const std::vector<Register> values =
      load_neighbours(b, a, from, shape.offset, shape.type, shape.count, loads, between);
  stores.nodes.insert(stores.nodes.begin(), b.store(o, to, 0, "u32", combined(b, values)));
  std::vector<Group> groups{loads};
  if (stores.nodes.size() > 1) groups.push_back(stores);
  add_joining_site(b, "memory", "neighbouring loads", groups);
}

// The last one only in some threads.
void guarded_neighbours(Builder& b) {
  const uint32_t a = b.pointer(4), o = b.pointer(4);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, 16);
  Group group;
  std::vector<Register> values = load_neighbours(b, a, from, 0, "u32", 3, group);
  const Register last = b.fresh('r');
  b.assign(last, "mov.u32", {uint64_t(9)});
  for_threads_below(b, t, [&] { b.assign(last, "mov.u32", {b.load(a, from, 12, "u32")}); });
  values.push_back(last);
  b.store(o, b.address(o, t, 4), 0, "u32", combined(b, values));
  group.nodes.pop_back(); // two of three
  add_joining_site(b, "memory", "guarded neighbours", {group});
}

void neighbouring_stores(Builder& b) {
  const Shape shape = some_shape(b.random);
  const uint32_t a = b.pointer(4), o = b.pointer(bytes_of(shape.type));
  const Register t = b.global_thread();
  const Register from = b.address(a, t, 4), to = b.address(o, t, shape.stride);
  Register word = b.load(a, from, 0, "u32");
  std::vector<Register> values;
  for (unsigned i = 0; i < shape.count; ++i) {
    word = b.op("mad.lo.s32", {word, uint64_t(5), t});
    const char kind = register_kind_of(shape.type);
    values.push_back(kind == 'h'   ? b.op("cvt.u16.u32", {word})
                     : kind == 'd' ? b.op("mul.wide.u32", {word, uint64_t(77777)})
                     : kind == 'f' ? b.op("cvt.rn.f32.u32", {word})
                                   : word);
  }
  Group group;
  std::function<void()> between;
  Register seen = t;
  if (b.random.one_in(2)) between = [&] { seen = b.load(a, from, 0, "u32"); };
  store_neighbours(b, o, to, shape.offset, shape.type, values, group, between);
  store_result(b, b.op("xor.b32", {seen, word}));
  add_joining_site(b, "memory", "neighbouring stores", {group});
}

// A structure of four floats that is read, changed and written in place or to another buffer.
void structure(Builder& b) {
  const uint32_t a = b.pointer(4), o = b.random.one_in(2) ? a : b.pointer(4);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, 16), to = b.address(o, t, 16);
  Group loads, stores;
  std::vector<Register> values = load_neighbours(b, a, from, 0, "f32", 4, loads);
  for (size_t i = 0; i < 3; ++i)
    values[i] = b.op("add.rn.f32", {values[i], values[3]});
  store_neighbours(b, o, to, 0, "f32", values, stores);
  add_joining_site(b, "memory", "structure", {loads, stores});
}

constexpr SiteKind kinds[] = {{"memory", "stream", stream},
                              {"memory", "invariant load", invariant_load},
                              {"memory", "accumulate", accumulate},
                              {"memory", "overwritten store", overwritten_store},
                              {"memory", "other writes", other_writes},
                              {"memory", "stencil", stencil},
                              {"memory", "neighbouring loads", neighbouring_loads},
                              {"memory", "guarded neighbours", guarded_neighbours},
                              {"memory", "neighbouring stores", neighbouring_stores},
                              {"memory", "structure", structure}};

} // namespace

std::span<const SiteKind> memory_sites() {
  return kinds;
}

} // namespace ptxrewrite::fuzz::launchtime
