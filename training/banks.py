"""Words and phrases of the demo's tasks.

In every list of phrasings the last fifth (at least one) is held out: training and dev use the rest, test uses only the
held-out ones (see `Split.pick` in tasks.py). Lists that name things (items, people, colours) are not split.
"""

# ---------------------------------------------------------------- who can handle what
# concept: (names, descriptions, what it is about in two or three words, things a person may write)
CONCEPTS = {
    "returns": (["returns", "returns desk", "exchanges", "return team"],
                ["wrong, broken or unwanted items", "items that must go back", "exchanges of wrong or damaged goods", "goods that do not fit or do not work"],
                "wrong item",
                ["the {item} came in the wrong size", "the {item} is in the wrong color", "the {item} was broken when i opened the box",
                 "i want to send the {item} back", "the {item} does not fit", "i got a {item2} instead of the {item}", "the {item} is too small",
                 "i would like to exchange the {item}", "the {item} has a tear", "the {item} arrived damaged", "the {item} is not what i ordered",
                 "the {item} is in the wrong size", "the {item} is too big for me", "the {item} came broken and i want to send it back", "i ordered another {item} than this one",
                 "i do not want the {item} any more, how do i give it back"]),
    "billing": (["billing", "payments", "accounting", "billing team", "finance"],
                ["charges, refunds, invoices", "payments and invoices", "money matters and refunds", "wrong charges and bills"],
                "payment",
                ["i was charged twice", "there are two charges on my card", "the invoice is wrong", "my refund has not arrived", "i paid {amount} euros too much",
                 "you took {amount} euros from my account by mistake", "i need a copy of the invoice", "the bill shows {amount} euros but i agreed to less",
                 "my card was charged {amount} euros again", "the discount is missing from my bill", "i still wait for my money back", "why is my bill so high this month",
                 "there is a double charge on my card", "a fee of {amount} euros is on my bill", "the payment was taken twice", "my bill is wrong, i paid {amount} euros too much"]),
    "shipping": (["shipping", "delivery", "logistics", "delivery team"],
                 ["late or lost parcels", "parcels and their tracking", "deliveries that do not arrive", "where a package is"],
                 "late parcel",
                 ["my parcel is {dur} late", "the {item} has not arrived", "the tracking has not moved for {dur}", "the courier left the box at the wrong house",
                  "where is my package", "the delivery was promised {dur} ago", "my order is still in the warehouse", "the parcel got lost", "the {item} came {dur} late",
                  "the driver never rang the bell", "my {item} should have been here {dur} ago", "i have been waiting {dur} for the delivery",
                  "the package is at the wrong house", "the {item} arrived {dur} late", "where is my parcel, it is {dur} late", "the tracking says my parcel is lost"]),
    "sales": (["sales", "sales team", "product advice", "shop advice"],
              ["questions before buying", "advice on what to buy", "prices and offers for new customers", "help with choosing a product"],
              "before buying",
              ["do you have the {item} in blue", "which {item} would you recommend", "what does the {item} cost", "is the {item} in stock", "do you offer a discount for ten pieces",
               "i am thinking about buying a {item}", "can you tell me more about the {item} before i order", "when will the new {item} be for sale",
               "is there a cheaper {item}", "i would like to buy a {item} as a gift", "does the {item} come in other sizes", "can i get an offer for twenty of the {item}"]),
    "tech": (["technical support", "it support", "tech team", "help desk"],
             ["errors, crashes and bugs", "software that does not work", "problems with the app or website", "technical faults"],
             "technical fault",
             ["the app crashes when i open it", "the website shows an error", "the screen stays black", "the update failed", "the program freezes after a minute",
              "i get an error code {num}", "the page does not load", "the printer is not found", "the app closes by itself", "the video does not play",
              "the file cannot be opened", "the search button does nothing", "the app shows an error", "the program closes by itself"]),
    "account": (["account", "account help", "login team", "user accounts"],
                ["passwords and logins", "access to accounts", "changes of personal data", "locked accounts"],
                "account access",
                ["i cannot log in", "i forgot my password", "my account is locked", "i want to change my email address", "the code for login never comes",
                 "my new address must be entered in my profile", "i cannot reset my password", "i lost access to my account", "my user name is not accepted",
                 "please update the phone number in my profile", "my account is locked and i cannot log in", "how do i change my password"]),
    "cancel": (["cancellations", "contracts", "contract team", "membership"],
               ["ending or changing a contract", "people who want to cancel", "memberships and subscriptions", "notice and contract ends"],
               "cancel contract",
               ["i want to cancel my subscription", "please end my contract", "i no longer need the membership", "how long is the notice period of my contract",
                "i want to change to a smaller plan", "stop my subscription at the end of the month", "i would like to end my membership",
                "my contract should not be renewed", "i want to end my contract", "please cancel my plan at the end of the month"]),
    "booking": (["bookings", "reservations", "appointments", "front desk"],
                ["making or moving appointments", "tables, rooms and appointments", "dates and reservations", "booking and changing visits"],
                "appointment",
                ["i would like to book a table for {num} people", "can i move my appointment to friday", "i need an appointment next week", "is a double room free on saturday",
                 "i want to reserve a room for two nights", "i have to change the date of my visit", "can we come an hour later than booked",
                 "please book me in for monday", "i would like to make an appointment", "please book a table for friday"]),
    "repair": (["repairs", "maintenance", "building service", "workshop"],
               ["things that are broken in the building", "heating, water and lifts", "broken equipment", "faults in rooms and houses"],
               "repair",
               ["the heating does not work", "the lift is stuck", "water drips from the ceiling", "the light in the hall is broken", "the toilet is blocked",
                "the window does not close", "the washing machine leaks", "the door lock is jammed", "the tap in the kitchen drips", "the shower has no warm water",
                "the heating in the hall is broken", "water leaks from the washing machine"]),
    "safety": (["safety", "security", "emergency desk", "incident team"],
               ["danger and accidents", "fire, gas and injuries", "incidents where people may be hurt", "threats and dangers"],
               "danger",
               ["i smell gas in the hall", "there is smoke in the cellar", "someone was hurt on the stairs", "a cable hangs loose and gives off sparks",
                "a man is threatening people at the door", "the fire alarm does not stop", "a shelf fell on a worker", "a child is trapped in the lift",
                "i smell smoke on the stairs", "a worker was hurt in the lift"]),
    "privacy": (["privacy", "data protection", "legal", "legal team"],
                ["personal data and its deletion", "data requests and contracts of law", "legal questions", "what happens with personal data"],
                "personal data",
                ["please delete all my data", "what data do you keep about me", "you gave my address to another company", "i do not agree with your use of my data",
                 "send me a copy of my personal data", "remove my name from your list", "my data was shown to another customer",
                 "what personal data do you keep", "please delete my name and my data"]),
    "jobs": (["jobs", "human resources", "recruiting", "staff office"],
             ["applications and open positions", "people who want to work here", "questions of employees", "jobs and interviews"],
             "job",
             ["i would like to apply for a job", "have you received my application", "do you have open positions for cooks", "when is my interview",
              "i am looking for an internship", "i want to send you my application", "is the position of driver still free", "i want to apply as a driver", "is my application complete"]),
    "press": (["press", "marketing", "public relations", "media team"],
              ["journalists and advertising", "interviews, adverts and newsletters", "requests from newspapers", "media and sponsoring"],
              "media",
              ["i am a journalist and have questions", "we want to write an article about your company", "would you sponsor our sports club", "i saw a mistake in your newsletter",
               "can i use your logo in my magazine", "our radio station would like an interview", "i want to unsubscribe from your newsletter",
               "i want to write an article about your shop", "a magazine would like an interview"]),
    "cleaning": (["housekeeping", "cleaning", "room service", "cleaning team"],
                 ["towels, beds and clean rooms", "dirty rooms and missing towels", "cleaning of rooms", "what is missing or dirty in a room"],
                 "dirty room",
                 ["the bed has not been made", "there are no towels in my room", "the bathroom is dirty", "the carpet has stains", "we need fresh sheets",
                  "the bin has not been emptied", "there is hair in the shower", "my room was not cleaned today", "the bathroom has no towels"]),
    "kitchen": (["kitchen", "restaurant", "food service", "catering"],
                ["meals and allergies", "food and drinks", "menus and special diets", "complaints about food"],
                "food",
                ["the soup was cold", "i am allergic to nuts, what can i eat", "do you have vegan meals", "breakfast was cold again", "there was a hair in my soup",
                 "can i get lunch without milk", "the meat was not done", "we need vegan meals for {num} guests", "the meat was cold"]),
    "fraud": (["fraud", "card security", "card blocking", "fraud team"],
              ["stolen cards and strange payments", "blocking of cards", "theft and misuse of cards", "suspicious payments"],
              "card misuse",
              ["my card was stolen", "somebody used my card in another country", "please block my card at once", "i lost my bank card", "there is a payment i did not make",
               "i got a strange call asking for my pin", "a stranger withdrew {amount} euros from my account", "my card is lost, block it", "somebody used my stolen card"]),
    "loans": (["loans", "credit", "mortgages", "loan advice"],
              ["borrowing money", "loans and interest rates", "credit for houses and cars", "financing"],
              "loan",
              ["i want to borrow {amount} euros", "what is the interest rate for a car loan", "can i pay back my loan early", "i need a mortgage for a house",
               "how much credit can i get", "i would like to lower the rate of my loan", "we want to finance a kitchen",
               "is a loan for a car possible", "i want to borrow money for a house"]),
    "pharmacy": (["pharmacy", "prescriptions", "medicine desk", "medication"],
                 ["prescriptions and medicine", "tablets and how to take them", "new prescriptions", "questions about medicine"],
                 "medicine",
                 ["i need a new prescription", "how many tablets should i take", "my medicine runs out tomorrow", "can i take the tablets with milk",
                  "the cream gives me a rash", "is my prescription ready", "i lost my prescription", "my tablets run out tomorrow", "how many drops should i take"]),
    "lab": (["laboratory", "test results", "lab", "results desk"],
            ["blood tests and results", "results of examinations", "samples and x-rays", "findings of tests"],
            "test result",
            ["are my blood results there", "i am waiting for the result of my x-ray", "when will the test result come", "where do i bring the sample",
             "can you explain my blood values", "i have not got my test result", "are the blood results there", "i am waiting for my test result"]),
    "waste": (["waste", "waste collection", "city cleaning", "recycling"],
              ["bins and rubbish", "rubbish collection and recycling", "dirty streets", "emptying of bins"],
              "rubbish",
              ["the bin was not emptied this week", "somebody left rubbish in our street", "where can i bring an old sofa", "we need a bigger bin",
               "when is paper collected", "the park is full of rubbish", "the paper bin is full", "rubbish was left in the park"]),
    "roads": (["roads", "streets", "road works", "traffic office"],
              ["holes, signs and street lamps", "damage on roads", "traffic lights and parking", "roads and parking places"],
              "road damage",
              ["there is a deep hole in the road", "the traffic light does not work", "the street lamp is out", "a sign fell over", "the bike path is full of glass",
               "the road floods when it rains", "a car blocks the pavement", "there is a hole in the bike path", "the lamp in our street is out"]),
    "permits": (["permits", "building office", "licences", "registry"],
                ["licences and certificates", "permits for building and events", "passports and papers", "official papers"],
                "permit",
                ["i need a permit for a garage", "how do i register a dog", "my passport runs out soon", "what papers do i need for a street party",
                 "i want to open a cafe, which licence do i need", "i need a copy of my birth certificate", "do i need a permit for a fence",
                 "how do i register a cafe", "i need a licence for a street party"]),
    "network": (["network", "internet support", "connections", "line faults"],
                ["internet and phone lines", "no connection or slow internet", "outages of the line", "wifi and routers"],
                "no connection",
                ["my internet is down", "the wifi is very slow", "the router blinks red", "there is no dial tone on my phone", "the connection breaks every evening",
                 "since monday i have no internet", "the line is dead", "the internet is slow every evening", "the wifi is down"]),
    "install": (["installation", "set-up service", "assembly", "technicians"],
                ["setting up new devices", "assembly at home", "technician visits", "connecting new equipment"],
                "set-up",
                ["how do i connect the new router", "i need help with building up the shelf", "when does the technician come", "the new {item} has to be set up",
                 "who can assemble the wardrobe", "i do not know how to connect the cables", "can someone mount the lamp for me",
                 "who can connect the new lamp", "i need help with the new wardrobe"]),
    "praise": (["feedback", "customer praise", "suggestions", "guest relations"],
               ["praise and ideas", "thanks and suggestions", "opinions on the service", "compliments"],
               "praise",
               ["i just want to say thank you to your staff", "your team was wonderful", "i have an idea for your shop", "the lady at the desk was very kind",
                "great service, keep it up", "you could offer more seats outside", "a compliment to the cook", "your staff was great", "thank you, the lady was wonderful"]),
    "school": (["teachers", "class office", "school office", "student office"],
               ["grades, classes and absences", "pupils who are ill", "courses and exams", "lessons and homework"],
               "class matter",
               ["my son is ill and cannot come today", "when is the maths exam", "my daughter got a wrong grade", "what is the homework for tomorrow",
                "i would like to change my course", "my child forgot the sports bag", "the exam result seems wrong",
                "my daughter is ill and cannot come to class", "the grade of the exam seems wrong"]),
    "luggage": (["luggage", "lost and found", "baggage desk", "lost property"],
                ["lost bags and things", "things left behind", "suitcases that do not arrive", "lost property"],
                "lost thing",
                ["my suitcase did not arrive", "i left my umbrella on the bus", "i lost my keys in your shop", "my bag is missing after the flight",
                 "someone may have found my phone", "i forgot my jacket in the room", "i left my bag in the train", "my keys are lost, did someone find them"]),
    "travel": (["tickets", "travel changes", "flight desk", "ticket office"],
               ["tickets, seats and changes of trips", "changing or missing a trip", "delays and new tickets", "trains and flights"],
               "trip",
               ["my flight was cancelled", "i missed my train", "i want a seat at the window", "can i change my ticket to sunday", "the train was {num} minutes late and i lost my connection",
                "my name is wrong on the ticket", "how do i get to the airport", "is my ticket valid on the bus", "my train was cancelled, can i change my ticket"]),
}

