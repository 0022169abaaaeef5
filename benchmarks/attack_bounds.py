"""Attack the upper bounds of pre-trained models: Adam and L-BFGS against `result.upper`, on reviews.

    python benchmarks/attack_bounds.py                                  minilm, sentiment, mpnet; 20 texts x 3 words
    python benchmarks/attack_bounds.py --gguf FILE                      a causal model too, such as smollm2
    python benchmarks/attack_bounds.py --texts 2 --words 1 --gradients 200 --models minilm --dtype bfloat16

Prints for each model and output: attacks, the largest share of the bound that one reached at each radius (in units of
the word's own norm), and values above it, of which there must be none (else it ends with 1).
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from typing import Any

import torch

import wordsway as ws
from wordsway.certificates.certify import certify
from wordsway.models.loading.load import open_model
from wordsway.testing.attack import attack

OUTPUTS = {"minilm": ["last", "pooled", "layer:2"], "mpnet": ["last", "pooled", "layer:2"], "sentiment": ["logits"]}
CAUSAL = ["last", "pooled", "layer:2", "logits"]  # layer:2 has no bound there, which is shown
RADII = (0.01, 0.1, 0.5, 1.0, 5.0)


def cases(phi: ws.PretrainedMap, texts: int, words: int, tokens: int) -> Iterator[tuple[Any, int, float]]:
    """A prepared text, a token of a word of it, and the token's norm."""
    for text in ws.load_texts("sample", count=texts, seed=0, balance=False).texts:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            encoded = phi.encode(text, tokens)
        prepared, pieces = phi.prepare(encoded.X.double()), [pieces[0] for pieces in encoded.pieces]
        for k in range(words):
            token = pieces[(2 * k + 1) * len(pieces) // (2 * words)]
            yield prepared, token, float(encoded.X[token].norm())


def attacked(model: Any, name: str, output: str, args: argparse.Namespace) -> int:
    """Attack one output of a model and print the outcome; returns the number of values above a bound."""
    began, phi = time.perf_counter(), ws.PretrainedMap(model, output)
    shares: dict[float, float] = dict.fromkeys(args.radii, 0.0)
    count = above = 0
    for number, (prepared, token, size) in enumerate(cases(phi, args.texts, args.words, args.tokens)):
        view = prepared.view([token])
        for radius in args.radii:
            bound = certify(view, radius * size)
            if bound.upper is None:
                print(f"{name:12} {output:8} no bound: {bound.reason}", flush=True)
                return 0
            share = attack(view, radius * size, args.gradients // len(args.radii), seed=number) / bound.upper
            shares[radius] = max(shares[radius], share)
            count, above = count + 1, above + (share > 1)
    shown = " ".join(f"{radius:g}: {share:.3f}" for radius, share in shares.items())
    print(f"{name:12} {output:8} {count:4} attacks, {above} above; largest share at {shown}; "
          f"{time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip
    return above


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=list(OUTPUTS))
    parser.add_argument("--outputs", nargs="+", help="instead of those that are usual for a model")
    parser.add_argument("--gguf", help="the file of a causal model")
    parser.add_argument("--texts", type=int, default=20)
    parser.add_argument("--words", type=int, default=3, help="of each text")
    parser.add_argument("--tokens", type=int, default=32, help="of each text, at most")
    parser.add_argument("--gradients", type=int, default=1000, help="for each word, over all radii")
    parser.add_argument("--radii", type=float, nargs="+", default=list(RADII))
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    args = parser.parse_args()
    above = 0
    for name in [*args.models, *([args.gguf] if args.gguf else [])]:
        model = open_model(name)
        if args.dtype != "float32":
            head = model.head
            model = open_model(model.whole.to(getattr(torch, args.dtype)), model.encoder.tokenizer)
            model.head, model.classifies = head, model.classifies or head is not None
        for output in args.outputs or OUTPUTS.get(name, CAUSAL):
            above += attacked(model, "causal" if name == args.gguf else name, output, args)
    sys.exit(1 if above else 0)


if __name__ == "__main__":
    main()
