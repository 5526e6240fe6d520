/** Reads the address of a cluster's database, and shows it without its password. These are pure functions. */
import { Effect } from "effect"
import { WorkerError } from "../workers/WorkerError.ts"

const protocols = ["postgres:", "postgresql:"]

/** The parts of the address that processes need before they connect. */
interface DatabaseUrl {
  readonly host: string
  readonly port: number
  readonly hasPassword: boolean
}

/** Parses the address of a database. Fails if the text is not one; the message has no password. */
export const parseUrl = (url: string): Effect.Effect<DatabaseUrl, WorkerError> => {
  const parsed = URL.parse(url)
  if (
    parsed === null ||
    !protocols.includes(parsed.protocol) ||
    parsed.hostname === "" ||
    parsed.pathname.includes("@")
  ) {
    const message = `${shownUrl(url)}: expected the address of a Postgres database, postgres://user:password@host:port/database; encode special characters of the password, such as / by %2F`
    return Effect.fail(WorkerError.failed(message))
  }
  const host = parsed.hostname.replace(/^\[|\]$/g, "")
  return Effect.succeed({ host, port: Number(parsed.port || 5432), hasPassword: parsed.password !== "" })
}

/**
 * Returns the address without its password and its options. It reads the text itself, because an address with a wrong
 * form, such as one whose password has a `/`, must not show its password either.
 */
export const shownUrl = (url: string): string =>
  url.replace(/^((?:\w+:)?\/\/)?([^:@]*)(?::.*)?@/s, "$1$2@").replace(/\?.*$/s, "")
