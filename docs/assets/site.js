// What the theme adds by script gets names and can be reached by keyboard.
(() => {
  "use strict";
  const named = () => {
    document.querySelectorAll("nav.md-code__nav:not([aria-label])").forEach((nav, at) => nav.setAttribute("aria-label", `Code block ${nav.closest("pre, .highlight")?.querySelector("[id^=__code]")?.id.slice(7) ?? at}`));
    document.querySelectorAll(".md-typeset__scrollwrap:not([tabindex])").forEach((region, at) => {
      region.tabIndex = 0;
      region.setAttribute("role", "group");
      region.setAttribute("aria-label", `Table ${at + 1}`);
    });
    document.body.dataset.named = "true";
  };
  named();
  new MutationObserver(named).observe(document.body, { childList: true, subtree: true });
})();
