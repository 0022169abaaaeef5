"""The names that users write: of maps, scores, outputs and all other choices. Each stands here once; the command, its
help and completion, the page, errors and docs read it. Importing it imports neither torch nor anything else that is
slow: what a name stands for is imported when it is first used.

A new score, output, certificate, kind of cell or kind of result is a module of its own and a line here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from typing import Any, Literal, get_args

from wordsway.support.registry import Registry

_SCORES = "wordsway.maps.attention.scores"
_OUTPUTS = "wordsway.models.moving.outputs"
_VIEWS = "wordsway.maps.attention"
_BOUNDS = "wordsway.certificates"
_CELLS = "wordsway.studies.cells"
_MEASURES = "wordsway.measures"


@dataclass(frozen=True)
class MapName:
    """A recipe by its home, a few words about it, what the name fixes of it, and what is usual with that name."""

    recipe: str
    about: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    usual: Mapping[str, Any] = field(default_factory=dict)


ATTENTION = "wordsway.maps.attention.random_attention:RandomAttention"
# Also SCORE-raf for every score: raf with that score.
MAPS = {
    "rf": MapName("wordsway.maps.features.random_features:RandomFeatures", "random features", fixed={"depth": 1}),
    "drf": MapName("wordsway.maps.features.random_features:RandomFeatures", "deep random features", usual={"depth": 2}),
    "raf": MapName(ATTENTION, "random attention"),
    "relu-raf": MapName(ATTENTION, "attention with ReLU scores", fixed={"score": "relu"}),
    "linear-raf": MapName("wordsway.maps.attention.kernel:LinearAttention", "linear attention"),
    "transformer": MapName("wordsway.maps.transformer.random_transformer:RandomTransformer", "with random weights"),
}
# Classes of scores.
SCORES = Registry(
    "score",
    {
        "softmax": f"{_SCORES}.softmax:Softmax",
        "relu": f"{_SCORES}.relu:Relu",
        "relu2": f"{_SCORES}.relu:SquaredRelu",
        "sigmoid": f"{_SCORES}.sigmoid:Sigmoid",
        "softplus": f"{_SCORES}.softplus:Softplus",
        "sparsemax": f"{_SCORES}.entmax:Sparsemax",
        "entmax": f"{_SCORES}.entmax:Entmax",
    },
)
# Classes of views, and the function (view, radius) -> Certificate that bounds how far each can move.
CERTIFICATES = {
    f"{_VIEWS}.attention_view:AttentionView": f"{_BOUNDS}.attention_bound:certify_attention",
    f"{_VIEWS}.heads:HeadsView": f"{_BOUNDS}.heads_bound:certify_heads",
    "wordsway.maps.features.random_features:FeatureView": f"{_BOUNDS}.features_bound:certify_features",
    "wordsway.maps.transformer.transformer_view:TransformerView": f"{_BOUNDS}.transformer_bound:certify_transformer",
    "wordsway.models.moving.map:PretrainedView": "wordsway.models.moving.norm_bound:certify_pretrained",
}
# Classes of outputs of a model; K is the number of a hidden state.
OUTPUTS = Registry(
    "output",
    {
        "last": f"{_OUTPUTS}.rows:Rows",
        "pooled": f"{_OUTPUTS}.pooled:Mean",
        "pooled:mean": f"{_OUTPUTS}.pooled:Mean",
        "pooled:first": f"{_OUTPUTS}.pooled:First",
        "pooled:last": f"{_OUTPUTS}.pooled:Final",
        "logits": f"{_OUTPUTS}.logits:Logits",
        "layer:K": f"{_OUTPUTS}.rows:Rows",
        "all-layers": f"{_OUTPUTS}.all_layers:AllLayers",
        "norm": f"{_OUTPUTS}.norm:Norm",
    },
)
SIMPLE_OUTPUTS = tuple(name for name in OUTPUTS if ":" not in name)  # shells break words at colons


# Classes of cells of a study: what it measures.
CELLS = Registry(
    "measure",
    {
        "sensitivity": f"{_CELLS}.sensitivity_cell:SensitivityCell",
        "flips": f"{_CELLS}.flip_cell:FlipCell",
        "layers": f"{_CELLS}.model_cells:LayersCell",
        "attention": f"{_CELLS}.model_cells:AttentionCell",
        "prompts": f"{_CELLS}.model_cells:PromptsCell",
        "states": f"{_CELLS}.states_cell:StatesCell",
        "training": f"{_CELLS}.training_cell:TrainingCell",
        "pairs": f"{_CELLS}.pairs_cell:PairsCell",
        "random_change": f"{_CELLS}.random_change_cell:RandomChangeCell",
        "answers": f"{_CELLS}.words_cell:WordsCell",
    },
)

# Classes of results, by what files call their format.
RESULTS = {
    "wordsway.sensitivity/3": f"{_MEASURES}.results:Sensitivity",
    "wordsway.draws/2": f"{_MEASURES}.draws_result:DrawComparison",
    "wordsway.flip-radius/2": f"{_MEASURES}.flip_radii:FlipRadii",
    "wordsway.radius-profile/2": f"{_MEASURES}.profile_result:RadiusProfile",
    "wordsway.logit_ranges/2": f"{_MEASURES}.logit_ranges:LogitRanges",
    "wordsway.substitution/2": f"{_MEASURES}.compare_word:Substitution",
    "wordsway.substitutions/2": f"{_MEASURES}.best_words:Substitutions",
    "wordsway.layers/2": f"{_MEASURES}.layer_profile:LayerProfile",
    "wordsway.attention/2": f"{_MEASURES}.attention_maps:AttentionMaps",
    "wordsway.prompts/1": f"{_MEASURES}.prompts:PromptChange",
    "wordsway.texts/1": f"{_MEASURES}.text_results:TextResults",
    "wordsway.comparison/2": f"{_MEASURES}.comparison:Comparison",
    "wordsway.curve/1": "wordsway.studies.curve:Curve",
    "wordsway.flips/1": "wordsway.studies.generalize:Flips",
    "wordsway.differences/1": "wordsway.studies.compare_runs:Differences",
    "wordsway.table/1": "wordsway.studies.run.tables:Table",
    "wordsway.corpus/2": "wordsway.studies.corpus:Corpus",
}

# What a result is about, in the words of a sentence to its user; by its format without the version.
RESULT_SUBJECTS = {
    "wordsway.sensitivity": "changes by the words of one map or model",
    "wordsway.draws": "draws of random maps",
    "wordsway.flip-radius": "flips of a prediction",
    "wordsway.radius-profile": "changes of an output at one or more radii",
    "wordsway.logit_ranges": "proven ranges of logits",
    "wordsway.substitution": "one replaced word beside the worst case",
    "wordsway.substitutions": "real words in the place of others",
    "wordsway.layers": "the layers of a model",
    "wordsway.attention": "attention weights",
    "wordsway.prompts": "two prompts",
    "wordsway.comparison": "a comparison of other results",
    "wordsway.curve": "a curve over the length of texts",
    "wordsway.flips": "learning of flipped labels",
    "wordsway.table": "a study's run",
    "wordsway.corpus": "the words of many texts",
    "wordsway.texts": "the words of some texts",
    "wordsway.differences": "the cells that two runs share",
}


class Budget(StrEnum):
    """Names of budgets: how long to search."""

    quick = "quick"
    default = "default"
    thorough = "thorough"


STEP = "step"  # the budget of one gradient step a word, of models only
ENCODER = "minilm"  # what embeds a text for a map, unless given
BUDGETS = {Budget.quick.value: 0.25, Budget.default.value: 1.0, Budget.thorough.value: 4.0}  # of what suits a view
Aim = Literal["align", "error", "penalized"]
OBJECTIVES: tuple[str, ...] = get_args(Aim)  # of a move that is to flip a label
Training = Literal["finetune", "retrain"]
TRAININGS: tuple[str, ...] = get_args(Training)
ACTIVATIONS = ("relu", "tanh", "gelu", "identity")
WITHOUT_PREDICTION = ("minilm", "mpnet")  # models that are known by these names and have no logits
GAUSSIAN = ("synthetic", "correlated")  # encoders without a model
DATA = ("sample", "imdb", "sentences")
DEVICES = ("cpu", "cuda", "mps")
ENGINES = ("inline", "processes", "dask")
SCALES = ("smoke", "laptop", "paper")
CHOICES = ("greedy", "random", "given")  # of the tokens that move together
BALLS = ("each", "shared")


def either(names: Iterable[str], link: str = "or") -> str:
    """Write names as "a, b or c", or with another `link` than "or"."""
    *first, last = names
    return f"{', '.join(first)} {link} {last}" if first else last


def studies() -> list[str]:
    """List the built-in studies."""
    names = (file.name for file in (files("wordsway.studies") / "built_in").iterdir())
    return sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml"))


def paper_figures() -> list[str]:
    """List the built-in studies that are figures of the paper; the others go beyond it."""
    return [name for name in studies() if name.startswith("fig")]
