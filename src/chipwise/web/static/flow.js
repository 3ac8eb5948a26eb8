// A product on the move: rows through a systolic array, tiles over the units of a GPU. Every count on the picture
// (folds, cycles, tiles, waves) is the cost model's; only the pace is the picture's own.
(() => {
  "use strict";
  const SECONDS = 12;
  const COLORS = { compute: "#e08e0b", memory: "#2f86c8", done: "#10a37f" };
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const whole = (x) => Math.round(x).toLocaleString("en");
  const some = (x, name) => `${whole(x)} ${name}${Math.round(x) === 1 ? "" : "s"}`;
  const clamp = (x) => Math.min(1, Math.max(0, x));

  function pen(canvas, high) {
    const wide = Math.max(260, canvas.parentElement.clientWidth);
    const ratio = devicePixelRatio || 1;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    const c = canvas.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, wide, high);
    c.font = `11.5px ${css("--font")}`;
    c.textBaseline = "alphabetic";
    return { c, wide, high, ink: css("--ink"), soft: css("--soft"), line: css("--line") };
  }
  function label(p, text, x, y, align = "left") {
    p.c.fillStyle = p.soft;
    p.c.textAlign = align;
    p.c.fillText(text, x, y);
  }

  // ---- systolic array: load weights, rows enter aslant, sums leave at the bottom
  function stages(d) {
    const order = [["load", d.load_cycles, 0.14], ["fill", d.fill_cycles, 0.2], ["stream", d.stream_cycles + d.stall_cycles, 0.46], ["drain", d.drain_cycles, 0.2]];
    const kept = order.filter(([, cycles]) => cycles > 0);
    const sum = kept.reduce((a, [, , share]) => a + share, 0);
    let at = 0, cycle = 0;
    return kept.map(([name, cycles, share]) => {
      const stage = { name, cycles, from: at, to: at + share / sum, cycle };
      at = stage.to;
      cycle += cycles;
      return stage;
    });
  }
  function array(canvas, d, u) {
    const p = pen(canvas, 330), c = p.c;
    const n = Math.min(16, d.array_rows, d.array_cols);
    const parts = stages(d);
    const now = parts.find((s) => u <= s.to) ?? parts[parts.length - 1];
    const s = clamp((u - now.from) / (now.to - now.from));
    const loaded = now.name === "load" ? s : 1;
    const head = now.name === "load" ? -1 : now.name === "fill" ? s * 2 * n : now.name === "stream" ? 2 * n + s * 7 * n : 9 * n + s * 2 * n;
    const tail = now.name === "drain" ? s * 2 * n : -1;
    const small = p.wide < 430;
    const side = small ? 150 : 190, size = side / n, x0 = small ? 70 : 96, y0 = 48;
    label(p, `array ${d.array_rows} × ${d.array_cols}, holds ${d.holds}`, x0, 18);
    // a product smaller than the array leaves cells without work
    const down = d.holds === "weights" ? d.k : d.m;
    const used = { rows: Math.ceil(n * Math.min(1, down / d.array_rows)), cols: Math.ceil(n * Math.min(1, d.n / d.array_cols)) };
    label(p, "rows of A", 4, y0 + 12);
    label(p, "enter", 4, y0 + 27);
    for (let r = 0; r < n; r++) {
      for (let k = 0; k < n; k++) {
        const x = x0 + k * size, y = y0 + r * size, turn = head - r - k;
        c.fillStyle = p.line;
        c.fillRect(x + 0.5, y + 0.5, size - 1, size - 1);
        if (r >= used.rows || k >= used.cols) continue;
        if (turn >= 0 && r + k >= tail) {
          c.globalAlpha = [0.95, 0.7, 0.48][Math.floor(turn / 2) % 3];
          c.fillStyle = COLORS.memory;
          c.fillRect(x + 0.5, y + 0.5, size - 1, size - 1);
          c.globalAlpha = 1;
        }
        if (r < loaded * n) {
          c.fillStyle = COLORS.compute;
          c.fillRect(x + size * 0.34, y + size * 0.34, size * 0.32, size * 0.32);
        }
      }
      // what is about to enter this row: one step later than the row above
      for (let j = 1; j <= 4; j++) {
        const turn = head + j - r;
        if (now.name === "load" || now.name === "drain" || turn < 0 || r >= used.rows) continue;
        c.globalAlpha = 0.75 - j * 0.14;
        c.fillStyle = COLORS.memory;
        c.fillRect(x0 - 4 - j * size * 0.8 + (head % 1) * size * 0.8, y0 + r * size + size * 0.25, size * 0.5, size * 0.5);
        c.globalAlpha = 1;
      }
    }
    for (let k = 0; k < used.cols; k++) {
      for (let j = 0; j < 3; j++) {
        const turn = head - n - k - j;
        if (turn < 0 || (tail >= 0 && n + k + j < tail)) continue;
        c.globalAlpha = 0.9 - j * 0.25;
        c.fillStyle = COLORS.done;
        c.fillRect(x0 + k * size + size * 0.25, y0 + side + 4 + (j + (head % 1)) * size * 0.75, size * 0.5, size * 0.5);
        c.globalAlpha = 1;
      }
    }
    label(p, "sums leave for C", x0, y0 + side + 52);
    if (now.name === "load") label(p, "weights come in", x0, y0 - 10);

    // the folds of W, one pass of the array each
    const rows = Math.min(32, d.fold_rows), cols = Math.min(32, d.fold_cols);
    const mx = x0 + side + (small ? 22 : 44), room = p.wide - mx - 6;
    const cell = Math.max(2, Math.min(14, room / cols, 170 / rows));
    const done = now.name === "stream" ? s : now.name === "drain" ? 1 : 0;
    const live = Math.min(rows * cols - 1, Math.floor(done * rows * cols));
    label(p, small ? `folds of ${d.holds === "weights" ? "W" : "C"}` : `${whole(d.fold_rows)} × ${some(d.fold_cols, "fold")} of ${d.holds === "weights" ? "W" : "C"}`, mx, y0 - 10);
    for (let i = 0; i < rows * cols; i++) {
      const x = mx + (i % cols) * cell, y = y0 + Math.floor(i / cols) * cell;
      c.globalAlpha = i < live ? 0.75 : 1;
      c.fillStyle = i < live || now.name === "drain" ? COLORS.done : i === live && now.name !== "load" ? COLORS.compute : p.line;
      c.fillRect(x, y, Math.max(1, cell - 1), Math.max(1, cell - 1));
      c.globalAlpha = 1;
    }
    const cycle = now.cycle + s * now.cycles, all = parts.reduce((a, b) => a + b.cycles, 0);
    bar(p, parts.map((x) => [x.name, x.cycles, { load: COLORS.compute, fill: "#6cc0ee", stream: COLORS.memory, drain: COLORS.done }[x.name]]), cycle / all, 296);
    const fold = Math.min(d.passes, 1 + Math.floor(done * d.passes));
    const said = {
      load: `Loading: the first weights move down into the cells, ${whole(now.cycles)} cycles. Later ones come in behind the work.`,
      fill: `Filling: row by row enters one step later, until the last corner works, ${whole(now.cycles)} cycles.`,
      stream: `Streaming: every cell multiplies and adds in every cycle; pass ${whole(fold)} of ${whole(d.passes)} on ${some(d.arrays, "array")}, ${some(d.m, "row")} each.`,
      drain: `Draining: the last sums still travel down, ${whole(now.cycles)} cycles.`,
    }[now.name];
    return `${said} Cycle ${whole(cycle)} of ${whole(all)}; ${(100 * d.utilization).toFixed(0)} % of the cells' work is useful.`;
  }

  // ---- GPU: tiles of C in waves over the units
  function tiles(canvas, d, u) {
    const p = pen(canvas, 330), c = p.c;
    const ny = Math.max(1, Math.ceil(d.m / d.tile_rows)), nx = Math.max(1, Math.ceil(d.n / d.tile_cols));
    const count = nx * ny, work = d.tiles * d.split_k, waves = Math.max(1, Math.ceil(work / d.units));
    const wave = Math.min(waves - 1, Math.floor(u * waves)), k = u >= 1 ? 1 : clamp(u * waves - wave);
    const small = p.wide < 430;
    const x0 = small ? 58 : 84, y0 = 62;
    const wide = Math.min(p.wide - x0 - 8, 420), high = 150;
    const sx = Math.min(nx, 64), sy = Math.min(ny, 40);
    const cw = Math.min(wide / sx, 40), ch = Math.min(high / sy, 26);
    const W = cw * sx, H = ch * sy;
    const first = Math.floor((wave * d.units) / d.split_k), last = Math.ceil(((wave + 1) * d.units) / d.split_k);
    const ty = Math.min(sy - 1, Math.floor((Math.floor(first / nx) % ny) * sy / ny)), tx = Math.floor((first % nx) * sx / nx);

    label(p, `C: ${whole(nx)} × ${some(ny, "tile")} of ${d.tile_rows} × ${d.tile_cols}`, x0, y0 + H + 16);
    // operands at the edges, with the slice of k that is being read
    c.fillStyle = p.line;
    c.fillRect(x0 - 44 + (small ? 8 : 0), y0, small ? 30 : 38, H);
    c.fillRect(x0, y0 - 36, W, 30);
    label(p, "A", 6, y0 + 14);
    label(p, "W", x0 - 16, y0 - 24);
    c.fillStyle = COLORS.memory;
    c.globalAlpha = 0.45;
    c.fillRect(x0 - 44 + (small ? 8 : 0), y0 + ty * ch, small ? 30 : 38, ch);
    c.fillRect(x0 + tx * cw, y0 - 36, cw, 30);
    c.globalAlpha = 1;
    const aw = small ? 30 : 38;
    c.fillRect(x0 - 44 + (small ? 8 : 0) + k * (aw - 4), y0 + ty * ch, 4, ch);
    c.fillRect(x0 + tx * cw, y0 - 36 + k * 26, cw, 4);
    for (let y = 0; y < sy; y++) {
      for (let x = 0; x < sx; x++) {
        const index = Math.floor((y * ny) / sy) * nx + Math.floor((x * nx) / sx);
        const px = x0 + x * cw, py = y0 + y * ch, gap = cw > 4 && ch > 4 ? 1 : 0.3;
        c.fillStyle = p.line;
        c.fillRect(px, py, cw - gap, ch - gap);
        if (index < first || u >= 1) {
          c.globalAlpha = Math.floor((index * d.split_k) / d.units) % 2 ? 0.85 : 0.6;
          c.fillStyle = COLORS.done;
          c.fillRect(px, py, cw - gap, ch - gap);
        } else if (index < last) {
          c.globalAlpha = 0.9;
          c.fillStyle = COLORS.compute;
          c.fillRect(px, py + (1 - k) * (ch - gap), cw - gap, k * (ch - gap));
        }
        c.globalAlpha = 1;
      }
    }
    // units: which are at work in this wave
    const busy = Math.max(0, Math.min(d.units, work - wave * d.units));
    const per = Math.ceil(d.units / 4), uy = y0 + H + 28, us = Math.min(9, (p.wide - 12) / per);
    for (let i = 0; i < d.units; i++) {
      c.fillStyle = i < busy && u < 1 ? COLORS.compute : p.line;
      c.fillRect(6 + (i % per) * us, uy + Math.floor(i / per) * us, us - 1.5, us - 1.5);
    }
    label(p, `${whole(busy)} of ${whole(d.units)} ${d.unit} at work`, Math.min(12 + per * us, p.wide - 150), uy + (12 + per * us > p.wide - 150 ? 4 * us + 13 : 14));
    bar(p, Array.from({ length: Math.min(waves, 60) }, (_, i) => [waves <= 8 ? `wave ${i + 1}` : "", 1, i % 2 ? "#7fb0d8" : COLORS.memory]), u, 296);
    const slices = d.split_k > 1 ? `, each cut into ${d.split_k} slices of k` : "";
    const idle = busy < d.units ? ` ${some(d.units - busy, "unit")} left without work.` : "";
    return `Wave ${wave + 1} of ${whole(waves)}: ${some(busy, "unit")} with a tile each${slices}; operands come in steps of k.${idle} ${some(count, "tile")} in ${d.waves.toFixed(2)} waves, tiles ${(100 * d.tile_fill).toFixed(0)} % full.`;
  }

  function bar(p, parts, at, y) {
    const c = p.c, x0 = 6, wide = p.wide - 12, all = parts.reduce((a, [, size]) => a + size, 0) || 1;
    let x = x0;
    for (const [name, size, color] of parts) {
      const w = (size / all) * wide;
      c.fillStyle = color;
      c.globalAlpha = 0.75;
      c.fillRect(x, y, Math.max(1, w - 0.5), 9);
      c.globalAlpha = 1;
      if (name && w > c.measureText(name).width + 8) label(p, name, x + 2, y + 23);
      x += w;
    }
    c.fillStyle = p.ink;
    c.fillRect(x0 + clamp(at) * wide - 1, y - 4, 2, 17);
  }

  function start(figure) {
    figure.dataset.drawn = "true";
    const d = JSON.parse(figure.dataset.flow);
    const canvas = figure.querySelector("canvas"), button = figure.querySelector("button[data-play]");
    const slider = figure.querySelector("input"), phase = figure.querySelector(".phase");
    const paint = d.kind === "array" ? array : tiles;
    const still = matchMedia("(prefers-reduced-motion: reduce)");
    let playing = !still.matches, u = still.matches ? 0.45 : 0, before = 0;
    function show() {
      phase.textContent = paint(canvas, d, u);
      slider.value = String(Math.round(u * 1000));
      slider.setAttribute("aria-valuetext", `${Math.round(u * 100)} %`);
      button.textContent = playing ? "Pause" : "Play";
    }
    function step(time) {
      if (!figure.isConnected) return;
      if (playing) {
        if (before && document.visibilityState === "visible") u += (time - before) / 1000 / SECONDS;
        if (u >= 1.06) u = 0;
        before = time;
        const kept = u;
        u = Math.min(1, u);
        show();
        u = kept;
        requestAnimationFrame(step);
      }
    }
    function play(on) {
      playing = on;
      before = 0;
      if (on && u >= 1) u = 0;
      show();
      if (on) requestAnimationFrame(step);
    }
    button.addEventListener("click", () => play(!playing));
    slider.addEventListener("input", () => { play(false); u = Number(slider.value) / 1000; show(); });
    document.addEventListener("themechange", () => figure.isConnected && show());
    addEventListener("resize", () => figure.isConnected && show());
    still.addEventListener("change", () => still.matches && play(false));
    play(playing);
  }
  function startAll(root) {
    const found = [...root.querySelectorAll?.("[data-flow]:not([data-drawn])") ?? []];
    found.forEach(start);
  }
  startAll(document);
  new MutationObserver((changes) => {
    for (const change of changes) for (const node of change.addedNodes) if (node.nodeType === 1) startAll(node);
  }).observe(document.body, { childList: true, subtree: true });
})();
