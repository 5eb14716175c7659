#!/usr/bin/env python3
"""Writes tests/golden/*.safetensors: small models trained for a few steps by PyTorch.

The models are written here in plain PyTorch, from the formulas and not from the engine's code, and
run in float64 from float32 initial weights. tests/golden/README.md describes the files.

  scripts/make_golden.py [--output DIR]        write the files, print how far float32 strays
  scripts/make_golden.py --check-transformers  compare the stored logits and loss with Hugging Face
"""

import argparse
import json
import math
import pathlib
import struct

import torch
import torch.nn.functional as F

STEPS = 10

OPTIMIZER = {"learning_rate": 1e-3, "beta1": 0.9, "beta2": 0.95, "eps": 1e-8, "weight_decay": 0.1}

SHAPE = {"layers": 2, "hidden": 32, "heads": 4, "vocab": 61, "micro_batch": 2}
MODELS = {
    "gpt2": SHAPE | OPTIMIZER | {
        "family": "gpt2", "query_groups": 4, "head_dim": 8, "ffn_hidden": 128,
        "max_positions": 24, "tied_head": True, "qk_norm": False, "norm_eps": 1e-5,
        "rope_theta": 10000.0, "sequence_length": 24, "clip_norm": 0.5, "seed": 1},
    "llama": SHAPE | OPTIMIZER | {
        "family": "llama", "query_groups": 2, "head_dim": 12, "ffn_hidden": 48,
        "max_positions": 0, "tied_head": False, "qk_norm": False, "norm_eps": 1e-5,
        "rope_theta": 10000.0, "sequence_length": 19, "clip_norm": 1.0, "seed": 2},
    "qwen3": SHAPE | OPTIMIZER | {
        "family": "llama", "query_groups": 1, "head_dim": 16, "ffn_hidden": 48,
        "max_positions": 0, "tied_head": True, "qk_norm": True, "norm_eps": 1e-6,
        "rope_theta": 1e6, "sequence_length": 16, "clip_norm": 3.0, "seed": 3},
}


# Weights and batches ------------------------------------------------------------------------------

def parameter_shapes(c):
    """Name -> shape, in the order of the forward; matrices are (outputs, inputs)."""
    gpt2 = c["family"] == "gpt2"
    hidden, ffn, width = c["hidden"], c["ffn_hidden"], c["head_dim"]
    shapes = {"embedding.tokens": (c["vocab"], hidden)}

    def add(name, *shape, bias=gpt2):
        shapes[name + ".weight"] = shape
        if bias:
            shapes[name + ".bias"] = shape[:1]

    if gpt2:
        shapes["embedding.positions"] = (c["max_positions"], hidden)
    for n in range(c["layers"]):
        layer = f"layers.{n}."
        add(layer + "attention_norm", hidden)
        add(layer + "attention.qkv", (c["heads"] + 2 * c["query_groups"]) * width, hidden)
        if c["qk_norm"]:
            add(layer + "attention.q_norm", width)
            add(layer + "attention.k_norm", width)
        add(layer + "attention.output", hidden, c["heads"] * width)
        add(layer + "mlp_norm", hidden)
        if gpt2:
            add(layer + "mlp.up", ffn, hidden)
        else:
            add(layer + "mlp.gate_up", 2 * ffn, hidden)
        add(layer + "mlp.down", hidden, ffn)
    add("final_norm", hidden)
    if not c["tied_head"]:
        add("head", c["vocab"], hidden, bias=False)
    return shapes


def initial_weights(c):
    """float32; every norm weight and bias is away from 1 and 0, so that a forgotten one shows."""
    generator = torch.Generator().manual_seed(c["seed"])
    weights = {}
    for name, shape in parameter_shapes(c).items():
        values = 0.1 * torch.randn(shape, generator=generator)
        weights[name] = values + 1 if "norm.weight" in name else values
    return weights


