"""How outputs with searched numbers are compared: each kind of difference is seen, and what varies is let through."""

import pytest

from docs_blocks import differences
from searched import Searched

MEASURED = """\
minilm, output pooled, n=13, d=384, radius=6.965 to 10.957

The food was good.

 word sensitivity, at least  2.8555  one of 2 words that tie, found by search
 at most                     3.2918  proven; 15% above the value found
 typical (random) change     0.1109  sd 0.0967, 5-95% 0.0306 to 0.2983
 evaluations                 2696    34.26 s; checked: plain map, float32
 rank  word             at least  at most
 1-2   waiter  word 8   2.8555    3.2918
 1-2   rude    word 10  2.8458    3.2918
 3     food    word 2   2.3000    3.2918
Largest possible effect found: 2 words tie (waiter, rude): their numbers differ by less than a spread of 5%."""
LAYERS = """\
minilm, moves of 'rude' (word 10) of norm 10.795; attracting: all heads of layer 1
 layer  searched  attracting   noise  real word
     0    0.3411      0.3411  0.3411     0.3411
     1    1.1410      0.6806  0.2123     0.3207
searched: at least this much is possible, found by a search for each layer."""
STEPS = "step 0: at least 0.0053, random 0.0023\nstep 4: at least 0.0081, random 0.0026"
NOTES = {
    MEASURED: "at least above typical (random) change",
    LAYERS: "searched above attracting; noise; real word",
    STEPS: "at least above random",
}

OTHER_ORDER = {
    "waiter  word 8   2.8555": "rude    word 10  2.8555",
    "rude    word 10  2.8458": "waiter  word 8   2.8458",
}
OTHER_TIE = {
    "1-2": "1-3",
    " 3     food    word 2   2.3000": " 1-3   food    word 2   2.8000",
    "2 words tie (": "3 words tie (food, ",
}
NO_TIE = {
    "one of 2 words that tie": "word 8",
    "1-2   waiter": "1     waiter",
    "1-2   rude": "2     rude",
    MEASURED.splitlines()[-1]: "Largest possible effect found: waiter (word 8), separated from all other words.",
}


def compared(written: str, changes: dict[str, str]) -> str:
    printed = written
    for old, new in changes.items():
        assert old in printed
        printed = printed.replace(old, new)
    return differences(written.splitlines(), printed.splitlines(), searched=Searched.of(NOTES[written]))


@pytest.mark.parametrize(
    ("written", "changes"),
    [
        (MEASURED, {}),
        (MEASURED, {"2.8555": "2.7900", "2.8458": "2.7100"}),
        (MEASURED, {"2.8555": "3.1900", "; 15% above": "; 3% above"}),  # a better search
        (MEASURED, {"2696": "2911", "34.26 s": "8.01 s"}),
        (MEASURED, OTHER_ORDER),
        (MEASURED, OTHER_TIE),
        (MEASURED, NO_TIE),
        (LAYERS, {"1.1410": "1.0900"}),
        (LAYERS, {"1.1410": "9.1410"}),
        (LAYERS, {"0.6806": "0.6807"}),
        (STEPS, {"0.0053": "0.0051"}),
        (STEPS, {"0.0081": "0.0091"}),
    ],
)
def test_what_varies_is_let_through(written: str, changes: dict[str, str]) -> None:
    assert compared(written, changes) == ""


@pytest.mark.parametrize(
    ("written", "changes", "why"),
    [
        (MEASURED, {"  2.8555  one": "  2.5000  one"}, "2.5000 is less than 2.8555"),
        (MEASURED, {"word 10  2.8458": "word 10  2.5458"}, "2.5458 is less than 2.8458"),
        (MEASURED, {"0.1109": "0.1120"}, "0.1109 is not 0.1120"),
        (MEASURED, {"0.0967": "0.0987"}, "0.0967 is not 0.0987"),
        (MEASURED, {"n=13": "n=14"}, "13 is not 14"),
        (MEASURED, {"10.957": "11.057"}, "10.957 is not 11.057"),
        (MEASURED, {"\n 3     food    word 2   2.3000    3.2918": ""}, "words differ"),
        (MEASURED, {"3.2918  proven": "3.3918  proven"}, "3.2918 is not 3.3918"),
        (MEASURED, {"2.3000    3.2918": "2.3000    3.3918"}, "3.2918 is not 3.3918"),
        (MEASURED, {" 3     food": " 3     wine"}, "words differ"),
        (MEASURED, {"word 2 ": "word 3 "}, "2 is not 3"),
        (MEASURED, {"2.3000    3.2918": "2.3000    3.2918\n 4     good    word 4   2.2000    3.2918"}, "words differ"),
        (MEASURED, {"word 2   2.3000": "word 2   0.1000"}, "0.1000 was searched for, but is below 0.1109"),
        (LAYERS, {"1.1410": "1.0300"}, "1.0300 is less than 1.1410"),
        (LAYERS, {"0.6806": "0.6906"}, "0.6806 is not 0.6906"),
        (LAYERS, {"0.2123": "0.2223"}, "0.2123 is not 0.2223"),
        (LAYERS, {"0.3207": "1.3207"}, "1.1410 was searched for, but is below 1.3207"),
        (LAYERS, {"0.6806": "1.1450"}, "below 1.1450"),
        (LAYERS, {"     1    1.1410      0.6806  0.2123     0.3207\n": ""}, "words differ"),
        (LAYERS, {"     1    1.1410": "     2    1.1410"}, "1 is not 2"),
        (STEPS, {"0.0053": "0.0046"}, "0.0046 is less than 0.0053"),
        (STEPS, {"0.0023": "0.0029"}, "0.0023 is not 0.0029"),
        (STEPS, {"0.0023": "0.0063"}, "0.0053 was searched for, but is below 0.0063"),
        (STEPS, {"\nstep 4: at least 0.0081, random 0.0026": ""}, "prints no more"),
    ],
)
def test_what_must_not_change_is_seen(written: str, changes: dict[str, str], why: str) -> None:
    assert why in compared(written, changes)


def test_rows_that_are_left_out() -> None:
    lines = MEASURED.splitlines()
    searched = Searched.of(NOTES[MEASURED])
    rows, last = lines[-4:-1], lines[-1]
    for short in ([rows[0], "...", last], [rows[0], "...", rows[2], last], [rows[2], "...", last]):
        assert differences([*lines[:-4], *short], lines, searched=searched) == ""
    assert differences([*lines[:-4], rows[0], last], lines, searched=searched)
    assert differences([*lines[:-4], "...", last], [*lines[:-4], last], searched=searched) == ""


def test_a_note_that_names_nothing_is_seen() -> None:
    why = differences(MEASURED.splitlines(), MEASURED.splitlines(), searched=Searched.of("at lest"))
    assert why == "the docs have no number that belongs to at lest"


def test_a_row_of_numbers_behind_a_name() -> None:
    written = ["layer     0    1    2", "searched  0.26 1.06 1.09", "noise     0.26 0.20 0.20"]
    searched = Searched.of("searched")
    assert differences(written, [written[0], "searched  0.26 1.02 1.50", written[2]], 1e-2, searched) == ""
    assert "0.95" in differences(written, [written[0], "searched  0.26 0.95 1.50", written[2]], 1e-2, searched)
    assert "0.20" in differences(written, [*written[:2], "noise     0.26 0.30 0.20"], 1e-2, searched)
