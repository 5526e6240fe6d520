/** Runs the C compiler of this machine, for `native-node.ts`. */
import { spawn } from "node:child_process"
import { Config, Effect } from "effect"
import { BackendUnavailable } from "./Backend.ts"
import type { Lanes } from "../graph/wasm/function.ts"

/** A C compiler, and what its code depends on. */
export interface CCompiler {
  readonly command: ReadonlyArray<string>
  readonly flags: ReadonlyArray<string>
  /** A text that differs between compilers, versions, flags, and processors for which they compile. */
  readonly identity: string
  /** How many numbers a vector of the processor holds. */
  readonly lanes: Lanes
}

/** The time limits in seconds: for a question to the compiler, and for compiling a program. */
export interface CompilerLimits {
  readonly question: number
  readonly program: number
  /** Whether compilers leave most of a busy processor's time to other processes. */
  readonly yields?: boolean
}

export const usualLimits: CompilerLimits = { question: 30, program: 600 }

/** The limits of compilers for which no program waits. On a busy machine, they get little of a processor's time. */
export const backgroundLimits: CompilerLimits = { question: 300, program: 7200, yields: true }

const remedy =
  'Install GCC or Clang, or name one in the environment variable CC; or choose the backend "wasm", which has the same results.'

/** Makes the error of a backend that this machine cannot offer. */
export const unavailable = (missing: string, what: string = remedy): BackendUnavailable =>
  new BackendUnavailable({ backend: "native", missing, remedy: what })

/** The flags that keep all roundings and their order, so that a result has the bits of WebAssembly. */
const strict = [
  "-fno-fast-math",
  "-ffp-contract=off",
  "-fwrapv",
  "-fno-strict-aliasing",
  "-fno-math-errno",
  "-fno-trapping-math",
]

const flags: ReadonlyArray<string> = [
  "-O2",
  process.arch === "arm64" ? "-mcpu=native" : "-march=native",
  ...strict,
  "-std=gnu11",
  "-shared",
  "-fPIC",
  "-pthread",
  "-fvisibility=hidden",
  "-w",
]

/**
 * The flags of GCC alone. The first keeps it from moving the additions of each sum next to each other, where each waits for the
 * one before. The second keeps it from choosing the counters of loops: version 12 then stores a transposed copy elsewhere.
 */
const ofGcc = ["-fno-tree-ter", "-fno-ivopts"]

/** The environment variables that choose the compiler, and the largest size of a vector in bits. */
const variables = Config.all({
  compiler: Config.String("CC").pipe(Config.withDefault("cc")),
  bits: Config.Literals(["128", "256", "512"], "EFFECT_RL_NATIVE_BITS").pipe(Config.withDefault("512")),
})

/**
 * Finds the compiler that the environment variable `CC` names, or `cc`, and asks it for which processor it compiles. It
 * comes from the environment of the user alone, never from a config, since it is a program that runs.
 */
