"""train.py FOLDER [--steps N]: trains the decision model; the same command goes on where it stopped.

FOLDER holds tokenizer.json (made if missing), checkpoint.pt (weights, optimiser, position in the data) and log. A step is
--micro groups of --batch questions with prompts of one length. The first --copy steps are random texts to be said again: looking
back comes quickly there, while phrases that return hide it. Then a part of the groups are drills (drills.py). In the others
each prompt is run once; behind it both ways of answering branch off: the empty think, and the chain of thought with its
close; then the remainder, read by the pointer head.
Loss = next token over the chain + cross-entropy of both read-outs against the target probabilities + a little next token
over the prompt and over the remainder. The remainder says the options again, word by word, so it teaches copying.
"""
from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import islice
from pathlib import Path

import torch
import torch.nn.functional as F

import drills
import tokens
from model import CONFIG, Hybrid

SEED = 1


# ---------------------------------------------------------------- batches
def batches(coder, seed, start, size):
    """Groups of `size` examples whose prompts have one length. -> (position in the data, examples)"""
    waiting = defaultdict(list)
    for at, e in tokens.examples(coder, "train", seed, start):
        group = waiting[len(e[0])]
        group.append(e)
        if len(group) == size:
            yield at, group
            waiting[len(e[0])] = []


def padded(rows, value=0):
    out = torch.full((len(rows), max(map(len, rows))), value)
    for i, r in enumerate(rows):
        out[i, :len(r)] = torch.tensor(r)
    return out


def read(model, coder, hidden, rows, targets):
    """Scores of the options of `rows` (ids, with the remainder at their end) -> log-probabilities [B, n], targets [B, n]"""
    n = max(map(len, targets))
    at = [[i for i, t in enumerate(r) if t == coder.opt_end] for r in rows]
    pick = torch.arange(len(rows))
    options = hidden[pick[:, None], padded([a + [0] * (n - len(a)) for a in at])]
    score = model.scores(options, hidden[pick, torch.tensor([len(r) - 1 for r in rows])])
    valid = torch.arange(n) < torch.tensor([len(t) for t in targets])[:, None]
    want = torch.zeros(len(rows), n)
    for i, t in enumerate(targets):
        want[i, :len(t)] = torch.tensor(t)
    return score.masked_fill(~valid, -1e9).log_softmax(-1), want


def forward(model, coder, group, both=True):
    """Losses of one group, and what is counted of it for a Tally; without `both` only behind chains."""
    prompt = torch.tensor([e[0] for e in group])
    targets = [e[3] for e in group]
    hidden, state = model(prompt)
    direct = [[coder.newline, coder.end] + e[2] for e in group]
    if both:
        h, _ = model(padded(direct), state)
        p0, want = read(model, coder, h, direct, targets)
    thought = [e[1] + e[2] for e in group]
    h, _ = model(padded(thought), state)
    p1, want = read(model, coder, h, thought, targets)
    p0 = p0 if both else p1
    # row t is predicted by the row before it
    logits = model.logits(torch.cat([hidden[:, -1:], h[:, :-1]], 1))
    chain = padded([e[1] + [-100] * len(e[2]) for e in group], -100)
    lm = F.cross_entropy(logits.flatten(0, 1), chain.flatten(), ignore_index=-100)
    again = F.cross_entropy(logits.flatten(0, 1), padded([[-100] * len(e[1]) + e[2] for e in group], -100).flatten(), ignore_index=-100)
    with torch.no_grad():
        sure = want.amax(-1) > 0.99
        right = [((p.argmax(-1) == want.argmax(-1)) & sure).sum().item() for p in (p0, p1)]
        exact = ((logits.argmax(-1) == chain) | (chain == -100)).all(-1).sum().item()
    told = F.cross_entropy(model.logits(hidden[:, :-1]).flatten(0, 1), prompt[:, 1:].flatten()) + again
    entropy = -(want * want.clamp_min(1e-9).log()).sum(-1)
    loss0, loss1 = ((-(want * p).sum(-1) - entropy).mean() for p in (p0, p1))
    if not both:
        loss0, right[0] = torch.zeros(()), 0
    n = len(group)
    return lm, loss0, loss1, told, {
        "n": n, "lm": lm.item() * n, "l1": loss1.item() * n, "told": told.item() * n, "sure": sure.sum().item(), "thought": right[1], "exact": exact,
        "direct_n": n * both, "l0": loss0.item() * n * both, "direct_sure": sure.sum().item() * both, "direct": right[0],
        "tokens": prompt.numel() + sum(map(len, direct)) + sum(map(len, thought))}


