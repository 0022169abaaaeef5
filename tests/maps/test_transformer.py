"""Random transformers: against a network of torch's own layers, their views against the plain map, their laws."""

import math

import pytest
import torch
from test_views import assert_equal_views, token_sets
from torch import Tensor

import wordsway as ws
from wordsway.maps.base import PlainView
from wordsway.maps.transformer.random_transformer import Transformer

RECIPES = [
    ws.RandomTransformer(depth=1, heads=2, mlp_ratio=0, norm="none", residual=False),
    ws.RandomTransformer(depth=2, heads=2, mlp_ratio=2),
    ws.RandomTransformer(depth=3, heads=1, mlp_ratio=1, norm="post", position="sinusoidal"),
    ws.RandomTransformer(depth=2, heads=2, norm="none", position="rope", score="relu", mlp_ratio=1),
    ws.RandomTransformer(depth=3, heads=2, causal=True, position="rope", mlp_ratio=2),
    ws.RandomTransformer(depth=2, heads=4, score="entmax", causal=True, position="sinusoidal", mlp_ratio=1),
    ws.RandomTransformer(depth=2, heads=2, score="sigmoid", norm="post", residual=False, temperature=0.5, mlp_ratio=1),
]


def plain(phi: Transformer, X: Tensor, tokens: list[int]) -> PlainView:
    return PlainView(lambda x: torch.stack([phi(t).flatten() for t in x]), X, tokens, torch.float64, "cpu")


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
@pytest.mark.parametrize("n", [1, 5])
def test_view_is_the_plain_map(recipe: ws.RandomTransformer, n: int, rng: torch.Generator) -> None:
    X = ws.synthetic_tokens(n, 8, seed=n)
    phi = recipe.sample(d=8, seed=1)
    torch.testing.assert_close(phi.features(X[None])[0], phi(X).flatten())
    for tokens in token_sets(n):
        assert_equal_views(phi.view(X, tokens), plain(phi, X, tokens), rng)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("causal", [True, False])
def test_equals_torch_encoder_layers(norm_first: bool, causal: bool) -> None:
    """torch's own transformer layers, with our weights put into them."""
    d, heads, ratio, n = 12, 3, 2, 7
    phi = ws.RandomTransformer(3, heads, d, ratio, "pre" if norm_first else "post", causal=causal).sample(seed=5)
    X = ws.synthetic_tokens(n, d, seed=0)
    mask = torch.nn.Transformer.generate_square_subsequent_mask(n, dtype=torch.float64) if causal else None
    x = X[None]
    for block in phi.blocks:
        layer = torch.nn.TransformerEncoderLayer(
            d, heads, ratio * d, 0.0, batch_first=True, norm_first=norm_first, bias=False, dtype=torch.float64
        ).eval()
        weights = {
            "self_attn.in_proj_weight": block.qkv.T,
            "self_attn.out_proj.weight": block.out.T,
            "linear1.weight": block.up.T,
            "linear2.weight": block.down.T,
        }
        layer.load_state_dict({**layer.state_dict(), **weights})
        with torch.no_grad():
            x = layer(x, src_mask=mask, is_causal=causal)
    torch.testing.assert_close(phi(X), x[0], rtol=1e-9, atol=1e-9)


def test_rope_knows_distances_only() -> None:
    """Logits depend on how far apart two tokens stand, so shifting a text shifts the logits with it."""
    phi = ws.RandomTransformer(heads=2, d=8, position="rope").sample(seed=0)
    x = ws.synthetic_tokens(4, 8, seed=0)
    here, there = torch.arange(4), torch.arange(4) + 11
    logits = [q @ k.mT for q, k, _ in (phi.project(phi.blocks[0], x, places) for places in (here, there))]
    torch.testing.assert_close(logits[0], logits[1], rtol=1e-9, atol=1e-9)
    flat = ws.RandomTransformer(heads=2, d=8).sample(seed=0).project(phi.blocks[0], x)
    assert not torch.allclose(logits[0], flat[0] @ flat[1].mT)