export const findCompiler = (limits: CompilerLimits): Effect.Effect<CCompiler, BackendUnavailable> =>
  Effect.gen(function* () {
    if (process.platform === "win32")
      return yield* unavailable("it runs on Linux and macOS", 'Choose the backend "wasm", which has the same results.')
    const { bits, compiler } = yield* Effect.mapError(variables, () =>
      unavailable(
        "the environment variable EFFECT_RL_NATIVE_BITS is not 128, 256 or 512",
        "Correct it or leave it out.",
      ),
    )
    const command = compiler.split(" ").filter((part) => part !== "")
    if (command.length === 0) return yield* unavailable("the environment variable CC is empty", "Leave it out.")
    const { errors, output, status } = yield* run([...command, ...flags, "-dM", "-E", "-x", "c", "/dev/null"], {
      seconds: limits.question,
      yields: limits.yields,
    })
    if (status === 127) return yield* unavailable(`there is no C compiler ${JSON.stringify(compiler)}`)
    if (status !== 0 || !/^#define __GNUC__ /m.test(output))
      return yield* unavailable(`${JSON.stringify(compiler)} is not a C compiler like GCC or Clang${quoted(errors)}`)
    const hasAvx2 = /^#define __AVX2__ /m.test(output)
    const widest = hasAvx2 && /^#define __AVX512F__ /m.test(output) ? 16 : 8
    const lanes = Math.min(hasAvx2 ? widest : 4, Number(bits) / 32)
    const all = /^#define __clang__ /m.test(output) ? flags : [...flags, ...ofGcc]
    const identity = [...command, ...all, output].join("\n")
    return { command, flags: all, identity, lanes: lanesOf(lanes) }
  })

const lanesOf = (count: number): Lanes => {
  if (count >= 16) return 16
  return count >= 8 ? 8 : 4
}

/** Compiles a file to a shared library. `folder` gets the compiler's temporary files. */
export const compileFile = (
  { command, flags: all }: CCompiler,
  files: { readonly source: string; readonly library: string; readonly folder: string },
  limits: CompilerLimits,
): Effect.Effect<void, BackendUnavailable> =>
  Effect.gen(function* () {
    const { folder, library, source } = files
    const args = [...command, ...all, "-o", library, source]
    const { errors, status } = yield* run(args, {
      seconds: limits.program,
      yields: limits.yields,
      variables: { TMPDIR: folder },
    })
    if (status === 0) return
    return yield* unavailable(`the C compiler ${JSON.stringify(command.join(" "))} failed${quoted(errors)}`)
  })

/** Returns the first error among a compiler's messages, or else the first message, as the end of a sentence. */
const quoted = (errors: string): string => {
  const lines = errors.split("\n").filter((one) => one.trim() !== "")
  const line = lines.find((one) => /\berror: /.test(one)) ?? lines.at(0)
  return line === undefined ? "" : `: ${line.trim().slice(0, 200)}`
}

/**
 * A program of the shell that runs its arguments. It leads a process group and reads from this process until that ends, for
 * whatever reason; then the whole group is killed, so that a compiler does not go on without the run that waits for it.
 */
const keeper = `exec 3<&0
"$@" </dev/null 3<&- &
compiler=$!
{ read -r _ <&3; kill -KILL 0; } &
exec 3<&-
wait "$compiler"`

/**
 * Lets other processes go first, and makes the system end this one first if memory runs out. On a busy processor it gets about
 * a tenth of the time: with the lowest priority, 19, it took minutes to compile a program. Some systems divide the time of processors among groups of processes, which have a priority of their own.
 */
const yielding = `renice -n 10 $$
echo 10 > /proc/$$/autogroup
echo 1000 > /proc/$$/oom_score_adj
`

/** The largest number of characters of a compiler's output that are kept. */
const mostOutput = 1 << 20

interface Ended {
  readonly status: number | null
  readonly output: string
  readonly errors: string
}

/** Runs a command to its end. When the fiber is interrupted, or the time is over, all its processes are killed. */
export const run = (
  command: ReadonlyArray<string>,
  options: {
    readonly seconds: number
    readonly yields?: boolean | undefined
    readonly variables?: Readonly<Record<string, string>>
  },
): Effect.Effect<Ended, BackendUnavailable> =>
  Effect.callback<Ended, BackendUnavailable>((resume) => {
    const script = options.yields === true ? `{\n${yielding}} >/dev/null 2>&1\n${keeper}` : keeper
    const child = spawn("/bin/sh", ["-c", script, "sh", ...command], {
      detached: true,
      env: { ...process.env, LC_ALL: "C", ...options.variables },
      stdio: ["pipe", "pipe", "pipe"],
    })
    const end = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, "SIGKILL")
      } catch {
        // No process of the group is left.
      }
    }
    child.on("error", ({ message }) => resume(Effect.fail(unavailable(`the C compiler did not start (${message})`))))
    child.stdin.on("error", () => {})
    const texts = { output: "", errors: "" }
    const collect = (key: keyof typeof texts, text: string): void => {
      if (texts[key].length < mostOutput) texts[key] += text
    }
    child.stdout.setEncoding("utf8").on("data", (text: string) => collect("output", text))
    child.stderr.setEncoding("utf8").on("data", (text: string) => collect("errors", text))
    child.on("exit", end)
    child.on("close", (status) => resume(Effect.succeed({ status, ...texts })))
    return Effect.sync(end)
  }).pipe(
    Effect.timeoutOrElse({
      duration: options.seconds * 1000,
      orElse: () => Effect.fail(unavailable(`the C compiler did not answer within ${options.seconds} seconds`)),
    }),
  )
