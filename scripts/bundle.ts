// Bundles the package for Node into dist/bundle/, where `effect run` loads about a quarter as many files as without it, and so
// starts faster. Bundlers and browsers get the single modules in dist/ instead, to leave out what they don't need; see
// scripts/swapExports.ts. Effect and other packages are not in the bundle: a user's program must load the same copy of them.
// `npm run build` runs this, after tsc.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, posix, relative, sep } from "node:path"
import { fileURLToPath } from "node:url"
import { build, type Plugin } from "esbuild"

const source = fileURLToPath(new URL("../src/", import.meta.url))
const dist = fileURLToPath(new URL("../dist/", import.meta.url))

const modules = readdirSync(source, { recursive: true, encoding: "utf8" })
  .map((file) => file.replaceAll(sep, "/"))
  .filter((file) => file.endsWith(".ts"))

/** The modules that the library starts as threads and processes: `"./rank-node.ts" : "./rank-node.js"` names one. */
const programs = modules.flatMap((file) =>
  Array.from(readFileSync(join(source, file), "utf8").matchAll(/"\.\/([\w-]+)\.ts"\s*:\s*"\.\/\1\.js"/g), ([, name]) =>
    posix.join(posix.dirname(file), name),
  ),
)

/**
 * Lets `import.meta.url` be the address of the module's own file in dist/, from which it finds other files of the package:
 * `define` replaces it by a constant, which this puts into each module that needs it.
 */
const ownAddress: Plugin = {
  name: "own-address",
  setup: ({ onLoad }) => {
    onLoad({ filter: /\.ts$/ }, ({ path }) => {
      const text = readFileSync(path, "utf8")
      if (!text.includes("import.meta.url")) return undefined
      const own = relative(source, path).replaceAll(sep, "/").replace(/\.ts$/, ".js")
      return { contents: `const ownAddress = new URL("../${own}", addressOfBundle).href; ${text}`, loader: "ts" }
    })
  },
}

const nameOf = (module: string): string => module.replaceAll("/", ".")

// Threads and processes share the chunks with the entries of the package, so that a module that a user's program imports
// exists once in each of them.
await build({
  entryPoints: ["index", "node", "web", "cli/main", ...programs].map((module) => ({
    in: join(source, `${module}.ts`),
    out: nameOf(module),
  })),
  outdir: join(dist, "bundle"),
  bundle: true,
  splitting: true,
  format: "esm",
  platform: "node",
  target: "es2024",
  packages: "external",
  sourcemap: true,
  sourcesContent: false,
  chunkNames: "chunk-[hash]",
  define: { "import.meta.url": "ownAddress" },
  banner: { js: "const addressOfBundle = import.meta.url;" },
  logLevel: "warning",
  plugins: [ownAddress],
})

// A program is started by the address of its own file.
for (const program of programs) {
  const file = join(dist, `${program}.js`)
  mkdirSync(dirname(file), { recursive: true })
  const bundled = posix.relative(posix.dirname(program), `bundle/${nameOf(program)}.js`)
  writeFileSync(file, `import ${JSON.stringify(bundled)}\n`)
}
