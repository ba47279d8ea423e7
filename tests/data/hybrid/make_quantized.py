#!/usr/bin/env python3
"""Makes cases-quantized.json: probabilities of the float64 oracle with quantised weights.

    for m in tiny-a tiny-b tiny-c tiny-d; do for t in q8 q4 q4tp; do
      ponder convert tests/data/hybrid/$m -o PACKED/$m-$t --type $t; done; done
    python3 tests/data/hybrid/make_quantized.py ORACLE PACKED > tests/data/hybrid/cases-quantized.json

ORACLE is the folder of hybrid.py, the slow reference that the golden checkpoints beside this file were made with;
it needs numpy, regex and jinja2. Of the program only the packed bytes are taken: they are read here by numpy, from
the encodings of CMF's q8_row, q4_tiled and q4tp in the block layout of src/ops/packed_layout.hpp. `fingerprint` is
FNV-1a over all packed tensors in the order of loading: where the program's own rounding has changed, so has it, and
the cases must be made again. Bodies are those of cases-requests.json.
"""
import json
import struct
import sys
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent
TYPES = ("q8", "q4", "q4tp")
CASES = ("ten-questions-no-think", "unicode-no-think", "nested-no-think", "lines-no-think", "one-option-no-think",
         "null-state-think")


def read_raw(path):
    """{name: (dtype, shape, bytes)}"""
    raw = path.read_bytes()
    n = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + n])
    return {k: (h["dtype"], h["shape"], raw[8 + n + h["data_offsets"][0]:8 + n + h["data_offsets"][1]])
            for k, h in header.items() if k != "__metadata__"}


def unpack(kind, data, rows, cols):
    """Packed bytes -> float32 [rows, cols]."""
    groups, blocks = -(-cols // 32), -(-rows // 16)
    b = np.frombuffer(data, np.uint8).reshape(blocks, -1)
    codes = groups * (512 if kind == "q8" else 256)
    tail = np.ascontiguousarray(b[:, codes:])
    if kind == "q8":
        # [block][group][step][lane][4] -> [block][lane][group * 32 inputs]
        q = b[:, :codes].reshape(blocks, groups, 8, 16, 4).transpose(0, 3, 1, 2, 4).reshape(blocks, 16, groups, 32)
        scale = tail[:, :64].copy().view("<f4")[:, :, None, None]
        w = (q.astype(np.float32) - 128) * scale
    else:
        n = b[:, :codes].reshape(blocks, groups, 4, 16, 4).transpose(0, 3, 1, 2, 4).reshape(blocks, 16, groups, 16)
        q = np.concatenate([n & 15, n >> 4], -1).astype(np.float32) - 8
        if kind == "q4":
            scale = tail[:, :groups * 32].copy().view("<f2").reshape(blocks, groups, 16).astype(np.float32)
        else:
            rungs = tail[:, :groups * 16].reshape(blocks, groups, 16) & 31
            at = groups * 16 + 128
            lo, step = (tail[:, at + d:at + d + 32].copy().view("<f2").astype(np.float64) for d in (0, 32))
            ladder, factor = [np.exp2(lo).astype(np.float32)], np.exp2(step).astype(np.float32)
            for _ in range(31):
                ladder.append(ladder[-1] * factor)
            scale = np.take_along_axis(np.stack(ladder, 1), rungs.astype(np.int64), 1)  # [block][group][lane]
        w = q * scale.transpose(0, 2, 1)[..., None]
    return w.reshape(blocks * 16, groups * 32)[:rows, :cols]


def fnv(h, data):
    for byte in data:
        h = ((h ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return h


def order(cfg):
    yield "model.embed_tokens.weight"
    yield "lm_head.weight"
    for i, kind in enumerate(cfg.layer_types):
        p = f"model.layers.{i}."
        if kind == "linear_attention":
            yield from (p + f"linear_attn.{n}.weight" for n in ("in_proj_qkv", "in_proj_z", "out_proj"))
        else:
            yield from (p + f"self_attn.{n}_proj.weight" for n in "qkvo")
        yield from (p + f"mlp.{n}_proj.weight" for n in ("gate", "up", "down"))


def main():
    oracle, packed_root = map(Path, sys.argv[1:3])
    sys.path.insert(0, str(oracle))
    import hybrid
    import hybrid_answers as api
    import hybrid_weights as files
    from hybrid_text import Encoder

    out = {"note": "see make_quantized.py", "checkpoints": {}}
    for name in ("tiny-a", "tiny-b", "tiny-c", "tiny-d"):
        folder = DATA / name
        cfg = hybrid.Config.parse(json.loads((folder / "config.json").read_text()))
        meta = json.loads((folder / "export.json").read_text())
        requests = json.loads((folder / "cases-requests.json").read_text())["cases"]
        mine = out["checkpoints"][name] = {}
        for kind in TYPES:
            weights = files.load_base(folder)
            plain = {k: w.shape for k, w in weights.items()}
            raw = {}
            for f in sorted((packed_root / f"{name}-{kind}").glob("*.safetensors")):
                if not f.name.startswith("drafter"):
                    raw.update({files.model_name(k): v for k, v in read_raw(f).items() if files.model_name(k)})
            h, count = 0xCBF29CE484222325, 0
            for tensor in order(cfg):
                entry = raw.get(f"{tensor}.{kind}")
                if entry is None:
                    continue
                weights[tensor] = unpack(kind, entry[2], *plain[tensor]).astype(np.float64)
                h, count = fnv(h, entry[2]), count + 1
            assert count == sum(k.endswith("." + kind) for k in raw) and count > 10, (name, kind, count)
            model = hybrid.Model(cfg, weights, None, files.load_head(folder / "head.pt"), float(meta.get("temperature", 1.0)))
            engine = hybrid.Engine(model, Encoder(folder))
            cases = []
            for case in requests:
                if case["name"] not in CASES:
                    continue
                results = engine.answer_batch([api.parse_request(case["requests"][0]["body"])])[0]
                cases.append({"name": case["name"],
                              "questions": [{"probs": [round(float(p), 9) for p in x.probs], "chain": x.chain,
                                             "margin": round(float(x.margin), 6) if x.chain else None}
                                            for x in results]})
            mine[kind] = {"fingerprint": f"{h:016x}", "cases": cases}
            print(name, kind, len(cases), file=sys.stderr)
    text = json.dumps(out)
    print(text.replace('{"name"', '\n{"name"').replace('"tiny-', '\n"tiny-'))


if __name__ == "__main__":
    main()
