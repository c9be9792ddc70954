// Elements, colours, numbers, and the frame of a figure with its exports.  Text from data only ever becomes text.
"use strict";
const omdpd = {};

(() => {
  const LIGHT = ["#000000", "#0072B2", "#009E73", "#D55E00", "#B3578C", "#7a7a7a", "#B07A00", "#3A9BDC"];
  const DARK = ["#f2f2f2", "#58aef0", "#2fc498", "#ff8f4a", "#e6a1cb", "#a9afb8", "#f0b93a", "#9ad5ff"];
  const DASHES = ["", "", "", "6 3", "6 3", "2 3", "8 3 2 3", "8 3 2 3"];
  const SYMBOLS = ["circle", "square", "triangle", "triangle2", "diamond", "times", "plus", "star"];

  // An element with properties, attributes and children; strings become text nodes.
  omdpd.el = (tag, given = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(given)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (key === "class") node.className = value;
      else if (key === "text") node.textContent = value;
      else node.setAttribute(key, value === true ? "" : String(value));
    }
    for (const child of children.flat()) if (child !== null && child !== undefined) node.append(child);
    return node;
  };
  const el = omdpd.el;

  omdpd.dark = () => {
    const chosen = document.documentElement.dataset.theme;
    return chosen ? chosen === "dark" : window.matchMedia("(prefers-color-scheme: dark)").matches;
  };
  // Colours are given to drawings as they are, so that an exported picture needs no style sheet.
  omdpd.ink = () => (omdpd.dark() ? "#e9ebee" : "#1c1e21");
  omdpd.soft = () => (omdpd.dark() ? "#a3abb6" : "#5c6370");
  omdpd.ground = () => (omdpd.dark() ? "#1c2024" : "#ffffff");
  omdpd.faint = () => (omdpd.dark() ? "#363c44" : "#e4e6ea");
  omdpd.look = (i) => ({
    colour: (omdpd.dark() ? DARK : LIGHT)[i % 8],
    dash: i < 8 ? DASHES[i] : ["3 2", "10 4", "1 3"][(i >> 3) % 3],
    symbol: SYMBOLS[(i + (i >> 3)) % 8],
  });
  omdpd.sequential = () => (omdpd.dark() ? (t) => d3.interpolateViridis(0.08 + 0.92 * t) : (t) => d3.interpolateYlGnBu(t));
  omdpd.burst = () => (omdpd.dark() ? (t) => d3.interpolateInferno(0.25 + 0.75 * t) : (t) => d3.interpolateYlOrRd(0.12 + 0.88 * t));

  // A number for a person: four significant digits, a true minus sign, nothing where there is none.
  omdpd.number = (x, digits = 4) => {
    if (x === null || x === undefined || Number.isNaN(x)) return "–";
    const size = Math.abs(x);
    if (size !== 0 && (size < 1e-4 || size >= 1e7)) return x.toExponential(2).replace("-", "−");
    const text = size >= 1000 ? Math.round(x).toLocaleString("en") : String(Number(x.toPrecision(digits)));
    return text.replace("-", "−");
  };
  omdpd.tick = (x) => omdpd.number(x);
  omdpd.withHalf = (pair) => {
    if (!pair) return "–";
    return pair[1] === null ? `${omdpd.number(pair[0], 3)} (no interval)` : `${omdpd.number(pair[0], 3)} ± ${omdpd.number(pair[1], 2)}`;
  };
  omdpd.seconds = (s) => {
    if (s === null || s === undefined) return "–";
    if (s < 90) return `${Math.round(s)} s`;
    return s < 5400 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
  };
  omdpd.shares = (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    return Float64Array.from(new Uint16Array(bytes.buffer), (x) => x / 65535);
  };

  // A table from a head and rows of strings or {text, raw}; `numeric` are the columns to the right.
  omdpd.table = (head, rows, numeric = [], caption = null) => {
    const side = (i) => (numeric.includes(i) ? "number" : null);
    const body = rows.map((row) =>
      el("tr", { class: row.class || null }, (row.cells || row).map((cell, i) =>
        el("td", { class: side(i) }, cell instanceof Node ? cell : String(cell ?? "–")))));
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption || "table" },
      el("table", {}, caption ? el("caption", { class: "skip", text: caption }) : null,
        el("thead", {}, el("tr", {}, head.map((name, i) => el("th", { scope: "col", class: side(i), text: name })))),
        el("tbody", {}, body)));
  };
  const plain = (cell) => (cell instanceof Node ? cell.textContent : String(cell ?? ""));
  const cells = (rows) => rows.map((row) => (row.cells || row).map(plain));
  omdpd.csv = (head, rows) =>
    [head, ...cells(rows)].map((line) => line.map((c) => (/[",\n]/.test(c) ? `"${c.replaceAll('"', '""')}"` : c)).join(",")).join("\n") + "\n";
  const LATEX = { "\\": "\\textbackslash{}", "±": "$\\pm$", "−": "$-$", "–": "--", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "√": "$\\sqrt{}$", "λ": "$\\lambda$", "η": "$\\eta$" };
  const latexText = (text) => Array.from(text, (c) => LATEX[c] ?? ("_%&#${}".includes(c) ? "\\" + c : c)).join("");
  omdpd.latex = (head, rows) => {
    const line = (row) => row.map(latexText).join(" & ") + " \\\\";
    return `\\begin{tabular}{l${"r".repeat(head.length - 1)}}\n\\hline\n${line(head)}\n\\hline\n${cells(rows).map(line).join("\n")}\n\\hline\n\\end{tabular}\n`;
  };

  omdpd.save = (name, content, type) => {
    const address = URL.createObjectURL(new Blob([content], { type }));
    el("a", { href: address, download: name.replaceAll(/[^\w.-]+/g, "_") }).click();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  };
  // All drawings of a figure side by side as one SVG that stands alone.
  const standalone = (holder) => {
    const drawings = [...holder.querySelectorAll("svg.omdpd-plot, svg.omdpd-map")];
    const sizes = drawings.map((svg) => [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))]);
    const whole = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const [width, height] = [d3.sum(sizes, (s) => s[0]), d3.max(sizes, (s) => s[1]) || 1];
    for (const [key, value] of [["xmlns", "http://www.w3.org/2000/svg"], ["width", width], ["height", height], ["viewBox", `0 0 ${width} ${height}`], ["font-family", "system-ui, sans-serif"], ["font-size", "12"], ["color", omdpd.ink()]]) whole.setAttribute(key, value);
    const ground = document.createElementNS(whole.namespaceURI, "rect");
    for (const [key, value] of [["width", width], ["height", height], ["fill", omdpd.ground()]]) ground.setAttribute(key, value);
    whole.append(ground);
    let left = 0;
    drawings.forEach((svg, i) => {
      const copy = svg.cloneNode(true);
      copy.setAttribute("x", left);
      copy.setAttribute("fill", copy.getAttribute("fill") || "currentColor");
      left += sizes[i][0];
      whole.append(copy);
    });
    return { text: new XMLSerializer().serializeToString(whole), width, height };
  };
  const savePicture = (holder, name, kind) => {
    const { text, width, height } = standalone(holder);
    if (kind === "svg") return omdpd.save(`${name}.svg`, text, "image/svg+xml");
    const image = new Image();
    image.onload = () => {
      const canvas = el("canvas", { width: 2 * width, height: 2 * height });
      canvas.getContext("2d").drawImage(image, 0, 0, 2 * width, 2 * height);
      canvas.toBlob((blob) => omdpd.save(`${name}.png`, blob, "image/png"), "image/png");
    };
    image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
  };

  // A figure: caption, drawings, buttons that export them, and the same numbers as a table.
  omdpd.figure = ({ name, title, note, drawings, head, rows, numeric }) => {
    const holder = el("div", { class: "holder" }, drawings);
    const button = (text, label, act) => el("button", { type: "button", "aria-label": `${label} of: ${title}`, "data-export": text.toLowerCase(), onclick: act, text });
    const tools = el("div", { class: "tools" });
    if (holder.querySelector("svg")) tools.append(
      button("SVG", "Save the picture as SVG", () => savePicture(holder, name, "svg")),
      button("PNG", "Save the picture as PNG", () => savePicture(holder, name, "png")));
    if (head) {
      const made = () => (typeof rows === "function" ? rows() : rows);
      tools.append(
        button("CSV", "Save the numbers as CSV", () => omdpd.save(`${name}.csv`, omdpd.csv(head, made()), "text/csv")),
        button("LaTeX", "Save the numbers as LaTeX", () => omdpd.save(`${name}.tex`, omdpd.latex(head, made()), "text/x-tex")));
      if (!holder.querySelector("svg") && holder.querySelector("table")) return frame(name, title, note, holder, tools);
      const inside = el("details", {}, el("summary", { text: "The numbers as a table" }));
      inside.addEventListener("toggle", () => {
        if (inside.open && inside.children.length === 1) inside.append(omdpd.table(head, made(), numeric || head.map((_, i) => i).slice(1), title));
      });
      tools.append(inside);
    }
    return frame(name, title, note, holder, tools);
  };
  const frame = (name, title, note, holder, tools) => el("figure", { "data-figure": name },
    title ? el("figcaption", {}, title, note ? el("div", { class: "quiet", text: note }) : null) : null, holder, tools);
  omdpd.empty = (text) => el("p", { class: "empty", text });

  // Plot with our class and colours; a drawing is a picture for a screen reader, with a sentence.
  omdpd.plot = (options) => {
    const made = Plot.plot({
      className: "omdpd-plot",
      style: { color: omdpd.ink(), background: "transparent", fontSize: "12px", fontFamily: "system-ui, sans-serif" },
      ...options,
    });
    const svg = made.matches("svg") ? made : made.querySelector("svg:last-of-type");
    svg.setAttribute("role", "img");
    return made;
  };
  omdpd.tip = (extra) => ({ fill: omdpd.ground(), stroke: omdpd.soft(), ...extra });
  omdpd.width = (node, most = 1180) => Math.max(280, Math.min(most, Math.floor(node || 600)));

  // Ticks of a symmetric logarithmic axis: zero and powers of ten, not closer than a reader can tell.
  omdpd.symlogTicks = (low, high, constant) => {
    const ticks = [0], most = Math.max(Math.abs(low), high);
    const between = most / constant < 2000 && (low >= 0 || high <= 0) ? [1, 3] : [1];
    for (let p = Math.floor(Math.log10(constant)); 10 ** p <= most; p += 1) {
      for (const size of between.map((m) => m * 10 ** p)) {
        if (size < 0.99 * constant) continue;
        if (size <= high) ticks.push(size);
        if (-size >= low) ticks.unshift(-size);
      }
    }
    return ticks;
  };
})();
