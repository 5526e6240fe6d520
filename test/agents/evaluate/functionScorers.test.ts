import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Scorer from "../../../src/agents/evaluate/Scorer.ts"
import { answered } from "./support.ts"

/** The types of scorers in the package `autoevals` 0.3, which are not imported. */
interface Score {
  name: string
  score: number | null
  metadata?: Record<string, unknown>
  error?: unknown
}
type ScorerArgs<Output, Extra> = { output: Output; expected?: Output } & Extra
type ScorerWithPartial<Output, Extra> = ((args: ScorerArgs<Output, Extra>) => Score | Promise<Score>) & {
  partial: (args: Partial<Extra>) => unknown
}

const like = <Output, Extra>(
  name: string,
  score: (args: ScorerArgs<Output, Extra>) => Score | Promise<Score>,
): ScorerWithPartial<Output, Extra> => Object.defineProperty(Object.assign(score, { partial: () => score }), "name", { value: name }) // prettier-ignore

const Same: ScorerWithPartial<string, {}> = like("Same", ({ output, expected }) => ({
  name: "Same",
  score: output === expected ? 1 : 0,
}))
const Asked: ScorerWithPartial<string, { input: string; output: string; expected?: string; model?: string }> = like(
  "Asked",
  async ({ input }) => ({ name: "Asked", score: input.length, metadata: { rationale: "long" } }),
)

const played = answered("Rome", "Paris", { env: { id: "task", type: "qa", metadata: { topic: "cities" } } })

describe("a scorer of a function", () => {
  it.effect("takes the scorers of autoevals as they are", () =>
    Effect.gen(function* () {
      const same = Scorer.fromFunction(Same)
      assert.deepInclude({ ...same }, { name: "Same", direction: "higher", timed: false })
      assert.strictEqual(yield* same.score(played), 0)
      assert.strictEqual(yield* same.score(answered("Paris", "Paris")), 1)
      const asked = Scorer.fromFunction(Asked, { name: "chars", direction: "lower" })
      assert.deepInclude({ ...asked }, { name: "chars", direction: "lower" })
      assert.strictEqual(yield* asked.score(played), "What?".length)
    }),
  )

  it.effect("gets the texts and the metadata of an episode, also of one without an answer or a target", () =>
    Effect.gen(function* () {
      const seen: Array<Scorer.ScoredAnswer> = []
      const scorer = Scorer.fromFunction((answer) => {
        seen.push(answer)
        return null
      })
      assert.strictEqual(scorer.name, "function")
      assert.isNull(yield* scorer.score(played))
      assert.isNull(yield* scorer.score(answered(null, null, { steps: [] })))
      assert.deepEqual(seen, [
        { input: "What?", output: "Rome", expected: "Paris", metadata: { topic: "cities" } },
        { input: "", output: "", metadata: {} },
      ])
    }),
  )

  it.effect(
    "gives null for a score with an error, and fails in a line if the function throws, rejects or returns no number",
    () =>
      Effect.gen(function* () {
        const broken = Scorer.fromFunction(() => ({ score: 0, error: new Error("no key") }), { name: "broken" })
        assert.isNull(yield* broken.score(played))
        const functions: ReadonlyArray<readonly [() => never | Promise<never>, string]> = [
        [() => { throw new Error("oh no") }, "oh no"],
        [() => Promise.reject(new Error("no network")), "no network"],
        [() => JSON.parse('"high"'), "it returned string"],
        [() => JSON.parse('{"score":true}'), "it returned boolean"],
      ] // prettier-ignore
        for (const [function_, problem] of functions) {
          const error = yield* Effect.flip(Scorer.fromFunction(function_, { name: "mine" }).score(played))
          assert.deepInclude({ ...error }, { _tag: "AgentError", agent: "mine" })
          assert.strictEqual(error.message, `scorers: mine threw for episode 1: ${problem}; expected a number or null`)
        }
      }),
  )
})
