#!/usr/bin/env python3
"""Writes tests/golden/rope_frequencies.txt: what Hugging Face's RoPE scalings make of some settings.

Runs the functions of transformers' modeling_rope_utils.py as they are, in float64: numpy stands in
for the few functions of PyTorch that they call, so PyTorch is not needed.

  python3 -m venv V && V/bin/pip install --no-deps transformers numpy
  V/bin/python scripts/make_rope_golden.py > tests/golden/rope_frequencies.txt
"""

import importlib.metadata
import importlib.util
import pathlib
import sys
import types

import numpy as np


class Tensor(np.ndarray):
    def to(self, device=None, dtype=None):
        return self.astype(np.float64).view(Tensor)


def tensor(values):
    return np.asarray(values).view(Tensor)


torch = types.SimpleNamespace(
    int64=np.int64, float=np.float64, float32=np.float64, Tensor=Tensor, device=object,
    arange=lambda *bounds, dtype=None: tensor(np.arange(*bounds, dtype=np.float64)),
    where=lambda *arguments: tensor(np.where(*arguments)),
    clamp=lambda values, low, high: tensor(np.clip(values, low, high)))

CASES = [  # scaling, theta, head_dim, and the settings under Hugging Face's names
    ("linear", 10000.0, 16, {"factor": 4.0}),
    ("llama3", 500000.0, 128, {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                               "original_max_position_embeddings": 8192}),  # Llama 3.1
    ("llama3", 500000.0, 64, {"factor": 32.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                              "original_max_position_embeddings": 8192}),  # Llama 3.2 1B
    ("llama3", 10000.0, 24, {"factor": 3.0, "low_freq_factor": 2.0, "high_freq_factor": 9.0,
                             "original_max_position_embeddings": 300}),
    ("yarn", 1000000.0, 128, {"factor": 4.0,
                              "original_max_position_embeddings": 32768}),  # Qwen2.5, 128K
    ("yarn", 10000.0, 64, {"factor": 16.0, "original_max_position_embeddings": 4096,
                           "beta_fast": 20.0, "beta_slow": 2.0, "attention_factor": 1.25}),
    ("yarn", 10000.0, 8, {"factor": 2.0, "original_max_position_embeddings": 5}),  # an empty ramp
]


def load():
    spec = importlib.util.find_spec("transformers")
    path = pathlib.Path(spec.submodule_search_locations[0]) / "modeling_rope_utils.py"
    source = path.read_text().replace("from .utils import is_torch_available, logging", "")
    quiet = types.SimpleNamespace(get_logger=lambda name: None)
    scope = {"__name__": "rope", "is_torch_available": lambda: False, "logging": quiet, "torch": torch}
    exec(compile(source, str(path), "exec"), scope)
    return scope["ROPE_INIT_FUNCTIONS"]


def main():
    functions = load()
    version = importlib.metadata.version("transformers")
    print(f"# scripts/make_rope_golden.py, transformers {version}: settings, amplitude, frequencies")
    for scaling, theta, head_dim, settings in CASES:
        parameters = {"rope_type": scaling, "rope_theta": theta} | settings
        config = types.SimpleNamespace(rope_parameters=parameters, head_dim=head_dim, hidden_size=head_dim,
                                       num_attention_heads=1, standardize_rope_params=lambda: None)
        frequencies, amplitude = functions[scaling](config, None)
        print(f"case {scaling} theta {theta} head_dim {head_dim}", end="")
        for name, value in settings.items():
            print(f" {name} {value}", end="")
        print(f"\namplitude {float(amplitude)!r}")
        print("frequencies", *(repr(float(f)) for f in frequencies))


if __name__ == "__main__":
    sys.exit(main())
