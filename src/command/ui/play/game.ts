/** Plays an env step by step for a page. The policy in a checkpoint of a run acts, or a person. */
import { Effect, Layer } from "effect"
import type { BackendError } from "../../../tensor/backend/Backend.ts"
import * as wasm from "../../../tensor/backend/wasm.ts"
import { ConfigError, isPlain, toCamelCase } from "../../../base/config/Config.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { keyPlaces, readYamlText } from "../../../base/config/yaml.ts"
import type { Env } from "../../../rl/env/Env.ts"
import type { BodyPull } from "../../../rl/env/EnvBody.ts"
import { type EnvError, invalid } from "../../../base/EnvError.ts"
import { fromConfig } from "../../../rl/env/fromConfig.ts"
import { allows, maskOf, rowOf } from "../../../rl/env/internal/rows.ts"
import { contains, display } from "../../../rl/env/Space.ts"
import { plainState } from "../../../rl/env/ui/Ui.ts"
import { stream } from "../../../base/rng/Rng.ts"
import * as Layout from "../../../run/Layout.ts"
import { Recorder } from "../../../run/record/Recorder.ts"
import { RunStore } from "../../../run/store/RunStore.ts"
import type { TrainedPolicy } from "../../../rl/learner/TrainedPolicy.ts"
import { RunOptions } from "../../../run/RunOptions.ts"
import * as Training from "../../../rl/train/Train.ts"
import type { OpenRequest, GameStep } from "./messages.ts"

export interface PageGame {
  readonly env: Env
  readonly policy: TrainedPolicy
  /** Begins the next episode. */
  readonly restart: () => void
  /** Takes one step with the action of a person; with null, the policy acts. A person may also pull at a body. */
  readonly step: (
    action: ReadonlyArray<number> | null,
    pull?: BodyPull,
  ) => Effect.Effect<GameStep, BackendError | EnvError>
}

/** The name of the config in error messages. */
const source = Layout.config

/** The settings that would otherwise run a validation before the policy is available. */
const withoutValidation = ["validation.everySteps", "render.everySteps"].map((path) => ({ path, value: 0, source }))

/** Restores the policy from the files of a checkpoint, in the same way as a resumed training, and opens its env. */
export const openGame = Effect.fnUntraced(function* ({ config, checkpoint, files }: OpenRequest) {
  const document = yield* readYamlText(config, source)
  const lines = keyPlaces(document, source)
  const training = Training.fromConfig(document.value, { lines })
  const tree = toCamelCase(document.value)
  const from = { source, sources: lines, prefix: ["env"] }
  const env = yield* fromConfig(isPlain(tree) ? tree.env : undefined, from).pipe(
    Effect.mapError((error) =>
      error.unknown === "env"
        ? error.reworded((message) => `${message}. A page plays built-in envs only, since it loads no code of a run`)
        : error,
    ),
  )
  const run = "run"
  const store = RunStore.memory({
    files: new Map([
      [`${run}/${Layout.config}`, utf8.encode(config)],
      ...files.map(({ path, bytes }) => [`${run}/${path}`, bytes] as const),
    ]),
    resume: run,
  })
  const { policy } = yield* Training.validate(training, { checkpoint, exportsPolicy: true }).pipe(
    Effect.provideService(RunOptions, {
      overrides: [
        ...withoutValidation,
        { path: "stopAtReturn", value: null, source },
        { path: "stopBelow", value: [], source },
      ],
      source,
      name: run,
    }),
    Effect.provide(Layer.mergeAll(wasm.layer, store.layer, Recorder.layerSilent)),
  )
  if (policy === undefined) return yield* ConfigError.at({ source }, "algorithm", "it has no policy that can be played")
  return yield* makeGame(env, policy)
})

/** Makes the game from an env and a policy, and starts its first episode. */
export const makeGame = Effect.fnUntraced(function* (env: Env, policy: TrainedPolicy) {
  yield* env.prepare ?? Effect.void
  const { program, act } = yield* compile(policy)
  let episode = 0
  let random = stream(0, "play", episode)
  let state = env.reset(random)
  let total = 0
  let length = 0

  const restart = (): void => {
    episode++
    random = stream(0, "play", episode)
    state = env.reset(random)
    total = 0
    length = 0
    program.feeds.memory?.fill(0)
  }

  const step = Effect.fnUntraced(function* (chosen: ReadonlyArray<number> | null, pull?: BodyPull) {
    const before = state
    // The policy computes an action even if a person acts, so that its memory stays up to date.
    const own = yield* act(rowOf(env, before))
    const action = chosen ?? own
    const inSpace = env.actionSpace._tag === "Discrete" && action.length === 1 ? action[0] : action
    if (chosen !== null && !contains(env.actionSpace, inSpace)) {
      return yield* invalid(env.id, `expected an action in ${display(env.actionSpace)}, found [${action.join(", ")}]`)
    }
    if (!allows(env, maskOf(env, before), inSpace)) {
      return yield* invalid(env.id, `the action mask forbids [${action.join(", ")}]`)
    }
    const take = () => env.step(before, env.actionSpace._tag === "Discrete" ? action[0] : action, random)
    const watched = env.body?.watch(pull, take)
    const moved = watched?.result ?? take()
    state = moved.state
    total += moved.reward
    length++
    const truncated = moved.truncated === true || length >= (env.maxSteps ?? Infinity)
    const { reward, terminated } = moved
    const seen = { action, reward, total, length, terminated, truncated: truncated && !terminated }
    if (watched === undefined) return { state: plainState(before), ...seen }
    const { moments, seconds, terms } = watched
    return { state: null, ...seen, moments: moments.map(plainState), seconds, terms }
  })
  const game: PageGame = { env, policy, restart, step }
  return game
})

/** Compiles a policy. The result's `act` normalises an observation as in the training, and returns the action. */
const compile = Effect.fnUntraced(function* (policy: TrainedPolicy) {
  const { compile } = wasm.make()
  const program = yield* compile(policy.spec)
  for (const [name, numbers] of Object.entries(policy.states)) yield* program.write(name, numbers)
  const { normalisation } = policy
  const act = Effect.fnUntraced(function* (observation: ArrayLike<number>) {
    const { observations, memory } = program.feeds
    observations.set(observation)
    if (normalisation !== undefined) {
      const { mean, factor, clip, kept } = normalisation
      for (let index = 0; index < observations.length; index++) {
        observations[index] = Math.min(Math.max((observations[index] - mean[index]) * factor[index], -clip), clip)
      }
      for (const column of kept) observations[column] = observation[column]
    }
    yield* program.run
    memory?.set(program.results.nextMemory)
    return Array.from(program.results.actions, Number)
  })
  return { program, act }
})
