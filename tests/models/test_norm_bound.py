"""Upper bounds of models that end in a norm: found by what a model does, above all attacks, and tight in themselves."""

from typing import Any

import pytest
import torch

import wordsway as ws
from ellipsoids import furthest_found
from families import CAUSAL, FAMILIES, tiny, tokenizer
from wordsway.certificates.certify import certify
from wordsway.models.loading.load import open_model
from wordsway.models.moving.map import PretrainedView
from wordsway.models.moving.norm_bound import projected_ranges
from wordsway.models.moving.outputs.base import Output
from wordsway.models.moving.outputs.rows import Rows
from wordsway.models.running.model import Head
from wordsway.testing.attack import attack

TEXT = "I love her warm smile"
STATES = ("last", "pooled", "pooled:first", "pooled:last", "layer:2", "all-layers", "norm")
HALVES = (torch.bfloat16, torch.float16)


def view_of(model: Any, output: str, token: int = 2, at: str = "embeddings") -> PretrainedView:
    phi = ws.PretrainedMap(model, output, tokenizer=tokenizer(), at=at)
    view = phi.prepare(phi.encode(TEXT).X).view([token])
    assert isinstance(view, PretrainedView)
    return view


def headed(family: str, head: str, dtype: torch.dtype = torch.float32) -> Any:
    more = {"pad_token_id": 0} if head == "classifier" and family in CAUSAL else {}
    return tiny(family, head, dtype, **more)


def upper_of(view: PretrainedView) -> float:
    bound = certify(view, 1.0)
    assert bound.upper is not None, bound.reason
    assert bound.failure == 0 and bound.reason is None
    return bound.upper


def moves(view: PretrainedView, seed: int = 0) -> torch.Tensor:
    """Random moves from tiny to huge."""
    rng = torch.Generator().manual_seed(seed)
    drawn = torch.randn(24, len(view.tokens), view.X.shape[1], generator=rng, dtype=torch.float64)
    return drawn * (10.0 ** torch.linspace(-2, 2, 24, dtype=torch.float64))[:, None, None]


def check_ranges(view: PretrainedView) -> None:
    """Every linear function of the features stays in its range, with moves of any size."""
    rng = torch.Generator().manual_seed(1)
    directions = torch.randn(5, view.base.numel(), generator=rng, dtype=torch.float64)
    ranges = projected_ranges(view, directions)
    assert not isinstance(ranges, str), ranges
    low, high = ranges
    assert low.dtype == high.dtype == torch.float64 and low.shape == high.shape == (5,)
    with torch.no_grad():
        reached = (view.change(moves(view).to(view.dtype)).double() + view.base.double()) @ directions.T
    assert bool((reached >= low).all()) and bool((reached <= high).all())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("output", STATES)
def test_states_of_every_family(family: str, output: str) -> None:
    """Models that normalise after each block bound all of their states, others the last one."""
    view = view_of(tiny(family), output)
    if family in CAUSAL and output in ("layer:2", "all-layers"):
        bound = certify(view, 1.0)
        assert bound.upper is None and bound.reason is not None and "norm" in bound.reason
        assert isinstance(projected_ranges(view, torch.ones(1, view.base.numel())), str)
        return
    upper = upper_of(view)
    assert float(view.relative_changes(moves(view)).max()) <= upper
    assert attack(view, 5.0, 80) <= upper
    check_ranges(view)


@pytest.mark.parametrize(
    ("family", "head"), [*((family, "classifier") for family in FAMILIES), *((family, "causal") for family in CAUSAL)]
)
def test_logits_of_every_family(family: str, head: str) -> None:
    view = view_of(headed(family, head), "logits")
    upper = upper_of(view)
    assert float(view.relative_changes(moves(view)).max()) <= upper
    assert attack(view, 5.0, 80) <= upper
    if head == "classifier":
        check_ranges(view)


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize(
    "case", ["bert last", "bert layer:2", "bert pooled", "llama last", "llama logits", "gpt2 pooled"]
)
def test_half_precision(dtype: torch.dtype, case: str) -> None:
    """The bound is about the model as it runs, rounding included."""
    family, output = case.split()
    view = view_of(tiny(family, "causal" if output == "logits" else "", dtype), output)
    upper = upper_of(view)
    exact = upper_of(view_of(tiny(family, "causal" if output == "logits" else ""), output))
    assert exact < upper < 1.1 * exact
    assert float(view.relative_changes(moves(view)).max()) <= upper
    if output != "logits":
        check_ranges(view)


def modernbert(head: str) -> Any:
    import transformers as t

    torch.manual_seed(0)
    size: dict[str, Any] = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 3, "num_labels": 3}
    size |= {"pad_token_id": 0, "cls_token_id": 101, "sep_token_id": 102}
    config = t.ModernBertConfig(vocab_size=30522, intermediate_size=48, classifier_pooling="mean", **size)
    model = (t.ModernBertForSequenceClassification if head else t.ModernBertModel)(config)
    return model.eval()


