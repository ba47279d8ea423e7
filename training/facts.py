"""Tasks that look something up: a fact among irrelevant ones, a field of a record."""
from __future__ import annotations

import banks as B
from question import UNKNOWN, cap, choice, filler, noul, people, person, yes

ROOMS = [str(n) for n in range(11, 99)]
# values, sentences, questions for the value, yes/no questions, questions for the person
ATTRIBUTES = [
    (B.COLOURS, ["{n} [drives|has|bought|owns] a {v} car.", "The car of {n} is {v}.", "{n}'s car is {v}."], ["[Which|What] color is the car of {n}?", "What color [does {n}'s car have|is {n}'s car]?", "Which car does {n} [drive|have]?"],
     ["Is the car of {n} {v}?", "Does {n} [drive|have|own] a {v} car?"], ["Who [has|drives|owns] a {v} car?"]),
    (B.CITIES, ["{n} [lives|has a flat|has a house] in {v}.", "{n}'s home is {v}.", "{n} [moved to|comes from] {v}."], ["Where does {n} live?", "In [which|what] city does {n} live?", "What is the home of {n}?"],
     ["Does {n} live in {v}?", "Is {v} the home of {n}?"], ["Who lives in {v}?", "Whose home is {v}?"]),
    (B.PETS, ["{n} [has|keeps|owns] a {v}.", "The [pet|animal] of {n} is a {v}.", "{n}'s pet is a {v}."], ["[Which|What] [pet|animal] does {n} [have|keep]?", "What is the pet of {n}?"],
     ["Does {n} [have|keep|own] a {v}?", "Is the pet of {n} a {v}?"], ["Who [has|keeps|owns] a {v}?"]),
    (B.WORK, ["{n} works as a {v}.", "{n} is a {v}.", "{n} earns money as a {v}.", "The job of {n} is {v}."], ["What is the job of {n}?", "What does {n} work as?", "[Which|What] job does {n} have?"],
     ["Is {n} a {v}?", "Does {n} work as a {v}?"], ["Who is a {v}?", "Who works as a {v}?"]),
    (B.DRINKS, ["{n} [drinks|orders|wants|likes] {v}.", "{n} likes {v} best.", "{n} always [orders|drinks] {v}."], ["What does {n} [drink|order|like]?", "[Which|What] drink does {n} [like|order]?", "What will {n} [order|drink]?"],
     ["Does {n} [drink|order|like] {v}?", "Is {v} the drink of {n}?"], ["Who [drinks|likes|orders] {v}?"]),
    (B.SPORTS, ["{n} [plays|does|likes] {v}.", "{n} does {v} every week.", "The sport of {n} is {v}.", "{n} is good at {v}."], ["[Which|What] sport does {n} [do|like]?", "What does {n} play?", "What is the sport of {n}?"],
     ["Does {n} [play|do|like] {v}?", "Is {v} the sport of {n}?"], ["Who [plays|does|likes] {v}?", "Who is good at {v}?"]),
    (ROOMS, ["{n} [sits|works|is] in room {v}.", "The [room|office] of {n} is {v}.", "{n} has [room|office] {v}."], ["[Which|What] room does {n} have?", "In [which|what] room is {n}?", "Where does {n} sit?"],
     ["[Is|Does] {n} [in room {v}|sit in room {v}]?", "Is {v} the room of {n}?"], ["Who [sits|works|is] in room {v}?", "Whose room is {v}?"]),
]


def say(s, texts, n, v):
    return s.pick(texts).format(n=n, v=v)


def question_about(s, attribute, names, given, i, unknown=False):
    """A question about person i of `names`, whose value of the attribute is given[i], or is not said."""
    values, _, asks, checks, who = attribute
    p, v, kind = names[i], given[i], s.rng.random()
    if kind < 0.4:
        options = list(dict.fromkeys([v] + given))[:4]
        if len(options) < 4 and s.chance(0.5):
            options.append(s.any([x for x in values if x not in options]))
        s.rng.shuffle(options)
        ask = say(s, asks, p, v)
        if unknown:
            return choice("fact", ask, options, UNKNOWN, f"{p}: not said.", "facts")
        return choice("fact", ask, options, v, f"{p}: {v}.", "facts")
    if kind < 0.65 and not unknown:
        options = names[:]
        s.rng.shuffle(options)
        return choice("who", say(s, who, p, v), options, p, f"{cap(v)}: {p}.", "facts")
    right = s.chance(0.5)
    asked = v if right else s.any([x for x in given if x != v] + [s.any([x for x in values if x not in given])])
    ask = say(s, checks, p, asked)
    if unknown:
        return noul("fact", ask, UNKNOWN, f"{p}: not said.", "facts")
    return noul("fact", ask, right, f"{p}: {v}. {cap(asked)}: {yes(right)}.", "facts")


