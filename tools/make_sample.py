"""Make the sample that comes with wordsway: `python tools/make_sample.py` writes it to src/wordsway/datasets/bundled/.

Two kinds of text, all written for this project. Reviews are put together from sentences about one subject, most of
one mind, with a neutral or a mixed one between. Minimal pairs are two texts that differ in one word, which decides the
label; `deciding` is its span in each. The words of a pair's two sides are single tokens of common vocabularies.
"""

import json
import random
from pathlib import Path

TARGET = Path(__file__).parent.parent / "src" / "wordsway" / "datasets" / "bundled" / "sample.jsonl"
REVIEWS = 320
PAIRS = 160

# For each subject: what it is called, then things to say about it for +1, for -1, and neither.
SUBJECTS = {
    "film": (
        [
            "this film",
            "the new thriller from that studio",
            "the late show on Friday",
            "her second feature",
            "the remake",
        ],
        [
            "The two leads carry every scene, and the quiet moments stay with you.",
            "I laughed out loud twice and left the cinema lighter than I came.",
            "The camera finds beauty in an ordinary street, and the score never pushes.",
            "For once the twist is earned, and the last ten minutes are gripping.",
            "The script trusts its audience, which is rarer than it should be.",
            "Even the small parts are cast with care.",
        ],
        [
            "The plot falls apart after half an hour and nobody seems to mind.",
            "I checked my watch so often that the usher noticed.",
            "Every joke arrives late and most of them arrive twice.",
            "The dialogue sounds as if it was read from a menu.",
            "The ending undoes what little there was before it.",
            "Loud music cannot hide that nothing happens.",
        ],
        [
            "It runs for a little over two hours.",
            "I saw it with my brother on a rainy Sunday.",
            "It was shot in black and white.",
        ],
    ),
    "book": (
        ["this novel", "the third volume", "his collection of essays", "the travel diary", "the biography"],
        [
            "The prose is clear, warm and often very funny.",
            "I read it in one night and lent it to a friend in the morning.",
            "Each chapter opens a door that you did not know was there.",
            "The author knows the trade and explains it with patience.",
            "The characters feel like neighbours whom one would miss.",
            "It made me look at my own street with new eyes.",
        ],
        [
            "The same point is made on every page until one stops caring.",
            "Half of the footnotes are wrong and the other half are dull.",
            "I gave up at page ninety, which was already too far.",
            "The hero has no wish, no fault and no reason to be there.",
            "It reads like a lecture by somebody who lost the notes.",
            "The translation limps and the printing smears.",
        ],
        [
            "My copy came in the post on Tuesday.",
            "It has four hundred pages and an index.",
            "The cover shows a lighthouse.",
        ],
    ),
    "restaurant": (
        [
            "the place on the corner",
            "this little kitchen",
            "the fish restaurant by the harbour",
            "the canteen",
            "the new bakery",
        ],
        [
            "The soup alone was worth the walk.",
            "Our waiter remembered what we liked and was right about the wine.",
            "Bread came warm, the butter was salted, and everybody fell silent.",
            "The bill was fair and the portions were generous.",
            "They found a table for the six of us without a frown.",
            "The dessert was light, fresh and gone too soon.",
        ],
        [
            "The fish was cold in the middle and the rice was glue.",
            "We waited an hour for a salad that had given up before us.",
            "The waiter argued about the bill and then about the weather.",
            "The room smelled of old oil and the chairs were sticky.",
            "My coffee was sour, and so was the cook when I said so.",
            "Two of us were ill the next day.",
        ],
        ["We sat near the window.", "They open at noon.", "It is ten minutes from the station."],
    ),
    "hotel": (
        ["this guest house", "the hotel at the lake", "our room on the top floor", "the hostel", "the mountain inn"],
        [
            "The bed was wonderful and the nights were silent.",
            "Breakfast had fresh fruit, good eggs and a view over the valley.",
            "The owner drew us a map that saved our week.",
            "Everything was spotless, down to the last tile.",
            "We had booked for two days and stayed for five.",
            "The garden is a gift after a day in the city.",
        ],
        [
            "The walls are so thin that I know my neighbour's plans.",
            "There was hair in the sink and a smell that nobody could name.",
            "The heating knocked all night and warmed nothing.",
            "Nobody was at the desk when the key broke in the door.",
            "The pictures on the site must be of another house.",
            "We left a day early and did not get our money back.",
        ],
        ["The lift is next to the stairs.", "Parking costs a little extra.", "We arrived late in the evening."],
    ),
    "gadget": (
        ["this lamp", "the cordless drill", "the second-hand camera", "this keyboard", "the kettle"],
        [
            "It does one thing and does it very well.",
            "The battery lasts for a week and charges in an hour.",
            "After a year of daily use it looks and works like new.",
            "Setting it up took less time than opening the box.",
            "The maker answered my question within the hour.",
            "It feels solid in the hand and sits firmly on the desk.",
        ],
        [
            "It broke on the third day and the shop would not take it back.",
            "The manual is a riddle and the buttons are worse.",
            "It gets so hot that I am afraid to leave the room.",
            "The battery is empty before the light turns green.",
            "Half of the screws were missing, and the other half did not fit.",
            "It hums, it rattles, and on bad days it smokes.",
        ],
        ["It weighs about as much as a bag of sugar.", "I bought it in the autumn sale.", "It comes in grey and blue."],
    ),
    "concert": (
        ["the quartet's evening", "the open-air concert", "the school choir", "the jazz trio", "that festival"],
        [
            "The singer held the hall with a whisper.",
            "They played as if the piece had been written that morning.",
            "The last movement had us all on our feet.",
            "The sound was clear up to the last row.",
            "Young and old danced, and nobody wanted to go home.",
            "The encore was the loveliest thing that I heard this year.",
        ],
        [
            "The microphone failed four times and the band failed more often.",
            "They were out of tune from the first bar to the last.",
            "We stood in mud for an hour to hear a tape.",
            "The speeches were longer than the music, and less musical.",
            "The drummer seemed to be at another concert.",
            "I have heard warmer applause for a delayed train.",
        ],
        [
            "There was an interval of twenty minutes.",
            "The hall holds three hundred people.",
            "It was sold out since May.",
        ],
    ),
}