def batches(c):
    """tokens and targets, each (STEPS, micro_batch * sequence_length); target = the next token."""
    step = torch.arange(STEPS).view(-1, 1, 1)
    sequence = torch.arange(c["micro_batch"]).view(1, -1, 1)
    position = torch.arange(c["sequence_length"] + 1).view(1, 1, -1)
    stream = (7 * position**2 + 3 * position * (step + 1) + 13 * step + 29 * sequence) % c["vocab"]
    return stream[:, :, :-1].reshape(STEPS, -1), stream[:, :, 1:].reshape(STEPS, -1)


# The models ---------------------------------------------------------------------------------------

def rms_norm(x, weight, eps):
    return x / torch.sqrt((x * x).mean(dim=-1, keepdim=True) + eps) * weight


def rope(x, theta):
    """x (batch, heads, sequence, width): rotates the pairs (x[i], x[i + width / 2])."""
    half = x.shape[-1] // 2
    frequency = theta ** (-torch.arange(half, dtype=x.dtype) / half)
    angle = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * frequency
    cos, sin = angle.cos(), angle.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], dim=-1)


def causal_attention(q, k, v):
    """q (batch, heads, sequence, width); k, v (batch, groups, sequence, width)."""
    heads_per_group = q.shape[1] // k.shape[1]
    k = k.repeat_interleave(heads_per_group, dim=1)
    v = v.repeat_interleave(heads_per_group, dim=1)
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(diagonal=1)
    return scores.masked_fill(future, -math.inf).softmax(dim=-1) @ v


def attention_block(c, w, layer, x):
    heads, groups, width = c["heads"], c["query_groups"], c["head_dim"]
    batch, sequence, _ = x.shape
    qkv = F.linear(x, w[layer + "qkv.weight"], w.get(layer + "qkv.bias"))
    q, k, v = (part.view(batch, sequence, -1, width).transpose(1, 2)
               for part in qkv.split([heads * width, groups * width, groups * width], dim=-1))
    if c["qk_norm"]:
        q = rms_norm(q, w[layer + "q_norm.weight"], c["norm_eps"])
        k = rms_norm(k, w[layer + "k_norm.weight"], c["norm_eps"])
    if c["family"] == "llama":
        q, k = rope(q, c["rope_theta"]), rope(k, c["rope_theta"])
    mixed = causal_attention(q, k, v).transpose(1, 2).reshape(batch, sequence, heads * width)
    return F.linear(mixed, w[layer + "output.weight"], w.get(layer + "output.bias"))


def mlp_block(c, w, layer, x):
    if c["family"] == "gpt2":
        up = F.linear(x, w[layer + "up.weight"], w[layer + "up.bias"])
        return F.linear(F.gelu(up, approximate="tanh"),
                        w[layer + "down.weight"], w[layer + "down.bias"])
    gate, up = F.linear(x, w[layer + "gate_up.weight"]).chunk(2, dim=-1)
    return F.linear(F.silu(gate) * up, w[layer + "down.weight"])


def norm(c, w, name, x):
    if c["family"] == "gpt2":
        return F.layer_norm(x, x.shape[-1:], w[name + ".weight"], w[name + ".bias"], c["norm_eps"])
    return rms_norm(x, w[name + ".weight"], c["norm_eps"])


def logits_of(c, w, tokens):
    """tokens (micro_batch * sequence_length) -> logits (micro_batch * sequence_length, vocab)."""
    x = w["embedding.tokens"][tokens.view(c["micro_batch"], c["sequence_length"])]
    if c["family"] == "gpt2":
        x = x + w["embedding.positions"][: c["sequence_length"]]
    for n in range(c["layers"]):
        layer = f"layers.{n}."
        x = x + attention_block(c, w, layer + "attention.", norm(c, w, layer + "attention_norm", x))
        x = x + mlp_block(c, w, layer + "mlp.", norm(c, w, layer + "mlp_norm", x))
    head = w["embedding.tokens"] if c["tied_head"] else w["head.weight"]
    return F.linear(norm(c, w, "final_norm", x), head).view(-1, c["vocab"])


# Training -----------------------------------------------------------------------------------------

