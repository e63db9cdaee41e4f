"""Tests docs/coverage.md and the script that writes it: coverage_page_test.py SOURCE_DIR."""
import contextlib
import importlib.util
import io
import os
import sys
import tempfile
import unittest

SOURCE = os.path.abspath(sys.argv.pop(1))
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("coverage_page", f"{SOURCE}/scripts/coverage_page.py")
coverage_page = importlib.util.module_from_spec(spec)
spec.loader.exec_module(coverage_page)

DATA = "[A. Runs]\nA1 | keys | done\nA2 | leases | partly: no heartbeats\nA3 | sagas | not yet\n"
TESTS = "// covers: A1, A2\nTEST(Keys, AreUnique) {\n"


def run(root, check=True):
    """(exit status, message)"""
    message = io.StringIO()
    with contextlib.redirect_stderr(message):
        status = coverage_page.run(root, check)
    return status, message.getvalue()


class Tree:
    """A source tree with one test file, whose page is written."""

    def __init__(self, data=DATA, tests=TESTS):
        self.folder = tempfile.TemporaryDirectory()
        self.root = self.folder.name
        for folder in ("docs", "src", "tests"):
            os.mkdir(f"{self.root}/{folder}")
        self.write("docs/coverage.txt", data)
        self.write("tests/keys_test.cpp", tests)
        self.written = run(self.root, check=False)

    def write(self, name, text):
        with open(f"{self.root}/{name}", "w", encoding="utf-8") as file:
            file.write(text)

    def page(self):
        with open(f"{self.root}/docs/coverage.md", encoding="utf-8") as file:
            return file.read()


class CoveragePage(unittest.TestCase):
    def expect_mistake(self, message, data=DATA, tests=TESTS):
        status, text = Tree(data, tests).written
        self.assertEqual(status, 1)
        self.assertIn(message, text)

    def test_this_trees_page_is_up_to_date(self):
        self.assertEqual(run(SOURCE), (0, ""))

    def test_row_has_status_and_tests(self):
        tree = Tree()
        self.assertEqual(tree.written, (0, ""))
        self.assertEqual(run(tree.root), (0, ""))
        self.assertIn("| A1 keys | **done** | `Keys.AreUnique` |\n", tree.page())
        self.assertIn("| A2 leases | **partly**: no heartbeats | `Keys.AreUnique` |\n", tree.page())
        self.assertIn("| A3 sagas | *not yet* | |\n", tree.page())

    def test_renamed_test_makes_the_page_stale(self):
        tree = Tree()
        tree.write("tests/keys_test.cpp", TESTS.replace("AreUnique", "AreDistinct"))
        status, text = run(tree.root)
        self.assertEqual(status, 1)
        self.assertIn("make coverage-page", text)

    def test_every_kind_of_test_can_have_a_tag(self):
        for macro in ("TEST", "TEST_F", "TEST_P", "RC_GTEST_PROP"):
            tests = f"// covers: A1, A2\n{macro}(Keys,\n    AreUnique) {{\n"
            self.assertEqual(Tree(tests=tests).written, (0, ""), macro)

    def test_done_without_a_test_is_a_mistake(self):
        self.expect_mistake("A1 is `done`", tests=TESTS.replace("A1, ", ""))

    def test_partly_without_a_test_is_a_mistake(self):
        self.expect_mistake("A2 is `partly: no heartbeats`", tests=TESTS.replace(", A2", ""))

    def test_not_yet_with_a_test_is_a_mistake(self):
        self.expect_mistake("A3 is `not yet`", tests=TESTS.replace("A2", "A2, A3"))

    def test_unknown_id_is_a_mistake(self):
        self.expect_mistake("tests/keys_test.cpp:1: docs/coverage.txt has no requirement A9",
                            tests=TESTS.replace("A2", "A2, A9"))

    def test_tag_without_a_test_below_is_a_mistake(self):
        self.expect_mistake("tests/keys_test.cpp:1: ", tests=TESTS.replace("\nTEST", "\n\nTEST"))

    def test_fourth_test_of_an_id_is_a_mistake(self):
        self.expect_mistake("A1 has 4 tagged tests", tests=TESTS * 4)

    def test_unknown_status_is_a_mistake(self):
        for status in ("almost", "partly", "partly:", ""):
            self.expect_mistake("docs/coverage.txt:2: ", data=DATA.replace("done", status))

    def test_id_that_occurs_twice_is_a_mistake(self):
        self.expect_mistake("docs/coverage.txt:3: A1 occurs twice", data=DATA.replace("A2", "A1"))


if __name__ == "__main__":
    unittest.main()
