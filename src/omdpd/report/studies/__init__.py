"""The studies by their names: `omdpd study NAME` plays one and writes its page."""

from __future__ import annotations

from omdpd.report.studies.ablation import ABLATION
from omdpd.report.studies.anytime import ANYTIME
from omdpd.report.studies.constants import CONSTANTS
from omdpd.report.studies.frontier import FRONTIER
from omdpd.report.studies.growth import GROWTH
from omdpd.report.studies.known_model import KNOWN_MODEL
from omdpd.report.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study for study in (KNOWN_MODEL, CONSTANTS, ABLATION, FRONTIER, ANYTIME, GROWTH)
}
