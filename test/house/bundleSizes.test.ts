import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { build, type Plugin } from "esbuild"
import { assert, beforeAll, describe, it } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))

/** The programs of other projects, each with the most bytes of its bundle: one file, minified, with all that it imports. */
const programs: Readonly<Record<string, { readonly text: string; readonly most: number }>> = {
  "a training": {
    text: `import { Effect, Layer } from "effect"
import { CartPole, Ppo, Train } from "effect-rl"
export { Effect, CartPole, Ppo, Train }`,
    most: 940_000,
  },
  "effect-rl/web": { text: `export * from "effect-rl/web"`, most: 355_000 },
  "a policy": { text: `export { Policy } from "effect-rl"`, most: 335_000 },
}

/** Modules of Effect that are large in a bundle, though a program needs a small part of each. */
const large = ["Config", "FileSystem", "Schema", "SchemaAST", "SchemaGetter", "SchemaIssue", "Stream"]

/** Lets the names of the programs be the entries of a bundler. */
const entries: Plugin = {
  name: "entries",
  setup: (builder) => {
    builder.onResolve({ filter: /./, namespace: "" }, ({ kind, path }) =>
      kind === "entry-point" ? { path, namespace: "program" } : undefined,
    )
    builder.onLoad({ filter: /./, namespace: "program" }, ({ path }) => ({
      contents: programs[path].text,
      resolveDir: root,
    }))
  },
}

/** Bundles each program into one file. Returns its bytes and the modules of the library in it. */
const bundled = async () => {
  const { metafile } = await build({
    absWorkingDir: root,
    entryPoints: Object.keys(programs),
    plugins: [entries],
    outdir: "unwritten",
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2023",
    minify: true,
    legalComments: "none",
    metafile: true,
    write: false,
    logLevel: "silent",
  })
  return Object.values(metafile.outputs).map(({ bytes, entryPoint = "", inputs }) => ({
    name: entryPoint.replace("program:", ""),
    bytes,
    files: Object.keys(inputs).filter((file) => file.startsWith("src/") && inputs[file].bytesInOutput > 0),
  }))
}

/** The names that a module imports from the entry of Effect, without types. */
const namesFromEntry = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/^import \{([^}]*)\} from "effect"$/gm)].flatMap(([, names]) =>
    names.split(",").map((name) => name.trim()),
  )

describe("the bundle of a browser", () => {
  let bundles: Awaited<ReturnType<typeof bundled>> = []
  beforeAll(async () => {
    bundles = await bundled()
  })

  it("does not grow unnoticed: raise a bound only for what each such program needs", () => {
    assert.sameMembers(
      bundles.map(({ name }) => name),
      Object.keys(programs),
    )
    for (const { bytes, name } of bundles)
      assert.isAtMost(bytes, programs[name].most, `${name}: esbuild's option metafile lists what the bundle contains`)
  })

  it("has no unused parts of large modules: import * as Schema from effect/Schema, of which bundlers leave these out", () => {
    const files = new Set(bundles.flatMap(({ files }) => files))
    assert.isAbove(files.size, 200)
    const whole = [...files].filter((file) =>
      namesFromEntry(readFileSync(join(root, file), "utf8")).some((name) => large.includes(name)),
    )
    assert.deepStrictEqual(whole, [])
  })
})
