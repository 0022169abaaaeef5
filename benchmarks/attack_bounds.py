"""Attack the upper bounds of pre-trained models: Adam and L-BFGS against `result.upper`, on whole sentences.

    python benchmarks/attack_bounds.py --source FILE --out attacks.jsonl    minilm, sentiment, mpnet; 20 texts x 3 words
    python benchmarks/attack_bounds.py --out attacks.jsonl --gguf FILE      a causal model too, such as smollm2
    python benchmarks/attack_bounds.py --texts 2 --words 1 --gradients 200 --models minilm --dtype bfloat16

The words of a text and all radii are attacked in common batches. Each text's outcome is a line of `--out`; a run that
was stopped goes on where it ended. Gradients may come in half precision (WORDSWAY_HALF=0: never); every move found is
evaluated again in the model's own precision. Prints for each model and output: attacks, the largest share of the bound
that one reached at each radius (in units of the word's own norm), and values above it, of which there must be none
(else it ends with 1).
"""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

import wordsway as ws
from wordsway.certificates.certify import certify
from wordsway.models.loading.load import open_model
from wordsway.testing.attack import attack_all

OUTPUTS = {"minilm": ["last", "pooled", "layer:2"], "mpnet": ["last", "pooled", "layer:2"], "sentiment": ["logits"]}
CAUSAL = ["last", "pooled", "layer:2", "logits"]  # layer:2 has no bound there, which is shown
RADII = (0.01, 0.1, 0.5, 1.0, 5.0)


def attack_text(phi: ws.PretrainedMap, text: str, args: argparse.Namespace, seed: int) -> dict[str, Any]:
    """Attack some words of a text at all radii; returns bounds and values found, by word and radius."""
    encoded = phi.encode(text)
    prepared, pieces = phi.prepare(encoded.X.double()), [pieces[0] for pieces in encoded.pieces]
    tokens = [pieces[(2 * k + 1) * len(pieces) // (2 * args.words)] for k in range(args.words)]
    views = [prepared.view([token], dtype=torch.float32) for token in tokens]
    radii = torch.tensor(args.radii, dtype=torch.float64) * encoded.X[tokens].double().norm(dim=1)[:, None]
    bounds = [certify(view, float(sizes[-1])) for view, sizes in zip(views, radii, strict=True)]
    if bounds[0].upper is None:
        return {"reason": bounds[0].reason}
    changes = attack_all(phi, views, radii, args.gradients, seed)
    return {"length": len(encoded.X), "tokens": tokens, "upper": [bound.upper for bound in bounds],
            "found": changes.tolist()}  # fmt: skip


def summarise(name: str, output: str, outcomes: list[dict[str, Any]], radii: list[float]) -> int:
    """Print what came of one output of a model; returns the number of values above a bound."""
    if "reason" in outcomes[0]:
        print(f"{name:12} {output:8} no bound: {outcomes[0]['reason']}", flush=True)
        return 0
    found = torch.tensor([outcome["found"] for outcome in outcomes], dtype=torch.float64)
    shares = found / torch.tensor([outcome["upper"] for outcome in outcomes], dtype=torch.float64)[:, :, None]
    above = int((shares > 1).sum())
    largest = shares.amax((0, 1)).tolist()
    shown = " ".join(f"{radius:g}: {share:.3f}" for radius, share in zip(radii, largest, strict=True))
    print(f"{name:12} {output:8} {len(outcomes)} texts, {shares.numel():4} attacks, {above} above; largest share at "
          f"{shown}; {sum(outcome['seconds'] for outcome in outcomes):.0f} s", flush=True)  # fmt: skip
    return above


def attack_model(name: str, texts: list[str], args: argparse.Namespace) -> int:
    """Attack all outputs of a model, text by text; returns the number of values above a bound."""
    model, short = open_model(name), Path(name).name
    if args.dtype != "float32":
        head = model.head
        model = open_model(model.whole.to(getattr(torch, args.dtype)), model.encoder.tokenizer)
        model.head, model.classifies = head, model.classifies or head is not None
    maps = {output: ws.PretrainedMap(model, output) for output in args.outputs or OUTPUTS.get(name, CAUSAL)}
    settings = [short, args.dtype, args.words, args.gradients, args.radii]
    lines = args.out.read_text().splitlines() if args.out and args.out.exists() else []
    outcomes = {json.dumps(line["of"]): line for line in map(json.loads, lines)}
    wanted: dict[str, list[dict[str, Any]]] = {output: [] for output in maps}
    for number, text in enumerate(texts):
        for output, phi in maps.items():
            key = [*settings, output, text]
            if json.dumps(key) not in outcomes:
                began = time.perf_counter()
                line = {"of": key, **attack_text(phi, text, args, number), "seconds": time.perf_counter() - began}
                outcomes[json.dumps(key)] = line
                if args.out:
                    with args.out.open("a") as file:
                        file.write(json.dumps(line) + "\n")
            wanted[output].append(outcomes[json.dumps(key)])
    return sum(summarise(short, output, lines, args.radii) for output, lines in wanted.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="*", default=list(OUTPUTS))
    parser.add_argument("--outputs", nargs="+", help="instead of those that are usual for a model")
    parser.add_argument("--gguf", help="the file of a causal model")
    parser.add_argument("--source", default="sample", help="of texts: a file, or a name that load_texts knows")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--words", type=int, default=3, help="of each text")
    parser.add_argument("--at-least", type=int, default=8, help="tokens of each text, as minilm counts them")
    parser.add_argument("--tokens", type=int, default=20, help="of each text, at most")
    parser.add_argument("--gradients", type=int, default=1000, help="for each word, over all radii")
    parser.add_argument("--radii", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    parser.add_argument("--out", type=Path, help="a file of outcomes, which a later run goes on with")
    args = parser.parse_args()
    texts = ws.load_texts(
        args.source, count=args.texts, at_least=args.at_least, shorter_than=args.tokens + 1, balance=False
    ).texts
    names = [*args.models, *([args.gguf] if args.gguf else [])]
    sys.exit(1 if sum(attack_model(name, list(texts), args) for name in names) else 0)


if __name__ == "__main__":
    main()
