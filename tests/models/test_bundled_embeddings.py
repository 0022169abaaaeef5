"""The embedding layer of the bundled encoder without its library: the same rows to the last bit."""

import subprocess
import sys
from dataclasses import fields

import pytest
import torch

import wordsway as ws
from wordsway.models.loading.bundled_embeddings import bundled_embeddings
from wordsway.models.loading.load import load_encoder
from wordsway.models.loading.locate import locate
from wordsway.tokens import Tokens

TEXTS = ["I love her smile", "The café was fine.\nWe stayed. [MASK] 😀 unaffable", "好 good [CLS]", "word " * 300, "a"]


def check_same(found: Tokens, wanted: Tokens) -> None:
    for field in fields(Tokens):
        left, right = getattr(found, field.name), getattr(wanted, field.name)
        assert torch.equal(left, right) if isinstance(left, torch.Tensor) else left == right, field.name


@pytest.mark.parametrize("max_tokens", [None, 7])
def test_it_is_hidden_state_0(max_tokens: int | None) -> None:
    quick = dict(bundled_embeddings(locate("minilm")).embed(TEXTS, 0, max_tokens))
    whole = dict(load_encoder(locate("minilm"), "cpu").embed(TEXTS, 0, max_tokens))
    for index in range(len(TEXTS)):
        check_same(quick[index], whole[index])


@pytest.mark.parametrize(("text", "message"), [("word " * 600, "takes at most 512"), ("\u200b", "has no words")])
def test_errors_are_those_of_the_whole_encoder(text: str, message: str) -> None:
    errors = []
    for encoder in (bundled_embeddings(locate("minilm")), load_encoder(locate("minilm"), "cpu")):
        with pytest.raises(ws.InputError, match=message) as caught:
            list(encoder.embed([text], 0, None))
        errors.append(str(caught.value))
    assert errors[0] == errors[1]


def test_a_sentence_is_measured_without_the_library() -> None:
    code = (
        "import sys, wordsway.cli.command as c, wordsway.cli.main as m\n"
        "sys.argv = ['wordsway', 'measure', 'I love her smile', '--budget', 'quick', '--draws', '0', '--json']\n"
        "try: m.main()\n"
        "except SystemExit as end: assert not end.code\n"
        "assert 'torch' in sys.modules and 'transformers' not in sys.modules"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
