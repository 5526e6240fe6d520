import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { assert, describe, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** Top to bottom: a folder knows only itself and those before it. */
const order = [
  "base",
  "tensor",
  "spread",
  "returns",
  "env",
  "model",
  "losses",
  "inference",
  "lm",
  "task",
  "agent",
  "episode",
  "learner",
  "algorithms",
  "run",
  "tune",
  "policy",
  "export",
  "evaluate",
  "train",
  "runtime",
  "multirun",
  "serve",
  "dashboard",
]

const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter((file) =>
  file.endsWith(".ts"),
)

const importsOf = (file: string): ReadonlyArray<string> =>
  [
    ...readFileSync(join(root, "src", file), "utf8").matchAll(
      /(?:^|\n)(?:import|export)[^"'\n;]*?(?:\n[^"'\n;]*?)*?from\s+"([^"]+)"|import\("([^"]+)"\)|^import "([^"]+)"/g,
    ),
  ].map((match) => match[1] ?? match[2] ?? match[3])

/** A comment's example imports by the package's own name, which no file of ours does. */
const real = (specifier: string): boolean => specifier !== "effect-rl" && !specifier.startsWith("effect-rl/")

const folderOf = (file: string): string | undefined => (file.includes("/") ? file.split("/")[0] : undefined)

const mayUseNode = (file: string): boolean =>
  file === "node.ts" ||
  file.startsWith("cli/") ||
  file.startsWith("spread/cluster/") ||
  /^[a-z]+\/([a-z]+\/)*[a-z-]+-node\.ts$/.test(file)

describe("imports", () => {
  it("are found at all", () => {
    assert.isAbove(files.length, 50)
    assert.isAbove(files.flatMap(importsOf).length, 200)
  })

  it("point down the list of folders only", () => {
    const wrong = files.flatMap((file) => {
      const folder = folderOf(file)
      // Entry points and the command line may know everything.
      if (folder === undefined || folder === "cli") return []
      assert.include(order, folder, `${file}: src/${folder} has no place in the order of folders`)
      return importsOf(file)
        .filter((specifier) => specifier.startsWith("."))
        .filter((specifier) => !(/^(\.\.\/)+bin\/userCache\.js$/.test(specifier) && mayUseNode(file)))
        .flatMap((specifier) => {
          const target = folderOf(relative(join(root, "src"), resolve(dirname(join(root, "src", file)), specifier)))
          const fine =
            target !== undefined && order.indexOf(target) >= 0 && order.indexOf(target) <= order.indexOf(folder)
          return fine ? [] : [`${file} imports ${specifier}`]
        })
    })
    assert.deepStrictEqual(wrong, [])
  })

  it("keep Node and native packages out of the core", () => {
    const wrong = files
      .filter((file) => !mayUseNode(file))
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, specifier })))
      .filter(
        ({ specifier }) =>
          /^node:|^onnxruntime-node|^redis$|^@effect\/(platform-node|sql-pg)/.test(specifier) && real(specifier),
      )
      .map(({ file, specifier }) => `${file} imports ${specifier}`)
    assert.deepStrictEqual(wrong, [])
  })

  it("keep import.meta, which is empty in an IIFE, in CommonJS and in edge workers, out of the core", () => {
    const withoutComments = (text: string): string => text.replace(/\/\*[^]*?\*\/|"[^"\n]*"|`[^`]*`/g, "")
    const wrong = files
      .filter((file) => !mayUseNode(file))
      .filter((file) => withoutComments(readFileSync(join(root, "src", file), "utf8")).includes("import.meta"))
    assert.deepStrictEqual(wrong, [])
  })

  it("take unstable modules of Effect only where they are adapted", () => {
    const adapted: Readonly<Record<string, string>> = {
      "trainer/store/redisStore.ts": "effect/persistence/Redis",
      "run/store/objects/ObjectStore.ts": "effect/persistence/KeyValueStore",
    }
    const forModels = (specifier: string): boolean => /^effect\/(ai|encoding|http)\//.test(specifier)
    const forHttp = (specifier: string): boolean => specifier.startsWith("effect/http/")
    const forClusters = (specifier: string): boolean => /^effect\/(cluster|persistence|sql|workflow)\//.test(specifier)
    const usesHttp = (file: string): boolean =>
      file.startsWith("serve/") ||
      ["command/trackers/mlflow.ts", "run/store/objects/s3.ts", "agents/task/hub/client.ts", "agents/task/hub/upload.ts"].includes(file)
    const forTools = (specifier: string): boolean => /^effect\/(ai|http|process)\//.test(specifier)
    const forThreads = (specifier: string): boolean => /^effect\/(rpc|workers)\//.test(specifier)
    const wrong = files
      .filter((file) => !file.startsWith("cli/") && !["command/ui/server-node.ts", "node.ts", "web.ts"].includes(file))
      .flatMap((file) => importsOf(file).map((specifier) => ({ file, specifier })))
      .filter(
        ({ file, specifier }) =>
          specifier.startsWith("effect/") &&
          !(file.startsWith("lm/") && forModels(specifier)) &&
          adapted[file] !== specifier &&
          !(file.startsWith("agent/mcp/") && forTools(specifier)) &&
          !(usesHttp(file) && forHttp(specifier)) &&
          !(/^multirun\/(engine|reference)\//.test(file) && forThreads(specifier)) &&
          !(file.startsWith("spread/cluster/") && forClusters(specifier)),
      )
    assert.deepStrictEqual(wrong, [])
  })

  it("name one module of Effect at a time, because effect/ai or effect/http loads all of its twenty or more", () => {
    const barrels = (file: string) => importsOf(file).filter((specifier) => /^effect\/[a-z-]+$/.test(specifier))
    const wrong = files.flatMap((file) => barrels(file).map((specifier) => `${file} imports ${specifier}`))
    assert.deepStrictEqual(wrong, [])
  })
})
