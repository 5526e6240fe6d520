/**
 * Changes the actions, rewards, observations or episode lengths of an env. Each wrapper is a pure function from env to
 * env, so wrappers can be nested. Where possible, the wrapped env keeps the fast `batch` of the inner env.
 *
 * `Normalise` and `EpisodeLog` wrap a batch instead of an env, because they compute statistics over all its envs.
 *
 * @example
 * ```ts
 * import { Pendulum, Wrapper } from "effect-rl"
 *
 * const env = Wrapper.scaleReward(Wrapper.rescaleAction(Pendulum.env), 0.1) // actions in [-1, 1]
 * ```
 */
import { Effect } from "effect"
import type { AnyBatchEnv } from "./BatchEnv.ts"
import { type ActionOf, type Env, rowSpaceOf } from "./Env.ts"
import { graphOf, withGraph } from "./EnvGraph.ts"
import { checkWhole, invalid } from "../../base/EnvError.ts"
import { goalsOf, withGoals } from "./GoalEnv.ts"
import { stackedSpace, stackedValue } from "./internal/frames.ts"
import { mapActions, mapRewards, selectObservations } from "./internal/mapped.ts"
import { type Around, around, firstStep, refuseElsewhere, rowOf, withConfig } from "./internal/around.ts"
import { allows, maskOf } from "./internal/rows.ts"
import { type ActionSpace, box, type Box, contains, display, type Space } from "./Space.ts"
import { adapted } from "./ui/module.ts"

export * from "./pixel/wrappers.ts"

/** Truncates episodes after `steps` steps, or at the env's own limit if that is lower. */
export const timeLimit = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  steps: number,
): Env<State, A, O> => {
  checkWhole(env.id, steps, 1, `${env.id}: timeLimit: ${steps} steps`)
  const goals = goalsOf(env)
  const limited = withGraph({ ...env, maxSteps: Math.min(steps, env.maxSteps ?? steps) }, graphOf(env))
  if (goals !== undefined) withGoals(limited, goals)
  return withConfig(env, limited, "TimeLimit", { steps })
}

/** Clips actions to the bounds of the env's action space, so that a Gaussian policy can act with any finite numbers. */
export const clipAction = <State, O extends Space>(env: Env<State, Box, O>): Env<State, Box, O> => {
  const { low, high, shape } = env.actionSpace
  const space = box(Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY, shape)
  const clipped = withAction(env, space, (value, element) => Math.min(Math.max(value, low[element]), high[element]))
  return withConfig(env, clipped, "ClipAction", {})
}

/** Lets the agent act with numbers from `low` to `high`: scales them to the env's own bounds, which must be finite. */
export const rescaleAction = <State, O extends Space>(
  env: Env<State, Box, O>,
  low = -1,
  high = 1,
): Env<State, Box, O> => {
  const inner = env.actionSpace
  if (![...inner.low, ...inner.high].every(Number.isFinite))
    throw invalid(env.id, "rescaleAction: the action space has no finite bounds")
  if (!(low < high)) throw invalid(env.id, `rescaleAction: low ${low} is not below high ${high}`)
  const rescaled = withAction(
    env,
    box(low, high, inner.shape),
    (value, element) =>
      inner.low[element] + ((inner.high[element] - inner.low[element]) * (value - low)) / (high - low),
  )
  return withConfig(env, { ...rescaled, ...rescaledUi(env, low, high) }, "RescaleAction", { low, high })
}

/** Changes an env's `ui`, its code for browsers, to scale actions from `low` … `high` to the env's own bounds. */
const rescaledUi = (
  { ui, actionSpace }: Pick<Env<unknown, Box>, "ui" | "actionSpace">,
  low: number,
  high: number,
): { readonly ui?: string } => {
  if (ui === undefined) return {}
  const [lowest, highest] = [JSON.stringify(actionSpace.low), JSON.stringify(actionSpace.high)]
  const action = `Array.from(action, (value, at) => ${lowest}[at] + ((${highest}[at] - ${lowest}[at]) * (value - ${low})) / ${high - low})`
  return { ui: adapted(ui, { action }) }
}

