/**
 * Replaces programs that run as WebAssembly by machine code while a run goes on. The C compiler and all checks work in other
 * processes, with a low priority. If anything is missing or fails, programs stay as they are, and a line in `run.log`
 * says why. Either way, results have the same bits.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual } from "node:util"
import { serialize } from "node:v8"
import { Effect, Schema, Semaphore } from "effect"
import { compileCacheVariable } from "../../base/files/compile-cache-node.ts"
import { programBeside } from "../../base/files/programBeside.ts"
import { messageOf } from "../../base/text/text.ts"
import { microsecondsOnWasm } from "./auto.ts"
import type { BackendUnavailable } from "./Backend.ts"
import {
  backgroundLimits,
  type CCompiler,
  type CompilerLimits,
  findCompiler,
  run,
  unavailable,
} from "./compiler-node.ts"
import { functionsIn, type Load, loader } from "./libraries-node.ts"
import { Answer, type Request } from "./machineCodeMessages.ts"
import { attempted, inTemporaryFolder, objectsFolder } from "./objects-node.ts"
import { moduleOf } from "./wasm.ts"
import type { KeptPrograms, LoadedGroup, ModuleCompiler } from "./wasmModules.ts"

const program = programBeside(import.meta.url, "machine-code-node")

/** The work after which programs are worth the time of a compiler. */
export interface Patience {
  /** The seconds of a run before the first program is compiled, and between two looks at the programs. */
  readonly seconds: number
  /** The seconds that a group of programs has computed, by the estimate of `auto.ts`. */
  readonly computed: number
}

/** The patience of runs for which nobody has chosen the backend `native`. */
export const usualPatience: Patience = { seconds: 10, computed: 1 }

interface BackgroundOptions {
  readonly kept?: KeptPrograms | undefined
  /** The folder for caches, instead of the user's own. */
  readonly caches?: string
  readonly limits?: CompilerLimits
  readonly patience?: Patience
}

/** Memories with more bytes than this are not copied for the check of a program. */
const mostContent = 16 * 2 ** 20

interface Background {
  readonly opened: ModuleCompiler["opened"]
  readonly improve: Effect.Effect<void>
}

/** The parts that a run needs to replace programs. */
interface Replacing {
  readonly compiler: CCompiler
  readonly folder: string
  readonly limits: CompilerLimits
  readonly load: Load
  readonly kept: KeptPrograms | undefined
}

/** Collects the groups of programs of a backend, and replaces those that compute much. */
export const background = (options: BackgroundOptions = {}): Background => {
  const { kept, caches, limits = backgroundLimits, patience = usualPatience } = options
  const groups = new Set<LoadedGroup>()
  /** The groups for which a library exists, or could not be made. */
  const done = new WeakSet<LoadedGroup>()
  const due = (): ReadonlyArray<LoadedGroup> =>
    [...groups].filter((group) => !done.has(group) && secondsOf(group) >= patience.computed)
  /** Only those who have chosen machine code expect it. */
  const log = patience.computed === 0 ? Effect.logWarning : Effect.logInfo
  const oneRun = Semaphore.makeUnsafe(1)
  const improve = Effect.gen(function* () {
    const wait = Effect.sleep(`${patience.seconds} seconds`)
    do yield* wait
    while (due().length === 0)
    const load = yield* loader
    const folder = yield* objectsFolder(caches)
    const compiler = yield* findCompiler(limits)
    for (;;) {
      for (const group of due()) {
        done.add(group)
        yield* replace(group, { compiler, folder, limits, load, kept })
      }
      yield* wait
    }
  }).pipe(
    Effect.catchDefect((defect) => Effect.fail(unavailable(messageOf(defect)))),
    Effect.catch(({ missing }) => log(`programs stay on WebAssembly, with the same results: ${missing}`)),
    // The runs of a sweep share a backend.
    oneRun.withPermits(1),
  )
  const opened = (group: LoadedGroup) => {
    groups.add(group)
    return () => void groups.delete(group)
  }
  return { opened, improve }
}

/** Estimates how many seconds the programs of a group have computed. */
const secondsOf = ({ runs, specs }: LoadedGroup): number =>
  Object.entries(specs).reduce((sum, [name, spec]) => sum + runs[name] * microsecondsOnWasm(spec), 0) / 1e6

/** Compiles the programs of a group in another process, and then replaces them. */
const replace = (group: LoadedGroup, replacing: Replacing): Effect.Effect<void, BackendUnavailable> =>
  Effect.gen(function* () {
    const { compiler, kept, load } = replacing
    const { memory, options, runs, specs } = group
    const compiled = moduleOf(specs, { ...options, lanes: compiler.lanes }, kept)
    const { constants, programs, state } = compiled
    const list = Object.values(specs)
      .map(({ name }) => name)
      .join(", ")
    if (!isDeepStrictEqual([programs, state], [group.compiled.programs, group.compiled.state]))
      return yield* unavailable("the programs for wider vectors have another plan of memory")
    yield* Effect.logInfo(`${list} on wasm until machine code of ${compiler.command.join(" ")} is ready`)
    const file = yield* libraryIn({ compiled, memory: new Uint8Array(memory.buffer) }, replacing)
    const isReplaced = yield* group.replace(
      yield* functionsIn(file, compiled, { load, memory: memory.buffer }),
      constants,
    )
    if (!isReplaced) return
    const before = Object.values(runs).reduce((sum, count) => sum + count, 0)
    const how = `machine code of ${compiler.command.join(" ")}, with vectors of ${32 * compiler.lanes} bits`
    yield* Effect.logInfo(`${list} on ${how} from here on, after ${before} runs on wasm; no result changes`)
  })

/** Has another process compile a module and check it. Returns the path of the library. */
const libraryIn = (
  { compiled, memory }: { readonly compiled: LoadedGroup["compiled"]; readonly memory: Uint8Array },
  { compiler, folder, limits }: Replacing,
): Effect.Effect<string, BackendUnavailable> =>
  inTemporaryFolder(
    folder,
    Effect.fnUntraced(function* (own) {
      const file = join(own, "request")
      const { program: seconds, question, yields = false } = limits
      const request: typeof Request.Type = {
        compiler,
        limits: { program: seconds, question, yields },
        folder,
        compiled,
        ...(memory.length > mostContent ? {} : { content: memory.slice() }),
      }
      yield* attempted("the program was not written", () => writeFileSync(file, serialize(request), { mode: 0o600 }))
      const command = [process.execPath, fileURLToPath(program), file]
      const { errors, output, status } = yield* run(command, {
        seconds: 2 * seconds,
        yields,
        variables: compileCacheVariable(),
      })
      const answer = yield* Effect.mapError(Schema.decodeEffect(Answer)(output), () => {
        const last = errors.trim().split("\n").at(-1)
        return unavailable(`the process that compiles and checks them ended with status ${status}: ${last}`)
      })
      return "file" in answer ? answer.file : yield* unavailable(answer.problem)
    }),
  )
