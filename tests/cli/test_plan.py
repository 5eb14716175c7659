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
