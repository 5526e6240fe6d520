/**
 * Implements the backend `wasm`. `named-node.ts`, `web.ts` and users provide it; `auto.ts` chooses it for small graphs.
 */
import { Deferred, Effect, Layer, Record } from "effect"
import { attempt } from "../../base/config/attempt.ts"
import { exactText } from "../../base/text/text.ts"
import { GraphError } from "../graph/GraphError.ts"
import { changing, type ProgramSpec } from "../graph/Program.ts"
import { descriptionOf } from "../graph/descriptionOf.ts"
import { simplify } from "../graph/simplify.ts"
import { validateAll } from "../graph/validate.ts"
import { compileAll, type CompiledModule, type CompileOptions, type ArrayAddress } from "../graph/wasm/compile.ts"
import type { BandSizes } from "../graph/wasm/bands.ts"
import type { Worth } from "../graph/wasm/slices.ts"
import {
  Backend,
  BackendUnavailable,
  compileOne,
  type GroupOptions,
  type Program,
  programOf,
  type TensorData,
} from "./Backend.ts"
import {
  type Functions,
  instantiate,
  type KeptPrograms,
  type LoadedGroup,
  type ModuleCompiler,
  type NativeFunctions,
  type NativeTeam,
  plainModules,
  type SharedModule,
  viewOf,
} from "./wasmModules.ts"

/**
 * Provides the backend: it compiles a graph, or a group of graphs, to one WebAssembly module, for Node, browsers and edge workers. The
 * order of its operations and their rounding are fixed, so a program gives the same bits on every machine. Feeds and
 * results are views of the module's memory: nothing is copied, and a run is one call.
 *
 * It is the fastest backend for small graphs, where calling a session of ONNX Runtime takes longer than the arithmetic:
 * acting with small batches, and whole updates of small networks.
 *
 * @example
 * ```ts
 * const program = yield* (yield* Backend).compile(spec) // with the Backend of Wasm.layer
 * program.feeds["x"].set([0, 0.1, 0, -0.1])
 * program.runSync?.()
 * const actions = program.results["actions"]
 * ```
 */
export const layer: Layer.Layer<Backend> = Layer.suspend(() => Layer.succeed(Backend, make()))

/** The threads that share the work of large programs. */
export interface Threads {
  /** How many threads compute a program, including the one that runs it. */
  readonly count: number
  /**
   * Starts threads that help with a module. They end after the module's `release` is called; the returned Effect waits
   * for their ends. Programs do not wait for helpers: the thread that runs a program computes everything that no helper
   * has begun. So if a thread cannot start, programs only get slower; then `failed` is called with the reason.
   */
  readonly start: (shared: SharedModule, helpers: number, failed: (reason: string) => void) => Effect.Effect<void>
  /** Which work is large enough to be divided. The default comes from measurements. */
  readonly worth?: Worth
}

/**
 * Makes the backend from a compiler of modules; `named-node.ts` passes the compiler of `wide-node.ts`, which uses wider
 * vectors. With `threads`, several threads compute large programs. The results have the same bits with any number of
 * them, and with any `bandSizes`.
 */
export const make = (
  modules: ModuleCompiler = plainModules,
  threads?: Threads,
  bandSizes?: BandSizes,
): Backend["Service"] => {
  const compileAll: Backend["Service"]["compileAll"] = (specs, options) =>
    Effect.gen(function* () {
      const helpers = threads && { ...threads, failed: yield* warnOfFailure }
      const loaded = yield* attempt(
        () => load(specs, options, modules, helpers, bandSizes),
        GraphError,
        BackendUnavailable,
      )
      const { compiled, instance } = loaded
      const native = modules.native && (yield* modules.native(compiled, instance.memory.buffer))
      const { programs } = yield* Effect.acquireRelease(
        Effect.sync(() => {
          const made = programsOf(specs, loaded, native, helpers)
          const close = modules.opened?.({ ...loaded, ...made, specs, memory: instance.memory })
          return {
            ...made,
            end: Effect.andThen(
              Effect.sync(() => close?.()),
              made.end,
            ),
          }
        }),
        ({ end }) => end,
      )
      return programs
    })
  return {
    name: device,
    compile: compileOne(compileAll),
    compileAll,
    warnings: Effect.sync(modules.warnings),
  }
}

/** The name of the device, with machine code, too, which has the same bits: a resumed run may go on without it. */
const device = "wasm"

/** Helper threads, and the function to call if one of them fails. */
interface Helpers extends Threads {
  readonly failed: (reason: string) => void
}

/** Makes a function that records a warning. It does so only once, and only while the scope is open. */
const warnOfFailure = Effect.gen(function* () {
  const first = yield* Deferred.make<string>()
  yield* Deferred.await(first).pipe(
    Effect.flatMap((reason) =>
      Effect.logWarning(`a thread of the backend wasm failed, so programs run without its help: ${reason}`),
    ),
    Effect.forkScoped,
  )
  return (reason: string): void => void Deferred.doneUnsafe(first, Effect.succeed(reason))
})

