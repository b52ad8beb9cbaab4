// What a screen reader says besides what has the focus.

const region = document.getElementById("announce");

/** Says a sentence when the reader is free. The same one twice in a row is said twice. */
export function announce(sentence) {
  // A no-break space is not heard, and makes an equal text a new one.
  region.textContent = region.textContent === sentence ? `${sentence}\u00a0` : sentence;
}
