// 64-bit index arithmetic, and signed division: correct in 32 bits, or unsigned, in most launches.
#include "tests/fuzz/launchtime/sites.h"

#include <algorithm>

namespace ptxrewrite::fuzz::launchtime {

namespace {

constexpr uint64_t two31 = uint64_t(1) << 31, two32 = uint64_t(1) << 32, two63 = uint64_t(1) << 63;

// Whether all 64-bit numbers at nodes in [first, end) fit 32 bits and are not negative.
std::function<bool(const Trace&)> fits(uint32_t first, uint32_t end) {
  return [=](const Trace& trace) {
    return std::all_of(trace.nodes.begin() + first, trace.nodes.begin() + end, [](const NodeTrace& node) {
      return node.executions == 0 || (node.fits_u32 && node.fits_s32 && !node.has_zero_divisor);
    });
  };
}

// The same for sites whose 64-bit division must be kept if a number is larger.
void add_division_site(Builder& b, const char* idiom, uint32_t first, uint32_t end, std::vector<uint32_t> divisions) {
  PatternSite& site = b.kernel.sites.emplace_back();
  site.family = "narrow";
  site.idiom = idiom;
  site.evidence = Evidence::wide_division;
  site.has_evidence = true;
  site.sufficient = fits(first, end);
  site.necessary = [divisions](const Trace& trace) {
    const auto all = [&](auto test) {
      return std::ranges::all_of(divisions, [&](uint32_t id) { return test(trace.nodes[id]); });
    };
    return all([](const NodeTrace& node) { return node.fits_u32; }) ||
           all([](const NodeTrace& node) { return node.fits_s32; });
  };
}

Register wide(Builder& b, Register narrow, bool is_signed) {
  return b.op(is_signed ? "cvt.s64.s32" : "cvt.u64.u32", {narrow});
}

// Both halves of a division's result, so that no bit is lost.
void wide_division(Builder& b) {
  const bool is_signed = b.random.one_in(2);
  const std::string suffix = is_signed ? ".s64" : ".u64";
  const uint32_t offset = b.number('d'), divisor = b.number('d');
  std::vector<uint64_t> far = {two31 - 40, two31 - 1, two31, two32 - 40, two32 - 1, two32, two63, two63 - 1};
  if (is_signed) far.insert(far.end(), {uint64_t(-1), uint64_t(-40), uint64_t(0) - two31, uint64_t(0) - two31 - 9});
  fill_number(b, offset, {0, 3, 1000, 65536}, far);
  std::vector<uint64_t> divisors = {0, two31 - 1, two31, two32 - 1, two32, two32 + 1, 1ull << 40, two63};
  if (is_signed) divisors.insert(divisors.end(), {uint64_t(-1), uint64_t(-7), uint64_t(0) - two31});
  fill_number(b, divisor, {1, 2, 3, 7, 32, 100, 641}, divisors);
  const uint32_t first = b.kernel.node_count;
  const Register i = b.op("add.s64", {wide(b, b.global_thread(), is_signed), b.parameter(offset)});
  std::vector<uint32_t> divisions;
  const Register result = b.fresh('d');
  b.assign(result, "mov.b64", {uint64_t(11)});
  const auto divide = [&] {
    const Register q = b.op("div" + suffix, {i, b.parameter(divisor)});
    divisions.push_back(b.last_id());
    Register r = q;
    if (b.random.one_in(2)) {
      r = b.op("rem" + suffix, {i, b.parameter(divisor)});
      divisions.push_back(b.last_id());
    }
    b.assign(result, "xor.b64", {q, r});
  };
  if (b.random.one_in(2))
    b.branch(b.op("setp.ne.s64", {b.parameter(divisor), uint64_t(0)}), false, divide);
  else
    divide();
  const uint32_t end = b.kernel.node_count;
  store_result(b, result);
  add_division_site(b, "64-bit division", first, end, divisions);
}

// i = y * ld + x + first, compared with a bound.
void two_dimensions(Builder& b) {
  const bool is_signed = b.random.one_in(2);
  const uint32_t ld = b.number('d'), first = b.number('d'), bound = b.number('d');
  fill_number(b, ld, {1, 32, 100, 1 << 20}, {two31 - 1, two31, two32 - 1, two32, uint64_t(-1), uint64_t(1) << 62});
  fill_number(b, first, {0, 5, 4096}, {two31 - 20, two32 - 20, two32, uint64_t(-5), uint64_t(0) - two31});
  fill_number(b, bound, {50, 1000, 1 << 24}, {0, two31 - 1, two31, two32 - 1, two32, uint64_t(-1)});
  const uint32_t begin = b.kernel.node_count;
  const Register x = wide(b, b.thread(), is_signed), y = wide(b, b.special("%ctaid.x"), is_signed);
  Register i;
  if (b.random.one_in(2))
    i = b.op("mad.lo.s64", {y, b.parameter(ld), x});
  else
    i = b.op("add.s64", {b.op("mul.lo.s64", {y, b.parameter(ld)}), x});
  i = b.op("add.s64", {i, b.parameter(first)});
  const Register inside = b.op(is_signed ? "setp.lt.s64" : "setp.lt.u64", {i, b.parameter(bound)});
  const uint32_t end = b.kernel.node_count;
  const Register flag = b.op("selp.b32", {uint64_t(1), uint64_t(2), inside});
  // A small table, indexed by the low bits; all bits are stored as a number.
  const uint32_t table = b.pointer(4);
  const Register low = b.op("cvt.u32.u64", {b.op("and.b64", {i, uint64_t(31)})});
  const Register v = b.load(table, b.address(table, low, 4), 0, "u32");
  store_result(b, b.op("mad.lo.s32", {v, uint64_t(3), flag}));
  store_result(b, i);
  add_plain_site(b, "narrow", "2-D index", fits(begin, end));
}

// for (size_t i = start + t; i < end; i += step)
void wide_counter(Builder& b) {
  const uint32_t start = b.number('d'), step = b.number('d'), stop = b.number('d');
  b.fill([=](Random& random, Mood mood, Launch& launch) {
    const uint64_t plain[] = {0, 7, 4096}, edges[] = {two31 - 50, two31, two32 - 50, two32 - 1, two32, two63 / 2, 0};
    const uint64_t steps[] = {launch.threads(), 1, 64}, far_steps[] = {two31, two32, two32 - 1, 3};
    launch.arguments[start] = mood == Mood::plain ? random.pick(plain) : random.pick(edges);
    launch.arguments[step] = mood == Mood::plain || random.one_in(2) ? random.pick(steps) : random.pick(far_steps);
    launch.arguments[stop] = launch.arguments[start] + random.below(5) * launch.arguments[step] + random.below(2);
  });
  const bool is_signed = b.random.one_in(2);
  const char* less = is_signed ? "setp.lt.s64" : "setp.lt.u64";
  const uint32_t first = b.kernel.node_count;
  const Register i = b.fresh('d'), sum = b.fresh('d');
  b.assign(i, "add.s64", {wide(b, b.global_thread(), false), b.parameter(start)});
  const uint32_t after_start = b.kernel.node_count;
  b.assign(sum, "mov.b64", {uint64_t(0)});
  uint32_t counting = 0;
  b.branch(b.op(less, {i, b.parameter(stop)}), false, [&] {
    b.loop([&] {
      b.assign(sum, "mad.lo.s64", {sum, uint64_t(31), i});
      b.assign(i, "add.s64", {i, b.parameter(step)});
      counting = b.last_id();
      return b.op(less, {i, b.parameter(stop)});
    });
  });
  store_result(b, sum);
  const auto start_fits = fits(first, after_start), counter_fits = fits(counting, counting + 1);
  add_plain_site(b, "narrow", "64-bit loop counter",
                 [=](const Trace& trace) { return start_fits(trace) && counter_fits(trace); });
}

// if (i < n * m) row = i / m, column = i - row * m
void checked_matrix(Builder& b) {
  const bool is_signed = b.random.one_in(2);
  const uint32_t n = b.number('d'), m = b.number('d');
  fill_number(b, n, {3, 8, 100}, {65536, 65537, two31, two32, uint64_t(-3), 0});
  fill_number(b, m, {1, 5, 16, 100}, {65536, 65535, two31 - 1, two32 - 1, two32, uint64_t(-2)});
  const uint32_t first = b.kernel.node_count;
  const Register i = wide(b, b.global_thread(), is_signed);
  const Register size = b.op("mul.lo.s64", {b.parameter(n), b.parameter(m)});
  const Register outside = b.op(is_signed ? "setp.ge.s64" : "setp.ge.u64", {i, size});
  const Register result = b.fresh('d');
  b.assign(result, "mov.b64", {uint64_t(1)});
  uint32_t division = 0;
  b.branch(outside, true, [&] {
    const Register row = b.op(is_signed ? "div.s64" : "div.u64", {i, b.parameter(m)});
    division = b.last_id();
    const Register column = b.op("sub.s64", {i, b.op("mul.lo.s64", {row, b.parameter(m)})});
    b.assign(result, "mad.lo.s64", {column, uint64_t(1000), row});
  });
  const uint32_t end = b.kernel.node_count;
  store_result(b, result);
  add_division_site(b, "n*m test and division", first, end, {division});
}

// Signed division and remainder of an index by a literal.
void signed_division(Builder& b) {
  const uint32_t offset = b.number('r');
  fill_number(b, offset, {0, 1, 1000}, {two31 - 1, two31 - 40, two31, uint64_t(-1), uint64_t(-33)});
  const uint64_t divisors[] = {2, 32, 8, 3, 5, 7, 10, 1000, two31 - 1};
  const uint64_t divisor = b.random.pick(divisors);
  const Register i = b.random.one_in(3) ? b.thread() : b.op("add.s32", {b.global_thread(), b.parameter(offset)});
  const Register q = b.op("div.s32", {i, divisor});
  const uint32_t division = b.last_id();
  const Register r = b.op("rem.s32", {i, divisor});
  store_result(b, b.op("mad.lo.s32", {r, uint64_t(4099), q}));
  add_plain_site(b, "narrow", "signed division",
                 [=](const Trace& trace) { return !trace.nodes[division].has_negative; });
}

// 0 <= x && x < w
void inside_test(Builder& b) {
  const uint32_t offset = b.number('r'), width = b.number('r');
  fill_number(b, offset, {0, 3}, {two31 - 3, two31, uint64_t(-1), uint64_t(-5)});
  fill_number(b, width, {16, 100}, {0, 1, two31 - 1, two31, uint64_t(-1), uint64_t(-2)});
  const Register x = b.op("add.s32", {b.global_thread(), b.parameter(offset)});
  const Register low = b.op("setp.ge.s32", {x, uint64_t(0)});
  const Register limit = b.op("mov.u32", {b.parameter(width)});
  const uint32_t limit_read = b.last_id();
  const Register both = b.op("setp.lt.and.s32", {x, limit, low});
  store_result(b, b.op("selp.b32", {uint64_t(5), uint64_t(6), both}));
  // Below a negative limit as an unsigned number are numbers that are not below it.
  add_plain_site(b, "small", "inside test", [=](const Trace& trace) { return !trace.nodes[limit_read].has_negative; });
}

// Counts bits of lower lanes.
void lanes_below(Builder& b) {
  const Register t = b.global_thread();
  const uint32_t a = b.pointer(4);
  const Register word = b.load(a, b.address(a, t, 4), 0, "u32");
  const Register lane = b.random.one_in(2) ? b.special("%laneid") : b.op("and.b32", {b.thread(), uint64_t(31)});
  const Register mask = b.op("sub.s32", {b.op("shl.b32", {b.op("mov.u32", {uint64_t(1)}), lane}), uint64_t(1)});
  store_result(b, b.op("popc.b32", {b.op("and.b32", {word, mask})}));
  add_plain_site(b, "small", "lanes below", [](const Trace&) { return true; });
}

constexpr SiteKind kinds[] = {{"narrow", "64-bit division", wide_division},
                              {"narrow", "2-D index", two_dimensions},
                              {"narrow", "64-bit loop counter", wide_counter},
                              {"narrow", "n*m test and division", checked_matrix},
                              {"narrow", "signed division", signed_division},
                              {"small", "inside test", inside_test},
                              {"small", "lanes below", lanes_below}};

} // namespace

std::span<const SiteKind> index_sites() {
  return kinds;
}

} // namespace ptxrewrite::fuzz::launchtime
