// The form: it shows the fields that apply, has sliders whose answer follows them, and takes what is pasted.
(() => {
  "use strict";
  const form = document.getElementById("ask");
  if (!form) return;
  const result = document.getElementById("result");
  const field = (name) => form.elements.namedItem(name);
  const changed = (input) => input.dispatchEvent(new Event("input", { bubbles: true }));

  // ---- fields follow the question: those that do not apply are not shown, and not sent
  const plainly = (name) => name.toLowerCase().replace(/[^a-z0-9.]/g, "");
  const generators = new Set([...document.querySelectorAll("#models option[data-kind=media]")].map((o) => plainly(o.value)));
  function kind() {
    const model = (field("model")?.value ?? "").trim().toLowerCase();
    return generators.has(plainly(model)) || generators.has(plainly(model.split("/").pop())) || model.startsWith("macs:") || (model.startsWith("{") && model.includes('"_class_name"')) ? "media" : "tokens";
  }
  function valueOf(name) {
    if (name === "kind") return kind();
    const input = field(name);
    return input?.type === "checkbox" ? String(input.checked) : (input?.value ?? "").trim();
  }
  function follow() {
    for (const place of form.querySelectorAll("[data-when]")) {
      const when = Object.entries(JSON.parse(place.dataset.when));
      const applies = when.every(([name, values]) => values.includes("*") ? valueOf(name) !== "" : values.includes(valueOf(name)));
      place.hidden = !applies;
      place.querySelectorAll("input, select, textarea").forEach((input) => { input.disabled = !applies; });
    }
    for (const group of form.querySelectorAll("fieldset")) {
      group.hidden = [...group.querySelectorAll(".field")].every((place) => place.hidden);
    }
  }

  // ---- sliders: one scale from least to most, evenly spaced in factors; the text is what is asked
  const SUFFIX = { k: 1e3, m: 1e6, g: 1e9 };
  function read(text, unit) {
    const found = text.trim().toLowerCase().match(/^([\d.]+(?:e[+-]?\d+)?)\s*([a-zµ/]*)$/);
    if (!found) return NaN;
    const number = Number(found[1]), said = found[2];
    const seconds = { ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60 };
    if (unit === "s" || unit === "ms") return said in seconds ? number * seconds[said] / seconds[unit] : NaN;
    if (unit === "/s") return number / ({ "": 1, "/s": 1, "/min": 60, "/h": 3600 }[said] ?? NaN);
    return said === "" ? number : said in SUFFIX && !unit ? number * SUFFIX[said] : NaN;
  }
  function write(value, unit) {
    if (unit === "s" && value < 1) return `${Number((value * 1000).toPrecision(2))}ms`;
    return `${Number(value.toPrecision(2))}${unit}`;
  }
  function place(slide) {
    const { low, high, unit } = slide.dataset, input = field(slide.dataset.slide);
    const value = read(input.value || input.placeholder, unit);
    slide.classList.toggle("unset", !Number.isFinite(value));
    const at = Number.isFinite(value) ? Math.log(value / low) / Math.log(high / low) : 0.5;
    slide.value = String(Math.round(1000 * Math.min(1, Math.max(0, at))));
    slide.setAttribute("aria-valuetext", input.value || input.placeholder || "not set");
  }
  const slides = [...form.querySelectorAll("[data-slide]")];
  for (const slide of slides) {
    const { low, high, unit } = slide.dataset, input = field(slide.dataset.slide);
    slide.hidden = false;
    slide.addEventListener("input", (event) => {
      event.stopPropagation();
      const value = low * (high / low) ** (slide.value / 1000);
      input.value = write(unit || value < 10 ? value : Math.round(value), unit);
      slide.classList.remove("unset");
      slide.setAttribute("aria-valuetext", input.value);
      changed(input);
      glanceSoon();
    });
    slide.addEventListener("change", () => { stopGlance(); form.requestSubmit(); });
    input.addEventListener("input", () => { if (document.activeElement !== slide) place(slide); });
  }
  slides.forEach(place);

  // ---- an answer that follows a slider: of the chips on the screen; the whole one comes when it is let go. The same
  // stands in for the whole one while that is worked out
  const WAIT_MS = 50;
  let asking = null, soon = 0, glanced = "";
  function stopGlance() {
    clearTimeout(soon);
    asking?.abort();
    asking = null;
  }
  function glanceSoon() {
    clearTimeout(soon);
    soon = setTimeout(() => glance(), WAIT_MS);
  }
  async function glance(early = false) {
    const shown = result?.querySelector(".headline");
    if (!shown || !form.checkValidity()) return;
    const given = new URLSearchParams([...new FormData(form)].filter(([, value]) => String(value).trim()));
    if (early && (!shown.dataset.top || glanced === String(given))) return;
    asking?.abort();
    const mine = asking = new AbortController();
    const started = performance.now();
    try {
      const answer = await fetch(`${form.getAttribute("action")}?${given}`, {
        headers: { "HX-Request": "true", "Chipwise-Glance": shown.dataset.top ?? "" }, signal: mine.signal,
      });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (asking !== mine) return;
      const now = result.querySelector(".headline"), fresh = page.querySelector(early ? ".headline" : ".headline, .problem");
      if (!now || !fresh) return;
      glanced = String(given);
      fresh.classList.add("glance", "headline");
      fresh.classList.toggle("early", early);
      fresh.dataset.top = now.dataset.top ?? "";
      fresh.querySelector(".exports")?.remove();
      now.replaceWith(document.adoptNode(fresh));
      result.classList.add("glancing");
      result.dataset.glanceMs = String(Math.round(performance.now() - started));
      document.dispatchEvent(new CustomEvent("glance"));
    } catch (error) {
      if (error.name !== "AbortError") console.error(error);
    }
  }
  document.addEventListener("htmx:after:swap", (event) => {
    if (event.target === result || event.target === form) stopGlance();
    if (!result?.querySelector(".headline.glance")) result?.classList.remove("glancing");
  });

  form.addEventListener("input", follow);
  form.addEventListener("change", follow);
  form.addEventListener("submit", () => { stopGlance(); glance(true); });
  form.addEventListener("htmx:abort", stopGlance);
  follow();

  // ---- a model of one's own stands in the form by its kind and size, not as the text that it is
  function briefly(config) {
    const kind = config.model_type ?? config.architecture ?? config["general.architecture"] ?? config._class_name ?? "a configuration";
    const within = config.text_config ?? config, of = (plain, key) => within[plain] ?? config[`${kind}.${key}`];
    const layers = of("num_hidden_layers", "block_count"), width = of("hidden_size", "embedding_length");
    return `${kind}${layers ? `, ${layers} layers` : ""}${width ? ` of ${width}` : ""}`;
  }
  const own = form.querySelector(".own");
  function ownShown() {
    const model = field("model");
    if (!own || !model) return;
    let text = "";
    if (model.value.trim().startsWith("{")) {
      try { text = briefly(JSON.parse(model.value)); } catch { /* shown as it stands */ }
    }
    own.hidden = !text;
    model.classList.toggle("replaced", Boolean(text));
    own.querySelector("b").textContent = text;
  }
  own?.querySelector("button").addEventListener("click", () => {
    field("model").value = "";
    changed(field("model"));
    field("model").focus();
  });
  form.addEventListener("input", ownShown);
  ownShown();

  // ---- what is pasted or dropped becomes a field: a configuration of a model, a table of chips. A file and what is
  // pasted is asked about at once
  const takes = {
    model(text, said) {
      if (/^(macs|transformer):/.test(text.trim())) {
        field("model").value = text.trim();
        said.textContent = "loaded";
        changed(field("model"));
        return true;
      }
      try {
        const config = JSON.parse(text);
        if (typeof config !== "object" || config === null || Array.isArray(config)) throw new Error("no object");
        field("model").value = JSON.stringify(config);
        said.textContent = `${briefly(config)} loaded`;
        changed(field("model"));
        return true;
      } catch {
        said.textContent = text.trim() ? "this is not the JSON of a configuration" : "";
        return false;
      }
    },
    own_chips(text, said) {
      const names = [...text.matchAll(/^\s*\[([a-z0-9.+-]+)\]\s*$/gm)].map((found) => found[1]).filter((name) => name !== "sources");
      const chips = field("chips") ?? field("chip");
      said.textContent = names.length ? `${names.join(", ")}: included when you submit` : text.trim() ? "no table of a chip, as in [my-chip], stands in this text" : "";
      if (!names.length || !chips) return false;
      if (chips.name === "chip") chips.value = names[0];
      else chips.value = [...new Set([...chips.value.split(",").map((name) => name.trim()).filter(Boolean), ...names])].join(",");
      changed(chips);
      return true;
    },
  };
  // ---- the header of a GGUF file (ggml-org/ggml, docs/gguf.md, version 2 and 3): the keys that say the model's sizes,
  // of a long array the length. The file stays here: what is asked are these keys. Bounds as in catalog/headers.py
  const HEADER = 64 * 2 ** 20;
  const MOST_ITEMS = 5_000_000, MOST_ENTRIES = 200_000, MOST_KEPT = 10_000, MOST_DIMENSIONS = 8, MOST_LETTERS = 120;
  const GENERAL = ["general.architecture", "general.name", "general.file_type", "tokenizer.ggml.tokens", "split.count"];
  const SIZES = [
    "embedding_length", "block_count", "attention.head_count", "attention.head_count_kv", "attention.key_length",
    "attention.sliding_window", "feed_forward_length", "context_length", "expert_count", "expert_used_count",
    "expert_feed_forward_length", "expert_shared_feed_forward_length", "vocab_size", "leading_dense_block_count",
    "expert_shared_count", "attention.q_lora_rank", "attention.kv_lora_rank", "attention.value_length",
    "attention.key_length_mla", "attention.value_length_mla", "rope.dimension_count", "nextn_predict_layers",
    "interleave_moe_layer_step",
  ];
  const TEXT = 8, ARRAY = 9;
  const NUMBERS = {
    0: ["getUint8", 1], 1: ["getInt8", 1], 2: ["getUint16", 2], 3: ["getInt16", 2], 4: ["getUint32", 4], 5: ["getInt32", 4],
    6: ["getFloat32", 4], 7: ["getUint8", 1], 10: ["getBigUint64", 8], 11: ["getBigInt64", 8], 12: ["getFloat64", 8],
  };
  function header(buffer) {
    const view = new DataView(buffer), letters = new TextDecoder();
    let at = 4, kept = 0;
    function number(kind) {
      const [read, size] = NUMBERS[kind];
      at += size;
      return Number(view[read](at - size, true));
    }
    function skip(long) {
      at += long;
      if (at > buffer.byteLength) throw new RangeError("beyond the header");
    }
    function counted(most) {
      const count = number(4) + 2 ** 32 * number(4);
      if (count > most) throw new RangeError("more than a header has");
      return count;
    }
    function text() {
      const long = counted(HEADER), from = at;
      skip(long);
      return letters.decode(new Uint8Array(buffer, from, Math.min(long, MOST_LETTERS)));
    }
    function value(kind, wanted) {
      if (kind === TEXT) return text();
      if (kind !== ARRAY) return number(kind);
      const inner = number(4), count = counted(MOST_ITEMS);
      if (inner === TEXT) { for (let i = 0; i < count; i++) skip(counted(HEADER)); return count; }
      const from = at;
      skip(count * NUMBERS[inner][1]);
      if (!wanted || kept + count > MOST_KEPT) return count;
      at = from;
      kept += count;
      return Array.from({ length: count }, () => number(inner));
    }
    const version = number(4);
    if (version !== 2 && version !== 3) throw new Error(`GGUF version ${version} is not read: 2 or 3`);
    const tensors = counted(MOST_ENTRIES), pairs = counted(MOST_ENTRIES), all = new Map();
    for (let i = 0; i < pairs; i++) {
      const key = text(), wanted = GENERAL.includes(key) || SIZES.includes(key.slice(key.indexOf(".") + 1));
      const said = value(number(4), wanted);
      if (wanted) all.set(key, said);
    }
    let head = false;
    for (let i = 0; i < tensors; i++) {
      if (text() === "output.weight") head = true;
      const dimensions = number(4);
      if (dimensions > MOST_DIMENSIONS) throw new RangeError("more than a tensor has");
      skip(8 * dimensions + 12);
    }
    const kind = all.get("general.architecture"), parts = all.get("split.count") ?? 1;
    if (typeof kind !== "string" || !kind) throw new Error("this GGUF file names no general.architecture: of a file in several parts, choose the first");
    const asked = [...all].filter(([key, said]) => key !== "split.count" && (GENERAL.includes(key) || (key.startsWith(`${kind}.`) && typeof said !== "string")));
    // of several parts another one may hold the head
    return { ...Object.fromEntries(asked), ...(head || !(parts > 1) ? { tie_word_embeddings: !head } : {}) };
  }
  const GRAPH = 512 * 2 ** 20;
  async function textOf(file) {
    if (await file.slice(0, 4).text() === "GGUF") {
      try {
        return JSON.stringify(header(await file.slice(0, HEADER).arrayBuffer()));
      } catch (error) {
        if (error instanceof RangeError || error instanceof TypeError) throw new Error("the header of this GGUF file is cut off or damaged");
        throw error;
      }
    }
    if (/\.onnx$/i.test(file.name)) {
      if (file.size > GRAPH) throw new Error(`${file.name} is larger than 512 MiB: save its weights as external data`);
      return onnxTotals(new Uint8Array(await file.arrayBuffer()), file.name);
    }
    if (file.size > 200_000) throw new Error("file too large: a config.json is under 200 kB");
    return file.text();
  }
  document.querySelectorAll("textarea[data-into]").forEach((area) => {
    const said = area.parentElement.querySelector("[role=status]"), chooser = area.parentElement.querySelector("input[type=file]");
    const take = (text) => takes[area.dataset.into](text, said);
    const askNow = (taken) => { if (taken && form.checkValidity()) form.requestSubmit(); };
    async function open(file) {
      try {
        area.value = await textOf(file);
        askNow(take(area.value));
      } catch (error) {
        said.textContent = error.message;
      }
    }
    area.addEventListener("input", (event) => {
      const taken = take(area.value);
      if (event.inputType === "insertFromPaste") askNow(taken);
    });
    if (chooser) {
      chooser.hidden = false;
      chooser.addEventListener("change", () => { if (chooser.files[0]) open(chooser.files[0]); chooser.value = ""; });
    }
    // a model is dropped anywhere on the page, other things on their field
    const place = area.dataset.into === "model" ? document : area.closest(".field");
    const over = (event, on) => {
      if (event.defaultPrevented || !event.dataTransfer?.types.includes("Files")) return;
      event.preventDefault();
      area.closest(".field").classList.toggle("dropping", on);
    };
    place.addEventListener("dragover", (event) => over(event, true));
    place.addEventListener("dragleave", () => area.closest(".field").classList.remove("dropping"));
    place.addEventListener("drop", (event) => {
      area.closest(".field").classList.remove("dropping");
      const file = event.dataTransfer?.files[0];
      if (!file || event.defaultPrevented) return;
      event.preventDefault();
      const folded = area.closest("details");
      if (folded) folded.open = true;
      open(file);
    });
  });

  // ---- a list of chips: names are offered for the part after the last comma
  const several = document.getElementById("several");
  document.querySelectorAll("input[list=several]").forEach((input) => {
    const names = [...document.querySelectorAll("#chips option")].map((option) => option.value);
    input.addEventListener("input", () => {
      const before = input.value.slice(0, input.value.lastIndexOf(",") + 1);
      const given = new Set(before.split(",").map((name) => name.trim()));
      several.replaceChildren(...names.filter((name) => !given.has(name)).map((name) => new Option("", before + name)));
    });
    changed(input);
  });

  // ---- this machine: what the browser says of its GPU; it need not say, and many do not
  const device = form.querySelector("[data-device]");
  const OTHERWISE = "On the machine itself, chipwise doctor --devices names its chips.";
  // "ANGLE (NVIDIA, NVIDIA GeForce RTX 4090 (0x00002684) Direct3D11 vs_5_0 ps_5_0, D3D11)" as a name
  function plain(text) {
    const inside = text.match(/^ANGLE \((.*)\)$/)?.[1].split(", ")[1] ?? text;
    return inside.replace(/\(.*?\)|\/PCIe.*|Direct3D.*|OpenGL.*|ANGLE Metal Renderer: |(?<=Laptop )GPU|Vulkan [\d.]+|,/g, " ").replace(/\s+/g, " ").trim();
  }
  function renderer() {
    const gl = document.createElement("canvas").getContext("webgl");
    const known = gl?.getExtension("WEBGL_debug_renderer_info");
    return known ? plain(String(gl.getParameter(known.UNMASKED_RENDERER_WEBGL))) : "";
  }
  async function asked() {
    if (!navigator.gpu) return { words: `This browser has no WebGPU, so that it does not say which GPU this machine has. ${OTHERWISE}` };
    const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
    if (!adapter) return { words: `WebGPU finds no GPU here that a page may use. ${OTHERWISE}` };
    const info = adapter.info ?? {};
    if (adapter.isFallbackAdapter || info.isFallbackAdapter) return { words: `WebGPU runs on the processor here: no GPU was found. ${OTHERWISE}` };
    const names = [...new Set([info.description, info.device, renderer()].map((name) => plain(name ?? "")).filter((name) => name.length > 3))];
    const most = adapter.limits?.maxBufferSize;
    const limits = most ? ` A WebGPU page may use buffers of at most ${(most / 2 ** 30).toFixed(1)} GiB; native engines have all of the memory.` : "";
    const seen = [info.vendor, info.architecture, ...names].filter(Boolean).join(" ");
    return { names, limits, seen };
  }
  async function named(name) {
    const answer = await fetch(`/chips.json?${new URLSearchParams({ chips: name })}`);
    const found = await answer.json();
    return { id: answer.ok ? found.chips[0]?.id : undefined, near: found.nearest ?? [] };
  }
  async function here(said) {
    const found = await asked();
    if (found.words) return found.words;
    let near = [];
    for (const name of found.names) {
      const one = await named(name);
      if (one.id) {
        field("have").value = one.id;
        changed(field("have"));
        return `${name}: ${one.id}.${found.limits}`;
      }
      near = one.near;
    }
    said.replaceChildren(`The browser says ${found.seen || "nothing about its GPU"}, which names no chip of the catalogue.${near.length ? " Is it one of these? " : ""}`);
    for (const name of near.slice(0, 4)) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "quiet", textContent: name });
      button.addEventListener("click", () => { field("have").value = name; changed(field("have")); });
      said.append(button, " ");
    }
    said.append(` ${OTHERWISE}`);
    return null;
  }
  if (device) {
    device.hidden = false;
    const said = device.parentElement.querySelector("[role=status]");
    device.addEventListener("click", async () => {
      said.textContent = "asking the browser …";
      const words = await here(said).catch((error) => `The browser did not answer (${error.message}). ${OTHERWISE}`);
      if (words) said.textContent = words;
    });
  }
})();
