// Small things that every page does, apart from listening.

export function every(milliseconds, work) {
  setInterval(work, milliseconds);
}

// For those who listen to the page instead of looking at it.
export function say(words) {
  document.getElementById("said").textContent = words;
}

// The clock of the page: simulated time may run faster than ours.
const CLOCK = {
  timeZone: "UTC", weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit",
};

export function tickClocks() {
  for (const clock of document.querySelectorAll("[data-clock]")) {
    const start = Date.parse(clock.dateTime.slice(0, 19) + "Z");
    clock.dataset.seenAt ??= Date.now();
    const now = new Date(start + (Date.now() - Number(clock.dataset.seenAt)) * Number(clock.dataset.rate));
    clock.textContent = now.toLocaleString("en-GB", CLOCK).replace(",", "");
  }
}

// Numbers and meters that a reading moves. Null means that nobody reported it: unknown, never zero.
const WORDS = {
  percent: (value) => `${Math.round(value * 100)} %`,
  gib: (value) => `${(value / 1024).toFixed(1)} GiB`,
};

document.addEventListener("reading", ({ target, detail: { value, known } }) => {
  if (target instanceof HTMLMeterElement) target.value = value ?? 0;
  else if (target.dataset.words === "idle") target.textContent = idleWords(value, known, target.dataset.limit);
  else target.textContent = value === null ? "unknown" : WORDS[target.dataset.words](value);
  target.classList.toggle("unknown", value === null);
});

function idleWords(minutes, known, limit) {
  if (!known) return "Unknown: nobody reports its use, so it is not counted as idle.";
  return minutes === null ? `Busy: the count of ${limit} has not begun.` : `Idle for ${Math.floor(minutes)} min of ${limit}.`;
}

const CENTS = { minimumFractionDigits: 2, maximumFractionDigits: 2 };

// What a running workload has held and cost so far grows between two looks, too.
export function grow() {
  for (const element of document.querySelectorAll("[data-grows]")) {
    const { grows, base, perSecond } = element.dataset;
    element.dataset.seenAt ??= Date.now();
    const value = Number(base) + ((Date.now() - element.dataset.seenAt) / 1000) * Number(perSecond);
    if (grows === "money") element.textContent = element.textContent.replace(/^[\d.,]+/, value.toLocaleString("en-GB", CENTS));
    else element.textContent = duration(Math.floor(value));
  }
}

function duration(seconds) {
  const [days, hours, minutes] = [Math.floor(seconds / 86400), Math.floor(seconds / 3600) % 24, Math.floor(seconds / 60) % 60];
  if (days) return `${days} day${days > 1 ? "s" : ""} ${hours} h`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${seconds % 60} s` : `${seconds} s`;
}

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

// Where the menu is wider than the screen, the word of this page is in sight.
export function showPlace() {
  document.querySelector("#menu [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

showPlace();
