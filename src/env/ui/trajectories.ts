/** Episodes as RLtools' viewer reads them: `trajectories.json`. */

export interface Step {
  /** What the action was taken in: the env's state. */
  readonly state: unknown
  readonly action: number | ArrayLike<number>
  readonly reward: number
  readonly terminated: boolean
  /** More that is to be kept of a step, as `observation` and `truncated` are. */
  readonly [more: string]: unknown
}

export interface Episode {
  /** What is true of the whole episode; nothing by default. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly steps: ReadonlyArray<Step>
}

/**
 * Episodes as text, a line a step; `dt` is the seconds that a step is shown. Numbers are written in full; what JSON has
 * no word for (NaN, the infinities) is null, and typed arrays are arrays.
 */
export const trajectoriesJson = (episodes: ReadonlyArray<Episode>, dt: number): string =>
  `[${episodes.map((episode) => `\n${episodeJson(episode, dt)}`).join(",")}\n]\n`

const episodeJson = ({ parameters = {}, steps }: Episode, dt: number): string => {
  const lines = steps.map(({ state, action, reward, terminated, ...more }) =>
    json({
      state,
      action: typeof action === "number" ? [action] : Array.from(action),
      dt,
      reward,
      terminated,
      ...more,
    }),
  )
  return `{"parameters":${json(parameters)},"trajectory":[${lines.map((line) => `\n${line}`).join(",")}\n]}`
}

const json = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (isTyped(item) ? Array.from(item, Number) : plain(item)))

const plain = (item: unknown): unknown => (typeof item === "bigint" ? Number(item) : item)

const isTyped = (item: unknown): item is Iterable<number | bigint> =>
  ArrayBuffer.isView(item) && Symbol.iterator in item
