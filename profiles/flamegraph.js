// Zoom and search in flame graphs, in a page or in an SVG of its own. Everything is there already: this moves boxes.
"use strict";
const flames = (() => {
  const number = (box, name) => parseFloat(box.getAttribute(name));
  const graphs = new Map();

  function boxesOf(graph) {
    if (!graphs.has(graph)) {
      graphs.set(graph, [...graph.querySelectorAll(".box")].map(box => ({
        box, x: number(box, "x"), width: number(box, "width"), y: number(box, "y"),
        name: box.querySelector("title").textContent,
      })));
    }
    return graphs.get(graph);
  }

  // The chosen box takes the whole width, its callers too; what is not below or above it goes.
  function zoom(graph, chosen) {
    const scale = 100 / chosen.width, close = 1e-3;
    for (const one of boxesOf(graph)) {
      const above = one.y < chosen.y && one.x <= chosen.x + close && one.x + one.width >= chosen.x + chosen.width - close;
      const below = one.y >= chosen.y && one.x >= chosen.x - close && one.x + one.width <= chosen.x + chosen.width + close;
      one.box.style.display = above || below ? "" : "none";
      one.box.setAttribute("x", above ? "0%" : `${(one.x - chosen.x) * scale}%`);
      one.box.setAttribute("width", above ? "100%" : `${one.width * scale}%`);
      if (below && one.width * scale > 0.4 && !one.box.querySelector("text")) {
        const text = document.createElementNS(graph.namespaceURI, "text");
        text.setAttribute("x", 3);
        text.setAttribute("y", 12);
        text.textContent = one.name.split("\n")[0].replace(/ \([^(]*$/, "");
        one.box.append(text);
      }
    }
  }

  // Marks what matches; the share of the picture that it covers, a box below another counted once.
  function search(graph, text) {
    let pattern = null;
    try { pattern = text ? new RegExp(text, "i") : null; } catch { return null; }
    const found = [];
    for (const one of boxesOf(graph)) {
      const matches = pattern !== null && pattern.test(one.name.split("\n")[0]);
      one.box.classList.toggle("found", matches);
      if (matches) found.push(one);
    }
    found.sort((a, b) => a.x - b.x || b.width - a.width);
    let share = 0, end = 0;
    for (const one of found) {
      share += Math.max(0, one.x + one.width - Math.max(end, one.x));
      end = Math.max(end, one.x + one.width);
    }
    return share;
  }

  for (const graph of document.querySelectorAll(".flames")) {
    for (const box of graph.querySelectorAll(".box")) box.setAttribute("tabindex", 0);
    const choose = event => {
      const box = event.target.closest(".box");
      if (box) zoom(graph, boxesOf(graph).find(one => one.box === box));
    };
    graph.addEventListener("click", choose);
    graph.addEventListener("keydown", event => {
      if (event.key === "Enter") choose(event);
      if (event.key === "Escape") zoom(graph, boxesOf(graph)[0]);
    });
  }
  // In an SVG of its own there is no field to type in.
  const button = document.documentElement.tagName === "svg" && document.getElementById("search");
  if (button) {
    button.addEventListener("click", () => {
      const text = prompt("Search for a function or a file (a regular expression)");
      const share = search(document.querySelector(".flames"), text);
      button.textContent = text && share !== null ? `${text}: ${share.toFixed(1)} %` : "search";
    });
  }
  return { search, zoom };
})();
