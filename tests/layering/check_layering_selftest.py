#!/usr/bin/env python3
"""Shows that check_layering.py does fail: a clean made-up tree passes, and each single violation is found."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layering

CLEAN = {
    "support/a.h": "// A.\n#pragma once\n#include <vector>\n",
    "support/a.cpp": '#include "support/a.h"\n',
    "ir/b.h": '// B.\n#pragma once\n#include "support/a.h"\n',
    "ir/rows.def": "ROW(x)\n" * 2000,
    "ir/b.cpp": '#include "ir/b.h"\n#include "ir/rows.def"\n',
    "grammar/reader.h": '// R.\n#pragma once\n#include "ir/b.h"\n',
    "grammar/reader.cpp": '#include "grammar/reader.h"\n#include "antlr4-runtime.h"\n#include "PtxParser.h"\n',
    "transforms/t.cpp": '#include "ir/b.h"\n',
    "launch/l.h": '// L.\n#pragma once\n#include "ir/b.h"\n',
    "emulator/counters.h": "// C.\n#pragma once\n",
    "emulator/engine.h": "// E.\n#pragma once\n",
    "emulator/timing/model.cpp": '#include "emulator/counters.h"\n#include "ir/b.h"\n',
    "cli/main.cpp": '#include "grammar/reader.h"\n#include "emulator/engine.h"\n#include <CLI/CLI.hpp>\n',
    "cli/driver/load.cpp": '#include "launch/l.h"\n',
    "tests/unit/x_test.cpp": '#include "grammar/reader.h"\n#include <doctest/doctest.h>\n',
    "build/junk.cpp": '#include "nowhere.h"\n',
}


def body(lines):
    return "int f(int a) {\n" + "  ++a;\n" * (lines - 2) + "}\n"


class Layering(unittest.TestCase):
    def violations(self, changes=None):
        with tempfile.TemporaryDirectory() as root:
            for path, text in {**CLEAN, **(changes or {})}.items():
                full = os.path.join(root, path)
                os.makedirs(os.path.dirname(full), exist_ok=True)
                with open(full, "w", encoding="utf-8") as file:
                    file.write(text)
            return list(check_layering.violations(root))

    def assert_one(self, changes, fragment):
        found = self.violations(changes)
        self.assertEqual(len(found), 1, found)
        self.assertIn(fragment, found[0])

    def test_clean_tree_passes(self):
        self.assertEqual(self.violations(), [])

    def test_upward_and_sideways_edges(self):
        for path, target in [("support/a.cpp", "ir/b.h"), ("ir/b.cpp", "grammar/reader.h"), ("ir/b.cpp", "launch/l.h"),
                             ("transforms/t.cpp", "grammar/reader.h"), ("launch/l2.cpp", "emulator/engine.h"),
                             ("emulator/e.cpp", "launch/l.h"), ("emulator/timing/model.cpp", "emulator/engine.h"),
                             ("cli/driver/load.cpp", "grammar/reader.h"), ("cli/driver/load.cpp", "emulator/engine.h"),
                             ("grammar/g.cpp", "transforms/t.h"), ("cli/main.cpp", "tests/unit/p.h")]:
            with self.subTest(path=path, target=target):
                extra = {} if target in CLEAN else {target: "// T.\n#pragma once\n"}
                self.assert_one({path: f'#include "{target}"\n', **extra}, f"may not include {target}")

    def test_include_must_be_from_the_root(self):
        self.assert_one({"ir/b.cpp": '#include "b.h"\n'}, "no path from the project root")

    def test_antlr_outside_grammar(self):
        self.assert_one({"cli/main.cpp": '#include "antlr4-runtime.h"\n'}, "only grammar/ may see ANTLR")
        self.assert_one({"transforms/t.cpp": "#include <antlr4-runtime.h>\n"}, "only grammar/ may see ANTLR")
        self.assert_one({"grammar/x.h": '// X.\n#pragma once\n#include "antlr4-runtime.h"\n'}, "only .cpp files")

    def test_antlr_through_a_header(self):
        found = self.violations({"grammar/reader.h": '// R.\n#pragma once\n#include "PtxParser.h"\n'})
        self.assertEqual(sorted(line.split(":")[0] for line in found), ["cli/main.cpp", "tests/unit/x_test.cpp"])

    def test_long_file(self):
        self.assertEqual(self.violations({"ir/long.cpp": "\n" * 800}), [])
        self.assert_one({"ir/long.cpp": "\n" * 801}, "801 lines")
        self.assert_one({"tests/x.py": "\n" * 801}, "801 lines")
        self.assertEqual(self.violations({"ir/long.cpp": "// Long: one table.\n" + "\n" * 900}), [])

    def test_long_function(self):
        self.assertEqual(self.violations({"ir/f.cpp": body(80)}), [])
        self.assert_one({"ir/f.cpp": body(81)}, "ir/f.cpp:1: function of 81 lines")
        self.assert_one({"ir/f.cpp": "namespace n {\nclass C {\n" + body(81) + "};\n}\n"}, "ir/f.cpp:3: function")
        self.assertEqual(self.violations({"ir/f.cpp": "// Long: a switch over all opcodes.\n" + body(200)}), [])
        braces_in_text = 'const char* s = "{{{";  // }}}\n' + body(20) + "int t[] = {\n" + "1,\n" * 200 + "};\n"
        self.assertEqual(self.violations({"ir/f.cpp": braces_in_text}), [])

    def test_headers(self):
        self.assert_one({"ir/h.h": "#pragma once\n"}, "open with a comment")
        self.assert_one({"ir/h.h": "// H.\n"}, "#pragma once")

    def test_citations(self):
        known, paper = "good" + "-micro01", "warp" + "-isca99"
        references = {"docs/references.md": f"| `{known}` | a paper |\n"}
        self.assertEqual(self.violations({**references, "ir/c.cpp": f"// As in {known} section 2 (docs/references.md).\n"}), [])
        self.assert_one({**references, "ir/c.cpp": f"// See {paper} Table 1.\n"}, f"cites {paper}")
        self.assert_one({"ir/c.cpp": "// See absent.md, Memory.\n"}, "cites absent.md")
        self.assert_one({"ir/c.cpp": "int a; // granules (facts" + " 12)\n"}, "numbered fact")

    def test_unfinished_work(self):
        self.assert_one({"support/a.cpp": "// TO" + "DO: later\n"}, "support/a.cpp:1")
        self.assert_one({"README.md": "x\nFIX" + "ME\n"}, "README.md:2")


if __name__ == "__main__":
    unittest.main()
