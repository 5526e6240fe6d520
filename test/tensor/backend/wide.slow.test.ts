import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, open, readFile, rm, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "@effect/vitest"
import { canWiden } from "../../../src/tensor/backend/wide-node.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))

/** Compiles a product by the library's Node Layer and prints an element of it. */
const program = `
import { Effect } from "effect"
import { Backend, Graph } from "effect-rl"
import { backend } from "effect-rl/node"

const a = Graph.input("a", [32, 32])
const spec = { name: "square", inputs: { a }, state: {}, outputs: { y: Graph.matmul(a, a) } }
export const element = (name) =>
  Effect.flatMap(Backend, (backend) => backend.compile(spec)).pipe(
    Effect.map((program) => {
      program.feeds.a.fill(0.5)
      program.runSync()
      return program.results.y[0]
    }),
    Effect.scoped,
    Effect.provide(backend(name)),
    Effect.runPromise,
  )
`
const inMain = `${program}
console.log("y is", await element("wasm"))
`
/** Other WebAssembly first; then the kernel, in a thread that was told of no flag. */
const inThread = `
import { isMainThread, Worker } from "node:worker_threads"
${program}
if (isMainThread) {
  new WebAssembly.Module(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0))
  new Worker(new URL(import.meta.url))
} else console.log("y is", await element("auto"))
`

/** Three threads that compile the check program both ways, at the same time; each module has bytes of its own. */
const threads = `
import { isMainThread, threadId, Worker } from "node:worker_threads"
import { widened } from "${root}src/tensor/backend/wide-node.ts"
import { plainModules } from "${root}src/tensor/backend/wasmModules.ts"
import { differenceBetween } from "${root}src/tensor/backend/widthCheck.ts"

if (isMainThread) for (let i = 0; i < 2; i++) new Worker(new URL(import.meta.url))
let made = 0
const own = (bytes) => Uint8Array.of(...bytes, 0, 6, 1, 97, threadId, made >> 7, made++ & 127, 0)
const plain = (bytes) => plainModules.module(own(bytes))
for (let round = 0; round < 25; round++) {
  const difference = differenceBetween(plain, (bytes) => widened(own(bytes)))
  if (difference !== undefined) console.log(difference)
}
console.log("done")
`

/** Returns the output of a Node process in which V8 traces each tree of operations that it widens or does not widen. */
const traced = async (
  code: string,
  variables: Readonly<Record<string, string>>,
  flags = ["--trace-wasm-revectorize"],
) => {
  const folder = await mkdtemp(join(root, ".tmp-wide-"))
  // The output goes to files: V8 loses lines if standard output is a pipe that does not block.
  const [output, errors] = [await open(join(folder, "output"), "w"), await open(join(folder, "errors"), "w")]
  try {
    const file = join(folder, "program.mjs")
    await writeFile(file, code)
    // Vitest turns the wide vectors off for most tests.
    const { EFFECT_RL_WIDE: _, ...usual } = process.env
    const env = { ...usual, ...variables }
    const stdio = ["ignore" as const, output.fd, errors.fd]
    await once(spawn(process.execPath, [...flags, file], { env, stdio }), "close")
    const stdout = await readFile(join(folder, "output"), "utf8")
    const stderr = await readFile(join(folder, "errors"), "utf8")
    return { stderr, stdout, widened: (stdout.match(/Decided? to vectorize|Enter VectorizeTree/g) ?? []).length }
  } finally {
    await Promise.all([output.close(), errors.close()])
    await rm(folder, { recursive: true, force: true })
  }
}

describe.skipIf(!canWiden())("V8 widens kernels", () => {
  it("with the Node Layer", async () => {
    const { stderr, stdout, widened } = await traced(inMain, {})
    assert.isAbove(widened, 0)
    assert.include(stdout, "y is 8")
    assert.strictEqual(stderr, "")
  })

  it("in a worker thread, after other WebAssembly was compiled, with the auto backend", async () => {
    const { stderr, stdout, widened } = await traced(inThread, {})
    assert.isAbove(widened, 0)
    assert.include(stdout, "y is 8")
    assert.strictEqual(stderr, "")
  })

  it("in threads that compile at the same time, with the same results", async () => {
    const { stderr, stdout } = await traced(threads, {}, [])
    assert.strictEqual(stdout, "done\n".repeat(3))
    assert.strictEqual(stderr, "")
  })

  it("not with EFFECT_RL_WIDE=0", async () => {
    const { stderr, stdout, widened } = await traced(inMain, { EFFECT_RL_WIDE: "0" })
    assert.strictEqual(widened, 0)
    assert.include(stdout, "y is 8")
    assert.strictEqual(stderr, "")
  })
})
