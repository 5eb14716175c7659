"""What the tests of the command line share: a corpus, a small configuration, and running plimsoll."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

PLIMSOLL = os.environ["PLIMSOLL"]  # the program under test, given by CTest

SMALL = """
[model]
family = "llama"
layers = 1
hidden = 32
heads = 2
ffn_hidden = 64

[step]
precision = "bf16"
micro_batch = 2
global_batch = 4
sequence_length = 32

[schedule]
lr = 1e-2
warmup_steps = 5

[data]
train = "{corpus}"

[train]
steps = 30
eval_batches = 2  # of 4 sequences

[checkpoint]
every = 5
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.corpus = self.folder / "corpus.txt"
        self.corpus.write_text("".join(f"{i} plus {i % 7} is {i + i % 7}. " for i in range(4000)))
        self.config = self.write_config(SMALL)

    def write_config(self, text, name="small.toml"):
        path = self.folder / name
        path.write_text(text.replace("{corpus}", str(self.corpus)))
        return path

    def plimsoll(self, *arguments, **options):
        return subprocess.run([PLIMSOLL, *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, timeout=300, **options)

    def expect_error(self, code, *words, arguments):
        """Runs the command; it must exit with `code`, print every word and no stack of errors."""
        result = self.plimsoll(*arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        for word in words:
            self.assertIn(word, result.stderr)
        return result

    def metrics(self, run):
        lines = (self.folder / run / "metrics.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def losses(self, run):
        return [(m["step"], m["loss"], m["grad_norm"]) for m in self.metrics(run)]
