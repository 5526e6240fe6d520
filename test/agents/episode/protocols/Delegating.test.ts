import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import * as Delegating from "../../../../src/agents/episode/protocols/Delegating.ts"
import type { EpisodeToPlay } from "../../../../src/agents/episode/Protocol.ts"
import type { Rollout, RolloutStep } from "../../../../src/agents/episode/Rollout.ts"
import { counting, episodeOf, scripted, type ScriptedAnswer, type AgentLog } from "../support.ts"

const asking = (agent: string, task: string): readonly [string, string] => ["delegate", JSON.stringify({ agent, task })]
const says = (...all: ReadonlyArray<ScriptedAnswer>) => scripted((index) => all[Math.min(index, all.length - 1)])

/** Its clones tell of what they were shown, too. */
const watched = (
  script: (index: number) => ScriptedAnswer,
  clones: Array<AgentLog>,
  before?: Effect.Effect<unknown>,
): ReturnType<typeof scripted> => ({
  ...scripted(script),
  cloneForEpisode: () =>
    Effect.sync(() => {
      const clone = scripted(script, before === undefined ? {} : { before })
      clones.push(clone)
      return clone
    }),
})
const resultsOf = (log: AgentLog, at: number) => {
  const shown = log.shown[at]
  return shown._tag === "ToolResults" ? shown.results.map(({ content, isError }) => [content, isError]) : []
}

const worker = { agent: says({ act: "42" }), description: "Counts." }
const play = (
  lead: ReturnType<typeof scripted>,
  options: Delegating.DelegatingOptions,
  about: Partial<EpisodeToPlay> = {},
) => Effect.scoped(Delegating.make(lead, options).play(episodeOf(counting(1), about)))

