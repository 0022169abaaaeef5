"""wordsway: how far can one word move a model?

`import wordsway as ws` loads nothing heavy: each name below is fetched from its module when it is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from wordsway.attentions import AttentionMaps, attention_maps
    from wordsway.certificates import Certificate, certify
    from wordsway.comparison import Substitution, substitution
    from wordsway.curves import Curve, CurvePlan, curve
    from wordsway.datasets import LabelledTexts, load_texts
    from wordsway.encoders.base import Encoder
    from wordsway.encoders.encode import encode
    from wordsway.encoders.synthetic import SyntheticEncoder
    from wordsway.encoders.vocabulary import random_words
    from wordsway.errors import InputError, RankWarning, TextWarning, TooLargeError
    from wordsway.explanations import explain
    from wordsway.flips import FlipPlan, Flips, generalize
    from wordsway.generalization import Flip, Generalization
    from wordsway.layer_profiles import LayerProfile, layer_profile
    from wordsway.maps.base import FeatureMap, View
    from wordsway.maps.named import named_map
    from wordsway.maps.own import FromCallable
    from wordsway.maps.own_maps import allow_maps
    from wordsway.maps.random_attention import RandomAttention
    from wordsway.maps.random_features import RandomFeatures
    from wordsway.maps.random_transformer import RandomTransformer
    from wordsway.pair_texts import minimal_pairs
    from wordsway.pretrained.map import PretrainedMap
    from wordsway.prompts import PromptChange, compare_prompts
    from wordsway.replacements import Substitutions, substitutions
    from wordsway.report import report_html
    from wordsway.result import Sensitivity, WordExplanation, load_result
    from wordsway.runner import run
    from wordsway.sensitivity import change, word_sensitivity
    from wordsway.study import Panel, Study
    from wordsway.study_files import find_study, load_study
    from wordsway.tables import Table
    from wordsway.tasks import labelled_tokens
    from wordsway.tokens import Tokens, normalize_rows, synthetic_tokens
    from wordsway.training.callback import WordSensitivityCallback
    from wordsway.training.control import embedding_noise, sensitivity_penalty
    from wordsway.training.probe import ProbeReport, probe_sensitivity

_HOMES = {
    "AttentionMaps": "attentions",
    "Certificate": "certificates",
    "Curve": "curves",
    "CurvePlan": "curves",
    "Encoder": "encoders.base",
    "FeatureMap": "maps.base",
    "Flip": "generalization",
    "FlipPlan": "flips",
    "Flips": "flips",
    "Generalization": "generalization",
    "InputError": "errors",
    "LabelledTexts": "datasets",
    "LayerProfile": "layer_profiles",
    "Panel": "study",
    "FromCallable": "maps.own",
    "PretrainedMap": "pretrained.map",
    "ProbeReport": "training.probe",
    "PromptChange": "prompts",
    "RandomAttention": "maps.random_attention",
    "RandomFeatures": "maps.random_features",
    "RandomTransformer": "maps.random_transformer",
    "RankWarning": "errors",
    "Sensitivity": "result",
    "Study": "study",
    "Substitution": "comparison",
    "Substitutions": "replacements",
    "SyntheticEncoder": "encoders.synthetic",
    "Table": "tables",
    "TextWarning": "errors",
    "Tokens": "tokens",
    "TooLargeError": "errors",
    "View": "maps.base",
    "allow_maps": "maps.own_maps",
    "WordExplanation": "result",
    "WordSensitivityCallback": "training.callback",
    "attention_maps": "attentions",
    "certify": "certificates",
    "change": "sensitivity",
    "compare_prompts": "prompts",
    "curve": "curves",
    "embedding_noise": "training.control",
    "encode": "encoders.encode",
    "explain": "explanations",
    "find_study": "study_files",
    "generalize": "flips",
    "labelled_tokens": "tasks",
    "layer_profile": "layer_profiles",
    "load_result": "result",
    "load_study": "study_files",
    "load_texts": "datasets",
    "minimal_pairs": "pair_texts",
    "named_map": "maps.named",
    "normalize_rows": "tokens",
    "probe_sensitivity": "training.probe",
    "random_words": "encoders.vocabulary",
    "report_html": "report",
    "run": "runner",
    "sensitivity_penalty": "training.control",
    "substitution": "comparison",
    "substitutions": "replacements",
    "synthetic_tokens": "tokens",
    "word_sensitivity": "sensitivity",
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
