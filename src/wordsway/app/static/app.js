// The page: asks, listens to the answer line by line, and colours words as their numbers come.
"use strict";

const at = (id) => document.getElementById(id);
const token = document.querySelector("meta[name=wordsway-token]").content;
const LEVELS = 9;
let running = null; // the measurement under way: {abort}
let asking = null; // the word that is looked into: {abort}
let job = null; // whose result is shown

function say(text) { at("status").textContent = text; }
function fail(text) { at("error").textContent = text; if (text) say(""); }
const plural = (count, what) => `${count} ${what}${count === 1 ? "" : "s"}`;

// POST a question; `hear` gets each event of the answer. Aborting ends the work on the other side as well.
async function ask(address, question, signal, hear) {
  const answer = await fetch(address, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Wordsway-Token": token },
    body: JSON.stringify(question),
    signal,
  });
  if (!answer.ok) {
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.message || `the answer was ${answer.status}`);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) if (line) hear(JSON.parse(line));
  }
}

const whole = (id) => (at(id).value.trim() === "" ? null : Number(at(id).value));

function question() {
  const [kind, ...rest] = at("subject").value.split(" ");
  const name = rest.join(" ");
  const asked = { text: at("text").value, radius: whole("radius"), n: whole("n"), budget: at("budget").value, seed: whole("seed") };
  if (kind === "model") return { ...asked, model: name, output: at("output").value || null };
  const options = name ? at("options").value.trim() : "";
  return {
    ...asked,
    map: options ? `${name}:${options}` : name || null,
    weights: whole("weights"),
    encoder: at("encoder").value,
    layer: whole("layer"),
    certificate: at("certificate").checked,
  };
}

// The words while they are measured: coloured from 0 to the largest value so far.
class Live {
  constructor(segments) {
    this.values = new Map();
    this.buttons = [];
    this.asked = false;
    const parts = segments.map((segment) => {
      if (segment.word === undefined) {
        if (!segment.left_out) return document.createTextNode(segment.text);
        const rest = document.createElement("span");
        rest.className = "left-out";
        rest.textContent = segment.text;
        return rest;
      }
      const button = document.createElement("button");
      button.type = "button";
      button.disabled = true;
      button.className = "word pending";
      button.textContent = segment.text;
      this.buttons[segment.word] = button;
      return button;
    });
    at("live").replaceChildren(...parts);
    at("live").hidden = false;
  }

  add(word, value) {
    this.values.set(word, value);
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => this.colour());
  }

  colour() {
    this.asked = false;
    const most = Math.max(...this.values.values());
    for (const [word, value] of this.values) {
      const button = this.buttons[word];
      const share = most > 0 ? value / most : 0; // from 0, as the report's shades
      button.className = `word level-${Math.min(LEVELS - 1, Math.floor(LEVELS * share))}`;
      button.dataset.value = value;
    }
  }
}

function setRunning(on) {
  at("run").disabled = on;
  at("cancel").disabled = !on;
  at("progress").hidden = !on;
  if (!on) at("count").textContent = "";
  document.body.classList.toggle("running", on);
}

