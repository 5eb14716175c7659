#!/usr/bin/env python3
"""Writes the first seeds of the fuzz targets; what once failed is added by hand, with a name."""

import gzip
import json
import pathlib
import struct

here = pathlib.Path(__file__).resolve().parent


def write(name, content):
    path = here / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


small = """[model]
family = "llama"
layers = 2
hidden = 64
heads = 4
[step]
precision = "bf16"
sequence_length = 32
checkpointing = "layers:1"
[recipe]
name = "mxfp8"
bf16_layers = "*.attention.*, layers.0.mlp.down.weight"
[optimizer]
eps = 1e-8
[schedule]
decay = "wsd"
[data]
train = 'corpus.txt'
[train]
memory_limit = "12 GiB"
"""
write("config/file", small)
write("config/settings", small + "\0train.steps=50\0schedule.lr=3e-4\0data.train=2024\0step={a.b=[1]}")
write("config/preset", "model.preset = \"llama-3m\"\n# comment\n\"quoted\" = '''\ntext'''\n")
write("config/nested_array", "[train]\nsteps = " + "[" * 5000)
write("config/nested_key", "a" + ".a" * 5000 + " = 1\n")
write("config/nested_table", "[" + "a." * 5000 + "a]\n")
write("config/nested_setting", "\0train.steps=" + "[{a=" * 3000)

ids = list(range(40))
llmc = struct.pack("<256i", 20240520, 1, 40, *[0] * 253) + struct.pack("<40H", *ids)
llama = struct.pack("<256i", 20240801, 7, 40, *[0] * 253) + struct.pack("<40I", *ids)
plimsoll = b"PLIMTOK\n" + struct.pack("<IIQQ", 1, 16, 40, 100) + struct.pack("<40H", *ids)
text = b"some text of some length, " * 3
member = gzip.compress(text, mtime=0)
write("tokens/text", b"\0\0" + text)
write("tokens/gzip", b"\0\0" + member + member + b"\0" * 20)
write("tokens/gzip_damaged", b"\1\0" + member + bytes([member[0] ^ 1]) + member[1:])
write("tokens/gzip_large", b"\0\0" + gzip.compress(b"a" * 3000000, mtime=0))
write("tokens/llmc", b"\0\1" + llmc)
write("tokens/llama", b"\2\1" + llama)
write("tokens/nanogpt", b"\3\1" + struct.pack("<80H", *ids, *ids))
write("tokens/nanogpt_of_4_bytes", b"\3\1" + struct.pack("<80I", *ids, *ids))
write("tokens/plimsoll", b"\0\0" + plimsoll)
write("tokens/plimsoll_count", b"\4\0" + plimsoll[:16] + b"\xff" * 8 + plimsoll[24:])


def safetensors(header, data):
    head = json.dumps(header).encode()
    return struct.pack("<Q", len(head)) + head + data


tensors = {"a": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
           "b": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
           "empty": {"dtype": "U8", "shape": [0, 5], "data_offsets": [26, 26]},
           "__metadata__": {"format": "pt"}}
write("safetensors/whole", safetensors(tensors, bytes(26)))
write("safetensors/overflow", safetensors(
    {"a": {"dtype": "F64", "shape": [2**62, 8], "data_offsets": [0, 8]}}, bytes(8)))
write("safetensors/nested", struct.pack("<Q", 20000) + b'{"a":' + b"[" * 19995)
write("safetensors/length", b"\xff" * 8 + b"{}")

manifest = {"manifest_sha256": "0" * 64, "format_version": 1, "step": 3, "samples": 96,
            "files": [{"name": "model.safetensors", "bytes": 26, "sha256": "a" * 64}],
            "extra": {"tokenizer": "bytes"}}
write("manifest/signed", json.dumps(manifest, indent=2) + "\n")
write("manifest/unsigned", json.dumps({**manifest, "manifest_sha256": "1" * 64}))
write("manifest/escaped_hash", json.dumps(manifest).replace('"' + "0" * 64, '"\\u0030' + "0" * 63))
write("manifest/nested", json.dumps(manifest).replace('{"tokenizer": "bytes"}',
                                                      "[" * 20000 + "]" * 20000))
