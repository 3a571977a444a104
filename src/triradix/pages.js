for (const chart of document.querySelectorAll("svg.chart")) {
  const data = JSON.parse(chart.dataset.points);
  const cursor = chart.querySelector(".cursor"), readout = chart.parentElement.querySelector(".readout");
  const width = chart.viewBox.baseVal.width;
  chart.addEventListener("pointermove", event => {
    const box = chart.getBoundingClientRect(), x = (event.clientX - box.left) / box.width * width;
    const nearest = points => points.reduce((a, b) => Math.abs(b[0] - x) < Math.abs(a[0] - x) ? b : a);
    const found = data.series.filter(s => s.points.length).map(s => [s.name, nearest(s.points)]);
    if (!found.length) return;
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, found[0][1][0]);
    const fill = (text, name, p) => text.replace("{name}", name).replace("{x}", p[2]).replace("{y}", p[3]);
    readout.textContent = fill(data.head, "", found[0][1]) + found.map(f => fill(data.item, ...f)).join(" · ");
  });
  chart.addEventListener("pointerleave", () => {
    for (const end of ["x1", "x2"]) cursor.setAttribute(end, -9);
    readout.textContent = "\u00a0";
  });
}
