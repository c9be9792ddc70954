// What was asked, progress, policies, occupancies, visits, comparison and how to reproduce it.
"use strict";
(() => {
  const { el, number } = omdpd;

  const fact = (name, value, title) => el("div", { title: title || null }, el("dt", { text: name }), el("dd", { text: value }));

  // One line per learner and place: is it safe, since when, and what does an episode of the last tenth earn?
  omdpd.glance = (study) => {
    const several = study.head.places.length > 1, percent = (x) => (x === null ? "–" : `${number(100 * x, 3)} %`);
    const rows = study.head.groups.map((g, i) => ({ ...g, value: study[`group-${i}`] })).filter((g) => g.value?.glance).map((g) => {
      const { over, earned, best, since } = g.value.glance, held = since.filter((k) => k !== null), all = held.length === since.length;
      const world = study.problems.worlds.find((w) => w.world === g.value.world);
      const budget = world && !world.fault && world.constraints.length === 1 ? d3.mean(world.seeds.length ? world.seeds.map((s) => s.budgets[0]) : [world.constraints[0].budget]) : 0;
      const said = all ? (d3.max(held) === 1 ? "in every episode" : `since episode ${number(d3.max(held))}`) : held.length ? `in ${held.length} of ${since.length} runs` : "not yet";
      return [...(several ? [study.head.places[g.place].label] : []), g.learner, el("span", { class: `badge ${all ? "finished" : held.length ? "running" : "failed"}`, text: said }),
        number(over, 3), percent(budget > 0 ? over / budget : null), number(earned, 4), number(best, 4), percent(best > 0 ? earned / best : null)];
    });
    if (!rows.length) return [omdpd.empty("No run has committed an episode yet.")];
    const heads = [...(several ? ["costs"] : []), "learner", "in budget", "over, per episode", "of the budget", "earns, per episode", "best safe policy", "share of that"];
    const shown = heads.map((_, i) => i).filter((i) => rows.some((row) => row[i] !== "–")), head = shown.map((i) => heads[i]);
    const note = "Expected numbers under the true model: means over runs, of the last tenth of the episodes so far. “In budget since” means that no later episode was over, and none of the last tenth. An episode is over its budget if it is by more than a thousandth of the largest cost of an episode. A share above 100 % is earned by going over the budget.";
    const mixed = study.progress.mixed.map((text) => el("p", { class: "warn", text }));
    return [...mixed, omdpd.table(head, rows.map((row) => shown.map((i) => row[i])), head.map((_, i) => i).slice(several ? 3 : 2), "is it safe, what does it earn, since when"), el("p", { class: "quiet", text: note })];
  };

  omdpd.asked = (study, place) => {
    const world = study.problems.worlds.find((w) => w.world === place?.world);
    if (!world) return [omdpd.empty("No run has been planned or started here.")];
    const nature = world.natures.find((n) => n.nature === place.nature);
    const safe = nature === undefined || nature.safe === null ? null : nature.safe;
    const natureLine = nature && nature.feedback ? `${nature.nature}: ${nature.feedback === "full" ? "the whole cost tables are revealed after every episode" : "costs are observed along the way"}. ${nature.why ? nature.why[0].toUpperCase() + nature.why.slice(1) + "." : ""}` : place.nature;
    if (world.fault) return [el("p", { class: "warn", text: `The world ${world.world} cannot be built here, so its card, best policy and occupancies are missing (${world.fault}). Everything that the runs recorded is shown.` })];
    const gap = world.constraints.some((c) => c.scale !== 1) ? "room below the budgets, in scaled units" : "room below the budgets";
    const facts = [
      fact("states S", number(world.S)), fact("actions A", number(world.A)), fact("steps H", number(world.H)), fact("constraints", String(world.constraints.length)),
      fact("best safe value", world.feasible ? number(world.value, 6) : "none", "the best expected reward of an episode among policies that meet every budget"),
      fact("without constraints", number(world.free_value, 6)), fact(gap, number(world.slater_gap), "the room of the safest policy below the budgets, in the units that learners see"),
      fact("safe in every episode", safe === null ? "not known" : safe ? "a policy exists" : "no policy"),
    ];
    const varies = world.varies ? `Every seed is a world of its own; this is seed ${world.seeds[0].seed} of ${world.n_seeds}.` : "";
    const head = ["constraint", "budget", "least possible", "reward-optimal policy", "best safe policy", "one more unit of budget earns", "one less loses"];
    const rows = world.constraints.map((c) => [c.name, c.budget === null ? "no limit" : number(c.budget), number(c.least), number(c.free), world.feasible ? number(c.cost) : "–", world.feasible ? (c.binds ? number(c.price) : "nothing: it does not bind") : "–", world.feasible && c.binds ? number(c.price_less) : "–"]);
    const seedHead = ["seed", "best safe value", "without constraints", gap, "budgets", "shadow prices"];
    const seedRows = world.seeds.map((s) => [String(s.seed), number(s.value), number(s.free_value), number(s.slater_gap), s.budgets.map((x) => number(x)).join(", "), s.prices.map((x) => number(x)).join(", ")]);
    return [
      el("p", {}, el("strong", { text: world.world }), ` · ${world.stationary ? "the same dynamics at every step" : "dynamics by step"}. ${varies}`),
      world.feasible ? null : el("p", { class: "warn", text: `No policy meets every budget of this world: the best one exceeds some budget by ${number(world.excess)}. Regret has nothing to be measured against; what can be compared is violation.` }),
      el("dl", { class: "facts" }, facts),
      el("p", { text: natureLine }),
      omdpd.figure({ name: "constraints", title: "Constraints and shadow prices, in the user's units", drawings: [omdpd.table(head, rows, [1, 2, 3, 4, 5, 6], "constraints")], head, rows }),
      world.scenarios.length ? el("p", { class: "quiet", text: `Its own adversary may pick among: ${world.scenarios.join(", ")}.` }) : null,
      world.varies ? omdpd.figure({ name: "seeds", title: "The worlds of the seeds", drawings: [omdpd.table(seedHead, seedRows, [1, 2, 3, 4, 5], "worlds")], head: seedHead, rows: seedRows }) : null,
    ];
  };

  const STATES = { waiting: "waiting", started: "started", running: "running", unfinished: "not finished", finished: "finished", failed: "failed", damaged: "damaged" };
  omdpd.progress = (study) => {
    const runs = study.progress.runs;
    const fault = study.progress.fault ? el("p", { class: "warn", text: study.progress.fault }) : null;
    if (!runs.length) return [fault, omdpd.empty("No run has started yet. This page fills itself as soon as one commits.")];
    const counts = d3.rollup(runs, (g) => g.length, (r) => r.state);
    const done = d3.sum(runs, (r) => Math.min(r.k, r.K)), all = d3.sum(runs, (r) => r.K);
    const going = runs.filter((r) => r.state === "running");
    const speed = d3.sum(going, (r) => r.rate || 0);
    const left = d3.sum(runs.filter((r) => !["finished", "failed", "damaged"].includes(r.state)), (r) => r.K - r.k);
    const words = Object.keys(STATES).filter((s) => counts.get(s)).map((s) => `${counts.get(s)} ${STATES[s]}`).join(", ");
    const live = study.head.live && speed > 0 ? `; ${number(speed, 3)} episodes a second, about ${omdpd.seconds(left / speed)} to go` : "";
    const head = ["state", "learner", "nature", "world", "seed", "episodes", "episodes/s", "to go", "run"];
    const order = { failed: 0, damaged: 1, running: 2, unfinished: 3, started: 4, waiting: 5, finished: 6 };
    const cells = (r) => [el("span", { class: `badge ${r.state}`, text: STATES[r.state] || r.state }), r.learner, r.nature, r.world, r.seed === null ? "–" : String(r.seed),
      `${number(r.k)} / ${number(r.K)}`, r.rate === null ? "–" : number(r.rate, 3), r.state === "running" ? omdpd.seconds(r.to_go) : "–", r.run];
    const rows = [...runs].sort((a, b) => order[a.state] - order[b.state]).map(cells);
    const errors = runs.filter((r) => r.error !== null).map((r) => el("details", { class: "error" },
      el("summary", { text: `${STATES[r.state]}: ${r.learner || "a run"}${r.seed === null ? "" : `, seed ${r.seed}`}, at episode ${number(r.k)}, run ${r.run}` }),
      el("p", { text: r.error }), r.traceback ? el("pre", { text: r.traceback }) : null,
      el("p", { class: "quiet", text: r.state === "failed" ? `Run ${r.run}. Try it again with --retry-failed.` : `Run ${r.run}. Nothing of it is in any number of this page: put the file back, or play it again in another folder.` })));
    const [failed, damaged] = ["failed", "damaged"].map((s) => counts.get(s) || 0);
    const broken = [failed ? `${failed} of ${runs.length} runs ended in an error` : "", damaged ? `${damaged} of ${runs.length} runs ${damaged > 1 ? "are" : "is"} damaged` : ""].filter(Boolean).join(", ");
    return [
      el("p", { id: "tally", role: "status", text: `${runs.length} runs: ${words}; ${number(done)} of ${number(all)} episodes${live}.` }),
      el("progress", { max: Math.max(all, 1), value: done, "aria-label": "episodes played" }),
      fault,
      broken ? el("p", { class: "warn", text: `${broken}. Means and bands below are of the others: read them with care.` }) : null,
      ...errors,
      omdpd.figure({ name: "progress", title: "", drawings: [omdpd.table(head, rows, [4, 5, 6, 7], "progress of runs")], head, rows }),
    ];
  };

  const half = (width) => omdpd.width(width > 860 ? width / 2 - 16 : width, 520);
  omdpd.policy = (world, run, best, switches, width) => {
    if (!world?.S) return [omdpd.empty("The world cannot be built here, so there is nothing to draw its policies on.")];
    if (!run) return [omdpd.empty("No run of this learner has committed yet, or its policies did not fit on the page.")];
    const played = omdpd.unpacked(run, world);
    const i = Math.min(switches.snapshot, played.n - 1), h = Math.min(switches.step, world.H - 1), now = played.at(i);
    const w = half(width), reference = best ? { policy: omdpd.shares(best.policy), states: omdpd.shares(best.states) } : null;
    const when = now.episode === null ? "averaged over all episodes" : `after ${number(now.episode)} episodes`;
    const differs = switches.difference && reference;
    const drawings = [];
    const name = { learned: `learned, ${when}, step ${h + 1}`, best: `best safe policy, step ${h + 1}` };
    if (world.layout.length && !differs) {
      drawings.push(omdpd.map({ world, ...now, step: h, title: name.learned, width: w }));
      if (reference) drawings.push(omdpd.map({ world, ...reference, step: h, title: name.best, width: w }));
    } else {
      const heat = { columns: omdpd.actionNames(world), rows: omdpd.stateNames(world), width: w };
      if (differs) {
        const gap = now.policy.map((p, j) => p - reference.policy[j]);
        drawings.push(omdpd.heat({ ...heat, cells: omdpd.byAction(world, gap, h), title: `learned less best, ${when}, step ${h + 1}`, diverging: true }));
      } else {
        drawings.push(omdpd.heat({ ...heat, cells: omdpd.byAction(world, now.policy, h), title: name.learned }));
        if (reference) drawings.push(omdpd.heat({ ...heat, cells: omdpd.byAction(world, reference.policy, h), title: name.best }));
      }
    }
    const head = ["state", ...omdpd.actionNames(world).map((a) => `learned: ${a}`), ...(reference ? omdpd.actionNames(world).map((a) => `best: ${a}`) : [])];
    const row = (table, s) => d3.range(world.A).map((a) => number(table[omdpd.at(world, h, s, a)], 3));
    const rows = () => d3.range(world.S).map((s) => [omdpd.stateName(world, s), ...row(now.policy, s), ...(reference ? row(reference.policy, s) : [])]);
    const notes = ["probability of every action in every state; the best policy is arbitrary where it never comes"];
    if (!run.episodes.length) notes.push("this run kept no policies on the way (policies = \"none\" in its spec, or an older version), so its average play is shown");
    return [omdpd.figure({ name: "policy", title: "Policy", note: notes.join("; "), drawings: [el("div", { class: "pair" }, drawings)], head, rows })];
  };

  omdpd.occupancy = (world, run, best, switches, width) => {
    if (!world?.S || !run) return [omdpd.empty("Nothing to draw yet.")];
    const played = omdpd.unpacked(run, world), now = played.at(Math.min(switches.snapshot, played.n - 1)), w = half(width);
    const heat = { columns: d3.range(world.H).map((h) => String(h + 1)), rows: omdpd.stateNames(world), width: w, xlabel: "step →" };
    const when = now.episode === null ? "averaged over all episodes" : `policy after ${number(now.episode)} episodes`;
    const drawings = [omdpd.heat({ ...heat, cells: omdpd.byStep(world, now.states), title: `learned, ${when}` })];
    if (best) drawings.push(omdpd.heat({ ...heat, cells: omdpd.byStep(world, omdpd.shares(best.states)), title: "best safe policy" }));
    const reference = best ? omdpd.shares(best.states) : null;
    const far = reference ? d3.mean(d3.range(world.H), (h) => 0.5 * d3.sum(d3.range(world.S), (s) => Math.abs(now.states[h * world.S + s] - reference[h * world.S + s]))) : null;
    const head = ["state", "step", "learned", "best"];
    const rows = () => omdpd.byStep(world, now.states).map((c) => [c.y, c.x, number(c.v, 3), reference ? number(reference[c.h * world.S + c.s], 3) : "–"]);
    return [omdpd.figure({ name: "occupancy", title: "Occupancy: the chance to be in a state at a step", note: far === null ? "" : `The two differ by ${number(far, 3)} on average over the steps (total variation: 0 the same, 1 apart).`, drawings: [el("div", { class: "pair" }, drawings)], head, rows, numeric: [1, 2, 3] })];
  };

  omdpd.visits = (world, run, switches, width) => {
    if (!world?.S || !run) return [omdpd.empty("Nothing to draw yet.")];
    if (!run.visits) return [omdpd.empty("This learner keeps no counts of its visits, or the run is of an earlier version.")];
    const h = Math.min(switches.step, world.H - 1), w = half(width);
    const widths = run.visits.map((n) => Math.sqrt(run.log_term / Math.max(n, 1)));
    const heat = { columns: omdpd.actionNames(world), rows: omdpd.stateNames(world), width: w };
    const never = run.visits.filter((n) => n === 0).length;
    const head = ["state", "action", "visits", "width"];
    const rows = () => omdpd.byAction(world, run.visits, h).map((c) => [c.y, c.x, number(c.v), number(widths[omdpd.at(world, h, c.s, c.a)], 3)]);
    return [omdpd.figure({
      name: "visits", title: `Visits and confidence widths at step ${h + 1}`,
      note: `After ${number(run.k)} episodes. Width: √(L / n) with L = ${number(run.log_term, 3)} (confidence 99 %); every learner multiplies it by a scale of its own. ${number(never)} of ${number(run.visits.length)} triples of step, state and action were never visited.`,
      drawings: [el("div", { class: "pair" }, [
        omdpd.heat({ ...heat, cells: omdpd.byAction(world, run.visits, h), title: "visits", largest: Math.max(d3.max(run.visits), 1) }),
        omdpd.heat({ ...heat, cells: omdpd.byAction(world, widths, h), title: "width", largest: d3.max(widths) })])],
      head, rows, numeric: [2, 3],
    })];
  };

  omdpd.comparison = (study, place, baseline, metric) => {
    const families = study.comparison.families.filter((f) => f.world === place?.world && f.nature === place?.nature);
    const family = families.find((f) => f.baseline === baseline && f.metric === metric);
    if (!family) return [omdpd.empty(families.length ? (metric === "regret" ? "There is no regret to compare here." : "There is nobody to compare with.") : "Two learners with finished runs on the same seeds are needed for a comparison.")];
    const verdict = (r) => (r.p === null ? "one seed says nothing" : r.p < 0.05 ? (r.mean > 0 ? `more than ${baseline}` : `less than ${baseline}`) : "not told apart");
    const head = ["learner", "seeds", `mean difference of ${metric}`, "95 % interval", "p (Holm)", "verdict at 5 %"];
    const rows = [...family.rows].sort((a, b) => a.mean - b.mean).map((r) => ({ class: r.few ? "few" : null, cells: [r.learner, String(r.n), (r.mean > 0 ? "+" : "") + number(r.mean, 3), r.interval ? `${number(r.interval[0], 3)} to ${number(r.interval[1], 3)}` : "–", r.p === null ? "–" : r.p < 0.001 ? "< 0.001" : r.p.toFixed(3), verdict(r)] }));
    const few = family.rows.some((r) => r.few) ? ` Grey: fewer than ${study.head.few} seeds, read with care.` : "";
    return [omdpd.figure({ name: "comparison", title: `Paired differences of ${metric} to ${baseline}`, note: `On the same seeds, so the same worlds and the same luck; Student's paired test, Holm-corrected over the ${family.rows.length === 1 ? "one learner" : `${family.rows.length} learners`} below.${few}`, drawings: [omdpd.table(head, rows, [1, 2, 3, 4], "comparison")], head, rows })];
  };

  omdpd.reproduce = (study) => {
    const head = study.head;
    const commands = head.commands.map((text) => el("div", {}, el("pre", { text }), el("button", { type: "button", text: "Copy", "aria-label": "Copy the command", onclick: (e) => { navigator.clipboard?.writeText(text); e.target.textContent = "Copied"; } })));
    return [
      commands.length ? el("p", { text: "The same study once more, run by run with the same numbers:" }) : el("p", { class: "quiet", text: "This folder has no experiment.toml; every run's own spec.toml says what ran." }), ...commands,
      head.specs ? el("details", {}, el("summary", { text: "experiment.toml" }), el("pre", { text: head.specs })) : null,
      el("p", { class: "quiet", text: `omdpd ${head.version}; page ${head.live ? "served" : "written"} ${new Date(1000 * head.written).toISOString().slice(0, 16).replace("T", " ")} UTC from ${head.folder}. Drawn with Observable Plot and d3 (ISC licence), both inside this page.` }),
    ];
  };
})();