OPENINGS = {
    1: [
        "I am so glad that I tried {}.",
        "What a joy: {}!",
        "Go and see for yourself, but I loved {}.",
        "For me, {} is the find of the year.",
    ],
    -1: [
        "I wish that somebody had warned me about {}.",
        "What a letdown: {}.",
        "Save your money and skip {}.",
        "I expected better from {}.",
    ],
}
CLOSINGS = {
    1: [
        "I will be back.",
        "Warmly recommended.",
        "Ten out of ten from me.",
        "My whole family agrees.",
        "More of this, please.",
    ],
    -1: [
        "Never again.",
        "I want my evening back.",
        "One star is one too many.",
        "My whole family agrees.",
        "Stay away.",
    ],
}
# A clause of the other mind, so that counting happy words is not enough.
CONCESSIONS = {
    1: ["True, it was not cheap.", "A friend of mine hated it, and I cannot see why.", "The start was slow, I admit."],
    -1: ["A friend of mine loved it, and I cannot see why.", "True, it was cheap.", "The start was fine, I admit."],
}

# Sentences with a gap that decides, and words for it: (+1, -1).
JUDGEMENTS = [
    ("wonderful", "terrible"),
    ("excellent", "awful"),
    ("great", "bad"),
    ("brilliant", "boring"),
    ("perfect", "poor"),
]
GAPS = [
    ("All in all, {} was {{}}.", JUDGEMENTS),
    ("If you ask me, {} is {{}} from start to finish.", JUDGEMENTS),
    ("We thought that {} was {{}}, and we told them so.", JUDGEMENTS),
    ("I would {{}} choose {} again.", [("gladly", "never"), ("always", "never"), ("certainly", "hardly")]),
    (
        "My friends {{}} {} from the first minute.",
        [("loved", "hated"), ("enjoyed", "regretted"), ("admired", "disliked")],
    ),
    ("With {}, the {{}} part was that it ended.", [("worst", "best"), ("sad", "happy")]),
    ("There is {{}} to like about {}.", [("much", "little"), ("plenty", "nothing"), ("everything", "nothing")]),
    ("People who praise {} are {{}}.", [("right", "wrong"), ("honest", "lying")]),
    ("It was a {{}} to know {}.", [("pleasure", "pain"), ("joy", "shame")]),
    ("Those who {{}} {} made a mistake.", [("missed", "chose"), ("left", "joined"), ("refused", "bought")]),
]
BEFORE = [
    "We went there in the first week of March.",
    "My sister had told me about it.",
    "It was raining and we had an evening to fill.",
    "I had read three reviews and believed none of them.",
    "A colleague gave us the tickets.",
    "I do not write many reviews.",
]
AFTER = [
    "That is all I have to say.",
    "Make of that what you like.",
    "The bus home was on time.",
    "I am told that prices will change in June.",
]


def review(rng: random.Random, label: int) -> dict:
    names, good, bad, neutral = SUBJECTS[rng.choice(sorted(SUBJECTS))]
    said = rng.sample(good if label == 1 else bad, rng.randint(2, 4))
    if rng.random() < 0.5:
        said.insert(rng.randint(0, len(said)), rng.choice(neutral))
    if rng.random() < 0.4:
        said.insert(rng.randint(1, len(said)), rng.choice(CONCESSIONS[label]))
    if rng.random() < 0.8:
        said.insert(0, rng.choice(OPENINGS[label]).format(rng.choice(names)))
    if rng.random() < 0.7:
        said.append(rng.choice(CLOSINGS[label]))
    return {"text": " ".join(said), "label": label, "pair": None, "deciding": None}


def minimal_pair(rng: random.Random, number: int) -> list[dict]:
    names, *_, neutral = SUBJECTS[rng.choice(sorted(SUBJECTS))]
    sentence, choices = rng.choice(GAPS)
    sentence = sentence.format(rng.choice(names))
    words = rng.choice(choices)
    before = [rng.choice(part) for part in (BEFORE, neutral) if rng.random() < 0.6]
    after = [rng.choice(AFTER)] if rng.random() < 0.5 else []
    left, right = sentence.split("{}")
    left, right = " ".join([*before, left]), " ".join([right, *after])
    return [
        {"text": left + word + right, "label": label, "pair": number, "deciding": [len(left), len(left) + len(word)]}
        for word, label in zip(words, (1, -1), strict=True)
    ]


def rows() -> list[dict]:
    """The whole sample, always the same."""
    rng = random.Random(20241)
    found: list[dict] = []
    texts = set[str]()
    while len(found) < REVIEWS:
        made = review(rng, 1 if len(found) % 2 else -1)
        if made["text"] not in texts:
            texts.add(made["text"])
            found.append(made)
    number = 0
    while number < PAIRS:
        both = minimal_pair(rng, number)
        if not texts & {row["text"] for row in both}:
            texts |= {row["text"] for row in both}
            found += both
            number += 1
    return found


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows()), encoding="utf-8")
    print(f"{len(rows())} texts in {TARGET}")
