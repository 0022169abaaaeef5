"""The pictures of concepts.md and flip.md, from real measurements: `python docs/make_pictures.py` (some minutes)."""

from pathlib import Path

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import wordsway as ws
from wordsway.measures.results import RandomChange

HERE = Path(__file__).parent
TEXT = "The food was good, but the waiter was rude."
REVIEW = "The movie was wonderful and I loved every minute of it."
BLUE, ORANGE, GREY = "#2166ac", "#d95f02", "#777777"


def attention(X: torch.Tensor, W: torch.Tensor) -> torch.Tensor:
    """Weights of one softmax attention layer, by the plain formula."""
    return torch.softmax(X @ W @ X.T / X.shape[1] ** 0.5, -1)


def capture() -> Figure:
    """Where all rows look before and after the move that the search found for one word."""
    tokens = ws.encode(TEXT)
    X = tokens.X.double()
    d = X.shape[1]
    W = torch.randn(d, d, generator=torch.Generator().manual_seed(0), dtype=torch.float64) / d**0.5
    phi = ws.RandomAttention().from_weights(W)
    place = list(tokens.tokens).index("rude")
    found = ws.word_sensitivity(phi, X, token=place)
    after = X.clone()
    after[place] += found.delta.reshape(-1).double()
    change = float((attention(after, W) @ after - attention(X, W) @ X).norm() / (attention(X, W) @ X).norm())
    assert abs(change - found.lower) < 1e-6  # the picture is of what was measured
    figure = Figure(figsize=(9, 4.3), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    names = list(tokens.tokens)
    image = None
    for ax, rows, title in zip(axes, (X, after), ("as it is", f"after one move of “{names[place]}”"), strict=True):
        image = ax.imshow(attention(rows, W), vmin=0, vmax=1, cmap="Blues")
        ax.set_xticks(range(len(names)), names, rotation=60, ha="right")
        ax.set_yticks(range(len(names)), names)
        ax.set_title(title)
        ax.set_xlabel("looks at")
    axes[0].set_ylabel("this token")
    assert image is not None
    figure.colorbar(image, ax=axes, label="attention weight", shrink=0.85)
    figure.suptitle(f"The features change by {found.lower:.2f} times their norm", fontsize=11)
    return figure


def against_length() -> Figure:
    """Worst and average case of random features and attention, against the length of the text."""
    lengths, d = [5, 10, 20, 40, 80, 160], 192
    figure = Figure(figsize=(7.5, 3.8), layout="constrained")
    ax = figure.subplots()
    for name, color, title in (("raf", ORANGE, "attention"), ("rf", BLUE, "random features")):
        worst, average = [], []
        for n in lengths:
            X = ws.synthetic_tokens(n, d, seed=1)
            found = ws.word_sensitivity(ws.named_map(name, n, d, 1), X, token=0, certificate=False)
            assert found.random is not None
            worst.append(found.lower)
            average.append(found.random.mean)
        ax.loglog(lengths, worst, "o-", color=color, label=f"{title}: worst move found")
        ax.loglog(lengths, average, "o--", color=color, alpha=0.6, label=f"{title}: a random move, on average")
    ax.set_xticks(lengths, [str(n) for n in lengths])
    ax.set_yticks([0.05, 0.1, 0.2, 0.5, 1, 2, 4], ["0.05", "0.1", "0.2", "0.5", "1", "2", "4"])
    ax.minorticks_off()
    ax.axhline(1, color=GREY, lw=0.8)
    ax.annotate("as large as the features themselves", (lengths[0], 1.06), color=GREY, fontsize=8.5)
    ax.set_xlabel("tokens in the text, n")
    ax.set_ylabel("change of the features, relative")
    ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False, fontsize=9)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    return figure


def number_line() -> Figure:
    """Random moves, what was found, and what is impossible, for one word and two maps."""
    X = ws.encode("I love her smile").X
    figure = Figure(figsize=(8.5, 3.4), layout="constrained")
    for ax, (name, title) in zip(
        figure.subplots(2, 1, sharex=True), (("raf", "attention"), ("rf", "random features")), strict=True
    ):
        found = ws.word_sensitivity(ws.named_map(name, len(X), X.shape[1], 0), X, token=4)
        assert found.upper is not None and found.random is not None
        draw_line(ax, found.lower, found.upper, found.random)
        ax.set_title(f"{title}: the word “smile” in “I love her smile”", loc="left", fontsize=10)
    figure.axes[-1].set_xlabel("change of the features, in units of their own norm")
    return figure


def draw_line(ax: Axes, lower: float, upper: float, random: RandomChange) -> None:
    mean, low, high = random.mean, random.quantiles["0.05"], random.quantiles["0.95"]
    end = 4.3
    ax.axvspan(upper, end, color=GREY, alpha=0.25, lw=0)
    ax.axvspan(lower, upper, color=ORANGE, alpha=0.45, lw=0)
    ax.plot([low, high], [0, 0], color=BLUE, lw=7, solid_capstyle="butt", alpha=0.45)
    ax.plot([mean], [0], "o", color=BLUE)
    ax.axvline(lower, color=ORANGE, lw=2)
    ax.axvline(upper, color=GREY, lw=2)
    ax.annotate(f"random\nmoves {mean:.2f}", (mean, 0.18), color=BLUE, ha="center", fontsize=8.5)
    if lower > 2:
        ax.annotate(f"at least {lower:.2f}\n(found)", (lower - 0.04, 0.18), ha="right", fontsize=8.5)
        ax.annotate(f"at most {upper:.2f}\n(certified)", (upper + 0.04, 0.18), fontsize=8.5)
    else:
        ax.annotate(
            f"at least {lower:.2f} (found), at most {upper:.2f} (certified)", (upper + 0.04, 0.25), fontsize=8.5
        )
        ax.annotate("impossible", (2.6, -0.5), color="#444444", fontsize=9, ha="center")
    ax.set_xlim(0, end)
    ax.set_ylim(-0.8, 1)
    ax.set_yticks([])
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)


def flips() -> Figure:
    """The smallest move of each word that changes the prediction of the bundled classifier."""
    return ws.flip_radius("sentiment", REVIEW).plot().figure


def profile() -> Figure:
    """The change of the classifier's logits against the radius, a line a word."""
    return ws.radius_profile("sentiment", REVIEW, output="logits").plot().figure


PICTURES = {
    "capture": capture,
    "against-n": against_length,
    "bounds": number_line,
    "flip": flips,
    "profile": profile,
}

if __name__ == "__main__":
    for name, make in PICTURES.items():
        make().savefig(HERE / f"{name}.png", dpi=130)