@pytest.mark.parametrize(("output", "head"), [("last", ""), ("pooled", ""), ("logits", "classifier")])
def test_modernbert(output: str, head: str) -> None:
    view = view_of(modernbert(head), output)
    upper = upper_of(view)
    assert float(view.relative_changes(moves(view)).max()) <= upper
    check_ranges(view)


def test_a_norm_whose_weight_is_added_to_one() -> None:
    """As Gemma's: which of the two it is comes from what the module does."""
    import transformers as t

    torch.manual_seed(0)
    config = t.GemmaConfig(vocab_size=30522, hidden_size=24, num_hidden_layers=2, num_attention_heads=3,
                           num_key_value_heads=1, head_dim=8, intermediate_size=48, pad_token_id=0)  # fmt: skip
    model = t.GemmaModel(config).eval()
    with torch.no_grad():
        model.norm.weight.normal_(0, 0.5)
    view = view_of(model, "last")
    ending = view.text.ending
    assert not isinstance(ending, str) and not ending.norms[0].centred
    assert torch.equal(ending.norms[0].gamma, 1 + model.norm.weight.detach().double())
    assert float(view.relative_changes(moves(view)).max()) <= upper_of(view)


def test_the_bound_is_the_dual_value_of_each_row() -> None:
    """Against a second computation, in the eigenbasis, without allowances: no term is missing, none is doubled."""
    model = tiny("bert")
    with torch.no_grad():
        model.encoder.layer[-1].output.LayerNorm.weight.normal_(1, 0.4)
        model.encoder.layer[-1].output.LayerNorm.bias.normal_(0, 0.4)
    view = view_of(model, "last")
    norm, d = model.encoder.layer[-1].output.LayerNorm, 24
    gamma, beta = norm.weight.detach().double(), norm.bias.detach().double()
    P = torch.eye(d, dtype=torch.float64) - 1 / d
    levels, basis = torch.linalg.eigh(P @ torch.diag(gamma.square()) @ P)
    total = 0.0
    for row in view.base.double().view(-1, d):
        a = beta - row
        c = basis.T @ P @ (gamma * a)
        duals = [
            mu * d + float((c.square() / (mu - levels)).sum() + a.square().sum())
            for mu in (float(levels[-1]) * (1 + 10.0 ** torch.linspace(-6, 3, 2000).double())).tolist()
        ]
        total += min(duals)
    wanted = total**0.5 / view.base_norm
    assert wanted * (1 - 1e-6) <= upper_of(view) <= wanted * 1.03


@pytest.mark.parametrize("output", ["last", "pooled", "pooled:first", "norm", "logits"])
@pytest.mark.parametrize("centred", [True, False])
def test_bounds_are_attained(output: str, centred: bool) -> None:
    """A model without anything before its last norm, and a text of one row, which may then go anywhere: what is largest
    in the ellipsoid is reached, so no bound could be smaller. With one that normalises without a mean, too."""
    model = tiny("bert", layers=1)
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.zero_()
        block = model.encoder.layer[0]
        if not centred:
            block.attention.output.LayerNorm, block.output.LayerNorm = torch.nn.Identity(), torch.nn.RMSNorm(24)
        else:
            block.attention.output.LayerNorm.weight.fill_(1.0)
            block.output.LayerNorm.bias.normal_(0, 0.0 if output == "norm" else 0.5)
        block.output.LayerNorm.weight.normal_(1, 0.5)
    opened = open_model(model, tokenizer())
    opened.head = Head(torch.linspace(-1, 2, 24), torch.tensor([0.5]), {})
    opened.classifies = True
    phi = ws.PretrainedMap(opened, output)
    X = phi.encode(TEXT).X[2:3]
    view = phi.view(X, [0])
    assert isinstance(view, PretrainedView) and not isinstance(view.text.ending, str)
    (norm,), head = view.text.ending.norms, view.text.ending.head
    assert norm.centred == centred
    if output == "norm":
        matrix, point = torch.eye(24, dtype=torch.float64), torch.zeros(24, dtype=torch.float64)
    elif head is not None:
        matrix, point = head.outer.weight.double(), view.base.double() - head.outer.bias
    else:
        matrix, point = torch.eye(24, dtype=torch.float64), view.base.double()
    _, z = furthest_found(norm, matrix, point, torch.Generator().manual_seed(0))
    reached = float(view.relative_changes(100 * z[None, None] - X.double()[None])[0])
    if output == "norm":  # from the smallest row, here 0, as epsilon allows
        reached = max(reached, float(view.relative_changes(-X.double()[None])[0]))
    assert 0.97 * upper_of(view) <= reached <= upper_of(view)


