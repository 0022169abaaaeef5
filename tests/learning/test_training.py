"""A model in training: looked at without a trace, pushed in the direction asked for, and a study of both."""

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import wordsway as ws
from families import FAMILIES, tiny, tokenizer
from wordsway.learning.penalty import Batch, trained_output
from wordsway.models.moving.map import PretrainedMap
from wordsway.models.moving.outputs.base import StateOutput, trained
from wordsway.studies.cells.small_models import Split, corpus, word_tokenizer
from wordsway.studies.cells.training_cell import REGIMES, TrainingCell
from wordsway.studies.figures.draw import draw_study
from wordsway.studies.run.tables import Table

TEXTS = ["Cold soup!", "The bakery is good."]
PROBE: dict[str, Any] = {"random_draws": 2}
QUICK: dict[str, Any] = {"regime": "plain", "steps": 2, "eval_every": 1, "d": 16, "heads": 2, "probes": 1}
QUICK |= {"train_pairs": 8, "train_reviews": 8}


def in_training(head: str = "classifier") -> Any:
    """A model as it is in the middle of a training: some weights frozen, some modules in eval mode, gradients there."""
    model = tiny("bert", head).train()
    model.base_model.encoder.layer[0].eval()
    for parameter in model.base_model.embeddings.parameters():
        parameter.requires_grad_(False)
    ids = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    # The library puts hooks of its own where hidden states are first asked for.
    model.base_model(**ids, output_hidden_states=True)
    model(**ids).logits.square().sum().backward()
    return model


def state_of(model: Any) -> dict[str, Any]:
    found: dict[str, Any] = {f"mode of {name}": module.training for name, module in model.named_modules()}
    for name, parameter in model.named_parameters():
        found[name] = parameter.detach().clone()
        found[f"{name} wants"] = parameter.requires_grad
        found[f"{name} has"] = None if parameter.grad is None else parameter.grad.clone()
        found[f"{name} written"] = parameter._version
    found["hooks"] = sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())
    # Not Python's own: the type checks of these tests draw from it.
    found["random"] = torch.get_rng_state(), np.random.get_state()[1].copy()  # pyright: ignore  # noqa: NPY002
    return found


def changed(model: Any, before: dict[str, Any]) -> list[str]:
    after = state_of(model)
    assert before.keys() == after.keys()
    return [name for name in before if not same(before[name], after[name])]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, Tensor):
        return torch.equal(left, right)
    if isinstance(left, np.ndarray):
        return bool((left == right).all())
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return left == right


@pytest.mark.parametrize("around", [nullcontext, torch.no_grad, torch.inference_mode])
def test_a_probe_leaves_no_trace_and_needs_nothing_around_it(around: Callable[[], Any]) -> None:
    model = in_training()
    before = state_of(model)
    with around():
        report = ws.probe_sensitivity(model, tokenizer(), TEXTS, **PROBE)
    assert changed(model, before) == []
    assert report.word_sensitivity > report.random > 0


@pytest.mark.parametrize("output", ["pooled", "logits", "layer:1"])
def test_a_probe_is_word_sensitivity_of_the_model_in_eval_mode(output: str) -> None:
    model = in_training()
    report = ws.probe_sensitivity(model, tokenizer(), TEXTS, output=output, radius=0.7, seed=3, **PROBE)
    phi = PretrainedMap(copy.deepcopy(model).eval(), output, tokenizer=tokenizer())
    for text, found in zip(TEXTS, report.texts, strict=True):
        tokens = phi.encode(text)
        radii = [0.7 * float(norm) for norm in tokens.X.norm(dim=1)]
        wanted = ws.word_sensitivity(phi, tokens, radius=radii, budget="quick", seed=3, random_draws=0)
        assert found.lower == wanted.lower
        assert wanted.top_word is not None
        assert (found.word_text, found.tied) == (wanted.top_word.text, wanted.top_word.tied)
    assert report.word_sensitivity == pytest.approx(sum(found.lower for found in report.texts) / 2)


