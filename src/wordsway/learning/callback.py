"""The callback for the `Trainer` of the transformers library: word sensitivity at every evaluation, in its logs."""

import warnings
from collections.abc import Sequence
from typing import Any

from wordsway.learning.probe import ProbeReport, check_probes, check_radius, probe_sensitivity
from wordsway.models.loading.locate import require_transformers
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_budget
from wordsway.support.public_gate import public

require_transformers()

from transformers import TrainerCallback  # noqa: E402

PREFIX = "eval_"  # what integrations look for, and `metric_for_best_model` too


@public
class WordSensitivityCallback(TrainerCallback):
    """Measures the word sensitivity of some probe texts before the first step and at every evaluation, as
    `probe_sensitivity` does with the same options; training goes on as if it had not been there.

    `WordSensitivityCallback(texts).attach(trainer)` logs `eval_word_sensitivity` (mean over the texts),
    `eval_word_sensitivity_1` and so on (each text) and `eval_random_change` through the trainer, so that every
    integration sees them. Given as `Trainer(callbacks=[...])` alone, they are in `state.log_history` and in what
    `evaluate` returns, but integrations do not hear of them: the library tells a callback nothing of its trainer.
    `history` has a dict for every step, and `reports` the whole answer.
    """

    def __init__(
        self,
        texts: str | Sequence[str],
        *,
        tokenizer: Any = None,
        at_start: bool = True,
        output: str = "pooled",
        words: str | Sequence[str | int] = "all",
        radius: float = 1.0,
        budget: str = "quick",
        random_draws: int = 32,
        seed: int = 0,
        max_tokens: int | None = None,
    ) -> None:
        self.texts = check_probes(texts, words)
        check_budget(budget)
        check_radius(radius)
        self.tokenizer, self.at_start = tokenizer, at_start
        self.options: dict[str, Any] = {"output": output, "words": words, "radius": radius, "budget": budget}
        self.options |= {"random_draws": random_draws, "seed": seed, "max_tokens": max_tokens}
        self.history: list[dict[str, float]] = []
        self.reports: dict[int, ProbeReport] = {}
        self.trainer: Any = None

    def attach(self, trainer: Any) -> "WordSensitivityCallback":
        """Add it to a trainer, whose log it then uses."""
        if not hasattr(trainer, "callback_handler"):
            raise InputError(f"attach takes a Trainer of the transformers library, got {type(trainer).__name__}")
        if not any(callback is self for callback in trainer.callback_handler.callbacks):
            trainer.add_callback(self)
        self.trainer = trainer
        return self

    def on_train_begin(self, args: Any, state: Any, control: Any, **known: Any) -> None:
        if self.at_start and state.global_step == 0:
            self._log(self._probe(state, known), state)

    def on_evaluate(self, args: Any, state: Any, control: Any, metrics: Any = None, **known: Any) -> None:
        try:
            report = self._probe(state, known)
        except InputError as error:  # a training of days is not to end because a probe could not be made
            if not self.history:
                raise
            warnings.warn(f"no word sensitivity at step {state.global_step}: {error}", stacklevel=2)
            return
        if metrics is not None:
            metrics.update(report.metrics(PREFIX))
        self._log(report, state)

    def _probe(self, state: Any, known: dict[str, Any]) -> ProbeReport:
        tokenizer = self.tokenizer if self.tokenizer is not None else known.get("processing_class")
        if tokenizer is None:
            raise InputError("the trainer has no tokenizer (processing_class): give the callback one, tokenizer=")
        return probe_sensitivity(known["model"], tokenizer, self.texts, **self.options)

    def _log(self, report: ProbeReport, state: Any) -> None:
        step = int(state.global_step)
        if self.history and self.history[-1]["step"] == step:  # one evaluation for each of several data sets
            self.history.pop()
        self.history.append({"step": step, **report.metrics()})
        self.reports[step] = report
        entry = report.metrics(PREFIX)
        if self.trainer is not None:
            self.trainer.log(entry)
        else:
            epoch = {} if state.epoch is None else {"epoch": state.epoch}
            state.log_history.append({**entry, **epoch, "step": step})
