import { fileURLToPath } from "node:url"
import { build, type Format } from "esbuild"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** A short training over a backend by its name, as a web page or an edge worker runs it; `Web.layer` is `wasm`. */
const program = `
import { Effect, Layer, Result } from "effect"
import { CartPole, Ppo, Reference, RunStore, storedRuns, Train } from "effect-rl"
import * as Web from "effect-rl/web"

const layers = { wasm: Web.layer, reference: Layer.merge(Web.layer, Reference.layer) }
const algorithm = Ppo.make({ nsteps: 16, epochs: 2, minibatches: 2, hidden: [8] })
const training = Train.run({ env: CartPole.env, numEnvs: 4, algorithm, totalSteps: 512 })

export const train = async (backend) => {
  const result = await Effect.runPromise(Effect.result(Effect.provide(training, layers[backend])))
  return Result.isSuccess(result)
    ? { steps: result.success.steps, digest: result.success.digest }
    : { error: result.failure._tag, message: result.failure.message }
}
`

/** A training in the browser's database: \`keep\` trains it half way, and \`resume\` goes on from there to the end. */
export const inDatabase = `
const constant = Ppo.make({ nsteps: 16, epochs: 2, minibatches: 2, hidden: [8], schedule: "constant" })
const stored = (totalSteps, options) =>
  Train.run({ env: CartPole.env, numEnvs: 4, algorithm: constant, totalSteps }).pipe(
    Effect.provide(Layer.merge(Web.layer, RunStore.layerObjects(options))),
  )
const digestIn = (program) => Effect.runPromise(
  Effect.map(Effect.provide(program, Web.layerIndexedDb("runs")), ({ runDir, digest }) => ({ runDir, digest })))
export const keep = () => digestIn(stored(256, { time: new Date(0) }))
export const resume = () => digestIn(Effect.flatMap(storedRuns, ([run]) => stored(512, { resume: run })))
export const never = () => Effect.runPromise(
  Effect.map(Effect.provide(Train.run({ env: CartPole.env, numEnvs: 4, algorithm: constant, totalSteps: 512 }), Web.layer), ({ digest }) => digest))
`

/** The program with all it imports as one file; as an IIFE it leaves its exports in the global variable \`bundle\`. */
export const bundle = async (format: Format, more = ""): Promise<string> => {
  const { outputFiles } = await build({
    absWorkingDir: root,
    stdin: { contents: `${program}${more}`, resolveDir: root, sourcefile: "program.js" },
    bundle: true,
    format,
    globalName: "bundle",
    platform: "browser",
    target: "es2023",
    write: false,
    logLevel: "silent",
  })
  return outputFiles[0].text
}

export interface Bundled {
  readonly train: (backend: "wasm" | "reference") => Promise<unknown>
}

export const isBundled = (value: unknown): value is Bundled =>
  typeof value === "object" && value !== null && "train" in value && typeof value.train === "function"
