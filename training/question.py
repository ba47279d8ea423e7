"""A question with its answer and chain of thought, and the small parts that all tasks use."""
from __future__ import annotations

from dataclasses import dataclass

import banks as B
import phrases as P

UNKNOWN = None


def label_index(kind, criteria, label):
    """Which of a question's options its label stands for."""
    return list(criteria).index(label) if kind == "choice" else int(label)


@dataclass
class Question:
    name: str
    type: str                 # choice, noul or score
    instructions: object
    criteria: object
    label: object             # option name, True/False, level; None: the state does not say
    chain: str
    src: str
    soft: list | None = None  # target probabilities where they are not all on the label

    def options(self):
        """The options' names as a chain spells them."""
        if self.type == "choice":
            return list(self.criteria)
        return ["no", "yes"] if self.type == "noul" else [str(x) for x in self.criteria]

    def target(self):
        n = len(self.options())
        if self.soft:
            return self.soft
        if self.label is UNKNOWN:
            return [1 / n] * n
        at = label_index(self.type, self.criteria, self.label)
        return [float(i == at) for i in range(n)]

    def json(self):
        return {"type": self.type, "instructions": self.instructions, "criteria": self.criteria, "label": self.label, "src": self.src}


def yes(b):
    return "yes" if b else "no"


def cap(text):
    return text[:1].upper() + text[1:]


def noul(name, ask, value, chain, src, criteria=None):
    chain = f"{chain} Answer: {yes(value)}" if value is not UNKNOWN else f"{chain} Not said."
    return Question(name, "noul", ask, criteria, value, chain, src)


def choice(name, ask, options, value, chain, src):
    """options: names, in the order they are shown"""
    chain = f"{chain} Answer: {value}" if value is not UNKNOWN else f"{chain} Not said."
    return Question(name, "choice", ask, {o: None for o in options}, value, chain, src)


# ---------------------------------------------------------------- names of people and places
def invented(s):
    """A word nobody has seen: what has to be read cannot be remembered."""
    word = "".join(s.any("b d f g k l m n p r s t v z br dr kl st tr sh".split()) + s.any("a e i o u ai ou".split()) for _ in range(s.any([2, 2, 3])))
    return cap(word + s.any(["", "n", "r", "l", "s", "k"]))


def people(s, count):
    names = s.sample(B.NAMES, count)
    return [invented(s) if s.chance(0.2) else n for n in names]


def person(s):
    return people(s, 1)[0]


def place(s):
    return invented(s) if s.chance(0.15) else s.any(B.CITIES)


def fill(s, text):
    """Puts words into the slots of a phrase."""
    if "{" not in text:
        return text
    if "{item" in text:
        item, item2 = s.sample(B.ITEMS, 2)
        text = text.replace("{item2}", item2).replace("{item}", item)
    nth = s.rng.randint(0, 3)
    for slot, value in (("{dur}", lambda: s.any(B.DURATIONS)), ("{amount}", lambda: str(s.number(10, 400))), ("{num}", lambda: str(s.number(2, 60))),
                        ("{name}", lambda: person(s)), ("{city}", lambda: place(s)), ("{nth}", lambda: B.NTH[nth]), ("{Nth}", lambda: cap(B.NTH[nth])),
                        ("{nth2}", lambda: B.COUNTS[nth])):
        if slot in text:
            text = text.replace(slot, value())
    return text


def filler(s, n):
    """Up to n sentences that say nothing about the matter."""
    return [] if s.easy else [fill(s, s.pick(P.SMALL_TALK)) for _ in range(n)]


def mixed(s, parts, n):
    parts = list(parts)
    for t in filler(s, n):
        parts.insert(s.rng.randint(0, len(parts)), t)
    return " ".join(parts)
