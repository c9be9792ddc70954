// Set every formula of a page with KaTeX; a formula that KaTeX cannot read stays as it was typed.
addEventListener("DOMContentLoaded", () => {
  const macros = {"\\E": "\\mathbb{E}", "\\pos": "\\left[#1\\right]^+"};
  for (const place of document.querySelectorAll(".formula")) {
    katex.render(place.textContent, place, {displayMode: place.tagName === "DIV", throwOnError: false, macros});
  }
});
