// A player for a lecture: how a policy and where it leads move over the episodes.  Space plays, arrows go step by step.
"use strict";
(() => {
  const { el, number } = omdpd;
  const show = JSON.parse(document.getElementById("study").textContent);
  const main = document.getElementById("page");
  const world = show.world, tracks = show.tracks;
  const now = { track: 0, frame: 0, step: 0, playing: false, speed: 4, timer: null };

  const stage = el("div", { class: "pair", id: "stage" });
  const readout = el("p", { id: "readout", role: "status" });
  const run = () => tracks[now.track].run;
  const frames = () => omdpd.unpacked(run(), world).n;

  const picture = () => {
    const wide = main.clientWidth, w = omdpd.width(wide > 860 ? wide / 2 - 30 : wide - 20, 620);
    const played = omdpd.unpacked(run(), world), here = played.at(Math.min(now.frame, played.n - 1));
    const best = tracks[now.track].best && { policy: omdpd.shares(tracks[now.track].best.policy), states: omdpd.shares(tracks[now.track].best.states) };
    const drawings = [];
    if (world.layout.length) {
      drawings.push(omdpd.map({ world, ...here, step: now.step, title: `${tracks[now.track].learner}, step ${now.step + 1}`, width: w }));
      if (best) drawings.push(omdpd.map({ world, ...best, step: now.step, title: `best safe policy, step ${now.step + 1}`, width: w }));
    } else {
      drawings.push(omdpd.heat({ cells: omdpd.byAction(world, here.policy, now.step), columns: omdpd.actionNames(world), rows: omdpd.stateNames(world), width: w, title: `policy at step ${now.step + 1}` }));
      if (best) drawings.push(omdpd.heat({ cells: omdpd.byAction(world, best.policy, now.step), columns: omdpd.actionNames(world), rows: omdpd.stateNames(world), width: w, title: `best safe policy at step ${now.step + 1}` }));
    }
    const steps = d3.range(world.H).map((h) => String(h + 1));
    drawings.push(omdpd.heat({ cells: omdpd.byStep(world, here.states), columns: steps, rows: omdpd.stateNames(world), width: w, title: "chance to be in a state", xlabel: "step →" }));
    drawings.push(curve(w, here.episode));
    stage.replaceChildren(...drawings.map((d) => el("div", { class: "holder" }, d)));
    readout.textContent = `After ${number(here.episode)} of ${number(tracks[now.track].K)} episodes`;
    main.dataset.frame = String(now.frame);
  };
  // The violation so far, with a mark where we are.
  const curve = (width, episode) => {
    const { x, violation } = tracks[now.track];
    const line = x.map((v, i) => ({ x: v, y: violation[i] }));
    const at = line.findLast((d) => d.x <= episode) || line[0];
    return omdpd.plot({
      width, height: 240, marginLeft: 50, x: { label: "episode →", tickFormat: omdpd.tick, ticks: 5 }, y: { label: "↑ cumulative strong violation", grid: true, zero: true, tickFormat: omdpd.tick },
      marks: [Plot.line(line, { x: "x", y: "y", stroke: omdpd.faint(), strokeWidth: 2 }), Plot.line(line.filter((d) => d.x <= episode), { x: "x", y: "y", stroke: omdpd.look(3).colour, strokeWidth: 2.5 }), Plot.dot([at], { x: "x", y: "y", fill: omdpd.look(3).colour, r: 5 }), Plot.text([at], { x: "x", y: "y", text: (d) => number(d.y, 3), dy: -12 })],
      ariaLabel: `cumulative violation up to episode ${number(episode)}`,
    });
  };

  const frame = el("input", { type: "range", id: "frame", min: 0, max: frames() - 1, value: 0, "aria-label": "episode" });
  const step = el("input", { type: "range", id: "step", min: 0, max: world.H - 1, value: 0 });
  const button = el("button", { type: "button", id: "play", text: "Play" });
  const go = (to) => { now.frame = Math.max(0, Math.min(frames() - 1, to)); frame.value = now.frame; frame.setAttribute("aria-valuetext", `after ${run().episodes[now.frame]} episodes`); picture(); };
  const play = (on) => {
    now.playing = on;
    button.textContent = on ? "Pause" : "Play";
    clearInterval(now.timer);
    if (!on) return;
    if (now.frame >= frames() - 1) go(0);
    now.timer = setInterval(() => { if (now.frame >= frames() - 1) play(false); else go(now.frame + 1); }, 1000 / now.speed);
  };
  frame.addEventListener("input", () => { play(false); go(Number(frame.value)); });
  step.addEventListener("input", () => { now.step = Number(step.value); picture(); });
  button.addEventListener("click", () => play(!now.playing));
  document.addEventListener("keydown", (e) => {
    if (["INPUT", "SELECT", "BUTTON"].includes(e.target.tagName)) return;
    if (e.key === " ") { e.preventDefault(); play(!now.playing); }
    if (e.key === "ArrowRight") { play(false); go(now.frame + 1); }
    if (e.key === "ArrowLeft") { play(false); go(now.frame - 1); }
  });
  const speed = el("select", { id: "speed", onchange: (e) => { now.speed = Number(e.target.value); if (now.playing) play(true); } }, [1, 2, 4, 8].map((v) => el("option", { value: v, selected: v === 4, text: `${v} pictures a second` })));
  const choice = el("select", { id: "track", onchange: (e) => { now.track = Number(e.target.value); frame.max = frames() - 1; go(Math.min(now.frame, frames() - 1)); } }, tracks.map((t, i) => el("option", { value: i, text: `${t.learner}, ${t.nature}, seed ${t.seed}` })));
  main.classList.add("player");
  main.append(
    el("header", { class: "head" }, el("h1", { text: show.title }), el("span", { class: "quiet", text: `${world.world} · space plays, arrows go step by step` })),
    el("form", { class: "switches", onsubmit: (e) => e.preventDefault() }, button, el("label", { for: "frame" }, "episode", frame), el("label", { for: "step" }, "step", step), el("label", { for: "speed" }, "speed", speed), el("label", { for: "track" }, "learner", choice)),
    el("section", { class: "card" }, readout, stage));
  go(0);
  window.addEventListener("resize", picture);
  main.dataset.ready = "yes";
})();
