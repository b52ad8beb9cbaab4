// The hand that marks: pointer and keys on the mask's canvas. Everything is in pixels of the canvas unless named `shown`.

import { announce } from "./announce.js";

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// Of the picture's longer side.
const STEP = 0.01;
const LONG_STEP = 0.1;

/**
 * @param {object} parts
 * @param {HTMLCanvasElement} parts.canvas
 * @param {HTMLElement} parts.surface where a drag may begin: around the canvas, too, so that edges are easy to reach
 * @param {() => boolean} parts.isOpen whether the mask is being drawn
 * @param {import("./mask.js").Mask} parts.mask
 * @param {HTMLElement} parts.ring shows where the brush is, and how large
 * @param {HTMLElement} parts.rubber shows the rectangle that is being drawn
 * @param {HTMLInputElement} parts.size the brush's diameter in shown pixels
 * @param {() => string} parts.tool brush, rectangle or eraser
 * @param {(tool: string) => void} parts.setTool
 * @param {() => void} parts.onMarked called after each whole mark
 */
export function maskBrush({ canvas, surface, isOpen, mask, ring, rubber, size, tool, setTool, onMarked }) {
  let at = [0, 0];
  let corner = null;
  let penDown = false;

  const perShown = () => canvas.width / canvas.getBoundingClientRect().width;
  const width = () => Math.max(1, size.valueAsNumber * perShown());
  const stroke = () => ({ kind: "stroke", erase: tool() === "eraser", width: width(), points: [at] });

  surface.addEventListener("pointerdown", (event) => {
    if (!isOpen() || event.button !== 0) return;
    event.preventDefault();
    surface.setPointerCapture(event.pointerId);
    canvas.focus({ preventScroll: true });
    at = pointOf(event);
    if (tool() === "rectangle") corner = at;
    else mask.add(stroke());
    penDown = true;
    show();
  });
  surface.addEventListener("pointermove", (event) => {
    if (!isOpen()) return;
    const drawing = penDown && surface.hasPointerCapture(event.pointerId);
    for (const one of event.getCoalescedEvents?.() ?? [event]) {
      at = pointOf(one);
      if (drawing && !corner) mask.extend(at);
    }
    show();
  });
  surface.addEventListener("pointerup", (event) => {
    if (!penDown || !surface.hasPointerCapture(event.pointerId)) return;
    penDown = false;
    if (corner) fill();
    else onMarked();
    show();
  });
  surface.addEventListener("pointercancel", () => {
    const marked = penDown && !corner;
    lift();
    if (marked) onMarked();
  });
  surface.addEventListener("pointerleave", () => {
    ring.hidden = true;
  });
  canvas.addEventListener("focus", () => {
    if (!canvas.matches(":focus-visible")) return;
    at = [canvas.width / 2, canvas.height / 2];
    show();
  });
  canvas.addEventListener("blur", () => {
    lift();
    ring.hidden = true;
  });
  canvas.addEventListener("keydown", (event) => {
    if (MOVES[event.key]) move(MOVES[event.key], event.shiftKey ? LONG_STEP : STEP);
    else if (event.key === " ") togglePen();
    else if (event.key === "r" || event.key === "R") setCorner();
    else if (event.key === "e" || event.key === "E") switchEraser();
    else if (event.key === "[" || event.key === "]") grow(event.key === "]" ? 8 : -8);
    else if (event.key === "Escape" && (corner || penDown)) lift();
    else return;
    event.preventDefault();
    show();
  });
  size.addEventListener("input", () => {
    if (!ring.hidden) show();
  });

  function pointOf(event) {
    const box = canvas.getBoundingClientRect();
    const point = [(event.clientX - box.left) * perShown(), (event.clientY - box.top) * perShown()];
    // A stroke may leave the picture; a rectangle ends at its edge.
    return tool() === "rectangle" ? [within(point[0], canvas.width), within(point[1], canvas.height)] : point;
  }

  function move([right, down], step) {
    const length = step * Math.max(canvas.width, canvas.height);
    at = [within(at[0] + right * length, canvas.width), within(at[1] + down * length, canvas.height)];
    if (penDown) {
      mask.extend(at);
      onMarked();
    }
    announce(place());
  }

  function togglePen() {
    penDown = !penDown;
    announce(`${tool() === "eraser" ? "Eraser" : "Brush"} ${penDown ? "down" : "up"} at ${place()}`);
    if (!penDown) return;
    corner = null;
    mask.add(stroke());
    onMarked();
  }

  function setCorner() {
    penDown = false;
    if (corner) {
      fill();
      return;
    }
    corner = at;
    announce(`First corner at ${place()}. Move on and press R for the other one.`);
  }

  function switchEraser() {
    penDown = false;
    setTool(tool() === "eraser" ? "brush" : "eraser");
    announce(tool() === "eraser" ? "Eraser" : "Brush");
  }

  function grow(change) {
    size.valueAsNumber += change;
    announce(`Brush size ${size.value}`);
  }

  function fill() {
    const [left, top] = corner;
    corner = null;
    mask.add({ kind: "rectangle", box: [left, top, at[0] - left, at[1] - top] });
    onMarked();
  }

  function lift() {
    penDown = false;
    corner = null;
    show();
  }

  function show() {
    const box = canvas.getBoundingClientRect();
    const shown = ([x, y]) => [(x / canvas.width) * box.width, (y / canvas.height) * box.height];
    const [x, y] = shown(at);
    const diameter = tool() === "rectangle" ? 12 : size.valueAsNumber;
    ring.hidden = false;
    ring.classList.toggle("down", penDown && !corner);
    lay(ring, x - diameter / 2, y - diameter / 2, diameter, diameter);
    rubber.hidden = !corner;
    if (!corner) return;
    const [x0, y0] = shown(corner);
    lay(rubber, Math.min(x, x0), Math.min(y, y0), Math.abs(x - x0), Math.abs(y - y0));
  }

  function place() {
    const percent = (value, all) => Math.round((100 * value) / all);
    return `${percent(at[0], canvas.width)} % across, ${percent(at[1], canvas.height)} % down`;
  }
}

function within(value, highest) {
  return Math.min(highest, Math.max(0, value));
}

function lay(element, left, top, width, height) {
  Object.assign(element.style, { left: `${left}px`, top: `${top}px`, width: `${width}px`, height: `${height}px` });
}
