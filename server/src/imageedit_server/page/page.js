// The page: what is worked on, and which part tells which other.

import { Problem, readModel } from "./api.js";
import { announce } from "./announce.js";
import { maskBrush } from "./brush.js";
import { codeTabs } from "./code.js";
import { compareSlider } from "./compare.js";
import { acceptPictures } from "./drop.js";
import { check, chosen, clearProblems, follow, offer, showAtField } from "./form.js";
import { shotList } from "./history.js";
import { apiKey } from "./keys.js";
import { Mask } from "./mask.js";
import { blobOf, megabytes, readPicture } from "./picture.js";
import { referenceList } from "./references.js";
import { editRun } from "./run.js";
import { stageView } from "./stage.js";

const byId = (id) => document.getElementById(id);
const toolName = () => document.querySelector("input[name=tool]:checked").value;

const LOADING_MS = 2000;

let model = null;
let picture = null;
let coverage = 0;
let made = 0;

const mask = new Mask(byId("mask"));
const code = codeTabs();
const key = apiKey({ onChange: loadModel });
const slider = compareSlider({ frame: byId("frame"), handle: byId("handle"), isShown: () => stage.showsResult });
const stage = stageView({ moveSplit: slider.moveTo });
const shots = shotList({
  part: byId("history"),
  list: byId("shots"),
  onShow: stage.showResult,
  isInUse: (one) => one === picture,
});
const references = referenceList({
  list: byId("references"),
  add: byId("reference-add"),
  most: () => model.max_images - 1,
  onChange: showCode,
});
const files = acceptPictures({ target: byId("stage"), input: byId("file"), onFile: takePicture });
const run = editRun({ makeCall, key: () => key.value, onPicture: keepResult, onProblem: showProblem });
maskBrush({
  canvas: byId("mask"),
  surface: byId("stage"),
  isOpen: () => !byId("mask-tools").hidden,
  mask,
  ring: byId("ring"),
  rubber: byId("rubber"),
  size: byId("brush-size"),
  tool: toolName,
  setTool: (name) => (document.querySelector(`input[name=tool][value=${name}]`).checked = true),
  onMarked: maskChanged,
});

async function loadModel() {
  try {
    model = await readModel(key.value);
  } catch (problem) {
    if (problem.status === 401) key.ask(key.value ? "The server does not know this key." : "");
    else byId("problem").textContent = problem.message;
    return;
  }
  key.accepted();
  byId("model").textContent = [model.id, model.revision].filter(Boolean).join(" · ");
  document.title = `${model.id} · Image edit`;
  byId("limits").textContent = `PNG, JPEG or WebP, up to ${megabytes(model.max_body_bytes)}`;
  byId("problem").textContent = "";
  offer(model);
  showCode();
  if (!model.digest) setTimeout(untilLoaded, LOADING_MS);
}

/** What a model takes is known when it is loaded: asked for until then, and offered once, so that no choice is undone. */
async function untilLoaded() {
  const one = await readModel(key.value).catch(() => null);
  if (one?.digest) await loadModel();
  else setTimeout(untilLoaded, LOADING_MS);
}

async function takePicture(file) {
  await guarded(async () => usePicture(await readPicture(file, file.name || "picture.png", needModel())));
}

function usePicture(one) {
  if (picture && !shots.uses(picture)) URL.revokeObjectURL(picture.url);
  picture = one;
  mask.begin(one);
  clearProblems();
  stage.showPicture(one);
  maskChanged();
  announce(`${one.name}, ${one.width} by ${one.height} pixels`);
}

function maskChanged() {
  coverage = picture ? mask.coverage() : 0;
  const percent = 100 * coverage;
  byId("coverage").textContent = coverage
    ? `${percent < 1 ? "Less than 1" : Math.round(percent)} % of the picture is marked red and may change.`
    : "Nothing is marked: all of the picture may change. Mark in red what may.";
  byId("mask-undo").disabled = !mask.canUndo;
  byId("mask-save").disabled = !coverage;
  byId("feather-part").hidden = !coverage;
  showCode();
}

