// PtxLexer's automaton as flat tables: state x byte -> state.
//
// The ANTLR runtime stores the edges of its lexer automaton in hash maps behind a lock and reads text as 32-bit
// characters. Here the runtime only computes each edge once, on first use; afterwards a byte costs one load.
// PtxLexer.g4 remains the only description of the tokens. One table serves all threads of the process.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace ptxrewrite::grammar {

class LexerTables {
public:
  static LexerTables& instance();

  using State = uint16_t;
  static constexpr State unknown = 0;
  static constexpr State dead = 1;

  State start() const { return start_; }
  // The state after `byte`, or `dead`.
  State next(State state, uint8_t byte) {
    State target = edges_[size_t{state} * 256 + byte].load(std::memory_order_acquire);
    return target != unknown ? target : compute(state, byte);
  }
  // Token type of the word that ends in this state, `skipped` for blanks and comments, 0 for none.
  uint16_t accepts(State state) const { return accepts_[state]; }
  static constexpr uint16_t skipped = 0xffff;

  ~LexerTables();

private:
  LexerTables();
  State compute(State state, uint8_t byte);

  struct Automaton; // the runtime's part
  std::unique_ptr<Automaton> automaton_;
  // Upper bound on the number of states; PtxLexer needs a fraction of it.
  static constexpr size_t capacity = 1024;
  std::unique_ptr<std::atomic<State>[]> edges_;
  std::unique_ptr<uint16_t[]> accepts_;
  State start_ = dead;
};

} // namespace ptxrewrite::grammar
