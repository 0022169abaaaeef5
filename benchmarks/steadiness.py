"""How steady the numbers of a search are: over seeds, over instruction sets, and against a long search.

    python benchmarks/steadiness.py models                 spread over seeds and sets, and shares of a reference
    python benchmarks/steadiness.py models --lengths 8 --outputs minilm:pooled --seeds 2 --words 4
    python benchmarks/steadiness.py example                the README's kind of sentence, word by word
    python benchmarks/steadiness.py causal                 smollm2's next token (--gguf FILE)
    python benchmarks/steadiness.py transformers           random transformers against a long search
    python benchmarks/steadiness.py published              attention against the published gradient steps
    python benchmarks/steadiness.py time                   all words of a 65-token text, in evaluations and seconds

A set is tried in a process of its own, since torch chooses its instructions when it is loaded. Runs share landmarks as
a user's do: those that come with the package, or those that a set found once. With --own-landmarks every seed and set
finds its own, so that numbers vary more and show what landmarks miss. The reference of a word is the largest of a
`thorough` search with another seed (and landmarks of its own) and of every search that was run: nobody knows the
supremum.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import torch

import wordsway as ws
from bench import baseline
from wordsway.search import landmarks
from wordsway.search.effort import Effort

sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
from portable import SETS, environment  # pyright: ignore[reportMissingImports]

EXAMPLE = "The food was good, but the waiter was rude."
OUTPUTS = ["minilm:last", "minilm:pooled", "minilm:layer:2", "sentiment:logits"]
REFERENCE_SEED = 1000


def texts(length: int, seed: int) -> str:
    """A review of at least so many tokens; those of other seeds were used for tuning."""
    return ws.load_texts("imdb", count=4, seed=seed, shorter_than=400, at_least=max(66, length + 2)).texts[0]


def opened(name: str, length: int, seed: int) -> tuple[Any, Any, list[int]]:
    """A model with one of its outputs, a text of so many tokens, and the tokens of its words."""
    model, _, output = name.partition(":")
    phi = ws.PretrainedMap(model, output)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokens = phi.encode(EXAMPLE) if length == 0 else phi.encode(texts(length, seed), length)
    return phi, tokens, [k for k in range(len(tokens)) if tokens.word_ids[k] is not None]


def searched(name: str, length: int, text: int, seed: int, words: int, budget: str, own: bool) -> dict[str, Any]:
    """One search, maybe with landmarks of its own; called in a process that has its instruction set."""
    if own:
        landmarks.SEED, landmarks.SHIPPED = seed, Path("no such folder")
    phi, tokens, every = opened(name, length, text)
    chosen = every if words >= len(every) else every[:: math.ceil(len(every) / words)]
    X, radii = tokens.X.double(), tokens.X.double().norm(dim=1).tolist()
    began = time.perf_counter()
    if budget != "quick" and len(chosen) >= Effort.core:  # kept, so that the search below reads them
        landmarks.landmarks_of(phi, X, radii, "cpu")
    preparing, began = time.perf_counter() - began, time.perf_counter()
    found = ws.word_sensitivity(phi, tokens, chosen, seed=seed, budget=budget, certificate=False, random_draws=0)
    return {
        "values": [entry.lower for entry in found.per_token],
        "words": [tokens.tokens[k] for k in chosen],
        "seconds": time.perf_counter() - began,
        "preparing": preparing,
        "evaluations": found.evaluations / len(chosen),
    }


def elsewhere(instructions: str, **question: Any) -> dict[str, Any]:
    """The same in a process of its own."""
    code = "import json, sys; import steadiness; print(json.dumps(steadiness.searched(**json.loads(sys.argv[1]))))"
    cache = Path(tempfile.gettempdir()) / f"wordsway-steadiness-{instructions}"
    env = environment(instructions, torch.get_num_threads())
    env |= {"PYTHONPATH": str(Path(__file__).parent), "WORDSWAY_CACHE": str(cache)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, json.dumps(question)], env=env, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    return json.loads(done.stdout.splitlines()[-1])


def summary(values: torch.Tensor, reference: torch.Tensor) -> str:
    """Spread of every word over runs (runs, words), and share of its reference."""
    spread = values.amax(0) / values.amin(0) - 1
    share = values / reference
    return (
        f"spread: {float((spread <= 0.05).double().mean()):.0%} of {values.shape[1]} words within 5%, largest "
        f"{float(spread.max()):.1%}; share of the reference: mean {float(share.mean()):.3f}, "
        f"{float((share >= 0.97).double().mean()):.0%} at least 0.97, smallest {float(share.min()):.3f}"
    )


def models(arguments: argparse.Namespace) -> None:
    """Every output and length: seeds x sets at the given budget, with a reference."""
    for length in arguments.lengths:
        for name in arguments.outputs:
            question = {"name": name, "length": length, "text": arguments.text, "words": arguments.words}
            runs = []
            for instructions in arguments.sets:
                for seed in range(arguments.seeds):
                    run = elsewhere(instructions, **question, seed=seed, budget=arguments.budget, own=arguments.own)
                    runs.append(torch.tensor(run["values"], dtype=torch.float64))
                    print(
                        f"  {instructions} seed {seed}: {run['seconds']:.1f} s, {run['values']}",
                        file=sys.stderr,
                        flush=True,
                    )
            values = torch.stack(runs)
            rows = [values]
            if arguments.reference:
                long = elsewhere("native", **question, seed=REFERENCE_SEED, budget="thorough", own=True)
                rows.append(torch.tensor([long["values"]], dtype=torch.float64))
            reference = torch.cat(rows).amax(0)
            print(f"{name}, {length} tokens, {arguments.budget}: {summary(values, reference)}", flush=True)
            for share in rows[1:]:
                share = share / reference
                print(f"    thorough: mean {float(share.mean()):.3f}, smallest {float(share.min()):.3f}", flush=True)


def example(arguments: argparse.Namespace) -> None:
    """The eleven words of one sentence."""
    question = {"name": "minilm:pooled", "length": 0, "text": 0, "words": 99}
    for budget in ("default", "thorough") if arguments.reference else ("default",):
        for seed in range(arguments.seeds):
            for instructions in arguments.sets:
                run = elsewhere(instructions, **question, seed=seed, budget=budget, own=arguments.own)
                numbers = " ".join(f"{value:.2f}" for value in run["values"])
                print(f"{budget}, seed {seed}, {instructions}: {numbers}  ({run['seconds']:.1f} s)", flush=True)


def causal(arguments: argparse.Namespace) -> None:
    """A causal model's next token: six words of a text of 32 tokens."""
    if not arguments.gguf:
        raise SystemExit("causal needs --gguf FILE, the weights of a causal model")
    arguments.outputs, arguments.lengths, arguments.words = [f"{arguments.gguf}:logits"], [32], 6
    models(arguments)


