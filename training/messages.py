"""Tasks about what people write: which team, how urgent, how angry, should a person take over."""
from __future__ import annotations

import banks as B
import phrases as P
from concepts import CONCEPTS
from question import UNKNOWN, Question, cap, fill, filler, noul, person, place, yes

QUESTION_WORDS = "where when what why how who which is are do does can could may will would".split()
# two complaints in one clause, by their teams
TOGETHER = [(["shipping", "returns"], ["[my|the|our] {item} [came|arrived|was delivered] {dur} late and in the wrong [size|color]",
                                       "[my|the] {item} [came|arrived] {dur} late and [broken|damaged]", "[my|the] {item} is {dur} late and it is the wrong [one|size|color]"]),
            (["returns", "shipping"], ["[my|the|our] {item} [came|arrived] in the wrong [size|color] and {dur} late", "the wrong {item} [came|arrived], and it was {dur} late"]),
            (["returns", "billing"], ["[my|the] {item} [came|arrived] broken and i was charged twice", "you sent me the wrong {item} and the [bill|invoice] is wrong"]),
            (["billing", "shipping"], ["i was charged twice and the {item} [never arrived|has not arrived|is {dur} late]", "i paid {amount} euros too much and my parcel is lost"])]
# close relatives stand side by side more often than chance has it
NEAR = {"returns": ["billing", "shipping", "sales"], "billing": ["returns", "shipping", "sales", "fraud"], "shipping": ["returns", "billing", "sales"],
        "sales": ["returns", "billing", "shipping"], "tech": ["account", "network"], "network": ["tech", "install"], "account": ["tech", "privacy"]}


def sentence(s, text):
    """A clause as a sentence, now and then careless."""
    text = (" " + text).replace(" i ", " I ").replace(" i'", " I'").strip()
    text = cap(text) if s.chance(0.9) else text
    if text[-1] in ".!?":
        return text
    if text.split()[0].lower() in QUESTION_WORDS:
        return text + "?"
    return text + s.any([".", ".", ".", "!"])


def message(s, core, tone=(), talk=None):
    """Core sentences in order, with greeting, small talk, tone and closing around them."""
    parts = list(core)
    for t in tone:
        parts.insert(s.rng.randint(0, len(parts)) if s.chance(0.3) else len(parts), t)
    for t in filler(s, s.any([0, 0, 0, 1, 1, 2])) if talk is None else [fill(s, s.pick(P.SMALL_TALK)) for _ in range(talk)]:
        parts.insert(s.rng.randint(0, len(parts)), t)
    if s.chance(0.35) and not s.easy:
        parts.insert(0, fill(s, s.pick(P.GREETINGS)))
    if s.chance(0.2) and not s.easy:
        parts.append(fill(s, s.pick(P.CLOSINGS)))
    return " ".join(parts)


def as_state(s, text, key="message"):
    """The same message as a bare text or as part of a record."""
    kind = 0 if s.easy else s.rng.randint(0, 5)
    if kind <= 1:
        return text
    if kind == 2:
        return {"channel": s.any(["chat", "email", "phone", "web form", "app", "letter"]), key: text}
    if kind == 3:
        return {key: text}
    if kind == 4:
        return {"id": s.number(100, 999), key: text, "language": "en"}
    return {"customer": {"name": person(s), "city": place(s)}, key: text}


