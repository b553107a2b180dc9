// Every element plus one.
#include "tests/samples/reference.h"

REFERENCE(dac_example) {
  auto a = data.s32("a"), b = data.s32("b");
  for (size_t i = 0; i < a.size(); ++i)
    b[i] = a[i] + 1;
}