async function makeCall() {
  clearProblems();
  needModel();
  if (!picture) throw new Problem("Choose a picture first.", { param: "image" });
  check(model);
  const sent = [picture, ...references.pictures].map((one) => ["image", one.blob]);
  if (coverage) sent.push(["mask", await mask.png()]);
  return { texts: chosen(model, { masked: coverage > 0 }), files: sent, before: picture };
}

function keepResult({ b64_json: base64, ...facts }, call) {
  made += 1;
  const blob = blobOf(base64, `image/${facts.output_format}`);
  const prompt = new Map(call.texts).get("prompt");
  const name = `edited-${made}.${facts.output_format}`;
  shots.add({ before: call.before, blob, url: URL.createObjectURL(blob), name, prompt, facts });
}

function showCode() {
  if (!model) return;
  const masked = coverage > 0;
  const texts = chosen(model, { masked }).map(([name, text]) => [name, text || byId(name).placeholder]);
  const named = [picture?.name ?? "before.png", ...references.pictures.map((one) => one.name)];
  const kind = byId("output_format").value;
  const base = new URL("v1", document.baseURI).href;
  const notes = [
    key.needed && "Put the API key into the variable IMAGEEDIT_API_KEY.",
    masked && "Save the mask as mask.png beside the picture.",
  ];
  code.update({ base, needsKey: key.needed, pictures: named, masked, texts, kind }, notes.filter(Boolean).join(" "));
}

function showProblem(problem) {
  if (problem.status === 401) {
    key.ask("The server does not know this key.");
    return true;
  }
  if (/^mask/.test(problem.param ?? "") && byId("mask-tools").hidden) byId("mask-open").click();
  return showAtField(problem);
}

function needModel() {
  if (model) return model;
  throw new Problem("The server has not said yet what it serves. Reload the page, or give its API key.");
}

async function guarded(work) {
  try {
    await work();
  } catch (problem) {
    if (!(problem instanceof Problem)) throw problem;
    if (!showProblem(problem)) byId("problem").textContent = problem.message;
  }
}

byId("choose").addEventListener("click", () => files.choose());
byId("replace").addEventListener("click", () => files.choose());
byId("reference-add").addEventListener("click", () =>
  files.choose((file) =>
    guarded(async () => references.push(await readPicture(file, file.name, needModel(), "image[1]"))),
  ),
);
byId("continue").addEventListener("click", () =>
  guarded(async () => usePicture(await readPicture(stage.shot.blob, stage.shot.name, needModel()))),
);
byId("same-seed").addEventListener("click", () => {
  byId("seed").value = stage.shot.facts.seed;
  showCode();
  announce(`The next edit takes the seed ${stage.shot.facts.seed}`);
});
for (const [id, kind] of [["mask-clear", "clear"], ["mask-invert", "invert"]]) {
  byId(id).addEventListener("click", () => {
    mask.add({ kind });
    maskChanged();
  });
}
function undoMark() {
  mask.undo();
  maskChanged();
}
byId("mask-undo").addEventListener("click", undoMark);
byId("mask").addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  event.preventDefault();
  undoMark();
});
byId("mask-load").addEventListener("click", () =>
  files.choose((file) =>
    guarded(async () => {
      await mask.load(file);
      maskChanged();
    }),
  ),
);
byId("mask-save").addEventListener("click", async () => {
  const url = URL.createObjectURL(await mask.png());
  Object.assign(document.createElement("a"), { href: url, download: "mask.png" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
});
byId("form").addEventListener("input", () => {
  follow();
  showCode();
});
byId("mask_feather").addEventListener("input", () => {
  follow();
  showCode();
});
byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  run.start();
});
byId("prompt").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  byId("form").requestSubmit();
});
maskChanged();
loadModel();
