/** Provides the backends of Node by their names, as `effect run --backend NAME` and `Node.backend(NAME)` choose them. */
import { availableParallelism } from "node:os"
import { Config, Effect, Layer, Scope } from "effect"
import { auto } from "./auto.ts"
import { Backend, BackendUnavailable } from "./Backend.ts"
import { background, type Patience, usualPatience } from "./background-node.ts"
import { keptBesideCompiled } from "./kept-programs-node.ts"
import type { BackendName } from "./names.ts"
import * as native from "./native-node.ts"
import * as reference from "./reference.ts"
import { nodeThreads } from "./threads-node.ts"
import * as wasm from "./wasm.ts"
import { wideModules } from "./wide-node.ts"

export interface NamedBackendOptions {
  /**
   * The number of threads that compute; 1 by default. `auto` uses more than one only if that cannot change a result.
   */
  readonly threads?: number | "auto"
}

/** More threads than these rarely help, and a training that takes all of a large machine would slow its other programs. */
const mostAutomatic = 8

/**
 * Returns the number of threads on `wasm`, and in a session of ONNX Runtime. `auto` gives `wasm` one for each processor, at
 * most 8, because its results have the same bits with any number; a session gets one, because more may change its rounding.
 *
 * @example
 * ```ts
 * const { wasm, session } = threadsOf("auto", 4) // 4 and 1
 * ```
 */
export const threadsOf = (
  threads: number | "auto",
  processors: number,
): { readonly wasm: number; readonly session: number } =>
  threads === "auto" ? { wasm: Math.min(processors, mostAutomatic), session: 1 } : { wasm: threads, session: threads }

/** Makes a backend that computes on a device by ONNX Runtime, which is loaded only when this Effect runs. */
const session = (
  device: "cpu" | "cuda" | "webgpu",
  threads: number,
): Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("./onnx-node.ts")),
    (onnx) => onnx.make(device, { threads }),
  )

/**
 * Makes the wasm backend, with 256-bit vectors if the machine has them; the results are the same without.
 * `EFFECT_RL_WIDE=0` in the environment turns these vectors off. With `patience`, machine code replaces programs later.
 */
const wideWasm = (threads: number, patience?: Patience) =>
  Effect.map(wideModules, (modules) => {
    const kept = keptBesideCompiled()
    const { improve, opened } = patience === undefined ? {} : background({ kept, patience })
    const made = wasm.make({ ...modules, kept, opened }, threads > 1 ? nodeThreads(threads) : undefined)
    return improve === undefined ? made : { ...made, improve }
  })

const variable = "EFFECT_RL_NATIVE"

/** Reads whether machine code may run: never (0), once it is compiled (1), or from the start, for measurements (`wait`). */
const nativeMode = Config.Literals(["0", "1", "wait"], variable).pipe(
  Config.withDefault("1"),
  Effect.mapError(
    () =>
      new BackendUnavailable({
        backend: "native",
        missing: `the environment variable ${variable} is not 0, 1 or wait`,
        remedy: "Set it to 0 to switch machine code off, or leave it out.",
      }),
  ),
)

/** Makes `wasm`, whose programs machine code replaces if the run is long enough for it. */
const replacedWasm = (threads: number) =>
  Effect.flatMap(nativeMode, (mode) => {
    if (mode === "wait") return native.make({ kept: keptBesideCompiled(), threads })
    return wideWasm(threads, mode === "0" ? undefined : usualPatience)
  })

/** Makes `wasm`, whose programs machine code replaces as soon as it is compiled. Fails if this machine cannot compile. */
const nativeWasm = (threads: number) =>
  Effect.flatMap(nativeMode, (mode) => {
    if (mode === "wait") return native.make({ kept: keptBesideCompiled(), threads })
    if (mode === "0") return wideWasm(threads)
    return Effect.andThen(native.check, wideWasm(threads, { seconds: 0.1, computed: 0 }))
  })

/**
 * Provides a backend by its name. `auto` chooses `wasm` or ONNX Runtime on the CPU for each graph. With `threads`, `wasm`
 * divides large programs among threads, whose results have the same bits with any number; ONNX Runtime divides ops. With
 * `threads: "auto"`, `wasm` uses all processors, at most 8, and ONNX Runtime one, so the results are those of one thread.
 *
 * @example
 * ```ts
 * import * as Node from "effect-rl/node"
 *
 * const onTwoCores = Node.backend("auto", { threads: 2 })
 * const onAllCores = Node.backend("auto", { threads: "auto" })
 * ```
 */
export const backend = (
  name: BackendName,
  { threads = 1 }: NamedBackendOptions = {},
): Layer.Layer<Backend, BackendUnavailable> => {
  const count = threadsOf(threads, availableParallelism())
  switch (name) {
    case "wasm":
      return Layer.effect(Backend, wideWasm(count.wasm))
    case "native":
      return Layer.effect(Backend, nativeWasm(count.wasm))
    case "reference":
      return reference.layer
    case "auto":
      return Layer.effect(
        Backend,
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          const cpu = yield* Effect.cached(
            session("cpu", count.session).pipe(Effect.provideService(Scope.Scope, scope)),
          )
          return auto({ wasm: yield* replacedWasm(count.wasm), session: cpu })
        }),
      )
    default:
      return Layer.effect(Backend, session(name, count.session))
  }
}
