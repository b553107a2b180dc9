// Mutations from blind (bits, truncation) to informed (tokens, lines, edge numbers): the blind ones test the lexer, the
// informed ones pass it and test the later stages.
#include "tests/fuzz/mutate.h"

#include <algorithm>
#include <array>

namespace ptxrewrite::fuzz {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '$' || c == '%';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// Words, numbers and characters that have caused errors in PTX readers.
constexpr std::array interesting = {"0",
                                    "-1",
                                    "4294967296",
                                    "18446744073709551615",
                                    "99999999999999999999999",
                                    "0x",
                                    "0xffffffff",
                                    "0b2",
                                    "0f7F800000",
                                    "0f",
                                    "0d7FF0000000000000",
                                    "1e999",
                                    "0U",
                                    "{",
                                    "}",
                                    "[",
                                    "]",
                                    "(",
                                    ")",
                                    ";",
                                    ",",
                                    ":",
                                    "@",
                                    "!",
                                    "|",
                                    "+-",
                                    "<",
                                    ">",
                                    "\"",
                                    "\\",
                                    "//",
                                    "/*",
                                    "*/",
                                    "\n",
                                    "\r\n",
                                    "\xEF\xBB\xBF",
                                    "%",
                                    "$",
                                    "_",
                                    "%r0",
                                    "%p0",
                                    "%rd99999999",
                                    ".",
                                    "..",
                                    ".b128",
                                    ".v4",
                                    ".reg .b32 %r<",
                                    ".entry",
                                    ".func",
                                    ".param",
                                    ".shared",
                                    ".visible",
                                    ".version 99.9",
                                    ".target sm_999",
                                    ".section",
                                    ".loc 1 1 1",
                                    ".pragma",
                                    ".branchtargets",
                                    ".callprototype",
                                    "bra $L__BB0_1;",
                                    "ret;",
                                    "exit;",
                                    "call (",
                                    "brx.idx",
                                    "mov.b64 {%r1, %r2}, ",
                                    "@%p1 ",
                                    "@!%p1",
                                    "frobnicate.u32 %r1, %r2;",
                                    "{ .reg .b32 %r1; }",
                                    "ld.global.v4.u32",
                                    "//@ darsie",
                                    ".reg .pred %p<2147483647>;",
                                    "setp.lt.s32 %p1|%p2, ",
                                    "\xff\xfe",
                                    "%tid.x"};

using Seeds = std::vector<std::string>;

void flip_bits(std::string& text, Random& random) {
  for (size_t i = 0, n = 1 + random.below(8); i < n && !text.empty(); ++i)
    text[random.below(text.size())] ^= static_cast<char>(1u << random.below(8));
}

void random_bytes(std::string& text, Random& random) {
  for (size_t i = 0, n = 1 + random.below(16); i < n && !text.empty(); ++i)
    text[random.below(text.size())] = static_cast<char>(random.below(256));
}

void truncate(std::string& text, Random& random) {
  text.resize(random.below(text.size() + 1));
}

void drop_front(std::string& text, Random& random) {
  text.erase(0, random.below(text.size() + 1));
}

void erase_range(std::string& text, Random& random) {
  const size_t at = random.below(text.size() + 1);
  text.erase(at, random.below(random.one_in(4) ? text.size() + 1 : 40));
}

void repeat_range(std::string& text, Random& random) {
  const size_t at = random.below(text.size() + 1);
  const std::string piece = text.substr(at, random.below(200));
  for (size_t i = 0, n = 1 + random.below(20); i < n; ++i)
    text.insert(at, piece);
}

void insert_interesting(std::string& text, Random& random) {
  for (size_t i = 0, n = 1 + random.below(4); i < n; ++i)
    text.insert(random.below(text.size() + 1), interesting[random.below(interesting.size())]);
}

// Deep nesting and long runs, which reveal recursion and quadratic behaviour.
void insert_run(std::string& text, Random& random) {
  constexpr std::array runs = {"{", "}", "[", "(", "((", "-", "!", "~", "a", "/*", ";", ".x", "@", "+1", "1+", "L: "};
  const std::string_view unit = runs[random.below(runs.size())];
  std::string run;
  for (size_t i = 0, n = random.below(3000); i < n; ++i)
    run += unit;
  text.insert(random.below(text.size() + 1), run);
}

std::string join(const std::vector<std::string_view>& tokens) {
  std::string text;
  for (const std::string_view token : tokens)
    text += token;
  return text;
}

// Index of a token that is not blank, or, by chance, any index.
size_t pick_token(const std::vector<std::string_view>& tokens, Random& random) {
  size_t index = random.below(tokens.size());
  for (int i = 0; i < 8 && (tokens[index].empty() || is_blank(tokens[index].front())); ++i)
    index = random.below(tokens.size());
  return index;
}

template <typename Change> void change_tokens(std::string& text, Random& random, Change change) {
  std::vector<std::string_view> tokens = split_tokens(text);
  if (tokens.empty()) return;
  for (size_t i = 0, n = 1 + random.below(3); i < n; ++i)
    change(tokens);
  text = join(tokens); // the views refer to the old text until here
}

void swap_tokens(std::string& text, Random& random) {
  change_tokens(text, random, [&](auto& tokens) {
    std::swap(tokens[pick_token(tokens, random)], tokens[pick_token(tokens, random)]);
  });
}

void swap_near_tokens(std::string& text, Random& random) {
  change_tokens(text, random, [&](auto& tokens) {
    const size_t at = pick_token(tokens, random);
    std::swap(tokens[at], tokens[std::min(tokens.size() - 1, at + 1 + random.below(6))]);
  });
}

void copy_token(std::string& text, Random& random) {
  change_tokens(text, random,
                [&](auto& tokens) { tokens[pick_token(tokens, random)] = tokens[pick_token(tokens, random)]; });
}

void erase_tokens(std::string& text, Random& random) {
  change_tokens(text, random, [&](auto& tokens) { tokens[pick_token(tokens, random)] = ""; });
}

void replace_token(std::string& text, Random& random) {
  change_tokens(text, random, [&](auto& tokens) {
    tokens[pick_token(tokens, random)] = interesting[random.below(interesting.size())];
  });
}

// The class of a token: registers by their prefix, numbers, words; tokens of a class replace each other.
std::string_view token_class(std::string_view token) {
  if (token.empty() || !is_word(token.front())) return "";
  if (token.front() >= '0' && token.front() <= '9') return "0";
  const size_t prefix = std::min(token.size(), token.find_last_not_of("0123456789") + 1);
  return token.front() == '%' ? token.substr(0, prefix) : "word";
}

// Changes that often preserve validity: another register of the kind, another number, another word.
void swap_alike_tokens(std::string& text, Random& random) {
  change_tokens(text, random, [&](auto& tokens) {
    const size_t at = pick_token(tokens, random);
    const std::string_view wanted = token_class(tokens[at]);
    for (int i = 0; i < 200; ++i) {
      const size_t other = random.below(tokens.size());
      if (wanted.empty() || tokens[other] == tokens[at] || token_class(tokens[other]) != wanted) continue;
      if (random.one_in(2))
        std::swap(tokens[at], tokens[other]);
      else
        tokens[at] = tokens[other];
      return;
    }
  });
}

std::vector<std::string_view> split_lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return lines;
}

