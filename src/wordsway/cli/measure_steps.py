"""The steps of `wordsway measure`: check the values of the command, make a map or a model, and tokens, and measure."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wordsway.cli.options import At, the_text, whole_numbers
from wordsway.cli.output import ResultOutput, open_quietly, said
from wordsway.support.errors import InputError
from wordsway.support.files import check_target
from wordsway.support.names import GAUSSIAN

if TYPE_CHECKING:
    from wordsway.tokens import Tokens


@dataclass(frozen=True)
class Asked:
    """The values of the command that mean the same for a map and for a model."""

    text: str | None
    word: str | None
    token: str | None
    joint: bool
    special: bool
    radius: float
    max_tokens: int | None
    budget: int | str | None
    draws: int
    seed: int
    device: str
    watch: bool

    def search(self) -> dict[str, Any]:
        """Make the options of the search."""
        return {"seed": self.seed, "budget": self.budget, "device": self.device}

    def moves(self) -> dict[str, Any]:
        """Make the options that say what moves, and who is told."""
        each = said if self.watch else None
        return {"joint": self.joint, "special": self.special, "random_draws": self.draws, "each": each}


@dataclass(frozen=True)
class Rows:
    """The values of the command that say what the rows of a text are for a map."""

    encoder: str | None
    correlation: float | None
    layer: int
    raw: bool
    n: int | None
    d: int | None

    def source(self, asked: Asked) -> Any:
        """Find the encoder by its name; Gaussian ones are objects, since they have options."""
        if self.correlation is not None and self.encoder != "correlated":
            raise InputError("--correlation belongs to --encoder correlated")
        if self.encoder not in GAUSSIAN and asked.text is not None:
            return "minilm" if self.encoder is None else self.encoder
        from wordsway.models.encoding.synthetic import SyntheticEncoder

        usual = 0.5 if self.correlation is None else self.correlation
        strength = 0.0 if self.encoder != "correlated" else usual
        return SyntheticEncoder(768 if self.d is None else self.d, strength, asked.seed)

    def encode(self, text: str, source: Any, asked: Asked) -> "Tokens":
        """Encode a text, cropped as asked; the same for both texts of a comparison."""
        from wordsway.models.encoding.encode import encode
        from wordsway.tokens import check_size

        options: dict[str, Any] = {"layer": self.layer, "normalize": not self.raw, "device": asked.device}
        tokens = encode(text, source, max_tokens=asked.max_tokens, **options)
        if self.n is not None:
            if check_size(self.n, "--n") > len(tokens):
                have = len(tokens)
                raise InputError(f"--n {self.n} is more than the {have} tokens that the text has; use at most {have}")
            tokens = tokens[: self.n]
        return tokens if self.d is None else tokens.first_dims(self.d)

    def drawn(self, source: Any, seed: int) -> Any:
        """Draw Gaussian tokens, where there is no text."""
        from wordsway.tokens import synthetic_tokens

        n, d = (usual if value is None else value for value, usual in ((self.n, 100), (self.d, 768)))
        return synthetic_tokens(n, d, seed, source.correlation)


def check_early(
    radius: float, word: str | None, token: str | None, against: str | None, moves: bool, out: Path | None
) -> None:
    """Check what can be told to be wrong before a model is loaded."""
    if not 0 < radius < float("inf"):
        raise InputError(f"--radius must be a positive number, got {radius}")
    if word is not None and token is not None:
        raise InputError("give --word or --token, not both")
    if against is not None and (word is not None or token is not None or moves):
        raise InputError("--against names the word itself: leave out --word, --token, --joint and --special")
    if out is not None:
        check_target(out)


def refuse_with_model(given: dict[str, Any], raw: bool, layer: int, activation: str, temperature: float) -> None:
    """Refuse options of a map where a model is measured: they must not be ignored."""
    used = [option for option, value in given.items() if value is not None]
    used += ["--raw"] * raw + ["--layer"] * (layer != 0) + ["--activation"] * (activation != "relu")
    used += ["--temperature"] * (temperature != 1.0)
    if used:
        hint = "; for two texts: wordsway substitute --candidates, or ws.change" if used[0] == "--against" else ""
        raise InputError(f"{used[0]} belongs to a map, not to --model; leave one of them out{hint}")


def refuse_text_options(
    encoder: str | None,
    model: str | None,
    against: str | None,
    word: str | None,
    joint: bool,
    special: bool,
    raw: bool,
    layer: int,
    max_tokens: int | None,
) -> None:
    """Refuse options that make no sense without a text: they must not be ignored."""
    given = {
        "--model": model is not None,
        "--against": against is not None,
        "--word": word is not None,
        "--joint": joint,
        "--special": special,
        "--raw": raw,
        "--layer": layer != 0,
        "--max-tokens": max_tokens is not None,
        f"--encoder {encoder}": encoder is not None and encoder not in GAUSSIAN,
    }
    for option, used in given.items():
        if used:
            raise InputError(f'{option} needs a text: wordsway measure "YOUR TEXT", --file PATH, or - for stdin')


def measure_model(asked: Asked, model: str, output: str, at: At, end: ResultOutput) -> None:
    """Carry out `wordsway measure TEXT --model M`."""
    from wordsway.cli import show
    from wordsway.measures.sensitivity import word_sensitivity
    from wordsway.models.moving.map import PretrainedMap
    from wordsway.support.progress import progress_bar

    text = the_text(asked.text, None)
    phi = PretrainedMap(open_quietly(model, asked.device), output, at=at.value)
    tokens = phi.encode(text, asked.max_tokens)
    chosen, radius = _chosen(tokens, asked.word, asked.token), _radius(asked.radius, tokens.X, own_norms=True)
    with progress_bar(not end.as_json) as update:
        tell = lambda done, total: update(done, total, "token")  # noqa: E731
        result = word_sensitivity(phi, tokens, chosen, radius=radius, progress=tell, **asked.moves(), **asked.search())
    end.write(end.complete(phi, tokens, result), show.sensitivity)


def measure_map(
    asked: Asked,
    name: str,
    recipe: dict[str, Any],
    rows: Rows,
    together: dict[str, Any],
    certificate: bool,
    against: str | None,
    end: ResultOutput,
) -> None:
    """Carry out `wordsway measure` for a map: on a text, on Gaussian tokens, or on a text and another one."""
    from wordsway.cli import show
    from wordsway.maps.named import named_map
    from wordsway.measures.sensitivity import word_sensitivity
    from wordsway.support.progress import progress_bar

    source = rows.source(asked)
    X: Any = rows.drawn(source, asked.seed) if asked.text is None else rows.encode(asked.text, source, asked)
    matrix: Any = X if asked.text is None else X.X
    phi = named_map(name, matrix.shape[0], matrix.shape[1], asked.seed, device=asked.device, **recipe)
    search = {**asked.search(), "radius": _radius(asked.radius, matrix, rows.raw), "certificate": certificate}
    if against is not None and asked.watch:
        raise InputError("--watch is about the words of one text; it does not go with --against")
    if against is not None and together["tokens_at_once"] is not None:
        raise InputError("--against names the one word that changes; --tokens-at-once does not go with it")
    if against is not None:
        from wordsway.measures.compare_word import changed_word, substitution
        from wordsway.models.encoding.vocabulary import random_words

        other = rows.encode(against, source, asked)
        place = changed_word(X, other)
        options: dict[str, Any] = {"encoder": source, "seed": asked.seed, "device": asked.device}
        words = random_words(X, place, asked.draws, **options) if asked.draws else []
        compared = substitution(phi, X, other, words, **search)
        return end.write(end.compared(compared), show.substitution)
    all_move = together["tokens_at_once"] is not None and asked.token is None and asked.word is None
    chosen = _chosen(X if asked.text is not None else None, asked.word, "all" if all_move else asked.token)
    with progress_bar(not end.as_json) as update:
        tell = lambda done, total: update(done, total, "token")  # noqa: E731
        result = word_sensitivity(phi, X, chosen, progress=tell, **together, **asked.moves(), **search)
    end.write(end.complete(phi, X, result, None if isinstance(source, str) else source), show.sensitivity)


def _radius(radius: float, rows: Any, own_norms: bool) -> Any:
    if own_norms:
        return [radius * size for size in rows.double().norm(dim=1).tolist()]
    return radius * rows.shape[1] ** 0.5


def _chosen(tokens: "Tokens | None", word: str | None, token: str | None) -> Any:
    """Find the tokens to move."""
    if word is not None and tokens is not None:
        from wordsway.measures.words import find_words

        return [piece for k in find_words(tokens, word) for piece in tokens.pieces[k]]
    if token is None:
        return "all" if tokens is not None else [0]
    return token if token == "all" else whole_numbers(token, "--token")
