// What this browser keeps: questions that were asked last, plans that were pinned, and what has changed since.
(() => {
  "use strict";
  const place = document.getElementById("kept"), result = document.getElementById("result");
  if (!place || !result) return;
  const MOST = 8;
  let store = { recent: [], pinned: {} };
  function read() {
    try { store = { ...store, ...JSON.parse(localStorage.getItem("kept") ?? "{}") }; } catch { /* kept for this page only */ }
  }
  read();
  const keep = () => { try { localStorage.setItem("kept", JSON.stringify(store)); } catch { /* nothing is kept */ } };
  const element = (name, text, more = {}) => Object.assign(document.createElement(name), { textContent: text }, more);

  function listed(title, rows) {
    if (!rows.length) return [];
    const list = document.createElement("ul");
    for (const { address, verb, title, asked, remove } of rows) {
      const line = list.appendChild(document.createElement("li"));
      // what was kept by an older page has no verb
      line.append(element("a", [verb, title || asked].filter(Boolean).join(": "), { href: address }));
      if (title && asked) line.append(element("small", asked));
      if (remove) line.append(" ", element("button", "Unpin", { type: "button", className: "quiet", onclick: remove }));
    }
    return [element("h2", title, { className: "title" }), list];
  }
  function show() {
    const unpin = (address) => () => {
      delete store.pinned[address];
      keep();
      show();
      since();
    };
    const pinned = Object.entries(store.pinned).map(([address, pin]) => ({ ...pin, address, remove: unpin(address) }));
    place.replaceChildren(...listed("Pinned answers", pinned), ...listed("Recent questions", store.recent));
    place.hidden = !place.childNodes.length;
  }

  // of a pinned plan: its figures then and now
  function changes(then, now) {
    const said = [];
    for (const name of new Set([...Object.keys(then.figures), ...Object.keys(now.figures)])) {
      const [before, after] = [then.figures[name], now.figures[name]];
      if (before !== after) said.push(`${name} ${before ?? "unknown"} → ${after ?? "unknown"}`);
    }
    if (then.version !== now.version) said.push(`chipwise ${then.version} → ${now.version}`);
    return said;
  }
  function since() {
    const head = result.querySelector(".headline[data-pin]");
    head?.querySelector(".since")?.remove();
    head?.querySelector("[data-keep]")?.remove();
    if (!head || head.classList.contains("glance")) return;
    const { address, asked, verb } = head.dataset, now = { ...JSON.parse(head.dataset.pin), asked, verb }, then = store.pinned[address];
    const button = element("button", then ? "Pin anew" : "Pin", { type: "button", className: "quiet" });
    button.dataset.keep = "";
    button.addEventListener("click", () => {
      store.pinned[address] = now;
      keep();
      show();
      since();
    });
    head.querySelector(".exports")?.append(" ", button);
    if (!then) return;
    const said = changes(then, now);
    head.append(element("p", `Since it was pinned on ${then.day}: ${said.length ? said.join("; ") : "nothing has changed"}.`, { className: "since" }));
  }
  function answered() {
    const head = result.querySelector(".headline[data-asked]"), whole = result.querySelector("[data-whole]");
    // an answer that came in two parts is kept as the second says it
    if (head && whole) Object.assign(head.dataset, whole.dataset);
    whole?.remove();
    if (!head || head.classList.contains("glance")) return;
    const { address, asked, verb, pin, usual } = head.dataset;
    if (usual === undefined) {
      const { title } = pin ? JSON.parse(pin) : {};
      store.recent = [{ address, asked, verb, title }, ...store.recent.filter((other) => other.address !== address)].slice(0, MOST);
      keep();
    }
    show();
    since();
  }
  document.addEventListener("htmx:after:swap", (event) => { if (event.target === result || ["ask", "cheaper"].includes(event.target.id)) answered(); });
  // another page of this browser has kept something
  addEventListener("storage", (event) => {
    if (event.key !== "kept") return;
    read();
    show();
    since();
  });
  show();
  answered();
})();
