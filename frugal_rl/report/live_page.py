"""The live page itself: no library, drawn by its own script from `/state` every two seconds."""

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>A run</title><link rel="stylesheet" href="/live.css"></head><body>
<header><h1 id="title">A run</h1><span id="state" role="status"></span></header>
<progress id="bar" max="1" value="0" aria-label="steps done"></progress>
<p id="words"></p>
<section><h2>Curves</h2><div id="curves"></div></section>
<section><h2>Memory</h2><p id="held"></p>
<p>Measured first, then what each part was planned to hold.</p><div id="parts"></div></section>
<section id="film" hidden><h2>Newest film</h2>
<img id="picture" alt="newest film of the run"></section>
<section><h2>Stop</h2>
<form id="stop"><label>Token from the terminal <input id="token" autocomplete="off"
 spellcheck="false"></label> <button>Stop with a checkpoint</button></form>
<p id="answer" role="status"></p></section>
<section><h2>Command</h2><pre id="command"></pre></section>
<script src="/live.js"></script></body></html>
"""

STYLE = """
:root { color-scheme: light dark; --text: #1c2330; --page: #fff; --soft: #f2f4f8; --line: #d5dae2;
        --own: #3366aa; --other: #cc6633; }
@media (prefers-color-scheme: dark) {
  :root { --text: #dfe4ee; --page: #14181f; --soft: #222936; --line: #3a4354;
          --own: #7aa7e6; --other: #e69a6b; }
}
* { box-sizing: border-box; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 1.5rem auto; max-width: 72rem;
       padding: 0 1rem; color: var(--text); background: var(--page); overflow-wrap: anywhere; }
header { display: flex; flex-wrap: wrap; gap: .2rem 1rem; align-items: baseline; }
h1 { font-size: 1.4rem; margin: 0; } h2 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
#state { padding: 0 .6rem; border-radius: 1rem; background: var(--soft); }
progress { width: 100%; height: 1rem; margin-top: .8rem; }
#curves { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(16rem, 1fr)); }
figure { margin: 0; background: var(--soft); border-radius: 6px; padding: .5rem .7rem; }
figcaption { display: flex; justify-content: space-between; gap: .6rem; font-size: .85rem; }
svg { width: 100%; height: 7rem; display: block; }
polyline { fill: none; stroke: var(--own); stroke-width: 1.5; vector-effect: non-scaling-stroke; }
.part { display: grid; grid-template-columns: minmax(8rem, 2fr) 3fr 6rem; gap: .6rem;
        align-items: center; font-size: .9rem; }
.part span:last-child { text-align: right; font-variant-numeric: tabular-nums; }
.track { background: var(--soft); height: .8rem; border-radius: 3px; }
.fill { background: var(--own); height: 100%; border-radius: 3px; min-width: 1px; }
.measured .fill { background: var(--other); }
img { max-width: 100%; background: #fff; border-radius: 6px; }
pre { background: var(--soft); padding: .6rem .8rem; white-space: pre-wrap; }
input, button { font: inherit; padding: .3rem .6rem; max-width: 100%; }
@media print { section:has(#stop) { display: none; } h2 { break-after: avoid; }
  figure, .part, pre { break-inside: avoid; } body { margin: 0; max-width: none; } }
"""

SCRIPT = """
"use strict";
const at = (id) => document.getElementById(id);
const FIRST = ["eval/success", "eval/return", "episode/return", "episode/success",
  "memory/held_bytes", "time/steps_per_second", "train/loss", "train/entropy"];
const bytes = (n) => n == null ? "-" : n < 1048576 ? `${(n / 1024).toFixed(1)} KiB`
  : n < 1073741824 ? `${(n / 1048576).toFixed(1)} MiB` : `${(n / 1073741824).toFixed(2)} GiB`;
const short = (name, v) => name.endsWith("_bytes") ? bytes(v) : Number(v.toPrecision(4));
const clock = (s) => !isFinite(s) ? "-" : s < 120 ? `${Math.round(s)} s`
  : s < 7200 ? `${Math.round(s / 60)} min` : `${(s / 3600).toFixed(1)} h`;
let film = "";

function made(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

function curve(name, points, called) {
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const low = Math.min(...ys), high = Math.max(...ys);
  const left = xs[0], wide = (xs[xs.length - 1] - left) || 1, tall = high - low;
  const height = (y) => tall ? 96 - 92 * (y - low) / tall : 50;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", "0 0 100 100");
  svg.setAttribute("preserveAspectRatio", "none");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  line.setAttribute("points", points.map((p) =>
    `${(100 * (p[0] - left) / wide).toFixed(2)},${height(p[1]).toFixed(2)}`).join(" "));
  svg.append(line);
  const caption = made("figcaption");
  caption.append(made("span", "", called), made("strong", "", short(name, ys[ys.length - 1])));
  const foot = made("figcaption");
  foot.append(made("span", "", `low ${short(name, low)}`),
    made("span", "", `high ${short(name, high)}`));
  const figure = made("figure");
  figure.append(caption, svg, foot);
  return figure;
}

function part(name, value, most, kind) {
  const row = made("div", `part ${kind}`), track = made("div", "track"), fill = made("div", "fill");
  fill.style.width = `${Math.min(100, 100 * value / most)}%`;
  track.append(fill);
  row.append(made("span", "", name), track, made("span", "", bytes(value)));
  return row;
}

function show(run) {
  document.title = `${run.state}: ${run.title}`;
  at("title").textContent = run.title;
  at("state").textContent = run.state;
  at("bar").value = run.total_steps ? run.steps / run.total_steps : 0;
  const left = (run.total_steps - run.steps) / run.steps_per_second;
  at("words").textContent = `${run.steps.toLocaleString()} of `
    + `${run.total_steps.toLocaleString()} steps after ${clock(run.seconds)}`
    + (run.steps_per_second ? `, ${Math.round(run.steps_per_second).toLocaleString()} steps/s` : "")
    + (run.state === "running" ? `, ${clock(left)} left` : "");
  const names = FIRST.filter((n) => (run.curves[n] || []).length > 1);
  const called = (n) => run.averaged.includes(n) ? `${n}, averaged` : n;
  at("curves").replaceChildren(...names.map((n) => curve(n, run.curves[n], called(n))));
  if (!names.length) at("curves").textContent = "No curve yet: two rollouts are needed.";
  const m = run.memory, planned = Object.entries(m.parts).sort((a, b) => b[1] - a[1]);
  at("held").textContent = `${bytes(m.held)} held, ${bytes(m.planned)} planned at the peak, `
    + `${bytes(m.limit)} allowed`;
  const most = Math.max(m.planned || 1, m.held || 1, ...Object.values(m.peaks));
  at("parts").replaceChildren(
    part("held now", m.held || 0, most, "measured"),
    ...Object.entries(m.peaks).map(([n, v]) => part(`peak of ${n}`, v, most, "measured")),
    ...planned.slice(0, 14).map(([n, v]) => part(n, v, most, "planned")));
  at("film").hidden = !run.film;
  if (run.film && run.film !== film) at("picture").src = `/film?${encodeURIComponent(run.film)}`;
  film = run.film;
  at("command").textContent = run.command;
  at("stop").querySelector("button").disabled = run.state !== "running";
}

async function look() {
  try {
    show(await (await fetch("/state")).json());
  } catch (error) {
    at("state").textContent = "the page's server has ended";
  }
  setTimeout(look, 2000);
}

at("stop").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = new URLSearchParams({ token: at("token").value });
  at("answer").textContent = await (await fetch("/stop", { method: "POST", body })).text();
});
look();
"""