def test_a_probe_of_chosen_words() -> None:
    model = tiny("bert", "classifier")
    every = ws.probe_sensitivity(model, tokenizer(), TEXTS[0])
    chosen = [ws.probe_sensitivity(model, tokenizer(), TEXTS[0], words=[word]) for word in (1, "soup", 3)]
    # Searches of one word and of all have other scouts, so they may end apart by a few per cent.
    best = max(found.word_sensitivity for found in chosen)
    assert every.word_sensitivity == pytest.approx(best, rel=0.05) and best > every.random
    assert chosen[1].texts[0].word_text == "soup" and chosen[1].texts[0].word == 2
    phi = PretrainedMap(copy.deepcopy(model).eval(), "pooled", tokenizer=tokenizer())
    tokens = phi.encode(TEXTS[0])
    radii = [float(norm) for norm in tokens.X.norm(dim=1)]
    soup = ws.word_sensitivity(phi, tokens, list(tokens.pieces[1]), radius=radii, budget="quick", random_draws=0)
    assert chosen[1].word_sensitivity == soup.lower


def test_a_probe_sees_the_weights_of_this_moment() -> None:
    model = tiny("bert", "classifier").train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    ids = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    seen = []
    for _ in range(2):
        report = ws.probe_sensitivity(model, tokenizer(), TEXTS[0], **PROBE)
        fresh = ws.probe_sensitivity(copy.deepcopy(model), tokenizer(), TEXTS[0], **PROBE)
        assert report.texts == fresh.texts
        seen.append(report.word_sensitivity)
        model(**ids, labels=torch.tensor([0, 1])).loss.backward()
        optimizer.step()
    assert len(set(seen)) == 2


def test_a_probe_is_a_log_entry_and_a_file(tmp_path: Path) -> None:
    report = ws.probe_sensitivity(tiny("bert"), tokenizer(), TEXTS, **PROBE)
    entry = report.metrics("eval_")
    names = ("word_sensitivity", "random_change", "word_sensitivity_1", "word_sensitivity_2")
    assert list(entry) == [f"eval_{name}" for name in names]
    report.save(tmp_path / "probe.json")
    assert '"wordsway.probe/1"' in (tmp_path / "probe.json").read_text()
    assert len(report.to_dataframe()) == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"texts": []}, "texts is empty"),
        ({"words": "some"}, "words='some' is not known"),
        ({"words": [1]}, 'words must be "all" or one for each of the 2 texts, got 1'),
        ({"radius": 0.0}, "radius must be a positive number"),
        ({"budget": "huge"}, "budget='huge' is not known"),
        ({"output": "best"}, "output='best' is not known"),
        ({"model": torch.nn.Linear(2, 2)}, "model must be a live model"),
    ],
)
def test_probes_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {"model": tiny("bert"), "tokenizer": tokenizer(), "texts": TEXTS, **options}
    with pytest.raises(ws.InputError, match=re.escape(message)):
        ws.probe_sensitivity(**known)


class _Wrapped(torch.nn.Module):
    def __init__(self, module: Any) -> None:
        super().__init__()
        self.module = module


def test_a_wrapped_model_is_unwrapped() -> None:
    model = tiny("bert")
    found = [ws.probe_sensitivity(each, tokenizer(), TEXTS[:1]).texts for each in (model, _Wrapped(model))]
    assert found[0] == found[1]


# The Trainer


class _Texts(torch.utils.data.Dataset[Any]):
    def __init__(self, count: int) -> None:
        data = ws.load_texts("sample", count=count, shorter_than=None)
        self.rows = [
            {**tokenizer()(text, return_token_type_ids=False), "labels": int(label > 0)}
            for text, label in zip(data.texts, data.labels, strict=True)
        ]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Any:
        return self.rows[index]


def a_trainer(folder: Path, callbacks: Any, **options: Any) -> Any:
    from transformers import Trainer, TrainingArguments

    arguments = TrainingArguments(
        output_dir=str(folder), max_steps=6, eval_strategy="steps", eval_steps=2, logging_steps=3,
        save_strategy="steps", save_steps=2, per_device_train_batch_size=4, learning_rate=1e-2,
        report_to=[], use_cpu=True, seed=5,
        disable_tqdm=True, dataloader_pin_memory=False, **options,
    )  # fmt: skip
    model, data = tiny("bert", "classifier"), _Texts(8)
    return Trainer(
        model, arguments, train_dataset=data, eval_dataset=data, processing_class=tokenizer(), callbacks=callbacks
    )


