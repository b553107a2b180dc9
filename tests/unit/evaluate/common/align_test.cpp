// Alignment of listings: against the definition of a longest common subsequence by brute force, and on small listings
// with an obvious difference.
#include "evaluate/common/align.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace ptxrewrite::tests::align_test {

using namespace ptxrewrite;
using namespace ptxrewrite::evaluate;

namespace {

size_t longest_by_brute_force(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  size_t best = 0;
  for (uint32_t chosen = 0; chosen < 1u << a.size(); ++chosen) {
    size_t j = 0, length = 0;
    bool fits = true;
    for (size_t i = 0; i < a.size() && fits; ++i) {
      if (!(chosen >> i & 1)) continue;
      while (j < b.size() && b[j] != a[i])
        ++j;
      fits = j++ < b.size();
      ++length;
    }
    if (fits) best = std::max(best, length);
  }
  return best;
}

bool is_common_subsequence(const Matches& matches, const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) {
  for (size_t i = 0; i < matches.size(); ++i) {
    if (a[matches[i].first] != b[matches[i].second]) return false;
    if (i && (matches[i - 1].first >= matches[i].first || matches[i - 1].second >= matches[i].second)) return false;
  }
  return true;
}

ListingLine instruction(std::string text, uint32_t provenance) {
  ListingLine line{std::move(text)};
  if (provenance != UINT32_MAX) line.provenance = ir::ProvenanceId(provenance);
  line.is_instruction = line.indented = true;
  return line;
}

// "=" kept, "~" changed, "-" removed, "+" inserted; "<" and ">" the two ends of a move.
std::string shape(const std::vector<AlignedLine>& rows) {
  std::string text;
  for (const AlignedLine& row : rows) {
    switch (row.status) {
    case LineStatus::kept:
      text += '=';
      break;
    case LineStatus::changed:
      text += '~';
      break;
    case LineStatus::removed:
      text += row.moved ? '<' : '-';
      break;
    case LineStatus::inserted:
      text += row.moved ? '>' : '+';
      break;
    }
  }
  return text;
}

constexpr uint32_t none = UINT32_MAX;

} // namespace

TEST_CASE("matches are a common subsequence, and the longest one where keys repeat") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::vector<uint32_t> a(random() % 10), b(random() % 10);
    // Each key twice per side: no anchors, so only the table decides.
    for (uint32_t& key : a)
      key = random() % 3;
    for (uint32_t& key : b)
      key = random() % 3;
    Matches matches = common_subsequence(a, b);
    CHECK(is_common_subsequence(matches, a, b));
    bool anchored = false;
    for (uint32_t key = 0; key < 3; ++key)
      anchored |= std::count(a.begin(), a.end(), key) == 1 && std::count(b.begin(), b.end(), key) == 1;
    if (!anchored) CHECK(matches.size() == longest_by_brute_force(a, b));
  }
}

TEST_CASE("distinct keys give the longest increasing run, however long") {
  std::vector<uint32_t> a(50000), b;
  for (uint32_t i = 0; i < a.size(); ++i)
    a[i] = i;
  b = a;
  std::reverse(b.begin() + 1000, b.begin() + 2000); // 999 of these 1000 cannot be matched
  Matches matches = common_subsequence(a, b);
  CHECK(is_common_subsequence(matches, a, b));
  CHECK(matches.size() == a.size() - 999);
}

TEST_CASE("nothing in common") {
  std::vector<uint32_t> a{1, 2, 3}, b{4, 5}, empty;
  CHECK(common_subsequence(a, b).empty());
  CHECK(common_subsequence(a, empty).empty());
  CHECK(common_subsequence(empty, empty).empty());
}

TEST_CASE("provenance tells changed from removed and inserted, and finds moves") {
  std::vector<ListingLine> left{instruction("shl.b32 %r1, %r0, 2;", 0), instruction("add.s32 %r2, %r1, 4;", 1),
                                instruction("ld.global.f32 %f1, [%rd1];", 2), instruction("ret;", 3)};
  std::vector<ListingLine> right{instruction("add.s32 %r9, %r1, 4;", 1), instruction("shl.b32 %r1, %r0, 2;", 0),
                                 instruction("mov.u32 %r7, 1;", none), instruction("ret;", 3)};
  std::vector<AlignedLine> rows = align(left, right, Alignment::provenance);
  std::string found = shape(rows);
  // Either the shift or the addition is kept; the other one moves.
  CHECK_MESSAGE((found == "<~>-+=" || found == ">=<-+=" || found == "<~->+="), found);
  DifferenceCounts counts = count(rows, left, right);
  CHECK(counts.left == 4);
  CHECK(counts.right == 4);
  CHECK(counts.moved == 1);
  CHECK(counts.removed == 2);
  CHECK(counts.inserted == 2);
}

TEST_CASE("of several instructions made from one, the likest stands beside it") {
  std::vector<ListingLine> left{instruction("mad.lo.s32 %r1, %r2, %r3, %r4;", 0)};
  std::vector<ListingLine> right{instruction("mul.lo.s32 %r5, %r2, %r3;", 0),
                                 instruction("mad.lo.s32 %r1, %r2, %r3, %r9;", 0),
                                 instruction("add.s32 %r6, %r5, 1;", 0)};
  CHECK(shape(align(left, right, Alignment::provenance)) == "+~+");
}

TEST_CASE("texts align by equal lines, then by equal but for registers, then by mnemonic") {
  std::vector<ListingLine> left{instruction("mov.u32 %r1, %tid.x;", 0), instruction("add.s32 %r2, %r1, 4;", 1),
                                instruction("@%p1 st.global.u32 [%rd1], %r2;", 2), instruction("ret;", 3)};
  std::vector<ListingLine> right{instruction("mov.u32 %r1, %tid.x;", 0), instruction("add.s32 %r3, %r1, 4;", 1),
                                 instruction("bar.sync 0;", 2), instruction("st.global.u32 [%rd1+4], %r3;", 3),
                                 instruction("ret;", 4)};
  CHECK(shape(align(left, right, Alignment::text)) == "=~+~=");
  CHECK(shape(align(left, left, Alignment::text)) == "====");
  CHECK(shape(align(left, {}, Alignment::text)) == "----");
  CHECK(shape(align({}, right, Alignment::text)) == "+++++");
}

} // namespace ptxrewrite::tests::align_test
