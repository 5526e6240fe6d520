/**
 * An agent that has others work for it: its `delegate` tool plays an episode of a registered sub-agent, which sees the
 * task and nothing else, and may delegate in its turn, down to a depth. All their rollouts are given with its own.
 *
 * @example
 * ```ts
 * const protocol = Delegating.make(lead, {
 *   agents: { searcher: { agent: searcher, description: "Finds facts.", maxSteps: 5, maxCalls: 20 } },
 *   maxDepth: 1,
 *   maxSteps: 10,
 * })
 * const [parent, ...children] = yield* protocol.play({ id: "first", env, envSeed: 1, samplingSeed: 1 })
 * children[0].meta.parentRolloutId // "first"
 * ```
 *
 * Whatever goes wrong with a sub-agent is what its `delegate` call results in, for the parent to act upon. A sub-agent
 * that fails leaves no rollout, as any episode that fails.
 */
import { type Duration, Effect, Schema, type Scope } from "effect"
import type { Agent } from "../../agent/Agent.ts"
import { decode } from "../../config/Config.ts"
import { messageOf } from "../../config/text.ts"
import * as TextEnv from "../../task/TextEnv.ts"
import type { ToolSpec } from "../../lm/Chat.ts"
import { stream } from "../../rng/Rng.ts"
import type { Episode, EpisodeFailure, Protocol } from "../Protocol.ts"
import type { Rollout } from "../Rollout.ts"
import * as SingleAgent from "./SingleAgent.ts"
import type { CallSite, ToolHandler } from "./tools.ts"

/** Somebody to delegate to. Its limits are those of one delegation. */
export interface SubAgent extends SingleAgent.SingleAgentOptions {
  /** Every delegation is done by a clone, with a context of its own. */
  readonly agent: Agent
  /** What it is good for, as the delegating model is told. */
  readonly description: string
  /** Where it does the task. Unless given, the task is all that it sees, and its first action is its answer. */
  readonly env?: (task: string) => TextEnv.TextEnv
  /** What the parent is told; the last action unless given. Null: there is no answer. */
  readonly result?: (rollout: Rollout) => string | null
}

export interface DelegatingOptions extends SingleAgent.SingleAgentOptions {
  /** By the names that a model calls them by. */
  readonly agents: Readonly<Record<string, SubAgent>>
  /** How far below the first agent there may be others; 1 unless given: sub-agents don't delegate. */
  readonly maxDepth?: number
  /** For how many delegations of one rollout there are answers; 16 unless given. */
  readonly maxDelegations?: number
  /** Of every call of a tool, and so of every delegation; 10 minutes unless given. */
  readonly toolTimeout?: Duration.Input
}

export const toolName = "delegate"

const Asked = Schema.Struct({ agent: Schema.String, task: Schema.String })

/** As a model is told of it. */
export const specOf = (agents: DelegatingOptions["agents"]): ToolSpec => ({
  name: toolName,
  description: `Has a task done by another agent, who knows nothing but what you write. ${Object.entries(agents)
    .map(([name, { description }]) => `${name}: ${description}`)
    .join(" ")}`,
  parameters: {
    type: "object",
    properties: {
      agent: { type: "string", enum: Object.keys(agents) },
      task: { type: "string", description: "All that the agent has to know." },
    },
    required: ["agent", "task"],
    additionalProperties: false,
  },
})

/** A task that is answered, and not scored: what an answer is worth shows in what the parent makes of it. */
export const answering = (task: string): TextEnv.TextEnv =>
  TextEnv.make<null>({
    id: "delegated",
    type: "delegated",
    begin: () => ({ state: null, observation: task }),
    step: (state) => ({
      state,
      observation: null,
      feedback: { score: 0, target: null, message: "" },
      terminated: true,
    }),
  })

const lastAction = ({ steps }: Rollout): string | null =>
  steps.findLast((step) => step._tag === "EnvironmentStep")?.action ?? null

const noAnswer = (name: string, { ending }: Rollout): string =>
  `${name} gave no answer${ending.truncated ? ` and was cut off (${ending.truncationReason})` : ""}.`

