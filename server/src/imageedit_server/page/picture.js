// From a file that somebody chose to a picture that can be sent: checked against the server's limits before it travels.

import { Problem } from "./api.js";

/**
 * @typedef {object} Picture
 * @property {Blob} blob what is sent
 * @property {string} name
 * @property {string} url address of the blob in this tab
 * @property {number} width pixels, upright as EXIF asks
 * @property {number} height
 */

const SIGNATURES = [
  { type: "png", bytes: [0x89, 0x50, 0x4e, 0x47] },
  { type: "jpeg", bytes: [0xff, 0xd8, 0xff] },
  { type: "webp", bytes: [0x52, 0x49, 0x46, 0x46] },
];

/**
 * @param {Blob} blob
 * @param {string} name
 * @param {object} model limits: max_body_bytes, max_pixels
 * @param {string} param the field that a problem belongs to
 * @returns {Promise<Picture>}
 */
export async function readPicture(blob, name, model, param = "image") {
  const wrong = (message) => new Problem(message, { param });
  if (blob.size > model.max_body_bytes) {
    throw wrong(`The file has ${megabytes(blob.size)}; at most ${megabytes(model.max_body_bytes)} are taken. Scale it down.`);
  }
  const url = URL.createObjectURL(blob);
  const image = new Image();
  image.src = url;
  try {
    await image.decode();
  } catch {
    URL.revokeObjectURL(url);
    throw wrong("This file is no picture that can be read here. Choose a PNG, a JPEG or a WebP.");
  }
  const { naturalWidth: width, naturalHeight: height } = image;
  if (!width || !height) throw wrong("This picture has no size of its own. Choose a PNG, a JPEG or a WebP.");
  if (width * height > model.max_pixels) {
    URL.revokeObjectURL(url);
    throw wrong(`The picture has ${width} × ${height} pixels; at most ${Math.round(model.max_pixels / 1e6)} million are taken. Scale it down.`);
  }
  if (await isTaken(blob)) return { blob, name, url, width, height };
  URL.revokeObjectURL(url);
  return asPng(image, name);
}

/** `12 MB`, as file managers show it. */
export function megabytes(count) {
  const size = count / 2 ** 20;
  return size < 1 ? `${Math.max(1, Math.round(count / 1024))} KB` : `${Number(size.toFixed(size < 10 ? 1 : 0))} MB`;
}

/** A blob from base64, without asking the network layer for it. */
export function blobOf(base64, type) {
  return new Blob([Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))], { type });
}

/** PNG of a canvas. */
export async function pngOf(canvas) {
  const blob = await new Promise((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Problem("This browser has no memory for a picture of that size. Scale it down.", { param: "image" });
  return blob;
}

async function isTaken(blob) {
  const head = new Uint8Array(await blob.slice(0, 4).arrayBuffer());
  return SIGNATURES.some(({ bytes }) => bytes.every((byte, index) => head[index] === byte));
}

// What the browser reads and the server does not (GIF, BMP, AVIF, ...) goes as PNG.
async function asPng(image, name) {
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = Object.assign(document.createElement("canvas"), { width, height });
  canvas.getContext("2d").drawImage(image, 0, 0);
  const blob = await pngOf(canvas);
  return { blob, name: `${name.replace(/\.\w+$/, "")}.png`, url: URL.createObjectURL(blob), width, height };
}