@pytest.fixture
def recorder() -> Any:
    """What an integration would see."""
    from transformers import TrainerCallback

    class Recorder(TrainerCallback):
        def __init__(self) -> None:
            self.seen: list[dict[str, Any]] = []

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
            self.seen.append({**logs, "step": state.global_step})

    return Recorder()


@pytest.mark.slow
def test_the_trainer_logs_it_and_trains_as_without_it(tmp_path: Path, recorder: Any) -> None:
    from transformers import BertForSequenceClassification

    plain = a_trainer(tmp_path / "plain", [])
    plain.train()
    trainer = a_trainer(tmp_path / "probed", [recorder], metric_for_best_model="word_sensitivity")
    probe: dict[str, Any] = {"output": "logits", "words": ["soup", "good"], **PROBE}  # all words would take minutes
    callback = ws.WordSensitivityCallback(TEXTS, **probe).attach(trainer)
    trainer.train()
    for (name, left), right in zip(plain.model.state_dict().items(), trainer.model.state_dict().values(), strict=True):
        assert torch.equal(left, right), name
    assert [entry["step"] for entry in callback.history] == [0, 2, 4, 6]
    in_history = [entry for entry in trainer.state.log_history if "eval_word_sensitivity" in entry]
    seen = [entry for entry in recorder.seen if "eval_word_sensitivity" in entry]
    for entries in (in_history, seen):
        assert [entry["step"] for entry in entries] == [0, 2, 4, 6]
        assert [e["eval_word_sensitivity_2"] for e in entries] == [e["word_sensitivity_2"] for e in callback.history]
    assert len({entry["word_sensitivity"] for entry in callback.history}) == 4
    assert trainer.state.best_metric == max(entry["word_sensitivity"] for entry in callback.history[1:])
    for step in (2, 4, 6):  # asked again of the weights that were saved then
        saved = BertForSequenceClassification.from_pretrained(tmp_path / "probed" / f"checkpoint-{step}")
        later = ws.probe_sensitivity(saved, tokenizer(), TEXTS, **probe)
        assert later.texts == callback.reports[step].texts
    metrics = trainer.evaluate()
    assert metrics["eval_word_sensitivity"] == callback.history[-1]["word_sensitivity"]
    assert [entry["step"] for entry in callback.history] == [0, 2, 4, 6]


@pytest.mark.slow
def test_the_callback_by_itself(tmp_path: Path) -> None:
    """Given to the trainer but not attached: the trainer's history and what `evaluate` returns have it."""
    callback = ws.WordSensitivityCallback(TEXTS[0], words=["soup"], at_start=False)
    trainer = a_trainer(tmp_path, [callback])
    metrics = trainer.evaluate()
    assert metrics["eval_word_sensitivity"] == callback.history[0]["word_sensitivity"]
    assert trainer.state.log_history[-1]["eval_word_sensitivity_1"] == callback.history[0]["word_sensitivity_1"]
    broken = {**callback.options, "output": "layer:9"}
    callback.options = broken
    with pytest.warns(UserWarning, match="no word sensitivity at step 0: layer 9 is not there"):
        trainer.evaluate()
    callback.history.clear()
    with pytest.raises(ws.InputError, match="layer 9"):
        trainer.evaluate()


