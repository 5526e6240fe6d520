import { Effect } from "effect"
import * as fc from "fast-check"
import { assert, describe, it } from "vitest"
import * as Credit from "../src/agents/episode/samples/credit.ts"
import { type AgentStep, notEnded, type Rollout, totalReward } from "../src/agents/episode/Rollout.ts"
import * as Samples from "../src/agents/episode/samples/samples.ts"
import { asMessage } from "../src/agents/lm/Chat.ts"
import { completionIds, promptIds } from "../src/agents/lm/ChatTokens.ts"
import { bytes } from "../src/base/tokens/words.ts"
import { play, type World, world } from "./support/episodes.ts"
import { tries } from "../test/house/tries.ts"

/** Checks any number of worlds. */
const always = (check: (world: World) => Effect.Effect<void, unknown>, numRuns = tries(200)): Promise<void> =>
  fc.assert(
    fc.asyncProperty(world, (made) => Effect.runPromise(check(made))),
    { numRuns },
  )

const agentSteps = ({ steps }: Pick<Rollout, "steps">): ReadonlyArray<AgentStep> =>
  steps.filter((step) => step._tag === "AgentStep")
const idsOf = (step: AgentStep): ReadonlyArray<number> =>
  completionIds(bytes, asMessage(step.call.completion), step.call.completion.finishReason !== "length")
const masked = ({ inputIds, actionMask }: Samples.Sample): ReadonlyArray<number> =>
  inputIds.filter((_, at) => actionMask[at] === 1)
const sum = (values: Iterable<number>): number => {
  let all = 0
  for (const value of values) all += value
  return all
}
const near = (a: number, b: number): void => assert.closeTo(a, b, 1e-9)

describe("samples", () => {
  it("reproduce the transcript's tokens: prompts and completions up to the end of a turn", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play(world)
        const byId = new Map(rollouts.flatMap(agentSteps).map((step) => [step.id, step]))
        for (const sample of yield* Samples.of(rollouts)) {
          const last = byId.get(sample.stepIds.at(-1) ?? "")
          if (last === undefined) return assert.fail("a sample of no step")
          const { messages, tools = [] } = last.call
          assert.deepStrictEqual(sample.inputIds, [...promptIds(bytes, { messages, tools }), ...idsOf(last)])
        }
      }),
    ))

  it("have masks that select the completions, all of them, and nothing else", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play(world)
        const byId = new Map(rollouts.flatMap(agentSteps).map((step) => [step.id, step]))
        const samples = yield* Samples.of(rollouts)
        for (const sample of samples) {
          assert.strictEqual(sample.actionMask.length, sample.inputIds.length)
          assert.strictEqual(sample.logprobs?.length, sample.inputIds.length)
          const said = sample.stepIds.flatMap((id) => {
            const step = byId.get(id)
            return step === undefined ? assert.fail(id) : idsOf(step)
          })
          assert.deepStrictEqual(masked(sample), said)
        }
        // Every call of the model is in one sample, in order.
        assert.deepStrictEqual(
          samples.flatMap(({ stepIds }) => stepIds),
          rollouts.flatMap(agentSteps).map(({ id }) => id),
        )
      }),
    ))

  it("are equal with tokens of the server or of the same tokenizer", () =>
    always((world) =>
      Effect.gen(function* () {
        const traced = yield* Samples.of((yield* play(world)).rollouts)
        const made = yield* Samples.of((yield* play(world, false)).rollouts, { tokenizer: bytes })
        assert.deepStrictEqual(
          made,
          traced.map((sample) => ({ ...sample, logprobs: null })),
        )
      }),
    ))

  it("that are cut off are prefixes of those that are not", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play(world)
        const whole = yield* Samples.of(rollouts)
        const cut = yield* Samples.of(rollouts, { maxSeqLen: 100 })
        assert.strictEqual(cut.length, whole.length)
        for (const [at, sample] of cut.entries()) {
          const { inputIds, actionMask } = whole[at]
          assert.deepStrictEqual(sample.inputIds, inputIds.slice(0, 100))
          assert.deepStrictEqual(sample.actionMask, actionMask.slice(0, 100))
          assert.strictEqual(sample.seqLenOriginal, inputIds.length)
          assert.strictEqual(sample.seqLenRetained, sample.inputIds.length)
        }
      }),
    ))
})