ITEMS = """shoes jacket lamp kettle chair phone book table shirt blender clock camera backpack coat dress tent mirror
keyboard monitor vase pillow printer toaster sofa bike helmet watch speaker radio drill blanket desk boots sweater hat
ring oven mixer rug laptop tablet heater fan guitar toy skirt gloves trousers""".split()
DURATIONS = ["two days", "three days", "four days", "five days", "a week", "two weeks", "three weeks", "ten days", "a month", "six days", "twelve days"]

GREETINGS = ["Hello,", "Hi,", "Good morning,", "Dear team,", "Hey there,", "To whom it may concern,", "Good evening,", "Hi team,", "Hello again,", "Dear all,"]
CLOSINGS = ["Thanks.", "Best regards", "Thank you in advance.", "Please let me know.", "Kind regards, {name}", "Looking forward to your answer.", "{name}",
            "Please reply by email.", "Have a nice day.", "Bye, {name}"]
SMALL_TALK = ["I have been a customer for {num} years.", "I saw your advert in the paper.", "My neighbour told me about you.", "It is raining here today.",
              "My order number is {num}.", "I live in {city}.", "I usually shop on fridays.", "My daughter helped me write this.", "I am at home until noon.",
              "I called from {city}.", "We moved here last year.", "I like your new logo.", "My dog is called Max.", "I am writing from my phone.",
              "I work in an office in {city}.", "The weather is lovely.", "I read the page with common questions.", "My number is {num}.",
              "The shop in {city} is nice.", "I wear glasses, so excuse my typing."]

