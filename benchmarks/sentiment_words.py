"""Which rank the sentiment word of a short sentence gets: by the nearest real word that flips, and by any move.

    python benchmarks/sentiment_words.py               ten sentences with the bundled classifier (about 5 minutes)

The sentences were written once and not used for tuning. For each of them: the rank of its sentiment word by the
distance of the nearest real word that flips the prediction (`FlipRadii.by_real`, the order of `wordsway measure`), by
the smallest move of the embedding that flips it (`flip_radius`), and by the probability that a move of the word's own
length can take away.
"""

import argparse

import torch

import wordsway as ws

SENTENCES = [
    ("The bakery makes excellent rye bread", "excellent"),
    ("Our landlord was cruel to the tenants", "cruel"),
    ("That lecture felt tedious and long", "tedious"),
    ("The museum staff were charming", "charming"),
    ("His apology sounded insincere", "insincere"),
    ("We had a wonderful picnic by the river", "wonderful"),
    ("The new sofa is uncomfortable", "uncomfortable"),
    ("Their second album is brilliant", "brilliant"),
    ("The taxi driver was hostile", "hostile"),
    ("This recipe gives a disgusting sauce", "disgusting"),
]


def ranks(text: str, word: str, real_words: int, budget: str) -> tuple[str, list[int], int]:
    """The prediction, the word's ranks under the three orders, and the number of words."""
    found = ws.flip_radius("sentiment", text, effects=True, real_words=real_words, budget=budget)
    by_loss = sorted(found.words, key=lambda entry: 1.0 if entry.lowest is None else entry.lowest)
    orders = [found.by_real, found.words, by_loss]
    places = [[entry.text for entry in order].index(word) + 1 for order in orders]
    nearest = next(entry.real for entry in found.words if entry.text == word)
    flip = "no real word found" if nearest is None else f"{word} -> {nearest.text}"
    return f"{found.prediction} {found.probability:.3f}, {flip}", places, len(found.words)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--real-words", type=int, default=400)
    parser.add_argument("--budget", default="quick")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    first = [0, 0, 0]
    for sentence, key in SENTENCES:
        about, places, count = ranks(sentence, key, asked.real_words, asked.budget)
        first = [total + (place <= 3) for total, place in zip(first, places, strict=True)]
        print(f"{sentence!r}: {about}; of {count} words, by real word {places[0]}, by any move {places[1]}, "
              f"by probability {places[2]}", flush=True)  # fmt: skip
    print(f"among the first three: by real word {first[0]}, by any move {first[1]}, by probability {first[2]} of 10")
