/**
 * A simple model of the runs of a multi-run trainer: which folders there are, which runs are trained, wait or are
 * evicted, and which hooks each rank must have run. It knows nothing of files or stores.
 */

/** An action of the user on the folder of a run, or of a rank on a trained run. */
export type Action =
  /** Writes the config into the folder, which is made if it is missing. `failsOn` is a rank whose creation hook fails. */
  | {
      readonly _tag: "Configure"
      readonly id: string
      readonly config: "good" | "bad"
      readonly failsOn: number | null
    }
  | { readonly _tag: "Delete"; readonly id: string }
  /** Removes the folder and makes it again at once. */
  | { readonly _tag: "Remake"; readonly id: string; readonly config: "good" | "bad"; readonly failsOn: number | null }
  | { readonly _tag: "Unconfigure"; readonly id: string }
  | { readonly _tag: "Checkpoint"; readonly id: string; readonly step: number; readonly complete: boolean }
  | { readonly _tag: "EvictByFile"; readonly id: string }
  | { readonly _tag: "Readmit"; readonly id: string }
  | { readonly _tag: "Evict"; readonly index: number; readonly rank: number }
  | { readonly _tag: "Train"; readonly index: number; readonly steps: number }

/** A folder on disk. */
interface Folder {
  /** A number that a folder does not share with one that was made again. */
  readonly incarnation: number
  config: "good" | "bad" | null
  failsOn: number | null
  isEvicted: boolean
  readonly checkpoints: Set<number>
}

interface Trained {
  readonly id: string
  readonly incarnation: number
  step: number
  ready: boolean
  isLeaving: boolean
}

/** The state of a folder as the master knows it. */
type Known =
  | { readonly _tag: "Unconfigured" }
  | { readonly _tag: "Invalid" }
  | { readonly _tag: "Waiting"; readonly incarnation: number; failsOn: number | null }
  | { readonly _tag: "Trained"; readonly incarnation: number; readonly run: Trained }
  | { readonly _tag: "Evicted"; readonly incarnation: number | null; isWritten: boolean }

