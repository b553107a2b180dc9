#!/usr/bin/env python3
"""Shows that the golden runner fails on every kind of wrong expectation, and that blessing repairs exactly those."""
import os
import subprocess
import sys
import tempfile
import unittest

RUNNER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "run_golden.py")

GOOD = """What this file states.
==== run
cat in.ptx
echo trouble >&2
cat in.ptx > copy.ptx
exit 3
==== input in.ptx
// comment
ret;
==== stdout
// comment
ret;
==== stderr
trouble
==== file copy.ptx
// comment
ret;
==== exit 3
"""


class Runner(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = os.path.join(self.folder.name, "t.golden")

    def run_text(self, text, *flags):
        if text is not None:
            with open(self.path, "w", encoding="utf-8") as file:
                file.write(text)
        child = subprocess.run([sys.executable, "-B", RUNNER, *flags, self.path], capture_output=True, text=True)
        return child.returncode, child.stdout

    def saved(self):
        with open(self.path, encoding="utf-8") as file:
            return file.read()

    def test_right_expectations_pass(self):
        self.assertEqual(self.run_text(GOOD), (0, "golden: 1 passed\n"))

    def test_each_wrong_expectation_fails_and_is_blessed(self):
        for right, wrong in [("==== stdout\n// comment", "==== stdout\n// Comment"),
                             ("==== stderr\ntrouble\n", "==== stderr\n"), ("==== stderr\ntrouble\n", ""),
                             ("==== stdout\n// comment\nret;\n", ""), ("==== exit 3\n", "==== exit 0\n"),
                             ("==== exit 3\n", ""), ("copy.ptx\n// comment\nret;\n==== e", "copy.ptx\nret;\n==== e")]:
            with self.subTest(wrong=wrong):
                text = GOOD.replace(right, wrong)
                self.assertNotEqual(text, GOOD)
                code, output = self.run_text(text)
                self.assertEqual(code, 1, output)
                self.assertEqual(self.run_text(text, "--bless")[0], 0)
                self.assertEqual(self.run_text(None)[0], 0)

    def test_bless_leaves_a_right_file_alone(self):
        self.run_text(GOOD, "--bless")
        self.assertEqual(self.saved(), GOOD)

    def test_unlisted_output_must_be_empty(self):
        self.assertEqual(self.run_text("==== run\necho x\n")[0], 1)
        self.assertEqual(self.run_text("==== run\ntrue\n")[0], 0)

    def test_a_missing_file_fails(self):
        self.assertEqual(self.run_text("==== run\ntrue\n==== file none.ptx\nx\n")[0], 1)

    def test_contains_is_ordered(self):
        text = "==== run\nprintf 'one a\\ntwo b\\nthree c\\n'\n==== stdout contains\n"
        self.assertEqual(self.run_text(text + "one\nthree\n")[0], 0)
        self.assertEqual(self.run_text(text + "three\none\n")[0], 1)
        self.assertEqual(self.run_text(text + "four\n")[0], 1)
        self.assertEqual(self.run_text(text + "four\n", "--bless")[0], 1)

    def test_a_failing_command_in_the_middle_counts(self):
        self.assertEqual(self.run_text("==== run\nfalse\ntrue\n")[0], 1)
        self.assertEqual(self.run_text("==== run\nfalse | true\n")[0], 1)

    def test_no_newline_and_section_like_lines_survive(self):
        text = "==== run\nprintf '==== run\\n\\\\==== x\\nend'\n"
        self.assertEqual(self.run_text(text, "--bless")[0], 0)
        self.assertIn("\\==== run\n", self.saved())
        self.assertEqual(self.run_text(None)[0], 0)
        self.assertEqual(self.run_text(self.saved().replace("\\ no newline at the end\n", ""))[0], 1)

    def test_skipping_is_visible(self):
        code, output = self.run_text("==== needs no-such-tool\n==== run\nfalse\n")
        self.assertEqual(code, 77)
        self.assertIn("skipped: needs no-such-tool", output)

    def test_broken_files_are_refused(self):
        for text in ["", "==== stdout\nx\n", "==== run\n\n", "==== run\ntrue\n==== stdut\n",
                     "==== run\ntrue\n==== input\nx\n", "==== run\ntrue\n==== exit bad\n"]:
            with self.subTest(text=text):
                self.assertEqual(self.run_text(text)[0], 2)


if __name__ == "__main__":
    unittest.main()
