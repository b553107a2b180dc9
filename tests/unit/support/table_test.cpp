#include "support/text/table.h"

#include <doctest/doctest.h>

namespace ptxrewrite {

TEST_CASE("a text that is too long keeps its beginning and its end") {
  CHECK(shortened("kernel", 8) == "kernel");
  CHECK(shortened("kernelab", 8) == "kernelab");
  CHECK(shortened("kernelabc", 8) == "ker...bc");
  CHECK(shortened("kernelabcd", 9) == "ker...bcd");
  const std::string name(2000, 'x');
  CHECK(shortened("_Z" + name + "E", 80).size() == 80);
}

} // namespace ptxrewrite