export const makeModel = (ranks: number, maxRuns: number) => {
  const folders = new Map<string, Folder>()
  const known = new Map<string, Known>()
  const queue: Array<string> = []
  const slots: Array<Trained | undefined> = Array.from({ length: maxRuns }, () => undefined)
  const logs: ReadonlyArray<Array<string>> = Array.from({ length: ranks }, () => [])
  const wanted: Array<{ readonly rank: number; readonly run: Trained }> = []
  let incarnations = 0

  const make = (id: string): Folder => {
    const folder = {
      incarnation: ++incarnations,
      config: null,
      failsOn: null,
      isEvicted: false,
      checkpoints: new Set<number>(),
    }
    folders.set(id, folder)
    return folder
  }

  const act = (action: Action): void => {
    const folder = "id" in action ? folders.get(action.id) : undefined
    switch (action._tag) {
      case "Configure":
      case "Remake": {
        const target = action._tag === "Remake" ? make(action.id) : (folder ?? make(action.id))
        target.config = action.config
        target.failsOn = action.failsOn
        return
      }
      case "Delete":
        return void folders.delete(action.id)
      case "Unconfigure":
        if (folder !== undefined) folder.config = null
        return
      case "Checkpoint":
        if (action.complete) folder?.checkpoints.add(action.step)
        return
      case "EvictByFile":
      case "Readmit":
        if (folder !== undefined) folder.isEvicted = action._tag === "EvictByFile"
        return
      case "Evict": {
        const run = slots[action.index]
        if (run !== undefined) wanted.push({ rank: action.rank, run })
        return
      }
      case "Train": {
        const run = slots[action.index]
        if (run !== undefined) run.step += action.steps
        if (run !== undefined) run.ready = true
      }
    }
  }

  const end = (id: string, next: Known | undefined): void => {
    const before = known.get(id)
    if (next === undefined) known.delete(id)
    else known.set(id, next)
    if (before?._tag === "Waiting") queue.splice(queue.indexOf(id), 1)
    if (before?._tag === "Trained") before.run.isLeaving = true
    if (before?._tag === "Waiting" || before?._tag === "Trained") logs[0].push(`forgotten ${id}`)
  }

  const look = (id: string, folder: Folder): void => {
    const before = known.get(id)
    const incarnation = before !== undefined && "incarnation" in before ? before.incarnation : null
    if (incarnation !== null && incarnation !== folder.incarnation) end(id, undefined)
    const state = known.get(id)
    if (folder.isEvicted) {
      if (state?._tag !== "Evicted" || !state.isWritten)
        end(id, {
          _tag: "Evicted",
          incarnation: state !== undefined && "incarnation" in state ? state.incarnation : null,
          isWritten: true,
        })
      return
    }
    if (state?._tag === "Evicted") end(id, undefined)
    if (known.get(id)?._tag === "Trained") return
    const now = known.get(id)
    if (folder.config === null) return end(id, { _tag: "Unconfigured" })
    if (folder.config === "bad") {
      if (now?._tag === "Invalid") return
      end(id, { _tag: "Invalid" })
      return void logs[0].push(`invalid ${id}`)
    }
    if (now?._tag === "Waiting") {
      now.failsOn = folder.failsOn
      return
    }
    end(id, { _tag: "Waiting", incarnation: folder.incarnation, failsOn: folder.failsOn })
    queue.push(id)
    logs[0].push(`discovered ${id}`)
  }

  const scan = (): void => {
    for (const id of [...known.keys()].toSorted()) if (!folders.has(id)) end(id, undefined)
    for (const id of [...folders.keys()].toSorted()) look(id, folders.get(id) ?? make(id))
  }

  const evict = (run: Trained): void => {
    const state = known.get(run.id)
    if (state?._tag !== "Trained" || state.run !== run) return
    const folder = folders.get(run.id)
    const isWritten = folder?.incarnation === run.incarnation
    if (isWritten) folder.isEvicted = true
    end(run.id, { _tag: "Evicted", incarnation: run.incarnation, isWritten })
  }

  const everywhere = (line: string): void => {
    for (const log of logs) log.push(line)
  }

  const sync = (): void => {
    const requests = wanted.splice(0).toSorted((a, b) => a.rank - b.rank)
    for (const { run } of requests) evict(run)
    for (const [index, run] of slots.entries()) {
      if (run?.isLeaving !== true) continue
      everywhere(`deletion ${run.id} ${index}`)
      slots[index] = undefined
    }
    const free = slots.flatMap((run, index) => (run === undefined ? [index] : []))
    const created: Array<{
      readonly index: number
      readonly run: Trained
      readonly failsOn: number | null
      readonly isGone: boolean
    }> = []
    for (const id of queue.splice(0, free.length)) {
      const state = known.get(id)
      if (state?._tag !== "Waiting") throw new Error(`${id} is in the queue but does not wait`)
      const { incarnation, failsOn } = state
      const step = Math.max(0, ...(folders.get(id)?.checkpoints ?? []))
      const run = { id, incarnation, step, ready: false, isLeaving: false }
      const index = free[created.length]
      known.set(id, { _tag: "Trained", incarnation, run })
      // The folder that was found may have been removed since, so that no rank can open it.
      const isGone = !folders.has(id)
      created.push({ index, run, failsOn, isGone })
      if (isGone) continue
      slots[index] = run
      for (const [rank, log] of logs.entries()) {
        log.push(`creation ${id} ${index}`)
        if (rank !== failsOn) log.push(`postCreation ${id} ${index}`)
      }
    }
    for (const { index, run, failsOn, isGone } of created) {
      if (isGone) evict(run)
      if (isGone || failsOn === null || failsOn >= ranks) continue
      evict(run)
      everywhere(`deletion ${run.id} ${index}`)
      slots[index] = undefined
    }
  }

  const withState = (tag: Known["_tag"]) =>
    [...known].flatMap(([id, state]) => (state._tag === tag ? [id] : [])).toSorted()

  return {
    act,
    scan,
    sync,
    logs,
    view: () => ({
      folders: [...folders.keys()].toSorted(),
      slots: slots.map((run) => run && { id: run.id, step: run.step, ready: run.ready }),
      waiting: [...queue],
      invalid: withState("Invalid"),
      evicted: withState("Evicted"),
      unconfigured: withState("Unconfigured"),
      evictedFiles: [...folders].flatMap(([id, { isEvicted }]) => (isEvicted ? [id] : [])).toSorted(),
    }),
  }
}
