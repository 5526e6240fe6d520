import { execFile } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, assert, beforeAll, describe, it } from "vitest"
import { builtPackage } from "./built.ts"

/** The package as somebody gets it: packed from a copy of the checkout, and installed in an empty project. */
const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "effect-pack-"))
const project = join(folder, "project")
const installed = join(project, "node_modules/effect-rl")
const bin = join(root, "node_modules/.bin")
const environment: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${bin}:${process.env.PATH ?? ""}`,
  npm_config_loglevel: "warn",
  // A package whose version npm has kept is not asked for again.
  npm_config_prefer_offline: "true",
}
// As for its users, the command chooses the folder in which Node keeps what it compiles.
delete environment.NODE_COMPILE_CACHE
const built = builtPackage()
/** What `effect init` wrote to its user. */
let written = ""

interface Outcome {
  readonly code: number
  readonly output: string
}

const sh = (
  command: string,
  args: ReadonlyArray<string>,
  cwd: string,
  more: NodeJS.ProcessEnv = {},
): Promise<Outcome> =>
  new Promise((resolve) => {
    execFile(
      command,
      [...args],
      { cwd, env: { ...environment, ...more }, maxBuffer: 1 << 26 },
      (error, stdout, stderr) =>
        resolve({ code: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` }),
    )
  })

const succeeds = async (
  command: string,
  args: ReadonlyArray<string>,
  cwd: string,
  more?: NodeJS.ProcessEnv,
): Promise<string> => {
  const { code, output } = await sh(command, args, cwd, more)
  assert.strictEqual(code, 0, `${command} ${args.join(" ")}: ${output}`)
  return output
}

const filesBelow = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, encoding: "utf8" }).filter((name) => statSync(join(path, name)).isFile())

const megabytesOf = (path: string): number =>
  filesBelow(path).reduce((bytes, name) => bytes + statSync(join(path, name)).size, 0) / 1e6

