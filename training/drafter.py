"""drafter.py RUN PONDER [--questions N] [--steps N]: trains the mask drafter of a trained model on the model's own chains.

Chains are ponder's: the model's greedy ones for N training questions, kept in RUN. Behind every row t of a chain
stand J = 3 mask rows, which see the rows up to t and each other; mask row k guesses the chain's token t + 1 + k. Only the
drafter's projections and its mask embedding are trained. In every second group the mask rows see no more of the delta layers
than a bounded memory keeps, so that a drafter does with it as well. The same command goes on where it stopped.
"""
from __future__ import annotations

import argparse
import random
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

import tasks
from chains import own_chains
from export import load
from model import BLOCK, rotate
from train import Optimiser, padded, save, schedule

J = BLOCK - 1
SEED = 77


class Drafter(nn.Module):
    """Projections for mask rows; names are those of the file with dots spelled as underscores."""

    def __init__(self, base):
        super().__init__()
        self.base = [base]
        self.tensors = nn.ParameterDict()
        with torch.no_grad():
            self.mask_embed = nn.Parameter(base.model.embed_tokens.weight.mean(0))
            for i, layer in enumerate(base.model.layers):
                m = layer.mixer
                if hasattr(layer, "linear_attn"):
                    q, k, v = m.in_proj_qkv.weight.split([m.hk * m.d, m.hk * m.d, m.hv * m.d])
                    wide = lambda x: x.unflatten(0, (m.hk, m.d)).repeat_interleave(m.hv // m.hk, 0).flatten(0, 1)
                    parts = {"delta_q": wide(q), "delta_k": wide(k), "delta_v": v}
                else:
                    parts = {"attn_q": m.q_proj.weight, "attn_k": m.k_proj.weight, "attn_v": m.v_proj.weight}
                for name, w in parts.items():
                    self.tensors[f"{name}_{i}"] = nn.Parameter(w.clone())

    def named(self):
        """Tensors by the names of the file."""
        return {"mask_embed": self.mask_embed.detach(), **{".".join((*n.rsplit("_", 1), "weight")): p.detach() for n, p in self.tensors.items()}}

    def forward(self, layers, first, count, memory=None):
        """Hidden states [B, count, J, E] of the mask rows behind the rows first .. first + count - 1.
        layers: what each layer keeps of all rows, {"k", "v"} [B, G, N, D]. memory: newest and first rows that are seen of the
        delta layers; all if None."""
        base = self.base[0]
        B, N = layers[0]["k"].shape[0], layers[0]["k"].shape[2]
        rows = torch.arange(first, first + count)
        cos, sin = base.tables((rows[:, None] + 1 + torch.arange(J)).flatten())
        # [count * J, N]: which rows of the sequence a mask row sees
        past_rows = torch.arange(N)
        seen = (past_rows <= rows[:, None]).repeat_interleave(J, 0)
        kept = seen
        if memory:
            window, sinks = memory
            kept = seen & ((past_rows > rows[:, None] - window) | (past_rows < sinks)).repeat_interleave(J, 0)
        x = self.mask_embed.expand(B, count * J, -1)
        for i, layer in enumerate(base.model.layers):
            m, h, past = layer.mixer, layer.input_layernorm(x), layers[i]
            lin = lambda n: h @ self.tensors[f"{n}_{i}"].T
            if hasattr(layer, "linear_attn"):
                heads = lambda t: t.unflatten(-1, (m.hv, m.d)).transpose(1, 2)
                q, k, v = rotate(heads(lin("delta_q")), cos, sin), rotate(heads(lin("delta_k")), cos, sin), heads(lin("delta_v"))
                x = x + m.finish(h, block_attend(q, k, v, past["k"], past["v"], kept, count).transpose(1, 2))
            else:
                q, k, v, gate = m.inputs(lin("attn_q"), lin("attn_k"), lin("attn_v"), cos, sin)
                x = x + m.finish(block_attend(q, k, v, past["k"], past["v"], seen, count), gate)
            x = x + layer.mlp(layer.post_attention_layernorm(x))
        return base.model.norm(x).unflatten(1, (count, J))


def block_attend(q, k, v, past_k, past_v, seen, count):
    """Mask rows q [B, H, count * J, D] over the past [B, G, N, D] as `seen` says and over their own block's k and v."""
    B, H, T, D = q.shape
    rep, scale = H // k.shape[1], D ** -0.5
    wide = lambda t: t.repeat_interleave(rep, 1)
    far = (q @ wide(past_k).mT * scale).masked_fill(~seen, -torch.inf)
    blocks = lambda t: t.unflatten(2, (count, J))
    near = (blocks(q) @ blocks(wide(k)).mT * scale).flatten(2, 3)
    p = torch.cat([far, near], -1).softmax(-1)
    own = (blocks(p[..., far.shape[-1]:]) @ blocks(wide(v))).flatten(2, 3)
    return p[..., :far.shape[-1]] @ wide(past_v) + own


def groups(pairs, size, rng):
    """Groups of one prompt length, without end."""
    waiting = defaultdict(list)     # over all rounds, so that few pairs make groups as well
    while True:
        rng.shuffle(pairs)
        for prompt, chain in pairs:
            g = waiting[len(prompt)]
            g.append((prompt, chain))
            if len(g) == size:
                yield g
                waiting[len(prompt)] = []


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("run", type=Path)
    p.add_argument("ponder")
    p.add_argument("--questions", type=int, default=16000)
    p.add_argument("--steps", type=int, default=600)
    p.add_argument("--memory", type=int, nargs=2, default=(32, 16), metavar=("WINDOW", "SINKS"), help="bounded memory of every second group")
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--micro", type=int, default=2)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.06)
    p.add_argument("--lr-rest", type=float, default=0.02)
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    model, _, base = load(a.run)
    model.requires_grad_(False)
    pairs = [(e["prompt"], e["chain"]) for e in own_chains(a.run, base, a.ponder, "train", SEED, tasks.EASY, a.questions, a.threads)]
    drafter = Drafter(model)
    opt = Optimiser(drafter, a.lr, a.lr_rest, decay=0.0)
    path, step = a.run / "drafter_checkpoint.pt", 0
    if path.exists():
        c = torch.load(path)
        if c.get("base") == base:       # a model that was trained on wants a new drafter
            drafter.load_state_dict(c["drafter"])
            opt.load(c["optimiser"])
            step = c["step"]
    params = list(drafter.parameters())

    def work(group, memory):
        with torch.no_grad():
            _, before = model(torch.tensor([g[0] for g in group]), keep=True)
            chain = padded([g[1] for g in group])
            _, behind = model(chain, before, keep=True)
        both = [{k: torch.cat([x[k], y[k]], 2) if "S" in x else y[k] for k in ("k", "v")} for x, y in zip(before["layers"], behind["layers"])]
        C = chain.shape[1]
        want = padded([g[1] for g in group], -100)
        want = F.pad(want, (0, J + 1), value=-100).unfold(1, J + 1, 1)[:, 1:C + 1, 1:]       # [B, C, J]: tokens t + 2 ..
        hidden = drafter(both, before["n"], C, memory)
        keep = want != -100
        logits = model.logits(hidden[keep])
        loss = F.cross_entropy(logits, want[keep])
        grads = torch.autograd.grad(loss / a.micro, params)
        with torch.no_grad():
            hit = torch.zeros_like(keep)
            hit[keep] = logits.argmax(-1) == want[keep]
            run = hit.cumprod(-1).sum().item()
        return grads, loss.item(), run, keep[..., 0].sum().item()

    pool = ThreadPoolExecutor(a.threads, initializer=torch.set_num_threads, initargs=(1,))
    source = groups(pairs, a.batch, random.Random(f"{SEED}/{step}"))
    losses, runs, rows, since = 0.0, 0, 0, time.time()
    while step < a.steps:
        memories = [a.memory if number % 2 else None for number in range(step * a.micro, (step + 1) * a.micro)]
        for grads, loss, run, n in pool.map(work, list(islice(source, a.micro)), memories):
            for q, g in zip(params, grads):
                q.grad = g if q.grad is None else q.grad.add_(g)
            losses, runs, rows = losses + loss / a.micro, runs + run, rows + n
        opt.step(schedule(step, a.steps))
        step += 1
        if step % 25 == 0:
            line = f"{time.strftime('%H:%M:%S')} drafter step {step} loss {losses / 25:.3f} drafts right in a row {runs / max(1, rows):.2f} {time.time() - since:.0f} s"
            print(line, flush=True)
            with open(a.run / "log", "a") as f:
                f.write(line + "\n")
            losses, runs, rows, since = 0.0, 0, 0, time.time()
        if step % 50 == 0 or step == a.steps:
            save(path, drafter=drafter.state_dict(), optimiser=opt.state(), step=step, base=base)
            save(a.run / "drafter.pt", drafter=drafter.named(), step=step, base=base)


if __name__ == "__main__":
    main()
