"""plimsoll train: what a run leaves, and that it continues bit for bit however it was stopped."""

import json
import random
import signal
import subprocess
import time
import unittest

from commands import PLIMSOLL, CommandTest


class Train(CommandTest):
    def test_leaves_the_files_of_a_run_directory(self):
        result = self.plimsoll("train", self.config, "--run-directory", "run")
        self.assertEqual(result.returncode, 0, result.stderr)
        run = self.folder / "run"
        for name in ("run.toml", "plan.json", "metrics.jsonl", "events.jsonl", "summary.json",
                     "report.html", "checkpoints/step-30/model.safetensors",
                     "checkpoints/step-30/manifest.json"):
            self.assertTrue((run / name).exists(), name)
        summary = json.loads((run / "summary.json").read_text())
        self.assertEqual(summary["planned_bytes"], summary["allocated_bytes"])
        plan = json.loads((run / "plan.json").read_text())
        self.assertEqual(plan["memory"]["arena_bytes"], summary["allocated_bytes"])
        self.assertEqual([m["step"] for m in self.metrics("run")], list(range(1, 31)))
        self.assertLess(self.metrics("run")[-1]["validation_loss"], 4)
        self.assertIn("[rank 0] step 1/30 loss", result.stdout)
        self.assertIn("[rank 0] step 30/30 loss", result.stdout)
        self.assertIn("memory planned", result.stdout)

    def test_repeats_a_run_bit_for_bit(self):
        for run in ("a", "b"):
            self.assertEqual(self.plimsoll("train", self.config, "--run-directory", run).returncode, 0)
        self.assertEqual(self.losses("a"), self.losses("b"))

    def test_run_toml_alone_repeats_the_run(self):
        self.plimsoll("train", self.config, "--run-directory", "a")
        result = self.plimsoll("train", "a/run.toml", "--run-directory", "b")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(self.losses("a"), self.losses("b"))

    def test_stops_for_a_signal_with_75_and_continues_bit_for_bit(self):
        self.plimsoll("train", self.config, "--run-directory", "whole", "--set", "train.steps=3000")
        for number in (signal.SIGTERM, signal.SIGINT):
            run = f"stopped-{number}"
            process = subprocess.Popen(
                [PLIMSOLL, "train", str(self.config), "--run-directory", run, "--set",
                 "train.steps=3000"], cwd=self.folder, stdout=subprocess.PIPE, text=True)
            metrics = self.folder / run / "metrics.jsonl"
            while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 2000):
                time.sleep(0.01)
            process.send_signal(number)
            output, _ = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 75, output)
            self.assertIn("plimsoll train --resume " + run, output)
            stopped_at = self.metrics(run)[-1]["step"]
            self.assertLess(stopped_at, 3000)
            self.assertTrue((self.folder / run / f"checkpoints/step-{stopped_at}").is_dir())
            result = self.plimsoll("train", "--resume", run)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.losses(run), self.losses("whole"))

    def test_survives_fifty_kills_bit_for_bit(self):
        steps = ["--set", "train.steps=4000", "--set", "checkpoint.every=7"]
        self.plimsoll("train", self.config, "--run-directory", "whole", *steps)
        random.seed(1)
        kills = 0
        command = [PLIMSOLL, "train", str(self.config), "--run-directory", "killed", *steps]
        while kills < 50:
            process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.DEVNULL)
            time.sleep(random.uniform(0.02, 0.25))
            if process.poll() is not None:
                break  # the run came to its end before the fiftieth kill
            process.kill()
            process.wait()
            kills += 1
            if (self.folder / "killed" / "run.toml").exists():
                command = [PLIMSOLL, "train", "--resume", "killed"]
        result = self.plimsoll("train", "--resume", "killed")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(kills, 50)
        self.assertEqual(self.losses("killed"), self.losses("whole"))

    def test_passes_over_a_damaged_checkpoint_and_says_so(self):
        self.plimsoll("train", self.config, "--run-directory", "whole")
        self.plimsoll("train", self.config, "--run-directory", "run")
        run = self.folder / "run"
        weights = run / "checkpoints/step-30/model.safetensors"
        data = bytearray(weights.read_bytes())
        data[-5] ^= 1
        weights.write_bytes(data)
        result = self.plimsoll("train", "--resume", "run")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("passed over", result.stdout)
        self.assertIn("step-30", result.stdout)
        self.assertIn("resumed at step 25", result.stdout)
        self.assertEqual(self.losses("run"), self.losses("whole"))

    def test_keeps_the_last_checkpoints_only(self):
        self.plimsoll("train", self.config, "--run-directory", "run", "--set",
                      "checkpoint.keep_last=3")
        names = sorted(p.name for p in (self.folder / "run/checkpoints").iterdir())
        self.assertEqual(names, ["step-20", "step-25", "step-30"])

    def test_writes_the_same_checkpoints_in_the_background_and_not(self):
        for background in ("true", "false"):
            self.plimsoll("train", self.config, "--run-directory", background, "--set",
                          f"checkpoint.in_background={background}")
        for name in ("model.safetensors", "optimizer.safetensors"):
            self.assertEqual((self.folder / "true/checkpoints/step-30" / name).read_bytes(),
                             (self.folder / "false/checkpoints/step-30" / name).read_bytes())

    def test_checkpointing_changes_memory_and_no_loss(self):
        plans = {}
        for policy in ("none", "full", "layers:1", "selective:attention,swi_glu"):
            result = self.plimsoll("train", self.config, "--run-directory", policy, "--set",
                                   f'step.checkpointing="{policy}"', "--set", "model.layers=3")
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.losses(policy), self.losses("none"))
            summary = json.loads((self.folder / policy / "summary.json").read_text())
            self.assertEqual(summary["planned_bytes"], summary["allocated_bytes"])
            plans[policy] = summary["planned_bytes"]
        self.assertLess(plans["full"], plans["layers:1"])
        self.assertLess(plans["layers:1"], plans["none"])

    def test_bf16_moments_halve_the_optimizer_and_still_learn(self):
        self.plimsoll("train", self.config, "--run-directory", "fp32")
        result = self.plimsoll("train", self.config, "--run-directory", "bf16", "--set",
                               "optimizer.moments=bf16")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertLess(abs(self.metrics("bf16")[-1]["loss"] - self.metrics("fp32")[-1]["loss"]), 0.1)
        moments = [(self.folder / run / "checkpoints/step-30/optimizer.safetensors").stat().st_size
                   for run in ("bf16", "fp32")]
        self.assertLess(moments[0], 0.6 * moments[1])
        for _ in range(2):  # from the checkpoint of the run above
            again = self.plimsoll("train", "--resume", "bf16", "--set", "train.steps=35")
            self.assertEqual(again.returncode, 0, again.stderr)

    def test_generates_text_from_a_run(self):
        self.plimsoll("train", self.config, "--run-directory", "run")
        arguments = ("generate", "run", "--prompt", "12 plus", "--tokens", "80")
        result = self.plimsoll(*arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertTrue(result.stdout.startswith("12 plus"))
        self.assertGreater(len(result.stdout), 60)  # more than the context holds
        self.assertEqual(result.stdout, self.plimsoll(*arguments).stdout)
        self.assertNotEqual(result.stdout, self.plimsoll(*arguments, "--seed", "2").stdout)


if __name__ == "__main__":
    unittest.main()
