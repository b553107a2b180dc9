// A check that also holds in programs without any of our headers: it ends the program.
#pragma once

#include <cstdio>
#include <cstdlib>

#define EXPECT(CONDITION)                                                                                              \
  do {                                                                                                                 \
    if (!(CONDITION)) {                                                                                                \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #CONDITION);                                              \
      std::exit(1);                                                                                                    \
    }                                                                                                                  \
  } while (false)