beforeAll(async () => {
  mkdirSync(project)
  written = await succeeds(process.execPath, [join(built.installed, "bin/effect.js"), "init", "train.ts"], project)
  const commands = [...written.matchAll(/^ {2}npm (.*)$/gm)].map(([, words]) => words.split(" "))
  assert.deepStrictEqual(
    commands.map(([command]) => command),
    ["pack", "install"],
  )
  const [pack, install] = commands
  assert.include(pack, built.installed)
  await succeeds("npm", pack, project)
  await succeeds("npm", [...install, "--no-audit", "--no-fund"], project)
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the package", () => {
  it("has nothing that publint or a publication complain of; attw is asked before a release", async () => {
    assert.include(await succeeds("publint", ["--strict", built.tarball], folder), "All good!")
    // npm publishes what `npm pkg fix` makes of package.json, and warns of each difference.
    const text = readFileSync(join(installed, "package.json"), "utf8")
    const fixed = join(folder, "fixed")
    mkdirSync(fixed)
    writeFileSync(join(fixed, "package.json"), text)
    await succeeds("npm", ["pkg", "fix"], fixed)
    assert.deepStrictEqual(JSON.parse(readFileSync(join(fixed, "package.json"), "utf8")), JSON.parse(text))
    // It refuses private packages, takes settings from publishConfig, and wants a tag for a version such as 1.0.0-beta.
    const manifest = JSON.parse(text)
    assert.notProperty(manifest, "private")
    assert.notProperty(manifest, "publishConfig")
    assert.match(manifest.version, /^\d+\.\d+\.\d+$/)
  })

  it("leaves the checkout's exports as they were", () => {
    assert.strictEqual(readFileSync(built.manifestAfterwards, "utf8"), readFileSync(join(root, "package.json"), "utf8"))
    const manifest = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
    assert.deepStrictEqual(manifest.exports["."], {
      types: "./dist/index.d.ts",
      node: "./dist/bundle/index.js",
      default: "./dist/index.js",
    })
  })

  it("holds what its pages link to", () => {
    const pages = filesBelow(installed).filter((name) => /^(?:README|CONTRIBUTING|docs\/[\w-]+)\.md$/.test(name))
    assert.isAtLeast(pages.length, 5)
    const dead = pages.flatMap((page) =>
      Array.from(
        readFileSync(join(installed, page), "utf8").matchAll(/\]\(([^)#\s]+)|src="([^"]+)"/g),
        ([, a, b]) => a ?? b,
      )
        .filter((link) => !/^https?:/.test(link) && !existsSync(join(installed, dirname(page), link)))
        .map((link) => `${page}: ${link}`),
    )
    assert.deepStrictEqual(dead, [])
  })

  it("holds the web worker of the page Play as one script", () =>
    assert.include(readFileSync(join(installed, "dist/command/ui/play/worker.bundle.js"), "utf8"), "CartPole-v1"))

  it("holds the sources that its source maps name", () => {
    const maps = filesBelow(installed).filter((name) => name.endsWith(".map"))
    assert.isAbove(maps.length, 400)
    const absent = maps.filter((name) => {
      const { sources }: { sources: ReadonlyArray<string> } = JSON.parse(readFileSync(join(installed, name), "utf8"))
      return !sources.every((source) => existsSync(join(installed, dirname(name), source)))
    })
    assert.deepStrictEqual(absent, [])
  })
})

describe("a project that installs it", () => {
  const train = (name: string, settings: string): void =>
    writeFileSync(
      join(project, name),
      `import { CartPole, Ppo, Train } from "effect-rl"
export default Train.run({ env: CartPole.env, algorithm: Ppo.make({ ${settings} }), numEnvs: 8, totalSteps: 512 })\n`,
    )
  const effect = (...args: ReadonlyArray<string>): Promise<Outcome> =>
    sh(process.execPath, [join(installed, "bin/effect.js"), ...args], project)
  const logOf = (output: string): string => {
    const { runDir } = JSON.parse(output.split("\n").find((line) => line.startsWith("{")) ?? "{}")
    return readFileSync(join(project, String(runDir), "run.log"), "utf8")
  }

  it("was begun by effect init, with the commands that it names", async () => {
    assert.include(written, "  npx effect run train.ts\n")
    await succeeds("npx", ["effect", "run", "train.ts", "--total-steps", "2000", "--backend", "wasm"], project)
    await succeeds("tsc", ["-p", "."], project)
  })

  it("has neither ONNX Runtime nor another Node in node_modules, which is small", () => {
    for (const name of ["onnxruntime-node", "node"])
      assert.isFalse(existsSync(join(project, "node_modules", name)), name)
    assert.isBelow(megabytesOf(join(project, "node_modules")), 130)
  })

  it("keeps compiled programs for the very bundle that compiles them", () => {
    const bundle = join(installed, "dist/bundle")
    // The name of the file that finds the folder of kept programs is part of their names.
    const naming = filesBelow(bundle).filter(
      (name) => name.endsWith(".js") && readFileSync(join(bundle, name), "utf8").includes("getCompileCacheDir"),
    )
    assert.isAbove(naming.length, 0)
    for (const name of naming) {
      assert.match(name, /-[\w-]{8}\.js$/)
      // It has a digest of the file's content, which has the compiler.
      assert.include(readFileSync(join(bundle, name), "utf8"), "simplify: a rule turned")
    }
  })

  it("keeps compiled programs, from which the next run begins with the same result", async () => {
    train("small.ts", "nsteps: 64")
    const kept = join(folder, "kept")
    const run = async () => {
      const bin = join(project, "node_modules/effect-rl/bin/effect.js")
      const words = [bin, "run", "small.ts", "--backend", "wasm", "--quiet", "--json"]
      const output = await succeeds(process.execPath, words, project, { NODE_COMPILE_CACHE: kept })
      const digest = /"digest":"(\w+)"/.exec(output)?.[1]
      assert.isDefined(digest, output)
      return digest
    }
    const programs = () => {
      const files = readdirSync(kept, { recursive: true, encoding: "utf8" }).sort()
      return files.filter((file) => file.includes("effect-rl-program-"))
    }
    const digest = await run()
    const first = programs()
    assert.isAbove(first.length, 0)
    assert.strictEqual(await run(), digest)
    assert.deepEqual(programs(), first)
  })

  it("trains on wasm", async () => {
    const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
    const { output } = await effect("--version")
    assert.include(output, version)
    train("small.ts", "nsteps: 64")
    const { code, output: result } = await effect("run", "small.ts", "--backend", "wasm", "--quiet", "--json")
    assert.strictEqual(code, 0, result)
    assert.include(logOf(result), "ppo.update on wasm")
    assert.notInclude(logOf(result), "warning")
  })

  /** The addresses of the modules that a training loads, in the main thread. */
  const loadedBy = async (file: string, cwd = project): Promise<ReadonlyArray<string>> => {
    const list = join(folder, "loaded.txt")
    const hook = join(folder, "hook.mjs")
    rmSync(list, { force: true })
    writeFileSync(
      hook,
      `import { appendFileSync } from "node:fs"
       import { registerHooks } from "node:module"
       import { isMainThread } from "node:worker_threads"
       if (isMainThread) registerHooks({ load: (url, context, next) => { appendFileSync(${JSON.stringify(list)}, url + "\\n"); return next(url, context) } })`,
    )
    const bin = join(cwd, "node_modules/effect-rl/bin/effect.js")
    await succeeds(process.execPath, ["--import", hook, bin, "run", file, "--backend", "wasm", "--quiet"], cwd)
    return readFileSync(list, "utf8").split("\n")
  }
  const inPackages = (urls: ReadonlyArray<string>): ReadonlyArray<string> =>
    urls.flatMap((url) => /node_modules\/(.*)/.exec(url)?.[1] ?? [])

  it("loads the library and Effect as bundles of a few files, and each module once", async () => {
    train("small.ts", "nsteps: 64")
    const loaded = inPackages(await loadedBy("small.ts"))
    assert.include(loaded, "effect-rl/dist/bundle/command.cli.main.js")
    assert.include(loaded, "effect-rl/dist/bundle/index.js")
    assert.include(loaded, "effect-rl/dist/bundle/effect/all.js")
    assert.isBelow(loaded.length, 60)
    assert.deepStrictEqual(
      loaded.filter((file) => !/^effect-rl\/(bin\/|dist\/bundle\/|package.json$)/.test(file)),
      [],
    )
    assert.strictEqual(new Set(loaded).size, loaded.length)
  })

  it("shares the bundle's Effect with the user's program, and with modules of Effect that are not in it", async () => {
    writeFileSync(
      join(project, "shared.ts"),
      `import { equal } from "node:assert/strict"
import { CartPole, Ppo, Train } from "effect-rl"
import { Effect, Schema } from "effect"
import * as Same from "effect/Effect"
import * as Workflow from "effect/workflow/Workflow"
equal(Effect.succeed, Same.succeed)
equal(Schema.isSchema(Workflow.make("own", { payload: { id: Schema.String }, idempotencyKey: ({ id }) => id }).payloadSchema), true)
export default Effect.tap(
  Train.run({ env: CartPole.env, algorithm: Ppo.make({ nsteps: 64 }), numEnvs: 8, totalSteps: 512 }), () => Effect.void)\n`,
    )
    const loaded = inPackages(await loadedBy("shared.ts"))
    assert.include(loaded, "effect/dist/workflow/Workflow.js")
    assert.notInclude(loaded, "effect/dist/Effect.js")
    assert.notInclude(loaded, "effect/dist/Schema.js")
  })

  it("loads Effect from its own package if that has another version than the bundle", async () => {
    train("small.ts", "nsteps: 64")
    const manifest = join(project, "node_modules/effect/package.json")
    const text = readFileSync(manifest, "utf8")
    writeFileSync(manifest, text.replace('"version": "4.1.0"', '"version": "4.1.1"'))
    try {
      const loaded = inPackages(await loadedBy("small.ts"))
      assert.include(loaded, "effect/dist/Effect.js")
      assert.notInclude(loaded, "effect-rl/dist/bundle/effect/all.js")
    } finally {
      writeFileSync(manifest, text)
    }
  })

  it("loads Effect as a bundle also where each package sees only what it depends on, in a folder of any name", async () => {
    const strict = join(folder, "own #1, 100% ?")
    mkdirSync(strict)
    writeFileSync(join(strict, "package.json"), JSON.stringify({ private: true, type: "module" }))
    const words = ["install", "--no-audit", "--no-fund", "--install-strategy=linked", built.tarball]
    await succeeds("npm", words, strict)
    writeFileSync(
      join(strict, "small.ts"),
      `import { CartPole, Ppo, Train } from "effect-rl"
export default Train.run({ env: CartPole.env, algorithm: Ppo.make({ nsteps: 64 }), numEnvs: 8, totalSteps: 512 })\n`,
    )
    const loaded = inPackages(await loadedBy("small.ts", strict))
    assert.isTrue(loaded.some((file) => file.endsWith("effect-rl/dist/bundle/effect/all.js")))
  })

  it("loads Effect from its own package if the bundle is broken, or isn't wanted", async () => {
    train("small.ts", "nsteps: 64")
    const list = join(installed, "dist/bundle/effect/bundled.json")
    const text = readFileSync(list, "utf8")
    const isBundled = async (): Promise<boolean> =>
      inPackages(await loadedBy("small.ts")).includes("effect-rl/dist/bundle/effect/all.js")
    try {
      for (const broken of ["", "{}", '{"packages":[{"name":"absent"}],"modules":[]}']) {
        writeFileSync(list, broken)
        assert.isFalse(await isBundled(), broken)
      }
    } finally {
      writeFileSync(list, text)
    }
    environment.EFFECT_RL_BUNDLE = "0"
    assert.isFalse(await isBundled())
    delete environment.EFFECT_RL_BUNDLE
    assert.isTrue(await isBundled())
  })

  it("can import each wall of the library alone, with the very values of the whole", async () => {
    const entries = Object.keys(JSON.parse(readFileSync(join(installed, "package.json"), "utf8")).exports)
    const walls = entries
      .map((entry) => entry.slice(2))
      .filter((name) => /^[a-z]+$/.test(name) && !/^(node|web)$/.test(name))
    assert.lengthOf(walls, 8)
    const script = `import * as all from "effect-rl"
const found = new Set()
for (const wall of ${JSON.stringify(walls)})
  for (const [name, value] of Object.entries(await import("effect-rl/" + wall))) {
    // A namespace of a module is another object in each bundle file; its members are the same.
    const same = value === all[name] || Object.keys(value).every((key) => value[key] === all[name][key])
    if (!same) throw new Error(wall + ": " + name)
    found.add(name)
  }
console.log(found.size === Object.keys(all).length)`
    assert.strictEqual(await succeeds(process.execPath, ["--input-type=module", "--eval", script], project), "true\n")
  })

  it("can import the library without the command", async () => {
    writeFileSync(
      join(project, "plain.ts"),
      `import { CartPole } from "effect-rl"
import { Gymnasium } from "effect-rl/node"
console.log(CartPole.env.id, typeof Gymnasium.env)\n`,
    )
    assert.strictEqual(await succeeds(process.execPath, ["plain.ts"], project), "CartPole-v1 function\n")
  })

  it("steps envs in threads, which load the same bundle", async () => {
    writeFileSync(
      join(project, "threads.ts"),
      `import { CartPole, Env, EnvPool, Ppo, Train } from "effect-rl"
export const env = EnvPool.located({ ...CartPole.env, id: "Own-v1" }, import.meta.url)
export default Train.run({ env, algorithm: Ppo.make({ nsteps: 64 }), numEnvs: 8, workers: 2, totalSteps: 512 })\n`,
    )
    const { code, output } = await effect("run", "threads.ts", "--backend", "wasm", "--quiet", "--json")
    assert.strictEqual(code, 0, output)
    assert.notInclude(logOf(output), "warning")
  })

  it("goes on with wasm under auto where graphs would run in a session, and says so in run.log", async () => {
    train("large.ts", "hidden: [512, 512], nsteps: 64, minibatches: 1")
    const { code, output } = await effect("run", "large.ts", "--quiet", "--json")
    assert.strictEqual(code, 0, output)
    assert.match(logOf(output), /warning: on "wasm" instead of "cpu", with other last bits: ppo\.act, ppo\.update\./)
    assert.include(logOf(output), "npm install onnxruntime-node@")
  })

  it("is told how to get ONNX Runtime where it asks for it", async () => {
    train("small.ts", "nsteps: 64")
    for (const backend of ["cpu", "cuda", "webgpu"]) {
      const { code, output } = await effect("run", "small.ts", "--backend", backend, "--quiet")
      assert.strictEqual(code, 1)
      assert.include(output, `Backend "${backend}" is not available: the package onnxruntime-node is not installed`)
      assert.include(output, "npm install onnxruntime-node@")
    }
  })

  it("passes a check by TypeScript", async () => {
    train("small.ts", "nsteps: 64")
    const compilerOptions = {
      strict: true,
      module: "nodenext",
      target: "es2024",
      noEmit: true,
      types: [],
      lib: ["es2024", "dom"],
    }
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["small.ts"] }))
    await succeeds("tsc", ["-p", "."], project)
  })
})

