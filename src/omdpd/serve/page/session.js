"use strict";
// The page of a server's sessions: status again and again, drawn with nothing but SVG.  Text is only ever text.
const EVERY = 2000, WIDTH = 560, HEIGHT = 150, LEFT = 54;
const SVG = "http://www.w3.org/2000/svg";
const query = window.location.search;
const main = document.getElementById("page");

function made(tag, attributes = {}, ...children) {
  const svg = ["svg", "path", "line", "text"].includes(tag);
  const node = svg ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const short = (x) => (x === null || x === undefined ? "-" : Number(x.toPrecision(4)).toString());
const mean = (total, n) => (n ? short(total / n) : "-");

function line(values, low, high, style) {
  const x = (k) => LEFT + ((WIDTH - LEFT - 6) * k) / Math.max(values.length - 1, 1);
  const y = (v) => HEIGHT - 18 - ((HEIGHT - 28) * (v - low)) / (high - low || 1);
  const path = values.map((v, k) => `${k ? "L" : "M"}${x(k).toFixed(1)},${y(v).toFixed(1)}`).join("");
  return made("path", { d: path, fill: "none", ...style });
}

function chart(title, values, budget) {
  const all = [...values, ...(budget || []), 0];
  const [low, high] = [Math.min(...all), Math.max(...all)];
  const words = `${title}: last ${values.length} episodes, newest ${short(values.at(-1))}`;
  const drawn = made("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, width: "100%", role: "img", "aria-label": words });
  for (const [value, y] of [[high, 14], [low, HEIGHT - 16]]) {
    drawn.append(made("text", { x: LEFT - 6, y, "text-anchor": "end", "font-size": 11, fill: "currentColor" }, short(value)));
  }
  if (budget) drawn.append(line(budget, low, high, { stroke: "#e69f00", "stroke-width": 2, "stroke-dasharray": "6 4" }));
  drawn.append(line(values, low, high, { stroke: "currentColor", "stroke-width": 1.3 }));
  const note = budget ? " (dashed: the budget in force)" : "";
  return made("figure", {}, made("figcaption", {}, title, made("span", { class: "quiet" }, note)), drawn);
}

function fact(name, value) {
  return made("div", {}, made("dt", {}, name), made("dd", {}, String(value)));
}

function table(belief) {
  const head = ["", "expected", "from", "to", "budget"];
  const rows = belief.amounts.map((a) => [a.name, ...[a.expected, a.low, a.high, a.budget].map(short)]);
  const cells = (row, tag) => made("tr", {}, ...row.map((text, i) => made(tag, i ? { class: "number" } : {}, text)));
  return made("table", {}, made("thead", {}, cells(head, "th")), made("tbody", {}, ...rows.map((row) => cells(row, "td"))));
}

// Docs have the same sentences.
const DOUBTS = [
  "The world has changed since the episodes that the forecast is made of; an alarm rings late, and for small changes never.",
  "Episodes begin in other states than those did.",
  "States, costs or rewards go beyond what the setting declares: they are refused, and nothing is learnt from them.",
  "Many steps of the policy are on pairs of state and action that were tried a few times or never.",
  "The budget has just changed: the plan for it is made of episodes that were played for another.",
  "Expected means on average over many episodes: a single one varies much more than its interval says.",
];

function policyTable(rows) {
  const cells = (row, tag) => made("tr", {}, ...row.map((text, i) => made(tag, i ? { class: "number" } : {}, text)));
  const head = ["state", ...rows[0].map((_, a) => `action ${a}`)];
  const body = rows.map((row, s) => cells([String(s), ...row.map((x) => `${Math.round(100 * x)} %`)], "td"));
  return made("details", {}, made("summary", {}, "The policy in force: chances of actions in the first step (GET /policy has all)"),
    made("table", {}, made("thead", {}, cells(head, "th")), made("tbody", {}, ...body)));
}

function card(name, s) {
  const recent = s.recent, charts = made("div", { class: "pair" });
  if (recent.length) {
    charts.append(chart("reward of an episode", recent.map((e) => e.reward)));
    s.budget.forEach((_, i) => {
      charts.append(chart(`${s.names[i]} of an episode`, recent.map((e) => e.costs[i]), recent.map((e) => e.budget[i])));
    });
  }
  const warnings = s.alarms.filter((a) => a.rings).map((a) => `Alarm. ${a.words}.`);
  if (s.belief.warning) warnings.push(s.belief.warning);
  if (s.unsure) warnings.push(`The last update failed: ${s.unsure}`);
  const facts = made("dl", { class: "facts" },
    fact("episodes", s.ended), fact("open", s.open), fact("dropped", s.dropped), fact("cut", s.cut),
    fact("to be learnt from", s.waiting), fact("mean reward", mean(s.reward, s.ended)),
    ...s.spent.map((x, i) => fact(`mean ${s.names[i]} (budget)`, `${mean(x, s.ended)} (${mean(s.allowed[i], s.ended)})`)),
    fact("violation in all", short(s.violation)), ...(s.weight === null ? [] : [fact("penalty weight", short(s.weight))]),
    ...(s.loss === null ? [] : [fact("can lose at most", short(s.loss))]));
  const quiet = s.alarms.filter((a) => !a.rings).map((a) => made("li", {}, a.words));
  return made("section", { class: "card" }, made("h2", {}, `${name}: ${s.learner}`),
    made("p", {}, `It plays ${s.plays}.`),
    ...warnings.map((text) => made("p", { class: "warn", role: "alert" }, text)), facts, charts,
    made("h3", {}, "What is believed of the policy in force"), made("p", {}, s.belief.words),
    ...(s.belief.amounts.length ? [table(s.belief)] : []),
    ...s.belief.notes.map((text) => made("p", { class: "quiet" }, text)),
    ...(s.first_step.length ? [policyTable(s.first_step)] : []),
    made("details", {}, made("summary", {}, "When not to believe it"), made("ul", {}, ...DOUBTS.map((text) => made("li", {}, text)))),
    ...(s.shadow ? [made("h3", {}, "What the shadow would earn and cost"), made("p", {}, s.shadow.words)] : []),
    ...(s.shadow?.amounts.length ? [table(s.shadow)] : []),
    made("h3", {}, "Alarms that are quiet"), made("ul", { class: "quiet" }, ...quiet));
}

async function asked(path) {
  const answer = await fetch(path + query);
  if (!answer.ok) throw new Error((await answer.json()).error);
  return answer.json();
}

async function show() {
  const told = made("p", { class: "quiet" });
  try {
    const own = /^\/sessions\/([^/]+)/.exec(window.location.pathname);
    const names = own ? [decodeURIComponent(own[1])] : await asked("/sessions");
    const cards = [];
    for (const name of names) cards.push(card(name, await asked(`/sessions/${encodeURIComponent(name)}/status`)));
    told.textContent = `As of ${new Date().toLocaleTimeString()}; in your units; intervals hold with 95 % at each end.`;
    const open = [...main.querySelectorAll("details")].map((each) => each.open);
    main.replaceChildren(made("h1", {}, document.title), told, ...cards);
    main.querySelectorAll("details").forEach((each, i) => { each.open = Boolean(open[i]); });
  } catch (error) {
    const note = made("p", { class: "warn", role: "alert", id: "fault" }, `The server does not answer: ${error.message}`);
    document.getElementById("fault")?.remove();
    main.prepend(note);
  }
  window.setTimeout(show, EVERY);
}

show();