NAMES = """Anna Ben Carla David Ella Finn Greta Hugo Ida Jonas Karl Lena Mara Nils Olga Paul Rita Sara Tom Uma Victor Wanda
Yusuf Zoe Ali Bea Chen Dora Emil Fatima Gus Hana Ivan Julia Ken Lara Mia Noah Omar Priya Ravi Sven Tina Vera""".split()
CITIES = "Berlin Paris London Rome Madrid Vienna Oslo Boston Lima Cairo Delhi Tokyo Dublin Porto Prague Zurich".split()
COLOURS = "red blue green yellow black white brown grey pink purple orange".split()

# ---------------------------------------------------------------- tone
# five strengths each; phrases are whole sentences
FEELINGS = [["calm", "happy", "glad", "pleased", "content"], ["a bit surprised", "a little sad", "slightly confused", "a little impatient"],
            ["annoyed", "disappointed", "not happy", "not satisfied", "upset"], ["angry", "really angry", "fed up", "very angry", "very upset"],
            ["furious", "outraged", "enraged", "full of rage", "mad with anger"]]
FEEL = ["I am {}.", "We are {}.", "This makes me {}.", "I feel {}.", "To be honest, I am {}.", "My wife is {} about it.", "It leaves me {}.", "Now I am {}."]
FRUSTRATION = [
    ["No hurry at all.", "Everything is fine so far.", "Thank you for your kind help.", "I am happy to wait.", "Just a quick question.", "All good otherwise.",
     "I am very pleased with you.", "Thanks a lot for your work.", "Take your time.", "No problem if it takes a while.", "I like your service.", "Everything is good, thank you.", "Thanks, no hurry."],
    ["That is a little inconvenient.", "I was a bit surprised.", "It is not ideal.", "A small thing, but it should work.", "I had hoped for better.", "It is a bit of a pity.",
     "This is slightly odd.", "It is a minor nuisance.", "That could have gone better.", "It is a small nuisance.", "A bit odd, this.", "It is a little odd."],
    ["This is annoying.", "I am not happy about this.", "This should not happen.", "I am disappointed.", "I asked about this before.", "This is the second time I write.",
     "I expected more from you.", "It costs me a lot of time.", "This is getting on my nerves.", "I am not satisfied.", "I have to ask a second time.", "This costs me my nerves.", "I expected more, this is annoying."],
    ["I am really angry!", "{Nth} time I write to you now.", "{Nth} time I have to ask!", "This is the {nth} time I am asking!", "I have had enough of this!", "How often do I have to write?", "This is bad service!", "I am fed up!",
     "Nobody answers my calls!", "I want to talk to your boss!", "I asked you {nth2} times already!", "This is not acceptable!", "It is a shame how you treat me!",
     "I write for the {nth} time now.", "I called {nth2} times and nobody answers!", "Why do I have to ask {nth2} times?", "I have had enough of your bad service!", "For the {nth} time, I am asking you to answer!"],
    ["This is an outrage! I will never buy here again!", "You are thieves!", "I am furious!", "I will call my lawyer!", "Worst company ever!", "I am going to sue you!",
     "You are liars and cheats!", "I hate your company!", "This is a scandal, shame on you!", "Never again, you crooks!", "You are crooks and liars!", "I hate you all!", "What an outrage, you thieves!", "Worst service ever, a scandal!"],
]
FRUSTRATION_LEVELS = [["calm", "slightly annoyed", "annoyed", "angry", "furious"], ["relaxed", "a little annoyed", "annoyed", "angry", "enraged"],
                      ["not at all", "a little", "somewhat", "very", "extremely"], ["friendly", "slightly upset", "upset", "angry", "raging"]]
