#!/usr/bin/env python3
"""Shows that check_layering.py can fail: a clean artificial tree passes, and each single violation is found."""
import os
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_layering

CLEAN = {
    "support/a.h": "// A.\n#pragma once\n#include <vector>\n",
    "support/a.cpp": '#include "support/a.h"\n',
    "ir/core/b.h": '// B.\n#pragma once\n#include "support/a.h"\n',
    "ir/core/rows.def": "ROW(x)\n" * 2000,
    "ir/core/b.cpp": '#include "ir/core/b.h"\n#include "ir/core/rows.def"\n',
    "grammar/reader.h": '// R.\n#pragma once\n#include "ir/core/b.h"\n',
    "grammar/reader.cpp": '#include "grammar/reader.h"\n#include "antlr4-runtime.h"\n#include "PtxParser.h"\n',
    "transforms/common/t.cpp": '#include "ir/core/b.h"\n',
    "launch/l.h": '// L.\n#pragma once\n#include "ir/core/b.h"\n',
    "emulator/core/counters.h": "// C.\n#pragma once\n",
    "emulator/observe/o.h": "// O.\n#pragma once\n",
    "emulator/core/engine.h": "// E.\n#pragma once\n",
    "emulator/timing/model.cpp": '#include "emulator/core/counters.h"\n#include "ir/core/b.h"\n',
    "cli/main.cpp": '#include "grammar/reader.h"\n#include "emulator/core/engine.h"\n',
    "cli/options.cpp": "#include <CLI/CLI.hpp>\n",
    "cuda/driver/load.cpp": '#include "launch/l.h"\n',
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

    def test_examples_see_public_headers_alone(self):
        public = {"cmake/public_headers.txt": "# Headers\nir/core/b.h\n", "ir/core/hidden.h": "// H.\n#pragma once\n"}
        self.assertEqual(self.violations({**public, "examples/e.cpp": '#include "ir/core/b.h"\n#include <vector>\n'}), [])
        self.assert_one({**public, "examples/e.cpp": '#include "ir/core/hidden.h"\n'}, "cmake/public_headers.txt")

    def test_upward_and_sideways_edges(self):
        for path, target in [("support/a.cpp", "ir/core/b.h"), ("ir/core/b.cpp", "grammar/reader.h"), ("ir/core/b.cpp", "launch/l.h"),
                             ("transforms/common/t.cpp", "grammar/reader.h"), ("launch/l2.cpp", "emulator/core/engine.h"),
                             ("emulator/core/e.cpp", "launch/l.h"), ("emulator/timing/model.cpp", "emulator/observe/o.h"),
                             ("cuda/driver/load.cpp", "grammar/reader.h"), ("cuda/driver/load.cpp", "emulator/core/engine.h"),
                             ("grammar/g.cpp", "transforms/common/t.h"), ("cli/main.cpp", "tests/unit/p.h")]:
            with self.subTest(path=path, target=target):
                extra = {} if target in CLEAN else {target: "// T.\n#pragma once\n"}
                self.assert_one({path: f'#include "{target}"\n', **extra}, f"may not include {target}")

    def test_edges_between_second_level_folders(self):
        self.assert_one({"ir/core/b.cpp": '#include "ir/flow/f.h"\n', "ir/flow/f.h": "// F.\n#pragma once\n"},
                        "ir/core may not include ir/flow/f.h")
        self.assert_one({"transforms/dac/d.cpp": '#include "transforms/r2d2/r.h"\n',
                         "transforms/r2d2/r.h": "// R.\n#pragma once\n"}, "may not include transforms/r2d2/r.h")

    def test_the_emulator_names_no_machine(self):
        for folder in ("emulator/core", "emulator/special"):
            self.assert_one({f"{folder}/e.cpp": '#include "emulator/machines/dac/m.h"\n',
                             "emulator/machines/dac/m.h": "// M.\n#pragma once\n"},
                            f"{folder} may not include emulator/machines/dac/m.h")

    def test_libraries_have_one_includer(self):
        self.assert_one({"ir/core/b.cpp": "#include <spdlog/spdlog.h>\n"}, "only support/log.cpp may")
        self.assert_one({"evaluate/score/s.cpp": "#include <CLI/CLI.hpp>\n"}, "only cli/options.cpp may")
        self.assert_one({"cli/main.cpp": "#include <CLI/CLI.hpp>\n"}, "only cli/options.cpp may")

    def test_folders(self):
        self.assert_one({"ir/attic/a.h": "// A.\n#pragma once\n"}, "ir/attic: is in no layer")
        heap = {f"ir/flow/f{i}.h": "// F.\n#pragma once\n" for i in range(40)}
        self.assertEqual(self.violations(heap), [])
        self.assert_one({**heap, "ir/flow/g.h": "// G.\n#pragma once\n"}, "41 files")

    def test_include_must_be_from_the_root(self):
        self.assert_one({"ir/core/b.cpp": '#include "b.h"\n'}, "no path from the project root")

    def test_antlr_outside_grammar(self):
        self.assert_one({"cli/main.cpp": '#include "antlr4-runtime.h"\n'}, "only grammar/ may see ANTLR")
        self.assert_one({"transforms/common/t.cpp": "#include <antlr4-runtime.h>\n"}, "only grammar/ may see ANTLR")
        self.assert_one({"grammar/x.h": '// X.\n#pragma once\n#include "antlr4-runtime.h"\n'}, "only .cpp files")

    def test_antlr_through_a_header(self):
        found = self.violations({"grammar/reader.h": '// R.\n#pragma once\n#include "PtxParser.h"\n'})
        self.assertEqual(sorted(line.split(":")[0] for line in found), ["cli/main.cpp", "tests/unit/x_test.cpp"])

    def test_long_file(self):
        self.assertEqual(self.violations({"ir/core/long.cpp": "\n" * 800}), [])
        self.assert_one({"ir/core/long.cpp": "\n" * 801}, "801 lines")
        self.assert_one({"tests/x.py": "\n" * 801}, "801 lines")
        self.assertEqual(self.violations({"ir/core/long.cpp": "// Long: one table.\n" + "\n" * 900}), [])

    def test_long_function(self):
        self.assertEqual(self.violations({"ir/core/f.cpp": body(80)}), [])
        self.assert_one({"ir/core/f.cpp": body(81)}, "ir/core/f.cpp:1: function of 81 lines")
        self.assert_one({"ir/core/f.cpp": "namespace n {\nclass C {\n" + body(81) + "};\n}\n"}, "ir/core/f.cpp:3: function")
        self.assertEqual(self.violations({"ir/core/f.cpp": "// Long: a switch over all opcodes.\n" + body(200)}), [])
        braces_in_text = 'const char* s = "{{{";  // }}}\n' + body(20) + "int t[] = {\n" + "1,\n" * 200 + "};\n"
        self.assertEqual(self.violations({"ir/core/f.cpp": braces_in_text}), [])

    def test_headers(self):
        self.assert_one({"ir/core/h.h": "#pragma once\n"}, "open with a comment")
        self.assert_one({"ir/core/h.h": "// H.\n"}, "#pragma once")

    def test_citations(self):
        known, paper = "good" + "-micro01", "warp" + "-isca99"
        references = {"docs/references.md": f"| `{known}` | a paper |\n"}
        self.assertEqual(self.violations({**references, "ir/core/c.cpp": f"// As in {known} section 2 (docs/references.md).\n"}), [])
        self.assert_one({**references, "ir/core/c.cpp": f"// See {paper} Table 1.\n"}, f"cites {paper}")
        self.assert_one({"ir/core/c.cpp": "// See absent.md, Memory.\n"}, "cites absent.md")
        self.assert_one({"ir/core/c.cpp": "int a; // granules (facts" + " 12)\n"}, "numbered fact")

    def test_unfinished_work(self):
        self.assert_one({"support/a.cpp": "// TO" + "DO: later\n"}, "support/a.cpp:1")
        self.assert_one({"README.md": "x\nFIX" + "ME\n"}, "README.md:2")


if __name__ == "__main__":
    unittest.main()
