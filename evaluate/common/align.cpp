// Aligns by anchors: the longest increasing sequence of keys that are unique on both sides, then recursively between
// adjacent anchors. Without anchors, dynamic programming gives the longest common subsequence.
#include "evaluate/common/align.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace ptxrewrite::evaluate {

namespace {

constexpr size_t table_limit = 4u << 20; // table cells of the quadratic algorithm

struct Segment {
  uint32_t a_begin, a_end, b_begin, b_end;
  bool empty() const { return a_begin == a_end || b_begin == b_end; }
};

// The longest chain of pairs that increases in both members; `pairs` must be sorted by the first member.
Matches longest_increasing(const Matches& pairs) {
  std::vector<uint32_t> tails, previous(pairs.size(), UINT32_MAX);
  for (uint32_t i = 0; i < pairs.size(); ++i) {
    auto place = std::lower_bound(tails.begin(), tails.end(), pairs[i].second,
                                  [&](uint32_t tail, uint32_t wanted) { return pairs[tail].second < wanted; });
    if (place != tails.begin()) previous[i] = *(place - 1);
    if (place == tails.end())
      tails.push_back(i);
    else
      *place = i;
  }
  Matches chain;
  for (uint32_t i = tails.empty() ? UINT32_MAX : tails.back(); i != UINT32_MAX; i = previous[i])
    chain.push_back(pairs[i]);
  std::reverse(chain.begin(), chain.end());
  return chain;
}

class Matcher {
public:
  Matcher(std::span<const uint32_t> a, std::span<const uint32_t> b) : a_(a), b_(b) {}

  Matches run() {
    work_.push_back({0, static_cast<uint32_t>(a_.size()), 0, static_cast<uint32_t>(b_.size())});
    while (!work_.empty()) {
      Segment segment = work_.back();
      work_.pop_back();
      solve(segment);
    }
    std::sort(matches_.begin(), matches_.end());
    return std::move(matches_);
  }

private:
  void solve(Segment s) {
    while (!s.empty() && a_[s.a_begin] == b_[s.b_begin])
      matches_.emplace_back(s.a_begin++, s.b_begin++);
    while (!s.empty() && a_[s.a_end - 1] == b_[s.b_end - 1])
      matches_.emplace_back(--s.a_end, --s.b_end);
    if (s.empty()) return;
    Matches anchors = longest_increasing(unique_pairs(s));
    if (anchors.empty()) {
      if (size_t{s.a_end - s.a_begin} * (s.b_end - s.b_begin) <= table_limit) solve_by_table(s);
      return;
    }
    uint32_t a = s.a_begin, b = s.b_begin;
    for (auto [a_anchor, b_anchor] : anchors) {
      matches_.emplace_back(a_anchor, b_anchor);
      work_.push_back({a, a_anchor, b, b_anchor});
      a = a_anchor + 1;
      b = b_anchor + 1;
    }
    work_.push_back({a, s.a_end, b, s.b_end});
  }

  Matches unique_pairs(const Segment& s) const {
    struct Occurrence {
      uint32_t a_count = 0, b_count = 0, b_index = 0;
    };
    std::unordered_map<uint32_t, Occurrence> occurrences;
    for (uint32_t i = s.a_begin; i < s.a_end; ++i)
      ++occurrences[a_[i]].a_count;
    for (uint32_t i = s.b_begin; i < s.b_end; ++i) {
      Occurrence& occurrence = occurrences[b_[i]];
      ++occurrence.b_count;
      occurrence.b_index = i;
    }
    Matches pairs;
    for (uint32_t i = s.a_begin; i < s.a_end; ++i) {
      const Occurrence& occurrence = occurrences[a_[i]];
      if (occurrence.a_count == 1 && occurrence.b_count == 1) pairs.emplace_back(i, occurrence.b_index);
    }
    return pairs;
  }