@pytest.mark.parametrize("family", CAUSAL)
@pytest.mark.parametrize("output", ["last", "pooled", "pooled:last", "logits"])
def test_causal_bounds_are_attained(family: str, output: str) -> None:
    """Blocks that add nothing: the last word moves its own row alone, anywhere in the ellipsoid. So rows before it that
    were counted, or half of what its row can do, would show."""
    model = tiny(family, "causal", layers=1)
    base = model.base_model
    with torch.no_grad():
        for block in base.h if family == "gpt2" else base.layers:
            for parameter in block.parameters():
                parameter.zero_()
        norm = base.ln_f if family == "gpt2" else base.norm
        norm.weight.normal_(1, 0.5)
    phi = ws.PretrainedMap(model, output, tokenizer=tokenizer())
    X = phi.encode(TEXT).X.double()
    n = len(X)
    view = phi.view(X, [n - 1])
    assert isinstance(view, PretrainedView) and not isinstance(view.text.ending, str)
    (ellipsoid,), head = view.text.ending.norms, view.text.ending.head
    weight = torch.eye(24, dtype=torch.float64)
    point = view.base.double().view(-1, 24)[-1] if output != "logits" else view.base.double()
    if output == "pooled":  # n times the mean, without the rows that stay
        point = norm(X[-1].float()).detach().double()
    if head is not None:
        weight, point = head.outer.weight.double(), point - head.outer.bias
    _, z = furthest_found(ellipsoid, weight, point, torch.Generator().manual_seed(0))
    found = float(view.relative_changes((100 * z - X[-1])[None, None])[0])
    assert 0.97 * upper_of(view) <= found <= upper_of(view)


@pytest.mark.parametrize("side", [1, -1])
def test_ranges_of_margins_are_attained(side: int) -> None:
    """The difference of two logits of a linear head goes to both ends of its range, with a text that goes anywhere."""
    model = tiny("bert", layers=1)
    with torch.no_grad():
        for parameter in model.encoder.parameters():
            parameter.zero_()
        block = model.encoder.layer[0]
        block.attention.output.LayerNorm.weight.fill_(1.0)
        block.output.LayerNorm.bias.normal_(0, 0.5)
        block.output.LayerNorm.weight.normal_(1, 0.5)
    opened = open_model(model, tokenizer())
    opened.head = Head(torch.linspace(-1, 2, 24), torch.tensor([0.5]), {})
    opened.classifies = True
    phi = ws.PretrainedMap(opened, "logits")
    view = phi.view(phi.encode(TEXT).X[2:3], [0])
    assert isinstance(view, PretrainedView)
    ranges = projected_ranges(view, torch.tensor([[-1.0, 1.0], [0.0, 1.0]]))
    assert not isinstance(ranges, str)
    along = opened.head.weight.double() * block.output.LayerNorm.weight.detach().double()
    z = side * (along - along.mean())
    logits = phi(100 * torch.nn.functional.normalize(z, dim=0)[None])
    for number, value in enumerate((float(logits[1] - logits[0]), float(logits[1]))):
        low, high = float(ranges[0][number]), float(ranges[1][number])
        assert low <= value <= high
        assert abs(value - (high if side == 1 else low)) <= 0.01 * (high - low)


def test_rows_before_the_moved_word_count_nothing() -> None:
    for family in CAUSAL:
        model = tiny(family)
        early, late = (upper_of(view_of(model, "last", token)) for token in (0, 5))
        assert late < 0.7 * early
        assert upper_of(view_of(model, "pooled:first", 3)) < 1e-5  # what a resumed run rounds otherwise
        assert upper_of(view_of(model, "pooled", 5)) < upper_of(view_of(model, "pooled", 0))
        assert upper_of(view_of(model, "pooled:last", 5)) > 1


def test_the_bound_does_not_depend_on_the_word_or_the_radius() -> None:
    model = tiny("bert")
    bounds = {certify(view_of(model, "last", token), radius).upper for token in (1, 3) for radius in (1e-3, 100.0)}
    assert len(bounds) == 1


def test_hidden_state_0() -> None:
    """It moves itself; but word embeddings enter before a norm, which bounds it."""
    reason = certify(view_of(tiny("bert"), "layer:0"), 1.0).reason
    assert reason is not None and "hidden state 0" in reason
    view = view_of(tiny("bert"), "layer:0", at="word-embeddings")
    assert float(view.relative_changes(moves(view)).max()) <= upper_of(view)


class Scale(torch.nn.Module):
    """Looks like a norm, and is none."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.ones(d)), torch.nn.Parameter(torch.zeros(d))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * x + self.bias


class TooLong(torch.nn.LayerNorm):
    """A norm in name, whose rows are longer than a norm's."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        return 1.01 * super().forward(input)


