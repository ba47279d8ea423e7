"""Tasks with rules: limits, windows, fees, classes; and, or, not, unless."""
from __future__ import annotations

import banks as B
from grammar import variants
from question import UNKNOWN, cap, choice, fill, filler, mixed, noul, yes

OPS = {"le": (lambda v, l: v <= l, "at most"), "lt": (lambda v, l: v < l, "less than"), "ge": (lambda v, l: v >= l, "at least"), "gt": (lambda v, l: v > l, "more than")}
# (rules, their relation), .., facts, questions, range of limits, what is measured
LIMITS = [
    ([("[Items|Goods|Things|All goods] can be [returned|sent back|given back] [within|for up to|for] {L} days.", "le"), ("[Our|The] [return window|time for returns] is {L} days.", "le"),
      ("[You may|Customers may|You can] [send goods back|return items|return goods] [for up to|within|until] {L} days[ after delivery|].", "le"), ("Returns are [accepted|possible|taken] [within|for|up to] {L} days[ after delivery|].", "le")],
     ["[The|My|Our] {item} [was delivered|came|arrived] {V} days ago.", "{name} [got|received] the {item} {V} days ago.", "The [parcel|delivery] [arrived|came] {V} days ago.", "It [was delivered|came] {V} days ago."],
     ["[May|Can] [the customer|they|he|she] [return it|send it back]?", "Is a return [still |][possible|allowed]?", "Can the [goods|item] go back?", "Will the return be [accepted|taken]?"], (7, 90), "days"),
    ([("[Orders|Purchases] [of|from] {L} euros [or more|on] ship free.", "ge"), ("Shipping is free [above|for more than|over] {L} euros.", "gt"), ("Shipping is free for [orders|purchases] of [at least {L} euros|{L} euros or more].", "ge"),
      ("From {L} euros on, [shipping|delivery] [costs nothing|is free].", "ge")],
     ["The [order|purchase] is [worth|for] {V} euros.", "{name} [buys|orders] [goods|things] for {V} euros.", "The basket holds [goods|things] for {V} euros.", "The [total|sum] is {V} euros."],
     ["Is [shipping|delivery] free?", "Does the customer get free [shipping|delivery]?", "Is the [parcel|order] sent for free?", "Will [shipping|delivery] cost nothing?"], (20, 150), "euros"),
    ([("[Visitors|Guests|People] must be [at least {L} years old|{L} years old or older|{L} or older].", "ge"), ("Only [people|visitors|guests] of {L} years or older may [enter|come in].", "ge"), ("The minimum age is {L}[ years|].", "ge"),
      ("[Nobody|No one|No visitor] [under|younger than|below] {L} [gets in|may enter|is let in].", "ge")],
     ["{name} is {V} years old.", "The [visitor|guest], {name}, is {V}[ years old|].", "{name} turned {V} [last week|yesterday|in may].", "The age of [{name}|the visitor] is {V}."],
     ["May [this visitor|this person|this guest] [come in|enter]?", "Is the [person|visitor|guest] old enough?", "Will the [visitor|person|guest] be let in?", "Is entry allowed?"], (6, 30), "age"),
    ([("[A bag|Each bag|Every bag] may weigh [at most|up to|no more than] {L} kilos.", "le"), ("Bags [up to|of at most|of up to] {L} kilos are [allowed|accepted].", "le"), ("The [limit|maximum] for bags is {L} kilos.", "le"), ("Bags must not [be heavier|weigh more] than {L} kilos.", "le")],
     ["[The|My] bag weighs {V} kilos.", "{name} has a bag of {V} kilos.", "The scale [shows|says] {V} kilos.", "[The|My] bag has a weight of {V} kilos."],
     ["Is the bag [allowed|accepted]?", "May the bag come along?", "Is the weight [all right|allowed]?", "Will the bag be [accepted|taken]?"], (5, 40), "kilos"),
    ([("The speed limit is {L}[ here|].", "gt"), ("[Cars|Drivers] may [drive|go] {L} at most.", "gt"), ("[Nobody|No one] may [drive|go] faster than {L}.", "gt"), ("The road [allows a speed of|is limited to] {L}.", "gt")],
     ["{name} [drove|went] {V}.", "The car was [measured|seen] at {V}.", "The camera [saw|measured] the car at {V}.", "The car [went|drove] {V}."],
     ["[Was|Did] the [driver too fast|driver break the limit|driver go too fast]?", "Is there a fine for the driver?", "Was the [car|driver] [over the limit|too fast]?", "Did the [car|driver] break the limit?"], (20, 130), "speed"),
    ([("[Keep|Store] the milk [below|under] {L} degrees.", "lt"), ("[The milk|Milk] must be [colder than|below|under] {L} degrees.", "lt"), ("Milk is safe [under|below] {L} degrees.", "lt"), ("Milk needs less than {L} degrees.", "lt")],
     ["The fridge [shows|has] {V} degrees.", "It is {V} degrees in the fridge.", "The milk [stands at|is at] {V} degrees.", "The milk has {V} degrees."],
     ["Is the milk [cold enough|safe]?", "Is the fridge [all right|cold enough]?", "Is the milk kept as it should be?", "Is the milk stored well?"], (3, 15), "degrees"),
    ([("The [hall|room] [holds|fits|takes] [up to |]{L} people.", "le"), ("[At most|No more than|Up to] {L} [people|guests] [may be|are allowed|fit] in the [hall|room].", "le"), ("The [hall|room] is made for [up to|at most] {L} [people|guests].", "le")],
     ["{V} [people|guests] [want to come|have a ticket|are expected|will come].", "There [are|will be] {V} [guests|people].", "We expect {V} [guests|people]."],
     ["Is the [hall|room] big enough?", "Do [all of them|all people|all guests] fit in?", "Is there room for [all|everyone]?", "Can [everyone|all of them] come in?"], (20, 300), "people"),
    ([("[You pass|A student passes|Pupils pass] with {L} points or more.", "ge"), ("To pass, [at least {L} points|{L} points or more] are needed.", "ge"), ("[Less|Fewer] than {L} points [means|is] failed.", "ge"), ("The [test|exam] is passed [from {L} points on|with at least {L} points].", "ge")],
     ["{name} [has|reached|got] {V} points.", "The result of {name}: {V} points.", "The [test|exam] of {name} has {V} points."],
     ["Did [the student|the pupil|they] pass?", "Is the [test|exam] passed?", "Has the [pupil|student] made it?", "Was the result good enough?"], (10, 90), "points"),
    ([("Purchases [over|above|of more than] {L} euros need [a signature|to be signed].", "gt"), ("A signature is needed [for more than|above|over] {L} euros.", "gt"), ("[Above|Over] {L} euros the boss must sign.", "gt"), ("If it costs more than {L} euros, the boss [signs|must sign].", "gt")],
     ["The {item} costs {V} euros.", "{name} wants [to buy |][a|the] {item} for {V} euros.", "The price of the {item} is {V} euros.", "The {item} is {V} euros."],
     ["Is a signature needed?", "[Must|Does] the boss [sign|have to sign][ it|]?", "Does somebody have to sign for it?", "Does this need a signature?"], (50, 900), "euros"),
    ([("The warranty [lasts|holds|runs] [for |]{L} months.", "le"), ("Repairs are free for {L} months[ after purchase|].", "le"), ("For {L} months after [purchase|the purchase] [we repair for free|repairs are free].", "le"), ("There is a warranty of {L} months.", "le")],
     ["The {item} is {V} months old.", "{name} bought the {item} {V} months ago.", "The {item} broke after {V} months.", "The purchase was {V} months ago."],
     ["Is the repair [free|covered]?", "Does the warranty [still |][hold|last]?", "Will the shop repair it for free?", "Is it still under warranty?"], (6, 48), "months"),
    ([("[A|Each|The] password [needs|must have] [at least {L} letters|{L} letters or more].", "ge"), ("Passwords must have [at least {L} letters|{L} letters or more].", "ge"), ("Passwords [with|of] [less|fewer] than {L} letters are [refused|not accepted].", "ge"), ("The shortest password allowed has {L} letters.", "ge")],
     ["The [new |]password has {V} letters.", "{name} [chose|typed] a password of {V} letters.", "The [new |]password is {V} letters long.", "A password with {V} letters was [typed in|chosen]."],
     ["Is the password [accepted|long enough|allowed]?", "May this password be used?", "Will the password be [taken|accepted]?"], (5, 20), "letters"),
    ([("[Children|Kids] [under|below] {L} [travel|go] free.", "lt"), ("The [train|bus] is free for children [younger than|under|below] {L}.", "lt"), ("Below the age of {L} no ticket is needed.", "lt"), ("[Who|A child that] is [not yet|younger than] {L} needs no ticket.", "lt")],
     ["{name} is {V}[ years old|].", "The child, {name}, is {V}[ years old|].", "{name} had a birthday and is now {V}.", "The [girl|boy|child] is {V} years old."],
     ["Does the child [travel|go] free?", "Can the child [go|travel] without a ticket?", "Is the [trip|train|bus] free for the child?", "Is no ticket needed?"], (4, 18), "age"),
    ([("Notice must be given [at least {L} days|{L} days or more] ahead.", "ge"), ("Tell us {L} days before or earlier.", "ge"), ("Visits can be cancelled {L} days [ahead|before] at the latest.", "ge"), ("[At least {L} days|{L} days or more] before, you may cancel.", "ge")],
     ["The visit is in {V} days.", "There are {V} days left[ until the visit|].", "{name} comes in {V} days and cancels now.", "It is {V} days until the visit."],
     ["Is it early enough to cancel?", "[Can|May] the visit [still |]be cancelled?", "Is the notice [in time|early enough]?"], (2, 30), "days"),
    ([("A [file|report] may have [up to|at most|no more than] {L} pages.", "le"), ("[Reports|Files] must not [be longer|have more] than {L} pages.", "le"), ("The most we take is {L} pages.", "le"), ("The [report|file] may have {L} pages at most.", "le")],
     ["The [report|file] has {V} pages.", "{name} wrote {V} pages.", "The [file|report] is {V} pages long.", "There are {V} pages in the [file|report]."],
     ["Is the [report|file] [accepted|short enough]?", "Is the length all right?", "Can the [report|file] be handed in?"], (5, 80), "pages"),
]


