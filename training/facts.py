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


# For drills alone: other things that people have, and the same things said in more ways.
NUMBERS = [str(n) for n in range(2, 60)]
DRILLED = ATTRIBUTES + [
    (B.COLOURS, ["[Since may|Now|These days], {n} drives a {v} car.", "You know {n} by the {v} car.", "The {v} car belongs to {n}.", "A {v} car stands in front of {n}'s house.", "{n} came in a {v} car.",
                 "{n} sold everything but the {v} car.", "The {v} car is {n}'s."], ["[Which|What] color is {n}'s car?", "What color of car does {n} have?"], ["Is {n}'s car {v}?", "Does the {v} car belong to {n}?"], ["Whose car is {v}?", "To whom does the {v} car belong?"]),
    (B.CITIES, ["[Since may|For years|Now], {n} lives in {v}.", "{v} is where {n} lives.", "{n} has a [small|new] flat in {v}.", "You find {n} in {v}.", "{n} stays in {v}.", "{n} rents a room in {v}.", "{v} is the home of {n}.", "The house of {n} is in {v}."],
     ["Where is {n} at home?", "In [which|what] city is {n} at home?", "Where can {n} be found?"], ["Is {n} at home in {v}?", "Is {n}'s home {v}?"], ["Who is at home in {v}?", "Who can be found in {v}?"]),
    (B.PETS, ["{n} feeds a {v}.", "A {v} lives with {n}.", "{n} walks with a {v}.", "The {v} belongs to {n}.", "{n} bought a {v} [last year|in spring].", "{n} takes the {v} everywhere.", "At home {n} has a {v}."],
     ["What animal lives with {n}?", "[Which|What] animal is {n}'s?"], ["Does a {v} live with {n}?", "Is {n}'s pet a {v}?"], ["Who feeds a {v}?", "Whose pet is the {v}?", "Who has the {v}?"]),
    (B.WORK, ["{n} became a {v}.", "{n} trained as a {v}.", "As a {v}, {n} is busy.", "{n} is paid as a {v}.", "{n}'s job is {v}.", "{n} has been a {v} for years.", "{n}, a {v}, is here.", "By trade {n} is a {v}."],
     ["What does {n} do for a living?", "What is {n}'s job?", "What is {n} by trade?"], ["Is {n}'s job {v}?", "Is the job of {n} {v}?"], ["Whose job is {v}?", "Who is the {v}?"]),
    (B.DRINKS, ["{n} [takes|asks for|pays for|had] {v}.", "For {n} it is {v}.", "{v} is what {n} drinks.", "{n} never leaves without {v}.", "{n} is drinking {v}.", "A glass of {v} for {n}."], ["What is {n} drinking?", "What does {n} have to drink?"],
     ["Is {n} drinking {v}?", "Is the {v} for {n}?"], ["Who is drinking {v}?", "For whom is the {v}?"]),
    (B.SPORTS, ["{n} trains {v}.", "On sundays {n} does {v}.", "{n} is fond of {v}.", "{v} is what {n} likes.", "{n} won a prize in {v}.", "{n} teaches {v}.", "{n} gave up all but {v}."], ["[Which|What] sport is {n}'s?", "What does {n} train?"],
     ["Is {n}'s sport {v}?", "Does {n} train {v}?"], ["Whose sport is {v}?", "Who trains {v}?"]),
    (ROOMS, ["You find {n} in room {v}.", "Room {v} is {n}'s.", "{n} moved to room {v}.", "{n} got office {v}.", "Knock at {v} for {n}.", "{n} is behind door {v}.", "The desk of {n} is in {v}."], ["[Which|What] room is {n}'s?", "Where is the desk of {n}?"],
     ["Is {n}'s room {v}?", "Is room {v} the one of {n}?"], ["Who is in {v}?", "To whom does room {v} belong?"]),
    ("piano guitar drum violin flute trumpet harp horn".split(), ["{n} plays the {v}.", "{n} owns a {v}.", "{n} learns the {v}.", "The {v} is {n}'s.", "{n} brought a {v}.", "{n} is good at the {v}."], ["What does {n} play?", "Which instrument is {n}'s?"],
     ["Does {n} play the {v}?", "Is the {v} {n}'s?"], ["Who plays the {v}?", "Whose instrument is the {v}?"]),
    ("French Spanish Italian Dutch Polish Greek Arabic Hindi Chinese Turkish".split(), ["{n} speaks {v}.", "{n} learns {v}.", "The language of {n} is {v}.", "{n} grew up with {v}.", "At home {n} speaks {v}.", "{n} writes in {v}."], ["[Which|What] language does {n} speak?", "What does {n} speak?"],
     ["Does {n} speak {v}?", "Is {v} the language of {n}?"], ["Who speaks {v}?", "Whose language is {v}?"]),
    ("apple pear plum cherry melon lemon banana grape peach".split(), ["{n} [eats|has|took] the {v}.", "The {v} is for {n}.", "{n} wants a {v}.", "{n} picked a {v}.", "{n} brought the {v}."], ["[Which|What] fruit does {n} have?", "What did {n} take?"], ["Does {n} have the {v}?", "Is the {v} for {n}?"],
     ["Who has the {v}?", "For whom is the {v}?"]),
    ("hat scarf coat shirt dress sweater skirt jacket".split(), ["{n} wears a {v}.", "{n} bought a {v}.", "{n} lost a {v}.", "The {v} is {n}'s.", "{n} came in a {v}."], ["What does {n} wear?", "What is {n}'s?"], ["Does {n} wear a {v}?", "Is the {v} {n}'s?"], ["Who wears a {v}?", "Whose is the {v}?"]),
    ("monday tuesday wednesday thursday friday saturday sunday".split(), ["{n} comes on {v}.", "{n} is free on {v}.", "{v} is {n}'s day.", "The day of {n} is {v}.", "{n} has time on {v}."], ["On [which|what] day does {n} come?", "When does {n} have time?"], ["Does {n} come on {v}?", "Is {v} {n}'s day?"],
     ["Who comes on {v}?", "Whose day is {v}?"]),
    (NUMBERS, ["{n} is {v}[ years old|].", "{n} has {v} points.", "The number of {n} is {v}.", "{n} sits at table {v}.", "{n} drew number {v}.", "{n} waits on platform {v}."], ["[Which|What] number does {n} have?", "What is the number of {n}?"], ["Does {n} have {v}?", "Is {v} the number of {n}?"],
     ["Who has {v}?", "Whose number is {v}?"]),
]