describe("rollouts", () => {
  it("hold every reported step once, in its position, and every reward once", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts, steps } = yield* play(world)
        const held = rollouts.flatMap((rollout) => rollout.steps)
        assert.strictEqual(new Set(held.map(({ id }) => id)).size, held.length)
        const byId = new Map(held.map((step) => [step.id, step]))
        // A player's call is reported before the others have answered. If the episode ends meanwhile, the env never takes its
        // action, and the rollout says so in the player's last step.
        const endings = new Map(
          rollouts.flatMap(({ steps: own, ending, meta }) => {
            const last = own.at(-1)
            return meta.player !== null && last?._tag === "AgentStep" ? [[last.id, ending]] : []
          }),
        )
        for (const step of steps) {
          const isOpen = !step.terminated && !step.truncated
          assert.deepStrictEqual(byId.get(step.id), isOpen ? { ...step, ...endings.get(step.id) } : step)
        }
        assert.strictEqual(steps.length, held.length)
        for (const rollout of rollouts) {
          for (const [index, step] of rollout.steps.entries()) {
            assert.strictEqual(step.index, index)
            assert.strictEqual(step.id, `${rollout.id}/${index}`)
          }
          near(rollout.totalReward, totalReward(rollout.steps))
          assert.strictEqual(rollout.length, rollout.steps.length - agentSteps(rollout).length)
        }
        near(sum(rollouts.map((rollout) => rollout.totalReward)), totalReward(steps))
      }),
    ))

  it("of a delegation tree are linked to the step that delegated, one level deeper, and no deeper than allowed", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play({ ...world, protocol: "delegating" })
        const byId = new Map(rollouts.map((rollout) => [rollout.id, rollout]))
        const [root, ...others] = rollouts
        assert.isNull(root.meta.parentRolloutId)
        for (const child of others) {
          const parent = byId.get(child.meta.parentRolloutId ?? "")
          if (parent === undefined) return assert.fail(`${child.id} has no parent`)
          assert.strictEqual(child.meta.depth, parent.meta.depth + 1)
          assert.isAtMost(child.meta.depth, world.maxDepth)
          for (const { parentId } of agentSteps(child)) {
            const from = agentSteps(parent).find(({ id }) => id === parentId)
            assert.isTrue(from?.call.completion.toolCalls.some(({ name }) => name === "delegate"))
          }
        }
      }),
    ))

  it("and samples agree about how an episode ended", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play(world)
        const byId = new Map(rollouts.map((rollout) => [rollout.id, rollout]))
        for (const { steps, ending } of rollouts) {
          assert.notStrictEqual(ending.terminated, ending.truncated)
          assert.strictEqual(ending.truncationReason !== null, ending.truncated)
          for (const [index, { terminated, truncated, truncationReason }] of steps.entries()) {
            const expected = index === steps.length - 1 ? ending : notEnded
            assert.deepStrictEqual({ terminated, truncated, truncationReason }, expected)
          }
        }
        for (const maxSeqLen of [null, 80, 1]) {
          for (const sample of yield* Samples.of(rollouts, { maxSeqLen })) {
            const rollout = byId.get(sample.rolloutId)
            if (rollout === undefined) return assert.fail(sample.rolloutId)
            const { terminated, truncated, truncationReason } = rollout.ending
            assert.strictEqual(sample.episodeTerminated, terminated)
            assert.strictEqual(sample.episodeTruncated, truncated)
            assert.isFalse(sample.terminated && !terminated)
            assert.isFalse(sample.truncated && !truncated && !sample.seqLenTruncated)
            if (sample.seqLenTruncated) assert.isTrue(sample.truncated)
            assert.strictEqual(sample.seqLenTruncated, sample.seqLenRetained < sample.seqLenOriginal)
            assert.strictEqual(sample.truncationReason !== null, truncated || sample.seqLenTruncated)
            if (truncated) assert.strictEqual(sample.truncationReason, truncationReason)
            assert.strictEqual(sample.truncationReason === "max_seq_len", !truncated && sample.seqLenTruncated)
          }
        }
      }),
    ))

  it("keep to their limits of steps and of calls", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play(world)
        for (const { length, meta, steps } of rollouts) {
          const own = meta.envType === "delegated" ? null : world.ownMaxSteps
          const isOfTwo = meta.player !== null
          assert.isAtMost(length, Math.min(world.maxSteps ?? Infinity, own ?? Infinity) + (isOfTwo ? 1 : 0))
          // Two-player rollouts have no limit of calls, and a limit never interrupts an agent within its turn.
          if (isOfTwo || world.maxCalls === null) continue
          const before = steps.filter(({ turnId }) => turnId !== steps.at(-1)?.turnId)
          assert.isBelow(agentSteps({ steps: before }).length, world.maxCalls)
        }
      }),
    ))

  it("of the same seeds are equal, at any concurrency", () =>
    always((world) =>
      Effect.gen(function* () {
        const first = yield* play(world)
        assert.deepStrictEqual((yield* play(world)).rollouts, first.rollouts)
        const oneByOne = yield* play({ ...world, toolConcurrency: 1 })
        assert.deepStrictEqual(oneByOne.rollouts, first.rollouts)
      }),
    ))
})

