"""Names of the slots: what `E[slot.LOWER, ...]`, `rows[slot.OCCUPANCY, ...]` and `hinge[slot.ABOVE, ...]` hold.

Letters mean one thing in all of `box_step`:

    h, s, a, t      step, state, action, next state                    H, S, A   how many
    b, i, r, n      block, step inside it, row r = a S + s of a step, column n = i R + r of a block (`storage`)
    nb, hb, R, N    blocks with entries, steps per block, rows per step (padded), columns per block
    j, k            hinges                                             m         how many
    q, V, tau, nu   occupancy, values, multipliers of sum_t x_t = q and of q >= 0; d, f, theta, kappa, gamma: `rows`
    l, u            bounds of a row's law; x_t = q p_t lies between l_t q and u_t q

An entry (s,a,s') has two slacks: the low one x - l q and the high one u q - x, each with a multiplier.
Some slots have two names, for two uses at different times: the second is marked "=".  "written by" and "read by" name
functions, or modules where several of their functions do.

Entries, E[slot, b, t, n]
----------------------------------------------------------------------------------------------------------------------
slot                   meaning                                    written by                 read by
TRUE_LOWER             l as asked                                 load                       laws
TRUE_WIDTH             u - l as asked                             load                       laws
LOWER                  l the method works with                    classify                   start, rows, stationarity,
                                                                                             recover_kernel
WIDTH                  u - l; 0: nothing left to decide           classify, start_slacks     start, rows, steps,
                                                                                             stationarity
LOW_SLACK              x - l q                                    start_slacks, advance      rows, steps,
                                                                                             recover_kernel
HIGH_SLACK             u q - x (1 where there is no bound)        start_slacks, advance      affine_moves, advance
LOW_MULTIPLIER         of the low slack                           start_multipliers,         rows, steps, stationarity
                                                                  advance
HIGH_MULTIPLIER        of the high slack                          start_multipliers,         rows, steps, stationarity
                                                                  advance
LOW_INVERSE            1 / low slack; 0: no slack                 start_slacks, advance      start_multipliers, rows,
                                                                                             steps
HIGH_INVERSE           1 / high slack; 0: bound implied           start_slacks, advance      start_multipliers, rows,
                                                                                             steps
NEWTON_WEIGHT          d                                          weigh                      rows, newton
PSEUDO_KERNEL          f, which sums to one                       weigh                      rows, newton, response
= START_KERNEL         p of the start                             start_kernel               start
FORCE                  V, then what moves x if q stands still     spread, predictor_terms,   stationarity,
                                                                  corrector_terms            outflow_terms, directions
LOW_CORRECTION         centring and second-order term             corrector_terms            multiplier_moves
= LOW_MULTIPLIER_MOVE  change of the low multiplier               multiplier_moves           advance
HIGH_CORRECTION        centring and second-order term             corrector_terms            multiplier_moves
= HIGH_MULTIPLIER_MOVE change of the high multiplier              multiplier_moves           advance
LOW_SLACK_MOVE         change of the low slack                    directions                 corrector_terms,
                                                                                             moved_terms, steps,
                                                                                             advance
= KERNEL               p of the certificate; best_laws: the best  recover_kernel,            kernel_gap, forward,
                       law for V                                  sum_to_one, kernel_gap,    copy_out, classify
                                                                  best_laws

Rows, rows[slot, b, n]
----------------------------------------------------------------------------------------------------------------------
slot                   meaning                                    written by                 read by
OCCUPANCY              q                                          start_flow, advance        start, stationarity, rows,
                                                                                             steps, hinges,
                                                                                             certificate
TAU                    tau                                        start_multipliers,         stationarity,
                                                                  advance                    predictor_terms
NU                     nu                                         start_multipliers,         stationarity,
                                                                  advance                    corrector_terms, steps
C                      c - sum_j xi_j d_j                         price                      stationarity, water_fill,
                                                                                             backward
BASE_C                 c less its mean per step, fixed prices     load, price                price
START_MASS             mass of the state at the start; 0: dead    start_flow                 start, corrector_terms
SIGN_WEIGHT            barrier weight of q >= 0; 0: not stated    start_slacks               start_multipliers,
                                                                                             corrector_terms
LIVE                   1 where the state can be reached           load, start_flow           weigh, stationarity,
                                                                                             balance, couple, steps
ROOM                   1 - sum_t l_t; 0: law fixed                classify                   start_slacks, rows, laws,
                                                                                             kernel_gap
INVERSE_THETA          1 / theta; 0: no free entry                weigh                      rows
KAPPA_BY_THETA         kappa / theta                              weigh                      predictor_terms,
                                                                                             directions
INVERSE_GAMMA          1 / gamma; 0: dead                         weigh                      rows, couple, hinges
CURVATURE              of the objective and of q >= 0             stationarity               weigh
RESIDUAL               minus stationarity's, slacks left out      stationarity               predictor_terms
RIGHT                  right-hand side of dq                      predictor_terms,           outflow_terms, directions,
                                                                  corrector_terms,           response
                                                                  add_prices
TAU_OFFSET             tau's move if V stands still               predictor_terms,           outflow_terms, directions
                                                                  corrector_terms
SUM_RESIDUAL           q (1 - sum l) - sum of the low slacks      start_flow, advance        predictor_terms,
                                                                                             directions
FLOW_MOVE              dq that the balance counts                 outflow_terms,             balance
                                                                  moved_terms
OCCUPANCY_MOVE         dq                                         directions                 rows, steps, dots
TAU_MOVE               change of tau                              directions                 advance
NU_MOVE                change of nu                               multiplier_moves           advance
NU_CORRECTION          centring and second-order term             corrector_terms            multiplier_moves
SCRATCH_1              whatever one function needs                rows, steps, laws          rows, steps, laws
= CENTRE               centre, as a fraction of the width         classify                   start_kernel
= OCCUPANCY_RATIO      dq / q of the predictor                    affine_moves               corrector_terms
SCRATCH_2              whatever one function needs                rows, steps, laws          rows, steps, laws
= DUAL_SLACK           y of the certificate                       backward                   row_gap
SCRATCH_3              whatever one function needs                rows, start, laws          rows, start, laws
= OWN_VALUE            V or dV of the row's state                 spread                     stationarity, directions
= KERNEL_LOSS          sigma - p.V of the certificate             backward                   row_gap
CERTIFIED              q of the certificate's forward pass        forward                    row_gap, hinge_gaps,
                                                                                             copy_out

Hinges, hinge[slot, j]; the first four, before presolve, data[slot, j]
----------------------------------------------------------------------------------------------------------------------
slot                   meaning                                    written by                 read by
WEIGHT                 W_j in the unit of the hinge               load_hinges                presolve, hinges,
                                                                                             hinge_gaps
REACH                  how far v_j can move                       presolve                   weigh_hinges
UNIT                   power of two that d_j was divided by       load_hinges                finish
SIZE                   max |d_j| after that                       load_hinges                presolve
VALUE                  v_j = d_j.q                                weigh_hinges, dots         centre_hinges, aim_hinges
ABOVE                  slack of v's positive part                 centre_hinges,             hinges
                                                                  advance_hinges
BELOW                  slack of v's negative part                 centre_hinges,             hinges
                                                                  advance_hinges
ZETA                   multiplier of the first, W - xi            centre_hinges,             hinges
                                                                  advance_hinges
XI                     of the second: the price of d_j            centre_hinges,             hinges, certify
                                                                  advance_hinges
BARRIER_WEIGHT         weight of both slacks in the barrier       weigh_hinges               centre_hinges, aim_hinges
ABOVE_CORRECTION       centring and second-order term             aim_hinges                 move_hinges
BELOW_CORRECTION       centring and second-order term             aim_hinges                 move_hinges
SPLIT_RESIDUAL         slacks' difference less v                  aim_hinges                 move_hinges
BORDER_RIGHT           g, right-hand side of the border           aim_hinges                 solve_border
ABOVE_MOVE             change of the first slack                  weigh_hinges, move_hinges  aim_hinges,
                                                                                             advance_hinges
BELOW_MOVE             change of the second slack                 weigh_hinges, move_hinges  aim_hinges,
                                                                                             advance_hinges
XI_MOVE                change of xi                               weigh_hinges, move_hinges  aim_hinges,
                                                                                             advance_hinges
"""

