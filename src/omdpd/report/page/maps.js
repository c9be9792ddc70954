// Policies and occupancies: heat maps of states by actions, and maps of cells where the world has one.
"use strict";
(() => {
  const { number } = omdpd;
  const NS = "http://www.w3.org/2000/svg";
  const ARROWS = { left: [-1, 0], right: [1, 0], up: [0, -1], down: [0, 1] };
  const MARKS = { S: "#8fb8de", O: "#e69f00", H: "#33508c", G: "#009e73", "#": "#5a5a5a" };

  omdpd.stateName = (world, s) => world.states[s] ?? `state ${s}`;
  omdpd.actionName = (world, a) => world.actions[a] ?? `action ${a}`;
  // Entry (h, s, a) of a flat table.
  omdpd.at = (world, h, s, a) => (h * world.S + s) * world.A + a;

  const svg = (tag, given, ...children) => {
    const node = document.createElementNS(NS, tag);
    for (const [key, value] of Object.entries(given)) node.setAttribute(key, value);
    node.append(...children);
    return node;
  };
  const said = (text) => { const title = svg("title", {}); title.textContent = text; return title; };

  // A map of cells: shade for the chance to be there, arrows as long as the probability of a move.
  omdpd.map = ({ world, policy, states, step, title, width, largest = 1 }) => {
    const rows = world.layout.length, columns = world.layout[0].length;
    const cell = Math.min(Math.floor((width - 8) / columns), 64), top = 24;
    const shade = omdpd.sequential();
    const drawing = svg("svg", { class: "omdpd-map", width: columns * cell + 8, height: rows * cell + top + 6, viewBox: `0 0 ${columns * cell + 8} ${rows * cell + top + 6}`, role: "img", "aria-label": title, "font-family": "system-ui, sans-serif" });
    const heading = svg("text", { x: 4, y: 15, "font-size": 12, fill: omdpd.ink() });
    heading.textContent = title;
    drawing.append(heading);
    const arrow = omdpd.dark() ? "#ff9a5c" : "#b3330f";
    for (let s = 0; s < rows * columns; s += 1) {
      const x = 4 + (s % columns) * cell, y = top + Math.floor(s / columns) * cell, mark = world.layout[Math.floor(s / columns)][s % columns];
      const mass = states ? states[step * world.S + s] : 0;
      const likely = world.actions.map((name, a) => `${name} ${Math.round(100 * policy[omdpd.at(world, step, s, a)])} %`).join(", ");
      const box = svg("g", {}, said(`${omdpd.stateName(world, s)}: chance to be here ${number(mass, 3)}; ${likely}`));
      const fill = mark === "#" ? MARKS["#"] : mass > 0.0005 ? shade(Math.sqrt(mass / largest)) : omdpd.ground();
      box.append(svg("rect", { x, y, width: cell - 1, height: cell - 1, fill, stroke: MARKS[mark] || omdpd.faint(), "stroke-width": MARKS[mark] ? 2.5 : 1 }));
      if (mark !== "F" && mark !== ".") {
        const text = svg("text", { x: x + 4, y: y + 13, "font-size": 11, fill: d3.lab(fill).l > 55 ? "#4a505a" : "#f4f5f7" });
        text.textContent = mark;
        box.append(text);
      }
      if (!"HG#".includes(mark)) world.actions.forEach((name, a) => {
        const p = policy[omdpd.at(world, step, s, a)], [dx, dy] = ARROWS[name] || [0, 0];
        // What is done where one never comes is arbitrary: shown faintly, and only where it is decided.
        if (p < (mass > 0.0005 ? 0.05 : 0.5) || (!dx && !dy)) return;
        const [cx, cy, length] = [x + cell / 2, y + cell / 2, 0.42 * cell * p];
        box.append(svg("line", { x1: cx, y1: cy, x2: cx + dx * length, y2: cy + dy * length, stroke: omdpd.ground(), "stroke-width": 5, "stroke-opacity": mass > 0.0005 ? 0.75 : 0, "stroke-linecap": "round" }));
        box.append(svg("line", { x1: cx, y1: cy, x2: cx + dx * length, y2: cy + dy * length, stroke: arrow, "stroke-width": 2.2, "stroke-opacity": mass > 0.0005 ? 1 : 0.35, "stroke-linecap": "round" }));
        box.append(svg("circle", { cx: cx + dx * length, cy: cy + dy * length, r: 2.6, fill: arrow, "fill-opacity": mass > 0.0005 ? 1 : 0.35 }));
      });
      drawing.append(box);
    }
    return drawing;
  };

  // A heat map of values by (column, row); `diverging` for differences in [-1, 1].
  omdpd.heat = ({ cells, columns, rows, title, width, diverging, largest = 1, xlabel, unit = "" }) => {
    const margin = Math.min(width * 0.35, 14 + 6.6 * d3.max(rows, (r) => r.length));
    const wordy = d3.max(columns, (c) => c.length) * 7 > (width - margin) / columns.length;
    const rowHeight = Math.max(9, Math.min(30, 420 / rows.length));
    const color = diverging
      ? { type: "diverging", domain: [-1, 1], pivot: 0, interpolate: omdpd.dark() ? (t) => d3.interpolateRgbBasis(["#4aa3df", "#24282d", "#ff8f4a"])(t) : d3.interpolatePuOr }
      : { type: "sqrt", domain: [0, largest], interpolate: omdpd.sequential() };
    const shown = rows.length <= 14 && columns.length <= 8 && width / columns.length > 44;
    const strong = (c) => { const rgb = d3.lab(diverging ? (omdpd.dark() ? d3.interpolateRgbBasis(["#4aa3df", "#24282d", "#ff8f4a"])((c.v + 1) / 2) : d3.interpolatePuOr((c.v + 1) / 2)) : omdpd.sequential()(Math.sqrt(Math.max(c.v, 0) / largest))); return rgb.l > 58 ? "#101214" : "#ffffff"; };
    return omdpd.plot({
      width, height: (wordy ? 90 : 56) + rowHeight * rows.length, marginLeft: margin, marginBottom: wordy ? 66 : 34, marginTop: 26, marginRight: 6, color,
      x: { domain: columns, label: xlabel || null, tickSize: 0, tickRotate: wordy ? -50 : 0, ...(columns.length > 24 ? { ticks: columns.filter((_, i) => i % Math.ceil(columns.length / 12) === 0) } : {}) },
      y: { domain: rows, label: null, tickSize: 0, ...(rows.length > 60 ? { ticks: rows.filter((_, i) => i % Math.ceil(rows.length / 24) === 0) } : {}) },
      marks: [
        Plot.text([title], { frameAnchor: "top-left", dy: -20, text: (d) => d, fontWeight: 600, textAnchor: "start" }),
        Plot.cell(cells, { x: "x", y: "y", fill: "v", inset: rows.length > 40 ? 0 : 0.5 }),
        ...(shown ? [Plot.text(cells.filter((c) => Math.abs(c.v) >= 0.005), { x: "x", y: "y", text: (c) => (largest > 1 ? number(c.v, 3) : c.v.toFixed(2).replace("-", "−")), fill: strong, fontSize: 10 })] : []),
        Plot.tip(cells, Plot.pointer(omdpd.tip({ x: "x", y: "y", title: (c) => `${c.y}, ${c.x}\n${number(c.v, 3)}${unit}` })))],
      ariaLabel: title,
    });
  };

  // Cells of states by actions at a step, from a flat (H, S, A) table.
  omdpd.byAction = (world, table, step) => {
    const cells = [];
    for (let s = 0; s < world.S; s += 1) for (let a = 0; a < world.A; a += 1) cells.push({ x: omdpd.actionName(world, a), y: omdpd.stateName(world, s), v: table[omdpd.at(world, step, s, a)], s, a });
    return cells;
  };
  // Cells of states by steps, from a flat (H, S) table.
  omdpd.byStep = (world, table) => {
    const cells = [];
    for (let h = 0; h < world.H; h += 1) for (let s = 0; s < world.S; s += 1) cells.push({ x: String(h + 1), y: omdpd.stateName(world, s), v: table[h * world.S + s], s, h });
    return cells;
  };
  omdpd.stateNames = (world) => d3.range(world.S).map((s) => omdpd.stateName(world, s));
  omdpd.actionNames = (world) => d3.range(world.A).map((a) => omdpd.actionName(world, a));

  // What a run played at one of its kept episodes; the average of all episodes where it kept none.
  omdpd.unpacked = (run, world) => {
    if (run.ready) return run.ready;
    const n = run.episodes.length, size = world.H * world.S;
    const policies = n ? omdpd.shares(run.policies) : omdpd.shares(run.average_policy);
    const states = n ? omdpd.shares(run.states) : omdpd.shares(run.average);
    const at = (i) => ({ policy: policies.subarray(i * size * world.A, (i + 1) * size * world.A), states: states.subarray(i * size, (i + 1) * size), episode: n ? run.episodes[i] : null });
    run.ready = { n: Math.max(n, 1), at, average: omdpd.shares(run.average) };
    return run.ready;
  };
})();