# ---------------------------------------------------------------- which team
def route_question(s, present, src="route"):
    """present: concepts of the message, first said first."""
    n = s.any([3, 4, 4, 5])
    shown = list(dict.fromkeys(present))
    for c in shown[:]:
        for o in NEAR.get(c, []):
            if o not in shown and len(shown) < n and s.chance(0.5):
                shown.append(o)
    shown += s.sample([c for c in CONCEPTS if c not in shown], max(0, n - len(shown)))
    s.rng.shuffle(shown)
    names = {c: s.any(CONCEPTS[c][0]) for c in shown}
    described = s.chance(0.65)
    criteria = {names[c]: (s.any(CONCEPTS[c][1]) if described and s.chance(0.95) else None) for c in shown}
    ask = s.pick(P.ROUTE_ASK)
    if not present:
        return Question("team", "choice", ask, criteria, UNKNOWN, "No problem is told. Not said.", src)
    counts = {c: present.count(c) for c in dict.fromkeys(present)}
    best = [c for c in counts if counts[c] == max(counts.values())]
    chain = " ".join(f"{cap(CONCEPTS[c][2])}: {names[c]}." for c in present)
    answer = " or ".join(names[c] for c in best)
    soft = None if len(best) == 1 else [1 / len(best) if k in [names[c] for c in best] else 0.0 for k in criteria]
    return Question("team", "choice", ask, criteria, names[best[0]], f"{chain} Answer: {answer}", src, soft)


# ---------------------------------------------------------------- how strong
def score_question(s, name, bank, scales, asks, said, src, thing=""):
    """said: [(strength, phrase)] in the order of the text; the strongest counts. No phrase: the lowest level."""
    levels = s.any(scales)
    to = lambda i: i if len(bank) == len(levels) else round(i * (len(levels) - 1) / (len(bank) - 1))
    ask = s.pick(asks).replace("{thing}", thing)
    chain = " ".join(f'"{p.rstrip(".!?")}": {levels[to(i)]}.' for i, p in said) or "Nothing strong."
    best = max([to(i) for i, _ in said], default=0)
    return Question(name, "score", ask, list(levels), best, f"{chain} Answer: {levels[best]}", src)


def unknown_score(q, chain):
    return Question(q.name, "score", q.instructions, q.criteria, UNKNOWN, f"{chain} Not said.", q.src)


def tone_phrases(s, bank, thing=""):
    """-> [(strength, sentence)], one or two"""
    out = []
    for _ in range(1 if s.easy or s.chance(0.8) else 2):
        i = s.rng.randint(0, len(bank) - 1)
        out.append((i, fill(s, s.pick(bank[i]).replace("{thing}", thing))))
    return out


# ---------------------------------------------------------------- does a person have to take over
def sign_question(s, present, src="escalate"):
    """present: [(sign, sentence)]"""
    have = dict(present)
    wanted = s.sample(list(P.SIGNS), s.any([1, 1, 2, 2, 3]))
    if s.chance(0.5):
        if have and not any(k in have for k in wanted):
            wanted[0] = s.any(list(have))
            wanted = list(dict.fromkeys(wanted))
            s.rng.shuffle(wanted)
    else:
        wanted = [k for k in wanted if k not in have] or s.sample([k for k in P.SIGNS if k not in have], 1)
    texts = [s.pick(P.SIGNS[k][0]) for k in wanted]
    if len(texts) == 1 and s.chance(0.4):
        ask, criteria = s.any(["Is this so: {}?", "Does this hold: {}?", "True or not: {}?"]).format(texts[0]), None
    else:
        ask = s.pick(P.SIGN_ASK)
        some = ", ".join(texts[:-1]) + s.any([" or ", ", or "]) + texts[-1] if len(texts) > 1 else texts[0]
        criteria = {"true": some, "false": s.pick(P.SIGN_NO)} if s.chance(0.8) else {"true": some}
        if s.chance(0.2):
            ask, criteria = f"{ask} Yes if {some}.", None
    steps = ", ".join(f"{k} {yes(k in have)}" for k in wanted)
    return noul("escalate", ask, any(k in have for k in wanted), f"Told: {', '.join(sorted(have)) or 'nothing'}. Wanted: {steps}.", src, criteria)


