/** Defines the headers of the server's responses, and the media types of files. These are pure functions. */

/** The Content-Security-Policy of the page, which allows its own scripts and styles, but no other servers and no framing. */
export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; connect-src 'self'; frame-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/**
 * The Content-Security-Policy of the frame that renders episodes. It has its own origin, and no network, storage, navigation
 * or workers. `frame.js` removes what no policy can forbid.
 */
export const framePolicy =
  "default-src 'none'; script-src 'self' blob:; worker-src 'none'; img-src data: blob:; " +
  "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'; " +
  "frame-ancestors 'self'; sandbox allow-scripts"

/**
 * The Content-Security-Policy of the web worker that trains and plays, which may import scripts of this server and compile
 * WebAssembly, but may not use the network otherwise. MuJoCo's own script also makes functions from text.
 */
export const workerPolicy = (hasMujoco: boolean): string =>
  `default-src 'none'; script-src 'self' 'wasm-unsafe-eval'${hasMujoco ? " 'unsafe-eval'" : ""}`

/** The Content-Security-Policy of a run's files, which are not trusted: an opened file executes nothing. */
export const filePolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

/** Returns the media type of a run's file by its extension. Scripts are sent as plain text, so no page can run them. */
export const contentType = (path: string): string => {
  const extension = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ""
  return types.get(extension) ?? "application/octet-stream"
}

const types = new Map([
  ["svg", "image/svg+xml"],
  ["png", "image/png"],
  ["gif", "image/gif"],
  ["mp4", "video/mp4"],
  ["json", "application/json"],
  ...["jsonl", "yaml", "log", "txt", "md", "csv", "js", "h"].map(
    (name) => [name, "text/plain; charset=utf-8"] as const,
  ),
])
