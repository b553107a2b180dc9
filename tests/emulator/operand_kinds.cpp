#include "tests/emulator/operand_kinds.h"

#include "ir/isa/isa_operands.h"
#include "tests/emulator/forms.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace ptxrewrite::test {
namespace {

using Tokens = std::vector<std::string>;

// Operands at the top level, or the elements of a group.
Tokens split_operands(std::string_view text, char separator = ',') {
  Tokens tokens;
  int depth = 0;
  std::string token;
  for (char c : text) {
    depth += (c == '{' || c == '[' || c == '(') - (c == '}' || c == ']' || c == ')');
    if (depth == 0 && c == separator) {
      tokens.push_back(token);
      token.clear();
    } else if (c != ' ' || !token.empty()) {
      token += c;
    }
  }
  if (!token.empty()) tokens.push_back(token);
  return tokens;
}

std::string join(std::string_view mnemonic, const Tokens& tokens) {
  std::string text(mnemonic);
  for (size_t i = 0; i < tokens.size(); ++i)
    text += (i == 0 ? " " : ", ") + tokens[i];
  return text + ";";
}

bool is_register(std::string_view token) {
  return token.size() > 2 && token[0] == '%' && std::string_view("pchrlqfd").find(token[1]) != std::string_view::npos &&
         std::all_of(token.begin() + 2, token.end(), [](unsigned char c) { return std::isdigit(c); });
}

Tokens elements_of(const std::string& token) {
  if (token.front() != '{') return {};
  return split_operands(std::string_view(token).substr(1, token.size() - 2));
}

// A vector register of kind_preamble: %e2r for sources, %t2r for results.
struct VectorRegister {
  char role;
  unsigned width;
  char letter;
  std::string name() const { return std::string("%") + role + std::to_string(width) + letter; }
  std::string element(unsigned index) const { return name() + "." + "xyzw"[index]; }
};

bool has_vectors(char letter, unsigned width) {
  const bool wide = letter == 'l' || letter == 'd';
  return std::string_view("hrlfd").find(letter) != std::string_view::npos && (width == 2 || (width == 4 && !wide));
}

std::string_view bit_move(char letter) {
  return letter == 'h' ? "mov.b16 " : letter == 'l' || letter == 'd' ? "mov.b64 " : "mov.b32 ";
}

std::string move(char letter, const std::string& to, const std::string& from) {
  return std::string(bit_move(letter)) + to + ", " + from + ";\n";
}

// Combines the bits of `to` and `from` in `to`: reveals writes to the wrong element.
std::string add_bits(char letter, const std::string& to, const std::string& from) {
  const std::string kind = letter == 'h' ? "h" : letter == 'l' || letter == 'd' ? "l" : "r";
  const std::string one = "%" + kind + "30", other = "%" + kind + "31";
  const std::string width = letter == 'h' ? "16" : kind == "l" ? "64" : "32";
  return move(letter, one, to) + move(letter, other, from) + "or.b" + width + " " + one + ", " + one + ", " + other +
         ";\n" + move(letter, to, one);
}

// Spellings of constants, and the same as plain numbers.
struct Spelled {
  const char* text;
  const char* single; // or the integer
  const char* twice = nullptr;
};
constexpr Spelled integers[] = {
    {"5U", "5"},        {"0b1011", "11"}, {"017", "15"},      {"(7+3)*2", "20"},
    {"~5", "-6"},       {"1?2:3", "2"},   {"0x10-32", "-16"}, {"-(3)", "-3"},
    {"(1<<5)|3", "35"}, {"7 % 4", "3"},   {"0X1f", "31"},     {"5>3", "1"},
    {"!0", "1"},        {"-7/2", "-3"},   {"WARP_SZ", "32"},  {"0x7fffffff", "2147483647"},
};
constexpr Spelled floats[] = {
    {"1.5", "0f3FC00000", "0d3FF8000000000000"}, {"-2.25", "0fC0100000", "0dC002000000000000"},
    {"0.1", "0f3DCCCCCD", "0d3FB999999999999A"}, {"1e3", "0f447A0000", "0d408F400000000000"},
    {"0F3fc00000", "0f3FC00000", nullptr},       {"0D3ff8000000000000", nullptr, "0d3FF8000000000000"},
};

class KindWriter {
public:
  KindWriter(std::string_view mnemonic, const PlainOperands& plain)
      : mnemonic_(mnemonic), plain_(plain), tokens_(plain.operands) {}