def copying(model, generator, batch, longest=40):
    """Loss of saying a random text again, behind it and something else: tokens drawn evenly, so that nothing but looking back helps."""
    n, between = (int(torch.randint(low, high, (), generator=generator)) for low, high in ((8, longest), (1, 16)))
    text, other = (torch.randint(model.c["vocab_size"], (batch, k), generator=generator) for k in (n, between))
    ids = torch.cat([text, other, text], 1)
    hidden, _ = model(ids[:, :-1])
    return F.cross_entropy(model.logits(hidden[:, n + between:]).flatten(0, 1), text[:, 1:].flatten())


def drilled(model, coder, seed, batch):
    """Loss over what drills have to teach."""
    ids, labels = drills.rows(coder, seed, batch)
    hidden, _ = model(padded(ids)[:, :-1])
    return F.cross_entropy(model.logits(hidden).flatten(0, 1), padded(labels, -100)[:, 1:].flatten(), ignore_index=-100)


# ---------------------------------------------------------------- optimiser
def orthogonalised(x, steps=5):
    """Newton-Schulz iteration towards the nearest orthogonal matrix, for a stack of matrices (Muon)."""
    wide = x.shape[-2] > x.shape[-1]
    x = x.mT if wide else x
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(steps):
        a = x @ x.mT
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.mT if wide else x


class Optimiser:
    """Muon for the matrices inside layers, AdamW for everything else."""

    def __init__(self, model, lr_matrix, lr_rest, decay=0.01):
        self.lr_matrix, self.lr_rest, self.decay = lr_matrix, lr_rest, decay
        named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
        inner = lambda n, p: p.ndim == 2 and "embed" not in n and "head." not in n and "in_proj_a" not in n and "in_proj_b" not in n
        shapes = defaultdict(list)
        for n, p in named:
            if inner(n, p):
                shapes[tuple(p.shape)].append(p)
        self.stacks = list(shapes.values())
        self.momentum = [torch.zeros(len(s), *s[0].shape) for s in self.stacks]
        rest = [p for n, p in named if not inner(n, p)]
        self.adam = torch.optim.AdamW([{"params": [p for p in rest if p.ndim >= 2], "weight_decay": 0.0}, {"params": [p for p in rest if p.ndim < 2], "weight_decay": 0.0}],
                                      lr=lr_rest, betas=(0.9, 0.98), fused=False, foreach=True)

    @torch.no_grad()
    def step(self, scale):
        for group in self.adam.param_groups:
            group["lr"] = self.lr_rest * scale
        self.adam.step()
        self.adam.zero_grad()
        lr = self.lr_matrix * scale
        for stack, m in zip(self.stacks, self.momentum):
            g = torch.stack([p.grad for p in stack])
            m.lerp_(g, 0.05)
            update = orthogonalised(g.lerp(m, 0.95))
            size = max(1, stack[0].shape[0] / stack[0].shape[1]) ** 0.5
            for p, u in zip(stack, update):
                p.mul_(1 - lr * self.decay).add_(u, alpha=-lr * size)
                p.grad = None

    def state(self):
        return {"momentum": self.momentum, "adam": self.adam.state_dict()}

    def load(self, s):
        self.momentum = s["momentum"]
        self.adam.load_state_dict(s["adam"])


def schedule(step, steps, warm=40, cool=0.4):
    """Constant, with a short rise and a linear fall over the last part."""
    return min((step + 1) / warm, 1.0, max(0.0, (steps - step) / (cool * steps)))


