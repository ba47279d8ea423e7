"""check_export.py RUN PONDER [--count N]: an export of RUN in float32 answers through ponder as the model does in PyTorch.

Compares the ids of prompts and remainders, the probabilities (direct, and behind ponder's own chain) within 1e-3, and that
each token of ponder's chain is PyTorch's greedy choice, or within 1e-3 of it.
"""
from __future__ import annotations

import argparse
import tempfile
from itertools import islice
from pathlib import Path

import torch

import tasks
import tokens
from chains import think
from export import export, load

NEAR = 1e-3


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", type=Path)
    p.add_argument("ponder")
    p.add_argument("--count", type=int, default=40)
    a = p.parse_args()
    torch.set_num_threads(1)
    records = [r for r in islice(tasks.stream("dev", 5), a.count)]
    model, coder, _ = load(a.run)
    with tempfile.TemporaryDirectory() as folder:
        export(a.run, folder, torch.float32)
        traces = think(a.ponder, folder, records, budget=120)
    worst, chains = [0.0, 0.0], 0
    for (state, questions), trace in zip(records, traces):
        traced = trace["questions"]
        for q in questions:
            t = traced[q.name]
            prompt, rest = tokens.texts(state, q.json())
            prompt, rest = coder.ids(prompt), [coder.end] + coder.ids(rest)
            assert t["prompt_ids"] == prompt, ("prompt", state, q.instructions)
            assert t["remainder_ids"] == rest, ("remainder", state, q.instructions)
            with torch.no_grad():
                hidden, behind = model(torch.tensor([prompt]))

                def answer(tail):
                    h, _ = model(torch.tensor([tail]), behind)
                    at = [i for i, x in enumerate(tail) if x == coder.opt_end]
                    at = at[-len(q.options()):]
                    return h, model.scores(h[:, at], h[:, -1]).softmax(-1)[0]

                _, direct = answer([coder.newline] + rest)
                worst[0] = max(worst[0], (direct - torch.tensor(t["nothink_probs"])).abs().max().item())
                chain = t["chain"]
                h, thought = answer(chain + (rest[1:] if t["closed"] else rest))
                worst[1] = max(worst[1], (thought - torch.tensor(t["probs"])).abs().max().item())
                logits = model.logits(torch.cat([hidden[:, -1:], h], 1))[0, :len(chain)]
                banned = [coder.id(x) for x in tokens.SPECIAL + tokens.PLAIN if x != tokens.THINK_END]
                logits[:, banned] = -torch.inf
                lead = logits.max(-1).values - logits[torch.arange(len(chain)), torch.tensor(chain)]
                assert lead.max() < NEAR, ("chain", coder.tok.decode(chain, skip_special_tokens=False), lead.max())
                chains += t["closed"]
    print(f"{a.count} records: largest difference of probabilities {worst[0]:.1e} direct, {worst[1]:.1e} behind chains; {chains} closed chains")
    assert max(worst) < NEAR


if __name__ == "__main__":
    main()
