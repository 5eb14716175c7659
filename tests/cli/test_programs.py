"""Golden listings: the step programs of small settings, as text that a person can read.

Each tests/golden/programs/*.txt begins with what it shows and its settings, on top of common.toml;
the rest is what `plimsoll plan --program` prints for them. A change of the builder, of an op or of a pass shows here
as a difference to look at. When it is meant, `scripts/bless` writes the listings again; a new file
needs only its two lines.
"""

import os
import pathlib
import shlex
import subprocess
import sys
import unittest

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "golden" / "programs"


def listing(header):
    """The program of the settings in the second line: "# model.layers=1 step.precision=fp32"."""
    settings = shlex.split(header[1].lstrip("# "))
    arguments = [word for setting in settings for word in ("--set", setting)]
    result = subprocess.run([os.environ["PLIMSOLL"], "plan", FOLDER / "common.toml", "--program",
                             *arguments],
                            capture_output=True, text=True, timeout=60)
    if result.returncode != 0:
        raise AssertionError(result.stderr)
    return result.stdout.splitlines()


class Programs(unittest.TestCase):
    maxDiff = None

    def test_are_the_golden_ones(self):
        files = sorted(FOLDER.glob("*.txt"))
        self.assertGreater(len(files), 11)
        for path in files:
            with self.subTest(path.name):
                lines = path.read_text().splitlines()
                got = listing(lines[:2])
                self.assertEqual(lines[2:], got,
                                 f"{path.name} differs; if it should, run scripts/bless")


def bless():
    for path in sorted(FOLDER.glob("*.txt")):
        header = path.read_text().splitlines()[:2]
        text = "\n".join(header + listing(header)) + "\n"
        if text != path.read_text():
            print(f"blessed {path.name}")
            path.write_text(text)


if __name__ == "__main__":
    if sys.argv[1:] == ["--bless"]:
        bless()
    else:
        unittest.main()
