// A multipart body by hand. The browser's own FormData turns each line break of a text into CR LF, and the prompt that
// the model reads must be, to the byte, the one that the snippets send.

/**
 * @param {[string, string][]} texts fields and their texts
 * @param {[string, Blob][]} files fields and their files
 * @returns {{body: Blob, contentType: string}}
 */
export function multipart(texts, files) {
  const boundary = `edit-${[...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
  const parts = [];
  for (const [name, text] of texts) {
    parts.push(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n`, text, "\r\n");
  }
  for (const [name, file] of files) {
    // The server tells pictures by their bytes; a name is there only to make the part a file.
    parts.push(`--${boundary}\r\ncontent-disposition: form-data; name="${name}"; filename="${name.replace("[]", "")}"\r\n\r\n`);
    parts.push(file, "\r\n");
  }
  parts.push(`--${boundary}--\r\n`);
  return { body: new Blob(parts), contentType: `multipart/form-data; boundary=${boundary}` };
}
