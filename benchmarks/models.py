"""Pre-trained models, and what others would do: `python benchmarks/models.py [JOB ...]`, all of them unless given.

Peers are benchmark extras (`pip install '.[bench]'`), never dependencies. Ratios are measured side by side in one run.
"""

import argparse
import csv
import math
import time
import warnings
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import torch
from torch import Tensor

import wordsway as ws
from wordsway.certificates.certify import certify
from wordsway.models.loading.load import open_model
from wordsway.models.moving.attention_weights import Attraction, draw_attention
from wordsway.models.moving.map import PretrainedMap
from wordsway.search.guided import largest


def reviews(count: int, seed: int, at_least: int) -> tuple[str, ...]:
    return ws.load_texts("imdb", count=count, seed=seed, shorter_than=400, at_least=at_least).texts


def plain_forward(model: Any, output: str) -> Callable[[Tensor], Tensor]:
    """The bundled model from its hidden state 0 on, as a user of the library would write it."""
    take = (lambda states: states.mean(1)) if output == "pooled" else (lambda states: states.flatten(1))
    return lambda rows: take(model.encoder(rows).last_hidden_state)


def captum_search(model: Any, output: str, X: Tensor, token: int, radius: float, steps: int, share: float) -> float:
    """The largest change that captum's PGD ends with. `share` is the length of a step against the radius."""
    from captum.robust import PGD  # pyright: ignore[reportMissingImports]

    forward = plain_forward(model, output)
    base = forward(X[None]).detach()
    mask = torch.zeros_like(X[None])
    mask[:, token] = 1
    # The loss is minimised towards a target, or maximised away from it: the features as they are.
    attack = PGD(forward, loss_func=lambda out, target: (out - target).square().sum(1))
    step = share * radius / X.shape[1] ** 0.5  # it steps by the gradient's signs
    moved = attack.perturb(
        X[None], radius, step, steps, target=base, targeted=False, random_start=True, norm="L2", mask=mask
    )
    delta = (moved - X[None])[0, token]
    assert float(delta.norm()) <= radius * 1.001
    with torch.no_grad():
        return float((forward(moved) - base).norm() / base.norm())


def our_search(phi: PretrainedMap, X: Tensor, tokens: list[int], radii: list[float], budget: int) -> list[float]:
    """What `word_sensitivity` does for some tokens, with an exact number of gradients each."""
    found = ws.word_sensitivity(
        phi, X, tokens, radius=[r if r else 1.0 for r in radii], budget=budget, certificate=False, random_draws=0
    )
    return [entry.lower for entry in found.per_token]


def pgd(arguments: argparse.Namespace) -> None:
    """Same model, text, radius and number of gradients as captum's PGD in L2."""
    steps = arguments.steps
    model = open_model("minilm").base
    for output in ("last", "pooled"):
        phi = ws.PretrainedMap("minilm", output)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            X = phi.encode(reviews(4, arguments.seed, 66)[0], 65).X
            other = phi.encode(reviews(4, arguments.seed + 1, 66)[0], 65).X
        # Its best step length, tuned for it on another text.
        torch.manual_seed(0)
        shares = (0.1, 0.25, 0.5, 1.0)
        tuned = {
            share: sum(
                captum_search(model, output, other, k, float(other[k].norm()), steps, share) for k in (8, 24, 48)
            )
            for share in shares
        }
        share = max(tuned, key=lambda s: tuned[s])
        tokens = list(range(3, 63, 6))
        radii = X.norm(dim=1).tolist()
        theirs = [captum_search(model, output, X, k, radii[k], steps, share) for k in tokens]
        ours = our_search(phi, X, tokens, radii, steps)
        wins = sum(a > b for a, b in zip(ours, theirs, strict=True))
        print(f"{output}, 65 tokens, {steps} gradients a word, captum's step {share:g} of the radius:")
        for token, mine, peer in zip(tokens, ours, theirs, strict=True):
            print(f"  token {token:2d}  ours {mine:.4f}  captum {peer:.4f}")
        means = [sum(values) / len(values) for values in (ours, theirs)]
        print(f"  larger on {wins} of {len(tokens)}; mean {means[0]:.4f} against {means[1]:.4f}")
        began = time.perf_counter()
        our_search(phi, X, list(range(1, 64)), radii, steps)
        mine = time.perf_counter() - began
        began = time.perf_counter()
        for k in range(1, 64, 4):
            captum_search(model, output, X, k, radii[k], steps, share)
        peer = (time.perf_counter() - began) * 63 / 16
        began = time.perf_counter()
        our_search(phi, X, list(range(1, 64)), radii, steps)
        again = time.perf_counter() - began
        print(f"  all 63 words: ours {mine:.1f} and {again:.1f} s, captum {peer:.1f} s (16 of 63 run, scaled up): "
              f"{peer / mine:.2f}x and {peer / again:.2f}x")  # fmt: skip


