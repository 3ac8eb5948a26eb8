// Light or dark, before anything is drawn: what was chosen last, else what the system says.
(() => {
  "use strict";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("theme"); } catch { /* a browser without storage follows the system */ }
  const dark = () => (chosen ? chosen === "dark" : system.matches);
  function apply() {
    root.dataset.theme = dark() ? "dark" : "light";
    const button = document.getElementById("theme");
    if (button) {
      button.hidden = false;
      button.textContent = dark() ? "Light" : "Dark";
      button.setAttribute("aria-label", `Switch to ${dark() ? "light" : "dark"} colours`);
    }
    document.dispatchEvent(new CustomEvent("themechange"));
  }
  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme")?.addEventListener("click", () => {
      chosen = dark() ? "light" : "dark";
      try { localStorage.setItem("theme", chosen); } catch { /* kept for this page only */ }
      apply();
    });
  });
})();
