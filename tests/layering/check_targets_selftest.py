#!/usr/bin/env python3
"""Shows that check_targets.py can fail."""
import os
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from check_targets import custom_targets, own_limits, problems

TESTS = {"short/a": ["/build/a_figures", "x"], "short/b": ["/usr/bin/python3", "-B", "/source/b.py"]}
TARGETS = {"a": (["short/a"], [["a_figures", "x", "y"]]), "b": (["short/b"], [["python3", "-B", "/source/b.py", "all"]])}


class Targets(unittest.TestCase):
    def check(self, expected, raw=(), targets=None, tests=None):
        found = list(problems(raw, {**TARGETS, **(targets or {})}, TESTS if tests is None else tests))
        self.assertEqual(len(found), 1 if expected else 0, found)
        if expected:
            self.assertIn(expected, found[0])

    def test_clean(self):
        self.check(None, raw=["bless", "format-check"])

    def test_a_target_of_its_own(self):
        raw = custom_targets(["if(X)\n  add_custom_target(new_table\n    COMMAND x)\nendif()\n"])
        self.check("new_table", raw=raw)
        self.assertEqual(custom_targets(["  add_custom_target(${name} COMMAND x)"]), [])

    def test_limits_of_time(self):
        self.assertEqual(own_limits(["set_tests_properties(x PROPERTIES LABELS y TIMEOUT 300)"]), [300])
        self.assertEqual(own_limits(["# TIMEOUTS of nothing"]), [])

    def test_no_short_form(self):
        self.check("c: has no short form", targets={"c": ([], [])})

    def test_a_test_that_is_not_there(self):
        self.check("c: there is no test short/c", targets={"c": (["short/c"], [["c"]])})

    def test_another_program(self):
        self.check("c: no short form runs c_figures", targets={"c": (["short/a"], [["c_figures"]])})
        self.check("c: no short form runs d.py",
                   targets={"c": (["short/b"], [["python3", "/source/b.py"], ["python3", "/source/d.py"]])})


if __name__ == "__main__":
    unittest.main()
