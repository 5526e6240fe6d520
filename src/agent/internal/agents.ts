import { Effect } from "effect"
import { ConfigError, display } from "../../config/Config.ts"
import type { AgentFailure, CloneOptions, Shown, Turn } from "../Agent.ts"
import { AgentError } from "../AgentError.ts"
import type { Memory } from "../memory/Memory.ts"
import type { Tool } from "../Tool.ts"

/** Acts of an agent that calls nothing outside, so it is never owed results. */
export const withoutTools = (
  agent: string,
  shown: Shown,
  say: (text: string) => Effect.Effect<Turn, AgentFailure>,
): Effect.Effect<Turn, AgentFailure> =>
  shown._tag === "Observation"
    ? say(shown.text)
    : Effect.fail(new AgentError({ agent, message: `${agent} was given results of tools, but calls none` }))

/** The memory that a clone is made over: whether it may write is the clone's own matter. */
export const memoryFor = (memory: Memory, { shareMemory }: Pick<CloneOptions, "shareMemory">): Effect.Effect<Memory> =>
  shareMemory ? Effect.succeed(memory) : memory.copy

/** Refuses a count that is none. */
export const checkCount = (
  agent: string,
  key: string,
  value: number | null | undefined,
  least = 0,
): Effect.Effect<void, ConfigError> =>
  value === undefined || value === null || (Number.isSafeInteger(value) && value >= least)
    ? Effect.void
    : Effect.fail(
        ConfigError.at({ source: agent }, key, `expected a whole number from ${least} on, found ${display(value)}`),
      )

/** Refuses two tools of one name: nobody could say which of them is called. */
export const checkNames = (agent: string, tools: ReadonlyArray<Tool>): Effect.Effect<void, ConfigError> => {
  const names = tools.map(({ spec }) => spec.name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice === undefined) return Effect.void
  const problem = `expected different names, found two tools with the name "${twice}"`
  return Effect.fail(ConfigError.at({ source: agent }, "tools", problem))
}
