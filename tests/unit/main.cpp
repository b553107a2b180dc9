// Entry point of unit_tests; every *_test.cpp below this folder is linked into it.
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
