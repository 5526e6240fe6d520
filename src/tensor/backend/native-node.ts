/**
 * Implements the backend `native`: programs run as machine code that this machine's C compiler has made. It compiles a
 * program to a WebAssembly module first, as the backend `wasm` does, and then translates the module's functions to C, so the
 * programs have the same plan of memory, and the same bits. The functions compute in the memory of the module.
 */
import { Effect } from "effect"
import type { BandSizes } from "../graph/wasm/bands.ts"
import type { Lanes } from "../graph/wasm/function.ts"
import type { Worth } from "../graph/wasm/slices.ts"
import type { Backend, BackendUnavailable } from "./Backend.ts"
import { type CompilerLimits, findCompiler, usualLimits } from "./compiler-node.ts"
import { checkCompiler, loader, nativeCompiler } from "./libraries-node.ts"
import { objectsFolder } from "./objects-node.ts"
import * as wasm from "./wasm.ts"
import { type KeptPrograms, type NativeCompiler, plainModules } from "./wasmModules.ts"

/** Options that tests set. */
interface NativeOptions {
  readonly kept?: KeptPrograms | undefined
  /** The folder for caches, instead of the user's own. */
  readonly caches?: string
  readonly limits?: CompilerLimits
  /** How many numbers a vector holds; by default, as many as a register of this processor. */
  readonly lanes?: Lanes
  /** How many threads compute a program, including the one that runs it. */
  readonly threads?: number
  /** Which work is large enough to be divided. */
  readonly worth?: Worth
  readonly bandSizes?: BandSizes
}

/**
 * Makes the backend. It fails if this machine has no C compiler, or lacks the package `koffi`, which loads the compiled
 * programs; and if a check program has other bits than on `wasm`.
 */
export const make = (options: NativeOptions = {}): Effect.Effect<Backend["Service"], BackendUnavailable> =>
  Effect.gen(function* () {
    const { kept, caches, lanes, limits = usualLimits, threads = 1, worth, bandSizes } = options
    const load = yield* loader
    const found = yield* findCompiler(limits)
    const compiler = { ...found, lanes: lanes ?? found.lanes }
    const maker = { compiler, folder: yield* objectsFolder(caches), limits }
    const native = nativeCompiler(maker, load)
    const check = yield* Effect.cached(checkCompiler(maker, load))
    const afterCheck: NativeCompiler = (compiled, memory) => Effect.andThen(check, native(compiled, memory))
    const modules = { ...plainModules, lanes: () => compiler.lanes, kept, native: afterCheck }
    const chosen = worth === undefined ? {} : { worth }
    // The helpers of machine code are not threads of Node.
    const several = threads > 1 ? { count: threads, start: () => Effect.void, ...chosen } : undefined
    return wasm.make(modules, several, bandSizes)
  })

/** Fails if this machine has no C compiler, or lacks the package `koffi`. */
export const check: Effect.Effect<void, BackendUnavailable> = Effect.andThen(
  loader,
  Effect.asVoid(Effect.suspend(() => findCompiler(usualLimits))),
)
