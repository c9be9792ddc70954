"""A value that is quick to build is the value that it would have been."""

import inspect
from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from omdpd.problem.records import fast_init
from omdpd.storage.packing import pack, unpack


@dataclass(frozen=True)
class Plain:
    x: float
    y: tuple[int, ...] = (1, 2)
    z: float | None = None


@fast_init
@dataclass(frozen=True)
class Quick:
    x: float
    y: tuple[int, ...] = (1, 2)
    z: float | None = None


@pytest.mark.parametrize(
    ("given", "named"), [((1.0,), {}), ((1.0, (3,)), {}), ((), {"z": 2.0, "x": 1.0}), ((1.0, (), 4.0), {})]
)
def test_fields_and_defaults_are_those_of_the_dataclass(given, named):
    assert vars(Quick(*given, **named)) == vars(Plain(*given, **named))


def test_wrong_arguments_are_refused_as_before():
    for given, named in (((), {}), ((1.0, (), None, 5.0), {}), ((1.0,), {"w": 1.0}), ((1.0,), {"x": 1.0})):
        with pytest.raises(TypeError, match="__init__"):
            Quick(*given, **named)


def test_it_is_frozen_equal_by_value_and_can_be_replaced():
    value = Quick(1.0)
    with pytest.raises(FrozenInstanceError):
        value.x = 2.0
    assert value == Quick(1.0, (1, 2))
    assert replace(value, x=3.0) == Quick(3.0)
    assert inspect.signature(Quick) == inspect.signature(Plain)


def test_it_goes_to_a_file_and_back():
    value = Quick(1.0, (), 0.5)
    assert unpack(*pack(value), {"Quick": Quick}) == value


def test_a_class_that_does_more_than_write_its_fields_is_refused():
    @dataclass(frozen=True)
    class Checked:
        x: float

        def __post_init__(self):
            assert self.x > 0.0

    @dataclass(frozen=True)
    class Fresh:
        x: list[float] = field(default_factory=list)

    for cls in (Checked, Fresh):
        with pytest.raises(TypeError, match="does more than write its fields"):
            fast_init(cls)