class Coarse(torch.nn.LayerNorm):
    """A norm that computes in bfloat16 inside."""

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        x = input.to(torch.bfloat16)
        x = x - x.mean(-1, keepdim=True)
        return (x / x.float().square().mean(-1, keepdim=True).sqrt().to(torch.bfloat16)).to(input)


@pytest.mark.parametrize("other", [Scale(24), TooLong(24), Coarse(24)])
def test_a_norm_is_known_by_what_it_does(other: torch.nn.Module) -> None:
    model = tiny("bert")
    assert certify(view_of(model, "last"), 1.0).upper is not None
    model.encoder.layer[-1].output.LayerNorm = other.eval()
    bound = certify(view_of(model, "last"), 1.0)
    assert bound.upper is None and bound.reason == "hidden state 3 is not what a norm gives, so nothing bounds its rows"
    assert certify(view_of(model, "layer:2"), 1.0).upper is not None


class Doubled(Rows):
    """Derived from an output that says how it is made, and made otherwise."""

    def of_state(self, state: torch.Tensor, is_text: torch.Tensor | None) -> torch.Tensor:
        return 2 * state.flatten(1)


class Silent(Doubled):
    reads = None


@pytest.mark.parametrize(("kind", "reason"), [(Doubled, "is not what a norm gives"), (Silent, "does not say")])
def test_outputs_of_users(kind: type[Output], reason: str) -> None:
    phi = ws.PretrainedMap(tiny("bert"), "last", tokenizer=tokenizer())
    phi.output = kind("mine", 3)
    bound = certify(phi.view(phi.encode(TEXT).X, [2]), 1.0)
    assert bound.upper is None and bound.reason is not None and reason in bound.reason


def test_weights_that_change_between_texts() -> None:
    """A bound belongs to a prepared text, so training in between cannot make it stale."""
    model = tiny("bert")
    phi = ws.PretrainedMap(model, "last", tokenizer=tokenizer())
    X = phi.encode(TEXT).X
    before = certify(phi.view(X, [2]), 1.0).upper
    with torch.no_grad():
        model.encoder.layer[-1].output.LayerNorm.weight[0] *= 5
    after = certify(phi.view(X, [2]), 1.0).upper
    assert before is not None and after is not None and abs(after - before) > 0.01 * before


def test_directions_are_checked() -> None:
    view = view_of(tiny("bert"), "pooled")
    with pytest.raises(ws.InputError, match="shape"):
        projected_ranges(view, torch.ones(2, 7))


class TestLogitRanges:
    def test_the_bundled_classifier(self) -> None:
        phi = ws.PretrainedMap("sentiment", "logits")
        X = phi.encode(TEXT)
        ranges = ws.logit_ranges("sentiment", TEXT)
        assert [word.text for word in ranges.words] == TEXT.split() and ranges.labels == ("negative", "positive")
        assert ranges.prediction == "positive"
        reached = phi(X.X)
        assert torch.allclose(reached, torch.tensor(ranges.logits, dtype=torch.float64))
        rng = torch.Generator().manual_seed(0)
        for word in ranges.words:
            assert not word.flips_never  # a bound for moves of any size
            for size in (1.0, 30.0):
                moved = X.X.clone()
                moved[list(word.tokens)] += size * torch.randn(len(word.tokens), X.X.shape[1], generator=rng)
                logits = phi(moved).tolist()
                assert all(low <= x <= high for low, x, high in zip(word.low, logits, word.high, strict=True))
                assert word.margin_low[0] <= logits[1] - logits[0] <= word.margin_high[0]
            assert word.margin_low[1] == word.margin_high[1] == 0

    def test_json_and_data_frame(self, tmp_path: Any) -> None:
        import json

        ranges = ws.logit_ranges("sentiment", TEXT, word="smile")
        (word,) = ranges.words
        assert word.text == "smile"
        ranges.save(tmp_path / "r.json")
        saved = json.loads((tmp_path / "r.json").read_text())
        assert saved["format"] == "wordsway.logit_ranges/2" and saved["words"][0]["low"] == list(word.low)
        pandas = pytest.importorskip("pandas")
        table = ranges.to_dataframe()
        assert isinstance(table, pandas.DataFrame) and len(table) == 2 and list(table["low"]) == list(word.low)

    def test_models_that_classify_nothing(self) -> None:
        with pytest.raises(ws.InputError, match="classifies no texts"):
            ws.logit_ranges("minilm", TEXT)

    def test_a_decided_prediction(self) -> None:
        """A bias that outweighs all that the rest of the head can do: no move of any size flips it."""
        model = headed("bert", "classifier")
        with torch.no_grad():
            model.classifier.bias[2] = 1e4
        ranges = ws.logit_ranges(model, TEXT, tokenizer=tokenizer())
        assert all(word.flips_never for word in ranges.words) and ranges.prediction == ranges.labels[2]