async function run() {
  if (running) return;
  if (asking) asking.abort();
  const asked = question();
  running = new AbortController();
  let live = null, began = performance.now(), counted = "", steps = false, ended = false;
  fail("");
  say("Asking.");
  at("result").hidden = at("keep").hidden = at("live").hidden = true;
  at("progress").removeAttribute("value");
  setRunning(true);
  const seconds = () => `${Math.round((performance.now() - began) / 1000)} s`;
  const tick = () => { at("count").textContent = counted ? `${counted}, ${seconds()}` : seconds(); };
  const clock = setInterval(tick, 250);
  const reached = (done, total, what) => {
    at("progress").max = total;
    at("progress").value = done;
    counted = `${done} of ${plural(total, what)}`;
    tick();
  };
  const hear = {
    job: (event) => { job = event.job; },
    waiting: (event) => { if (event.ahead) say(`${plural(event.ahead, "measurement")} ahead of yours.`); },
    loading: (event) => { began = performance.now(); say(`Loading ${event.what}.`); },
    text: (event) => {
      live = new Live(event.segments);
      began = performance.now();
      const expected = event.seconds >= 5 ? `, about ${Math.round(event.seconds)} s` : "";
      say(`Measuring ${plural(event.words, "word")}${expected}.`);
      steps = event.steps;
      if (!steps) reached(0, event.words, "word");
    },
    move: (event) => {
      live.add(event.word, event.value);
      if (!steps) reached(event.done, event.words, "word");
    },
    step: (event) => reached(event.done, event.total, event.what),
    done: (event) => { ended = true; show(event, seconds()); },
    stopped: () => { ended = true; say("Cancelled."); },
    error: (event) => { ended = true; fail(event.message); at("live").hidden = true; },
  };
  try {
    await ask("/measure", asked, running.signal, (event) => hear[event.event]?.(event));
    if (!ended) fail("The answer broke off: was wordsway app stopped?");
  } catch (error) {
    if (running.signal.aborted) say("Cancelled.");
    else fail(error instanceof TypeError ? "wordsway app does not answer: was it stopped?" : error.message);
    if (live === null || !running.signal.aborted) at("live").hidden = true;
  } finally {
    clearInterval(clock);
    running = null;
    setRunning(false);
  }
}

function show(event, seconds) {
  at("result").innerHTML = event.fragment; // made and escaped by the server
  window.wordsway.begin();
  if (event.explains) at("result").querySelector(".words").dataset.waiting = "Computing details: this may take some seconds.";
  at("live").hidden = true;
  at("result").hidden = at("keep").hidden = false;
  at("report").href = `/report/${job}`;
  at("json").href = `/result/${job}`;
  at("command").textContent = event.command;
  say([`Done in ${seconds}.`, ...event.notes.map((note) => `Note: ${note}.`)].join(" "));
}

// What the move found for one word does: asked for when it is chosen, and kept by the report's own script.
async function look(section, word) {
  if (asking) asking.abort();
  if (section.dataset.explains === undefined) return; // its numbers are all there is
  if (section.querySelector(`template[data-explains="${word}"]:not([data-failed])`)) return;
  const own = (asking = new AbortController());
  const tell = (text) => {
    const note = document.createElement("p");
    note.className = "note";
    note.textContent = text;
    window.wordsway.explained(section, word, note.outerHTML);
    section.querySelector(`template[data-explains="${word}"]`).dataset.failed = "";
  };
  const hear = {
    waiting: (event) => { if (event.ahead) say(`${plural(event.ahead, "measurement")} ahead of yours.`); },
    word: (event) => window.wordsway.explained(section, event.word, event.fragment),
    error: (event) => tell(event.message),
  };
  try {
    await ask("/word", { job, word }, own.signal, (event) => hear[event.event]?.(event));
  } catch (error) {
    if (!own.signal.aborted) tell(error instanceof TypeError ? "wordsway app does not answer: was it stopped?" : error.message);
  } finally {
    if (asking === own) asking = null;
  }
}

function subjectChanged() {
  const model = at("subject").value.startsWith("model ");
  for (const part of document.querySelectorAll(".of-model")) part.hidden = !model;
  for (const part of document.querySelectorAll(".of-map")) part.hidden = model;
  for (const part of document.querySelectorAll(".of-one-map")) part.hidden = !at("subject").value.startsWith("map ");
}

at("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
at("text").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("form").requestSubmit();
});
at("cancel").addEventListener("click", () => running?.abort());
at("result").addEventListener("wordsway:chosen", (event) => look(event.target, event.detail.word));
at("subject").addEventListener("change", subjectChanged);
at("copy").addEventListener("click", async () => {
  try {
    await navigator.clipboard.writeText(at("command").textContent);
    say("The command is copied.");
  } catch {
    getSelection().selectAllChildren(at("command"));
    say("The command is selected: copy it with your keyboard.");
  }
});
subjectChanged();
