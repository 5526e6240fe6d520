/** Declares the service that runs the programs of `CommandAgent.ts`. `programs-node.ts` runs them as processes. */
import { Context, Effect } from "effect"
import { AgentError } from "../AgentError.ts"

/** A program that is started for one turn of an agent. */
export interface AgentProgram {
  /** The type of the agent, for messages. */
  readonly agent: string
  /** The program and its arguments. */
  readonly command: ReadonlyArray<string>
  /** The folder in which the program starts; null is the current one. */
  readonly cwd: string | null
  /** The names of the environment variables that the program gets, besides the common ones without secrets. */
  readonly variables: ReadonlyArray<string>
  /** Further environment variables, with their values. */
  readonly environment: Readonly<Record<string, string>>
  /** The text that the program reads from its standard input. */
  readonly input: string
}

interface AgentProgramsService {
  /**
   * Runs a program to its end, and returns what it wrote to its standard output. When the program has ended, or when the
   * effect is interrupted, the processes that it has started are killed, except those that have left its process group.
   */
  readonly run: (program: AgentProgram) => Effect.Effect<string, AgentError>
}

/** The service that runs programs. `effect-rl/node` provides it in `platform`. */
export const AgentPrograms = Context.Reference<AgentProgramsService>("effect-rl/agent/AgentPrograms", {
  defaultValue: () => ({
    run: ({ agent }) => {
      const problem = "its program needs a process; provide `platform` or `agentPrograms` of effect-rl/node"
      return Effect.fail(new AgentError({ agent, message: `${agent}: ${problem}` }))
    },
  }),
})
