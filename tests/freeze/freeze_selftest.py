#!/usr/bin/env python3
"""freeze.py reports a changed hash, a missing result and a new result; features of another
compiler are not reported."""
import unittest

import freeze


class Comparison(unittest.TestCase):
    def test_finds_each_kind_of_difference(self):
        expected = {"a/read": "1", "a/ssa": "2", "b/read": "3"}
        found = {"a/read": "1", "a/ssa": "9", "c/read": "3"}
        self.assertEqual(list(freeze.differences(expected, found)),
                         ["differs: a/ssa", "missing: b/read", "new: c/read"])
        self.assertEqual(list(freeze.differences(expected, dict(expected))), [])

    def test_features_count_where_their_text_is_the_same(self):
        expected = {"features/x/input": "1", "features/x/ssa": "2", "samples/y/ssa": "3"}
        changed = {"features/x/input": "1", "features/x/ssa": "9", "samples/y/ssa": "3"}
        self.assertEqual(list(freeze.differences(*freeze.comparable(expected, changed)[:2])),
                         ["differs: features/x/ssa"])
        other_compiler = {"features/x/input": "8", "features/x/ssa": "9", "samples/y/ssa": "4"}
        before, after, left_out = freeze.comparable(expected, other_compiler)
        self.assertEqual(list(freeze.differences(before, after)), ["differs: samples/y/ssa"])
        self.assertEqual(left_out, {"features/x"})
        self.assertEqual(freeze.comparable(expected, {"samples/y/ssa": "3"})[2], {"features/x"})


if __name__ == "__main__":
    unittest.main()