def loop(arguments: argparse.Namespace) -> None:
    """2,000 vocabulary words at one place: one Hugging Face call each, against `substitutions`."""
    opened = open_model("minilm")
    model, tokenizer = opened.base, opened.encoder.tokenizer
    names = sorted(name for name in tokenizer.get_vocab() if name.isalpha() and len(name) > 2)
    order = torch.randperm(len(names), generator=torch.Generator().manual_seed(arguments.seed))[:2000].tolist()
    words = [names[k] for k in order]
    phi = ws.PretrainedMap("minilm", "pooled")
    hits = found_ten = 0
    for number, text in enumerate(reviews(4, arguments.seed, 66)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokens = phi.encode(text, 65)
        text = text[: max(end for _, end in tokens.offsets)]
        place = next(
            k for k in range(12, len(tokens.words)) if len(tokens.pieces[k]) == 1 and tokens.words[k].isalpha()
        )
        low, high = tokens.spans[place]
        began = time.perf_counter()
        every = ws.substitutions("minilm", text, place + 1, candidates=words, search="exhaustive", output="pooled")
        exhaustive = time.perf_counter() - began
        began = time.perf_counter()
        few = ws.substitutions(
            "minilm", text, place + 1, candidates=words, budget="quick", search="guided", output="pooled"
        )
        guided = time.perf_counter() - began
        began = time.perf_counter()
        with torch.no_grad():
            base = model(**tokenizer(text, return_tensors="pt")).last_hidden_state[0].mean(0)
            best, changes = "", {}
            for word in words[:: 1 if number == 0 else 20]:
                new = (
                    model(**tokenizer(text[:low] + word + text[high:], return_tensors="pt"))
                    .last_hidden_state[0]
                    .mean(0)
                )
                changes[word] = float((new - base).norm() / base.norm())
        looped = (time.perf_counter() - began) * len(words) / len(changes)
        best = max(changes, key=lambda word: changes[word])
        hits += few.best.after == every.best.after
        found_ten += len({i.after for i in few.top} & {i.after for i in every.top})
        scaled = "" if number == 0 else " (scaled up)"
        print(f"{len(tokens)} tokens, {tokens.words[place]!r}: loop {looped:.1f} s{scaled}")
        print(
            f"  all tried: {exhaustive:.1f} s, {looped / exhaustive:.1f}x; {every.best.after!r} {every.best.change:.4f}"
        )
        print(f"  guided: {guided:.1f} s, {looped / guided:.1f}x; {few.best.after!r} {few.best.change:.4f}")
        if number == 0:
            print(f"  loop: {best!r} {changes[best]:.4f}")
    print(f"guided found the best word in {hits} of 4, and {found_ten} of 40 in the top tens")


def tangent(arguments: argparse.Namespace) -> None:
    """How well a first-order score, and the guided search, find the best of 2,000 words; three reviews, two places."""
    model = open_model("minilm").base
    tokenizer = open_model("minilm").encoder.tokenizer
    vocabulary = [number for name, number in tokenizer.get_vocab().items() if name.isalpha() and len(name) > 2]
    generator = torch.Generator().manual_seed(arguments.seed)
    hits, worst = 0, 1.0
    for text in reviews(4, 3, 66)[:3]:
        ids = torch.tensor(tokenizer(text, truncation=True, max_length=65)["input_ids"])
        for place in (7, 33):
            chosen = torch.tensor(vocabulary)[torch.randperm(len(vocabulary), generator=generator)[:2000]]
            texts = ids.repeat(2000, 1)
            texts[:, place] = chosen
            with torch.no_grad():
                rows = model.embeddings(ids[None])
                moves = torch.cat([model.embeddings(part)[:, place] for part in texts.split(100)]) - rows[0, place]
                states = torch.cat([model(part).last_hidden_state for part in texts.split(50)])
                base = model(ids[None]).last_hidden_state
            points = model.get_input_embeddings().weight[chosen]
            for output, take in (("last", lambda x: x.flatten(1)), ("pooled", lambda x: x.mean(1))):
                changes = (take(states) - take(base)).norm(dim=1) / take(base).norm()
                free = rows.repeat(32, 1, 1).requires_grad_(True)
                made = take(model.encoder(free).last_hidden_state)
                probes = torch.randn(made.shape, generator=generator)
                (slopes,) = torch.autograd.grad((made * probes).sum(), free)
                score = (moves @ slopes[:, place].T).norm(dim=1)
                ranks = torch.stack([score, changes]).argsort(1).argsort(1).double()
                rank = int((score > score[changes.argmax()]).sum()) + 1
                for draw in range(3):
                    found = largest(points, lambda part, c=changes: c[part].tolist(), 200, draw)
                    share = max(found.values()) / float(changes.max())
                    hits, worst = hits + (share == 1), min(worst, share)
                correlation = float(torch.corrcoef(ranks)[0, 1])
                print(f"{output} at {place}: rank correlation {correlation:.2f}, the best word has rank {rank}")
    print(f"guided, 200 evaluations: the best of 2,000 in {hits} of 36 runs; at least {worst:.3f} of its change")


def layer_curves(arguments: argparse.Namespace) -> None:
    """Ten reviews of 128 tokens, word 42: means over reviews, and whether the order holds at every layer."""
    found = []
    for text in reviews(10, arguments.seed, 130):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.append(ws.layer_profile("minilm", text, 42, max_tokens=128))
    print("layer  searched  attracting  noise  real word  (means of 10)")
    for layer in range(7):
        means = [
            sum(curve[layer] for curve in curves) / 10
            for curves in (
                [p.searched for p in found],
                [p.attracting for p in found],
                [p.noise for p in found],
            )
        ]
        real = [p.real_word[layer] for p in found if p.real_word is not None]
        print(
            f"{layer:5d}  "
            + "  ".join(f"{m:.4f}" for m in means)
            + f"  {sum(real) / max(1, len(real)):.4f} ({len(real)})"
        )
    ordered = [all(p.searched[k] >= p.attracting[k] >= p.noise[k] for k in range(1, 7)) for p in found]
    print(f"searched >= attracting >= noise at every layer from 1 on: {sum(ordered)} of 10 reviews")


def heads(arguments: argparse.Namespace) -> None:
    """Mass on word 42 by head of layer 1: as it is, by the closed form, by ascent; means over ten reviews."""
    phi = ws.PretrainedMap("minilm")
    rows = []
    for text in reviews(10, arguments.seed, 130):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tokens = phi.encode(text, 128)
        moving = tokens.pieces[41]
        X = tokens.X.double()
        drawn = draw_attention(Attraction(phi.model, X, moving), float(X[list(moving)].norm(dim=1).max()))
        rows.append((drawn.plain, drawn.closed, drawn.found))
    plain, closed, found = (torch.stack(part) for part in zip(*rows, strict=True))
    for head in range(plain.shape[1]):
        name = "mean" if head == plain.shape[1] - 1 else str(head + 1)
        print(f"head {name:>4}: {plain[:, head].mean():.3f}  {closed[:, head].mean():.3f}  {found[:, head].mean():.3f}")
    print(f"ascent above the closed form: {int((found > closed)[:, :-1].sum())} of {found[:, :-1].numel()} heads")


def decisive(arguments: argparse.Namespace) -> None:
    """Twenty sentences with one decisive word: its rank by what the list of antonyms, and the vocabulary, can do."""
    data = files("wordsway.datasets") / "bundled"
    lines = (data / "antonyms.txt").read_text(encoding="utf-8").splitlines()
    words = [line for line in lines if line and not line.startswith("#")]
    rows = list(csv.DictReader((data / "decisive.csv").read_text(encoding="utf-8").splitlines()))
    top, whole, flips = 0, 0, 0
    for row in rows:
        ranks = []
        for candidates in (words, None):
            found = ws.substitutions("sentiment", row["text"], candidates=candidates, top=1, budget="quick")
            order = [item.word for item in found.ranking]
            ranks.append(order.index(int(row["number"])) + 1)
            if candidates is not None:
                flips += any(one.flips for one in found.tried if one.word == int(row["number"]))
        top, whole = top + (ranks[0] <= 3), whole + (ranks[1] <= 3)
        print(f"{row['word']:>14}: rank {ranks[0]} of {len(order)} by the list, {ranks[1]} by the vocabulary")
    print(f"in the top three: {top} of {len(rows)} by the list, {whole} by the vocabulary; the list flips {flips}")


def bounds(arguments: argparse.Namespace) -> None:
    """The proven bound of `last` against the search, at radius 1, and the seconds of a core that it takes."""
    phi = ws.PretrainedMap("minilm", "last")
    certify(phi.view(phi.encode("The first text of all takes longer.").X, [1]), 1.0)
    for length, count in ((8, 3), (32, 3), (128, 1)):
        if length < 100:
            texts = ws.load_texts("sample", count=count, seed=arguments.seed, at_least=length + 2, balance=False).texts
        else:  # the sample's are shorter
            texts = (" ".join(ws.load_texts("sample", count=24, seed=arguments.seed).texts),)
        for text in texts:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                X = phi.encode(text, length).X
            tokens = sorted({1, length // 2, length - 2})
            prepared = phi.prepare(X.double())
            views = [prepared.view([token], dtype=torch.float32) for token in tokens]
            seconds, upper = [], math.inf  # one bound for all words
            for view in views:
                began = time.process_time()
                upper = certify(view, 1.0).upper or math.inf
                seconds.append(time.process_time() - began)
            radii = X.norm(dim=1).tolist()
            found = ws.word_sensitivity(phi, X, tokens, radius=radii, certificate=False, random_draws=0)
            ratios = [upper / entry.lower for entry in found.per_token]
            print(f"{length:4d} tokens: upper / lower {min(ratios):.2f} to {max(ratios):.2f}; the bound took "
                  f"{seconds[0]:.3f} s for the first word, {max(seconds[1:]):.3f} s for others")  # fmt: skip


JOBS: dict[str, Callable[[argparse.Namespace], None]] = {
    "pgd": pgd,
    "loop": loop,
    "tangent": tangent,
    "reviews": layer_curves,
    "heads": heads,
    "decisive": decisive,
    "bounds": bounds,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", choices=[[], *JOBS], default=[])
    parser.add_argument("--seed", type=int, default=100)
    parser.add_argument("--steps", type=int, default=50)
    arguments = parser.parse_args()
    for job in arguments.jobs or list(JOBS):
        print(f"== {job}", flush=True)
        JOBS[job](arguments)


if __name__ == "__main__":
    main()