for _level, _words in zip(FRUSTRATION, FEELINGS):
    # feelings in frames: seen ones before, held-out ones behind, so that the last fifth stays the held-out part
    _n = len(_level) // 5
    _held = _level[-_n:] + [f.format(w) for f in FEEL[-2:] for w in _words]
    _seen = 2 * _level[:-_n] + [f.format(w) for f in FEEL[:-2] for w in _words]
    while len(_seen) < 4 * len(_held):
        _seen.append(_level[len(_seen) % (len(_level) - _n)])
    _level[:] = _seen[:4 * len(_held)] + _held
FRUSTRATION_ASK = ["How frustrated is the customer?", "How angry is the writer?", "Rate the frustration of the customer.", "How annoyed does the person sound?",
                   "What is the mood of the writer?", "How upset is the customer?"]

URGENCY = [
    ["There is no rush.", "Whenever you have time.", "It can wait until next month.", "Some day is fine.", "It is not urgent.", "Any time next month will do.", "No rush, it can wait.", "It is fine next month."],
    ["Please answer in the next days.", "It would be good to have it this week.", "Some time this week, please.", "I need it by the end of the week.",
     "Can you look at it this week?", "By friday would be fine.", "I need an answer this week.", "Please do it this week."],
    ["I need an answer today.", "Please do it today.", "It has to be done by tonight.", "Can you reply before this evening?", "I must know it today.", "Today, if you can.", "I need it by tonight.", "Please answer before this evening."],
    ["I need help right now!", "This is an emergency!", "Please come at once!", "Every minute counts!", "Help, now!", "Immediately, please!", "Come right now, please!", "I need help at once!"],
]
URGENCY_LEVELS = [["can wait", "this week", "today", "right now"], ["low", "medium", "high", "critical"], ["no hurry", "within days", "same day", "emergency"],
                  ["not urgent", "a little urgent", "urgent", "very urgent"]]
