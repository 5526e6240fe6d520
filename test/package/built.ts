/**
 * Builds the package once for all tests that use it: by `npm pack`, in a copy of the checkout. The result is kept as long as
 * no file that it is made of changes.
 */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { dirname, join, relative, sep } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

const root = fileURLToPath(new URL("../..", import.meta.url))
const kept = join(root, "node_modules/.cache/package")

/** What the package is made of. */
const parts = [
  "bin",
  "docs",
  "examples",
  "schemas",
  "scripts",
  "src",
  "bench/PEERS.md",
  "CONTRIBUTING.md",
  "SECURITY.md",
  "LICENSE",
  "README.md",
  "package.json",
  ".npmrc",
  "tsconfig.json",
  "tsconfig.build.json",
  "tsconfig.types.json",
]

export interface BuiltPackage {
  /** The package as it is after an installation: below a folder `node_modules`. */
  readonly installed: string
  readonly tarball: string
  /** The package.json of the copy of the checkout, as `npm pack` left it. */
  readonly manifestAfterwards: string
  /** A module for `node --import`, after which programs in the checkout import `effect-rl` from the installed package. */
  readonly hook: string
}

const inFolder = (folder: string): BuiltPackage => ({
  installed: join(folder, "node_modules/effect-rl"),
  tarball: join(folder, "effect-rl.tgz"),
  manifestAfterwards: join(folder, "manifestAfterwards.json"),
  hook: join(folder, "hook.mjs"),
})

const hookText = `import * as nodeModule from "node:module"
const parentURL = new URL("node_modules/effect-rl/bin/effect.js", import.meta.url).href
const checkout = ${JSON.stringify(pathToFileURL(root).href)}
nodeModule.registerHooks?.({
  resolve: (specifier, context, next) => {
    const isOurs = /^effect-rl(\\/|$)/.test(specifier) && (context.parentURL ?? "").startsWith(checkout)
    return next(specifier, isOurs ? { ...context, parentURL } : context)
  },
})
`

/** Tells whether a file was written here, and not installed: packages of an example may link to the checkout itself. */
const isOurs = (path: string): boolean => !path.split(sep).includes("node_modules")

/** Returns the digest of all files that the package is made of, of the lock file and of this module. */
const digestOfParts = (): string => {
  const digest = createHash("sha256")
  for (const part of [...parts, "package-lock.json", "test/package/built.ts"]) {
    const path = join(root, part)
    const names = statSync(path).isFile() ? [""] : readdirSync(path, { recursive: true, encoding: "utf8" }).sort()
    for (const name of names.filter(isOurs)) {
      const file = join(path, name)
      if (statSync(file).isFile()) digest.update(`${part}/${name}\n`).update(readFileSync(file)).update("\n")
    }
  }
  return digest.digest("hex").slice(0, 16)
}

const build = (folder: string): void => {
  const work = mkdtempSync(join(tmpdir(), "effect-package-"))
  try {
    const checkout = join(work, "checkout")
    for (const part of parts) {
      const filter = (source: string) => isOurs(relative(root, source))
      cpSync(join(root, part), join(checkout, part), { recursive: true, filter })
    }
    symlinkSync(join(root, "node_modules"), join(checkout, "node_modules"))
    const PATH = `${join(root, "node_modules/.bin")}:${process.env.PATH ?? ""}`
    const env = { ...process.env, PATH, NODE_COMPILE_CACHE: join(root, "node_modules/.cache/compiled") }
    execFileSync("npm", ["pack", "--silent", "--pack-destination", work], { cwd: checkout, env })
    mkdirSync(dirname(folder), { recursive: true })
    const built = mkdtempSync(`${folder}-`)
    const { hook, installed, manifestAfterwards, tarball } = inFolder(built)
    cpSync(join(work, readdirSync(work).find((name) => name.endsWith(".tgz")) ?? ""), tarball)
    cpSync(join(checkout, "package.json"), manifestAfterwards)
    writeFileSync(hook, hookText)
    mkdirSync(installed, { recursive: true })
    execFileSync("tar", ["-xzf", tarball, "--strip-components=1", "-C", installed])
    try {
      renameSync(built, folder)
    } catch (error) {
      rmSync(built, { recursive: true, force: true })
      // If the folder is there now, a process that built the same was faster.
      if (!existsSync(folder)) throw error
    }
  } finally {
    // Deleting thousands of files can take as long as writing them: nobody waits for that.
    void rm(work, { recursive: true, force: true })
  }
}

/** Returns the package as the checkout's files make it, and builds it if it was not built from these very files. */
export const builtPackage = (): BuiltPackage => {
  const digest = digestOfParts()
  const folder = join(kept, digest)
  const built = inFolder(folder)
  if (existsSync(built.hook)) return built
  const earlier = existsSync(kept) ? readdirSync(kept).filter((name) => !name.startsWith(digest)) : []
  for (const name of earlier) rmSync(join(kept, name), { recursive: true, force: true })
  build(folder)
  return built
}
