/** Helps wrappers that add a state of their own to the state of an env (`Wrapper.ts`, `pixel/wrappers.ts`). */
import type { Stream } from "../../../base/rng/Rng.ts"
import type { ActionOf, Env, EnvTransition } from "../Env.ts"
import { envConfigOf } from "../Envs.ts"
import { invalid } from "../../../base/EnvError.ts"
import { withRecipe } from "../recipe.ts"
import type { ActionSpace, Space } from "../Space.ts"
import { adapted } from "../ui/module.ts"
import { allows, maskOf } from "./rows.ts"
import { writerOf } from "./values.ts"

/** Records how `wrapped` was made, if the inner env has a config: that config, and the wrapper's name and options. */
export const withConfig = <E extends Env>(env: Env, wrapped: E, name: string, options: object): E => {
  const inner = envConfigOf(env)
  return inner === undefined ? wrapped : withRecipe(wrapped, name, { ...options, env: inner })
}

/** The state of a wrapped env, to which a wrapper that must remember something adds fields of its own. */
export interface Around<State> {
  readonly inner: State
}

/** Throws if the env runs elsewhere or has several agents: then there are no functions that a wrapper could call. */
export const refuseElsewhere = (env: Env): void => {
  if (env.agents !== undefined) throw invalid(env.id, "it has several agents; wrap what MultiEnv.against makes of it")
  if (env.open === undefined) return
  throw invalid(env.id, "it steps elsewhere, so wrap it there, e.g. by `wrappers` of a Gymnasium env")
}

/** Makes a wrapped env whose state is an `Around`. Rendering shows the inner state; there is no fast `batch`. */
export const around = <State, Outer extends Around<State>, A extends ActionSpace, O extends Space>(
  env: Env<State, A>,
  changed: Pick<Env<Outer, A, O>, "observationSpace" | "reset" | "observe" | "step">,
): Env<Outer, A, O> => {
  refuseElsewhere(env)
  const { batch: _, actionMask, renderText, renderSvg, ui, ...rest } = env
  return {
    ...rest,
    ...(actionMask && { actionMask: ({ inner }: Outer) => actionMask.call(env, inner) }),
    ...(renderText && { renderText: ({ inner }: Outer) => renderText.call(env, inner) }),
    ...(renderSvg && { renderSvg: ({ inner }: Outer) => renderSvg.call(env, inner) }),
    ...(ui !== undefined && { ui: adapted(ui, { state: "state.inner" }) }),
    ...changed,
  }
}

/**
 * Takes a step at the start of an episode, before the agent acts. If it ends the episode, returns the start of another.
 */
export const firstStep = <State, A extends ActionSpace>(
  env: Env<State, A>,
  wrapper: string,
  state: State,
  action: ActionOf<A>,
  random: Stream,
): State => {
  if (!allows(env, maskOf(env, state), action)) {
    throw invalid(env.id, `${wrapper}: the action mask forbids ${JSON.stringify(action)} at the start of an episode`)
  }
  const { state: next, terminated, truncated }: EnvTransition<State> = env.step(state, action, random)
  return terminated || truncated === true ? env.reset(random) : next
}

/** Returns the numbers of an observation in one list. A box keeps its numbers as they are, without rounding. */
export const rowOf = <State, A extends ActionSpace>(env: Env<State, A>, state: State): ReadonlyArray<number> => {
  const row: Array<number> = []
  const problem = writerOf(env.observationSpace, "observation")(env.observe(state), row, 0)
  if (problem !== undefined) throw invalid(env.id, problem)
  return row
}
