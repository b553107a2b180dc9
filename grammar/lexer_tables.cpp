#include <antlr4-runtime.h>

#include "PtxLexer.h"
#include "grammar/lexer_tables.h"

#include <cassert>
#include <mutex>
#include <unordered_map>

namespace ptxrewrite::grammar {

// Exposes the runtime's construction of lexer automata, one edge at a time.
struct LexerTables::Automaton final : antlr4::atn::LexerATNSimulator {
  Automaton(const antlr4::atn::ATN& atn, std::vector<antlr4::dfa::DFA>& automata,
            antlr4::atn::PredictionContextCache& contexts)
      : LexerATNSimulator(atn, automata, contexts) {
    _mode = antlr4::Lexer::DEFAULT_MODE;
  }

  antlr4::dfa::DFAState* start() {
    return addDFAState(computeStartState(nullptr, atn.modeToStartState[_mode]).release());
  }
  antlr4::dfa::DFAState* target(antlr4::dfa::DFAState* from, uint8_t byte) {
    antlr4::dfa::DFAState* to = computeTargetState(nullptr, from, byte);
    return to == ERROR.get() ? nullptr : to;
  }
  static bool skips(const antlr4::dfa::DFAState& state) {
    if (!state.lexerActionExecutor) return false;
    for (const auto& action : state.lexerActionExecutor->getLexerActions())
      if (action->getActionType() == antlr4::atn::LexerActionType::SKIP) return true;
    return false;
  }
  // The number of a state of the runtime in the tables.
  State number(LexerTables& tables, antlr4::dfa::DFAState* state) {
    if (!state) return dead;
    auto [place, is_new] = numbers.try_emplace(state, static_cast<State>(states.size()));
    if (is_new) {
      assert(states.size() < capacity);
      states.push_back(state);
      if (state->isAcceptState)
        tables.accepts_[place->second] = skips(*state) ? skipped : static_cast<uint16_t>(state->prediction);
    }
    return place->second;
  }

  std::mutex mutex;
  std::vector<antlr4::dfa::DFAState*> states{nullptr, nullptr}; // [unknown] and [dead]
  std::unordered_map<antlr4::dfa::DFAState*, State> numbers;
};

LexerTables& LexerTables::instance() {
  static LexerTables tables;
  return tables;
}

namespace {
// The simulator keeps references to these.
struct LexerParts {
  PtxLexer lexer{nullptr};
  std::vector<antlr4::dfa::DFA> automata;
  antlr4::atn::PredictionContextCache contexts;
};
LexerParts& lexer_parts() {
  static LexerParts parts;
  return parts;
}
} // namespace

LexerTables::LexerTables() : edges_(new std::atomic<State>[capacity * 256]()), accepts_(new uint16_t[capacity]()) {
  LexerParts& parts = lexer_parts();
  const antlr4::atn::ATN& atn = parts.lexer.getATN();
  parts.automata.emplace_back(atn.getDecisionState(0), 0);
  automaton_ = std::make_unique<Automaton>(atn, parts.automata, parts.contexts);
  start_ = automaton_->number(*this, automaton_->start());
}

LexerTables::~LexerTables() = default;

LexerTables::State LexerTables::compute(State state, uint8_t byte) {
  std::lock_guard lock(automaton_->mutex);
  State target = automaton_->number(*this, automaton_->target(automaton_->states[state], byte));
  edges_[size_t{state} * 256 + byte].store(target, std::memory_order_release);
  return target;
}

} // namespace ptxrewrite::grammar