def near(s, limit, low=0):
    """A value on one side of the limit or the other, often close."""
    spread = max(2, limit // s.any([2, 3, 8]))
    return max(low, limit + s.any([0, 0, 1, -1, 1, -1] + [s.rng.randint(-spread, spread) for _ in range(8)]))


def compare(v, l):
    """How v stands to l, digit by digit: both are written down before the word for them, so that no step needs more than what
    stands right before it."""
    a, b = str(v), str(l)
    if len(a) != len(b):
        return "longer, more" if v > l else "shorter, less"
    steps = []
    for x, y in zip(a, b):
        steps.append(f"{x}/{y} {'equal' if x == y else 'more' if x > y else 'less'}")
        if x != y:
            break
    return ", ".join(steps)


def measured(unit, words, limit, v):
    """What is asked for, what there is, and how they compare."""
    return f"{unit} {words} {limit}. Here {v}: {compare(v, limit)}"


def difference(a, b):
    """a - b for 0 <= b <= a < 100: ones with what is borrowed, then tens."""
    borrow = a % 10 < b % 10
    ones = f"{a % 10 + 10 * borrow}-{b % 10}={(a - b) % 10}"
    tens = f", {a // 10}-{b // 10}-{int(borrow)}={(a - b) // 10}" if a >= 10 else ""
    return f"{a}-{b}: {ones}{tens}: {a - b}"


def rule_parts(s, kind):
    """-> rule, fact, question, value, chain without its yes or no"""
    rules, facts, asks, (low, high), unit = kind
    text = s.pick([r for r, _ in rules])
    op = next(o for r, o in rules if any(text in some for some in variants(r).values()))
    limit = s.number(low, high)
    v = near(s, limit, 1)
    test, words = OPS[op]
    fact = fill(s, s.pick(facts).replace("{V}", str(v)))
    return text.replace("{L}", str(limit)), fact, s.pick(asks), test(v, limit), measured(cap(unit), words, limit, v)


def place_rule(s, rule, facts, ask):
    """The rule in the state or in the question."""
    kind = s.rng.randint(0, 3)
    if s.easy or kind == 3:
        return mixed(s, [rule, *facts], s.any([0, 1, 2])), ask
    if kind == 0:
        return mixed(s, facts, s.any([0, 1, 2])), f"{rule} {ask}"
    if kind == 1:
        return {"rule": rule, "case": mixed(s, facts, s.any([0, 0, 1]))}, ask
    return {"policy": rule, "facts": [*facts, *filler(s, s.any([0, 1]))]}, ask


def limit_rule(s):
    kind = s.any(LIMITS)
    rule, fact, ask, value, chain = rule_parts(s, kind)
    if s.chance(0.09):
        state, ask = place_rule(s, rule, filler(s, 1), ask)
        return state, [noul("allowed", ask, UNKNOWN, f"{chain.split('. Here')[0]}. Here: {kind[4]}?", "limit")]
    state, ask = place_rule(s, rule, [fact], ask)
    return state, [noul("allowed", ask, value, f"{chain}.", "limit")]


# rules that name what is forbidden would turn the answer round
KEPT = [k for k in LIMITS if all(op != "gt" for _, op in k[0])]
BOTH = ["[Are|Were] [both rules|the two rules|all rules] [kept|met]?", "[Are|Were] the two rules both [met|kept]?", "Do [both rules|all rules] say yes?"]
EITHER = ["Is [one|at least one|any] of the rules [kept|met]?", "Is at least one rule [met|kept]?", "Does [any|one|at least one] of the rules say yes?"]


def limit_pair(s):
    """Two limits of two kinds, joined."""
    a, b = s.sample(KEPT, 2)
    while a[4] == b[4]:
        b = s.any(KEPT)
    ra, fa, _, va, ca = rule_parts(s, a)
    rb, fb, _, vb, cb = rule_parts(s, b)
    both = s.chance(0.5)
    facts = [fa, fb] if s.chance(0.5) else [fb, fa]
    value = (va and vb) if both else (va or vb)
    chain = f"{ca}: {yes(va)}. {cb}: {yes(vb)}. {cap(yes(va))} {'and' if both else 'or'} {yes(vb)}."
    return {"rules": [ra, rb], "case": mixed(s, facts, s.any([0, 0, 1]))}, [noul("rules", s.pick(BOTH if both else EITHER), value, chain, "limit2")]


# ---------------------------------------------------------------- dates
WINDOW = ["[Returns|Exchanges] are possible for {L} days.", "[Goods|Items|Things] can be [sent back|returned|given back] within {L} days.", "You have {L} days to [return an item|send an item back].",
          "We take [goods|items] back for {L} days.", "The time for returns is {L} days."]
STARTS = ["The {item} was delivered on {D} {M}.", "Delivery of the {item}: {D} {M}.", "{name} [got|received] the {item} on {D} {M}.", "The {item} [came|arrived] on {D} {M}."]
ENDS = ["Today is {D} {M}.", "The [return was asked for|customer writes|customer asks] on {D} {M}.", "It [goes|is sent] back on {D} {M}.", "{name} [writes|asks] on {D} {M}."]
IN_TIME = ["Is the return in time?", "[May|Can] it be [returned|sent back]?", "Is a return [still |][possible|allowed]?", "Will the shop take it back?"]


def window(s):
    """Days between two dates of one month against a window."""
    limit = s.number(3, 20)
    passed = min(26, near(s, limit, 1))
    start = s.rng.randint(1, 28 - passed)
    end, month = start + passed, s.any(B.MONTHS)
    dated = lambda texts, day: fill(s, s.pick(texts).replace("{D}", str(day)).replace("{M}", month))
    rule = s.pick(WINDOW).replace("{L}", str(limit))
    one, two, ask = dated(STARTS, start), dated(ENDS, end), s.pick(IN_TIME)
    if s.chance(0.08):
        state, ask = place_rule(s, rule, [two], ask)
        return state, [noul("in_time", ask, UNKNOWN, f"End {end}. Start?", "dates")]
    state, ask = place_rule(s, rule, [one, two], ask)
    value = passed <= limit
    return state, [noul("in_time", ask, value, f"{difference(end, start)} days. At most {limit}: {compare(passed, limit)}.", "dates")]


FEES = ["[Each|Every] day late costs {R} euros.", "The late fee is {R} euros [a|per|for each] day.", "For [every|each] late day you pay {R} euros.", "Late days cost {R} euros each.", "A late day [is|costs] {R} euros."]
DUE = ["The {T} was due on {D} {M}.", "The last day for the {T} was {D} {M}.", "[Due date|Last day] of the {T}: {D} {M}.", "The {T} had to be back on {D} {M}."]
BACK = ["It [came back|was returned|was brought back] on {D} {M}.", "{name} [brought it back|returned it|gave it back] on {D} {M}."]
FEE_ASK = ["How high is the [fee|late fee]?", "[What|How much] must be paid?", "[Which|What] fee is due?", "How much is the [late |]fee?"]


def fee(s):
    rate, late, due, month = s.any([1, 2, 3, 4, 5]), s.number(1, 9), s.rng.randint(1, 19), s.any(B.MONTHS)
    thing = s.any(["book", "film", "bike", "car", "drill", "tent", "game"])
    dated = lambda texts, day: fill(s, s.pick(texts).replace("{D}", str(day)).replace("{M}", month).replace("{T}", thing))
    rule = s.pick(FEES).replace("{R}", str(rate))
    facts, ask, right = [dated(DUE, due), dated(BACK, due + late)], s.pick(FEE_ASK), rate * late
    wrong = {f for f in (rate * (late + 1), rate * max(1, late - 1), right + 10, late, right + rate * 2, late + rate, rate) if f != right and f > 0}
    options = [right] + s.sample(sorted(wrong), min(len(wrong), s.any([2, 3])))
    s.rng.shuffle(options)
    options = [f"{o} euros" for o in options]
    if s.chance(0.08):
        state, ask = place_rule(s, rule, facts[:1], ask)
        return state, [choice("fee", ask, options, UNKNOWN, f"Due {due}. Returned?", "fee")]
    state, ask = place_rule(s, rule, facts, ask)
    return state, [choice("fee", ask, options, f"{right} euros", f"{difference(due + late, due)} days. {late}x{rate}={right}.", "fee")]


# ---------------------------------------------------------------- classes by size
TIERS = [("kilos", ["The parcel [weighs|has] {V} kilos.", "A parcel of {V} kilos.", "[Weight|Weight of the parcel]: {V} kilos.", "{name} sends a parcel of {V} kilos."],
          ["[Which|What] price class is it?", "Which [rate|price class] applies?", "In which class is the parcel?"], ["small", "medium", "large", "huge"]),
         ("points", ["{name} [has|got|reached] {V} points.", "Points of {name}: {V}.", "The test of {name} has {V} points."], ["[Which|What] grade is it?", "What is the grade?", "Which grade does this give?"], ["poor", "fair", "good", "excellent"]),
         ("years", ["{name} [is|has been] a member for {V} years.", "{name} joined {V} years ago.", "Member for {V} years: {name}."], ["[Which|What] status does the member have?", "Which card is given?", "What is the status?"], ["bronze", "silver", "gold", "platinum"]),
         ("euros", ["The order is [worth |]{V} euros.", "{name} [spent|paid] {V} euros.", "[Total|Sum]: {V} euros."], ["[Which|What] discount group is it?", "Which group applies?", "To which group does it belong?"], ["group one", "group two", "group three", "group four"])]


def tiers(s):
    unit, facts, asks, names = s.any(TIERS)
    n = s.any([3, 3, 4])
    edges = set()
    while len(edges) < n - 1:
        edges.add(s.number(5, 99))
    edges = sorted(edges)
    v = near(s, s.any(edges), 1) if s.chance(0.6) else s.rng.randint(1, 110)
    at = sum(v > e for e in edges)
    rule = s.pick(["[Table: |Rule: |]"]) + ", ".join([f"up to {edges[0]} {unit} {names[0]}"] + [f"up to {edges[i]} {names[i]}" for i in range(1, n - 1)] + [f"above that {names[n - 1]}"]) + "."
    options = names[:n]
    if s.chance(0.5):
        s.rng.shuffle(options)
    ask = s.pick(asks)
    if s.chance(0.07):
        state, ask = place_rule(s, cap(rule), filler(s, 1), ask)
        return state, [choice("class", ask, options, UNKNOWN, f"{cap(unit)}?", "tiers")]
    state, ask = place_rule(s, cap(rule), [fill(s, s.pick(facts).replace("{V}", str(v)))], ask)
    steps = " ".join(f"{e} {name}: {compare(v, e)}." for e, name in zip(edges[:at + 1], names)) + (f" Above: {names[at]}." if at == n - 1 else "")
    return state, [choice("class", ask, options, names[at], f"{v} {unit}. {steps}", "tiers")]


# ---------------------------------------------------------------- and, or, not, unless
# things and what is so with them or not
STATES = [("door gate window shop office bank museum bridge kitchen garage valve shutter".split(), "open", ["closed", "not open", "shut"]),
          ("alarm lamp fan heater radio camera oven screen engine siren".split(), "on", ["off", "not on"]),
          ("tank bottle box bin bus cup shelf bucket".split(), "full", ["empty", "not full"]),
          ("bill fee rent invoice fine deposit".split(), "paid", ["not paid", "unpaid"]),
          ("form contract letter permit report".split(), "signed", ["not signed"]),
          ("road floor paint grass wall carpet".split(), "wet", ["dry", "not wet"]),
          ("battery phone drill bike".split(), "charged", ["flat", "not charged"]),
          ("room table seat hall desk".split(), "free", ["taken", "not free"]),
          ("light signal".split(), "green", ["red", "not green"]),
          ("order parcel file list".split(), "complete", ["not complete", "incomplete"]),
          ("boss nurse guard manager".split(), "here", ["away", "not here"])]
OWNERS, OWNED = "driver guest customer patient child pilot visitor member".split(), "ticket key card fever pass badge coupon helmet".split()
PLAIN = [("it rains", "it does not rain"), ("it is dark", "it is light"), ("it is a holiday", "it is a working day"), ("it is winter", "it is summer"), ("the dog is inside", "the dog is outside")]
ACTORS = [("the guard", ["calls the police", "locks the hall", "rings the bell"]), ("the nurse", ["calls the doctor", "opens the file"]), ("the shop", ["sends the parcel", "lowers the price", "gives a discount"]),
          ("the manager", ["signs the letter", "pays a bonus", "cancels the meeting"]), ("the pump", ["starts", "stops"]), ("the machine", ["starts", "stops", "slows down"]), ("the bell", ["rings"]),
          ("the tour", ["begins", "ends"]), ("the train", ["stops", "leaves"]), ("the team", ["gets a bonus", "goes home"]), ("the robot", ["turns left", "turns right", "waits"])]
# number of facts, wording, value, working of the chain
SHAPES = [
    (1, "{X} if {a}", lambda a: a, None), (1, "{X} unless {a}", lambda a: not a, "not {a}"), (1, "{X} only if {a}", lambda a: a, None), (1, "{X}, but not if {a}", lambda a: not a, "not {a}"), (1, "{X} except if {a}", lambda a: not a, "not {a}"),
    (2, "{X} if {a} and {b}", lambda a, b: a and b, "{a} and {b}"), (2, "{X} if {a} or {b}", lambda a, b: a or b, "{a} or {b}"),
    (2, "if both {a} and {b}, {X}", lambda a, b: a and b, "{a} and {b}"), (2, "if {a} or {b}, {X}", lambda a, b: a or b, "{a} or {b}"),
    (2, "{X} if {a}, unless {b}", lambda a, b: a and not b, "{a} and not {b}"), (2, "{X} if {a}, but not if {b}", lambda a, b: a and not b, "{a} and not {b}"),
    (2, "unless {b}, {X} if {a}", lambda a, b: a and not b, "{a} and not {b}"), (2, "{X} only if both {a} and {b}", lambda a, b: a and b, "{a} and {b}"),
    (3, "{X} if {a}, {b} and {c}", lambda a, b, c: a and b and c, "{a} and {b} and {c}"), (3, "{X} if {a}, {b} or {c}", lambda a, b, c: a or b or c, "{a} or {b} or {c}"),
    (3, "{X} if {a} or {b}, unless {c}", lambda a, b, c: (a or b) and not c, "{a} or {b}, and not {c}"),
    (3, "{X} if {a} and {b}, but not if {c}", lambda a, b, c: a and b and not c, "{a} and {b}, and not {c}"),
    (3, "{X} if {c}, and also {a} or {b}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
    (3, "{X} if {a} and {b}, but only if {c}", lambda a, b, c: a and b and c, "{a} and {b} and {c}"),
]
# for training alone: parts of the held-out shapes in other company
MORE_SHAPES = [
    (1, "only if {a}, {X}", lambda a: a, None), (1, "unless {a}, {X}", lambda a: not a, "not {a}"), (1, "except if {a}, {X}", lambda a: not a, "not {a}"),
    (2, "{X} if {a}, but only if {b}", lambda a, b: a and b, "{a} and {b}"), (2, "{X} if {a}, as long as {b}", lambda a, b: a and b, "{a} and {b}"),
    (2, "only if {a} or {b}, {X}", lambda a, b: a or b, "{a} or {b}"), (2, "as long as {b}, {X} if {a}", lambda a, b: a and b, "{a} and {b}"),
    (3, "{X} if {a}, but only if {b} and {c}", lambda a, b, c: a and b and c, "{a} and {b} and {c}"),
    (3, "{X} if {a}, but only if {b} or {c}", lambda a, b, c: a and (b or c), "{b} or {c}, and {a}"),
    (3, "{X} if {a} or {b}, as long as {c}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
    (3, "as long as {c}, {X} if {a} or {b}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
]
HELD_SHAPES = [
    (2, "only if both {a} and {b}, {X}", lambda a, b: a and b, "{a} and {b}"),
    (2, "{X} if {a}, except if {b}", lambda a, b: a and not b, "{a} and not {b}"),
    (3, "{X} if {a} and {b}, unless {c}", lambda a, b, c: a and b and not c, "{a} and {b}, and not {c}"),
    (3, "{X} if {a} or {b}, but not if {c}", lambda a, b, c: (a or b) and not c, "{a} or {b}, and not {c}"),
    (3, "{X} if {a} or {b}, but only if {c}", lambda a, b, c: (a or b) and c, "{a} or {b}, and {c}"),
]


def stated(s, count):
    """Different facts: [(when it is so, when not)]"""
    out, used = [], set()
    while len(out) < count:
        kind = s.rng.random()
        if kind < 0.7:
            things, word, opposites = s.any(STATES)
            thing = s.any(things)
            pair = (f"the {thing} is {word}", f"the {thing} is {s.any(opposites)}")
        elif kind < 0.85:
            who, what = s.any(OWNERS), s.any(OWNED)
            thing, pair = who + what, (f"the {who} has a {what}", f"the {who} has no {what}")
        else:
            pair = s.any(PLAIN)
            thing = pair[0]
        if thing not in used:
            used.add(thing)
            out.append(pair)
    return out


def logic(s):
    shapes = SHAPES + MORE_SHAPES if s.name == "train" else SHAPES
    n, words, rule_of, working = s.any([x for x in shapes if x[0] < 3] if s.easy else HELD_SHAPES if s.test and s.chance(0.5) else shapes)
    facts = stated(s, n + s.any([0, 1, 1, 2]))
    truth = [s.chance(0.5) for _ in facts]
    actor, verbs = s.any(ACTORS)
    verb = s.any(verbs)
    first, _, rest = verb.partition(" ")
    bare = {"goes": "go", "begins": "begin"}.get(first, first.removesuffix("s"))
    ask = f"Does {actor} {bare}{' ' + rest if rest else ''}?"
    value = bool(rule_of(*truth[:n]))
    if value != s.chance(0.5):             # brings yes and no nearer to even
        truth = [s.chance(0.5) for _ in facts]
        value = bool(rule_of(*truth[:n]))
    rule = cap(words.format(X=f"{actor} {verb}", a=facts[0][0], b=facts[1][0] if n > 1 else "", c=facts[2][0] if n > 2 else "")) + "."
    names = "abc"
    order = sorted(range(n), key=lambda i: words.find("{" + names[i] + "}"))
    said = [cap(facts[i][0 if truth[i] else 1]) + "." for i in range(len(facts))]
    missing = s.rng.randrange(n) if s.chance(0.12) else None
    if missing is not None:
        outcomes = {bool(rule_of(*[b if i == missing else truth[i] for i in range(n)])) for b in (False, True)}
        missing = None if len(outcomes) == 1 else missing
    chain = " ".join(f"{cap(facts[i][0])}: {'not said' if i == missing else yes(truth[i])}." for i in order)
    if missing is not None:
        del said[missing]
    s.rng.shuffle(said)
    state, ask = place_rule(s, rule, said, ask)
    if missing is not None:
        return state, [noul("rule", ask, UNKNOWN, chain, "logic")]
    if working:
        chain += " " + cap(working.format(**{k: yes(t) for k, t in zip(names, truth)})) + "."
    return state, [noul("rule", ask, value, chain, "logic")]
