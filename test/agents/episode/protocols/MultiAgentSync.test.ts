import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import type { Agent } from "../../../../src/agents/agent/Agent.ts"
import * as MultiTextEnv from "../../../../src/agents/task/MultiTextEnv.ts"
import * as MultiAgentSync from "../../../../src/agents/episode/protocols/MultiAgentSync.ts"
import type { EpisodeToPlay } from "../../../../src/agents/episode/Protocol.ts"
import { type Rollout, type RolloutStep, totalReward } from "../../../../src/agents/episode/Rollout.ts"
import { lmError } from "../../../../src/agents/lm/LmError.ts"
import { SamplingSeed } from "../../../../src/agents/lm/middleware/seeded.ts"
import { scripted, type ScriptedAnswer } from "../support.ts"

const scored = (score: number, message = "") => ({ score, target: null, message })

/**
 * X and O take one or two in turn; who takes the last of them wins. Every taking is seen and felt by the other one:
 * it costs a tenth.
 */
const taking = (
  pile: number,
  about: Partial<MultiTextEnv.MultiTextRules<{ left: number; mover: string }>> = {},
): MultiTextEnv.MultiTextEnv =>
  MultiTextEnv.make<{ left: number; mover: string }>({
    id: `take-${pile}`,
    type: "take",
    players: ["X", "O"],
    begin: () => ({ state: { left: pile, mover: "X" }, toMove: ["X"], observations: { X: `${pile} left` } }),
    step: ({ left, mover }, actions) => {
      const other = mover === "X" ? "O" : "X"
      const rest = left - Number(actions[mover])
      const over = rest <= 0
      return {
        state: { left: rest, mover: other },
        toMove: over ? [] : [other],
        observations: { [other]: `${rest} left` },
        feedback: { [mover]: scored(over ? 1 : 0, "taken"), [other]: scored(over ? -1 : -0.1, "the other took") },
        terminated: over,
      }
    },
    ...about,
  })

/** Both say a number at once, for so many rounds; the higher one gets a point, the other one loses it. */
const atOnce = (rounds: number): MultiTextEnv.MultiTextEnv =>
  MultiTextEnv.make<number>({
    id: "higher",
    type: "higher",
    players: ["a", "b"],
    begin: () => ({ state: 0, toMove: ["a", "b"], observations: { a: "go", b: "go" } }),
    step: (round, actions) => {
      const score = Math.sign(Number(actions["a"]) - Number(actions["b"]))
      const over = round + 1 === rounds
      return {
        state: round + 1,
        toMove: over ? [] : ["a", "b"],
        observations: { a: `b: ${actions["b"]}`, b: `a: ${actions["a"]}` },
        feedback: { a: scored(score), b: scored(-score) },
        terminated: over,
      }
    },
  })

const episodeOf = (
  env: MultiTextEnv.MultiTextEnv,
  about: Partial<EpisodeToPlay<MultiTextEnv.MultiTextEnv>> = {},
): EpisodeToPlay<MultiTextEnv.MultiTextEnv> => ({ id: "e", env, envSeed: 1, samplingSeed: 2, ...about })

const kinds = (steps: ReadonlyArray<RolloutStep>) =>
  steps.map(({ _tag }) => (_tag === "AgentStep" ? "A" : "E")).join("")
const says = (...all: ReadonlyArray<ScriptedAnswer>) => scripted((index) => all[Math.min(index, all.length - 1)])
const take = (count: number): ScriptedAnswer => ({ act: String(count) })
/** An agent whose prompt is too long for its model once it was asked so often. */
const outgrowing = (agent: Agent, most: number): Agent => {
  let asked = 0
  const tooLong = lmError("m", "rejected", "the prompt has 273 tokens", { attempts: 1, promptTooLong: true })
  return { ...agent, act: (input) => (asked++ < most ? agent.act(input) : Effect.fail(tooLong)) }
}
const envSteps = ({ steps }: Rollout) => steps.flatMap((step) => (step._tag === "EnvironmentStep" ? [step] : []))

