// Strings as symbols: equal text has one symbol, other text another one, in a pool that grows.
#include "support/string_pool.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace ptxrewrite::tests::string_pool_test {

TEST_CASE("equal text has one symbol, other text another one") {
  constexpr uint32_t count = 20'000;
  StringPool pool;
  CHECK_FALSE(pool.find("").valid());
  CHECK(pool.text(Symbol()) == "");
  std::vector<Symbol> symbols;
  for (uint32_t i = 0; i < count; ++i)
    symbols.push_back(pool.intern("name" + std::to_string(i)));
  CHECK(pool.size() == count);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string text = "name" + std::to_string(i);
    REQUIRE(symbols[i] == Symbol(i));
    REQUIRE(pool.text(symbols[i]) == text);
    REQUIRE(pool.find(text) == symbols[i]);
    REQUIRE(pool.intern(text) == symbols[i]);
    REQUIRE_FALSE(pool.find(text + "_").valid());
  }
  CHECK(pool.size() == count);
  const Symbol empty = pool.intern("");
  CHECK(pool.find("") == empty);
  CHECK(pool.text(empty) == "");
}

} // namespace ptxrewrite::tests::string_pool_test
