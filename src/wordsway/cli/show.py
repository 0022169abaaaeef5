"""Text that the commands print for people."""

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.cli.shading import bar, coloured_words
from wordsway.measures.ranks import NOT_IMPORTANCE, rank_name, shared_ranks, tie_sentence
from wordsway.support.digits import three
from wordsway.support.errors import shortened

if TYPE_CHECKING:
    from wordsway.measures.compare_word import Substitution
    from wordsway.measures.results import RandomChange, Sensitivity

MOST_ROWS = 20


def sensitivity(result: "Sensitivity", stretch: bool = False) -> None:
    """A measurement: its settings, the text with its words coloured, bounds, and a table."""
    console = Console(highlight=False)
    about, encoder = _map(result)
    sizes = f"n={result.n}, d={result.d}, radius={_radius(result)}"
    console.print(escape(f"{about}, {sizes}{encoder}"), soft_wrap=True)
    if result.words:
        spans, found = [word.span for word in result.words], [word.lower for word in result.words]
        coloured_words(console, result.text, spans, found, [(w.rank, w.tied) for w in result.words], stretch)
    _bounds(console, result)
    if result.words:
        _words(console, result)
    elif len(result.per_token) > 1:
        _tokens(console, result)


def substitution(compared: "Substitution") -> None:
    """Print the effect of one substitution, beside the worst case and random words."""
    console = Console(highlight=False)
    before, after = escape(printable(compared.before)), escape(printable(compared.after))
    console.print(f"[bold]{before}[/] -> [bold]{after}[/], word {compared.word}", soft_wrap=True)
    table = _plain_table()
    table.add_row(
        "change of the features", f"[bold]{three(compared.change)}[/]", f"moves the word by {compared.size:.2f} radii"
    )
    worst = next(word for word in compared.worst.words or () if word.word == compared.word)
    share, bound = f"{compared.share:.1%}", f"of {three(worst.lower)}, which a search found"
    if compared.share_at_least is not None:
        share, bound = (
            f"{compared.share_at_least:.1%} to {share}",
            f"worst: {three(worst.lower)} to {three(worst.upper)}",
        )
    table.add_row("share of the worst case", share, bound)
    if compared.size > 1:
        table.add_row("of moves as long as its own", f"{compared.share_same_size:.1%}", "as it is longer than a radius")
    if compared.random is not None:
        table.add_row(
            "random words there",
            three(compared.random.mean),
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
    return f"{_length(min(radii))} to {_length(max(radii))}" if max(radii) > min(radii) else _length(result.radius)


def _length(radius: float) -> str:
    return f"{radius:.3f}" if 1e-3 <= radius < 1e6 else three(radius)


def _plain_table() -> Table:
    return Table(box=None, padding=(0, 1), show_header=False)


def _bounds(console: Console, result: "Sensitivity") -> None:
    table = _plain_table()
    top = result.top_word
    where = f"token {result.token}"
    if top is not None and top.tokens == result.tokens:
        where = f"word {top.word}" if top.tied == 1 else f"one of {len(result.top_words)} words that tie"
    elif result.together is not None:
        names = [str(k) for k in result.tokens]
        if result.text is not None:
            names = [f"{k} {printable(result.text['tokens'][k])}" for k in result.tokens]
        shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        balls = "a ball for each" if result.together["ball"] == "each" else "one ball for all"
        where = escape(f"{len(names)} tokens together ({balls}; {result.together['by']}): {shown}")
    elif result.text is not None:
        where += f", {escape(printable(result.text['tokens'][result.token]))}"
    table.add_row("word sensitivity, at least", f"[bold]{three(result.lower)}[/]", f"{where}, found by search")
    if result.upper is None:
        table.add_row("at most", "-", result.upper_reason or "")
    else:
        surety = "proven" if result.upper_failure == 0 else f"proven but for prob. <= {result.upper_failure:.0e}"
        above = result.upper / max(result.lower, 1e-300) - 1
        table.add_row("at most", three(result.upper), f"{surety}; {above:.0%} above the value found")
    if result.random is not None:
        table.add_row(
            "typical (random) change",
            three(result.random.mean),
            _spread(result.random),
        )
    table.add_row("evaluations", str(result.evaluations), f"{result.seconds:.2f} s; checked: {result.checked}")
    console.print(table)


def _spread(random: "RandomChange") -> str:
    low, high = random.quantiles["0.05"], random.quantiles["0.95"]
    return f"sd {three(random.sd)}, 5-95% {three(low)} to {three(high)}"


def _words(console: Console, result: "Sensitivity") -> None:
    words = result.ranked_words
    certified = any(word.upper is not None for word in words)
    titles = ["at least", *(["at most"] if certified else []), "found, proven"]
    table = Table("rank", "word", "", *titles, box=None, padding=(0, 1))
    most = max(word.upper or word.lower for word in words)
    for word in words[:MOST_ROWS]:
        name = Text(printable(word.text), overflow="ellipsis", no_wrap=True)
        name.truncate(30, overflow="ellipsis")
        bounds = [three(word.lower), *([three(word.upper)] if certified else [])]
        line = bar(console, word.lower, word.upper, most)
        table.add_row(rank_name(word.rank, word.tied), name, f"#{word.word}", *bounds, line)
    assert result.text is not None
    for entry in result.per_token:  # special tokens that were asked for
        if result.text["word_numbers"][entry.token] is None:
            name = Text(printable(result.text["tokens"][entry.token]))
            bounds = [three(entry.lower), *([three(entry.upper)] if certified else [])]
            table.add_row("", name, f"token {entry.token}", *bounds)
    console.print(table)
    more(console, len(words) - MOST_ROWS, "words")
    top, *others = result.top_words
    if others:
        names = [escape(printable(shortened(word.text))) for word in result.top_words]
        console.print(f"Largest possible effect found: {tie_sentence(names, result.spread)}", soft_wrap=True)
    else:
        console.print(
            f"Largest possible effect found: [bold]{escape(printable(shortened(top.text)))}[/] (#{top.word}), "
            "separated from all other words.",
            soft_wrap=True,
        )
    if result.map["map"] != "pretrained":
        console.print("One draw of the map's weights: another may order the words otherwise.", soft_wrap=True)
    console.print(NOT_IMPORTANCE, soft_wrap=True)


def _tokens(console: Console, result: "Sensitivity") -> None:
    table = Table("rank", "token", "at least", "at most", box=None, padding=(0, 1))
    ordered = sorted(result.per_token, key=lambda entry: -entry.lower)
    ranks = shared_ranks([entry.lower for entry in ordered], result.spread, [entry.upper for entry in ordered])
    for entry, rank in list(zip(ordered, ranks, strict=True))[:10]:
        table.add_row(rank_name(*rank), str(entry.token), three(entry.lower), three(entry.upper))
    console.print(table)
    more(console, len(ordered) - 10, "tokens")


def more(console: Console, count: int, what: str) -> None:
    if count > 0:
        console.print(f"... and {count} more {what} (all of them with --json or --out)")
