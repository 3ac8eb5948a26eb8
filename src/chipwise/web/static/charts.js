// Draws every [data-spec] with Vega-Lite; no eval: expressions are interpreted. Exports and selections.
(() => {
  "use strict";
  const views = new Map();
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // ---- what is written in a picture fits its room: names of bars in lines, legends in columns, titles of axes in lines
  const LETTER = 6.7;
  function wrapped(text, most) {
    const lines = [""];
    for (const word of text.split(/(?<=[ -])(?!%)/)) {
      if (lines.at(-1) && (lines.at(-1) + word).trimEnd().length > most) lines.push("");
      lines[lines.length - 1] += word;
    }
    return lines.map((line) => line.trimEnd());
  }
  function legible(spec, room) {
    const parts = [spec, ...(spec.layer ?? [])], rows = parts.flatMap((part) => part.data?.values ?? []);
    const names = (field) => [...new Set(rows.map((row) => row[field]).filter((value) => typeof value === "string"))];
    let longest = 0, titled = false;
    // among plans to choose from, the intervals of those that another plan beats are left to the table
    if (rows.some((row) => "on_front" in row)) {
      for (const part of parts) if (part.mark?.type === "rule") part.transform = [...(part.transform ?? []), { filter: "datum.on_front" }];
    }
    if (typeof spec.title?.text === "string") spec.title.text = wrapped(spec.title.text, Math.floor((room - 90) / 6.2));
    for (const { x, y, color, shape } of parts.map((part) => part.encoding ?? {})) {
      if (y?.field && y.type === "nominal") {
        const most = Math.floor((room < 420 ? 105 : y.axis?.labelLimit ?? 180) / LETTER);
        // what a long name says in brackets stands in its tooltip
        const lines = Object.fromEntries(names(y.field).map((name) => [name, wrapped(name.length > 2 * most ? name.replace(/ \(.*\)$/, "") : name, most)]));
        const high = Math.max(1, ...Object.values(lines).map((found) => found.length));
        y.axis = { ...y.axis, labelLimit: 0, labelLineHeight: 12, labelExpr: `(${JSON.stringify(lines)})[datum.label]` };
        if (spec.height?.step) spec.height.step = Math.max(spec.height.step, 12 * high + 8);
        // behind the longest bar its figure has room
        const inner = room - LETTER * Math.max(0, ...Object.values(lines).flat().map((line) => line.length)) - 20;
        for (const { encoding } of parts) {
          const x = encoding?.x;
          if (!(x?.scale?.domainMax > 0)) continue;
          x.scale.domainMax = Math.max(x.scale.domainMax, Math.max(...rows.map((row) => row.high ?? 0)) * inner / Math.max(20, inner - 36));
          if (inner < 150) x.axis = { ...x.axis, tickCount: 2 };
        }
      }
      if (typeof x?.title === "string") {
        const lines = wrapped(x.title, Math.floor((room - 90) / 6.2));
        // layers share their axis, and their titles would be joined
        if (lines.length > 1) x.title = titled ? "" : lines;
        titled ||= lines.length > 1;
      }
      for (const key of [color, shape]) {
        if (key?.field && key.legend !== null) longest = Math.max(longest, ...(key.scale?.domain ?? names(key.field)).map((name) => String(name).length));
      }
    }
    return Math.max(1, Math.floor((room - 80) / (longest * 6.6 + 30)));
  }
  // of names that would lie on each other the first stays, and none that would be cut; figures that were pinned are asked for
  function untangled(picture) {
    const box = (text) => text.getBoundingClientRect(), { left, right } = picture.getBoundingClientRect();
    const kept = [...picture.querySelectorAll(".role-axis-label text")].map(box);
    const points = [...picture.querySelectorAll(".mark-symbol.role-mark path")].map(box).map((b) => [(b.left + b.right) / 2, (b.top + b.bottom) / 2]);
    for (const text of picture.querySelectorAll(".mark-text.role-mark text")) {
      text.style.visibility = "";
      if (text.querySelector("tspan")) continue;
      const own = box(text);
      const met = (other) => own.left < other.right - 1 && own.right > other.left + 1 && own.top < other.bottom - 3 && own.bottom > other.top + 3;
      const covers = ([x, y]) => x > own.left - 3 && x < own.right + 3 && y > own.top + 2 && y < own.bottom - 2;
      if (own.left < left - 1 || own.right > right + 1 || kept.some(met) || points.some(covers)) text.style.visibility = "hidden";
      else kept.push(own);
    }
  }

  function config(columns) {
    const ink = css("--ink"), soft = css("--soft"), line = css("--line"), font = css("--font");
    return {
      background: "transparent",
      font,
      axis: {
        labelColor: soft, titleColor: soft, titleFontWeight: 500, titleFontSize: 11.5, labelFontSize: 11,
        gridColor: line, gridOpacity: 0.5, domainColor: line, tickColor: line, titlePadding: 8,
      },
      legend: { labelColor: ink, titleColor: soft, labelFontSize: 11.5, symbolSize: 70, padding: 0, offset: 8, columnPadding: 14, labelLimit: 0, columns },
      view: { stroke: null },
      text: { fill: ink },
      rule: { stroke: ink },
      tick: { color: ink },
      title: { anchor: "start", frame: "group", color: soft, fontSize: 11.5, fontWeight: 400, offset: 8 },
      point: { strokeWidth: 1 },
    };
  }

  // Vega's own tooltip brings a style sheet of its own; this one uses the page's.
  let box = null;
  function tooltip(_, event, item, value) {
    box ??= document.body.appendChild(Object.assign(document.createElement("div"), { className: "tooltip" }));
    box.setAttribute("aria-hidden", "true");
    if (value == null || value === "") { box.classList.remove("shown"); return; }
    box.replaceChildren();
    const pairs = typeof value === "object" ? Object.entries(value) : [["", value]];
    for (const [name, shown] of pairs) {
      const row = box.appendChild(document.createElement("div"));
      row.appendChild(document.createElement("span")).textContent = name;
      row.appendChild(document.createElement("b")).textContent = brief(shown);
    }
    box.classList.add("shown");
    const gap = 14, wide = box.offsetWidth, high = box.offsetHeight;
    const x = event.clientX + gap + wide > innerWidth ? event.clientX - gap - wide : event.clientX + gap;
    const y = event.clientY + gap + high > innerHeight ? event.clientY - gap - high : event.clientY + gap;
    box.style.left = `${Math.max(4, x)}px`;
    box.style.top = `${Math.max(4, y)}px`;
  }
  function brief(value) {
    const number = typeof value === "number" ? value : Number(String(value).replaceAll(",", "").replace("−", "-"));
    if (value === "" || !Number.isFinite(number)) return String(value);
    const size = Math.abs(number);
    if (size >= 1e6) {
      for (const [step, suffix] of [[1e15, " P"], [1e12, " T"], [1e9, " G"], [1e6, " M"]]) {
        if (size >= step) return (number / step).toPrecision(3) + suffix;
      }
    }
    return size >= 1000 ? Math.round(number).toLocaleString("en") : String(Number(number.toPrecision(3)));
  }

  // its warnings are about sizes that it settles by itself
  const logger = { level: () => logger, warn: () => logger, info: () => logger, debug: () => logger, error: (...what) => { console.error(...what); return logger; } };

  // the one colour that differs between light and dark is put in
  const specOf = (figure) => JSON.parse(figure.dataset.spec.replaceAll("#0f8a80", css("--accent")));
  async function draw(figure) {
    const plot = figure.querySelector(".plot");
    views.get(figure)?.finalize();
    plot.replaceChildren();
    const spec = specOf(figure);
    const room = plot.clientWidth || 600, columns = legible(spec, room);
    // a number, as Vega would follow every resizing by itself and write again what was taken out
    Object.assign(spec, { width: room, autosize: { type: "fit-x", contains: "padding" } });
    const compiled = vegaLite.compile(spec, { config: config(columns), logger }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), {
      expr: vegaInterpreter.expressionInterpreter,
      renderer: "svg",
      container: plot,
      hover: true,
      logLevel: vega.Error,
    });
    view.tooltip(tooltip);
    views.set(figure, view);
    listen(figure, view);
    await view.runAsync();
    const picture = plot.querySelector("svg");
    if (picture) untangled(picture);
    picture?.setAttribute("role", "img");
    picture?.setAttribute("aria-label", spec.description);
    picture?.removeAttribute("aria-roledescription");
    // one picture with one name: its marks are read in the table beside it
    picture?.querySelectorAll("[role]").forEach((mark) => mark.removeAttribute("role"));
    picture?.querySelectorAll("[aria-label],[aria-roledescription]").forEach((mark) => {
      mark.removeAttribute("aria-label");
      mark.removeAttribute("aria-roledescription");
    });
    figure.dataset.drawn = "true";
  }

  // A picked point opens its plan; a brush marks rows; names find room anew where both axes move.
  function listen(figure, view) {
    const signals = view.getState().signals ?? {}, picture = () => figure.querySelector(".plot svg");
    for (const name of ["zoom", "shown"]) {
      if (name in signals) view.addSignalListener(name, () => requestAnimationFrame(() => picture() && untangled(picture())));
    }
    if ("pick" in signals) {
      view.addSignalListener("pick", (_, value) => {
        const rank = value?.rank?.[0];
        if (rank != null) document.querySelector(`tr[data-rank="${Number(rank)}"] a.pick`)?.click();
      });
    }
    if ("brush" in signals) {
      view.addSignalListener("brush", (_, value) => {
        const spans = value && Object.keys(value).length ? value : null;
        const data = JSON.parse(figure.dataset.spec).data.values;
        for (const row of document.querySelectorAll("tr[data-rank]")) {
          const point = data.find((d) => d.rank === Number(row.dataset.rank));
          const inside = spans && point && Object.entries(spans).every(([name, ends]) => {
            const low = Math.min(...ends), high = Math.max(...ends);
            return point[name] >= low && point[name] <= high;
          });
          row.classList.toggle("brushed", Boolean(inside));
        }
      });
    }
  }

  function fail(figure, error) {
    figure.dataset.drawn = "true";
    figure.querySelector(".plot").textContent = "This chart could not be drawn; its figures are in the table and in JSON.";
    console.error(error);
  }
  // words and tables are on the screen before the first picture is drawn, and between two pictures the page answers
  const waiting = [];
  const onScreen = () => new Promise((done) => (document.hidden ? setTimeout(done) : requestAnimationFrame(() => setTimeout(done))));
  async function queue(figures) {
    for (const figure of figures) {
      figure.dataset.drawn = "soon";
      if (!views.has(figure)) figure.querySelector(".plot").style.minHeight = `${(Number(JSON.parse(figure.dataset.spec).height) || 0) + 60}px`;
    }
    waiting.push(...figures);
    if (waiting.length > figures.length) return;  // somebody draws already
    while (waiting.length) {
      await onScreen();
      const figure = waiting[0];
      // one that is folded away has no width yet
      if (figure.isConnected && !figure.querySelector(".plot").clientWidth) delete figure.dataset.drawn;
      else if (figure.isConnected) await draw(figure).catch((error) => fail(figure, error));
      waiting.shift();
    }
  }
  function drawAll(root) {
    const found = [...root.querySelectorAll?.("[data-spec]:not([data-drawn])") ?? []];
    if (root.matches?.("[data-spec]:not([data-drawn])")) found.push(root);
    if (found.length) queue(found);
  }
  document.addEventListener("toggle", (event) => { if (event.target.open) drawAll(event.target); }, true);
  function redraw() {
    for (const [figure, view] of views) if (!figure.isConnected) { view.finalize(); views.delete(figure); }
    queue([...views.keys()]);
  }

  function hand(address, name) {
    const anchor = document.createElement("a");
    anchor.href = address;
    anchor.download = name;
    anchor.click();
  }
  // What leaves the page says what it is, what was asked, when and of whom.
  function headed(figure) {
    const title = figure.querySelector(".title").textContent;
    return { title, lines: [figure.dataset.asked, `answered ${figure.dataset.made}; figures are estimates with 80 % intervals`].filter(Boolean) };
  }
  function cut(text, most) {
    return text.length > most ? `${text.slice(0, most - 1)}…` : text;
  }
  async function picture(figure, kind) {
    const plot = figure.querySelector(".plot"), { title, lines } = headed(figure);
    const wide = Math.max(plot.clientWidth, 560), letters = Math.floor(wide / 6.2);
    const found = specOf(figure), columns = legible(found, wide);
    const spec = {
      ...found, width: wide - 150, padding: 14,
      title: { text: title, subtitle: [...lines, ...[found.title?.text ?? []].flat()].map((line) => cut(line, letters)), anchor: "start", frame: "group", color: css("--ink"),
        subtitleColor: css("--soft"), fontSize: 14, fontWeight: 600, subtitleFontSize: 11, offset: 12 },
    };
    const compiled = vegaLite.compile(spec, { config: { ...config(columns), background: css("--card") }, logger }).spec;
    const view = new vega.View(vega.parse(compiled, null, { ast: true }), { expr: vegaInterpreter.expressionInterpreter, renderer: "none", logLevel: vega.Error });
    await view.runAsync();
    const drawn = kind === "png" ? await view.toImageURL("png", 2) : await view.toSVG();
    view.finalize();
    return drawn;
  }
  const escaped = (text) => text.replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
  function paged(figure, svg) {
    const { title, lines } = headed(figure);
    const words = JSON.parse(figure.dataset.spec).description ?? "";
    return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>${escaped(title)}</title></head><body>${svg}<p>${escaped(words)}</p><p>${lines.map(escaped).join("<br>")}</p></body></html>`;
  }
  function canvasPicture(figure, canvas) {
    const { title, lines } = headed(figure), ratio = devicePixelRatio || 1, high = 62 * ratio;
    const sheet = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height + high });
    const c = sheet.getContext("2d");
    c.fillStyle = css("--card");
    c.fillRect(0, 0, sheet.width, sheet.height);
    c.drawImage(canvas, 0, high);
    c.fillStyle = css("--ink");
    c.font = `600 ${14 * ratio}px ${css("--font")}`;
    c.fillText(title, 8 * ratio, 18 * ratio);
    c.font = `${11 * ratio}px ${css("--font")}`;
    lines.forEach((line, i) => c.fillText(line, 8 * ratio, (36 + 16 * i) * ratio));
    return sheet.toDataURL("image/png");
  }
  function asText(text, type, name) {
    const address = URL.createObjectURL(new Blob([text], { type }));
    hand(address, name);
    setTimeout(() => URL.revokeObjectURL(address), 1000);
  }
  async function save(figure, kind) {
    const name = `chipwise-${figure.dataset.chart}.${kind}`;
    const canvas = figure.querySelector("canvas");
    if (canvas) { hand(canvasPicture(figure, canvas), name); return; }
    const drawn = await picture(figure, kind);
    if (kind === "png") hand(drawn, name);
    else if (kind === "svg") asText(drawn, "image/svg+xml", name);
    else asText(paged(figure, drawn), "text/html", name);
  }

  // the wheel moves the page until somebody has clicked into a picture that it zooms; a pinch zooms at once
  let entered = null;
  addEventListener("pointerdown", (event) => { entered = event.target.closest?.("[data-spec]") ?? null; }, true);
  addEventListener("wheel", (event) => {
    const figure = event.target.closest?.("[data-spec]");
    if (figure && figure !== entered && !event.ctrlKey) event.stopPropagation();
  }, { capture: true, passive: true });

  const menus = () => document.querySelectorAll("details.save[open]");
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") for (const menu of menus()) { menu.open = false; menu.querySelector("summary").focus(); }
  });
  document.addEventListener("click", (event) => {
    for (const menu of menus()) if (!event.target.closest?.("summary") || !menu.contains(event.target)) menu.open = false;
    const variant = event.target.closest?.("[data-variant]"), switched = variant?.closest("figure");
    if (switched) {
      switched.dataset.spec = JSON.stringify(JSON.parse(switched.dataset.variants)[variant.dataset.variant]);
      for (const other of switched.querySelectorAll("[data-variant]")) other.setAttribute("aria-pressed", String(other === variant));
      switched.querySelector("figcaption details p").textContent = JSON.parse(switched.dataset.spec).description;
      queue([switched]);
    }
    const button = event.target.closest?.("[data-export]");
    if (button) save(button.closest("figure"), button.dataset.export).catch((error) => console.error(error));
  });
  document.addEventListener("themechange", redraw);
  let wide = innerWidth, resized = 0;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; clearTimeout(resized); resized = setTimeout(redraw, 120); } });
  drawAll(document);
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === 1) drawAll(node);
  }).observe(document.body, { childList: true, subtree: true });
})();