def test_a_shallow_network_is_the_beginning_of_a_deep_one() -> None:
    deep, shallow = (ws.RandomTransformer(depth, 2, 8).sample(seed=4) for depth in (5, 2))
    for a, b in zip(deep.blocks[:2], shallow.blocks, strict=True):
        assert torch.equal(a.qkv, b.qkv) and torch.equal(a.down, b.down)


def test_scales() -> None:
    """Logits and the perceptron's output of order one, so that no layer drowns the other."""
    d = 192
    phi = ws.RandomTransformer(heads=4, d=d).sample(seed=0)
    X = ws.synthetic_tokens(64, d, seed=1)
    q, k, v = phi.project(phi.blocks[0], X)
    assert float((q @ k.mT).std()) == pytest.approx(1, abs=0.1) and float(v.std()) == pytest.approx(1, abs=0.05)
    out = torch.relu(X @ phi.blocks[0].up) @ phi.blocks[0].down
    assert float(out.square().mean()) == pytest.approx(1, abs=0.1)


def test_a_residual_stream_dilutes_one_word() -> None:
    """The search runs through all layers; without the residual one token captures more than with it."""
    X = ws.synthetic_tokens(24, 32, seed=0)
    found = {}
    for residual in (True, False):
        phi = ws.RandomTransformer(2, 2, 32, 2, residual=residual).sample(seed=0)
        r = ws.word_sensitivity(phi, X, 3, random_draws=10)
        assert r.upper is None and "not what a norm gives" in (r.upper_reason or "")
        assert r.checked == "plain map, float64"
        assert r.random is not None and r.lower > 2 * r.random.mean
        found[residual] = r.lower
    assert found[False] > 1.5 * found[True]


def test_what_makes_no_sense() -> None:
    for options, message in [
        ({"depth": 0}, "depth must be"),
        ({"heads": 3, "d": 8}, "heads=3 does not divide d=8"),
        ({"norm": "batch"}, "norm='batch' is not known; use one of: pre, post, none"),
        ({"position": "alibi"}, "position='alibi' is not known"),
        ({"score": "linear"}, "score='linear' is not known"),
        ({"mlp_ratio": -1}, "mlp_ratio must be"),
        ({"d": 9, "position": "sinusoidal"}, "d=9 is odd"),
        ({"d": 6, "heads": 2, "position": "rope"}, "an odd number"),
        ({"temperature": 0.0}, "temperature must be"),
    ]:
        with pytest.raises(ws.InputError, match=message):
            ws.RandomTransformer(**options)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ws.InputError, match="d is missing"):
        ws.RandomTransformer().sample()
    with pytest.raises(ws.InputError, match="cannot be sampled for d=4"):
        ws.RandomTransformer(d=8).sample(d=4)
    with pytest.raises(ws.InputError, match="made for d=8"):
        ws.RandomTransformer(d=8).sample()(torch.ones(3, 9, dtype=torch.float64))
    assert math.isfinite(float(ws.RandomTransformer(d=8).sample()(ws.synthetic_tokens(3, 8)).norm()))


def test_one_evaluation_asks_whether_to_go_on_in_every_layer_both_ways() -> None:
    class Stop(BaseException):
        pass

    phi = ws.RandomTransformer(depth=3, heads=2).sample(d=16, seed=0)
    view = phi.prepare(ws.synthetic_tokens(6, 16, seed=0)).view([1])
    delta = torch.ones(1, 1, 16, requires_grad=True)
    asked: list[str] = []
    with phi.cancellable(lambda: asked.append("")):
        value = view.sq_norm(delta)
        assert len(asked) == 3
        value.sum().backward()
        assert len(asked) == 6

    def stop() -> None:
        asked.append("")
        if len(asked) == 11:
            raise Stop

    with phi.cancellable(stop):
        value = view.sq_norm(delta)
        with pytest.raises(Stop):
            value.sum().backward()
    view.sq_norm(delta)
    assert len(asked) == 11  # not after the context
