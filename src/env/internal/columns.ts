import type { Snapshot } from "../BatchEnv.ts"
import type { Env } from "../Env.ts"
import { copyFrom, type Kernel } from "./episodes.ts"

/** The result of one step of a classic env as plain numbers, in the documented order of its state and observation. */
export interface Moved {
  readonly state: ReadonlyArray<number>
  /** The observation, rounded to float32. */
  readonly observation: ReadonlyArray<number>
  readonly reward: number
  readonly terminated: boolean
}

/**
 * Saves, loads and draws states held in named float64 columns. The state's own numbers come first, in their order;
 * other columns follow.
 */
export const columnStates = (
  env: Env<ReadonlyArray<number>>,
  columns: Readonly<Record<string, Float64Array>>,
): Omit<Kernel, "start" | "advance"> => {
  const named = Object.entries(columns).map(([name, column]) => [`state.${name}`, column] as const)
  const stateAt = (index: number): ReadonlyArray<number> => named.map(([, column]) => column[index])
  return {
    save: (): Snapshot => Object.fromEntries(named.map(([key, column]) => [key, column.slice()])),
    load: (saved) => {
      for (const [key, column] of named) copyFrom(env.id, saved, key, column)
    },
    renderText: (index) => env.renderText?.(stateAt(index)) ?? "",
    renderSvg: (index) => env.renderSvg?.(stateAt(index)) ?? "",
  }
}