/** Asserts what holds for every rollout. */
const sound = (rollout: Rollout): void => {
  const { steps, ending, length } = rollout
  assert.closeTo(totalReward(steps), rollout.totalReward, 1e-12)
  assert.strictEqual(length, envSteps(rollout).length)
  for (const [index, { id, terminated, truncated, truncationReason, ...step }] of steps.entries()) {
    assert.strictEqual(id, `${rollout.id}/${index}`)
    const expected =
      index === steps.length - 1 ? ending : { terminated: false, truncated: false, truncationReason: null }
    assert.deepStrictEqual({ terminated, truncated, truncationReason }, expected, `${id} ${step._tag}`)
  }
}

describe("players in turn", () => {
  it.effect("have a rollout each, whose steps include the results of the other's moves", () =>
    Effect.gen(function* () {
      const X = says(take(2), take(1), take(2))
      const O = says(take(1), take(1))
      const [x, o] = yield* MultiAgentSync.play({ X, O }, episodeOf(taking(7)))
      for (const rollout of [x, o]) sound(rollout)
      assert.deepStrictEqual([x.id, x.meta.player, x.meta.groupId], ["e/X", "X", "e"])
      assert.deepStrictEqual([o.id, o.meta.player, o.meta.groupId], ["e/O", "O", "e"])
      assert.deepStrictEqual(
        envSteps(x).map(({ observation, action, nextObservation, feedback }) => [
          observation,
          action,
          nextObservation,
          feedback.score,
          feedback.message,
        ]),
        [
          ["7 left", "2", "4 left", -0.1, "taken\nthe other took"],
          ["4 left", "1", "2 left", -0.1, "taken\nthe other took"],
          ["2 left", "2", null, 1, "taken"],
        ],
      )
      // A score of O before its first move is a step of its own.
      assert.deepStrictEqual(
        envSteps(o).map(({ observation, action, nextObservation, feedback }) => [
          observation,
          action,
          nextObservation,
          Number(feedback.score.toFixed(6)),
        ]),
        [
          ["", "", "5 left", -0.1],
          ["5 left", "1", "3 left", -0.1],
          ["3 left", "1", "0 left", -1],
        ],
      )
      assert.closeTo(x.totalReward + o.totalReward, 0.8 - 1.2, 1e-12)
      assert.deepStrictEqual(X.seen.at(-1), {
        action: "2",
        observation: null,
        feedback: scored(1, "taken"),
        done: true,
      })
      assert.deepInclude(O.seen.at(-1), { observation: "0 left", done: true })
      assert.deepStrictEqual(O.log, ["reset", "act", "observe", "act", "observe", "endEpisode"])
    }),
  )

  it.effect("keep the feedback for a player who never acted", () =>
    Effect.gen(function* () {
      const X = says(take(2))
      const O = says(take(1))
      const [x, o] = yield* MultiAgentSync.play({ X, O }, episodeOf(taking(2), { groupId: "g" }))
      for (const rollout of [x, o]) sound(rollout)
      assert.strictEqual(kinds(o.steps), "E")
      assert.deepInclude(o.steps[0], { action: "", sourceAgentStepId: null, agentStepIds: [], reward: -1 })
      assert.strictEqual(o.ending.terminated, true)
      assert.strictEqual(o.meta.groupId, "g")
      assert.deepStrictEqual(O.log, ["reset", "endEpisode"])
    }),
  )

  it.effect("act again after a failed parse, while the other one waits", () =>
    Effect.gen(function* () {
      const O = says({ fail: "a number, please" }, take(2))
      const [x, o] = yield* MultiAgentSync.play({ X: says(take(1)), O }, episodeOf(taking(3)))
      for (const rollout of [x, o]) sound(rollout)
      assert.strictEqual(kinds(o.steps), "EAAE")
      assert.strictEqual(o.steps[1].reward, -0.1)
      assert.deepStrictEqual(O.shown[1], { _tag: "Observation", text: "a number, please" })
      assert.closeTo(o.totalReward, -0.1 - 0.1 + 1, 1e-12)
      assert.strictEqual(x.totalReward, -1)
    }),
  )

  const endings: ReadonlyArray<
    [
      what: string,
      o: ScriptedAnswer,
      options: MultiAgentSync.MultiAgentOptions,
      ending: Rollout["ending"],
      kinds: [string, string],
    ]
  > = [
    [
      "the limit, after a move",
      take(1),
      { maxSteps: 2 },
      { terminated: false, truncated: true, truncationReason: "max_steps" },
      ["AE", "EAE"],
    ],
    [
      "the limit, after a failed parse",
      { fail: "no" },
      { maxSteps: 2 },
      { terminated: false, truncated: true, truncationReason: "max_steps" },
      ["AE", "EA"],
    ],
    [
      "a failed parse, where that is the end",
      { fail: "no" },
      { stopOnParseError: true },
      { terminated: true, truncated: false, truncationReason: null },
      ["AE", "EA"],
    ],
  ]
  for (const [what, said, options, ending, expected] of endings) {
    it.effect(`end together: ${what}`, () =>
      Effect.gen(function* () {
        const [x, o] = yield* MultiAgentSync.play({ X: says(take(1)), O: says(said) }, episodeOf(taking(9)), options)
        for (const rollout of [x, o]) {
          sound(rollout)
          assert.deepStrictEqual(rollout.ending, ending)
        }
        assert.deepStrictEqual([kinds(x.steps), kinds(o.steps)], expected)
      }),
    )
  }

  it.effect("end together where the next prompt of one is too long for the model, if that is asked for", () =>
    Effect.gen(function* () {
      const play = (most: number, options: MultiAgentSync.MultiAgentOptions) =>
        MultiAgentSync.play({ X: says(take(1)), O: outgrowing(says(take(1)), most) }, episodeOf(taking(9)), options)
      const rollouts = yield* play(1, { endsIfPromptTooLong: true })
      for (const rollout of rollouts) {
        sound(rollout)
        assert.deepStrictEqual(rollout.ending, { terminated: false, truncated: true, truncationReason: "max_seq_len" })
      }
      assert.deepStrictEqual(
        rollouts.map(({ steps }) => kinds(steps)),
        ["AEAE", "EAE"],
      )
      assert.match((yield* Effect.flip(play(1, {}))).message, /273 tokens/)
      assert.match((yield* Effect.flip(play(0, { endsIfPromptTooLong: true }))).message, /273 tokens/)
    }),
  )

  it.effect("call tools: handlers', and the env's as themselves", () =>
    Effect.gen(function* () {
      const env = taking(2, {
        tools: [{ name: "peek", description: "looks", parameters: {} }],
        call: (state, player) => ({ state, content: `${player} sees ${state.left}` }),
      })
      const X = says(
        {
          tools: [
            ["peek", ""],
            ["ask", "what?"],
          ],
        },
        take(2),
      )
      const ask = { name: "ask", description: "asks", parameters: {} }
      const [x] = yield* MultiAgentSync.play({ X, O: says(take(1)) }, episodeOf(env), {
        tools: [ask],
        handlers: { ask: (call, from) => Effect.succeed({ content: `${call.arguments} ${from.rolloutId}` }) },
      })
      assert.strictEqual(kinds(x.steps), "AAE")
      assert.deepStrictEqual(X.shown[1]._tag === "ToolResults" && X.shown[1].results.map(({ content }) => content), [
        "X sees 2",
        "what? e/X",
      ])
      assert.deepStrictEqual(X.shown[0]._tag === "Observation" && X.shown[0].tools?.map(({ name }) => name), [
        "peek",
        "ask",
      ])
    }),
  )
})