/**
 * Returns the functions of a wrapped env that make batches: `batch` makes the inner env's fast batch, if it has one,
 * and wraps it; `open` does this for an env that runs elsewhere.
 */
const batchesOf = (env: Env, wrap: <B extends AnyBatchEnv>(inner: B) => B): Pick<Env, "batch" | "open"> => ({
  batch: (numEnvs, options) => {
    const inner = env.batch?.(numEnvs, options)
    return inner && wrap(inner)
  },
  ...(env.open && {
    open: (numEnvs, options) => Effect.map(env.open?.(numEnvs, options) ?? Effect.die(env.id), (inner) => wrap(inner)),
  }),
})

/** Wraps an env so that `map` changes its actions. A batch stores float32, so round to it before and after `map`. */
const withAction = <State, O extends Space>(
  env: Env<State, Box, O>,
  space: Box,
  map: (value: number, element: number) => number,
): Env<State, Box, O> => ({
  ...env,
  actionSpace: space,
  step: (state, action, random) =>
    env.step(
      state,
      Array.from(action, (value, element) => Math.fround(map(Math.fround(value), element))),
      random,
    ),
  ...batchesOf(env, (inner) => mapActions(inner, space, map)),
})

/** Clips rewards to `low` … `high`. */
export const clipReward = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  low = -1,
  high = 1,
): Env<State, A, O> => {
  if (!(low <= high)) throw invalid(env.id, `clipReward: low ${low} is above high ${high}`)
  const clipped = withReward(env, (reward) => Math.min(Math.max(reward, low), high))
  return withConfig(env, clipped, "ClipReward", { low, high })
}

/** Multiplies rewards by a factor. */
export const scaleReward = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  factor: number,
): Env<State, A, O> => {
  if (!Number.isFinite(factor)) throw invalid(env.id, `scaleReward: the factor is ${factor}`)
  return withConfig(
    env,
    withReward(env, (reward) => reward * factor),
    "ScaleReward",
    { factor },
  )
}

/** Wraps an env so that `map` changes its rewards. A batch stores float32, so round to it before `map`. */
const withReward = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  map: (reward: number) => number,
): Env<State, A, O> => ({
  ...env,
  step: (state, action, random) => {
    const transition = env.step(state, action, random)
    return { ...transition, reward: map(Math.fround(transition.reward)) }
  },
  ...batchesOf(env, (inner) => mapRewards(inner, map)),
})

/**
 * Shows the agent only some elements of the observation, by index: `keepObservations(CartPole.env, [0, 2])` hides the
 * velocities, so that only a policy with memory can balance the pole.
 */
export const keepObservations = <State, A extends ActionSpace>(
  env: Env<State, A, Box>,
  elements: ReadonlyArray<number>,
): Env<State, A, Box> => {
  const { low, high } = env.observationSpace
  const wrong = elements.find((element) => !(element in low))
  if (wrong !== undefined || elements.length === 0)
    throw invalid(env.id, `keepObservations: an observation has the elements 0 … ${low.length - 1}, not ${wrong}`)
  const pick = (all: ArrayLike<number>): ReadonlyArray<number> => elements.map((element) => all[element])
  const space = box(pick(low), pick(high))
  const reduced: Env<State, A, Box> = {
    ...env,
    // The id differs, so that a config with this id never refers to the env that shows all elements.
    id: `${env.id}[${elements.join(",")}]`,
    observationSpace: space,
    observe: (state) => pick(env.observe(state)),
    ...batchesOf(env, (inner) => {
      // An action mask is at the end of each row, and stays there.
      const masks = Array.from({ length: inner.observationSize - low.length }, (_, index) => low.length + index)
      return selectObservations(inner, rowSpaceOf(reduced), [...elements, ...masks])
    }),
  }
  return withConfig(env, reduced, "KeepObservations", { elements })
}

