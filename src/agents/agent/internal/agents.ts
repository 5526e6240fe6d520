/** Checks the inputs and settings of agents, and provides the memory of their clones. Several kinds of agent use it. */
import { Effect } from "effect"
import { ConfigError, display } from "../../../base/config/Config.ts"
import type { AgentFailure, CloneOptions, AgentInput, AgentTurn } from "../Agent.ts"
import { AgentError } from "../AgentError.ts"
import type { AgentMemory } from "../memory/Memory.ts"
import type { Tool } from "../Tool.ts"

/** Handles an observation with `act`, for agents that call no tools. Fails if the input is results of tools. */
export const withoutTools = (
  agent: string,
  input: AgentInput,
  act: (observation: string) => Effect.Effect<AgentTurn, AgentFailure>,
): Effect.Effect<AgentTurn, AgentFailure> =>
  input._tag === "Observation"
    ? act(input.text)
    : Effect.fail(new AgentError({ agent, message: `${agent}: expected an observation, found results of tools` }))

/** Returns the memory for a clone of an agent: the agent's own memory if it is shared, otherwise a copy. */
export const memoryFor = (
  memory: AgentMemory,
  { shareMemory }: Pick<CloneOptions, "shareMemory">,
): Effect.Effect<AgentMemory> => (shareMemory ? Effect.succeed(memory) : memory.copy)

/** Fails if a setting is neither null nor a whole number of at least `least`. */
export const checkCount = (
  agent: string,
  key: string,
  value: number | null | undefined,
  least = 0,
): Effect.Effect<void, ConfigError> =>
  value === undefined || value === null || (Number.isSafeInteger(value) && value >= least)
    ? Effect.void
    : Effect.fail(
        ConfigError.at({ source: agent }, key, `expected a whole number of at least ${least}, found ${display(value)}`),
      )

/** Fails if two tools have the same name, because a call could mean either tool. */
export const checkNames = (agent: string, tools: ReadonlyArray<Tool>): Effect.Effect<void, ConfigError> => {
  const names = tools.map(({ spec }) => spec.name)
  const twice = names.find((name, at) => names.indexOf(name) !== at)
  if (twice === undefined) return Effect.void
  const problem = `expected different names, found two tools with the name "${twice}"`
  return Effect.fail(ConfigError.at({ source: agent }, "tools", problem))
}
