// Progress and its cancelling, what a screen reader hears, and the move to what was asked for.
(() => {
  "use strict";
  const busy = document.getElementById("busy");
  const status = document.getElementById("status");
  const result = document.getElementById("result");
  const detail = document.getElementById("detail");
  let started = 0, timer = 0, asking = null;

  const say = (text) => { if (status) status.textContent = text; };
  const beside = (element) => Boolean(element?.closest?.(".part"));
  function tick() {
    const seconds = (performance.now() - started) / 1000;
    const text = busy?.querySelector(".elapsed");
    if (text) text.textContent = `working, ${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  }
  document.addEventListener("htmx:before:request", (event) => {
    if (beside(event.target)) return;
    asking = event.target;
    started = performance.now();
    busy?.removeAttribute("aria-hidden");
    clearInterval(timer);
    timer = setInterval(tick, 100);
    tick();
    say("working");
  });
  document.addEventListener("htmx:finally:request", (event) => {
    if (beside(event.target)) return;
    clearInterval(timer);
    busy?.setAttribute("aria-hidden", "true");
  });
  document.addEventListener("htmx:error", (event) => {
    if (!beside(event.target)) say("no answer");
  });
  document.addEventListener("htmx:after:swap", () => {
    const told = result?.querySelector("[data-status]");
    if (told) say(told.dataset.status);
    mark(true);
  });

  // what an error is about: the field is marked, and is where the reader goes on
  const form = document.getElementById("ask");
  function mark(go) {
    form?.querySelectorAll("[aria-invalid]").forEach((field) => field.removeAttribute("aria-invalid"));
    const name = result?.querySelector("[data-field]")?.dataset.field;
    const field = name ? form?.elements.namedItem(name) : null;
    if (!field?.setAttribute) return;
    field.setAttribute("aria-invalid", "true");
    field.setAttribute("aria-errormessage", "problem");
    const folded = field.closest("details");
    if (folded) folded.open = true;
    if (go) field.focus();
  }
  mark(false);

  document.addEventListener("click", (event) => {
    if (event.target.closest?.("[data-cancel]")) {
      asking?.dispatchEvent(new Event("htmx:abort"));
      say("cancelled");
    }
    const instead = event.target.closest?.("[data-instead]");
    if (instead && form) {
      form.elements.namedItem(instead.closest("[data-field]").dataset.field).value = instead.dataset.instead;
      form.requestSubmit();
    }
    const picked = event.target.closest?.("a.pick");
    if (picked) {
      document.querySelectorAll("tr.picked").forEach((row) => row.classList.remove("picked"));
      picked.closest("tr").classList.add("picked");
    }
  });

  // a list of chips: names are offered for the part after the last comma
  const several = document.getElementById("several");
  document.querySelectorAll("input[list=several]").forEach((input) => {
    const names = [...document.querySelectorAll("#chips option")].map((option) => option.value);
    input.addEventListener("input", () => {
      const before = input.value.slice(0, input.value.lastIndexOf(",") + 1);
      const given = new Set(before.split(",").map((name) => name.trim()));
      several.replaceChildren(...names.filter((name) => !given.has(name)).map((name) => new Option("", before + name)));
    });
    input.dispatchEvent(new Event("input"));
  });

  // plans in another order: a heading with figures sorts, once more turns round
  function sortable(table) {
    table.dataset.sortable = "true";
    const body = table.tBodies[0];
    const value = (row, at) => Number(row.cells[at].dataset.value ?? Infinity);
    [...table.tHead.rows[0].cells].forEach((heading, at) => {
      if (![...body.rows].some((row) => row.cells[at].dataset.value)) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.textContent = heading.textContent;
      heading.replaceChildren(button);
      button.addEventListener("click", () => {
        const up = heading.getAttribute("aria-sort") !== "ascending";
        table.querySelectorAll("[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", up ? "ascending" : "descending");
        const rows = [...body.rows].sort((a, b) => (value(a, at) - value(b, at)) * (up ? 1 : -1) || value(a, 0) - value(b, 0));
        body.append(...rows);
      });
    });
  }
  const sortAll = () => document.querySelectorAll("table.plans:not([data-sortable])").forEach(sortable);
  sortAll();
  document.addEventListener("htmx:after:swap", sortAll);

  // details arrive below the answer: go there once they are in, and drop them with the answer they belong to
  if (result && detail) {
    new MutationObserver((changes) => {
      if (!changes.some((change) => [...change.addedNodes].some((node) => node.nodeType === 1))) return;
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      detail.scrollIntoView({ behavior: calm ? "auto" : "smooth", block: "start" });
      detail.focus({ preventScroll: true });
    }).observe(detail, { childList: true });
    new MutationObserver(() => detail.replaceChildren()).observe(result, { childList: true });
  }
  // on a narrow screen the current view's tab may lie outside
  const tab = document.querySelector("nav [aria-current]");
  if (tab) {
    const list = tab.parentElement;
    list.scrollLeft = tab.offsetLeft - list.offsetLeft - (list.clientWidth - tab.offsetWidth) / 2;
  }
})();
