// The fields of the form: what the model offers, what was chosen as fields of the API, and problems beside their fields.

import { Problem } from "./api.js";

const byId = (id) => document.getElementById(id);
const quality = () => document.querySelector("input[name=quality]:checked").value;
const SIZE = /^\d{2,4}x\d{2,4}$/;
const HIGHEST_SEED = 2 ** 32 - 1;

// Field of the API -> where its problem stands and what gets the focus.
const PLACES = {
  prompt: ["prompt", "prompt"],
  negative_prompt: ["negative_prompt", "negative_prompt"],
  true_cfg_scale: ["negative_prompt", "true_cfg_scale"],
  guidance_scale: ["guidance_scale", "guidance_scale"],
  seed: ["seed", "seed"],
  n: ["n", "n"],
  size: ["size", "size"],
  steps: ["steps", "steps"],
  quality: ["steps", "steps"],
  output_format: ["output_format", "output_format"],
  output_compression: ["output_format", "output_compression"],
  mask: ["mask", "mask"],
  mask_feather: ["mask", "mask_feather"],
  image: ["image", "choose"],
};

/** Shows what this model offers and hides the rest. */
export function offer(model) {
  const { lowest, standard, high } = model.steps;
  Object.assign(byId("steps"), { min: lowest, max: high, value: standard });
  byId("quality-high").hidden = high <= standard;
  fill("n", range(1, model.max_n));
  fill("output_format", model.output_formats, (kind) => kind.toUpperCase());
  const sizes = model.sizes.map((size) => [size, size.replace("x", " × ")]);
  const offered = [["", "Automatic"], ["original", "Like the picture"], ...sizes, ["own", "Other …"]];
  byId("size").replaceChildren(...offered.map(([value, text]) => new Option(text, value)));
  byId("negative-part").hidden = !model.negative_prompt;
  byId("guidance-part").hidden = !model.guidance_scale;
  byId("references-part").hidden = model.max_images < 2;
  byId("references-note").textContent =
    model.max_images === 2 ? "One more, to look at." : `Up to ${model.max_images - 1}, to look at.`;
  byId("mask_feather").max = Math.min(64, model.max_mask_feather);
  byId("quality").dataset.standard = standard;
  byId("quality").dataset.high = high;
  byId("prompt").dataset.most = model.max_prompt_characters;
  follow();
}

/** Keeps what depends on other fields in step with them. */
export function follow() {
  const { standard, high } = byId("quality").dataset;
  const own = quality() === "own";
  byId("steps-part").hidden = !own;
  byId("quality-note").textContent = own ? "More steps take longer." : `${quality() === "high" ? high : standard} steps`;
  byId("steps-value").value = byId("steps").value;
  byId("own-size-part").hidden = byId("size").value !== "own";
  byId("compression-part").hidden = byId("output_format").value === "png";
  byId("compression-value").value = byId("output_compression").value;
  byId("cfg-part").hidden = !byId("negative_prompt").value;
  byId("cfg-value").value = byId("true_cfg_scale").value;
  byId("feather-value").value = `${byId("mask_feather").value} px`;
  const left = Number(byId("prompt").dataset.most) - [...byId("prompt").value].length;
  byId("prompt-note").textContent = left < 500 ? `${left} characters left` : "";
}

/** What was chosen, as fields of the API and their texts; what is left to the server is left out. */
export function chosen(model, { masked }) {
  const texts = [["model", model.id], ["prompt", wellFormed(byId("prompt").value)]];
  const add = (name, text) => text && texts.push([name, text]);
  add("n", byId("n").value === "1" ? "" : byId("n").value);
  add("size", byId("size").value === "own" ? ownSize() : byId("size").value);
  if (quality() === "own") add("steps", byId("steps").value);
  else add("quality", quality());
  add("seed", byId("seed").value.trim());
  const kind = byId("output_format").value;
  if (kind !== "png") {
    add("output_format", kind);
    add("output_compression", byId("output_compression").value);
  }
  if (model.negative_prompt && byId("negative_prompt").value) {
    add("negative_prompt", wellFormed(byId("negative_prompt").value));
    add("true_cfg_scale", byId("true_cfg_scale").value);
  }
  if (model.guidance_scale) add("guidance_scale", byId("guidance_scale").value.trim());
  if (masked && byId("mask_feather").value !== "0") add("mask_feather", byId("mask_feather").value);
  return texts;
}

/** Throws the first Problem that can be seen without asking the server. */
export function check(model) {
  const prompt = byId("prompt").value;
  if (!prompt.trim()) throw new Problem("Say what to change.", { param: "prompt" });
  if ([...prompt].length > model.max_prompt_characters) {
    throw new Problem(`At most ${model.max_prompt_characters} characters are taken.`, { param: "prompt" });
  }
  const seed = byId("seed").value.trim();
  if (seed && !(/^\d{1,10}$/.test(seed) && Number(seed) <= HIGHEST_SEED)) {
    throw new Problem(`A seed is a whole number from 0 to ${HIGHEST_SEED}.`, { param: "seed" });
  }
  if (byId("size").value === "own" && !SIZE.test(ownSize())) {
    throw new Problem("Write width and height in pixels, such as 1024x768.", { param: "size" });
  }
}

/** Shows a problem at its field, with the focus there; false if it belongs to none that can be seen. */
export function showAtField(problem) {
  const param = problem.param ?? "";
  const reference = /^image\[(\d+)\]$/.exec(param);
  const place = reference ? ["references", "reference-add"] : PLACES[param];
  if (!place) return false;
  const [name, focus] = place;
  const text = byId(`${name}-problem`);
  text.textContent = problem.message;
  const field = byId(name === "size" && byId("size").value === "own" ? "own-size" : focus);
  if (field.matches("input, textarea, select")) field.setAttribute("aria-invalid", "true");
  if (field.checkVisibility()) field.focus();
  text.scrollIntoView({ block: "nearest" });
  return text.checkVisibility();
}

/** Takes all problems away. */
export function clearProblems() {
  for (const text of document.querySelectorAll("main .problem")) text.textContent = "";
  for (const field of document.querySelectorAll("main [aria-invalid]")) field.removeAttribute("aria-invalid");
}

/** `1024 × 768`, `1024*768` and the like are one size. */
function ownSize() {
  return byId("own-size").value.trim().replace(/\s*[x×X*]\s*/, "x");
}

function fill(id, values, textOf = String) {
  const before = byId(id).value;
  byId(id).replaceChildren(...values.map((value) => new Option(textOf(value), value)));
  if (values.map(String).includes(before)) byId(id).value = before;
}

function range(first, last) {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

// Half a character that a keyboard can leave behind is no text for the API, nor for Python.
function wellFormed(text) {
  return text.toWellFormed?.() ?? text;
}
