import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as HistoryAgent from "../../../src/agents/agent/HistoryAgent.ts"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as Parser from "../../../src/agents/agent/Parser.ts"
import * as MultiTextEnv from "../../../src/agents/task/MultiTextEnv.ts"
import * as MultiAgentSync from "../../../src/agents/episode/protocols/MultiAgentSync.ts"
import * as Evaluate from "../../../src/agents/evaluate/Evaluate.ts"
import type { EpisodeToScore } from "../../../src/agents/evaluate/PlayedEpisode.ts"
import { LmError } from "../../../src/agents/lm/LmError.ts"
import * as Scripted from "../../../src/agents/lm/providers/scripted.ts"
import { contestant, model, tasks, words } from "./support.ts"

/** Runs an effect to its end, even if it sleeps on the test's clock, for up to a minute. */
const ended = <A, E>(effect: Effect.Effect<A, E>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect)
    yield* TestClock.adjust("1 minute")
    return yield* Fiber.join(fiber)
  })

const played = (concurrency: number, said = model()) =>
  Effect.gen(function* () {
    const { protocol } = yield* contestant("one", said)
    return yield* ended(Evaluate.all({ tasks, protocol, seed: 1, concurrency, repeats: 2 }))
  })

const timeless = ({ startedAtMillis: _1, endedAtMillis: _2, steps, ...rest }: EpisodeToScore) => ({
  ...rest,
  steps: steps.map(({ startedAtMillis: _3, endedAtMillis: _4, ...step }) => step),
})

describe("Evaluate", () => {
  it.effect("gives the same outcomes, in the order of the tasks, at any concurrency", () =>
    Effect.gen(function* () {
      const alone = yield* played(1)
      const many = yield* played(12)
      assert.deepStrictEqual(many.map(timeless), alone.map(timeless))
      assert.deepStrictEqual(
        many.map(({ index, task, repeat }) => [index, task, repeat]),
        words.flatMap((_, task) => [0, 1].map((repeat) => [2 * task + repeat, task, repeat])),
      )
    }),
  )

  it.effect("keeps a failed episode, and the others", () =>
    Effect.gen(function* () {
      const all = yield* played(3, model({ knows: ["one", "two"], breaks: ["four"] }))
      const failed = all.filter(({ error }) => error !== null)
      assert.deepStrictEqual(
        failed.map(({ env, error, rollouts }) => [env.id, error?.error, error?.message, rollouts.length]),
        [0, 1].map(() => ["word-3", "LmError", "four breaks it", 0]),
      )
      assert.deepStrictEqual(
        all.filter(({ repeat }) => repeat === 0).map(({ totalScore, steps }) => [totalScore, steps.length]),
        [
          [1, 1],
          [1, 1],
          [0, 2],
          [0, 0],
          [0, 2],
          [0, 2],
        ],
      )
    }),
  )

  it.effect("counts an episode that has no action, with a step for each answer that gave none", () =>
    Effect.gen(function* () {
      const agent = yield* MemorylessAgent.make({ model: "scripted:test", parser: Parser.tagged("word") })
      const protocol = Evaluate.frozen(agent, { maxSteps: 2 })
      const [first, ...others] = yield* Evaluate.all({ tasks, protocol, seed: 1, concurrency: 1 })
      assert.lengthOf(others, words.length - 1)
      assert.deepInclude(first, { error: null, totalScore: 0 })
      assert.deepStrictEqual(
        first.steps.map(({ action, info, truncated }) => [action, info, truncated]),
        [
          [null, { parse_failed: true }, false],
          [null, { parse_failed: true }, true],
        ],
      )
    }).pipe(Effect.provide(Scripted.layer(() => "dunno"))),
  )

  it.effect("stops if all other episodes would fail, too", () =>
    Effect.gen(function* () {
      const message = "the key is wrong"
      const lm = Scripted.make(({ model }) =>
        Effect.fail(new LmError({ model, reason: "unauthorised", attempts: 1, message })),
      )
      const error = yield* Effect.flip(played(3, { lm, asked: [] }))
      assert.strictEqual(error.message, message)
    }),
  )

  it.effect("plays agents without changing their memories", () =>
    Effect.gen(function* () {
      const agent = yield* HistoryAgent.make({ model: "scripted:echo" })
      const memory = agent.memory
      assert.isNotNull(memory)
      if (memory === null) return
      yield* memory.add({ type: "Reflection", content: "keep" })
      const before = yield* memory.snapshot
      yield* Evaluate.all({ tasks, protocol: Evaluate.frozen(agent), seed: 1, concurrency: 3 })
      assert.strictEqual(yield* memory.snapshot, before)
    }).pipe(Effect.provide(Scripted.layer(Scripted.echo))),
  )

  it.effect("plays by any protocol: of two players, the first one's steps count", () =>
    Effect.gen(function* () {
      const highest = MultiTextEnv.make<null>({
        id: "highest",
        type: "highest",
        players: ["a", "b"],
        begin: () => ({ state: null, toMove: ["a", "b"], observations: { a: "7", b: "5" } }),
        step: (state, actions) => {
          const score = Math.sign(Number(actions["a"]) - Number(actions["b"]))
          const told = (value: number) => ({ score: value, target: null, message: "" })
          return {
            state,
            toMove: [],
            observations: {},
            feedback: { a: told(score), b: told(-score) },
            terminated: true,
          }
        },
      })
      const agent = yield* HistoryAgent.make({ model: "scripted:digit" })
      const found = yield* Evaluate.all({
        tasks: { size: 1, digest: "one", at: () => Effect.succeed(highest) },
        protocol: MultiAgentSync.make({ a: agent, b: agent }),
        seed: 1,
        concurrency: 1,
      })
      assert.deepStrictEqual(
        found.map(({ steps, totalScore, rollouts, env }) => [
          steps.map(({ action }) => action),
          totalScore,
          rollouts.map(({ meta }) => meta.player),
          env.id,
        ]),
        [[["7"], 1, ["a", "b"], "highest"]],
      )
    }).pipe(Effect.provide(Scripted.layer(({ messages }) => /\d/.exec(messages.at(-1)?.content ?? "")?.[0] ?? ""))),
  )

  it.effect("gives a task the same seeds in every evaluation with a seed", () =>
    Effect.gen(function* () {
      const { protocol } = yield* contestant("one", model())
      const seedsOf = (seed: number) =>
        Effect.map(ended(Evaluate.all({ tasks, protocol, seed, concurrency: 2, repeats: 2 })), (all) =>
          all.map(({ rollouts }) => rollouts[0].meta.envSeed),
        )
      const first = yield* seedsOf(1)
      assert.deepStrictEqual(yield* seedsOf(1), first)
      assert.strictEqual(new Set([...first, ...(yield* seedsOf(2))]).size, 24)
    }),
  )
})