  std::vector<KindStatement> run() {
    add("register", {});
    if (tokens_.empty()) return std::move(result_);
    // If both results of p|p are the same register, it keeps the first result.
    const Tokens results = split_operands(tokens_[0], '|');
    if (results.size() == 2 && results[0][1] == results[1][1])
      add("result twice", {.reading = with(0, results[0] + "|_"), .spelled = with(0, results[0] + "|" + results[0])});
    // Operands of video instructions have selectors of their own after the dot.
    const bool has_selectors = mnemonic_[0] == 'v' && !mnemonic_.starts_with("vote");
    for (size_t i = 0; i < tokens_.size(); ++i) {
      if (is_register(tokens_[i]) && !has_selectors) vector_elements(i);
      if (tokens_[i].front() == '{') whole_vectors(i);
      if (i > 0) {
        spelled_constants(i);
        same_source_twice(i);
        result_among_sources(i);
      }
    }
    return std::move(result_);
  }

private:
  void add(std::string_view kind, KindStatement statement) {
    statement.kind = kind;
    if (statement.reading.empty()) statement.reading = join(mnemonic_, tokens_);
    result_.push_back(std::move(statement));
  }
  std::string with(size_t place, std::string text) const {
    Tokens changed = tokens_;
    changed[place] = std::move(text);
    return join(mnemonic_, changed);
  }
  size_t turn() {
    static size_t turns = 0;
    return turns++;
  }

  void vector_elements(size_t place) {
    const std::string& token = tokens_[place];
    const char letter = token[1];
    for (unsigned width : {2u, 4u}) {
      if (!has_vectors(letter, width)) continue;
      const VectorRegister vector{place == 0 ? 't' : 'e', width, letter};
      const auto index = static_cast<unsigned>(turn() % width);
      KindStatement statement;
      statement.spelled = with(place, vector.element(index));
      if (place > 0) {
        statement.before = move(letter, vector.element(index), token);
        add("element of a vector", std::move(statement));
        continue;
      }
      // The element starts with the register's value, its neighbours with zeros, which must not change.
      for (unsigned k = 0; k < width; ++k)
        statement.before += move(letter, vector.element(k), k == index ? token : "0");
      statement.after = move(letter, token, vector.element(index));
      for (unsigned k = 0; k < width; ++k)
        if (k != index) statement.after += add_bits(letter, token, vector.element(k));
      add("element of a vector as result", std::move(statement));
    }
  }

  void whole_vectors(size_t place) {
    const Tokens elements = elements_of(tokens_[place]);
    const auto width = static_cast<unsigned>(elements.size());
    if (width == 0 || !std::all_of(elements.begin(), elements.end(), [&](const std::string& element) {
          return is_register(element) && element[1] == elements[0][1];
        }))
      return;
    const char letter = elements[0][1];
    if (place == 0 && tokens_.size() > 1 && tokens_[1].front() == '{') permuted_results();
    if (place > 0) {
      Tokens changed = tokens_;
      changed[place] = "{";
      for (unsigned k = 0; k < width; ++k)
        changed[place] += (k ? ", " : "") + elements[0];
      changed[place] += "}";
      add("repeated element", {.reading = join(mnemonic_, changed)});
    }
    if (!has_vectors(letter, width)) return;
    const VectorRegister vector{place == 0 ? 't' : 'e', width, letter};
    KindStatement statement;
    statement.spelled = with(place, vector.name());
    for (unsigned k = 0; k < width; ++k)
      statement.before += move(letter, vector.element(k), elements[k]);
    if (place == 0)
      for (unsigned k = 0; k < width; ++k)
        statement.after += move(letter, elements[k], vector.element(k));
    add(place == 0 ? "whole vector as result" : "whole vector", std::move(statement));
    // Elements of vectors inside braces, in another order than in their register.
    statement = {};
    std::string braces = "{";
    for (unsigned k = 0; k < width; ++k) {
      const unsigned at = (k + 1) % width;
      braces += (k ? ", " : "") + vector.element(at);
      statement.before += move(letter, vector.element(at), elements[k]);
      if (place == 0) statement.after += move(letter, elements[k], vector.element(at));
    }
    statement.spelled = with(place, braces + "}");
    add(place == 0 ? "elements in braces as result" : "elements in braces", std::move(statement));
  }

