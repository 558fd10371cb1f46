// Small things that every page does, apart from listening.

export function every(milliseconds, work) {
  setInterval(work, milliseconds);
}

// For those who listen to the page instead of looking at it.
export function say(words) {
  document.getElementById("said").textContent = words;
}

// The clock of the page: simulated time may run faster than ours.
const loaded = Date.now();
const CLOCK = {
  timeZone: "UTC", weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
};

export function tickClocks() {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    const start = Date.parse(clock.dateTime.slice(0, 19) + "Z");
    const now = new Date(start + (Date.now() - loaded) * Number(clock.dataset.rate));
    clock.textContent = now.toLocaleString("en-GB", CLOCK).replace(",", "");
  }
}

// Numbers and meters that a reading moves. Null means that nobody reported it: unknown, never zero.
const WORDS = {
  percent: (value) => `${Math.round(value * 100)} %`,
  gib: (value) => `${(value / 1024).toFixed(1)} GiB`,
  minutes: (value) => `${Math.floor(value)}`,
  watts: (value) => `${Math.round(value)} W`,
};

document.addEventListener("reading", ({ target, detail }) => {
  if (target instanceof HTMLMeterElement) target.value = detail ?? 0;
  else target.textContent = detail === null ? "unknown" : WORDS[target.dataset.words](detail);
  target.classList.toggle("unknown", detail === null);
});

// A form is sent once, however often the button is clicked.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) event.preventDefault();
  form.dataset.sent = "yes";
});
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

// Filters apply themselves; their button is for browsers without scripts.
document.addEventListener("change", ({ target }) => {
  if (target.closest("form.filters") && target.matches("select")) target.form.requestSubmit();
});

// A dropped menu closes when something else is clicked, or by Escape.
document.addEventListener("click", ({ target }) => closeDrops((drop) => !drop.contains(target)));
document.addEventListener("keydown", ({ key }) => key === "Escape" && closeDrops(() => true));

function closeDrops(which) {
  document.querySelectorAll("details.drop[open]").forEach((drop) => which(drop) && drop.removeAttribute("open"));
}
