// The theme puts each table into a region of its own. Where that or a block of code scrolls, a keyboard must reach it.
const reach = () => {
  for (const region of document.querySelectorAll(".md-typeset__scrollwrap, .md-typeset pre > code")) {
    if (region.scrollWidth > region.clientWidth) region.tabIndex = 0;
    else region.removeAttribute("tabindex");
  }
};
new MutationObserver(reach).observe(document.querySelector(".md-content"), { childList: true, subtree: true });
addEventListener("resize", reach);
reach();