URGENCY_ASK = ["How urgent is this?", "How soon must this be handled?", "Rate the urgency of the message.", "How fast is an answer needed?", "What priority does this have?"]

OPINION = [
    ["It was terrible.", "The worst {thing} I have ever seen.", "Awful from start to end.", "I hated it.", "A complete waste of money.", "Horrible, never again.", "It was awful.", "A terrible {thing}.", "A horrible {thing}, I hated it.", "The {thing} was horrible."],
    ["It was rather poor.", "Not very good.", "I did not like it much.", "Below what I expected.", "It has too many faults.", "A weak {thing}.", "The {thing} was not good.", "It was weak.", "A rather weak {thing}.", "The {thing} was rather poor."],
    ["It was okay.", "Nothing special, but fine.", "An average {thing}.", "Neither good nor bad.", "It does its job, no more.", "So so.", "The {thing} was okay.", "It was average.", "Okay, nothing special.", "The {thing} was average."],
    ["It was good.", "I liked it.", "A nice {thing}.", "Better than I expected.", "Quite pleasant.", "I am satisfied with it.", "The {thing} was good.", "It was nice.", "A good {thing}, I liked it.", "The {thing} was quite nice."],
    ["It was fantastic!", "The best {thing} ever!", "I loved every minute.", "Simply perfect.", "Brilliant, ten out of ten!", "Wonderful, I want it again!", "The {thing} was perfect!", "It was wonderful!", "A fantastic {thing}, I loved it!", "The {thing} was brilliant!"],
]
OPINION_LEVELS = [["very bad", "bad", "average", "good", "very good"], ["one star", "two stars", "three stars", "four stars", "five stars"],
                  ["terrible", "poor", "okay", "good", "excellent"], ["hates it", "dislikes it", "neutral", "likes it", "loves it"]]
