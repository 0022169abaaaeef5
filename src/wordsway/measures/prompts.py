"""The public function `compare_prompts`: what a causal model says next to two prompts, and how it goes on."""

from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from wordsway import __version__
from wordsway.models.loading.load import open_model
from wordsway.models.running.encoder import check_text
from wordsway.models.running.model import Transformer
from wordsway.support.errors import InputError
from wordsway.support.plain_checks import check_size
from wordsway.support.plotting import paired_bars
from wordsway.support.public_gate import public
from wordsway.support.result import Result


@dataclass(frozen=True, repr=False)
class PromptChange(Result):
    """Two prompts: the Kullback-Leibler divergence of the second next-token distribution from the first (nats), the
    likeliest tokens of each with their probabilities under both, and the greedy answers."""

    format: ClassVar[str] = "wordsway.prompts/1"
    compared: ClassVar[tuple[tuple[str, ...], str] | None] = (("token",), "after")

    model: str
    before: str
    after: str
    chat: bool
    change: float
    kl: float
    top_before: tuple[tuple[str, float, float], ...]
    top_after: tuple[tuple[str, float, float], ...]
    answer_before: str
    answer_after: str
    answer_tokens: int
    version: str = __version__
    made: dict[str, Any] | None = None

    def summary(self) -> str:
        """Say how far the next token's distribution changes."""
        first, second = self.top_before[0][0], self.top_after[0][0]
        return f"{self.model}: {self.kl:.3g} nats; next token {first!r} -> {second!r}"

    def records(self) -> list[dict[str, Any]]:
        """Make the table: one row a token that is likely after one of the prompts, with its probability after both."""
        both = {token: (a, b) for token, a, b in (*self.top_before, *self.top_after)}
        return [{"token": token, "before": a, "after": b} for token, (a, b) in both.items()]

    def plot(self, ax: Any = None) -> Any:
        """Draw the likeliest next tokens with their probabilities after both prompts. Returns the axes."""
        rows = self.records()
        series = {name: [row[name] for row in rows] for name in ("before", "after")}
        title = f"{self.model}: the next token after two prompts, {self.kl:.3g} nats apart"
        return paired_bars(ax, [repr(row["token"]) for row in rows], series, "probability", title)


@public
def compare_prompts(
    model: Any,
    before: str,
    after: str,
    *,
    chat: bool | None = None,
    answer_tokens: int = 40,
    top: int = 5,
    tokenizer: Any = None,
    device: torch.device | str = "cpu",
) -> PromptChange:
    """Compare a causal model's answers to two prompts. `chat` puts them into the model's chat template as what a user
    says; None does so where the model has one. Answers are greedy and at most `answer_tokens` long (0 leaves them out).
    """
    check_size(answer_tokens, "answer_tokens", least=0)
    check_size(top, "top")
    opened = open_model(model, tokenizer, device)
    if not opened.predicts_tokens:
        raise InputError(
            f"{opened.name} does not predict tokens, so it has no answers to compare; name a causal model, such as a "
            ".gguf file"
        )
    if chat and not opened.encoder.tokenizer.chat_template:
        raise InputError(f"{opened.name} has no chat template; leave out --chat")
    chats = bool(opened.encoder.tokenizer.chat_template) if chat is None else chat
    ids = [_ids(opened, check_text(text, "the prompt"), chats) for text in (before, after)]
    if torch.equal(ids[0], ids[1]) if ids[0].shape == ids[1].shape else False:
        raise InputError("the two prompts are the same to the model")
    with torch.no_grad():
        logits = [opened.whole(input_ids=part, use_cache=False).logits[0, -1].cpu().double() for part in ids]
    logs = [part.log_softmax(0) for part in logits]
    answers = [_answer(opened, part, answer_tokens) for part in ids]
    return PromptChange(
        model=opened.name,
        before=before,
        after=after,
        chat=chats,
        change=float((logits[1] - logits[0]).norm() / logits[0].norm()),
        kl=float((logs[0].exp() * (logs[0] - logs[1])).sum()),
        top_before=_top(opened, logs[0], logs, top),
        top_after=_top(opened, logs[1], logs, top),
        answer_before=answers[0],
        answer_after=answers[1],
        answer_tokens=answer_tokens,
    )


def _ids(model: Transformer, text: str, chat: bool) -> Tensor:
    tokenizer, limit = model.encoder.tokenizer, model.encoder.limit
    if chat:
        marks = [mark for mark in tokenizer.all_special_tokens if mark in text]
        if marks:
            raise InputError(f"the prompt has the special token {marks[0]!r} in it, which would end the user's turn")
        messages = [{"role": "user", "content": text}]
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
    else:
        ids = model.encoder.tokenize([text])[0].ids
    if limit is not None and len(ids) > limit:
        raise InputError(f"the prompt has {len(ids)} tokens, but {model.name} takes at most {limit}")
    return torch.tensor([list(ids)], device=model.device)


def _answer(model: Transformer, ids: Tensor, most: int) -> str:
    if most == 0:
        return ""
    tokenizer = model.encoder.tokenizer
    with torch.no_grad():
        made = model.whole.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            max_new_tokens=most,
            pad_token_id=model.encoder.pad,
        )
    return tokenizer.decode(made[0, ids.shape[1] :], skip_special_tokens=True).strip()


def _top(model: Transformer, logs: Tensor, both: list[Tensor], count: int) -> tuple[tuple[str, float, float], ...]:
    return tuple(
        (model.encoder.tokenizer.decode([index]), float(both[0][index].exp()), float(both[1][index].exp()))
        for index in logs.topk(min(count, len(logs))).indices.tolist()
    )
