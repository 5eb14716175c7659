"""Bad input: the exit code, a message with the place and what to do, and nothing lost."""

import os
import resource
import signal
import struct
import subprocess
import unittest

from commands import PLIMSOLL, SMALL, CommandTest


class BadConfig(CommandTest):
    def expect(self, old, new, *words):
        self.assertIn(old, SMALL)
        config = self.write_config(SMALL.replace(old, new), "bad.toml")
        for command in ("plan", "train"):
            self.expect_error(2, *words, arguments=(command, config))
        self.assertFalse((self.folder / "runs").exists())

    def test_unknown_key_names_the_nearest(self):
        self.expect("micro_batch = 2", "micro_bach = 2", "bad.toml:11", "step.micro_bach",
                    "micro_batch")

    def test_unknown_table(self):
        self.expect("[schedule]", "[shedule]", "shedule", "schedule")

    def test_wrong_type(self):
        self.expect("layers = 1", 'layers = "one"', "bad.toml:4", "model.layers", "integer")

    def test_syntax(self):
        self.expect("layers = 1", "layers = = 1", "bad.toml:4")

    def test_heads_that_do_not_divide_hidden(self):
        self.expect("heads = 2", "heads = 3", "model.heads = 3", "32")

    def test_zero_sizes(self):
        self.expect("layers = 1", "layers = 0", "model.layers = 0")
        self.expect("sequence_length = 32", "sequence_length = -1", "step.sequence_length")

    def test_micro_batch_that_does_not_divide_the_global_batch(self):
        self.expect("micro_batch = 2", "micro_batch = 3", "micro_batch = 3", "global_batch = 4")

    def test_sequence_longer_than_learned_positions(self):
        self.expect('family = "llama"', 'family = "gpt2"\nmax_positions = 16',
                    "max_positions = 16", "32")

    def test_unknown_preset_names_the_nearest(self):
        self.expect_error(2, "llama-3-9b", "llama-3-8b",
                          arguments=("plan", "--preset", "llama-3-9b"))

    def test_set_of_an_unknown_key(self):
        self.expect_error(2, "--set", "train.stepz", "train.steps",
                          arguments=("plan", self.config, "--set", "train.stepz=3"))

    def test_missing_file(self):
        self.expect_error(2, "absent.toml", arguments=("plan", "absent.toml"))

    def test_no_configuration(self):
        self.expect_error(2, "No configuration", arguments=("train",))

    def test_unknown_flag_and_command(self):
        self.assertEqual(self.plimsoll("plan", "--frobnicate").returncode, 2)
        self.assertEqual(self.plimsoll("fly").returncode, 2)


class BadData(CommandTest):
    def expect(self, content, *words, settings=()):
        path = self.folder / "data.bin"
        if content is not None:
            path.write_bytes(content)
        arguments = ["train", self.config, "--set", f'data.train="{path}"']
        for setting in settings:
            arguments += ["--set", setting]
        self.expect_error(3, "data.bin", *words, arguments=arguments)
        self.assertFalse((self.folder / "runs").exists())

    def test_missing_file(self):
        self.expect(None, "No such file")

    def test_empty_file(self):
        self.expect(b"", "empty")

    def test_fewer_tokens_than_a_sequence(self):
        self.expect(struct.pack("<20H", *range(20)), "20", "33", settings=["model.vocab=50257"])

    def test_token_id_outside_the_vocabulary(self):
        tokens = [5] * 5000
        tokens[1234] = 300
        self.expect(struct.pack("<5000H", *tokens), "300", "1234")

    def test_truncated_header(self):
        self.expect(struct.pack("<3i", 20240520, 1, 100), "header")

    def test_size_that_does_not_match_the_header(self):
        header = struct.pack("<256i", 20240520, 1, 1000, *[0] * 253)
        self.expect(header + struct.pack("<900H", *[1] * 900), "1000", "900")


class NoMemory(CommandTest):
    def test_says_what_is_needed_what_there_is_and_what_to_change(self):
        for command in ("plan", "train"):
            self.expect_error(4, "does not fit", "needed", "300.0 KiB", "train.memory_limit",
                              "largest at the peak", "step.micro_batch = 1",
                              arguments=(command, self.config, "--set",
                                         'train.memory_limit="300 KiB"'))
        self.assertFalse((self.folder / "runs").exists())

    def test_of_this_machine(self):
        self.expect_error(4, "does not fit", "usable (",
                          arguments=("plan", "--preset", "llama-64b"))


class Disk(CommandTest):
    def train_with_disk_that_fills(self, background):
        def limit_files():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (120_000, 120_000))
        return self.plimsoll("train", "--resume", "run", "--set", "train.steps=60", "--set",
                             f"checkpoint.in_background={background}", preexec_fn=limit_files)

    def test_full_while_a_checkpoint_is_written(self):
        for background in ("true", "false"):
            subprocess.run(["rm", "-rf", str(self.folder / "run")], check=True)
            self.plimsoll("train", self.config, "--run-directory", "run")
            before = sorted(p.name for p in (self.folder / "run/checkpoints").iterdir())
            result = self.train_with_disk_that_fills(background)
            self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
            self.assertIn("checkpoints", result.stderr)
            after = sorted(p.name for p in (self.folder / "run/checkpoints").iterdir())
            self.assertEqual(before, after)
            result = self.plimsoll("train", "--resume", "run", "--set", "train.steps=60")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertIn("resumed at step 30", result.stdout)

    @unittest.skipUnless(os.geteuid() == 0, "mounting needs root")
    def test_read_only_while_a_checkpoint_is_written(self):
        self.plimsoll("train", self.config, "--run-directory", "run")
        checkpoints = self.folder / "run/checkpoints"
        mount = ["mount", "--bind", str(checkpoints), str(checkpoints)]
        if subprocess.run(mount, capture_output=True).returncode != 0:
            self.skipTest("mounts are not allowed here")
        self.addCleanup(subprocess.run, ["umount", str(checkpoints)])
        subprocess.run(["mount", "-o", "remount,bind,ro", str(checkpoints)], check=True)
        result = self.plimsoll("train", "--resume", "run", "--set", "train.steps=60")
        self.assertEqual(result.returncode, 3, result.stdout + result.stderr)
        self.assertIn("Read-only", result.stderr)
        self.assertTrue((checkpoints / "step-30/manifest.json").exists())


class RunDirectory(CommandTest):
    def test_of_an_earlier_run_is_not_overwritten(self):
        self.plimsoll("train", self.config, "--run-directory", "run")
        before = (self.folder / "run/metrics.jsonl").read_bytes()
        self.expect_error(2, "--resume",
                          arguments=("train", self.config, "--run-directory", "run"))
        self.assertEqual((self.folder / "run/metrics.jsonl").read_bytes(), before)

    def test_resume_of_something_else(self):
        self.expect_error(2, "not a run directory", arguments=("train", "--resume", "nowhere"))

    def test_in_use(self):
        process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--run-directory", "run",
                                    "--set", "train.steps=1000000"],
                                   cwd=self.folder, stdout=subprocess.DEVNULL)
        try:
            while not (self.folder / "run/metrics.jsonl").exists():
                pass
            self.expect_error(2, "in use", arguments=("train", "--resume", "run"))
        finally:
            process.kill()
            process.wait()

    def test_generate_without_a_checkpoint(self):
        self.expect_error(2, "not a run directory",
                          arguments=("generate", "nowhere", "--prompt", "a"))


if __name__ == "__main__":
    unittest.main()
