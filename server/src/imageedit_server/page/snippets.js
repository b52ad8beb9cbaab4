// The call on the page as text: for a shell with curl, and for Python with the `openai` package. Pure.

/**
 * What both snippets are made of.
 *
 * @typedef {object} Call
 * @property {string} base address that ends in /v1
 * @property {boolean} needsKey
 * @property {string[]} pictures file names, the edited picture first
 * @property {boolean} masked
 * @property {[string, string][]} texts fields and their texts
 * @property {string} kind ending of the result's name
 */

// Fields of the `openai` package's own signature; the rest goes into `extra_body`.
const KNOWN_TO_OPENAI = new Set(["model", "prompt", "n", "size", "quality", "output_format", "output_compression"]);
const NUMBERS = new Set(["n", "seed", "steps", "true_cfg_scale", "guidance_scale", "mask_feather", "output_compression"]);

/** @param {Call} call */
export function curlSnippet(call) {
  const lines = [`curl -sS --fail-with-body ${shellWord(`${call.base}/images/edits`)}`];
  if (call.needsKey) lines.push('-H "Authorization: Bearer $IMAGEEDIT_API_KEY"');
  for (const [number, name] of call.pictures.entries()) {
    const field = call.pictures.length > 1 ? "image[]" : "image";
    lines.push(`-F ${shellWord(`${field}=@${curlName(name)}`)}`);
    if (number === 0 && call.masked) lines.push("-F 'mask=@\"mask.png\"'");
  }
  for (const [name, text] of call.texts) lines.push(`--form-string ${shellWord(`${name}=${text}`)}`);
  lines.push("-o answer.json &&");
  return `${lines.join(" \\\n  ")}\n${savedByShell(call)}\n`;
}

/** @param {Call} call */
export function pythonSnippet(call) {
  const opened = call.pictures.map((name) => `open(${pythonText(name)}, "rb")`);
  const known = call.texts.filter(([name]) => KNOWN_TO_OPENAI.has(name));
  const further = call.texts.filter(([name]) => !KNOWN_TO_OPENAI.has(name));
  const image = opened.length > 1 ? `[\n${opened.map((one) => `        ${one},`).join("\n")}\n    ]` : opened[0];
  const given = [`image=${image}`];
  if (call.masked) given.push('mask=open("mask.png", "rb")');
  given.push(...known.map(([name, text]) => `${name}=${pythonValue(name, text)}`));
  if (further.length) {
    given.push(`extra_body={${further.map(([name, text]) => `"${name}": ${pythonValue(name, text)}`).join(", ")}}`);
  }
  const key = call.needsKey ? 'os.environ["IMAGEEDIT_API_KEY"]' : '"none"';
  return [
    "import base64",
    ...(call.needsKey ? ["import os"] : []),
    "",
    "import openai",
    "",
    `client = openai.OpenAI(base_url=${pythonText(call.base)}, api_key=${key})`,
    "answer = client.images.edit(",
    ...given.map((one) => `    ${one},`),
    ")",
    ...savedByPython(call),
    "",
  ].join("\n");
}

/** One word for a POSIX shell, whatever is in it. */
export function shellWord(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A text for Python: JSON's escapes are Python's, too. */
export function pythonText(text) {
  return JSON.stringify(text);
}

// Within -F, curl reads a quoted file name with its own escapes.
function curlName(name) {
  return `"${name.replace(/["\\]/g, "\\$&")}"`;
}

function pythonValue(name, text) {
  return NUMBERS.has(name) ? text : pythonText(text);
}

function resultCount(call) {
  return Number(call.texts.find(([name]) => name === "n")?.[1] ?? 1);
}

function savedByShell(call) {
  const count = resultCount(call);
  if (count === 1) return `jq -r '.data[0].b64_json' answer.json | base64 -d > edited.${call.kind}`;
  const numbers = Array.from({ length: count }, (_, number) => number + 1).join(" ");
  return `for i in ${numbers}; do jq -r ".data[$i - 1].b64_json" answer.json | base64 -d > "edited-$i.${call.kind}"; done`;
}

function savedByPython(call) {
  if (resultCount(call) === 1) {
    return [`with open("edited.${call.kind}", "wb") as file:`, "    file.write(base64.b64decode(answer.data[0].b64_json))"];
  }
  return [
    "for number, picture in enumerate(answer.data, start=1):",
    `    with open(f"edited-{number}.${call.kind}", "wb") as file:`,
    "        file.write(base64.b64decode(picture.b64_json))",
  ];
}
