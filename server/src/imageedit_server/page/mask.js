// The mask as a list of marks on a canvas: opaque where the picture may change. Undo draws all marks but the last anew.

import { Problem } from "./api.js";
import { pngOf } from "./picture.js";

// Strokes need no more; the file that is sent has the picture's own size.
const LONGEST_PX = 1536;
// Ruby red, as the film is that retouchers cut their masks from; the page shows it half transparent.
const RED = "#e11d2e";

/**
 * @typedef {{kind: "stroke", erase: boolean, width: number, points: [number, number][]}
 *   | {kind: "rectangle", box: [number, number, number, number]}
 *   | {kind: "picture", image: CanvasImageSource} | {kind: "invert"} | {kind: "clear"}} Mark
 */

export class Mask {
  #canvas;
  #pen;
  #marks = [];
  #size = { width: 1, height: 1 };

  /** @param {HTMLCanvasElement} canvas that shows the mask */
  constructor(canvas) {
    this.#canvas = canvas;
    this.#pen = canvas.getContext("2d", { willReadFrequently: true });
  }

  /** Begins anew for a picture of that size. */
  begin({ width, height }) {
    const scale = Math.min(1, LONGEST_PX / Math.max(width, height));
    this.#size = { width, height };
    this.#canvas.width = Math.max(1, Math.round(width * scale));
    this.#canvas.height = Math.max(1, Math.round(height * scale));
    this.#marks = [];
  }

  get canUndo() {
    return this.#marks.length > 0;
  }

  /** Share of the picture that is marked, 0 to 1. */
  coverage() {
    const { width, height } = this.#canvas;
    const { data } = this.#pen.getImageData(0, 0, width, height);
    let sum = 0;
    for (let index = 3; index < data.length; index += 4) sum += data[index];
    return sum / (255 * width * height);
  }

  /** @param {Mark} mark */
  add(mark) {
    this.#marks.push(mark);
    this.#draw(mark);
  }

  /** Goes on with the stroke that was added last. */
  extend(point) {
    const stroke = this.#marks.at(-1);
    const last = stroke.points.at(-1);
    stroke.points.push(point);
    this.#draw({ ...stroke, points: [last, point] });
  }

  undo() {
    this.#marks.pop();
    this.#wipe();
    for (const mark of this.#marks) this.#draw(mark);
  }

  /** A file that is a mask: transparent where to edit or, without transparency, white where to edit. */
  async load(file) {
    const wrong = (message) => new Problem(message, { param: "mask" });
    let image;
    try {
      image = await createImageBitmap(file);
    } catch {
      throw wrong("This file is no picture that can be read here. Choose a PNG.");
    }
    const { width, height } = this.#size;
    if (Math.abs(image.width / image.height - width / height) > 0.01 * (width / height)) {
      throw wrong(`The mask has ${image.width} × ${image.height} pixels and the picture ${width} × ${height}; they need one shape.`);
    }
    this.add({ kind: "picture", image: this.#marked(image) });
  }

  /** PNG of the picture's size, transparent where the picture may change, as the API wants it. */
  async png() {
    const canvas = Object.assign(document.createElement("canvas"), this.#size);
    const pen = canvas.getContext("2d");
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.globalCompositeOperation = "destination-out";
    pen.drawImage(this.#canvas, 0, 0, canvas.width, canvas.height);
    return pngOf(canvas);
  }

  #draw(mark) {
    const { width, height } = this.#canvas;
    const pen = this.#pen;
    pen.save();
    pen.fillStyle = pen.strokeStyle = RED;
    if (mark.kind === "clear") this.#wipe();
    if (mark.kind === "rectangle") pen.fillRect(...mark.box);
    if (mark.kind === "stroke") this.#stroke(mark);
    if (mark.kind === "picture") {
      this.#wipe();
      pen.drawImage(mark.image, 0, 0, width, height);
    }
    if (mark.kind === "invert") {
      pen.globalCompositeOperation = "source-out";
      pen.fillRect(0, 0, width, height);
    }
    pen.restore();
  }

  #stroke({ erase, width, points }) {
    const pen = this.#pen;
    pen.globalCompositeOperation = erase ? "destination-out" : "source-over";
    Object.assign(pen, { lineWidth: width, lineCap: "round", lineJoin: "round" });
    pen.beginPath();
    // A canvas draws nothing for a line of no length, and a tap is to leave a dot.
    pen.arc(...points[0], width / 2, 0, 2 * Math.PI);
    pen.fill();
    pen.beginPath();
    pen.moveTo(...points[0]);
    for (const point of points.slice(1)) pen.lineTo(...point);
    pen.stroke();
  }

  #wipe() {
    this.#pen.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
  }

  #marked(image) {
    const canvas = Object.assign(document.createElement("canvas"), { width: image.width, height: image.height });
    const pen = canvas.getContext("2d");
    pen.drawImage(image, 0, 0);
    const pixels = pen.getImageData(0, 0, canvas.width, canvas.height);
    const data = pixels.data;
    let transparent = false;
    for (let index = 3; index < data.length && !transparent; index += 4) transparent = data[index] < 255;
    for (let index = 0; index < data.length; index += 4) {
      const light = (data[index] + data[index + 1] + data[index + 2]) / 3;
      const alpha = transparent ? 255 - data[index + 3] : light;
      data.set([0xe1, 0x1d, 0x2e, alpha], index);
    }
    pen.putImageData(pixels, 0, 0);
    return canvas;
  }
}
