"""Models that others wrote, with the packages of others: what docs/others-models.md says, where they are installed."""

import warnings

import numpy as np
import pytest

from omdpd import CMDP, Policy
from omdpd.worlds.umb import read_umb, umb_problem

# A robot of our own: east earns, but may be caught; home is safe.
PROGRAM = """
mdp
module robot
  x : [0..3] init 0;
  caught : bool init false;
  [east] x<3 & !caught -> 0.8:(x'=x+1) + 0.1:(caught'=true) + 0.1:true;
  [home] x>0 & !caught -> 1:(x'=0);
  [rest] !caught -> 1:true;
  [free] caught -> 0.5:(caught'=false)&(x'=0) + 0.5:true;
endmodule
rewards "gold" [home] x=3 : 5; [home] x=2 : 2; endrewards
rewards "attacks" [free] true : 1; endrewards
label "far" = x=3;
"""


def test_a_prism_program_by_way_of_storm_has_storms_answers(tmp_path):
    """Storm's step-bounded queries, of which those of several objectives are right to 1e-4."""
    stormpy = pytest.importorskip("stormpy")
    exported = pytest.importorskip("stormpy.io")
    (tmp_path / "robot.prism").write_text(PROGRAM)
    program = stormpy.parse_prism_program(str(tmp_path / "robot.prism"))
    options = stormpy.BuilderOptions()
    for build in ("all_reward_models", "all_labels", "state_valuations"):
        getattr(options, f"set_build_{build}")(True)
    model = stormpy.build_model(program, options=options)
    file = str(tmp_path / "robot.umb")
    exported.export_to_umb(model, file)

    def storm(query):
        (asked,) = stormpy.parse_properties(query, program)
        found = stormpy.filter_initial_states(stormpy.model_checking(model, asked), model)
        return float(str(found).split()[0].rstrip("."))

    assert any("x=3" in name and "far" in name for name in read_umb(file).names)
    free = umb_problem(file, "gold", ["attacks"], None, 40).solve()
    assert free.value == pytest.approx(storm('R{"gold"}max=? [C<=40]'), rel=1e-5)
    both = umb_problem(file, "gold", ["attacks"], 1.0, 40).solve()
    wanted = storm('multi(R{"gold"}max=? [C<=40], R{"attacks"}<=1 [C<=40])')
    assert both.value == pytest.approx(wanted, rel=2e-4)
    assert both.evaluation.costs == pytest.approx([1.0])


def test_the_records_of_intensive_care_have_their_published_answers():
    """Its authors say that experts let 78 % of the patients survive, and that 88 % is the best."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pytest.importorskip("icu_sepsis")
        import gymnasium

        env = gymnasium.make("Sepsis/ICU-Sepsis-v2").unwrapped
    tables = env.dynamics
    p, d = tables["tx_mat"], tables["d_0"]
    reward = (p * tables["r_mat"]).sum(axis=2)
    allowed = np.zeros(reward.shape, bool)
    for s, actions in enumerate(tables["admissible_actions"]):
        allowed[s, actions] = True
    dose = np.broadcast_to((np.arange(25) // 5) / 4.0, reward.shape)
    cmdp = CMDP.from_arrays(p, reward, dose, None, d / d.sum(), horizon=100, allowed=allowed)
    best = cmdp.solve()
    assert best.value == pytest.approx(0.875, abs=1e-3)
    played = env.expert_policy.copy()
    played[played.sum(axis=1) == 0.0, 0] = 1.0  # the ends have none
    expert = Policy(played).evaluate(CMDP.from_arrays(p, reward, dose, None, d / d.sum(), horizon=100))
    assert expert.value == pytest.approx(0.782, abs=1e-3)
    careful = cmdp.with_budget(0.5 * float(best.evaluation.costs[0])).solve()
    assert careful.evaluation.safe
    assert careful.value < best.value
