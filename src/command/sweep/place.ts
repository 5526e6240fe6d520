/** Finds where the runs of a sweep are saved: in the results folder itself, or in a bucket for which that folder stands. */
import { Context, Effect, type Scope } from "effect"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { RunCommand } from "./child.ts"
import { type CommandError } from "../CommandError.ts"

export interface SweepPlace {
  /** Returns the path or the address of a folder in the results folder, as other machines and the user know it. */
  readonly shown: (path: string) => string
  /** Tells whether the folder of a new sweep, by its time, is used elsewhere. */
  readonly isTaken: (time: string) => Effect.Effect<boolean, CommandError>
  /** Locks the sweep of this time for other machines. */
  readonly lock: (time: string) => Effect.Effect<void, RunStoreError | CommandError, Scope.Scope>
  /** Returns the function that trains a run by `command`, whose results are then in the results folder. */
  readonly training: (command: typeof RunCommand.Service) => typeof RunCommand.Service
}

/** By default, runs are saved in the results folder. */
export const SweepPlace = Context.Reference<SweepPlace>("effect-rl/cli/SweepPlace", {
  defaultValue: () => ({
    shown: (path) => path,
    isTaken: () => Effect.succeed(false),
    lock: () => Effect.void,
    training: (command) => command,
  }),
})
