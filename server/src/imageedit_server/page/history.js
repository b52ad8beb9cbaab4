// The results of this tab, newest first. They live in memory, so there is a last one that is kept.

const MOST = 12;

/**
 * @typedef {object} Shot
 * @property {import("./picture.js").Picture} before
 * @property {Blob} blob the result
 * @property {string} url address of the result in this tab
 * @property {string} name of its file
 * @property {string} prompt
 * @property {object} facts what the server says of it
 */

/**
 * @param {object} parts
 * @param {HTMLElement} parts.part hidden while there is nothing
 * @param {HTMLElement} parts.list
 * @param {(shot: Shot) => void} parts.onShow
 * @param {(picture: import("./picture.js").Picture) => boolean} parts.isInUse whether an input is still shown
 */
export function shotList({ part, list, onShow, isInUse }) {
  let shots = [];
  let shown = null;

  function add(shot) {
    shots = [shot, ...shots];
    for (const old of shots.splice(MOST)) forget(old);
    show(shot);
  }

  function show(shot) {
    shown = shot;
    render();
    onShow(shot);
  }

  function forget({ url, before }) {
    URL.revokeObjectURL(url);
    if (!isInUse(before) && !shots.some((shot) => shot.before === before)) URL.revokeObjectURL(before.url);
  }

  function render() {
    part.hidden = !shots.length;
    list.replaceChildren(...shots.map(item));
  }

  function item(shot, index) {
    const button = Object.assign(document.createElement("button"), { type: "button", title: shot.prompt });
    const image = Object.assign(document.createElement("img"), { src: shot.url, alt: "" });
    button.setAttribute("aria-label", `Result ${shots.length - index}: ${shot.prompt}`);
    if (shot === shown) button.setAttribute("aria-current", "true");
    button.append(image);
    button.addEventListener("click", () => {
      show(shot);
      list.querySelectorAll("button")[index].focus();
    });
    const line = document.createElement("li");
    line.append(button);
    return line;
  }

  return {
    add,
    uses: (picture) => shots.some((shot) => shot.before === picture),
    get count() {
      return shots.length;
    },
  };
}