def transformers(arguments: argparse.Namespace) -> None:
    """Pre- and post-norm, depth 1, 3, 8: shares of a search with twenty times the evaluations."""
    n, d = 32, 64
    for norm in ("pre", "post"):
        for depth in (1, 3, 8):
            shares = []
            for seed in range(arguments.text, arguments.text + 10):
                X = ws.synthetic_tokens(n, d, seed=seed)
                phi = ws.RandomTransformer(depth=depth, heads=4, norm=norm).sample(d=d, seed=seed)
                found, long = (
                    ws.word_sensitivity(phi, X, 0, seed=s, budget=budget, certificate=False, random_draws=0).lower
                    for s, budget in ((0, None), (REFERENCE_SEED, 24_000))
                )
                shares.append(found / max(found, long))
            good = sum(share >= 0.97 for share in shares)
            print(f"{norm}, depth {depth}: {good} of 10 at least 0.97, smallest {min(shares):.3f}", flush=True)


def published(arguments: argparse.Namespace) -> None:
    """n = 20, d = 64, token 0, thirty draws."""
    for score in ("softmax", "relu"):
        shares = []
        for seed in range(arguments.text, arguments.text + 30):
            X = ws.synthetic_tokens(20, 64, seed=seed)
            phi = ws.RandomAttention(score).sample(d=64, seed=seed)
            found = ws.word_sensitivity(phi, X, 0, certificate=False, random_draws=0).lower
            shares.append(found / baseline(phi, X, 10.0, 50 * len(X))[0])
        below = sum(share < 1 - 1e-9 for share in shares)
        print(f"{score}: {below} of 30 below the published steps, smallest {min(shares):.9f}", flush=True)


def timing(arguments: argparse.Namespace) -> None:
    """All words of a text of 65 tokens."""
    for name in arguments.outputs:
        run = searched(name, 65, arguments.text, 0, 99, arguments.budget, arguments.own)
        print(
            f"{name}: {run['seconds']:.1f} s, {run['evaluations']:.0f} evaluations a word; landmarks, once a model: "
            f"{run['preparing']:.1f} s",
            flush=True,
        )


JOBS = {
    "models": models,
    "example": example,
    "causal": causal,
    "transformers": transformers,
    "published": published,
    "time": timing,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("job", choices=JOBS)
    parser.add_argument("--lengths", nargs="+", type=int, default=[8, 32, 128])
    parser.add_argument("--outputs", nargs="+", default=OUTPUTS, help="MODEL:OUTPUT, ...")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--words", type=int, default=9999, help="at most so many of each text, evenly spread")
    parser.add_argument("--text", type=int, default=3000, help="which text, or first draw of the weights")
    parser.add_argument("--budget", default="default")
    parser.add_argument("--gguf", help="of a causal model")
    parser.add_argument("--own-landmarks", dest="own", action="store_true", help="every run finds its own")
    parser.add_argument("--no-reference", dest="reference", action="store_false")
    arguments = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "2")))
    JOBS[arguments.job](arguments)


if __name__ == "__main__":
    main()