def interview(s, count=6):
    """People with two attributes each, and many questions about them."""
    names = people(s, s.any([2, 3, 4, 5]))
    kinds = s.sample(ATTRIBUTES, 2)
    given = [s.sample(kind[0], len(names)) for kind in kinds]
    text = [say(s, kind[1], p, v) for kind, values in zip(kinds, given) for p, v in zip(names, values)] + filler(s, s.any([0, 1, 2]))
    s.rng.shuffle(text)
    cells = [(k, i) for k in range(2) for i in range(len(names))]
    questions = [question_about(s, kinds[k], names, given[k], i) for k, i in s.sample(cells, min(count, len(cells)))]
    return " ".join(text) if s.chance(0.7) else text, questions


def buried(s):
    names = people(s, s.any([2, 3, 3, 4]))
    kind = s.any(ATTRIBUTES)
    values, sentences = kind[:2]
    given = s.sample(values, len(names))
    other = s.any([a for a in ATTRIBUTES if a[0] is not values])
    lines = [say(s, sentences, p, v) for p, v in zip(names, given)]
    extra = [say(s, other[1], p, v) for p, v in zip(names, s.sample(other[0], len(names))) if s.chance(0.4) and not s.easy]
    i = s.rng.randrange(len(names))
    unknown = s.chance(0.1)
    if unknown:
        lines[i] = say(s, other[1], names[i], s.any(other[0]))
    text = lines + extra + filler(s, s.any([0, 1, 2, 3]))
    s.rng.shuffle(text)
    state = " ".join(text) if s.chance(0.7) else text
    return state, [question_about(s, kind, names, given, i, unknown)]


RECORD = {"status": ["paid", "open", "sent", "returned", "cancelled"], "priority": ["low", "normal", "high"], "plan": ["free", "basic", "team", "business"],
          "country": ["France", "Italy", "Spain", "Norway", "Poland"], "payment": ["card", "cash", "invoice", "transfer"], "channel": ["chat", "email", "phone"],
          "color": B.COLOURS, "day": "monday tuesday wednesday thursday friday saturday sunday".split(), "month": B.MONTHS}
FIELD = ["What is the {k} of the order?", "[Which|What] {k} does the [record|order] [show|have]?", "[Read|Tell|Find] the {k}.", "What {k} is [named|given][ in the record|]?"]
FIELD_IS = ["Is the {k} {v}?", "Does the [record|order] [show|name] {v} as [the |]{k}?", "Is {v} the {k} of the order?", "Is it true that the {k} is {v}?"]


def record(s):
    """A field of a record."""
    keys = s.sample(list(RECORD), s.rng.randint(3, 5))
    rec = {"order": s.number(100, 999), "name": person(s), **{k: s.any(RECORD[k]) for k in keys}}
    key = s.any(keys)
    v = rec[key]
    unknown = s.chance(0.1)
    if unknown:
        del rec[key]
    if s.chance(0.3) and not s.easy:
        rec["note"] = filler(s, 1)[0]
    state = rec if s.chance(0.7) else {"record": rec}
    if s.chance(0.5):
        options = s.sample(RECORD[key], min(len(RECORD[key]), 4))
        if v not in options:
            options[0] = v
        s.rng.shuffle(options)
        ask = s.pick(FIELD).replace("{k}", key)
        return state, [choice("field", ask, options, UNKNOWN if unknown else v, f"{cap(key)}: {'not said' if unknown else v}.", "record")]
    right = s.chance(0.5)
    asked = v if right else s.any([x for x in RECORD[key] if x != v])
    ask = s.pick(FIELD_IS).replace("{k}", key).replace("{v}", asked)
    if unknown:
        return state, [noul("field", ask, UNKNOWN, f"{cap(key)}: not said.", "record")]
    return state, [noul("field", ask, right, f"{cap(key)}: {v}. {cap(asked)}: {yes(right)}.", "record")]
