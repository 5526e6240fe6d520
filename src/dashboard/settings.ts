/**
 * Encodes the configs and results of many runs in a form that is small to send: runs of one sweep share most parts of
 * their configs, so each part is sent once, and a run lists the indices of its parts.
 */

/** The settings by which the page filters, sorts and compares runs. */
export interface SettingsTable {
  /** The values of top-level keys; equal values are listed once. */
  readonly parts: ReadonlyArray<unknown>
  /** For each run's path and each top-level key of its config.yaml and metrics.json: the value's index in `parts`. */
  readonly runs: Readonly<Record<string, RunParts>>
}

interface RunParts {
  readonly config: Readonly<Record<string, number>>
  readonly metrics: Readonly<Record<string, number>>
}

/** The contents of a run's config.yaml and metrics.json as trees. */
export interface RunTrees {
  readonly config: Readonly<Record<string, unknown>>
  readonly metrics: Readonly<Record<string, unknown>>
}

/** A part with a longer JSON, such as the episodes of an evaluation, is no setting and is left out. */
const mostText = 4000

export const settingsTable = (runs: Iterable<readonly [path: string, trees: RunTrees]>): SettingsTable => {
  const indices = new Map<string, number>()
  const parts: Array<unknown> = []
  const indexOf = (value: unknown): number | undefined => {
    const text = JSON.stringify(value)
    if (text === undefined || text.length > mostText) return undefined
    const index = indices.get(text) ?? parts.length
    if (index === parts.length) {
      indices.set(text, index)
      parts.push(value)
    }
    return index
  }
  const numbered = (tree: Readonly<Record<string, unknown>>): Record<string, number> =>
    Object.fromEntries(
      Object.entries(tree).flatMap(([key, value]) => {
        const index = indexOf(value)
        return index === undefined ? [] : [[key, index]]
      }),
    )
  const rows = [...runs].map(([path, { config, metrics }]) => [
    path,
    { config: numbered(config), metrics: numbered(metrics) },
  ])
  return { parts, runs: Object.fromEntries(rows) }
}
