// Writes PtxLexer's automaton as C++ arrays, for grammar/lexer_tables.h: lexer_table_generator OUTPUT.
//
// The ANTLR runtime computes the edges of a lexer automaton when a text needs them, which costs each start of a program
// more than the reading of a small file. Here all edges are computed once, when the project is built.
#include <antlr4-runtime.h>

#include "PtxLexer.h"

#include <cstdint>
#include <cstdio>
#include <unordered_map>
#include <vector>

namespace {

constexpr unsigned byte_count = 128; // PTX is ASCII
constexpr uint16_t dead = 0, skipped = 0xffff;

// Exposes the runtime's construction of lexer automata, one edge at a time.
class Automaton final : public antlr4::atn::LexerATNSimulator {
public:
  Automaton(const antlr4::atn::ATN& atn, std::vector<antlr4::dfa::DFA>& automata,
            antlr4::atn::PredictionContextCache& contexts)
      : LexerATNSimulator(atn, automata, contexts) {
    _mode = antlr4::Lexer::DEFAULT_MODE;
  }

  // Numbers all states, from the start state on, in the order in which they are found.
  void explore() {
    number(addDFAState(computeStartState(nullptr, atn.modeToStartState[_mode]).release()));
    for (size_t state = 1; state < states_.size(); ++state)
      for (unsigned byte = 0; byte < byte_count; ++byte) {
        const uint16_t target = number(computeTargetState(nullptr, states_[state], byte));
        edges[byte].resize(states_.size());
        edges[byte][state] = target;
      }
    for (std::vector<uint16_t>& of_byte : edges)
      of_byte.resize(states_.size());
  }

  size_t state_count() const { return states_.size(); }

  std::vector<std::vector<uint16_t>> edges = std::vector<std::vector<uint16_t>>(byte_count); // [byte][state]
  std::vector<uint16_t> accepts{0};                                                          // [state]

private:
  static bool skips(const antlr4::dfa::DFAState& state) {
    if (!state.lexerActionExecutor) return false;
    for (const auto& action : state.lexerActionExecutor->getLexerActions())
      if (action->getActionType() == antlr4::atn::LexerActionType::SKIP) return true;
    return false;
  }

  uint16_t number(antlr4::dfa::DFAState* state) {
    if (!state || state == ERROR.get()) return dead;
    auto [place, is_new] = numbers_.try_emplace(state, static_cast<uint16_t>(states_.size()));
    if (is_new) {
      states_.push_back(state);
      const bool accepted = state->isAcceptState;
      accepts.push_back(accepted ? skips(*state) ? skipped : static_cast<uint16_t>(state->prediction) : 0);
    }
    return place->second;
  }

  std::vector<antlr4::dfa::DFAState*> states_{nullptr}; // [dead]
  std::unordered_map<antlr4::dfa::DFAState*, uint16_t> numbers_;
};

void write(std::FILE* file, const char* name, const std::vector<uint16_t>& numbers) {
  std::fprintf(file, "const uint16_t LexerTables::%s[] = {", name);
  for (size_t i = 0; i < numbers.size(); ++i)
    std::fprintf(file, "%s%u,", i % 24 == 0 ? "\n" : "", unsigned{numbers[i]});
  std::fprintf(file, "\n};\n");
}

} // namespace

int main(int argument_count, char** arguments) {
  if (argument_count != 2) return 2;
  PtxLexer lexer(nullptr);
  const antlr4::atn::ATN& atn = lexer.getATN();
  std::vector<antlr4::dfa::DFA> automata;
  automata.emplace_back(atn.getDecisionState(0), 0);
  antlr4::atn::PredictionContextCache contexts;
  Automaton automaton(atn, automata, contexts);
  automaton.explore();

  std::vector<uint16_t> edges(automaton.state_count() * byte_count);
  for (size_t byte = 0; byte < byte_count; ++byte)
    for (size_t state = 0; state < automaton.state_count(); ++state)
      edges[state * byte_count + byte] = automaton.edges[byte][state];

  std::FILE* file = std::fopen(arguments[1], "w");
  if (!file) return 1;
  std::fprintf(file,
               "// Generated from PtxLexer.g4: %zu states.\n#include \"grammar/lexer_tables.h\"\n\n"
               "namespace ptxrewrite::grammar {\n",
               automaton.state_count());
  write(file, "edges", edges);
  write(file, "accepted", automaton.accepts);
  std::fputs("} // namespace ptxrewrite::grammar\n", file);
  return std::fclose(file) == 0 ? 0 : 1;
}
