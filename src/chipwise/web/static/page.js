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
    document.querySelectorAll(".top nav details[open]").forEach((menu) => { if (!menu.contains(event.target)) menu.open = false; });
    if (event.target.closest?.(".change")) {
      form?.classList.add("open");
      form?.querySelector("input, select, textarea")?.focus();
    }
    if (event.target.closest?.("[data-cancel]")) {
      asking?.dispatchEvent(new Event("htmx:abort"));
      say("cancelled");
    }
    const copy = event.target.closest?.("[data-copy]");
    if (copy) {
      navigator.clipboard.writeText(copy.parentElement.querySelector("pre").textContent)
        .then(() => { copy.textContent = "Copied"; say("copied"); }, () => { copy.textContent = "Select and copy"; });
    }
    const instead = event.target.closest?.("[data-instead]");
    if (instead && form) {
      const field = form.elements.namedItem(instead.closest("[data-field]").dataset.field);
      // of a list only the name that nobody knows is replaced
      const wrong = instead.closest(".problem").querySelector("p").textContent.match(/unknown \w+ '(.*?)'/)?.[1];
      const names = field.value.split(",").map((name) => name.trim());
      const listed = names.length > 1 && names.includes(wrong);
      field.value = listed ? names.map((name) => (name === wrong ? instead.dataset.instead : name)).join(",") : instead.dataset.instead;
      field.dispatchEvent(new Event("input", { bubbles: true }));
      form.requestSubmit();
    }
    const fill = event.target.closest?.("[data-fill]");
    if (fill && form) {
      for (const [name, value] of Object.entries(JSON.parse(fill.dataset.fill))) {
        const field = form.elements.namedItem(name);
        if (field?.type === "checkbox") field.checked = value === "true";
        else if (field) field.value = value;
        field?.dispatchEvent(new Event("input", { bubbles: true }));
      }
      form.requestSubmit();
    }
    const link = event.target.closest?.("[data-link]");
    if (link && navigator.clipboard && !event.metaKey && !event.ctrlKey) {
      event.preventDefault();
      navigator.clipboard.writeText(link.href).then(() => { link.textContent = "Copied"; say("copied"); }, () => { location.href = link.href; });
    }
    const picked = event.target.closest?.("a.pick");
    if (picked) {
      pick(picked);
      if (!event.metaKey && !event.ctrlKey) location.hash = `plan=${picked.closest("tr").dataset.rank}`;
    }
  });

  // the plan that is looked into is part of the address, and Back leaves it
  function pick(link) {
    document.querySelectorAll("tr.picked").forEach((row) => row.classList.remove("picked"));
    link?.closest("tr").classList.add("picked");
  }
  function follow() {
    const rank = location.hash.match(/^#plan=(\d+)$/)?.[1];
    const link = rank ? document.getElementById(`plan-${rank}`) : null;
    if (!rank && detail) {
      pick(null);
      detail.replaceChildren();
    } else if (link && !link.closest("tr").classList.contains("picked")) {
      const folded = link.closest("details");
      if (folded) folded.open = true;
      link.click();
    }
  }
  addEventListener("hashchange", follow);
  document.addEventListener("htmx:after:swap", (event) => { if (event.target === result) setTimeout(follow, 50); });
  addEventListener("load", () => setTimeout(follow, 50));  // links are bound once the page has come to rest

  // an answer fades once the question beside it is another
  const written = () => form ? new URLSearchParams(new FormData(form)).toString() : "";
  let asked = written();
  form?.addEventListener("input", () => result?.classList.toggle("stale", written() !== asked));
  form?.addEventListener("submit", () => { asked = written(); });
  document.addEventListener("glance", () => result?.classList.remove("stale"));
  document.addEventListener("htmx:after:swap", (event) => {
    if (beside(event.target)) return;
    result?.classList.toggle("stale", written() !== asked);
    // a short screen shows the answer, not the options
    const more = form?.querySelector("details.more");
    if (more && matchMedia("(max-width: 980px)").matches && !result?.querySelector(".problem")) more.open = false;
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
  // a table that does not fit is set closer, in more lines, and without what matters least; on a phone it becomes cards
  const ROLES = { TABLE: "table", THEAD: "rowgroup", TBODY: "rowgroup", TR: "row", TD: "cell" };
  // of a long table a narrow screen shows the first rows, until the others are asked for
  const FEW = 5;
  function few(table) {
    const more = table.tBodies[0].rows.length - FEW;
    if (more < (table.matches(".plans") ? 1 : 2 * FEW) || table.dataset.few) return;
    table.dataset.few = String(FEW);
    table.classList.add("few");
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet rest", textContent: `Show ${more} more` });
    button.addEventListener("click", () => {
      table.classList.remove("few");
      button.remove();
    });
    table.after(button);
  }
  // columns that a middling screen leaves out come on request, and the table scrolls
  function unfolded(table) {
    const spare = table.tHead?.querySelectorAll(".spare").length;
    if (!spare) return;
    const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet columns" });
    const say = (open) => {
      table.classList.toggle("lean", !open);
      button.setAttribute("aria-expanded", String(open));
      button.textContent = open ? "Fewer columns" : `Show ${spare} more column${spare > 1 ? "s" : ""}`;
    };
    button.addEventListener("click", () => say(button.getAttribute("aria-expanded") !== "true"));
    say(false);
    table.parentElement.after(button);
  }
  function fitted() {
    document.querySelectorAll(".scroll > table").forEach((table) => {
      const columns = table.parentElement.nextElementSibling?.matches(".columns") ? table.parentElement.nextElementSibling : null;
      if (columns?.getAttribute("aria-expanded") === "true") return;
      columns?.remove();
      table.classList.remove("cards", "tight", "tighter", "lean");
      const cut = () => table.scrollWidth > table.parentElement.clientWidth + 1;
      if (!cut()) return;
      const phone = matchMedia("(max-width: 599px)").matches;
      for (const closer of phone ? [] : ["tight", "tighter", "lean"]) {
        table.classList.add(closer);
        if (closer === "lean") unfolded(table);
        if (!cut()) return;
      }
      if (!phone) return;
      table.classList.add("cards");
      few(table);
      if (table.getAttribute("role")) return;
      [table, ...table.querySelectorAll("thead, tbody, tr, td")].forEach((part) => part.setAttribute("role", ROLES[part.tagName]));
      table.querySelectorAll("th").forEach((head) => head.setAttribute("role", head.scope === "row" ? "rowheader" : "columnheader"));
    });
  }
  // what a wide screen shows in a row, a phone opens part by part
  function folded() {
    const phone = matchMedia("(max-width: 620px)").matches;
    document.querySelectorAll("details.fold").forEach((part) => {
      if (part.dataset.phone === String(phone)) return;
      part.dataset.phone = String(phone);
      part.open = !phone;
    });
  }
  let resized = 0;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => { folded(); fitted(); }, 100); });
  document.addEventListener("toggle", fitted, true);
  const sortAll = () => document.querySelectorAll("table.plans:not([data-sortable])").forEach(sortable);
  sortAll();
  folded();
  fitted();
  document.addEventListener("htmx:after:swap", () => { sortAll(); folded(); fitted(); });

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
})();
