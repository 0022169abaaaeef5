"""The steps of `wordsway measure`: refuse options that do not go together, ask the question, show its answer."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

from wordsway.cli.command import short_name
from wordsway.cli.option_values import numbers_of, whole_numbers
from wordsway.cli.output import ResultOutput, finish, said, ways
from wordsway.support.errors import InputError
from wordsway.support.names import BUDGETS, GAUSSIAN

if TYPE_CHECKING:
    from wordsway.measures.question import OpenQuestion, Question


def check_early(word: str | None, token: str | None, against: str | None, moves: bool) -> None:
    """Check what can be told to be wrong before a model is loaded."""
    if word is not None and token is not None:
        raise InputError("give --word or --token, not both")
    if against is not None and (word is not None or token is not None or moves):
        raise InputError("--against names the word itself: leave out --word, --token, --joint and --special")


def check_against(against: str | None, explained: int | None, watch: bool, tokens_at_once: int | None) -> None:
    """Refuse options that do not go with a second text, where there is one."""
    if against is None:
        return
    if explained:
        raise InputError("--explain is about the words of one text; it does not go with --against")
    if watch:
        raise InputError("--watch is about the words of one text; it does not go with --against")
    if tokens_at_once is not None:
        raise InputError("--against names the one word that changes; --tokens-at-once does not go with it")


def refuse_with_model(
    given: dict[str, Any], tokens_at_once: int | None, raw: bool, layer: int, activation: str, temperature: float
) -> None:
    """Refuse options of a map where a model is measured: they must not be ignored."""
    given = {**given, "--tokens-at-once": tokens_at_once}
    used = [option for option, value in given.items() if value is not None]
    used += ["--raw"] * raw + ["--layer"] * (layer != 0) + ["--activation"] * (activation != "relu")
    used += ["--temperature"] * (temperature != 1.0)
    if used:
        hint = "; for two texts: wordsway substitute --candidates, or ws.change" if used[0] == "--against" else ""
        raise InputError(f"{used[0]} belongs to a map, not to --model; leave one of them out{hint}")


def radii_asked(radius: str, alone: dict[str, Any]) -> list[float]:
    """Read --radius: one number, or several by commas. Options that go with one number only are in `alone`."""
    radii = numbers_of(radius, "--radius")
    wrong = next((value for value in radii if not 0 < value < math.inf), None)
    if not radii or wrong is not None:
        raise InputError(f"--radius must be a positive number, got {radius if wrong is None else wrong!r}")
    used = [option for option, value in alone.items() if value]
    if used and len(radii) > 1:
        raise InputError(f"{used[0]} does not go with several radii; give one --radius, or leave it out")
    return radii


def refuse_text_options(given: dict[str, Any], encoder: str | None) -> None:
    """Refuse options that make no sense without a text: they must not be ignored."""
    given = {**given, f"--encoder {encoder}": encoder is not None and encoder not in GAUSSIAN}
    for option, used in given.items():
        if used:
            raise InputError(f'{option} needs a text: wordsway measure "YOUR TEXT", --file PATH, or - for stdin')


def find_encoder(encoder: str | None, correlation: float | None, d: int | None, seed: int, text: str | None) -> Any:
    """Find the encoder of a map's text by its name; Gaussian ones are objects, since they have options."""
    from wordsway.models.encoding.synthetic import SyntheticEncoder
    from wordsway.support.names import ENCODER

    if correlation is not None and encoder != "correlated":
        raise InputError("--correlation belongs to --encoder correlated")
    if encoder not in GAUSSIAN and text is not None:
        return ENCODER if encoder is None else encoder
    usual = 0.5 if correlation is None else correlation
    return SyntheticEncoder(768 if d is None else d, 0.0 if encoder != "correlated" else usual, seed)


def draw_tokens(n: int | None, d: int | None, seed: int, correlation: float) -> Any:
    """Draw Gaussian tokens, where there is no text."""
    from wordsway.tokens import synthetic_tokens

    return synthetic_tokens(100 if n is None else n, 768 if d is None else d, seed, correlation)


def tokens_asked(token: str | None, text: str | None, tokens_at_once: int | None) -> Any:
    """Read --token. Unless given, all words of a text move, or all tokens are candidates to move together; of Gaussian
    tokens, which are all alike, the first moves alone."""
    if token is None:
        return [0] if text is None and tokens_at_once is None else None
    return token if token == "all" else whole_numbers(token, "--token")