describe("credit", () => {
  const share = fc.double({ min: 0, max: 1, noNaN: true })
  const trees = (check: (rollouts: ReadonlyArray<Rollout>, share: number, discount: number) => void): Promise<void> =>
    fc.assert(
      fc.asyncProperty(world, share, share, (made, share, discount) =>
        Effect.runPromise(
          Effect.map(play({ ...made, protocol: "delegating" }), ({ rollouts }) => check(rollouts, share, discount)),
        ),
      ),
      { numRuns: tries(200) },
    )
  const earned = (rollouts: ReadonlyArray<Rollout>) => sum(rollouts.map((rollout) => rollout.totalReward))

  it("that is own or shared adds up to the tree's rewards", () =>
    trees((rollouts, share) => {
      near(sum(Credit.own(rollouts).values()), earned(rollouts))
      near(sum(Credit.shared({ share })(rollouts).values()), earned(rollouts))
    }))

  it("by `parents` is the root's for all, and a mix lies between it and the rollout's own", () =>
    trees((rollouts, share) => {
      const all = Credit.parents(rollouts)
      for (const credit of all.values()) near(credit, rollouts[0].totalReward)
      const byId = new Map(rollouts.map((rollout) => [rollout.id, rollout]))
      const mixed = Credit.mixed({ share, discount: 1 })(rollouts)
      for (const { id, totalReward, meta } of rollouts) {
        const parent = mixed.get(byId.get(meta.parentRolloutId ?? "")?.id ?? "") ?? totalReward
        const credit = mixed.get(id) ?? NaN
        assert.isAtLeast(credit, Math.min(totalReward, parent) - 1e-9)
        assert.isAtMost(credit, Math.max(totalReward, parent) + 1e-9)
      }
    }))

  it("of steps covers all steps, and the first one's undiscounted credit to go is the rollout's", () =>
    trees((rollouts, share, discount) => {
      const credit = Credit.mixed({ share, discount })
      const ofRollouts = credit(rollouts)
      const episodic = Credit.episodic(credit)(rollouts)
      const toGo = Credit.toGo(credit)(rollouts)
      const steps = rollouts.flatMap(({ steps }) => steps.map(({ id }) => id))
      assert.deepStrictEqual(Array.from(episodic.keys()), steps)
      assert.deepStrictEqual(Array.from(toGo.keys()), steps)
      for (const { id, steps } of rollouts) {
        const whole = ofRollouts.get(id) ?? NaN
        near(toGo.get(steps[0].id) ?? NaN, whole)
        for (const step of steps) near(episodic.get(step.id) ?? NaN, whole)
      }
    }))

  it("reaches the samples of every turn, and is conserved there", () =>
    always((world) =>
      Effect.gen(function* () {
        const { rollouts } = yield* play({ ...world, protocol: "delegating" })
        const samples = yield* Samples.of(rollouts, { credit: Credit.toGo(Credit.shared({ share: 0.5 })) })
        const firsts = Map.groupBy(samples, ({ rolloutId }) => rolloutId)
        near(sum(Array.from(firsts.values(), ([{ credit }]) => credit)), earned(rollouts))
      }),
    ))
})
