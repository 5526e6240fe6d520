import type { Snapshot } from "../BatchEnv.ts"
import type { Env } from "../Env.ts"
import { copyFrom, type Kernel } from "./episodes.ts"

/**
 * What every kernel with its states in named float64 columns shares: snapshots, and drawings of one env. The state's
 * numbers come first, in their order; what is kept beside them comes after.
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