describe("delegating", () => {
  it.effect("plays a sub-agent's episode for a call, and gives its rollout after the parent's", () =>
    Effect.gen(function* () {
      const leads: Array<AgentLog> = []
      const workers: Array<AgentLog> = []
      const lead = watched((index) => (index === 0 ? { tools: [asking("worker", "6 x 7")] } : { act: "go" }), leads)
      const agents = { worker: { ...worker, agent: watched(() => ({ act: "42" }), workers) } }
      const [parent, child, ...others] = yield* play(lead, { agents }, { tags: { split: "train" }, groupId: "g" })
      assert.deepStrictEqual(others, [])
      // The child sees the task, and nothing of the parent's.
      assert.deepStrictEqual(workers[0].shown, [{ _tag: "Observation", text: "6 x 7" }])
      assert.deepStrictEqual(resultsOf(leads[0], 1), [["42", false]])
      assert.deepInclude(child.meta, {
        parentRolloutId: "e",
        depth: 1,
        groupId: null,
        tags: { split: "train", delegate: "worker" },
      })
      assert.deepInclude(parent.meta, { parentRolloutId: null, depth: 0 })
      assert.strictEqual(child.id, "e/sub/0")
      assert.deepInclude(child.steps[0], { _tag: "AgentStep", id: "e/sub/0/0", parentId: "e/0" })
      assert.deepInclude(parent.steps[0], { _tag: "AgentStep", id: "e/0", parentId: null })
      assert.notStrictEqual(child.meta.envSeed, parent.meta.envSeed)
    }),
  )

  it.effect("describes the tool to the model, and to sub-agents only if they may delegate", () =>
    Effect.gen(function* () {
      const toolsAt = function* (maxDepth: number) {
        const leads: Array<AgentLog> = []
        const workers: Array<AgentLog> = []
        const lead = watched((index) => (index === 0 ? { tools: [asking("worker", "a")] } : { act: "go" }), leads)
        const agents = { worker: { ...worker, agent: watched(() => ({ act: "42" }), workers) } }
        yield* play(lead, { agents, maxDepth })
        return [leads, workers].map(([{ shown }]) =>
          shown[0]._tag === "Observation" ? (shown[0].tools ?? []).map(({ name }) => name) : [],
        )
      }
      assert.deepStrictEqual(yield* Effect.gen(() => toolsAt(1)), [["delegate"], []])
      assert.deepStrictEqual(yield* Effect.gen(() => toolsAt(2)), [["delegate"], ["delegate"]])
      const { parameters, description } = Delegating.specOf({ worker })
      assert.include(description, "worker: Counts.")
      assert.deepNestedInclude(parameters, { "properties.agent.enum": ["worker"], required: ["agent", "task"] })
    }),
  )

  it.effect("delegates down to its maximum depth", () =>
    Effect.gen(function* () {
      const logs: Array<AgentLog> = []
      const lead = watched((index) => (index === 0 ? { tools: [asking("same", "deeper")] } : { act: "go" }), logs)
      const rollouts = yield* play(lead, { agents: { same: { agent: lead, description: "" } }, maxDepth: 3 })
      assert.deepStrictEqual(
        rollouts.map(({ id, meta }) => [id, meta.depth, meta.parentRolloutId]),
        [
          ["e", 0, null],
          ["e/sub/0", 1, "e"],
          ["e/sub/0/sub/0", 2, "e/sub/0"],
          ["e/sub/0/sub/0/sub/0", 3, "e/sub/0/sub/0"],
        ],
      )
      assert.deepStrictEqual(resultsOf(logs[3], 1), [["No more delegation: the maximum depth of 3 is reached.", true]])
    }),
  )

  const failures: ReadonlyArray<
    [
      what: string,
      call: readonly [string, string],
      sub: Partial<Delegating.SubAgent>,
      message: string,
      rollouts: number,
    ]
  > = [
    ["somebody unknown", asking("nobody", "a"), {}, `There is no agent "nobody"; there are worker.`, 1],
    ["no JSON", ["delegate", "please"], {}, "The arguments of delegate are not JSON", 1],
    ["a task that is missing", ["delegate", `{"agent":"worker"}`], {}, "task", 1],
    [
      "a child whose model breaks",
      asking("worker", "a"),
      { agent: says({ broken: "no model today" }) },
      "worker failed: no model today",
      1,
    ],
    [
      "a child that never answers rightly",
      asking("worker", "a"),
      { agent: says({ fail: "no" }), maxSteps: 3 },
      "worker gave no answer and was cut off (max_steps).",
      2,
    ],
    [
      "a child that has spent its calls",
      asking("worker", "a"),
      { agent: says({ fail: "no" }), maxCalls: 2 },
      "worker gave no answer and was cut off (max_steps).",
      2,
    ],
  ]
  for (const [what, call, sub, message, count] of failures) {
    it.effect(`shows its model what went wrong: ${what}`, () =>
      Effect.gen(function* () {
        const leads: Array<AgentLog> = []
        const lead = watched((index) => (index === 0 ? { tools: [call] } : { act: "go" }), leads)
        const rollouts = yield* play(lead, { agents: { worker: { ...worker, ...sub } } })
        const [[content, isError]] = resultsOf(leads[0], 1)
        assert.include(content, message)
        assert.isTrue(isError)
        assert.strictEqual(rollouts.length, count)
        assert.isTrue(rollouts[0].ending.terminated)
        if (count > 1) {
          const { ending, steps } = rollouts[1]
          assert.deepStrictEqual(ending, { terminated: false, truncated: true, truncationReason: "max_steps" })
          assert.strictEqual(steps.length, sub.maxCalls ?? sub.maxSteps)
        }
      }),
    )
  }

  it.effect("stops a child that takes too long, and continues", () =>
    Effect.gen(function* () {
      const leads: Array<AgentLog> = []
      const workers: Array<AgentLog> = []
      const lead = watched((index) => (index === 0 ? { tools: [asking("worker", "a")] } : { act: "go" }), leads)
      const agent = watched(() => ({ act: "42" }), workers, Effect.sleep("1 minute"))
      const playing = yield* Effect.forkChild(
        play(lead, { agents: { worker: { ...worker, agent } }, toolTimeout: "30 seconds" }),
      )
      yield* TestClock.adjust("2 minutes")
      const rollouts = yield* Fiber.join(playing)
      assert.strictEqual(rollouts.length, 1)
      assert.deepStrictEqual(resultsOf(leads[0], 1), [[`The tool "delegate" gave no answer within 30s.`, true]])
      assert.deepStrictEqual(workers[0].log, ["reset"])
    }),
  )

  it.effect("is interrupted with its children", () =>
    Effect.gen(function* () {
      const workers: Array<AgentLog> = []
      const agent = watched(() => ({ act: "42" }), workers, Effect.sleep("1 minute"))
      const playing = yield* Effect.forkChild(
        play(says({ tools: [asking("worker", "a")] }), { agents: { worker: { ...worker, agent } } }),
      )
      yield* TestClock.adjust("30 seconds")
      yield* Fiber.interrupt(playing)
      yield* TestClock.adjust("5 minutes")
      assert.deepStrictEqual(workers[0].log, ["reset"])
    }),
  )

  it.effect("numbers children in the order of the calls, and reports all their steps", () =>
    Effect.gen(function* () {
      const recorded: Array<RolloutStep> = []
      const slow = scripted(() => ({ act: "slow" }), { before: Effect.sleep("2 seconds") })
      const quick = scripted(() => ({ act: "quick" }), { before: Effect.sleep("1 second") })
      const leads: Array<AgentLog> = []
      const lead = watched(
        (index) => (index === 0 ? { tools: [asking("slow", "a"), asking("quick", "b")] } : { act: "go" }),
        leads,
      )
      const playing = yield* Effect.forkChild(
        play(
          lead,
          {
            agents: { slow: { agent: slow, description: "" }, quick: { agent: quick, description: "" } },
            toolConcurrency: 2,
          },
          { onStep: (step) => Effect.sync(() => void recorded.push(step)) },
        ),
      )
      yield* TestClock.adjust("2 seconds")
      const rollouts: ReadonlyArray<Rollout> = yield* Fiber.join(playing)
      assert.deepStrictEqual(
        rollouts.map(({ id, meta }) => [id, meta.tags["delegate"]]),
        [
          ["e", undefined],
          ["e/sub/0", "slow"],
          ["e/sub/1", "quick"],
        ],
      )
      assert.deepStrictEqual(
        recorded.map(({ id }) => id),
        ["e/sub/1/0", "e/sub/1/1", "e/sub/0/0", "e/sub/0/1", "e/0", "e/1", "e/2"],
      )
      assert.deepStrictEqual(resultsOf(leads[0], 1), [
        ["slow", false],
        ["quick", false],
      ])
    }),
  )

  it.effect("uses a child's own env and result, if it has them", () =>
    Effect.gen(function* () {
      const leads: Array<AgentLog> = []
      const lead = watched((index) => (index === 0 ? { tools: [asking("worker", "3")] } : { act: "go" }), leads)
      const sub: Delegating.SubAgent = {
        ...worker,
        env: (task) => counting(Number(task)),
        result: ({ length, totalReward }) => `${length} steps, ${totalReward.toFixed(1)}`,
      }
      const [parent, child] = yield* play(lead, { agents: { worker: sub } })
      assert.strictEqual(child.meta.envId, "count-3")
      assert.deepStrictEqual(resultsOf(leads[0], 1), [["3 steps, 0.6", false]])
      assert.strictEqual(parent.meta.envId, "count-1")
    }),
  )

  it.effect("has a limit", () =>
    Effect.gen(function* () {
      const leads: Array<AgentLog> = []
      const lead = watched(
        (index) => (index === 0 ? { tools: [asking("worker", "a"), asking("worker", "b")] } : { act: "go" }),
        leads,
      )
      const rollouts = yield* play(lead, { agents: { worker }, maxDelegations: 1 })
      assert.strictEqual(rollouts.length, 2)
      assert.deepStrictEqual(resultsOf(leads[0], 1)[1], ["No more delegation: the limit of 1 is reached.", true])
    }),
  )
})
