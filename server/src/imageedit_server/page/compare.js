// Before and after in one frame: a handle that is dragged, or moved by the keys of a slider.

const KEY_STEPS = { ArrowLeft: -2, ArrowDown: -2, ArrowRight: 2, ArrowUp: 2, PageDown: -10, PageUp: 10 };

/**
 * @param {object} parts
 * @param {HTMLElement} parts.frame
 * @param {HTMLElement} parts.handle role=slider
 * @param {() => boolean} parts.isShown whether the frame shows a result
 */
export function compareSlider({ frame, handle, isShown }) {
  function moveTo(percent) {
    const at = Math.round(Math.min(100, Math.max(0, percent)));
    frame.style.setProperty("--split", `${at}%`);
    handle.setAttribute("aria-valuenow", at);
    handle.setAttribute("aria-valuetext", `${at} % before, ${100 - at} % after`);
  }

  function moveToPointer(event) {
    const box = frame.getBoundingClientRect();
    moveTo((100 * (event.clientX - box.left)) / box.width);
  }

  frame.addEventListener("pointerdown", (event) => {
    if (!isShown() || event.button !== 0) return;
    frame.setPointerCapture(event.pointerId);
    moveToPointer(event);
    handle.focus({ preventScroll: true });
    event.preventDefault();
  });
  frame.addEventListener("pointermove", (event) => {
    if (isShown() && frame.hasPointerCapture(event.pointerId)) moveToPointer(event);
  });
  handle.addEventListener("keydown", (event) => {
    const now = Number(handle.getAttribute("aria-valuenow"));
    const step = KEY_STEPS[event.key];
    if (step !== undefined) moveTo(now + step * (event.shiftKey ? 5 : 1));
    else if (event.key === "Home") moveTo(0);
    else if (event.key === "End") moveTo(100);
    else return;
    event.preventDefault();
  });

  return { moveTo };
}
