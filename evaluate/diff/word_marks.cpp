#include "evaluate/diff/word_marks.h"

#include "evaluate/common/align.h"
#include "support/text/html_text.h"

#include <cctype>
#include <map>
#include <vector>

namespace ptxrewrite::evaluate {
namespace {

bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = begin + 1;
    if (is_of_word(text[begin]))
      while (end < text.size() && is_of_word(text[end]))
        ++end;
    words.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

// Neighbours that both differ share one mark.
std::string marked(const std::vector<std::string_view>& words, const std::vector<bool>& is_common) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    if (!is_common[i] && (i == 0 || is_common[i - 1])) out += "<mark>";
    append_escaped(out, words[i]);
    if (!is_common[i] && (i + 1 == words.size() || is_common[i + 1])) out += "</mark>";
  }
  return out;
}

} // namespace

MarkedWords mark_words(std::string_view left, std::string_view right) {
  const std::vector<std::string_view> a = words_of(left), b = words_of(right);
  std::map<std::string_view, uint32_t> numbers;
  auto numbered = [&](const std::vector<std::string_view>& words) {
    std::vector<uint32_t> keys;
    for (std::string_view word : words)
      keys.push_back(numbers.try_emplace(word, static_cast<uint32_t>(numbers.size())).first->second);
    return keys;
  };
  const std::vector<uint32_t> keys_a = numbered(a), keys_b = numbered(b);
  std::vector<bool> common_a(a.size()), common_b(b.size());
  for (const auto& [i, j] : common_subsequence(keys_a, keys_b))
    common_a[i] = common_b[j] = true;
  return {marked(a, common_a), marked(b, common_b)};
}

} // namespace ptxrewrite::evaluate
