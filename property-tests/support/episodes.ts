import { Effect, Schema } from "effect"
import * as fc from "fast-check"
import type { Agent } from "../../src/agents/agent/Agent.ts"
import type { Parser } from "../../src/agents/agent/Parser.ts"
import * as Tool from "../../src/agents/agent/Tool.ts"
import * as ToolAgent from "../../src/agents/agent/ToolAgent.ts"
import * as MultiTextEnv from "../../src/agents/task/MultiTextEnv.ts"
import type { Feedback } from "../../src/agents/task/Feedback.ts"
import * as TextEnv from "../../src/agents/task/TextEnv.ts"
import * as Delegating from "../../src/agents/episode/protocols/Delegating.ts"
import * as MultiAgentSync from "../../src/agents/episode/protocols/MultiAgentSync.ts"
import type { Rollout, RolloutStep } from "../../src/agents/episode/Rollout.ts"
import * as SingleAgent from "../../src/agents/episode/protocols/SingleAgent.ts"
import type { Completion, LmRequest } from "../../src/agents/lm/Chat.ts"
import * as Scripted from "../../src/agents/lm/providers/scripted.ts"
import { stream } from "../../src/base/rng/Rng.ts"

/** Any agent, in any env, by any protocol. */
export interface World {
  readonly protocol: "single" | "delegating" | "turns" | "atOnce"
  /** The model's possible answers; a hash of the prompt chooses one. */
  readonly answers: ReadonlyArray<Partial<Completion>>
  /** The rewards of the steps, in eighths so that sums are exact. */
  readonly scores: ReadonlyArray<number>
  readonly goal: number
  readonly ownMaxSteps: number | null
  readonly maxSteps: number | null
  readonly maxCalls: number | null
  readonly agentMaxCalls: number
  readonly maxToolRounds: number
  readonly maxDepth: number
  readonly stopOnParseError: boolean
  readonly toolConcurrency: number
}

const call = (name: string, args: string) => ({ id: `${name}-${args.length}`, name, arguments: args })
const word = fc.constantFrom("go", "stop", "well …", "ünï", "\n", "")
const delegated = fc
  .constantFrom("go on", "do it", "")
  .map((task) => call("delegate", JSON.stringify({ agent: "same", task })))
const calls = fc
  .array(
    fc.oneof(
      delegated,
      fc.constantFrom(
        call("add", `{"a":1}`),
        call("add", "{"),
        call("lookup", "x"),
        call("lookup", "xyz"),
        call("nobody", ""),
        call("delegate", `{"agent":"other","task":"go on"}`),
      ),
    ),
    { minLength: 1, maxLength: 3 },
  )
  // Servers give each call of a completion an id of its own.
  .map((all) => all.map((made, at) => ({ ...made, id: `${made.id}-${at}` })))

const answer: fc.Arbitrary<Partial<Completion>> = fc.oneof(
  { weight: 5, arbitrary: fc.constant({ content: "go" }) },
  { weight: 2, arbitrary: word.map((content) => ({ content })) },
  { weight: 1, arbitrary: word.map((content) => ({ content, finishReason: "length" as const })) },
  { weight: 5, arbitrary: fc.tuple(word, calls).map(([content, toolCalls]) => ({ content, toolCalls })) },
)

const limit = (max: number) => fc.option(fc.integer({ min: 1, max }), { freq: 2 })

export const world: fc.Arbitrary<World> = fc.record({
  protocol: fc.constantFrom("single", "delegating", "delegating", "turns", "atOnce"),
  answers: fc.array(answer, { minLength: 2, maxLength: 8 }),
  scores: fc.array(
    fc.integer({ min: -16, max: 16 }).map((eighths) => eighths / 8),
    { minLength: 1, maxLength: 4 },
  ),
  goal: fc.integer({ min: 1, max: 5 }),
  ownMaxSteps: limit(6),
  // Some limit there must be: nobody says that a model ever answers.
  maxSteps: fc.integer({ min: 1, max: 6 }),
  maxCalls: limit(8),
  agentMaxCalls: fc.integer({ min: 1, max: 6 }),
  maxToolRounds: fc.integer({ min: 0, max: 4 }),
  maxDepth: fc.constantFrom(0, 1, 2, 2),
  stopOnParseError: fc.constantFrom(true, false, false),
  toolConcurrency: fc.integer({ min: 1, max: 3 }),
})