describe("players at once", () => {
  it.effect("do not wait for each other, and the env waits for both", () =>
    Effect.gen(function* () {
      const slow = (action: string, seconds: number): Agent =>
        scripted(() => ({ act: action }), { before: Effect.sleep(`${seconds} seconds`) })
      const playing = yield* Effect.forkChild(
        MultiAgentSync.play({ a: slow("3", 1), b: slow("5", 2) }, episodeOf(atOnce(2))),
      )
      yield* TestClock.adjust("4 seconds")
      const [a, b] = yield* Fiber.join(playing)
      for (const rollout of [a, b]) sound(rollout)
      assert.deepStrictEqual([a.totalReward, b.totalReward], [-2, 2])
      assert.deepStrictEqual([kinds(a.steps), kinds(b.steps)], ["AEAE", "AEAE"])
      assert.strictEqual(envSteps(a)[0].nextObservation, "b: 5")
    }),
  )

  it.effect("end together, even if the answer of another could be repeated, where a prompt is too long", () =>
    Effect.gen(function* () {
      const a = outgrowing(says({ fail: "no" }), 1)
      const b = says({ fail: "no" })
      const rollouts = yield* MultiAgentSync.play({ a, b }, episodeOf(atOnce(1)), { endsIfPromptTooLong: true })
      for (const rollout of rollouts) {
        sound(rollout)
        assert.strictEqual(rollout.ending.truncationReason, "max_seq_len")
      }
      assert.deepStrictEqual(
        rollouts.map(({ steps }) => kinds(steps)),
        ["A", "AA"],
      )
    }),
  )

  it.effect("record no env step for an action that the env never took", () =>
    Effect.gen(function* () {
      const b = says({ fail: "no" })
      const [first, second] = yield* MultiAgentSync.play(
        { a: says({ act: "1", reward: 0.5 }), b },
        episodeOf(atOnce(1)),
        {
          maxSteps: 3,
        },
      )
      for (const rollout of [first, second]) sound(rollout)
      // A player who has acted does not act again.
      assert.deepStrictEqual([kinds(first.steps), kinds(second.steps)], ["A", "AAA"])
      assert.deepStrictEqual([first.length, first.totalReward, first.ending], [0, 0, second.ending])
      assert.deepStrictEqual([first.ending.truncated, first.ending.truncationReason], [true, "max_steps"])
    }),
  )
})