@pytest.mark.slow
def test_transformers_is_loaded_for_the_callback_alone() -> None:
    code = (
        "import sys, wordsway as ws; ws.probe_sensitivity, ws.sensitivity_penalty, ws.embedding_noise;"
        "assert 'transformers' not in sys.modules; ws.WordSensitivityCallback; assert 'transformers' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


# Control


def of_one_text(output: str, last: Tensor) -> Tensor:
    """An output that is not written out here: its own definition, for a text without padding."""
    kind = trained_output(output)
    assert isinstance(kind, StateOutput)
    return kind.of_state(last[None], None)[0]


def by_hand(model: Any, text: str, token: int, delta: Tensor, output: str) -> float:
    """The relative change for a text that stands alone, by a hook on the embeddings."""

    def features(move: Tensor) -> Tensor:
        def add(module: Any, arguments: Any, states: Tensor) -> Tensor:
            return states.index_put((torch.tensor([0]), torch.tensor([token])), move[None], accumulate=True)

        hook = model.base_model.embeddings.register_forward_hook(add)
        with torch.no_grad():
            ran = model(**tokenizer()(text, return_tensors="pt"), output_hidden_states=True)
        hook.remove()
        last = ran.hidden_states[-1][0]
        known = {"last": last, "pooled": last.mean(0), "pooled:first": last[0], "pooled:last": last[-1],
                 "pooled:mean": last.mean(0), "norm": last.norm(dim=1), "logits": ran.logits[0]}  # fmt: skip
        return known[output] if output in known else of_one_text(output, last)

    base = features(torch.zeros_like(delta))
    return float((features(delta) - base).norm() / base.norm())


@pytest.mark.parametrize("output", trained())
@pytest.mark.parametrize("side", ["left", "right"])
def test_the_change_of_padded_texts_is_that_of_each_alone(output: str, side: str) -> None:
    if (output, side) == ("logits", "left"):
        pytest.skip("BERT's classifier reads the first place, which is padding then")
    model = tiny("bert", "classifier", torch.float64)
    padded = copy.deepcopy(tokenizer())
    padded.padding_side = side
    inputs = padded(TEXTS, padding=True, return_tensors="pt")
    starts = inputs["attention_mask"].argmax(1)
    # BERT counts positions from the padded start.
    inputs["position_ids"] = (torch.arange(inputs["input_ids"].shape[1])[None] - starts[:, None]).clamp(min=0)
    batch = Batch(model, inputs, trained_output(output))
    tokens = torch.tensor([2, 4]) + starts
    delta = batch.find_moves(tokens, 0.8, 2, torch.Generator().manual_seed(0))
    found = batch.relative_change(tokens, delta)
    for k, text in enumerate(TEXTS):
        assert float(found[k].detach()) == pytest.approx(by_hand(model, text, [2, 4][k], delta[k], output), rel=1e-9)
    rows = PretrainedMap(model, tokenizer=tokenizer())
    norms = [float(rows.encode(text).X.norm(dim=1)[token]) for text, token in zip(TEXTS, (2, 4), strict=True)]
    assert delta.norm(dim=1).tolist() == pytest.approx([0.8 * norm for norm in norms], rel=1e-5)


def test_its_gradient_is_that_of_the_change_with_the_move_held_fixed() -> None:
    model = tiny("bert", "classifier", torch.float64)
    batch = Batch(model, tokenizer()(TEXTS, padding=True, return_tensors="pt"), trained_output("pooled"))
    tokens = torch.tensor([2, 3])
    delta = batch.find_moves(tokens, 1.0, 1, torch.Generator().manual_seed(0))
    weight = model.base_model.encoder.layer[1].attention.self.query.weight
    way = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    (gradient,) = torch.autograd.grad(batch.relative_change(tokens, delta).sum(), weight)
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            weight += sign * 1e-5 * way
            ends.append(float(batch.relative_change(tokens, delta).sum()))
            weight -= sign * 1e-5 * way
    assert float((gradient * way).sum()) == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_penalty_of_every_family(family: str) -> None:
    """Between nothing and what a search finds; the search for the penalty does better than a random move."""
    model, known = tiny(family).train(), tokenizer()
    inputs = known(TEXTS[0], return_tensors="pt", return_token_type_ids=family == "bert")
    before = state_of(model)
    found = float(ws.sensitivity_penalty(model, inputs, known, steps=4, seed=2).detach())
    assert changed(model, before) == []
    assert 0 < found < 1
    if family in ("bert", "roberta", "gpt2"):  # the others would only take time
        best = ws.probe_sensitivity(model, known, TEXTS[0], random_draws=8)
        assert found <= 1.001 * best.word_sensitivity / (1 + best.word_sensitivity)
        assert family == "gpt2" or found > best.random / (1 + best.random)


@pytest.mark.slow
@pytest.mark.parametrize(("weight", "goes"), [(1.0, "down"), (-1.0, "up")])
def test_training_on_it_moves_word_sensitivity(weight: float, goes: str) -> None:
    model = tiny("bert", layers=2).train()
    inputs = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    values = [ws.probe_sensitivity(model, tokenizer(), TEXTS, **PROBE).word_sensitivity]
    for step in range(20):
        term = ws.sensitivity_penalty(model, inputs, tokenizer(), seed=step)
        assert 0 <= float(term.detach()) < 1
        (weight * term).backward()
        optimizer.step()
        optimizer.zero_grad()
    values.append(ws.probe_sensitivity(model, tokenizer(), TEXTS, **PROBE).word_sensitivity)
    assert values[1] < 0.8 * values[0] if goes == "down" else values[1] > 1.1 * values[0]


def test_only_words_are_moved_and_all_of_them() -> None:
    inputs = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    batch = Batch(tiny("bert"), inputs, trained_output("pooled"))
    drawn = torch.stack([batch.random_words(tokenizer(), torch.Generator().manual_seed(k)) for k in range(300)])
    lengths = inputs["attention_mask"].sum(1).tolist()
    for column, length in zip(drawn.T, lengths, strict=True):
        assert sorted(set(column.tolist())) == list(range(1, length - 1))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"output": "all-layers"}, "output='all-layers' is not known"),
        ({"output": "logits"}, "output='logits' is for classifiers"),
        ({"radius": -1.0}, "radius must be a positive number"),
        ({"steps": 0}, "steps"),
        ({"inputs": {}}, 'inputs needs "input_ids"'),
        ({"inputs": {"input_ids": torch.tensor([[101, 7592, 102], [101, 102, 0]])}}, "text 2 of the batch has no word"),
    ],
)
def test_penalties_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    known: dict[str, Any] = {"model": tiny("bert"), "inputs": tokenizer()(TEXTS[:1], return_tensors="pt")}
    known |= {"tokenizer": tokenizer(), **options}
    with pytest.raises(ws.InputError, match=message):
        ws.sensitivity_penalty(**known)


