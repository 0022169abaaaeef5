"""Tests of an output of a model: one text, batches, padding, beginnings that are run once, and gradients."""

from typing import Any

import torch
from torch import Tensor

from wordsway.models.loading.load import read_tokenizer
from wordsway.models.loading.locate import locate
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.moving.outputs.base import find_prefix

_TEXTS = ("I love her smile", "A dull film, and a long one", "The soup was cold")


def small_model(causal: bool) -> Any:
    """Draw a small random model in float64. Its weights are large, so that attention is not flat."""
    import transformers

    size: dict[str, Any] = {"vocab_size": 30522, "num_labels": 3}
    torch.manual_seed(0)
    if causal:
        config = transformers.GPT2Config(**size, n_embd=24, n_layer=3, n_head=3, bos_token_id=101, eos_token_id=102)
        model = transformers.GPT2LMHeadModel(config)
    else:
        inner: dict[str, Any] = {"num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 48}
        model = transformers.BertForSequenceClassification(transformers.BertConfig(**size, hidden_size=24, **inner))
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 2 and parameter.shape[0] < 1000:  # all but embeddings
                parameter.normal_(0, 0.4)
    return model.eval().double()


class OutputTests:
    """Tests of one output, by its `name`. `make(causal)` gives a live model in float64, with logits, and its tokenizer:
    a `causal` one predicts tokens, another one classifies texts. Override it for other models than small random ones.
    """

    name: str = "last"
    tolerance = 1e-8  # of models in float64

    def make(self, causal: bool) -> tuple[Any, Any]:
        return small_model(causal), read_tokenizer(locate("minilm"))

    def _map(self, causal: bool) -> PretrainedMap:
        model, tokenizer = self.make(causal)
        return PretrainedMap(model, self.name, tokenizer=tokenizer)

    def _rows(self, phi: PretrainedMap, text: str) -> Tensor:
        return phi.encode(text).X.double()

    def test_batches_and_moves(self) -> None:
        """Features of a batch are those of each text; the view's change is the difference of two plain runs."""
        phi = self._map(causal=False)
        X = self._rows(phi, _TEXTS[0])
        moves = torch.randn(3, 1, X.shape[1], generator=torch.Generator().manual_seed(0), dtype=torch.float64)
        texts = torch.stack([X.index_add(0, torch.tensor([2]), move) for move in moves])
        apart = torch.stack([phi(x) for x in texts])
        torch.testing.assert_close(phi.features(texts), apart, rtol=self.tolerance, atol=self.tolerance)
        change = phi.view(X, [2]).change(moves).double()
        torch.testing.assert_close(change, apart - phi(X), rtol=self.tolerance, atol=self.tolerance)
        assert bool((change.norm(dim=1) > 0).all()), "a move of a word must change the output"

    def test_gradient(self) -> None:
        phi = self._map(causal=False)
        view = phi.view(self._rows(phi, _TEXTS[0]), [2])
        rng = torch.Generator().manual_seed(0)
        delta = torch.randn(1, 1, view.X.shape[1], generator=rng, dtype=torch.float64).requires_grad_(True)
        way = torch.randn(delta.shape, generator=rng, dtype=torch.float64)
        (gradient,) = torch.autograd.grad(view.sq_norm(delta).sum(), delta)
        ends = [float(view.sq_norm(delta.detach() + sign * 1e-5 * way)) for sign in (1, -1)]
        torch.testing.assert_close(
            (gradient * way).sum(), torch.tensor((ends[0] - ends[1]) / 2e-5, dtype=torch.float64), rtol=1e-4, atol=1e-7
        )

    def test_a_beginning_that_is_run_once_changes_nothing(self) -> None:
        phi = self._map(causal=True)
        rows = self._rows(phi, _TEXTS[1])
        whole = phi.output.features(phi.model, rows[None], phi.at)[0]
        prefix = find_prefix(phi.model, phi.output, rows, 3, phi.at, whole)
        assert prefix is not None
        resumed = phi.output.features(phi.model, rows[None, 3:], phi.at, prefix)[0]
        torch.testing.assert_close(resumed, whole, rtol=self.tolerance, atol=self.tolerance)

    def test_padding_does_not_count(self) -> None:
        """In training: a text among longer ones gives what it gives alone, and zeros after it where there are rows."""
        phi = self._map(causal=False)
        if not phi.output.trains or phi.output.layer != phi.model.layers:
            return
        model, tokenizer = self.make(causal=False)
        inputs = dict(tokenizer(list(_TEXTS), padding=True, return_tensors="pt"))
        is_text = inputs["attention_mask"] != 0
        together = phi.output.of_batch(model, inputs, is_text)
        for text, row, length in zip(_TEXTS, together, is_text.sum(1).tolist(), strict=True):
            one = dict(tokenizer([text], return_tensors="pt"))
            alone = phi.output.of_batch(model, one, one["attention_mask"] != 0)[0]
            if phi.output.has_rows:
                per_token = len(row) // is_text.shape[1]
                assert bool((row[length * per_token :] == 0).all())
                row = row[: length * per_token]
            torch.testing.assert_close(row, alone, rtol=self.tolerance, atol=self.tolerance)
