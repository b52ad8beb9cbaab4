// What the stage shows: nothing yet, the picture with its mask, or a result beside what it was made from.

const byId = (id) => document.getElementById(id);

/** @param {{moveSplit: (percent: number) => void}} parts */
export function stageView({ moveSplit }) {
  const stage = byId("stage");
  const frame = byId("frame");
  let picture = null;
  let shot = null;

  function show(view) {
    stage.dataset.view = view;
    const size = view === "result" ? shot.facts.size.split("x").map(Number) : [picture.width, picture.height];
    frame.style.setProperty("--ratio", size[0] / size[1]);
    byId("before").src = view === "result" ? shot.before.url : picture.url;
    byId("before").alt = view === "result" ? "Before the edit" : "Your picture";
    if (view === "result") byId("after").src = shot.url;
    byId("after").alt = view === "result" ? `After the edit: ${shot.prompt}` : "";
    for (const group of byId("tools").querySelectorAll("[data-for]")) group.hidden = group.dataset.for !== view;
    byId("facts").textContent = view === "result" ? factsOf(shot.facts) : `${picture.name} · ${size.join(" × ")}`;
    byId("views").hidden = !shot;
    byId("view-picture").setAttribute("aria-pressed", view === "picture");
    byId("view-result").setAttribute("aria-pressed", view === "result");
    if (view !== "picture") openMask(false);
  }

  function openMask(open) {
    stage.classList.toggle("masking", open);
    byId("mask-tools").hidden = !open;
    byId("mask-open").setAttribute("aria-expanded", open);
    byId("mask").tabIndex = open ? 0 : -1;
  }

  byId("mask-open").addEventListener("click", () => openMask(byId("mask-tools").hidden));
  byId("view-picture").addEventListener("click", () => show("picture"));
  byId("view-result").addEventListener("click", () => show("result"));

  return {
    get showsResult() {
      return stage.dataset.view === "result";
    },
    get shot() {
      return shot;
    },
    showPicture(one) {
      picture = one;
      show("picture");
    },
    showResult(one) {
      shot = one;
      Object.assign(byId("download"), { href: one.url, download: one.name });
      moveSplit(50);
      show("result");
    },
  };
}

function factsOf({ size, seed, steps, seconds }) {
  return `${size.replace("x", " × ")} · seed ${seed} · ${steps} steps · ${seconds.toFixed(1)} s`;
}
