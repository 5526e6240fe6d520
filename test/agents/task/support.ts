import { Effect } from "effect"
import { assert } from "vitest"
import * as Datasets from "../../../src/agents/task/Datasets.ts"
import type { EnvError } from "../../../src/base/EnvError.ts"
import type { TextEnv, TextStep } from "../../../src/agents/task/TextEnv.ts"
import { stream } from "../../../src/base/rng/Rng.ts"
import * as NodeFileSystem from "@effect/platform-node/NodeFileSystem"
import * as NodePath from "@effect/platform-node/NodePath"

export interface Played {
  readonly env: TextEnv
  readonly observations: ReadonlyArray<string | null>
  readonly steps: ReadonlyArray<TextStep>
  /** The sum of the scores. */
  readonly score: number
  readonly terminated: boolean
}

/** A player: what it sees, and how many it saw before. */
export type Player = (observation: string, step: number) => string

/** Plays an env, as a protocol does: to its end, or to its `maxSteps`. */
export const play = (env: TextEnv, player: Player, seed = 1): Effect.Effect<Played, EnvError> =>
  Effect.gen(function* () {
    const episode = yield* env.begin(stream(seed, "env"))
    const observations: Array<string | null> = [episode.observation]
    const steps: Array<TextStep> = []
    const limit = env.maxSteps ?? 1000
    let over = false
    for (let step = 0; step < limit && !over; step++) {
      const led = yield* episode.step(player(observations.at(-1) ?? "", step))
      observations.push(led.observation)
      steps.push(led)
      over = led.terminated || led.truncated === true
    }
    const score = steps.reduce((sum, { feedback }) => sum + feedback.score, 0)
    assert.isTrue(score >= 0 && score <= 1, `${env.id}: score ${score}`)
    return { env, observations, steps, score, terminated: steps.at(-1)?.terminated ?? false }
  }).pipe(Effect.scoped)

/** Says these one after another, and then the last of them for ever. */
export const saying =
  (...actions: ReadonlyArray<string>): Player =>
  (_, step) =>
    actions[Math.min(step, actions.length - 1)]

/** Tasks of a data set that no file belongs to. */
export const tasks = (config: Readonly<Record<string, unknown>>, howMany: number) =>
  Effect.gen(function* () {
    const { tasks: set } = yield* Datasets.open(config, { baseDir: "." })
    return yield* Effect.forEach(
      Array.from({ length: Math.min(howMany, set.size) }, (_, index) => index),
      (index) => set.at(index),
    )
  }).pipe(Effect.provide(NodeFileSystem.layer), Effect.provide(NodePath.layer))
