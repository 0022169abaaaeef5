"""The kit on every output that has a name: a new one is tested without being told."""

from typing import Any

import pytest
import torch

from families import tiny, tokenizer
from wordsway.support.names import OUTPUTS
from wordsway.testing.output_tests import OutputTests


class TestEveryOutput(OutputTests):
    @pytest.fixture(autouse=True, params=OUTPUTS)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param.replace(":K", ":1")

    def make(self, causal: bool) -> tuple[Any, Any]:
        model = tiny("gpt2", "causal", torch.float64) if causal else tiny("bert", "classifier", torch.float64)
        return model, tokenizer()
