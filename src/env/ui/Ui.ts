/**
 * Draws an env on a canvas with JavaScript that a browser loads together with a run's trajectories, as RLtools' viewer
 * does.
 *
 * The module of an env exports `init(canvas, options)`, which returns (a promise of) a ui state, `render(ui_state,
 * parameters, state, action)`, which draws one moment, and optionally `episode_init(ui_state, parameters)`. `options`
 * are `{ devicePixelRatio }`, and `theme` for our envs; `state` is the env's state as JSON, `action` its numbers.
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
  /** The text of `ui.esm.js`, an ES module. */
  readonly esm: string
  /** The text of `ui.js`, the same as a script with global functions. */
  readonly classic: string
}

/** Returns the drawing of an env, if it has one. */
export const uiOf = ({ ui }: Env): Ui | undefined => (ui === undefined ? undefined : { esm: ui, classic: classic(ui) })