/** Compiles programs to a module, or returns the module that was kept from an earlier time. */
export const moduleOf = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  options: CompileOptions,
  kept: KeptPrograms | undefined,
): CompiledModule<Name> => {
  const compileNow = (): CompiledModule<Name> => compileAll(Record.map(specs, simplify), options)
  if (kept === undefined) return compileNow()
  const description = `${exactText(options)}\n${descriptionOf(specs)}`
  const existing = kept.get(description)
  if (existing !== undefined) return { ...existing, programs: Record.map(specs, (_, name) => existing.programs[name]) }
  const compiled = compileNow()
  kept.set(description, compiled)
  return compiled
}

/** A module with a memory of its own. */
interface Loaded<Name extends string> {
  readonly options: CompileOptions
  readonly compiled: CompiledModule<Name>
  readonly module: object
  readonly instance: ReturnType<typeof instantiate<Name>>
}

/** Loads programs as one module with one memory, which holds their states once. */
const load = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  { sharedFeeds = [] }: GroupOptions = {},
  modules: ModuleCompiler,
  threads: Helpers | undefined,
  bandSizes: BandSizes | undefined,
): Loaded<Name> => {
  validateAll(specs, sharedFeeds)
  const { count = 1, worth } = threads ?? {}
  const options = { sharedFeeds, lanes: modules.lanes(), threads: count, worth, bandSizes }
  const compiled = moduleOf(specs, options, modules.kept)
  const module = modules.module(compiled.bytes)
  return { options, compiled, module, instance: instantiate(module, compiled) }
}

/** Holds the functions of a module's programs, which machine code may replace, and the threads that help with them. */
const functionsIn = (
  instance: ReturnType<typeof instantiate>,
  module: object,
  native: NativeFunctions | undefined,
  threads: Helpers | undefined,
) => {
  const { memory, release } = instance
  const helpers = (threads?.count ?? 1) - 1
  let functions: Readonly<Record<string, Functions>> = instance.functions
  let team: NativeTeam | undefined
  /** Waits until the helper threads have ended; undefined if they were never started. */
  let ended: Effect.Effect<void> | undefined
  let isOpen = true
  const end = Effect.suspend(() => {
    isOpen = false
    team?.stop()
    if (team !== undefined) return Effect.void
    release()
    return ended ?? Effect.void
  })
  const use = (by: NativeFunctions): void => {
    functions = by.functions
    team = by.team
    team?.start(helpers)
  }
  if (native !== undefined) use(native)
  const replace: LoadedGroup["replace"] = (by, { address, bytes }) =>
    Effect.suspend(() => {
      release()
      // Until the helpers have ended, programs run without them.
      ended ??= Effect.void
      return ended
    }).pipe(
      Effect.andThen(
        Effect.sync(() => {
          // The scope of the group has ended, so nothing would stop threads that start now.
          if (!isOpen) return false
          new Uint8Array(memory.buffer).set(bytes, address)
          use(by)
          return true
        }),
      ),
      Effect.uninterruptible,
    )
  const help = (): void => {
    if (team === undefined) ended ??= threads?.start({ module, memory }, helpers, threads.failed)
  }
  return { functionsOf: (name: string): Functions => functions[name], help, end, replace }
}

/** Makes the programs of a module; `native` has functions that run instead of the module's own. */
const programsOf = <Name extends string>(
  specs: Readonly<Record<Name, ProgramSpec>>,
  { compiled, instance, module }: Loaded<Name>,
  native: NativeFunctions | undefined,
  threads: Helpers | undefined,
): {
  readonly programs: Readonly<Record<Name, Program>>
  readonly end: Effect.Effect<void>
  readonly runs: Readonly<Record<string, number>>
  readonly replace: LoadedGroup["replace"]
} => {
  const { memory } = instance
  const { end, functionsOf, help, replace } = functionsIn(instance, module, native, threads)
  const runs: Record<string, number> = Record.map(specs, () => 0)
  const view = (place: ArrayAddress): TensorData => viewOf(memory.buffer, place)
  const states = Record.map(compiled.state, view)
  /** For each program, whether a state has changed since the last `prepare`, whose values depend only on states. */
  const prepared: Record<string, { stale: boolean }> = Record.map(specs, () => ({ stale: true }))

  const programs = Record.map(specs, (spec, name) => {
    const { divided, feeds, results } = compiled.programs[name]
    const own = prepared[name]
    const replaced = changing(spec).map(([state]) => state)
    const affected = Object.entries<ProgramSpec>(specs).flatMap(([other, { state }]) =>
      other !== name && replaced.some((key) => state[key] !== undefined) ? [prepared[other]] : [],
    )
    let iterations = 1
    const runSync = (): void => {
      const { prepare, run } = functionsOf(name)
      if (own.stale) {
        prepare()
        own.stale = false
      }
      if (divided) help()
      iterations = run()
      runs[name]++
      for (const other of affected) other.stale = true
    }
    return programOf(spec, {
      device,
      feeds: Record.map(feeds, view),
      results: Record.map(results, view),
      iterations: () => iterations,
      runSync,
      read: (state) => {
        const data = states[state]
        return data instanceof Float32Array ? data : Float32Array.from(data)
      },
      write: (state, data) => {
        states[state].set(data)
        for (const each of Object.values(prepared)) each.stale = true
      },
    })
  })
  return { programs, end, runs, replace }
}
