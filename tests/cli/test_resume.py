"""plimsoll train, stopped and continued: what may change, what is refused, and what is left alone."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import unittest

from commands import PLIMSOLL, CommandTest

LONG = ["--set", "train.steps=1000000", "--set", "checkpoint.every=1000"]


class RunTest(CommandTest):
    def train(self, *arguments, code=0):
        result = self.plimsoll("train", *arguments)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def contents(self, run):
        """Every file of the run but those a refused start may write, with its bytes."""
        root = self.folder / run
        return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*")
                if p.is_file() and p.name not in ("failure.json", ".lock")}

    def summary(self, run):
        return json.loads((self.folder / run / "summary.json").read_text())

    def failure(self, run):
        return json.loads((self.folder / run / "failure.json").read_text())

    def refused(self, run, *settings, code=2, words=()):
        """The resume is refused with a message that holds every word, and nothing has changed."""
        before = self.contents(run)
        result = self.train("--resume", run, *settings, code=code)
        for word in words:
            self.assertIn(word, result.stderr)
        self.assertEqual(self.contents(run), before, settings)
        self.assertEqual(self.failure(run)["exit_code"], code)
        return result

    def start(self, *arguments, **options):
        """A run that never ends by itself, with some steps done."""
        process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--run-directory", "run",
                                    *LONG, *arguments], cwd=self.folder, text=True, **options)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        metrics = self.folder / "run/metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 2000):
            time.sleep(0.01)
        return process


class Resume(RunTest):
    def setUp(self):
        super().setUp()
        self.train(self.config, "--run-directory", "run", "--set", "train.steps=10")

    def test_refuses_what_would_be_another_run_and_touches_nothing(self):
        one_head = ["--set", "model.query_groups=1", "--set", "model.head_dim=32"]
        self.refused("run", "--set", "model.heads=1", *one_head, words=("the run in run has",))
        for setting, was in {"model.qk_norm=true": "false", "model.layers=2": "1",
                             "model.norm_eps=1e-3": "norm_eps", "model.rope_theta=5.0": "rope_theta",
                             "train.seed=2": "train.seed = 1",
                             "step.sequence_length=16": "step.sequence_length = 32",
                             "step.precision=fp32": '"bf16"', "optimizer.moments=bf16": '"fp32"',
                             "recipe.name=mxfp8": 'recipe.name = "none"',
                             "data.validation_fraction=0.2": "0.01"}.items():
            self.refused("run", "--set", setting, "--set", "train.steps=20",
                         words=(setting.split("=")[0], was))
        self.train("--resume", "run", "--set", "train.steps=12")
        self.assertFalse((self.folder / "run/failure.json").exists())

    def test_goes_on_with_what_may_change(self):
        self.train("--resume", "run", "--set", "train.steps=14", "--set", "schedule.lr=1e-3",
                   "--set", "step.global_batch=8", "--set", "step.micro_batch=4", "--set",
                   "train.threads=1", "--set", "checkpoint.every=3", "--set",
                   "optimizer.weight_decay=0")
        self.assertEqual(len(self.metrics("run")), 14)

    def test_counts_the_tokens_that_were_consumed(self):
        self.train("--resume", "run", "--set", "train.steps=12", "--set", "step.global_batch=2")
        tokens = [m["tokens"] for m in self.metrics("run")]
        self.assertEqual(tokens, [128 * i for i in range(1, 11)] + [1280 + 64, 1280 + 128])
        self.assertEqual(self.summary("run")["tokens"], 1280 + 128)

    def test_of_a_finished_run_changes_nothing(self):
        before = self.contents("run")
        for _ in range(2):
            self.assertIn("finished", self.train("--resume", "run").stdout)
        self.assertEqual(self.contents("run"), before)

    def test_of_a_finished_run_without_its_summary_writes_it_again(self):
        before = self.summary("run")
        (self.folder / "run/summary.json").unlink()
        self.train("--resume", "run")
        for key in ("finished", "steps", "tokens", "train_loss", "validation_loss"):
            self.assertEqual(self.summary("run")[key], before[key], key)
        self.assertEqual(len(self.metrics("run")), 10)

    def test_past_the_end_is_refused(self):
        self.refused("run", "--set", "train.steps=5", words=("10 steps are done", "train.steps = 5"))

    def test_of_a_damaged_checkpoint_touches_nothing(self):
        for path in (self.folder / "run/checkpoints").glob("*/optimizer.safetensors"):
            path.write_bytes(path.read_bytes()[:-8])
        self.refused("run", "--set", "train.steps=20", code=3, words=("optimizer.safetensors",))

    def test_elsewhere_is_refused(self):
        self.refused("run", "--run-directory", "other", words=("where it is",))
        self.refused("run", "--set", "train.run_directory=other", words=("where it is",))
        self.assertFalse((self.folder / "other").exists())

    def test_of_a_run_of_before_that_states_less(self):
        manifests = list((self.folder / "run/checkpoints").glob("*/manifest.json"))
        for path in manifests:
            manifest = json.loads(path.read_text())
            manifest["manifest_sha256"], manifest["extra"] = "0" * 64, None
            text = json.dumps(manifest, indent=2) + "\n"
            digest = hashlib.sha256(text.encode()).hexdigest()
            path.write_text(text.replace("0" * 64, digest, 1))
        self.refused("run", "--set", "train.steps=12", "--set", "model.qk_norm=true",
                     words=("model.qk_norm = false",))
        self.train("--resume", "run", "--set", "train.steps=12")
        self.assertEqual(self.metrics("run")[-1]["tokens"], 12 * 128)


class Corpus(RunTest):
    def test_from_another_folder_is_the_same(self):
        self.config.write_text(self.config.read_text().replace(str(self.corpus), "corpus.txt"))
        self.train(self.config, "--run-directory", "run", "--set", "train.steps=10")
        elsewhere = self.folder / "elsewhere"
        elsewhere.mkdir()
        (elsewhere / "corpus.txt").write_text("another text. " * 4000)
        result = subprocess.run([PLIMSOLL, "train", "--resume", "../run", "--set",
                                 "train.steps=12"], cwd=elsewhere, capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_that_changed_is_refused(self):
        text = self.corpus.read_text()
        self.train(self.config, "--run-directory", "run", "--set", "train.steps=10")
        for changed in (text[:-100], "x" + text[1:], text[:5000] + "!" + text[5001:]):
            self.corpus.write_text(changed)
            self.refused("run", "--set", "train.steps=12", code=3, words=("corpus.txt",))
        (self.folder / "other.txt").write_text("another text. " * 9000)
        self.refused("run", "--set", "train.steps=12", "--set", "data.train=other.txt",
                     words=("data.train", "other.txt"))
        (self.folder / "moved.txt").write_text(text)
        self.train("--resume", "run", "--set", "train.steps=12", "--set", "data.train=moved.txt")

    def test_that_grew_is_read_as_it_was(self):
        settings = ["--set", "data.validation_fraction=0.5"]
        self.train(self.config, "--run-directory", "whole", *settings)
        self.train(self.config, "--run-directory", "run", *settings, "--set", "train.steps=30",
                   "--set", "train.eval_every=30")
        shutil.rmtree(self.folder / "run/checkpoints/step-30")
        with open(self.corpus, "a") as file:
            file.write("what was held out must not be trained on. " * 5000)
        result = self.train("--resume", "run")
        self.assertIn("has grown", result.stdout)
        self.assertEqual(self.losses("run"), self.losses("whole"))
        self.assertEqual(self.metrics("run")[-1]["validation_loss"],
                         self.metrics("whole")[-1]["validation_loss"])


class Validation(RunTest):
    def test_loss_does_not_depend_on_the_micro_batch(self):
        losses = set()
        for micro, sequences in ((1, 6), (2, 6), (4, 6)):
            run = f"run-{micro}"
            self.train(self.config, "--run-directory", run, "--set", f"step.micro_batch={micro}",
                       "--set", "step.precision=fp32", "--set", "schedule.lr=0", "--set",
                       f"train.eval_sequences={sequences}", "--set", "train.eval_batches=0",
                       "--set", "train.steps=5")
            losses.add(self.metrics(run)[-1]["validation_loss"])
        self.assertEqual(len(losses), 1, losses)

    def test_none_without_held_out_tokens(self):
        result = self.train(self.config, "--run-directory", "run", "--set",
                            "data.validation_fraction=0", "--set", "train.eval_every=5")
        self.assertIn("held-out loss       none", result.stdout)
        self.assertIsNone(self.summary("run")["validation_loss"])
        self.assertNotIn("validation_loss", self.metrics("run")[-1])


class Signals(RunTest):
    def test_that_schedulers_send_save_and_exit_with_75(self):
        for number in (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXCPU):
            process = self.start(stdout=subprocess.PIPE)
            process.send_signal(number)
            output, _ = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 75, output)
            self.assertIn(f"interrupted by {number.name}", output)
            step = self.summary("run")["steps"]
            self.assertTrue((self.folder / f"run/checkpoints/step-{step}").is_dir())
            shutil.rmtree(self.folder / "run")

    def test_of_several_kinds_at_once_lose_nothing(self):
        process = self.start(stdout=subprocess.PIPE)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            process.send_signal(number)
        output, _ = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 75, output)
        step = self.summary("run")["steps"]
        self.assertEqual(step, len(self.metrics("run")))
        self.assertTrue((self.folder / f"run/checkpoints/step-{step}").is_dir())

    def test_that_the_parent_ignores_stay_ignored(self):
        process = self.start(stdout=subprocess.DEVNULL,
                             preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        process.send_signal(signal.SIGHUP)
        before = (self.folder / "run/metrics.jsonl").stat().st_size
        while process.poll() is None and \
                (self.folder / "run/metrics.jsonl").stat().st_size < before + 2000:
            time.sleep(0.01)
        self.assertIsNone(process.poll())
        process.terminate()
        self.assertEqual(process.wait(timeout=120), 75)

    def test_before_the_first_step_ends_at_once(self):
        process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--run-directory", "run",
                                    "--set", "model.layers=8", "--set", "model.hidden=1024", *LONG],
                                   cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        process.stdout.readline()  # the plan: the weights are being drawn
        process.terminate()
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 75, errors)
        if (self.folder / "run/summary.json").exists():
            self.assertIsNone(self.summary("run")["train_loss"])

    def test_output_that_nobody_reads_does_not_end_the_run(self):
        read, write = os.pipe()
        process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--run-directory", "run"],
                                   cwd=self.folder, stdout=write, stderr=subprocess.PIPE)
        os.close(write)
        os.close(read)
        _, errors = process.communicate(timeout=120)
        self.assertEqual(process.returncode, 0, errors)
        self.assertEqual(len(self.metrics("run")), 30)
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w") as full:
                again = subprocess.run([PLIMSOLL, "train", str(self.config), "--run-directory",
                                        "full"], cwd=self.folder, stdout=full)
            self.assertEqual(again.returncode, 0)


class Continue(RunTest):
    def again(self, *arguments, code=0):
        return self.train(self.config, "--continue", "--run-directory", "run", *arguments, code=code)

    def test_starts_goes_on_and_ends_with_the_same_command(self):
        self.train(self.config, "--run-directory", "whole")
        (self.folder / "run").mkdir()
        (self.folder / "run/slurm-17.out").write_text("a log of the scheduler\n")
        self.again("--set", "train.steps=10", "--set", "schedule.lr=0.01", "--set",
                   "schedule.decay=constant")
        self.train(self.config, "--run-directory", "constant", "--set", "schedule.decay=constant")
        self.again("--set", "schedule.decay=constant")
        self.assertEqual(self.losses("run"), self.losses("constant"))
        before = self.contents("run")
        self.assertIn("finished", self.again("--set", "schedule.decay=constant").stdout)
        self.assertEqual(self.contents("run"), before)

    def test_goes_on_after_kills(self):
        self.train(self.config, "--run-directory", "whole", "--set", "train.steps=2000")
        for delay in (0.05, 0.3, 0.3, 0.3):
            process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--continue",
                                        "--run-directory", "run", "--set", "train.steps=2000"],
                                       cwd=self.folder, stdout=subprocess.DEVNULL)
            time.sleep(delay)
            process.kill()
            process.wait()
        self.again("--set", "train.steps=2000")
        self.assertEqual(self.losses("run"), self.losses("whole"))

    def test_takes_the_checkpoints_to_another_machine(self):
        self.train(self.config, "--run-directory", "whole")
        elsewhere = ["--checkpoint-directory", "kept"]
        self.again(*elsewhere, "--set", "checkpoint.keep_last=0")
        self.assertFalse((self.folder / "run/checkpoints").exists())
        shutil.rmtree(self.folder / "run")
        shutil.rmtree(self.folder / "kept/step-30")
        shutil.rmtree(self.folder / "kept/step-25")
        weights = self.folder / "kept/step-20/model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-1] + b"!")
        result = self.again(*elsewhere)
        self.assertIn("passed over", result.stdout)
        self.assertIn("resumed at step 15", result.stdout)
        self.assertEqual(self.losses("run"), self.losses("whole")[15:])
        generated = self.plimsoll("generate", "run", "--prompt", "1", "--tokens", "2")
        self.assertEqual(generated.returncode, 0, generated.stderr)
        self.expect_error(2, "earlier run", arguments=(
            "train", self.config, "--run-directory", "new", *elsewhere))

    def test_leaves_failure_json_until_it_goes_well(self):
        self.again("--set", "train.memory_limit=300 KiB", code=4)
        failure = self.failure("run")
        self.assertEqual(failure["exit_code"], 4)
        self.assertIn("does not fit", failure["what"])
        self.assertIn("step.micro_batch", failure["advice"])
        self.again("--set", "data.train=absent.txt", code=3)
        self.assertIn("absent.txt", self.failure("run")["what"])
        self.again("--set", "train.stepz=3", code=2)
        self.assertEqual(self.failure("run")["where"], "configuration")
        self.again("--set", "schedule.lr=1e30", "--set", "optimizer.clip_norm=0", code=3)
        self.assertEqual(self.failure("run")["where"], "training")
        self.assertGreater(self.failure("run")["step"], 0)
        self.again()
        self.assertFalse((self.folder / "run/failure.json").exists())

    def test_of_another_run_is_refused(self):
        self.again()
        before = self.contents("run")
        self.again("--set", "model.layers=3", code=2)
        self.assertEqual(self.contents("run"), before)


class Compare(RunTest):
    def compare(self, *settings, code=0):
        result = self.plimsoll("compare", self.config, "--recipes", "mxfp8", "--seeds", "1",
                               "--directory", "all", "--set", "train.steps=8", *settings)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def test_is_ended_by_an_error_that_is_not_a_result(self):
        result = self.compare("--set", "data.train=absent.txt", code=3)
        self.assertIn("absent.txt", result.stderr)
        self.compare("--set", "train.memory_limit=300 KiB", code=4)
        self.assertFalse((self.folder / "all/comparison.json").exists())

    def test_takes_divergence_as_a_result(self):
        result = self.compare("--set", "schedule.lr=1e30", "--set", "optimizer.clip_norm=0")
        self.assertIn("stopped", result.stdout)
        self.assertIn("no complete run", result.stdout)


class Words(RunTest):
    def test_a_comparison_of_a_preset_is_named_after_it(self):
        result = self.plimsoll("compare", "--preset", "llama-3m", "--seeds", "1", "--set",
                               "train.memory_limit=1 MiB", "--set", f"data.train={self.corpus}")
        self.assertEqual(result.returncode, 4, result.stderr)
        self.assertIn("runs/llama-3m-quick", result.stdout)

    def test_the_printed_command_can_be_pasted(self):
        process = subprocess.Popen([PLIMSOLL, "train", str(self.config), "--run-directory",
                                    "it's a run", *LONG], cwd=self.folder, stdout=subprocess.PIPE,
                                   text=True)
        metrics = self.folder / "it's a run/metrics.jsonl"
        while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 0):
            time.sleep(0.01)
        process.terminate()
        output, _ = process.communicate(timeout=120)
        command = [line for line in output.splitlines() if "plimsoll train --resume" in line][0]
        steps = self.summary("it's a run")["steps"]
        shell = subprocess.run(["sh", "-c", command.replace("plimsoll", f"'{PLIMSOLL}'", 1) +
                                f" --set train.steps={steps + 2}"], cwd=self.folder,
                               capture_output=True, text=True)
        self.assertEqual(shell.returncode, 0, shell.stderr)

    def test_checkpoints_are_logged_once_they_are_on_disk(self):
        self.train(self.config, "--run-directory", "run", "--set", "checkpoint.keep_last=0")
        events = [json.loads(line) for line in
                  (self.folder / "run/events.jsonl").read_text().splitlines()]
        logged = [e["step"] for e in events if e["event"] == "checkpoint"]
        self.assertEqual(logged[-1], 30)
        self.assertEqual(logged, sorted(set(logged)))
        for step in logged:
            self.assertTrue((self.folder / f"run/checkpoints/step-{step}").is_dir())


if __name__ == "__main__":
    unittest.main()
