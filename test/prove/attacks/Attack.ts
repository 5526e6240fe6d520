/**
 * An attack on one of the doors of SECURITY.md: what somebody who is not trusted would send, or leave lying about, and what
 * has to come of it.
 */
export interface Attack {
  /** The door, as SECURITY.md calls it. */
  readonly door: string
  /** What is tried, as part of a sentence: "a run whose config names a command". */
  readonly name: string
  /** Tries it in this empty folder, and throws if it succeeds. Returns what was seen. */
  readonly attempt: (folder: string) => Promise<string>
}
