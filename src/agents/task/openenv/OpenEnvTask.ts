/**
 * Makes tasks from an environment that somebody else serves by OpenEnv's protocol. docs/agents/openenv.md describes how its
 * actions and observations become texts.
 *
 * @example
 * ```yaml
 * train_dataset: { type: openenv, url: "http://127.0.0.1:8000", num_tasks: 100 }
 * ```
 */
import { Effect, Schema, type Scope } from "effect"
import { ConfigError, type DecodeOptions, placeOf, toSnakeCase } from "../../../base/config/Config.ts"
import { bounded, withDefault } from "../../../base/config/fields.ts"
import { isPlain, type Plain } from "../../../base/config/plain.ts"
import { sha256 } from "../../../base/text/sha256.ts"
import { jsonValue } from "../../../base/text/text.ts"
import { utf8 } from "../../../base/text/utf8.ts"
import { EnvError } from "../../../base/EnvError.ts"
import { isRefused, type Observed, type Refused } from "../../../spread/openenv/messages.ts"
import {
  type OpenEnvServer,
  OpenEnvServers,
  type OpenEnvSession,
  permitServer,
} from "../../../spread/openenv/OpenEnvServers.ts"
import { serverFields } from "../../../spread/openenv/serverFields.ts"
import type { ToolCall, ToolSpec } from "../../lm/Chat.ts"
import { type DatasetKind, make as makeKind, orderFields, orderOf } from "../DatasetKind.ts"
import { continues, ends, game } from "../games/aloud.ts"
import { noTask, ordered, type TaskSet } from "../TaskSet.ts"
import type { CallResult, StepInput, TextEnv } from "../TextEnv.ts"
import { type ActionForm, actionForm } from "./actions.ts"
import { observationText, resultOf, toolsIn } from "./texts.ts"

const Config = Schema.Struct({
  type: withDefault(Schema.Literal("openenv"), "openenv"),
  ...serverFields,
  /** The name of the tasks. */
  id: withDefault(Schema.NonEmptyString, "openenv"),
  /** The number of tasks. */
  numTasks: withDefault(bounded("tasks"), 100),
  /** More data for each reset, with keys in snake_case. */
  options: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The key of a reset that gets the number of the task, from 0; null sends the seed only. */
  taskKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** A text before the first observation of each task, such as what the agent has to do; null shows none. */
  prompt: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The key of an observation that is shown; null shows the only text, or else all of it as JSON. */
  observationKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The key of an action that gets the agent's answer; null: the only key there is, or else the answer must be JSON. */
  actionKey: withDefault(Schema.NullOr(Schema.NonEmptyString), null),
  /** The other keys of an action, with keys in snake_case. */
  actionDefaults: withDefault(Schema.Record(Schema.String, Schema.Json), {}),
  /** The number of steps after which an episode is truncated; null leaves that to the server. */
  maxSteps: withDefault(Schema.NullOr(bounded("count")), 50),
  /** What a failed step does: it fails the run, or the agent sees the server's message and goes on. */
  stepErrors: withDefault(Schema.Literals(["fail", "show"]), "fail"),
  ...orderFields,
})
type Config = typeof Config.Type

/** The tasks of a server: what all of them share. */
interface ServedTasks {
  readonly config: Config
  readonly server: OpenEnvServer
  readonly form: ActionForm
  readonly tools: ReadonlyArray<ToolSpec>
  readonly options: Plain
}

interface Playing {
  readonly session: OpenEnvSession
  readonly steps: number
  /** The sum of the rewards of calls since the last step. */
  readonly reward: number
  /** Whether a call has ended the episode. */
  readonly isOver: boolean
}

const failure = (name: string, step: number, { code, message }: Refused): EnvError =>
  new EnvError({ env: name, step, message: `${name}: its server failed at step ${step} with ${code}: ${message}` })

/** Tells whether an agent is shown an error of the server, instead of the run failing. */
const isShown = ({ stepErrors }: Config, { code }: Refused): boolean =>
  code === "VALIDATION_ERROR" || (stepErrors === "show" && code === "EXECUTION_ERROR")

const shown = ({ config }: ServedTasks, name: string, step: number, { observation }: Observed) => {
  const { observationKey } = config
  const text = observationText(observation, observationKey)
  if (text !== undefined) return Effect.succeed(text)
  const keys = Object.keys(observation).join(", ") || "none"
  const message = `${name}: the observation of step ${step} has no key "${String(observationKey)}" (observation_key); it has ${keys}`
  return Effect.fail(new EnvError({ env: name, step, message }))
}

/** Begins an episode: resets the env, and makes the first text from it. */
const begin = Effect.fnUntraced(function* (
  tasks: ServedTasks,
  { name, task, seed }: { readonly name: string; readonly task: number; readonly seed: number },
): Effect.fn.Return<{ readonly state: Playing; readonly observation: string }, EnvError, Scope.Scope> {
  const { config, server, form, options } = tasks
  const { taskKey, prompt } = config
  const data = { ...options, seed, episode_id: `${name}-${seed}`, ...(taskKey !== null && { [taskKey]: task }) }
  const session = yield* server.begin({ type: "reset", data })
  const { first } = session
  if (isRefused(first)) return yield* failure(name, 0, first)
  if (first.done)
    return yield* new EnvError({ env: name, step: 0, message: `${name}: its episode was over after the reset` })
  const text = yield* shown(tasks, name, 0, first)
  const observation = [prompt ?? "", text, form.instruction].filter((part) => part !== "").join("\n\n")
  return { state: { session, steps: 0, reward: 0, isOver: false }, observation }
})

