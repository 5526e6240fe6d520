import { fileURLToPath } from "node:url"
import { build, type Format } from "esbuild"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** A short training over a backend by its name, as a web page or an edge worker runs it; `Web.layer` is `wasm`. */
const program = `
import { Effect, Layer, Result } from "effect"
import { CartPole, Ppo, Reference, Train } from "effect-rl"
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

/** The program with all it imports as one file; as an IIFE it leaves its exports in the global variable \`bundle\`. */
export const bundle = async (format: Format, more = ""): Promise<string> => {
  const { outputFiles } = await build({
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