void shuffle_lines(std::string& text, Random& random) {
  std::vector<std::string_view> lines = split_lines(text);
  if (lines.empty()) return;
  for (size_t i = 0, n = 1 + random.below(6); i < n; ++i) {
    const size_t from = random.below(lines.size()), to = random.below(lines.size());
    switch (random.below(3)) {
    case 0:
      std::swap(lines[from], lines[to]);
      break;
    case 1:
      lines[to] = lines[from];
      break;
    default:
      lines[from] = "";
      break;
    }
  }
  text = join(lines);
}

// Repeats a statement after itself, which mostly preserves validity.
void copy_line(std::string& text, Random& random) {
  std::vector<std::string_view> lines = split_lines(text);
  if (lines.empty()) return;
  const size_t at = random.below(lines.size());
  lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), lines[at]);
  text = join(lines);
}

void splice(std::string& text, Random& random, const Seeds& seeds) {
  const std::string& other = seeds[random.below(seeds.size())];
  text = text.substr(0, random.below(text.size() + 1)) + other.substr(random.below(other.size() + 1));
}

} // namespace

std::vector<std::string_view> split_tokens(std::string_view text) {
  std::vector<std::string_view> tokens;
  size_t at = 0;
  while (at < text.size()) {
    size_t end = at + 1;
    if (is_word(text[at]))
      while (end < text.size() && is_word(text[end]))
        ++end;
    else if (is_blank(text[at]))
      while (end < text.size() && is_blank(text[end]))
        ++end;
    tokens.push_back(text.substr(at, end - at));
    at = end;
  }
  return tokens;
}

Mutation mutate(const std::vector<std::string>& seeds, uint64_t seed, uint64_t number) {
  using Step = void (*)(std::string&, Random&);
  struct NamedStep {
    const char* name;
    Step step;
  };
  static constexpr std::array<NamedStep, 18> steps = {{{"flip bits", flip_bits},
                                                       {"random bytes", random_bytes},
                                                       {"truncate", truncate},
                                                       {"drop front", drop_front},
                                                       {"erase range", erase_range},
                                                       {"repeat range", repeat_range},
                                                       {"insert interesting", insert_interesting},
                                                       {"insert run", insert_run},
                                                       {"swap tokens", swap_tokens},
                                                       {"swap near tokens", swap_near_tokens},
                                                       {"copy token", copy_token},
                                                       {"erase tokens", erase_tokens},
                                                       {"replace token", replace_token},
                                                       {"swap alike tokens", swap_alike_tokens},
                                                       {"swap alike tokens", swap_alike_tokens},
                                                       {"copy line", copy_line},
                                                       {"shuffle lines", shuffle_lines},
                                                       {"splice", nullptr}}};
  Random random(seed * 0x2545f4914f6cdd1dull + number);
  Mutation mutation{seeds[random.below(seeds.size())], ""};
  // Mostly a single step: after several, nearly every input fails in the lexer.
  for (size_t i = 0, n = random.one_in(4) ? 2 + random.below(3) : 1; i < n; ++i) {
    const NamedStep& chosen = steps[random.below(steps.size())];
    if (chosen.step != nullptr)
      chosen.step(mutation.text, random);
    else
      splice(mutation.text, random, seeds);
    mutation.name += (i ? ", " : "") + std::string(chosen.name);
  }
  return mutation;
}

} // namespace ptxrewrite::fuzz