  void solve_by_table(const Segment& s) {
    uint32_t rows = s.a_end - s.a_begin, columns = s.b_end - s.b_begin;
    // length[i][j]: length of the longest common subsequence of the suffixes at i and j.
    std::vector<uint32_t> length(size_t{rows + 1} * (columns + 1), 0);
    auto at = [&](uint32_t i, uint32_t j) -> uint32_t& { return length[size_t{i} * (columns + 1) + j]; };
    for (uint32_t i = rows; i-- > 0;)
      for (uint32_t j = columns; j-- > 0;)
        at(i, j) = a_[s.a_begin + i] == b_[s.b_begin + j] ? at(i + 1, j + 1) + 1 : std::max(at(i + 1, j), at(i, j + 1));
    for (uint32_t i = 0, j = 0; i < rows && j < columns;) {
      if (a_[s.a_begin + i] == b_[s.b_begin + j])
        matches_.emplace_back(s.a_begin + i++, s.b_begin + j++);
      else if (at(i + 1, j) >= at(i, j + 1))
        ++i;
      else
        ++j;
    }
  }

  std::span<const uint32_t> a_, b_;
  std::vector<Segment> work_;
  Matches matches_;
};

// Assigns numbers to texts, equal numbers to equal texts.
class Numbering {
public:
  uint32_t of(std::string text) {
    return numbers_.try_emplace(std::move(text), static_cast<uint32_t>(numbers_.size())).first->second;
  }
  uint32_t fresh() { return of("\n" + std::to_string(numbers_.size())); }

private:
  std::unordered_map<std::string, uint32_t> numbers_;
};

std::string_view mnemonic(std::string_view text) {
  if (text.starts_with('@')) {
    size_t blank = text.find(' ');
    text = blank == std::string_view::npos ? text : text.substr(blank + 1);
  }
  return text.substr(0, text.find_first_of(" ;"));
}

// The text without register numbers: `%r12` -> `%r`.
std::string without_register_numbers(std::string_view text) {
  std::string out;
  bool in_register = false;
  for (char c : text) {
    bool digit = c >= '0' && c <= '9';
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
    if (c == '%')
      in_register = true;
    else if (!digit && !letter)
      in_register = false;
    if (!(in_register && digit)) out += c;
  }
  return out;
}

template <class KeyOf>
std::vector<uint32_t> keys_of(std::span<const ListingLine> lines, Numbering& numbering, KeyOf&& key_of) {
  std::vector<uint32_t> keys;
  keys.reserve(lines.size());
  for (const ListingLine& line : lines)
    keys.push_back(numbering.of(std::string(key_of(line))));
  return keys;
}

// Adds matches by a weaker key between the existing matches.
template <class KeyOf>
void refine(Matches& matches, std::span<const ListingLine> left, std::span<const ListingLine> right, KeyOf&& key_of) {
  Numbering numbering;
  std::vector<uint32_t> a = keys_of(left, numbering, key_of), b = keys_of(right, numbering, key_of);
  Matches old = std::exchange(matches, {});
  old.emplace_back(static_cast<uint32_t>(left.size()), static_cast<uint32_t>(right.size()));
  uint32_t a_begin = 0, b_begin = 0;
  for (auto [a_end, b_end] : old) {
    for (auto [i, j] : common_subsequence(std::span(a).subspan(a_begin, a_end - a_begin),
                                          std::span(b).subspan(b_begin, b_end - b_begin)))
      matches.emplace_back(a_begin + i, b_begin + j);
    if (a_end < left.size() && b_end < right.size()) matches.emplace_back(a_end, b_end);
    a_begin = a_end + 1;
    b_begin = b_end + 1;
  }
}

Matches match_by_text(std::span<const ListingLine> left, std::span<const ListingLine> right) {
  Matches matches;
  refine(matches, left, right, [](const ListingLine& line) { return line.text; });
  refine(matches, left, right, [](const ListingLine& line) { return without_register_numbers(line.text); });
  refine(matches, left, right, [](const ListingLine& line) { return mnemonic(line.text); });
  return matches;
}

// For each line of the right listing with a source instruction: is it the one to be shown beside that instruction? If a
// pass made several instructions from one, the most similar one is shown, and the others are insertions.
std::vector<bool> representatives(std::span<const ListingLine> left, std::span<const ListingLine> right) {
  std::unordered_map<uint32_t, const ListingLine*> originals;
  for (const ListingLine& line : left)
    if (line.provenance) originals.emplace(line.provenance.index(), &line);
  auto likeness = [](const ListingLine& original, const ListingLine& line) {
    if (original.text == line.text) return 2;
    return mnemonic(original.text) == mnemonic(line.text) ? 1 : 0;
  };
  std::unordered_map<uint32_t, std::pair<int, uint32_t>> best;
  for (uint32_t i = 0; i < right.size(); ++i) {
    if (!right[i].provenance) continue;
    auto original = originals.find(right[i].provenance.index());
    if (original == originals.end()) continue;
    std::pair<int, uint32_t> candidate{likeness(*original->second, right[i]), i};
    auto [place, is_new] = best.try_emplace(right[i].provenance.index(), candidate);
    if (!is_new && candidate.first > place->second.first) place->second = candidate;
  }
  std::vector<bool> chosen(right.size(), false);
  for (const auto& [provenance, candidate] : best)
    chosen[candidate.second] = true;
  return chosen;
}

struct ProvenanceMatch {
  Matches matches;
  std::vector<bool> left_moved, right_moved;
};

ProvenanceMatch match_by_provenance(std::span<const ListingLine> left, std::span<const ListingLine> right) {
  std::vector<bool> chosen = representatives(left, right);
  Numbering numbering;
  std::vector<uint32_t> a, b;
  auto key = [&](const ListingLine& line) {
    return line.provenance ? numbering.of("#" + std::to_string(line.provenance.index())) : numbering.of(line.text);
  };
  for (const ListingLine& line : left)
    a.push_back(key(line));
  for (size_t i = 0; i < right.size(); ++i)
    b.push_back(right[i].provenance && !chosen[i] ? numbering.fresh() : key(right[i]));
  ProvenanceMatch result{common_subsequence(a, b), std::vector<bool>(a.size()), std::vector<bool>(b.size())};

  std::unordered_map<uint32_t, uint32_t> unmatched;
  std::vector<bool> left_matched(a.size()), right_matched(b.size());
  for (auto [i, j] : result.matches)
    left_matched[i] = right_matched[j] = true;
  for (uint32_t i = 0; i < a.size(); ++i)
    if (left[i].provenance && !left_matched[i]) unmatched.emplace(left[i].provenance.index(), i);
  for (uint32_t j = 0; j < b.size(); ++j) {
    if (!chosen[j] || right_matched[j]) continue;
    auto partner = unmatched.find(right[j].provenance.index());
    if (partner == unmatched.end()) continue;
    result.left_moved[partner->second] = true;
    result.right_moved[j] = true;
  }
  return result;
}

} // namespace

