"""Speed, memory and tightness against the published algorithm: `make bench`, or `python benchmarks/bench.py JOB ...`.

The baseline is the published way: the dense map in float64, projected gradient steps on -sqrt(mean squared change),
token 0, from a perturbation of 0.1 per coordinate, with the ball around the true token. Ratios compare runs made one
after the other on the same text and weights. Every job runs in a process of its own, so that peak memory is the job's.
"""

import argparse
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

JOBS: dict[str, Callable[[argparse.Namespace], list[dict[str, Any]]]] = {}


def job(function: Callable[[argparse.Namespace], list[dict[str, Any]]]) -> Callable[..., list[dict[str, Any]]]:
    JOBS[function.__name__] = function
    return function


def timed(function: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return function(), time.perf_counter() - began


def peak_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9


def baseline(
    phi: Callable[[Any], Any], X: Any, rate: float, steps: int, part: int | None = None
) -> tuple[float, float]:
    """The published search: its best relative change, and its seconds for all `steps` (scaled up from a `part`)."""
    import torch

    d = X.shape[1]
    base = phi(X)
    delta, best = torch.full((d,), 0.1, dtype=torch.float64), 0.0
    began = time.perf_counter()
    for _ in range(part or steps):
        delta.requires_grad_(True)
        change = phi(torch.cat([(X[0] + delta)[None], X[1:]])) - base
        (gradient,) = torch.autograd.grad(-change.square().mean().sqrt(), delta)
        best = max(best, float(change.detach().norm() / base.norm()))
        delta = delta.detach() - rate * gradient
        delta = delta * min(1.0, math.sqrt(d) / float(delta.norm()))
    seconds = time.perf_counter() - began
    return best, seconds * steps / (part or steps)


def ours(phi: Any, X: Any, **options: Any) -> tuple[Any, float]:
    """The search alone, with its check in float64; no certificate, no random deltas."""
    import wordsway as ws

    return timed(
        lambda: ws.word_sensitivity(phi, X, **{"token": 0, "certificate": False, "random_draws": 0, **options})
    )


def attention_against_baseline(n: int, score: str, seeds: int, full: int, part: int) -> list[dict[str, Any]]:
    """Same X and W. The first `full` seeds run the baseline to its end; for the others only its speed is sampled."""
    import wordsway as ws

    rows: list[dict[str, Any]] = []
    ours(ws.RandomAttention(score).sample(d=768), ws.synthetic_tokens(n, 768))  # warm up
    for seed in range(seeds):
        X = ws.synthetic_tokens(n, 768, seed=seed)
        phi = ws.RandomAttention(score).sample(d=768, seed=seed)
        r, seconds = ours(phi, X)
        reached, slow = baseline(phi, X, 10.0, 50 * n, None if seed < full else part)
        _, again = ours(phi, X)
        rows.append({
            "seed": seed,
            "S": r.lower,
            "baseline S": reached if seed < full else None,
            "seconds": (seconds + again) / 2,
            "baseline seconds": slow,
            "times faster": slow / ((seconds + again) / 2),
        })  # fmt: skip
        print(json.dumps(rows[-1]), file=sys.stderr, flush=True)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    compared = [row for row in rows if row["baseline S"] is not None]
    wins = sum(row["S"] >= row["baseline S"] * (1 - 1e-9) for row in compared)
    return {
        "S >= baseline": f"{wins} of {len(compared)} seeds",
        "mean S": round(statistics.fmean(row["S"] for row in compared), 4),
        "mean baseline S": round(statistics.fmean(row["baseline S"] for row in compared), 4),
        "seconds": round(statistics.median(row["seconds"] for row in rows), 3),
        "baseline seconds": round(statistics.median(row["baseline seconds"] for row in rows), 1),
        "times faster": round(statistics.median(row["times faster"] for row in rows)),
    }


@job
def raf_100(options: argparse.Namespace) -> list[dict[str, Any]]:
    """softmax RAF, n=100, d=768, same X and W"""
    return [summary(attention_against_baseline(100, "softmax", 10, 10 if options.full else 3, 60))]


@job
def raf_250(options: argparse.Namespace) -> list[dict[str, Any]]:
    """softmax RAF, n=250, d=768, same X and W"""
    return [summary(attention_against_baseline(250, "softmax", 10, 10 if options.full else 1, 60))]


@job
def relu_raf_250(options: argparse.Namespace) -> list[dict[str, Any]]:
    """ReLU-RAF, n=250, d=768, same X and W"""
    return [summary(attention_against_baseline(250, "relu", 5, 3 if options.full else 1, 60))]


@job
def raf_250_all(options: argparse.Namespace) -> list[dict[str, Any]]:
    """softmax RAF, n=250, d=768, all 250 tokens"""
    import wordsway as ws

    X, phi = ws.synthetic_tokens(250, 768), ws.RandomAttention().sample(d=768)
    _, search = ours(phi, X, token="all")
    r, both = timed(lambda: ws.word_sensitivity(phi, X, "all"))
    return [{"S": round(r.lower, 4), "seconds": round(search, 1), "with certificates": round(both, 1)}]


@job
def raf_20000(options: argparse.Namespace) -> list[dict[str, Any]]:
    """softmax RAF, n=20,000, d=768, one token"""
    import wordsway as ws

    X, phi = ws.synthetic_tokens(20_000, 768), ws.RandomAttention().sample(d=768)
    r, seconds = timed(lambda: ws.word_sensitivity(phi, X, 0))
    return [{"S": round(r.lower, 4), "upper": round(r.upper, 4), "seconds": round(seconds, 1), "checked": r.checked}]


@job
def rf_20_same_weights(options: argparse.Namespace) -> list[dict[str, Any]]:
    """RF, n=20, d=384, k=D: the same V for both, then our own lazy V"""
    import torch

    import wordsway as ws

    rows = []
    for seed in range(10 if options.full else 3):
        X = ws.synthetic_tokens(20, 384, seed=seed)
        drawn = ws.RandomFeatures().sample(n=20, d=384, seed=seed, lazy=False)
        V = drawn.first.to_dense().double()
        phi = ws.RandomFeatures.from_weights([V])
        ours(phi, X)
        r, given = ours(phi, X)
        reached, slow = baseline(lambda text, V=V: torch.relu(V @ text.flatten()), X, 100.0, 300)
        lazily = [ours(ws.RandomFeatures().sample(n=20, d=384, seed=seed + 100 + k), X) for k in range(5)]
        rows.append((r.lower, reached, slow, given, statistics.median(t for _, t in lazily), lazily[0][0].lower))
    mean = [statistics.fmean(column) for column in zip(*rows, strict=True)]
    return [{
        "S >= baseline": f"{sum(row[0] >= row[1] for row in rows)} of {len(rows)} seeds",
        "mean S": round(mean[0], 4),
        "mean baseline S": round(mean[1], 4),
        "mean S, lazy V": round(mean[5], 4),
        "baseline seconds": round(mean[2], 1),
        "times faster, same V": round(mean[2] / mean[3]),
        "times faster, lazy V": round(mean[2] / mean[4]),
    }]  # fmt: skip


def lazy_features(n: int, depth: int) -> list[dict[str, Any]]:
    import wordsway as ws

    def everything(n: int) -> Any:
        phi = ws.RandomFeatures(depth).sample(n=n, d=768)
        return ws.word_sensitivity(phi, ws.synthetic_tokens(n, 768), 0, random_draws=0)

    everything(2)  # imports and warm-up
    r, seconds = timed(lambda: everything(n))
    dense = 8.0 * (n * 768) ** 2 * depth
    found = {"S": round(r.lower, 5), "upper / S": round(r.upper / r.lower, 3), "seconds": round(seconds, 2)}
    return [{**found, "dense GB": round(dense / 1e9)}]


@job
def rf_150(options: argparse.Namespace) -> list[dict[str, Any]]:
    """RF, n=150, d=768, k=D"""
    return lazy_features(150, 1)


@job
def rf_2000(options: argparse.Namespace) -> list[dict[str, Any]]:
    """RF, n=2,000, d=768, k=D"""
    return lazy_features(2000, 1)


@job
def drf_8(options: argparse.Namespace) -> list[dict[str, Any]]:
    """DRF, L=8, n=80, d=768, all widths D"""
    return lazy_features(80, 8)


@job
def certificates(options: argparse.Namespace) -> list[dict[str, Any]]:
    """certificate / search at d=768, over seeds"""
    import wordsway as ws

    rows = []
    for name, n in (("rf", 150), ("raf", 100), ("raf", 250), ("relu-raf", 100), ("relu-raf", 250)):
        ratios, seconds = [], []
        for seed in range(10 if options.full else 4):
            X, phi = ws.synthetic_tokens(n, 768, seed=seed), ws.named_map(name, n, 768, seed=seed)
            r, took = timed(lambda phi=phi, X=X: ws.word_sensitivity(phi, X, 0, random_draws=0))
            ratios.append(r.upper / r.lower)
            seconds.append(took)
        spread = f"{min(ratios):.3f} to {max(ratios):.3f}"
        rows.append({"map": name, "n": n, "upper / lower": spread, "seconds": round(statistics.median(seconds), 2)})
    return rows


@job
def small_radius(options: argparse.Namespace) -> list[dict[str, Any]]:
    """certificate / search within small balls, d=64, over seeds"""
    import wordsway as ws

    rows = []
    for name, n, scales in (
        *(("raf", n, (0.003, 0.01, 0.1, 1.0)) for n in (20, 100, 250)),
        *((name, 250, (0.003, 0.01, 0.1, 1.0)) for name in ("sigmoid-raf", "softplus-raf", "relu-raf", "relu2-raf")),
    ):
        row: dict[str, Any] = {"map": name, "n": n}
        for scale in scales:
            ratios = []
            for seed in range(10 if options.full else 4):
                X, phi = ws.synthetic_tokens(n, 64, seed=seed), ws.named_map(name, n, 64, seed=seed)
                r = ws.word_sensitivity(phi, X, 0, radius=8 * scale, random_draws=0)
                assert r.upper is not None
                ratios.append(r.upper / r.lower)
            row[f"{scale} sqrt(d)"] = f"{min(ratios):.2f} to {max(ratios):.2f}"
        rows.append(row)
    return rows


@job
def predictions(options: argparse.Namespace) -> list[dict[str, Any]]:
    """search against theory.random_attention, means over seeds"""
    import wordsway as ws
    from wordsway.maps import theory

    rows = []
    for name, n, d, trials in (
        ("raf", 100, 64, 7), ("raf", 250, 64, 7), ("raf", 2000, 64, 7), ("raf", 5000, 64, 5), ("raf", 250, 768, 4),
        ("raf", 2000, 768, 3), ("relu-raf", 250, 64, 3), ("relu-raf", 2000, 64, 3), ("relu-raf", 5000, 64, 1),
        ("relu-raf", 250, 768, 2), ("relu-raf", 2000, 768, 1),
    ):  # fmt: skip
        values = []
        for seed in range(3 * trials if options.full else trials):
            X, phi = ws.synthetic_tokens(n, d, seed=seed), ws.named_map(name, n, d, seed=seed)
            values.append(ws.word_sensitivity(phi, X, 0, certificate=False, random_draws=0).lower)
        mean, predicted = (
            statistics.fmean(values),
            theory.random_attention(n, d, "softmax" if name == "raf" else "relu"),
        )
        row = {"map": name, "n": n, "d": d, "seeds": len(values), "found": f"{mean:.3g}"}
        rows.append(row | {"predicted": f"{predicted:.3g}", "predicted / found": round(predicted / mean, 2)})
    return rows


@job
def growth(options: argparse.Namespace) -> list[dict[str, Any]]:
    """How cost grows: fitted exponents of time"""
    import torch

    import wordsway as ws
    from wordsway.studies.estimates import fit_exponent

    def step_seconds(phi: Any, X: Any, repeats: int, batch: int) -> float:
        view = phi.view(X, [0], dtype=torch.float32)
        deltas = ws.synthetic_tokens(batch * repeats, X.shape[1], seed=1).float().reshape(repeats, batch, 1, -1)
        times = []
        for delta in deltas:
            delta = delta.requires_grad_(True)
            began = time.perf_counter()
            torch.autograd.grad(view.sq_norm(delta).sum(), delta)
            times.append(time.perf_counter() - began)
        return statistics.median(times[1:])

    lengths = [2000, 4000, 8000, 16000]
    attention = ws.RandomAttention().sample(d=384)
    raf = [step_seconds(attention, ws.synthetic_tokens(n, 384), 9, 8) for n in lengths]
    contexts = [100, 200, 400, 800]
    rf = []
    for n in contexts:
        X = ws.synthetic_tokens(n, 384)
        rf.append(timed(lambda n=n, X=X: ours(ws.RandomFeatures().sample(n=n, d=384), X))[1])
    return [
        {"what": "RAF step against n", "exponent": round(fit_exponent(lengths, raf)[0] or 0, 2), "expected": 1},
        {"what": "RF search against k", "exponent": round(fit_exponent(contexts, rf)[0] or 0, 2), "expected": 1},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("jobs", nargs="*", help=f"any of: {', '.join(JOBS)} (all of them by default)")
    parser.add_argument("--full", action="store_true", help="run the baseline to its end on every seed (over an hour)")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.jobs) - set(JOBS)
    if unknown:
        parser.error(f"unknown jobs: {', '.join(sorted(unknown))}")
    if options.here:
        rows = JOBS[options.jobs[0]](options)
        print(json.dumps({"rows": rows, "peak GB": round(peak_gb(), 2)}))
        return
    for name in options.jobs or JOBS:
        command = [sys.executable, __file__, "--here", name, *(["--full"] if options.full else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        outcome = json.loads(done.stdout)
        print(f"\n{name}: {JOBS[name].__doc__}  (peak memory {outcome['peak GB']} GB)", flush=True)
        for row in outcome["rows"]:
            print("  " + "   ".join(f"{key}: {value}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
