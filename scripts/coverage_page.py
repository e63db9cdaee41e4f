#!/usr/bin/env python3
"""Writes docs/coverage.md: each requirement of docs/coverage.txt with its status and the tests that carry its tag.

A tag is the line directly above a TEST, TEST_F, TEST_P or RC_GTEST_PROP:

    // covers: A7, C4
    TEST_F(DeadLetters, FailuresOfAFunctionAreOneEntry) {

With --check nothing is written. The exit status is 1 if the page would change, if a requirement that is done or partly
done has no tagged test, or if a tag is wrong.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TESTS_MAX = 3  # per requirement
NOT_YET, PARTLY = "not yet", "partly: "

TAG = re.compile(r"^[ \t]*// covers:(.*)$", re.MULTILINE)
TEST = re.compile(r"(?:TEST(?:_F|_P)?|RC_GTEST_PROP)\(\s*(\w+)\s*,\s*(\w+)")
ID = re.compile(r"[A-Z]\d+")

HEADER = """# Coverage of the requirements

Written by `make coverage-page` from [coverage.txt](coverage.txt) and from the tests' `// covers:` tags.

- **done**: tests show all of it.
- **partly**: the cell names the missing part.
- *not yet*: no part of it that a user could rely on.

Up to three tests are named for each, as `Suite.Name`; conformance tests run on every store.
"""


class Mistake(Exception):
    """A wrong line of the data file or of a test; the message names its file and line."""


class Requirement:
    def __init__(self, id, title, status):
        self.id = id
        self.title = title
        self.status = status
        self.tests = []


def read_requirements(root):
    """[(section, [Requirement])] of docs/coverage.txt."""
    sections, ids = [], set()
    name = "docs/coverage.txt"
    with open(os.path.join(root, name), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.strip()
            if not line or line.startswith("#"):
                continue
            if line.startswith("[") and line.endswith("]"):
                sections.append((line[1:-1], []))
                continue
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) != 3 or not all(cells) or not sections or not ID.fullmatch(cells[0]):
                raise Mistake(f"{name}:{number}: not `ID | title | status` below a section")
            if cells[0] in ids:
                raise Mistake(f"{name}:{number}: {cells[0]} occurs twice")
            if cells[2] not in ("done", NOT_YET) and not re.match(PARTLY + r"\S", cells[2]):
                raise Mistake(f"{name}:{number}: the status is not done, {NOT_YET} or `{PARTLY}what is missing`")
            ids.add(cells[0])
            sections[-1][1].append(Requirement(*cells))
    return sections


def list_sources(root):
    for folder in ("src", "tests"):
        for path, folders, files in os.walk(os.path.join(root, folder)):
            folders.sort()
            for name in sorted(files):
                if name.endswith((".cpp", ".hpp")):
                    yield os.path.relpath(os.path.join(path, name), root)


def read_tags(root):
    """(place, id, test) for each id of each tag; place is FILE:LINE."""
    for name in list_sources(root):
        with open(os.path.join(root, name), encoding="utf-8") as file:
            text = file.read()
        for tag in TAG.finditer(text):
            place = f"{name}:{text.count(chr(10), 0, tag.start()) + 1}"
            test = TEST.match(text, tag.end() + 1)
            if not test:
                raise Mistake(f"{place}: the line below the tag is no test")
            for id in tag[1].split(","):
                yield place, id.strip(), f"{test[1]}.{test[2]}"


def collect(root):
    """The sections, with the tagged tests of each requirement in the order of the files."""
    sections = read_requirements(root)
    known = {one.id: one for _, requirements in sections for one in requirements}
    for place, id, test in read_tags(root):
        if id not in known:
            raise Mistake(f"{place}: docs/coverage.txt has no requirement {id or '(empty)'}")
        known[id].tests.append(test)
    for one in known.values():
        if one.status == NOT_YET and one.tests:
            raise Mistake(f"{one.id} is `{NOT_YET}` in docs/coverage.txt, but {one.tests[0]} has its tag")
        if one.status != NOT_YET and not one.tests:
            raise Mistake(f"{one.id} is `{one.status}` in docs/coverage.txt, but no test has its tag")
        if len(one.tests) > TESTS_MAX:
            raise Mistake(f"{one.id} has {len(one.tests)} tagged tests, the limit is {TESTS_MAX}: {', '.join(one.tests)}")
    return sections


def show_status(status):
    if status.startswith(PARTLY):
        return "**partly**: " + status.removeprefix(PARTLY)
    return f"*{status}*" if status == NOT_YET else f"**{status}**"


def write_page(sections):
    lines = [HEADER]
    for name, requirements in sections:
        lines += [f"## {name}", "", "| requirement | status | tests |", "|---|---|---|"]
        for one in requirements:
            tests = ", ".join(f"`{test}`" for test in one.tests)
            lines.append(f"| {one.id} {one.title} | {show_status(one.status)} | {tests} |".replace("|  |", "| |"))
        lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def run(root, check):
    """0, or 1 with a message on stderr."""
    path = os.path.join(root, "docs/coverage.md")
    try:
        page = write_page(collect(root))
    except Mistake as mistake:
        print(mistake, file=sys.stderr)
        return 1
    if not check:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
        return 0
    try:
        with open(path, encoding="utf-8") as file:
            current = file.read()
    except FileNotFoundError:
        current = ""
    if current != page:
        print("docs/coverage.md is out of date: run `make coverage-page`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        sys.exit(__doc__)
    sys.exit(run(ROOT, bool(sys.argv[1:])))
