/**
 * The service that knows the runs of a multi-run trainer: which `run_*` folders there are, which of them is trained at
 * which index, and how far each is. The master rank looks for folders (`checkForChanges`); all ranks then apply the same
 * changes (`syncRuns`), so that indices and hooks agree everywhere. Indices change only in `syncRuns`.
 */
import { Context, type Effect, type Scope, type Stream } from "effect"
import type { OrchestratorConfig } from "./OrchestratorConfig.ts"
import type { RunsError } from "./RunsError.ts"
import type { DiscoveredRun, Hooks, InvalidRun, Progress, RunSlot } from "./RunSlot.ts"
import type { StoreError } from "./StoreError.ts"

/** A change of the runs, as `Runs.changes` reports it. */
export type RunChange =
  | { readonly _tag: "Created"; readonly run: RunSlot }
  /** The run left its slot: its folder vanished, or `reason` says why it was evicted. */
  | { readonly _tag: "Deleted"; readonly run: RunSlot; readonly reason: string | null }
  | { readonly _tag: "Discovered"; readonly run: DiscoveredRun }
  | { readonly _tag: "Forgotten"; readonly run: DiscoveredRun }
  | { readonly _tag: "Invalid"; readonly run: InvalidRun }

/** What the master sees besides the trained runs. */
export interface Status {
  /** The runs that wait for a free index, the next one first. */
  readonly waiting: ReadonlyArray<DiscoveredRun>
  readonly invalid: ReadonlyArray<InvalidRun>
  /** The folders that are left alone because they were evicted, with the reasons. */
  readonly evicted: ReadonlyArray<{ readonly id: string; readonly reason: string }>
}

export class Runs extends Context.Service<
  Runs,
  {
    readonly rank: number
    readonly isMaster: boolean
    /** The number of runs that can be trained at once. */
    readonly maxRuns: number
    /** Registers the hooks of a part, until the scope closes. Register before the first `syncRuns`. */
    readonly register: (hooks: Hooks) => Effect.Effect<void, never, Scope.Scope>
    /** Looks for new, vanished and changed folders, and lets them take effect at the next `syncRuns`. Master only. */
    readonly checkForChanges: Effect.Effect<void, RunsError>
    /** Applies the same changes on all ranks: deletions first, then creations. Every rank must call it. */
    readonly syncRuns: Effect.Effect<void, RunsError | StoreError>
    /** Calls `checkForChanges` and `syncRuns` until a run is trained; fails with the reason if none is in time. */
    readonly awaitRun: Effect.Effect<void, RunsError | StoreError>
    /** Asks to evict a run at the next `syncRuns`. The reason is written into the run's folder. */
    readonly evict: (index: number, reason: string) => Effect.Effect<void>
    readonly status: Effect.Effect<Status>
    readonly changes: Stream.Stream<RunChange>
    /** The trained runs in the order of their indices. */
    readonly slots: () => ReadonlyArray<RunSlot>
    readonly slot: (index: number) => RunSlot | undefined
    readonly idToIndex: (id: string) => number | undefined
    readonly indexToId: (index: number) => string | undefined
    readonly usedIndices: () => ReadonlyArray<number>
    readonly unusedIndices: () => ReadonlyArray<number>
    readonly readyToUpdateIndices: () => ReadonlyArray<number>
    readonly progress: (index: number) => Progress | undefined
    readonly config: (index: number) => OrchestratorConfig | undefined
  }
>()("effect-rl/multirun/Runs") {}
