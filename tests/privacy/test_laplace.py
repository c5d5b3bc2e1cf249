from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bandanna._core.grid import UNITS
from bandanna._core.types import InputError
from bandanna.privacy import LaplaceRelease, laplace
from bandanna.privacy.laplace import LaplaceMechanism, laplace_scale
from bandanna.privacy.noise import discrete_laplace_noise


@given(st.floats(1e-9, 100.0))
def test_scale_is_the_smallest_that_gives_epsilon(epsilon: float) -> None:
    scale = Fraction(laplace_scale(epsilon))
    assert Fraction(UNITS) / scale <= Fraction(epsilon)
    assert scale <= Fraction(UNITS) / Fraction(epsilon) * (1 + Fraction(1, 2**50))


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 0.7, 1.0, 1e-6, 2.5])
def test_opendp_agrees_on_the_guarantee(epsilon: float) -> None:
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.atom_domain(T="i64"), dp.absolute_distance(T="i64")
    measurement = dp.m.make_laplace(*space, scale=laplace_scale(epsilon))
    assert measurement.map(UNITS) <= epsilon


def test_the_released_mean_is_sum_plus_integer_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(laplace, "discrete_laplace_noise", lambda scale: -7)
    release = LaplaceRelease(0.5, 4)
    assert release.release(1000) == 993 / (4 * UNITS)
    assert release.release(10**15) == (4 * UNITS - 7) / (4 * UNITS)
    assert release.release(-(10**15)) == -7 / (4 * UNITS)


def test_noise_is_never_handed_out_twice() -> None:
    drawn = [discrete_laplace_noise(1e15) for _ in range(500)]
    assert len(set(drawn)) == 500  # a repeat has probability below 1e-10 at this scale


def test_a_forked_child_does_not_repeat_its_parents_noise() -> None:
    scale = 2.0**50
    discrete_laplace_noise(scale)  # leaves a reserve behind
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        noise = ",".join(str(discrete_laplace_noise(scale)) for _ in range(40))
        os.write(write, noise.encode())
        os._exit(0)
    os.waitpid(child, 0)
    theirs = {int(value) for value in os.read(read, 100_000).decode().split(",")}
    os.close(read)
    os.close(write)
    ours = {discrete_laplace_noise(scale) for _ in range(40)}
    assert len(theirs) == len(ours) == 40
    assert not ours & theirs


@pytest.mark.parametrize("noise", [2**63 - 1, -(2**63), 2**62, -(2**62) - UNITS])
def test_noise_at_the_ends_of_the_sampler_says_nothing_of_the_sum(
    noise: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sampler saturates there: added to a sum, it would show the sum."""
    monkeypatch.setattr("bandanna.privacy.laplace.discrete_laplace_noise", lambda scale: noise)
    release = LaplaceRelease(1e-9, 1)
    assert release.release(0) == release.release(UNITS)


@pytest.mark.parametrize("size", [None, 1, 4, 9])
def test_batches_of_every_promised_size_are_opened_and_go_on(size: int | None) -> None:
    release = LaplaceRelease(0.5, 4, longest=9)
    for tally in (release.start(size), release.resume({}, [0], size or 4)):
        tally.add(UNITS)
        mean = tally.publish()
        assert isinstance(mean, float)
        assert abs(mean * (size or 4) - 1.0) < 100.0  # noise of scale 2 on the sum


@pytest.mark.parametrize(
    ("longest", "size", "promised"),
    [
        (9, 0, "up to 9"),
        (9, 10, "up to 9"),
        (9, -1, "up to 9"),
        (None, 1, "of 4"),
        (None, 5, "of 4"),
    ],
)
def test_other_sizes_are_refused(longest: int | None, size: int, promised: str) -> None:
    message = f"promises for batches {promised}; got {size}"
    with pytest.raises(InputError, match=message):
        LaplaceRelease(0.5, 4, longest=longest).start(size)


def test_a_canary_is_guessed_outside_of_both_centres() -> None:
    published = np.array([[0.6], [0.5], [0.49], [0.01], [0.0], [-0.3]])
    assert LaplaceRelease(0.5, 2).guess(published).tolist() == [1, 1, -1, -1, 0, 0]


def test_only_the_scale_of_its_epsilon_is_certified() -> None:
    scale = laplace_scale(0.5)
    assert all(found.holds for found in LaplaceMechanism(4, UNITS, scale).prove(0.5))
    findings = list(LaplaceMechanism(4, UNITS, 2 * scale).prove(0.5))
    assert [(found.entry, found.holds) for found in findings][-1] == ("scale", False)
    assert "not the scale" in findings[-1].why


def test_drawing_noise_loads_no_libraries_for_tables() -> None:
    """OpenDP's prelude loads them all: 170 MB, and seconds until the first release."""
    program = (
        "import sys\n"
        "from bandanna.privacy.noise import with_noise\n"
        "with_noise([1, 2], 2.0), with_noise([1, 2], 2.0, gaussian=True)\n"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'sklearn'} & set(sys.modules)))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"