OPINION_ASK = ["How good is the {thing} in the writer's opinion?", "How many stars would the reviewer give?", "Rate the review.", "How satisfied is the reviewer?",
               "What does the writer think of the {thing}?"]
THINGS = "hotel film book meal concert museum tour game course restaurant play show lecture trip park".split()

SEVERITY = [
    ["nobody was hurt and nothing broke", "a pen fell on the floor", "a cup of tea was spilled", "a sticker came off the wall", "a door squeaks", "a sheet of paper fell off the wall", "a cup was moved", "some tea was spilled on the floor", "a pen was spilled with ink"],
    ["a chair lost a leg", "a window has a small crack", "one worker has a small scratch", "a lamp fell and broke", "a tool went missing", "a chair fell and broke", "a table has a small crack", "a driver has a small scratch", "a window lamp broke"],
    ["a worker broke his arm", "a machine stopped for the whole day", "water flooded the storeroom", "two boxes of glass fell and cut a worker", "a van hit the gate and is badly damaged", "a driver broke his leg", "a machine was badly damaged", "water flooded the office", "a van hit a machine and stopped it for the day"],
    ["the hall burned down", "three people were taken to hospital", "a crane fell on the road", "gas exploded in the cellar", "a roof came down on workers", "the whole office burned down", "a tank exploded", "five workers were taken to hospital", "the roof of the hall came down"],
]
SEVERITY_LEVELS = [["none", "minor", "serious", "catastrophic"], ["trivial", "small", "big", "disaster"], ["negligible", "low", "high", "extreme"]]
SEVERITY_ASK = ["How severe is the incident?", "How bad is the event?", "Rate the severity of the report.", "How serious is what happened?"]
PLACES = ["In hall {num}", "At the south gate", "In the workshop", "On the building site", "In the warehouse", "At the harbour", "On floor {num}"]

