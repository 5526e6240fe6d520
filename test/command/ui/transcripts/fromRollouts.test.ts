import { assert, describe, it } from "vitest"
import type { ListedEpisode } from "../../../../src/command/ui/transcripts/Episode.ts"
import { fromRollouts } from "../../../../src/command/ui/transcripts/fromRollouts.ts"
import { tokensOf } from "../../../../src/command/ui/transcripts/tokens.ts"
import { bytes, end } from "../../../../src/base/tokens/words.ts"
import { callStep, envStep, rolloutOf, sampleOf } from "../rollouts.ts"

const episode: ListedEpisode = {
  key: "rollouts-1",
  group: "rollouts",
  phase: "batch",
  seen: null,
  contestant: null,
  number: 1,
  id: "a",
  env: "e",
  agent: null,
  player: null,
  return: 1,
  length: 1,
  ending: "terminated",
  reason: null,
  failed: null,
  delegated: 0,
  trained: null,
}

describe("a transcript of rollouts", () => {
  it("has a tree's credit by all ways, and what samples have", () => {
    const [a, b] = [rolloutOf("a", { reward: 1 }), rolloutOf("b", { parent: "a", reward: 0.5 })]
    const c = { ...rolloutOf("c", { parent: "b", reward: 0 }) }
    const { played } = fromRollouts(episode, [a, b, c], [sampleOf(b, { credit: 0.7, weight: 2 })])
    assert.deepStrictEqual(played.credits, { own: 1, parents: 1, mixed: 1, sampled: null })
    const [below] = played.turns[0].calls[0].children
    assert.deepStrictEqual(below.credits, { own: 0.5, parents: 1, mixed: 0.75, sampled: 0.7 })
    assert.deepStrictEqual([below.turns[0].credit, below.turns[0].weight], [0.7, 2])
    const [lowest] = below.turns[0].calls[0].children
    assert.deepStrictEqual(lowest.credits, { own: 0, parents: 1, mixed: 0.375, sampled: null })
  })

  it("has each rollout once, whoever claims to be above whom", () => {
    const [a, b] = [rolloutOf("a", { parent: "b" }), rolloutOf("b", { parent: "a" })]
    const self = rolloutOf("c", { parent: "c" })
    assert.deepStrictEqual(
      fromRollouts(episode, [a, b, self]).played.turns[0].calls[0].children.map(({ id, turns }) => [
        id,
        turns[0].calls[0].children.length,
      ]),
      [["b", 0]],
    )
    assert.deepStrictEqual(fromRollouts(episode, [self]).played.turns[0].calls[0].children, [])
  })

  it("nests who doesn't say by which call it was delegated below the last one", () => {
    const stray = rolloutOf("b", { parent: "a", steps: [envStep("b", 0)] })
    const { calls } = fromRollouts(episode, [rolloutOf("a"), stray]).played.turns[0]
    assert.deepStrictEqual(
      calls.at(-1)?.children.map(({ id }) => id),
      ["b"],
    )
  })

  it("has parses that failed, what was seen last, and how it ended", () => {
    const failed = { _tag: "Failed", feedback: "Answer with one word.", reward: -0.1 }
    const steps = [
      callStep("a", 0, { call: { parsed: failed }, step: { reward: -0.1 } }),
      callStep("a", 1, { turn: 1 }),
      envStep("a", 2, {
        turn: 1,
        reward: 0.5,
        step: { nextObservation: "It is.", terminated: false, truncated: true, truncationReason: "max_steps" },
      }),
      callStep("a", 3, { turn: 2, call: { purpose: "reflection", parsed: null } }),
    ]
    const { turns } = fromRollouts(episode, [rolloutOf("a", { steps })]).played
    assert.deepStrictEqual(turns[0].calls[0].refused, { feedback: "Answer with one word.", reward: -0.1 })
    assert.deepStrictEqual(
      turns.map(({ observation, action, reward, cumulative, seen, ending, reason }) => [
        observation,
        action,
        reward,
        cumulative,
        seen,
        ending,
        reason,
      ]),
      [
        ["Is it?", null, -0.1, -0.1, null, null, null],
        ["Is it?", "yes", 0.5, 0.4, "It is.", "truncated", "max_steps"],
        [null, null, 0, 0.4, null, null, null],
      ],
    )
  })
})

