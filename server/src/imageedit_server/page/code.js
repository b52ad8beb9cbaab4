// The two snippets as tabs, and the button that copies the shown one.

import { announce } from "./announce.js";
import { curlSnippet, pythonSnippet } from "./snippets.js";

const KINDS = { curl: curlSnippet, python: pythonSnippet };
const COPIED_MS = 2000;
const byId = (id) => document.getElementById(id);

/** @returns {{update: (call: import("./snippets.js").Call, note: string) => void}} */
export function codeTabs() {
  let kind = "curl";
  let call = null;
  let reset = 0;
  const tabs = Object.keys(KINDS).map((name) => byId(`tab-${name}`));

  for (const tab of tabs) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!to) return;
      event.preventDefault();
      choose(tabs[(tabs.indexOf(tab) + to + tabs.length) % tabs.length]);
    });
  }
  byId("copy").addEventListener("click", async () => {
    await copy(byId("snippet-text"));
    byId("copy-text").textContent = "Copied";
    announce("Copied");
    clearTimeout(reset);
    reset = setTimeout(() => (byId("copy-text").textContent = "Copy"), COPIED_MS);
  });

  function choose(chosen) {
    kind = chosen.id.replace("tab-", "");
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
    }
    byId("snippet").setAttribute("aria-labelledby", chosen.id);
    chosen.focus();
    render();
  }

  function render() {
    if (call) byId("snippet-text").textContent = KINDS[kind](call);
  }

  return {
    update(latest, note) {
      call = latest;
      byId("snippet-note").textContent = note;
      render();
    },
  };
}

// Servers inside of a network speak plain HTTP, where browsers offer no clipboard.
async function copy(element) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(element.textContent);
    return;
  }
  const range = document.createRange();
  range.selectNodeContents(element);
  getSelection().removeAllRanges();
  getSelection().addRange(range);
  document.execCommand("copy");
}
