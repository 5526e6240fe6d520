/**
 * Makes data sets of transitions, from which algorithms learn without playing: observations, actions, rewards, and how
 * episodes ended. `record` and `play` make them by playing an env, `fromMinari` and `toMinari` read and write the files
 * of Minari.
 *
 * @example
 * ```ts
 * const random = Transitions.record(Pendulum.env, { episodes: 20, policy: "random" })
 * const falling = Transitions.record(Pendulum.env, { episodes: 20, policy: () => [0] })
 * const transitions = Transitions.concat([random, falling])
 * Train.run({ env: Pendulum.env, algorithm: Bc.make(transitions), totalSteps: 50_000 })
 * ```
 */
import { Effect } from "effect"
import { attempt } from "../../../base/config/attempt.ts"
import { type Env, rowSpaceOf } from "../../env/Env.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { isWhole, sizeOf, type SpaceValue } from "../../env/Space.ts"
import { stream } from "../../../base/rng/Rng.ts"
import { randomActions } from "../exploration.ts"
import type { Transitions } from "./DataSet.ts"
import { makePlayer, observationIn } from "./player.ts"

export type { Transitions } from "./DataSet.ts"
export { fromMinari, type MinariOptions, toMinari } from "./minari.ts"

interface PlayOptions {
  readonly episodes: number
  /** The seed of the env's randomness; 0 by default. */
  readonly seed?: number
  /** The number of steps after which an episode is cut short; 10,000 by default. */
  readonly maxSteps?: number
}

export interface RecordOptions extends PlayOptions {
  /**
   * Chooses the action for a flat observation (see `Space.unflatten`), which ends with the action mask if the env has
   * masks: one number if actions are discrete, else a number per element. `random` draws actions from the whole space.
   */
  readonly policy: "random" | ((observation: ReadonlyArray<number>) => number | ReadonlyArray<number>)
}

/**
 * Plays episodes with a function as the policy, and returns their steps. Throws EnvError if an action is invalid or the env
 * fails.
 */
export const record = (env: Env, { episodes, policy, seed = 0, maxSteps = 10_000 }: RecordOptions): Transitions => {
  const player = makePlayer(env, { name: "demonstrations", seed, maxSteps })
  const choose = policy === "random" ? randomPolicy(env, seed) : policy
  for (let episode = 0; episode < episodes; episode++) {
    player.begin()
    while (player.step(choose(Array.from(player.observations))));
  }
  return player.played()
}

/** Returns a policy that draws each action from the whole space, or from the actions that the mask allows. */
const randomPolicy = (env: Env, seed: number) => {
  const task = { observationSpace: rowSpaceOf(env), actionSpace: env.actionSpace }
  const size = sizeOf(env.actionSpace)
  const action = isWhole(env.actionSpace) ? new Int32Array(size) : new Float32Array(size)
  const random = stream(seed, "demonstrations", "random")
  let calls = 0
  return (observation: ReadonlyArray<number>): ReadonlyArray<number> => {
    randomActions(task, Float32Array.from(observation), random.child(calls++), action)
    return Array.from(action)
  }
}

/** The part of a loaded policy (see `Policy.load`) that `play` calls. */
interface Acting<E> {
  readonly act: (
    observation: SpaceValue,
    state?: ReadonlyArray<number>,
    mask?: ReadonlyArray<number>,
  ) => Effect.Effect<
    { readonly action: number | ReadonlyArray<number>; readonly state: ReadonlyArray<number> | undefined },
    E
  >
}

/**
 * Plays episodes with a loaded policy, and returns their steps. With `Policy.load(run, { sampled: true })`, the actions are
 * drawn as in training, so that the data set covers more of the env.
 *
 * @example
 * ```ts
 * const fromRun = Effect.gen(function* () {
 *   const policy = yield* Policy.load("results/my-run", { sampled: true })
 *   return yield* Transitions.play(Pendulum.env, policy, { episodes: 50 })
 * }).pipe(Effect.scoped)
 * ```
 */
export const play = Effect.fnUntraced(function* <E>(
  env: Env,
  policy: Acting<E>,
  { episodes, seed = 0, maxSteps = 10_000 }: PlayOptions,
): Effect.fn.Return<Transitions, EnvError | E> {
  const player = yield* attempt(() => makePlayer(env, { name: "transitions", seed, maxSteps }), EnvError)
  const observe = observationIn(rowSpaceOf(env))
  for (let episode = 0; episode < episodes; episode++) {
    yield* attempt(player.begin, EnvError)
    let state: ReadonlyArray<number> | undefined
    for (let goesOn = true; goesOn;) {
      const { observation, mask } = observe(Array.from(player.observations))
      const acted = yield* policy.act(observation, state, mask)
      state = acted.state
      goesOn = yield* attempt(() => player.step(acted.action), EnvError)
    }
  }
  return player.played()
})

/**
 * Joins data sets of the same env.
 *
 * @example
 * ```ts
 * const some = Transitions.record(CartPole.env, { episodes: 2, policy: "random" })
 * Transitions.concat([some, some]).lengths.length // 4
 * ```
 */
export const concat = (sets: ReadonlyArray<Transitions>): Transitions => {
  const floats = (arrayOf: (set: Transitions) => Float32Array): Float32Array => {
    const joined = new Float32Array(sets.reduce((sum, set) => sum + arrayOf(set).length, 0))
    let at = 0
    for (const set of sets) {
      joined.set(arrayOf(set), at)
      at += arrayOf(set).length
    }
    return joined
  }
  const areWhole = sets.every(({ actions }) => actions instanceof Int32Array)
  return {
    rows: sets.reduce((sum, { rows }) => sum + rows, 0),
    observations: floats(({ observations }) => observations),
    actions: areWhole
      ? Int32Array.from(sets.flatMap(({ actions }) => Array.from(actions)))
      : floats(({ actions }) => Float32Array.from(actions)),
    rewards: floats(({ rewards }) => rewards),
    lengths: Int32Array.from(sets.flatMap(({ lengths }) => Array.from(lengths))),
    terminated: Uint8Array.from(sets.flatMap(({ terminated }) => Array.from(terminated))),
    finalObservations: floats(({ finalObservations }) => finalObservations),
    returns: sets.flatMap(({ returns }) => returns),
  }
}
