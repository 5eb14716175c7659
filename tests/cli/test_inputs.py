"""What stands where a file, a pipe, an output or a limit is expected: an answer, and never a hang."""

import gzip
import os
import pathlib
import resource
import shutil
import struct
import subprocess
import unittest

from commands import PLIMSOLL, SMALL, CommandTest

LINK_TO_ENDLESS = "/dev/zero"


class InputTest(CommandTest):
    def setUp(self):
        super().setUp()
        self.config = self.write_config(SMALL.replace("warmup_steps = 5", "warmup_steps = 0"))


class Config(InputTest):
    def test_from_a_pipe_is_read_like_a_file(self):
        text = self.config.read_text()
        listing = self.plimsoll("plan", self.config, "--program").stdout
        self.assertIn("mat_mul", listing)
        self.assertEqual(self.plimsoll("plan", "/dev/stdin", "--program", input=text).stdout,
                         listing)
        for preset in ((), ("--preset", "llama-3m")):
            bad = self.plimsoll("plan", "/dev/stdin", *preset, input="[train]\nstepz = 3\n")
            self.assertEqual(bad.returncode, 2)
            self.assertIn("stepz", bad.stderr)

    def test_that_never_ends_or_nests_too_deeply_is_refused(self):
        self.expect_error(2, "1.0 MiB", arguments=("plan", LINK_TO_ENDLESS))
        self.expect_error(2, "directory", arguments=("plan", self.folder))
        deep = ["[train]\nsteps = " + "[" * 100000,
                "[train]\nsteps = " + "{a=" * 100000,
                "a" + ".a" * 100000 + " = 1\n",
                "[" + "a." * 100000 + "a]\n",
                "[train]\nsteps = {" + "a." * 100000 + "b = 1}\n"]
        for text in deep:
            config = self.write_config(text, "deep.toml")
            self.expect_error(2, "nested more than 16 deep", arguments=("plan", config))
        self.expect_error(2, "nested more than 16 deep",
                          arguments=("plan", self.config, "--set", "train.steps=" + "[" * 1000))

    def test_numbers_that_are_none_in_f32_are_refused(self):
        for setting in ("optimizer.eps=1e-60", "model.norm_eps=1e-60", "optimizer.eps=1e60",
                        "optimizer.beta2=0.9999999999", "schedule.lr=1e39"):
            self.expect_error(2, setting.split("=")[0],
                              arguments=("plan", self.config, "--set", setting))

    def test_integers_beyond_their_range_are_refused(self):
        for number in ("9223372036854775808", "18446744073709551617", "-1", "4294967297"):
            self.expect_error(2, "train.threads",
                              arguments=("plan", self.config, "--set", f"train.threads={number}"))
        for options in (["--seeds", "4294967297"], ["--seeds", "18446744073709551617"]):
            self.assertEqual(self.plimsoll("compare", self.config, *options).returncode, 2)


class Resume(InputTest):
    def test_never_waits_for_what_is_no_file(self):
        self.plimsoll("train", self.config, "--run-directory", "made", "--set", "train.steps=6")
        files = ["run.toml", "metrics.jsonl", "events.jsonl", "plan.json", "summary.json",
                 "checkpoints/step-6/manifest.json", "checkpoints/step-6/model.safetensors"]
        for name in files:
            for put in (os.mkfifo, lambda path: os.symlink(LINK_TO_ENDLESS, path)):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                shutil.copytree(self.folder / "made", self.folder / "run")
                path = self.folder / "run" / name
                path.unlink()
                put(path)
                result = self.plimsoll("train", "--resume", "run", "--set", "train.steps=7")
                self.assertIn(result.returncode, (0, 2, 3), name + result.stderr)
                if result.returncode != 0:
                    self.assertIn(pathlib.Path(name).name, result.stderr)
                self.assertFalse(path.is_file(), f"{name} was replaced")


