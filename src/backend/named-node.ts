/** Provides the backends of Node by their names, as `effect run --backend NAME` and `Node.backend(NAME)` choose them. */
import { Effect, Layer, Scope } from "effect"
import { auto } from "./auto.ts"
import { Backend, type BackendUnavailable } from "./Backend.ts"
import { keptBesideCompiled } from "./kept-programs-node.ts"
import type { BackendName } from "./names.ts"
import type { Options as SessionOptions } from "./onnx-node.ts"
import * as reference from "./reference.ts"
import { nodeThreads } from "./threads-node.ts"
import * as wasm from "./wasm.ts"
import { wideModules } from "./wide-node.ts"

/** Makes a backend that computes on a device by ONNX Runtime, which is loaded only when this Effect runs. */
const session = (
  device: "cpu" | "cuda" | "webgpu",
  options: SessionOptions,
): Effect.Effect<Backend["Service"], BackendUnavailable, Scope.Scope> =>
  Effect.flatMap(
    Effect.promise(() => import("./onnx-node.ts")),
    (onnx) => onnx.make(device, options),
  )

/**
 * Makes the wasm backend, with 256-bit vectors if the machine has them; the results are the same without.
 * `EFFECT_RL_WIDE=0` in the environment turns these vectors off.
 */
const wideWasm = ({ threads = 1 }: SessionOptions) =>
  Effect.map(wideModules, (modules) =>
    wasm.make({ ...modules, kept: keptBesideCompiled() }, threads > 1 ? nodeThreads(threads) : undefined),
  )

/**
 * Provides a backend by its name. `auto` chooses `wasm` or ONNX Runtime on the CPU for each graph. With `threads`, `wasm`
 * divides large programs among threads, whose results have the same bits with any number; ONNX Runtime divides ops.
 *
 * @example
 * ```ts
 * const onTwoCores = Node.backend("auto", { threads: 2 })
 * ```
 */
export const backend = (name: BackendName, options: SessionOptions = {}): Layer.Layer<Backend, BackendUnavailable> => {
  switch (name) {
    case "wasm":
      return Layer.effect(Backend, wideWasm(options))
    case "reference":
      return reference.layer
    case "auto":
      return Layer.effect(
        Backend,
        Effect.gen(function* () {
          const scope = yield* Effect.scope
          const cpu = yield* Effect.cached(session("cpu", options).pipe(Effect.provideService(Scope.Scope, scope)))
          return auto({ wasm: yield* wideWasm(options), session: cpu })
        }),
      )
    default:
      return Layer.effect(Backend, session(name, options))
  }
}
