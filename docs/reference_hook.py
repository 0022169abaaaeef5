"""A hook of mkdocs that writes the reference while the site is built, from the code as it is: nothing can go stale."""

import inspect
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]

# Pages of the API reference. A public name that no page has goes to the last one.
PAGES: dict[str, tuple[str, str]] = {
    "measure": (
        "Measure",
        "word_sensitivity Question Sensitivity load_result report_html explain WordExplanation change substitution "
        "Substitution certify Certificate register_certificate",
    ),
    "maps": (
        "Feature maps",
        "RandomAttention LinearAttention RandomFeatures RandomTransformer FromCallable named_map allow_maps FeatureMap "
        "Prepared View",
    ),
    "texts": (
        "Texts and encoders",
        "encode Encoder SyntheticEncoder Tokens normalize_rows synthetic_tokens random_words load_texts LabelledTexts "
        "labelled_tokens minimal_pairs",
    ),
    "models": (
        "Models",
        "PretrainedMap flip_radius FlipRadii radius_profile RadiusProfile layer_profile LayerProfile attention_maps "
        "AttentionMaps substitutions Substitutions "
        "compare_prompts PromptChange logit_ranges LogitRanges",
    ),
    "learning": ("Learning a flipped word", "Generalization Flip generalize FlipPlan Flips"),
    "studies": ("Studies and curves", "run Study Panel find_study load_study Table curve CurvePlan Curve"),
    "extending": ("A kind of cell of your own", "Cell TextCell Outcome curve_picture"),
    "training": (
        "While training",
        "WordSensitivityCallback probe_sensitivity ProbeReport sensitivity_penalty embedding_noise",
    ),
    "more": ("Errors and the rest", "InputError TooLargeError RankWarning TextWarning"),
}


def grouped() -> dict[str, tuple[str, list[str]]]:
    """The pages with what the library exports now."""
    import wordsway

    known = {name for _, names in PAGES.values() for name in names.split()}
    pages = {
        page: (title, [n for n in names.split() if n in wordsway.__all__]) for page, (title, names) in PAGES.items()
    }
    pages["more"][1].extend(name for name in wordsway.__all__ if name not in known)
    return pages


def api_page(title: str, names: list[str]) -> str:
    import wordsway

    lines = [f"# {title}", "", "All of these are names of the package: `import wordsway as ws`, then `ws.NAME`.", ""]
    for name in names:
        home = getattr(getattr(wordsway, name, None), "__module__", "wordsway")
        lines += [f"::: {home}.{name}", ""]
    return "\n".join(lines)


def cell(text: str) -> str:
    """Text for one cell of a table: nothing in it is markup."""
    return re.sub(r"([\\|*_<>\[\]`])", r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")


def default_of(parameter: Any) -> str:
    value = parameter.default
    if parameter.required:
        return "required"
    if isinstance(getattr(parameter, "show_default", None), str):
        return parameter.show_default
    if value is None or value is False or value == [] or "Sentinel" in type(value).__name__:
        return ""
    return "on" if value is True else str(value)


def parameters_of(command: Any) -> tuple[list[Any], list[Any]]:
    """Arguments and options of a command, as they are declared; hidden ones left out."""
    shown = [p for p in command.params if not getattr(p, "hidden", False)]
    is_option = [any(name.startswith("-") for name in p.opts) for p in shown]
    return [p for p, o in zip(shown, is_option, strict=True) if not o], [
        p for p, o in zip(shown, is_option, strict=True) if o
    ]


def command_section(path: str, command: Any, level: int) -> list[str]:
    arguments, options = parameters_of(command)
    usage = [path, *(["[OPTIONS]"] if options else [])]
    for p in arguments:
        many = "..." if p.nargs != 1 or getattr(p, "multiple", False) else ""
        name = p.name.upper().replace("_", "-") + many
        usage.append(name if p.required else f"[{name}]")
    children = {name: c for name, c in getattr(command, "commands", {}).items() if not c.hidden}
    if children:
        usage.append("COMMAND [ARGS]...")
    lines = [f"{'#' * level} {path}", "", *inspect.cleandoc(command.help or "").splitlines(), ""]
    lines += ["```text", " ".join(usage), "```", ""]
    if arguments:
        lines += ["| argument | default | what |", "|---|---|---|"]
        lines += [f"| `{p.name.upper()}` | {cell(default_of(p))} | {cell(p.help or '')} |" for p in arguments] + [""]
    if options:
        lines += ["| option | default | what |", "|---|---|---|"]
        for p in options:
            names = ", ".join(f"`{name}`" for name in [*p.opts, *p.secondary_opts])
            many = getattr(p, "multiple", False) and "Repeatable" not in (p.help or "")
            again = " May be given several times." if many else ""
            lines.append(f"| {names} | {cell(default_of(p))} | {cell(p.help or '')}{again} |")
        lines.append("")
    for name, child in sorted(children.items()):
        lines += command_section(f"{path} {name}", child, 2)
    return lines


def cli_page() -> str:
    import typer

    from wordsway.cli.main import app

    text = command_section("wordsway", typer.main.get_command(app), 1)
    text[0] = "# Command line"
    return "\n".join(text)


def pages() -> dict[str, str]:
    """Every generated page by its path."""
    api = {f"reference/{page}.md": api_page(*content) for page, content in grouped().items()}
    return {"reference/cli.md": cli_page()} | api


def on_config(config: Any) -> Any:
    sys.path.insert(0, str(ROOT / "src"))  # the library of this tree, whatever else is installed
    (reference,) = (e["Reference"] for e in config.nav if isinstance(e, dict) and "Reference" in e)
    reference += [{title: f"reference/{page}.md"} for page, (title, _) in grouped().items()]
    return config


def on_files(files: Any, config: Any) -> Any:
    from mkdocs.structure.files import File

    for path, content in pages().items():
        files.append(File.generated(config, path, content=content))
    return files
