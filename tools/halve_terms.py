"""Halve the terms of the proven bounds, one at a time, and see that a test fails each time.

    python tools/halve_terms.py            all terms; about a quarter of an hour
    python tools/halve_terms.py own_row    those of files whose name contains this

A bound that is too small would be a false promise, so each of its terms has a test in which it is nearly attained. Code
is changed in a copy. Prints one line a term; ends with 1 if the tests passed with one of them halved.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
MARK = "§"
# Tests that must notice: a file, and which of its tests.
SMALL = "tests/certificates/test_small_radius.py -k exact or attained or masses or bend or remainder"
FOURTH = "tests/certificates/test_fourth_powers.py -k budget or tangent or line or interval"
SEPARABLE = "tests/certificates/test_certify.py -k cells or interval or psi or coupling or one_token or hull"
GEOMETRY = "tests/certificates/test_certify.py -k along_a_row"
TRANSFORMER = "tests/certificates/test_ellipsoid.py -k transformer"
ELLIPSOID = "tests/certificates/test_ellipsoid.py"
NORM = "tests/models/test_norm_bound.py -k attained or dual_value"

# Pieces of a file that occur once in it; each § is where "0.5 * " is put.
TERMS = {
    ("certificates/first_order_bound.py", SMALL): """
        bound = §slope +
        + §math.hypot(own[1], staying[1])
        rest = §operator_norm(gap * row.offsets)
        rest += §float(high[place])
        rest += §max(min(1.0
        J.diagonal().add_(§weight)
        change = §radius * float(
        + §float(slope[row.place]) * bend
        change += §float((gap
        rest = (§high * radius + gap * sizes)
        rest = (high * radius + §gap * sizes)
        gram = §steep.T @ steep +
        + §cross + cross.T
        add_(§old.square().sum())""",
    ("certificates/own_row_bound.py", SMALL): """
        reach = §radius * self.keys
        reach[self.place] += §radius**2
        own = §radius * min(
        return §tau * spread + own
        self.budget = §(radius
        q[row.place] = §radius**2
        (§squares / (2 * theta)
        + lam * self.budget + §theta / 2""",
    ("certificates/fourth_powers.py", FOURTH): """
        FourthPowers(§bound +
        §mean, weights)""",
    ("certificates/separable_bound.py", FOURTH): """
        + §at.nu * fourths
        §6 * (delta * furthest)
        + §0.5 * bent * half**2""",
    ("certificates/separable_bound.py", SEPARABLE): """
        §at.lam * half**2 * shift_sq
        [:, None] + §mu * budgets
        budgets[:, None] + §tail
        return §(most_weight * rows.radius).square() +
        2 * (§crossed + sideways)
        2 * (crossed + §sideways)
        + §moved.square() * rows
        moved = §rows.own_offset_sq +
        §2 * (rows.radius * c * rows.own_along
        + §across * rows.own_across)
        rows.own_across) + §rows.radius**2
        max(moved, §float(
        - §rows.lean[:, None] * line""",
    ("certificates/row_geometry.py", GEOMETRY): """
        rest_across=§(across
        (across - §lean[:, None] * M)""",
    ("certificates/transformer_bound.py", TRANSFORMER): """
        (§float(norm.furthest(""",
    ("certificates/ellipsoid_bound.py", ELLIPSOID): """
        return §(top + tau) * reach**2 +
        reach**2 + §constant +
        + §(shifted.square() * weights)
        rounded = §self.aside * self.gamma.norm()
        + §self.grain * self.beta.norm()
        half = §self.reach * self._project
        + §self.aside * along.sum(1)
        + §(self.grain + _MARGIN) *""",
    ("models/moving/norm_bound.py", NORM): """
        return §float(torch.cat(most).norm())
        return §vector.share * float(
        return §float(torch.maximum(high - base, base - low).norm())
        min(most, §vector.share *
        middle + §self.share * low - off, middle + §self.share * high + off""",
}


def caught(file: str, term: str, tests: list[str]) -> bool:
    """Change a copy of the code, and return whether its tests fail."""
    source, piece = (ROOT / "src/wordsway" / file).read_text(), term.replace(MARK, "")
    if source.count(piece) != 1:
        sys.exit(f"{file} has this {source.count(piece)} times: {piece}")
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy)
        (copy / "wordsway" / file).write_text(source.replace(piece, term.replace(MARK, "0.5 * ")))
        env = os.environ | {"PYTHONPATH": str(copy), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests],
            cwd=ROOT, env=env, capture_output=True, text=True,
        )  # fmt: skip
    if done.returncode not in (0, 1):
        sys.exit(done.stdout + done.stderr)
    return done.returncode == 1


def main() -> int:
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    count = missed = 0
    for (file, tests), terms in TERMS.items():
        for term in map(str.strip, terms.strip().splitlines()) if wanted in file else ():
            found = caught(file, term, tests.split(" ", 2))
            count, missed = count + 1, missed + (not found)
            print(f"{'caught' if found else 'MISSED'}  {file}: {term}", flush=True)
    print(f"{count - missed} of {count} terms cannot be halved unnoticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
