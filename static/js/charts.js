// The charts of one workload: the last hour from the server, then every reading as it comes.
const HOUR = 3600;
const KEPT = 4000;
const zone = document.querySelector("[data-zone]")?.dataset.zone ?? "UTC";
const places = [...document.querySelectorAll("[data-chart]")];
const sources = new Map();
let charts = [];

if (places.length && window.uPlot) start();

async function start() {
  for (const src of new Set(places.map((place) => place.dataset.src))) {
    const answer = await fetch(src, { headers: { Accept: "application/json" } });
    if (answer.ok) sources.set(src, await answer.json());
  }
  draw();
  document.addEventListener("meter", ({ detail }) => append(detail));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(resize).observe(places[0]);
}

function draw() {
  charts.forEach((chart) => chart.destroy());
  charts = places.filter((place) => sources.has(place.dataset.src)).map(chartIn);
}

function chartIn(place) {
  const chart = new uPlot(options(place), dataOf(place), place);
  chart.place = place;
  return chart;
}

function dataOf(place) {
  const { at, busy, memory } = sources.get(place.dataset.src);
  return [at, place.dataset.chart === "busy" ? busy : memory];
}

function options(place) {
  const style = getComputedStyle(place);
  const colour = (name) => style.getPropertyValue(name).trim();
  const [line, fill] = place.dataset.chart === "busy" ? ["--accent", "--accent-weak"] : ["--violet", "--violet-weak"];
  const axis = { stroke: colour("--muted"), font: "12px sans-serif", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
  return {
    ...sizeOf(place),
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone),
    fmtDate: () => uPlot.fmtDate("{HH}:{mm}"),
    padding: [10, 20, 0, 0],
    legend: { show: false },
    cursor: { points: { size: 7 }, drag: { x: false, y: false } },
    scales: { x: { range: lastHour }, y: { range: (_, low, high) => [0, Number(place.dataset.top) || Math.max(1, high * 1.2)] } },
    axes: [
      { ...axis, space: 80, size: 28 },
      { ...axis, size: 62, space: 30, values: (_, splits) => splits.map((value) => `${+value.toFixed(1)} ${place.dataset.unit}`) },
    ],
    series: [{}, { stroke: colour(line), fill: colour(fill), width: 2, points: { show: false }, spanGaps: false }],
  };
}

// From the first reading on, at most an hour; without one, the last hour of the page's own clock.
function lastHour(_, low, high) {
  if (high === null || !high) return [pageTime() - HOUR, pageTime()];
  return [Math.min(low, high - 300), high];
}

function pageTime() {
  return Date.parse(document.querySelector("[data-clock]").dateTime) / 1000;
}

function sizeOf(place) {
  return { width: Math.max(200, place.clientWidth), height: place.clientHeight || 180 };
}

function resize() {
  charts.forEach((chart) => chart.setSize(sizeOf(chart.place)));
}

function append(reading) {
  for (const [src, { at, busy, memory }] of sources) {
    const seconds = Date.parse(reading.at) / 1000;
    if (!src.includes(reading.workload) || seconds <= at.at(-1)) continue;
    at.push(seconds);
    busy.push(reading.busy === null ? null : reading.busy * 100);
    memory.push(reading.memory_used_mib === null ? null : reading.memory_used_mib / 1024);
    for (const place of places) {
      if (place.dataset.chart === "memory" && reading.memory_total_mib) place.dataset.top = reading.memory_total_mib / 1024;
    }
    while (at.length > KEPT || at[0] < seconds - HOUR) [at, busy, memory].forEach((list) => list.shift());
  }
  charts.forEach((chart) => chart.setData(dataOf(chart.place)));
}
