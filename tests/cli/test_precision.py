"""Reduced-precision recipes from the command line: what runs, what is logged, what is refused."""

import json
import re
import signal
import subprocess
import time
import unittest

from commands import PLIMSOLL, CommandTest

RECIPES = ("fp16", "fp8_delayed", "fp8_current", "fp8_block", "mxfp8", "nvfp4")


class Recipes(CommandTest):
    def train(self, run, *settings):
        arguments = [part for setting in settings for part in ("--set", setting)]
        return self.plimsoll("train", self.config, "--run-directory", run, *arguments)

    def test_every_recipe_trains_what_it_planned_and_says_what_ran(self):
        self.train("bf16", "model.layers=2")
        bf16 = self.metrics("bf16")[-1]["loss"]
        for recipe in RECIPES:
            result = self.train(recipe, "model.layers=2", f"recipe.name={recipe}",
                                "recipe.statistics_every=10", "recipe.last_bf16=0")
            self.assertEqual(result.returncode, 0, recipe + result.stderr)
            self.assertRegex(result.stdout, r"recipe +(FP16|FP8|MXFP8|NVFP4)")
            self.assertIn("emulated", result.stdout)
            metrics = self.metrics(recipe)
            self.assertLess(abs(metrics[-1]["loss"] - bf16), 0.25, recipe)
            self.assertNotEqual(self.losses(recipe), self.losses("bf16"), recipe)
            self.assertNotIn("quantization", metrics[8])
            quality = metrics[9]["quantization"]
            self.assertEqual(len(quality), 12, recipe)  # 4 linear layers, 3 operands each
            for name, of in quality.items():
                self.assertEqual(of["not_finite"], 0)
                if recipe != "fp16":  # which holds these bf16 values exactly
                    self.assertGreater(of["sqnr_db"], 10, f"{recipe} {name}")
                self.assertLess(of["saturated"], 0.05)
            summary = json.loads((self.folder / recipe / "summary.json").read_text())
            self.assertEqual(summary["planned_bytes"], summary["allocated_bytes"])

    def test_resume_is_bit_identical(self):
        for recipe in ("fp8_delayed", "nvfp4", "fp16"):
            settings = ("model.layers=2", f"recipe.name={recipe}", "recipe.last_bf16=0",
                        "recipe.history=8", "recipe.loss_scale_growth=4", "train.steps=300")
            self.train("whole-" + recipe, *settings)
            run = "stopped-" + recipe
            process = subprocess.Popen(
                [PLIMSOLL, "train", str(self.config), "--run-directory", run,
                 *[part for setting in settings for part in ("--set", setting)]],
                cwd=self.folder, stdout=subprocess.DEVNULL)
            metrics = self.folder / run / "metrics.jsonl"
            while process.poll() is None and not (metrics.exists() and metrics.stat().st_size > 4000):
                time.sleep(0.01)
            process.send_signal(signal.SIGTERM)
            self.assertEqual(process.wait(timeout=60), 75)
            self.assertLess(self.metrics(run)[-1]["step"], 300)
            result = self.plimsoll("train", "--resume", run)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(self.losses(run), self.losses("whole-" + recipe), recipe)

    def test_resume_with_another_history_is_refused(self):
        self.train("run", "recipe.name=fp8_delayed", "recipe.history=8")
        result = self.plimsoll("train", "--resume", "run", "--set", "recipe.history=16", "--set",
                               "train.steps=40")
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("recipe.history = 8", result.stderr)

    def test_fp16_overflow_halves_the_scale_and_skips_the_step(self):
        result = self.train("run", "recipe.name=fp16", "recipe.loss_scale_log2=40")
        self.assertEqual(result.returncode, 0, result.stderr)
        metrics = self.metrics("run")
        skipped = [m for m in metrics if m.get("skipped")]
        self.assertGreater(len(skipped), 3)
        summary = json.loads((self.folder / "run" / "summary.json").read_text())
        self.assertEqual(summary["skipped_steps"], len(skipped))
        self.assertIn("a gradient overflowed", result.stdout)
        self.assertEqual(metrics[0]["loss_scale"], 2.0 ** 39)
        self.assertEqual(metrics[1]["loss_scale"], 2.0 ** 38)
        self.assertEqual(metrics[0]["loss"] > 0, True)
        self.assertLess(metrics[-1]["loss"], metrics[0]["loss"])
        self.assertFalse(metrics[-1].get("skipped", False))

    def test_a_divergence_names_the_matrix_and_the_step(self):
        result = self.train("run", "recipe.name=mxfp8", "schedule.lr=1e30",
                            "optimizer.clip_norm=0", "schedule.warmup_steps=0")
        self.assertEqual(result.returncode, 3, result.stdout)
        self.assertRegex(result.stderr, r"layers\.0\.\w+.* at step \d+")
        self.assertIn("--resume", result.stderr)

    def test_plan_shows_the_quantised_copies(self):
        def bytes_of(*settings):
            arguments = [part for setting in settings for part in ("--set", setting)]
            plan = json.loads(self.plimsoll("plan", "--preset", "gpt2-124m", "--json",
                                            *arguments).stdout)
            return plan["memory"]["at_peak_bytes"]
        bf16 = bytes_of()
        mx = bytes_of("recipe.name=mxfp8")
        linear = 12 * 12 * 768 * 768
        self.assertEqual(mx["param"] - bf16["param"], linear * 2 * 33 // 32)
        without = bytes_of("recipe.name=mxfp8", "recipe.bf16_weights=false")
        self.assertEqual(mx["param"] - without["param"], 2 * linear)
        self.assertEqual(bytes_of("recipe.name=mxfp8", "recipe.cache_weights=false")["param"],
                         bf16["param"])
        self.assertLess(mx["saved"], bf16["saved"])

    def test_bad_input(self):
        self.expect_error(2, "recipe.name", "fp8_current",
                          arguments=("plan", self.config, "--set", "recipe.name=fp8"))
        self.expect_error(2, "recipe.margins", "margin",
                          arguments=("plan", self.config, "--set", "recipe.margins=1"))
        self.expect_error(2, "fp32", "bf16",
                          arguments=("plan", self.config, "--set", "recipe.name=mxfp8", "--set",
                                     "step.precision=fp32"))
        self.expect_error(2, "all 1 layers",
                          arguments=("plan", self.config, "--set", "recipe.name=mxfp8", "--set",
                                     "recipe.last_bf16=1"))


class Compare(CommandTest):
    def compare(self, *arguments):
        return self.plimsoll("compare", self.config, "--directory", "all", "--set",
                             "train.steps=20", *arguments)

    def test_reports_every_recipe_and_continues_where_it_was(self):
        result = self.compare("--recipes", "fp8_current,mxfp8", "--seeds", "2")
        self.assertEqual(result.returncode, 0, result.stderr)
        for name in ("comparison.json", "comparison.html", "comparison.svg"):
            self.assertTrue((self.folder / "all" / name).exists(), name)
        self.assertEqual(len(re.findall(r"min left", result.stdout)), 8)
        again = self.compare("--recipes", "fp8_current,mxfp8", "--seeds", "2")
        self.assertEqual(again.returncode, 0, again.stderr)
        self.assertEqual(len(re.findall(r"done before", again.stdout)), 8)
        self.assertEqual(again.stdout[again.stdout.index("page"):],
                         result.stdout[result.stdout.index("page"):])

    def test_starts_every_recipe_from_the_same_place(self):
        self.compare("--recipes", "mxfp8", "--seeds", "1")
        bf16 = self.metrics("all/bf16-seed1")
        mx = self.metrics("all/mxfp8-seed1")
        self.assertAlmostEqual(bf16[0]["loss"], mx[0]["loss"], delta=0.02)
        self.assertNotEqual(bf16[-1]["loss"], mx[-1]["loss"])

    def test_refuses_unknown_recipes_and_other_configurations(self):
        self.expect_error(2, "--recipes", "mxfp8",
                          arguments=("compare", self.config, "--recipes", "mxfp9"))
        self.compare("--recipes", "mxfp8", "--seeds", "1")
        self.expect_error(2, "another configuration",
                          arguments=("compare", self.config, "--directory", "all", "--recipes",
                                     "mxfp8", "--seeds", "1", "--set", "train.steps=21"))


if __name__ == "__main__":
    unittest.main()
