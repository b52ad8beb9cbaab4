// The calls of the API, as any client makes them: the model, and an edit as a stream.

import { EventReader } from "./events.js";
import { multipart } from "./multipart.js";

/** What went wrong, in the server's words; `param` is the field, `retryAfterS` whole seconds or null. */
export class Problem extends Error {
  constructor(message, { param = null, code = "", status = 0, retryAfterS = null, shouldRetry = true } = {}) {
    super(message);
    Object.assign(this, { param, code, status, retryAfterS, shouldRetry });
  }
}

/** The served model, with all that it takes. */
export async function readModel(key) {
  const answer = await called("v1/models", { headers: authorized(key) });
  if (!answer.ok) throw await problemOf(answer);
  return (await answer.json()).data[0];
}

/**
 * Runs one edit.
 *
 * @param {{texts: [string, string][], files: [string, Blob][]}} call
 * @param {string} key API key, or ""
 * @param {AbortSignal} signal ends it: the server stops at its next step
 * @param {(standing: object) => void} onStanding place in the queue, or step
 * @param {(picture: object) => void} onPicture each finished picture
 */
export async function runEdit({ call, key, signal, onStanding, onPicture }) {
  const { body, contentType } = multipart([...call.texts, ["stream", "true"]], call.files);
  const headers = { "content-type": contentType, ...authorized(key) };
  const answer = await called("v1/images/edits", { method: "POST", headers, body, signal });
  if (!answer.ok) throw await problemOf(answer);
  let pictures = 0;
  for await (const { comment, event, data } of eventsOf(answer)) {
    if (event === "error") throw problemIn(JSON.parse(data));
    if (event === "image_edit.completed") {
      pictures += 1;
      onPicture(JSON.parse(data));
    } else if (comment?.startsWith("{")) {
      onStanding(JSON.parse(comment));
    }
  }
  if (!pictures) throw new Problem("The connection ended before the picture was there. Try again.", { code: "cut_off" });
}

async function called(path, options) {
  try {
    return await fetch(path, { cache: "no-store", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The server cannot be reached. Check the connection, then try again.", { code: "unreachable" });
  }
}

async function* eventsOf(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  const events = new EventReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      yield* events.push(value);
    }
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem("The connection was lost during the edit. Try again.", { code: "cut_off" });
  }
}

async function problemOf(answer) {
  const headers = answer.headers;
  const facts = {
    status: answer.status,
    retryAfterS: headers.has("retry-after") ? Number(headers.get("retry-after")) : null,
    shouldRetry: headers.get("x-should-retry") !== "false",
  };
  try {
    return problemIn(await answer.json(), facts);
  } catch {
    return new Problem(`The server answered ${answer.status} ${answer.statusText}`.trim() + ".", facts);
  }
}

function problemIn({ error }, facts = {}) {
  return new Problem(error.message, { param: error.param, code: error.code, ...facts });
}

function authorized(key) {
  return key ? { authorization: `Bearer ${key}` } : {};
}
