import * as Node from "../../../src/node.ts"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { FetchHttpClient } from "effect/http"
import * as MemorylessAgent from "../../../src/agents/agent/MemorylessAgent.ts"
import * as TextEnv from "../../../src/agents/task/TextEnv.ts"
import type { Rollout } from "../../../src/agents/episode/Rollout.ts"
import * as SingleAgent from "../../../src/agents/episode/protocols/SingleAgent.ts"
import { Lm } from "../../../src/agents/lm/Lm.ts"
import * as OpenAi from "../../../src/agents/lm/providers/openAi.ts"
import { retrying } from "../../../src/agents/lm/middleware/retrying.ts"
import { type Body, faults, overloaded, serve, type Fault } from "./server.ts"

/** Two numbers to double, one after the other. */
const doubling = (episode: number): TextEnv.TextEnv => {
  const asked = (step: number): string => `Episode ${episode}, step ${step}: what is ${episode} + ${episode}?`
  return TextEnv.make({
    id: `double-${episode}`,
    type: "doubling",
    begin: () => ({ state: 1, observation: asked(1) }),
    step: (step, action) => {
      const score = action === `${2 * episode}` ? 1 : 0
      return {
        state: step + 1,
        observation: step === 2 ? null : asked(2),
        feedback: { score, target: `${2 * episode}`, message: "" },
        terminated: step === 2,
      }
    },
  })
}

const answer = ({ messages }: Body): string => {
  const number = /what is (\d+)/.exec(String(messages.at(-1)?.content))?.[1]
  return String(2 * Number(number))
}

const impatient: Fault = { kind: "status", status: 429, headers: { "retry-after": "0.01" } }
const kinds: ReadonlyArray<Fault> = [
  impatient,
  overloaded,
  { kind: "garbled" },
  { kind: "dropped" },
  { kind: "reset" },
  { kind: "slow", milliseconds: 20 },
]

const episodes = 1000

/** Plays all episodes, fifty at a time, and gives the requests that this took. */
const played = (seed: number, streaming: boolean) =>
  Effect.gen(function* () {
    const server = yield* serve({ say: answer, fault: faults({ seed, share: 0.05, kinds }) })
    const retries = { maxRetries: 8, startingDelay: 0.002, backoffFactor: 1, maxDelay: 0.01, jitter: 0.5 }
    const one = yield* OpenAi.make({ model: "m", baseUrl: server.url, streaming })
    const rollouts = yield* Effect.forEach(
      Array.from({ length: episodes }, (_, index) => index),
      (index) =>
        Effect.gen(function* () {
          const agent = yield* MemorylessAgent.make({ model: "m" })
          return yield* SingleAgent.play(agent, {
            id: `e${index}`,
            env: doubling(index),
            envSeed: index,
            samplingSeed: index,
          })
        }),
      { concurrency: 50 },
    ).pipe(Effect.provide(Layer.succeed(Lm, retrying(retries)(one))))
    return { rollouts, asked: server.asked }
  })

const triesOf = (rollout: Rollout): ReadonlyArray<number> =>
  rollout.steps.flatMap((step) => (step._tag === "AgentStep" ? [step.call.completion.attempts] : []))

describe("1,000 episodes over a server that fails one time in twenty", () => {
  for (const [name, client, streaming] of [
    ["fetch, answers at once", FetchHttpClient.layer, false],
    ["Node.httpClient, answers in pieces", Node.httpClient, true],
  ] as const) {
    it.live(`finish with nothing lost and nothing doubled, and every try counted (${name})`, () =>
      Effect.gen(function* () {
        const { rollouts, asked } = yield* played(3, streaming)
        assert.deepStrictEqual(
          rollouts.map(({ id, length, totalReward, ending }) => [id, length, totalReward, ending.terminated]),
          Array.from({ length: episodes }, (_, index) => [`e${index}`, 2, 2, true]),
        )
        // Every answer was given once, and every failed request was repeated.
        const right = asked.filter(({ fault }) => fault.kind === "none" || fault.kind === "slow")
        assert.strictEqual(right.length, 2 * episodes)
        assert.strictEqual(new Set(right.map(({ text }) => text)).size, 2 * episodes)
        const wrong = asked.length - right.length
        assert.isAbove(wrong, 2 * episodes * 0.03)
        assert.strictEqual(new Set(asked.map(({ fault }) => JSON.stringify(fault))).size, kinds.length + 1)
        // Count the tries of each question.
        const tries = new Map<string, number>()
        for (const { body } of asked) {
          const content = String(body.messages.at(-1)?.content)
          tries.set(content, (tries.get(content) ?? 0) + 1)
        }
        const counted = (episode: number, step: number): number =>
          tries.get(`Q: Episode ${episode}, step ${step}: what is ${episode} + ${episode}?`) ?? 0
        assert.deepStrictEqual(
          rollouts.map(triesOf),
          rollouts.map((_, index) => [counted(index, 1), counted(index, 2)]),
        )
      }).pipe(Effect.provide(client)),
    )
  }
})
