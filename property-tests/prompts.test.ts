import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import { meansOf, SearchState } from "../src/agents/prompts/candidates.ts"
import { frontOf, selectFrom, undominated } from "../src/agents/prompts/front.ts"
import { costOf, type GepaSettings, search } from "../src/agents/prompts/gepa.ts"
import { minibatchOf } from "../src/agents/prompts/minibatches.ts"
import { stream } from "../src/base/rng/Rng.ts"
import { scripted } from "../test/agents/prompts/world.ts"
import { tries } from "../test/house/tries.ts"

const score = fc.constantFrom(0, 0.25, 0.5, 1)
/** A row of scores for each candidate. */
const table = fc
  .tuple(fc.integer({ min: 1, max: 7 }), fc.integer({ min: 1, max: 6 }))
  .chain(([candidates, tasks]) =>
    fc.array(fc.array(score, { minLength: tasks, maxLength: tasks }), { minLength: candidates, maxLength: candidates }),
  )
const means = (scores: ReadonlyArray<ReadonlyArray<number>>) =>
  scores.map((row) => row.reduce((sum, one) => sum + one, 0) / row.length)

describe("the front of candidates", () => {
  it("doesn't depend on the order of the tasks", () => {
    fc.assert(
      fc.property(table, fc.integer({ min: 0, max: 1000 }), (scores, seed) => {
        const order = [...stream(seed, "order").permutation(new Int32Array(scores[0].length))]
        const permuted = scores.map((row) => order.map((task) => row[task]))
        const front = undominated(frontOf(scores), means(scores))
        assert.deepStrictEqual(
          undominated(frontOf(permuted), means(scores)),
          order.map((task) => front[task]),
        )
      }),
    )
  })

  it("has a candidate for every task, and never selects one that another beats or equals everywhere", () => {
    fc.assert(
      fc.property(table, fc.integer({ min: 0, max: 1000 }), (scores, seed) => {
        const front = frontOf(scores)
        assert.isTrue(undominated(front, means(scores)).every((best) => best.length > 0))
        const selected = selectFrom(front, means(scores), stream(seed, "select"))
        const beaten = scores.some(
          (row, other) =>
            other !== selected &&
            row.every((value, task) => value >= scores[selected][task]) &&
            row.some((value, task) => value > scores[selected][task]),
        )
        assert.isFalse(beaten)
      }),
    )
  })
})

describe("minibatches", () => {
  it("have tasks of the data set, each once, and cover it in an epoch", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: 0, max: 5 }),
        (tasks, size, epoch) => {
          const perEpoch = Math.ceil(tasks / size)
          const batches = Array.from({ length: perEpoch }, (_, at) =>
            minibatchOf({ seed: 1, size, tasks }, epoch * perEpoch + at),
          )
          for (const batch of batches) assert.strictEqual(new Set(batch).size, batch.length)
          assert.deepStrictEqual(
            [...new Set(batches.flat())].sort((a, b) => a - b),
            Array.from({ length: tasks }, (_, task) => task),
          )
        },
      ),
    )
  })
})

const world = fc.record({
  seed: fc.integer({ min: 0, max: 10_000 }),
  train: fc.integer({ min: 1, max: 5 }),
  validation: fc.integer({ min: 1, max: 7 }),
  minibatchSize: fc.integer({ min: 1, max: 4 }),
  merge: fc.boolean(),
  budget: fc.integer({ min: 1, max: 200 }),
  names: fc.constantFrom(["one"], ["one", "two"], ["one", "two", "three"]),
})
type World = Parameters<Parameters<typeof world.map>[0]>[0]

const searched = ({ seed, train, validation, names, minibatchSize, merge, budget }: World) => {
  const sizes = { train, validation }
  const settings: GepaSettings = {
    seed,
    minibatchSize,
    merge,
    maxMerges: 3,
    perfectScore: 1,
    maxMetricCalls: validation + budget,
    maxTokens: null,
    stopScore: null,
  }
  const { around, requests, states } = scripted(
    sizes,
    (texts, set, task) => stream(seed, set, task, ...Object.values(texts)).integer(5) / 4,
    ({ name }, call) =>
      call % 7 === 0 ? { _tag: "None", reason: "no_text" } : { _tag: "Text", text: `${name} ${call}` },
  )
  const seedTexts = Object.fromEntries(names.map((name) => [name, `${name} 0`]))
  const { state, end } = Effect.runSync(search(settings, seedTexts, around))
  return { state, end, settings, sizes, requests, states }
}

describe("a search for better prompts", () => {
  it("never plays more tasks than its budget, and stops only when an iteration might exceed it", () => {
    fc.assert(
      fc.property(world, (given) => {
        const { state, settings, sizes, requests } = searched(given)
        const played = requests.reduce((sum, one) => sum + ("tasks" in one ? one.tasks.length : 0), 0)
        assert.strictEqual(state.metricCalls, played)
        assert.isAtMost(played, settings.maxMetricCalls)
        assert.isAbove(played + costOf(settings, sizes), settings.maxMetricCalls)
      }),
      { numRuns: tries(100) },
    )
  })

  it("takes each text of a candidate from its parents, except the one text that a reflection has written", () => {
    fc.assert(
      fc.property(world, (given) => {
        const { state } = searched(given)
        for (const { kind, outcome, parents, changed, candidate } of state.iterations) {
          if (outcome !== "accepted" || candidate === null) continue
          const { texts, parents: kept } = state.candidates[candidate]
          assert.deepStrictEqual(kept, parents)
          assert.strictEqual(changed.length, kind === "merge" ? 0 : 1)
          for (const [name, value] of Object.entries(texts)) {
            const inherited = parents.some((parent) => state.candidates[parent].texts[name] === value)
            assert.strictEqual(inherited, !changed.includes(name))
          }
        }
      }),
      { numRuns: tries(100) },
    )
  })

  it("keeps a proposal only if the minibatch's sum is higher, and a merge only if it is as good as both parents", () => {
    fc.assert(
      fc.property(world, (given) => {
        const { state } = searched(given)
        const sum = (values: ReadonlyArray<number>) => values.reduce((total, one) => total + one, 0)
        for (const { kind, outcome, before, after, parents, tasks } of state.iterations) {
          if (outcome !== "accepted" && outcome !== "rejected") continue
          const ofParents = parents.map((parent) => sum(tasks.map((task) => state.candidates[parent].scores[task])))
          const accepted = kind === "merge" ? sum(after) >= Math.max(...ofParents) : sum(after) > sum(before)
          assert.strictEqual(outcome === "accepted", accepted)
        }
        assert.isTrue(Math.max(...meansOf(state)) >= meansOf(state)[0])
      }),
      { numRuns: tries(100) },
    )
  })

  it("continues from a longer budget as if it had had it from the beginning, and a saved state is the same state", () => {
    fc.assert(
      fc.property(world, (given) => {
        const short = searched(given)
        const long = searched({ ...given, budget: given.budget + 60 })
        assert.deepStrictEqual(long.requests.slice(0, short.requests.length), short.requests)
        assert.deepStrictEqual(
          long.state.candidates.slice(0, short.state.candidates.length).map(({ texts }) => texts),
          short.state.candidates.map(({ texts }) => texts),
        )
        const encoded = Schema.encodeUnknownSync(SearchState)(long.state)
        assert.deepStrictEqual(Schema.decodeUnknownSync(SearchState)(JSON.parse(JSON.stringify(encoded))), long.state)
      }),
      { numRuns: tries(50) },
    )
  })
})
