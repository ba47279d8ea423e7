"""Generators of the demo's tasks.

A task makes one record: a state and one or more questions about it. Each question knows its right answer and a short
chain of thought that works it out. Nothing here depends on anything but the random numbers it is given.
"""
from __future__ import annotations

import random
from dataclasses import dataclass

import banks as B

UNKNOWN = None


class Split:
    """Which phrasings, values and rule shapes may be used: 'train' and 'dev' see the seen ones, 'test' the held-out ones."""

    def __init__(self, name, rng):
        self.test, self.rng = name == "test", rng

    def pick(self, items):
        """One of a list of phrasings whose last fifth is held out."""
        held = max(1, len(items) // 5)
        return self.rng.choice(items[-held:] if self.test else items[:-held])

    def any(self, items):
        """One of a list that is the same for all splits."""
        return self.rng.choice(items)

    def chance(self, p):
        return self.rng.random() < p

    def sample(self, items, n):
        return self.rng.sample(items, n)

    def number(self, low, high):
        """A value in [low, high]; those that leave 3 when divided by 5 are for the test alone, and it takes no others."""
        fits = [n for n in range(low, high + 1) if (n % 5 == 3) == self.test]
        return self.rng.choice(fits) if fits else self.rng.randint(low, high)


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
        at = self.options().index(self.label) if self.type == "choice" else int(self.label)
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


def ending(s, text):
    """A sentence's end and first letter, now and then careless."""
    if text[-1] in ".!?":
        return text
    if text.split()[0] in ("where", "when", "what", "why", "how", "who", "which", "is", "are", "do", "does", "can", "will", "would", "may"):
        return text + "?"
    return text + s.any([".", ".", ".", "!"])


# ---------------------------------------------------------------- messages of customers
def fill(s, text):
    item, item2 = s.sample(B.ITEMS, 2)
    nth, nth2 = s.any(["third", "fourth", "fifth", "sixth"]), s.any(["three", "four", "five", "six"])
    return (text.replace("{item2}", item2).replace("{item}", item).replace("{dur}", s.any(B.DURATIONS)).replace("{amount}", str(s.number(10, 400)))
            .replace("{num}", str(s.number(2, 60))).replace("{name}", s.any(B.NAMES)).replace("{city}", s.any(B.CITIES)).replace("{nth}", nth).replace("{Nth}", cap(nth)).replace("{nth2}", nth2))


def issue(s, concept):
    text = fill(s, s.pick(B.CONCEPTS[concept][3]))
    if " the " in " " + text and s.chance(0.4):
        text = (" " + text).replace(" the ", " my ", 1).strip()
    return text


def sentence(s, text):
    text = text.replace(" i ", " I ")
    text = "I" + text[1:] if text.startswith("i ") else text
    return ending(s, cap(text) if s.chance(0.9) else text)


def message(s, core, tone=(), talk=None):
    """Core sentences in order, with greeting, small talk, tone and closing around them."""
    parts = list(core)
    for t in tone:
        parts.insert(s.rng.randint(0, len(parts)) if s.chance(0.3) else len(parts), t)
    for _ in range(s.any([0, 0, 0, 1, 1, 2]) if talk is None else talk):
        parts.insert(s.rng.randint(0, len(parts)), fill(s, s.pick(B.SMALL_TALK)))
    if s.chance(0.4):
        parts.insert(0, fill(s, s.any(B.GREETINGS)))
    if s.chance(0.25):
        parts.append(fill(s, s.any(B.CLOSINGS)))
    return " ".join(parts)


def as_state(s, text, key="message"):
    """The same message as a bare text or as part of a record."""
    kind = s.rng.randint(0, 5)
    if kind <= 1:
        return text
    if kind == 2:
        return {"channel": s.any(["chat", "email", "phone", "web form", "app", "letter"]), key: text}
    if kind == 3:
        return {key: text}
    if kind == 4:
        return {"id": s.number(100, 999), key: text, "language": "en"}
    return {"customer": {"name": s.any(B.NAMES), "city": s.any(B.CITIES)}, key: text}


ROUTE_ASK = ["Which department should handle this message?", "Which team is responsible?", "Who should answer this?", "Where should this message go?", "Route the message to a team.",
             "Which desk takes care of this?", "To whom should the message be sent?", "Pick the right team for this request.", "Who handles this?", "Which department is the right one?"]


def team_options(s, concepts):
    """{team: description or null} in the order of `concepts`; -> criteria, names"""
    names = {}
    described = s.chance(0.65)
    for c in concepts:
        name = s.any(B.CONCEPTS[c][0])
        names[c] = name
    criteria = {names[c]: (s.any(B.CONCEPTS[c][1]) if described and s.chance(0.95) else None) for c in concepts}
    return criteria, names


def route_question(s, present, src="route"):
    """present: concepts of the message, first said first."""
    others = [c for c in B.CONCEPTS if c not in present]
    n = s.any([3, 4, 4, 5])
    shown = list(dict.fromkeys(present))
    # close relatives are there more often than chance
    near = {"returns": ["billing", "shipping", "sales"], "billing": ["returns", "shipping", "sales", "fraud"], "shipping": ["returns", "billing", "sales"],
            "sales": ["returns", "billing", "shipping"], "tech": ["account", "network"], "network": ["tech", "install"], "account": ["tech", "privacy"]}
    for c in shown[:]:
        for o in near.get(c, []):
            if o not in shown and len(shown) < n and s.chance(0.5):
                shown.append(o)
    shown += s.sample([c for c in others if c not in shown], max(0, n - len(shown)))
    s.rng.shuffle(shown)
    criteria, names = team_options(s, shown)
    keys = list(criteria)
    if len(keys) < len(shown):
        return route_question(s, present, src)      # two teams of one name
    if not present:
        return Question("team", "choice", s.pick(ROUTE_ASK), criteria, UNKNOWN, "No problem is told. Not said.", src)
    counts = {c: present.count(c) for c in dict.fromkeys(present)}
    top = max(counts.values())
    best = [c for c in counts if counts[c] == top]
    chain = " ".join(f"{cap(B.CONCEPTS[c][2])}: {names[c]}." for c in present)
    if len(best) == 1:
        return Question("team", "choice", s.pick(ROUTE_ASK), criteria, names[best[0]], f"{chain} Answer: {names[best[0]]}", src)
    soft = [1 / len(best) if k in [names[c] for c in best] else 0.0 for k in keys]
    return Question("team", "choice", s.pick(ROUTE_ASK), criteria, names[best[0]], f"{chain} Answer: " + " or ".join(names[c] for c in best), src, soft)


def level_map(n, levels):
    """Index of level i (of n strengths) on a scale of `levels`."""
    return lambda i: i if n == levels else round(i * (levels - 1) / (n - 1))


def score_question(s, name, bank, scales, asks, said, src, thing=None):
    """said: [(strength, phrase)]; the strongest counts. No phrase: the lowest level."""
    levels = s.any(scales)
    to = level_map(len(bank), len(levels))
    ask = s.pick(asks).replace("{thing}", thing or "")
    chain = " ".join(f'"{p.rstrip(".!")}": {levels[to(i)]}.' for i, p in said)
    best = max([to(i) for i, _ in said], default=0)
    if not said:
        chain = "Nothing strong."
    return Question(name, "score", ask, list(levels), best, f"{chain} Answer: {levels[best]}", src)


def said_signs(s, count):
    keys = s.sample(list(B.SIGNS), count)
    return [(k, fill(s, s.pick(B.SIGNS[k][1]))) for k in keys]


def sign_question(s, present, src="escalate"):
    """present: [(sign, sentence)]"""
    want = s.chance(0.5)
    wanted = s.sample(list(B.SIGNS), s.any([1, 1, 2, 2, 3]))
    have = dict(present)
    if want and present and not any(k in have for k in wanted):
        wanted[0] = s.any(list(have))
        wanted = list(dict.fromkeys(wanted))
        s.rng.shuffle(wanted)
    elif not want:
        wanted = [k for k in wanted if k not in have] or s.sample([k for k in B.SIGNS if k not in have], 1)
    texts = [s.any(B.SIGNS[k][0]) for k in wanted]
    if len(texts) == 1 and s.chance(0.4):
        ask, criteria = s.any(["Is this so: {}?", "Does this hold: {}?", "True or not: {}?"]).format(texts[0]), None
    else:
        ask = s.pick(B.SIGN_ASK)
        both = ", ".join(texts[:-1]) + s.any([" or ", ", or "]) + texts[-1] if len(texts) > 1 else texts[0]
        criteria = {"true": both, "false": s.any(B.SIGN_NO)} if s.chance(0.8) else {"true": both}
        if s.chance(0.2):
            ask = f"{ask} Yes if {both}."
            criteria = None
    value, steps = False, []
    for k, t in zip(wanted, texts):
        steps.append(f'{cap(t)}: "{have[k].rstrip(".!?")}", yes.' if k in have else f"{cap(t)}: no.")
        value |= k in have
    return noul("escalate", ask, value, " ".join(steps), src, criteria)


def tone_phrases(s, bank, thing=None):
    """-> [(strength, sentence)], one or two, or none"""
    i = s.rng.randint(0, len(bank) - 1)
    out = [(i, s.pick(bank[i]))]
    if s.chance(0.2):
        j = s.rng.randint(0, len(bank) - 1)
        out.append((j, s.pick(bank[j])))
    return [(i, fill(s, p.replace("{thing}", thing or ""))) for i, p in out]


def desk(s):
    """A customer's message with up to three questions about it."""
    all_concepts = list(B.CONCEPTS)
    kind = s.rng.random()
    first = s.any(all_concepts) if s.chance(0.7) else s.any(["returns", "billing", "shipping", "sales"])
    present = [first]
    if kind < 0.08:
        present = []
    elif kind < 0.20:
        second = s.any([c for c in ("returns", "billing", "shipping", "tech", "account") if c != first])
        present = s.any([[first, second, second], [first, first, second], [second, first, first]])
    elif kind < 0.28 and not s.test:
        second = s.any([c for c in ("returns", "billing", "shipping", "account") if c != first])
        present = [first, second] if s.chance(0.6) else [first, second, s.any([c for c in ("cancel", "sales", "tech") if c not in (first, second)])]
    said, core = [], []
    for c in present:
        for _ in range(8):
            text = issue(s, c)
            if text not in said:
                break
        said.append(text)
    while said:
        text = said.pop(0)
        if said and s.chance(0.3):
            text = text + " and " + said.pop(0)
        core.append(sentence(s, text))
    tone = tone_phrases(s, B.FRUSTRATION) if s.chance(0.6) else []
    signs = said_signs(s, s.any([0, 1, 1, 2])) if s.chance(0.6) else []
    text = message(s, core, [p for _, p in tone] + [p for _, p in signs], talk=s.rng.randint(1, 3) if not core else None)
    questions = [route_question(s, present)]
    if tone or not signs:
        # what signs say is no measure of the tone; only messages without them are asked about it
        if not signs:
            questions.append(score_question(s, "frustration", B.FRUSTRATION, B.FRUSTRATION_LEVELS, B.FRUSTRATION_ASK, tone, "frustration"))
    if signs or s.chance(0.3):
        if not tone:
            questions.append(sign_question(s, signs))
    return as_state(s, text), questions


def urgency(s):
    said = tone_phrases(s, B.URGENCY)
    core = [sentence(s, issue(s, s.any(list(B.CONCEPTS))))]
    q = score_question(s, "urgency", B.URGENCY, B.URGENCY_LEVELS, B.URGENCY_ASK, said, "urgency")
    if s.chance(0.06):
        q = Question("urgency", "score", q.instructions, q.criteria, UNKNOWN, "No time is named. Not said.", "urgency")
        said = []
    return as_state(s, message(s, core, [p for _, p in said])), [q]


def opinion(s):
    thing = s.any(B.THINGS)
    said = tone_phrases(s, B.OPINION, thing)[:1]
    intro = s.pick([f"We went to the {thing} on monday.", f"My view of the {thing}:", f"About the {thing}.", f"I tried the {thing} last week.", f"A few words on the {thing}."])
    q = score_question(s, "opinion", B.OPINION, B.OPINION_LEVELS, B.OPINION_ASK, said, "opinion", thing)
    if s.chance(0.08):
        said, q = [], Question("opinion", "score", q.instructions, q.criteria, UNKNOWN, "No opinion is given. Not said.", "opinion")
    return as_state(s, message(s, [intro] + [p for _, p in said]), "review"), [q]


def severity(s):
    i = s.rng.randint(0, 3)
    what = s.pick(B.SEVERITY[i])
    where = fill(s, s.any(B.PLACES))
    text = f"{where} {what}." if s.chance(0.6) else f"{cap(what)}. {where}."
    return as_state(s, message(s, [text], talk=s.rng.randint(0, 2)), "report"), [
        score_question(s, "severity", B.SEVERITY, B.SEVERITY_LEVELS, B.SEVERITY_ASK, [(i, what)], "severity")]


# ---------------------------------------------------------------- rules with numbers
OPS = {"le": (lambda v, l: v <= l, "at most"), "lt": (lambda v, l: v < l, "less than"), "ge": (lambda v, l: v >= l, "at least"), "gt": (lambda v, l: v > l, "more than")}
# (rules with their relation), facts, questions, range of limits, what is measured
LIMITS = [
    ([("Items can be returned within {L} days.", "le"), ("Our return window is {L} days.", "le"), ("You may send goods back for up to {L} days.", "le"), ("Returns are accepted until {L} days after delivery.", "le")],
     ["The {item} was delivered {V} days ago.", "{name} got the {item} {V} days ago.", "The {item} came {V} days ago.", "The parcel arrived {V} days ago."],
     ["May the customer return it?", "Is a return still possible?", "Can the goods go back?", "Will the return be accepted?"], (7, 90), "days"),
    ([("Orders of {L} euros or more ship free.", "ge"), ("Shipping is free above {L} euros.", "gt"), ("Shipping is free for orders of at least {L} euros.", "ge"), ("From {L} euros on, shipping costs nothing.", "ge")],
     ["The order is worth {V} euros.", "{name} buys goods for {V} euros.", "The basket holds goods for {V} euros.", "The total is {V} euros."],
     ["Is shipping free?", "Does the customer get free shipping?", "Is the parcel sent for free?", "Will shipping cost nothing?"], (20, 150), "euros"),
    ([("Visitors must be at least {L} years old.", "ge"), ("Only people of {L} years or older may enter.", "ge"), ("The minimum age is {L}.", "ge"), ("Nobody under {L} gets in.", "ge")],
     ["{name} is {V} years old.", "The visitor, {name}, is {V}.", "{name} turned {V} last week.", "The age of {name} is {V}."],
     ["May this visitor come in?", "Is the person old enough?", "Will the visitor be let in?", "Is entry allowed?"], (6, 30), "age"),
    ([("A bag may weigh at most {L} kilos.", "le"), ("Bags up to {L} kilos are allowed.", "le"), ("The limit for bags is {L} kilos.", "le"), ("Bags must not be heavier than {L} kilos.", "le")],
     ["The bag weighs {V} kilos.", "{name} has a bag of {V} kilos.", "The scale shows {V} kilos.", "The bag has a weight of {V} kilos."],
     ["Is the bag allowed?", "May the bag come along?", "Is the weight all right?", "Will the bag be accepted?"], (5, 40), "kilos"),
    ([("The speed limit is {L}.", "gt"), ("Cars may drive {L} at most.", "gt"), ("Nobody may drive faster than {L}.", "gt"), ("The road allows a speed of {L}.", "gt")],
     ["{name} drove {V}.", "The car was measured at {V}.", "The camera saw the car at {V}.", "The car went {V}."],
     ["Was the driver too fast?", "Did the driver break the limit?", "Is there a fine for the driver?", "Was the car over the limit?"], (20, 130), "speed"),
    ([("Keep the milk below {L} degrees.", "lt"), ("The milk must be colder than {L} degrees.", "lt"), ("Milk is safe under {L} degrees.", "lt"), ("Milk needs less than {L} degrees.", "lt")],
     ["The fridge shows {V} degrees.", "It is {V} degrees in the fridge.", "The milk stands at {V} degrees.", "The milk has {V} degrees."],
     ["Is the milk cold enough?", "Is the milk safe?", "Is the fridge all right?", "Is the milk kept as it should be?"], (3, 15), "degrees"),
    ([("The hall holds {L} people.", "le"), ("At most {L} people may be in the hall.", "le"), ("No more than {L} guests fit in the hall.", "le"), ("The hall is made for up to {L} people.", "le")],
     ["{V} people want to come.", "There are {V} guests.", "{V} people have a ticket.", "{V} guests are expected."],
     ["Is the hall big enough?", "Do all of them fit in?", "Is there room for all?", "Can everyone come in?"], (20, 300), "people"),
    ([("You pass with {L} points or more.", "ge"), ("To pass, at least {L} points are needed.", "ge"), ("Less than {L} points means failed.", "ge"), ("The test is passed from {L} points on.", "ge")],
     ["{name} has {V} points.", "The result of {name}: {V} points.", "{name} reached {V} points.", "{name} got {V} points."],
     ["Did the student pass?", "Is the test passed?", "Has the pupil made it?", "Was the result good enough?"], (10, 90), "points"),
    ([("Purchases over {L} euros need a signature.", "gt"), ("A signature is needed for more than {L} euros.", "gt"), ("Above {L} euros the boss must sign.", "gt"), ("If it costs more than {L} euros, the boss signs.", "gt")],
     ["The {item} costs {V} euros.", "{name} wants to buy a {item} for {V} euros.", "The price of the {item} is {V} euros.", "The {item} is {V} euros."],
     ["Is a signature needed?", "Must the boss sign?", "Does somebody have to sign for it?", "Does this need a signature?"], (50, 900), "euros"),
    ([("The warranty lasts {L} months.", "le"), ("Repairs are free for {L} months.", "le"), ("For {L} months after purchase we repair for free.", "le"), ("There is a warranty of {L} months.", "le")],
     ["The {item} is {V} months old.", "{name} bought the {item} {V} months ago.", "The {item} broke after {V} months.", "The purchase was {V} months ago."],
     ["Is the repair free?", "Does the warranty still hold?", "Is the repair covered?", "Will the shop repair it for free?"], (6, 48), "months"),
    ([("A password needs at least {L} letters.", "ge"), ("Passwords must have {L} letters or more.", "ge"), ("Passwords with less than {L} letters are refused.", "ge"), ("The shortest password allowed has {L} letters.", "ge")],
     ["The new password has {V} letters.", "{name} chose a password of {V} letters.", "The password is {V} letters long.", "A password with {V} letters was typed in."],
     ["Is the password accepted?", "Is the password long enough?", "May this password be used?", "Will the password be taken?"], (5, 20), "letters"),
    ([("Children under {L} travel free.", "lt"), ("The train is free for children younger than {L}.", "lt"), ("Below the age of {L} no ticket is needed.", "lt"), ("Who is not yet {L} needs no ticket.", "lt")],
     ["{name} is {V}.", "The child, {name}, is {V} years old.", "{name} had a birthday and is now {V}.", "The girl is {V} years old."],
     ["Does the child travel free?", "Can the child go without a ticket?", "Is the trip free for the child?", "Is no ticket needed?"], (4, 18), "age"),
    ([("Notice must be given at least {L} days ahead.", "ge"), ("Tell us {L} days before or earlier.", "ge"), ("Visits can be cancelled {L} days ahead at the latest.", "ge"), ("At least {L} days before, you may cancel.", "ge")],
     ["The visit is in {V} days.", "There are {V} days left.", "{name} comes in {V} days and cancels now.", "It is {V} days until the visit."],
     ["Is it early enough to cancel?", "Can the visit be cancelled?", "Is the notice in time?", "May the visit still be cancelled?"], (2, 30), "days"),
    ([("A file may have up to {L} pages.", "le"), ("Reports must not be longer than {L} pages.", "le"), ("The most we take is {L} pages.", "le"), ("The report may have {L} pages at most.", "le")],
     ["The report has {V} pages.", "{name} wrote {V} pages.", "The file is {V} pages long.", "There are {V} pages in the file."],
     ["Is the report accepted?", "Is the file short enough?", "Is the length all right?", "Can the report be handed in?"], (5, 80), "pages"),
]


def near(s, limit, low=0):
    """A value on one side of the limit or the other, often close."""
    spread = max(2, limit // s.any([2, 3, 8]))
    return max(low, limit + s.any([0, 0, 1, -1, 1, -1] + [s.rng.randint(-spread, spread) for _ in range(8)]))


def compare(v, l):
    return f"{v} = {l}" if v == l else f"{v} > {l}" if v > l else f"{v} < {l}"


def rule_parts(s, which=None):
    """-> rule, fact or None where it is not said, question, value, chain, name of what is measured"""
    rules, facts, asks, (low, high), unit = which or s.any(LIMITS)
    rule, op = s.pick(rules)
    limit = s.number(low, high)
    v = near(s, limit, 1)
    test, words = OPS[op]
    fact = fill(s, s.pick(facts).replace("{V}", str(v)))
    return rule.replace("{L}", str(limit)), fact, s.pick(asks), test(v, limit), f"{cap(unit)} {words} {limit}. Here {v}. {compare(v, limit)}:", unit


def filler(s, n):
    return [fill(s, s.pick(B.SMALL_TALK)) for _ in range(n)]


def mixed(s, parts, n):
    parts = list(parts)
    for t in filler(s, n):
        parts.insert(s.rng.randint(0, len(parts)), t)
    return " ".join(parts)


def place_rule(s, rule, facts, ask):
    """The rule in the state or in the question."""
    kind = s.rng.randint(0, 3)
    if kind == 0:
        return mixed(s, facts, s.any([0, 1, 2])), f"{rule} {ask}"
    if kind == 1:
        return {"rule": rule, "case": mixed(s, facts, s.any([0, 0, 1]))}, ask
    if kind == 2:
        return {"policy": rule, "facts": [*facts, *filler(s, s.any([0, 1]))]}, ask
    return mixed(s, [rule, *facts], s.any([0, 1, 2])), ask


def limit_rule(s):
    rule, fact, ask, value, chain, unit = rule_parts(s)
    if s.chance(0.09):
        state, ask = place_rule(s, rule, filler(s, 1), ask)
        words = chain.split(". Here")[0]
        return state, [noul("allowed", ask, UNKNOWN, f"{words}. Here: {unit}?", "limit")]
    state, ask = place_rule(s, rule, [fact], ask)
    return state, [noul("allowed", ask, value, f"{chain} {yes(value)}.", "limit")]


def limit_pair(s):
    """Two limits of two kinds, joined; 'or' is joined in the test alone by other words."""
    a, b = s.sample(LIMITS, 2)
    ra, fa, _, va, ca, _ = rule_parts(s, a)
    rb, fb, _, vb, cb, _ = rule_parts(s, b)
    both = s.chance(0.5)
    facts = [fa, fb] if s.chance(0.5) else [fb, fa]
    ask = s.pick(["Are both rules kept?" if both else "Is one of the rules kept, or both?", "Are the two rules both met?" if both else "Is at least one rule met?",
                  "Do both rules say yes?" if both else "Does any of the rules say yes?"])
    # rules that name what is forbidden would turn the answer round
    if "gt" in (dict(a[0]).get(ra), dict(b[0]).get(rb)) or a[4] == b[4]:
        return limit_rule(s)
    for kind, r in ((a, ra), (b, rb)):
        if kind[0][0][1] == "gt" or kind[4] in ("speed",):
            return limit_rule(s)
    value = (va and vb) if both else (va or vb)
    chain = f"{ca} {yes(va)}. {cb} {yes(vb)}. {cap(yes(va))} {'and' if both else 'or'} {yes(vb)}: {yes(value)}."
    return {"rules": [ra, rb], "case": mixed(s, facts, s.any([0, 0, 1]))}, [noul("rules", ask, value, chain, "limit2")]


MONTHS = "January February March April May June July August September October November December".split()


def dates(s):
    """Days between two dates of one month against a window, or a late fee."""
    month = s.any(MONTHS)
    if s.chance(0.5):
        limit = s.number(3, 20)
        passed = min(26, near(s, limit, 1))
        start = s.rng.randint(1, 28 - passed)
        rule = s.pick([f"Returns are possible for {limit} days.", f"Goods can be sent back within {limit} days.", f"You have {limit} days to return an item.", f"We take goods back for {limit} days.",
                       f"The time for returns is {limit} days."])
        item = s.any(B.ITEMS)
        one = s.pick([f"The {item} was delivered on {start} {month}.", f"Delivery of the {item}: {start} {month}.", f"{s.any(B.NAMES)} got the {item} on {start} {month}.", f"The {item} came on {start} {month}."])
        end = start + passed
        two = s.pick([f"Today is {end} {month}.", f"The return was asked for on {end} {month}.", f"It goes back on {end} {month}.", f"The customer writes on {end} {month}."])
        ask = s.pick(["Is the return in time?", "May it be returned?", "Is a return still possible?", "Will the shop take it back?"])
        if s.chance(0.08):
            state, ask = place_rule(s, rule, [two], ask)
            return state, [noul("in_time", ask, UNKNOWN, f"End {end}. Start?", "dates")]
        state, ask = place_rule(s, rule, [one, two], ask)
        value = passed <= limit
        return state, [noul("in_time", ask, value, f"{end} - {start} = {passed} days. At most {limit}. {compare(passed, limit)}: {yes(value)}.", "dates")]
    rate, late = s.any([1, 2, 3, 4, 5]), s.number(1, 9)
    due = s.rng.randint(1, 19)
    thing = s.any(["book", "film", "bike", "car", "drill", "tent", "game"])
    rule = s.pick([f"Each day late costs {rate} euros.", f"The late fee is {rate} euros a day.", f"For every late day you pay {rate} euros.", f"Late days cost {rate} euros each.", f"A late day is {rate} euros."])
    facts = [s.pick([f"The {thing} was due on {due} {month}.", f"The last day for the {thing} was {due} {month}.", f"Due date of the {thing}: {due} {month}."]),
             s.pick([f"It came back on {due + late} {month}.", f"It was returned on {due + late} {month}.", f"{s.any(B.NAMES)} brought it back on {due + late} {month}."])]
    fee = rate * late
    wrong = {f for f in (rate * (late + 1), rate * max(1, late - 1), fee + 10, late, fee + rate * 2, late + rate, rate) if f != fee and f > 0}
    options = [fee] + s.sample(sorted(wrong), min(len(wrong), s.any([2, 3])))
    s.rng.shuffle(options)
    ask = s.pick(["How high is the fee?", "What must be paid?", "Which fee is due?", "How much is the late fee?"])
    criteria = {f"{o} euros": None for o in options}
    if s.chance(0.08):
        state, ask = place_rule(s, rule, facts[:1], ask)
        return state, [Question("fee", "choice", ask, criteria, UNKNOWN, f"Due {due}. Returned? Not said.", "fee")]
    state, ask = place_rule(s, rule, facts, ask)
    return state, [Question("fee", "choice", ask, criteria, f"{fee} euros", f"{due + late} - {due} = {late} days. {late} x {rate} = {fee}. Answer: {fee} euros", "fee")]


TIERS = [("kilos", ["The parcel weighs {V} kilos.", "A parcel of {V} kilos.", "Weight: {V} kilos."], ["Which price class is it?", "Which rate applies?", "In which class is the parcel?"], ["small", "medium", "large", "huge"]),
         ("points", ["{name} has {V} points.", "Points of {name}: {V}.", "{name} got {V} points."], ["Which grade is it?", "What is the grade?", "Which grade does this give?"], ["poor", "fair", "good", "excellent"]),
         ("years", ["{name} is a member for {V} years.", "{name} joined {V} years ago.", "Member for {V} years: {name}."], ["Which status does the member have?", "Which card is given?", "What is the status?"], ["bronze", "silver", "gold", "platinum"]),
         ("euros", ["The order is {V} euros.", "{name} spent {V} euros.", "Total: {V} euros."], ["Which discount group is it?", "Which group applies?", "To which group does it belong?"], ["group one", "group two", "group three", "group four"])]


def tiers(s):
    unit, facts, asks, names = s.any(TIERS)
    n = s.any([3, 3, 4])
    edges = sorted(s.sample([x for x in range(5, 100) if (x % 5 == 3) == s.test], n - 1))
    v = near(s, s.any(edges), 1) if s.chance(0.6) else s.rng.randint(1, 110)
    at = sum(v > e for e in edges)
    parts = [f"up to {edges[0]} {unit} {names[0]}"] + [f"up to {edges[i]} {names[i]}" for i in range(1, n - 1)] + [f"above that {names[n - 1]}"]
    rule = s.any(["Table: ", "Rule: ", ""]) + ", ".join(parts) + "."
    rule = cap(rule)
    keys = names[:n]
    shown = keys[:]
    if s.chance(0.5):
        s.rng.shuffle(shown)
    ask = s.pick(asks)
    criteria = {k: None for k in shown}
    if s.chance(0.07):
        state, ask = place_rule(s, rule, filler(s, 1), ask)
        return state, [Question("class", "choice", ask, criteria, UNKNOWN, f"{cap(unit)}? Not said.", "tiers")]
    state, ask = place_rule(s, rule, [fill(s, s.pick(facts).replace("{V}", str(v)))], ask)
    steps = " ".join(f"{compare(v, e)}." for e in edges[:at + 1])
    return state, [Question("class", "choice", ask, criteria, keys[at], f"{v} {unit}. {steps} Answer: {keys[at]}", "tiers")]


# ---------------------------------------------------------------- and, or, not, unless
# (true, false)
FACTS = [("the door is open", "the door is closed"), ("the alarm is on", "the alarm is off"), ("it rains", "it is dry"), ("the bill is paid", "the bill is not paid"),
         ("the form is signed", "the form is not signed"), ("the lamp is on", "the lamp is off"), ("the tank is full", "the tank is empty"), ("the boss is in the office", "the boss is away"),
         ("the customer is a member", "the customer is no member"), ("the shop is open", "the shop is closed"), ("it is dark", "it is light"), ("the key is there", "the key is missing"),
         ("the machine runs", "the machine stands still"), ("the patient has a fever", "the patient has no fever"), ("the dog is inside", "the dog is outside"), ("it is a holiday", "it is a working day"),
         ("the item is new", "the item is used"), ("the room is free", "the room is taken"), ("the battery is charged", "the battery is flat"), ("the road is wet", "the road is not wet"),
         ("the guest has a ticket", "the guest has no ticket"), ("the light is green", "the light is red"), ("the window is shut", "the window is not shut"), ("the order is complete", "the order is not complete")]
# (what happens, question)
ACTIONS = [("the guard calls the police", "Does the guard call the police?"), ("the parcel is sent", "Is the parcel sent?"), ("the fan starts", "Does the fan start?"), ("the price is lowered", "Is the price lowered?"),
           ("the meeting takes place", "Does the meeting take place?"), ("the gate opens", "Does the gate open?"), ("a bonus is paid", "Is a bonus paid?"), ("the nurse is called", "Is the nurse called?"),
           ("the pump runs", "Does the pump run?"), ("the tour begins", "Does the tour begin?"), ("the heating is turned on", "Is the heating turned on?"), ("a letter is written", "Is a letter written?")]
# shape: number of facts, wording, value, working of the chain
SHAPES = [
    (1, "{X} if {a}", lambda a: a, None), (1, "{X} unless {a}", lambda a: not a, "not {a}"), (1, "{X} only if {a}", lambda a: a, None),
    (2, "{X} if {a} and {b}", lambda a, b: a and b, "{a} and {b}"), (2, "{X} if {a} or {b}", lambda a, b: a or b, "{a} or {b}"),
    (2, "if both {a} and {b}, {X}", lambda a, b: a and b, "{a} and {b}"), (2, "if {a} or {b}, {X}", lambda a, b: a or b, "{a} or {b}"),
    (2, "{X} if {a}, unless {b}", lambda a, b: a and not b, "{a} and not {b}"), (2, "{X} if {a}, but not if {b}", lambda a, b: a and not b, "{a} and not {b}"),
    (2, "unless {b}, {X} if {a}", lambda a, b: a and not b, "{a} and not {b}"),
    (3, "{X} if {a}, {b} and {c}", lambda a, b, c: a and b and c, "{a} and {b} and {c}"), (3, "{X} if {a}, {b} or {c}", lambda a, b, c: a or b or c, "{a} or {b} or {c}"),
    (3, "{X} if {a} or {b}, unless {c}", lambda a, b, c: (a or b) and not c, "{a} or {b}, and not {c}"),
    (3, "{X} if {c}, and also {a} or {b}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
    (3, "{X} if {a} and {b}, but only if {c}", lambda a, b, c: a and b and c, "{a} and {b} and {c}"),
]
HELD_SHAPES = [
    (2, "only if both {a} and {b}, {X}", lambda a, b: a and b, "{a} and {b}"),
    (2, "{X} if {a}, except if {b}", lambda a, b: a and not b, "{a} and not {b}"),
    (3, "{X} if {a} and {b}, unless {c}", lambda a, b, c: a and b and not c, "{a} and {b}, and not {c}"),
    (3, "{X} if {a} or {b}, but not if {c}", lambda a, b, c: (a or b) and not c, "{a} or {b}, and not {c}"),
    (3, "{X} if {a} or {b}, but only if {c}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
]


def logic(s):
    shapes = HELD_SHAPES if s.test and s.chance(0.5) else SHAPES
    n, words, rule_of, working = s.any(shapes)
    extra = s.any([0, 1, 1, 2])
    facts = s.sample(FACTS, n + extra)
    truth = [s.chance(0.5) for _ in facts]
    action, ask = s.any(ACTIONS)
    value = bool(rule_of(*truth[:n]))
    if value != s.chance(0.5):             # bring yes and no nearer to even
        truth = [s.chance(0.5) for _ in facts]
        value = bool(rule_of(*truth[:n]))
    rule = cap(words.format(X=action, a=facts[0][0], b=facts[1][0] if n > 1 else "", c=facts[2][0] if n > 2 else "")) + "."
    names = "abc"
    order = sorted(range(n), key=lambda i: words.find("{" + names[i] + "}"))
    said = [cap(facts[i][0 if truth[i] else 1]) + "." for i in range(len(facts))]
    steps = [f"{cap(facts[i][0])}: {yes(truth[i])}." for i in order]
    missing = None
    if s.chance(0.08):
        missing = s.rng.randrange(n)
        outcomes = {bool(rule_of(*[b if i == missing else truth[i] for i in range(n)])) for b in (False, True)}
        if len(outcomes) == 1:
            missing = None
    if missing is not None:
        del said[missing]
        steps = [f"{cap(facts[i][0])}: {yes(truth[i]) if i != missing else 'not said'}." for i in order]
    s.rng.shuffle(said)
    state, ask = place_rule(s, rule, said, ask)
    if missing is not None:
        return state, [noul("rule", ask, UNKNOWN, " ".join(steps), "logic")]
    chain = " ".join(steps)
    if working:
        chain += " " + cap(working.format(**{k: yes(t) for k, t in zip(names, truth)})) + f": {yes(value)}."
    return state, [noul("rule", ask, value, chain, "logic")]


# ---------------------------------------------------------------- facts in irrelevant text
PETS = "dog cat horse parrot rabbit snake fish hamster".split()
WORK = "cook teacher nurse driver painter baker doctor farmer pilot tailor".split()
DRINKS = "tea coffee milk water juice cocoa lemonade beer".split()
SPORTS = "tennis football chess golf rowing judo hockey swimming".split()
# values, sentences, questions for the value, yes/no questions, questions for the person
ATTRIBUTES = [
    (B.COLOURS, ["{n} drives a {v} car.", "The car of {n} is {v}.", "{n} bought a {v} car.", "{n}'s car is {v}."], ["Which color is the car of {n}?", "What color does {n}'s car have?", "Which car does {n} drive?"],
     ["Is the car of {n} {v}?", "Does {n} drive a {v} car?"], ["Who has a {v} car?", "Who drives a {v} car?"]),
    (B.CITIES, ["{n} lives in {v}.", "{n} has a flat in {v}.", "{n}'s home is {v}.", "{n} moved to {v}."], ["Where does {n} live?", "In which city does {n} live?", "What is the home of {n}?"],
     ["Does {n} live in {v}?", "Is {v} the home of {n}?"], ["Who lives in {v}?", "Whose home is {v}?"]),
    (PETS, ["{n} has a {v}.", "The pet of {n} is a {v}.", "{n} keeps a {v}.", "{n} owns a {v}."], ["Which pet does {n} have?", "What animal does {n} keep?", "What is the pet of {n}?"],
     ["Does {n} have a {v}?", "Is the pet of {n} a {v}?"], ["Who has a {v}?", "Who keeps a {v}?"]),
    (WORK, ["{n} works as a {v}.", "{n} is a {v}.", "{n} earns money as a {v}.", "The job of {n} is {v}."], ["What is the job of {n}?", "What does {n} work as?", "Which job does {n} have?"],
     ["Is {n} a {v}?", "Does {n} work as a {v}?"], ["Who is a {v}?", "Who works as a {v}?"]),
    (DRINKS, ["{n} drinks {v}.", "{n} likes {v} best.", "{n} always orders {v}.", "{n} wants {v}."], ["What does {n} drink?", "Which drink does {n} like?", "What will {n} order?"],
     ["Does {n} drink {v}?", "Is {v} the drink of {n}?"], ["Who drinks {v}?", "Who likes {v}?"]),
    (SPORTS, ["{n} plays {v}.", "{n} does {v} every week.", "The sport of {n} is {v}.", "{n} is good at {v}."], ["Which sport does {n} do?", "What does {n} play?", "What is the sport of {n}?"],
     ["Does {n} play {v}?", "Is {v} the sport of {n}?"], ["Who plays {v}?", "Who is good at {v}?"]),
]


def buried(s):
    people = s.sample(B.NAMES, s.any([2, 3, 3, 4]))
    values, sentences, asks, checks, who = s.any(ATTRIBUTES)
    given = s.sample(values, len(people))
    other = s.any([a for a in ATTRIBUTES if a[0] is not values])
    lines = [s.pick(sentences).format(n=p, v=v) for p, v in zip(people, given)]
    extra = [s.any(other[1]).format(n=p, v=v) for p, v in zip(people, s.sample(other[0], len(people))) if s.chance(0.4)]
    i = s.rng.randrange(len(people))
    p, v = people[i], given[i]
    unknown = s.chance(0.09)
    told = lines[i]
    if unknown:
        lines[i] = s.any(other[1]).format(n=p, v=s.any(other[0]))
    text = lines + extra + filler(s, s.any([0, 1, 2, 3]))
    s.rng.shuffle(text)
    state = " ".join(text) if s.chance(0.7) else text
    kind = s.rng.random()
    if kind < 0.4:
        options = list(dict.fromkeys([v] + given))[:4]
        if len(options) < 4 and s.chance(0.5):
            options.append(s.any([x for x in values if x not in options]))
        s.rng.shuffle(options)
        ask, criteria = s.pick(asks).format(n=p), {o: None for o in options}
        if unknown:
            return state, [Question("fact", "choice", ask, criteria, UNKNOWN, f"{p}: not said. Not said.", "facts")]
        return state, [Question("fact", "choice", ask, criteria, v, f"{told} Answer: {v}", "facts")]
    if kind < 0.65 and not unknown:
        options = people[:]
        s.rng.shuffle(options)
        return state, [Question("who", "choice", s.pick(who).format(v=v), {o: None for o in options}, p, f"{told} Answer: {p}", "facts")]
    right = s.chance(0.5)
    asked = v if right else s.any([x for x in given if x != v] + [s.any([x for x in values if x not in given])])
    ask = s.pick(checks).format(n=p, v=asked)
    if unknown:
        return state, [noul("fact", ask, UNKNOWN, f"{p}: not said.", "facts")]
    return state, [noul("fact", ask, right, f"{told} {cap(asked)}: {yes(right)}.", "facts")]


RECORD = {"status": ["paid", "open", "sent", "returned", "cancelled"], "priority": ["low", "normal", "high"], "plan": ["free", "basic", "team", "business"],
          "country": ["France", "Italy", "Spain", "Norway", "Poland"], "payment": ["card", "cash", "invoice", "transfer"], "channel": ["chat", "email", "phone"]}


def record(s):
    """A field of a record."""
    keys = s.sample(list(RECORD), s.rng.randint(3, 5))
    rec = {"order": s.number(100, 999), "name": s.any(B.NAMES), **{k: s.any(RECORD[k]) for k in keys}}
    key = s.any(keys)
    v = rec[key]
    unknown = s.chance(0.08)
    if unknown:
        del rec[key]
    if s.chance(0.3):
        rec["note"] = fill(s, s.pick(B.SMALL_TALK))
    state = rec if s.chance(0.7) else {"record": rec}
    if s.chance(0.5):
        options = RECORD[key][:]
        s.rng.shuffle(options)
        ask = s.pick([f"What is the {key} of the order?", f"Which {key} does the record show?", f"Read the {key}.", f"Tell the {key}."])
        chain = f"{cap(key)}: {v}. Answer: {v}" if not unknown else f"{cap(key)}: not said. Not said."
        return state, [Question("field", "choice", ask, {o: None for o in options}, UNKNOWN if unknown else v, chain, "record")]
    right = s.chance(0.5)
    asked = v if right else s.any([x for x in RECORD[key] if x != v])
    ask = s.pick([f"Is the {key} {asked}?", f"Does the record show {asked} as {key}?", f"Is {asked} the {key} of the order?", f"Is it true that the {key} is {asked}?"])
    if unknown:
        return state, [noul("field", ask, UNKNOWN, f"{cap(key)}: not said.", "record")]
    return state, [noul("field", ask, right, f"{cap(key)}: {v}. {cap(asked)}: {yes(right)}.", "record")]


# share of the records
TASKS = [(desk, 30), (urgency, 5), (opinion, 5), (severity, 4), (limit_rule, 14), (limit_pair, 5), (dates, 8), (tiers, 6), (logic, 16), (buried, 12), (record, 4)]


def make(split, rng):
    """One record: -> state, [Question]"""
    s = Split(split, rng)
    task = rng.choices([t for t, _ in TASKS], [w for _, w in TASKS])[0]
    return task(s)


def stream(split, seed):
    """Records without end; the same for the same seed."""
    i = 0
    while True:
        yield make(split, random.Random(f"{seed}/{split}/{i}"))
        i += 1