export interface Stacked<State> extends Around<State> {
  /** The numbers of the last observations, oldest first. */
  readonly frames: ReadonlyArray<ReadonlyArray<number>>
}

/**
 * Joins the last `size` observations to one, oldest first. At the start of an episode it repeats the first observation.
 * Images of `channels` channels become images of `size * channels` channels, so that networks still see an image. If an
 * observation has parts, the real numbers of each part are joined; of choices and switches, only the latest are shown.
 */
export function frameStack<State, A extends ActionSpace>(
  env: Env<State, A, Box>,
  size: number,
): Env<Stacked<State>, A, Box>
export function frameStack<State, A extends ActionSpace>(env: Env<State, A>, size: number): Env<Stacked<State>, A>
export function frameStack<State, A extends ActionSpace>(env: Env<State, A>, size: number): Env<Stacked<State>, A> {
  checkWhole(env.id, size, 1, `${env.id}: frameStack: ${size} frames`)
  const { observationSpace } = env
  const see = (state: State): ReadonlyArray<number> => rowOf(env, state)
  const space = stackedSpace(observationSpace, size)
  const stacked = around<State, Stacked<State>, A, Space>(env, {
    observationSpace: space,
    reset: (random) => {
      const inner = env.reset(random)
      const first = see(inner)
      return { inner, frames: Array.from({ length: size }, () => first) }
    },
    observe: ({ frames }) => stackedValue(observationSpace, frames),
    step: ({ inner, frames }, action, random) => {
      const transition = env.step(inner, action, random)
      return { ...transition, state: { inner: transition.state, frames: [...frames.slice(1), see(transition.state)] } }
    },
  })
  return withConfig(env, stacked, "FrameStack", { size })
}

export interface Sticky<State, A extends ActionSpace> extends Around<State> {
  /** The action taken in the last step; null before the first step of an episode. */
  readonly last: ActionOf<A> | null
}

/**
 * Repeats, with this probability, the last action instead of taking the agent's new one (Machado et al. 2018). An action
 * that is not allowed now is not repeated.
 */
export const stickyActions = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  probability = 0.25,
): Env<Sticky<State, A>, A, O> => {
  if (!(probability >= 0 && probability < 1))
    throw invalid(env.id, `stickyActions: probability ${probability} is not in [0, 1)`)
  const sticky = around<State, Sticky<State, A>, A, O>(env, {
    observationSpace: env.observationSpace,
    reset: (random) => ({ inner: env.reset(random), last: null }),
    observe: ({ inner }) => env.observe(inner),
    step: ({ inner, last }, action, random) => {
      const repeats = last !== null && random.uniformDouble() < probability
      const taken = repeats && allows(env, maskOf(env, inner), last) ? last : action
      const transition = env.step(inner, taken, random)
      return { ...transition, state: { inner: transition.state, last: taken } }
    },
  })
  return withConfig(env, sticky, "StickyActions", { probability })
}

/**
 * Begins each episode with 1 to `most` steps of `noop`. If one of these ends the episode, the env is reset, and the
 * remaining ones follow.
 */
export const noopStarts = <State, A extends ActionSpace, O extends Space>(
  env: Env<State, A, O>,
  noop: ActionOf<A>,
  most = 30,
): Env<State, A, O> => {
  checkWhole(env.id, most, 1, `${env.id}: noopStarts: ${most} steps`)
  if (!contains(env.actionSpace, noop))
    throw invalid(env.id, `noopStarts: ${JSON.stringify(noop)} is no action of ${display(env.actionSpace)}`)
  refuseElsewhere(env)
  const { batch: _, ...rest } = env
  const started: Env<State, A, O> = {
    ...rest,
    reset: (random) => {
      let state = env.reset(random)
      for (let left = 1 + random.integer(most); left > 0; left--) {
        state = firstStep(env, "noopStarts", state, noop, random)
      }
      return state
    },
  }
  return withConfig(env, started, "NoopStarts", { noop: typeof noop === "number" ? noop : Array.from(noop), most })
}
