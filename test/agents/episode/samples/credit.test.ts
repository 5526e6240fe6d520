import { assert, describe, it } from "vitest"
import * as Credit from "../../../../src/agents/episode/samples/credit.ts"
import { notEnded, type Rollout, type RolloutStep, terminated } from "../../../../src/agents/episode/Rollout.ts"

const completion = {
  content: "",
  toolCalls: [],
  finishReason: "stop",
  usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0 },
  tokens: null,
  model: "m",
  attempts: 1,
} as const

/** A turn a reward: a call, and what the env made of it; `null` is a look back. */
const rollout = (id: string, parent: string | null, depth: number, rewards: ReadonlyArray<number | null>): Rollout => {
  const steps = rewards.flatMap((reward, turn): ReadonlyArray<RolloutStep> => {
    const turnId = `${id}/turn/${turn}`
    const asked: RolloutStep = {
      _tag: "AgentStep",
      id: `${turnId}a`,
      index: 0,
      turnId,
      parentId: null,
      call: {
        purpose: reward === null ? "reflection" : "action",
        target: "env",
        loopIndex: 0,
        messages: [],
        completion,
        toolResults: [],
        parsed: null,
        incomplete: false,
      },
      toolResults: [],
      reward: 0,
      ...notEnded,
    }
    if (reward === null) return [asked]
    const feedback = { score: reward, target: null, message: "" }
    const shown = { observation: "", action: "", nextObservation: null, feedback, reward }
    const from = { sourceAgentStepId: asked.id, agentStepIds: [asked.id] }
    return [asked, { _tag: "EnvironmentStep", id: `${turnId}e`, index: 0, turnId, ...from, ...shown, ...notEnded }]
  })
  const earned = rewards.filter((reward) => reward !== null)
  return {
    id,
    meta: {
      envId: "e",
      envType: "e",
      agent: "a",
      model: null,
      envSeed: 0,
      samplingSeed: 0,
      groupId: null,
      parentRolloutId: parent,
      depth,
      player: null,
      tags: {},
    },
    steps,
    totalReward: earned.reduce((sum, reward) => sum + reward, 0),
    length: earned.length,
    ending: terminated,
  }
}

// Given in another order than that of the tree: nothing depends on it.
const tree = [
  rollout("grandchild", "child", 2, [2]),
  rollout("root", null, 0, [0, 8]),
  rollout("child", "root", 1, [1, 3, null]),
  rollout("other", "root", 1, [0]),
]
const table = (credits: ReadonlyMap<string, number>) => Object.fromEntries(credits)

describe("credit of rollouts", () => {
  const cases: ReadonlyArray<[what: string, credit: Credit.RolloutCredit, expected: Record<string, number>]> = [
    ["own reward", Credit.own, { root: 8, child: 4, other: 0, grandchild: 2 }],
    ["the parent's", Credit.parents, { root: 8, child: 8, other: 8, grandchild: 8 }],
    [
      "a discounted mix",
      Credit.mixed({ share: 0.5, discount: 0.5 }),
      // 0.5 · 4 + 0.25 · 8; 0.5 · 0 + 0.25 · 8; 0.5 · 2 + 0.25 · 4
      { root: 8, child: 4, other: 2, grandchild: 2 },
    ],
    [
      "a mix without a share",
      Credit.mixed({ share: 0, discount: 0.5 }),
      { root: 8, child: 4, other: 0, grandchild: 2 },
    ],
    [
      "sharing",
      Credit.shared({ share: 0.5 }),
      // 8 keeps 4 and gives 2 and 2; 4 + 2 keeps 3 and gives 3
      { root: 4, child: 3, other: 2, grandchild: 5 },
    ],
  ]
  for (const [what, credit, expected] of cases) {
    it(what, () => assert.deepEqual(table(credit(tree)), expected))
  }

  it("of a rollout without its parent is its own", () => {
    const [grandchild] = tree
    for (const credit of [Credit.parents, Credit.shared({ share: 1 })]) {
      assert.deepEqual(table(credit([grandchild])), { grandchild: 2 })
    }
  })

  it("refuses invalid shares and discounts", () => {
    assert.throws(() => Credit.mixed({ share: 1.5, discount: 1 }), "share: expected a number from 0 to 1, found 1.5")
    assert.throws(() => Credit.mixed({ share: 1, discount: -1 }), "discount: expected a number from 0 to 1, found -1")
    assert.throws(() => Credit.shared({ share: NaN }), "share: expected a number from 0 to 1, found NaN")
    assert.throws(() => Credit.toGo(Credit.own, { discount: 2 }), "discount: expected a number from 0 to 1, found 2")
  })
})

describe("credit of steps", () => {
  const child = tree[2]
  const perTurn = (credits: ReadonlyMap<string, number>, id: string) =>
    [0, 1, 2].map((turn) => credits.get(`${id}/turn/${turn}a`))

  it("is the rollout's for every step, and 0 for reflections", () => {
    const credits = Credit.episodic(Credit.parents)(tree)
    assert.deepEqual(perTurn(credits, "child"), [8, 8, 0])
    assert.strictEqual(credits.get("child/turn/1e"), 8)
    assert.deepEqual(perTurn(Credit.episodic()(tree), "child"), [4, 4, 0])
  })

  it("is the reward to go, the same for all steps of a turn", () => {
    const credits = Credit.toGo(Credit.own, { discount: 0.5 })([child])
    // 1 + 0.5 · 3, 3, and nothing after that
    assert.deepEqual(perTurn(credits, "child"), [2.5, 3, 0])
    assert.strictEqual(credits.get("child/turn/0e"), 2.5)
  })

  it("is each turn's own reward if all later ones are discounted away", () => {
    assert.deepEqual(perTurn(Credit.toGo(Credit.own, { discount: 0 })([child]), "child"), [1, 3, 0])
  })

  it("adds credit from other rollouts to the last turn", () => {
    // 8 − 4 more than its own: 3 + 4, then 1 + 0.5 · 7.
    const credits = Credit.toGo(Credit.parents, { discount: 0.5 })(tree)
    assert.deepEqual(perTurn(credits, "child"), [4.5, 7, 0])
  })
})
