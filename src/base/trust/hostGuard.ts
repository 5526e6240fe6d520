/**
 * Checks where a request to a local server comes from, by its headers `Host`, `Origin` and `Sec-Fetch-Site`, and its key. Every HTTP
 * server of this project uses it, because any web page that the user opens can send requests to the user's own machine.
 *
 * @example
 * ```ts
 * const refused = refusedBy({ host: "127.0.0.1", machine: "desk", allowed: [] }, { host: "127.0.0.1:6006" })
 * ```
 */

export interface HostGuard {
  /** The address to which the server is bound. */
  readonly host: string
  /** The name of this machine. */
  readonly machine: string
  /** More names of the server, which its user allows clients to use. */
  readonly allowed: ReadonlyArray<string>
}

const loopbackNames = ["localhost", "127.0.0.1", "[::1]", "::1"]

export const isLoopback = (host: string): boolean => loopbackNames.includes(host) || /^127(\.\d{1,3}){3}$/.test(host)

/**
 * Tells whether a `Host` header names this server. Another site can make its own name point to this server's address,
 * so that its page can send requests here (DNS rebinding), but these requests carry that site's name. A request that
 * names an IP address is safe from this; it is allowed if the server isn't on loopback, and then needs the key.
 */
const hostAllowed = (header: string | undefined, { host, machine, allowed }: HostGuard): boolean => {
  const name = (header ?? "").toLowerCase().replace(/:\d+$/, "")
  if (loopbackNames.includes(name) || isLoopback(name)) return true
  if (name !== "" && allowed.some((one) => one.toLowerCase() === name)) return true
  if (isLoopback(host)) return false
  const isAddress = /^\d{1,3}(\.\d{1,3}){3}$/.test(name) || /^\[[0-9a-f:.]+\]$/.test(name)
  return isAddress || (name !== "" && (name === host.toLowerCase() || name === machine.toLowerCase()))
}

/**
 * Tells whether an `Origin` header, which browsers send with a page's requests, names a page of this server or machine.
 */
const originAllowed = (header: string | undefined, guard: HostGuard): boolean => {
  if (header === undefined) return true
  const origin = URL.parse(header)
  return origin !== null && /^https?:$/.test(origin.protocol) && hostAllowed(origin.host, guard)
}

/**
 * Tells whether a page of another site loads something from this server as an image or a script, for example. Such requests
 * have no `Origin`. Links of other sites may open pages of this server.
 */
const isEmbedded = (headers: Headers): boolean =>
  headers["origin"] === undefined &&
  headers["sec-fetch-site"] === "cross-site" &&
  headers["sec-fetch-mode"] !== "navigate"

type Headers = Readonly<Record<string, string | undefined>>

/** Returns why a request must not be answered; undefined if it may be, with the right key. */
export const refusedBy = (
  guard: HostGuard,
  headers: Headers,
): { readonly status: 403 | 421; readonly message: string } | undefined => {
  const { host, origin } = headers
  const remedy = "the flag --allow-host NAME of the server allows another name"
  if (!hostAllowed(host, guard)) {
    return { status: 421, message: `this server does not go by the name in the header host; ${remedy}` }
  }
  if (!originAllowed(origin, guard) || isEmbedded(headers)) {
    return { status: 403, message: `this server does not answer pages of other sites; ${remedy}` }
  }
  return undefined
}

/** Tells whether `--allow-host` accepts a text: the name of a machine, without a port. */
export const isHostName = (text: string): boolean => /^[a-z0-9_]([a-z0-9._-]*[a-z0-9_])?$/i.test(text)

/** Compares a key or token with the right one, in a time that doesn't depend on where they differ: it must not reveal the key. */
export const sameKey = (received: string | undefined, expected: string): boolean => {
  if (received === undefined || received.length !== expected.length) return false
  let difference = 0
  for (let index = 0; index < expected.length; index++)
    difference |= received.charCodeAt(index) ^ expected.charCodeAt(index)
  return difference === 0
}
