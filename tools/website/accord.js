// The theme puts each table into a region of its own. Where that or a block of code scrolls, a keyboard must reach it.
const reach = () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
};

// The theme names some parts in a way that assistive technology cannot use: the menu of versions has a name without the
// version that it shows, two kinds of navigation have the same name, and the buttons of a block of code are a landmark.
const name = () => {
  const version = document.querySelector(".md-version__current");
  const shown = version?.firstChild?.textContent ?? "";
  if (version && !version.ariaLabel.startsWith(shown)) version.ariaLabel = `${shown}: ${version.ariaLabel}`;
  for (const path of document.querySelectorAll("nav.md-path")) path.ariaLabel = "Path";
  for (const buttons of document.querySelectorAll("nav.md-code__nav")) buttons.role = "none";
};

const update = () => {
  reach();
  name();
};
for (const part of document.querySelectorAll(".md-header, .md-content"))
  new MutationObserver(update).observe(part, { childList: true, subtree: true });
addEventListener("resize", reach);
update();
