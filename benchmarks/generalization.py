"""Learning that one word flipped the label: `python benchmarks/generalization.py [JOB ...] [--out DIR] [--encoder E]`.

adam       the search against projected Adam over the dense map, 2,000 steps, n=120, d=768, ten instances
published  one simulation against the published way: features one text at a time, a pseudo-inverse, a D x D projector
margin     how far random features fall below (2 - gamma)^2, against n (bundled encoder)
growth     where time goes, against N, n and d
figure4    Err against gamma, all panels of the paper's Figure 4: tables, pictures, time and memory
figure5    the same with a penalty on gamma: Figure 5

Without a job: adam, published, margin, growth. Texts are IMDb reviews of fewer than 240 tokens, as in the paper, not
padded; the encoder is mpnet (d=768) where WORDSWAY_MODELS has it, else the bundled one (d=384).
"""

import argparse
import math
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

import wordsway as ws
from wordsway.datasets.training_sets import RealTask
from wordsway.maps.base import FeatureMap, moved
from wordsway.studies.estimates import fit_exponent
from wordsway.studies.figures.draw import save_figure
from wordsway.studies.figures.grid_figures import plot_flips
from wordsway.studies.generalize import FlipPoint, summarize

SIZES = (100, 700, 1300)


def peak_gb() -> float:
    """Of this process, or of the largest of those that it started."""
    parts = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(parts) * (1 if sys.platform == "darwin" else 1024) / 1e9


def reviews(encoder: str, count: int, n: int, seed: int) -> tuple[Tensor, Tensor, int]:
    """Text 0 is the one to flip."""
    task = RealTask.load("imdb", count, n, seed, encoder, 0, 240)
    return *task.texts(count + 1, n, None), task.token


def adam(learner: ws.Generalization, X: Tensor, y: int, out: ws.Flip, steps: int, rate: float) -> tuple[float, float]:
    """Projected Adam on the same question, through the plain map in float64: the least value it sees, its seconds."""
    phi = learner.phi
    base = phi(X).flatten()
    target = base if out.training == "finetune" else learner.readout.orthogonal(base)
    assert target is not None
    began = time.perf_counter()
    along, before = target / target.square().sum(), base @ learner.theta
    delta = torch.randn(1, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(out.seed))
    delta = (delta * (0.1 * out.radius / delta.norm())).requires_grad_(True)
    optimizer, best = torch.optim.Adam([delta], lr=rate), math.inf
    for _ in range(steps):
        optimizer.zero_grad()
        after = phi(moved(X, [out.token], delta)).flatten()
        F, told = after @ along, after @ learner.theta - before
        miss = before + told + F * (y - before) + y
        penalized = miss.square() + (out.penalty or 0.0) * told.square()
        loss = (F + 1).square() if out.objective == "align" else penalized
        best = min(best, float(loss.detach()))
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            delta *= min(1.0, out.radius / float(delta.norm()))
    return best, time.perf_counter() - began


