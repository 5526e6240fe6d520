import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Agent } from "../../../../src/agents/agent/Agent.ts"
import * as HistoryAgent from "../../../../src/agents/agent/HistoryAgent.ts"
import * as MemorylessAgent from "../../../../src/agents/agent/MemorylessAgent.ts"
import * as ReflexionAgent from "../../../../src/agents/agent/ReflexionAgent.ts"
import * as SingleAgent from "../../../../src/agents/episode/protocols/SingleAgent.ts"
import { stream } from "../../../../src/base/rng/Rng.ts"
import * as Scripted from "../../../../src/agents/lm/providers/scripted.ts"
import { reader } from "../../../../src/agents/lm/providers/reader.ts"
import { play, saying, tasks } from "../support.ts"

const code = { type: "codebook", num_tasks: 150, seed: 1 }

/** Plays all tasks, one after another; the share of right answers. */
const trained = (agent: Agent, config: Readonly<Record<string, unknown>>) =>
  Effect.gen(function* () {
    const envs = yield* tasks(config, 1000)
    let score = 0
    for (const [seed, env] of envs.entries()) {
      const episode = { id: env.id, env, envSeed: seed, samplingSeed: seed }
      score += (yield* SingleAgent.play(agent, episode)).totalReward
    }
    return score / envs.length
  })

/** Returns an agent's scores in training, and then, with its memory unchanged, on other tasks with the same code. */
const scores = (agent: Agent, more: Readonly<Record<string, unknown>> = {}) =>
  Effect.gen(function* () {
    const train = yield* trained(agent, { ...code, ...more })
    const before = yield* agent.memory?.snapshot ?? Effect.succeed("")
    const frozen = yield* agent.cloneForEpisode({ training: false, shareMemory: true })
    const validation = yield* trained(frozen, { ...code, ...more, num_tasks: 60, seed: 2 })
    assert.strictEqual(yield* agent.memory?.snapshot ?? Effect.succeed(""), before)
    return { train, validation }
  })

const model = "scripted:reader"

describe("a codebook", () => {
  it.effect("is learnt by agents with memory, and best by ones that reflect", () =>
    Effect.gen(function* () {
      const none = yield* scores(yield* MemorylessAgent.make({ model }))
      const history = yield* scores(yield* HistoryAgent.make({ model }))
      const reflexion = yield* scores(
        yield* ReflexionAgent.make({ model, reflectOnFailureOnly: true, maxReflectionsInPrompt: 12 }),
      )
      assert.deepStrictEqual(none, { train: 0, validation: 0 })
      for (const phase of ["train", "validation"] as const) {
        assert.isAbove(history[phase], 0.3, phase)
        assert.isAbove(reflexion[phase], history[phase] + 0.2, phase)
      }
      // Each of the twelve words is got wrong once, and never again.
      assert.strictEqual(reflexion.train, (150 - 12) / 150)
      assert.strictEqual(reflexion.validation, 1)
    }).pipe(Effect.provide(Scripted.layer(reader))),
  )

  it.effect("with one wording is learnt from the history alone", () =>
    Effect.gen(function* () {
      const { train, validation } = yield* scores(yield* HistoryAgent.make({ model }), { wordings: 1 })
      assert.isAbove(train, 0.85)
      assert.strictEqual(validation, 1)
    }).pipe(Effect.provide(Scripted.layer(reader))),
  )

  it.effect("depends on code_seed, not on the seed of the tasks", () =>
    Effect.gen(function* () {
      const answers = (more: Readonly<Record<string, unknown>>) =>
        Effect.gen(function* () {
          const pairs = new Map<unknown, string | null>()
          for (const env of yield* tasks({ ...code, ...more }, 150)) {
            const { step } = yield* env.begin(stream(1))
            const { target } = (yield* step("")).feedback
            assert.isTrue(!pairs.has(env.metadata["word"]) || pairs.get(env.metadata["word"]) === target)
            pairs.set(env.metadata["word"], target)
          }
          return pairs
        })
      const first = yield* answers({})
      const second = yield* answers({ seed: 2 })
      assert.strictEqual(first.size, 12)
      for (const [word, target] of second) assert.strictEqual(first.get(word), target)
      const other = yield* answers({ code_seed: 7 })
      assert.isTrue([...other].every(([word, target]) => first.get(word) !== target))

      // One shift for all, unless each word has a code of its own.
      const shift = (pairs: ReadonlyMap<unknown, string | null>): ReadonlySet<number> =>
        new Set(
          [...pairs].flatMap(([word, target]) =>
            Array.from(String(word), (letter, at) => ((target ?? "").charCodeAt(at) - letter.charCodeAt(0) + 26) % 26),
          ),
        )
      assert.strictEqual(shift(first).size, 1)
      assert.isAbove(shift(yield* answers({ rule: "none" })).size, 10)
    }),
  )

  it.effect("is revealed in the feedback, never before", () =>
    Effect.gen(function* () {
      const [env] = yield* tasks(code, 1)
      const { observations, steps, score } = yield* play(env, saying("no idea"))
      const { target } = steps[0].feedback
      assert.isNotNull(target)
      assert.notInclude(observations[0], target ?? "")
      assert.strictEqual(score, 0)
      assert.strictEqual((yield* play(env, saying(`${target}.`))).score, 1)
    }),
  )
})
