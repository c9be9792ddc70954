// Curves of regret and violation, bursts, regret against violation, health: each returns what fills its section.
"use strict";
(() => {
  const { el, number } = omdpd;
  const NAMES = { regret: "cumulative regret", violation: "cumulative strong violation" };
  const MAX_STRIP_ROWS = 40;

  const series = (group, run, key) => (run.alone ? group[key]?.mean : run[key]);
  const scaled = (switches) => (x, y) => (y === null || y === undefined ? NaN : switches.divided ? y / Math.sqrt(x) : y);

  // The lines and bands of one chart as flat records.
  const records = (groups, key, switches) => {
    const lines = [], areas = [], scale = scaled(switches);
    for (const g of groups) {
      const base = { learner: g.learner, look: g.look };
      const value = g.value[key];
      const add = (xs, ys, z, extra = {}) => xs.forEach((x, i) => lines.push({ ...base, x, y: scale(x, ys[i]), z, ...extra }));
      if (switches.show === "seeds" || !value) {
        for (const run of g.value.runs || []) {
          const ys = series(g.value, run, key);
          if (ys) add(run.x || g.value.x, ys, `${g.learner} seed ${run.seed}`, { thin: true, seed: run.seed });
        }
      } else {
        const quantiles = switches.show === "quantiles" && value.quantiles;
        add(g.value.x, quantiles ? value.quantiles[1] : value.mean, g.learner);
        const [low, high] = quantiles ? [value.quantiles[0], value.quantiles[2]] : [value.low, value.high];
        const floor = key === "violation" ? 0 : -Infinity; // nobody violates by less than nothing, whatever a symmetric interval holds
        if (low) g.value.x.forEach((x, i) => areas.push({ ...base, x, low: scale(x, Math.max(low[i], floor)), high: scale(x, high[i]) }));
        for (const run of g.value.runs || []) if (run.x && series(g.value, run, key)) add(run.x, series(g.value, run, key), `${g.learner} seed ${run.seed}`, { thin: true, seed: run.seed });
      }
      if (key === "violation" && switches.weak && g.value.weak) add(g.value.x, g.value.weak.mean, `${g.learner} weak`, { weak: true });
    }
    return { lines, areas };
  };

  const chart = (groups, key, switches, width) => {
    let { lines, areas } = records(groups, key, switches);
    const log = switches.scale === "log";
    if (log) {
      lines = lines.filter((d) => d.y > 0);
      areas = areas.filter((d) => d.low > 0 && d.high > 0);
    }
    lines = lines.filter((d) => Number.isFinite(d.y));
    if (!lines.length) return null;
    const ys = [...lines.map((d) => d.y), ...areas.flatMap((d) => [d.low, d.high])];
    const [low, high] = d3.extent([...ys, ...(log ? [] : [0])]);
    const constant = Math.max(10 ** Math.floor(Math.log10(Math.max(high, -low, 1e-6)) - 1.5), 1e-3);
    const y = { grid: true, label: null, type: { linear: "linear", symlog: "symlog", log: "log" }[switches.scale] };
    if (switches.scale === "symlog") Object.assign(y, { constant, ticks: omdpd.symlogTicks(low, high, constant), tickFormat: omdpd.tick });
    if (log) Object.assign(y, { tickFormat: (d) => (Math.abs(Math.log10(d) % 1) < 1e-9 ? number(d) : "") });
    const stroke = (d) => d.look.colour;
    const marks = [];
    const K = d3.max(lines, (d) => d.x);
    if (!log) marks.push(Plot.ruleY([0], { stroke: omdpd.ink(), strokeWidth: 0.8 }));
    if (switches.root) {
      const ends = [...d3.group(lines.filter((d) => !d.weak), (d) => d.z).values()].map((l) => l[l.length - 1].y).filter((v) => v > 0);
      if (ends.length) {
        const c = d3.median(ends) / (switches.divided ? 1 : Math.sqrt(K));
        const root = d3.range(0, 101).map((i) => Math.max(1, log ? K ** (i / 100) : (K * i) / 100)).map((x) => ({ x, y: switches.divided ? c : c * Math.sqrt(x) }));
        marks.push(Plot.line(root, { x: "x", y: "y", stroke: omdpd.soft(), strokeDasharray: "1 4", strokeWidth: 1.6 }));
        marks.push(Plot.text([root[70]], { x: "x", y: "y", text: () => (switches.divided ? "constant" : "√K"), dy: -8, fill: omdpd.soft() }));
      }
    }
    marks.push(
      Plot.areaY(areas, { x: "x", y1: "low", y2: "high", z: "learner", fill: stroke, fillOpacity: 0.16 }));
    for (const [filter, width_, opacity, dash] of [[(d) => d.thin, 1, 0.65, null], [(d) => d.weak, 1.3, 0.9, "4 4"], [(d) => !d.thin && !d.weak, 2, 1, null]]) {
      for (const [, group] of d3.group(lines.filter(filter), (d) => d.z)) marks.push(
        Plot.line(group, { x: "x", y: "y", z: "z", stroke: group[0].look.colour, strokeWidth: width_, strokeOpacity: opacity, strokeDasharray: dash ?? group[0].look.dash }));
    }
    const ends = [...d3.group(lines.filter((d) => !d.weak), (d) => d.z).values()].map((l) => l[l.length - 1]);
    marks.push(Plot.dot(ends, { x: "x", y: "y", stroke, fill: stroke, symbol: (d) => d.look.symbol, r: (d) => (d.thin ? 2 : 4) }));
    const words = (d) => `${d.learner}${d.seed === undefined ? "" : `, seed ${d.seed}`}${d.weak ? " (weak)" : ""}\nepisode ${number(d.x)}: ${number(d.y)}`;
    marks.push(Plot.tip(lines, Plot.pointer(omdpd.tip({ x: "x", y: "y", title: words }))));
    return omdpd.plot({
      width, height: Math.max(260, Math.min(400, width * 0.62)), marginLeft: 56, marginRight: 24, marginTop: 14, marginBottom: 38,
      x: { label: "episode →", type: log ? "log" : "linear", ticks: log ? 4 : Math.max(3, Math.floor(width / 110)), tickFormat: log ? "~s" : omdpd.tick },
      y, symbol: { type: "identity" }, r: { type: "identity" }, marks,
      ariaLabel: `${NAMES[key]} of ${groups.map((g) => g.learner).join(", ")} over ${number(K)} episodes`,
    });
  };

  const exponent = (value) => {
    if (!value || value.exponent === null || value.exponent === undefined) return "–";
    const range = value.interval ? ` (${value.interval[0].toFixed(2)} to ${value.interval[1].toFixed(2)})` : "";
    return value.exponent.toFixed(2).replace("-", "−") + range;
  };

  // Why there is nothing to draw: nothing was played, what was played is damaged, or it is still being worked out.
  const nothing = (groups) => {
    if (groups.some((g) => g.value.n_runs === undefined)) return "This is being worked out.";
    return groups.some((g) => g.value.damaged.length) ? "Every run here that committed something is damaged." : "No episode is committed yet.";
  };

  omdpd.curves = (groups, switches, width) => {
    const half = omdpd.width(width > 900 ? width / 2 - 12 : width, 620);
    const made = ["violation", "regret"].map((key) => {
      const with_ = groups.filter((g) => g.value.runs?.length);
      const drawn = with_.length ? chart(with_, key, switches, half) : null;
      const title = NAMES[key][0].toUpperCase() + NAMES[key].slice(1) + (switches.divided ? ", divided by √k" : "");
      const why = [...new Set(with_.map((g) => g.value.why).filter(Boolean))];
      const told = [key === "regret" ? "against the best policy that is safe in every episode (zero)" : "every episode's excess adds up; nothing cancels"];
      if (key === "regret" && with_.some((g) => g.value.provisional)) told.push("of unfinished runs against the best policy so far");
      const drawings = drawn ? [drawn] : [omdpd.empty(
        key === "regret" && why.length ? why.join(" ") : switches.scale === "log" && with_.length ? "Nothing here is above zero, and a logarithmic axis shows nothing else: choose symlog." : nothing(groups))];
      if (drawn && key === "regret" && why.length) drawings.push(el("p", { class: "quiet", text: `Not of everybody: ${why.join(" ")}` }));
      const rows = with_.map((g) => [g.learner, `${g.value.n_mean} of ${g.value.n_runs}`, number(g.value[key]?.mean?.at(-1)), g.value[key]?.low ? `${number(g.value[key].low.at(-1), 3)} to ${number(g.value[key].high.at(-1), 3)}` : "–", exponent(g.value[key])]);
      return omdpd.figure({ name: key, title, note: told.join("; "), drawings, head: ["learner", "runs in the mean", "at the end", "95 % band", "growth exponent (95 %)"], rows });
    });
    const how = { mean: "Mean over seeds with its 95 % interval (Student's, from three seeds on).", quantiles: "Median over seeds with the 10 % and 90 % quantiles.", seeds: "Every seed on its own." }[switches.show];
    const table = omdpd.table(
      ["learner", "runs", "violation at the end", "regret at the end", "violation grows like K to the", "regret grows like K to the"],
      groups.map((g) => [g.learner, g.value.n_runs === undefined ? "–" : `${g.value.n_finished ?? 0} of ${g.value.n_runs}`, omdpd.withHalf(g.value.end?.violation), omdpd.withHalf(g.value.end?.regret), exponent(g.value.violation), exponent(g.value.regret)]),
      [1, 2, 3, 4, 5], "final numbers and growth exponents");
    const damaged = groups.filter((g) => g.value.damaged?.length).map((g) => el("p", { class: "warn", text: `${g.learner}: ${g.value.damaged.length} of ${g.value.n_runs} runs damaged (${g.value.damaged.slice(0, 5).join(", ")}${g.value.damaged.length > 5 ? ", …" : ""}). What is shown of it is over the ${g.value.n_mean ?? 0} others that are read.` }));
    return [el("p", { class: "quiet", text: `${how} The mean is over finished runs; while none is finished, over the episodes that all runs have in common.` }), ...damaged, el("div", { class: "pair" }, made), table];
  };

  omdpd.strip = (groups, width) => {
    const seeds = Math.max(1, Math.floor(MAX_STRIP_ROWS / Math.max(groups.length, 1)));
    const rows = groups.flatMap((g) => (g.value.strip?.rows || []).slice(0, seeds).map((row) => ({ ...row, learner: g.learner, n: g.value.strip.n, K: g.value.strip.K })));
    if (!rows.length) return [omdpd.empty(nothing(groups))];
    const label = (row) => `${row.learner} · ${row.seed}`;
    const cells = rows.flatMap((row) => row.largest.map((v, i) => ({ y: label(row), x1: 1 + (i * row.K) / row.n, x2: 1 + ((i + 1) * row.K) / row.n, v })).filter((c) => c.v !== null));
    const largest = d3.max(cells, (c) => c.v) || 1;
    const w = omdpd.width(width);
    const margin = Math.min(w * 0.4, 12 + 6.6 * d3.max(rows, (r) => label(r).length));
    const drawing = omdpd.plot({
      width: w, height: 60 + Math.max(15, 22 - rows.length / 3) * rows.length, marginLeft: margin, marginRight: 16, marginBottom: 38,
      x: { label: "episode →", ticks: Math.max(3, Math.floor(w / 130)), tickFormat: omdpd.tick }, y: { label: null, domain: rows.map(label), padding: 0.12, tickSize: 0 },
      color: { type: "sqrt", domain: [0, largest], interpolate: omdpd.burst() },
      marks: [
        Plot.rect(cells.filter((c) => c.v > 0), { x1: "x1", x2: "x2", y: "y", fill: "v", inset: 0 }),
        Plot.tip(cells, Plot.pointer(omdpd.tip({ x: (c) => (c.x1 + c.x2) / 2, y: "y", title: (c) => `${c.y}\nepisodes ${number(Math.ceil(c.x1))} to ${number(Math.max(Math.ceil(c.x2) - 1, Math.ceil(c.x1)))}\nlargest violation ${number(c.v)}` }))),
      ],
      ariaLabel: "largest violation of an episode in every stretch of episodes, one line per seed",
    });
    const share = (row) => { const seen = row.largest.filter((v) => v !== null); return seen.length ? seen.filter((v) => v > 0).length / seen.length : null; };
    const late = (row) => row.largest.map((v, i) => [v, i]).filter(([v]) => v > 0).at(-1)?.[1];
    const cut = groups.some((g) => (g.value.strip?.rows.length || 0) > seeds) ? ` Shown: the first ${seeds} seeds of each learner.` : "";
    return [omdpd.figure({
      name: "bursts", title: "Violation of single episodes",
      note: `Colour: the largest violation of any episode in a stretch of ${number(Math.ceil(rows[0].K / rows[0].n))}; empty: none at all. The darkest is ${number(largest)}.${cut}`.replace("darkest", omdpd.dark() ? "brightest" : "darkest"),
      drawings: [drawing], head: ["learner", "seed", "largest violation", "stretches with a violation", "last violation near episode"],
      rows: rows.map((r) => [r.learner, String(r.seed), number(d3.max(r.largest)), share(r) === null ? "–" : `${Math.round(100 * share(r))} %`, late(r) === undefined ? "never" : number(Math.ceil(((late(r) + 1) * r.K) / r.n))]),
    })];
  };

  omdpd.plane = (groups, width) => {
    const points = groups.filter((g) => g.value.end?.regret && g.value.end?.violation).map((g) => ({ learner: g.learner, look: g.look, end: g.value.end, x: g.value.end.regret[0], dx: g.value.end.regret[1] ?? 0, y: g.value.end.violation[0], dy: g.value.end.violation[1] ?? 0, n: g.value.n_finished, all: g.value.n_runs }));
    if (!points.length) {
      const why = groups.map((g) => g.value.why).find((text) => text?.startsWith("No policy"));
      return [omdpd.empty(why || (groups.some((g) => g.value.n_runs === undefined) ? nothing(groups) : "No run is finished yet."))];
    }
    const w = omdpd.width(width, 860);
    const extent = (a, d) => d3.extent(points.flatMap((p) => [p[a] - p[d], p[a] + p[d]]));
    // The axis begins at zero only where somebody comes near it.
    const axis = (label, [low, high]) => {
      const constant = 10, domain = [low > 30 ? low * 0.6 : Math.min(low * 1.15, 0), high * 1.3];
      const ticks = omdpd.symlogTicks(domain[0], domain[1], constant).filter((t) => t >= domain[0]);
      return { type: "symlog", constant, label, grid: true, domain, ticks, tickFormat: omdpd.tick };
    };
    const least = d3.least(points, (p) => p.y);
    const height = Math.max(320, Math.min(480, w * 0.55));
    const [xs, ys] = [axis("regret →", extent("x", "dx")), axis("↑ strong violation", extent("y", "dy"))];
    ys.domain[0] = Math.max(ys.domain[0], -1);
    ys.ticks = ys.ticks.filter((t) => t >= 0);
    // Names move apart where they would cover one another: the page's only arithmetic, in pixels.
    const px = d3.scaleSymlog(xs.domain, [56, w - 20]).constant(10), py = d3.scaleSymlog(ys.domain, [height - 44, 20]).constant(10);
    const taken = [];
    for (const p of [...points].sort((a, b) => py(a.y) - py(b.y))) {
      const wide = 7.2 * p.learner.length;
      p.left = px(p.x) + wide + 16 > w;
      let y = py(p.y) - 10;
      while (taken.some((t) => Math.abs(t.y - y) < 14 && Math.abs(t.x - px(p.x)) < Math.max(wide, t.wide))) y += 14;
      taken.push({ x: px(p.x), y, wide });
      p.shift = y - py(p.y);
    }
    const stroke = (p) => p.look.colour;
    const drawing = omdpd.plot({
      width: w, height, marginLeft: 56, marginBottom: 44, marginRight: 20, x: xs, y: ys, symbol: { type: "identity" },
      marks: [
        Plot.link(points, { x1: (p) => p.x - p.dx, x2: (p) => p.x + p.dx, y1: "y", y2: "y", stroke, strokeWidth: 1.2 }),
        Plot.link(points, { x1: "x", x2: "x", y1: (p) => Math.max(p.y - p.dy, ys.domain[0]), y2: (p) => p.y + p.dy, stroke, strokeWidth: 1.2 }),
        Plot.dot(points, { x: "x", y: "y", fill: stroke, stroke, symbol: (p) => p.look.symbol, r: 6 }),
        ...points.map((p) => Plot.text([p], { x: "x", y: "y", text: "learner", fill: stroke, textAnchor: p.left ? "end" : "start", dx: p.left ? -9 : 9, dy: p.shift, fontWeight: p === least ? 700 : 400, stroke: omdpd.ground(), strokeWidth: 4 })),
        Plot.tip(points, Plot.pointer(omdpd.tip({ x: "x", y: "y", title: (p) => `${p.learner} (${p.n} runs)\nregret ${omdpd.withHalf(p.end.regret)}\nviolation ${omdpd.withHalf(p.end.violation)}` }))),
      ],
      ariaLabel: "final regret against final strong violation, one point per learner",
    });
    const rows = [...points].sort((a, b) => a.y - b.y).map((p) => ({ class: p === least ? "least" : null, cells: [p.learner, String(p.n), omdpd.withHalf(p.end.violation), omdpd.withHalf(p.end.regret)] }));
    return [el("p", {}, "Least violation: ", el("strong", { text: least.learner }), `, ${omdpd.withHalf(least.end.violation)} at a regret of ${omdpd.withHalf(least.end.regret)}, over ${least.n} of ${least.all} runs.`),
      omdpd.figure({ name: "plane", title: "Regret against violation at the end", note: "Everybody wants to be in the lower left corner; crosses are 95 % intervals of the mean.", drawings: [drawing], head: ["learner", "runs", "violation", "regret"], rows })];
  };

  // A small chart of one line per learner.
  const small = (name, title, note, lines, width, log, domain, logX) => {
    const data = lines.flatMap((l) => l.x.map((x, i) => ({ x, y: l.y[i], look: l.look, learner: l.learner, z: l.z || l.learner }))).filter((d) => d.y !== null && Number.isFinite(d.y) && (!log || d.y > 0));
    if (!data.length) return null;
    const groups = [...d3.group(data, (d) => d.z).values()];
    return omdpd.figure({
      name, title, note, head: ["learner", "first", "last", "largest"],
      rows: groups.map((g) => [g[0].z, number(g[0].y), number(g.at(-1).y), number(d3.max(g, (d) => d.y))]),
      drawings: [omdpd.plot({
        width, height: 228, marginLeft: 54, marginBottom: 38, x: { label: "episode →", ticks: 4, ...(logX ? { type: "log", tickFormat: "~s" } : { tickFormat: omdpd.tick }) },
        y: { label: null, grid: true, type: log ? "log" : "linear", ...(domain ? { domain } : {}), ...(log ? { ticks: 5, tickFormat: (d) => (Math.abs(Math.log10(d) % 1) < 1e-9 ? (d >= 0.01 && d <= 1e4 ? number(d) : `1e${Math.round(Math.log10(d))}`) : "") } : { tickFormat: omdpd.tick }) },
        marks: [
          ...groups.map((g) => Plot.line(g, { x: "x", y: "y", stroke: g[0].look.colour, strokeDasharray: g[0].look.dash, strokeWidth: 1.6 })),
          Plot.tip(data, Plot.pointer(omdpd.tip({ x: "x", y: "y", title: (d) => `${d.z}\nepisode ${number(d.x)}: ${number(d.y)}` })))],
        ariaLabel: title,
      })],
    });
  };
  const spans = (ys) => { const seen = ys.filter((y) => y > 0); return seen.length > 1 && d3.max(seen) / d3.min(seen) > 50; };
  // Small charts beside one another, as wide as their number lets them be.
  const grid = (charts, width, none) => {
    const there = charts.filter(([, , , lines]) => lines.some((l) => l.y.some((y) => y !== null && Number.isFinite(y))));
    const beside = Math.min(Math.max(there.length, 2), width > 1000 ? 3 : width > 640 ? 2 : 1);
    const w = omdpd.width(width / beside - 18, 560);
    return there.length ? el("div", { class: "thirds" }, there.map(([name, title, note, lines, log, domain, logX]) => small(name, title, note, lines, w, log, domain, logX))) : omdpd.empty(none);
  };

  omdpd.health = (groups, width) => {
    const with_ = groups.filter((g) => g.value.health);
    const line = (key) => with_.filter((g) => g.value.health[key]).map((g) => ({ x: g.value.x, y: g.value.health[key], look: g.look, learner: g.learner }));
    const kept = (key) => with_.filter((g) => g.value.kept?.[key]).map((g) => ({ x: g.value.kept.x, y: g.value.kept[key], look: g.look, learner: g.learner, seed: g.value.kept.seed }));
    const multipliers = with_.filter((g) => g.value.kept?.lam).flatMap((g) => g.value.kept.lam.map((y, i) => ({ x: g.value.kept.x, y, look: g.look, learner: g.learner, z: g.value.kept.lam.length > 1 ? `${g.learner}, constraint ${i}` : g.learner })));
    const perStep = kept("iterations").map((l) => {
      const solves = with_.find((g) => g.learner === l.learner).value.kept.solves;
      return { ...l, y: l.y.map((v, i) => { const d = solves[i] - (solves[i - 1] || 0); return d > 0 ? (v - (l.y[i - 1] || 0)) / d : null; }) };
    });
    const auto = (name, title, note, lines) => [name, title, note, lines, spans(lines.flatMap((l) => l.y))];
    const words = with_.flatMap((g) => g.value.health.warnings.map((text) => el("p", { class: "warn" }, el("strong", { text: `${g.learner}: ` }), text)));
    const head = ["learner", "solves", "failed", "iterations per solve", "largest gap", "saturated episodes", "infeasible"];
    const rows = with_.map((g) => { const h = g.value.health; return [g.learner, number(h.solves), number(h.failures), h.solves ? number(h.iterations / h.solves, 3) : "–", h.solves ? h.max_gap.toExponential(1) : "–", number(h.saturations), number(h.infeasible)]; });
    const charts = [
      auto("lambda", "λ: violation that the learner has seen", "of the first seed, at the kept episodes", multipliers),
      auto("weight", "Largest weight of a constraint", "mean over seeds", line("weight")),
      auto("step", "Step size η", "mean over seeds", line("step_size")),
      auto("iterations", "Iterations per solve", "between kept episodes", perStep),
      // Gaps below the rounding of numbers are zero to anybody.
      auto("gap", "Largest relative duality gap so far", "of the first seed", kept("max_gap").map((l) => ({ ...l, y: l.y.map((v) => (v === null ? null : Math.max(v, 1e-17))) }))),
    ];
    return [...words, grid(charts, width, "None of these learners reports weights or step sizes."),
      rows.length ? omdpd.figure({ name: "health", title: "Solver health", drawings: [omdpd.table(head, rows, [1, 2, 3, 4, 5, 6], "solver health")], head, rows }) : null];
  };

  // What a recorded column is called, and whether it is a share, comes with it (play/rows.py).
  omdpd.errors = (groups, width) => {
    const figures = [];
    const parts = groups.filter((g) => g.value.kept?.estimation);
    for (const g of parts) {
      const k = g.value.kept;
      figures.push([`errors-${g.learner}`, `${g.learner}: two parts of an episode's regret`, "optimisation: what its own belief says is still to be gained; estimation: how much that belief flatters its policy", [
        { x: k.x, y: k.optimisation, learner: "optimisation", look: omdpd.look(1) }, { x: k.x, y: k.estimation, learner: "estimation", look: omdpd.look(3) }], false, null, true]);
    }
    const recorded = new Map(groups.flatMap((g) => (g.value.recorded || []).map((r) => [r.name, r])));
    for (const [name, first] of recorded) {
      const lines = groups.flatMap((g) => (g.value.recorded || []).filter((r) => r.name === name).map((r) => ({ x: g.value.x, y: r.mean, look: g.look, learner: g.learner })));
      figures.push([`recorded-${name}`, first.title, first.note, lines, false, first.share ? [0, 1] : null]);
    }
    return [grid(figures, width, "Nothing of this was recorded: no learner here reports its belief or a certificate, and no metric was asked for.")];
  };
})();
