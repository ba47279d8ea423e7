"""export.py RUN OUT [--dtype bf16|f32]: writes a training run as an export folder that ponder loads."""
from __future__ import annotations

import argparse
import json
import shutil
import struct
from pathlib import Path

import torch

import tokens
from model import CONFIG, HEAD_DIM, Hybrid

TYPES = {torch.float32: "F32", torch.bfloat16: "BF16"}


def write_safetensors(path, tensors):
    header, blobs, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name in sorted(tensors):
        x = tensors[name].detach().contiguous()
        blob = x.view(torch.uint8).numpy().tobytes() if x.dtype != torch.bfloat16 else x.view(torch.int16).numpy().tobytes()
        header[name] = {"dtype": TYPES[x.dtype], "shape": list(x.shape), "data_offsets": [at, at + len(blob)]}
        blobs.append(blob)
        at += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def load(run, fitted=True):
    """-> model, coder, step of a run; the head is that of readout.py where one was fitted to this step"""
    run = Path(run)
    coder = tokens.Coder(run / "tokenizer.json")
    model = Hybrid({**CONFIG, "vocab_size": coder.size})
    c = torch.load(run / "checkpoint.pt")
    model.load_state_dict(c["model"])
    head = run / "head.pt"
    if fitted and head.exists() and (made := torch.load(head))["base"] == c["step"]:
        model.head.load_state_dict(made["head"])
    return model, coder, c["step"]


def export(run, out, dtype=torch.bfloat16, temperature=1.0):
    run, out = Path(run), Path(out)
    model, coder, step = load(run)
    out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        shutil.copy(run / name, out / name)
    weights = {n: p.to(dtype) for n, p in model.state_dict().items() if n.startswith("model.")}
    write_safetensors(out / "model.safetensors", weights)
    torch.save({n.removeprefix("head."): p.float().clone() for n, p in model.state_dict().items() if n.startswith("head.")}, out / "head.pt")
    name = {torch.bfloat16: "bfloat16", torch.float32: "float32"}[dtype]
    config = {**model.c, "eos_token_id": coder.id("<|im_end|>"), "dtype": name}
    (out / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    info = {"source_checkpoint": "training/", "base_model": "trained from scratch", "dtype": name, "format": "markers-v3-plainchains", "head_dim": HEAD_DIM,
            "temperature": temperature, "step": step}
    (out / "export.json").write_text(json.dumps(info, indent=2) + "\n")
    drafter = run / "drafter.pt"
    made = torch.load(drafter) if drafter.exists() else {}
    if made.get("base") == step:        # that of an earlier state of the model would guess badly
        write_safetensors(out / "drafter_k4.safetensors", {n: p.to(dtype) for n, p in made["drafter"].items()})
    return step


if __name__ == "__main__":
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", type=Path)
    p.add_argument("out", type=Path)
    p.add_argument("--dtype", choices=["bf16", "f32"], default="bf16")
    p.add_argument("--temperature", type=float, default=1.0)
    a = p.parse_args()
    print("step", export(a.run, a.out, {"bf16": torch.bfloat16, "f32": torch.float32}[a.dtype], a.temperature))