# ---------------------------------------------------------------- when a person should take over
# sign: (as a criterion, as said by a customer)
SIGNS = {
    "asked": (["the customer asked before", "the customer wrote more than once", "it is not the first time they ask", "they had to ask again"],
              ["{Nth} time I write about this.", "{Nth} time I have to ask you.", "This is the {nth} time I am asking.", "I wrote to you last week already.", "I asked about this before.", "This is my second message about it.", "I have called you twice.",
               "Nobody answered my first email.", "How often must I ask?", "I already told you this on monday.", "Once more, for the fourth time.", "Still no answer to my last two emails.", "I asked you twice already.", "I wrote to you on monday and ask again.", "I am asking for the {nth} time.", "My {nth} email about this.", "For the {nth} time, please answer.", "I have asked you twice already.", "This is my {nth} email, still no answer.", "I called you on monday about this already."]),
    "leaving": (["is about to leave", "the customer wants to leave", "they threaten to go to another company", "the customer may be lost"],
                ["I will go to another company.", "I am leaving you.", "I will cancel everything.", "You are losing a customer.", "I am looking at other shops now.",
                 "I will close my account.", "My next order goes to another company.", "That was my last order here.", "I will go to another shop.", "I cancel and leave.", "I will never order here again.", "I am leaving for another company.", "My account will be closed, you lose me."]),
    "law": (["a lawyer or court is named", "the customer talks of legal steps", "they threaten to sue", "there is a legal threat"],
            ["My lawyer will write to you.", "I will see you in court.", "I am going to sue you.", "I will go to the police.", "My lawyer knows about this.",
             "Expect a letter from my lawyer.", "This will end in court.", "I will sue.", "The police will hear of this.", "A lawyer will call you.", "I will go to my lawyer and to court.", "I am going to the police."]),
    "hurt": (["someone was hurt", "a person is in danger", "there is an injury", "health is at risk"],
             ["My son was hurt.", "I cut my hand on it.", "My mother fell and is in hospital.", "It gave me an electric shock.", "My daughter burned her finger.",
              "My wife was injured by it.", "I was hurt.", "I am in hospital because of it.", "My hand was burned by it.", "I fell and hurt my leg.", "It burned my hand.", "My mother was hurt by it."]),
    "human": (["the customer asks for a person", "they want to talk to a human", "a call back is wanted", "the customer does not want a machine"],
              ["Please let me talk to a person.", "I want to speak to a human.", "Please call me back.", "I do not want to write with a robot.", "Can a real person help me?",
               "Let me speak with a real person.", "Can I talk to someone?", "A call back, please.", "No robot, please, a human.", "Please let a real person call me.", "I want to talk to someone real."]),
    "money": (["a large sum is at stake", "much money is involved", "it is about a lot of money", "the sum is high"],
              ["It is about thousands of euros.", "I lost a fortune through this.", "We talk about five thousand euros.", "A whole month's pay is gone.", "It cost me nine thousand euros.",
               "Ten thousand euros are missing.", "I lost thousands of euros.", "It cost me a fortune.", "Five thousand euros are gone.", "I lost nine thousand euros.", "A fortune is at stake here."]),
    "child": (["a child is involved", "it is about a child", "a minor is concerned", "children are affected"],
              ["It is for my little boy.", "My daughter is six.", "The children use it every day.", "My baby sleeps next to it.", "My son is only four years old.",
               "My children play with it.", "My baby had it in the mouth.", "It is for my daughter.", "My son is five.", "My little daughter plays with it.", "Our baby is only four months old."]),
    "press": (["the media are mentioned", "they threaten with the newspaper", "it may become public", "public attention is likely"],
              ["I will tell the newspaper.", "I will post this everywhere.", "A reporter is already interested.", "The whole town will read about it.", "I will write about it on the internet.",
               "The newspaper will hear of it.", "I know a reporter.", "I will post it on the internet.", "The newspaper wants to write about it.", "A reporter will write about this.", "I will tell a reporter."]),
}
SIGN_ASK = ["Should a person take over now?", "Should this be escalated?", "Does a human need to step in?", "Must a manager see this?", "Is this a case for the senior team?",
            "Should a supervisor be called?"]
SIGN_NO = ["an ordinary answer is enough", "none of this", "a standard reply will do", "nothing of the kind", "the usual way is fine"]