/** What a call results in that isn't followed. */
class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}

/** Plays an episode, and those that it leads to: the rollout of a parent stands before those of its children. */
const family = Effect.fnUntraced(function* (
  agent: Agent,
  episode: Episode,
  own: SingleAgent.SingleAgentOptions,
  options: DelegatingOptions,
): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure> {
  const { agents, maxDepth = 1, maxDelegations = 16 } = options
  const depth = episode.parent?.depth ?? 0
  const mayDelegate = depth < maxDepth && Object.keys(agents).length > 0
  /** By their numbers, whatever order they come back in. */
  const children: Array<ReadonlyArray<Rollout>> = []
  let delegations = 0

  const delegated = Effect.fnUntraced(function* (text: string, from: CallSite) {
    if (!mayDelegate)
      return yield* new Refused({ message: `No more delegation: this is ${depth} deep, as deep as it may be.` })
    const written = yield* Effect.try({
      try: (): unknown => JSON.parse(text),
      catch: (error) => new Refused({ message: `The arguments of ${toolName} are not JSON (${messageOf(error)}).` }),
    })
    const { agent: name, task } = yield* decode(Asked, written, { source: toolName })
    if (!Object.hasOwn(agents, name)) {
      return yield* new Refused({
        message: `There is no agent "${name}"; there are ${Object.keys(agents).join(", ")}.`,
      })
    }
    if (delegations === maxDelegations) {
      return yield* new Refused({ message: `No more delegation: the limit of ${maxDelegations} is reached.` })
    }
    const number = delegations++
    const { agent: model, env = answering, result = lastAction, description: _, ...limits } = agents[name]
    const guarded = <A>(what: string, make: () => A): Effect.Effect<A, Refused> =>
      Effect.try({
        try: make,
        catch: (error) => new Refused({ message: `${name} failed: its ${what} threw: ${messageOf(error)}` }),
      })
    const child: Episode = {
      id: `${episode.id}/sub/${number}`,
      env: yield* guarded("env", () => env(task)),
      envSeed: stream(episode.envSeed, "delegate", number).uint32(),
      samplingSeed: stream(episode.samplingSeed, "delegate", number).uint32(),
      tags: { ...episode.tags, delegate: name },
      parent: { rolloutId: from.rolloutId, stepId: from.stepId, depth: depth + 1 },
      ...(episode.onStep === undefined ? {} : { onStep: episode.onStep }),
    }
    const worker = yield* model.cloneForEpisode({ training: model.training, shareMemory: true })
    const rollouts = yield* Effect.mapError(
      family(worker, child, limits, options),
      ({ message }) => new Refused({ message: `${name} failed: ${message}` }),
    )
    children[number] = rollouts
    const answer = yield* guarded("result", () => result(rollouts[0]))
    return answer === null ? { content: noAnswer(name, rollouts[0]), isError: true } : { content: answer }
  })

  const handler: ToolHandler = (call, from) => delegated(call.arguments, from)
  const rollout = yield* SingleAgent.play(agent, episode, {
    toolTimeout: "10 minutes",
    ...own,
    tools: [...(own.tools ?? []), ...(mayDelegate ? [specOf(agents)] : [])],
    handlers: { ...own.handlers, [toolName]: handler },
  })
  return [rollout, ...children.flat()]
})

/** A protocol whose episodes are played by clones of the agent and of its sub-agents: any number at a time. */
export const make = (agent: Agent, options: DelegatingOptions): Protocol => ({
  name: "Delegating",
  play: Effect.fnUntraced(function* (
    episode: Episode,
  ): Effect.fn.Return<ReadonlyArray<Rollout>, EpisodeFailure, Scope.Scope> {
    const { agents: _agents, maxDepth: _depth, maxDelegations: _delegations, ...own } = options
    const lead = yield* agent.cloneForEpisode({ training: agent.training, shareMemory: true })
    return yield* family(lead, episode, own, options)
  }),
})
