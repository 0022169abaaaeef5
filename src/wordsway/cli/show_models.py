"""Text that the commands about pre-trained models print for people."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from wordsway.cli.command import printable, short_name
from wordsway.support.digits import ROUNDING, three

if TYPE_CHECKING:
    from wordsway.measures.attention_maps import AttentionMaps
    from wordsway.measures.best_words import Substitutions
    from wordsway.measures.layer_profile import LayerProfile
    from wordsway.measures.prompts import PromptChange
    from wordsway.models.moving.outcomes import Replacement

_MOST_HEADS = 16


def layer_table(profile: "LayerProfile") -> None:
    """One row a layer, one column a move."""
    console = Console(highlight=False)
    which = "all heads" if profile.head is None else f"head {profile.head}"
    console.print(
        escape(
            f"{short_name(profile.model)}, moves of {printable(profile.word_text)!r} (word {profile.word}) of norm "
            f"{profile.radius:.3f} at its {profile.at}; attracting: {which} of layer 1"
        ),
        soft_wrap=True,
    )
    table = Table(box=None, padding=(0, 1))
    for name in ("layer", "searched", "attracting", "noise", "sd"):
        table.add_column(name, justify="right")
    if profile.real_word is not None:
        table.add_column("real word", justify="right")
        table.add_column("itself", justify="right")
    for row in profile.records():
        cells = [row[name] for name in ("searched", "attracting", "noise", "noise_sd")]
        cells += [row[name] for name in ("real_word", "replaced") if name in row]
        table.add_row(str(row["layer"]), *(three(cell, ROUNDING) for cell in cells))
    console.print(table)
    console.print("searched: at least this much is possible, found by a search for each layer.", soft_wrap=True)
    if profile.replacement is not None:
        how = "of all tried, which was the whole vocabulary" if profile.real_exhaustive else "of those tried"
        console.print(
            f"real word: towards [bold]{escape(printable(profile.replacement))}[/], the best {how}; itself: that word, "
            f"{profile.real_size:.2f} radii away.",
            soft_wrap=True,
        )
    elif len(profile.tokens) > 1:
        console.print(f"real word: none, as no whole word of the vocabulary has {len(profile.tokens)} pieces.")


def attention_tables(maps: "AttentionMaps") -> None:
    """The map or maps as numbers, where they are small, and the mass on the word."""
    console = Console(highlight=False)
    where = f"layer {maps.layer}, " + ("mean over heads" if maps.head is None else f"head {maps.head}")
    console.print(escape(f"{short_name(maps.model)}, {where}"))
    if maps.targets is not None:
        _targets(console, maps)
    elif maps.mass_before is None:
        _map(console, maps, False)
        if maps.after is not None:
            _map(console, maps, True)
    if maps.mass_before is not None:
        _masses(console, maps)


def _map(console: Console, maps: "AttentionMaps", after: bool) -> None:
    weights, names = maps.shown(after)
    title = (maps.other if after else maps.text) or ""
    console.print()
    console.print(escape(printable(title)), soft_wrap=True)
    if len(names) > 12:
        return console.print(f"{len(names)} tokens: too many to print, see --json, or -o maps.png")
    table = Table(box=None, padding=(0, 1))
    table.add_column("")
    for name in names:
        table.add_column(Text(printable(name)), justify="right", no_wrap=True)
    for name, row in zip(names, weights.tolist(), strict=True):
        table.add_row(Text(printable(name)), *(f"{value:.3f}" for value in row))
    console.print(table)
    hidden = 1 - float(weights.sum(1).mean())
    if not maps.show_special and hidden > 0.005:
        console.print(f"{hidden:.0%} of the attention goes to special tokens, which --special shows")


def _targets(console: Console, maps: "AttentionMaps") -> None:
    table = Table("head", "as it is", "closed form", "ascent", box=None, padding=(0, 1))
    word = f"[bold]{escape(printable(maps.word_text or ''))}[/] (word {maps.word})"
    console.print(
        f"mass on {word} in layer {maps.layer}, when a move of norm {maps.radius:.3f} targets that head:",
        soft_wrap=True,
    )
    for row in maps.targets or ():
        table.add_row(str(row["head"]), three(row["plain"]), three(row["closed"]), three(row["found"]))
    console.print(table)
    console.print("all: one move for all heads, and the mean of their masses", soft_wrap=True)
    if maps.layer > 1:
        console.print("closed form: a first-order guess, as this is not the first layer", soft_wrap=True)


def _masses(console: Console, maps: "AttentionMaps") -> None:
    assert maps.mass_before is not None
    heads = maps.mass_before.shape[1]
    for title, masses in (("as it is", maps.mass_before), ("after the move", maps.mass_after)):
        if masses is None:
            continue
        console.print(f"mass on [bold]{escape(printable(maps.word_text or ''))}[/] by layer and head, {title}:")
        table = Table(box=None, padding=(0, 1))
        table.add_column("layer", justify="right")
        for head in range(1, min(heads, _MOST_HEADS) + 1):
            table.add_column(str(head), justify="right")
        table.add_column("mean", justify="right")
        for layer, row in enumerate(masses, start=1):
            table.add_row(str(layer), *(_short(v) for v in row[:_MOST_HEADS].tolist()), _short(float(row.mean())))
        console.print(table)
    if heads > _MOST_HEADS:
        console.print(f"... and {heads - _MOST_HEADS} more heads (all of them with --json or --out)")


def _short(share: float) -> str:
    """A share of one in three letters, so that the heads of a layer fit into a line."""
    return f"{share:.2f}"[1:] if share < 0.995 else "1.0"


def substitution_tables(found: "Substitutions") -> None:
    """The best replacements of a word, or the best one of every word; and what flips the prediction."""
    console = Console(highlight=False)
    now = "" if found.prediction is None else f"; now: {_predicted(found.prediction, found.probability)}"
    console.print(
        escape(f"{short_name(found.model)}, by the change of its output ({found.output}){now}"), soft_wrap=True
    )
    rows = found.top if len(found.tried) == 1 else found.ranking[: found.listed]
    if rows:
        console.print(_replacements(rows))
    else:
        console.print("no word that was tried, typed in there, is read as a word of its own")
    if len(found.tried) == 1:
        one = found.tried[0]
        count = f"{one.evaluated:,} of {one.candidates:,} candidates"
        how = "every candidate was tried" if one.exhaustive else f"guided: {count} were tried, a better one may exist"
        console.print(f"{how} ({one.candidates:,})" if one.exhaustive else how)
    else:
        tried, all_of = sum(one.evaluated for one in found.tried), sum(one.candidates for one in found.tried)
        every = all(one.exhaustive for one in found.tried)
        how = "every candidate was tried" if every else "guided: better ones may exist"
        words = f"{len(rows)} of {len(found.tried)} words" if len(rows) < len(found.tried) else "each word"
        console.print(f"{how} ({tried:,} of {all_of:,} texts); the best replacement of {words}, without punctuation")
    skipped = {name: reason for one in found.tried for name, reason in one.skipped.items()}
    if skipped:
        shown = ", ".join(f"{name} ({reason})" for name, reason in list(skipped.items())[:5])
        more = f" and {len(skipped) - 5} more" if len(skipped) > 5 else ""
        console.print(escape(printable(f"left out: {shown}{more}")), soft_wrap=True)
    if any(one.flips is not None for one in found.tried):
        count = sum(one.flips or 0 for one in found.tried)
        shown = sorted(found.flipping, key=lambda item: -item.change)[: found.listed]
        more = bool(count) and any(item not in rows for item in shown)
        console.print(f"[bold]{count:,}[/] of the texts tried flip the prediction{'; the largest changes:' * more}")
        if more:
            console.print(_replacements(shown))


def _replacements(rows: "tuple[Replacement, ...] | list[Replacement]") -> Table:
    table = Table(box=None, padding=(0, 1))
    for name in ("rank", "word", "", "replacement", "change", "similar"):
        table.add_column(name, justify="right" if name in ("rank", "change", "similar") else "left")
    with_label = any(row.prediction is not None for row in rows)
    with_kl = any(row.kl is not None for row in rows)
    if with_kl:
        table.add_column("KL", justify="right")
    if with_label:
        table.add_column("next token" if with_kl else "prediction")
    for rank, row in enumerate(rows, start=1):
        cells = [str(rank), _name(row.before), f"#{row.word}", _name(row.after), three(row.change)]
        cells.append(f"{row.similarity:.2f}")
        if with_kl:
            cells.append(three(row.kl))
        if with_label:
            flips = " (flips)" if row.flips else ""
            cells.append(Text(_predicted(row.prediction or "", row.probability) + flips))
        table.add_row(*cells)
    return table


def _name(text: str) -> Text:
    name = Text(printable(text), no_wrap=True)
    name.truncate(24, overflow="ellipsis")
    return name


def _predicted(label: str, probability: float | None) -> str:
    return f"{printable(repr(label))} {probability:.3f}" if probability is not None else printable(label)


def prompt_tables(compared: "PromptChange") -> None:
    """Two prompts: the next token's distribution, and the answers."""
    console = Console(highlight=False)
    how = "in its chat template" if compared.chat else "as plain text"
    console.print(escape(f"{short_name(compared.model)}, {how}"), soft_wrap=True)
    table = Table(box=None, padding=(0, 1), show_header=False)
    table.add_row("change of the next-token logits", f"[bold]{three(compared.change)}[/]")
    table.add_row("KL of the distributions", f"[bold]{three(compared.kl)}[/]", "nats")
    console.print(table)
    for title, prompt, top, answer in (
        ("first", compared.before, compared.top_before, compared.answer_before),
        ("second", compared.after, compared.top_after, compared.answer_after),
    ):
        console.print()
        console.print(f"[bold]{title}:[/] {escape(printable(prompt))}", soft_wrap=True)
        likely = ", ".join(f"{printable(repr(token))} {one:.3f} | {two:.3f}" for token, one, two in top)
        console.print(escape(f"likeliest next (probability for first | second): {likely}"), soft_wrap=True)
        if compared.answer_tokens:
            console.print(f"[bold]answer:[/] {escape(printable(answer))}", soft_wrap=True)
