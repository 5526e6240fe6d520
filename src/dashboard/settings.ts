/**
 * The configs and results of many runs, in a form that is small to send: runs of one sweep share most parts of their
 * configs, so each part is sent once, and a run lists the numbers of its parts.
 */

/** What the page needs to filter, sort and compare runs by their settings. */
export interface SettingsTable {
  /** Values of top-level keys, each once. */
  readonly parts: ReadonlyArray<unknown>
  /** By the run's path: for each top-level key of config.yaml and metrics.json the index of its value. */
  readonly runs: Readonly<Record<string, RunParts>>
}

interface RunParts {
  readonly config: Readonly<Record<string, number>>
  readonly metrics: Readonly<Record<string, number>>
}

/** A run's config.yaml and metrics.json, as trees. */
export interface RunTrees {
  readonly config: Readonly<Record<string, unknown>>
  readonly metrics: Readonly<Record<string, unknown>>
}

/** Parts with a longer text than this, such as the episodes of an evaluation, are no settings. */
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
