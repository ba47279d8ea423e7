"""Generators of the demo's tasks.

A task makes one record: a state and one or more questions about it. Each question knows its right answer and a short
chain of thought that works it out. Nothing here depends on anything but the random numbers it is given.
"""
from __future__ import annotations

import random

from facts import buried, record
from grammar import Split
from messages import desk, opinion, severity, urgency
from rules import fee, limit_pair, limit_rule, logic, tiers, window

# share of the records; and of the easy ones that training begins with
TASKS = [(desk, 28, 12), (urgency, 5, 6), (opinion, 5, 8), (severity, 4, 6), (limit_rule, 13, 12), (limit_pair, 4, 0), (window, 4, 2), (fee, 4, 2), (tiers, 6, 4), (logic, 14, 16),
         (buried, 14, 30), (record, 6, 16)]
EASY = 12000    # records over which the easy ones die out


def make(split, seed, i):
    """Record i: -> state, [Question]"""
    rng = random.Random(f"{seed}/{split}/{i}")
    easy = split == "train" and rng.random() < 1 - i / EASY
    task = rng.choices([t for t, _, _ in TASKS], [e if easy else w for _, w, e in TASKS])[0]
    return task(Split(split, rng, easy))


def stream(split, seed, start=0):
    """Records without end; the same for the same seed."""
    i = start
    while True:
        yield make(split, seed, i)
        i += 1
