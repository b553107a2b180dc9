// Autotuning: its decisions from given times, and their moment.
#include "cuda/interpose/tuning.h"

#include <doctest/doctest.h>

namespace ptxrewrite::tests::tuning_test {

using cuda::interpose::Tuning;

namespace {

// Runs until the decision, each code with its own times; returns the number of launches.
int tune(Tuning& tuning, double original, double rewritten, double first = 0) {
  int launches = 0, originals = 0, others = 0;
  while (!tuning.is_decided() && launches < 1000) {
    const Tuning::Code code = tuning.next();
    int& of_code = code == Tuning::Code::original ? originals : others;
    const double time = code == Tuning::Code::original ? original : rewritten;
    tuning.add(code, of_code++ == 0 ? time + first : time);
    ++launches;
  }
  return launches;
}

} // namespace

TEST_CASE("the faster code stays, after as many timed launches of each") {
  Tuning faster, slower;
  CHECK(tune(faster, 2.0, 1.0) == 2 * (Tuning::samples + 1));
  CHECK(faster.best() == Tuning::Code::rewritten);
  CHECK(faster.median(Tuning::Code::rewritten) == 1.0);
  tune(slower, 1.0, 2.0);
  CHECK(slower.best() == Tuning::Code::original);
  for (int i = 0; i < 5; ++i)
    CHECK(faster.next() == Tuning::Code::rewritten);
}

TEST_CASE("the first launch of each does not count, nor do single late ones") {
  Tuning cold;
  tune(cold, 2.0, 1.0, 100.0);
  CHECK(cold.best() == Tuning::Code::rewritten);
  Tuning noisy;
  for (size_t i = 0; i <= Tuning::samples; ++i) {
    noisy.add(Tuning::Code::original, 2.0);
    noisy.add(Tuning::Code::rewritten, i == 3 ? 50.0 : 1.0);
  }
  CHECK(noisy.is_decided());
  CHECK(noisy.best() == Tuning::Code::rewritten);
}

TEST_CASE("a difference within the margin keeps the original") {
  Tuning tuning;
  tune(tuning, 1.0, 1.0 - Tuning::margin / 2);
  CHECK(tuning.best() == Tuning::Code::original);
}

TEST_CASE("nothing is decided while one code lacks times") {
  Tuning tuning;
  for (int i = 0; i < 100; ++i)
    tuning.add(Tuning::Code::original, 1.0);
  CHECK(!tuning.is_decided());
}

} // namespace ptxrewrite::tests::tuning_test
