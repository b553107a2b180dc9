#include "evaluate/prove/ledger.h"

#include "evaluate/prove/symbolic.h"

#include <optional>
#include <string_view>

namespace ptxrewrite::prove {

namespace {

std::optional<ir::Int128> read_integer(std::string_view text) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if (text.empty() || text.size() > 38) return std::nullopt;
  ir::Int128 value = 0;
  for (char digit : text) {
    if (digit < '0' || digit > '9') return std::nullopt;
    value = 10 * value + (digit - '0');
  }
  return is_negative ? -value : value;
}

} // namespace

std::vector<LedgerFact> read_ledger(Terms& terms, std::span<const transforms::Obligation> ledger,
                                    const std::function<std::optional<TermId>(const std::string&)>& name) {
  constexpr std::string_view at_most = " <= ", separator = "; ";
  std::vector<LedgerFact> facts;
  for (const transforms::Obligation& entry : ledger) {
    std::string_view rest = entry.exact;
    while (!rest.empty()) {
      const size_t end = rest.find(separator);
      const std::string_view one = rest.substr(0, end);
      rest = end == rest.npos ? std::string_view() : rest.substr(end + separator.size());
      const size_t first = one.find(at_most), last = one.rfind(at_most);
      if (first == one.npos || first == last) continue;
      const auto low = read_integer(one.substr(0, first)), high = read_integer(one.substr(last + at_most.size()));
      const size_t start = first + at_most.size();
      const auto value = exact_value(terms, one.substr(start, last - start), name);
      if (!low || !high || !value) continue;
      facts.push_back({{*value, {*low, *high}}, entry.discharge, entry.statement, entry.range});
    }
  }
  return facts;
}

} // namespace ptxrewrite::prove
