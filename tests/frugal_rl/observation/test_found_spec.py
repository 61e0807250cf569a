"""What a study writes is read back as it was, and refused for another environment by name."""

import numpy as np
import pytest

from frugal_rl.errors import DataError
from frugal_rl.observation.found_form import FoundForm
from frugal_rl.observation.found_spec import FoundField, FoundSpec, read_found_spec
from frugal_rl.testing.refusals import text_of

SPEC = FoundSpec(
    {
        "screen": FoundField("stack of 4 along 1 x 6 B, differences", 24.0, 7.5, (4, 6), "uint8"),
        "speed": FoundField("as it is", 16.0, 16.0, (2,), "float64"),
    }
)
OBSERVED = {"screen": ((4, 6), np.dtype(np.uint8)), "speed": ((2,), np.dtype(np.float64))}
ANEW = " Study it anew: python scripts/study.py env=gymnasium env.id=..."


def test_a_study_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(SPEC.text())

    assert read_found_spec(path) == SPEC
    SPEC.check(OBSERVED, "it")
    SPEC.check({**OBSERVED, "more": ((1,), np.dtype(bool))}, "it")
    assert SPEC.form("screen") == FoundForm("differences", 1, 4, 6)
    assert SPEC.form("more") is None


def test_a_study_without_shapes_and_dtypes_fits_by_its_bytes(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text("fields: {speed: {form: compressed, dense_bytes: 16, found_bytes: 4}}")
    found = read_found_spec(path)

    assert found.fields == {"speed": FoundField("compressed", 16.0, 4.0, (), "")}
    found.check(OBSERVED, "it")
    for kind in (((4,), np.dtype(np.float32)), ((2,), np.dtype(np.int64))):
        found.check({"speed": kind}, "it")
    with pytest.raises(DataError, match="another environment"):
        found.check({"speed": ((3,), np.dtype(np.float64))}, "it")


@pytest.mark.parametrize(
    ("observed", "said"),
    [
        (
            {"speed": OBSERVED["speed"], "b": OBSERVED["speed"], "a": OBSERVED["speed"]},
            "it names ['screen'], which this environment does not observe; it has "
            f"['a', 'b', 'speed'].{ANEW}",
        ),
        (
            {**OBSERVED, "speed": ((3,), np.dtype(np.float64))},
            "it is of another environment: its 'speed' is (2,) float64 of 16 B, this one's (3,) "
            f"float64 of 24 B.{ANEW}",
        ),
        (
            {**OBSERVED, "speed": ((2,), np.dtype(np.int64))},
            "it is of another environment: its 'speed' is (2,) float64 of 16 B, this one's (2,) "
            f"int64 of 16 B.{ANEW}",
        ),
    ],
)
def test_a_study_of_another_environment_is_refused(observed, said):
    assert text_of(DataError, lambda: SPEC.check(observed, "it")) == said


def test_a_form_that_does_not_fit_its_rows_is_refused():
    odd = FoundSpec({"screen": FoundField("stack of 4 along 1 x 7 B, differences", 0, 7)})

    assert text_of(DataError, lambda: odd.check(OBSERVED, "it")) == (
        "it: 'screen' of 24 B cannot be kept as 'stack of 4 along 1 x 7 B, differences'." + ANEW
    )


@pytest.mark.parametrize(
    "text",
    [
        "fields: {speed: {form: somehow, dense_bytes: 1, found_bytes: 1}}",
        "fields: {speed: {form: compressed, dense_bytes: much, found_bytes: 1}}",
        "fields: {speed: {form: compressed, found_bytes: 1}}",
        "fields: {speed: 3}",
        "fields: 3",
        "other: 3",
    ],
)
def test_a_file_that_is_no_study_is_refused_with_what_writes_one(text, tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(text)

    said = text_of(DataError, lambda: read_found_spec(path))
    if "somehow" not in text:
        assert said.startswith(f"env.spec={path} is no study of an environment (")
        assert said.endswith("). Write one with: python scripts/study.py env=gymnasium env.id=...")