# ---------------------------------------------------------------- the tasks
def desk(s):
    """A customer's message with up to three questions about it."""
    shop = ["returns", "billing", "shipping", "sales"]
    first = s.any(list(CONCEPTS)) if s.chance(0.7) else s.any(shop)
    present, kind, core = [first], s.rng.random(), []
    other = lambda *of: s.any([c for c in of if c not in present])
    if kind < 0.07:
        present = []
    elif kind < 0.18 and not s.easy:
        second = other("returns", "billing", "shipping", "tech", "account")
        present = s.any([[first, second, second], [first, first, second], [second, first, first]])
    elif kind < 0.25 and not s.test:
        present.append(other("returns", "billing", "shipping", "account"))
    elif kind < 0.30 and not s.test:
        present, forms = s.any(TOGETHER)
        core = [sentence(s, fill(s, s.pick(forms)))]
        if s.chance(0.6):
            third = s.any([c for c in shop if c not in present])
            core.append(s.any(["", "And ", "Also, "]) + sentence(s, fill(s, s.pick(CONCEPTS[third][3]))))
            present = [*present, third]
    if not core:
        said = [fill(s, s.pick(CONCEPTS[c][3])) for c in present]
        while said:
            text = said.pop(0)
            if said and s.chance(0.3):
                text = text + " and " + said.pop(0)
            core.append(sentence(s, text))
    tone = tone_phrases(s, P.FRUSTRATION) if s.chance(0.6) else []
    signs = [(k, fill(s, s.pick(P.SIGNS[k][1]))) for k in s.sample(list(P.SIGNS), s.any([0, 1, 1, 2]))] if s.chance(0.6) else []
    text = message(s, core, [p for _, p in tone] + [p for _, p in signs], talk=None if core else s.rng.randint(1, 3))
    tone.sort(key=lambda t: text.index(t[1]))
    questions = [route_question(s, present)]
    # what signs say is no measure of the tone, and the other way round
    if not signs:
        questions.append(score_question(s, "frustration", P.FRUSTRATION, P.FRUSTRATION_LEVELS, P.FRUSTRATION_ASK, tone, "frustration"))
    if not tone and (signs or s.chance(0.3)):
        questions.append(sign_question(s, signs))
    return as_state(s, text), questions


def urgency(s):
    said = tone_phrases(s, P.URGENCY)
    if s.chance(0.08):
        said = []
    text = message(s, [sentence(s, fill(s, s.pick(CONCEPTS[s.any(list(CONCEPTS))][3])))], [p for _, p in said])
    said.sort(key=lambda t: text.index(t[1]))
    q = score_question(s, "urgency", P.URGENCY, P.URGENCY_LEVELS, P.URGENCY_ASK, said, "urgency")
    return as_state(s, text), [q if said else unknown_score(q, "No time is named.")]


INTRO = ["[We went to|We were at|I was at|I visited] the {thing} [on monday|last week|in may|yesterday].", "My [view|opinion] of the {thing}:", "About the {thing}.",
         "[I tried|We tried] the {thing} [last week|on monday|yesterday].", "[A few words|Some words|My thoughts] [on|about] the {thing}."]


def opinion(s):
    thing = s.any(B.THINGS)
    said = tone_phrases(s, P.OPINION, thing)[:1]
    q = score_question(s, "opinion", P.OPINION, P.OPINION_LEVELS, P.OPINION_ASK, said, "opinion", thing)
    if s.chance(0.08):
        said, q = [], unknown_score(q, "No opinion is given.")
    return as_state(s, message(s, [s.pick(INTRO).replace("{thing}", thing)] + [p for _, p in said]), "review"), [q]


def severity(s):
    i = s.rng.randint(0, len(P.SEVERITY) - 1)
    what, where = fill(s, s.pick(P.SEVERITY[i])), fill(s, s.pick(P.PLACES))
    text = f"{where} {what}." if s.chance(0.6) else f"{cap(what)}. {where}."
    return as_state(s, message(s, [text]), "report"), [
        score_question(s, "severity", P.SEVERITY, P.SEVERITY_LEVELS, P.SEVERITY_ASK, [(i, what)], "severity")]