class Corpus(InputTest):
    def test_shortened_while_it_is_read(self):
        process = subprocess.Popen(
            [PLIMSOLL, "train", str(self.config), "--run-directory", "run", "--set",
             "train.steps=1000000"], cwd=self.folder, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        metrics = self.folder / "run/metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 0):
            pass
        os.truncate(self.corpus, 100)
        _, stderr = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 3, stderr)
        self.assertIn("corpus.txt: it ends before byte ", stderr)

    def test_decompressed_counts_toward_the_limit(self):
        path = self.folder / "large.gz"
        path.write_bytes(gzip.compress(b"some text " * 2_000_000))
        limit = 'train.memory_limit="16 MiB"'
        self.expect_error(4, "large.gz", "zcat",
                          arguments=("train", self.config, "--set", f"data.train={path}", "--set",
                                     limit))
        self.assertFalse((self.folder / "runs").exists())

    def test_damaged_member_ends_the_run_before_it_begins(self):
        second = bytearray(gzip.compress(b"\xff" * 5000))
        second[0] ^= 1
        first = gzip.compress(self.corpus.read_bytes())
        path = self.folder / "x.gz"
        path.write_bytes(first + second)
        self.expect_error(3, "x.gz", f"near byte {len(first) + 2}",
                          arguments=("train", self.config, "--set", f"data.train={path}"))


class Generate(InputTest):
    def run_with(self, name, *settings):
        arguments = [part for setting in ("train.steps=2", *settings) for part in ("--set", setting)]
        result = self.plimsoll("train", self.config, "--run-directory", name, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)

    def generate(self, name, *arguments):
        return subprocess.run([PLIMSOLL, "generate", name, "--prompt", "12", "--tokens", "60",
                               "--temperature", "9", "--top-k", "0", *arguments],
                              capture_output=True, cwd=self.folder, timeout=300)

    def test_writes_utf8_with_any_vocabulary_of_text(self):
        for vocab in (256, 264, 512):
            self.run_with(f"v{vocab}", f"model.vocab={vocab}")
            result = self.generate(f"v{vocab}")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertTrue(result.stdout.decode("utf-8").startswith("12"))

    def test_refuses_token_ids_whatever_their_vocabulary(self):
        path = self.folder / "ids.bin"
        path.write_bytes(struct.pack("<9000H", *[(i * i) % 263 for i in range(9000)]))
        self.run_with("ids", f"data.train={path}", "model.vocab=264")
        result = self.generate("ids")
        self.assertEqual(result.returncode, 2)
        self.assertIn(b"token ids", result.stderr)

    def test_numbers_of_the_command_line(self):
        self.run_with("run")
        self.assertNotEqual(self.generate("run", "--seed", "1").stdout,
                            self.generate("run", "--seed", "4294967297").stdout)
        for option, value in (("--seed", "18446744073709551616"), ("--seed", "-1"),
                              ("--threads", "-3"), ("--threads", "100000"),
                              ("--threads", "4294967297"), ("--tokens", "18446744073709551617"),
                              ("--tokens", "0"), ("--top-k", "99999999999999999999")):
            self.assertEqual(self.generate("run", option, value).returncode, 2, option + value)

    def test_says_that_it_passes_over_a_damaged_checkpoint(self):
        self.run_with("run", "checkpoint.every=1")
        with open(self.folder / "run/checkpoints/step-2/model.safetensors", "ab") as file:
            file.write(b"x")
        result = self.generate("run")
        self.assertEqual(result.returncode, 0)
        self.assertIn(b"passed over: ", result.stderr)
        self.assertIn(b"step-2 is damaged", result.stderr)

    def test_while_retention_removes_checkpoints(self):
        run = subprocess.Popen(
            [PLIMSOLL, "train", str(self.config), "--run-directory", "run", "--set",
             "train.steps=1000000", "--set", "checkpoint.every=1", "--set",
             "checkpoint.keep_last=1"], cwd=self.folder, stdout=subprocess.DEVNULL)
        try:
            checkpoints = self.folder / "run/checkpoints"
            while run.poll() is None and not any(checkpoints.glob("step-*")):
                pass
            for _ in range(6):
                result = self.generate("run")
                self.assertEqual(result.returncode, 0, result.stderr)
        finally:
            run.kill()
            run.wait()