@contextmanager
def option_names() -> Iterator[None]:
    """Call a wrong field of a question by the name of its option."""
    from wordsway.measures.question import QuestionError

    try:
        yield
    except QuestionError as error:
        name = "of" if error.field == "output" else error.field.replace("_", "-")
        raise InputError(f"--{name}{error.fault}") from None


def shorter(question: "Question") -> str:
    """Name options that would make a measurement shorter."""
    alone = question.word is None and isinstance(question.text, str)
    bounded = question.certificate and question.model is None
    used = {"--word W": alone, "--budget quick": question.budget != "quick", "--no-certificate": bounded}
    return ways({**used, "--max-tokens N": question.max_tokens is None and alone})


def open_question(question: "Question") -> "OpenQuestion":
    """Load the model or draw the map, and say what is measured where no text was given."""
    from torch import Tensor

    from wordsway.support.progress import say, waiting

    model = question.model
    with option_names(), nullcontext() if model is None else waiting(f"loading {short_name(model)}"):
        opened = question.open()
    if isinstance(question.text, Tensor):
        count, size = question.text.shape
        say(f"no text: measuring {count} random tokens of {size} coordinates (--n, --d)")
    return opened


def answer(question: "Question", against: str | None, watch: bool, end: ResultOutput) -> None:
    """Measure what was asked, and write and show the result."""
    from wordsway.cli import show
    from wordsway.measures.expected import expected_seconds
    from wordsway.support.progress import progress_bar

    opened = open_question(question)
    if against is not None:
        return compare(opened, against, end)
    with progress_bar("token", shorter(question), expected_seconds(opened)) as update:
        result = opened.measure(progress=update, each=said if watch else None)
    named = isinstance(question.encoder, str)
    result = end.complete(opened.phi, opened.X, result, None if named else question.encoder)
    finish(result, end.as_json, end.out, partial(show.sensitivity, stretch=end.stretch))


def answer_profile(question: "Question", radii: list[float], end: ResultOutput) -> None:
    """Measure every word at several radii, and write and show the result."""
    from dataclasses import replace

    from wordsway.cli.command import command_line
    from wordsway.cli.show_flips import profile_table
    from wordsway.measures.expected import expected_seconds
    from wordsway.measures.radius_profile import radius_profile
    from wordsway.support.progress import progress_bar
    from wordsway.support.provenance import made
    from wordsway.tokens import Tokens

    if isinstance(question.budget, int):
        raise InputError(f"--budget of several radii is {', '.join(BUDGETS)}, not a number")
    opened = open_question(question)
    # The largest radius takes longest by far, so the estimate is that of it.
    with progress_bar("radius", shorter(question), expected_seconds(opened)) as update:
        result = radius_profile(
            opened.phi,
            opened.X,
            radii,
            question.word if isinstance(opened.X, Tokens) else 1,  # Gaussian tokens are all alike
            certificate=question.certificate,
            budget=question.budget or "default",
            seed=question.seed,
            device=question.device,
            progress=update,
        )
    result = replace(result, made=made(command_line()))
    finish(result, end.as_json, end.out, profile_table)


def compare(opened: "OpenQuestion", against: str, end: ResultOutput) -> None:
    """Measure what one given word changes, beside the worst case and beside random words."""
    from wordsway.cli import show
    from wordsway.measures.compare_word import changed_word, substitution
    from wordsway.models.encoding.vocabulary import random_words
    from wordsway.support.progress import progress_bar
    from wordsway.tokens import Tokens

    asked, text = opened.question, opened.X
    assert isinstance(text, Tokens)
    other = asked.encode(against)
    place = changed_word(text, other)
    options: dict[str, Any] = {"encoder": asked.encoder, "seed": asked.seed, "device": asked.device}
    count = asked.random_draws
    # Making the random texts, and measuring them, are the steps that show the pace of the whole.
    total, used = 2 * count + 2, {"--budget quick": asked.budget != "quick", "--draws 0": count > 0}
    with progress_bar("step", ways({**used, "--no-certificate": asked.certificate})) as update:
        words = []
        if count:
            words = random_words(text, place + 1, count, **options, progress=lambda done, _: update(done, total))
        steps: dict[str, Any] = {"progress": lambda done, of: update(count + done, count + of)}
        result = end.compared(substitution(opened.phi, text, other, words, **opened.search, **steps))
    finish(result, end.as_json, end.out, show.substitution)