/** Takes a step with an agent's answer. */
const step = Effect.fnUntraced(function* (
  tasks: ServedTasks,
  name: string,
  state: Playing,
  answer: string,
): Effect.fn.Return<StepInput & { readonly state: Playing }, EnvError> {
  const { config, form } = tasks
  const { session, reward } = state
  const next: Playing = { ...state, steps: state.steps + 1, reward: 0 }
  const continued = (message: string) => {
    const stepped = continues(next, message)
    return { ...stepped, feedback: { ...stepped.feedback, score: reward } }
  }
  if (state.isOver || form.action === null) return ends(next, { score: reward, message: "The episode is over." })
  const action = form.action(answer)
  if ("problem" in action) return continued(`The answer is no action: ${String(action["problem"])}`)
  const answered = yield* session.step(action)
  if (isRefused(answered)) {
    if (isShown(config, answered)) return continued(`The environment refused the action: ${answered.message}`)
    return yield* failure(name, next.steps, answered)
  }
  const observation = yield* shown(tasks, name, next.steps, answered)
  return {
    state: next,
    observation,
    feedback: { score: reward + answered.reward, target: null, message: observation.split("\n")[0] },
    terminated: answered.done,
  }
})

const argumentsOf = ({ arguments: text }: ToolCall): Plain | undefined => {
  try {
    const value = jsonValue(text.trim() === "" ? "{}" : text)
    return isPlain(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** Calls a tool, whose reward is added to that of the next step. */
const call = Effect.fnUntraced(function* (
  { config }: ServedTasks,
  name: string,
  state: Playing,
  called: ToolCall,
): Effect.fn.Return<CallResult & { readonly state: Playing }, EnvError> {
  const refusal = (content: string) => ({ state, content, isError: true })
  if (state.isOver) return refusal("The episode is over. Answer without a call to end it.")
  const parameters = argumentsOf(called)
  if (parameters === undefined) return refusal(`The arguments of ${called.name} are not JSON; expected an object.`)
  const action = { type: "call_tool", tool_name: called.name, arguments: parameters }
  const answered = yield* state.session.step(action)
  if (isRefused(answered)) {
    if (isShown(config, answered)) return refusal(answered.message)
    return yield* failure(name, state.steps + 1, answered)
  }
  const result = resultOf(answered.observation)
  return {
    ...result,
    content: answered.done ? `${result.content}\nThe episode is over.` : result.content,
    state: { ...state, reward: state.reward + answered.reward, isOver: answered.done },
  }
})

const make = (tasks: ServedTasks, task: number): TextEnv => {
  const { id, maxSteps } = tasks.config
  const name = `${id}-${task + 1}`
  return game<Playing>({
    id: name,
    type: id,
    metadata: { task },
    ...(maxSteps !== null && { maxSteps }),
    begin: (random) => begin(tasks, { name, task, seed: random.uint32() }),
    step: (state, answer) => step(tasks, name, state, answer),
    ...(tasks.tools.length > 0 && {
      tools: tasks.tools,
      call: (state: Playing, called: ToolCall) => call(tasks, name, state, called),
    }),
  })
}

/** Asks a server for its tools, in a session of its own. */
const listTools = Effect.fnUntraced(function* ({ id, url }: Config, server: OpenEnvServer) {
  const { first } = yield* server.begin({ type: "step", data: { type: "list_tools" } })
  const tools = isRefused(first) ? `${first.code}: ${first.message}` : toolsIn(first.observation)
  if (typeof tools !== "string") return tools
  return yield* new EnvError({ env: id, message: `${id}: its server at ${url} answered list_tools wrongly: ${tools}` })
}, Effect.scoped)

const open = Effect.fnUntraced(function* (config: Config, from: DecodeOptions) {
  const { id, url, tokenVariable, sessions, timeoutSeconds, maxMessageMb, numTasks } = config
  const atUrl = ({ message }: { readonly message: string }) => ConfigError.at(from, "url", message)
  yield* Effect.mapError(permitServer(config, placeOf(from, "url")), atUrl)
  const { open: openServer } = yield* OpenEnvServers
  const options = { id, url, tokenVariable, sessions, timeoutSeconds, maxMessageMb }
  const server = yield* Effect.mapError(openServer(options), atUrl)
  const snake = (value: unknown): Plain => {
    const converted = toSnakeCase(value)
    return isPlain(converted) ? converted : {}
  }
  const form = actionForm(server.actions, { ...config, actionDefaults: snake(config.actionDefaults) })
  if ("problem" in form) return yield* ConfigError.at(from, "actionKey", form.problem)
  const tools = form.hasTools ? yield* Effect.mapError(listTools(config, server), atUrl) : []
  const tasks: ServedTasks = { config, server, form, tools, options: snake(config.options) }
  // The address, the limits and the order of the tasks do not change what is played.
  const { taskKey, prompt, observationKey, actionKey, actionDefaults, stepErrors } = config
  const identity = { options: config.options, taskKey, prompt, observationKey, actionKey, actionDefaults, stepErrors }
  const described = { id, ...identity, actions: server.actions, observations: server.observations, tools }
  const set: TaskSet = {
    name: id,
    size: numTasks,
    digest: yield* sha256(utf8.encode(JSON.stringify(described))),
    at: (index) =>
      index >= 0 && index < numTasks ? Effect.succeed(make(tasks, index)) : Effect.fail(noTask(id, index, numTasks)),
  }
  return ordered(set, orderOf(config))
})

export const kind: DatasetKind = makeKind({
  type: "openenv",
  schema: Config,
  open: (config, { from }) => open(config, from),
})
