// Further pictures that the model looks at, in their order.

/**
 * @param {object} parts
 * @param {HTMLElement} parts.list
 * @param {HTMLElement} parts.add the button
 * @param {() => number} parts.most how many there may be
 * @param {() => void} parts.onChange
 */
export function referenceList({ list, add, most, onChange }) {
  const pictures = [];

  function render() {
    list.replaceChildren(...pictures.map(item));
    add.hidden = pictures.length >= most();
    onChange();
  }

  function item(picture, index) {
    const line = document.createElement("li");
    const image = Object.assign(document.createElement("img"), { src: picture.url, alt: "" });
    const name = Object.assign(document.createElement("span"), { textContent: picture.name });
    const remove = Object.assign(document.createElement("button"), { type: "button", className: "ghost", textContent: "Remove" });
    remove.setAttribute("aria-label", `Remove ${picture.name}`);
    remove.addEventListener("click", () => {
      URL.revokeObjectURL(picture.url);
      pictures.splice(index, 1);
      render();
      (list.querySelectorAll("button")[Math.max(0, index - 1)] ?? add).focus();
    });
    line.append(image, name, remove);
    return line;
  }

  return {
    pictures,
    push(picture) {
      pictures.push(picture);
      render();
    },
  };
}
