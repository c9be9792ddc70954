"""The studies by their names: `python -m benchmarks.studies NAME` plays one and writes its page."""

from __future__ import annotations

from .ablation import ABLATION
from .anytime import ANYTIME
from .constants import CONSTANTS
from .frontier import FRONTIER
from .growth import GROWTH
from .known_model import KNOWN_MODEL
from .study import Study

STUDIES: dict[str, Study] = {
    study.name: study for study in (KNOWN_MODEL, CONSTANTS, ABLATION, FRONTIER, ANYTIME, GROWTH)
}
