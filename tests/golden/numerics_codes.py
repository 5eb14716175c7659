#!/usr/bin/env python3
"""Writes numerics_codes.txt, what a bit-exact reference says of codes, scales and blocks.

    python3 numerics_codes.py path/to/numerics_ref.py > numerics_codes.txt

The reference is a Python module with plain, slow statements of the formats and recipes. The file
has one record a line, its first word says which:

  codes NAME NAN BITS:CODE ...   Codes of floats >= 0, as steps: CODE from the float with BITS on,
                                 up to the next step. NAN is the code of NaN. Found among the bf16
                                 values and then bisected, so the steps hold for every float.
  values NAME BITS ...           The float of every code, 7fc00000 where it is NaN.
  stream SEED STEP MICRO_STEP LAYER TENSOR GROUP BYTES
                                 Sixteen random bytes of stochastic.h.
  block HASHES                   FNV-1a of what became of block number (index of the line); `block`
                                 and `outcome` below say of which input, and of what.

All numbers but SEED to GROUP are hexadecimal.
"""

import importlib.util
import math
import sys

BLOCKS = 2000


def philox(counter, key):
    """Philox4x32-10, Salmon et al. 2011."""
    (c0, c1, c2, c3), (k0, k1) = counter, key
    for _ in range(10):
        a, b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = b >> 32 ^ c1 ^ k0, b & 0xFFFFFFFF, a >> 32 ^ c3 ^ k1, a & 0xFFFFFFFF
        k0, k1 = k0 + 0x9E3779B9 & 0xFFFFFFFF, k1 + 0xBB67AE85 & 0xFFFFFFFF
    return c0, c1, c2, c3


