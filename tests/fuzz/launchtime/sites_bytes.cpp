// Bytes: sums of differences and products, packing; halves and floats in pairs.
#include "tests/fuzz/launchtime/sites.h"

namespace ptxrewrite::fuzz::launchtime {

namespace {

struct Words {
  std::vector<Register> a, b;
  Group first, second;
};

// Four neighbouring bytes (or bytes of a word, `joined`) of two arrays, as numbers of 32 bits.
Words two_quads(Builder& b, const std::string& type, bool joined) {
  const uint32_t x = b.pointer(joined ? 4 : 1), y = b.pointer(joined ? 4 : 1);
  const Register t = b.global_thread();
  const Register from = b.address(x, t, 4), from2 = b.address(y, t, 4);
  Words words;
  if (!joined) {
    words.a = load_neighbours(b, x, from, 0, type, 4, words.first);
    words.b = load_neighbours(b, y, from2, 0, type, 4, words.second);
    return words;
  }
  const Register one = b.load(x, from, 0, "u32"), other = b.load(y, from2, 0, "u32");
  const std::string extract = type == "s8" ? "bfe.s32" : "bfe.u32";
  for (uint64_t i = 0; i < 4; ++i) {
    words.a.push_back(b.op(extract, {one, 8 * i, uint64_t(8)}));
    words.b.push_back(b.op(extract, {other, 8 * i, uint64_t(8)}));
  }
  return words;
}

void finish(Builder& b, const char* idiom, const Words& words, bool joined) {
  if (joined)
    add_plain_site(b, "composite", idiom, [](const Trace&) { return true; });
  else
    add_joining_site(b, "composite", idiom, {words.first, words.second});
  b.kernel.sites.back().has_evidence = false; // the bytes may be combined unchanged
}

void differences(Builder& b) {
  const bool joined = b.random.one_in(2), squares = b.random.one_in(2);
  const Words words = two_quads(b, "u8", joined);
  Register sum = b.thread();
  for (size_t i = 0; i < 4; ++i) {
    const Register e = b.op("sub.s32", {words.a[i], words.b[i]});
    if (squares)
      sum = b.op("mad.lo.s32", {e, e, sum});
    else
      sum = b.op("add.s32", {sum, b.op("abs.s32", {e})});
  }
  store_result(b, sum);
  finish(b, squares ? "SSD" : "SAD", words, joined);
}

void products(Builder& b) {
  const bool joined = b.random.one_in(2);
  const std::string type = b.random.one_in(2) ? "s8" : "u8";
  const Words words = two_quads(b, type, joined);
  Register sum = b.thread();
  for (size_t i = 0; i < 4; ++i)
    sum = b.op("mad.lo.s32", {words.a[i], words.b[i], sum});
  store_result(b, sum);
  finish(b, "dot product of bytes", words, joined);
}

// min, average, sum, saturating sum, for all four bytes.
void bytes_alike(Builder& b) {
  const bool joined = b.random.one_in(2);
  const Words words = two_quads(b, "u8", joined);
  const size_t what = b.random.below(5);
  const uint32_t out = b.pointer(1);
  const Register to = b.address(out, b.global_thread(), 4);
  std::vector<Register> results;
  for (size_t i = 0; i < 4; ++i) {
    const Operand x = words.a[i], y = words.b[i];
    const Register sum = b.op("add.s32", {x, y});
    results.push_back(what == 0   ? b.op("min.s32", {x, y})
                      : what == 1 ? b.op("max.u32", {x, y})
                      : what == 2 ? b.op("shr.u32", {b.op("add.s32", {sum, uint64_t(1)}), uint64_t(1)})
                      : what == 3 ? b.op("min.s32", {sum, uint64_t(255)})
                                  : sum);
  }
  Group group;
  store_neighbours(b, out, to, 0, "u8", results, group);
  finish(b, "bytes alike", words, joined);
}

void clamp_and_pack(Builder& b) {
  const uint32_t a = b.pointer(4), out = b.pointer(1);
  const Register t = b.global_thread();
  const Register from = b.address(a, t, 16), to = b.address(out, t, 4);
  Group loads, stores;
  std::vector<Register> results;
  const uint64_t shift = b.random.below(24);
  for (const Register v : load_neighbours(b, a, from, 0, "u32", 4, loads)) {
    const Register small = b.op("shr.s32", {v, shift});
    results.push_back(b.op("min.s32", {b.op("max.s32", {small, uint64_t(0)}), uint64_t(255)}));
  }
  if (b.random.one_in(2)) {
    store_neighbours(b, out, to, 0, "u8", results, stores);
    add_joining_site(b, "composite", "clamp and pack", {loads, stores});
    b.kernel.sites.back().has_evidence = false;
    return;
  }
  Register word = results[0];
  for (uint64_t i = 1; i < 4; ++i)
    word = b.op("or.b32", {word, b.op("shl.b32", {results[i], 8 * i})});
  store_result(b, word);
  add_plain_site(b, "composite", "clamp and pack", [](const Trace&) { return true; });
}

void byte_sum(Builder& b) {
  const uint32_t a = b.pointer(1);
  const unsigned count = 4u << b.random.below(3);
  Group group;
  const Register from = b.address(a, b.global_thread(), count);
  Register sum = b.thread();
  for (const Register v : load_neighbours(b, a, from, 0, "u8", count, group))
    sum = b.op("add.s32", {sum, v});
  store_result(b, sum);
  add_joining_site(b, "composite", "sum of bytes", {group});
  b.kernel.sites.back().has_evidence = false;
}

constexpr SiteKind bytes[] = {{"composite", "SAD", differences},
                              {"composite", "dot product of bytes", products},
                              {"composite", "bytes alike", bytes_alike},
                              {"composite", "clamp and pack", clamp_and_pack},
                              {"composite", "sum of bytes", byte_sum}};

// Two or four neighbouring halves with the same operations.
void half_pairs(Builder& b) {
  const uint32_t x = b.pointer(2), y = b.pointer(2), out = b.pointer(2);
  const unsigned count = b.random.one_in(2) ? 2 : 4;
  const Register t = b.global_thread();
  const Register from = b.address(x, t, 2 * count), from2 = b.address(y, t, 2 * count),
                 to = b.address(out, t, 2 * count);
  Group first, second, stores;
  const std::vector<Register> u = load_neighbours(b, x, from, 0, "b16", count, first);
  const std::vector<Register> v = load_neighbours(b, y, from2, 0, "b16", count, second);
  const size_t what = b.random.below(4);
  std::vector<Register> results;
  for (size_t i = 0; i < count; ++i)
    results.push_back(what == 0   ? b.op("fma.rn.f16", {u[i], v[i], v[i]})
                      : what == 1 ? b.op("add.f16", {u[i], v[i]})
                      : what == 2 ? b.op("mul.f16", {b.op("sub.f16", {u[i], v[i]}), v[i]})
                                  : b.op("max.f16", {u[i], v[i]}));
  store_neighbours(b, out, to, 0, "b16", results, stores);
  add_joining_site(b, "packed", "f16 pairs", {first, second, stores});
  b.kernel.sites.back().has_evidence = false;
}

// Halves whose arithmetic is in f32.
void half_through_float(Builder& b) {
  const uint32_t x = b.pointer(2), y = b.pointer(2), out = b.pointer(2);
  const Register t = b.global_thread();
  const Register from = b.address(x, t, 4), from2 = b.address(y, t, 4), to = b.address(out, t, 4);
  Group first, second, stores;
  const std::vector<Register> u = load_neighbours(b, x, from, 0, "b16", 2, first);
  const std::vector<Register> v = load_neighbours(b, y, from2, 0, "b16", 2, second);
  const char* names[] = {"mul.rn.f32", "add.rn.f32", "sub.rn.f32", "div.rn.f32", "max.f32"};
  const char* name = b.random.pick(names);
  std::vector<Register> results;
  for (size_t i = 0; i < 2; ++i) {
    const Register one = b.op("cvt.f32.f16", {u[i]}), other = b.op("cvt.f32.f16", {v[i]});
    results.push_back(b.op("cvt.rn.f16.f32", {b.op(name, {one, other})}));
  }
  store_neighbours(b, out, to, 0, "b16", results, stores);
  add_joining_site(b, "packed", "half through float", {first, second, stores});
  b.kernel.sites.back().has_evidence = false;
}

// Chains of fused multiply-adds, equal in two or four lanes; f32x2 if the target has it.
void float_pairs(Builder& b) {
  b.kernel.target = "sm_100";
  const uint32_t x = b.pointer(4), y = b.pointer(4), out = b.pointer(4);
  const unsigned count = b.random.one_in(2) ? 2 : 4;
  const Register t = b.global_thread();
  const Register from = b.address(x, t, 4 * count), from2 = b.address(y, t, 4 * count),
                 to = b.address(out, t, 4 * count);
  Group first, second, stores;
  const std::vector<Register> u = load_neighbours(b, x, from, 0, "f32", count, first);
  const std::vector<Register> v = load_neighbours(b, y, from2, 0, "f32", count, second);
  std::vector<Register> results = u;
  const bool flushes = b.random.one_in(4);
  for (size_t step = 0; step < 3; ++step) {
    const size_t what = b.random.below(3);
    for (size_t i = 0; i < count; ++i)
      results[i] = what == 0   ? b.op(flushes ? "fma.rn.ftz.f32" : "fma.rn.f32", {results[i], u[i], v[i]})
                   : what == 1 ? b.op(flushes ? "add.rn.ftz.f32" : "add.rn.f32", {results[i], v[i]})
                               : b.op(flushes ? "mul.rn.ftz.f32" : "mul.rn.f32", {results[i], v[i]});
  }
  store_neighbours(b, out, to, 0, "f32", results, stores);
  add_joining_site(b, "packed", "f32 pairs", {first, second, stores});
  b.kernel.sites.back().has_evidence = false;
}

constexpr SiteKind packed[] = {{"packed", "f16 pairs", half_pairs},
                               {"packed", "half through float", half_through_float},
                               {"packed", "f32 pairs", float_pairs}};

} // namespace

std::span<const SiteKind> byte_sites() {
  return bytes;
}
std::span<const SiteKind> packed_sites() {
  return packed;
}

} // namespace ptxrewrite::fuzz::launchtime