def job_adam(encoder: str, out: Path | None) -> None:
    """Half of the instances align, half penalise; both ways of training; RAF and ReLU-RAF in turns."""
    n, N = 120, 400
    questions = [(t, o) for o in ("align", "penalized") for t in ("finetune", "retrain")]
    print("| map | training | objective | ours | Adam | ours, s | Adam, s | times faster |\n" + "|---" * 8 + "|")
    wins, ratios = 0, []
    for seed in range(10):
        X, y, token = reviews(encoder, N, n, 2000 + seed)
        name = ("raf", "relu-raf")[seed % 2]
        learner = ws.Generalization(ws.named_map(name, n, X.shape[2], 2000 + seed), X[1:], y[1:])
        training, objective = questions[seed // 2 % 4]
        question: dict[str, Any] = {"training": training, "objective": objective, "seed": seed}
        if seed == 0:
            learner.flip(X[1], int(y[1]), token)  # warm up: imports of the optimiser
        flip = learner.flip(X[0], int(y[0]), token, **question)
        best, slow = adam(learner, X[0], int(y[0]), flip, 2000, 0.1)
        seconds = (flip.seconds + learner.flip(X[0], int(y[0]), token, **question).seconds) / 2
        wins += flip.value <= best + 1e-12
        ratios.append(slow / seconds)
        print(
            f"| {name} | {training} | {objective} | {flip.value:.5f} | {best:.5f} | {seconds:.3f} | {slow:.1f} "
            f"| {ratios[-1]:.0f} |",
            flush=True,
        )
    print(f"\nno larger on {wins} of 10; times faster: median {statistics.median(ratios):.0f}, least {min(ratios):.0f}")


def job_published(encoder: str, out: Path | None) -> None:
    """n=40 is the largest length whose D x D projector (7.5 GB at d=768) fits beside its temporaries."""
    N = 1300
    for n in (40, 120):
        X, y, token = reviews(encoder, N, n, 0)
        D = X[0].numel()
        phi = ws.RandomAttention().sample(d=X.shape[2], seed=0)
        began = time.perf_counter()
        learner = ws.Generalization(phi, X[1:], y[1:])
        trained = time.perf_counter() - began
        learner.flip(X[1], int(y[1]), token)  # warm up
        flip = learner.flip(X[0], int(y[0]), token, training="retrain")
        ours = trained + flip.seconds
        print(f"ours, n={n}, D={D}: training {trained:.1f} s, search {flip.seconds:.2f} s, value {flip.value:.4f}")
        if n > 40:
            print(f"published way at D={D}: the projector alone takes {8 * D * D / 1e9:.0f} GB; not run")
            continue
        steps, theirs = 50 * n, published_way(phi, X, y)
        search = theirs["step"] * steps
        total = theirs["features"] + theirs["pinv"] + theirs["projector"] + search
        print(f"published way, n={n}: " + ", ".join(f"{key} {value:.2f} s" for key, value in theirs.items()))
        print(f"  with {steps} steps (measured: 20): {total:.0f} s; {total / ours:.0f} times ours", flush=True)


def published_way(phi: FeatureMap, X: Tensor, y: Tensor) -> dict[str, float]:
    seconds, began = {}, time.perf_counter()

    def lap(name: str) -> None:
        nonlocal began
        now = time.perf_counter()
        seconds[name], began = now - began, now

    Phi = torch.stack([phi(text).flatten() for text in X[1:]])
    lap("features")
    inverse = torch.linalg.pinv(Phi)
    theta = inverse @ y[1:]
    lap("pinv")
    projector = torch.eye(Phi.shape[1], dtype=Phi.dtype)
    projector.addmm_(inverse, Phi, alpha=-1)
    lap("projector")
    base = phi(X[0]).flatten()
    target = projector @ base
    assert float((Phi @ theta - y[1:]).abs().max()) < 1e-8
    began = time.perf_counter()
    delta = torch.full((1, X.shape[2]), 0.1, dtype=torch.float64)
    for _ in range(20):
        delta = delta.detach().requires_grad_(True)
        after = phi(moved(X[0], [1], delta)).flatten()
        F = (projector @ after) @ target / target.square().sum()
        (gradient,) = torch.autograd.grad((F + 1).square(), delta)
        delta = delta - gradient
    lap("step")
    seconds["step"] /= 20
    return seconds


def job_margin(encoder: str, out: Path | None) -> None:
    """What sqrt(Err) lacks to 2 - gamma, over all objectives. It cannot be more than |1 - F| |y - f(X, theta*)|. Always
    with the bundled encoder: at its d, n=80 is quick."""
    lengths = (10, 20, 40, 80)
    plan = ws.FlipPlan(
        maps=("rf",),
        n=lengths,
        train_sizes=(100,),
        objectives=("align", "error", "penalized"),
        trials=10,
        d=(None,),
        data="imdb",
        seed=1,
    )
    points = ws.generalize(plan, out / "margin" if out else None, engine="processes").points
    print("| n | training | largest 2 - gamma - sqrt(Err) | largest 1 - F |\n|---|---|---|---|")
    for training in plan.trainings:
        largest = []
        for n in lengths:
            chosen = [p for p in points if (p.n, p.training) == (n, training)]
            largest.append(max(2 - p.gamma - math.sqrt(p.err) for p in chosen))
            print(f"| {n} | {training} | {largest[-1]:.4f} | {max(1 - p.alignment for p in chosen):.4f} |")
        print(f"{training}: margin ~ n^{fit_exponent(lengths, largest)[0]:.2f}\n", flush=True)


def job_growth(encoder: str, out: Path | None) -> None:
    print("| map | d | n | N | features, s | Gram, s | solve, s | update, s | search, s |\n" + "|---" * 9 + "|")
    cells = [(120, N, d) for N in SIZES for d in (None,)] + [(40, 1300, None), (120, 1300, 384)]
    for name in ("raf", "rf"):
        for n, N, d in cells:
            n = n if name == "raf" else n // 3
            X, y, token = reviews(encoder, N, n, 0)
            X = X if d is None else torch.stack([ws.normalize_rows(text) for text in X[:, :, :d]])
            learner = ws.Generalization(ws.named_map(name, n, X.shape[2], 0), X[1:], y[1:])
            learner.flip(X[0], int(y[0]), token)
            flip = learner.flip(X[0], int(y[0]), token, objective="penalized", training="retrain")
            parts = " | ".join(f"{learner.seconds[part]:.2f}" for part in ("features", "gram", "solve"))
            print(
                f"| {name} | {X.shape[2]} | {n} | {N} | {parts} | {flip.training_seconds:.2f} | {flip.seconds:.2f} |",
                flush=True,
            )


def figure(name: str, plans: Sequence[ws.FlipPlan], out: Path | None) -> None:
    began, points = time.perf_counter(), []
    for plan in plans:
        folder = out / f"{name}-{plan.maps[0]}" if out else None
        result = ws.generalize(plan, folder, engine="processes")
        points += result.points
        if folder:
            print("written:", *save_figure(plot_flips(result, plan.maps[0]), folder, f"flips-{plan.maps[0]}"))
    minutes = (time.perf_counter() - began) / 60
    print(f"\n{name}: {len(points)} points in {minutes:.1f} min, peak {peak_gb():.1f} GB a process\n")
    split(points)
    print("| map | n | N | training | objective | gamma | Err | F | gamma < 0.5 | of these below half |")
    print("|---" * 10 + "|")
    for g in summarize(points):
        objective = g.objective if g.penalty is None else f"{g.objective} {g.penalty:g}"
        print(
            f"| {g.map} | {g.n} | {g.train_size} | {g.training} | {objective} | {g.gamma:.3f} | {g.err:.4f} "
            f"| {g.alignment:.3f} | {g.close} | {g.below} |"
        )
    print("\n| map | training | points with gamma < 0.5 | below half of (2 - gamma)^2 | share | largest shortfall |")
    print("|---" * 6 + "|")
    for g in summarize([merged(p) for p in points]):
        share = f"{g.below / g.close:.0%}" if g.close else "-"
        print(f"| {g.map} | {g.training} | {g.close} of {g.trials} | {g.below} | {share} | {g.shortfall:.3f} |")


def merged(p: FlipPoint) -> FlipPoint:
    """The point without what tells it apart from others of its map and training."""
    values = {**vars(p), "n": 0, "train_size": 0, "objective": "all", "penalty": None}
    return FlipPoint(**values)


def split(points: Sequence[FlipPoint]) -> None:
    cells = {(p.map, p.d, p.n, p.train_size, p.trial): p for p in points}.values()
    parts: dict[str, float] = {
        part: sum(getattr(p, f"{part}_seconds") for p in cells) for part in ("features", "gram", "solve")
    }
    parts["update"] = sum(p.update_seconds for p in points)
    parts["search"] = sum(p.search_seconds for p in points)
    print("seconds: " + ", ".join(f"{part} {value:.0f}" for part, value in parts.items()) + "; the rest is embedding\n")


def plan(map: str, n: tuple[int, ...], encoder: str, **options: Any) -> ws.FlipPlan:
    common: dict[str, Any] = {"trials": 10, "d": (None,), "data": "imdb", "encoder": encoder, "shorter_than": 240}
    return ws.FlipPlan(maps=(map,), n=n, **{**common, **options})


def job_figure4(encoder: str, out: Path | None) -> None:
    panels = (("rf", (40,)), ("raf", (40, 120)), ("relu-raf", (120,)))
    figure("figure4", [plan(map, n, encoder, train_sizes=SIZES) for map, n in panels], out)


def job_figure5(encoder: str, out: Path | None) -> None:
    options: dict[str, Any] = {"train_sizes": (400,), "objectives": ("penalized",), "penalties": (1.0, 0.1, 0.01)}
    figure("figure5", [plan(map, (40, 120), encoder, **options) for map in ("raf", "relu-raf")], out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    jobs = {name.removeprefix("job_"): function for name, function in globals().items() if name.startswith("job_")}
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=", ".join(jobs))
    parser.add_argument("--out", type=Path)
    models = os.environ.get("WORDSWAY_MODELS")
    here = models is not None and (Path(models).expanduser() / "mpnet").is_dir()
    parser.add_argument("--encoder", default="mpnet" if here else "minilm")
    options = parser.parse_args()
    for name in options.jobs or ("adam", "published", "margin", "growth"):
        if name not in jobs:
            parser.error(f"there is no job {name!r}; use: {', '.join(jobs)}")
        print(f"\n## {name}, encoder {options.encoder}\n", flush=True)
        jobs[name](options.encoder, options.out)


if __name__ == "__main__":
    main()
