// The API key: asked for when the server wants one, kept in this tab's session storage and nowhere else.

const STORED_AS = "imageedit-api-key";

/**
 * @param {object} parts
 * @param {() => void} parts.onChange called when another key is used from now on
 */
export function apiKey({ onChange }) {
  const [dialog, form, input, problem, open, forget] = [
    "key-dialog", "key-form", "key", "key-problem", "key-open", "key-forget",
  ].map((id) => document.getElementById(id));

  form.addEventListener("submit", (event) => {
    const given = input.value.trim();
    if (!given || /[^\x21-\x7e]/.test(given)) {
      event.preventDefault();
      say(given ? "A key has only letters, digits and signs, and no spaces." : "Type the key, or close this with Escape.");
      return;
    }
    sessionStorage.setItem(STORED_AS, given);
    onChange();
  });
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(STORED_AS);
    input.value = "";
    dialog.close();
    onChange();
  });
  open.addEventListener("click", () => ask());

  function say(text) {
    problem.textContent = text;
    input.setAttribute("aria-invalid", text ? "true" : "false");
  }

  /** Opens the dialog; `why` says what is wrong with the key that was used. */
  function ask(why = "") {
    open.hidden = false;
    input.value = sessionStorage.getItem(STORED_AS) ?? "";
    say(why);
    if (!dialog.open) dialog.showModal();
    input.focus();
    input.select();
  }

  return {
    ask,
    /** Whether this server wants one. */
    get needed() {
      return !open.hidden;
    },
    get value() {
      return sessionStorage.getItem(STORED_AS) ?? "";
    },
    /** After a call that a key was good for. */
    accepted() {
      open.hidden = !this.value;
    },
  };
}