def test_noise_has_the_size_asked_for_and_ends() -> None:
    model = tiny("bert", "classifier")
    inputs = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    seen: list[Tensor] = []
    block = model.base_model.encoder.layer[0]
    hook = lambda module, arguments, keywords: seen.append((arguments or (keywords["hidden_states"],))[0])  # noqa: E731

    def rows(size: float | None, seed: int = 0) -> Tensor:
        with nullcontext() if size is None else ws.embedding_noise(model, size, seed=seed):
            handle = block.register_forward_pre_hook(hook, with_kwargs=True)  # after the one that adds the noise
            model(**inputs)
            handle.remove()
        return seen[-1].detach()

    still = rows(None)
    share = torch.stack([(rows(0.5, k) - still).norm(dim=-1) / still.norm(dim=-1) for k in range(50)])
    assert float(share.square().mean()) == pytest.approx(0.25, rel=0.02)
    assert torch.equal(rows(0.5, 3), rows(0.5, 3)) and not torch.equal(rows(0.5, 3), rows(0.5, 4))
    assert torch.equal(rows(None), still)
    with ws.embedding_noise(model, 0.5):
        model(**inputs).logits.sum().backward()
    assert model.get_input_embeddings().weight.grad is not None
    with pytest.raises(ws.InputError, match="size must be a positive number"):
        ws.embedding_noise(model, 0.0)


# The study


def test_a_word_is_a_token() -> None:
    known = word_tokenizer(["The soup, again!", "It was cold."])
    ids = known("It was THE soup!")["input_ids"]
    assert known.convert_ids_to_tokens(ids) == ["[CLS]", "it", "was", "the", "soup", "!", "[SEP]"]
    data, made, lengths = corpus("sample")
    assert made.unk_token_id not in {i for ids in made(list(data.texts))["input_ids"] for i in ids}
    assert max(lengths) < 128


