// The ways by which a picture comes in: dropped, pasted, or chosen as a file.

/**
 * @param {object} parts
 * @param {HTMLElement} parts.target where a picture is dropped
 * @param {HTMLInputElement} parts.input the file input
 * @param {(file: File) => void} parts.onFile
 * @returns {{choose: (onChosen?: (file: File) => void) => void}} opens the file picker
 */
export function acceptPictures({ target, input, onFile }) {
  let chosen = onFile;
  let depth = 0;

  input.addEventListener("change", () => {
    if (input.files[0]) chosen(input.files[0]);
    // So that choosing the same file again is a change.
    input.value = "";
  });

  // A drop beside the target must not replace the page by the picture.
  for (const name of ["dragover", "drop"]) {
    window.addEventListener(name, (event) => {
      if (hasFile(event)) event.preventDefault();
    });
  }
  window.addEventListener("dragenter", (event) => mark(hasFile(event) ? 1 : 0));
  window.addEventListener("dragleave", (event) => mark(hasFile(event) ? -1 : 0));
  window.addEventListener("drop", (event) => {
    mark(-depth);
    const file = firstPicture(event.dataTransfer);
    if (file) onFile(file);
  });

  document.addEventListener("paste", (event) => {
    const file = firstPicture(event.clipboardData);
    if (!file) return;
    event.preventDefault();
    onFile(file);
  });

  function mark(change) {
    depth = Math.max(0, depth + change);
    target.classList.toggle("over", depth > 0);
  }

  return {
    choose(onChosen = onFile) {
      chosen = onChosen;
      input.click();
    },
  };
}

function hasFile(event) {
  return event.dataTransfer?.types.includes("Files") ?? false;
}

function firstPicture(transfer) {
  const files = [...(transfer?.files ?? [])];
  return files.find((file) => file.type.startsWith("image/")) ?? files[0];
}