def train(c, initial, dtype):
    """Trains for STEPS steps; returns every tensor of the golden file."""
    w = {name: value.to(dtype, copy=True).requires_grad_() for name, value in initial.items()}
    matrices = [p for p in w.values() if p.dim() > 1]
    vectors = [p for p in w.values() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [{"params": matrices}, {"params": vectors, "weight_decay": 0.0}],
        lr=c["learning_rate"], betas=(c["beta1"], c["beta2"]), eps=c["eps"],
        weight_decay=c["weight_decay"])
    tokens, targets = batches(c)
    golden = {f"weights/{name}": value for name, value in initial.items()}
    golden |= {"tokens": tokens.int(), "targets": targets.int()}
    losses, grad_norms = [], []
    for step in range(STEPS):
        optimizer.zero_grad()
        logits = logits_of(c, w, tokens[step])
        loss = F.cross_entropy(logits, targets[step])
        loss.backward()
        if step == 0:
            golden["logits"] = logits.detach()
            golden |= {f"gradients/{name}": p.grad.clone() for name, p in w.items()}
        losses.append(loss.detach())
        grad_norms.append(torch.nn.utils.clip_grad_norm_(w.values(), c["clip_norm"]))
        optimizer.step()
    golden |= {"losses": torch.stack(losses), "grad_norms": torch.stack(grad_norms)}
    golden |= {f"final/{name}": p.detach() for name, p in w.items()}
    return golden


def print_deviation(name, golden, float32):
    """The largest difference of a float32 run, by kind of tensor: what a tolerance must allow."""
    print(f"{name}: losses {golden['losses'][0]:.4f} -> {golden['losses'][-1]:.4f}, gradient norms "
          + " ".join(f"{x:.3f}" for x in golden["grad_norms"]))
    largest = {}
    for tensor, value in golden.items():
        difference = (value.double() - float32[tensor].double()).abs().max().item()
        kind = tensor.split("/")[0]
        largest[kind] = max(largest.get(kind, (0.0, "")), (difference, tensor))
    for kind in ("logits", "losses", "gradients", "grad_norms", "final"):
        print(f"  {kind:10} {largest[kind][0]:.1e}  {largest[kind][1]}")


# Files --------------------------------------------------------------------------------------------

