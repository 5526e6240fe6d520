/**
 * Decides where the runs of a sweep are saved: in the results folder itself, or in a bucket whose local copy is that folder.
 */
import { Context, Effect, type Scope } from "effect"
import type { RunStoreError } from "../../run/store/RunStoreError.ts"
import type { RunCommand } from "./child.ts"
import { type CommandError } from "../CommandError.ts"

export interface SweepPlace {
  /** Returns the path or the address that other machines and the user use for a folder in the results folder. */
  readonly shown: (path: string) => string
  /** Tells whether another machine already uses the folder of a new sweep. The argument is the time in the folder's name. */
  readonly isTaken: (time: string) => Effect.Effect<boolean, CommandError>
  /** Locks the sweep with this time against other machines. */
  readonly lock: (time: string) => Effect.Effect<void, RunStoreError | CommandError, Scope.Scope>
  /** Returns a function that trains a run with `command` and makes its results available in the results folder. */
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
