"""The kit on every output that has a name: a new one is tested without being told."""

import pytest

from wordsway.support.names import OUTPUTS
from wordsway.testing.output_tests import OutputTests


class TestEveryOutput(OutputTests):
    @pytest.fixture(autouse=True, params=OUTPUTS)
    def chosen(self, request: pytest.FixtureRequest) -> None:
        self.name = request.param.replace(":K", ":1")
