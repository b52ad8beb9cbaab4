// One edit from the button to its pictures: progress in words, cancel, and another try when the server asks for one.

import { Problem, runEdit } from "./api.js";
import { announce } from "./announce.js";

const MOST_TRIES = 10;
const byId = (id) => document.getElementById(id);

/**
 * @param {object} parts
 * @param {() => Promise<{texts: [string, string][], files: [string, Blob][]}>} parts.makeCall throws a Problem
 * @param {() => string} parts.key
 * @param {(picture: object, call: object) => void} parts.onPicture
 * @param {(problem: Problem) => boolean} parts.onProblem whether it was shown elsewhere
 * @returns {{start: () => Promise<void>}}
 */
export function editRun({ makeCall, key, onPicture, onProblem }) {
  let leaving = null;
  let wait = null;

  byId("cancel").addEventListener("click", () => leaving?.abort());
  byId("retry-now").addEventListener("click", () => wait?.end(true));
  byId("retry-stop").addEventListener("click", () => wait?.end(false));

  async function start() {
    if (leaving) return;
    leaving = new AbortController();
    setBusy(true);
    try {
      await tryUntilTaken(await makeCall());
    } catch (error) {
      if (error.name === "AbortError") say("Cancelled.");
      else show(error);
    } finally {
      leaving = null;
      setBusy(false);
    }
  }

  async function tryUntilTaken(call) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await once(call);
      } catch (error) {
        if (!(error instanceof Problem) || error.retryAfterS === null) throw error;
        byId("problem").textContent = error.message;
        if (!(await waited(error, tries))) {
          byId("problem").textContent = "";
          say("Not sent.");
          return undefined;
        }
        byId("problem").textContent = "";
      }
    }
  }

  async function once(call) {
    const view = progressView(Number(new Map(call.texts).get("n") ?? 1));
    let done = 0;
    try {
      await runEdit({
        call,
        key: key(),
        signal: leaving.signal,
        onStanding: (standing) => view.standing(standing, done),
        onPicture: (picture) => {
          done += 1;
          onPicture(picture, call);
        },
      });
      say(done === 1 ? "Done." : `Done: ${done} pictures.`);
    } finally {
      view.end();
    }
  }

  // True: try again.
  async function waited(problem, tries) {
    byId("cancel").hidden = true;
    byId("retry").hidden = false;
    byId("run").textContent = "Waiting …";
    const alone = problem.shouldRetry && tries < MOST_TRIES;
    let leftS = Math.max(1, problem.retryAfterS);
    const tell = () => {
      if (leftS > 0) byId("status").textContent = `${alone ? "Trying again" : "Another try makes sense"} in ${leftS} s.`;
      else if (alone) wait.end(true);
      else byId("status").textContent = "Another try makes sense now.";
      leftS -= 1;
    };
    try {
      return await new Promise((end) => {
        wait = { end };
        tell();
        wait.timer = setInterval(tell, 1000);
      });
    } finally {
      clearInterval(wait.timer);
      wait = null;
      const heldFocus = byId("retry").contains(document.activeElement);
      byId("retry").hidden = true;
      byId("cancel").hidden = false;
      if (heldFocus) byId("cancel").focus();
      byId("run").textContent = "Editing …";
    }
  }

  function show(error) {
    say("");
    const problem = error instanceof Problem ? error : new Problem(`Something went wrong in this page: ${error.message}`);
    if (!onProblem(problem)) byId("problem").textContent = problem.message;
  }

  return { start };
}

function setBusy(busy) {
  byId("run").setAttribute("aria-disabled", busy);
  byId("run").textContent = busy ? "Editing …" : "Edit picture";
  const heldFocus = document.activeElement === byId("cancel");
  byId("cancel").hidden = !busy;
  if (busy) say("Sending the picture …");
  else if (heldFocus) byId("run").focus();
}

function say(sentence) {
  byId("status").textContent = sentence;
  announce(sentence);
}

/** The bar and the sentence below it, for `count` pictures. */
function progressView(count) {
  const bar = byId("progress");
  let latest = null;
  let announced = "";
  bar.hidden = false;
  amount(null);
  // The estimate runs down between two messages of the server.
  const clock = setInterval(() => latest && tell(), 1000);

  function standing(now, done) {
    latest = { ...now, done, at: performance.now() };
    tell();
  }

  function tell() {
    const { step, steps, queue_position: before, done } = latest;
    const which = count > 1 ? `Picture ${done + 1} of ${count}: ` : "";
    amount(before === null && steps ? (done + step / steps) / count : done ? done / count : null);
    byId("status").textContent = which + sentence(latest);
    const quarter = steps ? Math.floor((4 * step) / steps) : 0;
    const heard = before === null ? `${done} ${quarter}` : `waits ${before}`;
    if (heard !== announced) announce(which + sentence(latest));
    announced = heard;
  }

  function amount(share) {
    bar.classList.toggle("unknown", share === null);
    if (share === null) bar.removeAttribute("aria-valuenow");
    else bar.setAttribute("aria-valuenow", Math.round(100 * share));
    byId("progress-done").style.width = share === null ? "" : `${100 * share}%`;
  }

  return {
    standing,
    end() {
      clearInterval(clock);
      bar.hidden = true;
    },
  };
}

function sentence({ step, steps, queue_position: before, estimated_start_s: startS, at }) {
  if (before) {
    const leftS = Math.round(startS - (performance.now() - at) / 1000);
    const edits = before === 1 ? "1 edit is before yours." : `${before} edits are before yours.`;
    return `${edits} ${leftS > 1 ? `It starts in about ${leftS} s.` : "It starts soon."}`;
  }
  if (!step) return "Starting …";
  return step < steps ? `Step ${step} of ${steps}` : "Finishing the picture …";
}