class Output(InputTest):
    def commands(self):
        return [("plan", self.config), ("plan", self.config, "--json"),
                ("plan", self.config, "--program"), ("explain", self.config), ("config",),
                ("presets",), ("--help",), ("--version",),
                ("generate", "run", "--prompt", "1", "--tokens", "3")]

    def test_that_is_lost_is_an_error(self):
        self.plimsoll("train", self.config, "--run-directory", "run", "--set", "train.steps=1")
        for arguments in self.commands():
            command = [PLIMSOLL, *map(str, arguments)]
            for redirection in (">/dev/full", ">&-"):
                result = subprocess.run(["sh", "-c", '"$@" ' + redirection, "sh", *command],
                                        capture_output=True, text=True, cwd=self.folder)
                self.assertEqual(result.returncode, 3, f"{arguments} {redirection}")
                self.assertIn("standard output", result.stderr)

    def test_of_a_run_does_not_decide_about_the_run(self):
        for number, redirection in enumerate((">/dev/full", ">&-", ">&- 2>&- <&-")):
            command = [PLIMSOLL, "train", str(self.config), "--run-directory", f"run{number}",
                       "--set", "train.steps=2"]
            result = subprocess.run(["sh", "-c", '"$@" ' + redirection, "sh", *command],
                                    capture_output=True, text=True, cwd=self.folder)
            self.assertEqual(result.returncode, 0, result.stderr)
            for name in ("run.toml", "metrics.jsonl", "summary.json"):
                text = (self.folder / f"run{number}" / name).read_text()
                self.assertNotIn("[rank 0]", text, name)

    def test_files_are_put_where_links_lead_and_pipes_are_written_to(self):
        (self.folder / "link.html").symlink_to("real.html")
        for _ in range(2):
            self.assertEqual(
                self.plimsoll("explain", self.config, "--html", "link.html").returncode, 0)
            self.assertTrue((self.folder / "link.html").is_symlink())
            self.assertIn("<html", (self.folder / "real.html").read_text())
        for option in ("--timeline", "--frontier-svg"):
            result = self.plimsoll("plan", self.config, option, "/dev/stdout")
            self.assertIn("<svg", result.stdout)
            self.expect_error(3, "/dev/full", arguments=("plan", self.config, option, "/dev/full"))
        os.mkfifo(self.folder / "pipe")
        with subprocess.Popen(["cat", self.folder / "pipe"], stdout=subprocess.PIPE) as reader:
            self.plimsoll("explain", self.config, "--html", "pipe")
            self.assertIn(b"<html", reader.communicate()[0])
        self.assertTrue((self.folder / "pipe").is_fifo())


class Limits(InputTest):
    def limited(self, limit, *arguments):
        def apply():
            for name, value in limit.items():
                resource.setrlimit(name, value)
        return subprocess.run([PLIMSOLL, *map(str, arguments)], capture_output=True, text=True,
                              cwd=self.folder, timeout=300, preexec_fn=apply)

    def test_of_the_stack(self):
        train = ("train", self.config, "--set", "train.steps=1", "--run-directory")
        small = 64 * 1024
        soft = self.limited({resource.RLIMIT_STACK: (small, resource.RLIM_INFINITY)}, *train, "a")
        self.assertEqual(soft.returncode, 0, soft.stderr)
        hard = self.limited({resource.RLIMIT_STACK: (small, small)}, *train, "b")
        self.assertEqual(hard.returncode, 4, hard.stderr)
        self.assertIn("ulimit -s", hard.stderr)

    def test_of_open_files_names_the_limit(self):
        # Enough for the libraries, which come one after the other.
        result = self.limited({resource.RLIMIT_NOFILE: (5, 5)}, "train", self.config)
        self.assertEqual(result.returncode, 3, result.stderr)
        self.assertIn("ulimit -n", result.stderr)

    def test_of_address_space_ends_in_an_answer(self):
        # From hardly enough to start to plenty: fits, or exit 4 with what to do.
        answered = set()
        for mebibytes in (90, 120, 160, 240, 400, 4000):
            size = mebibytes << 20
            result = self.limited({resource.RLIMIT_AS: (size, size)}, "train", self.config, "--set",
                                  "train.steps=1", "--set", "train.threads=8", "--run-directory",
                                  f"run{mebibytes}")
            if result.returncode == 127 or "shared object" in result.stderr:
                continue  # not even the libraries were loaded
            self.assertIn(result.returncode, (0, 4), f"{mebibytes} MiB: {result.stderr}")
            answered.add(result.returncode)
        self.assertIn(0, answered)


if __name__ == "__main__":
    unittest.main()