describe("a browser project that installs it", () => {
  it("passes a check of all declarations without types of Node", async () => {
    const browser = join(folder, "browser")
    mkdirSync(join(browser, "node_modules"), { recursive: true })
    // Some of the dependencies bring types of Node with them, which other ways to install keep out of the project's reach.
    const packages = readdirSync(join(project, "node_modules")).filter((name) => !/^\.|^@types$/.test(name))
    for (const name of packages) symlinkSync(join(project, "node_modules", name), join(browser, "node_modules", name))
    const compilerOptions = {
      strict: true,
      module: "esnext",
      moduleResolution: "bundler",
      preserveSymlinks: true,
      target: "es2022",
      lib: ["es2022", "dom"],
      types: [],
      skipLibCheck: false,
      noEmit: true,
    }
    const check = (text: string): Promise<Outcome> => {
      writeFileSync(join(browser, "page.ts"), text)
      return sh("tsc", ["-p", "."], browser)
    }
    writeFileSync(join(browser, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["page.ts"] }))
    const page = `import { CartPole, Ppo, Train } from "effect-rl"
import * as Web from "effect-rl/web"
export const training = Train.run({ env: CartPole.env, algorithm: Ppo.make() })
export const layer = Web.layer\n`
    assert.deepStrictEqual(await check(page), { code: 0, output: "" })
    assert.include((await check(`${page}export const home = process.env.HOME\n`)).output, "Cannot find name 'process'")
  })
})

