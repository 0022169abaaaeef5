"use strict";
/* What a reader does with a page: look at a word, choose one, sort and filter tables. Everything hangs on the document,
   so that parts which are put in later work as well. Text goes in as text, never as markup. */
(() => {
  /* Three digits, as the page's own figures have them: what a search finds varies by per cents. */
  const number = (value) => {
    const size = Math.abs(value);
    if (Number.isInteger(value) || (size >= 999.5 && size < 1e6)) return Math.round(value).toLocaleString("en");
    return size >= 1e-3 && size < 1e3 ? value.toPrecision(3) : String(Number(value.toPrecision(3)));
  };
  const make = (name, text, kind) => {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const wordAt = (target) => (target instanceof Element ? target.closest(".text .word") : null);

  /* Words: a card beside the one that is pointed at or focused. */
  let card = null;
  const hide = () => { if (card) { card.remove(); card = null; } };
  const show = (word) => {
    hide();
    if (!word.dataset.notes) return;
    card = make("div", undefined, "card");
    card.setAttribute("aria-hidden", "true"); // the word's own label says the same
    card.append(make("b", word.textContent), make("div", `rank ${word.dataset.rank}`));
    for (const note of word.dataset.notes.split("\n")) card.append(make("div", note));
    document.body.append(card);
    const box = word.getBoundingClientRect(), size = card.getBoundingClientRect();
    const left = Math.max(4, Math.min(box.left, document.documentElement.clientWidth - size.width - 4));
    const above = box.top - size.height - 6;
    card.style.left = `${left + window.scrollX}px`;
    card.style.top = `${(above > 4 ? above : box.bottom + 6) + window.scrollY}px`;
  };
  document.addEventListener("mouseover", (event) => { const word = wordAt(event.target); word ? show(word) : hide(); });
  document.addEventListener("focusin", (event) => {
    const word = wordAt(event.target);
    if (!word) return hide();
    for (const other of word.closest(".text").querySelectorAll('.word[tabindex="0"]')) other.tabIndex = -1;
    word.tabIndex = 0;
    show(word);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const word = wordAt(event.target);
    if (!word || event.altKey || event.ctrlKey || event.metaKey) return;
    const words = [...word.closest(".text").querySelectorAll(".word")], here = words.indexOf(word);
    const steps = { ArrowRight: here + 1, ArrowDown: here + 1, ArrowLeft: here - 1, ArrowUp: here - 1, Home: 0, End: words.length - 1 };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = words[Math.max(0, Math.min(words.length - 1, steps[event.key]))];
    next.focus();
  });

  /* The word that was chosen: its bounds on a line, and what was found out about it. */
  const line = (word, scale) => {
    const space = "http://www.w3.org/2000/svg", lower = +word.dataset.lower, upper = word.dataset.upper ? +word.dataset.upper : null;
    const draw = document.createElementNS(space, "svg"), at = (value) => 4 + 400 * value / scale;
    const add = (name, values, text) => {
      const made = document.createElementNS(space, name);
      for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
      if (text) made.textContent = text;
      draw.append(made);
    };
    draw.setAttribute("viewBox", "0 0 460 46");
    draw.setAttribute("class", "line");
    draw.setAttribute("aria-hidden", "true");
    add("line", { class: "axis", x1: 4, x2: 404, y1: 26, y2: 26 });
    if (upper !== null) add("rect", { class: "open", x: at(lower), y: 17, width: Math.max(0, at(upper) - at(lower)), height: 9 });
    add("rect", { class: "sure", x: 4, y: 17, width: at(lower) - 4, height: 9 });
    add("text", { x: at(lower), y: 12, "text-anchor": "middle" }, `at least ${number(lower)}`);
    if (upper !== null) add("text", { x: at(upper), y: 42, "text-anchor": "middle" }, `at most ${number(upper)}`);
    return draw;
  };
  const fill = (section, word) => {
    const panel = section.querySelector(".detail"), all = [...section.querySelectorAll(".text .word")];
    for (const other of all) other.removeAttribute("aria-pressed");
    word.setAttribute("aria-pressed", "true");
    const scale = Math.max(...all.map((each) => +(each.dataset.upper || each.dataset.lower || 0)));
    panel.replaceChildren(make("h3", `${word.textContent} (rank ${word.dataset.rank} of ${all.length})`));
    if (word.dataset.lower) panel.append(line(word, scale || 1));
    else for (const note of word.dataset.notes.split("\n")) panel.append(make("p", note));
    const known = section.querySelector(`template[data-explains="${CSS.escape(word.dataset.word)}"]`);
    if (known) panel.append(known.content.cloneNode(true));
    else if (section.dataset.explains !== undefined) panel.append(make("p", section.dataset.waiting || "Details of this word were not computed; a larger number with --explain does that.", "note"));
    panel.hidden = false;
    panel.dataset.word = word.dataset.word;
  };
  document.addEventListener("click", (event) => {
    const word = wordAt(event.target);
    if (!word || !word.dataset.notes) return;
    const section = word.closest(".words");
    hide();
    fill(section, word);
    section.dispatchEvent(new CustomEvent("wordsway:chosen", { bubbles: true, detail: { word: Number(word.dataset.word) } }));
  });
  /* Colours run from 0 to the largest value; stretched, from the smallest. */
  document.addEventListener("change", (event) => {
    const box = event.target instanceof Element ? event.target.closest("input.stretch") : null;
    if (!box) return;
    const section = box.closest(".words"), from = section.querySelector(".from");
    for (const word of section.querySelectorAll(".text .word")) {
      word.className = `word level-${box.checked ? word.dataset.stretched : word.dataset.level}`;
    }
    from.textContent = box.checked ? from.dataset.stretched : from.dataset.plain;
  });
  /* For pages that put parts in, or find out more, while they are open: markup that our server made. */
  window.wordsway = {
    begin: () => begin(),
    explained(section, word, markup) {
      const made = document.createElement("template");
      made.dataset.explains = String(word);
      made.innerHTML = markup;
      section.querySelector(`template[data-explains="${word}"]`)?.remove();
      section.append(made);
      const panel = section.querySelector(".detail"), button = section.querySelector(`.text .word[data-word="${word}"]`);
      if (panel && button && panel.dataset.word === String(word)) fill(section, button);
    },
  };

  /* Tables: the data is beside each; what is shown is a page of it. */
  const PAGE = 50, FEW = 8, tables = new WeakMap();
  const text = (value) => (value === null ? "" : typeof value === "number" ? number(value) : String(value));
  const state = (section) => {
    if (!tables.has(section)) {
      const data = JSON.parse(section.querySelector('script[type="application/json"]').textContent);
      tables.set(section, { ...data, shown: data.rows, start: 0, column: null, down: false });
    }
    return tables.get(section);
  };
  const put = (section, rows) => {
    const body = make("tbody");
    for (const row of rows) {
      const made = make("tr");
      for (const value of row) {
        const kind = typeof value === "number" ? "number" : text(value).length > 30 ? "long" : "";
        made.append(make("td", text(value), kind));
      }
      body.append(made);
    }
    section.querySelector("tbody").replaceWith(body);
  };
  const draw = (section) => {
    const { shown, start, rows } = state(section);
    put(section, shown.slice(start, start + PAGE));
    const many = rows.length === 1 ? "1 row" : `${number(rows.length)} rows`;
    const total = shown.length === rows.length ? many : `${number(shown.length)} of ${many}`;
    const where = shown.length > PAGE ? `Rows ${number(start + 1)} to ${number(Math.min(shown.length, start + PAGE))} of ` : "";
    section.querySelector(".count").textContent = where + total;
    section.querySelector("label").hidden = rows.length <= FEW;
    section.querySelector(".pages").hidden = shown.length <= PAGE;
    section.querySelector(".back").disabled = start === 0;
    section.querySelector(".on").disabled = start + PAGE >= shown.length;
  };
  const arrange = (section) => {
    const table = state(section), wanted = section.querySelector("input").value.trim().toLowerCase();
    let rows = table.rows;
    if (wanted) rows = rows.filter((row) => row.some((value) => text(value).toLowerCase().includes(wanted)));
    if (table.column !== null) {
      const sign = table.down ? -1 : 1, column = table.column;
      rows = [...rows].sort((a, b) => {
        const [x, y] = [a[column], b[column]];
        if (x === null || y === null) return (x === null) - (y === null); // what is missing comes last, either way
        return sign * (typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true }));
      });
    }
    table.shown = rows;
    table.start = 0;
    draw(section);
  };
  const quoted = (value) => {
    const plain = value === null ? "" : String(value);
    return /[",\n\r]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest(".grid button") : null;
    if (!button) return;
    const section = button.closest(".grid"), table = state(section), heading = button.closest("th");
    if (heading) {
      const column = [...heading.parentElement.children].indexOf(heading);
      const numeric = table.rows.some((row) => typeof row[column] === "number");
      table.down = table.column === column ? !table.down : numeric; // numbers: the largest first
      table.column = column;
      for (const other of heading.parentElement.children) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", table.down ? "descending" : "ascending");
      arrange(section);
    } else if (button.classList.contains("csv")) {
      const lines = [table.columns, ...table.shown].map((row) => row.map(quoted).join(","));
      const link = make("a");
      link.href = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
      link.download = `${table.name}.csv`;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    } else {
      table.start = Math.max(0, table.start + (button.classList.contains("on") ? PAGE : -PAGE));
      draw(section);
    }
  });
  document.addEventListener("input", (event) => {
    const section = event.target instanceof Element ? event.target.closest(".grid") : null;
    if (section) arrange(section);
  });
  const begin = () => { for (const section of document.querySelectorAll(".grid")) draw(section); };
  /* On paper there are no pages of a table: all rows of moderate ones are shown. */
  window.addEventListener("beforeprint", () => {
    hide();
    for (const section of document.querySelectorAll(".grid")) {
      const { shown } = state(section);
      if (shown.length <= 500) put(section, shown);
    }
  });
  window.addEventListener("afterprint", begin);
  window.addEventListener("resize", hide);
  document.readyState === "loading" ? document.addEventListener("DOMContentLoaded", begin) : begin();
})();