# Frames that any value fits into, so that a name and a value count for more than the words between them. In a drill each kind
# of thing is told in its own sentences, or in these.
VERBS = ("takes|chose|wants|needs|keeps|got|found|picked|uses|prefers|knows|named|enjoys|loves|tries|misses|studies|follows|practises|recalls|praises|seeks|awaits|"
         "admires|ordered|asked for|looks after|cares for|dreams of|talks of|thinks of|is known for|is seen with|is here for|came with|left with|stands for|"
         "went for|decided on|signed up for|holds on to|is proud of|is happy with|is back with|wrote down|put down|settled on|swears by|would never give up")
WHEN = "now|today|this year|again|of course|as ever|since may|for years|it seems|by chance|most of the time"
THING = "choice|answer|pick|word|entry|wish|part|share|favorite"
FRAMES = [f"{{n}} [{VERBS}] [the |a |]{{v}}.", f"{{n}} [{VERBS}] [the |a |]{{v}} [{WHEN}].", f"[Now|Today|This year|Of course|As ever|Since may|For years|By chance], {{n}} [{VERBS}] [the |a |]{{v}}.",
          "[The |A |]{v} [belongs to|is with|goes to|suits|helps|was given to|is meant for|pleases|waits for|reminds one of|is all that matters to|was picked by|was chosen by|is loved by|is known to] {n}.",
          "{n}: {v}.", "{v}: {n}.", "{n} - {v}.", "{n} ({v}).", "[With|For|As to|As for] {n} it is [the |a |]{v}.", "[About|For|As to|As for] {n}: [the |a |]{v}.",
          f"{{n}}'s [{THING}] [is|was|will be|stays] [the |a |]{{v}}.", f"[The|One] [{THING}] of {{n}} [is|was|will be|stays] [the |a |]{{v}}.", f"[The |A |]{{v}} [is|was|will be|stays] [the [{THING}] of {{n}}|{{n}}'s [{THING}]].",
          "[The list|The card|The sheet|A sign|The plan] [says|shows|names|gives] [the |a |]{v} for {n}.", "[Next to|Beside|Behind|After|Before|Under] [the name of {n}|{n}] [it says|stands|one reads] {v}."]