describe("the package in Bun and Deno", () => {
  const runtime = (name: string): string => join(project, "node_modules/.bin", name)
  /** How each runtime starts a program: Deno wants to be told that it may read files and start threads. */
  const runtimes: ReadonlyArray<readonly [name: string, command: string, args: ReadonlyArray<string>]> = [
    ["node", process.execPath, []],
    ["bun", runtime("bun"), ["--bun"]],
    ["deno", runtime("deno"), ["run", "--allow-all"]],
  ]
  const settings = "env: CartPole.env, algorithm: Ppo.make({ nsteps: 64 }), numEnvs: 8, totalSteps: 2_048, seed: 1"

  beforeAll(async () => {
    await succeeds("npm", ["install", "--no-audit", "--no-fund", "bun@1.4", "deno@2.9"], project)
    writeFileSync(
      join(project, "in-code.ts"),
      `import { Effect, Layer } from "effect"
import { CartPole, Ppo, Recorder, RunStore, Train, Wasm } from "effect-rl"
import { ForeignEnv } from "effect-rl/node"
const layers = Layer.mergeAll(Wasm.layer, RunStore.layerMemory, Recorder.layer())
const result = await Effect.runPromise(Train.run({ ${settings} }).pipe(Effect.provide(layers)))
console.log(typeof ForeignEnv.command, result.digest)\n`,
    )
    writeFileSync(
      join(project, "by-command.ts"),
      `import { CartPole, Ppo, Train } from "effect-rl"\nexport default Train.run({ ${settings} })\n`,
    )
  })

  it("says in one line which permission Deno withholds", async () => {
    const words = ["run", "--no-prompt", "--allow-read", join(installed, "bin/effect.js"), "run", "by-command.ts"]
    const { code, output } = await sh(runtime("deno"), words, project)
    assert.strictEqual(code, 2)
    assert.match(output, /^effect: Requires env access .*, run again with the --allow-env flag; --allow-all .*\n$/)
  })

  it("asks the server of a language model", async () => {
    const message = { role: "assistant", content: "Rome" }
    const answer = JSON.stringify({ model: "m", choices: [{ index: 0, message, finish_reason: "stop" }] })
    const server = createServer((request, response) => void request.resume().once("end", () => response.end(answer)))
    await once(server.listen(0, "127.0.0.1"), "listening")
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    writeFileSync(
      join(project, "asks.yaml"),
      `dataset: { items: [{ question: "What is the capital of Italy?", answer: Rome }] }
agent: { type: memoryless_agent, lm_config: { model: m, base_url: "http://127.0.0.1:${port}/v1", max_retries: 0 } }
scorers: [exact]\n`,
    )
    for (const [name, command, args] of runtimes) {
      const words = ["eval", "asks.yaml", "--results-dir", `asked-in-${name}`, "--quiet", "--json"]
      const output = await succeeds(command, [...args, join(installed, "bin/effect.js"), ...words], project)
      assert.match(output, /"scorer":"exact".*"mean":1,/, name)
    }
    server.close()
  })

  it("gives the digest of Node, in code and by the command, and Node can replay its runs", async () => {
    const digests: Array<string | undefined> = []
    for (const [name, command, args] of runtimes) {
      const inCode = await succeeds(command, [...args, "in-code.ts"], project)
      digests.push(/^function (\w{64})$/m.exec(inCode)?.[1])
      const words = ["run", "by-command.ts", "--backend", "wasm", "--results-dir", name, "--quiet", "--json"]
      const byCommand = await succeeds(command, [...args, join(installed, "bin/effect.js"), ...words], project)
      digests.push(/"digest":"(\w{64})"/.exec(byCommand)?.[1])
    }
    assert.isDefined(digests[0])
    assert.deepStrictEqual(
      digests,
      digests.map(() => digests[0]),
    )
    const replay = [join(installed, "bin/effect.js"), "replay", "latest", "--results-dir", "bun"]
    assert.include(await succeeds(process.execPath, replay, project), "the same: ")
  })
})
