// Divisions by launch-uniform numbers.
#include "tests/fuzz/kernels/kernel_operations.h"
#include "tests/fuzz/launchtime/sites.h"

#include <algorithm>
#include <bit>

namespace ptxrewrite::fuzz::launchtime {

namespace {

constexpr uint64_t two31 = uint64_t(1) << 31, two32 = uint64_t(1) << 32;

const std::vector<uint64_t> plain_divisors = {1, 2, 3, 5, 7, 10, 16, 100, 641, 1024};
const std::vector<uint64_t> edge_divisors = {0,         two31 - 1, two31, two31 + 1, two32 - 1,
                                             two32 - 2, 65535,     65537, 6700417};

std::vector<uint32_t> divisions_of(const Builder& b) {
  std::vector<uint32_t> divisions;
  const std::function<void(const std::vector<Node>&)> collect = [&](const std::vector<Node>& nodes) {
    for (const Node& node : nodes) {
      if (node.kind == Node::Kind::operation) {
        const std::string& text = operations()[node.operation].text;
        if (text.starts_with("div.") || text.starts_with("rem.")) divisions.push_back(node.id);
      }
      collect(node.body);
    }
  };
  collect(b.kernel.body);
  return divisions;
}

// A site whose rewrite needs that no divisor is 0, and no dividend or divisor is negative: the minimal condition for
// forms of division that are cheaper than the general one.
void add_division_site(Builder& b, const char* idiom) {
  const std::vector<uint32_t> divisions = divisions_of(b);
  add_plain_site(b, "divisor", idiom, [divisions](const Trace& trace) {
    return std::ranges::none_of(
        divisions, [&](uint32_t id) { return trace.nodes[id].has_zero_divisor || trace.nodes[id].has_negative; });
  });
  b.kernel.sites.back().is_idle = [divisions](const Trace& trace) {
    return std::ranges::all_of(divisions, [&](uint32_t id) { return trace.nodes[id].executions == 0; });
  };
}

// An index near 0, 2^31 or 2^32.
Register shifted_thread(Builder& b) {
  const uint32_t offset = b.number('r');
  fill_number(b, offset, {0, 1, 12345}, {two31 - 20, two31, two32 - 20, two32 - 1, 0x55555555});
  return b.op("add.s32", {b.global_thread(), b.parameter(offset)});
}

uint32_t divisor_parameter(Builder& b) {
  const uint32_t divisor = b.number('r');
  fill_number(b, divisor, plain_divisors, edge_divisors);
  return divisor;
}

// Writes `body` after a test of the divisor, or without one.
void maybe_guarded(Builder& b, uint32_t divisor, const std::function<void()>& body) {
  if (b.random.one_in(3))
    b.branch(b.op("setp.eq.s32", {b.parameter(divisor), uint64_t(0)}), true, body);
  else
    body();
}

// w = i % W, h = (i / W) % H, c = (i / (W * H)) % C, n = i / (W * H * C)
void four_dimensions(Builder& b) {
  const std::string suffix = b.random.one_in(2) ? ".s32" : ".u32";
  const Register i = shifted_thread(b);
  const Register w = b.parameter(divisor_parameter(b)), h = b.parameter(divisor_parameter(b)),
                 c = b.parameter(divisor_parameter(b));
  const Register area = b.op("mul.lo.s32", {w, h}), volume = b.op("mul.lo.s32", {area, c});
  const Register x = b.op("rem" + suffix, {i, w});
  const Register y = b.op("rem" + suffix, {b.op("div" + suffix, {i, w}), h});
  const Register z = b.op("rem" + suffix, {b.op("div" + suffix, {i, area}), c});
  const Register n = b.op("div" + suffix, {i, volume});
  Register index = b.op("mad.lo.s32", {n, h, y});
  index = b.op("mad.lo.s32", {index, w, x});
  store_result(b, b.op("mad.lo.s32", {index, c, z}));
  add_division_site(b, "NCHW");
}

void row_and_column(Builder& b) {
  const std::string suffix = b.random.one_in(2) ? ".s32" : ".u32";
  const Register i = shifted_thread(b);
  const uint32_t w = divisor_parameter(b);
  const Register result = b.fresh('r');
  b.assign(result, "mov.u32", {uint64_t(3)});
  maybe_guarded(b, w, [&] {
    const Register row = b.op("div" + suffix, {i, b.parameter(w)});
    const Register column = b.random.one_in(2) ? b.op("rem" + suffix, {i, b.parameter(w)})
                                               : b.op("sub.s32", {i, b.op("mul.lo.s32", {row, b.parameter(w)})});
    b.assign(result, "mad.lo.s32", {column, uint64_t(65539), row});
  });
  store_result(b, result);
  add_division_site(b, "row and column");
}

// Divides data by a parameter: every bit pattern is a dividend. Two divisions, or (i + 1) % n.
void data_by_parameter(Builder& b) {
  const std::string suffix = b.random.one_in(2) ? ".s32" : ".u32";
  const Register t = b.global_thread();
  const uint32_t a = b.pointer(4), n = divisor_parameter(b);
  const Register from = b.address(a, t, 8);
  const Register first = b.load(a, from, 0, "u32"), second = b.load(a, from, 4, "u32");
  const Register result = b.fresh('r');
  b.assign(result, "mov.u32", {uint64_t(3)});
  maybe_guarded(b, n, [&] {
    const Register one = b.op("div" + suffix, {first, b.parameter(n)});
    const Register other = b.op("rem" + suffix, {b.op("add.s32", {second, uint64_t(1)}), b.parameter(n)});
    b.assign(result, "mad.lo.s32", {other, uint64_t(65539), one});
  });
  store_result(b, result);
  add_division_site(b, "data");
}

void wide_data_by_parameter(Builder& b) {
  const std::string suffix = b.random.one_in(2) ? ".s64" : ".u64";
  const uint32_t n = b.number('d'), a = b.pointer(8);
  std::vector<uint64_t> edges = edge_divisors;
  edges.insert(edges.end(), {two32, two32 + 1, uint64_t(1) << 63, (uint64_t(1) << 63) - 1, uint64_t(-1)});
  fill_number(b, n, plain_divisors, edges);
  const Register v = b.load(a, b.address(a, b.global_thread(), 8), 0, "u64");
  const Register q = b.op("div" + suffix, {v, b.parameter(n)}), r = b.op("rem" + suffix, {v, b.parameter(n)});
  store_result(b, b.op("mad.lo.s64", {r, uint64_t(1000003), q}));
  add_division_site(b, "64-bit data");
}

// f32 by a constant, for normal and subnormal numbers, infinities and NaNs.
void float_by_constant(Builder& b) {
  const float constants[] = {3.0f, 7.0f, 255.0f, 10.0f, 0.1f, 1.5f, 6.0f, 4.0f, -3.0f, 1e-40f, 3e38f};
  const uint32_t a = b.pointer(4), special = b.number('r');
  fill_number(b, special, {0}, {0x7f800000, 0x7f000000, 0x00400000, 0x80000000});
  const Register bits = b.load(a, b.address(a, b.global_thread(), 4), 0, "u32");
  const Register v = b.fresh('f');
  b.assign(v, "mov.b32", {b.op("or.b32", {bits, b.parameter(special)})});
  const uint64_t divisor = std::bit_cast<uint32_t>(b.random.pick(constants));
  store_result(b, b.op("div.rn.f32", {v, divisor}));
  add_plain_site(b, "divisor", "f32 by constant", [](const Trace&) { return true; });
}

constexpr SiteKind kinds[] = {{"divisor", "NCHW", four_dimensions},
                              {"divisor", "row and column", row_and_column},
                              {"divisor", "data", data_by_parameter},
                              {"divisor", "64-bit data", wide_data_by_parameter},
                              {"divisor", "f32 by constant", float_by_constant}};

} // namespace

std::span<const SiteKind> divisor_sites() {
  return kinds;
}

} // namespace ptxrewrite::fuzz::launchtime