# (values, what they are called): the kinds of ATTRIBUTES, which are drilled in frames twice as often as in other sentences
NOUNS = [(B.COLOURS, "color of the car|car color|car"), (B.CITIES, "city|home|home town|place"), (B.PETS, "pet|animal"), (B.WORK, "job|trade|work|profession"), (B.DRINKS, "drink|favorite drink"), (B.SPORTS, "sport|favorite sport"), (ROOMS, "room|office|door")]
NAMED = ["The [{k}] of {n} [was|will be|stays|remains|must be] {v}.", "{n}'s [{k}] [was|will be|stays|remains|must be] {v}.", "{n} [got|chose|named|wants|gave] {v} as [the |a |][{k}].", "[{k}] of {n}: {v}.", "{v} [is|was|stays] [{n}'s [{k}]|the [{k}] of {n}].",
         "When it comes to the [{k}], {n} [takes|has|chose|named] {v}.", "[Asked for|As] [a|the] [{k}], {n} [said|wrote|named|gave] {v}.", "[{k}]: {v} for {n}."]
ASKED = ["[Which|What] [{k}] [belongs to {n}|goes with {n}|is named for {n}|did {n} name]?", "[Which|What] is {n}'s [{k}]?", "[Name|Tell|Say|Find|Give] the [{k}] of {n}.", "[{k}] of {n}?", "[{k}] for {n}?", "What about {n}'s [{k}]?", "And {n}'s [{k}]?"]
CHECKED = ["Is {v} [right|true|named|written] for {n}?", "Is it {v} [for|with|in the case of] {n}?", "[{n}: {v}|Does {v} go with {n}|Does {n} go with {v}]?", "Is {v} [{n}'s [{k}]|the [{k}] of {n}]?", "Does {n} have {v} as [{k}]?"]
WHOSE = ["Whose [{k}] is {v}?", "[With whom|For whom] is it {v}?", "[Who|Which person] [goes with|is named with|belongs to|has] {v}?", "Who named {v}?"]
DRILLED += [(values, FRAMES + [t.replace("{k}", k) for t in NAMED], *([t.replace("{k}", k) for t in texts] for texts in (ASKED, CHECKED, WHOSE))) for values, k in NOUNS for _ in range(2)]


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


def interview(s):
    """People with two attributes each, and many questions about them."""
    names = people(s, s.any([2, 3, 4, 5]))
    kinds = s.sample(DRILLED, 2)
    while kinds[0][0] is kinds[1][0]:
        kinds = s.sample(DRILLED, 2)
    given = [s.sample(kind[0], len(names)) for kind in kinds]
    # a sixth of them is not said
    told = [[s.chance(5 / 6) for _ in names] for _ in kinds]
    text = [say(s, kind[1], p, v) for kind, values, known in zip(kinds, given, told) for p, v, k in zip(names, values, known) if k] + filler(s, s.any([0, 1, 2]))
    s.rng.shuffle(text)
    cells = [(k, i) for k in range(2) for i in range(len(names))]
    questions = [question_about(s, kinds[k], names, given[k], i, not told[k][i]) for k, i in s.sample(cells, min(6, len(cells)))]
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
