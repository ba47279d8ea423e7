"""Drills: short exercises in what every chain is made of, many in one text, so that a step teaches many of them.

A row is one text in pieces, of which some are to be learnt: chains of thought behind their questions, without options.
Of ten rows six ask about one state again and again, three have one question a state, one only works numbers out.
"""
from __future__ import annotations

import random

from facts import interview
from grammar import Split
from question import yes
from rules import LIMITS, OPS, difference, fee, limit_pair, limit_rule, logic, measured, near, tiers, window
from tokens import ASK, STATE, THINK_END, render

LONGEST = 192       # tokens of a row


def asked(state, questions):
    """[(text, whether it is learnt)]"""
    yield f"{STATE}{render(state)}", False
    for q in questions:
        yield f"\n{ASK}{render(q.instructions)}\n<think>\n", False
        yield f"{q.chain}\n{THINK_END}", True


def worked(s):
    """A piece of working with numbers of its own: what is given, and the rest, which is learnt."""
    kind = s.rng.random()
    if kind < 0.2:
        rules, _, _, (low, high), unit = s.any(LIMITS)
        limit = s.number(low, high)
        test, words = OPS[s.any(rules)[1]]
        v = near(s, limit, 1)
        first, rest = measured(unit, words, limit, v).split(":", 1)
        return f"{first}:", f"{rest}. Answer: {yes(test(v, limit))}"
    if kind < 0.6:
        a = s.rng.randint(1, 28)
        b = s.rng.randint(max(1, a - 27), a)
        first, rest = difference(a, b).split(":", 1)
        return f"{first}:", f"{rest} days."
    a, b = s.rng.randint(1, 9), s.rng.randint(1, 9)
    return f"{a}x{b}=", f"{a * b}."


def row(seed):
    """[(text, whether it is learnt)]"""
    rng = random.Random(f"drill/{seed}")
    s = Split("train", rng, easy=rng.random() < 0.5)
    kind = rng.random()
    if kind < 0.6:
        return list(asked(*interview(s)))
    if kind < 0.9:
        return [p for _ in range(3) for p in asked(*s.any([limit_rule, limit_pair, window, fee, tiers, logic])(s))]
    pieces = [("<think>\n", False)]
    for _ in range(9):
        given, rest = worked(s)
        pieces += [(given, False), (rest, True), ("\n", False)]
    return pieces


def rows(coder, seed, count):
    """-> ids, labels (-100: not learnt) of `count` rows; labels[i] is ids[i] where it is learnt"""
    ids, labels = [], []
    for i in range(count):
        some, want = [], []
        for text, learnt in row(seed * count + i):
            t = coder.ids(text)
            some += t
            want += t if learnt else [-100] * len(t)
        ids.append(some[:LONGEST])
        labels.append(want[:LONGEST])
    return ids, labels