# ---------------------------------------------------------------- the run
def save(path, **what):
    torch.save(what, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


class Tally(defaultdict):
    def __init__(self):
        super().__init__(float)

    def add(self, counts):
        for k, v in counts.items():
            self[k] += v

    def __str__(self):
        n, sure = max(self["n"], 1), max(self["sure"], 1)
        drills = f" drills {self['drills'] / self['drill_groups']:.3f}" if self["drill_groups"] else ""
        return (f"chain {self['lm'] / n:.3f} direct {self['l0'] / max(1, self['direct_n']):.3f} {self['direct'] / max(1, self['direct_sure']):.3f} after chain {self['l1'] / n:.3f} "
                f"{self['thought'] / sure:.3f} exact {self['exact'] / n:.3f} prompt {self['told'] / n:.2f}" + drills)


@torch.no_grad()
def evaluate(model, coder, groups):
    """Direct answers, and chains as given: how many are exactly what greedy decoding would have written."""
    tally = Tally()
    for group in groups:
        tally.add(forward(model, coder, group)[-1])
    return str(tally)


def by_length(examples, prompt):
    """Groups of one prompt length, the shortest first. prompt: of an example"""
    by = defaultdict(list)
    for e in examples:
        by[len(prompt(e))].append(e)
    return [v for _, v in sorted(by.items())]


def dev_groups(coder, split, count):
    """`count` examples of a split in groups of one prompt length."""
    return by_length((e for _, e in islice(tokens.examples(coder, split, 20), count)), lambda e: e[0])


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("folder", type=Path)
    p.add_argument("--steps", type=int, default=4000)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--micro", type=int, default=2)
    p.add_argument("--lr", type=float, default=0.02, help="of the matrices")
    p.add_argument("--lr-rest", type=float, default=0.004)
    p.add_argument("--direct", type=float, default=0.4, help="weight of the direct answer's loss")
    p.add_argument("--chain", type=float, default=2.0, help="weight of the next tokens of the chain and of drills")
    p.add_argument("--told", type=float, default=0.2, help="weight of the next tokens of prompt and remainder")
    p.add_argument("--copy", type=int, default=320, help="first steps, in which random texts are said again")
    p.add_argument("--drills", type=int, default=3, help="every so many groups one is drills")
    p.add_argument("--minutes", type=float, default=4, help="between checkpoints")
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--overfit", type=int, default=0, help="train on this many examples again and again")
    a = p.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    torch.set_flush_denormal(True)
    a.folder.mkdir(parents=True, exist_ok=True)
    if not (a.folder / "tokenizer.json").exists():
        tokens.train(a.folder)
    coder = tokens.Coder(a.folder / "tokenizer.json")
    model = Hybrid({**CONFIG, "vocab_size": coder.size})
    opt = Optimiser(model, a.lr, a.lr_rest)
    path, step, start = a.folder / "checkpoint.pt", 0, 0
    if path.exists():
        c = torch.load(path)
        model.load_state_dict(c["model"])
        opt.load(c["optimiser"])
        step, start = c["step"], c["position"]

    def say(text):
        line = f"{time.strftime('%H:%M:%S')} {text}"
        print(line, flush=True)
        with open(a.folder / "log", "a") as f:
            f.write(line + "\n")

    say(f"start at step {step} of {a.steps}, {sum(x.numel() for x in model.parameters()) / 1e6:.2f} M parameters, {vars(a)}")
    dev, test = (dev_groups(coder, s, 160) for s in ("dev", "test"))
    if a.overfit:
        dev = test = dev_groups(coder, "train", a.overfit)
    params = list(model.parameters())

    def alone(loss, weight=1.0):
        """Gradients of a loss that may leave out parameters, and the loss."""
        return torch.autograd.grad(loss * weight / a.micro, params, materialize_grads=True), loss.item()

    def drill(number):
        grads, loss = alone(drilled(model, coder, number, a.batch), a.chain)
        return grads, {"drills": loss, "drill_groups": 1}

    def ask(group, both):
        # the direct branch of every other group, counted twice, is enough
        lm, loss0, loss1, told, counts = forward(model, coder, group, both)
        grads = torch.autograd.grad((a.chain * lm + 2 * a.direct * loss0 + loss1 + a.told * told) / a.micro, params)
        return grads, counts

    def warm(seed):
        return alone(copying(model, torch.Generator().manual_seed(seed), a.batch))

    def update(step, groups):
        """One step down the sum of the groups' gradients -> its norm"""
        for grads in groups:
            for p, g in zip(params, grads):
                p.grad = g if p.grad is None else p.grad.add_(g)
        norm = torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step(schedule(step, a.steps))
        return norm

    # a group a thread: threads that share one group wait for each other at every operation
    pool = ThreadPoolExecutor(a.threads, initializer=torch.set_num_threads, initargs=(1,))
    source = batches(coder, SEED, start, a.batch)
    tally, since, saved, position, saves = Tally(), time.time(), time.time(), start, 0
    copied = 0.0
    while step < a.copy:
        grads, losses = zip(*pool.map(warm, range(step * a.micro, (step + 1) * a.micro)))
        update(step, grads)
        copied += sum(losses) / a.micro
        step += 1
        if step % 20 == 0:
            say(f"step {step} copying {copied / 20:.3f}")
            copied = 0.0
    since = time.time()
    while step < a.steps:
        jobs = []
        for i in range(a.micro):
            number = step * a.micro + i
            if a.drills and number % a.drills == a.drills - 1:
                jobs.append(partial(drill, number))
                continue
            if a.overfit:
                group = dev[torch.randint(len(dev), ()).item()]
            else:
                position, group = next(source)
            jobs.append(partial(ask, group, i % 2 == 0))
        grads, counts = zip(*pool.map(lambda job: job(), jobs))
        norm = update(step, grads)
        for c in counts:
            tally.add(c)
        step += 1
        if step % 25 == 0:
            say(f"step {step} {tally} norm {norm:.2f} {tally['tokens'] / (time.time() - since):.0f} tokens/s")
            tally, since = Tally(), time.time()
        if time.time() - saved > 60 * a.minutes or step == a.steps:
            save(path, model=model.state_dict(), optimiser=opt.state(), step=step, position=position)
            saves += 1
            saved = time.time()
            if saves % 2 and step < a.steps:
                continue
            say(f"step {step} dev  {evaluate(model, coder, dev)}")
            say(f"step {step} test {evaluate(model, coder, test)}")
            saved = since = time.time()
            tally = Tally()


if __name__ == "__main__":
    main()
