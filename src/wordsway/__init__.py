"""wordsway: how far can one word move a model?

`import wordsway as ws` loads nothing heavy: each name below is fetched from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wordsway.certificates.base import Certificate
    from wordsway.certificates.certify import certify
    from wordsway.datasets.labelled_texts import LabelledTexts, load_texts
    from wordsway.datasets.minimal_pairs import minimal_pairs
    from wordsway.datasets.training_sets import labelled_tokens
    from wordsway.learning.callback import WordSensitivityCallback
    from wordsway.learning.generalization import Flip, Generalization
    from wordsway.learning.penalty import embedding_noise, sensitivity_penalty
    from wordsway.learning.probe import ProbeReport, probe_sensitivity
    from wordsway.maps.attention.random_attention import RandomAttention
    from wordsway.maps.base import FeatureMap, View
    from wordsway.maps.features.random_features import RandomFeatures
    from wordsway.maps.from_callable import FromCallable
    from wordsway.maps.named import named_map
    from wordsway.maps.own_maps import allow_maps
    from wordsway.maps.transformer.random_transformer import RandomTransformer
    from wordsway.measures.attention_maps import AttentionMaps, attention_maps
    from wordsway.measures.best_words import Substitutions, substitutions
    from wordsway.measures.compare_word import Substitution, substitution
    from wordsway.measures.explain import explain
    from wordsway.measures.layer_profile import LayerProfile, layer_profile
    from wordsway.measures.prompts import PromptChange, compare_prompts
    from wordsway.measures.results import Sensitivity, WordExplanation, load_result
    from wordsway.measures.sensitivity import change, word_sensitivity
    from wordsway.models.encoding.encode import encode
    from wordsway.models.encoding.synthetic import SyntheticEncoder
    from wordsway.models.encoding.vocabulary import random_words
    from wordsway.models.moving.map import PretrainedMap
    from wordsway.models.running.encoder import Encoder
    from wordsway.report.page import report_html
    from wordsway.studies.curve import Curve, CurvePlan, curve
    from wordsway.studies.generalize import FlipPlan, Flips, generalize
    from wordsway.studies.run.runner import run
    from wordsway.studies.run.tables import Table
    from wordsway.studies.study import Panel, Study
    from wordsway.studies.toml_files import find_study, load_study
    from wordsway.support.errors import InputError, RankWarning, TextWarning, TooLargeError
    from wordsway.tokens import Tokens, normalize_rows, synthetic_tokens

_HOMES = {
    "AttentionMaps": "measures.attention_maps",
    "Certificate": "certificates.base",
    "Curve": "studies.curve",
    "CurvePlan": "studies.curve",
    "Encoder": "models.running.encoder",
    "FeatureMap": "maps.base",
    "Flip": "learning.generalization",
    "FlipPlan": "studies.generalize",
    "Flips": "studies.generalize",
    "Generalization": "learning.generalization",
    "InputError": "support.errors",
    "LabelledTexts": "datasets.labelled_texts",
    "LayerProfile": "measures.layer_profile",
    "Panel": "studies.study",
    "FromCallable": "maps.from_callable",
    "PretrainedMap": "models.moving.map",
    "ProbeReport": "learning.probe",
    "PromptChange": "measures.prompts",
    "RandomAttention": "maps.attention.random_attention",
    "RandomFeatures": "maps.features.random_features",
    "RandomTransformer": "maps.transformer.random_transformer",
    "RankWarning": "support.errors",
    "Sensitivity": "measures.results",
    "Study": "studies.study",
    "Substitution": "measures.compare_word",
    "Substitutions": "measures.best_words",
    "SyntheticEncoder": "models.encoding.synthetic",
    "Table": "studies.run.tables",
    "TextWarning": "support.errors",
    "Tokens": "tokens",
    "TooLargeError": "support.errors",
    "View": "maps.base",
    "allow_maps": "maps.own_maps",
    "WordExplanation": "measures.results",
    "WordSensitivityCallback": "learning.callback",
    "attention_maps": "measures.attention_maps",
    "certify": "certificates.certify",
    "change": "measures.sensitivity",
    "compare_prompts": "measures.prompts",
    "curve": "studies.curve",
    "embedding_noise": "learning.penalty",
    "encode": "models.encoding.encode",
    "explain": "measures.explain",
    "find_study": "studies.toml_files",
    "generalize": "studies.generalize",
    "labelled_tokens": "datasets.training_sets",
    "layer_profile": "measures.layer_profile",
    "load_result": "measures.results",
    "load_study": "studies.toml_files",
    "load_texts": "datasets.labelled_texts",
    "minimal_pairs": "datasets.minimal_pairs",
    "named_map": "maps.named",
    "normalize_rows": "tokens",
    "probe_sensitivity": "learning.probe",
    "random_words": "models.encoding.vocabulary",
    "report_html": "report.page",
    "run": "studies.run.runner",
    "sensitivity_penalty": "learning.penalty",
    "substitution": "measures.compare_word",
    "substitutions": "measures.best_words",
    "synthetic_tokens": "tokens",
    "word_sensitivity": "measures.sensitivity",
}

__all__ = [
    "AttentionMaps",
    "Certificate",
    "Curve",
    "CurvePlan",
    "Encoder",
    "FeatureMap",
    "Flip",
    "FlipPlan",
    "Flips",
    "FromCallable",
    "Generalization",
    "InputError",
    "LabelledTexts",
    "LayerProfile",
    "Panel",
    "PretrainedMap",
    "ProbeReport",
    "PromptChange",
    "RandomAttention",
    "RandomFeatures",
    "RandomTransformer",
    "RankWarning",
    "Sensitivity",
    "Study",
    "Substitution",
    "Substitutions",
    "SyntheticEncoder",
    "Table",
    "TextWarning",
    "Tokens",
    "TooLargeError",
    "View",
    "WordExplanation",
    "WordSensitivityCallback",
    "allow_maps",
    "attention_maps",
    "certify",
    "change",
    "compare_prompts",
    "curve",
    "embedding_noise",
    "encode",
    "explain",
    "find_study",
    "generalize",
    "labelled_tokens",
    "layer_profile",
    "load_result",
    "load_study",
    "load_texts",
    "minimal_pairs",
    "named_map",
    "normalize_rows",
    "probe_sensitivity",
    "random_words",
    "report_html",
    "run",
    "sensitivity_penalty",
    "substitution",
    "substitutions",
    "synthetic_tokens",
    "word_sensitivity",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'wordsway' has no attribute {name!r}")
    value = getattr(import_module(f"wordsway.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