const parser: Parser = (text) =>
  text === "go" || text === "stop"
    ? { _tag: "Parsed", action: text, reward: 0.25 }
    : { _tag: "Failed", feedback: "Say go.", reward: -0.125 }

const add = Tool.make({
  name: "add",
  description: "one more",
  parameters: Schema.Struct({ a: Schema.Finite }),
  run: ({ a }) => Effect.succeed(a + 1),
})

/** Makes a scripted model whose answer depends on the whole prompt and on nothing else. */
const script =
  ({ answers }: World) =>
  ({ messages }: LmRequest): Partial<Completion> => {
    const told = messages.map(({ role, content }) => `${role}:${content}`).join("\n")
    return answers[stream(1, told).integer(answers.length)]
  }

const agentOf = (world: World, traceTokens: boolean): Effect.Effect<Agent> =>
  ToolAgent.make({ model: "m", traceTokens, parser, tools: [add], maxCalls: world.agentMaxCalls }).pipe(
    Effect.provide(Scripted.layer(script(world))),
    Effect.orDie,
  )

const told = (score: number): Feedback => ({ score, target: null, message: "" })
const tools = [{ name: "lookup", description: "finds", parameters: {} }]

const envOf = ({ goal, scores, ownMaxSteps }: World): TextEnv.TextEnv =>
  TextEnv.make<number>({
    id: "count",
    type: "count",
    tools,
    ...(ownMaxSteps === null ? {} : { maxSteps: ownMaxSteps }),
    begin: () => ({ state: 0, observation: "begin" }),
    step: (state, action) => ({
      state: state + 1,
      observation: state % 2 === 0 ? `at ${state}` : null,
      feedback: told(scores[state % scores.length]),
      terminated: state + 1 === goal,
      truncated: action === "stop",
    }),
    call: (state) => ({ state, content: `at ${state}` }),
  })

const players = ["X", "O"] as const

const multiEnvOf = ({ protocol, goal, scores, ownMaxSteps }: World): MultiTextEnv.MultiTextEnv => {
  const next = (state: number) => (protocol === "atOnce" ? players : [players[state % 2]])
  const see = (state: number) => Object.fromEntries(next(state).map((name) => [name, `at ${state}`]))
  return MultiTextEnv.make<number>({
    id: "two",
    type: "two",
    players,
    tools,
    ...(ownMaxSteps === null ? {} : { maxSteps: ownMaxSteps }),
    begin: () => ({ state: 0, toMove: next(0), observations: see(0) }),
    step: (state, actions) => ({
      state: state + 1,
      toMove: next(state + 1),
      observations: see(state + 1),
      feedback: { X: told(scores[state % scores.length]), O: told(-scores[state % scores.length]) },
      terminated: state + 1 === goal,
      truncated: Object.values(actions).includes("stop"),
    }),
    call: (state, player) => ({ state, content: `${player} at ${state}` }),
  })
}

export interface Played {
  readonly rollouts: ReadonlyArray<Rollout>
  /** Every step that was told of, in order. */
  readonly steps: ReadonlyArray<RolloutStep>
}

export const play = (world: World, traceTokens = true): Effect.Effect<Played> =>
  Effect.gen(function* () {
    const agent = yield* agentOf(world, traceTokens)
    const { maxSteps, maxCalls, maxToolRounds, stopOnParseError, toolConcurrency } = world
    const options = { maxSteps, maxCalls, maxToolRounds, stopOnParseError, toolConcurrency }
    const steps: Array<RolloutStep> = []
    const about = {
      id: "e",
      envSeed: 1,
      samplingSeed: 2,
      onStep: (step: RolloutStep) => Effect.sync(() => void steps.push(step)),
    }
    const single = { ...about, env: envOf(world) }
    const same = { agent, description: "the same", ...options }
    const rollouts = yield* world.protocol === "single"
      ? SingleAgent.make(agent, options).play(single)
      : world.protocol === "delegating"
        ? Delegating.make(agent, { ...options, agents: { same }, maxDepth: world.maxDepth, maxDelegations: 2 }).play(
            single,
          )
        : MultiAgentSync.make(agent, options).play({ ...about, env: multiEnvOf(world) })
    return { rollouts, steps }
  }).pipe(Effect.scoped, Effect.orDie)
