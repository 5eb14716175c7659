"""plimsoll plan, presets, config and the help: what they print."""

import json
import unittest

from commands import CommandTest


class Plan(CommandTest):
    def test_prints_bytes_by_role_the_largest_tensors_and_flops(self):
        result = self.plimsoll("plan", self.config)
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("param", "grad", "optimizer", "saved", "arena", "largest tensors",
                     "per token", "lower bound"):
            self.assertIn(word, result.stdout)

    def test_json_holds_the_same_plan(self):
        plan = json.loads(self.plimsoll("plan", self.config, "--json").stdout)
        memory = plan["memory"]
        self.assertEqual(sum(memory["at_peak_bytes"].values()), memory["lower_bound_bytes"])
        self.assertGreaterEqual(memory["arena_bytes"], memory["lower_bound_bytes"])
        self.assertLessEqual(memory["packing"], 1.02)
        self.assertIn(f"{memory['arena_bytes']} B", self.plimsoll("plan", self.config).stdout)

    def test_plans_every_preset(self):
        presets = self.plimsoll("presets").stdout.splitlines()
        self.assertGreater(len(presets), 15)
        for line in presets:
            name = line.split()[0]
            result = self.plimsoll("plan", "--preset", name, "--json", "--set",
                                   'train.memory_limit="100 TiB"')
            self.assertEqual(result.returncode, 0, name + result.stderr)
            memory = json.loads(result.stdout)["memory"]
            self.assertLessEqual(memory["packing"], 1.02, name)

    def test_writes_the_timeline(self):
        self.assertEqual(
            self.plimsoll("plan", self.config, "--timeline", "memory.svg").returncode, 0)
        self.assertTrue((self.folder / "memory.svg").read_text().startswith("<svg"))

    def test_prints_the_program(self):
        result = self.plimsoll("plan", self.config, "--program")
        self.assertIn("attention_backward", result.stdout)


class Explain(CommandTest):
    def test_says_where_the_peak_is_and_what_changes_would_do(self):
        result = self.plimsoll("explain", self.config, "--html", "why.html", "--svg", "why.svg")
        self.assertEqual(result.returncode, 0, result.stderr)
        for word in ("memory at the peak", "by layer at the peak", "what if",
                     "step.micro_batch = 1", 'step.checkpointing = "full"'):
            self.assertIn(word, result.stdout)
        page = (self.folder / "why.html").read_text()
        self.assertIn("<title>op ", page)  # the notes under the pointer
        self.assertIn("layers.0.mlp.gate_up.out", page)
        self.assertNotIn("http://", page.replace("http://www.w3.org", ""))
        self.assertIn("<title>op ", (self.folder / "why.svg").read_text())

    def test_frontier_trades_memory_for_time(self):
        layers = ("--set", "model.layers=3", "--set", "checkpoint.in_background=false")
        result = self.plimsoll("plan", self.config, *layers, "--frontier", "--json",
                               "--frontier-svg", "front.svg")
        self.assertEqual(result.returncode, 0, result.stderr)
        front = json.loads(result.stdout)["front"]
        self.assertGreater(len(front), 2)
        arenas = [point["arena_bytes"] for point in front]
        self.assertEqual(arenas, sorted(arenas, reverse=True))
        plan = json.loads(self.plimsoll("plan", self.config, *layers, "--json").stdout)
        self.assertEqual(arenas[0], plan["memory"]["arena_bytes"])
        self.assertTrue((self.folder / "front.svg").read_text().startswith("<svg"))


    def test_says_when_checkpointing_saves_nothing(self):
        one = ("--set", "model.layers=1", "--set", "step.checkpointing=layers:1")
        self.assertIn("saves nothing", self.plimsoll("plan", self.config, *one).stdout)
        plenty = ("--set", 'step.checkpointing="budget:1 GiB"')
        self.assertIn("nothing is dropped", self.plimsoll("plan", self.config, *plenty).stdout)

    def test_fit_gives_settings_that_fit(self):
        for goal in ([], ["--longest"], ["--both"]):
            result = self.plimsoll("plan", self.config, "--fit", "64 MiB", "--json", *goal)
            self.assertEqual(result.returncode, 0, result.stderr)
            found = json.loads(result.stdout)
            settings = [part for setting in found["settings"] for part in ("--set", setting)]
            plan = json.loads(self.plimsoll("plan", self.config, *settings, "--json").stdout)
            self.assertEqual(plan["memory"]["arena_bytes"], found["fits"][0]["arena_bytes"], goal)
            self.assertLessEqual(plan["memory"]["arena_bytes"], 64 << 20)
        text = self.plimsoll("plan", self.config, "--fit", "64 MiB", "--both").stdout
        self.assertIn("use it   --set step.micro_batch=", text)


class Help(CommandTest):
    def test_has_examples(self):
        for arguments in (["--help"], ["plan", "--help"], ["train", "--help"],
                          ["generate", "--help"]):
            result = self.plimsoll(*arguments)
            self.assertEqual(result.returncode, 0)
            self.assertIn("plimsoll " + (arguments[0] if len(arguments) > 1 else "plan"),
                          result.stdout)

    def test_version(self):
        self.assertRegex(self.plimsoll("--version").stdout, r"^plimsoll \d+\.\d+\.\d+\n$")

    def test_config_reference(self):
        self.assertIn("sequence_length", self.plimsoll("config").stdout)


if __name__ == "__main__":
    unittest.main()
