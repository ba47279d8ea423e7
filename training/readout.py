"""readout.py RUN PONDER [--questions N]: fits the pointer head to what the model really thinks.

In training every chain is right, so the head learns to believe chains. The model's own are sometimes wrong. Here the head, and
nothing else, is trained a little further behind ponder's own chains, and behind no chain, for questions of the dev split
(other ones than those of data/demo). A fifth of them tells when to stop. Writes RUN/head.pt, which export.py prefers.
"""
from __future__ import annotations

import argparse
import copy
from collections import defaultdict
from pathlib import Path

import torch

from chains import own_chains
from export import load
from train import by_length, padded

SEED = 78
COUNT = 4000


@torch.no_grad()
def hidden_states(model, coder, examples, direct):
    """-> options [N, most, E], decide [N, E], target [N, most], valid [N, most]; the remainder is read behind the chain, or behind none"""
    n, out = max(len(e["target"]) for e in examples), defaultdict(list)
    for some in by_length(examples, lambda e: e["prompt"]):
        for group in (some[i:i + 16] for i in range(0, len(some), 16)):
            _, behind = model(torch.tensor([e["prompt"] for e in group]))
            rows = [[coder.newline] + e["rest"] if direct else e["chain"] + e["rest"][e["closed"]:] for e in group]
            h, _ = model(padded(rows), behind)
            for e, row, x in zip(group, rows, h):
                at = [i for i, t in enumerate(row) if t == coder.opt_end][-len(e["target"]):]
                fill = n - len(at)
                out["options"].append(x[at + [0] * fill])
                out["decide"].append(x[len(row) - 1])
                out["target"].append(torch.tensor(e["target"] + [0.0] * fill))
                out["valid"].append(torch.tensor([True] * len(at) + [False] * fill))
    return {k: torch.stack(v) for k, v in out.items()}


def loss_of(model, x, at):
    p = model.scores(x["options"][at], x["decide"][at]).masked_fill(~x["valid"][at], -1e9).log_softmax(-1)
    return -(x["target"][at] * p.clamp_min(-50)).sum(-1).mean()


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", type=Path)
    p.add_argument("ponder")
    p.add_argument("--questions", type=int, default=COUNT)
    p.add_argument("--epochs", type=int, default=30)
    p.add_argument("--lr", type=float, default=3e-4)
    a = p.parse_args()
    torch.manual_seed(SEED)
    torch.set_num_threads(2)
    model, coder, base = load(a.run, fitted=False)
    model.requires_grad_(False)
    examples = own_chains(a.run, base, a.ponder, "dev", SEED, 0, a.questions)
    ways = [hidden_states(model, coder, examples, direct) for direct in (True, False)]
    count = len(examples)
    order = torch.randperm(count)
    kept, fitted = order[:count // 5], order[count // 5:]
    head = model.head.requires_grad_(True)
    opt = torch.optim.AdamW(head.parameters(), lr=a.lr, weight_decay=0.01)
    measure = lambda: [loss_of(model, x, kept).item() for x in ways]
    with torch.no_grad():
        first = measure()
    best, state = sum(first), copy.deepcopy(head.state_dict())
    for epoch in range(a.epochs):
        for at in fitted[torch.randperm(len(fitted))].split(64):
            loss = sum(loss_of(model, x, at) for x in ways)
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            now = measure()
        print(f"epoch {epoch + 1}: loss {now[0]:.4f} direct, {now[1]:.4f} behind chains", flush=True)
        if sum(now) < best:
            best, state = sum(now), copy.deepcopy(head.state_dict())
    print(f"before: {first[0]:.4f}, {first[1]:.4f}; best sum {best:.4f}")
    torch.save({"base": base, "head": state}, a.run / "head.pt")


if __name__ == "__main__":
    main()
