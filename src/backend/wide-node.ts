import { setFlagsFromString } from "node:v8"
import { Config, Effect } from "effect"
import { BackendUnavailable } from "./Backend.ts"
import { differenceBetween } from "./widthCheck.ts"
import { type ModuleCompiler, plainModules } from "./wasmModules.ts"
import { utf8 } from "../config/utf8.ts"

/**
 * Compiles WebAssembly modules twice as wide: V8 packs pairs of neighbouring 128-bit operations into one of 256 bits
 * (AVX2), which makes updates of small networks up to twice as fast. The results are the same bits.
 *
 * The flag for it is V8's, for the whole process, and experimental. So it is set only while a module of ours is
 * compiled, and that module is compiled completely in the meantime: other WebAssembly in the process is compiled as ever.
 * Where two threads compile at once, one may end the other's widening early: that module is then narrower, with the same
 * results.
 *
 * Before the first module a check program is compiled both ways; if any bit of its results differs, nothing is widened,
 * and `warnings` says so.
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
    Effect.map((wanted) => (wanted && canWiden() ? widenedModules : plainModules)),
  ),
)

const variable = "EFFECT_RL_WIDE"

/** A module of these bytes that is widened. */
type Widen = (bytes: Uint8Array<ArrayBuffer>) => object

/** Widens modules once a check has shown that widening leaves results as they are; until then it has widened none. */
export const checked = (widen: Widen): ModuleCompiler => {
  let difference: string | undefined
  let compile: Widen | undefined
  return {
    module: (bytes) => {
      if (compile === undefined) {
        difference = differenceBetween(plainModules.module, widen)
        compile = difference === undefined ? widen : plainModules.module
      }
      return compile(bytes)
    },
    warnings: () =>
      difference === undefined
        ? []
        : [`WebAssembly kernels stay at 128 bits, which is slower and gives the same results: ${difference}`],
  }
}

/** What tells whether a process's V8 can widen. */
interface Engine {
  readonly arch: string
  readonly versions: { readonly v8: string }
  readonly config: { readonly variables: object }
  readonly execArgv: ReadonlyArray<string>
}

/**
 * Only the optimising compiler widens; without Liftoff and laziness it compiles all functions before the module is there.
 * Inlining stays as it is: threads that compile while that flag changes crash.
 */
const flags = ["--experimental-wasm-revectorize", "--no-liftoff", "--no-wasm-lazy-compilation"]

/**
 * The V8 of Node 22 and 24, with which the tests were run. In another an unknown flag would be a line on stderr, or a
 * check of V8's own may end the process: that of Node 26 does where Liftoff is off and inlining is on.
 */
const triedVersions = ["12.4", "13.6"]

/** Flags that whoever started Node has set for good, and the one that lets no flag be changed later. */
const decided = /experimental.wasm.revec|liftoff|lazy.compilation|jitless|freeze.flags/

/** Whether the process's V8 has the flag, and Node was not started with others that it would undo. */
export const canWiden = ({ arch, versions, config, execArgv }: Engine = process): boolean =>
  arch === "x64" &&
  Object.entries(config.variables).some(([name, value]) => name === "v8_enable_wasm_simd256_revec" && value === 1) &&
  triedVersions.includes(versions.v8.split(".", 2).join(".")) &&
  !execArgv.some((argument) => decided.test(argument))

/** An empty section of that name: V8 shares the code of modules with equal bytes, and would give one compiled before. */
const mark = Uint8Array.of(0x00, 0x05, 0x04, ...utf8.encode("wide"))

const opposite = (flag: string): string => (flag.startsWith("--no-") ? `--${flag.slice(5)}` : `--no-${flag.slice(2)}`)

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

/** One for the process, so that it checks once. */
const widenedModules = checked(widened)
