"""Text that the commands print for people."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import number, printable, short_name
from wordsway.measures.ranks import rank_name, shared_ranks, tie_sentence

if TYPE_CHECKING:
    from wordsway.measures.compare_word import Substitution
    from wordsway.measures.results import RandomChange, Sensitivity

MOST_ROWS = 20
# From pale to dark blue: the lightness alone tells them apart, whichever colours an eye can see.
_SHADES = ("#f7fbff", "#deebf7", "#c6dbef", "#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")


def sensitivity(result: "Sensitivity") -> None:
    """A measurement: its settings, the text with its words coloured, bounds, and a table."""
    console = Console(highlight=False)
    about, encoder = _map(result)
    sizes = f"n={result.n}, d={result.d}, radius={_radius(result)}"
    console.print(escape(f"{about}, {sizes}{encoder}"), soft_wrap=True)
    if result.words and result.text is not None:
        console.print()
        low, high = min(word.lower for word in result.words), max(word.lower for word in result.words)
        shades = [(word.span, word.lower) for word in result.words]
        coloured(console, result.text, shades, (number(low), number(high)))
        console.print()
    _bounds(console, result)
    if result.words:
        _words(console, result)
    elif len(result.per_token) > 1:
        _tokens(console, result)


def substitution(compared: "Substitution") -> None:
    """Print the effect of one substitution, beside the worst case and random words."""
    console = Console(highlight=False)
    before, after = escape(printable(compared.before)), escape(printable(compared.after))
    console.print(f"[bold]{before}[/] -> [bold]{after}[/], word {compared.word + 1}", soft_wrap=True)
    table = _plain_table()
    table.add_row(
        "change of the features", f"[bold]{number(compared.change)}[/]", f"moves the word by {compared.size:.2f} radii"
    )
    worst = next(word for word in compared.worst.words or () if word.word == compared.word)
    share, bound = f"{compared.share:.1%}", f"of {number(worst.lower)}, which a search found"
    if compared.share_at_least is not None:
        share, bound = (
            f"{compared.share_at_least:.1%} to {share}",
            f"worst: {number(worst.lower)} to {number(worst.upper)}",
        )
    table.add_row("share of the worst case", share, bound)
    if compared.size > 1:
        table.add_row("of moves as long as its own", f"{compared.share_same_size:.1%}", "as it is longer than a radius")
    if compared.random is not None:
        table.add_row(
            "random words there",
            number(compared.random.mean),
            _spread(compared.random),
        )
        table.add_row("random words that do less", f"{compared.above_random:.0%}", f"of {compared.random.draws}")
    console.print(table)


def _map(result: "Sensitivity") -> tuple[str, str]:
    """The map with its settings, and the encoder of a text, which of a model is the model itself."""
    if result.map["map"] == "pretrained":
        made = result.map
        return f"{short_name(made['model'])}, output {made['output']}, moved at its {made['at']}", ""
    settings = ", ".join(f"{key}={value}" for key, value in result.map.items() if key != "map")
    encoder = "" if result.text is None else f", encoder {_encoder(result.text)}"
    return f"{result.map['map']} ({settings})", encoder


def _encoder(text: dict[str, Any]) -> str:
    layer = f" layer {text['layer']}" if "layer" in text else ""
    return printable(str(text.get("encoder"))) + layer + ("" if text.get("normalized") else ", raw")


def _radius(result: "Sensitivity") -> str:
    radii = [entry.radius for entry in result.per_token]
    return f"{min(radii):.3f} to {max(radii):.3f}" if max(radii) > min(radii) else f"{result.radius:.3f}"


def coloured(
    console: Console,
    source: dict[str, Any],
    words: Sequence[tuple[tuple[int, int], float]],
    ends: tuple[str, str],
) -> None:
    """The text as it was written, each word (its characters, a value) on a shade between the least (pale) and the
    largest value (dark); `ends` say what these two are."""
    text, used = source["text"], max(end for _, end in source["offsets"])
    low, high = min(value for _, value in words), max(value for _, value in words)
    shown, position = Text(), 0
    for (start, end), value in sorted(words):
        if start < position or end <= start:
            continue  # where a word stands is not known
        shown.append(_lines(text[position:start]))
        shown.append(_lines(text[start:end]), style=_shade(value, low, high))
        position = end
    if text[used:].strip():
        shown.append(_lines(text[position:used]))
        shown.append(f" [... {len(text) - used} more characters, not measured]", style="dim")
    else:
        shown.append(_lines(text[position:]))
    console.print(shown)
    if console.color_system and len(words) > 1:
        scale = Text(f"{ends[0]} ")
        for shade in _SHADES:
            scale.append("  ", style=f"on {shade}")
        console.print(scale.append(f" {ends[1]}"))


def _lines(text: str) -> str:
    return "\n".join(printable(line.replace("\t", " ")) for line in text.split("\n"))


def _shade(value: float, low: float, high: float) -> str:
    level = 1.0 if high <= low else (value - low) / (high - low)
    step = min(len(_SHADES) - 1, int(level * len(_SHADES)))
    return f"{'#000000' if step < 5 else '#ffffff'} on {_SHADES[step]}"


def _plain_table() -> Table:
    return Table(box=None, padding=(0, 1), show_header=False)


def _bounds(console: Console, result: "Sensitivity") -> None:
    table = _plain_table()
    top = result.top_word
    where = f"token {result.token}"
    if top is not None and top.tokens == result.tokens:
        where = f"word {top.word + 1}" if top.tied == 1 else f"one of {top.tied} words that tie"
    elif result.together is not None:
        names = [str(k) for k in result.tokens]
        if result.text is not None:
            names = [f"{k} {printable(result.text['tokens'][k])}" for k in result.tokens]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        balls = "a ball for each" if result.together["ball"] == "each" else "one ball for all"
        where = escape(f"{len(names)} tokens together ({balls}; {result.together['by']}): {shown}")
    elif result.text is not None:
        where += f", {escape(printable(result.text['tokens'][result.token]))}"
    table.add_row("word sensitivity, at least", f"[bold]{number(result.lower)}[/]", f"{where}, found by search")
    if result.upper is None:
        table.add_row("at most", "-", result.upper_reason or "")
    else:
        surety = "certain" if result.upper_failure == 0 else f"fails with prob. <= {result.upper_failure:.0e}"
        table.add_row("at most", number(result.upper), f"{result.upper / result.lower:.2f} x the search; {surety}")
    if result.random is not None:
        table.add_row(
            "a random move",
            number(result.random.mean),
            _spread(result.random),
        )
    table.add_row("evaluations", str(result.evaluations), f"{result.seconds:.2f} s; checked: {result.checked}")
    console.print(table)


def _spread(random: "RandomChange") -> str:
    low, high = random.quantiles["0.05"], random.quantiles["0.95"]
    return f"sd {number(random.sd)}, 5-95% {number(low)} to {number(high)}"


def _words(console: Console, result: "Sensitivity") -> None:
    words = result.ranked_words
    certified = any(word.upper is not None for word in words)
    table = Table("rank", "word", "", "at least", *(["at most"] if certified else []), box=None, padding=(0, 1))
    for word in words[:MOST_ROWS]:
        name = Text(printable(word.text), overflow="ellipsis", no_wrap=True)
        name.truncate(30, overflow="ellipsis")
        bounds = [number(word.lower), *([number(word.upper)] if certified else [])]
        table.add_row(rank_name(word.rank, word.tied), name, f"word {word.word + 1}", *bounds)
    assert result.text is not None
    for entry in result.per_token:  # special tokens that were asked for
        if result.text["word_ids"][entry.token] is None:
            name = Text(printable(result.text["tokens"][entry.token]))
            bounds = [number(entry.lower), *([number(entry.upper)] if certified else [])]
            table.add_row("", name, f"token {entry.token}", *bounds)
    console.print(table)
    more(console, len(words) - MOST_ROWS, "words")
    top, *others = result.top_words
    if others:
        names = [escape(printable(word.text)) for word in result.top_words]
        console.print(f"Largest possible effect found: {tie_sentence(names, result.spread)}", soft_wrap=True)
        return
    console.print(
        f"The word that matters most: [bold]{escape(printable(top.text))}[/] (word {top.word + 1}). "
        f"One move of it changes the features by at least {number(top.lower)} times their norm.",
        soft_wrap=True,
    )


def _tokens(console: Console, result: "Sensitivity") -> None:
    table = Table("rank", "token", "at least", "at most", box=None, padding=(0, 1))
    ordered = sorted(result.per_token, key=lambda entry: -entry.lower)
    ranks = shared_ranks([entry.lower for entry in ordered], result.spread)
    for entry, rank in list(zip(ordered, ranks, strict=True))[:10]:
        table.add_row(rank_name(*rank), str(entry.token), number(entry.lower), number(entry.upper))
    console.print(table)
    more(console, len(ordered) - 10, "tokens")


def more(console: Console, count: int, what: str) -> None:
    if count > 0:
        console.print(f"... and {count} more {what} (all of them with --json or --out)")