def random_bytes16(seed, step, micro_step, layer, tensor, group):
    w = philox((step, micro_step, layer, tensor), (seed & 0xFFFFFFFF, seed >> 32))
    words = philox((group & 0xFFFFFFFF, group >> 32, w[0], w[1]), (w[2], w[3]))
    return [words[i // 4] >> 8 * (i % 4) & 255 for i in range(16)]


def block(number):
    """32 bf16 values: any bits, near in size, many ties, or with zeros; at times one Inf or NaN."""
    head = philox((number, 0, 1, 0), (2026, 7))[0]
    kind, codes = number % 4, []
    for i in range(32):
        word = philox((number, i // 4, 0, 0), (2026, 7))[i % 4]
        sign, mantissa = word & 0x8000, word & 0x7F
        if kind == 0:
            code = word & 0xFFFF
        elif kind == 1:  # any size, from subnormal to the largest
            code = sign | max(head % 255 - (word >> 16 & 7), 0) << 7 | mantissa
        elif kind == 2:
            code = sign | 100 + head % 56 - (word >> 16 & 7) << 7 | mantissa & 0x70
        else:
            code = sign | 118 + head % 16 - (word >> 16 & 3) << 7 | mantissa
            if word >> 20 & 7 == 0:
                code = sign
        codes.append(code)
    if number % 16 == 7:
        codes[head >> 8 & 31] = 0x7F80
    if number % 16 == 15:
        codes[head >> 8 & 31] = 0x7FC0
    return head, codes


def outcome(ref, number):
    """Bytes of seven groups of results; each group is hashed."""
    head, codes = block(number)
    x = [ref.fb(c << 16) for c in codes]
    amax = ref.amax_of(x)

    def mx(*args):
        scale, out = ref.mxfp8_block(x, *args)
        return [scale] + out

    def nvfp4(variant, random=None):
        out = []
        for half in (0, 1):
            bytes16 = random_bytes16(2026, number, 1, 2, 3, half) if random else None
            scale, q = ref.nvfp4_block(x[16 * half:16 * half + 16], s_enc, variant, bytes16)
            out += [scale] + q
        return out

    def float_bytes(value):
        return list(ref.bits(value).to_bytes(4, "little"))

    # The tensor's amax is that of the block or up to eight times as large.
    s_enc = ref.nvfp4_senc(ref.f32(amax * 2.0 ** (head >> 16 & 3)))
    yield mx("e4m3", "rceil") + mx("e4m3", "floor")
    yield mx("e5m2", "rceil") + mx("e5m2", "floor") + mx("e2m1", "rceil") + mx("e2m1", "floor")
    yield float_bytes(s_enc) + nvfp4("te")
    yield nvfp4("paper") + nvfp4("ao")
    yield nvfp4("te", random=True)
    hadamard = ref.rht16(x[:16])
    yield [byte for y in hadamard for byte in ref.bf16_code(y).to_bytes(2, "little")]
    scales = (ref.te_scale(amax, 448.0), ref.te_scale(amax, 57344.0),
              ref.te_scale(amax, 448.0, True, 0.0, ref.BF16_MAX))
    tensor = []
    for scale, fmt in zip(scales, ("e4m3", "e5m2", "e4m3")):
        tensor += float_bytes(scale) + ref.fp8_quant(x, scale, fmt)
    yield tensor


def fnv1a(data):
    value = 0x811C9DC5
    for byte in data:
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def steps(ref, code_of):
    """The (bits, code) where the code of a float >= 0 changes, for monotone `code_of`."""
    found = [(0, code_of(0.0))]
    for upper in range(0x10000, 0x7F800001, 0x10000):
        lower, code = upper - 0x10000, code_of(ref.fb(upper))
        if code == found[-1][1]:
            continue
        while upper - lower > 1:
            middle = (lower + upper) // 2
            at = code_of(ref.fb(middle))
            assert at in (code, found[-1][1])
            lower, upper = (lower, middle) if at == code else (middle, upper)
        found.append((upper, code))
    return found


def print_codes(ref, name, code_of):
    found = steps(ref, code_of)
    nan = code_of(math.nan)
    print("codes", name, "%02x" % nan, " ".join("%08x:%02x" % step for step in found))


def main():
    spec = importlib.util.spec_from_file_location("numerics_ref", sys.argv[1])
    ref = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(ref)

    for fmt, (exponent_bits, mantissa_bits, *_) in ref.FMT.items():
        sign = 1 << exponent_bits + mantissa_bits
        print_codes(ref, fmt, lambda x: ref.enc(x, fmt))
        if ref.FMT[fmt][5] is not None:
            print_codes(ref, fmt + "_overflowing", lambda x: ref.enc(x, fmt, False))
        for code in range(0x7F81):  # the file leaves out the other sign
            x = ref.fb(code << 16)
            assert ref.enc(-x, fmt) == ref.enc(x, fmt) | sign
        values = [ref.dec(code, fmt) for code in range(2 * sign)]
        print("values", fmt, " ".join("%08x" % ref.bits(v) for v in values))
    print_codes(ref, "e8m0", ref.e8m0_rp)
    print("values e8m0", " ".join("%08x" % ref.bits(ref.e8m0_val(c)) for c in range(256)))
    print("values e8m0_reciprocal",
          " ".join("%08x" % ref.bits(ref.e8m0_recip(c)) for c in range(256)))
    for fmt in ("e4m3", "e5m2", "e2m1"):
        reciprocal = ref.f32(1.0 / ref.MAX[fmt])
        print_codes(ref, "mx_" + fmt, lambda a: ref.e8m0_rp(ref.f32(a * reciprocal)))
        emax = {"e4m3": 8, "e5m2": 15, "e2m1": 2}[fmt]
        print_codes(ref, "mx_floor_" + fmt, lambda a: ref.e8m0_floor(a, emax))
    for key in ((0, 0, 0, 0, 0, 0), (2026, 1, 2, 3, 4, 5), (2**64 - 1, 7, 0, 31, 2, 2**40 + 9)):
        print("stream", *key, bytes(random_bytes16(*key)).hex())
    for number in range(BLOCKS):
        print("block", " ".join("%08x" % fnv1a(group) for group in outcome(ref, number)))


main()
