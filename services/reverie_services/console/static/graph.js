// Draws the graph of the page. The tables below it hold the same.
"use strict";

const COLOURS = ["#5a67d8", "#2f9e6e", "#c05621", "#b83280", "#2b6cb0", "#b7791f", "#6b7280", "#0e7c86"];

function elements(graph) {
  const kinds = [...new Set(graph.nodes.map((node) => node.kind))];
  const nodes = graph.nodes.map((node) => ({
    data: {
      id: node.id,
      label: node.label.length > 36 ? node.label.slice(0, 35) + "…" : node.label,
      colour: COLOURS[kinds.indexOf(node.kind) % COLOURS.length],
      depth: node.depth,
      size: node.id === graph.root ? 34 : 20,
    },
  }));
  const edges = graph.edges.map((edge) => ({
    data: {source: edge.from, target: edge.to, label: edge.type},
  }));
  return [...nodes, ...edges];
}

// The picture as SVG, from where the nodes lie now.
function toSvg(cy, text, line) {
  const escape = (value) => value.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
  const box = cy.elements().boundingBox();
  const parts = cy.edges().map((edge) => {
    const [a, b] = [edge.source().position(), edge.target().position()];
    return `<line x1="${a.x}" y1="${a.y}" x2="${b.x}" y2="${b.y}" stroke="${line}"><title>${escape(edge.data("label"))}</title></line>`;
  });
  for (const node of cy.nodes()) {
    const {x, y} = node.position();
    parts.push(`<circle cx="${x}" cy="${y}" r="${node.data("size") / 2}" fill="${node.data("colour")}"/>`);
    parts.push(`<text x="${x}" y="${y + 24}" font-size="9" font-family="sans-serif" text-anchor="middle" fill="${text}">${escape(node.data("label"))}</text>`);
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box.x1} ${box.y1} ${box.w} ${box.h + 30}">${parts.join("")}</svg>`;
}

function save(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  URL.revokeObjectURL(link.href);
}

document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("graph");
  if (!place) return;
  const style = getComputedStyle(document.body);
  const colour = (name) => style.getPropertyValue(name).trim();
  const cy = cytoscape({
    container: place,
    elements: elements(JSON.parse(place.dataset.graph)),
    style: [
      {selector: "node", style: {
        "background-color": "data(colour)", label: "data(label)", width: "data(size)",
        height: "data(size)", color: colour("--text"), "font-size": 9, "text-valign": "bottom",
        "text-margin-y": 4, "text-wrap": "wrap", "text-max-width": 110,
      }},
      {selector: "edge", style: {
        width: 1, "line-color": colour("--line"), "target-arrow-color": colour("--line"),
        "target-arrow-shape": "triangle", "curve-style": "bezier", label: "data(label)",
        "font-size": 7, color: colour("--quiet"), "text-rotation": "autorotate",
      }},
    ],
    layout: {
      name: "concentric", animate: false, minNodeSpacing: 55,
      concentric: (node) => -node.data("depth"), levelWidth: () => 1,
    },
  });
  cy.on("tap", "node", (event) => {
    location.href = `/console/memories/${event.target.id()}`;
  });
  const buttons = document.getElementById("graph-buttons");
  buttons.hidden = false;
  buttons.addEventListener("click", (event) => {
    const format = event.target.dataset.save;
    if (format === "svg") {
      save(new Blob([toSvg(cy, colour("--text"), colour("--quiet"))], {type: "image/svg+xml"}), "graph.svg");
    } else if (format === "png") {
      save(cy.png({output: "blob", full: true, scale: 2, bg: colour("--card")}), "graph.png");
    }
  });
});