describe("self-play", () => {
  it.effect("is one agent as all players, each with a short-term state and sampling of its own", () =>
    Effect.gen(function* () {
      const seeds: Array<number | null> = []
      const inner = scripted((index) => ({ act: String(index) }))
      const noting = (agent: Agent): Agent => ({
        ...agent,
        act: (shown) =>
          Effect.flatMap(SamplingSeed, (seed) => {
            seeds.push(seed)
            return agent.act(shown)
          }),
        cloneForEpisode: (how) => Effect.map(agent.cloneForEpisode(how), noting),
      })
      const play = Effect.scoped(MultiAgentSync.make(noting(inner)).play(episodeOf(atOnce(2))))
      const rollouts = yield* play
      assert.deepStrictEqual(
        rollouts.map((rollout) => [rollout.meta.player, envSteps(rollout).map(({ action }) => action)]),
        [
          ["a", ["0", "1"]],
          ["b", ["0", "1"]],
        ],
      )
      assert.notStrictEqual(seeds[0], seeds[1])
      assert.deepStrictEqual(yield* play, rollouts)
      assert.deepStrictEqual(seeds.slice(4), seeds.slice(0, 4))
      assert.deepStrictEqual(inner.log, [])
    }),
  )

  it.effect("works for any players; agents by name must match the players", () =>
    Effect.gen(function* () {
      const one = says(take(1))
      const play = (agents: MultiAgentSync.Agents) =>
        Effect.flip(Effect.scoped(MultiAgentSync.make(agents).play(episodeOf(taking(2)))))
      for (const [agents, found] of [
        [{ X: one }, "X"],
        [{ X: one, Y: one }, "X, Y"],
        [{ X: one, O: one, Z: one }, "X, O, Z"],
        [{}, "none"],
      ] as const) {
        const error = yield* play(agents)
        const message = `env "take-2": expected an agent for each of its players X, O, found agents for ${found}`
        assert.deepInclude(error, { _tag: "ProtocolError", protocol: "MultiAgentSync", rollout: "e", message })
      }
    }),
  )
})