from __future__ import annotations

# Entries.
(
    TRUE_LOWER, TRUE_WIDTH, LOWER, WIDTH, LOW_SLACK, HIGH_SLACK, LOW_MULTIPLIER, HIGH_MULTIPLIER, LOW_INVERSE,
    HIGH_INVERSE, NEWTON_WEIGHT, PSEUDO_KERNEL, FORCE, LOW_CORRECTION, HIGH_CORRECTION, LOW_SLACK_MOVE,
) = range(16)  # fmt: skip
ENTRY_SLOTS = 16
START_KERNEL = PSEUDO_KERNEL
LOW_MULTIPLIER_MOVE, HIGH_MULTIPLIER_MOVE = LOW_CORRECTION, HIGH_CORRECTION
# Between iterations no direction is needed.
KERNEL = LOW_SLACK_MOVE

# Rows.
(
    OCCUPANCY, TAU, NU, C, BASE_C, START_MASS, SIGN_WEIGHT, LIVE, ROOM, INVERSE_THETA, KAPPA_BY_THETA, INVERSE_GAMMA,
    RESIDUAL, RIGHT, FLOW_MOVE, TAU_OFFSET, SUM_RESIDUAL, OCCUPANCY_MOVE, TAU_MOVE, NU_MOVE, NU_CORRECTION, SCRATCH_1,
    SCRATCH_2, SCRATCH_3, CURVATURE, CERTIFIED,
) = range(26)  # fmt: skip
ROW_SLOTS = 26
CENTRE = OCCUPANCY_RATIO = SCRATCH_1
DUAL_SLACK = SCRATCH_2
OWN_VALUE = KERNEL_LOSS = SCRATCH_3

# Hinges: what is known before the first iteration, then what an iteration has and makes.
WEIGHT, REACH, UNIT, SIZE = range(4)
DATA_SLOTS = 4
(
    VALUE, ABOVE, BELOW, ZETA, XI, BARRIER_WEIGHT, ABOVE_CORRECTION, BELOW_CORRECTION, SPLIT_RESIDUAL, BORDER_RIGHT,
    ABOVE_MOVE, BELOW_MOVE, XI_MOVE,
) = range(4, 17)  # fmt: skip
HINGE_SLOTS = 17