def write_safetensors(path, tensors, metadata):
    header, data = {"__metadata__": metadata}, b""
    for name, value in tensors.items():
        integer = value.dtype == torch.int32
        raw = (value if integer else value.float()).contiguous().numpy().tobytes()
        header[name] = {"dtype": "I32" if integer else "F32", "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + length])
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in header.items():
        begin, end = (8 + length + offset for offset in entry["data_offsets"])
        dtype = {"I32": torch.int32, "F32": torch.float32}[entry["dtype"]]
        values = torch.frombuffer(bytearray(raw[begin:end]), dtype=dtype)
        tensors[name] = values.view(entry["shape"])
    return tensors, metadata


def metadata_of(c):
    text = {key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in c.items()}
    return text | {"steps": str(STEPS), "torch": torch.__version__}


# Check against Hugging Face -----------------------------------------------------------------------

def transformers_model(name, c):
    import transformers
    if name == "gpt2":
        return transformers.GPT2LMHeadModel(transformers.GPT2Config(
            vocab_size=c["vocab"], n_positions=c["max_positions"], n_embd=c["hidden"],
            n_layer=c["layers"], n_head=c["heads"], n_inner=c["ffn_hidden"],
            layer_norm_epsilon=c["norm_eps"], attn_implementation="eager"))
    prefix = {"llama": "Llama", "qwen3": "Qwen3"}[name]
    config = getattr(transformers, prefix + "Config")
    model = getattr(transformers, prefix + "ForCausalLM")
    return model(config(
        vocab_size=c["vocab"], hidden_size=c["hidden"], intermediate_size=c["ffn_hidden"],
        num_hidden_layers=c["layers"], num_attention_heads=c["heads"],
        num_key_value_heads=c["query_groups"], head_dim=c["head_dim"], rms_norm_eps=c["norm_eps"],
        rope_theta=c["rope_theta"], tie_word_embeddings=c["tied_head"], attention_bias=False,
        attn_implementation="eager"))


def transformers_weights(c, w):
    """The stored weights under Hugging Face's names and layouts."""
    if c["family"] == "gpt2":
        names = {"embedding.tokens": "wte.weight", "embedding.positions": "wpe.weight",
                 "layers.": "h.", "attention_norm": "ln_1", "attention.qkv": "attn.c_attn",
                 "attention.output": "attn.c_proj", "mlp_norm": "ln_2", "mlp.up": "mlp.c_fc",
                 "mlp.down": "mlp.c_proj", "final_norm": "ln_f"}
        prefix = "transformer."
    else:
        names = {"embedding.tokens": "embed_tokens.weight", "attention_norm": "input_layernorm",
                 "attention.": "self_attn.", "output": "o_proj", "mlp_norm":
                 "post_attention_layernorm", "mlp.down": "mlp.down_proj", "final_norm": "norm"}
        prefix = "model."
    mapped = {}
    for name, value in w.items():
        full = name
        for ours, theirs in names.items():
            full = full.replace(ours, theirs)
        full = prefix + full
        if name.startswith("head."):
            mapped["lm_head.weight"] = value
        elif c["family"] == "gpt2" and value.dim() > 1 and not name.startswith("embedding."):
            mapped[full] = value.t()  # Conv1D keeps (inputs, outputs)
        elif c["family"] != "gpt2" and "qkv" in name:
            kv = c["query_groups"] * c["head_dim"]
            parts = value.split([c["heads"] * c["head_dim"], kv, kv])
            mapped |= {full.replace("qkv", x + "_proj"): part for x, part in zip("qkv", parts)}
        elif "gate_up" in name:
            mapped |= {full.replace("gate_up", x + "_proj"): part
                       for x, part in zip(("gate", "up"), value.chunk(2))}
        else:
            mapped[full] = value
    return mapped


def check_transformers(name, c, path):
    golden, metadata = read_safetensors(path)
    stale = {key for key, text in metadata_of(c).items()
             if key != "torch" and metadata.get(key) != text}
    assert not stale, f"{path} was made with another {stale}"
    w = {tensor.removeprefix("weights/"): value for tensor, value in golden.items()
         if tensor.startswith("weights/")}
    model = transformers_model(name, c).eval()
    state = transformers_weights(c, w)
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected, f"{name}: unexpected {unexpected}"
    assert all("lm_head" in m or m.endswith(("attn.bias", "masked_bias")) for m in missing), missing
    model.tie_weights()
    tokens = golden["tokens"][0].long().view(c["micro_batch"], c["sequence_length"])
    with torch.no_grad():
        logits = model.double()(tokens).logits.reshape(-1, c["vocab"])
    loss = F.cross_entropy(logits, golden["targets"][0].long())
    difference = (logits - golden["logits"]).abs().max().item()
    loss_difference = (loss - golden["losses"][0]).abs().item()
    print(f"{name}: largest difference of a logit {difference:.1e}, of the loss "
          f"{loss_difference:.1e}")
    assert difference < 1e-5 and loss_difference < 1e-6, f"{name} differs from transformers"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    default = pathlib.Path(__file__).resolve().parent.parent / "tests" / "golden"
    parser.add_argument("--output", type=pathlib.Path, default=default)
    parser.add_argument("--check-transformers", nargs="*", metavar="MODEL", choices=MODELS,
                        help="compare the stored files (all, or those named) with transformers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.check_transformers is not None:
        for name in arguments.check_transformers or MODELS:
            check_transformers(name, MODELS[name], arguments.output / f"{name}.safetensors")
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    for name, c in MODELS.items():
        initial = initial_weights(c)
        golden = train(c, initial, torch.float64)
        print_deviation(name, golden, train(c, initial, torch.float32))
        write_safetensors(arguments.output / f"{name}.safetensors", golden, metadata_of(c))


if __name__ == "__main__":
    main()
