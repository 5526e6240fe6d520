import { assert, describe, it } from "@effect/vitest"
import { began, type Candidate, type SearchState } from "../../../src/agents/prompts/candidates.ts"
import { frontOf, selectFrom, tasksInFront, undominated } from "../../../src/agents/prompts/front.ts"
import {
  ancestorsOf,
  isDesirable,
  mergedTexts,
  proposeMerge,
  tasksToCompare,
  usableAncestors,
} from "../../../src/agents/prompts/merging.ts"
import { minibatchOf } from "../../../src/agents/prompts/minibatches.ts"
import { stream } from "../../../src/base/rng/Rng.ts"

const random = stream(1, "test")

// The statements of these tests are those of the reference implementation's tests: `test_merge.py`, `test_gepa_utils.py`,
// `test_candidate_selector.py` and `test_batch_sampler.py`.

const candidate = (text: string, parents: ReadonlyArray<number>, scores: ReadonlyArray<number>): Candidate => ({
  texts: { prompt: text },
  parents,
  scores,
  nextText: 0,
  foundAfter: 0,
})

const five = (value: number): ReadonlyArray<number> => [value, value, value, value, value]

const alike = [five(0), five(0), five(0)]

const family = (
  scores: ReadonlyArray<ReadonlyArray<number>>,
  more: Partial<SearchState["merges"]> = {},
): SearchState => {
  const begun = began({ prompt: "A" }, scores[0])
  const candidates = [candidate("A", [], scores[0]), candidate("A", [0], scores[1]), candidate("B", [0], scores[2])]
  return { ...begun, candidates, merges: { ...begun.merges, ...more } }
}

describe("what can be merged", () => {
  it("needs a text that exactly one of two candidates has changed", () => {
    assert.isTrue(isDesirable([{ p: "A" }, { p: "A" }, { p: "B" }], [1, 2, 0]))
    assert.isFalse(isDesirable([{ p: "A" }, { p: "A" }, { p: "A" }], [1, 2, 0]))
    assert.isFalse(isDesirable([{ p: "A" }, { p: "B" }, { p: "C" }], [1, 2, 0]))
  })

  it("leaves out an ancestor that a merge has used, or that is better than a descendant", () => {
    assert.deepStrictEqual(usableAncestors(family(alike), [1, 2], [0.1, 0.6, 0.7]), [0])
    assert.deepStrictEqual(usableAncestors(family(alike, { triplets: [[1, 2, 0]] }), [1, 2], [0.1, 0.6, 0.7]), [])
    assert.deepStrictEqual(usableAncestors(family(alike), [1, 2], [0.9, 0.5, 0.6]), [])
  })

  it("is not a candidate with its own ancestor", () => {
    const state = family(alike)
    const [seed, child, other] = state.candidates
    const line = { ...state, candidates: [seed, child, { ...other, parents: [1] }] }
    assert.deepStrictEqual([...ancestorsOf(line.candidates, 2)].sort(), [0, 1])
    assert.deepStrictEqual(usableAncestors(line, [1, 2], [0.1, 0.6, 0.7]), [])
  })
})

describe("a merge", () => {
  it("takes each text from the candidate that has changed it, and of two changes the better one's", () => {
    const texts = [
      { plan: "a", answer: "b", form: "c", style: "d" },
      { plan: "A", answer: "b", form: "C1", style: "D" },
      { plan: "a", answer: "B", form: "C2", style: "D" },
    ]
    assert.deepStrictEqual(mergedTexts(texts, [1, 2, 0], [0.1, 0.5, 0.6], random), {
      texts: { plan: "A", answer: "B", form: "C2", style: "D" },
      origins: [1, 2, 2, 1],
    })
  })

  it("is proposed once", () => {
    const texts = (plan: string, answer: string) => ({ plan, answer })
    const begun = family([five(0.1), [1, 1, 0, 0, 0], [0, 0, 1, 1, 0]])
    const candidates = begun.candidates.map((one, at) => ({
      ...one,
      texts: [texts("a", "b"), texts("A", "b"), texts("a", "B")][at],
    }))
    const state = { ...begun, candidates }
    const merge = proposeMerge(state, random)
    assert.deepStrictEqual(merge?.texts, texts("A", "B"))
    assert.deepStrictEqual(merge?.triplet, [1, 2, 0])
    assert.deepStrictEqual([...(merge?.tasks ?? [])].sort(), [0, 1, 2, 3, 4])
    const merges = { ...state.merges, origins: [merge?.origin ?? ""] }
    assert.isUndefined(proposeMerge({ ...state, merges }, random))
  })

  it("is not proposed if it would repeat a candidate, or if there are too few validation tasks", () => {
    assert.isUndefined(proposeMerge(family([five(0.1), [1, 1, 0, 0, 0], [0, 0, 1, 1, 0]]), random))
    assert.isUndefined(proposeMerge(family([[0.1], [0.5], [0.5]]), random))
  })

  it("is compared on tasks of which either parent, or neither, is better at", () => {
    const first = [1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0]
    const second = [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0]
    const tasks = tasksToCompare(first, second, random)
    assert.strictEqual(new Set(tasks).size, 5)
    const counts = [
      tasks.filter((at) => at < 4),
      tasks.filter((at) => at >= 4 && at < 8),
      tasks.filter((at) => at >= 8),
    ]
    assert.deepStrictEqual(
      counts.map(({ length }) => length),
      [2, 2, 1],
    )
  })
})

describe("the front", () => {
  it("drops a candidate that others replace everywhere", () => {
    assert.deepStrictEqual(undominated([[0, 1], [1]], [0.3, 0.6]), [[1], [1]])
    assert.strictEqual(selectFrom([[0, 1], [1]], [0.3, 0.6], random), 1)
  })

  it("keeps a candidate that alone is best at a task, whatever its mean is", () => {
    const scores = [
      [0.9, 0.9, 0.9, 0],
      [0, 0, 0, 0.1],
    ]
    assert.deepStrictEqual(undominated(frontOf(scores), [0.675, 0.025]), [[0], [0], [0], [1]])
  })

  it("selects in proportion to the number of tasks", () => {
    const front = [[0], [0], [0], [1]]
    const draws = Array.from({ length: 4000 }, (_, at) => selectFrom(front, [0.5, 0.2], stream(at, "draw")))
    assert.closeTo(draws.filter((one) => one === 0).length / 4000, 0.75, 0.03)
    assert.deepStrictEqual(
      [...tasksInFront(front)],
      [
        [0, 3],
        [1, 1],
      ],
    )
  })
})

describe("minibatches", () => {
  const all = (tasks: number, size: number, iterations: number) =>
    Array.from({ length: iterations }, (_, at) => minibatchOf({ seed: 3, size, tasks }, at))

  it("have every task once in an epoch, and another order in the next", () => {
    const batches = all(6, 2, 6)
    const epochs = [batches.slice(0, 3).flat(), batches.slice(3).flat()]
    for (const epoch of epochs) assert.deepStrictEqual(epoch.toSorted(), [0, 1, 2, 3, 4, 5])
    assert.notDeepEqual(epochs[0], epochs[1])
  })

  it("are filled with the last tasks of the order", () => {
    const [first, second] = all(5, 3, 2)
    assert.deepStrictEqual(second.length, 2)
    assert.deepStrictEqual([...first, ...second].toSorted(), [0, 1, 2, 3, 4])
    // The reference fills this one with the last task again; playing it a second time would show nothing new.
    assert.deepStrictEqual(all(7, 3, 3)[2].length, 2)
    assert.deepStrictEqual(all(2, 3, 1)[0].toSorted(), [0, 1])
  })
})