describe("tokens of a call", () => {
  const two = rolloutOf("a", {
    steps: [callStep("a", 0, { said: "é!" }), callStep("a", 1, { said: "no" }), envStep("a", 2)],
  })
  const steps = new Map(two.steps.flatMap((step) => (step._tag === "AgentStep" ? [[step.id, step] as const] : [])))
  const [first, second] = [
    [...bytes.encode("é!"), end],
    [...bytes.encode("no"), end],
  ]
  const ids = [9, 9, ...first, 9, ...second]
  const mask = [0, 0, ...first.map(() => 1 as const), 0, ...second.map(() => 1 as const)] satisfies ReadonlyArray<0 | 1>
  const stepIds = ["a/0", "a/1"]
  const runsOf = (given: Parameters<typeof sampleOf>[1]) =>
    Array.from(
      tokensOf(sampleOf(two, { inputIds: ids, actionMask: mask, stepIds, credit: 0.5, weight: -2, ...given }), steps),
    )

  it("are its words, worth what its turn is, and its end", () => {
    assert.deepStrictEqual(runsOf({}), [
      ["a/0", [{ text: "é!", ids: first.slice(0, 3), advantage: -1, logprob: null }, { text: "", ids: [0], advantage: -1, logprob: null }]], // prettier-ignore
      ["a/1", [{ text: "no", ids: second.slice(0, 2), advantage: -1, logprob: null }, { text: "", ids: [0], advantage: -1, logprob: null }]], // prettier-ignore
    ])
  })

  it("are apart where they are worth different things, or were more or less likely", () => {
    const advantages = ids.map((_, at) => (at === 4 ? 2 : 0))
    const logprobs = ids.map((_, at) => (at === 7 ? -1 : 0))
    const runs = new Map(runsOf({ advantages, logprobs }))
    assert.deepStrictEqual(
      runs.get("a/0")?.map(({ text, advantage }) => [text, advantage]),
      [["é", 0], ["!", 2], ["", 0]], // prettier-ignore
    )
    assert.deepStrictEqual(
      runs.get("a/1")?.map(({ text, logprob }) => [text, logprob]),
      [["n", -1], ["o", 0], ["", 0]], // prettier-ignore
    )
  })

  it("are fewer where the sample was cut, and numbers where nobody knows what they stand for", () => {
    const cut = new Map(runsOf({ inputIds: ids.slice(0, 4), actionMask: mask.slice(0, 4) }))
    assert.deepStrictEqual([...cut.keys()], ["a/0"])
    assert.deepStrictEqual(cut.get("a/0")?.map(({ text, ids }) => [text, ids.length]), [["é", 2]]) // prettier-ignore
    const foreign = ids.map((id) => id + 1000)
    const even = new Map(runsOf({ inputIds: foreign }))
    assert.deepStrictEqual(even.get("a/1"), [
      { text: "no", ids: second.map((id) => id + 1000), advantage: -1, logprob: null },
    ])
    const uneven = new Map(runsOf({ inputIds: foreign, advantages: ids.map((_, at) => (at === 8 ? 1 : 0)) }))
    assert.deepStrictEqual(
      uneven.get("a/1")?.map(({ text, ids, advantage }) => [text, ids, advantage]),
      [[null, [foreign[7]], 0], [null, [foreign[8]], 1], [null, [foreign[9]], 0]], // prettier-ignore
    )
  })

  it("have the texts that the server gave them, the calls of tools behind the words", () => {
    const said = callStep("a", 0, { said: "Hi there" }).call.completion
    const tokens = { promptIds: [], completionIds: [71, 72, 73], logprobs: null, texts: ["Hi", " there", "<call>"] }
    const told = rolloutOf("a", {
      steps: [callStep("a", 0, { call: { completion: { ...said, tokens } } }), envStep("a", 1)],
    })
    const sample = sampleOf(told, {
      inputIds: [9, 71, 72, 73],
      actionMask: [0, 1, 1, 1],
      stepIds: ["a/0"],
      advantages: [0, 1, -1, -1],
    })
    const [step] = told.steps.flatMap((step) => (step._tag === "AgentStep" ? [step] : []))
    assert.deepStrictEqual(
      tokensOf(sample, new Map([[step.id, step]]))
        .get("a/0")
        ?.map(({ text, advantage }) => [text, advantage]),
      [["Hi", 1], [" there", -1], ["<call>", -1]], // prettier-ignore
    )
  })

  it("are told apart where two calls follow each other without anything between them", () => {
    const traced = (said: string, completionIds: ReadonlyArray<number>) => ({
      completion: {
        ...callStep("a", 0, { said }).call.completion,
        tokens: { promptIds: [], completionIds, logprobs: null },
      },
    })
    const close = rolloutOf("a", {
      steps: [
        callStep("a", 0, { call: traced("é!", first) }),
        callStep("a", 1, { call: traced("no", second) }),
        envStep("a", 2),
      ],
    })
    const sample = sampleOf(close, {
      inputIds: [...first, ...second],
      actionMask: [...first, ...second].map(() => 1),
      stepIds,
    })
    const { played, largest, advantages } = fromRollouts(episode, [close], [sample])
    assert.deepStrictEqual(
      played.turns[0].calls.map(({ tokens }) => tokens?.map(({ text }) => text)),
      [["é!", ""], ["no", ""]], // prettier-ignore
    )
    assert.deepStrictEqual([largest, advantages], [1, "credit"])
  })
})
