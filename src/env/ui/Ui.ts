/**
 * How an env is drawn on a canvas: JavaScript that a browser loads beside a run's trajectories, as RLtools' viewer does.
 *
 * The module of an env exports `init(canvas, options)`, which gives (or promises) a ui state, `render(ui_state,
 * parameters, state, action)`, which draws one moment, and, where it likes, `episode_init(ui_state, parameters)`.
 * `options` are `{ devicePixelRatio }`, for ours also `theme`; `state` is the env's state as JSON, `action` its numbers.
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

export { trajectoriesJson, type Episode, type Step } from "./trajectories.ts"

export interface Ui {
  /** `ui.esm.js`: an ES module. */
  readonly esm: string
  /** `ui.js`: the same as a script, whose functions are global. */
  readonly classic: string
}

/** The drawing of an env; undefined of one that has none. */
export const uiOf = ({ ui }: Env): Ui | undefined => (ui === undefined ? undefined : { esm: ui, classic: classic(ui) })
