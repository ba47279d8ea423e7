"""Phrases as a grammar, and which of them may be used.

"[the|my] {item} [came|arrived] [very |]late" stands for every choice among the alternatives between brackets, which may be
nested and empty. `{item}` and its like are filled in later. Of the variants of every list a fifth is held out for the test
and a tenth for dev.
"""
from __future__ import annotations

import zlib
from functools import cache

MOST = 4000     # variants kept of one phrase


def parse(text, at=0, inside=False):
    """-> variants of text from `at` on, up to the end, or to the "|" or "]" that ends an alternative; and where that is"""
    out = [""]
    while at < len(text) and not (inside and text[at] in "|]"):
        if text[at] == "[":
            choices, at = [], at + 1
            while True:
                some, at = parse(text, at, True)
                choices += some
                at += 1
                if text[at - 1] == "]":
                    break
            out = [a + b for a in out for b in choices]
        else:
            end = at
            while end < len(text) and text[end] not in "[]|":
                end += 1
            end = max(end, at + 1)
            out = [a + text[at:end] for a in out]
            at = end
        if len(out) > 4 * MOST:
            out = out[::len(out) // (2 * MOST)]
    return out, at


def number_of(text):
    """A number that depends on the text alone."""
    return zlib.crc32(text.encode())


def side(text):
    """The split that a phrase or value belongs to."""
    n = number_of(text) % 10
    return "test" if n < 2 else "dev" if n == 2 else "train"


@cache
def variants(item):
    """{split: variants} of one phrase"""
    found = list(dict.fromkeys(parse(item)[0]))
    if len(found) > MOST:
        found = sorted(found, key=number_of)[:MOST]
    return {name: [v for v in found if side(v) == name] for name in ("train", "dev", "test")}


@cache
def divided(items):
    """{split: [its variants of a phrase, ..]} of a list. A list of two variants or more has some for training and some for
    the test; where dev has none it takes those of training, and a single variant is for all."""
    pairs = [variants(i) for i in items]
    out = {name: [p[name] for p in pairs if p[name]] for name in ("train", "dev", "test")}
    every = sorted((v for p in pairs for group in p.values() for v in group), key=number_of)
    for name, v in (("test", every[0]), ("train", every[-1])):
        if not out[name] and len(every) > 1:
            out = {k: [g for g in ([x for x in group if x != v] for group in groups) if g] for k, groups in out.items()}
            out[name] = [[v]]
    out["train"] = out["train"] or [every]
    return {name: groups or out["train"] for name, groups in out.items()}


class Split:
    """Which phrasings, values and rule shapes may be used: those of 'train', 'dev' or 'test'. easy: short texts without
    anything irrelevant."""

    def __init__(self, name, rng, easy=False):
        self.name, self.test, self.rng, self.easy = name, name == "test", rng, easy

    def pick(self, items):
        """One phrase of a list."""
        return self.rng.choice(self.rng.choice(divided(tuple(items))[self.name]))

    def any(self, items):
        """One of a list that is the same for all splits."""
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    def sample(self, items, n):
        return self.rng.sample(items, n)

    def number(self, low, high):
        """A value in [low, high] of this split."""
        fits = [n for n in range(low, high + 1) if side(f"value {n}") == self.name]
        return self.rng.choice(fits) if fits else self.rng.randint(low, high)
