// Server-sent events from a fetch body: blocks end with an empty line, and a line that begins with a colon is a comment.

/** Cuts text, as it comes, into `{comment}` and `{event, data}`. */
export class EventReader {
  #rest = "";

  push(text) {
    const blocks = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = blocks.pop();
    return blocks.map(parsed);
  }
}

function parsed(block) {
  const found = { event: "message", data: "" };
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (name === "") found.comment = value;
    if (name === "event") found.event = value;
    if (name === "data") found.data += value;
  }
  return found;
}
