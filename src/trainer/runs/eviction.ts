import * as Layout from "../Layout.ts"

/** An evicted run with the reason. */
export interface EvictedRun {
  readonly id: string
  readonly reason: string
}

/**
 * Makes the message that tells why a run was evicted, and how the user can let it in again. `outputDirectory` holds the
 * folders of the runs.
 *
 * @example
 * ```ts
 * evictionMessage("out", { id: "run_a", reason: "its loss is not finite" })
 * // "run_a was evicted: its loss is not finite; to let it in again, remove out/run_a/control/evicted.txt"
 * ```
 */
export const evictionMessage = (outputDirectory: string, { id, reason }: EvictedRun): string =>
  `${id} was evicted: ${reason}; to let it in again, remove ${outputDirectory}/${id}/${Layout.evicted}`