def test_what_is_tested_was_not_trained_on() -> None:
    data = corpus("sample")[0]
    splits = [Split.draw(data, pairs, 100, (0, "training", 3)) for pairs in (8, 60)]
    for split in splits:
        tested = {side for pair in split.held_out_pairs for side in pair} | set(split.held_out)
        assert not tested & set(split.train)
        assert not {data.texts[k] for k in tested} & {data.texts[k] for k in split.train}
        numbers = {data.pair[k] for k in split.train} - {None}
        assert not numbers & {data.pair[k] for k in tested}
        assert len(split.held_out_pairs) == 80 and len(split.held_out) == 80
        assert sum(data.labels[k] for pair in split.held_out_pairs for k in pair) == 0
    assert splits[0].held_out_pairs == splits[1].held_out_pairs and len(splits[0].train) == 16 + 100
    with pytest.raises(ws.InputError, match="train_pairs=81 is more than the 80"):
        Split.draw(data, 81, 0, (0,))


@pytest.mark.slow
def test_a_cell_gives_the_same_again_however_often_it_is_looked_at() -> None:
    torch.manual_seed(1)
    found = TrainingCell(**QUICK).measure().rows
    torch.manual_seed(2)
    state = torch.get_rng_state()
    again = TrainingCell(**{**QUICK, "eval_every": 2}).measure().rows
    assert torch.equal(torch.get_rng_state(), state)
    assert [(row["step"], row["phase"]) for row in found] == [(0, "start"), (1, "between"), (2, "end")]
    assert again == [found[0], {**found[2], "train_loss": again[1]["train_loss"]}]
    assert set(found[0]) == {*TrainingCell.numbers, *TrainingCell.names}
    other = TrainingCell(**QUICK, trial=1).measure().rows
    assert other[0]["word_sensitivity"] != found[0]["word_sensitivity"]


@pytest.mark.slow
def test_regimes_start_alike_and_end_apart() -> None:
    found = [
        TrainingCell(**{**QUICK, "eval_every": 2, "regime": name, "strength": 2.0}).settle().measure().rows
        for name in REGIMES
    ]
    assert all(rows[0] == found[0][0] for rows in found)
    assert len({rows[-1]["word_sensitivity"] for rows in found}) == len(REGIMES)
    assert TrainingCell(strength=3.0).settle() == TrainingCell()
    study = ws.Study("t", {"measure": "training", **QUICK, "regime": list(REGIMES), "strength": 2.0, "eval_every": 2})
    rows = [
        {"study": "t", "panel": "1", "trial": 0, "regime": name, "strength": 0.0 if name == "plain" else 2.0, **row}
        for name, part in zip(REGIMES, found, strict=True)
        for row in part
    ]
    drawn = draw_study(study, Table(tuple(rows)), lambda key: {}).figure
    drawn.canvas.draw()
    assert len(drawn.subfigs) == 1


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"regime": "loud"}, "regime='loud' is not known; use: plain, penalty, bonus, noise"),
        ({"regime": "noise"}, "strength=0.0 must be a positive number for the regime 'noise'"),
        ({"learning_rate": 0.0}, "learning_rate must be a positive number"),
        ({"eval_every": 3}, "eval_every=3 does not divide steps=2"),
        ({"heads": 3}, "heads=3 does not divide d=16"),
        ({"train_pairs": 0, "train_reviews": 0}, "train_pairs and train_reviews are both 0"),
        ({"output": "layer:1"}, "output='layer:1' is not known"),
        ({"probes": 0}, "probes"),
    ],
)
def test_cells_that_make_no_sense(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ws.InputError, match=re.escape(message)):
        TrainingCell(**{**QUICK, **fields})


def test_texts_without_pairs(tmp_path: Path) -> None:
    file = tmp_path / "texts.csv"
    file.write_text("text,label\nI like it.,1\nI hate it.,0\n")
    with pytest.raises(ws.InputError, match="has 0 minimal pairs, but at least 4 are needed"):
        TrainingCell(**QUICK, data=str(file)).measure()
