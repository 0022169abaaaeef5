"""Whether stated separations of words hold when the weights are drawn anew.

    python benchmarks/separation.py                    20 sentences x 5 seeds, raf and rf (about 10 minutes)
    python benchmarks/separation.py --sentences 4      fewer of them
    python benchmarks/separation.py --keep FILE        keep every run, a line each, and go on from there

Every run draws the weights five times with seeds of its own, and states which words are separated. A statement "a above
b" is contradicted where another run of the same text states "b above a". It is doubted where the mean over the draws of
the other four runs, twenty draws, has b above a. The intervals of one run hold together with probability 95%, so at
most 5% of runs may have a wrong statement.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import torch

import wordsway as ws

SENTENCES = [
    "The train left ten minutes early",
    "Her garden smells of rain and mint",
    "Nobody answered the letter",
    "We painted the kitchen yellow",
    "The old clock stopped at noon",
    "His brother sells used bicycles",
    "A cold wind came from the lake",
    "The committee rejected our proposal twice",
    "She learned to swim last summer",
    "Prices rose faster than wages",
    "The cat sleeps under the stairs",
    "My neighbour plays the cello badly",
    "They closed the museum for repairs",
    "Fresh bread is sold before seven",
    "The lawyer spoke without notes",
    "Two children were waiting outside",
    "This road ends at the harbour",
    "I forgot the password again",
    "The battery lasts three days",
    "Snow covered every roof in town",
]
MAPS = ("raf", "rf")


def one_run(text: str, seed: int) -> dict[str, Any]:
    """Measure a text once: for each map, what was found on every draw, and the stated separations."""
    result = ws.compare_draws(text, MAPS, weights=5, seed=seed, certificate=False, random_draws=0)
    maps = {
        each.name: {
            "lower": [list(word.lower) for word in each.words],
            "stated": [(a.word, b.word) for a in each.words for b in each.words if each.separated(a, b)],
            "first": each.top[0].word if len(each.top) == 1 else None,
        }
        for each in result.maps
    }
    return {"text": text, "seed": seed, "maps": maps}


def runs_of(sentences: int, seeds: int, keep: Path | None) -> list[dict[str, Any]]:
    """Make all runs; those that are in the file already are not made again."""
    lines = keep.read_text(encoding="utf-8").splitlines() if keep is not None and keep.exists() else []
    runs = [json.loads(line) for line in lines]
    have = {(run["text"], run["seed"]) for run in runs}
    for text in SENTENCES[:sentences]:
        for seed in range(seeds):
            if (text, seed) in have:
                continue
            runs.append(json.loads(json.dumps(one_run(text, seed))))
            if keep is not None:
                with keep.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(runs[-1]) + "\n")
    wanted = set(SENTENCES[:sentences])
    return [run for run in runs if run["text"] in wanted and run["seed"] < seeds]


def report(runs: list[dict[str, Any]], name: str) -> None:
    """Print what was stated of one map, and how often another run contradicts or doubts it."""
    stated = contradicted = doubted = wrong_runs = pairs = firsts = 0
    for run in runs:
        others = [each["maps"][name] for each in runs if each["text"] == run["text"] and each["seed"] != run["seed"]]
        means = [sum(sum(each["lower"][k]) for each in others) for k in range(len(run["maps"][name]["lower"]))]
        said = [tuple(pair) for pair in run["maps"][name]["stated"]]
        reversed_pairs = {(b, a) for each in others for a, b in map(tuple, each["stated"])}
        doubts = [(a, b) for a, b in said if means[a] < means[b]]
        stated += len(said)
        contradicted += sum(pair in reversed_pairs for pair in said)
        doubted += len(doubts)
        wrong_runs += bool(doubts)
        pairs += len(means) * (len(means) - 1) // 2
        firsts += run["maps"][name]["first"] is not None
    print(
        f"{name}: {len(runs)} runs, {pairs} pairs of words, {stated} stated to be separated; contradicted by another "
        f"run: {contradicted}; doubted by the mean of the others: {doubted}, in {wrong_runs} runs; one word first: "
        f"{firsts} runs"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sentences", type=int, default=len(SENTENCES))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    made = runs_of(asked.sentences, asked.seeds, asked.keep)
    for map_name in MAPS:
        report(made, map_name)