Matches common_subsequence(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  return Matcher(a, b).run();
}

std::vector<AlignedLine> align(std::span<const ListingLine> left, std::span<const ListingLine> right, Alignment how) {
  ProvenanceMatch match;
  if (how == Alignment::provenance)
    match = match_by_provenance(left, right);
  else
    match = {match_by_text(left, right), std::vector<bool>(left.size()), std::vector<bool>(right.size())};

  std::vector<AlignedLine> rows;
  match.matches.emplace_back(static_cast<uint32_t>(left.size()), static_cast<uint32_t>(right.size()));
  uint32_t i = 0, j = 0;
  for (auto [i_end, j_end] : match.matches) {
    for (; i < i_end; ++i)
      rows.push_back({LineStatus::removed, i, AlignedLine::none, match.left_moved[i]});
    for (; j < j_end; ++j)
      rows.push_back({LineStatus::inserted, AlignedLine::none, j, match.right_moved[j]});
    if (i == left.size() && j == right.size()) break;
    rows.push_back({left[i].text == right[j].text ? LineStatus::kept : LineStatus::changed, i, j, false});
    ++i;
    ++j;
  }
  return rows;
}

DifferenceCounts count(std::span<const AlignedLine> rows, std::span<const ListingLine> left,
                       std::span<const ListingLine> right) {
  DifferenceCounts counts;
  for (const AlignedLine& row : rows) {
    bool in_left = row.left != AlignedLine::none && left[row.left].is_instruction;
    bool in_right = row.right != AlignedLine::none && right[row.right].is_instruction;
    counts.left += in_left;
    counts.right += in_right;
    counts.sections += in_right && right[row.right].in_section;
    if (!in_left && !in_right) continue;
    switch (row.status) {
    case LineStatus::kept:
      ++counts.kept;
      break;
    case LineStatus::changed:
      ++counts.changed;
      break;
    case LineStatus::removed:
      ++counts.removed;
      counts.moved += row.moved;
      break;
    case LineStatus::inserted:
      ++counts.inserted;
      break;
    }
  }
  return counts;
}

} // namespace ptxrewrite::evaluate
