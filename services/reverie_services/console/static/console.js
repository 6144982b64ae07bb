// Live updates and charts. Every page works without them.
"use strict";

// Loads the part of the page that changes again, unless somebody works in it.
function refresh() {
  const part = document.getElementById("live");
  if (!part || String(getSelection()) || part.contains(document.activeElement)) return;
  htmx.ajax("GET", location.href, {target: part, select: "#live", swap: "outerHTML"}).then(draw);
}

function draw() {
  for (const place of document.querySelectorAll("[data-chart]")) {
    if (place.firstChild || !window.uPlot) continue;
    const points = JSON.parse(place.dataset.chart);
    const style = getComputedStyle(document.body);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = {stroke: colour("--quiet"), grid: {stroke: colour("--line")}};
    new uPlot(
      {
        width: place.clientWidth,
        height: 180,
        legend: {show: false},
        tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
        axes: [axis, axis],
        series: [{}, {label: place.dataset.label, stroke: colour("--main"), paths: () => null,
                      points: {show: true, size: 6, fill: colour("--main")}}],
        scales: {x: {range: (_, least, most) => [Math.min(least, most - 600), most]},
                 y: {range: (_, __, most) => [0, (most || 1) * 1.1]}},
      },
      [points.map((point) => point[0]), points.map((point) => point[1])],
      place,
    );
  }
}

document.addEventListener("DOMContentLoaded", () => {
  draw();
  const address = document.body.dataset.live;
  if (!address) return;
  // A browser opens few connections to a host, so only the page that is looked at holds one.
  let stream = null;
  const follow = () => {
    if (stream) stream.close();
    stream = document.hidden ? null : new EventSource(address);
    if (stream) stream.addEventListener("changed", refresh);
  };
  follow();
  addEventListener("pagehide", () => stream && stream.close());
  document.addEventListener("visibilitychange", () => {
    follow();
    if (!document.hidden) refresh();
  });
});
