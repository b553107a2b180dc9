#include "evaluate/prove/bounds.h"

#include <algorithm>

namespace ptxrewrite::prove {

namespace {

constexpr unsigned exact_width = 128;

} // namespace

bool within(const ir::Interval& inner, const ir::Interval& outer) {
  return inner.low >= outer.low && inner.high <= outer.high;
}

std::optional<ir::Interval> product(const ir::Interval& a, const ir::Interval& b) {
  ir::Int128 corner[4];
  if (__builtin_mul_overflow(a.low, b.low, &corner[0]) || __builtin_mul_overflow(a.low, b.high, &corner[1]) ||
      __builtin_mul_overflow(a.high, b.low, &corner[2]) || __builtin_mul_overflow(a.high, b.high, &corner[3]))
    return std::nullopt;
  return ir::Interval{*std::min_element(corner, corner + 4), *std::max_element(corner, corner + 4)};
}

std::optional<ir::Interval> sum(const ir::Interval& a, const ir::Interval& b) {
  ir::Interval result;
  if (__builtin_add_overflow(a.low, b.low, &result.low) || __builtin_add_overflow(a.high, b.high, &result.high))
    return std::nullopt;
  return result;
}

void Bounds::limit(AtomId leaf, uint64_t most) {
  auto [row, is_new] = limits_.try_emplace(leaf, most);
  if (!is_new) row->second = std::min(row->second, most);
  known_.clear();
}

void Bounds::set_limits(std::map<AtomId, uint64_t> limits) {
  limits_ = std::move(limits);
  known_.clear();
}

// Indices, dimensions and explicitly limited leaves; other unknowns are unbounded.
std::optional<ir::Interval> Bounds::of_leaf(AtomId id) const {
  if (auto limited = limits_.find(id); limited != limits_.end())
    return ir::Interval{0, static_cast<ir::Int128>(limited->second)};
  const Atom& atom = terms_.atom(id);
  const std::string& name = atom.name;
  if (atom.width != 32 || name.size() < 3 || name[name.size() - 2] != '.') return std::nullopt;
  const size_t component = std::string_view("xyz").find(name.back());
  if (component == std::string_view::npos) return std::nullopt;
  const std::string_view kind = std::string_view(name).substr(0, name.size() - 2);
  const auto threads = static_cast<ir::Int128>(size_.block[component]);
  const auto blocks = static_cast<ir::Int128>(size_.grid[component]);
  if (kind == "%tid") return ir::Interval{0, threads - 1};
  if (kind == "%ntid") return ir::Interval{1, threads};
  if (kind == "%ctaid") return ir::Interval{0, blocks - 1};
  if (kind == "%nctaid") return ir::Interval{1, blocks};
  return std::nullopt;
}

// Operations with a small result for all operands.
std::optional<ir::Interval> Bounds::of_operation(TermId narrow, bool is_signed) {
  const auto id = terms_.as_atom(narrow);
  if (!id) return std::nullopt;
  const Atom row = terms_.atom(*id);
  if (row.kind != AtomKind::operation || row.operands.size() != 2) return std::nullopt;
  for (TermId operand : row.operands) {
    const auto literal = terms_.literal_value(operand);
    if (!literal) continue;
    if (row.name == "and" && (!is_signed || as_signed(*literal, row.width) >= 0))
      return ir::Interval{0, static_cast<ir::Int128>(*literal)};
    if (row.name == "umin" && (!is_signed || as_signed(*literal, row.width) >= 0))
      return ir::Interval{0, static_cast<ir::Int128>(*literal)};
    if (row.name == "lshr" && operand == row.operands[1] && *literal > 0 && *literal < row.width)
      return ir::Interval{0, static_cast<ir::Int128>((UInt128(1) << (row.width - unsigned(*literal))) - 1)};
  }
  return std::nullopt;
}

std::optional<ir::Interval> Bounds::of_factor(AtomId id) {
  const Atom row = terms_.atom(id);
  if (row.kind != AtomKind::sign_extend && row.kind != AtomKind::zero_extend) return std::nullopt;
  const bool is_signed = row.kind == AtomKind::sign_extend;
  const TermId inner = row.operands[0];
  const unsigned width = terms_.width(inner);
  const ir::Interval any = is_signed ? ir::signed_range(width) : ir::unsigned_range(width);
  if (const auto leaf = terms_.as_atom(inner); leaf && terms_.atom(*leaf).kind == AtomKind::leaf)
    return of_leaf(*leaf).value_or(any);
  if (auto small = of_operation(inner, is_signed)) return small;
  const TermId number = exact(inner, is_signed);
  if (terms_.as_atom(number) == std::optional(id)) return any; // nothing is known of its operands
  const auto bounds = of(number);
  return bounds && within(*bounds, any) ? *bounds : any;
}

std::optional<ir::Interval> Bounds::of(TermId exact) {
  if (auto done = known_.find(exact); done != known_.end()) return done->second;
  known_[exact] = std::nullopt;
  const Term term = terms_[exact];
  std::optional<ir::Interval> all = ir::Interval{0, 0};
  for (const auto& [monomial, coefficient] : term.coefficients) {
    const ir::Int128 factor = as_signed(coefficient, term.width);
    std::optional<ir::Interval> part = ir::Interval{factor, factor};
    for (AtomId atom : monomial) {
      auto next = of_factor(atom);
      part = part && next ? product(*part, *next) : std::nullopt;
    }
    all = all && part ? sum(*all, *part) : std::nullopt;
  }
  return known_[exact] = all;
}

TermId Bounds::exact(TermId narrow, bool is_signed) {
  const Term term = terms_[narrow];
  TermId total = terms_.literal(exact_width, 0);
  for (const auto& [monomial, coefficient] : term.coefficients) {
    TermId part = terms_.literal(exact_width, static_cast<UInt128>(as_signed(coefficient, term.width)));
    for (AtomId factor : monomial) {
      const AtomKind kind = terms_.atom(factor).kind;
      // Truncation does not change a small number.
      if (kind == AtomKind::truncate) {
        const auto whole = terms_.as_atom(terms_.atom(factor).operands[0]);
        const auto small = whole && terms_.atom(*whole).kind == AtomKind::leaf ? of_leaf(*whole) : std::nullopt;
        if (small && within(*small, ir::unsigned_range(term.width))) {
          part = terms_.multiply(part, terms_.zero_extend(terms_.from_atom(*whole), exact_width));
          continue;
        }
      }
      const bool as_signed_number = kind == AtomKind::sign_extend || (kind != AtomKind::zero_extend && is_signed);
      part = terms_.multiply(part, terms_.resize(terms_.from_atom(factor), exact_width, as_signed_number));
    }
    total = terms_.add(total, part);
  }
  return total;
}

} // namespace ptxrewrite::prove
