/**
 * Makes V8 (Node's JavaScript engine) compile the modules of the `wasm` backend to vectors of 256 bits instead of 128;
 * we call this widening a module. To do so, it briefly changes flags of this process's V8. It reads the environment
 * variable `EFFECT_RL_WIDE`. `named-node.ts` uses it.
 */
import { setFlagsFromString } from "node:v8"
import { Config, Effect } from "effect"
import { BackendUnavailable } from "./Backend.ts"
import { differenceBetween } from "./widthCheck.ts"
import { type ModuleCompiler, plainModules } from "./wasmModules.ts"
import { utf8 } from "../../base/text/utf8.ts"
import { besideCompiled, never, type PassedCheck } from "./passed-check-node.ts"

/**
 * Provides the compiler that widens modules: V8 combines pairs of neighbouring 128-bit operations to one of 256 bits
 * (AVX2), which makes updates of small networks up to twice as fast. The results have the same bits. If V8 cannot widen
 * modules, or `EFFECT_RL_WIDE` is 0, this is the usual compiler.
 *
 * V8's flag for this is experimental and applies to the whole process. So it is set only while one of our modules is
 * compiled, and that module is compiled completely before the flag is reset: other WebAssembly in the process is
 * compiled as usual. If two threads compile at once, one may reset the flag while the other still compiles: that module
 * then uses 128-bit operations, with the same results.
 *
 * Before the first module, a check program is compiled both ways. If any bit of its results differs, `warnings` says so
 * and no module is widened. If Node caches compiled JavaScript, as for the `effect` command, the same folder also
 * records that the check has passed (see `passed-check-node.ts`).
 */
export const wideModules: Effect.Effect<ModuleCompiler, BackendUnavailable> = Effect.suspend(() =>
  Config.Boolean(variable).pipe(
    Config.withDefault(true),
    Effect.mapError(
      () =>
        new BackendUnavailable({
          backend: "wasm",
          missing: `the environment variable ${variable} is neither 0 nor 1`,
          remedy: "Set it to 0 to keep WebAssembly kernels at 128 bits, or leave it out.",
        }),
    ),
    Effect.map((enabled) => (enabled && canWiden() ? widenedModules : plainModules)),
  ),
)

const variable = "EFFECT_RL_WIDE"

/** Compiles bytes to a module that uses 256-bit vectors. */
type Widen = (bytes: Uint8Array<ArrayBuffer>) => object

/**
 * Makes a compiler that widens modules. Before the first module, it checks that widening does not change results, unless the
 * check has passed before.
 */
export const checked = (widen: Widen, passed: () => PassedCheck = () => never): ModuleCompiler => {
  let difference: string | undefined
  let compile: Widen | undefined
  const chosen = (): Widen => {
    if (compile !== undefined) return compile
    const { add, has } = passed()
    if (!has()) {
      difference = differenceBetween(plainModules.module, widen)
      if (difference === undefined) add()
    }
    compile = difference === undefined ? widen : plainModules.module
    return compile
  }
  return {
    module: (bytes) => chosen()(bytes),
    lanes: () => (chosen() === widen ? 8 : 4),
    warnings: () =>
      difference === undefined
        ? []
        : [`WebAssembly kernels stay at 128 bits, which is slower and gives the same results: ${difference}`],
  }
}

/**
 * The flags that make V8 widen a module (compile it to 256-bit vectors). Only V8's optimising compiler does so. Without
 * Liftoff (V8's fast first compiler) and lazy compilation, it compiles all functions before the module is returned. The
 * flag for inlining stays as it is: threads that compile while it changes crash.
 */
const flags = ["--experimental-wasm-revectorize", "--no-liftoff", "--no-wasm-lazy-compilation"]

/**
 * The V8 versions of Node 22 and 24, with which the tests were run. Another version may print an error about an unknown
 * flag, or may end the process: V8 in Node 26 does so if Liftoff is off and inlining is on.
 */
const triedVersions = ["12.4", "13.6"]

/** Matches flags on Node's command line that conflict with `flags`: with one of them, no module is widened. */
const conflicting = /experimental.wasm.revec|liftoff|lazy.compilation|jitless|freeze.flags/

/** Tells whether the process's V8 can widen modules, and Node was started without flags that conflict with `flags`. */
export const canWiden = ({
  arch,
  versions,
  config,
  execArgv,
}: {
  readonly arch: string
  readonly versions: { readonly v8: string }
  readonly config: { readonly variables: object }
  readonly execArgv: ReadonlyArray<string>
} = process): boolean =>
  arch === "x64" &&
  Object.entries(config.variables).some(([name, value]) => name === "v8_enable_wasm_simd256_revec" && value === 1) &&
  triedVersions.includes(versions.v8.split(".", 2).join(".")) &&
  !execArgv.some((argument) => conflicting.test(argument))

/**
 * An empty section with the name `wide`. V8 reuses the code of modules with equal bytes, so widened modules get this
 * section to differ.
 */
const mark = Uint8Array.of(0x00, 0x05, 0x04, ...utf8.encode("wide"))

const opposite = (flag: string): string => (flag.startsWith("--no-") ? `--${flag.slice(5)}` : `--no-${flag.slice(2)}`)

/** Compiles a module to 256-bit vectors: sets the flags of V8, compiles the whole module, and resets the flags. */
export const widened: Widen = (bytes) => {
  const marked = new Uint8Array(bytes.length + mark.length)
  marked.set(bytes)
  marked.set(mark, bytes.length)
  setFlagsFromString(flags.join(" "))
  try {
    return plainModules.module(marked)
  } finally {
    setFlagsFromString(flags.map(opposite).join(" "))
  }
}

/** The one compiler of this process, so that the check runs only once. */
const widenedModules = checked(widened, besideCompiled)
