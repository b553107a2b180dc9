// Times reading and printing of one PTX file separately, in one process and one thread:
//   parse_benchmark FILE [REPEATS]
// Prints user seconds and MB/s of the fastest repeat, and the peak memory of the process in bytes per source byte.
#include "grammar/reader.h"
#include "ir/core/print.h"
#include "support/file_io.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

namespace {

double user_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) * 1e-6;
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

} // namespace

int main(int argc, char** argv) {
  using namespace ptxrewrite;
  if (argc < 2) {
    std::fprintf(stderr, "usage: parse_benchmark FILE [REPEATS]\n");
    return 2;
  }
  const int repeats = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  const long idle_kib = peak_kib();
  Result<std::string> text = read_file(argv[1]);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().message.c_str());
    return 1;
  }
  const double bytes = static_cast<double>(text->size());
  double parse = 1e9, print = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const bool last = repeat + 1 == repeats;
    SourceFile source(argv[1], last ? std::move(*text) : *text);
    Diagnostics diagnostics;
    const double before = user_seconds();
    std::unique_ptr<ir::Module> module = grammar::read_module(std::move(source), diagnostics);
    const double between = user_seconds();
    if (!module) {
      SourceFile again(argv[1], *read_file(argv[1]));
      for (const Diagnostic& diagnostic : diagnostics.list())
        std::fputs(render(diagnostic, again).c_str(), stderr);
      return 1;
    }
    parse = std::min(parse, between - before);
    std::string out;
    ir::print(*module, out);
    print = std::min(print, user_seconds() - between);
  }
  const double megabytes = bytes * 1e-6;
  std::printf(
      "%s: %.2f MB, parse %.3f s (%.1f MB/s), print %.3f s (%.1f MB/s), both %.1f MB/s, peak %.1f bytes per byte\n",
      argv[1], megabytes, parse, megabytes / parse, print, megabytes / print, megabytes / (parse + print),
      static_cast<double>(peak_kib() - idle_kib) * 1024 / bytes);
}
