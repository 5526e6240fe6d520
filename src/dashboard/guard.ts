/** Checks the `Host` header and token of requests, and defines the headers of answers. Pure functions of the server. */

export interface Guard {
  /** The address to which the server is bound. */
  readonly host: string
  /** The name of this machine. */
  readonly machine: string
  /** The token that requests for data must carry; undefined if the server is bound to a loopback address. */
  readonly token: string | undefined
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]", "::1"]

export const isLoopback = (host: string): boolean => loopbackNames.includes(host) || /^127(\.\d{1,3}){3}$/.test(host)

/**
 * Tells whether a `Host` header names this server. Another site can make its own name point to this server's address,
 * so that its page can send requests here (DNS rebinding), but these requests carry that site's name. A request that
 * names an IP address is safe from this; it is allowed if the server isn't on loopback, and then needs the token.
 */
export const hostAllowed = (header: string | undefined, { host, machine }: Guard): boolean => {
  const name = (header ?? "").toLowerCase().replace(/:\d+$/, "")
  if (loopbackNames.includes(name) || isLoopback(name)) return true
  if (isLoopback(host)) return false
  const isAddress = /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name)
  return isAddress || name === host.toLowerCase() || name === machine.toLowerCase()
}

/** Compares two texts in a time that doesn't depend on where they differ: the time must not reveal the token. */
export const sameToken = (received: string | undefined, expected: string): boolean => {
  if (received === undefined || received.length !== expected.length) return false
  let difference = 0
  for (let index = 0; index < expected.length; index++)
    difference |= received.charCodeAt(index) ^ expected.charCodeAt(index)
  return difference === 0
}

/** The Content-Security-Policy of the page: its own scripts and styles, no other servers, and no framing. */
export const pagePolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** The Content-Security-Policy of the frame that renders episodes: own origin, no network, storage or navigation. */
export const framePolicy =
  "default-src 'none'; script-src 'self' blob:; style-src 'self'; img-src data: blob:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'self'; sandbox allow-scripts"

/** The Content-Security-Policy of the web worker that trains: it compiles WebAssembly, and reaches no network. */
export const workerPolicy = "default-src 'none'; script-src 'wasm-unsafe-eval'"

/** The Content-Security-Policy of a run's files, which are not trusted: opening one executes nothing. */
export const filePolicy = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox"

/** Returns the media type of a run's file by its extension. Scripts are sent as plain text, so no page can run them. */
export const contentType = (path: string): string => {
  const extension = /\.([a-z0-9]+)$/i.exec(path)?.[1]?.toLowerCase() ?? ""
  return types.get(extension) ?? "application/octet-stream"
}

const types = new Map([
  ["svg", "image/svg+xml"],
  ["png", "image/png"],
  ["json", "application/json"],
  ...["jsonl", "yaml", "log", "txt", "md", "csv", "js", "h"].map(
    (name) => [name, "text/plain; charset=utf-8"] as const,
  ),
])