  // The results of a move are its sources in another order.
  void permuted_results() {
    Tokens sources = elements_of(tokens_[1]);
    if (sources.size() != elements_of(tokens_[0]).size()) return;
    for (int order = 0; order < 2; ++order) {
      if (order == 0)
        std::rotate(sources.begin(), sources.begin() + 1, sources.end());
      else
        std::reverse(sources.begin(), sources.end());
      std::string braces = "{";
      for (size_t k = 0; k < sources.size(); ++k)
        braces += (k ? ", " : "") + sources[k];
      add("result is a source", {.reading = with(0, braces + "}")});
    }
  }

  bool takes(size_t place, ir::SummaryKind kind) const {
    const auto& alternatives = plain_.shape->operands[place].alternatives;
    return std::any_of(alternatives.begin(), alternatives.end(), [&](const ir::Alternative& alternative) {
      return alternative.kind == kind &&
             (kind != ir::SummaryKind::integer_immediate || alternative.rule == ir::table::ImmediateRule::any);
    });
  }

  void spelled_constants(size_t place) {
    if (takes(place, ir::SummaryKind::integer_immediate))
      for (int copy = 0; copy < 3; ++copy) {
        const Spelled& number = integers[turn() % std::size(integers)];
        add("constant expression", {.reading = with(place, number.single), .spelled = with(place, number.text)});
      }
    if (!takes(place, ir::SummaryKind::float_immediate)) return;
    const ir::ScalarType type = plain_.shape->operands[place].alternatives.front().type;
    const bool is_float = type == ir::ScalarType::f32 || type == ir::ScalarType::f64 || type == ir::ScalarType::b64;
    const bool is_double = tokens_[place].starts_with("%l") || tokens_[place].starts_with("%d");
    for (const Spelled& number : floats)
      if (const char* plain = is_double ? number.twice : number.single;
          plain && (is_float || number.text[1] == 'f' || number.text[1] == 'F' || number.text[1] == 'D'))
        add("float constant", {.reading = with(place, plain), .spelled = with(place, number.text)});
  }

  void same_source_twice(size_t place) {
    if (!is_register(tokens_[place])) return;
    for (size_t other = 1; other < place; ++other)
      if (is_register(tokens_[other]) && tokens_[other][1] == tokens_[place][1])
        add("source twice", {.reading = with(place, tokens_[other])});
  }

  // Also each part of p|q.
  void result_among_sources(size_t place) {
    const std::string& source = tokens_[place];
    if (!is_register(source)) return;
    Tokens results = split_operands(tokens_[0], '|');
    for (size_t part = 0; part < results.size(); ++part) {
      if (!is_register(results[part]) || results[part][1] != source[1]) continue;
      Tokens changed = results;
      changed[part] = source;
      add("result is a source", {.reading = with(0, changed.size() == 2 ? changed[0] + "|" + changed[1] : changed[0])});
    }
  }

  std::string mnemonic_;
  const PlainOperands& plain_;
  Tokens tokens_;
  std::vector<KindStatement> result_;
};

} // namespace

std::vector<KindStatement> kind_statements(std::string_view mnemonic) {
  std::vector<KindStatement> result;
  for (const PlainOperands& plain : plain_operands_of(mnemonic)) {
    std::vector<KindStatement> of_shape = KindWriter(mnemonic, plain).run();
    std::move(of_shape.begin(), of_shape.end(), std::back_inserter(result));
  }
  for (std::string& text : varied_statements(mnemonic))
    result.push_back({"constant, sink, pair or sign", std::move(text), {}, {}, {}});
  return result;
}

std::string_view kind_preamble() {
  return ".reg .v2 .b16 %e2h, %t2h;\n.reg .v4 .b16 %e4h, %t4h;\n.reg .v2 .b32 %e2r, %t2r;\n"
         ".reg .v4 .b32 %e4r, %t4r;\n.reg .v2 .b64 %e2l, %t2l;\n.reg .v2 .f32 %e2f, %t2f;\n"
         ".reg .v4 .f32 %e4f, %t4f;\n.reg .v2 .f64 %e2d, %t2d;\n";
}

} // namespace ptxrewrite::test
