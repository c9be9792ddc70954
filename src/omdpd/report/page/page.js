// The page: its sections, its switches, and the live connection.
"use strict";
(() => {
  const { el } = omdpd;
  const study = {};
  const switches = { place: 0, show: "mean", scale: "symlog", divided: false, root: true, weak: false, hidden: new Set(), learner: null, seed: null, step: 0, snapshot: Infinity, difference: false, baseline: null, metric: "violation" };
  const SECTIONS = [
    ["glance", "Is it safe, what does it earn, since when?", ["group", "problems", "progress"]],
    ["asked", "What was asked", ["problems", "head"]], ["progress", "Progress of the runs", ["progress", "head"]], ["curves", "Regret and violation", ["group"]],
    ["bursts", "Bursts of violation", ["group"]], ["plane", "Who violates least, and at what regret", ["group"]], ["health", "Weights, step sizes and solver health", ["group"]],
    ["errors", "Estimation against optimisation", ["group"]], ["policy", "Policy", ["policies", "place", "problems"]], ["occupancy", "Occupancy", ["policies", "place", "problems"]],
    ["visits", "Visits and confidence widths", ["policies", "problems"]], ["comparison", "Comparison", ["comparison"]], ["reproduce", "Reproduce it", ["head"]],
  ];
  const bodies = {};
  const main = document.getElementById("page");

  const place = () => study.head.places[switches.place];
  const groups = () => study.head.groups.map((g, i) => ({ ...g, i, value: study[`group-${i}`] || {}, look: omdpd.look(study.head.learners.indexOf(g.learner)) })).filter((g) => g.place === switches.place && !switches.hidden.has(g.learner));
  const world = () => study.problems.worlds.find((w) => w.world === place()?.world);
  const here = () => study.head.groups.map((g, i) => ({ ...g, i })).filter((g) => g.place === switches.place);
  const chosenGroup = () => here().find((g) => g.learner === switches.learner) || here().find((g) => study[`policies-${g.i}`]?.runs.length) || here()[0];
  const chosenRun = () => { const g = chosenGroup(), runs = (g && study[`policies-${g.i}`]?.runs) || []; return runs.find((r) => r.seed === switches.seed) || runs[0]; };
  const best = () => { const run = chosenRun(); return run ? study[`place-${switches.place}`]?.best[String(run.seed)] : null; };

  const draw = {
    glance: () => omdpd.glance(study),
    asked: () => omdpd.asked(study, place()),
    progress: () => omdpd.progress(study),
    curves: (w) => omdpd.curves(groups(), switches, w),
    bursts: (w) => omdpd.strip(groups(), w),
    plane: (w) => omdpd.plane(groups(), w),
    health: (w) => omdpd.health(groups(), w),
    errors: (w) => omdpd.errors(groups(), w),
    policy: (w) => [policySwitches(), ...omdpd.policy(world(), chosenRun(), best(), switches, w)],
    occupancy: (w) => omdpd.occupancy(world(), chosenRun(), best(), switches, w),
    visits: (w) => omdpd.visits(world(), chosenRun(), switches, w),
    comparison: () => [comparisonSwitches(), ...omdpd.comparison(study, place(), switches.baseline ?? here()[0]?.learner, switches.metric)],
    reproduce: () => omdpd.reproduce(study),
  };

  // Draw a section anew, keeping what was opened in it, and say so to whoever asks the document.
  const show = (name) => {
    const body = bodies[name];
    const open = [...body.querySelectorAll("details")].map((d) => d.open);
    const focused = body.contains(document.activeElement) ? document.activeElement.id : null;
    const scroll = body.querySelector(".scroll")?.scrollTop;
    try {
      body.replaceChildren(...draw[name](body.clientWidth || main.clientWidth).filter(Boolean));
    } catch (error) {
      body.replaceChildren(omdpd.empty(`This section could not be drawn: ${error.message}`));
      console.error(error);
    }
    body.querySelectorAll("details").forEach((d, i) => { if (open[i]) d.open = true; });
    if (scroll && body.querySelector(".scroll")) body.querySelector(".scroll").scrollTop = scroll;
    if (focused) document.getElementById(focused)?.focus();
    body.dataset.drawn = String(Number(body.dataset.drawn || 0) + 1);
  };
  // The first sections at once, the others one after another, so that something is seen early.
  let queue = [], ticking = false;
  const tick = () => {
    const name = queue.shift();
    if (name) show(name);
    ticking = queue.length > 0;
    if (ticking) setTimeout(tick);
    else main.dataset.ready = "yes";
  };
  const redraw = (names) => {
    for (const name of names) if (!queue.includes(name)) queue.push(name);
    main.dataset.ready = "no";
    if (!ticking) { ticking = true; setTimeout(tick); }
  };
  const all = () => SECTIONS.map(([name]) => name);
  const curvy = ["curves", "bursts", "plane", "health", "errors"];

  const radios = (legend, key, options, names) => el("fieldset", {}, el("legend", { text: legend }), Object.entries(options).map(([value, text]) =>
    el("label", {}, el("input", { type: "radio", name: key, value, checked: switches[key] === value, onchange: () => { switches[key] = value; redraw(names); } }), text)));
  const check = (key, text, names) => el("label", {}, el("input", { type: "checkbox", name: key, id: `switch-${key}`, checked: switches[key], onchange: (e) => { switches[key] = e.target.checked; redraw(names); } }), text);
  const select = (key, label, options, chosen, act) => el("label", { for: `select-${key}` }, label, el("select", { id: `select-${key}`, onchange: (e) => act(e.target.value) }, options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen), text }))));

  const swatch = (look) => {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    for (const [k, v] of [["width", 26], ["height", 10], ["class", "swatch"], ["aria-hidden", "true"]]) svg.setAttribute(k, v);
    const line = document.createElementNS(svg.namespaceURI, "line");
    for (const [k, v] of [["x1", 0], ["x2", 26], ["y1", 5], ["y2", 5], ["stroke", look.colour], ["stroke-width", 2.4], ["stroke-dasharray", look.dash]]) line.setAttribute(k, v);
    const dot = document.createElementNS(svg.namespaceURI, "path");
    dot.setAttribute("d", d3.symbol({ circle: d3.symbolCircle, square: d3.symbolSquare, triangle: d3.symbolTriangle, triangle2: d3.symbolTriangle2, diamond: d3.symbolDiamond, times: d3.symbolTimes, plus: d3.symbolPlus, star: d3.symbolStar }[look.symbol], 38)());
    for (const [k, v] of [["transform", "translate(13 5)"], ["fill", look.colour], ["stroke", look.colour]]) dot.setAttribute(k, v);
    svg.append(line, dot);
    return svg;
  };

  const panel = () => {
    const learners = study.head.learners.map((name, i) => el("label", {}, el("input", { type: "checkbox", name: "learner", value: name, checked: !switches.hidden.has(name), onchange: (e) => { switches.hidden[e.target.checked ? "delete" : "add"](name); redraw(curvy); } }), swatch(omdpd.look(i)), name));
    const places = study.head.places.map((p, i) => [i, p.label]);
    return el("form", { class: "switches", "aria-label": "What the figures show", onsubmit: (e) => e.preventDefault() },
      places.length > 1 ? select("place", "costs picked by", places, switches.place, (v) => { switches.place = Number(v); switches.learner = switches.seed = null; switches.snapshot = Infinity; redraw(all()); }) : null,
      radios("show", "show", { mean: "mean and band", quantiles: "quantiles", seeds: "single seeds" }, ["curves"]),
      radios("axis", "scale", { linear: "linear", symlog: "symlog", log: "log-log" }, ["curves"]),
      el("fieldset", {}, check("divided", "divide by √K", ["curves"]), check("root", "√K line", ["curves"]), check("weak", "weak violation (dashed)", ["curves"])),
      el("fieldset", { class: "learners" }, el("legend", { class: "skip", text: "learners" }), learners),
      select("theme", "theme", [["", "as the system"], ["light", "light"], ["dark", "dark"]], document.documentElement.dataset.theme || "", (v) => { if (v) document.documentElement.dataset.theme = v; else delete document.documentElement.dataset.theme; build(); }));
  };

  const slider = (key, label, max, value, said, names) => {
    const out = el("output", { for: `slider-${key}`, text: said(value) });
    const input = el("input", { type: "range", id: `slider-${key}`, min: 0, max, step: 1, value, "aria-valuetext": said(value) });
    // The slider itself stays while it is moved: only what it changes is drawn anew.
    input.addEventListener("input", () => { switches[key] = Number(input.value); out.textContent = said(switches[key]); input.setAttribute("aria-valuetext", said(switches[key])); moved(names); });
    return el("label", { for: `slider-${key}` }, label, input, out);
  };
  const moved = (names) => {
    const body = bodies.policy, w = body.clientWidth;
    const fresh = omdpd.policy(world(), chosenRun(), best(), switches, w);
    while (body.children.length > 1) body.lastChild.remove();
    body.append(...fresh.filter(Boolean));
    body.dataset.drawn = String(Number(body.dataset.drawn || 0) + 1);
    redraw(names);
  };
  const policySwitches = () => {
    const run = chosenRun(), w = world(), g = chosenGroup();
    if (!run || !w?.S) return el("div", { class: "sliders" }, select("learner", "learner", here().map((x) => [x.learner, x.learner]), g?.learner, (v) => { switches.learner = v; switches.seed = null; redraw(["policy", "occupancy", "visits"]); }));
    const n = omdpd.unpacked(run, w).n, last = Math.min(switches.snapshot, n - 1);
    const seeds = study[`policies-${g.i}`].runs.map((r) => [r.seed, String(r.seed)]);
    return el("div", { class: "sliders" },
      select("learner", "learner", here().map((x) => [x.learner, x.learner]), g.learner, (v) => { switches.learner = v; switches.seed = null; switches.snapshot = Infinity; redraw(["policy", "occupancy", "visits"]); }),
      select("seed", "seed", seeds, run.seed, (v) => { switches.seed = Number(v); redraw(["policy", "occupancy", "visits"]); }),
      w.H > 1 ? slider("step", "step", w.H - 1, Math.min(switches.step, w.H - 1), (v) => `${v + 1} of ${w.H}`, ["visits"]) : null,
      n > 1 ? slider("snapshot", "episode", n - 1, last, (v) => omdpd.number(run.episodes[v]), ["occupancy"]) : null,
      best() ? check("difference", "difference to the best policy", ["policy"]) : null);
  };
  const comparisonSwitches = () => el("div", { class: "sliders" },
    select("metric", "compare", [["violation", "violation"], ["regret", "regret"]], switches.metric, (v) => { switches.metric = v; redraw(["comparison"]); }),
    select("baseline", "with", here().map((g) => [g.learner, g.learner]), switches.baseline ?? here()[0]?.learner, (v) => { switches.baseline = v; redraw(["comparison"]); }));

  const build = () => {
    document.title = `${study.head.title}: omdpd`;
    const n = study.progress.runs.length;
    const cards = SECTIONS.map(([name, title]) => {
      bodies[name] = el("div", { class: "body" });
      return el("section", { class: "card", id: name, "aria-labelledby": `title-${name}` }, el("h2", { id: `title-${name}`, text: title }), bodies[name]);
    });
    main.replaceChildren(
      el("a", { class: "skip", href: "#curves", text: "Skip to the figures" }),
      el("header", { class: "head" }, el("h1", { text: study.head.title }),
        el("span", { class: "quiet", id: "live", role: "status", text: study.head.live ? "connecting" : `${n} runs, a report that makes no request` })),
      el("nav", { "aria-label": "Sections" }, el("ul", {}, SECTIONS.map(([name, title]) => el("li", {}, el("a", { href: `#${name}`, text: title }))))),
      ...cards.slice(0, 3), panel(), ...cards.slice(3));
    switches.place = Math.min(switches.place, Math.max(study.head.places.length - 1, 0));
    all().slice(0, 4).forEach(show);
    redraw(all().slice(4));
  };
  const complete = () => ["head", "problems", "progress", "comparison"].every((name) => study[name]);
  // What the switches are made of: when it changes, the page is built anew.
  const skeleton = () => JSON.stringify([study.head.learners, study.head.places, study.head.groups]);

  const connect = () => {
    let before = null;
    const source = new EventSource(`events${location.search}`);
    const said = (text) => { const node = document.getElementById("live"); if (node) node.textContent = text; };
    source.addEventListener("parts", (event) => {
      const parts = JSON.parse(event.data);
      Object.assign(study, parts);
      if (!complete()) return;
      if (skeleton() !== before) {
        before = skeleton();
        // Numbers of groups mean others now: what was sent before under them is forgotten.
        for (const name of Object.keys(study)) if (/-\d+$/.test(name) && !(name in parts)) delete study[name];
        build();
      }
      else {
        const kinds = new Set(Object.keys(parts).map((name) => name.replace(/-\d+$/, "")));
        redraw(SECTIONS.filter(([, , needs]) => needs.some((k) => kinds.has(k) && k !== "head")).map(([name]) => name));
      }
      said(`live · ${new Date().toLocaleTimeString()}`);
    });
    source.addEventListener("fault", (event) => said(`live · the folder could not be read: ${JSON.parse(event.data)}`));
    source.onerror = () => said("not connected; trying again");
  };

  let wide = window.innerWidth;
  window.addEventListener("resize", () => { if (Math.abs(window.innerWidth - wide) > 40 && complete()) { wide = window.innerWidth; redraw(all()); } });
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (complete()) build(); });
  const stored = document.getElementById("study");
  if (stored) { Object.assign(study, JSON.parse(stored.textContent)); build(); }
  else { main.append(el("p", { class: "empty", text: "Connecting to the study…" })); connect(); }
})();
