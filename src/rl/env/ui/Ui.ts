/**
 * Makes two texts for pages that replay episodes, such as RLtools' viewer and our dashboard: `uiOf` returns the
 * JavaScript that renders an env on a canvas, and `trajectoriesJson` the states and actions of episodes. It only
 * computes; a run saves the texts as files.
 *
 * The JavaScript is an ES module, called the ui module of the env. It exports `init(canvas, options)`, which returns (a
 * promise of) a ui state, `render(ui_state, parameters, state, action)`, which renders one step, and optionally
 * `episode_init(ui_state, parameters)`. `options` are `{ devicePixelRatio }`, and for the built-in envs also `theme`.
 * `state` is the env's state, read from JSON; `action` is a list of numbers.
 *
 * @example
 * ```ts
 * import { CartPole, Ui } from "effect-rl"
 *
 * Ui.uiOf(CartPole.env)?.esm // the text of ui.esm.js
 * ```
 */
import type { Env } from "../Env.ts"
import { classic } from "./module.ts"

export interface Ui {
  /** The text of `ui.esm.js`, an ES module. */
  readonly esm: string
  /** The text of `ui.js`, the same code as a script with global functions instead of exports. */
  readonly classic: string
}

/** Returns the code that renders an env; undefined if the env has none. */
export const uiOf = ({ ui }: Env): Ui | undefined => (ui === undefined ? undefined : { esm: ui, classic: classic(ui) })

export interface Step {
  /** The state of the env in which the action was taken. */
  readonly state: unknown
  readonly action: number | ArrayLike<number>
  readonly reward: number
  readonly terminated: boolean
  /** Further fields of a step, such as `observation` and `truncated`. */
  readonly [more: string]: unknown
}

export interface Episode {
  /** The `parameters` that `episode_init` and `render` receive in this episode. Default: none. */
  readonly parameters?: Readonly<Record<string, unknown>>
  readonly steps: ReadonlyArray<Step>
}

/**
 * Returns episodes as JSON text, one line per step; `dt` is the number of seconds for which a step is shown. Numbers
 * are written in full; NaN and the infinities become null, and typed arrays become arrays.
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

/** Returns a state as the ui module reads it from JSON: with lists in place of typed arrays. */
export const plainState = (state: unknown): unknown => JSON.parse(json(state))

const json = (value: unknown): string =>
  JSON.stringify(value, (_, item: unknown) => (isTyped(item) ? Array.from(item, Number) : plain(item)))

const plain = (item: unknown): unknown => (typeof item === "bigint" ? Number(item) : item)

const isTyped = (item: unknown): item is Iterable<number | bigint> =>
  ArrayBuffer.isView(item) && Symbol.iterator in item
